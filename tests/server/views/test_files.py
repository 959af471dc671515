"""Style sheets and scripts: kept for a year under the digest of their content, and nothing else is sent."""

import re

import pytest

from restive.server.views.files import FOLDER, address, files
from server.views.browsing import Browser, Site


@pytest.fixture
def anybody(played: Site) -> Browser:
    return played.browser()


@pytest.mark.parametrize("name", sorted(files()))
def test_every_file_is_sent_whole_to_anybody(anybody: Browser, name: str) -> None:
    answer = anybody.get(address(name))
    assert answer.status_code == 200
    assert answer.content == (FOLDER / name).read_bytes()
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_a_file_asked_for_without_its_digest_is_asked_for_again(anybody: Browser) -> None:
    first = anybody.get("/static/restive.css")
    assert "immutable" not in first.headers["cache-control"]
    again = anybody.get("/static/restive.css", **{"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_files_come_packed_to_who_can_unpack_them(anybody: Browser) -> None:
    packed = anybody.get("/static/charts.js", **{"Accept-Encoding": "gzip"})
    plain = anybody.get("/static/charts.js", **{"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content


@pytest.mark.parametrize(
    "name", ["", "nothing.css", "../app.py", "..%2fapp.py", "/etc/passwd", "vendor", "vendor/README.md"]
)
def test_no_path_leads_out_of_the_folder(anybody: Browser, name: str) -> None:
    assert anybody.get(f"/static/{name}").status_code == 404


def test_every_file_that_a_page_names_is_there(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/status").text
    named = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert len(named) == 7
    assert all(viewer.get(place).status_code == 200 for place in named)


def test_files_of_others_come_with_their_licence_and_version() -> None:
    about = (FOLDER / "vendor" / "README.md").read_text()
    assert {place.name for place in (FOLDER / "vendor").glob("*.LICENSE")} == {"htmx.LICENSE", "uPlot.LICENSE"}
    assert "4.0.0" in about
    assert "1.6.32" in about
    assert b'this.version="4.0.0"' in files()["vendor/htmx.min.js"].content
