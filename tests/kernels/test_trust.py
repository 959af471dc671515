"""Trust in histories against the formula, computed with exact integrals."""

import numpy as np
import pytest
from scipy.special import gammaln

from restive.kernels.trust import FIRST, LINK, SHARES, learn_trust
from restive.types import Floats


def log_probability(alpha: Floats, counts: Floats) -> Floats:
    """Of each agent's sequences of moves under Dirichlet rows, [N]."""
    cells = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=(1, 2))
    rows = gammaln(alpha.sum(axis=-1)) - gammaln((alpha + counts).sum(axis=-1))
    return np.asarray(cells + rows.sum(axis=-1))


def literal_trust(past: Floats, fresh: Floats, prior: Floats) -> Floats:
    """The formula of the module's header."""
    trust = np.empty(past.shape[:2])
    first = np.array(FIRST)
    for a in range(past.shape[1]):
        ratio = np.exp(
            log_probability(prior[:, a] + past[:, a], fresh[:, a]) - log_probability(prior[:, a], fresh[:, a])
        )
        link = 1.0 if a == 0 else 1 - LINK * (1 - trust[:, 0])
        holds = (1 - np.array(SHARES))[:, None] * link
        mixed = holds * ratio + 1 - holds
        chance = first * mixed.prod(axis=1)
        chance /= chance.sum()
        trust[:, a] = (chance[:, None] * holds * ratio / mixed).sum(axis=0)
        first = (np.array(FIRST) + chance) / 2
    return trust


@pytest.mark.parametrize("states", [2, 4])
def test_trust_is_the_posterior_probability_that_a_history_holds(states: int) -> None:
    rng = np.random.default_rng(states)
    past, fresh = rng.integers(0, 6, (2, 7, 2, states, states)).astype(float)
    fresh[0], past[1], past[2, :, 0] = 0, 0, 0
    prior = rng.gamma(2.0, 1.0, past.shape)
    trust = np.empty((7, 2))
    learn_trust(past, fresh, prior, trust)
    np.testing.assert_allclose(trust, literal_trust(past, fresh, prior), rtol=1e-9)


def test_a_history_that_is_wrong_for_all_is_given_up_after_fewer_moves_than_one_that_is_wrong_for_one() -> None:
    past, prior, fresh = np.zeros((30, 1, 2, 2)), np.ones((30, 1, 2, 2)), np.zeros((30, 1, 2, 2))
    past[..., 0, 1], fresh[:, 0, 0] = 9, [0, 1]
    fresh[0, 0, 0] = [1, 0]
    alone, all_of_them = np.empty((2, 30, 1))
    learn_trust(past, fresh, prior, alone)
    learn_trust(past, np.tile(fresh[:1], (30, 1, 1, 1)), prior, all_of_them)
    assert alone[1:].min() > 0.9
    assert alone[0] > 0.5 > 0.1 > all_of_them[0]
