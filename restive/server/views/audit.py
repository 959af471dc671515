"""Who did what, and when: the audit_log of a program or of the whole store in words, the newest first."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request

from restive.desk.audit import AuditRow
from restive.desk.desk import Desk
from restive.desk.program import Program
from restive.server.views.asking import ask, head, read_number
from restive.server.views.base import PageRoute, page

AT_ONCE = 50

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@page(router, "/programs/{name}/audit", "audit.html", role="admin")
async def show_program(request: Request, name: str, before: str = "") -> dict[str, Any]:
    """The audit_log of a program."""
    return await ask(request, name, look_at_program, read_number(before, "page", 0) or None)


@page(router, "/audit", "audit.html", role="admin")
async def show_store(request: Request, before: str = "") -> dict[str, Any]:
    """The audit_log of all programs, and of the store itself."""
    state = request.app.state
    found: dict[str, Any] = await state.programs.run(look_at_store, state.desk, read_number(before, "page", 0) or None)
    return found


def look_at_program(program: Program, before: int | None = None) -> dict[str, Any]:
    """One page of the audit_log of a program."""
    return {"program": head(program)} | _turn(program.store.audit_log(program.id, before, AT_ONCE + 1))


def look_at_store(desk: Desk, before: int | None = None) -> dict[str, Any]:
    """One page of the audit_log of the store."""
    return _turn(desk.store.audit_log(None, before, AT_ONCE + 1))


def tell(row: AuditRow) -> str:
    """A context in words.

    >>> tell(AuditRow(9, "coupons", "2026-03-02T08:15:00+00:00", "ann", "decided", 7, {"listed": 12}))
    'decided round 7: 12 on the list'
    """
    say = TOLD.get(row.verb)
    return say(row.round, row.answer) if say else row.verb


def _turn(rows: list[AuditRow]) -> dict[str, Any]:
    """Plain data of some audit_log, and from where the next page goes on."""
    shown = rows[:AT_ONCE]
    reported = ("at", "by", "program", "verb", "round")
    audit_log = [{name: getattr(row, name) for name in reported} | {"did": tell(row)} for row in shown]
    return {"audit_log": audit_log, "next": shown[-1].number if len(rows) > AT_ONCE else None}


def _tell_learned(round_: int | None, answer: Mapping[str, Any]) -> str:
    about = answer.get("rounds") or [round_]
    rounds = f"round{'s' * (len(about) > 1)} {', '.join(map(str, about))}"
    parts = [f"{answer[what]:,} {said}" for what, said in LEARNT if answer.get(what)]
    return f"outcomes of {rounds}: {', '.join(parts) or 'nothing new'}"


def _tell_changed(_: int | None, answer: Mapping[str, Any]) -> str:
    changed = answer.get("changed", {})
    said = [f"{name.replace('_', '-')} {_show(value)}" for name, value in changed.items()]
    return f"changed the settings: {', '.join(said)}" if said else "changed the settings"


def _show(value: object) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return " ".join(f"{group}={share:g}" for group, share in value.items()) or "none"


def _tell_token(done: str, answer: Mapping[str, Any]) -> str:
    granted = [f"{each['role']} of {each['program'] or 'all programs'}" for each in answer.get("grants", ())]
    return f"{done} the token {answer.get('token', '')}" + (f": {', '.join(granted)}" if granted else "")


LEARNT = (("new", "recorded"), ("corrected", "corrected"), ("repeated", "known already"))
TOLD: Mapping[str, Callable[[int | None, Mapping[str, Any]], str]] = {
    "created": lambda *_: "made the program",
    "opened": lambda round_, _: f"opened round {round_}",
    "decided": lambda round_, answer: f"decided round {round_}: {answer.get('listed', 0):,} on the list",
    "learned": _tell_learned,
    "corrected": lambda round_, answer: f"corrected {answer.get('corrected', 0):,} states of round {round_}",
    "left": lambda _, answer: f"took out who left: {answer.get('count', 0):,}",
    "erased": lambda _, answer: f"erased names: {answer.get('count', 0):,}",
    "cancelled": lambda round_, answer: f"cancelled round {round_}: {answer.get('listed', 0):,} were on its list",
    "changed": _tell_changed,
    "token made": lambda _, answer: _tell_token("made", answer),
    "token revoked": lambda _, answer: _tell_token("revoked", answer),
}
