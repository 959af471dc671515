"""The registry of problem families by versioned id; a change of the instances gets a new version.

A family is a function that returns instances. Instance i and agent n of a seed do not depend on how many there are.
"""

import difflib
import inspect
from collections.abc import Callable, Mapping

from restive.errors import InputError, check_whole
from restive.kernels.rng import MAX_SEED
from restive.problem import Problem
from restive.problems.counterexamples import counterexample_heterogeneous, counterexample_three_state
from restive.problems.domains import (
    e_commerce,
    e_learning,
    general_usage,
    loyalty,
    maternal_health,
    patient_management,
    pharmacy,
)
from restive.problems.features import features
from restive.problems.many_state import ladder, many_state, normalized_rows
from restive.problems.two_state import (
    change,
    few_types,
    harmful,
    helpful,
    ordered,
    own_rewards,
    slow_drift,
    some_harmed,
    some_harmed_at_most,
    sticky,
    two_state,
    visits,
)
from restive.problems.wireless import wireless

PROBLEMS: Mapping[str, Callable[..., list[Problem]]] = {
    "two-state-v1": two_state,
    "many-state-v1": many_state,
    "normalized-rows-v1": normalized_rows,
    "wireless-v1": wireless,
    "few-types-v1": few_types,
    "own-rewards-v1": own_rewards,
    "sticky-v1": sticky,
    "harmful-v1": harmful,
    "helpful-v1": helpful,
    "some-harmed-v1": some_harmed,
    "some-harmed-at-most-v1": some_harmed_at_most,
    "visits-v1": visits,
    "ladder-v1": ladder,
    "change-v1": change,
    "slow-drift-v1": slow_drift,
    "features-v1": features,
    "general-usage-v1": general_usage,
    "e-commerce-v1": e_commerce,
    "e-learning-v1": e_learning,
    "loyalty-v1": loyalty,
    "patient-management-v1": patient_management,
    "pharmacy-v1": pharmacy,
    "maternal-health-v1": maternal_health,
    "ordered-v1": ordered,
    "counterexample-heterogeneous-v1": counterexample_heterogeneous,
    "counterexample-three-state-v1": counterexample_three_state,
}


def make_problems(name: str, **settings: int) -> list[Problem]:
    """Make instances of a family of problems.

    Parameters
    ----------
    name
        The id of a family, such as "two-state-v1"; `PROBLEMS` has all of them.
    settings
        The settings of the family, whole numbers: for most `instances`, `agents`, `budget` and `seed`, for some also
        others, such as `states` or `types`.

    Returns
    -------
    list of Problem
        One for each instance. Instance i and agent n of a seed do not depend on how many there are.

    Raises
    ------
    InputError
        If there is no such family or setting, or a value is not valid.

    Examples
    --------
    >>> make_problems("two-state-v1", instances=2, agents=20, budget=4, seed=7)
    [Problem('two-state-v1', agents=20, states=2, budget=4), Problem('two-state-v1', agents=20, states=2, budget=4)]
    """
    if name not in PROBLEMS:
        near = difflib.get_close_matches(name, PROBLEMS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InputError(f"there is no problem {name!r}; there are {', '.join(PROBLEMS)}{hint}")
    family = PROBLEMS[name]
    known = inspect.signature(family).parameters
    for key, value in settings.items():
        if key not in known:
            has = ", ".join(known) if known else "none, it is fixed"
            raise InputError(f"{name} has no setting {key!r}. Its settings: {has}.")
        check_whole(key, value, 0 if key in ("seed", "budget", "relevance") else 1, MAX_SEED if key == "seed" else None)
    return family(**settings)
