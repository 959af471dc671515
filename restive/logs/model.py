"""A fitted model: a prior over people's transition rows, learnt from a history, and everybody's own counts.

Rows of agent i: P_i(a, s, .) ~ Dirichlet(alpha[k_i, a, s, .]), the type k_i with probability share[k]. What is uncertain
about the prior itself is kept as draws of it. The file is one Parquet file: a row for each agent, and the rest in the
metadata.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from restive.display import Displayed
from restive.files import read_parquet, write_parquet
from restive.logs.row_prior import log_likelihood
from restive.problem import Problem
from restive.types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from restive.logs.sections import Section

FORMAT = "restive-model-1"


class Prior(NamedTuple):
    """The distribution of people's rows: K types, or one whose mean rows depend on features."""

    share: Floats  # [K]
    alpha: Floats  # [K, A, S, S] parameters of the Dirichlet distributions, at mean features
    coefficients: Floats | None = None  # [A, S, S, F] of the features in the logs of the mean rows; then K is 1

    def alpha_of(self, features: Floats | None) -> Floats:
        """The parameters of each type, [K, A, S, S]; with coefficients, of people with these features, [N, A, S, S]."""
        if self.coefficients is None or features is None:
            return self.alpha
        total = self.alpha.sum(axis=-1, keepdims=True)
        score = np.log(self.alpha / total) + np.tensordot(features, self.coefficients, (1, 3))
        rows = np.exp(score - score.max(axis=-1, keepdims=True))
        return np.asarray(total * _normalize(rows))

    def components(self, features: Floats | None) -> tuple[Floats, Floats]:
        """The distribution of rows as a mixture: shares [J] and parameters [J, A, S, S], over types or over people."""
        alpha = self.alpha_of(features)
        return (self.share if self.coefficients is None else np.full(alpha.shape[0], 1 / alpha.shape[0])), alpha

    def mean(self, features: Floats | None = None) -> Floats:
        """The expected rows of somebody of whom nothing is known, [A, S, S]."""
        share, alpha = self.components(features)
        return np.asarray(np.tensordot(share, _normalize(alpha), 1))


class Choice(NamedTuple):
    """The number of types, the ridge of features or None, and the gains over one type of everything that was tried.

    A gain is that in log score per held-out person, with its standard error.
    """

    types: int = 1
    ridge: float | None = None
    type_gains: tuple[tuple[float, float], ...] = ()
    feature_gains: tuple[tuple[float, float], ...] = ()  # of each ridge


class Forgetting(NamedTuple):
    """The half-life of moves in rounds, None if all count the same, and what the half-lives that were tried gained.

    A gain is that in log score per move over counting all the same, each round predicted from those before, with its
    standard error: (half-life, gain, error).
    """

    half_life: float | None = None
    gains: tuple[tuple[float, float, float], ...] = ()


def center(priors: tuple[Prior, ...]) -> Prior:
    """The distribution with the mean row, and with the mean correlation of two moves of one person, of some draws.

    That is exactly the posterior mean of somebody with one move, if row and correlation are independent.
    """
    alpha = np.stack([prior.alpha for prior in priors])
    total = alpha.sum(axis=-1, keepdims=True)
    weight = 1 / (1 / (1 + total)).mean(axis=0) - 1
    slopes = [prior.coefficients for prior in priors if prior.coefficients is not None]
    return Prior(
        np.mean([prior.share for prior in priors], axis=0),
        weight * (alpha / total).mean(axis=0),
        np.mean(slopes, axis=0) if slopes else None,
    )


class Logged(NamedTuple):
    """What the logged program did, to forecast "as now"."""

    rounds: int
    rows: int
    actions_per_round: float
    probability: Floats  # [S] the share of people in each state who were acted on


class Alternative(NamedTuple):
    """Another model of the same people, for a forecast beside the first (`restive.logs.alternatives`)."""

    key: str  # the question of `restive.logs.examine` that it answers
    counts: Floats  # [N, A, S', S] moves, from S states or from S · S pairs of them
    last_state: Ints  # [N]
    prior: Prior
    draws: tuple[Prior, ...]


@dataclass(frozen=True, repr=False)
class FittedModel(Displayed):
    """A model of the people of a history, with its uncertainty; `restive.fit` makes it.

    Parameters
    ----------
    agents, states
        Their names, in the order of their positions.
    value, value_error
        [S] the expected reward on arriving in a state, and its standard error: 0 where it is known.
    counts
        [N, A, S, S] how often each agent moved under each action from each state to each state; with forgetting, a move
        counts by its weight, and moves in gaps by their probability.
    last_state
        [N] the latest known state.
    prior, draws
        The distribution of rows, and draws of that distribution given the history.
    logged
        What the logged program did.
    features, feature_names, feature_scale
        [N, F] of mean 0 and variance 1, 0 where unknown, and their names; [2, F] the mean and scale that they had. None and
        empty if features did not earn their place.
    known_features
        Of all features by name, also of those that did not earn their place: [N] in the units of the history, NaN where
        unknown. A program that starts from the history takes its own from them.
    choice
        What was tried of types and features, and what it gained.
    held_out
        Figures on rounds and people that were left out of the fit, by `restive.logs.calibration`; empty if there are
        too few.
    notes
        What a reader should know, in sentences.
    power
        What a move of the history counts for a learner that starts from it, from 0 to 1 (`restive.logs.warm_start`).
    verdicts
        What `restive.logs.examine` says about the history, one line for each question, if it was asked.
    forgetting
        The half-life of moves, and how it was chosen (`restive.logs.half_life`).
    alternatives
        Other models of the same people, where `restive.logs.examine` found that this one does not hold.

    Examples
    --------
    >>> table = {"agent": ["ann"] * 4, "time": [1, 2, 3, 4], "state": ["low", "high", "low", "high"]}
    >>> from restive import fit
    >>> model = fit(table | {"action": [1, 0, 1, 0], "reward": [1, 0, 1, 0]}, draws=20, held_out=False)
    >>> model.counts[0, 1]  # under action 1: once or more from low to high
    array([[0., 2.],
           [0., 0.]])
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
    features: Floats | None = None
    feature_names: tuple[str, ...] = ()
    feature_scale: Floats = field(default_factory=lambda: np.zeros((2, 0)))
    choice: Choice = field(default_factory=Choice)
    held_out: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    power: float = 1.0
    verdicts: tuple[str, ...] = ()
    forgetting: Forgetting = field(default_factory=Forgetting)
    alternatives: tuple[Alternative, ...] = ()
    known_features: Mapping[str, Floats] = field(default_factory=dict)

    def facts(self) -> dict[str, object]:
        """People, states, and what was chosen."""
        logged = {"actions a round": f"{self.logged.actions_per_round:.1f}"}
        return {"people": len(self.agents), "states": ", ".join(self.states), **logged, "draws": len(self.draws)}

    def to_frame(self) -> pl.DataFrame:
        """One row for each person, action, state and next state, with the posterior mean of the probability."""
        mean = self.posterior_mean()
        person, action, state, after = np.indices(mean.shape).reshape(4, -1)
        names = pl.Series(self.states)
        return pl.DataFrame(
            {
                "agent": self.agents.gather(person),
                "action": action,
                "state": names.gather(state),
                "next_state": names.gather(after),
                "probability": mean.ravel(),
            }
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw what the action adds to the reward of a step, by state and person, on `ax` or on new axes."""
        return self.problem(1).plot(ax)

    def responsibility(self, prior: Prior | None = None) -> Floats:
        """The probability that each agent is of each type, given its moves, [N, K]; `prior` is by default the model's."""
        return _find_types(prior or self.prior, self.counts)

    def posterior_mean(self) -> Floats:
        """The expected rows of each agent, [N, A, S, S]."""
        if self.prior.coefficients is not None:
            return _normalize(self.prior.alpha_of(self.features) + self.counts)
        types = zip(self.responsibility().T, self.prior.alpha, strict=True)
        return np.asarray(sum(part[:, None, None, None] * _normalize(alpha + self.counts) for part, alpha in types))

    def draw(self, number: int, seed: int = 0, people: Ints | None = None) -> Floats:
        """Draw `number` of everybody's rows, [N, A, S, S]: of the prior, then of the rows given the counts, by `seed`.

        Of `people` [M], positions of agents, the rows are [M, A, S, S]; who is named twice stands for two people with the
        same moves, whose rows are drawn independently.
        """
        prior, generator = self._drawn_prior(number, seed)
        return draw_posterior(prior, self.counts, self.features, generator, people)

    def newcomers(self, number: int, size: int, features: Floats | None = None, seed: int = 0) -> Floats:
        """Draw `number` of the rows of `size` people without moves, [size, A, S, S], by `seed`.

        `features` [size, F] are in the units of the history, NaN where unknown; without them they are those of people of
        the history, chosen at random.
        """
        prior, generator = self._drawn_prior(number, seed)
        if prior.coefficients is not None and self.features is not None:
            chosen = self.features[generator.integers(len(self.agents), size=size)]
            known = chosen if features is None else self.standardize(features)
            return _draw_rows(prior.alpha_of(known), generator)
        kind = _draw_types(np.broadcast_to(prior.share, (size, prior.share.size)), generator)
        return _draw_rows(prior.alpha[kind], generator)

    def about(self, agents: Sequence[object]) -> "FittedModel":
        """The model of these `agents`, found by the text of their names; without moves where they are not in it."""
        place = {name: number for number, name in enumerate(self.agents.cast(pl.String).to_list())}
        names = [str(agent) for agent in agents]
        row = np.array([place.get(name, -1) for name in names], np.int64)
        known = row >= 0
        counts = np.where(known[:, None, None, None], self.counts[row], 0.0)
        features = None if self.features is None else np.where(known[:, None], self.features[row], 0.0)
        last_state = np.where(known, self.last_state[row], 0)
        given = {name: np.where(known, column[row], np.nan) for name, column in self.known_features.items()}
        return replace(
            self, agents=pl.Series(names), counts=counts, last_state=last_state, features=features, alternatives=(),
            known_features=given,
        )  # fmt: skip

    def standardize(self, features: Floats) -> Floats:
        """Turn `features` in the units of the history, [N, F], into those of the model: 0 where unknown."""
        center, scale = self.feature_scale
        return np.asarray(np.nan_to_num((features - center) / scale))

    def problem(self, budget: int, number: int | None = None, seed: int = 0) -> Problem:
        """The people of the history as a problem with a `budget`: at their expected rows, or at draw `number` by `seed`."""
        if number is None:
            rows, value = self.posterior_mean(), self.value
        else:
            rows, value = self.draw(number, seed), self.draw_value(number, seed)
        return Problem(rows, value, budget, start=self.last_state, states=self.states)

    def draw_value(self, number: int, seed: int = 0) -> Floats:
        """Draw `number` by `seed` of the expected reward of each state, [S]; the estimate where its error is not known."""
        error = np.nan_to_num(self.value_error) if self.value_error.size else np.zeros(self.value.size)
        return np.asarray(self.value + error * np.random.default_rng([seed, number, 1]).standard_normal(error.size))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one Parquet file, `path`."""
        whole = not (self.counts % 1).any()
        columns = {
            "agent": self.agents,
            "last_state": self.last_state,
            "counts": self.counts.astype(np.int32 if whole else np.float64).reshape(len(self.agents), -1),
        } | ({} if self.features is None else {"features": self.features})
        if self.known_features:
            columns["known_features"] = np.column_stack(list(self.known_features.values()))
        for each in self.alternatives:
            columns[f"counts_{each.key}"] = each.counts.astype(np.int32).reshape(len(self.agents), -1)
            columns[f"last_state_{each.key}"] = each.last_state
        spec = {
            "states": self.states,
            "value": self.value.tolist(),
            "value_error": self.value_error.tolist(),
            "prior": _prior_as_json(self.prior),
            "draws": [_prior_as_json(prior) for prior in self.draws],
            "logged": self.logged._asdict() | {"probability": self.logged.probability.tolist()},
            "feature_names": self.feature_names,
            "feature_scale": self.feature_scale.tolist(),
            "known_features": list(self.known_features),
            "choice": self.choice._asdict(),
            "held_out": self.held_out,
            "notes": self.notes,
            "power": self.power,
            "verdicts": self.verdicts,
            "forgetting": self.forgetting._asdict(),
            "alternatives": [
                {"key": each.key, "prior": _prior_as_json(each.prior), "draws": list(map(_prior_as_json, each.draws))}
                for each in self.alternatives
            ],
        }
        write_parquet(path, FORMAT, spec, columns, checksum=False)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "FittedModel":
        """Read the file `path` that `save` wrote."""
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
            columns.get("features"),
            tuple(spec["feature_names"]),
            np.array(spec["feature_scale"]),
            Choice(**{name: _as_tuples(part) for name, part in spec["choice"].items()}),
            spec["held_out"],
            tuple(spec["notes"]),
            spec["power"],
            tuple(spec["verdicts"]),
            Forgetting(**{name: _as_tuples(part) for name, part in spec["forgetting"].items()}),
            tuple(_load_alternative(each, columns, len(states)) for each in spec["alternatives"]),
            {name: columns["known_features"][:, place] for place, name in enumerate(spec["known_features"])},
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


def draw_posterior(
    prior: Prior, counts: Floats, features: Floats | None, generator: np.random.Generator, people: Ints | None = None
) -> Floats:
    """A draw of everybody's rows given their moves, [N, A, S, S], or of those at positions `people`, independently."""
    taken = slice(None) if people is None else people
    if prior.coefficients is not None:
        return _draw_rows((prior.alpha_of(features) + counts)[taken], generator)
    kind = _draw_types(_find_types(prior, counts)[taken], generator)
    return _draw_rows(prior.alpha[kind] + counts[taken], generator)


def _find_types(prior: Prior, counts: Floats) -> Floats:
    """The probability that each agent is of each type, given its moves, [N, K]."""
    if prior.share.size == 1:
        return np.ones((counts.shape[0], 1))
    score = np.log(prior.share) + log_likelihood(prior.alpha, counts)
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


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
    return {name: part.tolist() for name, part in prior._asdict().items() if part is not None}


def _load_alternative(given: dict[str, Any], columns: dict[str, Any], states: int) -> Alternative:
    key, draws = given["key"], tuple(map(_prior_from_json, given["draws"]))
    counts = columns[f"counts_{key}"].astype(np.float64)
    counts = counts.reshape(len(counts), 2, -1, states)
    return Alternative(key, counts, columns[f"last_state_{key}"], _prior_from_json(given["prior"]), draws)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _prior_from_json(given: dict[str, Any]) -> Prior:
    return Prior(**{name: np.array(part) for name, part in given.items()})
