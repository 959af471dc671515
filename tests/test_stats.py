"""Means, bands and shares, against another implementation, by hand, and by how often they cover the truth."""

import math

import numpy as np
import pytest
from scipy import stats

from restive import InputError
from restive.stats import band, mean_by, ratio, running_mean, student_quantile


def test_running_means_are_means_of_beginnings() -> None:
    reward = np.random.default_rng(0).normal(size=(4, 30))
    means = running_mean(reward)
    for t in range(30):
        assert means[:, t] == pytest.approx(reward[:, : t + 1].mean(axis=1))


def test_group_means_are_means_of_the_rows_of_each_group() -> None:
    rng = np.random.default_rng(1)
    group, values = np.array([0, 0, 1, 1, 1, 2]), rng.normal(size=(6, 5))
    means = mean_by(group, values)
    assert means == pytest.approx(np.stack([values[group == each].mean(axis=0) for each in range(3)]))
    assert mean_by(group, values[:, 0]) == pytest.approx(means[:, 0])


@pytest.mark.parametrize("level", [0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.99999])
@pytest.mark.parametrize("freedom", [1, 1.3, 2, 4.7, 9, 49, 250.5, 5000, 3e8])
def test_student_quantiles_agree_with_another_implementation(level: float, freedom: float) -> None:
    assert student_quantile(level, freedom) == pytest.approx(stats.t.ppf((1 + level) / 2, freedom), rel=1e-8)


def test_there_is_no_student_quantile_below_one_degree_of_freedom() -> None:
    assert np.isnan(student_quantile(0.95, [0.0, 0.9, math.nan])).all()
    assert student_quantile(0.95, 1 - 1e-12) == student_quantile(0.95, 1)


@pytest.mark.parametrize("shape", [(2,), (7,), (5, 3)])
def test_a_band_agrees_with_another_implementation(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(2).normal(size=shape)
    mean, error, low, high = band(values, level=0.9)
    assert mean == pytest.approx(values.mean(axis=0))
    assert error == pytest.approx(stats.sem(values, axis=0))
    wanted = stats.t.interval(0.9, shape[0] - 1, loc=values.mean(axis=0), scale=stats.sem(values, axis=0))
    assert low == pytest.approx(wanted[0])
    assert high == pytest.approx(wanted[1])


def test_one_unit_has_a_mean_and_no_band() -> None:
    mean, error, low, high = band(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1.0, 2.0]
    assert np.isnan([error, low, high]).all()
    assert math.isnan(band(np.array([3.0])).low)


def test_bands_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    _, _, low, high = band(rng.normal(1.5, 2.0, size=(6, 4000)), level=0.8)
    covered = ((low < 1.5) & (high > 1.5)).mean()
    assert abs(covered - 0.8) < 4 * math.sqrt(0.8 * 0.2 / 4000)


def test_a_share_is_a_ratio_of_means_with_its_linear_error() -> None:
    above, below = np.array([1.0, 2.0, 3.0]), np.array([2.0, 5.0, 5.0])
    share = ratio(above, below)
    assert share.mean == 0.5
    rest = (above - 0.5 * below) / 4.0
    assert share.error == pytest.approx(rest.std(ddof=1) / math.sqrt(3))
    assert (share.low + share.high) / 2 == pytest.approx(0.5)


def test_a_share_of_the_whole_is_one_for_sure() -> None:
    below = np.array([1.0, 2.0, 4.0])
    assert [float(part) for part in ratio(below, below)] == [1.0, 0.0, 1.0, 1.0]


def test_shares_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(4)
    below = rng.normal(4.0, 1.0, size=(2000, 20))
    above = 0.7 * below + rng.normal(0.0, 0.5, size=(2000, 20))
    bands = [ratio(*pair) for pair in zip(above, below, strict=True)]
    covered = np.mean([low < 0.7 < high for _, _, low, high in bands])
    assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2000)


def test_a_share_of_nothing_is_no_number() -> None:
    assert all(math.isnan(part) for part in ratio(np.array([1.0, 2.0]), np.array([1.0, -1.0])))


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95, math.nan])
def test_a_level_that_is_no_probability_is_refused(level: float) -> None:
    with pytest.raises(InputError, match=f"level is {level}; it must lie between 0 and 1, such as 0.95"):
        band(np.array([1.0, 2.0]), level)
