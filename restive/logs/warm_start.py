"""Warm start: what the moves of a history count when a learner starts from them.

A learner starts from power · counts of each agent, and from the prior that follows from all of them (`Past`,
`Policy.warm_start`). The power is the one under which the last quarter of the rounds is most likely given those before
(Ibrahim and Chen 2000): 1 where people stayed as they were, less where they changed. With a half-life it is 1: moves count by
their weights.
"""

import numpy as np
from scipy.special import logsumexp

from restive.logs.history import History
from restive.logs.model import Prior
from restive.logs.row_prior import rising_log_likelihood
from restive.types import Floats

POWERS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
LATE_SHARE = 0.25
MAX_PEOPLE = 2000  # that the power is chosen by, spread evenly over all


def find_power(history: History, prior: Prior) -> float:
    """The power of a history: what one of its moves counts, from 0 to 1."""
    late = history.round > (1 - LATE_SHARE) * history.n_rounds
    stride = -(-history.n_agents // MAX_PEOPLE)
    early_counts, late_counts = (history.select(rows).counts[::stride] for rows in (~late, late))
    scores = [_log_likelihood(late_counts, power * early_counts, prior) for power in POWERS]
    return POWERS[int(np.argmax(scores))]


def _log_likelihood(counts: Floats, known: Floats, prior: Prior) -> float:
    """The log-likelihood of counts [N, A, S, S] given those that are known, types integrated out."""
    alpha = prior.alpha[:, None] + known  # [K, N, A, S, S]
    before = np.log(prior.share)[:, None] + rising_log_likelihood(prior.alpha[:, None], known)
    after = before + rising_log_likelihood(alpha, counts)
    return float((logsumexp(after, axis=0) - logsumexp(before, axis=0)).sum())
