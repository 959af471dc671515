"""The sampler against populations that it must recover: how agents differ, and how acting goes with waiting."""

from copy import deepcopy

import numpy as np
import pytest

from restive.kernels.gibbs import Sample, begin, fill_rows, gather, sweep
from restive.types import Floats, Keys

SWEEPS, FIRST = 400, 150


def new_stream(key: int = 7) -> Keys:
    return np.array([key, 0], np.uint64)


def logistic(values: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-values))
    return chances


def draw(moves: Floats, features: Floats | None = None) -> tuple[list[Sample], Floats]:
    """Samples, of which arrays are copied, and the rows of all agents in each, [D, N, A, S, S]."""
    known = np.zeros((len(moves), 0)) if features is None else features
    data, stream = gather(moves, len(moves), known), new_stream()
    sample, kept, rows = begin(stream, data), [], []
    for step in range(SWEEPS):
        sweep(stream, data, sample, len(moves))
        if step >= FIRST:
            kept.append(deepcopy(sample))
            rows.append(np.empty(moves.shape))
            for n in range(len(moves)):
                fill_rows(data, sample, n, rows[-1][n])
    return kept, np.array(rows)


@pytest.mark.parametrize("states", [2, 4])
def test_rows_of_agents_that_differ_vary_as_much_as_they_do_and_equals_do_not(states: int) -> None:
    generator = np.random.default_rng(3)
    rows = generator.dirichlet(np.ones(states), (120, 2, states))
    _, drawn = draw(generator.multinomial(8, rows).astype(np.float64))
    np.testing.assert_allclose(drawn.sum(axis=-1), 1.0)
    assert drawn.std(axis=1).mean() == pytest.approx(rows.std(axis=0).mean(), abs=0.025)
    error = np.sqrt(((drawn.mean(axis=0) - rows) ** 2).mean())
    assert error == pytest.approx(np.sqrt(drawn.var(axis=0).mean()), rel=0.3)
    equal = np.full((120, 2, states, states), 1 / states)
    _, drawn = draw(generator.multinomial(8, equal).astype(np.float64))
    assert drawn.std(axis=1).mean() < 0.4 * rows.std(axis=0).mean()


def test_agents_on_whom_was_never_acted_get_the_acting_that_goes_with_their_waiting() -> None:
    """Acting halves the logit of all, and only those with a low one were acted on, so others must be extrapolated."""
    generator = np.random.default_rng(4)
    logit = generator.normal(0.0, 1.5, (200, 2))
    chance = logistic(np.stack([logit, logit - 1.0], axis=1))
    rows = np.stack([1 - chance, chance], axis=-1)
    moves = generator.multinomial(40, rows).astype(np.float64)
    tried = logit[:, 0] < 0.3
    moves[~tried, 1] = 0.0
    _, drawn = draw(moves)
    error = (drawn - rows).mean(axis=0)[~tried, 1, :, 1]
    assert abs(error.mean()) < 0.06
    assert np.abs(rows[tried, 1, 0, 1].mean() - rows[~tried, 1, 0, 1].mean()) > 0.3  # the tried are not like the others


def test_two_kinds_of_people_are_two_types() -> None:
    generator = np.random.default_rng(5)
    kinds = np.array([[[0.9, 0.1], [0.8, 0.2]], [[0.2, 0.8], [0.1, 0.9]]])
    rows = np.stack([kinds[np.arange(60) % 2], kinds[np.arange(60) % 2]], axis=1)
    samples, drawn = draw(generator.multinomial(20, rows).astype(np.float64))
    same = np.mean([each.kind[:, None] == each.kind for each in samples], axis=0)
    alike = np.arange(60)[:, None] % 2 == np.arange(60) % 2
    assert same[~alike].mean() < 0.05
    assert same[alike].mean() > 0.4
    assert np.abs(drawn.mean(axis=0) - rows).mean() < 0.03


def test_features_that_matter_are_found_and_useless_ones_are_not() -> None:
    generator = np.random.default_rng(6)
    features = generator.normal(size=(150, 2))
    chance = logistic(1.5 * features[:, :1, None] + np.zeros((150, 2, 2)))
    rows = np.stack([1 - chance, chance], axis=-1)
    moves = generator.multinomial(6, rows).astype(np.float64)
    moves[100:] = 0.0  # newcomers
    samples, drawn = draw(moves, features)
    slope = np.mean([np.abs(each.slope) for each in samples], axis=0)
    assert slope[0].min() > 1.0
    assert slope[1].max() < 0.5
    assert np.corrcoef(drawn.mean(axis=0)[100:, 1, 0, 1], rows[100:, 1, 0, 1])[0, 1] > 0.9
