"""Counts add up, and the estimates that follow from them are the shares and means by hand."""

import numpy as np

from restive import World, make_problems
from restive.contract import Shape
from restive.policies.transition_counts import Counts, count_moves, mean_rewards, mean_transitions, no_counts

SHAPE = Shape(runs=1, agents=2, states=2, budget=1, horizon=None, reward_range=np.ones(1))


def test_each_step_is_counted_once_where_it_happened() -> None:
    world = World(make_problems("many-state-v1", agents=6, budget=2, states=3)[0], runs=4, seed=1, noise=0.5)
    counts, state, rewards = no_counts(world.shape), world.first_states(), 0.0
    by_hand = np.zeros_like(counts.moves)
    for step in range(30):
        action = np.zeros((4, 6), np.int64)
        action[:, step % 6] = action[:, (step + 1) % 6] = 1
        outcome = world.advance(state, action, world.draws(step))
        count_moves(*counts, state, action, outcome.reward, outcome.after)
        for run in range(4):
            for agent in range(6):
                by_hand[run, agent, action[run, agent], state[run, agent], outcome.after[run, agent]] += 1
        rewards += outcome.reward.sum()
        state = outcome.after
    np.testing.assert_array_equal(counts.moves, by_hand)
    np.testing.assert_array_equal(counts.arrivals, by_hand.sum(axis=(2, 3)))
    np.testing.assert_allclose(counts.total.sum(), rewards)


def test_unseen_rows_are_uniform_and_seen_ones_are_shares() -> None:
    moves = no_counts(SHAPE).moves
    moves[0, 1, 1, 0] = [1, 3]
    estimate, visits = mean_transitions(moves)
    np.testing.assert_array_equal(estimate[0, 1, 1], [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_array_equal(visits[0, 1], [[0, 0], [4, 0]])


def test_rewards_come_from_the_agent_itself_then_from_all_then_are_zero() -> None:
    arrivals, total = np.array([[[2.0, 0.0], [0.0, 0.0]]]), np.array([[[3.0, 0.0], [0.0, 0.0]]])
    found = mean_rewards(Counts(no_counts(SHAPE).moves, arrivals, total))
    np.testing.assert_array_equal(found, [[[1.5, 0.0], [1.5, 0.0]]])
