"""Estimators of the lift agree with hand calculation, with statsmodels and with the average over reshuffled arms."""

import itertools
import math

import numpy as np
import pytest
import statsmodels.api as sm

from restive.logs.acceptance.trial import QUICK, SETTINGS, check_trials, covers, repeat
from restive.logs.estimators import MAX_DF, Sums, adjusted, base, binary, onward, reshuffled, sharper, subgroup


def make_sums(seed: int = 1, people: int = 60) -> Sums:
    generator = np.random.default_rng(seed)
    control = np.arange(people) >= people // 2
    since = np.where(generator.random(people) < 0.5, generator.integers(1, 9, people), 0).astype(float)
    total = generator.gamma(2.0, 1.0, people)
    actions = since.copy()
    actions[control] = 0.0
    return Sums(total, np.full(people, 10.0), total * since / 10, since, since > 0, actions, control)


def test_the_subgroup_estimate_is_the_difference_of_touched_people_times_their_share() -> None:
    sums = make_sums()
    one, two = (arm.total[arm.touched].mean() / 10 for arm in sums.arms())
    assert subgroup(sums).mean == pytest.approx((one - two) * sums.arms()[0].touched.mean())


def test_onward_counts_only_what_follows_the_first_touch() -> None:
    sums = make_sums()
    noisy = sums._replace(total=sums.total + np.random.default_rng(2).normal(0, 99, 60))
    assert onward(noisy) == onward(sums)
    assert onward(sums).mean != subgroup(sums).mean


def test_reshuffled_is_the_mean_over_all_exchanges_of_untouched_people() -> None:
    total, touched = np.array([3.0, 1, 2, 5, 4, 0, 2, 6]), np.array([1, 1, 0, 0, 1, 1, 0, 0]) > 0
    control = np.arange(8) >= 4
    since = touched.astype(float)
    sums = Sums(total, np.ones(8), total * since, since, touched, since * ~control, control)
    untouched = np.flatnonzero(~touched)
    differences = []
    for moved in itertools.combinations(untouched, 2):
        program = (touched & ~control) | np.isin(np.arange(8), moved)
        differences.append(total[program].mean() - total[~program].mean())
    assert reshuffled(sums).mean == pytest.approx(np.mean(differences))


def test_a_price_of_an_action_moves_the_error_and_not_the_estimate() -> None:
    sums = make_sums()
    free, usual = onward(sums, price=0.0), onward(sums)
    assert free.mean == usual.mean
    mean_effect = free.mean * 300 / sums.actions.sum()
    assert onward(sums, price=mean_effect * 2 / 3).error == pytest.approx(usual.error)
    assert free.error != usual.error


def test_adjusting_is_the_regression_with_interactions() -> None:
    sums = make_sums()
    x = np.random.default_rng(5).normal(size=60) + sums.total
    found = adjusted(base(sums), sums, x[:, None])
    arm = (~sums.control).astype(float)
    design = sm.add_constant(np.column_stack([arm, x - x.mean(), arm * (x - x.mean())]))
    fitted = sm.OLS(sums.total / 10, design).fit(cov_type="HC2")
    assert found.mean == pytest.approx(fitted.params[1])
    assert found.error == pytest.approx(fitted.bse[1], rel=0.01)
    assert found.error < 0.7 * base(sums).error


def test_few_binary_outcomes_get_a_pseudo_count_of_each() -> None:
    total, control = np.array([1.0, 1, 0, 1, 0, 0, 0, 1]), np.arange(8) >= 4
    ones = np.ones(8)
    found = binary(Sums(total, ones, total, ones, ones > 0, ones, control))
    assert found is not None
    assert found.mean == pytest.approx(4 / 6 - 2 / 6)
    assert found.df == MAX_DF
    assert found.error == pytest.approx(math.sqrt(2 * 2 / 9 / 6))
    assert binary(make_sums()) is None


def test_too_few_touched_people_leave_the_difference_in_means() -> None:
    sums = make_sums()
    one = np.flatnonzero(sums.touched & sums.control)[0]
    few = sums.touched & (~sums.control | (np.arange(60) == one))
    lonely = sums._replace(touched=few, since_seen=np.where(few, sums.since_seen, 0))
    assert math.isnan(onward(lonely).mean)
    assert math.isnan(reshuffled(lonely).mean)
    assert sharper(lonely) == base(lonely)


def test_intervals_hold_the_lift_and_are_sharper_where_few_are_touched() -> None:
    results = check_trials(quick=True, seed=3)
    assert len(results) == 16
    assert all(result.holds for result in results), results


def test_a_policy_that_explores_at_random_is_matched_too() -> None:
    found = repeat(SETTINGS[6], 200, seed=8)
    estimates = np.array([effect.mean for effect in found.effects["onward"]])
    assert abs((estimates - found.own).mean()) < 4 * (estimates - found.own).std() / math.sqrt(200)
    assert np.nanmean(covers(found.effects["onward"], found.own)) > 0.9
    assert QUICK[1].learns
