"""Requests generated from the whole document, by anonymous clients, by a viewer and at an open server.

`tests/server/test_fuzzing.py` does the same as an admin. Here clients without the role must not record anything.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import schemathesis
from schemathesis import GenerationMode

from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.server.app import make_app
from restive.server.settings import Settings
from server.test_fuzzing import Fuzzed


class Visited(Fuzzed):
    """The server of the other test, with another client."""

    def __init__(self, desk: Desk, role: str | None) -> None:
        super().__init__(desk)
        self.headers = {} if role is None else {"Authorization": f"Bearer {make_token(desk.store, role, {None: role})}"}


class Opened(Fuzzed):
    """A server that needs no token."""

    def __init__(self, desk: Desk) -> None:
        program = desk.create("shops", states=["low", "high"], rewards=[0, 1], budget=2, control=0.0, policy="egt")
        program.decide({"ann": "low", "ben": "high", "cem": "low"})
        app = make_app(desk, Settings(open=True, log="none", rate=1e6, burst=10**6))
        self.headers, self.asked = {"Host": "localhost"}, 0
        self.schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=self.headers)
        self.schema.config.generation.with_security_parameters = False


VISITORS: dict[str, Callable[[Desk], Fuzzed]] = {
    "nobody": lambda desk: Visited(desk, None),
    "viewer": lambda desk: Visited(desk, "viewer"),
    "operator": lambda desk: Visited(desk, "operator"),
    "open": Opened,
}
MODES = [
    pytest.param(GenerationMode.POSITIVE, id="allowed"),
    pytest.param(GenerationMode.NEGATIVE, id="not allowed"),
]


def check_visit(store: Path, visitor: str, mode: GenerationMode, examples: int) -> str:
    """Have somebody ask all that can be made up; the figures in a line."""
    with Desk(store) as desk:
        visited = VISITORS[visitor](desk)
        before = desk.store.audit_log(None, limit=1)[0].number
        visited.attack(mode, examples)
        recorded = desk.store.audit_log(None, limit=1)[0].number - before
    assert recorded == 0 or visitor in ("operator", "open")
    return f"{visitor}, {mode.value} requests: {visited.asked} asked, {recorded} recorded, no surprise"


@pytest.mark.parametrize("visitor", VISITORS)
def test_no_request_of_anybody_surprises_the_server(
    tmp_path: Path, visitor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = check_visit(tmp_path / "store.db", visitor, GenerationMode.POSITIVE, examples=2)
    with capsys.disabled():
        print(f"\n  {line}")


@pytest.mark.soak
@pytest.mark.parametrize("visitor", VISITORS)
@pytest.mark.parametrize("mode", MODES)
def test_no_request_of_anybody_out_of_many_surprises_the_server(
    tmp_path: Path, visitor: str, mode: GenerationMode, capsys: pytest.CaptureFixture[str]
) -> None:
    line = check_visit(tmp_path / "store.db", visitor, mode, examples=150)
    with capsys.disabled():
        print(f"\n  {line}")
