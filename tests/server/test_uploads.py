import json
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException

from restive.api.types import DecidedRound, OutcomeCounts, ProgramConfig
from restive.desk.table_columns import TableError
from restive.desk.table_files import write_table_file
from restive.errors import InputError
from restive.server import uploads
from restive.server.errors import InvalidRequest
from restive.server.json_tables import MAX_LISTS, OUTCOMES, STATES, ColumnTypes, as_columns, load_json
from restive.server.requests import (
    CreateBody,
    DecideBody,
    LeaveBody,
    OutcomeColumns,
    OutcomeRow,
    StateColumns,
    StateRow,
)
from restive.server.uploads import MAX_THREAD_BYTES, check_settings
from server.calling import CSV, Caller, as_rows, validate

PARQUET = {"Content-Type": "application/vnd.apache.parquet"}
JSON = {"Content-Type": "application/json"}
EXCEL = {"Content-Type": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "not valid JSON at line 1, column 1"),
        (b"{", "not valid JSON at line 1, column 2"),
        (b"{'a': 1}", "not valid JSON"),
        (b'{"a": 1} x', "not valid JSON"),
        (b'"a\x00b"', "not valid JSON"),
        (b'{"a": NaN}', "NaN is not a number; write null"),
        (b"-Infinity", "-Infinity is not a number"),
        (b"1e999", "number 1e999 in the body is too large"),
        (b"9" * 5000, "a number with too many digits"),
        (b'{"a": "\\ud800"}', "not valid UTF-8"),
        (b'{"\\udfff": 1}', "not valid UTF-8"),
        (b"[" * 100_000, "too many nested"),
        (b'{"a":' * 100_000, "too many nested"),
        (b"\xff\xfe", "not valid UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "not valid UTF-8"),
    ],
)
def test_invalid_json_is_rejected(text: bytes, sentence: str) -> None:
    with pytest.raises(HTTPException, match=sentence) as caught:
        load_json(text)
    assert caught.value.status_code == 400
    assert len(caught.value.detail) < 200


def test_json_is_parsed_with_whole_numbers_as_integers() -> None:
    assert load_json(b'\xef\xbb\xbf{"a": [1, 1.0, 1.5, 1e3, null, true, "\\ud83d\\ude00"]}') == {
        "a": [1, 1, 1.5, 1000, None, True, "😀"]
    }
    assert type(load_json(b"2.0")) is int
    assert load_json(b"1e300") == 1e300
    assert load_json(b'"\\u0000"') == "\x00"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json; charset=latin-1"}, 415),
        ({"Content-Type": "Application/JSON; charset=UTF-8"}, 201),
    ],
)
def test_only_media_types_that_can_be_read_are_taken(caller: Caller, headers: dict[str, str], status: int) -> None:
    content = b'{"states": [{"agent": "ann", "state": "low"}]}'
    answer = caller.call("POST", "rounds", content=content, headers=headers)
    assert answer.status_code == status
    if status == 415:
        assert caller.events() == 1


@pytest.mark.parametrize(("charset", "status"), [("utf-16", 201), ("windows-1252", 201), ("shift_jis", 415)])
def test_a_table_of_text_may_name_an_encoding_that_is_recognised(caller: Caller, charset: str, status: int) -> None:
    content = "agent,state\njosé,low\n".encode(charset if status == 201 else "ascii", "ignore")
    headers = {"Content-Type": f"text/csv; charset={charset}"}
    answer = caller.call("POST", "rounds", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    if status == 201:
        assert [row["agent"] for row in answer.json()["people"]] == ["josé"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_a_table_of_no_type_is_recognised_by_its_bytes(caller: Caller, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"monday.{ending}"
    write_table_file(pl.DataFrame({"agent": ["ann"], "state": ["low"]}), file)
    headers = {"Content-Type": "application/octet-stream"}
    answer = caller.call("POST", "rounds", content=file.read_bytes(), headers=headers)
    assert (answer.status_code, [row["agent"] for row in answer.json()["people"]]) == (201, ["ann"])


def write_excel(frame: pl.DataFrame) -> bytes:
    from restive.desk.excel import excel_bytes

    return excel_bytes(frame, "states")


def write_parquet(frame: pl.DataFrame) -> bytes:
    content = BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


@pytest.mark.parametrize(
    ("headers", "write"),
    [(CSV, lambda frame: frame.write_csv().encode()), (PARQUET, write_parquet), (EXCEL, write_excel)],
    ids=["csv", "parquet", "xlsx"],
)
def test_a_table_of_every_kind_decides_as_json_does(
    caller: Caller, headers: dict[str, str], write: Callable[[pl.DataFrame], bytes]
) -> None:
    caller.post("/api/v1/programs", {"name": "other", "states": ["low", "high"], "seed": 3, "policy": "egt",
                                     "rewards": [0, 1], "budget": 2, "control": 0}, ProgramConfig, 201)  # fmt: skip
    by_json = caller.post("/api/v1/programs/other/rounds", {"states": as_rows(), "budget": 1}, DecidedRound, 201)
    by_file = caller.call("POST", "rounds?budget=1", content=write(pl.DataFrame(as_rows())), headers=headers)
    assert by_file.status_code == 201
    assert by_file.json()["people"] == by_json["people"]


@pytest.mark.parametrize(
    ("content", "headers", "sentence"),
    [
        (b"agent,state\nann,nope\n", CSV, "states, row 2, column state: 'nope' is not a state"),
        (b"", CSV, "empty"),
        (b"agent,state\n\x81,low\n", CSV, "neither UTF-8 nor Windows-1252"),
        (b"PAR1 nonsense", PARQUET, "the file is damaged or is not a Parquet file"),
        (b"PK nonsense", EXCEL, "the file is damaged or is not an Excel file"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_a_sentence(
    caller: Caller, content: bytes, headers: dict[str, str], sentence: str
) -> None:
    failure = caller.refused("POST", "rounds", 422, content=content, headers=headers)
    assert sentence in failure["detail"]
    assert "/" not in failure["detail"]
    assert caller.events() == 1


def test_settings_count_in_the_query_and_in_a_json_body(caller: Caller) -> None:
    """Defaults in one place do not hide the other: generated clients send them."""
    path = "rounds?budget=1&never=ann&again=false&limit=1000&columns=agent=id"
    rows = [{"id": each.pop("agent"), **each} for each in as_rows()]
    csv = pl.DataFrame(rows).write_csv()
    by_file = validate(caller.call("POST", path + "&dry_run=true", content=csv, headers=CSV), DecidedRound)
    body = {"states": as_rows(), "dry_run": False, "budget": None, "limit": 1}
    by_both = caller.post("rounds?budget=1&never=ann&dry_run=true&limit=1000", body, DecidedRound)
    assert by_both["people"] == by_file["people"][:1]
    body = {"states": as_rows(), "dry_run": True, "budget": 1, "never": ["ann"]}
    assert caller.post("rounds?dry_run=false", body, DecidedRound)["people"] == by_file["people"]
    assert caller.events() == 1


def test_a_setting_with_two_values_is_refused(caller: Caller) -> None:
    body = {"states": as_rows(), "budget": 2}
    failure = caller.refused("POST", "rounds?budget=1&dry_run=true", 422, json=body)
    assert failure["detail"] == "budget differs in the query and in the body; give it once."
    assert failure["location"] == "budget"


@pytest.mark.parametrize(
    ("path", "body"),
    [("leave", {"agents": ["ann"]}), ("erase", {"agents": ["ann"]}), ("rounds/1/withdraw", {"agents": ["ben"]}),
     ("rounds/1/cancel", {}), ("undo", {}), ("archive", {}), ("restore", {})],
)  # fmt: skip
def test_a_dry_run_works_in_the_query_and_in_the_body(caller: Caller, path: str, body: dict[str, object]) -> None:
    caller.call("POST", "rounds", json={"states": as_rows()})
    if path.endswith("withdraw"):
        caller.call("POST", "outcomes", json={"outcomes": [{"agent": "ben", "next_state": "low"}]})
    before = caller.events()
    by_query = caller.call("POST", path + "?dry_run=true", **({"json": body} if body else {}))
    by_body = caller.call("POST", path, json=body | {"dry_run": True})
    assert by_query.status_code == by_body.status_code == 200, by_body.text
    assert by_query.json() == by_body.json()
    assert by_body.json()["recorded"] is False
    assert caller.events() == before
    assert caller.call("POST", path, **({"json": body} if body else {})).json()["recorded"] is True


def test_lists_in_the_query_are_used_with_a_table(caller: Caller) -> None:
    path = "rounds?must=ann&must=ben&never=cem&dry_run=true"
    answer = caller.call("POST", path, content=pl.DataFrame(as_rows()).write_csv(), headers=CSV)
    people = validate(answer, DecidedRound)["people"]
    assert {row["agent"] for row in people if row["list"] == "must"} == {"ann", "ben"}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"budget": "3"}, "budget"),
        ({"budget": -1}, "budget"),
        ({"budget": True}, "budget"),
        ({"budget": 10**30}, "budget"),
        ({"dryrun": True}, "dryrun"),
        ({"again": 1}, "again"),
        ({"must": "ann"}, "must"),
        ({"must": [None]}, "must"),
        ({"round": 0}, "round"),
    ],
)
def test_settings_of_another_type_are_refused_with_their_place(
    caller: Caller, body: dict[str, object], place: str
) -> None:
    failure = caller.refused("POST", "rounds", 422, json=body | {"states": as_rows()})
    assert (failure["faults"][0]["column"] or "").startswith(place)
    assert failure["detail"].startswith(place)
    assert caller.events() == 1


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"7", b"null", b"true"])
def test_a_body_that_is_no_object_is_refused(caller: Caller, body: bytes) -> None:
    plain = {"Content-Type": "application/json"}
    assert "must be an object" in caller.refused("POST", "rounds", 422, content=body, headers=plain)["detail"]


@pytest.mark.parametrize("agent", ["a\x00b", "a\nb", "", "x" * 201, 10**400, -0.5])
def test_ids_that_nobody_can_have_are_refused(caller: Caller, agent: object) -> None:
    failure = caller.refused("POST", "rounds", 422, json={"states": [{"agent": agent, "state": "low"}]})
    assert failure["faults"][0]["row"] == 1
    assert failure["faults"][0]["column"] == "agent"


def test_whole_numbers_are_ids_and_states_too(caller: Caller) -> None:
    decided = caller.post("rounds", {"states": {"agent": [7, 8], "state": [0, 1.0]}}, DecidedRound, 201)
    assert {row["agent"] for row in decided["people"]} == {"7", "8"}
    assert caller.post("outcomes", {"outcomes": [{"agent": "7", "next_state": 1}]}, OutcomeCounts)["new"] == 1


@pytest.mark.parametrize("agents", [5000, 40_000], ids=["in a thread", "in a child process"])
def test_a_large_table_is_read_as_a_small_one(caller: Caller, agents: int) -> None:
    rows = [{"agent": f"agent-{n:05}", "state": "low"} for n in range(agents)]
    assert caller.post("rounds", {"states": rows, "budget": 3}, DecidedRound, 201)["present"] == agents


def test_the_server_parses_no_large_json_itself(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def load_small(content: bytes) -> object:
        assert len(content) <= MAX_THREAD_BYTES, "parsing JSON blocks all other requests"
        return load_json(content)

    monkeypatch.setattr(uploads, "load_json", load_small)
    unknown = {f"key-{number}": 1 for number in range(100_000)}
    body = json.dumps({"states": as_rows(), **unknown})
    assert "without its table" in caller.refused("POST", "rounds", 422, content=body, headers=JSON)["detail"]
    body = json.dumps({"states": [{"agent": "ann", "state": "low", **unknown}]})
    assert caller.refused("POST", "rounds", 422, content=body, headers=JSON)["faults"][0]["column"] == "key-0"
    repeated = b'{"states": null' + b', "round": 1' * 100_000 + b', "budgt": 2}'
    assert "budgt" in caller.refused("POST", "rounds", 422, content=repeated, headers=JSON)["detail"]
    assert caller.refused("POST", "leave", 413, content=json.dumps(unknown), headers=JSON)["code"] == "too_large"
    chunks = (b" " * 1000 for _ in range(2000))

    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    assert caller.refused("POST", "/api/v1/programs", 413, content=stream(), headers=JSON)["code"] == "too_large"
    assert next(chunks, None), "the rest is not read"


def test_more_lists_than_any_table_needs_are_not_read() -> None:
    with pytest.raises(HTTPException, match="more than 250,000 JSON lists"):
        load_json(b"[" + b"[]," * MAX_LISTS + b"[]]")


@pytest.mark.parametrize(
    ("model", "given", "sentence"),
    [
        (
            LeaveBody,
            {"agents": [[]] * 3000},
            "agents: item 1 must be a string",
        ),
        (LeaveBody, {"agents": ["ann", *[""] * 3000]}, "agents: item 2 must be a string"),
        (DecideBody, {"must": [None] * 3000}, "must: item 1 must be a string"),
        (
            CreateBody,
            {"name": "a", "shares": {str(n): "x" for n in range(3000)}},
            "shares: it has 3000 entries; the maximum is 1000",
        ),
        (CreateBody, {"name": "a", "states": [0] * 3000}, "states: it has 3000 entries"),
        (CreateBody, {"name": "a", "rewards": ["x"] * 3000}, "rewards: it has 3000 entries"),
        (CreateBody, {"name": "a", "words": {str(n): 1 for n in range(3000)}}, "words: it has 3000 entries"),
        (
            CreateBody,
            {"name": "a"} | {f"x{n}": 1 for n in range(3000)},
            r"x0: Extra inputs are not permitted.* and 2995 more\.",
        ),
    ],
)
def test_no_error_is_made_for_each_of_very_many(model: type[BaseModel], given: object, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence) as caught:
        check_settings(model, given)
    assert len(caught.value.faults) <= 1000
    assert caught.value.total in (1, 3000)


def test_names_that_are_not_known_reach_the_checker_in_bounds() -> None:
    given: dict[str, object] = {f"x{number}": 1 for number in range(3000)}
    with pytest.raises(InvalidRequest, match="and 2996 more"):  # one more for the agents, who are missing
        check_settings(LeaveBody, given)
    assert len(given) == 1000


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
    ("table", "types", "model"),
    [
        *[(table, STATES, list[StateRow] | StateColumns) for table in STATE_TABLES],
        *[(table, OUTCOMES, list[OutcomeRow] | OutcomeColumns) for table in OUTCOME_TABLES],
    ],
    ids=str,
)
def test_tables_are_accepted_as_the_schema_says(table: object, types: ColumnTypes, model: Any) -> None:
    described = True
    try:
        TypeAdapter(model).validate_json(json.dumps(table), strict=True)
    except ValidationError:
        described = False
    if described:
        assert set(as_columns(table, "table", types)) <= set(types)
    else:
        with pytest.raises(InputError, match="table"):
            as_columns(table, "table", types)


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
    with pytest.raises(TableError, match="row 2, column stat: unknown column; there are agent, state, group"):
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
