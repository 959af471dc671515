"""Every public name of the package documents its parameters, what it returns and raises, and has an example."""

import inspect
import re
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import pytest

import restive

NAMES = [name for name in restive.__all__ if callable(getattr(restive, name))]
METHODS = [
    f"{name}.{method}"
    for name in NAMES
    if inspect.isclass(getattr(restive, name))
    for method in vars(getattr(restive, name))
    if not method.startswith("_") and isinstance(getattr(getattr(restive, name), method), FunctionType | MethodType)
]


def read_sections(text: str) -> dict[str, str]:
    """The sections of a NumPy-style docstring by title."""
    titles = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(text), flags=re.MULTILINE)
    return dict(zip(titles[1::2], titles[2::2], strict=True))


def find_undocumented(function: Callable[..., Any], text: str, mention: bool = False) -> list[str]:
    """The parameters without an entry of their own; with `mention`, one in backticks in the text is enough."""
    entries = re.findall(r"^(\w.*)$", read_sections(text).get("Parameters", ""), flags=re.MULTILINE)
    named = {name.strip() for entry in entries for name in entry.partition(":")[0].split(",")}
    if mention:
        named |= set(re.findall(r"`(\w+)`", text))
    return [name for name in inspect.signature(function).parameters if name not in {*named, "self", "cls"}]


def find(path: str) -> Any:
    found: Any = restive
    for part in path.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_documents_every_parameter_and_has_an_example(name: str) -> None:
    function = find(name)
    text = function.__doc__
    assert find_undocumented(function, text) == []
    sections = read_sections(text)
    assert ">>> " in sections["Examples"]
    if not inspect.isclass(function):
        assert {"Returns", "Raises"} <= set(sections)


@pytest.mark.parametrize("name", METHODS)
def test_a_public_method_explains_every_parameter(name: str) -> None:
    assert find_undocumented(find(name), find(name).__doc__, mention=True) == []


def test_a_parameter_without_an_entry_is_found() -> None:
    def add(first: int, second: int, third: int) -> int:
        """Add to `third`.

        Parameters
        ----------
        first, other
            Numbers, with `second`.
        """
        return first + second + third

    assert find_undocumented(add, add.__doc__ or "") == ["second", "third"]
    assert find_undocumented(add, add.__doc__ or "", mention=True) == []
