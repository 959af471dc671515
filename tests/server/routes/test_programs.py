import asyncio
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from restive.api.administration import ArchivedProgram, AuditEntry, DeletedProgram, Event
from restive.api.status import Status
from restive.api.types import Page, Program, ProgramConfig, ProgramSummary
from restive.desk import Desk
from restive.desk.export import export
from server.calling import API, Caller, as_rows, check, validate

PROGRAMS = f"{API}/programs"


def test_a_program_is_created_from_a_template_and_settings(caller: Caller) -> None:
    body = {"name": "Café-1", "template": "pharmacy", "budget": 7, "horizon": None, "words": {"person": "shop"}}
    answer = caller.call("POST", PROGRAMS, json=body)
    assert answer.headers["Location"] == "/api/v1/programs/Caf%C3%A9-1"
    config = validate(answer, ProgramConfig)["config"]
    assert (config["budget"], config["template"], config["words"]["person"], config["words"]["people"]) == (
        7,
        "pharmacy",
        "shop",
        "pharmacists",
    )
    assert caller.get(answer.headers["Location"], Program)["config"] == config
    assert caller.desk.program("Café-1").config.budget == 7


def test_a_program_is_created_from_settings_alone(caller: Caller) -> None:
    body = {"name": "own", "states": ["a", "b", "c"], "rewards": None, "shares": {"north": 0.5}, "control": 0.2, "control_until": 6,
            "policy": "egt:eta=0.5", "shadow": "random", "seed": 5, "keep": 1, "cool_down": 3}  # fmt: skip
    config = caller.post(PROGRAMS, body, ProgramConfig, 201)["config"]
    assert {name: value for name, value in config.items() if name in body} == {
        name: value for name, value in body.items() if name != "name"
    }


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"name": "shops", "states": ["a", "b"]}, 409, "The store already has a program 'shops'."),
        ({"name": "new"}, 422, "a program needs states"),
        ({"states": ["a", "b"]}, 422, "name: Field required"),
        ({"name": "-", "states": ["a", "b"]}, 422, "name"),
        ({"name": "a/b", "states": ["a", "b"]}, 422, "name"),
        ({"name": "new", "states": ["a", "a"]}, 422, "different names"),
        ({"name": "new", "states": ["a"]}, 422, "states"),
        ({"name": "new", "states": ["a", "b"], "rewards": [1]}, 422, "give 2 numbers"),
        ({"name": "new", "template": "farmacy"}, 422, "did you mean 'pharmacy'?"),
        ({"name": "new", "states": ["a", "b"], "policy": "whittle-oracle"}, 422, "use a learner"),
        ({"name": "new", "states": ["a", "b"], "policy": "nope"}, 422, "there is no policy 'nope'"),
        ({"name": "new", "states": ["a", "b"], "budjet": 3}, 422, "budjet: Extra inputs are not permitted"),
        ({"name": "new", "states": ["a", "b"], "words": {"persson": "x"}}, 422, "words.persson"),
        ({"name": "new", "states": ["a", "b"], "shares": {"x": 0.7, "y": 0.7}}, 422, "add up to 1.4"),
    ],
)
def test_an_invalid_program_is_refused(caller: Caller, body: dict[str, object], status: int, sentence: str) -> None:
    assert sentence in caller.refused("POST", PROGRAMS, status, json=body)["detail"]
    assert len(caller.desk.programs()) == 1


@pytest.mark.parametrize("spec", ["policy", "shadow"])
def test_a_policy_file_cannot_be_chosen_over_http(caller: Caller, tmp_path: Path, spec: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit")
    body = {"name": "new", "states": ["a", "b"], spec: f"{file}:depth=2"}
    assert "on the server's machine" in caller.refused("POST", PROGRAMS, 422, json=body)["detail"]


def test_only_accessible_programs_are_listed(principals: Callable[..., Caller], desk: Desk) -> None:
    for name in ("a", "b", "c"):
        desk.create(name, states=["low", "high"])
    everything = principals("viewer")
    first = everything.get(f"{PROGRAMS}?limit=3", Page[ProgramSummary])
    rest = everything.get(first["next"] or "", Page[ProgramSummary])
    assert [line["name"] for line in first["items"] + rest["items"]] == ["shops", "a", "b", "c"]
    assert rest["next"] is None
    assert [line["name"] for line in principals("viewer", "b").get(PROGRAMS, Page[ProgramSummary])["items"]] == ["b"]


def test_a_program_without_its_policy_file_is_listed_with_an_error_without_paths(
    caller: Caller, principals: Callable[..., Caller], tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    text = "from dataclasses import dataclass\nfrom restive.policies.egt import Egt\n\n\n@dataclass(frozen=True)\n"
    file.write_text(text + "class Mine(Egt):\n    name = 'mine'\n")
    caller.desk.create("own", states=["low", "high"], policy=str(file))
    shown = caller.get(f"{PROGRAMS}/own", Program)
    assert shown["config"]["policy"] == "mine.py"
    assert str(tmp_path) not in caller.call("GET", f"{PROGRAMS}/own/events").text
    assert str(tmp_path) not in caller.call("GET", f"{API}/audit").text
    file.unlink()
    line = principals("viewer").get(PROGRAMS, Page[ProgramSummary])["items"][1]
    assert (line["name"], line["policy"]) == ("own", None)
    assert line["error"] is not None
    assert "mine.py" in line["error"]
    assert str(tmp_path) not in line["error"]


def test_settings_are_changed(caller: Caller) -> None:
    body = {"budget": 9, "cool_down": 2, "keep": 0, "shares": {"north": 0.25}}
    config = validate(caller.call("PATCH", f"{PROGRAMS}/shops", json=body), ProgramConfig)["config"]
    assert {name: value for name, value in config.items() if name in body} == body
    assert caller.get(f"{PROGRAMS}/shops", Program)["config"] == config


def test_a_change_with_the_same_key_is_made_once(caller: Caller) -> None:
    given = {"json": {"budget": 9}, "headers": {"Idempotency-Key": "k"}}
    first, again = (caller.call("PATCH", f"{PROGRAMS}/shops", **given) for _ in range(2))
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert caller.events() == 2


@pytest.mark.parametrize("body", [{}, {"seed": 3}, {"budget": None}, {"budget": -1}, {"shares": {"x": 2}}])
def test_an_invalid_change_is_refused(caller: Caller, body: dict[str, object]) -> None:
    caller.refused("PATCH", f"{PROGRAMS}/shops", 422, json=body)
    assert caller.events() == 1


def test_the_status_has_steps_but_no_paths(caller: Caller, tmp_path: Path) -> None:
    before = caller.get("status", Status)
    assert before["steps"][0]["message"].startswith("Nobody has joined yet")
    program = caller.desk.create("big", template="pharmacy", control=0.3, shadow="egt", budget=3)
    states = program.config.states
    for number in range(4):
        program.decide({f"a{n}": states[(n + number) % 4] for n in range(30)})
        program.learn([{"agent": f"a{n}", "next_state": states[(n * number) % 4]} for n in range(25)])
    status = caller.get(f"{PROGRAMS}/big/status", Status)
    assert status["lift"] is not None
    assert status["shadow"] is not None
    assert status["curve"] is not None
    assert "restive desk" not in " ".join(step["message"] for step in status["steps"])
    assert str(tmp_path) not in caller.call("GET", f"{PROGRAMS}/big/status").text


@pytest.mark.parametrize("path", [PROGRAMS, "/.json"])
def test_the_list_of_programs_does_not_wait_for_a_busy_one(caller: Caller, path: str) -> None:
    first = caller.call("GET", path).json()

    async def story() -> object:
        async with caller.app.state.programs.using("shops"):
            answer = await asyncio.wait_for(caller.client.get(path), 20)
        return answer.json()

    assert caller.run(story()) == first


def test_events_are_listed_in_order_without_names(caller: Caller) -> None:
    caller.desk.program("shops").decide({"annabel": "low"})
    page = caller.get("events", Page[Event])
    assert [event["kind"] for event in page["items"]] == ["created", "joined", "decided"]
    assert [event["round"] for event in page["items"]] == [None, None, 1]
    assert "annabel" not in str(page)
    assert [event["number"] for event in caller.get("events?after=2", Page[Event])["items"]] == [2]
    assert caller.get("events?after=9", Page[Event])["items"] == []


def test_the_audit_log_of_a_program_has_only_its_entries(caller: Caller) -> None:
    caller.desk.create("other", states=["a", "b"])
    program = caller.desk.program("shops")
    program.decide({"ann": "low"})
    program.cancel(1)
    first = caller.get("audit?limit=2", Page[AuditEntry])
    assert [(entry["verb"], entry["round"]) for entry in first["items"]] == [("cancelled", 1), ("decided", 1)]
    rest = caller.get(first["next"] or "", Page[AuditEntry])
    assert [entry["verb"] for entry in rest["items"]] == ["created"]
    assert rest["next"] is None


def test_the_end_of_a_program(anywhere: Caller) -> None:
    key = {"Idempotency-Key": "k1"}
    assert check(anywhere.call("POST", "archive?dry_run=true"), ArchivedProgram, 200)["recorded"] is False
    for _ in range(2):
        assert check(anywhere.call("POST", "archive"), ArchivedProgram, 200) == {"archived": True, "recorded": True}
    listed = anywhere.get(f"{API}/programs", Page[ProgramSummary])["items"]
    assert [(each["name"], each["archived"]) for each in listed] == [("shops", True)]
    refused = anywhere.refused("POST", "rounds", 409, json={"states": as_rows()})
    assert refused["detail"] == "The program shops is archived, so it can only be read; restore it first."
    assert anywhere.call("GET", "status").status_code == 200
    check(anywhere.call("POST", "restore"), ArchivedProgram, 200)
    assert anywhere.call("POST", "rounds", json={"states": as_rows()}).status_code == 201
    whole = f"{API}/programs/shops"
    anywhere.refused("DELETE", whole, 422)
    anywhere.refused("DELETE", f"{whole}?confirm=shop", 422)
    assert check(anywhere.call("DELETE", f"{whole}?confirm=shops&dry_run=true"), DeletedProgram, 200)["events"] > 1
    deleted = anywhere.call("DELETE", f"{whole}?confirm=shops", headers=key)
    again = anywhere.call("DELETE", f"{whole}?confirm=shops", headers=key)
    assert check(deleted, DeletedProgram, 200) == check(again, DeletedProgram, 200)
    assert ("idempotent-replayed" in deleted.headers, again.headers["idempotent-replayed"]) == (False, "true")
    for path in ("", "/status", "/people"):
        anywhere.refused("GET", whole + path, 404)
    anywhere.refused("DELETE", f"{whole}?confirm=shops", 404)
    made = anywhere.call("POST", f"{API}/programs", json={"name": "shops", "states": ["a", "b"], "rewards": [0, 1]})
    assert made.status_code == 201
    assert anywhere.call("GET", whole).json()["rounds"] == 0


def test_an_export_has_the_files_of_the_command(anywhere: Caller, tmp_path: Path) -> None:
    anywhere.call("POST", "rounds", json={"states": as_rows()})
    answer = anywhere.call("GET", "export.zip")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    assert answer.headers["content-disposition"] == 'attachment; filename="shops.zip"'
    assert anywhere.call("GET", "export.zip", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    files = export(anywhere.desk.program("shops"), tmp_path / "out")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        names = [f"shops/{file.relative_to(tmp_path / 'out')}" for file in files]
        assert packed.namelist() == names
        for name, file in zip(names, files, strict=True):
            assert pl.read_parquet(io.BytesIO(packed.read(name))).equals(pl.read_parquet(file))


def test_the_calendar_has_the_due_dates(anywhere: Caller) -> None:
    assert "VEVENT" not in anywhere.call("GET", "calendar").text
    changed = {"rhythm": "two weeks", "first_due": "2999-01-07"}
    assert anywhere.call("PATCH", f"{API}/programs/shops", json=changed).status_code == 200
    answer = anywhere.call("GET", "calendar")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/calendar; charset=utf-8")
    assert "etag" not in answer.headers
    assert "DTSTART;VALUE=DATE:29990107\r\nRRULE:FREQ=DAILY;INTERVAL=14" in answer.text
