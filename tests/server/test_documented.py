"""Pages of the docs leave nothing of the server out: routes, roles, pages, kinds of failure, words, labels, metrics."""

import re
from pathlib import Path
from typing import Any

import pytest
from test_docs import ROOT, read, rows, section

from restive.desk import Desk
from restive.server.app import make_app
from restive.server.errors import CODES
from restive.server.monitoring import Metrics
from restive.server.openapi import operations
from restive.server.settings import Settings
from restive.server.views.base import read_glossary
from server.trials.test_page_roles import OTHERS, PAGES

CODE = re.compile(r"`([^`]+)`")
NO_ROLE = "none"


def find_role(operation: dict[str, Any]) -> str:
    return str(operation["security"][0]["token"][0]) if "security" in operation else ""


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The role that each route of the API needs."""
    with Desk(tmp_path_factory.mktemp("documented") / "store.db") as desk:
        app = make_app(desk, Settings(log="none"))
        found = {
            f"{method.upper()} {path}": said.get("security", [{"token": [""]}])[0]["token"][0]
            for path, method, said in operations(app.openapi())
        }
        app.state.programs.close()
    return found


def test_the_page_of_the_api_has_exactly_its_routes(roles: dict[str, str]) -> None:
    named = [row[0] for row in rows(section(read("docs/reference/api.md"), "All routes"), "route", "what it does")]
    assert sorted(named) == sorted(f"`{route}`" for route in roles)


def test_the_page_of_security_has_the_role_of_every_route(roles: dict[str, str]) -> None:
    reported = rows(section(read("docs/reference/security.md"), "Roles"), "role", "may")
    said = {route: role for role, routes in reported for route in CODE.findall(routes)}
    assert said == {route: f"`{role}`" if role else NO_ROLE for route, role in roles.items()}


def test_the_page_of_the_api_explains_every_code() -> None:
    reported = rows(section(read("docs/reference/api.md"), "Errors"), "code", "status", "meaning")
    assert {kind: because for kind, _, because in reported} == {f"`{kind}`": said for kind, said in CODES.items()}


def test_every_page_is_reported_of_with_its_role() -> None:
    reported = rows(section(read("docs/how-to/pages.md"), "Each page"), "page", "who", "what it shows")
    said = {path: who.split()[0] for named, who, _ in reported for path in CODE.findall(named)}
    assert said == PAGES | OTHERS | {"/login": "anybody", "/logout": "anybody", "/join": "anybody"}


def test_the_glossary_is_the_one_of_the_pages() -> None:
    documented = rows(read("docs/reference/glossary.md"), "term", "definition")
    assert documented == [[entry.title, entry.definition] for entry in sorted(read_glossary().values())]


def test_labels_that_are_reported_of_are_on_the_pages() -> None:
    server = ROOT / "restive" / "server"
    files: list[Path] = [*server.rglob("*.html"), *server.rglob("*.py")]
    there = "\n".join(file.read_text(encoding="utf-8") for file in files)
    reported = re.findall(r"\*\*(.+?)\*\*", read("docs/how-to/pages.md"), re.DOTALL)
    assert len(reported) > 30
    parts = [part.strip() for label in reported if label != "bold" for part in re.sub(r"\s+", " ", label).split("…")]
    assert [part for part in parts if part not in there] == []


def test_every_metric_is_reported_of() -> None:
    reported = section(read("docs/how-to/server.md"), "Health and metrics")
    lines = [line.split() for line in Metrics().render().decode().splitlines() if line.startswith("# TYPE")]
    names = [name for _, _, name, _ in lines if not name.endswith("_created")]  # when counting began
    assert len(names) > 5
    assert [name for name in names if f"`{name}`" not in reported] == []
