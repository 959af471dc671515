from collections.abc import Iterator
from pathlib import Path

import pytest

from restive.desk.tokens import revoke_token
from server.views.browsing import CROSS_SITE, Site, open_site, read_text

ELSEWHERE = [
    "https://elsewhere.org/",
    "//elsewhere.org",
    "/\\elsewhere.org",
    "\\\\elsewhere.org",
    "https:elsewhere.org",
    "/\t/elsewhere.org",
    "javascript:alert(1)",
    " //elsewhere.org",
]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as opened:
        yield opened


def test_a_token_opens_a_session_and_leads_to_the_requested_page(site: Site) -> None:
    browser = site.browser()
    answer = browser.post("/login", {"token": site.tokens["viewer"], "next": "/programs/coupons/list?round=1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/programs/coupons/list?round=1")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith("restive_session=")
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert site.tokens["viewer"] not in answer.headers["set-cookie"]
    assert browser.get("/").status_code == 200


def test_spaces_around_a_pasted_token_are_ignored(site: Site) -> None:
    assert site.browser().post("/login", {"token": f" {site.tokens['viewer']}\n"}).status_code == 303


def test_every_wrong_token_gets_the_same_answer(site: Site) -> None:
    revoke_token(site.desk.store, "the-operator")
    right = site.tokens["viewer"]
    wrong = ["", "x", right[:-1], right + "x", site.tokens["operator"], "rst_99_" + "a" * 43, "rst_1_" + "é" * 43]
    pages = [site.browser().post("/login", {"token": token}) for token in wrong]
    assert {page.status_code for page in pages} == {401}
    assert len({page.text for page in pages}) == 1
    assert "This token is not valid" in read_text(pages[0].text)


def test_a_wrong_token_is_not_repeated_on_the_page(site: Site) -> None:
    page = site.browser().post("/login", {"token": '"><script>alert(1)</script>', "next": '/"><script>'})
    assert "<script>alert" not in page.text
    assert '/"><script>' not in page.text


@pytest.mark.parametrize("place", ELSEWHERE)
def test_signing_in_never_leads_to_another_server(site: Site, place: str) -> None:
    browser = site.browser()
    assert browser.post("/login", {"token": site.tokens["viewer"], "next": place}).headers["location"] == "/"
    assert browser.client.cookies
    answer = site.runner.run(browser.client.get("/login", params={"next": place}))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_too_many_attempts_are_refused_for_a_while(site: Site) -> None:
    browser = site.browser()
    codes = [browser.post("/login", {"token": "x"}).status_code for _ in range(12)]
    assert codes == [401] * 10 + [429] * 2


def test_signing_out_ends_the_session_for_good(site: Site) -> None:
    browser = site.browser("viewer")
    cookie = browser.client.cookies["restive_session"]
    assert browser.get("/logout").status_code == 405
    assert browser.post("/logout", {}, headers=CROSS_SITE).status_code == 403
    assert browser.get("/").status_code == 200
    answer = browser.post("/logout", {})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    browser.client.cookies.set("restive_session", cookie)
    assert browser.get("/").headers["location"].startswith("/login")


def test_a_form_from_another_site_signs_nobody_in(site: Site) -> None:
    answer = site.browser().post("/login", {"token": site.tokens["viewer"]}, headers=CROSS_SITE)
    assert answer.status_code == 403
    assert "restive_session" not in answer.headers.get("set-cookie", "")


def test_an_open_server_needs_no_sign_in(tmp_path: Path) -> None:
    with open_site(tmp_path, closed=False) as site:
        browser = site.browser()
        assert browser.get("/login").headers["location"] == "/"
        page = browser.get("/")
        assert page.status_code == 200
        assert "Open to this machine only" in page.text
        assert "Sign out" not in page.text


def test_signing_out_clears_the_cache_of_the_browser(site: Site) -> None:
    browser = site.browser("viewer")
    assert browser.post("/logout", {}).headers["clear-site-data"] == '"cache"'
