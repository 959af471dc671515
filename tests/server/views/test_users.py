"""The page of people who can sign in, and what an invited person sees."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from restive.desk.tokens import find_token, list_tokens
from server.views.browsing import Site, open_site, read_text

LINK = re.compile(r'href="http://127\.0\.0\.1:8787(/join\?code=[^"]+)"')


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as opened:
        yield opened


def find_link(page: str) -> str:
    found = LINK.search(unescape(page))
    assert found
    return found[1]


def invite(site: Site, name: str = "ann", program: str = "coupons", role: str = "operator") -> str:
    answer = site.browser("admin").post("/users", {"name": name, "program": program, "role": role})
    assert answer.status_code == 200
    assert '<svg width="' in answer.text
    assert answer.headers["cache-control"] == "no-store"
    return find_link(answer.text)


def test_an_invited_person_signs_in_once(site: Site) -> None:
    address, browser = invite(site), site.browser()
    page = browser.get(address)  # as a messenger does that shows a preview
    assert browser.get(address).status_code == page.status_code == 200
    assert page.headers["referrer-policy"] == "strict-origin"
    code = address.partition("=")[2]
    answer = browser.post("/login", {"token": code})
    assert (answer.status_code, answer.headers["location"]) == (303, "/programs/coupons/status")
    assert browser.get("/programs/coupons/states").status_code == 200
    assert browser.get("/users").status_code == 403
    again = site.browser().post("/login", {"token": code})
    assert again.status_code == 401
    assert "This link is not valid. It works once" in read_text(again.text)
    assert code not in again.text


def test_a_link_that_is_cut_off_is_not_complete(site: Site) -> None:
    for address in ("/join", "/join?code=rsi_1_x", f"/join?code=rst_1_{'a' * 43}", "/join?code=<script>"):
        assert "This link is not complete" in read_text(site.browser().get(address).text)


def test_attempts_by_link_are_limited_with_those_by_token(site: Site) -> None:
    browser = site.browser()
    tokens = ["x", f"rsi_1_{'a' * 43}"] * 6
    assert [browser.post("/login", {"token": token}).status_code for token in tokens] == [401] * 10 + [429] * 2


def test_roles_links_and_the_end_of_access(site: Site) -> None:
    invite(site)
    admin = site.browser("admin")
    assert "Operator of coupons" in read_text(admin.get("/users").text)
    answer = admin.post("/users/ann", {"step": "role", "program": "", "role": "viewer"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/users/ann#main")
    admin.post("/users/ann", {"step": "role", "program": "coupons", "role": "none"})
    assert [(each.program, each.role) for each in find_token(site.desk.store, "ann").grants] == [(None, "viewer")]
    last = admin.post("/users/ann", {"step": "role", "program": "", "role": "none"})
    assert (last.status_code, "This is the last role" in last.text) == (422, True)
    new = find_link(admin.post("/users/ann", {"step": "link"}).text)
    browser = site.browser()
    assert browser.post("/login", {"token": new.partition("=")[2]}).status_code == 303
    assert "signed in on 1 device" in read_text(admin.get("/users/ann").text)
    assert admin.post("/users/ann", {"step": "revoke", "again": "an"}).status_code == 422
    assert browser.get("/").status_code == 200
    assert admin.post("/users/ann", {"step": "revoke", "again": "ann"}).headers["location"] == "/users#main"
    assert browser.get("/").status_code == 303
    assert admin.get("/users/ann").status_code == 404


def test_nobody_changes_their_own_access(site: Site) -> None:
    admin = site.browser("admin")
    assert "Another admin can change" in read_text(admin.get("/users/the-admin").text)
    for fields in ({"step": "revoke", "again": "the-admin"}, {"step": "role", "program": "", "role": "viewer"}):
        assert admin.post("/users/the-admin", fields).status_code == 409
    assert admin.post("/users/the-admin", {"step": "x"}).status_code == 400


def test_what_was_typed_stays_when_it_is_refused(site: Site) -> None:
    answer = site.browser("admin").post("/users", {"name": "ann b", "program": "coupons", "role": "admin"})
    assert answer.status_code == 422
    assert 'value="ann b"' in answer.text
    assert len(list_tokens(site.desk.store)) == 3


def test_the_first_user_of_an_open_server_is_its_admin(tmp_path: Path) -> None:
    with open_site(tmp_path, closed=False) as site:
        browser = site.browser()
        assert "Invite yourself first" in read_text(browser.get("/users").text)
        assert browser.post("/users", {"name": "ann", "program": "", "role": "viewer"}).status_code == 422
        code = find_link(browser.post("/users", {"name": "ann", "program": "", "role": "admin"}).text).partition("=")[2]
        assert browser.get("/").status_code == 303
        assert browser.post("/login", {"token": code}).status_code == 303
        assert browser.get("/users").status_code == 200
