"""Pages and twins: both from one function, everything escaped, nothing inline, failures as pages."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from fastapi import Request
from fastapi.routing import APIRoute

from restive.server.views import SHOWING
from restive.server.views.base import FOLDER, link, render
from restive.server.views.definitions import WORDS
from server.views.browsing import Browser, Site, read_text
from server.views.conftest import HOSTILE

TEMPLATES = sorted(FOLDER.glob("*.html"))
PAGES = (
    "/",
    "/programs/demo/status",
    "/programs/demo/list",
    "/programs/demo/list?round=2",
    "/programs/demo/rounds",
    "/programs/demo/rounds/5",
    "/programs/demo/people",
    "/programs/demo/people?find=-01",
    "/programs/demo/person?agent=pharmacist-01",
    "/programs/demo/shadow",
    "/programs/odd/status",
    "/programs/odd/list",
    "/programs/odd/rounds/1",
    "/programs/odd/people",
    "/programs/odd/shadow",
    "/programs/new/status",
    "/programs/new/list",
    "/programs/new/rounds",
    "/programs/new/people",
    "/words",
)


def twin(path: str) -> str:
    """The address of a page's twin."""
    before, mark, query = path.partition("?")
    return f"{before}.json{mark}{query}"


def all_routes() -> list[APIRoute]:
    return [route for part in SHOWING for route in part.router.routes if isinstance(route, APIRoute)]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_what_its_twin_tells(viewer: Browser, played: Site, path: str) -> None:
    page, data = viewer.get(path), viewer.get(twin(path))
    assert page.status_code == data.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert data.headers["content-type"] == "application/json"
    request = Request(
        {"type": "http", "method": "GET", "path": path.partition("?")[0], "headers": [], "query_string": b""}
    )
    again = render(request, find_template(path), json.loads(data.text)).body
    assert read_main(bytes(again).decode()) == read_main(page.text)


def find_template(path: str) -> str:
    last = path.partition("?")[0].rpartition("/")[2] or "programs"
    return f"{'round' if last.isdigit() else last}.html"


def read_main(page: str) -> str:
    """What is in the middle of a page for somebody who may only look."""
    return page.partition("<main")[2].partition("</main>")[0]


def test_every_page_and_its_twin_come_from_one_function() -> None:
    by_path = {route.path: route for route in all_routes()}
    twins = [path for path in by_path if path.endswith(".json")]
    assert len(twins) == 9
    for path in twins:
        page = by_path[path.removesuffix(".json")]
        builders = [route.dependant.dependencies[-1].call for route in (page, by_path[path])]
        assert builders[0] is builders[1]


def test_pages_are_no_part_of_the_document_of_the_api(played: Site) -> None:
    assert not [path for path in played.app.openapi()["paths"] if path.startswith(("/programs", "/words", "/static"))]


@pytest.mark.parametrize("path", PAGES)
def test_nobody_sees_a_page_or_its_twin_without_signing_in(played: Site, path: str) -> None:
    anybody = played.browser()
    page = anybody.get(path)
    assert page.status_code == 303
    assert page.headers["location"].startswith("/login?next=%2F")
    assert anybody.get(twin(path)).status_code == 401


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda place: place.stem)
def test_templates_have_no_script_and_no_style_of_their_own(template: Path) -> None:
    text = template.read_text()
    plain = re.sub(r"{%.*?%}", "", text, flags=re.DOTALL)
    assert not re.search(r"<style|\sstyle\s*=|javascript:|\son[a-z]+\s*=", plain, re.IGNORECASE)
    assert not re.search(r"\|\s*safe\b|autoescape", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda place: place.stem)
def test_every_question_mark_has_an_explanation(template: Path) -> None:
    asked = re.findall(r"""why\(\s*["']([^"']+)["']""", template.read_text())
    assert set(asked) <= set(WORDS)


def test_explanations_open_in_place_and_each_has_a_name_of_its_own(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/status").text
    opened, named = re.findall(r'popovertarget="([^"]+)"', page), re.findall(r'<span popover id="([^"]+)"', page)
    assert opened == named
    assert len(set(named)) == len(named) > 5
    assert WORDS["lift"].means in unescape(page)


@pytest.mark.parametrize("path", ["list", "people", "rounds/1", "list.json", "people.json", "rounds/1.json"])
def test_hostile_ids_are_shown_as_they_are_and_do_nothing(viewer: Browser, path: str) -> None:
    answer = viewer.get(f"/programs/odd/{path}")
    if path.endswith(".json"):
        assert "<script>alert(1)</script>" in {row["agent"] for row in answer.json()["people"]}
        return
    assert not re.search(r"<script>alert|<img src=x", answer.text)
    assert all(agent in unescape(answer.text) for agent in HOSTILE if path == "people")
    assert "8641969" not in read_text(answer.text)


@pytest.mark.parametrize("agent", HOSTILE)
def test_everybody_has_a_page_of_their_own_whatever_the_id(viewer: Browser, agent: str) -> None:
    listed = viewer.get("/programs/odd/people").text
    links = [unescape(place) for place in re.findall(r'<a class="id" href="([^"]+)"', listed)]
    place = link("programs", "odd", "person", agent=agent)
    assert place in links
    page = viewer.get(place)
    assert page.status_code == 200
    assert unescape(page.text.partition("<h1>")[2].partition("</h1>")[0]) == agent
    assert viewer.get(link("programs", "odd", "person.json", agent=agent)).json()["person"]["agent"] == agent


@pytest.mark.parametrize(
    "path",
    [
        "/programs/nowhere/status",
        "/programs/<script>/status",
        "/programs/..%2fx/status",
        "/programs/demo/list?round=6",
        "/programs/demo/list?round=0",
        "/programs/demo/list?round=x",
        "/programs/demo/list?page=2",
        "/programs/demo/list.exe",
        "/programs/demo/rounds/6",
        "/programs/demo/rounds/0",
        "/programs/demo/rounds/" + "9" * 400,
        "/programs/demo/rounds/-1",
        "/programs/demo/rounds?page=3",
        "/programs/demo/person?agent=nobody",
        "/programs/demo/person",
        "/programs/demo/people?page=99",
        "/programs/new/list.csv",
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(viewer: Browser, path: str) -> None:
    answer = viewer.get(path, Accept="text/html")
    assert answer.status_code == 404
    assert "<h1>This is not here</h1>" in answer.text
    assert "Traceback" not in answer.text
    assert "<script>/" not in answer.text
    assert "Nothing was recorded" not in answer.text


def test_a_program_that_somebody_may_not_see_is_not_there_in_the_same_words(played: Site) -> None:
    stranger = played.browser("stranger")
    hidden, missing = (stranger.get(f"/programs/{name}/status") for name in ("demo", "nope"))
    assert hidden.status_code == missing.status_code == 404
    assert read_text(hidden.text).replace("demo", "nope") == read_text(missing.text)


def test_a_part_of_a_page_is_reported_of_a_failure_without_a_page_around_it(viewer: Browser) -> None:
    answer = viewer.get("/programs/demo/rounds/99", **{"HX-Request": "true"})
    assert answer.status_code == 404
    assert 'role="alert"' in answer.text
    assert "<html" not in answer.text


def test_twins_fail_in_the_shape_of_the_api(viewer: Browser) -> None:
    answer = viewer.get("/programs/demo/rounds/99.json")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_only_who_may_do_something_is_offered_it(viewer: Browser, admin: Browser) -> None:
    looking, doing = (browser.get("/programs/demo/status").text for browser in (viewer, admin))
    for place in ("states", "outcomes", "settings", "audit"):
        assert f'href="/programs/demo/{place}' not in looking
        assert f'href="/programs/demo/{place}' in doing
    assert 'href="/new"' not in viewer.get("/").text
    assert 'href="/new"' in admin.get("/").text


def test_pages_about_people_are_kept_by_nobody(viewer: Browser) -> None:
    for path in PAGES:
        assert viewer.get(path).headers["cache-control"] == "no-store"


def test_no_page_names_a_folder_of_the_machine(viewer: Browser, played: Site) -> None:
    folder = str(Path(played.desk.store.address).parent)
    for path in PAGES:
        assert folder not in viewer.get(path).text + viewer.get(twin(path)).text
