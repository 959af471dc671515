"""Fit the model of a history."""

import numpy as np

from restive.logs.history import History
from restive.logs.model import FittedModel, Logged, Prior


def fit(history: History) -> FittedModel:
    """The model of a history."""
    counts = history.counts
    pooled = counts.sum(axis=0) + 1.0
    alpha = 5 * pooled / pooled.sum(axis=-1, keepdims=True)
    seen = np.bincount(history.state, minlength=history.n_states)
    acted = np.bincount(history.state, history.action, history.n_states)
    logged = Logged(
        history.n_rounds, history.agent.size, history.action.sum() / history.n_rounds, acted / np.maximum(seen, 1)
    )
    prior = Prior(np.ones(1), alpha[None])
    return FittedModel(
        history.agents, history.states, history.value, counts, history.last_state, prior, (prior,), logged
    )
