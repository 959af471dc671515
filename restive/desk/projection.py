"""What the events of a program add up to: its config, its agents and rounds, and what each of its policies believes.

    projection = Projection(read, corrections); for event in log: projection.apply(event)

A policy meets the events in the order of the log: it ranks where a round was decided, and learns where outcomes came
in, from what was really done. Corrections known when the projection begins stand in the place of the records that they
correct, so the projection ends as if those had been right at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Ranking, as_ranking
from restive.desk import events
from restive.desk.config import Config, make_learner
from restive.desk.selection import in_control
from restive.desk.snapshots import keep, read_kept
from restive.desk.store import Event
from restive.errors import InputError
from restive.kernels import rng
from restive.policies.belief import agent_axes, flatten, grow, put, take, unflatten
from restive.types import Bools, Floats, Ints

# Rounds whose states are kept at hand for outcomes to come.
AT_HAND = 4
# A round so long ago that no rule remembers it.
NEVER = -(10**9)


@dataclass
class RewardTotals:
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
class RoundTotals:
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
    unlisted: int = 0  # done, but not advised
    outcomes: int = 0
    gone: int = 0  # outcomes that will never come, of people who were erased
    agents: int = 0  # known to the program when it was opened
    cancelled: bool = False
    treated: RewardTotals = field(default_factory=RewardTotals)  # all that are not in the control group
    control: RewardTotals = field(default_factory=RewardTotals)

    def as_json(self) -> dict[str, Any]:
        """Plain data; not by asdict, which copies deeply and is slow where there are many rounds."""
        return {**vars(self), "treated": {**vars(self.treated)}, "control": {**vars(self.control)}}

    @property
    def waiting(self) -> int:
        """How many outcomes are still to come."""
        return 0 if self.cancelled else self.present - self.outcomes - self.gone

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "RoundTotals":
        """The totals that `as_json` made a record of."""
        return cls(
            **{**record, "treated": RewardTotals(**record["treated"]), "control": RewardTotals(**record["control"])}
        )


@dataclass
class Agents:
    """Every agent ever seen, by number."""

    group: Ints  # code of its group, −1 for none
    active: Bools
    erased: Bools
    control: Bools
    state: Ints  # the last one known, −1 for none
    state_round: Ints  # the round in which that state holds
    last_action: Ints  # the last round in which it was advised or acted on, as far as is known
    previous_action: Ints  # the one before that
    total: Floats  # rewards, added up
    seen: Ints  # in how many rounds an outcome was seen

    @classmethod
    def empty(cls) -> "Agents":
        """Nobody yet."""
        none = np.zeros(0, np.int64)
        return cls(none, none > 0, none > 0, none > 0, none, none, none, none, none.astype(np.float64), none)

    @property
    def count(self) -> int:
        """How many agents there ever were."""
        return self.group.size

    def join(self, group: Ints, control: Bools) -> None:
        """Agents appear for the first time."""
        new = np.full(group.size, NEVER)
        blank: dict[str, Any] = {
            "group": group, "active": np.ones(group.size, np.bool_), "erased": np.zeros(group.size, np.bool_),
            "control": control, "state": np.full(group.size, -1), "state_round": new, "last_action": new, "previous_action": new,
            "total": np.zeros(group.size), "seen": np.zeros(group.size, np.int64),
        }  # fmt: skip
        for name, values in blank.items():
            setattr(self, name, np.concatenate([getattr(self, name), values]))

    def record_selected(self, numbers: Ints, round_: int) -> None:
        """Agents are on the list of a round, which need not be the last one."""
        last, before = self.last_action[numbers], self.previous_action[numbers]
        earlier = np.where(last == round_, before, np.maximum(before, round_))
        self.previous_action[numbers] = np.where(last < round_, last, earlier)
        self.last_action[numbers] = np.maximum(last, round_)

    def record_done(self, numbers: Ints, done: Bools, round_: int) -> None:
        """Whether the action was really done: one that failed is none."""
        failed = numbers[~done]
        back = failed[self.last_action[failed] == round_]
        self.last_action[back], self.previous_action[back] = self.previous_action[back], NEVER
        self.previous_action[failed[self.previous_action[failed] == round_]] = NEVER
        self.record_selected(numbers[done], round_)

    def record_states(self, numbers: Ints, state: Ints, round_: int) -> None:
        """Agents are known to be in these states in that round, unless something newer is known."""
        newer = self.state_round[numbers] < round_
        self.state[numbers[newer]], self.state_round[numbers[newer]] = state[newer], round_

    def arrays(self) -> dict[str, Any]:
        """The arrays by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Present(NamedTuple):
    """Who is there in a round and in which state."""

    number: Ints
    state: Ints
    carried_over: Bools  # whether that state is an older one
    reported: Bools  # whether somebody said so for this round; else it was carried on from what was known


class PolicyState:
    """A policy of the program, and what it believes of all agents."""

    def __init__(self, spec: str, config: Config) -> None:
        self.policy = make_learner(spec)
        self.config = config
        self.belief: Any = None
        self.axes = agent_axes(self.policy, self.policy.start(config.shape(2)))

    def grow(self, agents: int) -> None:
        """There are so many agents now."""
        shape = self.config.shape(agents)
        self.belief = self.policy.start(shape) if self.belief is None else grow(self.policy, self.belief, shape)

    def about(self) -> dict[str, Any]:
        """What policy it is, as plain data."""
        policy = self.policy
        return {"policy": policy.name, "version": policy.version, "settings": policy.settings()}

    def rank(self, present: Present, draws: Draws, agents: int) -> tuple[Ranking, Estimate]:
        """Its wish for a round, over those present, [1, M]."""
        whole = present.number.size == agents
        belief = self.belief if whole else take(self.belief, self.axes, present.number)
        state = np.ascontiguousarray(present.state[None], np.int64)
        shape = self.config.shape(present.number.size)
        ranking = as_ranking(self.policy.rank(belief, state, draws), shape, self.policy.name)
        estimate = self.policy.estimate(belief, state)
        if not whole:
            put(self.belief, self.axes, present.number, belief)
        return ranking, estimate

    def learn(self, number: Ints, state: Ints, done: Bools, reward: Floats, after: Ints) -> None:
        """What happened to some agents."""
        here, acted, there = (np.ascontiguousarray(row[None], np.int64) for row in (state, done, after))
        gained = np.ascontiguousarray(reward[None], np.float64)
        self.policy.learn_some(self.belief, number, here, acted, gained, there)


class Projection:
    """The state of a program after some of its events."""

    def __init__(self, read: Callable[[int], Event], corrections: Sequence[Event] = ()) -> None:
        self.read = read
        self.corrections = corrections
        self.length = 0
        self.config: Config
        self.agents = Agents.empty()
        self.groups: list[str] = []
        self.rounds: list[RoundTotals] = []
        self.policy_states: dict[str, PolicyState] = {}
        self.keys = np.zeros(1, np.uint64)
        self.at_hand: dict[int, Present] = {}
        self.ranked = 0  # the last round that all policy_states have ranked

    def apply(self, event: Event) -> None:
        """Take in the next event."""
        HANDLERS[event.kind](self, event)
        self.length = event.number + 1

    def take_config(self, config: Config) -> None:
        """Begin, or go on, by this config."""
        self.config = config
        self.keys = rng.run_keys(config.seed, np.zeros(1, np.int64))
        for slot, spec in (("policy", config.policy), ("shadow", config.shadow)):
            if spec and slot not in self.policy_states:
                self.policy_states[slot] = PolicyState(spec, config)
            if slot in self.policy_states:
                self.policy_states[slot].config = config

    def draws(self, present: Present, round_: int, budget: int) -> Draws:
        """The random numbers of a round: those of step round - 1 of a simulation with this seed."""
        return Draws(self.keys, present.number, round_ - 1, min(budget, present.number.size))

    def rank(self, present: Present, round_: int, budget: int) -> dict[str, tuple[Ranking, Estimate]]:
        """The wish of each policy_state."""
        draws = self.draws(present, round_, budget)
        self.ranked = round_
        return {
            slot: policy_state.rank(present, draws, self.agents.count)
            for slot, policy_state in self.policy_states.items()
        }

    def totals(self, round_: int) -> RoundTotals:
        """The totals of a round; rounds count from 1."""
        return self.rounds[round_ - 1]

    @property
    def next_round(self) -> int:
        """The number of the round that comes next."""
        return len(self.rounds) + 1

    def present(self, round_: int) -> Present:
        """Who was there in a round, as far as is known now."""
        if round_ not in self.at_hand:
            self._keep_at_hand(round_, self.read(self.totals(round_).opened))
        return self.at_hand[round_]

    def _keep_at_hand(self, round_: int, event: Event) -> Present:
        columns = self._right(event, "states", ("state", "carried_over", "reported"))
        number, state = (columns[name].astype(np.int64) for name in ("number", "state"))
        self.at_hand[round_] = Present(number, state, columns["carried_over"], columns["reported"])
        while len(self.at_hand) > AT_HAND:
            del self.at_hand[next(iter(self.at_hand))]
        return self.at_hand[round_]

    def _right(self, event: Event, what: str, names: Sequence[str]) -> dict[str, Any]:
        """The columns of an event, as later corrections would have them."""
        columns = dict(event.columns)
        for later in self._later(event, what):
            _, here, there = np.intersect1d(
                columns["number"], later.columns["number"], assume_unique=True, return_indices=True
            )
            for name in names:
                columns[name] = columns[name].copy()
                columns[name][here] = later.columns[name][there]
        return columns

    def _later(self, event: Event, what: str) -> list[Event]:
        """The corrections of an event."""
        mine = (later for later in self.corrections if later.round == event.round and later.number > event.number)
        return [later for later in mine if later.header["what"] == what]

    def _created(self, event: Event) -> None:
        self.take_config(Config.from_json(event.header))

    def _changed(self, event: Event) -> None:
        self.take_config(self.config.changed(event.header))

    def _joined(self, event: Event) -> None:
        number, group = (event.columns[name].astype(np.int64) for name in ("number", "group"))
        if number.size and number[0] != self.agents.count:
            raise InputError(f"event {event.number}: agents join as {number[0]}, there are {self.agents.count}.")
        self._name_groups(event)
        self.agents.join(group, in_control(self.config.seed, self.config.control, number))
        for policy_state in self.policy_states.values():
            policy_state.grow(self.agents.count)

    def _grouped(self, event: Event) -> None:
        self._name_groups(event)
        self.agents.group[event.columns["number"]] = event.columns["group"]

    def _name_groups(self, event: Event) -> None:
        self.groups += [name for name in event.header["groups"] if name not in self.groups]

    def _left(self, event: Event) -> None:
        self.agents.active[event.columns["number"]] = False

    def _erased(self, event: Event) -> None:
        self.agents.active[event.columns["number"]] = False
        self.agents.erased[event.columns["number"]] = True
        for round_, missing in event.header["missing"].items():
            self.totals(int(round_)).gone += missing

    def _opened(self, event: Event) -> None:
        assert event.round is not None
        present = self._keep_at_hand(event.round, event)
        reported = ~present.carried_over
        self.agents.active[present.number] = True
        self.agents.state[present.number[reported]], self.agents.state_round[present.number[reported]] = (
            present.state[reported],
            event.round,
        )
        header = event.header
        line = RoundTotals(
            event.round, event.at, event.number, header["budget"], present.number.size, int((~reported).sum())
        )
        line.agents = self.agents.count
        self.rounds.append(line)

    def _decided(self, event: Event) -> None:
        assert event.round is not None
        present, line = self.present(event.round), self.totals(event.round)
        if self.ranked != event.round:
            self.rank(present, event.round, line.budget)
        chosen = event.columns["chosen"]
        self.agents.record_selected(present.number[chosen], event.round)
        line.at = event.at
        line.decided, line.advised, line.explored = event.number, int(chosen.sum()), event.header["explored"]
        line.benefit = event.header["benefit"]

    def _cancelled(self, event: Event) -> None:
        assert event.round is not None
        line = self.totals(event.round)
        line.cancelled = True
        if line.decided >= 0:
            advised = self.present(event.round).number[self.read(line.decided).columns["chosen"]]
            self.agents.record_done(advised, np.zeros(advised.size, np.bool_), event.round)

    def _outcomes(self, event: Event) -> None:
        assert event.round is not None
        columns = self._right(event, "outcomes", ("done", "reward", "after"))
        whole = event.columns["after"] >= 0  # a row that only said what was done is corrected in that alone
        number, done = columns["number"].astype(np.int64), columns["done"]
        self.agents.record_done(number, done, event.round)
        self._count(self.totals(event.round), columns)
        if whole.any():
            self._learn(event.round, number[whole], done[whole], columns["reward"][whole], columns["after"][whole])

    def _count(self, line: RoundTotals, columns: dict[str, Any]) -> None:
        new, done, advised = ~columns["known"], columns["done"], columns["advised"]
        line.done += int((new & done).sum())
        line.failed += int((new & advised & ~done).sum())
        line.unlisted += int((new & done & ~advised).sum())

    def _learn(self, round_: int, number: Ints, done: Bools, reward: Floats, after: Ints) -> None:
        agents, line, present = self.agents, self.totals(round_), self.present(round_)
        agents.record_states(number, after.astype(np.int64), round_ + 1)
        agents.total[number] += reward
        agents.seen[number] += 1
        line.outcomes += number.size
        control = agents.control[number]
        line.control.add(reward[control])
        line.treated.add(reward[~control])
        state = present.state if number.size == present.number.size else None
        if state is None:
            state = present.state[np.searchsorted(present.number, number)]
        for policy_state in self.policy_states.values():
            policy_state.learn(number, state, done, reward, after)

    def _corrected(self, event: Event) -> None:
        if all(known.number != event.number for known in self.corrections):
            raise InputError(f"event {event.number}: a correction that the projection did not begin with.")

    def dump(self) -> bytes:
        """All of it as bytes."""
        about = {
            "length": self.length,
            "ranked": self.ranked,
            "config": self.config.as_json(),
            "policy_states": {slot: policy_state.about() for slot, policy_state in self.policy_states.items()},
            "groups": self.groups,
            "rounds": [totals.as_json() for totals in self.rounds],
        }
        arrays = {f"agents.{name}": array for name, array in self.agents.arrays().items()}
        for slot, policy_state in self.policy_states.items():
            arrays |= {f"{slot}.{name}": array for name, array in flatten(policy_state.belief).items()}
        return keep(about, arrays)

    def restore(self, content: bytes) -> None:
        """Go on from what `dump` wrote; refused if it is of other policies than those of the config as they are here."""
        about, arrays = read_kept(content)
        try:
            self._restore(about, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a snapshot that this version cannot read ({error}).") from None

    def _restore(self, about: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.take_config(Config.from_json(about["config"]))
        if about["policy_states"] != {slot: policy_state.about() for slot, policy_state in self.policy_states.items()}:
            raise InputError("a snapshot of other policies, or of another version of them.")
        self.agents = Agents(**_within("agents.", arrays))
        self.groups = list(about["groups"])
        self.rounds = [RoundTotals.from_json(record) for record in about["rounds"]]
        for slot, policy_state in self.policy_states.items():
            policy_state.belief = unflatten(
                policy_state.policy.start(self.config.shape(1)), _within(f"{slot}.", arrays)
            )
        self.length, self.ranked = about["length"], about["ranked"]


def _within(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


HANDLERS: dict[str, Callable[[Projection, Event], None]] = {
    events.CREATED: Projection._created,
    events.CHANGED: Projection._changed,
    events.JOINED: Projection._joined,
    events.GROUPED: Projection._grouped,
    events.LEFT: Projection._left,
    events.ERASED: Projection._erased,
    events.OPENED: Projection._opened,
    events.DECIDED: Projection._decided,
    events.OUTCOMES: Projection._outcomes,
    events.CORRECTED: Projection._corrected,
    events.CANCELLED: Projection._cancelled,
}
