"""Validation of tables: valid ones become columns of fixed types, invalid ones a fault for every cell, all at once."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.desk.table_columns import Fault, TableError, unread
from restive.desk.table_files import ROW, as_frame, read_table_file, write_table_file
from restive.desk.table_schema import OUTCOMES, STATES, read_agents, read_outcomes, read_states
from restive.errors import InputError

QUICK = settings(max_examples=100, derandomize=True, deadline=None, database=None)
LEVELS = ["low", "high"]


def table_of(text: str, tmp_path: Path) -> pl.DataFrame:
    (tmp_path / "monday.csv").write_text(text)
    return read_table_file(tmp_path / "monday.csv")


def faults_of(read: Callable[[], object]) -> list[Fault]:
    with pytest.raises(TableError) as refused:
        read()
    assert refused.value.total == len(refused.value.faults)
    return refused.value.faults


def state_faults(given: object, states: Sequence[str] = LEVELS) -> list[Fault]:
    return faults_of(lambda: read_states(as_frame(given), "monday.csv", states))


def outcome_faults(given: object, rewards: Sequence[float] | None = None) -> list[Fault]:
    return faults_of(lambda: read_outcomes(as_frame(given), "friday.csv", LEVELS, rewards))


def test_states_are_read_by_name_in_any_case_or_by_number(tmp_path: Path) -> None:
    sheet = table_of("ID, STATE ,Group\n007,low,north\nb, HIGH,\nc,1,south\nd,0.0,\ne,,\n", tmp_path)
    table = read_states(sheet, "monday.csv", LEVELS)
    assert table["row"].to_list() == sheet["row"].to_list()
    table = table.drop("row")
    assert table.schema == {"agent": pl.String, "state": pl.Int16, "group": pl.String}
    assert table.rows() == [("007", 0, "north"), ("b", 1, None), ("c", 1, "south"), ("d", 0, None), ("e", None, None)]


def test_names_of_states_come_before_numbers_and_exact_ones_before_those_in_other_case() -> None:
    named = read_states(as_frame({"a": "1", "b": "0", "c": 2}), "x", ["1", "2", "0"])
    assert named["state"].to_list() == [0, 2, 1]
    cased = {"a": "low", "b": "LOW", "c": "High"}
    assert read_states(as_frame(cased), "x", ["low", "LOW", "high"])["state"].to_list() == [0, 1, 2]
    assert [fault.row for fault in state_faults({"a": "Low"}, ["low", "LOW", "high"])] == [1]


def test_letters_with_accents_are_the_same_however_they_are_put_together() -> None:
    composed, apart = "\u00e9veill\u00e9", "e\u0301veille\u0301"
    assert read_states(as_frame({"a": composed, "b": apart}), "x", ["endormi", apart])["state"].to_list() == [1, 1]


def test_columns_of_any_plain_type_are_read() -> None:
    frame = pl.DataFrame(
        {
            "agent": [7.0, 8.5, 9.0],
            "state": pl.Series([0, 1, None], dtype=pl.UInt8),
            "group": pl.Series(["n", None, "s"], dtype=pl.Categorical),
        }
    )
    assert read_states(frame, "x", LEVELS).drop("row").rows() == [("7", 0, "n"), ("8.5", 1, None), ("9", None, "s")]


def test_a_misspelt_state_is_named_with_its_row_its_column_and_a_guess(tmp_path: Path) -> None:
    sheet = table_of("agent,state\na,low\n\n\n\n\nb,hihg\n", tmp_path)
    with pytest.raises(TableError) as refused:
        read_states(sheet, "monday.csv", LEVELS)
    said = "monday.csv, row 7, column state: 'hihg' is not a state; the states are low, high (did you mean 'high'?)"
    assert str(refused.value) == said
    assert refused.value.faults == [Fault(7, "state", said.partition(": ")[2], "texts")]


def test_every_fault_of_a_file_is_reported_at_once_in_the_order_of_rows(tmp_path: Path) -> None:
    text = f"agent,State,grop\na,low,\n,high,\nb,2,\na,x,\n{'z' * 201},low,\n"
    faults = faults_of(lambda: read_states(table_of(text, tmp_path), "monday.csv", LEVELS))
    assert [(fault.row, fault.column) for fault in faults] == [
        (None, "grop"), (3, "agent"), (4, "State"), (5, "State"), (5, "agent"), (6, "agent"),
    ]  # fmt: skip
    assert [fault.message for fault in faults] == [
        "unknown column; did you mean 'group'?",
        "the id is empty; every row must name its agent",
        "'2' is not a state; the states are low, high",
        "'x' is not a state; the states are low, high",
        "'a' appears twice, also in row 2; keep one",
        f"'{'z' * 40}…' has 201 characters; at most 200 are allowed",
    ]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (["agent"], [(None, "there is no column 'state'; the columns are 'agent'")]),
        (["agent", "stat"], [(None, "there is no column 'state'; did you mean 'stat'?")]),
        (["name", "state"], [(None, "there is no column 'agent'; the columns are 'name', 'state'")]),
        (["agnet", "sate"], [(None, "there is no column 'agent'; did you mean 'agnet'?"),
                             (None, "there is no column 'state'; did you mean 'sate'?")]),
        (["agent", "state", "gruop"], [("gruop", "unknown column; did you mean 'group'?")]),
        (["agent", "Agent (2)", "state"], [("agent", "two columns have this name; keep one of them")]),
        (["agent", "state", "state (2)"], [("state", "two columns have this name; keep one of them")]),
    ],
)  # fmt: skip
def test_headers_that_are_missing_misspelt_or_doubled(headers: list[str], said: list[tuple[str | None, str]]) -> None:
    faults = state_faults(pl.DataFrame({header: ["0"] for header in headers}))
    assert [(fault.column, fault.message) for fault in faults] == said


def test_columns_that_mean_nothing_here_are_left_unread_and_listed() -> None:
    frame = as_frame(
        [{"Agent ID": "a", "id": "5", "State": "low", "stage": "2", "age": 30, "phone": "1", "phone (2)": "2"}]
    )
    assert read_states(frame, "x", LEVELS).drop("row").rows() == [("a", 0, None)]
    assert unread(frame, STATES) == ["id", "stage", "age", "phone", "phone (2)"]
    assert unread(as_frame([{"agent": "a", "next state": 1, "state": 0}]), OUTCOMES) == ["state"]


@pytest.mark.parametrize("bad", ["a\nb", "a\tb", "a\x00b", "a\x7fb", "a\u2028b", "a\x85b"])
def test_ids_and_groups_with_control_characters_are_refused(bad: str) -> None:
    for rows, column in (({bad: "low"}, "agent"), ({"a": ("low", bad)}, "group")):
        (fault,) = state_faults(rows)
        assert (fault.row, fault.column) == (1, column)
        assert fault.message == f"{bad!r} contains a line break or another control character"


def test_only_twenty_faults_are_printed_and_the_rest_is_counted() -> None:
    with pytest.raises(TableError) as refused:
        read_states(as_frame({f"a{i}": "x" for i in range(333)}), "monday.csv", LEVELS)
    lines = str(refused.value).splitlines()
    assert (len(lines), lines[-1], len(refused.value.faults)) == (21, "and 313 more", 333)
    with pytest.raises(TableError) as refused:
        read_states(as_frame({f"a{i}": "x" for i in range(5000)}), "monday.csv", LEVELS)
    assert (refused.value.total, len(refused.value.faults)) == (5000, 1000)


def test_outcomes_have_fixed_columns_whatever_was_reported(tmp_path: Path) -> None:
    table = read_outcomes(table_of("agent,done\na,yes\nb,\nc,0\n", tmp_path), "friday.csv", LEVELS, None).drop("row")
    assert table.schema == {
        "agent": pl.String, "done": pl.Boolean, "reward": pl.Float64, "after": pl.Int16, "round": pl.Int64,
    }  # fmt: skip
    assert table.rows() == [
        ("a", True, None, None, None),
        ("b", None, None, None, None),
        ("c", False, None, None, None),
    ]


def test_done_is_understood_in_several_languages() -> None:
    words = {
        "yes": True,
        "Y": True,
        "TRUE": True,
        "1": True,
        "1.0": True,
        "ja": True,
        "Oui": True,
        "sí": True,
        "x": True,
    }
    words |= {"✓": True, "✔️": True, "✗": False, "No answer": False, "not reached": False}
    words |= {"no": False, "N": False, "false": False, "0": False, "0.0": False, "Nein": False, "non": False}
    frame = as_frame({"agent": list(words), "done": list(words)})
    assert read_outcomes(frame, "x", LEVELS, None)["done"].to_list() == list(words.values())
    assert outcome_faults([{"agent": "a", "done": "perhaps"}]) == [Fault(1, "done", "'perhaps' is not yes or no")]


@pytest.mark.parametrize("header", ["next_state", "Next State", "next-state", "after", "state"])
def test_the_reward_follows_from_the_next_state(header: str) -> None:
    frame = as_frame([{"agent": "a", header: "high"}, {"agent": "b", header: None}, {"agent": "c", header: 0}])
    table = read_outcomes(frame, "x", LEVELS, [-1, 2.5])
    assert table.select("after", "reward").rows() == [(1, 2.5), (None, None), (0, -1.0)]


def test_a_reward_beside_a_state_must_agree_with_it() -> None:
    rows = [("a", "high", 2.5), ("b", "high", 2), ("c", "low", None), ("d", None, 1), ("e", "hgih", 9)]
    frame = pl.DataFrame(rows, schema=["agent", "after", "reward"], orient="row")
    assert read_outcomes(frame[:1], "x", LEVELS, [0, 2.5])["reward"].to_list() == [2.5]
    assert outcome_faults(frame, [0, 2.5]) == [
        Fault(2, "reward", "2 does not match the next state's reward 2.5"),
        Fault(4, "reward", "a reward without a next state; here rewards follow from the next state"),
        Fault(5, "after", "'hgih' is not a state; the states are low, high (did you mean 'high'?)", "texts"),
    ]


def test_where_rewards_are_reported_every_next_state_needs_one() -> None:
    rows = [{"agent": "a", "after": 1, "reward": 3}, {"agent": "b", "after": 1}, {"agent": "c", "reward": 0.5}]
    assert outcome_faults(rows) == [Fault(2, "reward", "empty; every row with a next state needs a reward")]
    table = read_outcomes(as_frame([rows[0], rows[2]]), "x", LEVELS, None)
    assert table.select("reward", "after").rows() == [(3.0, 1), (0.5, None)]
    (fault,) = outcome_faults([{"agent": "a", "after": 1, "reward": "x"}])
    assert fault.message == "'x' is not a finite number; write it like 1250 or 2.5"
    (fault,) = outcome_faults([{"agent": "a", "after": 1}])
    assert fault == Fault(None, None, "no column 'reward'; in this program every row with a next state needs a reward")


def test_a_sheet_that_tells_nothing_is_refused() -> None:
    (fault,) = outcome_faults([{"agent": "a", "round": 1}])
    assert fault.message == "no column reports an outcome; one of done, next_state, reward is required"


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1", "-2.5", "+.5", "1e3"], [1.0, -2.5, 0.5, 1000.0]),
        (["0,5", "1,250", "3"], [0.5, 1.25, 3.0]),
        (["-12,25", ",5"], [-12.25, 0.5]),
    ],
)
def test_numbers_with_a_point_or_clearly_with_a_comma(cells: list[str], numbers: list[float]) -> None:
    frame = as_frame({"agent": [f"a{i}" for i in range(len(cells))], "reward": cells})
    assert read_outcomes(frame, "x", LEVELS, None)["reward"].to_list() == numbers


@pytest.mark.parametrize(
    ("cells", "bad"),
    [
        (["1,250", "2"], [1]),
        (["0,5", "0.5"], [1]),
        (["inf", "nan", "x", "1 000", "1_0", "1,000,000"], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_numbers_that_are_not_finite_or_not_clear_are_refused(cells: list[str], bad: list[int]) -> None:
    faults = outcome_faults({"agent": [f"a{i}" for i in range(len(cells))], "reward": cells})
    assert [fault.row for fault in faults] == bad
    assert faults[0].message == f"{cells[bad[0] - 1]!r} is not a finite number; write it like 1250 or 2.5"


def test_numbers_of_frames_are_taken_as_they_are_and_infinity_is_refused() -> None:
    frame = pl.DataFrame({"agent": ["a", "b", "c"], "reward": [0.1 + 0.2, float("nan"), None]})
    assert read_outcomes(frame, "x", LEVELS, None)["reward"].to_list() == [0.1 + 0.2, None, None]
    (fault,) = outcome_faults(frame.with_columns(reward=pl.lit(float("-inf")))[:1])
    assert fault == Fault(1, "reward", "'-inf' is not a finite number; write it like 1250 or 2.5")


def test_rounds_are_whole_numbers_from_one_and_agents_come_once_in_each() -> None:
    rows = [("a", 1, "y"), ("a", 2, "y"), ("b", "2.0", "n"), ("c", None, "n")]
    frame = as_frame([{"agent": agent, "round": number, "done": done} for agent, number, done in rows])
    assert read_outcomes(frame, "x", LEVELS, None)["round"].to_list() == [1, 2, 2, None]
    bad = [("a", 1), ("a", 2), ("a", "1.0"), ("b", 0), ("c", "two"), ("d", -1), ("e", 1.5), ("f", "9" * 30), ("c", 3)]
    faults = outcome_faults([{"agent": a, "round": number, "done": int(number != "1.0")} for a, number in bad])
    assert [(fault.row, fault.column) for fault in faults] == [
        (3, "agent"), (4, "round"), (5, "round"), (6, "round"), (7, "round"), (8, "round"),
    ]  # fmt: skip
    assert faults[0].message == "'a' appears twice, also in row 1; keep one"
    assert faults[1].message == "'0' is not a round; rounds count from 1"
    twice = [{"agent": "a", "round": number, "done": place % 2} for place, number in enumerate(("x", "y", None, None))]
    assert [(fault.row, fault.column) for fault in outcome_faults(twice)] == [(1, "round"), (2, "round"), (4, "agent")]


def test_lists_of_agents_have_one_column_that_counts(tmp_path: Path) -> None:
    assert read_agents(table_of("id,why\n007,moved\n b ,\n", tmp_path), "leave.csv").to_list() == ["007", "b"]
    assert read_agents(as_frame([1, "b"]), "x").to_list() == ["1", "b"]
    assert read_agents(as_frame([UUID(int=7)]), "x").to_list() == ["00000000-0000-0000-0000-000000000007"]
    assert read_agents(as_frame([]), "x").to_list() == []
    assert read_states(as_frame({}), "x", LEVELS).columns == ["agent", "state", "group", "row"]
    assert read_agents(as_frame(["a", "b", "a"]), "x").to_list() == ["a", "b"]
    faults = faults_of(lambda: read_agents(table_of("agent,why\na,\n,x\na,\n", tmp_path), "leave.csv"))
    assert [(fault.row, fault.column) for fault in faults] == [(3, "agent")]


def test_rows_that_say_the_same_are_merged_and_rows_that_contradict_each_other_are_refused() -> None:
    rows = [("a", "low", None), ("b", "high", "n"), ("a", "Low ", None), ("b", 1, "n")]
    frame = as_frame([{"agent": agent, "state": state, "group": group} for agent, state, group in rows])
    table = read_states(frame, "x", LEVELS)
    assert table.rows() == [("a", 0, None, 1), ("b", 1, "n", 2)]
    other = frame.with_columns(group=pl.Series([None, "n", None, "s"]))
    faults = faults_of(lambda: read_states(other, "x", LEVELS))
    assert faults == [Fault(4, "agent", "'b' appears twice, also in row 2; keep one")]


def test_percentages_are_shares() -> None:
    frame = as_frame({"agent": ["a", "b", "c"], "reward": ["10%", "2,5 %", "0"], "next_state": [0, 0, 0]})
    assert read_outcomes(frame, "x", LEVELS, None)["reward"].to_list() == [0.1, 0.025, 0.0]


def test_empty_ids_are_not_taken_for_the_same_agent_twice(tmp_path: Path) -> None:
    faults = faults_of(lambda: read_agents(table_of("agent,x\n,1\n,2\n", tmp_path), "leave.csv"))
    assert [fault.message.partition(";")[0] for fault in faults] == ["the id is empty"] * 2


class Pandas(NamedTuple):
    """What looks like a frame of pandas: names in `columns`, cells by name."""

    columns: list[object]
    cells: dict[object, Iterable[object]]

    def __getitem__(self, name: object) -> Iterable[object]:  # type: ignore[override]
        return self.cells[name]


@pytest.mark.parametrize(
    "given",
    [
        {"ann": "high", "7": None},
        {"ann": ("high", None), 7: (None, None)},
        {"ann": {"state": "high"}, 7: {}},
        {"agent": ["ann", 7], "state": ["high", None]},
        {"id": np.array(["ann", "7"]), "state": ["high", float("nan")]},
        [{"agent": "ann", "state": "high"}, {"agent": 7.0}],
        pl.DataFrame({"agent": ["ann", "7"], "state": ["high", None]}),
        pl.LazyFrame({"agent": ["ann", "7"], "state": ["high", None]}),
        pl.DataFrame({"agent": ["ann", "7"], "state": ["high", None], "row": ["x", "y"]}),
        Pandas(["agent", "state"], {"agent": ["ann", np.int64(7)], "state": np.array(["high", None], dtype=object)}),
    ],
    ids=["states", "pairs", "records", "columns", "arrays", "rows", "polars", "lazy", "own-row", "pandas"],
)
def test_what_people_have_becomes_a_frame(given: object) -> None:
    frame = as_frame(given)
    assert frame[ROW].to_list() == [1, 2]
    assert read_states(frame, "x", LEVELS).drop("row").rows() == [("ann", 1, None), ("7", None, None)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (7, "int is not a table; give a file, a frame, rows, or a mapping from agent to state."),
        (None, "NoneType is not a table"),
        (b"agent", "bytes is not a table"),
        ({"a": ("low", "x", "y")}, r"Agent 'a' has \('low', 'x', 'y'\); it must be a state, or \(state, group\)."),
        ({"agent": ["a", "b"], "state": ["low"]}, "The columns differ in length"),
        ([{"agent": "a", "state": ["low"]}, {"agent": "b", "state": "low"}], "column state: .* is not one text"),
    ],
)
def test_what_is_no_table_is_refused(given: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        as_frame(given)


def test_lists_in_cells_are_a_fault_of_the_column() -> None:
    faults = state_faults(pl.DataFrame({"agent": [["a"], ["b"]], "state": [{"x": 1}, {"x": 2}]}))
    assert [(fault.row, fault.column) for fault in faults] == [(None, "agent"), (None, "state")]
    assert faults[0].message == "it holds List(String); a cell must be one text or one number"


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.sampled_from(["low", "HIGH", "1", "", "yes", "0,5"]),
    st.text(max_size=4), st.just("\n"), st.integers(), st.lists(st.integers(), max_size=1), st.dates(),
)  # fmt: skip
HEADERS = st.sampled_from(
    ["agent", "id", "Agent", "state", "stat", "group", "done", "next_state", "reward", "round", "row", ""]
)


@QUICK
@given(st.lists(st.dictionaries(HEADERS, CELLS, max_size=6), max_size=6))
def test_broken_rows_are_a_table_or_faults(rows: list[dict[str, object]]) -> None:
    for read in (
        lambda frame: read_states(frame, "x", LEVELS),
        lambda frame: read_outcomes(frame, "x", LEVELS, None),
        lambda frame: read_outcomes(frame, "x", LEVELS, [0.0, 1.0]),
        lambda frame: read_agents(frame, "x"),
    ):
        with suppress(InputError):
            assert len(read(as_frame(rows))) <= len(rows)


PRINTED = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=2)


@QUICK
@given(st.lists(st.tuples(PRINTED, st.sampled_from(["low", "high", "", "x"])), max_size=8))
def test_a_sheet_is_refused_exactly_when_a_row_is_wrong(rows: list[tuple[str, str]]) -> None:
    first = dict(reversed(rows))
    read = {"low": 0, "high": 1, "": None, "x": None}
    contradictions = sum(read[state] != read[first[agent]] for agent, state in rows)
    right = not contradictions and all(state != "x" for _, state in rows)
    frame = pl.DataFrame(rows, schema={"agent": pl.String, "state": pl.String}, orient="row")
    if right:
        found = read_states(frame, "x", LEVELS)
        assert dict(zip(found["agent"], found["state"], strict=True)) == {agent: read[first[agent]] for agent in first}
    else:
        with pytest.raises(TableError) as refused:
            read_states(frame, "x", LEVELS)
        assert refused.value.total == contradictions + sum(state == "x" for _, state in rows)


ODD = ("é", " 0 ")  # no plain id, and a state that is not written as most are
WRITTEN = st.sampled_from(["low", "high", "0", "1", "LOW", " low", "0.0", "1.0", "", "2", "x", "yes", None])
IDS = (
    st.text(" a~7é\x7f\n\u2028", max_size=3)
    | st.integers(-1, 12).map(str)
    | st.sampled_from(["a" * 200, "b" * 201, None])
)
NAMED = st.sampled_from([["low", "high"], ["1", "0"], ["0.0", "low"], [" low", "high"], ["é", "e\u0301"]])


def rows_or_faults(read: Callable[[], pl.DataFrame]) -> list[tuple[object, ...]] | list[Fault]:
    try:
        return read().rows()
    except TableError as found:
        return found.faults


@QUICK
@given(st.lists(st.tuples(IDS, WRITTEN), min_size=1, max_size=5), NAMED, st.booleans())
def test_a_plain_table_is_read_as_if_there_were_an_odd_row_in_it(
    rows: list[tuple[str | None, str | None]], states: list[str], again: bool
) -> None:
    def read(rows: list[tuple[str | None, str | None]]) -> list[tuple[object, ...]] | list[Fault]:
        frame = pl.DataFrame(rows, schema={"agent": pl.String, "state": pl.String}, orient="row")
        return rows_or_faults(lambda: read_states(frame, "x", states))

    rows = [(agent, state) for agent, state in rows if agent is None or agent.strip() != ODD[0]]
    rows = rows * 2 if again else rows
    with_odd, alone = read([*rows, ODD]), read(rows)
    assert [line for line in with_odd if line[0] not in (len(rows) + 1, ODD[0])] == alone


@QUICK
@given(st.lists(st.sampled_from(["yes", "no", "1", "0", "true", "false", "ja", None]), min_size=1, max_size=5))
def test_what_was_done_is_read_the_same_in_usual_words_and_beside_others(words: list[str | None]) -> None:
    def read(words: list[str | None]) -> list[object]:
        frame = pl.DataFrame(
            {"agent": list(map(str, range(len(words)))), "done": words}, schema_overrides={"done": pl.String}
        )
        return read_outcomes(frame, "x", LEVELS, None)["done"].to_list()

    assert read([*words, "oui"]) == [*read(words), True]


@QUICK
@given(st.lists(st.integers(-1, 3), min_size=1, max_size=5))
def test_whole_numbers_are_read_as_their_digits(numbers: list[int]) -> None:
    def read(state: pl.Series) -> list[tuple[object, ...]] | list[Fault]:
        frame = pl.DataFrame({"agent": pl.Series(range(len(state))).cast(state.dtype), "state": state})
        return rows_or_faults(lambda: read_states(frame, "x", ["1", "low", "high"]))

    assert read(pl.Series(numbers)) == read(pl.Series(numbers).cast(pl.String))


def test_names_that_are_known_are_not_checked_again_but_may_not_come_twice() -> None:
    asked: list[list[str]] = []

    def all_known(names: pl.Series) -> bool:
        asked.append(names.to_list())
        return True

    frame = as_frame({"agent": [" a", "b"], "state": [0, 1]})
    assert read_states(frame, "x", LEVELS, all_known)["agent"].to_list() == asked[0] == [" a", "b"]
    twice = as_frame({"agent": ["a", "a"], "next_state": [0, 1]})
    faults = faults_of(lambda: read_outcomes(twice, "x", LEVELS, [0, 1], all_known))
    assert [fault.message for fault in faults] == ["'a' appears twice, also in row 1; keep one"]


@pytest.mark.soak
def test_a_million_rows(tmp_path: Path) -> None:
    number = np.arange(1_000_000)
    states = pl.Series(["low", "high"]).gather(number % 2)
    frame = pl.DataFrame({"agent": pl.Series(number).cast(pl.String), "state": states, "reward": number % 7 / 4})
    for ending in ("csv", "parquet"):
        begin = time.perf_counter()
        write_table_file(frame, tmp_path / f"a.{ending}")
        written = time.perf_counter()
        sheet = read_table_file(tmp_path / f"a.{ending}")
        read = time.perf_counter()
        assert read_states(sheet, "x", LEVELS)["state"].sum() == 500_000
        first = time.perf_counter()
        assert read_outcomes(sheet, "x", LEVELS, None)["reward"].sum() == frame["reward"].sum()
        second = time.perf_counter()
        print(f"{ending}: written in {written - begin:.2f} s, read in {read - written:.2f} s, ", end="")
        print(f"as states in {first - read:.2f} s, as outcomes in {second - first:.2f} s")
