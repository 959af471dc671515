"""The rows of a history as the tests need them: what was drawn, with which probability, and what followed."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from restive.errors import InputError, did_you_mean
from restive.logs.assumptions.estimators import cell_means
from restive.logs.history import History
from restive.types import Bools, Floats, Ints

MAX_CORRECTED = 2000  # with more people the correction of a sandwich for small samples does not matter


@dataclass(frozen=True)
class Rows:
    """Rows in which acting was possible and not certain; the draw is the advice where there is one, else the action."""

    history: History  # of these rows only
    draw: Ints
    propensity: Floats  # as recorded, or the share of draws in the same state
    recorded: bool  # whether propensities were recorded
    advised: bool  # whether the draw is the advice
    outcome: Floats  # the reward, or the value of the next state; NaN where neither is known
    previous: Ints  # the row before of the same person among all rows of the source, as a position in `all`; -1 if none
    all: "AllRows"
    control_names: tuple[str, ...] = ()  # columns that change over time, instead of the state
    over: str = ""  # the column of time that effects may change with, instead of the round

    @property
    def agent(self) -> Ints:
        """Of each row."""
        return self.history.agent

    @property
    def state(self) -> Ints:
        """Of each row."""
        return self.history.state

    @cached_property
    def by_state(self) -> Floats:
        """Columns that say in which state a row is, without the first; [rows, S − 1]."""
        return np.asarray(self.state[:, None] == np.arange(1, self.history.n_states), np.float64)

    @property
    def controls(self) -> Floats:
        """What effects are adjusted for: the state, or the columns that were named."""
        if not self.control_names:
            return self.by_state
        return np.stack([_fill(self.history.by_row[name]) for name in self.control_names], axis=1)

    @property
    def time(self) -> Floats:
        """What effects may change with: rounds from 0, or the column that was named."""
        return _fill(self.history.by_row[self.over]) if self.over else (self.history.round - 1).astype(np.float64)

    @cached_property
    def corrected(self) -> bool:
        """Whether errors are corrected for a small number of people."""
        return self.history.n_agents <= MAX_CORRECTED

    def select(self, chosen: Bools) -> "Rows":
        """Some of the rows."""
        parts = {name: getattr(self, name)[chosen] for name in ("draw", "propensity", "outcome", "previous")}
        return replace(self, history=self.history.select(chosen), **parts)

    @cached_property
    def with_outcome(self) -> "Rows":
        """The rows whose outcome is known."""
        known = np.isfinite(self.outcome)
        return self if known.all() else self.select(known)

    @cached_property
    def residual(self) -> Floats:
        """The outcome minus its mean over rows with the same state and draw; 0 where it is not known."""
        cell = 2 * self.state + self.draw
        known = np.isfinite(self.outcome)
        filled = np.where(known, self.outcome, 0.0)
        means = cell_means(filled[:, None], cell, known.astype(float))[:, 0]
        return np.asarray(np.where(known, filled - means, 0.0))

    @cached_property
    def budgeted(self) -> bool:
        """Whether the recorded propensities of each round add up to the number of draws: a budget that is always spent."""
        if not self.recorded:
            return False
        expected = np.bincount(self.history.round, self.propensity)
        done = np.bincount(self.history.round, self.draw)
        return bool(np.abs(expected - done).max() < 0.5 + 1e-6 * done.max())


@dataclass(frozen=True)
class AllRows:
    """Every row of the source."""

    history: History
    draw: Ints
    outcome: Floats


def prepare(history: History, controls: tuple[str, ...] = (), over: str = "") -> Rows:
    """The rows of a history in which there was a draw."""
    for name in (*controls, *filter(None, [over])):
        if name not in history.by_row:
            known = did_you_mean(name, history.by_row)
            raise InputError(f"There is no column {name!r} of numbers that change over time{known}", location="control")
    advised = history.advised is not None and bool((history.advised >= 0).any())
    draw = history.advised if advised else history.action
    assert draw is not None
    arrived = np.where(history.known, history.value[np.maximum(history.next_state, 0)], np.nan)
    outcome = np.where(np.isfinite(history.reward), history.reward, arrived)
    same = np.diff(history.agent, prepend=-1) == 0
    previous = np.where(same, np.arange(draw.size) - 1, -1)
    chosen = draw >= 0
    if history.available is not None:
        chosen &= history.available
    recorded = history.propensity is not None and bool(np.isfinite(history.propensity[chosen]).all())
    propensity = history.propensity if recorded else _rates(draw, history.state, chosen)
    assert propensity is not None
    chosen = chosen & (propensity > 0) & (propensity < 1)
    kept = history.select(chosen)
    return Rows(
        kept,
        draw[chosen],
        propensity[chosen],
        recorded,
        advised,
        outcome[chosen],
        previous[chosen],
        AllRows(history, draw, outcome),
        controls,
        over,
    )


def _fill(column: Floats) -> Floats:
    """A column with its mean where it is not known."""
    known = np.isfinite(column)
    return np.asarray(np.where(known, column, column[known].mean() if known.any() else 0.0))


def _rates(draw: Ints, state: Ints, chosen: Bools) -> Floats:
    """The share of draws in the state of each row."""
    drawn = np.bincount(state[chosen], draw[chosen], int(state.max()) + 1)
    seen = np.bincount(state[chosen], minlength=drawn.size)
    return np.asarray((drawn / np.maximum(seen, 1))[state])
