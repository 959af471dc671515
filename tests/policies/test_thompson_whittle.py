"""Posterior sampling draws when an episode is over, and only then, and finds its way."""

import numpy as np
import pytest

from restive import InputError, World, make_policy, make_problems, simulate
from restive.contract import as_ranking
from restive.policies.thompson_whittle import ThompsonWhittle


def test_episodes_end_as_the_source_says() -> None:
    """A literal reading: longer than the last episode, or any visits more than doubled since it began."""
    world = World(make_problems("two-state-v1", agents=3, budget=1, seed=2)[0], runs=2, seed=4)
    policy = ThompsonWhittle()
    belief, state = policy.start(world.shape), world.first_states()
    visits = np.zeros((2, 3, 2, 2))
    began, length, before = np.zeros(2, int), np.zeros(2, int), visits.copy()
    drawn = 0
    for step in range(400):
        worth = belief.indices.copy()
        draws = world.draws(step)
        ranking = as_ranking(policy.rank(belief, state, draws), world.shape, policy.name)
        for run in range(2):
            over = step == 0 or step - began[run] > length[run] or (visits[run] > 2 * before[run]).any()
            assert over == (belief.age[run] == 0)
            if not over:
                np.testing.assert_array_equal(worth[run], belief.indices[run])
            if over:
                began[run], length[run], before[run] = step, step - began[run], visits[run]
                drawn += 1
        action = world.choose(ranking, draws)
        outcome = world.advance(state, action, draws)
        policy.learn(belief, state, action, outcome.reward, outcome.after)
        for run in range(2):
            for agent in range(3):
                visits[run, agent, action[run, agent], state[run, agent]] += 1
        state = outcome.after
    assert 40 < drawn < 400


def test_it_comes_close_to_the_oracle() -> None:
    problems = make_problems("two-state-v1", instances=5, agents=20, budget=4, seed=21)
    traces = [
        simulate(problems, name, 1000, runs=4, seed=2) for name in ("thompson-whittle", "random", "whittle-oracle")
    ]
    closed = traces[0].gap_closed(traces[1], traces[2])
    assert 0.85 < float(closed.mean) < 1.0


def test_a_heavy_prior_keeps_it_from_learning_soon() -> None:
    problems = make_problems("two-state-v1", instances=5, agents=20, budget=4, seed=21)
    light, heavy = (simulate(problems, f"thompson-whittle:prior={prior}", 200, runs=4, seed=2) for prior in (1, 1000))
    assert heavy.reward.mean() < light.reward.mean()


@pytest.mark.parametrize("settings", ["discount=0", "discount=1.5", "prior=0", "prior=-1", "prior=inf"])
def test_invalid_settings_are_refused(settings: str) -> None:
    with pytest.raises(InputError, match="thompson-whittle: "):
        make_policy(f"thompson-whittle:{settings}")


def test_the_discount_and_a_tiny_prior_have_an_effect() -> None:
    problems = make_problems("two-state-v1", instances=2, agents=10, budget=2, seed=21)
    settings = ("discount=0.1", "discount=0.99", "prior=0.003")
    rewards = [simulate(problems, f"thompson-whittle:{setting}", 60, runs=2).reward for setting in settings]
    assert not np.array_equal(rewards[0], rewards[1])
    assert np.isfinite(rewards[2]).all()
