"""Forgetting: what has changed is forgotten, what has not is kept, and the prior is not touched."""

import numpy as np
import pytest

from restive.kernels.forgetting import FACTORS, find_factor, forget
from restive.types import Floats

AGENTS, OLDER, LATEST = 50, 60, 8


def draw(seed: int, changed: float) -> tuple[Floats, Floats, Floats]:
    """Moves, older moves and posterior of two-state agents, of whose rows so large a part has been drawn again."""
    rng = np.random.default_rng(seed)
    before, after = rng.random((2, AGENTS, 2, 2, 1))
    after = np.where(changed > rng.random(after.shape), after, before)
    known, latest = (
        rng.multinomial(times, np.concatenate([1 - good, good], axis=-1)).astype(np.float64)
        for times, good in ((OLDER, before), (LATEST, after))
    )
    return known + latest, known, known + latest + 1.0


@pytest.mark.parametrize("seed", range(5))
def test_agents_that_have_become_others_are_forgotten(seed: int) -> None:
    assert find_factor(*draw(seed, changed=1.0)) <= 0.25
    assert find_factor(*draw(seed, changed=0.3)) < 1.0


def test_agents_that_are_as_they_were_are_hardly_ever_forgotten() -> None:
    factors = [find_factor(*draw(seed, changed=0.0)) for seed in range(200)]
    assert sum(factor < 1.0 for factor in factors) <= 6


def test_nothing_is_forgotten_without_latest_or_without_older_moves() -> None:
    moves, known, posterior = draw(0, changed=1.0)
    assert find_factor(known, known, posterior) == 1.0
    assert find_factor(moves, np.zeros_like(known), posterior) == 1.0


@pytest.mark.parametrize("factor", [*FACTORS, 1.0])
def test_older_moves_are_multiplied_and_the_prior_stays(factor: float) -> None:
    moves, known, posterior = draw(1, changed=1.0)
    latest = moves - known
    forget(moves, known, posterior, factor)
    assert moves == pytest.approx(latest + factor * known)
    assert posterior - moves == pytest.approx(np.ones(moves.shape))
