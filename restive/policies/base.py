"""The contract of a policy: frozen settings, and three functions over a belief, all of it arrays over [R, N].

    belief = policy.start(shape)                       a NamedTuple of arrays (or of such NamedTuples)
    ranking = policy.rank(belief, state, draws)        priority [R, N] and, per run, the probability of exploring
    policy.learn(belief, state, action, reward, after) writes into the belief's arrays what was seen
    policy.learn_some(belief, agents, ...)             the same when only some agents were seen
    policy.estimate(belief, state)                     what acting is worth as far as it can tell, for those who ask why
    policy.welcome(belief, newcomers)                  a belief has got room for more agents (restive.policies.belief)

Settings are the fields of a frozen dataclass. A learner gets only the shape; an oracle also gets the model. Everything
random comes from `draws`, a pure function of seed, run, step, agent and stream. A belief holds all that a policy
remembers, so that saving its arrays saves the policy.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from restive.errors import InputError
from restive.kernels import rng
from restive.types import Floats, Ints, Keys

Belief = TypeVar("Belief")

# Agents are numbered from 0, so a run's own number shares its luck with none of them.
NO_AGENT = np.array([-1])


class Shape(NamedTuple):
    """All that a learner is told before it starts."""

    runs: int
    agents: int
    states: int
    budget: int
    horizon: int | None
    reward_range: Floats
    """[R] how far apart the best and the worst reward can be: units, known to whoever defines the states."""


class Model(NamedTuple):
    """The truth, for oracles: instances of one shape, and which of them each run plays."""

    transition: Floats  # [I, N, A, S, S]
    reward: Floats  # [I, N, S]
    start: Floats  # [I, N, S] the distribution of the first state
    instance: Ints  # [R]


class Draws(NamedTuple):
    """One step: its number, its budget and its luck; the same question always has the same answer."""

    keys: Keys  # [R]
    agents: Ints  # [N]
    step: int
    budget: int

    def branch(self, stream: int) -> Keys:
        """The keys of the runs for one stream in this step, [R]: what compiled kernels take."""
        return rng.branch(self.keys, stream, self.step)

    def uniform(self, stream: int = rng.OWN) -> Floats:
        """One uniform number in [0, 1) for each run and agent, [R, N]; streams from `rng.OWN` on are yours."""
        return rng.uniform(self.branch(stream), self.agents)

    def uniform_by_run(self, stream: int = rng.OWN) -> Floats:
        """One uniform number in [0, 1) for each run, [R]."""
        return rng.uniform(self.branch(stream), NO_AGENT)[:, 0]


class Ranking(NamedTuple):
    """The wish of a policy for one step."""

    priority: Floats  # [R, N], the highest are chosen, ties at random
    explore: Floats  # [R], the probability of ignoring the priority and choosing anyone


class Estimate(NamedTuple):
    """What a policy knows of acting now, for those who want reasons and probabilities."""

    benefit: Floats  # [R, N] what acting now adds to the reward as far as it can tell, NaN where it cannot
    error: Floats  # [R, N] its standard error, NaN where not known, infinite where nothing was seen
    luck: Floats  # [R, N] the standard deviation of the bell-shaped luck in the priority, 0 where there is none


@dataclass(frozen=True)
class Policy(ABC, Generic[Belief]):
    """A way to choose whom to act on; subclasses are frozen dataclasses whose fields are their settings."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Of the belief's layout: a snapshot of another version is refused."""
    far_sighted: ClassVar[bool] = True
    """Whether its estimated benefit counts all steps to come, not the next one alone."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """A policy that does not say its name has that of its class."""
        super().__init_subclass__(**keywords)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for setting, value in self.settings().items():
            if isinstance(value, np.generic):  # a number of NumPy reads and saves as a plain one
                value = value.item()
                object.__setattr__(self, setting, value)
            wanted = _allowed_types(hints[setting])
            if (isinstance(value, bool) and bool not in wanted) or not isinstance(value, wanted):
                names = " or ".join("None" if kind is NoneType else kind.__name__ for kind in wanted)
                raise InputError(f"{self.name}: {setting} is {value!r}; it must be of type {names}.")

    @abstractmethod
    def begin(self, shape: Shape, model: Model) -> Belief:
        """The belief before the first step; a learner does not look at the model."""

    @abstractmethod
    def rank(self, belief: Belief, state: Ints, draws: Draws) -> Ranking | Floats:
        """How much each agent should be acted on now, [R, N]; with a `Ranking`, also how often to explore."""

    def learn(self, belief: Belief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Write into the belief that `action` in `state` led to `after` and `reward`, all [R, N]."""

    def learn_some(self, belief: Belief, agents: Ints, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """`learn` when only the agents at the places `agents` [M], ascending, were seen; the rest is [R, M]."""
        if type(self).learn is not Policy.learn:
            raise InputError(f"{self.name}: it learns, but not from some of the agents; give it a learn_some.")

    def estimate(self, belief: Belief, state: Ints) -> Estimate:
        """What acting now is worth in these states, [R, N]; the belief stays as it is."""
        return rank_only(np.full(state.shape, np.nan))

    def welcome(self, belief: Belief, newcomers: int) -> None:
        """The belief has grown by so many agents, at the end, as new as at the start: let them profit from the rest."""

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
        """Learn on the part of the belief that is about these agents; arrays without an axis of agents are shared."""
        from restive.policies import belief as arrays  # which is about learners, and so comes after this file

        states = 1 + max(int(state.max(initial=0)), int(after.max(initial=0)))
        axes = arrays.agent_axes(self, Shape(1, agents.size, states, 1, 2, np.ones(1)))
        if agents.size == arrays.count_agents(belief, axes):
            self.learn(belief, state, action, reward, after)
        else:
            part = arrays.take(belief, axes, agents)
            self.learn(part, state, action, reward, after)
            arrays.put(belief, axes, agents, part)


class Oracle(Policy[Belief]):
    """A policy that knows the truth: what a learner could reach at best by the same rule."""

    @abstractmethod
    def start(self, shape: Shape, model: Model) -> Belief:
        """The belief before the first step."""

    def begin(self, shape: Shape, model: Model) -> Belief:
        """Start from the shape and the model."""
        return self.start(shape, model)


def _allowed_types(hint: Any) -> tuple[type, ...]:
    """The classes that an annotation such as `float | None` stands for, or any class; whole numbers are numbers."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = tuple(get_origin(part) or part for part in parts)
    if Any in kinds or not all(isinstance(kind, type) for kind in kinds):
        return (object, bool)
    return (*kinds, int) if float in kinds and int not in kinds else kinds


def check_setting(allowed: bool, policy: Policy[Any], name: str, must: str) -> None:
    """Refuse a setting that makes no sense, in one sentence."""
    if not allowed:
        raise InputError(f"{policy.name}: {name} is {getattr(policy, name)!r}; it must be {must}.")


def rank_only(benefit: Floats) -> Estimate:
    """The estimate of a policy that ranks by a number without luck, and knows no error of it."""
    return Estimate(benefit, np.full(benefit.shape, np.nan), np.zeros(benefit.shape))


def as_ranking(ranked: Ranking | Floats, shape: Shape, name: str) -> Ranking:
    """What `rank` gave, as a ranking of the right shape."""
    given = ranked if isinstance(ranked, Ranking) else Ranking(ranked, np.zeros(shape.runs))
    try:
        ranking = Ranking(*(np.ascontiguousarray(part, np.float64) for part in given))
    except (TypeError, ValueError):
        raise InputError(
            f"{name}: rank gave no full array of numbers; priorities are [R, N], runs by agents."
        ) from None
    if ranking.priority.shape != (shape.runs, shape.agents):
        raise InputError(
            f"{name}: rank gave priorities of shape {list(np.shape(given.priority))}; "
            f"they must be [{shape.runs}, {shape.agents}], runs by agents."
        )
    if ranking.explore.shape != (shape.runs,):
        raise InputError(
            f"{name}: rank gave explore of shape {list(np.shape(given.explore))}; "
            f"it must be [{shape.runs}], one probability for each run."
        )
    if not ((ranking.explore >= 0) & (ranking.explore <= 1)).all():
        wrong = ranking.explore[~((ranking.explore >= 0) & (ranking.explore <= 1))][0]
        raise InputError(f"{name}: rank gave explore {wrong}; it is a probability, from 0 to 1.")
    return ranking
