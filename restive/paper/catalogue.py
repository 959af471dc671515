"""The experiments of the paper by name: figures first, then theorems and examples."""

import difflib
from collections.abc import Iterable, Mapping

from restive.errors import InputError
from restive.paper import (
    episodes,
    eta,
    gamma,
    good_agents,
    heterogeneous,
    homogeneous_agents,
    overtaking,
    regret_bound,
    regret_curve,
    ten_state,
    three_state,
    two_state,
    wireless,
)
from restive.paper.experiment import Experiment

_MODULES = (
    two_state, wireless, overtaking, ten_state, eta, gamma, regret_curve, regret_bound, good_agents, homogeneous_agents,
    heterogeneous, three_state, episodes,
)  # fmt: skip
EXPERIMENTS: Mapping[str, Experiment] = {each.EXPERIMENT.name: each.EXPERIMENT for each in _MODULES}


def find_experiments(names: Iterable[str]) -> list[Experiment]:
    """The experiments of these names in the catalogue's order; none, or `all`, means all of them."""
    wanted = list(names) or ["all"]
    for name in wanted:
        if name != "all" and name not in EXPERIMENTS:
            near = difflib.get_close_matches(name, EXPERIMENTS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise InputError(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}{hint}")
    return [each for each in EXPERIMENTS.values() if "all" in wanted or each.name in wanted]
