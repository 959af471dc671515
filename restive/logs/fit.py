"""Fit the model of a history: the distribution of people's rows, with draws of it given the history."""

from typing import NamedTuple

import numpy as np

from restive.formats import show_count
from restive.logs.calibration import hold_out
from restive.logs.feature_rows import sample_feature_priors
from restive.logs.gaps import Gaps, impute
from restive.logs.half_life import AUTO, count_weighted, find_half_life, keep_some, weigh
from restive.logs.history import History
from restive.logs.mixture import sample_priors
from restive.logs.model import Choice, FittedModel, Logged, Prior, center
from restive.logs.model_selection import choose
from restive.logs.warm_start import find_power
from restive.types import Floats, Ints

DRAWS, HELD_OUT_DRAWS = 200, 60


class Features(NamedTuple):
    """Features of people: [N, F] of mean 0 and variance 1, their names, and the mean and scale that they had, [2, F]."""

    values: Floats | None
    names: tuple[str, ...]
    scale: Floats

    def select(self, people: Ints) -> Floats | None:
        """Those of some people."""
        return None if self.values is None else self.values[people]


NO_FEATURES = Features(None, (), np.zeros((2, 0)))


def fit(
    source: object,
    seed: int = 0,
    draws: int = DRAWS,
    types: int | None = None,
    features: bool = True,
    held_out: bool = True,
    half_life: str | float | None = AUTO,
) -> FittedModel:
    """The model of a history.

    Parameters
    ----------
    source
        A `History`, or what `History.read` takes: a frame, a file, an export, a program.
    seed
        Of the draws; the same seed gives the same model.
    draws
        How many draws of the distribution of rows.
    types
        How many types of people, without features; None to choose types or features by held-out people.
    features
        Whether features may be used.
    held_out
        Whether to fit again without some rounds and people, and to judge the predictions of them.
    half_life
        The number of rounds after which a move counts half; None or "none" if all count the same; "auto" to choose by
        how well each round is predicted from those before.

    Returns
    -------
    FittedModel
        The distribution of people's rows with its uncertainty, and everybody's own rows given their moves.

    Raises
    ------
    InputError
        If the source cannot be read as a history, with every fault of the table.

    Examples
    --------
    >>> from restive import make_problems
    >>> from restive.logs.generate import generate_history
    >>> people = make_problems("two-state-v1", instances=1, agents=40)[0]
    >>> model = fit(generate_history(people, rounds=10, seed=1), draws=20, held_out=False)
    >>> model.posterior_mean().shape, model.states
    ((40, 2, 2, 2), ('bad', 'good'))
    """
    history = source if isinstance(source, History) else History.read(source)
    moves, notes = _leave_out_unavailable(history)
    known = standardize(history) if features and types is None else NO_FEATURES
    forgetting = find_half_life(moves, half_life)
    counts = _keep_counts(moves, forgetting.half_life, np.random.default_rng([seed, 6]))
    choice = Choice(types) if types else choose(counts, known.values, np.random.default_rng([seed, 4]))
    if choice.ridge is None:
        known = NO_FEATURES

    def fit_part(counts: Floats, people: Ints) -> tuple[Prior, ...]:
        return _sample(counts, known.select(people), choice, HELD_OUT_DRAWS, np.random.default_rng([seed, 3]))

    generator = np.random.default_rng([seed, 0])
    if moves.gaps is None or forgetting.half_life is not None:
        priors = _sample(counts, known.values, choice, draws, generator)
        whole = count_weighted(moves, forgetting.half_life)
    else:
        priors, whole = impute(
            counts,
            moves.gaps,
            lambda counts, draws: _sample(counts, known.values, choice, draws, generator),
            draws,
            generator,
            known.values,
        )
        notes = (*notes, _describe_gaps(moves.gaps))
    return FittedModel(
        history.agents,
        history.states,
        history.value,
        whole,
        history.last_state,
        center(priors),
        priors,
        describe_logged(history),
        find_value_error(history),
        known.values,
        known.names,
        known.scale,
        choice,
        hold_out(moves, fit_part, seed, known.values, forgetting.half_life) if held_out else {},
        (*history.notes, *notes),
        find_power(moves, center(priors)) if forgetting.half_life is None else 1.0,
        forgetting=forgetting,
        known_features=dict(
            zip(history.feature_names, () if history.features is None else history.features.T, strict=True)
        ),
    )


def _keep_counts(moves: History, half_life: float | None, generator: np.random.Generator) -> Floats:
    """The moves to which the distribution of rows is fitted, [N, A, S, S]."""
    if half_life is None:
        return moves.counts
    return moves.select(keep_some(weigh(moves, half_life), generator)).counts


def standardize(history: History) -> Features:
    """Features of mean 0 and variance 1, 0 where unknown; those that are the same for everybody are left out."""
    if history.features is None or not history.features.size:
        return NO_FEATURES
    known = ~np.isnan(history.features)
    number = np.maximum(known.sum(axis=0), 1)
    center = np.where(known, history.features, 0).sum(axis=0) / number
    scale = np.sqrt(np.where(known, (history.features - center) ** 2, 0).sum(axis=0) / number)
    differ = scale > 0
    if not differ.any():
        return NO_FEATURES
    values = np.nan_to_num((history.features[:, differ] - center[differ]) / scale[differ])
    names = tuple(name for name, used in zip(history.feature_names, differ, strict=True) if used)
    return Features(values, names, np.stack([center, scale])[:, differ])


def _sample(
    counts: Floats, features: Floats | None, choice: Choice, draws: int, generator: np.random.Generator
) -> tuple[Prior, ...]:
    if choice.ridge is not None and features is not None:
        return sample_feature_priors(counts, features, choice.ridge, draws, generator)
    return sample_priors(counts, choice.types, draws, generator)


def _leave_out_unavailable(history: History) -> tuple[History, tuple[str, ...]]:
    """The rows in which acting was possible: waiting elsewhere cannot be compared with acting."""
    if history.available is None or history.available.all():
        return history, ()
    lost = int((history.known & ~history.available).sum())
    note = f"{show_count(lost, 'move')} in rows where acting was not possible {'is' if lost == 1 else 'are'} left out."
    return history.select(history.available), (note,)


def _describe_gaps(gaps: Gaps) -> str:
    number, moves = gaps.agent.size, gaps.action.size
    return (
        f"{show_count(moves, 'move')} in {show_count(number, 'gap')} between known states, whose actions are known, "
        f"{'is' if moves == 1 else 'are'} used all the same, as if it were chance which states are missing."
    )


def describe_logged(history: History) -> Logged:
    """What the logged program did."""
    seen = np.bincount(history.state, minlength=history.n_states)
    acted = np.bincount(history.state, history.action, history.n_states)
    return Logged(
        history.n_rounds, history.agent.size, history.action.sum() / history.n_rounds, acted / np.maximum(seen, 1)
    )


def find_value_error(history: History) -> Floats:
    """The standard error of the mean reward on arriving in each state, with errors clustered by person, [S]."""
    known = history.known & ~np.isnan(history.reward)
    state, agent = history.next_state[known], history.agent[known]
    rest = history.reward[known] - history.value[state]
    number = np.bincount(state, minlength=history.n_states)
    cell = agent * history.n_states + state
    sums = np.bincount(cell, rest, history.n_agents * history.n_states).reshape(history.n_agents, -1)
    people = np.maximum((np.bincount(cell, minlength=sums.size).reshape(sums.shape) > 0).sum(axis=0), 2)
    error = np.sqrt((sums**2).sum(axis=0) * people / (people - 1)) / np.maximum(number, 1)
    return np.where(number > 0, error, np.nan)
