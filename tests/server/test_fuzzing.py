"""Requests generated from the OpenAPI document: every answer conforms to it."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.server.app import make_app
from restive.server.settings import Settings

CHECKS = [
    schemathesis.checks.not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]


class Fuzzed:
    """A server with a program that has a round, and the requests that its document allows or does not."""

    def __init__(self, desk: Desk) -> None:
        program = desk.create("shops", states=["low", "high"], rewards=[0, 1], budget=2, control=0.0, policy="egt")
        program.decide({"ann": "low", "ben": "high", "cem": "low"})
        app = make_app(desk, Settings(log="none", rate=1e6, burst=10**6))
        self.headers = {"Authorization": f"Bearer {make_token(desk.store, 'fuzz', {None: 'admin'})}"}
        self.schema = schemathesis.openapi.from_asgi("/openapi.json", app)
        self.schema.config.generation.with_security_parameters = False
        self.schema.config.checks.negative_data_rejection.expected_statuses.append("431")  # a long query
        self.asked = 0

    def attack(self, mode: GenerationMode, examples: int) -> None:
        for found in self.schema.get_all_operations():
            with suppress(Unsatisfiable):  # nothing can be wrong with a request that has no parameters
                self._attack(found.ok(), mode, examples)  # type: ignore[union-attr]

    def _attack(self, operation: Any, mode: GenerationMode, examples: int) -> None:
        checks = [*CHECKS, negative_data_rejection] if mode is GenerationMode.NEGATIVE else CHECKS

        @hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def play(case: Any) -> None:
            if mode is GenerationMode.POSITIVE:
                aim(case)
            self.asked += 1
            answer = case.call(headers=self.headers)
            case.validate_response(answer, checks=checks, headers=self.headers)

        play()


def aim(case: Any) -> None:
    """Let most of the requests reach the program and the round that are there."""
    draw = hashlib.sha256(repr((case.body, case.query)).encode()).digest()
    if case.path_parameters and draw[0] % 4:
        case.path_parameters |= {"name": "shops"} | ({"round": 1} if "round" in case.path_parameters else {})


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Fuzzed]:
    with Desk(tmp_path / "store.db") as desk:
        yield Fuzzed(desk)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "not allowed"])
def test_generated_requests_get_documented_answers(fuzzed: Fuzzed, mode: GenerationMode) -> None:
    fuzzed.attack(mode, examples=3)
    assert fuzzed.asked > 40


@pytest.mark.soak
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "not allowed"])
def test_many_generated_requests_get_documented_answers(fuzzed: Fuzzed, mode: GenerationMode) -> None:
    fuzzed.attack(mode, examples=100)
