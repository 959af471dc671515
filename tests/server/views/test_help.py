"""Help: every document is rendered, its links lead somewhere, and every page has a section of its own."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from restive.server.views.help import REPOSITORY, find_topics, read_document
from restive.server.views.navigation import find_help
from server.trials.test_page_roles import PAGES
from server.views.browsing import Browser, Site

LINK = re.compile(r'<a href="([^"]*)"')


@pytest.fixture
def browser(played: Site) -> Browser:
    return played.browser("viewer")


@pytest.mark.parametrize("topic", find_topics())
def test_every_link_of_a_document_leads_somewhere(topic: str) -> None:
    document = read_document(topic)
    for link in LINK.findall(document.html):
        if link.startswith("https://"):
            continue
        other, _, anchor = link.partition("#")
        found = document if not other else read_document(other)
        assert not anchor or anchor in found.anchors, link


@pytest.mark.parametrize("path", [path for path in PAGES if not path.startswith("/help")])
def test_every_page_links_to_a_section_about_it(path: str) -> None:
    page, _, anchor = find_help(path).partition("#")
    assert page == "/help/pages"
    assert anchor in read_document("pages").anchors


def test_help_is_a_page_with_its_sections(browser: Browser) -> None:
    page = browser.get("/help/pages").text
    assert '<h2 id="monday-decide-a-round">' in page
    assert 'href="desk"' in page
    assert 'href="/help/pages#look-somebody-up"' in browser.get("/programs/demo/people").text
    assert 'href="/help/pages#settings"' in browser.get("/help").text
    assert browser.get("/help/nothing").status_code == 404


@pytest.mark.parametrize("topic", ["pages", "how-it-works"])
def test_pictures_are_shown(browser: Browser, topic: str) -> None:
    names = re.findall(r'<img src="pictures/([^"]+)" alt="\w[^"]+" loading="lazy">', browser.get(f"/help/{topic}").text)
    assert names
    for name in names:
        picture = browser.get(f"/help/pictures/{name}")
        assert picture.status_code == 200
        assert picture.headers["content-type"] in ("image/png", "image/svg+xml")
    assert browser.get("/help/pictures/nothing.png").status_code == 404


def test_no_two_documents_have_the_same_name() -> None:
    names = [path.stem for path in REPOSITORY.rglob("*.md")]
    assert sorted(set(names)) == sorted(names) == sorted(find_topics())


def test_formulas_are_rendered_without_scripts() -> None:
    html = read_document("whittle").html
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in html
    assert "$$" not in html


def test_a_link_out_of_the_documents_is_text() -> None:
    assert "[CONTRIBUTING](../../CONTRIBUTING.md" in (REPOSITORY / "reference/modules.md").read_text(encoding="utf-8")
    assert "<a>CONTRIBUTING</a>" in read_document("modules").html


def test_the_wheel_contains_the_documents(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=REPOSITORY.parent, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        assert "restive/server/help/how-to/pages.md" in wheel.namelist()
