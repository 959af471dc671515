"""The report for a funder: what it says, what it does not, and that it names nobody."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from desk.stories import make
from restive.desk import Desk
from restive.desk.demo import run_demo
from restive.desk.program import Program
from restive.desk.report import make_report, render_page
from restive.desk.status import get_status


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with Desk(tmp_path_factory.mktemp("report") / "desk.db") as desk:
        yield run_demo(desk, "demo", agents=60, rounds=3, seed=3, control=0.4, shadow=None)


def test_the_report_says_what_the_status_says(demo: Program) -> None:
    report, status = make_report(demo), get_status(demo)
    assert status["lift"] is not None
    said = [sentence for section in report["sections"] for sentence in section["sentences"]]
    assert status["lift"]["sentence"] in said
    assert status["total"] in said
    assert (report["low"], report["high"]) == (status["lift"]["low"], status["lift"]["high"])
    assert report["clear"] is False
    assert report["verdict"] == "Too early to say whether it works"
    assert "Whether the program makes a difference." in said


def test_the_page_names_nobody_and_needs_nothing_else(demo: Program) -> None:
    page = render_page(make_report(demo))
    assert not [name for name in demo.names.roster.to_list() if name in page]
    assert "http" not in page
    assert "src=" not in page
    assert "<script" not in page


def test_shares_of_states_add_up_to_one(demo: Program) -> None:
    rows = make_report(demo)["states"]
    for name in ("program_first", "program_last", "control_first", "control_last"):
        assert sum(row[name] or 0 for row in rows) == pytest.approx(1)


def test_a_report_without_rounds_or_control_group_claims_nothing(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = make(desk, title="<b>Ours</b>")
        assert make_report(program)["period"] == ""
        program.decide({"ann": 0, "ben": 1})
        report = make_report(program)
        assert report["period"] == program.rounds[0].label
        assert report["verdict"] == "Not measured: there is no control group"
        assert (report["clear"], report["mean"]) == (False, None)
        assert "&lt;b&gt;Ours" in render_page(report)
