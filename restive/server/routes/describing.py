"""What the API's document says of a route beyond its models: bodies of several media types, files, and failures."""

from typing import Any

from pydantic import BaseModel

from restive.server.uploads import JSON, TABLE_TYPES

BINARY = {"type": "string", "contentMediaType": "application/octet-stream"}


def refer(model: type[BaseModel]) -> dict[str, str]:
    """Where the document describes a model."""
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def brings(model: type[BaseModel]) -> dict[str, Any]:
    """A body of JSON."""
    return {"requestBody": {"required": True, "content": {JSON: {"schema": refer(model)}}}}


def brings_table(model: type[BaseModel], example: str) -> dict[str, Any]:
    """A body of JSON, or a table as a file of another kind, with its settings in the address."""
    content: dict[str, Any] = {JSON: {"schema": refer(model)}}
    for kind, ending in TABLE_TYPES.items():
        content[kind] = {"schema": {"type": "string"}, "example": example} if ending == "csv" else {"schema": BINARY}
    return {"requestBody": {"required": True, "content": content}}


def answers_file(kind: str) -> dict[int | str, dict[str, Any]]:
    """A file as the answer."""
    schema = {"type": "string"} if kind.startswith("text/") else BINARY
    return {200: {"description": "The file.", "content": {kind: {"schema": schema}}}}
