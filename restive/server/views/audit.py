"""The audit log of a program or of the whole store, newest first."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Depends, Request, Response

from restive.desk.agents import RoundTotals
from restive.desk.audit import AuditRow
from restive.desk.program import Program
from restive.desk.store import Store
from restive.desk.table_files import write_table_file
from restive.desk.tables import audit_table
from restive.errors import NotFound
from restive.formats import enumerate_words
from restive.server.auth import need_session
from restive.server.downloads import MEDIA_TYPES, Sheet, make_file_response, write_file
from restive.server.views.base import NO_STORE, Data, Query, page, program_page, read_number, router

FILE_TYPES = ("csv", "xlsx")
ENTRIES_PER_PAGE = 50
Rounds = Mapping[int, RoundTotals]  # by number
NO_ROUNDS: Rounds = {}
FIELDS = ("at", "by", "program", "verb", "round")
OUTCOME_COUNTS = (("new", "recorded"), ("corrected", "corrected"), ("repeated", "recorded before"))


@program_page("audit", "audit.html", role="admin")
def build_program_log(program: Program, query: Query) -> Data:
    """The audit log of a program."""
    rounds = {totals.round: totals for totals in program.rounds}
    return build_log(program.store, program.id, query.get("before", ""), rounds)


@page("/audit", "audit.html", role="admin")
async def show_store_log(request: Request, before: str = "") -> Data:
    """The audit log of all programs and tokens."""
    state = request.app.state
    log: Data = await state.programs.run(build_log, state.desk.store, None, before)
    return log


@router.get("/audit.{kind}", dependencies=[Depends(need_session("admin"))])
async def download_store_log(request: Request, kind: str) -> Response:
    """The audit log of all programs and tokens as a file."""
    if kind not in FILE_TYPES:
        raise NotFound(f"There is no log in this format; the formats are {' and '.join(FILE_TYPES)}.")
    state = request.app.state
    sheet = Sheet("restive", "audit", kind, lambda path: write_table_file(audit_table(state.desk.store), path))
    path = await state.programs.run(write_file, sheet)
    response = make_file_response(path, MEDIA_TYPES[kind], sheet.filename)
    response.headers["Cache-Control"] = f"private, {NO_STORE}"
    return response


def build_log(store: Store, program: int | None, before: str, rounds: Rounds = NO_ROUNDS) -> Data:
    """One page of an audit log, and the number before which the next page begins."""
    rows = store.audit_log(program, read_number(before, "page", 0) or None, ENTRIES_PER_PAGE + 1)
    shown = rows[:ENTRIES_PER_PAGE]
    entries = [{name: getattr(row, name) for name in FIELDS} | {"did": describe(row, rounds)} for row in shown]
    return {"audit_log": entries, "next": shown[-1].number if len(rows) > ENTRIES_PER_PAGE else None}


def describe(row: AuditRow, rounds: Rounds = NO_ROUNDS) -> str:
    """An audit entry in words; rounds that are known are named by their dates.

    >>> describe(AuditRow(9, "coupons", "2026-03-02T08:15:00+00:00", "ann", "decided", 7, {"listed": 12}))
    'decided round 7: 12 on the list'
    """
    describe_verb = DESCRIPTIONS.get(row.verb)
    numbers = (row.answer.get("rounds") if row.verb == "learned" else None) or [row.round]
    names = enumerate_words([_name_round(number, rounds.get(number or 0), row.at) for number in numbers])
    return describe_verb(names, row.answer) if describe_verb else row.verb


def _name_round(number: int | None, totals: RoundTotals | None, at: str) -> str:
    """A round as it was known at that time; after an undo, its number can be that of another round."""
    return totals.mention if totals is not None and totals.at <= at else f"round {number}"


def _describe_outcomes(rounds: str, answer: Mapping[str, Any]) -> str:
    parts = [f"{answer[name]:,} {words}" for name, words in OUTCOME_COUNTS if answer.get(name)]
    return f"outcomes of {rounds}: {', '.join(parts) or 'nothing new'}"


def _describe_change(_: str, answer: Mapping[str, Any]) -> str:
    settings = [f"{name.replace('_', '-')} {_show(value)}" for name, value in answer.get("changed", {}).items()]
    return f"changed settings: {', '.join(settings)}" if settings else "changed settings"


def _show(value: object) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return " ".join(f"{group}={share:g}" for group, share in value.items()) or "none"


def _describe_token(verb: str, answer: Mapping[str, Any]) -> str:
    grants = [f"{grant['role']} of {grant['program'] or 'all programs'}" for grant in answer.get("grants", ())]
    return f"{verb} token {answer.get('token', '')}" + (f": {', '.join(grants)}" if grants else "")


def _describe_webhook(verb: str, answer: Mapping[str, Any]) -> str:
    changes = [*answer.get("events", ())]
    if "enabled" in answer:
        changes.append("enabled" if answer["enabled"] else "disabled")
    host = f" to {answer['host']}" if "host" in answer else ""
    return f"{verb} webhook {answer.get('webhook', '')}{host}" + (f": {', '.join(changes)}" if changes else "")


DESCRIPTIONS: Mapping[str, Callable[[str, Mapping[str, Any]], str]] = {
    "created": lambda *_: "created the program",
    "decided": lambda round_, answer: f"decided {round_}: {answer.get('listed', 0):,} on the list",
    "learned": _describe_outcomes,
    "corrected": lambda round_, answer: f"corrected {answer.get('corrected', 0):,} states of {round_}",
    "withdrawn": lambda round_, answer: f"withdrew reports of {round_}: {answer.get('count', 0):,}",
    "left": lambda _, answer: f"removed people who left: {answer.get('count', 0):,}",
    "erased": lambda _, answer: f"erased ids: {answer.get('count', 0):,}",
    "cancelled": lambda round_, answer: f"cancelled {round_} with {answer.get('listed', 0):,} on the list",
    "undone": lambda _, answer: f"undid: {answer.get('message', '')}",
    "changed": _describe_change,
    "archived": lambda *_: "archived the program",
    "restored": lambda *_: "restored the program",
    "deleted": lambda _, answer: (
        f"deleted the program {answer.get('program', '')} with {answer.get('events', 0):,} events"
    ),
    "token made": lambda _, answer: _describe_token("created", answer),
    "token revoked": lambda _, answer: _describe_token("revoked", answer),
    "invited": lambda _, answer: _describe_token("invited", answer),
    "joined": lambda _, answer: _describe_token("signed in by invitation:", answer),
    "webhook added": lambda _, answer: _describe_webhook("added", answer),
    "webhook changed": lambda _, answer: _describe_webhook("changed", answer),
    "webhook tested": lambda _, answer: _describe_webhook("tested", answer),
    "webhook secret replaced": lambda _, answer: _describe_webhook("replaced the secret of", answer),
    "webhook messages resent": lambda _, answer: _describe_webhook("resent failed messages of", answer),
    "webhook removed": lambda _, answer: _describe_webhook("removed", answer),
    "roles changed": lambda _, answer: _describe_token("changed roles of", answer),
}
