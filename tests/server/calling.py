"""A caller of the API: one app in one event loop, a token or none, and answers held to their models."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import httpx
from fastapi import FastAPI
from pydantic import TypeAdapter

from restive.api.types import Problem
from restive.desk import Desk

PLACE, API = "http://127.0.0.1:8787", "/api/v1"
CSV = {"Content-Type": "text/csv"}
STATES = {"ann": "low", "ben": "high", "cem": "low", "dot": "low", "eve": "high"}
T = TypeVar("T")


def as_rows(states: Mapping[str, str] = STATES) -> list[dict[str, str]]:
    return [{"agent": agent, "state": state} for agent, state in states.items()]


class Caller:
    """A client with a token, or without one at an open server."""

    def __init__(self, app: FastAPI, desk: Desk, runner: asyncio.Runner, token: str | None = None) -> None:
        self.app, self.desk, self.runner = app, desk, runner
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.client = httpx.AsyncClient(transport=transport, base_url=PLACE, headers=headers)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def call(self, method: str, path: str, **given: Any) -> httpx.Response:
        """The answer to one request; a path that begins with / is whole, any other is one of the program `shops`."""
        return self.run(self.client.request(method, name_path(path), **given))

    def get(self, path: str, model: type[T], **given: Any) -> T:
        """What a document says, which must be what its model promises."""
        return check(self.call("GET", path, **given), model, 200)

    def post(self, path: str, body: object, model: type[T], status: int = 200, **given: Any) -> T:
        return check(self.call("POST", path, json=body, **given), model, status)

    def refused(self, method: str, path: str, status: int, **given: Any) -> Problem:
        """The failure that a request ends in, in the one shape."""
        return check_failure(self.call(method, path, **given), status)

    def events(self, name: str = "shops") -> int:
        return self.desk.store.length(self.desk.program(name).id)


def name_path(path: str) -> str:
    return path if path.startswith("/") else f"{API}/programs/shops/{path}"


def check(answer: httpx.Response, model: type[T], status: int) -> T:
    """The answer as its model; other fields, other types and numbers that are none are refused."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    return validate(answer, model)


def validate(answer: httpx.Response, model: type[T]) -> T:
    return TypeAdapter(model).validate_json(answer.content, strict=True)


def check_failure(answer: httpx.Response, status: int) -> Problem:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    failure = validate(answer, Problem)
    assert failure["status"] == status
    assert failure["request"] == answer.headers["x-request-id"]
    assert "Traceback" not in failure["detail"]
    return failure
