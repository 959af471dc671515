"""The types of answers are those of the server's own models, field by field."""

from typing import is_typeddict

import pytest

from restive.client import answers, glance
from restive.server import requests, routes
from restive.server.answers import Answer

assert routes.ROUTERS  # with them come all answers that there are


def find_models(kind: type[Answer] = Answer) -> dict[str, type[Answer]]:
    """Every model of an answer by its name."""
    found = {kind.__name__: kind}
    for each in kind.__subclasses__():
        found |= find_models(each)
    return found


OURS = {
    name: kind
    for module in (answers, glance)
    for name, kind in vars(module).items()
    if is_typeddict(kind) and kind.__module__ == module.__name__ and not name.startswith("_")
}
THEIRS = find_models()


@pytest.mark.parametrize("name", [name for name in OURS if name in THEIRS])
def test_an_answer_has_exactly_the_fields_that_the_server_promises(name: str) -> None:
    assert set(OURS[name].__annotations__) == set(THEIRS[name].model_fields)


def test_all_answers_are_held_to_it() -> None:
    assert [name for name in OURS if name not in THEIRS] == ["ConfigSettings", "Changes"]


def test_settings_are_those_that_the_server_takes() -> None:
    made = set(requests.Create.model_fields) - {"name", "template"}
    assert set(answers.ConfigSettings.__annotations__) == made
    assert set(answers.Changes.__annotations__) == set(requests.Change.model_fields)
