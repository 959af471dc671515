"""The status of a program."""

from pathlib import Path
from typing import Any

from restive.desk import Desk
from restive.desk.status import get_status, write_calendar
from restive.server.views.base import Query
from restive.server.views.status import build_status
from server.views.browsing import Browser, Site, read_text


def test_the_page_says_what_the_desk_says(viewer: Browser, played: Site) -> None:
    seen, page = get_status(played.desk.program("demo")), read_text(viewer.get("/programs/demo/status").text)
    assert seen["lift"] is not None
    assert seen["lift"]["sentence"] in page
    assert 'href="/programs/demo/results"' in viewer.get("/programs/demo/status").text


def test_the_json_endpoint_has_the_numbers_of_the_desk(viewer: Browser, played: Site) -> None:
    reported, seen = viewer.get("/programs/demo/status.json").json(), get_status(played.desk.program("demo"))
    for part in ("lift", "rounds", "people", "waiting", "actions", "budget_used", "caution"):
        assert reported[part] == seen[part]


def test_steps_lead_to_pages_and_name_their_round(admin: Browser) -> None:
    page = admin.get("/programs/demo/status").text
    assert 'href="/programs/demo/list?round=5"' in page
    assert 'href="/programs/demo/states"' in page
    assert "restive desk" not in page


def test_a_program_that_nobody_joined_has_a_page(viewer: Browser) -> None:
    page = read_text(viewer.get("/programs/new/status").text)
    assert "Nobody has joined yet; everybody with a state in the first round joins." in page


def test_many_rounds_that_wait_do_not_hide_what_comes_next(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        settings: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "budget": 1, "control": 0.0}
        program = desk.create("late", **settings, states_are_outcomes=False)
        for state in ("low", "high", "low", "high", "low"):
            program.decide([{"agent": "ann", "state": state}, {"agent": "ben", "state": "low"}])
        reported = build_status(program, Query())
    assert [step["round"] for step in reported["steps"][:5]] == [1, 2, 3, 4, 5]
    assert reported["steps"][5]["page"] == "states"


def test_one_table_a_week_is_the_next_step_where_states_are_outcomes(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("weekly", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0)
        for state in ("low", "high", "low"):
            program.decide([{"agent": "ann", "state": state}, {"agent": "ben", "state": None}])
        steps = build_status(program, Query())["steps"]
    assert [(step["page"], step["round"]) for step in steps[:2]] == [("states", None), ("list", 3)]
    assert steps[0]["sentence"].startswith(
        "The next list can be decided from new states, which are also the results of round 3 ("
    )


def test_a_program_alone_leads_to_its_status(viewer: Browser) -> None:
    answer = viewer.get("/programs/demo")
    assert (answer.status_code, answer.headers["location"]) == (303, "/programs/demo/status")


def test_due_dates_are_a_calendar_file_on_home(admin: Browser, played: Site) -> None:
    program = played.desk.program("demo")
    assert get_status(program)["due"] is not None
    assert 'href="/programs/demo/calendar.ics" download' in admin.get("/programs/demo/status").text
    answer = admin.get("/programs/demo/calendar.ics")
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''demo.ics"
    assert answer.text == write_calendar(program)
    assert "BEGIN:VEVENT" in answer.text


def test_a_program_without_due_dates_offers_no_calendar(admin: Browser) -> None:
    assert "calendar.ics" not in admin.get("/programs/new/status").text
