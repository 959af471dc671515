"""Effects known by hand, intervals that hold under a policy that looks at the results, and silence where little is known."""

import math

import numpy as np
import pytest

from restive.desk.effects import MIN_PEOPLE, Effect, estimate_effects
from restive.desk.tallies import ACT, WAIT, Tallies
from restive.types import Floats


def estimate(people: Floats, stride: int = 1) -> Effect:
    (effect,) = estimate_effects(Tallies(np.zeros((2, 1, 1), np.int64), people, np.array(stride), np.array([0.0, 1.0])))
    return effect


def make_people(number: int, acted: tuple[float, ...] = (), waited: tuple[float, ...] = ()) -> Floats:
    """People in one state, each with these rewards."""
    people = np.zeros((number, 2, 1, 3))
    for action, rewards in ((ACT, acted), (WAIT, waited)):
        values = np.array(rewards)
        people[:, action, 0] = values.size, values.sum(), (values**2).sum()
    return people


def test_the_effect_is_the_mean_over_actions_of_what_each_person_gains() -> None:
    often, once = make_people(20, (3.0,) * 9, (1.0,) * 90), make_people(20, (5.0,), (5.0,) * 90)
    effect = estimate(np.concatenate([often, once]))
    assert effect.mean == pytest.approx(1.8, abs=1e-9)  # nine actions of ten gain 2
    assert (effect.acted_people, effect.waited_people) == (40, 40)


def test_people_who_never_wait_are_compared_with_all_others() -> None:
    effect = estimate(np.concatenate([make_people(10, acted=(2.0, 1.0)), make_people(10, waited=(1.0, 0.0))]))
    assert effect.mean == pytest.approx(1.0)


@pytest.mark.parametrize("few", [ACT, WAIT])
def test_with_too_few_people_under_an_action_nothing_is_said(few: int) -> None:
    people = make_people(30, (1.0, 0.0), (0.0, 1.0))
    people[MIN_PEOPLE - 1 :, few] = 0
    effect = estimate(people)
    assert math.isnan(effect.mean)
    assert min(effect.acted_people, effect.waited_people) == MIN_PEOPLE - 1
    assert not math.isnan(estimate(np.concatenate([people, make_people(1, (1.0,), (1.0,))])).mean)


def test_actions_that_all_end_alike_are_not_certain() -> None:
    waited = np.concatenate([make_people(9, waited=(1.0,) * 20), make_people(1, waited=(0.0,) * 20)])
    effect = estimate(np.concatenate([waited, make_people(10, acted=(1.0,))]))
    assert effect.low < 0 < effect.high


def test_where_success_is_rare_the_interval_is_longer_towards_more() -> None:
    moves = np.array([[[398, 2], [0, 0]], [[38, 2], [0, 0]]])
    people = np.zeros((40, 2, 2, 3))
    people[:, WAIT, 0, 0], people[:, ACT, 0, 0], people[:2, :, 0, 1:] = 10, 1, 1
    tallies = Tallies(moves, people, np.array(1), np.array([0.0, 1.0]))
    skewed, symmetric = (estimate_effects(tallies, rewards)[0] for rewards in ((0.0, 1.0), None))
    assert skewed.mean == symmetric.mean == pytest.approx(symmetric.low / 2 + symmetric.high / 2)
    assert skewed.high > symmetric.high
    assert skewed.low > symmetric.low


def test_a_sample_of_people_says_less_where_people_differ() -> None:
    people = np.concatenate([make_people(50, (2.0,) * 9, (0.0,) * 9), make_people(50, (0.0,) * 9, (0.0,) * 9)])
    whole, sampled = estimate(people), estimate(people, stride=8)
    assert whole.mean == sampled.mean == 1.0
    assert sampled.high - sampled.low > 2 * (whole.high - whole.low)


def simulate(people: int, rounds: int, seed: int) -> tuple[Floats, float, float]:
    """Sums and the true effect and spread if half of the actions go to those for whom they succeeded most."""
    generator = np.random.default_rng(seed)
    wait = generator.uniform(0.1, 0.4, people)
    gain = generator.uniform(0.0, 0.5, people)
    sums, hits = np.zeros((people, 2, 1, 3)), np.ones(people)
    for _ in range(rounds):
        score = hits / (sums[:, ACT, 0, 0] + 2) + generator.normal(0, 0.2, people)
        acted = score >= np.sort(score)[-people // 5]
        reward = (generator.random(people) < wait + gain * acted).astype(float)
        sums[np.arange(people), acted.astype(int), 0] += np.stack([np.ones(people), reward, reward], axis=1)
        hits += acted * reward
    weight = sums[:, ACT, 0, 0] / sums[:, ACT, 0, 0].sum()
    effect = float(weight @ gain)
    return sums, effect, math.sqrt(weight @ (gain - effect) ** 2)


def test_intervals_hold_under_a_policy_that_chooses_by_results() -> None:
    held, spreads = [], []
    for seed in range(300):
        sums, truth, spread = simulate(100, 12, seed)
        effect = estimate(sums)
        held.append(effect.low <= truth <= effect.high)
        spreads += [] if math.isnan(effect.spread) else [effect.spread / spread]
    assert 0.9 <= np.mean(held) <= 0.985  # here 0.92: variances between people are estimated, too
    assert all(0.3 < ratio < 3 for ratio in spreads)


def test_a_spread_is_stated_where_people_clearly_differ() -> None:
    ratios = []
    for seed in range(10):
        sums, _, spread = simulate(200, 150, seed)
        found = estimate(sums).spread
        ratios.append(found / spread)
    assert 0.85 < np.mean(ratios) < 1.15
