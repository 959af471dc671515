"""What followed in each state under each action: counts and sums over a program's outcomes.

They are the sufficient statistics of `restive.desk.effects`, and the counts in the reasons of a list. They do not depend on
the policy. The sums of single people are kept of every `stride`-th person by number, of everybody up to
MAX_SAMPLED people: a million people stay cheap, and who is in the sample depends on the log alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from restive.types import Bools, Floats, Ints

MAX_SAMPLED = 20_000  # people whose own sums are kept
WAIT, ACT = 0, 1
COUNT, SUM, SQUARES = range(3)  # of rewards


@dataclass
class Tallies:
    """What followed in each state under each action; actions are WAIT and ACT."""

    moves: Ints  # [A, S, S] of everybody
    people: (
        Floats  # [M, A, S, 3] of every stride-th person: rewards that followed, their sum and the sum of their squares
    )
    stride: Ints  # []
    reward_range: Floats  # [2] the smallest and the largest reward, NaN before the first

    @classmethod
    def empty(cls, states: int) -> "Tallies":
        """No outcomes of nobody."""
        moves = np.zeros((2, states, states), np.int64)
        return cls(moves, np.zeros((0, 2, states, 3)), np.array(1), np.full(2, np.nan))

    def grow(self, agents: int) -> None:
        """Make room for this number of agents; of too many, every second one of the sample is dropped."""
        while agents > MAX_SAMPLED * int(self.stride):
            self.people, self.stride = self.people[::2].copy(), np.array(2 * int(self.stride))
        missing = -(-agents // int(self.stride)) - len(self.people)
        if missing > 0:
            self.people = np.concatenate([self.people, np.zeros((missing, *self.people.shape[1:]))])

    def add(self, number: Ints, state: Ints, done: Bools, reward: Floats, after: Ints) -> None:
        """Add outcomes of a round, one for each of these agents."""
        if number.size == 0:
            return
        moved = np.ravel_multi_index((done.astype(np.int64), state, after), self.moves.shape)
        self.moves = self.moves + np.bincount(moved, minlength=self.moves.size).reshape(self.moves.shape)
        low, high = self.reward_range
        self.reward_range = np.array([np.fmin(low, reward.min()), np.fmax(high, reward.max())])
        sampled = np.flatnonzero(number % self.stride == 0)
        place = number[sampled] // self.stride, done[sampled].astype(np.int64), state[sampled]
        self.people[place] += np.stack([np.ones(sampled.size), reward[sampled], reward[sampled] ** 2], axis=1)

    def count_better(self) -> dict[str, list[list[int]]]:
        """By action and state: the outcomes, and those with a better state or, of the best state, with the same."""
        better = np.triu(self.moves, 1).sum(axis=-1)
        better[:, -1] = self.moves[:, -1, -1]
        return {"outcomes": self.moves.sum(axis=-1).tolist(), "better": better.tolist()}

    def arrays(self) -> dict[str, Any]:
        """The arrays by name."""
        return vars(self)
