"""The documentation site builds without a warning, has every page and its search, and loads nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import DOCS, ROOT


def build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    quick = ["-D", "nb_execution_mode=off"]  # tests/test_notebooks.py runs them
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", *quick, str(source), str(site)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(DOCS, folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_document_is_a_page_in_the_search(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        assert (site / f"{name}.html").exists()
        assert f'"{name}"' in index


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]*src=\"(?:https?:)?//|<link[^>]*stylesheet[^>]*href=\"(?:https?:)?//"
    )
    assert [page for page in site.rglob("*.html") if loaded.search(page.read_text(encoding="utf-8"))] == []


def test_public_names_are_on_the_page_of_python(site: Path) -> None:
    page = (site / "reference/python.html").read_text(encoding="utf-8")
    assert all(f'id="restive.{name}"' in page for name in ("Problem", "simulate", "Trace", "History", "fit", "Agent"))


def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    for name in ("conf.py", "_static"):
        (tmp_path / name).symlink_to(DOCS / name)
    (tmp_path / "index.md").write_text("# A page\n\n[Nothing](nothing.md)\n", encoding="utf-8")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    assert "nothing.md" in built.stderr
