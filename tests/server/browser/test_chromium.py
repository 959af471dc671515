from pathlib import Path

import pytest

from server.browser.chromium import MISSING, find_browser, need_browser


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a browser; the folder on its PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("RESTIVE_BROWSER", "RESTIVE_NO_BROWSER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_missing_browser_fails_with_advice(nowhere: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        need_browser()
    assert failed.value.msg == MISSING


def test_browser_tests_can_be_skipped(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESTIVE_NO_BROWSER", "1")
    with pytest.raises(pytest.skip.Exception):
        need_browser()


def test_a_browser_is_found_by_name_or_by_the_environment(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_browser() is None
    program = nowhere / "google-chrome"
    program.touch(0o755)
    assert find_browser() == str(program)
    monkeypatch.setenv("RESTIVE_BROWSER", "/opt/another")
    assert find_browser() == "/opt/another"
