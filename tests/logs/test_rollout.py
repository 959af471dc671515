"""Lifts that are counted action by action agree with differences in rewards, exact answers and brute force."""

from itertools import product

import numpy as np
import pytest

from restive import InputError, Problem, World, make_policy, make_problems, simulate
from restive.logs.fit import fit
from restive.logs.generate import generate_history
from restive.logs.model import FittedModel
from restive.logs.rollout import AsNow, Programs, find_policy, gains_of_acting, make_informed, play


@pytest.fixture(scope="module")
def model() -> FittedModel:
    return fit(generate_history(make_problems("two-state-v1", instances=1, agents=40, budget=4)[0], rounds=12, seed=3))


def test_gains_are_those_of_one_action_and_never_again() -> None:
    rows = make_problems("many-state-v1", instances=1, agents=3, states=3, budget=1)[0].transition
    value, rounds = np.array([0.0, 1.0, 5.0]), 4
    gain, nobody = gains_of_acting(rows, value, rounds)
    for agent, state, acted in product(range(3), range(3), range(rounds)):
        total = np.zeros(3)
        for step in reversed(range(rounds)):  # the action is the one in round `acted`
            total = rows[agent, int(step == acted)] @ (value + total)
        path = np.linalg.matrix_power(rows[agent, 0], acted)[state]
        assert total[state] - nobody[agent, state] == pytest.approx(path @ gain[acted, agent])


@pytest.mark.parametrize("warm", [False, True])
def test_lifts_have_the_mean_of_reward_differences_and_less_noise(model: FittedModel, warm: bool) -> None:
    learner, rounds, known = make_policy("lagrange"), 10, model if warm else None
    played = play(model, Programs((learner,), (4,), rounds, draws=60, warm=warm))
    problems = [model.problem(4, number) for number in range(60)]
    reward = simulate(problems, learner, rounds, runs=8, history=known).reward.reshape(60, 8, rounds).sum(axis=2)
    assert played.reward[0, 0] == pytest.approx(reward[:, 0])
    difference = reward - played.nobody[:, None]
    lift = played.lift[0, 0]
    error = np.hypot(difference.std() / np.sqrt(480), lift.std() / np.sqrt(480))
    assert abs(difference.mean() - lift.mean()) < 3.5 * error
    assert lift.var(axis=1, ddof=1).mean() < 0.5 * difference.var(axis=1, ddof=1).mean()


def test_acting_at_random_is_exact(model: FittedModel) -> None:
    played = play(model, Programs((make_policy("random"),), (10,), 8, draws=40))
    noise = (played.lift[0, 0] - played.at_random[0][:, None]).ravel()
    assert abs(noise.mean()) < 3.5 * noise.std() / np.sqrt(noise.size)


def test_no_policy_exceeds_the_bound(model: FittedModel) -> None:
    programs = Programs((make_policy("lagrange"), make_informed(model)), (2, 6), 12, draws=20)
    played = play(model, programs)
    assert (np.nanmean(played.lift, axis=(2, 3)) < played.bound.mean(axis=1)).all()
    assert (played.worth[0] > played.worth[1]).mean() > 0.9  # each further action is worth less


def test_threads_and_chunks_do_not_change_a_bit(model: FittedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs((make_policy("lagrange"), find_policy(model, "as now")), (3,), 6, draws=9)
    one = play(model, programs, threads=1)
    monkeypatch.setattr("restive.logs.rollout.fitting_runs", lambda shape: 3)
    for whole, part in zip(one, play(model, programs, threads=2), strict=True):
        assert np.array_equal(whole, part, equal_nan=True)


def test_as_now_acts_by_the_shares_of_states() -> None:
    stay = np.tile(np.eye(2), (100, 2, 1, 1))
    world = World(Problem(stay, [0, 1], budget=20, start=np.arange(100) % 2), runs=400)
    policy = AsNow((0.1, 0.3))
    action = world.choose(policy.rank(policy.start(world.shape), world.first_states(), world.draws(0)), world.draws(0))
    assert action.sum(axis=1).tolist() == [20] * 400
    assert action[:, 1::2].sum() / action.sum() == pytest.approx(0.75, abs=0.03)
    never = AsNow((0.0, 0.3)).rank(policy.start(world.shape), world.first_states(), world.draws(0))
    assert world.choose(never, world.draws(0))[:, ::2].sum() == 0


def test_oracles_are_refused(model: FittedModel) -> None:
    with pytest.raises(InputError, match="knows the truth"):
        find_policy(model, "whittle-oracle")
