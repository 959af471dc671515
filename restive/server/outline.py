"""The API's document in the order of a page: what each route does, who may call it, what it takes and answers.

All of it is read from the OpenAPI document, so that the page cannot say anything else.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from restive.server.errors import PROBLEMS

JSON = "application/json"
SAMPLES = {"name": "shops", "round": "1"}  # what stands for a parameter of a path in an example
ENDINGS = {"text/csv": "csv", "application/vnd.apache.parquet": "parquet"}
ROLES = {None: "Anybody.", "viewer": "Any role.", "operator": "Operators and admins.", "admin": "Admins."}
WIDEST = 100  # of a line of a schema


def make_outline(document: Mapping[str, Any], base: str) -> dict[str, Any]:
    """What the page shows: sections of routes, the models they speak of, and the kinds of failure."""
    routes = [
        _route(document, base, path, method, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    sections = [tag | {"routes": [each for each in routes if each["tag"] == tag["name"]]} for tag in document["tags"]]
    models = [_model(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return {"info": document["info"], "base": base, "sections": sections, "models": models, "problems": PROBLEMS}


def _route(
    document: Mapping[str, Any], base: str, path: str, method: str, operation: Mapping[str, Any]
) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {})
    return {
        "tag": operation["tags"][0],
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "title": operation["summary"],
        "about": operation["description"],
        "who": ROLES[operation.get("x-role")],
        "parameters": [_parameter(each) for each in operation.get("parameters", [])],
        "bodies": [{"media": media, "model": _target(part["schema"])} for media, part in body.items()],
        "example": _example(document, body),
        "answers": [_answer(status, each) for status, each in operation["responses"].items()],
        "curl": write_curl(document, base, path, method, operation),
    }


def _parameter(each: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": each["name"],
        "where": {"path": "in the path", "query": "in the address", "header": "header"}[each["in"]],
        "required": each.get("required", False),
        "kind": say_kind(each["schema"]),
        "default": each["schema"].get("default"),
        "about": each.get("description", ""),
    }


def _answer(status: str, each: Mapping[str, Any]) -> dict[str, Any]:
    content = each.get("content", {})
    media = next(iter(content), "")
    return {
        "status": status,
        "about": each["description"],
        "media": media,
        "model": _target(content[media].get("schema", {})) if media else "",
        "failure": status >= "400",
    }


def _target(schema: Mapping[str, Any]) -> str:
    """The name of the model that a schema refers to, or nothing."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _model(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    fields = [
        {
            "name": field,
            "kind": say_kind(each),
            "required": field in required,
            "default": json.dumps(each["default"]) if each.get("default") is not None else "",
            "about": each.get("description", ""),
        }
        for field, each in schema.get("properties", {}).items()
    ]
    return {"name": name, "about": schema.get("description", ""), "fields": fields}


def say_kind(schema: Mapping[str, Any]) -> list[dict[str, str]]:
    """What a value may be, in words; a part that is a model has its name as `model`.

    >>> "".join(part["text"] for part in say_kind({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}))
    'whole number from 1 or null'
    """
    if "$ref" in schema:
        return [{"text": _target(schema), "model": _target(schema)}]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            parts = [say_kind(each) for each in schema[several]]
            return [part for place, each in enumerate(parts) for part in ([_text(" or ")] * (place > 0) + each)]
    if schema.get("type") == "array":
        return [_text("list of "), *say_kind(schema.get("items", {}))]
    if isinstance(schema.get("additionalProperties"), Mapping) and schema["additionalProperties"]:
        return [_text("object of "), *say_kind(schema["additionalProperties"])]
    return [_text(_say_plain(schema))]


def _text(text: str) -> dict[str, str]:
    return {"text": text, "model": ""}


def _say_plain(schema: Mapping[str, Any]) -> str:
    if "enum" in schema or "const" in schema:
        return " or ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    names = {"integer": "whole number", "string": "text", "boolean": "true or false", "object": "object"}
    kind = str(schema.get("type", "anything"))
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" from {low}" * (low is not None) + f" to {high}" * (high is not None)
    longest = f" of at most {schema['maxLength']} characters" if "maxLength" in schema else ""
    return names.get(kind, kind) + bounds + longest


def _example(document: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """A body of JSON, as its model or the fields of it give an example."""
    if JSON not in body:
        return ""
    return json.dumps(find_example(document, body[JSON]["schema"]), indent=2)


def find_example(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """The example of a model, or one made of those of the fields that it must have."""
    found = document["components"]["schemas"][_target(schema)] if "$ref" in schema else schema
    if "examples" in found:
        return found["examples"][0]
    fields = found.get("properties", {})
    return {name: find_example(document, fields[name]) for name in found.get("required", []) if name in fields}


def write_curl(
    document: Mapping[str, Any], base: str, path: str, method: str, operation: Mapping[str, Any]
) -> list[str]:
    """The calls of a route on a command line, one for JSON or none, and one for a table."""
    place = base + path.format(**SAMPLES) + _ask(operation)
    words = ["curl"] + (["-X", method.upper()] if method not in ("get", "post") else [])
    if method == "post" and "requestBody" not in operation:
        words += ["-X", "POST"]
    if "security" in operation:
        words += ["-H", "Authorization: Bearer $TOKEN"]
    bodies = operation.get("requestBody", {}).get("content", {})
    if "/list." in path:
        words += ["-o", path.rpartition("/")[2]]
    if not bodies:
        return [_join([*words, place])]
    calls = []
    for media in [each for each in bodies if each == JSON or each == "text/csv"]:
        sample = json.dumps(find_example(document, bodies[media]["schema"])) if media == JSON else "@table.csv"
        flag = "-d" if media == JSON else "--data-binary"
        calls.append(_join([*words, "-H", f"Content-Type: {media}", flag, sample, place]))
    return calls


def _ask(operation: Mapping[str, Any]) -> str:
    """The parameters that an address must have."""
    must = [each for each in operation.get("parameters", []) if each["in"] == "query" and each.get("required")]
    return "?" + "&".join(f"{each['name']}={_sample(each)}" for each in must) if must else ""


def _sample(parameter: Mapping[str, Any]) -> str:
    return str(parameter.get("example") or [*parameter["schema"].get("examples", []), "1"][0])


def _join(words: list[str]) -> str:
    """Words of a command; the token is left to the shell to fill in."""
    return " ".join(f'"{word}"' if "$TOKEN" in word else shlex.quote(word) for word in words)
