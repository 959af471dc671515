from pathlib import Path

import pytest

from server.browser.chromium import MISSING, find_browser, need_browser


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a browser; the folder in which programs are looked for."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("RESTIVE_BROWSER", "RESTIVE_NO_BROWSER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_test_without_a_browser_fails_and_says_what_to_do(nowhere: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        need_browser()
    assert failed.value.msg == MISSING


def test_whoever_wants_no_browser_leaves_these_tests_out(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESTIVE_NO_BROWSER", "1")
    with pytest.raises(pytest.skip.Exception):
        need_browser()


def test_a_browser_is_found_by_its_name_or_where_one_says(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_browser() is None
    program = nowhere / "google-chrome"
    program.touch(0o755)
    assert find_browser() == str(program)
    monkeypatch.setenv("RESTIVE_BROWSER", "/opt/another")
    assert find_browser() == "/opt/another"
