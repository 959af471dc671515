"""Loads what processes that are forked from here would each load: modules and compiled kernels; no threads are started."""

from restive.problems import make_problems
from restive.simulation import simulate

for policy in ("lagrange", "wiql"):
    problems = make_problems("two-state-v1", instances=1, agents=30, budget=4, seed=1)
    simulate(problems, policy, horizon=3, runs=1, seed=1)
