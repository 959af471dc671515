"""The history of one agent: a row for each round that it took part in, read from its own chunk of each event."""

from restive.api.types import HistoryEntry
from restive.desk import events
from restive.desk.program import Program
from restive.desk.selection import EXCLUSIONS
from restive.errors import NotFound

ASKED = (events.OPENED, events.DECIDED, events.OUTCOMES, events.CORRECTED)


def find_history(program: Program, agent: str) -> list[HistoryEntry]:
    """What happened to the agent of that name, round by round, as it is known now."""
    from polars import Series

    names = program.names
    number = names.find(names.inward(Series("agent", [agent])))[0]
    if number is None:
        raise NotFound(f"{agent!r} is not in the program {program.name}.")
    states = program.config.states
    rows: dict[int, HistoryEntry] = {}
    for event, values in program.store.history(program.id, number, kinds=ASKED):
        if event.round is None or not values:
            continue
        row = rows.setdefault(event.round, {"round": event.round, "at": event.at})
        if event.kind == events.DECIDED:
            row |= {"chosen": bool(values["chosen"]), "probability": float(values["probability"])}
            row["note"] = EXCLUSIONS[int(values["exclusion"])]
        elif "state" in values:
            row["state"] = states[int(values["state"])]
        else:
            row["done"] = bool(values["done"])
            if values["after"] >= 0:
                row |= {"reward": float(values["reward"]), "after": states[int(values["after"])]}
        if event.kind == events.CORRECTED:
            row["note"] = _join(row.get("note"), "corrected")
    for line in program.rounds:
        if line.cancelled and line.round in rows:
            rows[line.round]["note"] = _join(rows[line.round].get("note"), "cancelled")
    return [rows[round_] for round_ in sorted(rows)]


def _join(*notes: str | None) -> str:
    return ", ".join(filter(None, notes))
