"""A round as it is known now: who was present, who was advised, what was done and the outcomes, with all corrections."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from restive.api.types import HistoryEntry
from restive.desk.agents import RoundTotals
from restive.desk.events import (
    EXCLUSIONS,
    Cancelled,
    Corrected,
    Decided,
    DecisionInput,
    Event,
    Outcomes,
    Reported,
    States,
    Withdrawn,
    interpret,
    write_outcomes,
)
from restive.types import Bools, Floats, Ints

UNKNOWN, NOT_DONE, DONE = -1, 0, 1


@dataclass
class Round:
    """The agents of a round, all arrays [M] in the order of their numbers."""

    round: int
    at: str  # when it was decided
    decided: Decided
    states: States  # corrected
    done: Ints  # −1 not known, 0 not done, 1 done
    reward: Floats  # NaN not known
    after: Ints  # −1 not known
    reported_at: Ints  # the number of the event that first reported `after`, −1 not known
    corrected: Bools  # whether a correction was recorded
    assumed: Bools  # whether `done` was not reported, but is taken as advised
    states_of: Ints  # the round whose states gave `after`, 0 if it was reported
    cancelled: bool = False

    @property
    def given(self) -> DecisionInput:
        """What the round was decided from."""
        return self.decided.given

    @property
    def number(self) -> Ints:
        """The numbers of the agents present."""
        return self.states.number

    @property
    def state(self) -> Ints:
        """The states of the agents present."""
        return self.states.state

    @property
    def carried_over(self) -> Bools:
        """Whether each state is from an earlier round."""
        return self.states.carried_over

    @property
    def reported(self) -> Bools:
        """Whether each state was reported for this round."""
        return self.states.reported

    @property
    def choice(self) -> dict[str, Any]:
        """The columns chosen, probability, exclusion and those of the shadow."""
        return self.decided.choice

    @property
    def chosen(self) -> Bools:
        """Whether each agent is on the list."""
        chosen: Bools = self.choice["chosen"]
        return chosen

    @property
    def listed(self) -> dict[str, Any]:
        """The columns of the list."""
        return self.decided.listed

    @property
    def missing(self) -> int:
        """The number of agents without an outcome."""
        return int((self.after < 0).sum())

    @classmethod
    def start(cls, event: Event) -> "Round":
        """The round as its decision leaves it."""
        decided = interpret(event)
        assert isinstance(decided, Decided)
        assert event.round is not None
        count = decided.given.states.number.size
        states = States._make(column.copy() for column in decided.given.states)
        unknown = np.full(count, UNKNOWN)
        rest = np.full(count, np.nan), unknown.copy(), unknown.copy(), np.zeros(count, np.bool_)
        taken = np.zeros(count, np.bool_), np.zeros(count, np.int64)
        return cls(event.round, event.at, decided, states, unknown, *rest, *taken)

    def apply(self, event: Event) -> None:
        """Apply another event of the round."""
        match interpret(event):
            case Reported(outcomes, states_of):
                self._record(event.number, outcomes)
                if states_of is not None:
                    self.states_of[self.find(outcomes.number)[0]] = states_of
            case Corrected(Outcomes() as right):
                self._record(event.number, right)
                self.corrected[self.find(right.number)[0]] = True
            case Corrected(States() as right):
                self.states.correct(right)
                self.corrected[self.find(right.number)[0]] = True
            case Withdrawn(number):
                self._withdraw(self.find(number)[0])
            case Cancelled():
                self.cancelled = True

    def _withdraw(self, places: Ints) -> None:
        """Forget what was reported at these places."""
        for column in (self.done, self.after, self.reported_at):
            column[places] = UNKNOWN
        self.reward[places], self.assumed[places], self.corrected[places] = np.nan, False, True
        self.states_of[places] = 0

    def _record(self, number: int, news: Outcomes) -> None:
        places, _ = self.find(news.number)
        self.reported_at[places[(news.after >= 0) & (self.after[places] < 0)]] = number
        write_outcomes(self.done, self.reward, self.after, places, news)
        self.assumed[places] = news.assumed

    def find(self, numbers: Ints) -> tuple[Ints, Bools]:
        """The places of agents in the arrays, and whether each was present."""
        places = np.searchsorted(self.number, numbers)
        places[places == self.number.size] = 0
        there = self.number[places] == numbers if self.number.size else np.zeros(numbers.size, np.bool_)
        return places, there


def gather(log: Iterable[Event]) -> list[Round]:
    """The rounds that events of rounds lead to, in order."""
    rounds: dict[int, Round] = {}
    for event in log:
        assert event.round is not None
        if event.round in rounds:
            rounds[event.round].apply(event)
        else:
            rounds[event.round] = Round.start(event)
    return [rounds[round_] for round_ in sorted(rounds)]


def describe_agent(found: Round, states: Sequence[str], totals: RoundTotals) -> HistoryEntry:
    """A round that holds one agent only as plain data; unknown values are left out."""
    notes = (
        EXCLUSIONS[int(found.choice["exclusion"][0])],
        "as planned" * int(found.assumed[0] and found.chosen[0]),
        "corrected" * int(found.corrected[0]),
        "cancelled" * totals.cancelled,
    )
    row: HistoryEntry = {
        "round": found.round,
        "label": totals.label,
        "due": totals.due,
        "at": found.at,
        "state": states[int(found.state[0])],
        "chosen": bool(found.chosen[0]),
        "probability": float(found.choice["probability"][0]),
        "note": ", ".join(filter(None, notes)),
    }
    if found.given.cost is not None:
        row["cost"] = float(found.given.cost[0])
    if found.done[0] != UNKNOWN:
        row["done"] = bool(found.done[0] == DONE)
    if found.after[0] >= 0:
        row["reward"], row["next_state"] = float(found.reward[0]), states[int(found.after[0])]
    return row
