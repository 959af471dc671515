"""Users with tokens: what each role sees and may do, and how a session begins and ends."""

from pathlib import Path

from playwright.sync_api import Page, expect

from restive.desk.tokens import make_token, revoke_token
from server.browser.conftest import Live, Windows
from server.browser.shop import DECIDE, at, check, make_shop, save, table_of_states


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_signing_in_leads_to_the_requested_page(closed_server: Live, windows: Windows) -> None:
    window = windows(closed_server, refused=[401])
    page = window.tab(at("demo", "list?round=3"))
    expect(page).to_have_url(f"{closed_server.place}/login?next=%2Fprograms%2Fdemo%2Flist%3Fround%3D3")
    sign_in(page, "rst_1_wrong")
    expect(page.get_by_role("alert")).to_contain_text("This token is not valid")
    assert window.context.cookies() == []
    sign_in(page, closed_server.tokens["viewer"])
    expect(page).to_have_url(f"{closed_server.place}{at('demo', 'list?round=3')}")
    cookie = window.context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    assert closed_server.tokens["viewer"] not in cookie["value"]


def test_signing_out_ends_the_session_in_every_tab(closed_server: Live, windows: Windows) -> None:
    window = windows(closed_server)
    page, other = window.tab(), window.tab()
    sign_in(page, closed_server.tokens["viewer"])
    other.goto(at("demo", "status"))
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")
    other.reload()
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_the_back_button_shows_nothing_after_signing_out(closed_server: Live, windows: Windows) -> None:
    page = windows(closed_server).tab(at("demo", "list"))
    sign_in(page, closed_server.tokens["viewer"])
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_an_operator_decides_but_cannot_change_settings(closed_server: Live, windows: Windows, tmp_path: Path) -> None:
    make_shop(closed_server.desk, "operated")
    page = windows(closed_server, refused=[403]).tab(at("operated", "states"))
    sign_in(page, closed_server.tokens["operator"])
    check(page, save(tmp_path, table_of_states()))
    page.get_by_role("button", name=DECIDE).click()
    page.wait_for_url("**/list#main")
    assert closed_server.desk.store.audit_log(None)[0].by.startswith("the-operator (token ")
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("heading", name="Cancel a round")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    expect(page.get_by_role("button", name="Erase")).to_have_count(0)
    expect(page.get_by_role("link", name="Audit")).to_have_count(0)
    page.goto("/new")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")


def test_a_viewer_is_offered_no_actions(closed_server: Live, windows: Windows) -> None:
    page = windows(closed_server, refused=[403]).tab(at("demo", "status"))
    sign_in(page, closed_server.tokens["viewer"])
    sections = page.get_by_role("navigation", name="demo")
    expect(sections.get_by_role("link")).to_have_text(
        ["Home", "This week", "Pharmacists", "Results", "Rounds", "Shadow"]
    )
    for part in ("status", "list", "rounds", "rounds/5", "../new/status", "../new/list"):
        page.goto(at("demo", part))
        for words in ("Decide", "Report outcomes", "New program"):
            expect(page.get_by_role("link", name=words)).to_have_count(0)
    page.goto(at("demo", "states"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")


def test_a_session_ends_when_its_token_is_revoked(closed_server: Live, windows: Windows, tmp_path: Path) -> None:
    make_shop(closed_server.desk, "left")
    token = make_token(closed_server.desk.store, "leaver", {"left": "operator"})
    page = windows(closed_server, refused=[401]).tab(at("left", "states"))
    sign_in(page, token)
    check(page, save(tmp_path, table_of_states()))
    revoke_token(closed_server.desk.store, "leaver")
    page.get_by_role("button", name=DECIDE).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert closed_server.desk.program("left").rounds == []
    page.goto(at("left", "states"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_check_without_a_session_leads_to_signing_in(closed_server: Live, windows: Windows, tmp_path: Path) -> None:
    make_shop(closed_server.desk, "expired")
    window = windows(closed_server, refused=[401])
    page = window.tab(at("expired", "states"))
    sign_in(page, closed_server.tokens["operator"])
    page.get_by_label("File", exact=True).set_input_files(save(tmp_path, table_of_states()))
    window.context.clear_cookies()
    page.get_by_role("button", name="Check", exact=True).click()
    sign_in(page, closed_server.tokens["operator"])
    expect(page).to_have_url(f"{closed_server.place}{at('expired', 'states')}")
