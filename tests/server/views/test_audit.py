from collections.abc import Iterator
from pathlib import Path

import pytest

from restive.desk.audit import RequestContext
from restive.server.views.audit import ENTRIES_PER_PAGE
from server.views.browsing import Site, open_site, read_text

AUDIT = "/programs/coupons/audit"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as opened:
        yield opened


def test_the_log_of_the_server_is_a_file(site: Site) -> None:
    admin = site.browser("admin")
    assert 'href="/audit.xlsx"' in admin.get("/audit").text
    answer = admin.get("/audit.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="restive-audit.csv"'
    lines = answer.text.splitlines()
    assert lines[0] == "number,at,by,verb,round,program"
    assert len(lines) == 1 + len(site.desk.store.audit_log(None))
    assert admin.get("/audit.xlsx").content[:2] == b"PK"
    assert admin.get("/audit.pdf").status_code == 404


def test_every_entry_is_described_in_words_newest_first(site: Site) -> None:
    program, ann = site.desk.program("coupons"), RequestContext(by="ann")
    program.decide({"ben": "low", "cem": "high", "dan": "low"}, context=ann)
    program.learn([{"agent": "ben", "done": "yes", "next_state": "high"}], context=ann)
    program.correct_states({"dan": "high"}, 1, context=ann)
    program.change(budget=4, shares={"north": 0.5}, context=ann)
    program.leave(["dan"], context=ann)
    program.erase(["dan"], context=ann)
    program.decide({"ben": "high", "cem": "low"}, context=ann)
    program.cancel(2, context=ann)
    rows = site.browser("admin").get(f"{AUDIT}.json").json()["audit_log"]
    first, second = (totals.mention for totals in program.rounds)
    assert [row["did"] for row in rows] == [
        f"cancelled {second} with 2 on the list",
        f"decided {second}: 2 on the list",
        "erased ids: 1",
        "removed people who left: 1",
        "changed settings: budget 4, shares north=0.5",
        f"corrected 1 states of {first}",
        f"outcomes of {first}: 1 recorded",
        f"decided {first}: 2 on the list",
        "created the program",
    ]
    assert {row["by"] for row in rows[:-1]} == {"ann"}


def test_an_undone_round_is_not_named_by_the_date_of_the_one_with_its_number(site: Site) -> None:
    program = site.desk.program("coupons")
    program.decide({"ben": "low"})
    program.undo()
    program.decide({"ben": "high"})
    rows = site.browser("admin").get(f"{AUDIT}.json").json()["audit_log"]
    decided = [row["did"] for row in rows if row["verb"] == "decided"]
    assert decided == [f"decided {program.rounds[0].mention}: 1 on the list", "decided round 1: 1 on the list"]


def test_the_log_of_the_store_has_tokens_and_all_programs(site: Site) -> None:
    text = read_text(site.browser("admin").get("/audit").text)
    assert "Created token the-admin: admin of all programs" in text
    assert "coupons Created the program" in text


def test_the_audit_log_is_paged_without_a_gap(site: Site) -> None:
    program = site.desk.program("coupons")
    for budget in range(ENTRIES_PER_PAGE + 5):
        program.change(budget=budget)
    browser = site.browser("admin")
    first = browser.get(f"{AUDIT}.json").json()
    second = browser.get(f"{AUDIT}.json?before={first['next']}").json()
    reported = [row["did"] for row in first["audit_log"] + second["audit_log"]]
    assert reported == [f"changed settings: budget {budget}" for budget in reversed(range(ENTRIES_PER_PAGE + 5))] + [
        "created the program"
    ]
    assert second["next"] is None
    assert f"?before={first['next']}" in browser.get(AUDIT).text
    assert browser.get(f"{AUDIT}?before=x").status_code == 404


@pytest.mark.parametrize("role", ["viewer", "operator"])
@pytest.mark.parametrize("path", [AUDIT, "/audit", "/audit.json"])
def test_only_an_admin_sees_the_audit_log(site: Site, role: str, path: str) -> None:
    assert site.browser(role).get(path).status_code == 403
