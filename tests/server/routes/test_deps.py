import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from restive.api.types import DecidedRound, Program, ProgramConfig
from restive.desk import Desk
from server.calling import API, Caller, as_rows, name_path

KEY = {"Idempotency-Key": "monday-1"}
ROUND = ["/rounds", "/rounds/1", "/rounds/1/list", "/rounds/1/list.csv"]
DOCUMENTS = ["", "/status", *ROUND, "/people", "/history?agent=ann", "/events"]
LISTS = ["people?limit=2", "people?limit=2&find=e", "rounds/1/list?limit=2", "events?limit=2", "rounds?limit=2"]


def decide(caller: Caller, **given: object) -> httpx.Response:
    return caller.call("POST", "rounds", json={"states": as_rows(), **given}, headers=KEY)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_content_is_sent_again_only_after_a_new_event(caller: Caller, path: str) -> None:
    caller.desk.program("shops").decide({"ann": "low", "ben": "high"})
    whole = f"{API}/programs/shops{path}"
    first = caller.call("GET", whole)
    tag = first.headers["ETag"]
    assert first.headers["Cache-Control"] == "private, no-cache"
    for given in (tag, tag.removeprefix("W/"), f'"x", {tag}', "*"):
        again = caller.call("GET", whole, headers={"If-None-Match": given})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    caller.desk.program("shops").learn([{"agent": "ann", "next_state": "high"}])
    later = caller.call("GET", whole, headers={"If-None-Match": tag})
    assert later.status_code == 200
    assert later.headers["ETag"] != tag


def test_what_depends_on_the_day_is_sent_again_on_the_next_one(caller: Caller) -> None:
    now = datetime(2026, 11, 18, 23, 59, tzinfo=UTC)
    caller.desk.store.clock = lambda: now
    tag = {"If-None-Match": caller.call("GET", "status").headers["etag"]}
    listed = {"If-None-Match": caller.call("GET", "rounds").headers["etag"]}
    assert caller.call("GET", "status", headers=tag).status_code == 304
    now += timedelta(minutes=1)
    assert caller.call("GET", "status", headers=tag).status_code == 200
    assert caller.call("GET", "rounds", headers=listed).status_code == 304


def test_an_etag_does_not_replace_the_token(desk: Desk, principals: Callable[..., Caller]) -> None:
    desk.create("other", states=["a", "b"])
    owner, anonymous = principals("viewer"), principals("viewer", "other")
    tag = owner.call("GET", f"{API}/programs/shops").headers["ETag"]
    anonymous.refused("GET", f"{API}/programs/shops", 404, headers={"If-None-Match": tag})
    principals(None).refused("GET", f"{API}/programs/shops", 401, headers={"If-None-Match": tag})


def test_programs_with_pseudonyms_have_no_etag(caller: Caller) -> None:
    body = {"name": "hidden", "states": ["low", "high"], "pseudonyms": True}
    caller.post(f"{API}/programs", body, ProgramConfig, 201)
    assert "ETag" not in caller.call("GET", f"{API}/programs/hidden/people").headers


def test_a_request_with_a_key_is_executed_once_and_gets_the_same_answer(anywhere: Caller) -> None:
    first, again = decide(anywhere), decide(anywhere)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert first.headers["Location"] == again.headers["Location"]
    assert first.json()["notes"] == ["5 new people joined"]
    assert len(anywhere.desk.program("shops").rounds) == 1


def test_concurrent_requests_with_the_same_key_are_executed_once(anywhere: Caller) -> None:
    async def send() -> list[httpx.Response]:
        body = {"states": as_rows()}
        calls = [anywhere.client.post(name_path("rounds"), json=body, headers=KEY) for _ in range(8)]
        return await asyncio.gather(*calls)

    answers = anywhere.run(send())
    assert [answer.status_code for answer in answers] == [201] * 8
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert len({answer.text for answer in answers}) == 1
    assert len(anywhere.desk.program("shops").rounds) == 1


def test_concurrent_requests_with_the_same_key_create_one_program(anywhere: Caller) -> None:
    async def send() -> list[httpx.Response]:
        body = {"name": "new", "states": ["low", "high"]}
        return await asyncio.gather(
            *[anywhere.client.post(f"{API}/programs", json=body, headers=KEY) for _ in range(4)]
        )  # fmt: skip

    answers = anywhere.run(send())
    assert [answer.status_code for answer in answers] == [201] * 4
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert len({answer.text for answer in answers}) == 1
    assert len(anywhere.desk.programs()) == 2


def test_a_key_of_another_request_is_refused(caller: Caller) -> None:
    decide(caller)
    before = caller.events()
    others = [
        decide(caller, budget=1),
        caller.call("POST", "rounds?limit=1", json={"states": as_rows()}, headers=KEY),
        caller.call("POST", "rounds/1/cancel", headers=KEY),
    ]
    for answer in others:
        assert answer.status_code == 409
        assert answer.json()["type"] == "/api#key_reused"
    assert caller.events() == before


def test_a_refused_request_does_not_use_its_key(caller: Caller) -> None:
    wrong = caller.call("POST", "rounds", json={"states": [{"agent": "ann", "state": "x"}]}, headers=KEY)
    assert wrong.status_code == 422
    assert decide(caller).status_code == 201


def test_a_dry_run_records_nothing_and_does_not_use_its_key(caller: Caller) -> None:
    dry = decide(caller, dry_run=True)
    assert dry.status_code == 200
    assert "Location" not in dry.headers
    assert (dry.json()["recorded"], dry.json()["next"]) == (False, None)
    assert caller.events() == 1
    real = decide(caller)
    assert real.status_code == 201
    assert real.json()["people"] == dry.json()["people"]
    assert decide(caller, dry_run=True, budget=1).status_code == 200


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "é".encode(), "a\tb"])
def test_a_key_has_visible_ascii_characters(caller: Caller, key: str | bytes) -> None:
    answer = caller.call("POST", "rounds", json={"states": as_rows()}, headers={"Idempotency-Key": key})
    assert answer.status_code == 422
    assert answer.json()["faults"][0]["column"] == "Idempotency-Key"
    assert caller.events() == 1


@pytest.mark.parametrize("path", LISTS)
def test_pages_cover_the_whole_list(caller: Caller, path: str) -> None:
    for number in range(3):
        caller.post("rounds", {"states": as_rows(), "budget": 1 + number}, DecidedRound, 201)
    whole = caller.call("GET", path.replace("limit=2", "limit=1000")).json()["items"]
    found, address = [], f"{API}/programs/shops/{path}"
    while address:
        part = caller.call("GET", address).json()
        assert 0 < len(part["items"]) <= 2
        found += part["items"]
        address = part["next"]
    assert found == whole
    assert len(found) > 2


def test_the_audit_log_names_the_caller(caller: Caller, principals: Callable[..., Caller]) -> None:
    decide(caller)
    caller.call("PATCH", f"{API}/programs/shops", json={"budget": 3})
    store = caller.desk.store
    assert {entry.by for entry in store.audit_log(None, limit=2)} == {"local"}
    principal = principals("admin")
    assert principal.call("PATCH", f"{API}/programs/shops", json={"budget": 4}).status_code == 200
    assert store.audit_log(None, limit=1)[0].by == "principal0 (token 1)"


@pytest.mark.parametrize(
    ("role", "method", "path"),
    [
        ("viewer", "POST", "rounds"),
        ("viewer", "POST", "outcomes"),
        ("viewer", "POST", "leave"),
        ("viewer", "PUT", "rounds/1/states"),
        ("viewer", "POST", "rounds/1/cancel"),
        ("operator", "POST", "erase"),
        ("operator", "GET", "audit"),
        ("operator", "PATCH", f"{API}/programs/shops"),
    ],
)
def test_a_role_that_is_too_low_is_refused(
    principals: Callable[..., Caller], role: str, method: str, path: str
) -> None:
    failure = principals(role, "shops").refused(method, path, 403, json={})
    assert "it needs the role" in failure["detail"]


def test_an_admin_of_one_program_is_not_an_admin_of_the_store(principals: Callable[..., Caller]) -> None:
    principal = principals("admin", "shops")
    principal.refused("POST", f"{API}/programs", 403, json={"name": "x", "states": ["a", "b"]})
    principal.refused("GET", f"{API}/audit", 403)
    assert principal.get(f"{API}/programs/shops", Program)["name"] == "shops"


def test_an_inaccessible_program_looks_like_a_missing_one(desk: Desk, principals: Callable[..., Caller]) -> None:
    desk.create("other", states=["a", "b"])
    principal = principals("admin", "other")
    seen, gone = (principal.refused("GET", f"{API}/programs/{name}/status", 404) for name in ("shops", "xxxxx"))
    assert seen["detail"].replace("shops", "xxxxx") == gone["detail"]
