"""Acceptance of the warm start: what a right history brings to the learner in its first rounds, and what a wrong one costs."""

from collections.abc import Sequence

import numpy as np

from restive.contract import KnownMoves
from restive.logs.acceptance import Check, Result
from restive.logs.fit import fit
from restive.logs.generate import generate_history
from restive.problem import Problem
from restive.problems import make_problems
from restive.simulation import simulate
from restive.types import Floats

ROUNDS, AGENTS, BUDGET, RUNS = 100, 50, 10, 2
HISTORY_ROUNDS, LOGGED_SHARE, DRAWS = 30, 0.2, 20
INSTANCES, QUICK_INSTANCES = 100, 6
# Share of the gap with a right history, and loss by a wrong one; wider with few instances.
WANTED, QUICK_WANTED = (0.90, 0.02), (0.85, 0.05)
# Problems of other people, for wrong histories.
OTHER_SEED = 10_000


def check_warm_start(quick: bool, seed: int = 0) -> list[Result]:
    """The share of the gap from random to the Whittle oracle over 100 rounds, with and without histories."""
    size = {"instances": QUICK_INSTANCES if quick else INSTANCES, "agents": AGENTS, "budget": BUDGET}
    problems = make_problems("two-state-v1", **size, seed=seed)
    others = make_problems("two-state-v1", **size, seed=seed + OTHER_SEED)
    low, high, cold = (_rewards(problems, policy, seed) for policy in ("random", "whittle-oracle", "lagrange"))
    gap, (least, most) = (high - low).mean(), QUICK_WANTED if quick else WANTED
    results = []
    for what, source in _sources(problems, others).items():
        histories = [_fit(problem, [seed, number]) for number, problem in enumerate(source)]
        warm = _rewards(problems, "lagrange", seed, histories)
        difference, closed = (warm - cold) / gap, (warm - low).mean() / gap
        error = 1.96 * difference.std(ddof=1) / np.sqrt(len(problems))
        note = f"{len(problems)} problems"
        shown = f"{closed:.3f}, {difference.mean():+.3f} ± {error:.3f} against cold"
        if what == "right":
            wanted, holds = f"≥ {least:.2f} of the gap", bool(closed >= least)
            results.append(Result("history that is right", wanted, shown, holds, note))
        else:
            wanted, holds = f"≤ {most} below cold", bool(difference.mean() >= -most)
            results.append(Result(f"history that is wrong: {what}", wanted, shown, holds, note))
    return results


def _sources(problems: list[Problem], others: list[Problem]) -> dict[str, list[Problem]]:
    """The problems that histories are of."""
    every_second = (np.arange(AGENTS) % 2 == 0)[:, None, None, None]
    pairs = list(zip(problems, others, strict=True))
    return {
        "right": problems,
        "of other people": others,
        "of other people, every second": [
            _with_rows(one, np.where(every_second, one.transition, two.transition)) for one, two in pairs
        ],
        "of another action": [
            _with_rows(one, np.stack([one.transition[:, 0], two.transition[:, 1]], axis=1)) for one, two in pairs
        ],
        "actions mixed up": [_with_rows(one, one.transition[:, ::-1]) for one in problems],
    }


def _with_rows(problem: Problem, rows: Floats) -> Problem:
    return Problem(rows, problem.reward, BUDGET, states=problem.states)


def _fit(problem: Problem, seed: list[int]) -> KnownMoves:
    drawn = int(np.random.default_rng(seed).integers(2**31))
    return fit(generate_history(problem, HISTORY_ROUNDS, drawn, LOGGED_SHARE), draws=DRAWS, types=1, held_out=False)


def _rewards(problems: list[Problem], policy: str, seed: int, histories: Sequence[KnownMoves] | None = None) -> Floats:
    """The mean reward per round on each problem, [I]."""
    trace = simulate(problems, policy, ROUNDS, runs=RUNS, seed=seed, threads=1, history=histories)
    return np.asarray(trace.reward.reshape(len(problems), -1).mean(axis=1))


CHECKS = (Check("warm start", check_warm_start),)
