"""What a projection knows of every agent, as arrays over agent numbers, and the totals of every round."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from restive.desk.schedule import label_round, mention_round
from restive.types import Bools, Floats, Ints

# A round so long ago that no rule remembers it.
NEVER = -(10**9)


@dataclass
class RewardTotals:
    """Rewards of treated or control agents in a round: their number, sum and sum of squares."""

    seen: int = 0
    total: float = 0.0
    square: float = 0.0

    def add(self, reward: Floats) -> None:
        """Add rewards."""
        self.seen += reward.size
        self.total += float(reward.sum())
        self.square += float((reward * reward).sum())


@dataclass
class RoundTotals:
    """The totals of a round."""

    round: int
    at: str  # when it was decided
    due: str  # the date when it was due, by the schedule of that time
    rhythm: str  # of that time
    event: int  # the number of its event
    budget: int
    present: int
    carried_over: int
    advised: int = 0
    planned: float = 0.0  # the costs of those advised, if people have costs
    spent: float = 0.0  # of those for whom it was done
    explored: int = 0
    done: int = 0
    assumed: int = 0  # of these, not reported, but taken as advised
    failed: int = 0  # advised, but not done
    unlisted: int = 0  # done, but not advised
    outcomes: int = 0
    gone: int = 0  # outcomes that will never come, of people who were erased
    agents: int = 0  # known to the program when it was decided
    cancelled: bool = False
    treated: RewardTotals = field(default_factory=RewardTotals)  # all that are not in the control group
    control: RewardTotals = field(default_factory=RewardTotals)
    moves: list[int] = field(default_factory=list)  # how many moved, by action, state and next state; empty: nobody yet
    states: list[int] = field(default_factory=list)  # how many are in a state, by control, carried over and state
    absent: list[int] = field(default_factory=list)  # active people without a known state, by control

    def add_moves(self, moved: Ints) -> None:
        """Add moves, [A, S, S]."""
        before = self.moves or [0] * moved.size
        self.moves = [old + new for old, new in zip(before, moved.ravel().tolist(), strict=True)]

    def as_json(self) -> dict[str, Any]:
        """Plain data; not by asdict, which copies deeply and is slow where there are many rounds."""
        return {**vars(self), "treated": {**vars(self.treated)}, "control": {**vars(self.control)}}

    @property
    def label(self) -> str:
        """The name of the round, by its date."""
        return label_round(self.due, self.rhythm)

    @property
    def mention(self) -> str:
        """The round in the middle of a sentence."""
        return mention_round(self.label, self.round)

    @property
    def waiting(self) -> int:
        """The number of outcomes that are still missing."""
        return 0 if self.cancelled else self.present - self.outcomes - self.gone

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "RoundTotals":
        """The totals from the record of `as_json`."""
        return cls(
            **{**record, "treated": RewardTotals(**record["treated"]), "control": RewardTotals(**record["control"])}
        )


@dataclass
class Activity:
    """The last state and the last actions of agents, by number."""

    state: Ints  # the last one known, −1 for none
    state_round: Ints  # the round in which that state holds
    last_action: Ints  # the last round in which it was advised or acted on, as far as is known
    previous_action: Ints  # the one before that

    def record_selected(self, numbers: Ints, round_: int) -> None:
        """Record the agents on the list of a round, which need not be the last one."""
        last, before = self.last_action[numbers], self.previous_action[numbers]
        earlier = np.where(last == round_, before, np.maximum(before, round_))
        self.previous_action[numbers] = np.where(last < round_, last, earlier)
        self.last_action[numbers] = np.maximum(last, round_)

    def record_done(self, numbers: Ints, done: Bools, round_: int) -> None:
        """Record whether the action was done; an action that failed does not count."""
        failed = numbers[~done]
        back = failed[self.last_action[failed] == round_]
        self.last_action[back], self.previous_action[back] = self.previous_action[back], NEVER
        self.previous_action[failed[self.previous_action[failed] == round_]] = NEVER
        self.record_selected(numbers[done], round_)

    def record_states(self, numbers: Ints, state: Ints, round_: int) -> None:
        """Record the states of agents in a round, unless newer ones are known."""
        newer = self.state_round[numbers] < round_
        self.state[numbers[newer]], self.state_round[numbers[newer]] = state[newer], round_


@dataclass
class Agents(Activity):
    """Every agent ever seen, by number."""

    group: Ints  # code of its group, −1 for none
    active: Bools
    erased: Bools
    control: Bools
    total: Floats  # rewards, added up
    seen: Ints  # in how many rounds an outcome was seen
    # The next four count rounds with a control group only.
    first_listed: Ints  # the first round in which it was on the list or, in the control group, would have been
    listed: Ints  # in how many rounds it was on the list
    since_total: Floats  # rewards from that first round on
    since_seen: Ints
    compared_total: Floats  # rewards in rounds with a control group, on which the lift rests
    compared_seen: Ints
    unlisted: Bools  # whether it was acted on before it was ever on the list, or in the control group
    features: Floats  # [N, F] as of joining, NaN where unknown
    expected: Bools  # in the history that the program starts from, but not in a round so far
    present: Ints  # in how many rounds it was present
    eligible: Ints  # in how many of these it could be on the list
    places: Ints  # in how many rounds it was on the list, also in those without a control group
    done: Ints  # in how many rounds the action was done
    failed: Ints  # in how many rounds it was on the list, but the action was not done
    cost: Floats  # of acting on it, as of its last round, NaN where unknown

    @classmethod
    def empty(cls) -> "Agents":
        """No agents."""
        arrays: dict[str, Any] = dict.fromkeys((each.name for each in fields(cls)), np.zeros(0, np.int64))
        arrays |= dict.fromkeys(("active", "erased", "control", "unlisted", "expected"), np.zeros(0, np.bool_))
        arrays |= dict.fromkeys(("total", "since_total", "compared_total", "cost"), np.zeros(0))
        return cls(**{**arrays, "features": np.zeros((0, 0))})

    @property
    def count(self) -> int:
        """The number of agents that ever joined."""
        return self.group.size

    def join(self, group: Ints, control: Bools, features: Floats) -> None:
        """Add new agents."""
        self.features = np.concatenate([self.features, features]) if self.count else features
        new = np.full(group.size, NEVER)
        blank: dict[str, Any] = {
            "group": group, "active": np.ones(group.size, np.bool_), "erased": np.zeros(group.size, np.bool_),
            "control": control, "state": np.full(group.size, -1), "state_round": new, "last_action": new, "previous_action": new,
            "total": np.zeros(group.size), "seen": np.zeros(group.size, np.int64), "first_listed": -new,
            "listed": np.zeros(group.size, np.int64), "since_total": np.zeros(group.size),
            "since_seen": np.zeros(group.size, np.int64), "compared_total": np.zeros(group.size),
            "compared_seen": np.zeros(group.size, np.int64), "unlisted": np.zeros(group.size, np.bool_),
            "expected": np.zeros(group.size, np.bool_), "cost": np.full(group.size, np.nan),
            **{name: np.zeros(group.size, np.int64) for name in ("present", "eligible", "places", "done", "failed")},
        }  # fmt: skip
        for name, values in blank.items():
            setattr(self, name, np.concatenate([getattr(self, name), values]))

    def record_reward(self, numbers: Ints, reward: Floats, round_: int, compared: bool) -> None:
        """Add the rewards of a round; the lift counts them if it is compared with a control group."""
        self.total[numbers] += reward
        self.seen[numbers] += 1
        if not compared:
            return
        self.compared_total[numbers] += reward
        self.compared_seen[numbers] += 1
        since = round_ >= self.first_listed[numbers]
        self.since_total[numbers[since]] += reward[since]
        self.since_seen[numbers[since]] += 1

    def arrays(self) -> dict[str, Any]:
        """The arrays by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
