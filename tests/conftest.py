"""The order of the tests, and what tests of several folders use."""

import pytest
from calling import CallHere, make_caller


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the pages of the docs: the longest of them, begun last, would run alone at the end."""
    items.sort(key=lambda item: item.path.name != "test_docs.py")


@pytest.fixture
def call_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CallHere:
    return make_caller(monkeypatch, capsys)
