from collections.abc import Callable

import pytest

from restive.api.types import DecidedRound, HistoryEntry, OutcomeCounts, Page, PeopleCount, Person, ProgramConfig
from restive.desk import Desk
from restive.server.routes.people import find_people
from server.calling import API, CSV, Caller, as_rows


@pytest.fixture
def decided(caller: Caller) -> Caller:
    caller.post("rounds", {"states": as_rows()}, DecidedRound, 201)
    return caller


def test_outcomes_are_recorded_in_parts_repeated_and_corrected(anywhere: Caller) -> None:
    anywhere.post("rounds", {"states": as_rows()}, DecidedRound, 201)
    rows = [{"agent": "ann", "done": True, "next_state": "high"}, {"agent": "ben", "next_state": "low"}]
    first = anywhere.post("outcomes", {"outcomes": rows, "round": 1}, OutcomeCounts)
    assert (first["rounds"], first["new"], first["waiting"], first["recorded"]) == ([1], 2, 3, True)
    again = anywhere.post("outcomes", {"outcomes": rows}, OutcomeCounts)
    assert (again["new"], again["repeated"]) == (0, 2)
    other = {"outcomes": [{"agent": "ann", "done": True, "next_state": "low"}]}
    assert "another outcome in round" in anywhere.refused("POST", "outcomes", 422, json=other)["detail"]
    assert anywhere.post("outcomes", other | {"correct": True}, OutcomeCounts)["corrected"] == 1


def test_outcomes_are_dry_run_and_replayed(decided: Caller) -> None:
    body = {"outcomes": {"agent": ["ann", "ben"], "next_state": ["high", "low"]}}
    dry = decided.post("outcomes", body | {"dry_run": True}, OutcomeCounts)
    assert (dry["new"], dry["recorded"]) == (2, False)
    before = decided.events()
    first, again = (decided.call("POST", "outcomes", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first.json() == again.json()
    assert (first.json()["new"], again.headers["Idempotent-Replayed"]) == (2, "true")
    assert decided.events() == before + 1


def test_a_table_file_of_outcomes_has_its_settings_in_the_query(decided: Caller) -> None:
    text = "agent,next_state\nann,high\n"
    dry = decided.call("POST", "outcomes?round=1&dry_run=true", content=text, headers=CSV)
    assert dry.json()["recorded"] is False
    assert decided.call("POST", "outcomes?round=1", content=text, headers=CSV).json()["new"] == 1
    text = text.replace("high", "low")
    assert decided.call("POST", "outcomes?correct=true", content=text, headers=CSV).json()["corrected"] == 1


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "outcomes: Field required"),
        ({"outcomes": None}, "outcomes is null"),
        ({"outcomes": []}, "one of done, next_state, reward is required"),
        ({"outcomes": [{"agent": "ann"}]}, "one of done, next_state, reward is required"),
        ({"outcomes": [{"agent": "zoe", "done": True}]}, "row 1, column agent: 'zoe' is not in the program"),
        ({"outcomes": [{"agent": "ann", "next_state": "x"}]}, "row 1, column next_state"),
        ({"outcomes": [{"agent": "ann", "next_state": "high", "reward": 5}]}, "row 1, column reward"),
        ({"outcomes": [{"agent": "ann", "done": True, "round": 3}]}, "rounds go from 1 to 1"),
        ({"outcomes": [{"agent": "ann", "done": True}], "round": 2}, "round is 2"),
    ],
)
def test_invalid_outcomes_are_refused_and_nothing_is_recorded(
    decided: Caller, body: dict[str, object], sentence: str
) -> None:
    before = decided.events()
    answer = decided.call("POST", "outcomes", json=body)
    assert answer.status_code in (404, 422)
    assert sentence in answer.json()["detail"]
    assert decided.events() == before


@pytest.mark.parametrize("reward", [1e200, 10**400, -(10**30)])
def test_huge_rewards_are_refused(caller: Caller, reward: float) -> None:
    caller.post(f"{API}/programs", {"name": "paid", "states": ["low", "high"], "policy": "egt"}, ProgramConfig, 201)
    caller.post(f"{API}/programs/paid/rounds", {"states": as_rows()}, DecidedRound, 201)
    body = {"outcomes": [{"agent": "ann", "next_state": "high", "reward": reward}]}
    answer = caller.call("POST", f"{API}/programs/paid/outcomes", json=body)
    assert answer.status_code == (200 if abs(reward) < 1e100 else 422), answer.text


def test_people_are_found_by_a_part_of_their_id(decided: Caller) -> None:
    page = decided.get("people?find=N", Page[Person])
    assert [person["agent"] for person in page["items"]] == ["ann", "ben"]
    ann = page["items"][0]
    assert (ann["state"], ann["active"], ann["control"], ann["rounds_seen"]) == ("low", True, False, 0)
    assert decided.get("people?find=.", Page[Person])["items"] == []


def test_people_with_pseudonyms_are_found_by_name(desk: Desk) -> None:
    program = desk.create("hidden", states=["low", "high"], pseudonyms=True)
    program.decide({"Ann": "low", "ben": "high"})
    assert [row["agent"] for row in find_people(program, "AN")] == ["Ann"]
    fresh = desk.program("hidden")
    assert find_people(fresh, "an") == [] or find_people(fresh, "an")[0]["agent"] != "Ann"
    assert len(find_people(fresh)) == 2


def test_the_history_is_of_one_person(decided: Caller) -> None:
    decided.post("outcomes", {"outcomes": [{"agent": "ann", "next_state": "high"}]}, OutcomeCounts)
    row = decided.get("history?agent=ann", Page[HistoryEntry])["items"][0]
    assert (row["round"], row["state"], row["next_state"], row["reward"]) == (1, "low", "high", 1.0)
    assert len(decided.get("history?agent=ben", Page[HistoryEntry])["items"]) == 1
    decided.refused("GET", "history?agent=zoe", 404)


def test_people_leave_and_come_back(decided: Caller) -> None:
    dry = decided.post("leave", {"agents": ["ann", "ben"], "dry_run": True}, PeopleCount)
    assert (dry["count"], dry["recorded"]) == (2, False)
    given = {"json": {"agents": ["ann", "ben"]}, "headers": {"Idempotency-Key": "k"}}
    first, again = (decided.call("POST", "leave", **given) for _ in range(2))
    assert first.json() == again.json() == {"count": 2, "recorded": True}
    assert [person["agent"] for person in decided.get("people", Page[Person])["items"] if not person["active"]] == [
        "ann",
        "ben",
    ]
    assert decided.post("leave", {"agents": ["ann"]}, PeopleCount)["count"] == 0
    decided.refused("POST", "leave", 422, json={"agents": []})
    decided.refused("POST", "leave", 422, json={"agents": ["zoe"]})


def test_people_are_erased_for_good(decided: Caller) -> None:
    assert decided.post("erase", {"agents": ["ann"], "dry_run": True}, PeopleCount)["recorded"] is False
    given = {"json": {"agents": ["ann"]}, "headers": {"Idempotency-Key": "k"}}
    first, again = (decided.call("POST", "erase", **given) for _ in range(2))
    assert first.json() == {"count": 1, "recorded": True}
    # At an open server the digest of a request has no key, so it is erased too.
    assert again.status_code == 409
    assert "ann" not in decided.call("GET", "people").text
    assert "ann" not in [row["agent"] for row in decided.call("GET", "rounds/1/list").json()["items"]]
    decided.refused("GET", "history?agent=ann", 404)
    decided.refused("POST", "erase", 422, json={"agents": ["ann"]})
    assert decided.post("erase", {"agents": []}, PeopleCount)["count"] == 0


def test_a_key_of_a_token_survives_an_erasure(principals: Callable[..., Caller]) -> None:
    admin = principals("admin", "shops")
    states, whom = {"states": as_rows()}, {"agents": ["ann"]}
    for path, body, key in (("rounds", states, "a"), ("leave", {"agents": ["ben"]}, "b"), ("erase", whom, "c")):
        first, again = (admin.call("POST", path, json=body, headers={"Idempotency-Key": key}) for _ in range(2))
        assert (first.json(), again.headers["Idempotent-Replayed"]) == (again.json(), "true")
    wrong = admin.call("POST", "erase", json={"agents": ["cem"]}, headers={"Idempotency-Key": "b"})
    assert wrong.status_code == 409
    assert "cem" in admin.call("GET", "people").text
