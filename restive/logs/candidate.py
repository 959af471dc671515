"""Candidates of an evaluation: a policy, a column of the table or a rule, as priorities of the people of a history.

A candidate is held fixed within a window of rounds: it knows what was logged before the window, nothing else. So its
priorities never depend on the outcomes that it is judged by. A policy that learns has learnt from the logged rounds
before the window; an oracle plans with the expected rows of a fitted model, given everybody's moves before the window.
"""

from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from restive.contract import Draws, Model, Ranking, Shape, as_ranking
from restive.errors import InputError, did_you_mean
from restive.kernels.rng import run_keys
from restive.logs.half_life import count_weighted
from restive.logs.history import History
from restive.logs.model import FittedModel
from restive.policies import make_policy
from restive.policies.base import Learner, Policy
from restive.types import Floats, Ints

NOBODY, STATE, COLUMN = "nobody", "state:", "column:"
TOLERANCE = 1e-9  # of sums of weights
DRAWS = 30  # of the model of an oracle, which plans with its mean


class Windows(NamedTuple):
    """The rounds of a history in windows of equal length; the first rounds are left over."""

    rounds: int  # H
    first: Ints  # [K] the first round of each, from 1

    @classmethod
    def of(cls, history: History, rounds: int) -> "Windows":
        """Windows up to the last round."""
        return cls(rounds, np.arange(history.n_rounds % rounds + 1, history.n_rounds + 1, rounds))

    def find(self, round_number: Ints) -> Ints:
        """The window of each round, -1 before the first."""
        return np.asarray(np.where(round_number < self.first[0], -1, (round_number - self.first[0]) // self.rounds))


class Candidate(NamedTuple):
    """Priorities of one candidate."""

    name: str
    priority: Floats  # one for each row of the history
    explore: Floats  # [T] the probability that people are drawn at random
    table: Floats  # [K, N, S] the priority of each person in each state; zeros for windows of one round
    exact: bool = True  # whether the table is the whole rule; otherwise it is a mean
    budget: int | None = None  # None: as given or as logged
    notes: tuple[str, ...] = ()


def make_candidate(
    history: History, policy: "str | Policy[Any] | Floats", windows: Windows, model: FittedModel | None, seed: int
) -> Candidate:
    """The candidate that a text, a policy or an array of scores, one for each row, describes."""
    if isinstance(policy, np.ndarray):
        return _from_scores(history, policy.astype(np.float64), "scores", windows)
    if isinstance(policy, str) and policy.startswith(COLUMN):
        return _from_scores(history, _read_column(history, policy.removeprefix(COLUMN)), policy, windows)
    if policy == NOBODY:
        return _from_states(history, np.zeros(history.n_states), NOBODY, windows)._replace(budget=0)
    if isinstance(policy, str) and policy.startswith(STATE):
        return _from_states(history, _rank_states(history, policy), policy, windows)
    return _from_policy(history, make_policy(policy), windows, model, seed)


def _read_column(history: History, name: str) -> Floats:
    """The numbers of a column for each row: one that changes over time, or a feature."""
    if name in history.by_row:
        return history.by_row[name]
    if history.features is not None and name in history.feature_names:
        return np.asarray(history.features[history.agent, history.feature_names.index(name)])
    known = (*history.by_row, *history.feature_names)
    raise InputError(f"policy: there is no column {name!r} of numbers{did_you_mean(name, known)}", location="policy")


def _rank_states(history: History, rule: str) -> Floats:
    """The priority of each state in a rule such as "state:lapsed,new first"."""
    names = [name.strip() for name in rule.removeprefix(STATE).removesuffix(" first").split(",")]
    if unknown := [name for name in names if name not in history.states]:
        known = ", ".join(history.states)
        raise InputError(f"policy: there is no state {unknown[0]!r}; the states are {known}.", location="policy")
    priority = np.zeros(history.n_states)
    for place, name in enumerate(names):
        priority[history.states.index(name)] = len(names) - place
    return priority


def _from_states(history: History, priority: Floats, name: str, windows: Windows) -> Candidate:
    table = np.broadcast_to(priority, (windows.first.size, history.n_agents, history.n_states))
    return Candidate(name, priority[history.state], np.zeros(history.n_rounds), table)


def _from_scores(history: History, score: Floats, name: str, windows: Windows) -> Candidate:
    """Scores by row; where they depend on person and state alone, those of states never seen are filled in."""
    if score.shape != history.agent.shape or np.isnan(score).any():
        raise InputError(f"policy: {name} must have one number for each row of the history.", location="policy")
    shape = (history.n_agents, history.n_states)
    cell = np.ravel_multi_index((history.agent, history.state), shape)
    seen = np.bincount(cell, minlength=shape[0] * shape[1])
    mean = np.bincount(cell, score, seen.size) / np.maximum(seen, 1)
    fixed = np.allclose(mean[cell], score, rtol=1e-6, atol=1e-9)
    table = _fill_in(mean.reshape(shape), seen.reshape(shape))
    whole = np.broadcast_to(table, (windows.first.size, *shape))
    return Candidate(name, score, np.zeros(history.n_rounds), whole, exact=bool(fixed))


def _fill_in(mean: Floats, seen: Ints) -> Floats:
    """The mean score of each person and state, where never seen the person's mean plus the state's difference."""
    known = seen > 0
    person = np.where(known, mean, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    off = np.where(known, mean - person[:, None], 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.asarray(np.where(known, mean, person[:, None] + off))


class Follower:
    """A policy that watches a logged history; at the beginning of a window its belief is frozen."""

    def __init__(self, history: History, policy: Policy[Any], model: FittedModel | None, seed: int) -> None:
        rewards = history.reward[np.isfinite(history.reward)]
        reach = np.array([float(np.ptp(rewards)) if rewards.size else 1.0])
        budget = round(history.action.sum() / history.n_rounds)
        features = None if history.features is None else history.features[None]
        self.history, self.policy = history, policy
        self.shape = Shape(1, history.n_agents, history.n_states, budget, history.n_rounds, reach, features)
        self.keys = run_keys(seed, np.zeros(1, np.int64))
        self.learns = isinstance(policy, Learner)
        self.learnt = history.known & np.isfinite(history.reward)
        self.planner = None if self.learns else PastModel.of(history, model)
        self.belief: Any = policy.start(self.shape) if isinstance(policy, Learner) else None

    def freeze(self, number: int) -> Any:
        """The belief before round `number`."""
        if self.planner is None:
            return deepcopy(self.belief)
        return self.policy.begin(self.shape, self.planner.plan(number))

    def rank(self, belief: Any, state: Ints, number: int) -> Ranking:
        """The ranking of everybody in round `number`."""
        draws = Draws(self.keys, np.arange(self.shape.agents), number - 1, self.shape.budget)
        ranking = as_ranking(self.policy.rank(belief, state[None], draws), self.shape, self.policy.name)
        if np.isnan(ranking.priority).any():
            raise InputError(f"{self.policy.name}: rank returned a priority that is NaN.")
        return ranking

    def tabulate(self, belief: Any, number: int) -> Floats:
        """The priority of each person in each state, [N, S]; a copy of the belief is used."""
        states = np.arange(self.shape.states)
        everyone = np.ones(self.shape.agents, np.int64)
        found = [self.rank(deepcopy(belief), s * everyone, number).priority[0] for s in states.tolist()]
        return np.stack(found, axis=1)

    def learn(self, rows: Ints, state: Ints, number: int) -> None:
        """Learn from the rows of a round, having ranked everybody as the policy would have."""
        rows = rows[self.learnt[rows]]
        if self.learns and rows.size:
            self.rank(self.belief, state, number)
            part = self.history.select(rows)
            moves = (part.state[None], part.action[None], part.reward[None], part.next_state[None])
            self.policy.learn_some(self.belief, part.agent, *moves)


class PastModel(NamedTuple):
    """A model of the history's people that does not know their moves in the history, and these."""

    history: History
    model: FittedModel

    @classmethod
    def of(cls, history: History, model: FittedModel | None) -> "PastModel":
        """With the model given, or with one fitted to the history; what it knows from elsewhere is kept."""
        if model is None:
            from restive.logs.fit import fit

            model = fit(history, draws=DRAWS, held_out=False)
        if model.states != history.states:
            raise InputError("The model has other states than the history.", location="model")
        names = history.agents.cast(pl.String)
        found = names.is_in(model.agents.cast(pl.String).implode()).to_numpy()
        model = model.about(names.to_list())
        seen = count_weighted(history, model.forgetting.half_life)
        rest = (model.counts - seen) * found[:, None, None, None]
        same = (rest.sum(axis=1) >= -TOLERANCE).all()  # over both actions: they differ if advice is judged
        return cls(history, replace(model, counts=np.maximum(rest, 0.0) if same else model.counts))

    def rows(self, number: int) -> Floats:
        """The expected rows of everybody, given the moves before round `number`, [N, A, S, S]."""
        before = count_weighted(
            self.history.select(self.history.round < number), self.model.forgetting.half_life, number - 1
        )
        return replace(self.model, counts=self.model.counts + before).posterior_mean()

    def plan(self, number: int) -> Model:
        """What an oracle is told before round `number`."""
        rows = self.rows(number)[None]
        reward = np.ascontiguousarray(np.broadcast_to(self.model.value, rows.shape[:2] + rows.shape[-1:]))
        start = np.full(reward.shape, 1 / reward.shape[-1])
        return Model(rows, reward, start, np.zeros(1, np.int64))


def _from_policy(
    history: History, policy: Policy[Any], windows: Windows, model: FittedModel | None, seed: int
) -> Candidate:
    follower = Follower(history, policy, model, seed)
    window = windows.find(np.arange(1, history.n_rounds + 1))
    starts = set(windows.first.tolist())
    priority, explore = np.zeros(history.agent.size), np.zeros(history.n_rounds)
    table = np.zeros((windows.first.size, history.n_agents, history.n_states))
    by_round = np.argsort(history.round, kind="stable")
    edges = np.searchsorted(history.round[by_round], np.arange(1, history.n_rounds + 2))
    state = np.zeros(history.n_agents, np.int64)
    state[history.agent[::-1]] = history.state[::-1]  # the first one of each
    for number in range(1, history.n_rounds + 1):
        rows = by_round[edges[number - 1] : edges[number]]
        state[history.agent[rows]] = history.state[rows]
        if number in starts:
            frozen = follower.freeze(number)
            if windows.rounds > 1:
                table[window[number - 1]] = follower.tabulate(frozen, number)
        if window[number - 1] >= 0:
            ranking = follower.rank(frozen, state, number)
            priority[rows], explore[number - 1] = ranking.priority[0, history.agent[rows]], ranking.explore[0]
        follower.learn(rows, state, number)
    return Candidate(policy.name, priority, explore, table, notes=_say_knowledge(policy, windows.rounds))


def _say_knowledge(policy: Policy[Any], rounds: int) -> tuple[str, ...]:
    when = "each round" if rounds == 1 else f"each window of {rounds} rounds"
    if isinstance(policy, Learner):
        return (f"{policy.name} decides with what it has learnt from the logged rounds before {when}.",)
    return (f"{policy.name} plans with the fitted model and everybody's moves before {when}.",)
