"""How far results reach, against brute force and arithmetic by hand."""

from itertools import product

import numpy as np
import pytest
from examining import QUICK, examine

from restive.files import Columns
from restive.paper.claims import FAILS, HOLDS
from restive.paper.jobs import Job, Results
from restive.paper.readings import make_reading
from restive.paper.reproduction import EXPERIMENTS
from restive.paper.tasks.robustness import DriftingNoise, change, drift, greedy_share, lasting_pair, slow_problems
from restive.paper.tasks.simulation import play, recorded_steps, tabulate
from restive.problems import make_problems
from restive.solvers.myopic import benefit
from restive.types import Floats

SIZES = {"instances": 2, "agents": 6, "budget": 2, "seed": 3}


def collect(good: Floats, horizon: int, greedy: bool, state: tuple[int, int] = (0, 0)) -> float:
    """What the best or the greedy choice of one of two agents collects, by recursion."""
    if horizon == 0:
        return 0.0
    values = []
    for chosen in (0, 1):
        up = [good[n, int(n == chosen), state[n]] for n in range(2)]
        after = 0.0
        for first, second in product((0, 1), repeat=2):
            chance = (up[0] if first else 1 - up[0]) * (up[1] if second else 1 - up[1])
            after += chance * (first + second + collect(good, horizon - 1, greedy, (first, second)))
        values.append(after)
    gains = [good[n, 1, state[n]] - good[n, 0, state[n]] for n in range(2)]
    return values[int(gains[1] > gains[0])] if greedy else max(values)


@pytest.mark.parametrize("seed", range(4))
def test_the_share_of_greedy_is_that_of_a_recursion(seed: int) -> None:
    good = np.random.default_rng(seed).random((2, 2, 2))
    assert greedy_share(good, 4) == pytest.approx(collect(good, 4, True) / collect(good, 4, False))


def test_greedy_acts_on_the_agent_that_falls_back_and_collects_the_root_of_the_horizon() -> None:
    pair = lasting_pair(4)
    assert collect(pair, 4, greedy=True) == pytest.approx(2.0)
    assert greedy_share(pair, 4) == pytest.approx(2.0 / collect(pair, 4, greedy=False))


def test_the_worst_share_of_greedy_falls_with_the_horizon() -> None:
    found = examine("greedy-share")
    assert found["greedy-constant-factor"].verdict == FAILS
    assert found["greedy-share-falls-like-root"].verdict == HOLDS


def test_slow_contexts_keep_the_benefits_and_shrink_the_smallest_probability() -> None:
    (usual,) = make_problems("ordered-v1", instances=1, seed=5)
    (slow,) = slow_problems(0.01, instances=1, seed=5)
    kept = benefit(usual.transition, usual.reward)
    np.testing.assert_allclose(benefit(slow.transition, slow.reward), np.concatenate([kept, kept], axis=1))
    assert slow.transition.min() <= 0.01 * usual.transition.min() * (1 + 1e-9)
    stays = slow.transition[..., 0, 0] + slow.transition[..., 0, 2]  # the context of state 0 is that of state 2
    np.testing.assert_allclose(stays, 0.99)


def test_the_regret_on_slow_chains_stays_within_the_bound() -> None:
    assert examine("slow-chains")["slow-regret-within-the-bound"].verdict == HOLDS


@pytest.mark.parametrize(("power", "verdict"), [(1.0, HOLDS), (0.5, FAILS)])
def test_the_regret_of_rma2b_is_linear_only_where_it_grows_with_the_steps(power: float, verdict: str) -> None:
    def made_up(job: Job) -> Columns:
        steps = recorded_steps(job.settings["horizon"])
        behind = np.zeros(steps.size) if job.settings["policy"] == "omr-oracle" else steps.astype(np.float64) ** power
        reward = (3.0 * steps - behind) * np.ones((4, 1)) + np.arange(4)[:, None]
        return tabulate(steps, reward=reward, cost=np.zeros_like(reward))

    experiment = EXPERIMENTS["rma2b-regret"]
    columns = {job.digest(): made_up(job) for job in experiment.list_jobs(QUICK)}
    (claim,) = experiment.examine(QUICK, Results(columns)).claims
    assert claim.verdict == verdict
    assert [part.value for part in claim.parts] == pytest.approx([power, power])
    (after,) = claim.nearby
    short, long = 200**power - 100**power, 2000**power - 100**power
    assert after.value == pytest.approx(np.log10(long / short))


@pytest.mark.parametrize(("lost", "verdict"), [(0.0, HOLDS), (2.0, FAILS)])
def test_drifting_noise_is_compared_with_steady_noise(lost: float, verdict: str) -> None:
    rates = {"random": 20.0, "whittle-oracle": 30.0}

    def made_up(job: Job) -> Columns:
        steps = recorded_steps(job.settings["horizon"])
        rate = rates.get(job.settings["policy"], 25.0) - lost * (job.task == "drift")
        reward: Floats = (rate + 0.01 * np.arange(4.0)[:, None]) * steps
        return tabulate(steps, reward=reward, cost=np.zeros_like(reward))

    experiment = EXPERIMENTS["drifting-noise"]
    columns = {job.digest(): made_up(job) for job in experiment.list_jobs(QUICK)}
    claims = experiment.examine(QUICK, Results(columns)).claims
    assert [claim.verdict for claim in claims] == [verdict, verdict]
    assert [part.value for claim in claims for part in claim.parts] == pytest.approx([-lost / 10] * 3)


def test_noise_drifts_around_its_mean_and_expected_rewards_stay() -> None:
    problems = make_problems("two-state-v1", instances=1, agents=4, budget=1, seed=1)
    world = DriftingNoise.of(problems, runs=1, seed=0, noise=2.0, horizon=100, period=100)
    variances = []
    for step in range(100):
        world.draws(step)
        variances.append(world.noise_std**2)
    assert np.mean(variances) == pytest.approx(2.0)
    assert (min(variances), max(variances)) == pytest.approx((0.0, 4.0), abs=1e-9)


def test_a_policy_that_does_not_learn_collects_the_same_whatever_the_noise() -> None:
    drifting = drift("two-state-v1", SIZES, "greedy-oracle", horizon=40, runs=2, seed=0, noise=1.0, period=10)
    steady = play("two-state-v1", SIZES, "greedy-oracle", horizon=40, runs=2, seed=0, noise=1.0)
    np.testing.assert_array_equal(drifting["reward"], steady["reward"])


def test_a_learner_meets_another_noise_where_it_drifts() -> None:
    drifting = drift("two-state-v1", SIZES, "egt", horizon=40, runs=2, seed=0, noise=4.0, period=10)
    steady = play("two-state-v1", SIZES, "egt", horizon=40, runs=2, seed=0, noise=4.0)
    assert np.any(drifting["reward"] != steady["reward"])


def test_rewards_change_at_the_step_and_not_before() -> None:
    family, horizon, runs, seed = "own-rewards-v1", 40, 2, 0
    usual = play(family, SIZES, "random", horizon, runs, seed)["reward"]
    later, never, at_start = (change(family, SIZES, "random", horizon, runs, seed, step) for step in (20, 41, 0))
    steps = later["step"]
    np.testing.assert_array_equal(never["reward"], usual)
    np.testing.assert_array_equal(later["reward"][steps <= 20], usual[steps <= 20])
    (last,), (middle,) = (np.flatnonzero((steps == step) & (later["instance"] == 0)) for step in (40, 20))
    # Random choice moves agents alike in all three, so that after the change it collects what the new rewards give.
    gained = [each[last] - each[middle] for each in (later["reward"], at_start["reward"], usual)]
    assert gained[0] == pytest.approx(gained[1])
    assert gained[0] != pytest.approx(gained[2])


def test_a_learner_that_meets_a_change_is_compared_with_one_that_starts_at_it() -> None:
    (claim,) = examine("changed-rewards").values()
    assert [part.setting for part in claim.parts] == ["egt", "wiql", "thompson-whittle"]
    assert all(part.value < 1 for part in claim.parts)  # to have learnt something else does not help
    less_to_forget = {part.setting: part.value for part in claim.nearby}
    assert all(less_to_forget[f"{part.setting}, change at 100"] > part.value for part in claim.parts)


def test_learners_that_meet_a_change_have_the_settings_of_the_reading() -> None:
    under = QUICK._replace(reading=make_reading(["egt:p=2"]))
    policies = {job.settings["policy"] for job in EXPERIMENTS["changed-rewards"].list_jobs(under)}
    assert policies == {"egt:p=2", "wiql", "thompson-whittle", "random", "whittle-oracle"}
