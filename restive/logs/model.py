"""A fitted model: a prior over people's transition rows, learnt from a history, and everybody's own counts.

Rows of agent i: P_i(a, s, .) ~ Dirichlet(alpha[k_i, a, s, .]), the type k_i with probability share[k]; features shift
alpha. What is uncertain about the prior itself is kept as draws of it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from restive.problem import Problem
from restive.types import Floats, Ints


class Prior(NamedTuple):
    """The distribution of people's rows: K types."""

    share: Floats  # [K]
    alpha: Floats  # [K, A, S, S] parameters of the Dirichlet distributions


class Logged(NamedTuple):
    """What the logged program did, to forecast "as now"."""

    rounds: int
    rows: int
    actions_per_round: float
    probability: Floats  # [S] the share of people in each state who were acted on


@dataclass(frozen=True)
class FittedModel:
    """A model of the people of a history, with its uncertainty."""

    agents: pl.Series
    states: tuple[str, ...]
    value: Floats  # [S] the expected reward on arriving in a state
    counts: Floats  # [N, A, S, S]
    last_state: Ints  # [N]
    prior: Prior
    draws: tuple[Prior, ...]  # of the prior, given the history
    logged: Logged

    def posterior_mean(self) -> Floats:
        """The expected rows of each agent, [N, A, S, S]."""
        return _normalize(self.prior.alpha[0] + self.counts)

    def draw(self, number: int, seed: int = 0) -> Floats:
        """One draw of everybody's rows, [N, A, S, S]: of the prior, then of the rows given the counts."""
        prior = self.draws[number % len(self.draws)] if self.draws else self.prior
        generator = np.random.default_rng([seed, number])
        return _normalize(generator.standard_gamma(prior.alpha[0] + self.counts))

    def problem(self, budget: int, number: int | None = None, seed: int = 0) -> Problem:
        """The people of the history as a problem: at their expected rows, or at one draw of them."""
        rows = self.posterior_mean() if number is None else self.draw(number, seed)
        return Problem(rows, self.value, budget, start=self.last_state, states=self.states)


def _normalize(rows: Floats) -> Floats:
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))
