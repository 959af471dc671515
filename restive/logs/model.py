"""A fitted model: a prior over people's transition rows, learnt from a history, and everybody's own counts.

Rows of agent i: P_i(a, s, .) ~ Dirichlet(alpha[k_i, a, s, .]), the type k_i with probability share[k]. What is uncertain
about the prior itself is kept as draws of it. The file is one Parquet file: a row for each agent, and the rest in the
metadata.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from restive.files import read_parquet, write_parquet
from restive.logs.row_prior import log_likelihood
from restive.problem import Problem
from restive.types import Floats, Ints

if TYPE_CHECKING:
    from restive.logs.sections import Section

FORMAT = "restive-model-1"


class Prior(NamedTuple):
    """The distribution of people's rows: K types."""

    share: Floats  # [K]
    alpha: Floats  # [K, A, S, S] parameters of the Dirichlet distributions

    def mean(self) -> Floats:
        """The expected rows of somebody of whom nothing is known, [A, S, S]."""
        return np.asarray(np.tensordot(self.share, _normalize(self.alpha), 1))


class Logged(NamedTuple):
    """What the logged program did, to forecast "as now"."""

    rounds: int
    rows: int
    actions_per_round: float
    probability: Floats  # [S] the share of people in each state who were acted on


@dataclass(frozen=True)
class FittedModel:
    """A model of the people of a history, with its uncertainty.

    Attributes
    ----------
    agents, states
        Their names, in the order of their positions.
    value, value_error
        [S] the expected reward on arriving in a state, and its standard error: 0 where it is known.
    counts
        [N, A, S, S] how often each agent moved under each action from each state to each state.
    last_state
        [N] the latest known state.
    prior, draws
        The distribution of rows, and draws of that distribution given the history.
    logged
        What the logged program did.
    type_gains
        For 1, 2, ... types of people, the gain in log score per held-out person over one type, with its standard error;
        empty if the number was given.
    held_out
        Figures on rounds and people that were left out of the fit, by `restive.logs.calibration`; empty if there are
        too few.
    notes
        What a reader should know, in sentences.
    power
        What a move of the history counts for a learner that starts from it, from 0 to 1 (`restive.logs.warm`).
    """

    agents: pl.Series
    states: tuple[str, ...]
    value: Floats
    counts: Floats
    last_state: Ints
    prior: Prior
    draws: tuple[Prior, ...]
    logged: Logged
    value_error: Floats = field(default_factory=lambda: np.zeros(0))
    type_gains: list[list[float]] = field(default_factory=list)
    held_out: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    power: float = 1.0

    def responsibility(self, prior: Prior | None = None) -> Floats:
        """The probability that each agent is of each type, given its moves, [N, K]."""
        share, alpha = prior or self.prior
        if share.size == 1:
            return np.ones((len(self.agents), 1))
        score = np.log(share) + log_likelihood(alpha, self.counts)
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    def posterior_mean(self) -> Floats:
        """The expected rows of each agent, [N, A, S, S]."""
        types = zip(self.responsibility().T, self.prior.alpha, strict=True)
        return np.asarray(sum(part[:, None, None, None] * _normalize(alpha + self.counts) for part, alpha in types))

    def draw(self, number: int, seed: int = 0) -> Floats:
        """One draw of everybody's rows, [N, A, S, S]: of the prior, then of the rows given the counts."""
        prior, generator = self._drawn_prior(number, seed)
        kind = _draw_types(self.responsibility(prior), generator)
        return _draw_rows(prior.alpha[kind] + self.counts, generator)

    def newcomers(self, number: int, size: int, seed: int = 0) -> Floats:
        """One draw of the rows of `size` people of whom nothing is known, [size, A, S, S]."""
        prior, generator = self._drawn_prior(number, seed)
        kind = _draw_types(np.broadcast_to(prior.share, (size, prior.share.size)), generator)
        return _draw_rows(prior.alpha[kind], generator)

    def about(self, agents: Sequence[object]) -> "FittedModel":
        """The model of these agents, found by the text of their names; without moves where they are not in it."""
        place = {name: number for number, name in enumerate(self.agents.cast(pl.String).to_list())}
        names = [str(agent) for agent in agents]
        row = np.array([place.get(name, -1) for name in names], np.int64)
        known = row >= 0
        counts = np.where(known[:, None, None, None], self.counts[row], 0.0)
        return replace(
            self, agents=pl.Series(names), counts=counts, last_state=np.where(known, self.last_state[row], 0)
        )

    def problem(self, budget: int, number: int | None = None, seed: int = 0) -> Problem:
        """The people of the history as a problem: at their expected rows, or at one draw of them."""
        if number is None:
            rows, value = self.posterior_mean(), self.value
        else:
            rows, value = self.draw(number, seed), self.draw_value(number, seed)
        return Problem(rows, value, budget, start=self.last_state, states=self.states)

    def draw_value(self, number: int, seed: int = 0) -> Floats:
        """One draw of the expected reward of each state, [S]; where its error is not known, the estimate."""
        error = np.nan_to_num(self.value_error) if self.value_error.size else np.zeros(self.value.size)
        return np.asarray(self.value + error * np.random.default_rng([seed, number, 1]).standard_normal(error.size))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one Parquet file."""
        columns = {
            "agent": self.agents,
            "last_state": self.last_state,
            "counts": self.counts.astype(np.int32).reshape(len(self.agents), -1),
        }
        spec = {
            "states": self.states,
            "value": self.value.tolist(),
            "value_error": self.value_error.tolist(),
            "prior": _prior_as_json(self.prior),
            "draws": [_prior_as_json(prior) for prior in self.draws],
            "logged": self.logged._asdict() | {"probability": self.logged.probability.tolist()},
            "type_gains": self.type_gains,
            "held_out": self.held_out,
            "notes": self.notes,
            "power": self.power,
        }
        write_parquet(path, FORMAT, spec, columns, checksum=False)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "FittedModel":
        """Read a model that `save` wrote."""
        spec, columns = read_parquet(path, FORMAT, "a fitted model")
        states, logged = tuple(spec["states"]), spec["logged"]
        return cls(
            pl.Series(columns["agent"].tolist()),
            states,
            np.array(spec["value"]),
            columns["counts"].reshape(-1, 2, len(states), len(states)).astype(np.float64),
            columns["last_state"],
            _prior_from_json(spec["prior"]),
            tuple(map(_prior_from_json, spec["draws"])),
            Logged(**logged | {"probability": np.array(logged["probability"])}),
            np.array(spec["value_error"]),
            spec["type_gains"],
            spec["held_out"],
            tuple(spec["notes"]),
            spec["power"],
        )

    def as_json(self) -> dict[str, Any]:
        """The numbers as plain data."""
        from restive.logs.fit_report import summarize

        return summarize(self)

    def sections(self) -> "tuple[Section, ...]":
        """What to show."""
        from restive.logs.fit_report import describe

        return describe(self)

    def _drawn_prior(self, number: int, seed: int) -> tuple[Prior, np.random.Generator]:
        prior = self.draws[number % len(self.draws)] if self.draws else self.prior
        return prior, np.random.default_rng([seed, number])


def _draw_types(probability: Floats, generator: np.random.Generator) -> Ints:
    """A type for each person, [N], from probabilities [N, K]."""
    if probability.shape[1] == 1:
        return np.zeros(probability.shape[0], np.int64)
    drawn = generator.random((probability.shape[0], 1))
    return np.asarray((probability.cumsum(axis=1)[:, :-1] < drawn).sum(axis=1))


def _draw_rows(alpha: Floats, generator: np.random.Generator) -> Floats:
    """Rows from Dirichlet distributions; the mean where all gamma variates of a row underflow."""
    drawn = generator.standard_gamma(alpha)
    return _normalize(np.where(drawn.sum(axis=-1, keepdims=True) > 0, drawn, alpha))


def _normalize(rows: Floats) -> Floats:
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def _prior_as_json(prior: Prior) -> dict[str, Any]:
    return {name: part.tolist() for name, part in prior._asdict().items()}


def _prior_from_json(given: dict[str, Any]) -> Prior:
    return Prior(**{name: np.array(part) for name, part in given.items()})
