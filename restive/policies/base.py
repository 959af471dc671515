"""The interface of a policy: frozen settings, and functions over a belief; all arrays are over [R, N].

    belief = policy.start(shape)                       a NamedTuple of arrays (or of such NamedTuples)
    ranking = policy.rank(belief, state, draws)        priority [R, N] and, per run, the probability of exploring
    policy.learn(belief, state, action, reward, after) update the belief's arrays in place
    policy.learn_some(belief, agents, ...)             the same when only some agents were observed
    policy.estimate(belief, state)                     what the policy decides by: benefit, error, noise
    policy.benefits(belief, shape, agents)             the benefit of acting in each state, to explain with
    policy.welcome(belief, newcomers)                  initialise agents added at the end (restive.policies.belief)
    policy.warm_start(belief, shape, past)             start from the moves of a history

Settings are the fields of a frozen dataclass. A learner gets only the shape; an oracle also gets the model. All
randomness comes from `draws`, a pure function of seed, run, step, agent and stream. The belief holds everything that a
policy remembers, so that saving its arrays saves the policy.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType, NoneType, UnionType
from typing import Any, ClassVar, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from restive.contract import Benefits, Draws, Estimate, Model, Past, Ranking, Shape, without_noise
from restive.errors import InputError
from restive.types import Floats, Ints

Belief = TypeVar("Belief")
Presets = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Policy(ABC, Generic[Belief]):
    """A rule that ranks agents; subclasses are frozen dataclasses whose fields are their settings.

    Attributes
    ----------
    name
        The policy's name in the registry, in traces and in checkpoints; by default the name of the class.
    version
        Version of the belief's layout; a checkpoint of another version is refused.
    agent_axes
        The axis of agents of each belief array for which it is not the default, None where agents share the array. By
        default arrays with two or more axes, [R, N, ...], have agents on axis 1, and all others are shared. Arrays of
        a nested NamedTuple are named "outer.inner".
    presets
        Named groups of settings, such as `authors` in "egt:authors".
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    agent_axes: ClassVar[Mapping[str, int | None]] = MappingProxyType({})
    presets: ClassVar[Presets] = MappingProxyType({})

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Use the class name as the policy's name unless it defines one."""
        super().__init_subclass__(**keywords)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for setting, value in self.settings().items():
            if isinstance(value, np.generic):
                value = value.item()
                object.__setattr__(self, setting, value)
            wanted = _allowed_types(hints[setting])
            if (isinstance(value, bool) and bool not in wanted) or not isinstance(value, wanted):
                names = " or ".join("None" if kind is NoneType else kind.__name__ for kind in wanted)
                raise InputError(f"{self.name}: {setting} is {value!r}; it must be of type {names}.")

    @abstractmethod
    def begin(self, shape: Shape, model: Model) -> Belief:
        """The belief before the first step; a learner ignores the model."""

    @abstractmethod
    def rank(self, belief: Belief, state: Ints, draws: Draws) -> Ranking | Floats:
        """The priority of acting on each agent now, [R, N]; a `Ranking` adds the probability of exploring."""

    def learn(self, belief: Belief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Update the belief in place: `action` in `state` led to `after` and `reward`, all [R, N]."""

    def learn_some(self, belief: Belief, agents: Ints, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """`learn` from the agents at positions `agents` [M], ascending, only; the other arrays are [R, M]."""
        if type(self).learn is not Policy.learn:
            raise InputError(f"{self.name}: it learns, but not from some of the agents; define learn_some.")

    def estimate(self, belief: Belief, state: Ints) -> Estimate:
        """The benefit of acting now in these states, [R, N]; does not change the belief."""
        return without_noise(np.full(state.shape, np.nan))

    def benefits(self, belief: Belief, shape: Shape, agents: Ints) -> Benefits:
        """The benefits of the agents at these positions in all states, to explain with.

        Those of `estimate`, unless a policy has another model to explain with; not known where nothing was observed.
        """
        from restive.policies import belief as arrays  # belief.py needs Learner

        part = arrays.take(belief, arrays.agent_axes(self, belief), agents)
        found = [self.estimate(part, np.full((shape.runs, agents.size), s)) for s in range(shape.states)]
        error = np.stack([each.error for each in found], axis=-1)
        benefit = np.where(np.isinf(error), np.nan, np.stack([each.benefit for each in found], axis=-1))
        known = np.isfinite(benefit)
        mean = np.where(known, benefit, 0.0).sum(axis=1) / np.where(known.any(axis=1), known.sum(axis=1), np.nan)
        return Benefits(benefit, error, mean, np.full(mean.shape, np.nan))

    def welcome(self, belief: Belief, newcomers: int) -> None:
        """Initialise the last `newcomers` agents, added as new ones at the end, from what is known of the others."""

    def warm_start(self, belief: Belief, shape: Shape, past: Past) -> None:
        """Start a new belief from what a history says of the agents."""
        raise InputError(f"{self.name} cannot start from a history; lagrange can.", location="history")

    def call_slowest(self, belief: Belief) -> None:
        """Call the kernels that take longest to compile, on a belief that is then thrown away; see `restive.precompile`."""

    def settings(self) -> dict[str, Any]:
        """The settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Learner(Policy[Belief]):
    """A policy that knows only the shape of the problem."""

    @abstractmethod
    def start(self, shape: Shape) -> Belief:
        """The belief before the first step."""

    def begin(self, shape: Shape, model: Model) -> Belief:
        """Start from the shape alone."""
        return self.start(shape)

    def learn_some(self, belief: Belief, agents: Ints, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Learn on the rows of the belief that belong to these agents; shared arrays are updated as in `learn`."""
        from restive.policies import belief as arrays  # belief.py needs Learner

        axes = arrays.agent_axes(self, belief)
        if agents.size == arrays.count_agents(belief, axes):
            self.learn(belief, state, action, reward, after)
        else:
            part = arrays.take(belief, axes, agents)
            self.learn(part, state, action, reward, after)
            arrays.put(belief, axes, agents, part)


class Oracle(Policy[Belief]):
    """A policy that knows the true model: an upper reference for learners."""

    @abstractmethod
    def start(self, shape: Shape, model: Model) -> Belief:
        """The belief before the first step."""

    def begin(self, shape: Shape, model: Model) -> Belief:
        """Start from the shape and the model."""
        return self.start(shape, model)


def _allowed_types(hint: Any) -> tuple[type, ...]:
    """The classes that an annotation such as `float | None` allows; a float may be given as an int."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = tuple(get_origin(part) or part for part in parts)
    if Any in kinds or not all(isinstance(kind, type) for kind in kinds):
        return (object, bool)
    return (*kinds, int) if float in kinds and int not in kinds else kinds


def check_setting(allowed: bool, policy: Policy[Any], name: str, must: str) -> None:
    """Raise InputError unless a setting is `allowed`; `must` describes the allowed values."""
    if not allowed:
        raise InputError(f"{policy.name}: {name} is {getattr(policy, name)!r}; it must be {must}.")
