"""The belief of a learner agent by agent: where its arrays have an axis of agents, parts of it, and room for more.

axes  the axis of agents of each array by its flattened name, None where all agents share the array

Nothing has to be declared: a learner is started with two numbers of agents, and what differs in shape is the axis.
"""

from typing import Any, TypeVar

import numpy as np

from restive.errors import InputError
from restive.policies.base import Learner, Policy, Shape
from restive.types import Ints

Belief = TypeVar("Belief")
Axes = dict[str, int | None]

FEW, MORE = 2, 3


def flatten(belief: Any) -> dict[str, Any]:
    """The arrays of a belief by name; a NamedTuple within it adds its own names after a dot."""
    arrays: dict[str, Any] = {}
    for name, value in belief._asdict().items():
        if hasattr(value, "_asdict"):
            arrays |= {f"{name}.{inner}": array for inner, array in flatten(value).items()}
        else:
            arrays[name] = value
    return arrays


def refill(belief: Belief, arrays: dict[str, Any], within: str = "") -> Belief:
    """A belief of the same records with other arrays, by flattened name."""
    fields: dict[str, Any] = belief._asdict()  # type: ignore[attr-defined]
    return type(belief)(
        **{
            name: refill(value, arrays, f"{within}{name}.") if hasattr(value, "_asdict") else arrays[within + name]
            for name, value in fields.items()
        }
    )


def agent_axes(policy: Policy[Any], shape: Shape) -> Axes:
    """The axis of agents of each array of a learner's belief, None where there is none.

    >>> from restive.policies.egt import Egt
    >>> agent_axes(Egt(), Shape(runs=1, agents=9, states=2, budget=1, horizon=None, reward_range=np.ones(1)))
    {'visits': 1, 'total': 1, 'gamma': None, 'gap_squared': None, 'horizon': None}
    """
    few, more = (flatten(_start_small(policy, shape, agents)) for agents in (FEW, MORE))
    return {name: _axis(policy, name, few[name].shape, more[name].shape) for name in few}


def _start_small(policy: Policy[Any], shape: Shape, agents: int) -> Any:
    if not isinstance(policy, Learner):
        raise InputError(f"{policy.name}: an oracle knows its agents from the start; only a learner's belief can grow.")
    small = shape._replace(
        runs=1, agents=agents, budget=min(shape.budget, FEW), reward_range=np.asarray(shape.reward_range)[:1]
    )
    return policy.start(small)


def _axis(policy: Policy[Any], name: str, few: tuple[int, ...], more: tuple[int, ...]) -> int | None:
    differing = [axis for axis, sizes in enumerate(zip(few, more, strict=False)) if sizes[0] != sizes[1]]
    if not differing and len(few) == len(more):
        return None
    if len(few) != len(more) or [(few[axis], more[axis]) for axis in differing] != [(FEW, MORE)]:
        raise InputError(
            f"{policy.name}: {name} of its belief is {list(few)} with {FEW} agents and {list(more)} with {MORE}; "
            "an array must have one axis of agents, or none."
        )
    return differing[0]


def count_agents(belief: Any, axes: Axes) -> int | None:
    """How many agents a belief is about; None if none of its arrays has an axis of agents."""
    arrays = flatten(belief)
    sizes = (arrays[name].shape[axis] for name, axis in axes.items() if axis is not None)
    return next(sizes, None)


def take(belief: Belief, axes: Axes, agents: Ints) -> Belief:
    """A copy of the part of a belief that is about the agents at these places; shared arrays are the same objects."""
    arrays = {
        name: array if axes[name] is None else np.take(array, agents, axis=axes[name])
        for name, array in flatten(belief).items()
    }
    return refill(belief, arrays)


def put(belief: Any, axes: Axes, agents: Ints, part: Any) -> None:
    """Write what `take` gave, and has been changed since, back to its places."""
    arrays, parts = flatten(belief), flatten(part)
    for name, axis in axes.items():
        if axis is not None:
            arrays[name][(slice(None),) * axis + (agents,)] = parts[name]


def grow(policy: Policy[Any], belief: Belief, shape: Shape) -> Belief:
    """A belief about `shape.agents` agents: those it is about already, and newcomers at the end, made welcome."""
    axes = agent_axes(policy, shape)
    assert isinstance(policy, Learner)
    before = count_agents(belief, axes)
    if before is not None and shape.agents < before:
        raise InputError(f"{policy.name}: its belief is about {before} agents and cannot shrink to {shape.agents}.")
    fresh: Belief = policy.start(shape)
    room = flatten(fresh)
    for name, array in flatten(belief).items():
        axis = axes[name]
        if axis is None:
            room[name] = array.copy()
        else:
            _fill_front(policy, name, axis, array, room[name])
    grown = refill(fresh, room)
    if before is not None and shape.agents > before:
        policy.welcome(grown, shape.agents - before)
    return grown


def _fill_front(policy: Policy[Any], name: str, axis: int, array: Any, room: Any) -> None:
    front = room[(slice(None),) * axis + (slice(array.shape[axis]),)]
    if front.shape != array.shape:
        raise InputError(
            f"{policy.name}: {name} of its belief has shape {list(array.shape)} and is to become {list(room.shape)}; "
            "only the number of agents may change."
        )
    front[...] = array
