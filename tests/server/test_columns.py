import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from restive.desk.table_schema import TableError
from restive.errors import InputError
from restive.server.columns import OUTCOMES, STATES, Kinds, as_columns
from restive.server.requests import OutcomeColumns, OutcomeRow, StateColumns, StateRow

STATE_TABLES = [
    [{"agent": "ann", "state": "low"}],
    [{"agent": 7, "state": 0, "group": "north"}, {"agent": "ben", "state": None}],
    [],
    {"agent": ["ann"], "state": ["low"]},
    {"agent": ["ann", 2], "state": [1, None], "group": ["a", None]},
    {"agent": [], "state": []},
    [{"agent": "ann"}],
    [{"state": "low"}],
    [{"agent": True, "state": "low"}],
    [{"agent": None, "state": "low"}],
    [{"agent": "ann", "state": 0.5}],
    [{"agent": "ann", "state": ["low"]}],
    [{"agent": "ann", "state": "low", "group": 3}],
    [{"agent": "ann", "state": "low", "phone": "12"}],
    ["ann"],
    [None],
    {"agent": ["ann"]},
    {"agent": "ann", "state": "low"},
    {"agent": ["ann"], "state": ["low"], "phone": ["12"]},
    {"agent": [{}], "state": ["low"]},
    "ann",
    7,
    True,
]
OUTCOME_TABLES = [
    [{"agent": "ann", "done": True, "next_state": "high", "reward": 1.5, "round": 2}],
    [{"agent": "ann"}, {"agent": "ben", "done": None}],
    {"agent": ["ann"], "reward": [2]},
    [{"agent": "ann", "done": "yes"}],
    [{"agent": "ann", "done": 1}],
    [{"agent": "ann", "reward": "1"}],
    [{"agent": "ann", "reward": True}],
    [{"agent": "ann", "round": "1"}],
    [{"agent": "ann", "state": "high"}],
    {"agent": ["ann"], "done": True},
]


@pytest.mark.parametrize(
    ("table", "kinds", "model"),
    [
        *[(table, STATES, list[StateRow] | StateColumns) for table in STATE_TABLES],
        *[(table, OUTCOMES, list[OutcomeRow] | OutcomeColumns) for table in OUTCOME_TABLES],
    ],
    ids=str,
)
def test_what_is_taken_is_what_the_document_says(table: object, kinds: Kinds, model: Any) -> None:
    described = True
    try:
        TypeAdapter(model).validate_json(json.dumps(table), strict=True)
    except ValidationError:
        described = False
    if described:
        assert set(as_columns(table, "table", kinds)) <= set(kinds)
    else:
        with pytest.raises(InputError, match="table"):
            as_columns(table, "table", kinds)


def test_every_wrong_cell_is_named() -> None:
    with pytest.raises(TableError) as caught:
        as_columns(
            [{"agent": "a", "state": 1}, {"agent": 1.5, "state": 1}, {"agent": {}, "state": 1}], "states", STATES
        )
    assert [(fault.row, fault.column) for fault in caught.value.faults] == [(2, "agent"), (3, "agent")]
    assert caught.value.faults[0].message == "a number, but it must be a text or a whole number"


def test_a_missing_field_is_named_by_its_row() -> None:
    with pytest.raises(TableError, match="states, row 2, column state: it is missing"):
        as_columns([{"agent": "a", "state": 1}, {"agent": "b"}], "states", STATES)


def test_an_unknown_field_is_named_with_those_there_are() -> None:
    with pytest.raises(TableError, match="row 2, column stat: this is not known; there are agent, state, group"):
        as_columns([{"agent": "a", "state": 1}, {"agent": "b", "state": 1, "stat": 1}], "states", STATES)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match=r"differ in length \(agent 2, state 1\)"):
        as_columns({"agent": ["a", "b"], "state": [1]}, "states", STATES)


def test_of_very_many_wrong_cells_a_thousand_are_reported_and_all_are_counted() -> None:
    with pytest.raises(TableError) as caught:
        as_columns([{"agent": "a", "state": 0.5}] * 3000, "states", STATES)
    assert (len(caught.value.faults), caught.value.total) == (1000, 3000)


@pytest.mark.parametrize(
    "table", [[1] * 3000, [{}] * 1500, [{"x": 1}] * 3000, {"agent": [[]] * 3000, "state": [0] * 3000}]
)
def test_of_very_many_faults_the_first_are_reported_and_all_are_counted(table: object) -> None:
    with pytest.raises(TableError) as caught:
        as_columns(table, "states", STATES)
    assert (len(caught.value.faults), caught.value.total) == (1000, 3000)
