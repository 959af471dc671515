"""Rounds and their lists: in full, in pages and as files."""

import re
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest

from restive.desk import Desk
from restive.desk.status import get_status
from restive.server.views.base import Query
from restive.server.views.lists import build_list
from restive.server.views.rounds import PEOPLE_PER_PAGE, build_round, summarize_rounds
from server.views.browsing import Browser, Site, read_text


def test_rounds_have_the_numbers_of_the_status(viewer: Browser, played: Site) -> None:
    seen = get_status(played.desk.program("demo"))
    reported = viewer.get("/programs/demo/rounds.json").json()["rounds"]
    assert [row["round"] for row in reported] == [5, 4, 3, 2, 1]
    for row, line in zip(reported[::-1], seen["rounds"], strict=True):
        assert (row["done"], row["advised"], row["failed"]) == (line["done"], line["advised"], line["failed"])
        assert row["treated"]["mean"] == pytest.approx(line["reward_mean"])
        assert row["control"]["mean"] == pytest.approx(line["control_mean"])


def test_intervals_are_those_of_the_curve(played: Site) -> None:
    program = played.desk.program("demo")
    curve = get_status(program)["curve"]
    assert curve is not None
    assert [row["lift"]["high"] for row in summarize_rounds(program.rounds)] == pytest.approx(curve["lift"]["high"])


def test_a_round_shows_actions_and_outcomes(viewer: Browser, played: Site) -> None:
    found = played.desk.program("demo").get_round(5)
    reported = viewer.get("/programs/demo/rounds/5.json").json()
    assert reported["round"]["waiting"] == found.missing == 10
    assert sum(row["done"] is True for row in reported["people"]) == int((found.done == 1).sum())
    assert {row["agent"] for row in reported["people"]} == set(played.desk.program("demo").recommendation(5).chosen)
    page = read_text(viewer.get("/programs/demo/rounds/5").text)
    assert "10 to come" in page


def test_people_not_on_the_list_are_below_it(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("shops", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0)
        program.decide([{"agent": agent, "state": "low"} for agent in ("ann", "ben")])
        program.learn([{"agent": agent, "done": True, "next_state": "high"} for agent in ("ann", "ben")])
        reported = build_round(program, Query(round="1"))
    assert [row["list"] for row in reported["people"]] == ["chosen", "unlisted"]
    assert (reported["round"]["done"], reported["round"]["unlisted"]) == (1, 1)
    assert reported["people"][1]["reward"] == 1.0


def test_a_cancelled_round_says_so(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("shops", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0)
        program.decide([{"agent": "ann", "state": "low"}])
        program.cancel(1)
        assert build_round(program, Query(round="1"))["round"]["cancelled"]
        assert build_list(program, Query(round="1"))["cancelled"]


def test_the_page_has_everybody_on_the_list_with_the_whole_reason(viewer: Browser, played: Site) -> None:
    recommendation = played.desk.program("demo").recommendation(5)
    page = read_text(viewer.get("/programs/demo/list").text)
    for row in recommendation.table.to_dicts():
        assert row["agent"] in page
        assert row["reason"] in page
    assert "6 pharmacists to give a coupon to" in page


def test_the_reserve_is_below_the_list_with_its_own_ranks(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/list").text
    before, _, after = page.partition('<tr role="row" class="divide">')
    assert len(re.findall(r'class="right rank">\d', before)) == 6
    assert re.findall(r'class="right rank">(\S+)</td>', after)[0] == "+1"


def test_the_list_of_an_earlier_round_says_so(viewer: Browser) -> None:
    assert "This is an earlier list." in viewer.get("/programs/demo/list?round=2").text
    assert "This is an earlier list." not in viewer.get("/programs/demo/list?round=5").text


def test_paper_has_boxes_to_tick(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/list").text
    assert page.count('<span class="box"></span>yes <span class="box"></span>no') == page.count('class="right rank"')


def test_rules_and_their_costs_are_shown(viewer: Browser, played: Site) -> None:
    recommendation, reported = (
        played.desk.program("demo").recommendation(5),
        viewer.get("/programs/demo/list.json").json(),
    )
    assert reported["exclusions"] == recommendation.exclusions()
    assert reported["displaced"] == recommendation.displaced
    page = read_text(viewer.get("/programs/demo/list").text)
    assert "Control group" in page
    assert "What the rules change" in page


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """All pages of the list of a program in which everybody is on it."""
    with Desk(tmp_path_factory.mktemp("long") / "desk.db") as desk:
        program = desk.create("long", states=["low", "high"], rewards=[0, 1], policy="egt", budget=450, control=0.0)
        program.decide([{"agent": f"p{number}", "state": "low"} for number in range(450)])
        return [build_list(program, Query(page=page)) for page in "123"]


def test_a_long_list_comes_in_pages_that_add_up_to_it(long: list[dict[str, list[dict[str, str]]]]) -> None:
    shown = [row["agent"] for page in long for row in page["people"]]
    assert [len(page["people"]) for page in long] == [PEOPLE_PER_PAGE, PEOPLE_PER_PAGE, 50]
    assert len(set(shown)) == 450


def test_a_list_as_a_file_holds_all_of_it(viewer: Browser, played: Site) -> None:
    table = played.desk.program("demo").recommendation(5).table
    csv = viewer.get("/programs/demo/list.csv")
    assert csv.headers["content-disposition"] == 'attachment; filename="demo-round-5.csv"'
    assert pl.read_csv(BytesIO(csv.content))["agent"].to_list() == table["agent"].to_list()
    assert pl.read_csv(BytesIO(viewer.get("/programs/demo/list.csv?columns=all").content)).columns[:-2] == table.columns
    excel = viewer.get("/programs/demo/list.xlsx?round=3")
    assert excel.headers["content-disposition"].endswith('filename="demo-round-3.xlsx"')
    assert excel.content.startswith(b"PK")


def test_missing_outcomes_are_a_table_to_fill_in(viewer: Browser, played: Site) -> None:
    wanted = played.desk.program("demo").recommendation(5).to_report
    assert wanted.height > 0
    file = viewer.get("/programs/demo/missing.csv?round=5")
    assert file.headers["content-disposition"].endswith('filename="demo-round-5-missing.csv"')
    table = pl.read_csv(BytesIO(file.content))
    assert table["agent"].to_list() == wanted["agent"].to_list()
    assert table.columns[-2:] == ["done", "next_state"]
    assert 'href="/programs/demo/missing.csv?round=5"' in viewer.get("/programs/demo/rounds/5").text


def test_formulas_in_ids_are_defused_in_a_file(viewer: Browser) -> None:
    text = viewer.get("/programs/odd/list.csv").text
    assert ",'=1+1," in text
    assert ",=1+1," not in text


def test_files_need_access_to_the_program(played: Site) -> None:
    assert played.browser().get("/programs/demo/list.csv").status_code == 303
    assert played.browser("limited").get("/programs/demo/list.csv").status_code == 404
