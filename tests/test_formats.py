"""Numbers are shown with the digits they need, and a dash where there is none."""

import numpy as np
import pytest

from restive import make_problems
from restive.comparison import compare
from restive.formats import show_mean
from restive.stats import band


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([30.0, 31.0], "30.500 ± 0.500"),
        ([1e-5, 3e-5], "0.000020 ± 0.000010"),
        ([7.0], "7.000"),
        ([0.0, 0.0], "0.000 ± 0.000"),
    ],
)
def test_means_have_the_digits_they_need(values: list[float], text: str) -> None:
    measured = band(np.array(values))
    assert show_mean(float(measured.mean), float(measured.error)) == text


def test_a_gap_that_does_not_exist_is_a_dash() -> None:
    problem = make_problems("two-state-v1", agents=4, budget=0)[0]
    (row,) = compare(problem, "egt", horizon=5, runs=2).rows
    assert row.show_gap() == "–"
