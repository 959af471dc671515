"""The Gymnasium action space of a restless bandit: sets of B of N agents, one or a batch.

element  [*batch, B]  different agent numbers from 0 to N − 1 along the last axis, in any order
flat     [*batch · N] the same as zeros and ones, for learners with one output for each agent

It is registered with Gymnasium's functions for batching and flattening, so that vector environments and wrappers work.
"""

import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces
from gymnasium.vector import utils as batching
from numpy.typing import ArrayLike, NDArray

from restive.errors import InputError, check_whole
from restive.types import Floats, Ints


class AgentSets(spaces.Space[Ints]):
    """All sets of `budget` of the agents 0 to `agents` − 1, written [*batch, B]; the order within a set has no meaning.

    >>> space = AgentSets(agents=5, budget=2)
    >>> [4, 1] in space, [1, 1] in space, [1, 5] in space
    (True, False, False)
    >>> space.marks([4, 1])
    array([0, 1, 0, 0, 1])
    """

    def __init__(
        self,
        agents: int,
        budget: int,
        batch: tuple[int, ...] = (),
        seed: int | np.random.Generator | None = None,
    ) -> None:
        self.agents = check_whole("agents", agents, 1)
        self.budget = check_whole("budget", budget, 0, self.agents)
        self.batch = tuple(batch)
        super().__init__((*self.batch, self.budget), np.int64, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """True: a flattened set is the zeros and ones of `marks`."""
        return True

    def marks(self, chosen: ArrayLike) -> Ints:
        """The sets as zeros and ones, [*batch, N]; raises InputError for anything else than an element."""
        sets = self._numbers(chosen)
        if sets.size and not 0 <= sets.min() <= sets.max() < self.agents:
            self._refuse(f"names agent {sets[(sets < 0) | (sets >= self.agents)][0]}")
        marks = np.zeros((*self.batch, self.agents), np.int64)
        np.put_along_axis(marks, sets, 1, axis=-1)
        if marks.sum() != sets.size:
            ordered = np.sort(sets, axis=-1)
            self._refuse(f"names agent {ordered[..., 1:][ordered[..., 1:] == ordered[..., :-1]][0]} twice")
        return marks

    def sets(self, marks: ArrayLike) -> Ints:
        """The inverse of `marks`: the marked agents in increasing order, [*batch, B]."""
        marked = np.asarray(marks) != 0
        if marked.size != _flat_size(self):
            raise InputError(f"marks have shape {list(marked.shape)}; they must be {[*self.batch, self.agents]}.")
        marked = marked.reshape(*self.batch, self.agents)
        totals = marked.sum(axis=-1)
        if (totals != self.budget).any():
            wrong = totals[totals != self.budget].flat[0]
            raise InputError(f"{wrong} agents are marked; it must be exactly {self.budget} of {self.agents}.")
        return np.nonzero(marked)[-1].reshape(*self.batch, self.budget)

    def _numbers(self, chosen: ArrayLike) -> Ints:
        try:
            sets = np.asarray(chosen)
        except (TypeError, ValueError):
            self._refuse("is not an array")
        if sets.shape != self.shape:
            self._refuse(f"has shape {list(sets.shape)}")
        if sets.size and sets.dtype.kind not in "iu":
            self._refuse(f"is of type {sets.dtype}")
        return sets.astype(np.int64)

    def _refuse(self, reason: str) -> NoReturn:
        row = "in each row " if self.batch else ""
        raise InputError(
            f"the action {reason}; it must be whole numbers of shape {[*self.batch, self.budget]}, "
            f"{row}{self.budget} of the agents 0 to {self.agents - 1}, none twice."
        )

    def contains(self, x: Any) -> bool:
        """Whether these are sets of `budget` different agents, in any order."""
        try:
            self.marks(x)
        except InputError:
            return False
        return True

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> Ints:
        """A random set in increasing order, by default uniform over all sets.

        mask         [N] or [*batch, N], 0 or 1: only agents with a 1 are drawn
        probability  of the same shapes, summing to 1: agents are drawn one after the other without replacement, each
                     time with probabilities proportional to these (the Gumbel-top-k trick, Yellott 1977)
        """
        with np.errstate(divide="ignore"):
            score = np.log(self._weights(mask, probability)) + self.np_random.gumbel(size=(*self.batch, self.agents))
        best = np.argpartition(-score, min(self.budget, self.agents - 1), axis=-1)
        return np.sort(best[..., : self.budget], axis=-1)

    def _weights(self, mask: Any | None, probability: Any | None) -> Floats:
        if mask is not None and probability is not None:
            raise InputError("give a mask or probabilities, not both.")
        if mask is None and probability is None:
            return np.ones(self.agents)
        name, weights = ("mask", mask) if probability is None else ("probability", probability)
        weights = np.asarray(weights, np.float64)
        if weights.shape not in ((self.agents,), (*self.batch, self.agents)):
            raise InputError(f"{name} has shape {list(weights.shape)}; it must be {[*self.batch, self.agents]}.")
        if mask is not None and not np.isin(weights, (0, 1)).all():
            raise InputError("mask must be 0 or 1 for each agent.")
        if probability is not None and not ((weights >= 0).all() and np.allclose(weights.sum(axis=-1), 1)):
            raise InputError("probability must be 0 or more for each agent and sum to 1.")
        if ((weights > 0).sum(axis=-1) < self.budget).any():
            raise InputError(f"{name} leaves fewer than {self.budget} agents to choose from.")
        return weights

    def to_jsonable(self, sample_n: Iterable[Ints]) -> list[Any]:
        """Samples as nested lists."""
        return [np.asarray(sample).tolist() for sample in sample_n]

    def from_jsonable(self, sample_n: list[Any]) -> list[Ints]:
        """Samples from nested lists."""
        return [np.array(sample, np.int64).reshape(*self.batch, self.budget) for sample in sample_n]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AgentSets) and self._key() == other._key()

    def _key(self) -> tuple[int, int, tuple[int, ...]]:
        return self.agents, self.budget, self.batch

    def __repr__(self) -> str:
        return f"AgentSets({self.agents}, {self.budget}{f', batch={self.batch}' if self.batch else ''})"


def read_marks(space: spaces.Space[Any], action: ArrayLike) -> Ints:
    """An action of `AgentSets`, or of zeros and ones, as zeros and ones, [*batch, N]."""
    if isinstance(space, AgentSets):
        return space.marks(action)
    try:
        marks = np.asarray(action)
    except (TypeError, ValueError):
        marks = np.empty(0)
    if marks.shape != space.shape or not np.isin(marks, (0, 1)).all():
        raise InputError(
            f"the action is not valid; it must be 0 or 1 for each agent, of shape {list(space.shape or ())}."
        )
    return marks.astype(np.int64)


def write_marks(space: spaces.Space[Any], marks: Ints) -> NDArray[Any]:
    """The inverse of `read_marks`, for B ones in each row."""
    if isinstance(space, AgentSets):
        return space.sets(marks)
    return marks.reshape(space.shape or ()).astype(space.dtype)


def _batch(space: AgentSets, n: int = 1) -> AgentSets:
    return AgentSets(space.agents, space.budget, (n, *space.batch), deepcopy(space.np_random))


def _batch_differing(given: Sequence[AgentSets]) -> AgentSets:
    if any(space != given[0] for space in given):
        raise InputError(f"{given[0]} cannot be batched with sets of other agents or another budget.")
    return _batch(given[0], len(given))


def _flat_size(space: AgentSets) -> int:
    return math.prod(space.batch) * space.agents


batching.batch_space.register(AgentSets, _batch)
batching.batch_differing_spaces.register(AgentSets, _batch_differing)
batching.iterate.register(AgentSets, lambda space, items: iter(items))
batching.concatenate.register(AgentSets, lambda space, items, out: np.stack(list(items), out=out))
batching.create_empty_array.register(
    AgentSets, lambda space, n=1, fn=np.zeros: fn((n, *space.batch, space.budget), dtype=np.int64)
)
spaces.utils.flatdim.register(AgentSets, _flat_size)
spaces.utils.flatten.register(AgentSets, lambda space, x: space.marks(x).reshape(-1))
spaces.utils.unflatten.register(AgentSets, lambda space, x: space.sets(x))
spaces.utils.flatten_space.register(AgentSets, lambda space: spaces.Box(0, 1, (_flat_size(space),), np.int64))
