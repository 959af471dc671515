"""What is known of the agents and rounds of a program whatever its policy, as events add it up."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from restive.types import Bools, Floats, Ints

# A round so long ago that no rule remembers it.
NEVER = -(10**9)


@dataclass
class Side:
    """Rewards seen on one side of the comparison in a round: how many, their sum and that of their squares."""

    seen: int = 0
    total: float = 0.0
    square: float = 0.0

    def add(self, reward: Floats) -> None:
        """Count some more."""
        self.seen += reward.size
        self.total += float(reward.sum())
        self.square += float((reward * reward).sum())


@dataclass
class Line:
    """A round in short."""

    round: int
    at: str  # when it was decided, or opened if it was not
    opened: int  # the number of the event
    budget: int
    present: int
    carried_over: int
    decided: int = -1
    advised: int = 0
    explored: int = 0
    benefit: float | None = None  # expected of the list, in all
    done: int = 0
    failed: int = 0  # advised, but not done
    unasked: int = 0  # done, but not advised
    outcomes: int = 0
    gone: int = 0  # outcomes that will never come, of people who were erased
    agents: int = 0  # known to the program when it was opened
    cancelled: bool = False
    treated: Side = field(default_factory=Side)  # all that are not in the control group
    control: Side = field(default_factory=Side)

    def as_json(self) -> dict[str, Any]:
        """Plain data; not by asdict, which copies deeply and is slow where there are many rounds."""
        return {**vars(self), "treated": {**vars(self.treated)}, "control": {**vars(self.control)}}

    @property
    def waiting(self) -> int:
        """How many outcomes are still to come."""
        return 0 if self.cancelled else self.present - self.outcomes - self.gone

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Line":
        """The line again."""
        return cls(**{**record, "treated": Side(**record["treated"]), "control": Side(**record["control"])})


@dataclass
class Ledger:
    """Every agent ever seen, by number."""

    group: Ints  # code of its group, −1 for none
    active: Bools
    erased: Bools
    control: Bools
    state: Ints  # the last one known, −1 for none
    fresh: Ints  # the round in which that state holds
    touched: Ints  # the last round in which it was advised or acted on, as far as is known
    before: Ints  # the one before that
    total: Floats  # rewards, added up
    seen: Ints  # in how many rounds an outcome was seen
    groups: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    @classmethod
    def empty(cls) -> "Ledger":
        """Nobody yet."""
        none = np.zeros(0, np.int64)
        return cls(none, none > 0, none > 0, none > 0, none, none, none, none, none.astype(np.float64), none)

    @property
    def agents(self) -> int:
        """How many agents there ever were."""
        return self.group.size

    def join(self, group: Ints, control: Bools) -> None:
        """Agents appear for the first time."""
        new = np.full(group.size, NEVER)
        blank: dict[str, Any] = {
            "group": group, "active": np.ones(group.size, np.bool_), "erased": np.zeros(group.size, np.bool_),
            "control": control, "state": np.full(group.size, -1), "fresh": new, "touched": new, "before": new,
            "total": np.zeros(group.size), "seen": np.zeros(group.size, np.int64),
        }  # fmt: skip
        for name, values in blank.items():
            setattr(self, name, np.concatenate([getattr(self, name), values]))

    def advise(self, numbers: Ints, round_: int) -> None:
        """Agents are on the list of a round, which need not be the last one."""
        last, before = self.touched[numbers], self.before[numbers]
        earlier = np.where(last == round_, before, np.maximum(before, round_))
        self.before[numbers] = np.where(last < round_, last, earlier)
        self.touched[numbers] = np.maximum(last, round_)

    def tell_done(self, numbers: Ints, done: Bools, round_: int) -> None:
        """Whether the action was really done: one that failed is none."""
        failed = numbers[~done]
        back = failed[self.touched[failed] == round_]
        self.touched[back], self.before[back] = self.before[back], NEVER
        self.before[failed[self.before[failed] == round_]] = NEVER
        self.advise(numbers[done], round_)

    def see(self, numbers: Ints, state: Ints, round_: int) -> None:
        """Agents are known to be in these states in that round, unless something newer is known."""
        newer = self.fresh[numbers] < round_
        self.state[numbers[newer]], self.fresh[numbers[newer]] = state[newer], round_

    def arrays(self) -> dict[str, Any]:
        """The arrays by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("groups", "lines")}

    def about(self) -> dict[str, Any]:
        """The rest, as plain data."""
        return {"groups": self.groups, "lines": [line.as_json() for line in self.lines]}

    @classmethod
    def restore(cls, arrays: dict[str, Any], about: dict[str, Any]) -> "Ledger":
        """The ledger again."""
        return cls(**arrays, groups=list(about["groups"]), lines=[Line.from_json(line) for line in about["lines"]])
