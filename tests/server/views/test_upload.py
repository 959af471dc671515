import asyncio
import base64
import os
import re
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter  # type: ignore[import-untyped]

from restive.server.views.forms import MAX_TEXT_BYTES
from server.views.browsing import CROSS_SITE, HTMX, Browser, Site, open_site, read_fields, read_text

STATES = "/programs/coupons/states"
OUTCOMES = "/programs/coupons/outcomes"
MONDAY = b"agent,state\nann,low\nben,high\ncem,low\n"
CAME = b"agent,done,next_state\nann,yes,high\nben,no,low\ncem,yes,high\n"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as opened:
        yield opened


@pytest.fixture
def browser(site: Site) -> Browser:
    return site.browser("operator")


def check(browser: Browser, content: bytes = MONDAY, path: str = STATES, **fields: str) -> dict[str, str]:
    """Check a file; the fields that go with it from then on."""
    answer = browser.post(path, {"step": "check", **fields}, ("monday.csv", content))
    assert answer.status_code == 200, read_text(answer.text)
    found = read_fields(answer.text)
    return {**fields, **{name: found[name] for name in ("checked", "of_round", "key")}}


def decide(browser: Browser, content: bytes = MONDAY, **fields: str) -> None:
    confirmation = check(browser, content, **fields)
    answer = browser.post(STATES, {"step": "decide", **confirmation}, ("monday.csv", content))
    assert answer.status_code == 303, read_text(answer.text)


def rounds(site: Site) -> int:
    return len(site.desk.program("coupons").rounds)


def test_a_check_shows_numbers_and_records_nothing(site: Site, browser: Browser) -> None:
    page = browser.post(STATES, {"step": "check"}, ("monday.csv", MONDAY))
    text = read_text(page.text)
    assert page.status_code == 200
    assert "round 1 People 3 Budget 2 On the list 2 New 3" in text
    assert "low 2 high 1" in text
    assert "Decide round 1 (" in text
    shown = text.partition("The table is valid")[2].partition("How the table is read")[0]
    assert not any(name in shown for name in ("ann", "ben", "cem"))
    assert "How the table is read: id from agent, state from state" in text
    assert "monday.csv: 3 rows, text in UTF-8, columns separated by a comma" in text
    assert rounds(site) == 0


EXPORT = "Customer;Stage\nJosé;aktiv\nben;low\n".encode("cp1252")


def test_columns_and_texts_are_chosen_once_and_remembered(site: Site, browser: Browser) -> None:
    refused = browser.post(STATES, {"step": "check"}, ("export.csv", EXPORT))
    assert refused.status_code == 422
    text = read_text(refused.text)
    assert (
        "please say: which column has the id (suggested: Customer) which column has the state (suggested: Stage) "
        "which state each of these texts means: aktiv" in text
    )
    assert "error" not in text.partition("How the table is read")[0].partition("please say")[2]
    assert "text in Windows-1252, columns separated by a semicolon" in text
    assert all(f"<option selected>{header}</option>" in refused.text for header in ("Customer", "Stage"))
    columns = {"column.agent": "Customer", "column.state": "Stage"}
    unknown = browser.post(STATES, {"step": "check", **columns}, ("export.csv", EXPORT))
    assert unknown.status_code == 422
    assert read_fields(unknown.text)["text.0"] == "aktiv"
    assert site.desk.program("coupons").config.columns == {}
    decide(browser, EXPORT, **columns, **{"text.0": "aktiv", "means.0": "high"})
    config = site.desk.program("coupons").config
    assert (config.columns, config.values) == ({"agent": "Customer", "state": "Stage"}, {"aktiv": "high"})
    decide(browser, EXPORT.replace(b"low", b"high"))
    assert [event.kind for event in site.desk.program("coupons").log()].count("changed") == 1


def test_the_header_of_a_display_column_is_chosen_too(site: Site, browser: Browser) -> None:
    site.desk.program("coupons").change(display=["phone number"])
    table = b"agent,state,Mobile\nann,low,0803 555 0101\nben,high,\n"
    page = browser.post(STATES, {"step": "check"}, ("monday.csv", table))
    assert 'name="column.phone_number"' in page.text
    assert "no column for these display columns, which stay as they were: phone_number" in read_text(page.text).lower()
    decide(browser, table, **{"column.phone_number": "Mobile"})
    program = site.desk.program("coupons")
    assert program.config.columns == {"phone_number": "Mobile"}
    assert program.display([0, 1]) == [{"phone_number": "0803 555 0101"}, {"phone_number": None}]


NAMED = b"agent,state,Full name,Mobile,Age\nann,low,Ann Okafor,0803 555 0101,31\nben,high,Ben Diallo,0803 555 0102,29\n"


def test_the_first_check_suggests_columns_for_the_call_list_and_unticked_ones_stay_off(
    site: Site, browser: Browser
) -> None:
    page = browser.post(STATES, {"step": "check"}, ("monday.csv", NAMED))
    assert 'name="display.0" value="Full name" checked' in page.text
    assert 'name="display.2" value="Age">' in page.text
    decide(browser, NAMED, **{"display.asked": "yes", "display.0": "Full name"})
    program = site.desk.program("coupons")
    assert program.config.display == ("full_name",)
    assert program.display([0]) == [{"full_name": "Ann Okafor"}]
    again = browser.post(STATES, {"step": "check"}, ("tuesday.csv", NAMED.replace(b"ann,low", b"ann,high")))
    assert 'value="Mobile">' in again.text, "offered later too, but not suggested again"


def test_undo_of_the_first_list_keeps_how_its_table_is_read(site: Site, browser: Browser) -> None:
    columns = {"column.agent": "Customer", "column.state": "Stage", "text.0": "aktiv", "means.0": "high"}
    decide(browser, EXPORT, **columns)
    program = site.desk.program("coupons")
    program.undo()
    assert (len(program.rounds), program.projection.agents.count) == (0, 0)
    assert program.config.columns == {"agent": "Customer", "state": "Stage"}
    assert program.config.values == {"aktiv": "high"}
    assert browser.post(STATES, {"step": "check"}, ("export.csv", EXPORT)).status_code == 200
    assert program.undoable() is None


def test_states_by_cut_points_of_a_column_of_numbers(site: Site, browser: Browser) -> None:
    table = b"agent,days since order\n" + b"".join(b"a%d,%d\n" % (n, 7 * n) for n in range(20))
    refused = browser.post(STATES, {"step": "check"}, ("export.csv", table))
    assert "States by days since order" in read_text(refused.text)
    assert refused.text.count("<rect") == 24
    assert read_fields(refused.text)["cut.column"] == "days since order"
    assert '<option value="worse" selected>' in refused.text
    asked = {
        "column.state": "days since order",
        "cut.column": "days since order",
        "cut.0": "30",
        "cut.more_is": "worse",
    }
    decide(browser, table, **asked)
    program = site.desk.program("coupons")
    assert str(program.config.cut_points) == "days since order: 30, more is worse"
    assert program.config.columns == {}
    assert program.projection.agents.state.sum() == 5
    wrong = browser.post(STATES, {"step": "check", **asked, "cut.0": "many"}, ("export.csv", table))
    assert "states need 1 ascending numbers" in read_text(wrong.text)


def test_ids_that_look_like_phone_numbers_are_asked_about_before_anybody_joins(site: Site, browser: Browser) -> None:
    table = b"agent,state\n+91 98200-12345,low\n098200 12346,high\n"
    page = browser.post(STATES, {"step": "check"}, ("export.csv", table))
    assert "The ids look like phone numbers" in read_text(page.text)
    decide(browser, table, phone_country="91")
    program = site.desk.program("coupons")
    assert program.names.call([0, 1]) == ["+919820012345", "+919820012346"]
    page = browser.post(STATES, {"step": "check"}, ("export.csv", table))
    assert "look like phone numbers" not in page.text


NUMBERS = b"agent,state\nann,1\nben,0\ncem,n/a\n"


def test_numbers_are_not_taken_for_states_without_asking(site: Site, browser: Browser) -> None:
    refused = browser.post(STATES, {"step": "check"}, ("numbers.csv", NUMBERS))
    assert refused.status_code == 422
    assert "which state each of these texts means: n/a, 1, 0 (rows" in read_text(refused.text)
    assert "The table has" not in refused.text
    texts = {"text.0": "n/a", "means.0": "-", "text.1": "1", "means.1": "low", "text.2": "0", "means.2": "high"}
    confirmation = check(browser, NUMBERS, **texts)
    assert browser.post(STATES, {"step": "decide", **confirmation}, ("numbers.csv", NUMBERS)).status_code == 303
    program = site.desk.program("coupons")
    assert program.config.values == {"n/a": "", "1": "low", "0": "high"}
    assert [row["state"] for row in program.history("ann")] == ["low"]
    assert program.rounds[0].present == 2
    again = browser.post(STATES, {"step": "check", "again": "yes"}, ("numbers.csv", NUMBERS))
    assert again.status_code == 200


def test_few_numbers_can_be_amounts(site: Site, browser: Browser) -> None:
    table = ("days.csv", b"agent,state\nann,1\nben,0\n")
    page = browser.post(STATES, {"step": "check"}, table)
    assert "These numbers are amounts" in read_text(page.text)
    texts = {"text.0": "1", "means.0": "high", "text.1": "0", "means.1": "low", "by_cuts": "yes"}
    page = browser.post(STATES, {"step": "check", **texts}, table)
    assert (page.status_code, "Cut point" in page.text) == (422, True)
    cuts = {"by_cuts": "yes", "cut.column": "state", "cut.0": "1", "cut.more_is": "worse"}
    confirmation = check(browser, table[1], **cuts)
    assert browser.post(STATES, {"step": "decide", **confirmation}, table).status_code == 303
    program = site.desk.program("coupons")
    assert [row["state"] for row in program.history("ann")] == ["low"]
    assert str(program.config.cut_points) == "state: 1, more is worse"


def test_a_sheet_is_chosen_by_its_columns_or_by_name(site: Site, browser: Browser) -> None:
    content = BytesIO()
    with xlsxwriter.Workbook(content) as book:
        book.add_worksheet("Notes").write_row(0, 0, ["x", "y"])
        for row, cells in enumerate((["agent", "state"], ["ann", "low"], ["ben", "high"])):
            (book.get_worksheet_by_name("March") or book.add_worksheet("March")).write_row(row, 0, cells)
    refused = browser.post(STATES, {"step": "check", "sheet": "Notes"}, ("book.xlsx", content.getvalue()))
    assert "sheet Notes" in read_text(refused.text)
    page = browser.post(STATES, {"step": "check"}, ("book.xlsx", content.getvalue()))
    assert page.status_code == 200
    assert "sheet March" in read_text(page.text)
    assert "Read the sheet March of Notes, March" in read_text(page.text)


def test_what_was_checked_is_decided_and_the_list_is_shown_next(site: Site, browser: Browser) -> None:
    confirmation = check(browser)
    answer = browser.post(STATES, {"step": "decide", **confirmation}, ("monday.csv", MONDAY))
    assert (answer.status_code, answer.headers["location"]) == (303, "/programs/coupons/list#main")
    assert "is%20decided" in answer.headers["set-cookie"]
    assert rounds(site) == 1
    context = site.desk.store.audit_log(None)[0]
    assert (context.by.partition(" (token")[0], context.verb, context.round) == ("the-operator", "decided", 1)
    assert b"restive_rounds_decided_total 1.0\n" in site.app.state.metrics.render()
    said = "is decided: 2 people on the list."
    assert said in read_text(browser.get("/programs/coupons/list").text)
    assert said not in read_text(browser.get("/programs/coupons/list").text)


def test_the_second_check_shows_new_and_missing_people(browser: Browser) -> None:
    decide(browser)
    page = browser.post(STATES, {"step": "check"}, ("tuesday.csv", b"agent,state,phone\nann,high,1\ndora,low,2\n"))
    text = read_text(page.text)
    assert "round 2" in text
    assert "New 1 Missing 2" in text
    assert "Not in this table, or without a state: 2 people. They cannot be on this list" in text
    file = re.search(r'href="data:text/csv;charset=utf-8;base64,([^"]*)" download="coupons-not-in', page.text)
    assert file is not None
    assert base64.b64decode(file[1]).decode().split() == ["agent,last_state", "ben,high", "cem,low"]
    assert "Ignored columns: phone" in text
    assert "restive desk" not in text


def test_every_error_of_a_table_is_shown_with_row_and_column(site: Site, browser: Browser) -> None:
    page = browser.post(
        STATES, {"step": "check", "budget": "3"}, ("monday.csv", b"agent,state\nann,hihg\n,low\nann,low\n")
    )
    text = read_text(page.text)
    assert page.status_code == 422
    assert "Before this table can be read, please say: which state each of these texts means: hihg (row 2)" in text
    assert "<option selected>high</option>" in page.text, "the state that is probably meant is suggested"
    assert "The table has 2 errors. Nothing was recorded." in text
    assert "3 agent The id is empty" in text
    assert "4 agent 'ann' appears twice, also in row 2; keep one" in text
    assert 'value="3"' in page.text, "the page must repeat what was typed"
    assert "Choose monday.csv again" in text
    assert rounds(site) == 0


def test_htmx_gets_the_preview_alone(browser: Browser) -> None:
    good = browser.post(STATES, {"step": "check"}, ("monday.csv", MONDAY), headers=HTMX)
    bad = browser.post(STATES, {"step": "check"}, ("monday.csv", b"agent,state\nann,no\n"), headers=HTMX)
    assert "<html" not in good.text
    assert "Decide round 1 (" in good.text
    assert "choose monday.csv" not in read_text(good.text).lower(), "the browser still has the file"
    assert bad.status_code == 422
    assert "<html" not in bad.text
    assert "which state each of these texts means: no (row 2)" in read_text(bad.text)


def test_a_file_changed_since_the_check_is_refused(site: Site, browser: Browser) -> None:
    confirmation = check(browser)
    answer = browser.post(STATES, {"step": "decide", **confirmation}, ("monday.csv", MONDAY.replace(b"low", b"high")))
    assert answer.status_code == 409
    assert "has changed since the check" in read_text(answer.text)
    assert rounds(site) == 0


def test_a_field_changed_since_the_check_is_refused(site: Site, browser: Browser) -> None:
    confirmation = check(browser, budget="1")
    answer = browser.post(STATES, {"step": "decide", **confirmation, "budget": "2"}, ("monday.csv", MONDAY))
    assert answer.status_code == 409
    assert rounds(site) == 0


def test_nothing_is_decided_without_a_check(site: Site, browser: Browser) -> None:
    answer = browser.post(STATES, {"step": "decide", "key": "k", "of_round": "1"}, ("monday.csv", MONDAY))
    assert answer.status_code == 409
    assert rounds(site) == 0


def test_a_check_is_valid_only_in_its_own_session(site: Site, browser: Browser) -> None:
    confirmation = check(browser)
    other = site.browser("admin").post(STATES, {"step": "decide", **confirmation}, ("monday.csv", MONDAY))
    assert other.status_code == 409
    assert rounds(site) == 0


def test_a_double_click_decides_once(site: Site, browser: Browser) -> None:
    confirmation = check(browser)

    async def click_twice() -> list[int]:
        form = {"step": "decide", **confirmation}
        both = [browser.sending(STATES, form, ("monday.csv", MONDAY)) for _ in range(2)]
        return [answer.status_code for answer in await asyncio.gather(*both)]

    assert site.runner.run(click_twice()) == [303, 303]
    assert rounds(site) == 1


def test_two_people_cannot_decide_the_same_round(site: Site, browser: Browser) -> None:
    other = site.browser("admin")
    mine, yours = check(browser), check(other, MONDAY.replace(b"cem", b"dan"))
    first = browser.post(STATES, {"step": "decide", **mine}, ("monday.csv", MONDAY))
    second = other.post(STATES, {"step": "decide", **yours}, ("monday.csv", MONDAY.replace(b"cem", b"dan")))
    assert (first.status_code, second.status_code) == (303, 409)
    assert "was decided on" in read_text(second.text).lower()
    assert rounds(site) == 1


def test_rows_can_be_pasted(site: Site, browser: Browser) -> None:
    rows = "agent\tstate\nann\tlow\nben\thigh\n"
    page = browser.post(STATES, {"step": "check", "rows": rows})
    confirmation = {name: read_fields(page.text)[name] for name in ("checked", "of_round", "key")}
    assert "again before you decide" not in page.text
    assert browser.post(STATES, {"step": "decide", "rows": rows, **confirmation}).status_code == 303
    assert rounds(site) == 1


@pytest.mark.parametrize("ending", ["xlsx", "parquet"])
def test_excel_and_parquet_are_read(browser: Browser, ending: str) -> None:
    from restive.desk.table_files import write_table_file

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"monday.{ending}"
        write_table_file(pl.read_csv(BytesIO(MONDAY)), place)
        page = browser.post(STATES, {"step": "check"}, (place.name, place.read_bytes()))
    assert "People 3" in read_text(page.text)


@pytest.mark.parametrize("name", ["table.parquet", "table.xlsx"])
def test_a_damaged_file_is_refused(browser: Browser, name: str) -> None:
    page = browser.post(STATES, {"step": "check"}, (name, b"PAR1 and nothing else"))
    assert page.status_code == 422
    assert name in read_text(page.text)
    assert tempfile.gettempdir() not in page.text


def test_a_file_of_another_type_is_refused(browser: Browser) -> None:
    page = browser.post(STATES, {"step": "check"}, ("C:\\lists\\<b>monday</b>.exe", MONDAY))
    assert page.status_code == 422
    assert "monday</b>.exe: cannot read files that end in '.exe'" not in page.text
    assert "cannot read files that end in '.exe'" in read_text(page.text).replace("Cannot", "cannot")
    assert "lists" not in read_text(page.text).partition("Check")[2]


def test_ids_with_markup_in_them_are_shown_as_they_are(browser: Browser) -> None:
    decide(browser, b'agent,state\n<script>alert(1)</script>,low\n"a""b",high\n')
    page = browser.post(STATES, {"step": "check", "must": "<img src=x>"}, ("monday.csv", b"agent,state\nann,low\n"))
    assert page.status_code == 422
    assert "<script>alert" not in page.text
    assert "<img src" not in page.text
    assert (
        "<img src=x>: on the must list, but not in the program" in read_text(page.text)
        or "&lt;img src=x&gt;" in page.text
    )


def test_a_file_and_pasted_rows_at_once_are_refused(browser: Browser) -> None:
    page = browser.post(STATES, {"step": "check", "rows": "agent,state"}, ("monday.csv", MONDAY))
    assert page.status_code == 422
    assert "Use one of them" in page.text


def test_a_form_without_a_table_is_refused(browser: Browser) -> None:
    page = browser.post(STATES, {"step": "check"})
    assert page.status_code == 422
    assert "Choose a file or paste rows." in page.text


def test_an_invalid_budget_is_refused_and_stays_in_the_form(browser: Browser) -> None:
    page = browser.post(STATES, {"step": "check", "budget": "many"}, ("monday.csv", MONDAY))
    assert page.status_code == 422
    assert "budget is 'many'; it must be a whole number" in read_text(page.text).replace("Budget is", "budget is")
    assert 'value="many"' in page.text


def test_required_and_excluded_people_are_read_by_line(site: Site, browser: Browser) -> None:
    decide(browser, budget="1", must="ben\n\n", never="ann")
    assert site.desk.program("coupons").recommendation(1).chosen == ["ben"]


def test_another_round_with_the_same_states_needs_its_check_box(site: Site, browser: Browser) -> None:
    decide(browser)
    assert 'name="again"' not in browser.get(STATES).text
    page = browser.post(STATES, {"step": "check"}, ("monday.csv", MONDAY))
    assert page.status_code == 409
    assert 'name="again"' in page.text
    assert 'name="new"' not in page.text
    assert "--again" not in page.text
    decide(browser, again="yes")
    assert rounds(site) == 2


def test_new_people_with_similar_ids_need_their_check_box(site: Site, browser: Browser) -> None:
    decide(browser)
    page = browser.post(STATES, {"step": "check"}, ("monday.csv", b"agent,state\nANN,low\n"))
    assert page.status_code == 422
    assert 'name="new"' in page.text
    decide(browser, b"agent,state\nANN,low\n", new="yes")
    assert rounds(site) == 2


def test_a_round_can_use_the_last_known_states(site: Site, browser: Browser) -> None:
    decide(browser)
    page = browser.post(STATES, {"step": "check", "known": "yes", "again": "yes"})
    confirmation = {name: read_fields(page.text)[name] for name in ("checked", "of_round", "key")}
    answer = browser.post(STATES, {"step": "decide", "known": "yes", "again": "yes", **confirmation})
    assert answer.status_code == 303
    assert rounds(site) == 2


def test_a_form_from_another_site_is_refused(site: Site, browser: Browser) -> None:
    confirmation = check(browser)
    answer = browser.post(STATES, {"step": "decide", **confirmation}, ("monday.csv", MONDAY), headers=CROSS_SITE)
    assert answer.status_code == 403
    assert rounds(site) == 0


@pytest.mark.parametrize("path", [STATES, OUTCOMES])
def test_a_viewer_may_not_upload(site: Site, path: str) -> None:
    viewer = site.browser("viewer")
    assert viewer.get(path).status_code == 403
    assert viewer.post(path, {"step": "check"}, ("monday.csv", MONDAY)).status_code == 403


def test_a_user_who_is_not_signed_in_is_redirected(site: Site) -> None:
    answer = site.browser().get(STATES)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fprograms%2Fcoupons%2Fstates")


def test_uploaded_files_are_deleted(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "uploads"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    big = MONDAY + b"".join(b"person-%d,low\n" % number for number in range(200_000))
    assert len(big) > 2**21
    check(browser, big)
    browser.post(STATES, {"step": "check"}, ("monday.parquet", b"nothing"))
    assert os.listdir(folder) == []


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with open_site(tmp_path, max_table_bytes=2000) as site:
        browser = site.browser("operator")
        assert browser.post(STATES, {"step": "check"}, ("monday.csv", MONDAY)).status_code == 200
        assert browser.post(STATES, {"step": "check"}, ("monday.csv", MONDAY + b"\n" * 2000)).status_code == 413
        assert rounds(site) == 0


def test_pasted_text_has_a_limit(browser: Browser) -> None:
    answer = browser.post(STATES, {"step": "check", "rows": "x" * (MAX_TEXT_BYTES + 1)}, ("none.csv", b""))
    assert answer.status_code == 413
    assert "Upload it as a file instead" in read_text(answer.text)


def test_the_json_endpoints_of_both_pages_are_plain_data(site: Site, browser: Browser) -> None:
    decide(browser)
    assert browser.get(f"{STATES}.json").json()["round"] == 2
    assert browser.get(f"{OUTCOMES}.json").json()["rounds"][0]["waiting"] == 3


def test_a_check_says_which_results_the_states_are_and_a_box_keeps_them_out(site: Site, browser: Browser) -> None:
    decide(browser)
    page = browser.get(STATES).text
    assert "The states are also the results of round 1" in read_text(page)
    tuesday = MONDAY.replace(b"ann,low", b"ann,high").replace(b"cem,low\n", b"")
    answer = browser.post(STATES, {"step": "check"}, ("tuesday.csv", tuesday))
    text = read_text(answer.text)
    assert "are recorded too, for 2 of 3 people" in text
    assert site.desk.program("coupons").rounds[0].outcomes == 0
    decide(browser, tuesday, not_outcomes="yes")
    assert site.desk.program("coupons").rounds[0].outcomes == 0
    decide(browser)
    assert [line.outcomes for line in site.desk.program("coupons").rounds] == [0, 2, 0]


def test_the_button_names_the_round_that_a_table_without_rounds_is_about(site: Site, browser: Browser) -> None:
    decide(browser, not_outcomes="yes")
    decide(browser, MONDAY.replace(b"ann,low", b"ann,high"), not_outcomes="yes")
    answer = browser.post(OUTCOMES, {"step": "check"}, ("came.csv", CAME))
    assert "Record for round 1 (" in read_text(answer.text)
