"""Working models of an evaluation: what doubly robust estimators subtract and add again.

They reduce the variance and need not be right. For one round: expected rewards by regression, cross-fitted over people.
For several: transition rows by state and tenth of the candidate's own priority there, because a model that is the same for
all people is badly biased for a policy that targets; from these the value of every person, state and round under the
candidate's threshold path, and how much more often the candidate meets a person in a state than the log did. Rows that
use a person's own moves too were tried: they explain their own residuals, or add more noise than they remove.
"""

from typing import NamedTuple, Protocol

import numpy as np

from restive.kernels.threshold_path import share_out
from restive.logs.candidate import Candidate, PastModel
from restive.logs.history import History
from restive.logs.model import FittedModel
from restive.logs.panel import Log
from restive.logs.propensity import FOLDS, past_mean, person_folds, standard_features
from restive.types import Floats, Ints

RIDGE = 2.0  # pseudo-rows of a regression
BINS, MIN_BIN_ROWS = 10, 100
BIN_WEIGHT = 20.0  # pseudo-moves by which the rows of a bin are drawn to those of everybody
MIN_OCCUPANCY = 1e-6


def expected_rewards(history: History, candidate: Candidate, reward: Floats) -> Floats:
    """The expected reward of each row without and with acting, [rows, 2].

    Linear regression within each state and action on the rank of the priority in its round, the person's mean reward
    before and the features, fitted to the people of the other folds.
    """
    rows = np.flatnonzero(np.isfinite(reward))
    columns = [np.ones(reward.size), _rank_in_round(history, candidate.priority), past_mean(history, reward)]
    features = standard_features(history)
    columns += [feature[history.agent] for feature in features.T]
    fold = person_folds(history.n_agents)[history.agent]
    shape = (FOLDS, 2, history.n_states)
    cell = np.ravel_multi_index((fold, history.action, history.state), shape)[rows]
    center = float(reward[rows].mean())
    used = [column[rows] for column in columns]
    size, cells = len(columns), int(np.prod(shape))
    gram = np.empty((cells, size, size))
    moment = np.empty((cells, size))
    for i, one in enumerate(used):
        moment[:, i] = np.bincount(cell, one * (reward[rows] - center), cells)
        for j in range(i + 1):
            gram[:, i, j] = gram[:, j, i] = np.bincount(cell, one * used[j], cells)
    slope = _solve_without_own_fold(gram.reshape(*shape, size, size), moment.reshape(*shape, size))
    expected = np.full((reward.size, 2), center)
    for action in range(2):
        for i, column in enumerate(columns):
            expected[:, action] += slope[fold, action, history.state, i] * column
    return expected


def _solve_without_own_fold(gram: Floats, moment: Floats) -> Floats:
    """Ridge coefficients of each fold's people, from the sums of the other folds."""
    others = gram.sum(axis=0) - gram + RIDGE * np.eye(gram.shape[-1])
    return np.asarray(np.linalg.solve(others, (moment.sum(axis=0) - moment)[..., None])[..., 0])


def _rank_in_round(history: History, priority: Floats) -> Floats:
    """The place of each row's priority in its round, from -1/2 to 1/2; ties have the same place."""
    order = np.lexsort((priority, history.round))
    number, value = history.round[order], priority[order]
    new = np.append(True, (number[1:] != number[:-1]) | (value[1:] != value[:-1]))
    first = np.searchsorted(number, number)
    start = np.flatnonzero(new)
    middle = (start + np.append(start[1:], order.size) - 1) / 2
    count = np.bincount(history.round)[number]
    place = np.empty(order.size)
    place[order] = (middle[np.cumsum(new) - 1] - first + 0.5) / count - 0.5
    return place


class Rows(Protocol):
    """Transition rows of people, for the candidate's window of that number."""

    def of(self, number: int, person: Ints) -> Floats:
        """[n, 2, S, S]."""


class BinnedRows:
    """Rows by state and bin of the candidate's priority in that state."""

    def __init__(self, history: History, candidate: Candidate) -> None:
        pooled = history.counts.sum(axis=0) + 0.5
        pooled /= pooled.sum(axis=-1, keepdims=True)
        self.table, self.edges, self.rows = candidate.table, list[Floats](), list[Floats]()
        for state in range(history.n_states):
            here = np.flatnonzero((history.state == state) & history.known)
            priority = candidate.priority[here]
            bins = max(1, min(BINS, here.size // MIN_BIN_ROWS))
            inner = np.arange(1, bins) / bins
            edges = np.unique(np.quantile(priority, inner, method="lower")) if bins > 1 else np.zeros(0)
            group = np.searchsorted(edges, priority, side="right")
            total = np.zeros((edges.size + 1, 2, history.n_states))
            np.add.at(total, (group, history.action[here], history.next_state[here]), 1.0)
            total += BIN_WEIGHT * pooled[:, state]
            self.edges.append(edges)
            self.rows.append(total / total.sum(axis=-1, keepdims=True))

    def of(self, number: int, person: Ints) -> Floats:
        """The rows of each person's bins in a window, [n, 2, S, S]."""
        table = self.table[number, person]
        parts = [
            rows[np.searchsorted(edges, table[:, state], side="right")]
            for state, (edges, rows) in enumerate(zip(self.edges, self.rows, strict=True))
        ]
        return np.stack(parts, axis=2)


class ModelRows:
    """Rows of a fitted model, given everybody's moves before a window."""

    def __init__(self, log: Log, model: FittedModel) -> None:
        self.past, self.first = PastModel.of(log.history, model), log.windows.first

    def of(self, number: int, person: Ints) -> Floats:
        """The expected rows, [n, 2, S, S]."""
        return self.past.rows(int(self.first[number]))[person]


class Nuisances(NamedTuple):
    """For each unit and round: the value of waiting and acting from there on, and the ratio of occupancies."""

    value: Floats  # [W, H, 2]
    ratio: Floats  # [W, H]

    def in_order(self, order: Ints) -> Floats:
        """The values of sorted entries, [W · H, 2]."""
        return np.asarray(self.value.swapaxes(0, 1).reshape(-1, 2)[order])


def plan_windows(log: Log, candidate: Candidate, rows: Rows) -> Nuisances:
    """Values and ratios of every unit under the candidate's threshold path in the model, window by window."""
    history, windows, units = log.history, log.windows, log.units
    shape = units.row.shape
    found = Nuisances(np.zeros((*shape, 2)), np.ones(shape))
    logged = _logged_rule(history, log.propensity)
    seen = np.maximum(np.bincount(history.state, minlength=history.n_states), 1)
    open_share = np.bincount(history.state, log.available, history.n_states) / seen
    for number, first in enumerate(windows.first.tolist()):
        here = np.flatnonzero(units.window == number)
        people, rounds = units.person[here], slice(first - 1, first - 1 + windows.rounds)
        path = _Path(rows.of(number, people), history.value, candidate.table[number, people], open_share)
        state = history.state[units.row[here]]
        chosen, found.ratio[here] = path.forward(state, log.share[rounds], candidate.explore[rounds], logged[people])
        found.value[here] = path.backward(state, chosen)
    return found


def _logged_rule(history: History, propensity: Floats) -> Floats:
    """The mean logged probability of acting on each person in each state, drawn to that of the state, [N, S]."""
    shape = (history.n_agents, history.n_states)
    cell = np.ravel_multi_index((history.agent, history.state), shape)
    seen = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    total = np.bincount(cell, propensity, shape[0] * shape[1]).reshape(shape)
    mean = total.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.asarray((total + mean) / (seen + 1))


class _Path(NamedTuple):
    """People of one window in the model."""

    rows: Floats  # [n, 2, S, S]
    reward: Floats  # [S] on arrival
    priority: Floats  # [n, S]
    open_share: Floats  # [S] how often acting is possible

    def forward(self, state: Ints, share: Floats, explore: Floats, logged: Floats) -> tuple[list[Floats], Floats]:
        """The probability of acting in each state, [n, S] a round, and the ratio of occupancies at `state`, [n, H]."""
        order = np.argsort(-self.priority, axis=None, kind="stable")
        value = self.priority.ravel()[order]
        tied = np.append(False, value[1:] == value[:-1])
        everyone = np.arange(len(state))
        mine = np.zeros(self.priority.shape)
        mine[everyone, state[:, 0]] = 1.0
        theirs = mine.copy()
        chosen, ratio = [], np.empty(state.shape)
        for step in range(state.shape[1]):
            here = everyone, state[:, step]
            ratio[:, step] = mine[here] / np.maximum(theirs[here], MIN_OCCUPANCY)
            part = np.empty(order.size)
            weight = (mine * self.open_share).ravel()[order]
            share_out(weight, tied, order.size, float(share[step]), float(explore[step]), part)
            acts = np.empty(order.size)
            acts[order] = part
            chosen.append(acts.reshape(self.priority.shape) * self.open_share)
            mine, theirs = self._move(mine, chosen[-1]), self._move(theirs, logged)
        return chosen, ratio

    def _move(self, occupancy: Floats, acts: Floats) -> Floats:
        both = np.stack([occupancy * (1 - acts), occupancy * acts], axis=1)
        return np.asarray(np.einsum("nas,nast->nt", both, self.rows))

    def backward(self, state: Ints, chosen: list[Floats]) -> Floats:
        """The expected reward from each round on, waiting or acting at `state`, [n, H, 2]."""
        found = np.empty((*state.shape, 2))
        after = np.broadcast_to(self.reward, self.priority.shape)
        for step in range(state.shape[1] - 1, -1, -1):
            value = np.einsum("nast,nt->nas", self.rows, after)
            found[:, step] = value[np.arange(len(state)), :, state[:, step]]
            later = (1 - chosen[step]) * value[:, 0] + chosen[step] * value[:, 1]
            after = self.reward + later
        return found
