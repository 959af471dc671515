"""Simulation against a clean NumPy loop: the same policies, vectorised over agents, one run at a time.

The learner of our own stands against eps-GT in the same loop, in turns.
"""

from functools import partial

import numpy as np

from benchmarks.timing import Row, best_of
from restive import Problem, make_problems, simulate
from restive.types import Floats, Ints

AGENTS, BUDGET, HORIZON, INSTANCES, RUNS = 50, 10, 1000, 50, 13


def rows() -> list[Row]:
    problems = make_problems("two-state-v1", instances=INSTANCES, agents=AGENTS, budget=BUDGET, seed=7)
    work = INSTANCES * RUNS * AGENTS * HORIZON
    found = []
    for name, loop in (("egt", play_egt), ("wiql", play_wiql)):
        simulate(problems[0], name, horizon=2)
        ours = best_of(partial(simulate, problems, name, HORIZON, RUNS, seed=7), 5) / work
        theirs = best_of(partial(loop, problems[0], seed=0), 5) / (AGENTS * HORIZON)
        what = f"{name}, N=50, S=2, T=1000, 50 x 13 runs, one agent-step ({1e-6 / ours:.0f} M/s)"
        found.append(Row(what, "NumPy loop", ours, theirs, "≥ 40"))
    return [*found, lagrange_against_egt(problems)]


def lagrange_against_egt(problems: list[Problem]) -> Row:
    """What an agent-step of `lagrange` takes beside one of `egt`."""
    best = {"lagrange": np.inf, "egt": np.inf}
    for name in best:
        simulate(problems[0], name, horizon=100)
    for _ in range(5):
        for name in best:
            best[name] = min(best[name], best_of(partial(simulate, problems, name, HORIZON, RUNS, seed=7), 1))
    work = INSTANCES * RUNS * AGENTS * HORIZON
    what = f"lagrange, N=50, S=2, T=1000, 50 x 13 runs, one agent-step ({1e-6 * work / best['lagrange']:.0f} M/s)"
    return Row(what, "egt", best["lagrange"] / work, best["egt"] / work, "≤ 3")


def play_egt(problem: Problem, seed: int) -> Floats:
    """Algorithm 1 of the eps-GT paper for one run."""
    rng = np.random.default_rng(seed)
    place = np.arange(AGENTS)
    good, reward, gamma = problem.transition[..., 1], problem.reward, -89 / 90
    state = rng.integers(0, 2, AGENTS)
    visits, total, gained = np.zeros((AGENTS, 2, 2)), np.zeros((AGENTS, 2, 2)), np.empty(HORIZON)
    for t in range(HORIZON):
        seen, summed = visits[place, state], total[place, state]
        epsilon = min(1.0, 0.3 / ((seen.sum(axis=1).min() + 1) * 0.5))
        action = np.zeros(AGENTS, np.int64)
        if rng.random() < epsilon:
            action[rng.permutation(AGENTS)[:BUDGET]] = 1
        else:
            known = (seen > 0).all(axis=1)
            mean = summed / np.maximum(seen, 1)
            estimate = np.where(known, mean[:, 1] - mean[:, 0], 0.0)
            priority = np.where(estimate >= gamma, estimate + 10.0, estimate)
            low = estimate < gamma
            if low.any():
                width = np.sqrt(np.log(np.log(2 * seen[low] + 0.72 * np.log(10.4 * HORIZON))) / (seen[low] + 2))
                priority[low] += width.sum(axis=1) - 10.0
            order = np.lexsort((rng.random(AGENTS), priority))
            action[order[-BUDGET:]] = 1
        after = (rng.random(AGENTS) < good[place, action, state]).astype(np.int64)
        pay = reward[place, after]
        visits[place, state, action] += 1
        total[place, state, action] += pay
        gained[t] = pay.sum()
        state = after
    return gained


def play_wiql(problem: Problem, seed: int) -> Floats:
    """WIQL for one run."""
    rng = np.random.default_rng(seed)
    place = np.arange(AGENTS)
    good, reward = problem.transition[..., 1], problem.reward
    state: Ints = rng.integers(0, 2, AGENTS)
    worth, visits, gained = np.zeros((AGENTS, 2, 2)), np.zeros((AGENTS, 2, 2)), np.empty(HORIZON)
    for t in range(HORIZON):
        action = np.zeros(AGENTS, np.int64)
        if rng.random() < AGENTS / (AGENTS + t):
            action[rng.permutation(AGENTS)[:BUDGET]] = 1
        else:
            here = worth[place, state]
            order = np.lexsort((rng.random(AGENTS), here[:, 1] - here[:, 0]))
            action[order[-BUDGET:]] = 1
        after = (rng.random(AGENTS) < good[place, action, state]).astype(np.int64)
        pay = reward[place, after]
        visits[place, state, action] += 1
        target = pay + 0.9 * worth[place, after].max(axis=1)
        worth[place, state, action] += (target - worth[place, state, action]) / (visits[place, state, action] + 1)
        gained[t] = pay.sum()
        state = after
    return gained
