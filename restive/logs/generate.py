"""Histories with a known truth, for the acceptance checks and tests: people of a problem family under a logging rule."""

from dataclasses import replace

import numpy as np
import polars as pl

from restive.logs.gaps import find_gaps
from restive.logs.history import History
from restive.problem import Problem
from restive.types import Floats


def draw_people(alpha: Floats, value: Floats, people: int, seed: int, budget: int = 0) -> Problem:
    """People whose rows are drawn from Dirichlet distributions with parameters [A, S, S], as a problem.

    >>> draw_people(np.full((2, 3, 3), 2.0), np.arange(3.0), people=5, seed=1).shape
    (5, 3)
    """
    rows = np.random.default_rng([seed, 1]).standard_gamma(np.broadcast_to(alpha, (people, *alpha.shape)))
    rows = np.maximum(rows, np.finfo(float).tiny)
    return Problem(rows / rows.sum(axis=-1, keepdims=True), value, budget)


def generate_history(
    problem: Problem, rounds: int, seed: int, rule: Floats | float = 0.3, known_propensity: bool = True
) -> History:
    """The history of a problem's agents, each acted on with the probability `rule`, a number or [S] by state.

    >>> from restive import make_problems
    >>> history = generate_history(make_problems("two-state-v1", instances=1)[0], rounds=4, seed=1)
    >>> history.n_agents, history.n_rounds, history.agent.size
    (50, 4, 200)
    """
    agents, states = problem.shape
    generator = np.random.default_rng(seed)
    probability = np.broadcast_to(np.asarray(rule, float), states)
    state = np.empty((agents, rounds + 1), np.int64)
    action = np.empty((agents, rounds), np.int64)
    state[:, 0] = generator.integers(states, size=agents) if problem.start is None else problem.start
    everyone = np.arange(agents)
    cumulative = problem.transition.cumsum(axis=-1)
    for step in range(rounds):
        if problem.drift is not None:
            cumulative = problem.at(step).transition.cumsum(axis=-1)
        now = state[:, step]
        action[:, step] = generator.random(agents) < probability[now]
        rows = cumulative[everyone, action[:, step], now]
        state[:, step + 1] = np.minimum((generator.random((agents, 1)) >= rows).sum(axis=-1), states - 1)
    agent = np.repeat(everyone, rounds)
    after = state[:, 1:].ravel()
    return History(
        agents=pl.Series([f"p{number}" for number in everyone]),
        states=problem.states or tuple(f"s{number}" for number in range(states)),
        rounds=pl.Series(range(1, rounds + 1)),
        agent=agent,
        round=np.tile(np.arange(1, rounds + 1), agents),
        state=state[:, :-1].ravel(),
        action=action.ravel(),
        next_state=after,
        reward=problem.reward[agent, after],
        value=problem.reward.mean(axis=0),
        propensity=probability[state[:, :-1].ravel()] if known_propensity else None,
    )


def hide_states(history: History, rate: Floats | float, seed: int) -> History:
    """A history of complete rows in which each state, [S] by state or one number for all, is unknown with a probability."""
    people, rounds = history.n_agents, history.n_rounds
    states = np.concatenate([history.state.reshape(people, rounds), history.next_state[rounds - 1 :: rounds, None]], 1)
    probability = np.broadcast_to(np.asarray(rate, float), history.n_states)[states]
    states[np.random.default_rng(seed).random(states.shape) < probability] = -1
    state, following = states[:, :-1].ravel(), states[:, 1:].ravel()
    kept = state >= 0
    hidden = replace(history, next_state=following, reward=np.where(following >= 0, history.reward, np.nan)).select(
        kept
    )
    everyone, actions = np.arange(people), np.zeros((people, rounds + 1), np.int64)
    actions[:, :-1] = history.action.reshape(people, rounds)
    gaps = find_gaps(
        np.repeat(everyone, rounds + 1), np.tile(np.arange(rounds + 1), people), states.ravel(), actions.ravel()
    )
    return replace(hidden, state=state[kept], gaps=gaps)
