"""Pages and their JSON endpoints, the glossary, static files, paging, and errors as pages."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from fastapi import Request
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st

from restive.errors import NotFound
from restive.server.addresses import link
from restive.server.views import router
from restive.server.views.base import (
    STATIC,
    TEMPLATES,
    head,
    paginate,
    read_glossary,
    read_number,
    render,
    static,
)
from server.views.browsing import Browser, Site, read_text
from server.views.conftest import HOSTILE

TEMPLATE_FILES = sorted(TEMPLATES.glob("*.html"))
STATIC_FILES = sorted(file.relative_to(STATIC).as_posix() for file in STATIC.rglob("*.*"))
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
    "/programs/demo/results",
    "/programs/demo/shadow",
    "/programs/odd/status",
    "/programs/odd/list",
    "/programs/odd/rounds/1",
    "/programs/odd/people",
    "/programs/odd/results",
    "/programs/odd/shadow",
    "/programs/new/status",
    "/programs/new/list",
    "/programs/new/rounds",
    "/programs/new/people",
    "/programs/new/results",
    "/glossary",
)


def json_path(path: str) -> str:
    """The path of a page's JSON endpoint."""
    before, mark, query = path.partition("?")
    return f"{before}.json{mark}{query}"


def all_routes() -> list[APIRoute]:
    return [route for route in router.routes if isinstance(route, APIRoute)]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_what_its_json_endpoint_sends(viewer: Browser, played: Site, path: str) -> None:
    page, data = viewer.get(path), viewer.get(json_path(path))
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
    """The main part of a page, as a viewer sees it."""
    return page.partition("<main")[2].partition("</main>")[0]


def test_every_page_and_its_json_endpoint_come_from_one_function() -> None:
    by_path = {route.path: route for route in all_routes() if "GET" in (route.methods or ())}
    endpoints = [path for path in by_path if path.endswith(".json")]
    assert len(endpoints) == 24
    for path in endpoints:
        page = by_path[path.removesuffix(".json")]
        builders = [route.dependant.dependencies[-1].call for route in (page, by_path[path])]
        assert builders[0] is builders[1]


def test_pages_are_not_in_the_openapi_document(played: Site) -> None:
    assert not [
        path for path in played.app.openapi()["paths"] if path.startswith(("/programs", "/glossary", "/static"))
    ]


@pytest.mark.parametrize("path", PAGES)
def test_nobody_sees_a_page_or_its_json_without_signing_in(played: Site, path: str) -> None:
    anybody = played.browser()
    page = anybody.get(path)
    assert page.status_code == 303
    assert page.headers["location"].startswith("/login?next=%2F")
    assert anybody.get(json_path(path)).status_code == 401


@pytest.mark.parametrize("template", TEMPLATE_FILES, ids=lambda place: place.stem)
def test_templates_have_no_script_and_no_style_of_their_own(template: Path) -> None:
    text = template.read_text()
    plain = re.sub(r"{%.*?%}", "", text, flags=re.DOTALL)
    assert not re.search(r"<style|\sstyle\s*=|javascript:|\son[a-z]+\s*=", plain, re.IGNORECASE)
    assert not re.search(r"\|\s*safe\b|autoescape", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


@pytest.mark.parametrize("template", TEMPLATE_FILES, ids=lambda place: place.stem)
def test_every_question_mark_has_a_definition(template: Path) -> None:
    used = re.findall(r"""why\(\s*["']([^"']+)["']""", template.read_text())
    assert set(used) <= set(read_glossary())


def test_definitions_open_in_place_and_have_unique_ids(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/results").text
    opened, named = re.findall(r'popovertarget="([^"]+)"', page), re.findall(r'<span popover id="([^"]+)"', page)
    assert opened == named
    assert len(set(named)) == len(named) > 5
    assert read_glossary()["lift"].definition in unescape(page)


@pytest.mark.parametrize("key", read_glossary())
def test_a_definition_has_one_to_three_sentences(key: str) -> None:
    definition = read_glossary()[key].definition
    assert 1 <= len(re.findall(r"[.](?:\s|$)", definition)) <= 3
    assert definition.endswith(".")
    assert re.fullmatch(r"[a-z-]+", key)


def test_the_glossary_has_every_term_under_its_own_anchor_in_alphabetical_order(viewer: Browser) -> None:
    page = unescape(viewer.get("/glossary").text)
    for key, entry in read_glossary().items():
        assert f'<dt id="{key}">{entry.title}</dt><dd>{entry.definition}</dd>' in page
    titles = [entry["title"] for entry in viewer.get("/glossary.json").json()["glossary"].values()]
    assert titles == sorted(titles)


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
def test_everybody_has_a_page_whatever_the_id(viewer: Browser, agent: str) -> None:
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
def test_a_missing_page_is_shown_as_not_found(viewer: Browser, path: str) -> None:
    answer = viewer.get(path, Accept="text/html")
    assert answer.status_code == 404
    assert "<h1>Not found</h1>" in answer.text
    assert "Traceback" not in answer.text
    assert "<script>/" not in answer.text
    assert "Nothing was recorded" not in answer.text


def test_a_program_without_access_looks_like_a_missing_one(played: Site) -> None:
    limited = played.browser("limited")
    hidden, missing = (limited.get(f"/programs/{name}/status") for name in ("demo", "nope"))
    assert hidden.status_code == missing.status_code == 404
    assert read_text(hidden.text).replace("demo", "nope") == read_text(missing.text)


def test_htmx_gets_an_error_as_a_fragment(viewer: Browser) -> None:
    answer = viewer.get("/programs/demo/rounds/99", **{"HX-Request": "true"})
    assert answer.status_code == 404
    assert 'role="alert"' in answer.text
    assert "<html" not in answer.text


def test_json_endpoints_answer_errors_as_problem_json(viewer: Browser) -> None:
    answer = viewer.get("/programs/demo/rounds/99.json")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_users_are_offered_only_what_they_may_do(viewer: Browser, admin: Browser) -> None:
    looking, doing = (browser.get("/programs/demo/status").text for browser in (viewer, admin))
    for place in ("states", "settings", "audit"):
        assert f'href="/programs/demo/{place}' not in looking
        assert f'href="/programs/demo/{place}' in doing
    assert 'href="/new"' not in viewer.get("/").text
    assert 'href="/new"' in admin.get("/").text


def test_pages_are_not_cached(viewer: Browser) -> None:
    for path in PAGES:
        assert viewer.get(path).headers["cache-control"] == "no-store"


def test_no_page_names_a_folder_of_the_server(viewer: Browser, played: Site) -> None:
    folder = str(Path(played.desk.store.address).parent)
    for path in PAGES:
        assert folder not in viewer.get(path).text + viewer.get(json_path(path)).text


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", " 1", "１", "9" * 10, "9" * 5000])
def test_a_malformed_number_in_a_url_is_not_found(text: str) -> None:
    with pytest.raises(NotFound, match="There is no such round"):
        read_number(text, "round")


def test_the_head_has_what_every_page_needs(played: Site) -> None:
    reported = head(played.desk.program("demo"))
    assert (reported["name"], reported["rounds"], reported["shadow"]) == ("demo", 5, "egt")
    assert reported["words"]["people"] == "pharmacists"
    assert head(played.desk.program("new"))["shadow"] is None


@given(total=st.integers(0, 2000), size=st.integers(1, 300))
def test_every_row_is_on_exactly_one_page(total: int, size: int) -> None:
    rows = list(range(total))
    pages = paginate(1, total, size).pages
    shown = [row for page in range(1, pages + 1) for row in rows[paginate(page, total, size).rows]]
    assert shown == rows


@pytest.mark.parametrize(("total", "message"), [(0, "there is 1"), (10, "there is 1"), (11, "there are 2")])
def test_a_page_beyond_the_last_is_not_found(total: int, message: str) -> None:
    with pytest.raises(NotFound, match=message):
        paginate(9, total, 10)


@pytest.mark.parametrize("name", STATIC_FILES)
def test_static_files_are_public_and_cached_by_version(played: Site, name: str) -> None:
    answer = played.browser().get(static(name))
    assert answer.status_code == 200
    assert answer.content == (STATIC / name).read_bytes()
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_a_static_file_without_a_version_is_revalidated(played: Site) -> None:
    first = played.browser().get("/static/restive.css")
    assert first.headers["cache-control"] == "no-cache"
    again = played.browser().get("/static/restive.css", **{"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_static_files_are_compressed_if_the_browser_accepts_it(played: Site) -> None:
    packed = played.browser().get("/static/charts.js", **{"Accept-Encoding": "gzip"})
    plain = played.browser().get("/static/charts.js", **{"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content


@pytest.mark.parametrize("name", ["", "nothing.css", "../app.py", "..%2fapp.py", "%2fetc/passwd", "vendor"])
def test_no_path_leads_out_of_the_static_folder(played: Site, name: str) -> None:
    assert played.browser().get(f"/static/{name}").status_code == 404


def test_every_static_file_that_a_page_names_exists(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/results").text
    named = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert len(named) == 7
    assert all(viewer.get(place).status_code == 200 for place in named)


def test_vendored_files_have_their_licence_and_version() -> None:
    about = (STATIC / "vendor" / "README.md").read_text()
    licences = {place.name for place in (STATIC / "vendor").glob("*.LICENSE")}
    assert licences >= {"htmx.LICENSE", "uPlot.LICENSE"}
    assert "4.0.0" in about
    assert "1.6.32" in about
    assert b'this.version="4.0.0"' in (STATIC / "vendor" / "htmx.min.js").read_bytes()


@pytest.mark.parametrize("path", ["/health", "/login", "/", "/nothing", "/programs/demo/status", "/api/v1/me", "/api"])
def test_cookies_of_others_are_never_parsed(played: Site, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = played.browser("viewer")
    expected = browser.get(path, Accept="text/html").status_code
    session = browser.client.cookies["restive_session"]

    def fail(value: str) -> str:
        raise AssertionError("an escaped cookie is parsed, which takes quadratic time (CVE-2024-7592)")

    monkeypatch.setattr("http.cookies._unquote", lambda value: value if "\\" not in value else fail(value))
    slow = f'a="{chr(92)}""; restive_session={session}; restive_flash="{chr(92)}""'
    assert browser.get(path, Accept="text/html", Cookie=slow).status_code == expected
