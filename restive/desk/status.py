"""What a program's page shows, as plain data: rounds, people, lift, shadow, what was learned, and what to do next.

The program fills it in; `restive.desk.screen` prints it, `restive.desk.plots` draws it, `as_json` is its twin for
other software. What is not known is NaN here and null in JSON. Rounds are numbered from 1, times are UTC in ISO 8601.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from restive.api.status import Status as StatusAnswer
from restive.desk.config import Words
from restive.desk.lift import Lift, LiftCurve, Shadow
from restive.version import __version__


@dataclass(frozen=True)
class RoundRow:
    """One round in a line. Means are per person; those of the control group are kept apart."""

    round: int
    at: str  # when it was decided
    present: int  # people with a state in this round
    budget: int
    advised: int  # on the list
    done: int  # of these, done
    failed: int  # of these, reported as not done
    outcomes_in: int  # people whose outcome is in
    unasked: int = 0  # done, though not on the list
    explored: int = 0  # of those advised, by lot to learn
    reward_mean: float = math.nan  # of those who may be chosen
    control_mean: float = math.nan
    expected_each: float = math.nan  # benefit, mean over those advised, as the policy saw it when it decided


@dataclass(frozen=True)
class Waiting:
    """A round that is not closed: whose outcomes, or what else, is missing."""

    round: int
    missing: int  # people
    decided: bool = True  # False: opened, but there is no list yet


@dataclass(frozen=True)
class People:
    """How many agents there are, and what became of the others."""

    active: int
    left: int = 0
    erased: int = 0
    new: int = 0  # joined with the last round, if it was not the first
    control: int = 0  # of the active, those who are never chosen


@dataclass(frozen=True)
class Learned:
    """What the policy believes of acting in one state."""

    state: str
    people: int  # with an estimate in this state
    benefit: float  # mean over them
    spread: float  # standard deviation over them
    helped: int  # of them, those expected to gain by it


class Step(NamedTuple):
    """One thing to do next: in words, and by which verb of the desk, about which round, as which command.

    >>> str(Step("Round 7 is open and has no list yet.", "decide", 7, "restive desk decide shops"))
    'Round 7 is open and has no list yet: restive desk decide shops'
    """

    sentence: str
    verb: str | None = None  # None: there is nothing to do about it
    round: int | None = None
    command: str = ""

    def __str__(self) -> str:
        return f"{self.sentence.removesuffix('.')}: {self.command}" if self.command else self.sentence


@dataclass(frozen=True)
class Status:
    """A program at a glance."""

    name: str
    title: str
    store: str  # its address, without a password
    policy: str  # as it is written on the command line, with its settings
    seed: int
    people: People
    words: Words = field(default_factory=Words)
    rounds: Sequence[RoundRow] = ()
    waiting: Sequence[Waiting] = ()
    lift: Lift | None = None
    curve: LiftCurve | None = None  # over the same rounds as `rounds`, or their last ones
    caution: str = ""  # why the lift is not to be relied on yet
    shadow_policy: str | None = None
    shadow: Shadow | None = None
    learned: Sequence[Learned] = ()
    ahead: bool = True  # benefits count all rounds to come, not the next one alone
    horizon: int | None = None
    steps: Sequence[Step] = ()  # what to do next, the most urgent first
    version: str = field(default=__version__)

    @property
    def actions(self) -> int:
        """Done so far, in all rounds, asked or not."""
        return sum(row.done + row.unasked for row in self.rounds)

    @property
    def budget_used(self) -> float:
        """The share of all budgets so far that was done as advised, NaN before the first round."""
        budget = sum(row.budget for row in self.rounds)
        return sum(row.done for row in self.rounds) / budget if budget else math.nan

    def as_json(self) -> StatusAnswer:
        """The status as plain data, finite numbers or null; without the address of the store and without commands."""
        record: dict[str, Any] = _plain(self)
        del record["store"]
        gained = self.lift.per_action(self.actions) if self.lift else None
        record["steps"] = [step.sentence for step in self.steps]
        used = {"actions": self.actions, "budget_used": _plain(self.budget_used)}
        return cast("StatusAnswer", record | used | {"extra_per_action": _plain(gained)})


def next_steps(
    name: str, words: Words, people: People, waiting: Sequence[Waiting], decided: int, horizon: int | None = None
) -> list[Step]:
    """What the team can do now, the most urgent first; decided: rounds so far.

    >>> str(next_steps("shops", Words(), People(active=40), [Waiting(7, missing=12)], decided=7)[0])
    'Round 7 waits for outcomes of 12 people: restive desk learn shops --outcomes OUTCOMES.csv'
    """
    steps = [_step(name, words, each) for each in sorted(waiting, key=lambda each: each.round)]
    last = max([decided, *(each.round for each in waiting)])
    states = f"restive desk decide {name} --states STATES.csv"
    if not people.active and not decided:
        joining = "Nobody has joined yet; the first round takes in everybody whose state is given."
        steps.append(Step(joining, "decide", None, states))
    elif horizon is not None and last >= horizon:
        steps.append(Step(f"All {horizon} rounds are decided; the program is over when the last outcomes are in."))
    elif all(each.decided for each in waiting):
        steps.append(Step(f"Round {last + 1} can be decided as soon as states are there.", "decide", None, states))
    if decided and not people.control:
        steps.append(Step("There is no control group, so nobody can say what the program adds."))
    return steps


def _step(name: str, words: Words, waiting: Waiting) -> Step:
    if not waiting.decided:
        open_ = f"Round {waiting.round} is open and has no list yet."
        return Step(open_, "decide", waiting.round, f"restive desk decide {name}")
    whom = words.person if waiting.missing == 1 else words.people
    learn = f"restive desk learn {name} --outcomes OUTCOMES.csv"
    said = f"Round {waiting.round} waits for outcomes of {waiting.missing:,} {whom}."
    return Step(said, "learn", waiting.round, learn)


def _plain(value: Any) -> Any:
    """Records as dictionaries, arrays as lists, and null for what is no finite number."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
