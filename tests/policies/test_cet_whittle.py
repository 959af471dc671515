"""Certainty equivalence follows the mean of the posterior, in the episodes of posterior sampling; no noise is involved."""

import numpy as np
import pytest

from restive import InputError, World, make_policy, make_problems, simulate
from restive.contract import Shape
from restive.policies.cet_whittle import CetWhittle, mean_rows
from restive.policies.thompson_whittle import ThompsonWhittle
from restive.policies.transition_counts import mean_rewards
from restive.simulation import Simulation
from restive.solvers.whittle import whittle_indices


def test_a_model_is_the_mean_of_many_draws() -> None:
    """What it follows is where the draws of `thompson-whittle` are on average, to four standard errors."""
    world = World(make_problems("many-state-v1", agents=5, budget=1, states=3)[0], runs=1)
    moves = np.arange(90, dtype=np.float64).reshape(1, 5, 2, 3, 3) % 7
    drawn = np.stack([ThompsonWhittle(prior=0.5).guess(moves, np.array([0]), world.draws(t)) for t in range(2000)])
    error = drawn.std(axis=0) / np.sqrt(2000)
    assert (np.abs(drawn.mean(axis=0) - mean_rows(moves, 0.5)) < 4 * error).all()


def test_indices_are_those_of_the_counts_when_the_episode_began() -> None:
    world = World(make_problems("two-state-v1", agents=4, budget=1, seed=2)[0], runs=2, seed=4, noise=0.2)
    game = Simulation(world, CetWhittle(discount=0.7, prior=2.0))
    seen = 0
    for _ in range(60):
        counts = type(game.belief.counts)(*(part.copy() for part in game.belief.counts))
        game.advance(1)
        began = game.belief.age == 1
        rows = (counts.moves + 2.0) / (counts.moves.sum(axis=-1, keepdims=True) + 4.0)
        wanted = whittle_indices(rows.reshape(8, 2, 2, 2), mean_rewards(counts).reshape(8, 2), 0.7)
        np.testing.assert_allclose(game.belief.indices[began], wanted.value.reshape(2, 4, 2)[began], atol=1e-12)
        seen += int(began.sum())
    assert 10 < seen < 120


def test_a_new_episode_is_due_whenever_posterior_sampling_has_one() -> None:
    """Shown the same history, both begin their episodes in the same steps."""
    world = World(make_problems("two-state-v1", agents=3, budget=1, seed=2)[0], runs=3, seed=4)
    policies = (CetWhittle(), ThompsonWhittle())
    beliefs, state = [policy.start(world.shape) for policy in policies], world.first_states()
    began = 0
    for step in range(300):
        draws = world.draws(step)
        for policy, belief in zip(policies, beliefs, strict=True):
            policy.rank(belief, state, draws)
        np.testing.assert_array_equal(beliefs[0].age, beliefs[1].age)
        began += int((beliefs[0].age == 0).sum())
        action = np.zeros((3, 3), np.int64)
        action[:, step * step % 3] = 1
        outcome = world.advance(state, action, draws)
        for policy, belief in zip(policies, beliefs, strict=True):
            policy.learn(belief, state, action, outcome.reward, outcome.after)
        state = outcome.after
    assert 60 < began < 900


def test_the_same_history_gives_the_same_ranking_with_other_random_numbers() -> None:
    problem = make_problems("two-state-v1", agents=6, budget=2, seed=2)[0]
    one, other = (World(problem, runs=1, seed=seed) for seed in (1, 2))
    moves = np.random.default_rng(0).integers(0, 9, (1, 6, 2, 2, 2)).astype(np.float64)
    due, state = np.array([0]), np.zeros((1, 6), np.int64)
    rankings = {}
    for policy in (CetWhittle(), ThompsonWhittle()):
        ranked = []
        for world in (one, other):
            belief = policy.start(world.shape)
            belief.counts.moves[due] = moves
            belief.counts.arrivals[:], belief.counts.total[..., 1] = 1.0, 1.0
            ranked.append(policy.rank(belief, state, world.draws(0)).priority)
        rankings[policy.name] = np.array_equal(ranked[0], ranked[1])
    assert rankings == {"cet-whittle": True, "thompson-whittle": False}


def test_all_agents_are_equal_before_the_first_observation() -> None:
    policy = CetWhittle()
    shape = Shape(runs=2, agents=3, states=2, budget=1, horizon=None, reward_range=np.ones(2))
    world = World(make_problems("two-state-v1", agents=3, budget=1)[0], runs=2)
    ranked = policy.rank(policy.start(shape), np.array([[0, 1, 0]] * 2), world.draws(0)).priority
    assert np.ptp(ranked) == 0


def test_it_learns_but_stays_behind_posterior_sampling_on_the_ladder() -> None:
    problems = make_problems("ladder-v1", instances=5, agents=20, budget=4, seed=21)
    names = ("cet-whittle", "thompson-whittle", "random", "whittle-oracle")
    traces = [simulate(problems, name, 2000, runs=3, seed=2) for name in names]
    closed, sampling = (float(trace.gap_closed(traces[2], traces[3]).mean) for trace in traces[:2])
    assert 0.3 < closed < sampling - 0.05


@pytest.mark.parametrize("settings", ["discount=0", "discount=1.5", "prior=0", "prior=-1", "prior=inf"])
def test_invalid_settings_are_refused(settings: str) -> None:
    with pytest.raises(InputError, match="cet-whittle: "):
        make_policy(f"cet-whittle:{settings}")
