"""Boundaries of planned looks are those that were published."""

import numpy as np
import pytest

from restive.errors import InputError
from restive.logs.acceptance.trial import check_looks
from restive.logs.group_sequential import find_boundaries


@pytest.mark.parametrize(
    ("spending", "looks", "published"),
    [
        ("obrien-fleming", 5, [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),  # Reboussin et al. (2000)
        ("obrien-fleming", 4, [4.3326, 2.9631, 2.3590, 2.0141]),
        ("pocock", 5, [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
    ],
)
def test_boundaries_of_equally_spaced_looks_are_the_published_ones(
    spending: str, looks: int, published: list[float]
) -> None:
    assert find_boundaries(np.arange(1, looks + 1) / looks, spending) == pytest.approx(published, abs=2e-4)


def test_one_look_is_the_usual_test() -> None:
    assert find_boundaries([1.0]) == pytest.approx([1.95996], abs=1e-5)


def test_all_looks_together_have_the_error() -> None:
    times = np.array([0.1, 0.45, 0.5, 1.0])
    boundaries = find_boundaries(times, "pocock", 0.1)
    steps = np.random.default_rng(3).normal(size=(200_000, 4)) * np.sqrt(np.diff(times, prepend=0))
    crossed = (np.abs(steps.cumsum(axis=1) / np.sqrt(times)) > boundaries).any(axis=1)
    assert crossed.mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 200_000))


def test_planned_looks_keep_the_error_in_trials_without_an_effect() -> None:
    results = check_looks(quick=True, seed=2)
    assert all(result.holds for result in results), results


@pytest.mark.parametrize("looks", [[], [0.5, 0.5], [0.0, 1.0], [0.5, 1.2]])
def test_looks_that_do_not_rise_to_the_end_are_refused(looks: list[float]) -> None:
    with pytest.raises(InputError, match="rising fractions"):
        find_boundaries(looks)


def test_another_spending_is_refused() -> None:
    with pytest.raises(InputError, match="obrien-fleming and pocock"):
        find_boundaries([1.0], "haybittle")
