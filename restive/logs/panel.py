"""The rows of a history as units: one person in one window of H rounds, all of them recorded.

Units are ordered by window and then by person. Rows before the first window, and windows in which a round or its reward
is missing, are left out.
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.threshold_path import Entries
from restive.logs.candidate import Candidate, Windows
from restive.logs.history import History
from restive.types import Bools, Floats, Ints


class Units(NamedTuple):
    """W units."""

    row: Ints  # [W, H] the row of each round in the history
    person: Ints  # [W]
    window: Ints  # [W]
    incomplete: int  # windows of a person that began, and lack a round or a reward


def make_units(history: History, windows: Windows, reward: Floats) -> Units:
    """The units of a history."""
    count = windows.first.size
    row_at = np.full((history.n_agents, history.n_rounds), -1, np.int64)
    row_at[history.agent, history.round - 1] = np.arange(history.agent.size)
    row_at[history.agent[np.isnan(reward)], history.round[np.isnan(reward)] - 1] = -1
    cut = row_at[:, windows.first[0] - 1 :].reshape(history.n_agents, count, windows.rounds).transpose(1, 0, 2)
    whole = (cut >= 0).all(axis=2)
    began = np.zeros(whole.shape, np.bool_)
    window = windows.find(history.round)
    began[window[window >= 0], history.agent[window >= 0]] = True
    number, person = np.nonzero(whole)
    return Units(cut[whole], person, number, int(began.sum() - whole.sum()))


class Log(NamedTuple):
    """A history in units, with what was logged of each row and the budget of each round."""

    history: History
    windows: Windows
    units: Units
    reward: Floats
    propensity: Floats  # of acting, 0 where that was not possible
    available: Bools
    share: Floats  # [T] of those available who are acted on


def budget_share(history: History, available: Bools, budget: int | None) -> Floats:
    """The share of those who can be acted on that is acted on in each round, [T]: as logged, or as given."""
    number = history.round - 1
    people = np.bincount(number, available, history.n_rounds)
    actions = np.bincount(number, history.action, history.n_rounds) if budget is None else float(budget)
    return np.asarray(np.minimum(actions / np.maximum(people, 1), 1.0))


def sort_entries(log: Log, candidate: Candidate) -> tuple[Entries, Ints]:
    """The entries of all units in the order that kernels expect, and their places in `units.row.T.ravel()`."""
    windows, units = log.windows, log.units
    steps, count = windows.rounds, windows.first.size
    row = units.row.T.ravel()
    unit = np.tile(np.arange(units.person.size), steps)
    group = np.repeat(np.arange(steps) * count, units.person.size) + np.tile(units.window, steps)
    can, priority = log.available[row], candidate.priority[row]
    order = np.lexsort((-priority, ~can, group))
    sorted_row, group, can, priority = row[order], group[order], can[order], priority[order]
    tied = np.zeros(row.size, np.bool_)
    tied[1:] = (group[1:] == group[:-1]) & (priority[1:] == priority[:-1]) & (can[1:] == can[:-1])
    number = (windows.first[None] + np.arange(steps)[:, None]).ravel() - 1
    renumbered = np.empty(units.person.size, np.int64)  # by their place in the first step, which makes scans sequential
    renumbered[unit[order[: units.person.size]]] = np.arange(units.person.size)
    entries = Entries(
        unit=renumbered[unit[order]],
        person=units.person[unit[order]],
        action=log.history.action[sorted_row],
        reward=log.reward[sorted_row],
        propensity=log.propensity[sorted_row],
        tied=tied,
        first=np.searchsorted(group, np.arange(steps * count + 1)),
        open=np.bincount(group, can, steps * count).astype(np.int64),
        share=log.share[number],
        explore=candidate.explore[number],
    )
    return entries, order
