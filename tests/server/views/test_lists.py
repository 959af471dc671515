"""The list: in full, in pages, as a file, and as it was when it was decided."""

import re
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest

from restive.desk import Desk
from restive.errors import NotFound
from restive.server.views.lists import ROWS, find_round, look_up
from server.views.browsing import Browser, Site, read_text


def test_the_page_has_everybody_on_the_list_with_the_whole_reason(viewer: Browser, played: Site) -> None:
    advice = played.desk.program("demo").advice(5)
    page = read_text(viewer.get("/programs/demo/list").text)
    for row in advice.table.to_dicts():
        assert row["agent"] in page
        assert row["reason"] in page
    assert "6 pharmacists to give a coupon to" in page


def test_spares_stand_below_with_their_own_ranks(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/list").text
    before, _, after = page.partition('<tr role="row" class="divide">')
    assert len(re.findall(r'class="right rank">\d', before)) == 6
    assert re.findall(r'class="right rank">(\S+)</td>', after)[0] == "+1"


def test_a_list_of_an_earlier_round_says_that_it_is_one(viewer: Browser) -> None:
    assert "This is an earlier list." in viewer.get("/programs/demo/list?round=2").text
    assert "This is an earlier list." not in viewer.get("/programs/demo/list?round=5").text


def test_paper_has_boxes_to_tick(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/list").text
    assert page.count('<span class="box"></span>yes <span class="box"></span>no') == page.count('class="right rank"')


def test_rules_and_what_they_cost_are_reported(viewer: Browser, played: Site) -> None:
    advice, reported = played.desk.program("demo").advice(5), viewer.get("/programs/demo/list.json").json()
    assert reported["left_out"] == advice.left_out()
    assert reported["prices"] == advice.prices
    page = read_text(viewer.get("/programs/demo/list").text)
    assert "Control group" in page
    assert "What rules cost" in page


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """All pages of the list of a program in which everybody is on it."""
    with Desk(tmp_path_factory.mktemp("long") / "desk.db") as desk:
        program = desk.create("long", states=["low", "high"], rewards=[0, 1], policy="egt", budget=450, control=0.0)
        program.decide([{"agent": f"p{number}", "state": "low"} for number in range(450)])
        return [look_up(program, "", page) for page in (1, 2, 3)]


def test_a_long_list_comes_in_pages_that_add_up_to_it(long: list[dict[str, list[dict[str, str]]]]) -> None:
    shown = [row["agent"] for page in long for row in page["people"]]
    assert [len(page["people"]) for page in long] == [ROWS, ROWS, 50]
    assert len(set(shown)) == 450


def test_a_list_as_a_file_holds_all_of_it(viewer: Browser, played: Site) -> None:
    table = played.desk.program("demo").advice(5).table
    csv = viewer.get("/programs/demo/list.csv")
    assert csv.headers["content-disposition"] == "attachment; filename=\"list.csv\"; filename*=UTF-8''demo-round-5.csv"
    assert pl.read_csv(BytesIO(csv.content))["agent"].to_list() == table["agent"].to_list()
    excel = viewer.get("/programs/demo/list.xlsx?round=3")
    assert excel.headers["content-disposition"].endswith("demo-round-3.xlsx")
    assert excel.content.startswith(b"PK")


def test_who_is_still_to_be_reported_at_of_is_a_table_to_fill_in(viewer: Browser, played: Site) -> None:
    wanted = played.desk.program("demo").advice(5).to_report
    assert wanted.height > 0
    file = viewer.get("/programs/demo/missing.csv?round=5")
    assert file.headers["content-disposition"].endswith("demo-round-5-missing.csv")
    table = pl.read_csv(BytesIO(file.content))
    assert table["agent"].to_list() == wanted["agent"].to_list()
    assert table.columns[-2:] == ["done", "next_state"]
    assert 'href="/programs/demo/missing.csv?round=5"' in viewer.get("/programs/demo/rounds/5").text


def test_formulas_in_ids_are_defused_in_a_file(viewer: Browser) -> None:
    text = viewer.get("/programs/odd/list.csv").text
    assert ",'=1+1," in text
    assert ",=1+1," not in text


def test_files_are_for_who_may_see_the_program(played: Site) -> None:
    assert played.browser().get("/programs/demo/list.csv").status_code == 303
    assert played.browser("stranger").get("/programs/demo/list.csv").status_code == 404


def test_an_open_round_has_no_list_and_the_last_one_stays(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("slow", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0)
        states = [{"agent": "ann", "state": "low"}, {"agent": "ben", "state": "high"}]
        program.decide(states)
        program.learn([{"agent": "ann", "done": True, "next_state": "high"}])
        program.open(states)
        assert find_round(program, "") == 1
        with pytest.raises(NotFound, match="Round 2 of slow has no list"):
            find_round(program, "2")
        program.cancel(2)
        assert look_up(program, "1", 1)["cancelled"] is False
