"""`wireless-v1`: satellite channels, each agent drawn from five measured two-state chains (the paper's section 5.2).

The numbers and their sources are in `wireless.json`; they are not the paper's own table, which is not legible. The
rewards are the paper's: 0.9 in the bad state, 1 in the good one.
"""

import json
from importlib.resources import files
from typing import Any

import numpy as np

from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import uniforms
from restive.types import Floats


def wireless(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states of reward 0.9 and 1; each agent is one of five channels, drawn uniformly."""
    record = channels()
    chains = np.stack([chain(environment) for environment in record["environments"]])
    drawn = uniforms(rng.run_keys(seed, np.arange(instances)), agents, 0)
    reward = [record["reward"][state] for state in record["states"]]
    return [
        Problem(chains[channel], reward, budget, states=tuple(record["states"]), name="wireless-v1")
        for channel in (drawn * len(chains)).astype(np.int64)
    ]


def channels() -> dict[str, Any]:
    """The data file: environments with their chains, rewards and sources."""
    record: dict[str, Any] = json.loads(files("restive.problems").joinpath("wireless.json").read_text(encoding="utf-8"))
    return record


def chain(environment: dict[str, Any]) -> Floats:
    """The transitions of one channel, [A, S, S]."""
    up, down = environment["p_good_from_bad"], environment["p_bad_from_good"]
    return np.array([[[1 - up[a], up[a]], [down[a], 1 - down[a]]] for a in ("0", "1")])
