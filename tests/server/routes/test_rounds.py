from io import BytesIO

import polars as pl
import pytest

from restive.api.types import (
    CancelledRound,
    CorrectedStates,
    DecidedRound,
    ListedPerson,
    Page,
    Person,
    ProgramConfig,
    RoundDetail,
    RoundSummary,
)
from restive.desk.excel import read_excel
from server.calling import CSV, Caller, as_rows, validate


def decide(caller: Caller, **given: object) -> DecidedRound:
    return caller.post("rounds", {"states": as_rows(), **given}, DecidedRound, 201)


def test_a_decision_equals_the_desks(anywhere: Caller) -> None:
    decided = decide(anywhere)
    recommendation = anywhere.desk.program("shops").recommendation(1)
    assert [row["agent"] for row in decided["people"]] == [*recommendation.chosen, *recommendation.reserve]
    assert (decided["round"], decided["present"], decided["budget"], decided["recorded"]) == (1, 5, 2, True)
    assert decided["next"] is None
    detail = anywhere.get("rounds/1", RoundDetail)
    exclusions = ("people", "next", "recorded", "results")
    reported = {name: value for name, value in decided.items() if name not in exclusions} | {"notes": []}
    assert detail["decision"] is not None
    assert detail["decision"] == reported


def test_states_are_outcomes_of_the_round_before(caller: Caller) -> None:
    assert decide(caller)["results"] is None
    states = [row | {"state": "high"} for row in as_rows()]
    dry = validate(caller.call("POST", "rounds", json={"states": states, "dry_run": True}), DecidedRound)
    key = {"Idempotency-Key": "monday"}
    decided, repeated = (
        validate(caller.call("POST", "rounds", json={"states": states}, headers=key), DecidedRound) for _ in range(2)
    )
    assert dry["results"] == decided["results"] == repeated["results"]
    assert decided["results"] is not None
    assert (decided["results"]["round"], decided["results"]["recorded"]) == (1, 5)
    assert decided["notes"][0].startswith("also records the results of round 1")
    later = {"states": as_rows(), "states_are_outcomes": False}
    assert caller.post("rounds", later, DecidedRound, 201)["results"] is None
    assert [line.outcomes for line in caller.desk.program("shops").rounds] == [5, 0, 0]


def test_a_long_list_has_pages(caller: Caller) -> None:
    answer = caller.call("POST", "rounds?limit=1", json={"states": as_rows(), "budget": 3})
    decided = validate(answer, DecidedRound)
    assert len(decided["people"]) == 1
    rest = caller.get(decided["next"] or "", Page[ListedPerson])
    whole = caller.get("rounds/1/list", Page[ListedPerson])
    assert decided["people"] + rest["items"] == whole["items"]


def test_a_round_without_states_uses_the_last_known_ones(caller: Caller) -> None:
    decide(caller)
    caller.desk.program("shops").learn([{"agent": "ann", "next_state": "high"}])
    again = caller.post("rounds", {}, DecidedRound, 201)
    assert (again["round"], again["carried_over"]) == (2, 4)


def test_budget_must_never_round_again_and_new_reach_the_desk(caller: Caller) -> None:
    first = decide(caller, budget=1, must=["dot"], never=["ann"], round=1)
    assert [row["agent"] for row in first["people"] if row["list"] != "reserve"] == ["dot"]
    assert first["exclusions"] == {"never list": 1}
    again = caller.refused("POST", "rounds", 409, json={"states": as_rows(), "round": 1})
    assert again["type"] == "/api#already_decided"
    same = {"states": as_rows(), "budget": 1, "must": ["dot"], "never": ["ann"]}
    assert caller.refused("POST", "rounds", 409, json=same)["type"] == "/api#already_decided"
    assert caller.post("rounds", same | {"again": True}, DecidedRound, 201)["round"] == 2
    alike = {"states": [*as_rows(), {"agent": "ANN", "state": "low"}]}
    caller.refused("POST", "rounds", 422, json=alike)
    assert caller.post("rounds", alike | {"new": True}, DecidedRound, 201)["present"] == 6


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"states": []}, "the table has no rows"),
        ({}, "Nobody has a state"),
        ({"states": as_rows(), "must": ["zoe"]}, "on the must list, but not in the program"),
        ({"states": as_rows(), "round": 5}, "round is 5"),
        ({"states": [*as_rows(), {"agent": "ann", "state": "high"}]}, "row 6"),
    ],
)
def test_invalid_input_of_a_round_is_refused_and_nothing_is_recorded(
    caller: Caller, body: dict[str, object], sentence: str
) -> None:
    assert sentence in caller.refused("POST", "rounds", 422, json=body)["detail"]
    assert caller.events() == 1


def test_rounds_are_listed_with_their_outcomes(caller: Caller) -> None:
    decide(caller)
    program = caller.desk.program("shops")
    program.learn([{"agent": "ann", "next_state": "high"}])
    program.decide({"ann": "low"}, again=True)
    first, second = caller.get("rounds", Page[RoundSummary])["items"]
    assert (first["outcomes"], second["outcomes"]) == (1, 0)
    assert caller.get("rounds/2", RoundDetail)["decision"]["round"] == 2


@pytest.mark.parametrize("path", ["rounds/9", "rounds/9/list", "rounds/9/list.csv"])
def test_a_missing_round_is_not_found(caller: Caller, path: str) -> None:
    caller.refused("GET", path, 404)
    decide(caller)
    caller.refused("GET", path, 404)


def test_a_list_can_be_downloaded_in_every_format(caller: Caller) -> None:
    decide(caller)
    rows = caller.call("GET", "rounds/1/list").json()["items"]
    table = caller.desk.program("shops").recommendation(1).table
    parquet = caller.call("GET", "rounds/1/list.parquet?columns=all")
    found = pl.read_parquet(BytesIO(parquet.content)).drop("done", "next_state").to_dicts()
    assert [{**row, "cost": None, "display": {}} for row in found] == rows
    text = caller.call("GET", "rounds/1/list.csv")
    assert text.headers["content-type"].startswith("text/csv")
    assert pl.read_csv(BytesIO(text.content))["agent"].to_list() == table["agent"].to_list()
    book = caller.call("GET", "rounds/1/list.xlsx")
    assert read_excel(book.content, "list").grid.height == table.height + 1
    assert "shops-round-1.xlsx" in book.headers["Content-Disposition"]
    assert caller.refused("GET", "rounds/1/list.csv?columns=some", 422)["faults"][0]["column"] == "columns"


def test_display_columns_come_as_json_or_as_columns_and_are_on_every_list(caller: Caller) -> None:
    settings = {"name": "named", "states": ["low", "high"], "display": ["Name"]}
    assert caller.post("/api/v1/programs", settings, ProgramConfig, 201)["config"]["display"] == ["name"]
    path = "/api/v1/programs/named"
    ann: dict[str, object] = {"agent": "ann", "state": "low", "display": {"name": "Ann Okafor"}}
    decided = caller.post(f"{path}/rounds", {"states": [ann, {"agent": "ben", "state": "low"}]}, DecidedRound, 201)
    shown = {row["agent"]: row["display"] for row in decided["people"]}
    assert shown == {"ann": {"name": "Ann Okafor"}, "ben": {"name": None}}
    table = b"agent,state,NAME\nann,high,Ann B.\nben,low,Ben\n"
    assert caller.call("POST", f"{path}/rounds", content=table, headers=CSV).status_code == 201
    page = caller.get(f"{path}/rounds/1/list", Page[ListedPerson])["items"]
    assert {row["agent"]: row["display"]["name"] for row in page} == {"ann": "Ann B.", "ben": "Ben"}
    people = caller.get(f"{path}/people", Page[Person])["items"]
    assert [row["display"] for row in people] == [{"name": "Ann B."}, {"name": "Ben"}]
    assert caller.call("GET", f"{path}/rounds/1/list.csv").text.startswith("rank,agent,name,state_now,reason,done,")
    columns = {"agent": ["ann"], "state": ["low"], "display": [{"state": "x"}]}
    problem = caller.refused("POST", f"{path}/rounds", 422, json={"states": columns})
    assert problem["faults"] == [
        {"row": 1, "column": "state", "message": "a text is not a display column of this name"}
    ]
    assert validate(caller.call("PATCH", path, json={"display": []}), ProgramConfig)["config"]["display"] == []
    assert "Ann" not in caller.call("GET", f"{path}/people").text


def test_a_downloaded_list_can_be_sent_back_as_outcomes(caller: Caller) -> None:
    decide(caller)
    filled = pl.read_csv(BytesIO(caller.call("GET", "rounds/1/list.csv").content)).with_columns(done=pl.lit("yes"))
    answer = caller.call("POST", "outcomes", content=filled.write_csv().encode(), headers=CSV)
    assert answer.status_code == 200, answer.text
    assert answer.json()["new"] == filled.height


def test_states_are_corrected(caller: Caller) -> None:
    decide(caller)
    body = {"states": [{"agent": "ann", "state": "high"}, {"agent": "ben", "state": "high"}]}
    dry = caller.call("PUT", "rounds/1/states", json=body | {"dry_run": True})
    assert validate(dry, CorrectedStates) == CorrectedStates(corrected=1, recorded=False)
    given = {"json": body, "headers": {"Idempotency-Key": "k"}}
    first, again = (caller.call("PUT", "rounds/1/states", **given) for _ in range(2))
    assert first.json() == again.json() == {"corrected": 1, "recorded": True}
    assert again.headers["Idempotent-Replayed"] == "true"
    answer = caller.call("PUT", "rounds/1/states?dry_run=true", content="agent,state\nann,low\n", headers=CSV)
    assert answer.json() == {"corrected": 1, "recorded": False}
    caller.refused("PUT", "rounds/1/states", 422, json={"states": [{"agent": "zoe", "state": "low"}]})
    caller.refused("PUT", "rounds/1/states", 422, json={})
    caller.refused("PUT", "rounds/1/states", 422, json={"states": None})
    caller.refused("PUT", "rounds/7/states", 404, json=body)


def test_a_round_is_cancelled_once(caller: Caller) -> None:
    decide(caller)
    assert caller.call("POST", "rounds/1/cancel?dry_run=true").json() == {"listed": 2, "recorded": False}
    first, again = (caller.call("POST", "rounds/1/cancel", headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert validate(first, CancelledRound) == CancelledRound(listed=2, recorded=True)
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (first.json(), "true")
    caller.refused("POST", "rounds/1/cancel", 409)
    caller.refused("POST", "rounds/2/cancel", 404)
    assert caller.get("rounds/1", RoundDetail)["cancelled"]


def test_a_cancellation_with_an_unknown_setting_is_refused(caller: Caller) -> None:
    caller.call("POST", "rounds", json={"states": as_rows()})
    refused = caller.call("POST", "rounds/1/cancel", json={"dryrun": True})
    assert (refused.status_code, refused.json()["recorded"]) == (422, False)
    assert not caller.desk.program("shops").rounds[0].cancelled


def test_again_counts_in_the_query_with_a_json_body(caller: Caller) -> None:
    body = {"states": as_rows()}
    assert caller.call("POST", "rounds?again=false&dry_run=false", json=body).status_code == 201
    assert caller.call("POST", "rounds?again=false", json=body).status_code == 409
    assert caller.call("POST", "rounds?again=true", json=body).status_code == 201


def test_a_downloaded_list_has_columns_to_fill_in(caller: Caller) -> None:
    caller.call("POST", "rounds", json={"states": as_rows()})
    lines = caller.call("GET", "rounds/1/list.csv?columns=all").text.splitlines()
    assert lines[0].endswith(",done,next_state")
    filled = "\n".join([lines[0], *(f"{line.removesuffix(',,')},yes,high" for line in lines[1:])])
    taken = caller.call("POST", "outcomes", content=filled.encode(), headers=CSV)
    assert taken.json()["new"] == len(lines) - 1


def test_costs_come_as_json_and_as_a_column_and_are_in_the_answers(caller: Caller) -> None:
    settings = {"states": ["low", "high"], "rewards": [0, 1], "budget": 10, "cost_unit": "km", "control": 0}
    made = caller.call("POST", "/api/v1/programs", json={"name": "visits", **settings})
    assert made.json()["config"]["cost_unit"] == "km"
    rounds = "/api/v1/programs/visits/rounds"
    states = [{"agent": "ann", "state": "low", "cost": 4.5}, {"agent": "ben", "state": "low", "cost": 12}]
    first = caller.post(rounds, {"states": states}, DecidedRound, 201)
    assert [(row["agent"], row["list"], row["cost"]) for row in first["people"]] == [
        ("ann", "chosen", 4.5), ("ben", "reserve", 12.0),
    ]  # fmt: skip
    assert first["planned"] == 4.5
    columns = {"agent": ["cem", "ann"], "state": ["low", "high"], "cost": [3, None]}
    assert caller.post(rounds, {"states": columns, "budget": 8}, DecidedRound, 201)["planned"] == 7.5
    people = caller.call("GET", "/api/v1/programs/visits/people").json()["items"]
    assert {row["agent"]: row["cost"] for row in people} == {"ann": 4.5, "ben": 12.0, "cem": 3.0}
    wrong = caller.refused("POST", rounds, 422, json={"states": [{"agent": "ann", "state": "low", "cost": "far"}]})
    assert wrong["faults"][0]["message"] == "a text, but it must be a number or null"
    refused = caller.refused("PATCH", "/api/v1/programs/visits", 422, json={"cost_unit": ""})
    assert refused["location"] == "cost_unit"


def test_features_come_as_json_and_as_columns_of_a_table(caller: Caller) -> None:
    settings = {"states": ["low", "high"], "rewards": [0, 1], "features": {"age": [], "region": ["north", "south"]}}
    made = caller.call("POST", "/api/v1/programs", json={"name": "clinic", **settings})
    assert made.status_code == 201, made.text
    assert made.json()["config"]["features"] == settings["features"]
    rounds, known = "/api/v1/programs/clinic/rounds", {"age": 40, "region": "south"}
    states = [{"agent": "ann", "state": "low", "features": known}, {"agent": "ben", "state": "low"}]
    caller.post(rounds, {"states": states}, DecidedRound, 201)
    table = BytesIO()
    pl.DataFrame({"agent": ["cem"], "state": [0], "Age": [31.5], "region": ["north"]}).write_parquet(table)
    kind = {"Content-Type": "application/vnd.apache.parquet"}
    answer = caller.call("POST", rounds, content=table.getvalue(), headers=kind)
    assert answer.status_code == 201, answer.text
    features = caller.desk.program("clinic").projection.agents.features.tolist()
    assert (features[0], features[2]) == ([40.0, 0.0, 1.0], [31.5, 1.0, 0.0])
    wrong = caller.refused(
        "POST", rounds, 422, json={"states": [{"agent": "dan", "state": "low", "features": {"group": [1]}}]}
    )
    assert "a list is not a feature of this name" in wrong["detail"]
