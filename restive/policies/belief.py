"""Beliefs as named arrays: flattening, rows of some agents, and growth by new agents.

axes  the axis of agents of each array by its flattened name, None where all agents share the array

A policy declares its axes (`Policy.agent_axes`); `require_axes` compares the declaration with the arrays themselves.
"""

from typing import Any, TypeVar

import numpy as np

from restive.contract import Shape
from restive.errors import InputError
from restive.policies.base import Learner, Policy
from restive.types import Ints

Belief = TypeVar("Belief")
Axes = dict[str, int | None]


def flatten(belief: Any) -> dict[str, Any]:
    """The arrays of a belief by name; arrays of a nested NamedTuple are named "outer.inner"."""
    arrays: dict[str, Any] = {}
    for name, value in belief._asdict().items():
        if hasattr(value, "_asdict"):
            arrays |= {f"{name}.{inner}": array for inner, array in flatten(value).items()}
        else:
            arrays[name] = value
    return arrays


def unflatten(like: Belief, arrays: dict[str, Any], prefix: str = "") -> Belief:
    """A belief of the same NamedTuples as `like` with these arrays, by flattened name."""
    fields: dict[str, Any] = like._asdict()  # type: ignore[attr-defined]
    return type(like)(
        **{
            name: unflatten(value, arrays, f"{prefix}{name}.") if hasattr(value, "_asdict") else arrays[prefix + name]
            for name, value in fields.items()
        }
    )


def agent_axes(policy: Policy[Any], belief: Any) -> Axes:
    """The axis of agents of each array of a belief, as the policy declares it.

    >>> from restive.policies.egt import Egt
    >>> shape = Shape(runs=1, agents=9, states=2, budget=1, horizon=None, reward_range=np.ones(1))
    >>> agent_axes(Egt(), Egt().start(shape))
    {'visits': 1, 'total': 1, 'gamma': None, 'gap_squared': None, 'horizon': None}
    """
    arrays = flatten(belief)
    if unknown := set(policy.agent_axes) - set(arrays):
        raise InputError(f"{policy.name}: agent_axes names {min(unknown)}, which its belief does not have.")
    return {
        name: policy.agent_axes[name] if name in policy.agent_axes else 1 if np.ndim(array) > 1 else None
        for name, array in arrays.items()
    }


def require_axes(policy: Policy[Any], shape: Shape) -> None:
    """Raise InputError unless the declared axes are those that change with the number of agents."""
    if not isinstance(policy, Learner):
        raise InputError(f"{policy.name}: an oracle knows its agents from the start; only a learner's belief can grow.")
    fewer, more = (
        policy.start(
            shape._replace(
                runs=1,
                agents=agents,
                budget=min(shape.budget, 2),
                reward_range=np.asarray(shape.reward_range)[:1],
                features=None if shape.features is None else np.zeros((1, agents, shape.features.shape[2])),
                cost=None if shape.cost is None else np.ones((1, agents)),
            )
        )
        for agents in (2, 3)
    )
    sizes = {name: array.shape for name, array in flatten(fewer).items()}
    larger = {name: array.shape for name, array in flatten(more).items()}
    for name, axis in agent_axes(policy, fewer).items():
        size, other = sizes[name], larger.get(name, ())
        expected = size if axis is None or size[axis : axis + 1] != (2,) else (*size[:axis], 3, *size[axis + 1 :])
        if other != expected or (axis is not None and size == other):
            declared = "shared by all agents" if axis is None else f"declared to have agents on axis {axis}"
            raise InputError(
                f"{policy.name}: {name} of its belief has shape {list(size)} with 2 agents and {list(other)} with 3, "
                f"but is {declared}; make it [R, N, ...], or declare its axis of agents in agent_axes (None if shared)."
            )


def count_agents(belief: Any, axes: Axes) -> int | None:
    """The number of agents of a belief; None if none of its arrays has an axis of agents."""
    arrays = flatten(belief)
    sizes = (arrays[name].shape[axis] for name, axis in axes.items() if axis is not None)
    return next(sizes, None)


def take(belief: Belief, axes: Axes, agents: Ints) -> Belief:
    """A copy of the rows of some agents; shared arrays are the same objects."""
    arrays = {
        name: array if axes[name] is None else np.take(array, agents, axis=axes[name])
        for name, array in flatten(belief).items()
    }
    return unflatten(belief, arrays)


def put(belief: Any, axes: Axes, agents: Ints, part: Any) -> None:
    """Write rows that `take` returned, changed since, back to their agents."""
    arrays, parts = flatten(belief), flatten(part)
    for name, axis in axes.items():
        if axis is not None:
            arrays[name][(slice(None),) * axis + (agents,)] = parts[name]


def grow(policy: Policy[Any], belief: Belief, shape: Shape) -> Belief:
    """A belief about `shape.agents` agents: the present ones, then new ones initialised by `Policy.welcome`."""
    if not isinstance(policy, Learner):
        raise InputError(f"{policy.name}: an oracle knows its agents from the start; only a learner's belief can grow.")
    axes = agent_axes(policy, belief)
    before = count_agents(belief, axes)
    if before is not None and shape.agents < before:
        raise InputError(f"{policy.name}: its belief is about {before} agents and cannot shrink to {shape.agents}.")
    fresh: Belief = policy.start(shape)
    grown_arrays = flatten(fresh)
    for name, array in flatten(belief).items():
        axis = axes[name]
        if axis is None:
            grown_arrays[name] = array.copy()
        else:
            _fill_front(policy, name, axis, array, grown_arrays[name])
    grown = unflatten(fresh, grown_arrays)
    if before is not None and shape.agents > before:
        policy.welcome(grown, shape.agents - before)
    return grown


def _fill_front(policy: Policy[Any], name: str, axis: int, array: Any, target: Any) -> None:
    front = target[(slice(None),) * axis + (slice(array.shape[axis]),)]
    if front.shape != array.shape:
        raise InputError(
            f"{policy.name}: {name} of its belief has shape {list(array.shape)} and should become {list(target.shape)}; "
            "only the number of agents may change."
        )
    front[...] = array
