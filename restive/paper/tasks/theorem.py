"""Theorem 3.1, checked exactly: random instances of every case of its proof, and a hunt for the hardest one."""

import numpy as np

from restive.files import Columns
from restive.paper.worst_case import CASES, REWARD, draw_cases, search_margin
from restive.solvers.homogeneous_dp import solve_counts


def theorem(agents: int, budget: int, horizon: int, per_case: int, seed: int) -> Columns:
    """For each case of the proof: instances, the largest gap of greedy to the optimum, and its smallest margin."""
    transition, case = draw_cases(per_case, seed)
    found = solve_counts(transition, REWARD, agents, budget, horizon, threads=1)
    cases = np.arange(len(CASES))
    return {
        "case": cases,
        "instances": np.array([(case == each).sum() for each in cases]),
        "gap": np.array([found.gap[case == each].max() for each in cases]),
        "margin": np.array([found.margin[case == each].min() for each in cases]),
    }


def hardest(agents: int, budget: int, horizon: int, starts: int, rounds: int, seed: int) -> Columns:
    """The smallest margin that a search finds, and its four chances of reaching state 1, by action and state."""
    found = search_margin(agents, budget, horizon, starts, rounds, seed)
    chances = found.transition[..., 1].ravel()
    names = ("wait_0", "wait_1", "act_0", "act_1")
    return {"margin": np.array([found.margin])} | {
        name: np.array([chance]) for name, chance in zip(names, chances, strict=True)
    }
