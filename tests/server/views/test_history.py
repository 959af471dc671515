"""Starting from a history: the form, the report that a child process makes, its files, and the program."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from restive.logs.model import FittedModel
from restive.server.histories import HistoryReports
from restive.server.settings import UploadLimits
from server.views.browsing import Browser, Site, open_site, read_text

WRONG = b"agent,time,state,action\nann,1,low,yes\nann,1,high,0\nben,1,Low,1\n"


def table() -> bytes:
    """Thirty people in eight rounds, acted on at random, who do better then."""
    generator = np.random.default_rng(4)
    lines = ["who,time,state,called"]
    for person in range(30):
        state = "low"
        for week in range(8):
            called = generator.random() < 0.4
            lines.append(f"<b>{person},{week},{state},{'yes' if called else 'no'}")
            state = "high" if generator.random() < (0.7 if called else 0.3) else "low"
    return "\n".join(lines).encode()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as opened:
        yield opened
        opened.app.state.histories.close()


@pytest.fixture
def browser(site: Site) -> Browser:
    return site.browser("admin")


def send(site: Site, browser: Browser, fields: dict[str, str], content: bytes | None = None) -> str:
    """Send a table or answers, wait for the report, and return its address."""
    answer = browser.post("/history", fields, ("calls.csv", content) if content else None)
    assert answer.status_code == 303, read_text(answer.text)
    address = answer.headers["location"].removesuffix("#main")
    job = site.app.state.histories.find(address.partition("report=")[2], "the-admin (token 3)")
    waiting = browser.get(address)
    assert "reloads by itself" in read_text(waiting.text)
    assert 'http-equiv="refresh"' in waiting.text

    async def wait() -> None:
        await asyncio.wait_for(asyncio.shield(job.task), 300)

    site.runner.run(wait())
    return str(address)


def test_a_history_becomes_a_report_with_files_and_the_form_of_a_program(site: Site, browser: Browser) -> None:
    first = send(site, browser, {"budgets": "3", "rounds": "4"}, table())
    report = first.partition("report=")[2]
    questions = browser.get(first.replace("/history", "/history.json")).json()["report"]["table"]
    assert (questions["acts"], questions["states"]) == (["no", "yes"], ["high", "low"])
    chosen = {each["name"]: each["header"] for each in questions["columns"] if each["header"]}
    assert chosen == {"time": "time", "state": "state", "action": "called"}
    answers = {"column.agent": "who", "column.action": "called", "acts.1": "yes"}
    worth = {"state.0": "high", "reward.0": "1", "state.1": "low", "reward.1": "0"}
    address = send(site, browser, {"report": report, "budgets": "3", "rounds": "4", **answers, **worth})
    assert address == first
    again = browser.post("/history", {"report": report})
    assert again.status_code == 422
    assert "The table is no longer there; choose the file again." in read_text(again.text)
    text = read_text(browser.get(address).text)
    for words in ("What calls.csv says about a program", "In short", "3 actions a round bring", "Who gains"):
        assert words in text
    assert "<b>" not in browser.get(address).text
    data = browser.get(address.replace("/history", "/history.json")).json()["report"]["result"]
    assert (data["states"], data["rewards"], data["budget"]) == (["low", "high"], [0, 1], 3)
    assert any(section["figure"] for section in data["sections"])

    page = browser.get(address.replace("/history", "/history.html"))
    assert page.headers["content-disposition"] == 'attachment; filename="history.html"'
    assert "<svg" in page.text
    model = browser.get(address.replace("/history", "/history.parquet"))
    file = site.app.state.histories.find(address.partition("report=")[2], "the-admin (token 3)").folder / "copy.parquet"
    file.write_bytes(model.content)
    assert len(FittedModel.load(file).agents) == 30
    assert browser.get(address.replace("/history", "/history.exe")).status_code == 404

    form = browser.get(address.replace("/history?report=", "/new?template=own&history="))
    assert "States, rewards and budget are those of calls.csv" in read_text(form.text)
    assert (
        'name="state-1" aria-label="State 2" maxlength="60" autocomplete="off" autocapitalize="none" value="high"'
        in (form.text)
    )
    stranger = site.browser("operator")
    assert stranger.get(address).status_code == 403


def test_all_faults_are_shown_with_their_rows(site: Site, browser: Browser) -> None:
    page = browser.get(
        send(site, browser, {"state.0": "low", "reward.0": "0", "state.1": "high", "reward.1": "1"}, WRONG)
    )
    text = read_text(page.text)
    assert "The table has 3 errors" in text
    assert (
        "1 action 'yes' is not 0 or 1; set action-is" in text or "2 action 'yes' is not 0 or 1; set action-is" in text
    )
    assert "also in row 2; keep one" in text
    assert "differs from 'low' only by case or blanks" in text
    assert browser.get("/history?report=nothing").status_code == 404


@pytest.mark.parametrize(
    ("fields", "file", "sentence"),
    [
        ({}, None, "There is no table."),
        ({"rows": "agent"}, ("a.csv", b"agent"), "There are a file and pasted rows."),
        ({}, ("a.doc", b"x"), "cannot read files that end in '.doc'"),
        ({"budgets": "many"}, ("a.csv", b"agent"), "budget is 'many'"),
        ({"budgets": "1,2,3,4,5,6,7"}, ("a.csv", b"agent"), "at most 6 are allowed"),
        ({"rounds": "0"}, ("a.csv", b"agent"), "rounds is 0"),
        ({"state.0": "low", "reward.0": "much"}, ("a.csv", b"agent"), "reward of low is 'much'; it must be a number."),
    ],
)
def test_a_form_that_cannot_be_used_is_shown_again(
    browser: Browser, fields: dict[str, str], file: tuple[str, bytes] | None, sentence: str
) -> None:
    answer = browser.post("/history", {"rounds": "31", **fields}, file)
    assert answer.status_code == 422
    assert sentence in read_text(answer.text)
    assert f'name="rounds" inputmode="numeric" class="short" value="{fields.get("rounds", 31)}"' in answer.text


def test_too_many_reports_are_refused_and_old_ones_removed(tmp_path: Path) -> None:
    async def run() -> None:
        reports = HistoryReports(UploadLimits(max_concurrent=1, timeout_seconds=0.01))
        folders = []
        for _ in range(4):
            folders.append(reports.make_folder())
            (folders[-1] / "table.csv").write_bytes(WRONG)
            job = reports.start(folders[-1], "ann", "calls.csv", "table.csv", {})
        with pytest.raises(Exception, match="503"):
            reports.make_folder()
        assert job.task is not None
        await job.task
        assert "takes longer than" in str(job.error)
        job.begun -= 4000
        with pytest.raises(Exception, match="There is no such report"):
            reports.find(job.id, "ann")
        assert not folders[-1].exists()
        reports.close()
        assert not any(folder.exists() for folder in folders)

    asyncio.run(run())
