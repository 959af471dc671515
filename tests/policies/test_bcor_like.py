"""The logistic model finds the probabilities it was given, agents and features share what is known, draws vary with the data."""

import numpy as np
import pytest

from restive import InputError, Problem, World, make_policy, make_problems, simulate
from restive.policies.bcor_like import BcorBelief, BcorLike, draw_scores, fit_model
from restive.problems.two_state import fill_rows
from restive.simulation import Simulation
from restive.types import Floats


def sigmoid(score: Floats) -> Floats:
    return 1 / (1 + np.exp(-score))


def fitted(problem: Problem, visits: float, sweeps: int = 30) -> tuple[BcorLike, World, BcorBelief]:
    """A belief that has seen each pair so often, with the expected moves."""
    world = World(problem, runs=1)
    policy = BcorLike()
    belief = policy.start(world.shape)
    belief.counts.moves[0] = visits * problem.transition
    for _ in range(sweeps):
        fit_model(belief, belief.features)
    return policy, world, belief


def mean_rows(world: World, belief: BcorBelief, draws: int = 200) -> Floats:
    """The mean probability of the good state over many draws."""
    means: Floats = np.mean(
        [sigmoid(draw_scores(belief, belief.features, world.draws(t)))[..., 0] for t in range(draws)], axis=0
    )
    return means


def test_with_many_moves_the_draws_are_the_probabilities_of_an_additive_model() -> None:
    effect = np.linspace(-1, 1, 12)[:, None, None]
    good = sigmoid(np.array([[-1.0, 0.5], [0.0, 1.5]]) + effect)
    _, world, belief = fitted(Problem(fill_rows(good), [0.0, 1.0], 2), visits=1e5)
    np.testing.assert_allclose(mean_rows(world, belief)[0], good, atol=0.02)


def test_a_person_who_was_not_seen_is_taken_for_one_like_the_others_but_with_more_doubt() -> None:
    good = sigmoid(2.2 + np.linspace(-1, 1, 9).repeat(4).reshape(9, 2, 2))
    good = np.concatenate([good, np.full((1, 2, 2), 0.9)])
    world, policy = World(Problem(fill_rows(good), [0.0, 1.0], 2), runs=1), BcorLike()
    belief = policy.start(world.shape)
    belief.counts.moves[0, :9] = 50 * fill_rows(good)[:9]
    for _ in range(30):
        fit_model(belief, belief.features)
    drawn = np.array([draw_scores(belief, belief.features, world.draws(t))[0, :, 0, 0, 0] for t in range(300)])
    assert sigmoid(drawn.mean(axis=0))[9] == pytest.approx(0.9, abs=0.05)
    assert drawn[:, 9].std() > 1.2 * drawn[:, :9].std(axis=0).max()


def test_features_tell_about_people_who_were_not_seen() -> None:
    feature = np.linspace(-1.5, 1.5, 20)
    good = np.broadcast_to(sigmoid(2 * feature)[:, None, None], (20, 2, 2))
    world = World(Problem(fill_rows(good), [0.0, 1.0], 2, features=feature[:, None]), runs=1)
    belief = BcorLike().start(world.shape)
    belief.counts.moves[0, 1:-1] = 20 * fill_rows(good)[1:-1]
    for _ in range(30):
        fit_model(belief, belief.features)
    rows = mean_rows(world, belief)[0, :, 0, 0]
    assert rows[0] < 0.15
    assert rows[-1] > 0.85


def test_another_model_is_drawn_when_it_is_due() -> None:
    world = World(make_problems("many-state-v1", agents=6, budget=2, states=3, seed=2)[0], runs=2, seed=4)
    game = Simulation(world, BcorLike(every=3))
    drawn = []
    for _ in range(7):
        game.advance(1)
        drawn.append(int(game.belief.drawn))
    assert drawn == [0, 0, 0, 3, 3, 3, 6]


def test_it_learns_in_a_short_program() -> None:
    problems = make_problems("pharmacy-v1", instances=3, seed=7)
    reward = {
        name: simulate(problems, name, horizon=60, seed=1).mean_reward().mean
        for name in ("random", "bcor-like", "whittle-oracle")
    }
    assert reward["random"] + 0.3 * (reward["whittle-oracle"] - reward["random"]) < reward["bcor-like"]


@pytest.mark.parametrize("settings", ["discount=0", "discount=1.1", "every=0"])
def test_settings_out_of_range_are_refused(settings: str) -> None:
    with pytest.raises(InputError, match="bcor-like: "):
        make_policy(f"bcor-like:{settings}")
