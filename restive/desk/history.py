"""The history of one agent: a row for each round that it took part in, read from its own chunk of each event."""

import polars as pl

from restive.api.types import HistoryEntry
from restive.desk.events import Corrected, Decided, Reported
from restive.desk.program import Program
from restive.desk.rounds import DONE, UNKNOWN, Round
from restive.desk.selection import EXCLUSIONS
from restive.errors import NotFound

KINDS = (Decided.kind, Reported.kind, Corrected.kind)


def find_history(program: Program, agent: str) -> list[HistoryEntry]:
    """What happened to the agent of that name, round by round, as it is known now."""
    names = program.names
    number = names.find(names.inward(pl.Series("agent", [agent])))[0]
    if number is None:
        raise NotFound(f"{agent!r} is not in the program {program.name}.")
    rounds: dict[int, Round] = {}
    for event in program.store.history(program.id, number, kinds=KINDS):
        assert event.round is not None
        if event.round in rounds:
            rounds[event.round].apply(event)
        else:
            rounds[event.round] = Round.start(event)
    return [_describe(program, rounds[round_]) for round_ in sorted(rounds)]


def _describe(program: Program, found: Round) -> HistoryEntry:
    """The round of one agent as plain data; what is not known is left out."""
    states = program.config.states
    row: HistoryEntry = {
        "round": found.round,
        "at": found.at,
        "state": states[int(found.state[0])],
        "chosen": bool(found.chosen[0]),
        "probability": float(found.choice["probability"][0]),
        "note": _note(found, program.projection.totals(found.round).cancelled),
    }
    if found.done[0] != UNKNOWN:
        row["done"] = bool(found.done[0] == DONE)
    if found.after[0] >= 0:
        row["reward"], row["next_state"] = float(found.reward[0]), states[int(found.after[0])]
    return row


def _note(found: Round, cancelled: bool) -> str:
    notes = (
        EXCLUSIONS[int(found.choice["exclusion"][0])],
        "corrected" * int(found.corrected[0]),
        "cancelled" * cancelled,
    )
    return ", ".join(filter(None, notes))
