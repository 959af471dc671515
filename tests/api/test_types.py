"""The types of answers as pydantic reads them: closed, strict and described."""

from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from restive.api import administration, settings, status, types
from restive.server.requests import ChangeBody, CreateBody

ANSWERS = {
    name: kind
    for module in (types, status, administration)
    for name, kind in vars(module).items()
    if is_typeddict(kind)
}


def read_schema(kind: Any) -> dict[str, Any]:
    return TypeAdapter(kind).json_schema()


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_has_no_fields_but_its_own(name: str) -> None:
    schema = read_schema(ANSWERS[name])
    assert schema["additionalProperties"] is False
    assert schema["description"]


def test_the_text_below_a_field_is_its_description() -> None:
    assert read_schema(types.Grant)["properties"]["program"]["description"].startswith("The program that the role")


def test_values_are_not_converted() -> None:
    health = TypeAdapter(types.Health)
    assert health.validate_json('{"status": "ok", "version": "1"}') == {"status": "ok", "version": "1"}
    for wrong in ('{"status": "ok", "version": 1}', '{"status": "ok"}', '{"status": "ok", "version": "1", "x": 2}'):
        with pytest.raises(ValidationError):
            health.validate_json(wrong)


def test_settings_are_those_that_the_server_accepts() -> None:
    assert set(get_type_hints(settings.NewProgram)) == set(CreateBody.model_fields) - {"name", "template"}
    assert set(get_type_hints(settings.Changes)) == set(ChangeBody.model_fields)
