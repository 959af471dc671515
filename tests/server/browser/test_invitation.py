"""An admin invites somebody on the page; the person opens the link in another browser and is signed in."""

from urllib.parse import urlsplit

from playwright.sync_api import expect

from server.browser.chromium import PHONE
from server.browser.conftest import Live, Windows
from server.browser.test_sessions import sign_in


def test_an_invited_person_signs_in_by_the_link(closed_server: Live, windows: Windows) -> None:
    page = windows(closed_server).tab("/users")
    sign_in(page, closed_server.tokens["admin"])
    page.get_by_label("Name", exact=True).fill("nora")
    page.get_by_label("Program").select_option("demo")
    page.get_by_label("Role").select_option("viewer")
    page.get_by_role("button", name="Invite").click()
    expect(page.locator(".qr svg")).to_be_visible()
    link = page.get_by_role("link", name="/join?code=").inner_text()

    phone = windows(closed_server, refused=[401], **PHONE)
    referers: list[str] = []
    phone.context.on("request", lambda request: referers.append(request.all_headers().get("referer", "")))
    guest = phone.tab(urlsplit(link)._replace(scheme="", netloc="").geturl())
    guest.get_by_role("button", name="Sign in on this device").click()
    expect(guest.get_by_role("heading", level=1)).to_be_visible()
    expect(guest.get_by_role("link", name="Users")).to_have_count(0)
    assert guest.url == f"{closed_server.place}/programs/demo/status"
    assert not any("code" in referer for referer in referers)

    again = windows(closed_server, refused=[401]).tab(link)
    again.get_by_role("button", name="Sign in on this device").click()
    expect(again.get_by_role("alert")).to_contain_text("This link is not valid")
    page.goto("/users/nora")
    expect(page.get_by_text("signed in on 1 device")).to_be_visible()
