"""The audit log of a program or of the whole store, newest first."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request

from restive.desk.audit import AuditRow
from restive.desk.desk import Desk
from restive.desk.program import Program
from restive.server.views.base import PageRoute, ask, head, page, read_number

ENTRIES_PER_PAGE = 50
FIELDS = ("at", "by", "program", "verb", "round")
OUTCOME_COUNTS = (("new", "recorded"), ("corrected", "corrected"), ("repeated", "recorded before"))

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@page(router, "/programs/{name}/audit", "audit.html", role="admin")
async def show_program_log(request: Request, name: str, before: str = "") -> dict[str, Any]:
    """The audit log of a program."""
    return await ask(request, name, build_program_log, read_number(before, "page", 0) or None)


@page(router, "/audit", "audit.html", role="admin")
async def show_store_log(request: Request, before: str = "") -> dict[str, Any]:
    """The audit log of all programs and tokens."""
    state = request.app.state
    log: dict[str, Any] = await state.programs.run(build_store_log, state.desk, read_number(before, "page", 0) or None)
    return log


def build_program_log(program: Program, before: int | None = None) -> dict[str, Any]:
    """One page of a program's audit log."""
    return {"program": head(program)} | _paginate(program.store.audit_log(program.id, before, ENTRIES_PER_PAGE + 1))


def build_store_log(desk: Desk, before: int | None = None) -> dict[str, Any]:
    """One page of the store's audit log."""
    return _paginate(desk.store.audit_log(None, before, ENTRIES_PER_PAGE + 1))


def describe(row: AuditRow) -> str:
    """An audit entry in words.

    >>> describe(AuditRow(9, "coupons", "2026-03-02T08:15:00+00:00", "ann", "decided", 7, {"listed": 12}))
    'decided round 7: 12 on the list'
    """
    describe_verb = DESCRIPTIONS.get(row.verb)
    return describe_verb(row.round, row.answer) if describe_verb else row.verb


def _paginate(rows: list[AuditRow]) -> dict[str, Any]:
    """Entries in plain data, and the number before which the next page begins."""
    shown = rows[:ENTRIES_PER_PAGE]
    entries = [{name: getattr(row, name) for name in FIELDS} | {"did": describe(row)} for row in shown]
    return {"audit_log": entries, "next": shown[-1].number if len(rows) > ENTRIES_PER_PAGE else None}


def _describe_outcomes(round_: int | None, answer: Mapping[str, Any]) -> str:
    numbers = answer.get("rounds") or [round_]
    rounds = f"round{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
    parts = [f"{answer[name]:,} {words}" for name, words in OUTCOME_COUNTS if answer.get(name)]
    return f"outcomes of {rounds}: {', '.join(parts) or 'nothing new'}"


def _describe_change(_: int | None, answer: Mapping[str, Any]) -> str:
    settings = [f"{name.replace('_', '-')} {_show(value)}" for name, value in answer.get("changed", {}).items()]
    return f"changed settings: {', '.join(settings)}" if settings else "changed settings"


def _show(value: object) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return " ".join(f"{group}={share:g}" for group, share in value.items()) or "none"


def _describe_token(verb: str, answer: Mapping[str, Any]) -> str:
    grants = [f"{grant['role']} of {grant['program'] or 'all programs'}" for grant in answer.get("grants", ())]
    return f"{verb} token {answer.get('token', '')}" + (f": {', '.join(grants)}" if grants else "")


DESCRIPTIONS: Mapping[str, Callable[[int | None, Mapping[str, Any]], str]] = {
    "created": lambda *_: "created the program",
    "decided": lambda round_, answer: f"decided round {round_}: {answer.get('listed', 0):,} on the list",
    "learned": _describe_outcomes,
    "corrected": lambda round_, answer: f"corrected {answer.get('corrected', 0):,} states of round {round_}",
    "left": lambda _, answer: f"removed people who left: {answer.get('count', 0):,}",
    "erased": lambda _, answer: f"erased ids: {answer.get('count', 0):,}",
    "cancelled": lambda round_, answer: f"cancelled round {round_} with {answer.get('listed', 0):,} on the list",
    "changed": _describe_change,
    "token made": lambda _, answer: _describe_token("created", answer),
    "token revoked": lambda _, answer: _describe_token("revoked", answer),
}
