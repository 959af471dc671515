"""A round as it stands now: who was there, who was advised, what was done and what came of it, corrections included."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from restive.desk import events
from restive.desk.store import Event
from restive.errors import InputError
from restive.types import Bools, Floats, Ints

UNKNOWN, NOT_DONE, DONE = -1, 0, 1


@dataclass
class Round:
    """The agents of a round, all arrays [M] in the order of their numbers."""

    round: int
    at: str
    header: dict[str, Any]  # of the opened round
    number: Ints
    state: Ints
    carried_over: Bools  # whether the state is an older one
    reported: Bools  # whether somebody said it for this round; else it was carried on
    done: Ints  # −1 not known, 0 not done, 1 done
    reward: Floats  # NaN not known
    after: Ints  # −1 not known
    reported_at: Ints  # the number of the event that first said `after`, −1 not known
    decided: dict[str, Any] | None = None  # the header of the decision
    decided_at: str = ""
    columns: dict[str, Any] = field(default_factory=dict)  # chosen, probability, bar, and those of the shadow
    list: dict[str, Any] = field(default_factory=dict)
    cancelled: bool = False

    @property
    def chosen(self) -> Bools:
        """Who was advised."""
        chosen: Bools = self.columns.get("chosen", np.zeros(self.number.size, np.bool_))
        return chosen

    @property
    def missing(self) -> int:
        """Of how many agents no outcome is known yet."""
        return int((self.after < 0).sum())

    def find(self, numbers: Ints) -> tuple[Ints, Bools]:
        """The places of agents in the arrays, and whether they were there at all."""
        places = np.searchsorted(self.number, numbers)
        places[places == self.number.size] = 0
        there = self.number[places] == numbers if self.number.size else np.zeros(numbers.size, np.bool_)
        return places, there


def gather(log: Iterable[Event]) -> Round:
    """The round that all events of one round add up to."""
    found: Round | None = None
    for event in log:
        if event.kind == events.OPENED:
            found = _open(event)
        elif found is not None:
            _STEPS[event.kind](found, event)
    if found is None:
        raise InputError("there is no such round.")
    return found


def take_in(found: Round, event: Event) -> None:
    """Let one more event of the round follow."""
    _STEPS[event.kind](found, event)


def _open(event: Event) -> Round:
    number, state = (event.columns[name].astype(np.int64) for name in ("number", "state"))
    assert event.round is not None
    none = np.full(number.size, UNKNOWN)
    reward = np.full(number.size, np.nan)
    kept, reported = event.columns["carried_over"].copy(), event.columns["reported"].copy()
    return Round(
        event.round, event.at, event.header, number, state, kept, reported, none, reward, none.copy(), none.copy()
    )  # fmt: skip


def _decide(found: Round, event: Event) -> None:
    found.decided, found.decided_at, found.columns = event.header, event.at, event.columns
    found.list = event.extra.get("list", {})


def _take_outcomes(found: Round, event: Event) -> None:
    places, _ = found.find(event.columns["number"].astype(np.int64))
    whole = event.columns["after"] >= 0
    found.reported_at[places[whole & (found.after[places] < 0)]] = event.number
    found.done[places] = event.columns["done"]
    found.reward[places[whole]] = event.columns["reward"][whole]
    found.after[places[whole]] = event.columns["after"][whole]


def _correct(found: Round, event: Event) -> None:
    if event.header["what"] == "outcomes":
        _take_outcomes(found, event)
        return
    places, _ = found.find(event.columns["number"].astype(np.int64))
    for name in ("state", "carried_over", "reported"):
        getattr(found, name)[places] = event.columns[name]


def _cancel(found: Round, event: Event) -> None:
    found.cancelled = True


_STEPS = {
    events.DECIDED: _decide,
    events.OUTCOMES: _take_outcomes,
    events.CORRECTED: _correct,
    events.CANCELLED: _cancel,
}
