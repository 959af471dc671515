"""The state of a program after its events: config, agents, rounds, and the belief of each policy.

    projection = Projection(read, revisions); for event in log: projection.apply(event)

A policy processes the events in the order of the log: it ranks when a round is decided, and learns when outcomes are
reported, from what was really done. Revisions are known at the start: corrections replace the records that they
correct, withdrawn and undone ones have no effect, so the projection ends as if all had been right from the start.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar

import numpy as np

from restive.contract import Draws, Estimate, Past, Ranking, as_ranking, scale_counts
from restive.desk.agents import Agents, RoundTotals
from restive.desk.codec import pack_snapshot, unpack_snapshot
from restive.desk.config import Config, make_learner
from restive.desk.events import (
    ELIGIBLE,
    Cancelled,
    Change,
    Changed,
    Corrected,
    Created,
    Decided,
    DecisionInput,
    Erased,
    Event,
    Grouped,
    Header,
    Joined,
    Left,
    Outcomes,
    Reported,
    States,
    Undone,
    WarmStarted,
    Withdrawn,
    interpret,
    standing,
)
from restive.desk.schedule import Schedule, show_time
from restive.desk.tallies import Tallies
from restive.errors import InputError
from restive.kernels import rng
from restive.policies.base import Policy
from restive.policies.belief import agent_axes, flatten, grow, put, take, unflatten
from restive.types import Bools, Floats, Ints

# Rounds whose states stay in memory, because their outcomes are likely to be reported next.
CACHED_ROUNDS = 4
Recorded = TypeVar("Recorded", States, Outcomes)
# Of the beliefs about all agents, most of which grow with the square of the number of states: 24 to 28 bytes for each agent,
# action, state and next state with lagrange. A round takes up to three times as much memory.
MAX_BELIEF_BYTES = 4 << 30

# Random stream of the control group, beyond those of the policies.
CONTROL = 2**32


def in_control(seed: int, share: float, numbers: Ints) -> Bools:
    """Whether agents are in the control group: a function of the seed and the agent's number."""
    keys = rng.branch(rng.run_keys(seed, np.zeros(1, np.int64)), CONTROL, 0)
    drawn: Bools = rng.uniform(keys, numbers)[0] < share
    return drawn


class PolicyState:
    """A policy of the program and its belief about all agents."""

    def __init__(self, spec: str, config: Config) -> None:
        self.policy = make_learner(spec)
        self.config = config
        self.belief: Any = None
        pair = self.policy.start(config.shape(2))
        self.axes = agent_axes(self.policy, pair)
        self.bytes_per_agent = sum(array.nbytes for array in flatten(pair).values()) / 2

    def grow(self, agents: int, features: Floats) -> None:
        """Extend the belief to this number of agents with these features."""
        shape = self.config.shape(agents, features=features)
        self.belief = self.policy.start(shape) if self.belief is None else grow(self.policy, self.belief, shape)

    def warm_start(self, past: Past) -> None:
        """Start from a history, if the policy can."""
        if type(self.policy).warm_start is not Policy.warm_start:
            self.policy.warm_start(self.belief, self.config.shape(past.moves.shape[1]), past)

    def about(self) -> dict[str, Any]:
        """Name, version and settings of the policy, as plain data."""
        policy = self.policy
        return {"policy": policy.name, "version": policy.version, "settings": policy.settings()}

    def rank(self, present: States, draws: Draws, agents: int) -> tuple[Ranking, Estimate]:
        """The ranking and estimate of a round for the agents present, [1, M]."""
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
        """Learn from the outcomes of some agents."""
        here, acted, there = (np.ascontiguousarray(row[None], np.int64) for row in (state, done, after))
        gained = np.ascontiguousarray(reward[None], np.float64)
        self.policy.learn_some(self.belief, number, here, acted, gained, there)


class Projection:
    """The state of a program after some of its events."""

    def __init__(self, read: Callable[[int], Event], revisions: Sequence[Event] = ()) -> None:
        self.read = read
        self.revisions = {event.number for event in revisions}
        changes = [interpret(event) for event in revisions]
        self.undone = [change.events for change in changes if isinstance(change, Undone)]
        self.corrections = [event for event in standing(revisions, self.undone) if event.kind != Undone.kind]
        self.length = 0
        self.last = 0  # the number of the last event that has an effect
        self.last_header: Header = {}  # its header; empty after a snapshot was restored
        self.digest = ""  # of the last event
        self.config: Config
        self.agents = Agents.empty()
        self.tallies: Tallies
        self.groups: list[str] = []
        self.rounds: list[RoundTotals] = []
        self.policy_states: dict[str, PolicyState] = {}
        self.keys = np.zeros(1, np.uint64)
        self.ranked = 0  # the last round that all policies have ranked
        self._states: dict[int, States] = {}  # of the last rounds used

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        if event.number != self.length:
            raise InputError(f"Event {self.length} is missing; event {event.number} comes next.")
        if not any(event.number in taken_back for taken_back in self.undone):
            self._apply(event, interpret(event))
            if event.kind != Undone.kind:
                self.last, self.last_header = event.number, event.header
        self.length, self.digest = event.number + 1, event.digest

    def _apply(self, event: Event, change: Change) -> None:
        match change:
            case Changed():
                self.use_config(self.config.changed(change.config))
            case Created():
                self.use_config(Config.from_json(change.config))
                self.tallies = Tallies.empty(len(self.config.states))
            case Grouped():
                self._add_groups(change.groups)
                self.agents.group[change.number] = change.group
            case WarmStarted():
                self._warm_start(change)
            case Joined():
                self._join(event, change)
            case Left():
                self.agents.active[change.number] = False
            case Erased():
                self._erase(change)
            case Decided():
                self._decide(event, change)
            case Reported():
                self._report(event, change)
            case Cancelled():
                self._cancel(_round_of(event))
            case Corrected() | Withdrawn() | Undone():
                if event.number not in self.revisions:
                    raise InputError(
                        f"Event {event.number} is a revision that was unknown when the projection started."
                    )

    def use_config(self, config: Config) -> None:
        """Start or continue with this config."""
        self.config = config
        self.keys = rng.run_keys(config.seed, np.zeros(1, np.int64))
        for slot, spec in (("policy", config.policy), ("shadow", config.shadow)):
            if spec and slot not in self.policy_states:
                self.policy_states[slot] = PolicyState(spec, config)
            if slot in self.policy_states:
                self.policy_states[slot].config = config

    def check_room(self, agents: int) -> None:
        """Refuse so many agents if the policies' beliefs about them would be too large."""
        size = sum(state.bytes_per_agent for state in self.policy_states.values())
        if agents * size > MAX_BELIEF_BYTES:
            raise InputError(
                f"There would be {agents} people; a program has room for at most {MAX_BELIEF_BYTES // size:.0f} people with "
                f"{len(self.config.states)} states."
            )

    def draws(self, given: DecisionInput, round_: int) -> Draws:
        """The random numbers of a round: those of step round - 1 of a simulation with this seed."""
        number, cost = given.states.number, None if given.cost is None else given.cost[None]
        budget = min(given.budget, number.size) if cost is None else given.budget
        return Draws(self.keys, number, round_ - 1, budget, cost, self.config.spend)

    def rank(self, given: DecisionInput, round_: int) -> dict[str, tuple[Ranking, Estimate]]:
        """The ranking of each policy."""
        draws, agents = self.draws(given, round_), self.agents.count
        self.ranked = round_
        return {slot: policy.rank(given.states, draws, agents) for slot, policy in self.policy_states.items()}

    def totals(self, round_: int) -> RoundTotals:
        """The totals of a round; rounds count from 1."""
        return self.rounds[round_ - 1]

    @property
    def next_round(self) -> int:
        """The number of the round that comes next."""
        return len(self.rounds) + 1

    def states(self, round_: int) -> States:
        """The agents present in a round and their states, with corrections."""
        if round_ not in self._states:
            event = self.read(self.totals(round_).event)
            self._cache_states(round_, self._correct(event, States.read(event.columns)))
        return self._states[round_]

    def _cache_states(self, round_: int, states: States) -> None:
        self._states[round_] = states
        while len(self._states) > CACHED_ROUNDS:
            del self._states[next(iter(self._states))]

    def _correct(self, event: Event, recorded: Recorded) -> Recorded:
        """The record of an event, with later corrections."""
        for later in self.corrections:
            if later.round == event.round and later.number > event.number:
                change = interpret(later)
                if isinstance(change, Corrected) and type(change.right) is type(recorded):
                    recorded.correct(change.right)
        return recorded

    def _drop_withdrawn(self, event: Event, reported: Outcomes) -> Outcomes:
        """The outcomes of an event, without those that were withdrawn later."""
        for later in self.corrections:
            if later.kind == Withdrawn.kind and later.round == event.round and later.number > event.number:
                reported = reported.take(~np.isin(reported.number, later.columns["number"]))
        return reported

    def _warm_start(self, change: WarmStarted) -> None:
        agents, number = self.agents, change.number
        agents.join(np.full(number.size, -1), self._draw_control(number), change.features)
        agents.active[:], agents.expected[:] = False, True
        self.tallies.grow(agents.count)
        moves = scale_counts(change.moves.astype(np.float64), change.about["power"])
        for policy_state in self.policy_states.values():
            policy_state.grow(agents.count, agents.features)
            policy_state.warm_start(Past(moves[None], np.array([change.about["value"]])))

    def _draw_control(self, number: Ints) -> Bools:
        """Whether new agents are in the control group: nobody who joins after its last round."""
        drawn = in_control(self.config.seed, self.config.control, number)
        return drawn & self.config.has_control(self.next_round)

    def _join(self, event: Event, change: Joined) -> None:
        if change.number.size and change.number[0] != self.agents.count:
            raise InputError(
                f"Event {event.number}: new agents start at number {change.number[0]}, but there are {self.agents.count} agents."
            )  # fmt: skip
        self._add_groups(change.groups)
        self.agents.join(change.group, self._draw_control(change.number), change.features)
        self.tallies.grow(self.agents.count)
        for policy_state in self.policy_states.values():
            policy_state.grow(self.agents.count, self.agents.features)

    def _add_groups(self, groups: Sequence[str]) -> None:
        self.groups += [name for name in groups if name not in self.groups]

    def _erase(self, change: Erased) -> None:
        self.agents.active[change.number] = False
        self.agents.erased[change.number] = True
        for round_, missing in change.missing.items():
            self.totals(round_).gone += missing

    def _decide(self, event: Event, change: Decided) -> None:
        round_, chosen = _round_of(event), change.choice["chosen"]
        states = self._correct(event, change.given.states)
        self._cache_states(round_, states)
        if self.ranked != round_:
            self.rank(replace(change.given, states=states), round_)
        new = ~states.carried_over
        self.agents.active[states.number], self.agents.expected[states.number] = True, False
        self.agents.state[states.number[new]] = states.state[new]
        self.agents.state_round[states.number[new]] = round_
        cost = change.given.cost
        if cost is not None:
            self.agents.cost[states.number] = cost
        self.agents.record_selected(states.number[chosen], round_)
        self.agents.present[states.number] += 1
        self.agents.eligible[states.number[np.isin(change.choice["exclusion"], ELIGIBLE)]] += 1
        self.agents.places[states.number[chosen]] += 1
        if self.config.has_control(round_):
            self.agents.listed[states.number[chosen]] += 1
            reached = states.number[change.choice["would_act"]]
            self.agents.first_listed[reached] = np.minimum(self.agents.first_listed[reached], round_)
        self.rounds.append(
            RoundTotals(
                round_,
                event.at,
                self._find_due(event.at),
                str(self.config.rhythm),
                event.number,
                change.given.budget,
                present=states.number.size,
                carried_over=int(states.carried_over.sum()),
                advised=int(chosen.sum()),
                planned=0.0 if cost is None else float(cost[chosen].sum()),
                explored=change.about["explored"],
                agents=self.agents.count,
            )
        )
        self._count_states(states, self.rounds[-1])

    def _count_states(self, states: States, totals: RoundTotals) -> None:
        """Count how many are in which state, by control and carried over, and how many active agents have none."""
        control = self.agents.control[states.number].astype(np.int64)
        shape = (2, 2, len(self.config.states))
        cells = np.ravel_multi_index((control, states.carried_over.astype(np.int64), states.state), shape)
        active = np.bincount(self.agents.control[self.agents.active].astype(np.int64), minlength=2)
        totals.states = np.bincount(cells, minlength=math.prod(shape)).tolist()
        totals.absent = (active - np.bincount(control, minlength=2)).tolist()

    @property
    def schedule(self) -> Schedule:
        """When rounds are due."""
        return self.config.schedule(self.rounds[0].due if self.rounds else None)

    @property
    def last_due(self) -> date | None:
        """The due date of the last round."""
        return date.fromisoformat(self.rounds[-1].due) if self.rounds else None

    def show_time(self, at: str) -> str:
        """A time of the log in the program's time zone, which is named."""
        return f"{show_time(at, self.config.timezone)} ({self.config.timezone})"

    def _find_due(self, at: str) -> str:
        """The due date of a round that is decided at this time."""
        return self.schedule.assign(self.schedule.day_of(at), self.last_due).isoformat()

    def _cancel(self, round_: int) -> None:
        totals = self.totals(round_)
        totals.cancelled = True
        advised = self.states(round_).number[self.read(totals.event).columns["chosen"]]
        self.agents.record_done(advised, np.zeros(advised.size, np.bool_), round_)

    def _report(self, event: Event, change: Reported) -> None:
        round_ = _round_of(event)
        reported = self._drop_withdrawn(event, change.outcomes)
        whole = reported.after >= 0  # before corrections: a row without a next state is corrected in `done` only
        news = self._correct(event, reported)
        self.agents.record_done(news.number, news.done, round_)
        unlisted = news.number[news.done & ~news.advised & self.config.has_control(round_)]
        before = self.agents.control[unlisted] | (self.agents.first_listed[unlisted] > round_)
        self.agents.unlisted[unlisted[before]] = True
        totals, new = self.totals(round_), ~news.known
        done, failed = new & news.done, new & news.advised & ~news.done
        self.agents.done[news.number[done]] += 1
        self.agents.failed[news.number[failed]] += 1
        totals.done += int(done.sum())
        confirmed = news.known & ~news.assumed & news.done & (news.after < 0)  # assumed before
        totals.assumed += int((done & news.assumed).sum()) - int(confirmed.sum())
        totals.failed += int(failed.sum())
        totals.spent += self._sum_costs(round_, news.number[done & news.advised])
        totals.unlisted += int((new & news.done & ~news.advised).sum())
        if whole.any():
            self._learn(round_, news if whole.all() else news.take(whole))

    def _sum_costs(self, round_: int, numbers: Ints) -> float:
        """What acting on these agents of a round cost."""
        if not self.config.cost_unit:
            return 0.0
        columns = self.read(self.totals(round_).event).columns
        return float(columns["cost"][np.searchsorted(columns["number"], numbers)].sum())

    def _learn(self, round_: int, news: Outcomes) -> None:
        """Let the policies learn from outcomes with a next state."""
        agents, totals, states, number = self.agents, self.totals(round_), self.states(round_), news.number
        agents.record_states(number, news.after, round_ + 1)
        compared = self.config.has_control(round_)
        agents.record_reward(number, news.reward, round_, compared)
        totals.outcomes += number.size
        control = agents.control[number] & compared
        totals.control.add(news.reward[control])
        totals.treated.add(news.reward[~control])
        all_present = number.size == states.number.size
        state = states.state if all_present else states.state[np.searchsorted(states.number, number)]
        shape = (2, *2 * (len(self.config.states),))
        moved = np.ravel_multi_index((news.done.astype(np.int64), state, news.after), shape)
        totals.add_moves(np.bincount(moved, minlength=math.prod(shape)))
        self.tallies.add(number, state, news.done, news.reward, news.after)
        for policy_state in self.policy_states.values():
            policy_state.learn(number, state, news.done, news.reward, news.after)

    def dump(self) -> bytes:
        """The projection as a snapshot."""
        about = {
            "length": self.length,
            "last": self.last,
            "digest": self.digest,
            "ranked": self.ranked,
            "config": self.config.as_json(),
            "policy_states": {slot: policy_state.about() for slot, policy_state in self.policy_states.items()},
            "groups": self.groups,
            "rounds": [totals.as_json() for totals in self.rounds],
        }
        arrays = {f"agents.{name}": array for name, array in self.agents.arrays().items()}
        arrays |= {f"tallies.{name}": array for name, array in self.tallies.arrays().items()}
        for slot, policy_state in self.policy_states.items():
            arrays |= {f"{slot}.{name}": array for name, array in flatten(policy_state.belief).items()}
        return pack_snapshot(about, arrays)

    def restore(self, content: bytes) -> None:
        """Restore a snapshot of `dump`; a snapshot of other policies, or of other versions of them, is refused."""
        about, arrays = unpack_snapshot(content)
        try:
            self._restore(about, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"This version cannot read the snapshot ({error}).") from None

    def _restore(self, about: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.use_config(Config.from_json(about["config"]))
        if about["policy_states"] != {slot: policy_state.about() for slot, policy_state in self.policy_states.items()}:
            raise InputError("The snapshot is of other policies, or of other versions of them.")
        self.agents = Agents(**_within("agents.", arrays))
        self.tallies = Tallies(**_within("tallies.", arrays))
        self.groups = list(about["groups"])
        self.rounds = [RoundTotals.from_json(record) for record in about["rounds"]]
        for slot, policy_state in self.policy_states.items():
            policy_state.belief = unflatten(
                policy_state.policy.start(self.config.shape(1)), _within(f"{slot}.", arrays)
            )
        self.length, self.last = about["length"], about["last"]
        self.digest, self.ranked = about["digest"], about["ranked"]


def _round_of(event: Event) -> int:
    assert event.round is not None
    return event.round


def _within(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
