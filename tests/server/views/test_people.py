"""People: search by a part of the id or of a display column, and the history of one person."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from restive.desk import Desk
from restive.desk.program import Program
from restive.desk.roster import Names
from restive.server.views.base import Query
from restive.server.views.people import build_people, build_person
from server.views.browsing import Browser, Site, read_text


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("shops", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0)
        program.decide([{"agent": agent, "state": "low"} for agent in ("Bananna", "anna", "ANN", "ben", "a.c")])
        yield program


def find(program: Program, text: str) -> list[str]:
    return [row["agent"] for row in build_people(program, Query(find=text))["people"]]


def test_ids_that_begin_with_it_come_first(program: Program) -> None:
    assert find(program, "ann") == ["anna", "ANN", "Bananna"]
    assert find(program, "BEN") == ["ben"]
    assert find(program, "") == ["Bananna", "anna", "ANN", "ben", "a.c"]


def test_the_search_text_is_not_a_pattern(program: Program) -> None:
    assert find(program, "a.c") == ["a.c"]
    assert find(program, "a[") == []
    assert find(program, ".*") == []


def test_erased_people_are_not_found_and_people_who_left_are_marked(program: Program) -> None:
    program.erase(["anna"])
    program.leave(["ben"])
    assert find(program, "ann") == ["ANN", "Bananna"]
    assert [row["active"] for row in build_people(program, Query(find="ben"))["people"]] == [False]


def test_a_person_has_the_history_of_the_desk_newest_first(viewer: Browser, played: Site) -> None:
    reported = viewer.get("/programs/demo/person.json?agent=pharmacist-03").json()
    known = played.desk.program("demo").history("pharmacist-03")
    assert reported["rounds"] == known[::-1]
    assert reported["listed"] == sum(row["chosen"] for row in known)
    assert reported["person"]["rounds_seen"] == sum("reward" in row for row in known)


def test_the_control_group_is_marked(viewer: Browser, played: Site) -> None:
    agents = played.desk.program("demo").projection.agents
    number = int(agents.control.argmax())
    page = read_text(viewer.get(f"/programs/demo/person?agent=pharmacist-{number + 1:02}").text)
    assert "control group" in page
    assert "never (control group)" in page


def test_an_empty_search_result_says_so(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/people?find=<b>x").text
    assert "Nothing here contains “&lt;b&gt;x”." in page


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("OKAFOR", ["p1"]),
        ("98200 12345", ["p1"]),
        ("09820012", ["p1"]),
        ("be", ["p2"]),
        ("p", ["p1", "p2"]),
        ("12345x", []),
    ],
)
def test_people_are_found_by_name_and_phone(tmp_path: Path, text: str, found: list[str]) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        named = desk.create("named", states=["low", "high"], rewards=[0, 1], budget=1, display=["name", "phone"])
        who = [("p1", "Ann Okafor", "+91 98200-12345"), ("p2", "Ben", None)]
        named.decide([{"agent": agent, "state": "low", "name": name, "phone": phone} for agent, name, phone in who])
        assert find(named, text) == found


def test_under_pseudonyms_an_exact_id_is_found_and_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("codes", states=["low", "high"], budget=1, control=0.0, pseudonyms=True, rewards=[0, 1])
        program.decide([{"agent": agent, "state": "low"} for agent in ("ann", "ben")])
        again = desk.program("codes")
        (code,) = find(again, "ann")
        assert code not in ("ann", "ben")
        assert find(again, "carl") == []
        assert build_person(again, Query(agent=code))["person"]["agent"] == code


def test_only_people_on_the_page_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        many = desk.create("many", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0)
        many.decide([{"agent": f"{'x' * (number % 2)}ann{number}", "state": "low"} for number in range(300)])
        asked: list[int] = []
        call = Names.call

        def note(names: Names, numbers: list[int]) -> list[str]:
            asked.extend(numbers)
            return call(names, numbers)

        monkeypatch.setattr(Names, "call", note)
        found = build_people(many, Query(find="ANN", page="2"))
    assert [row["agent"] for row in found["people"]][48:52] == ["ann296", "ann298", "xann1", "xann3"]
    assert len(asked) == 100
