"""Numbers as pages write them."""

import math

import pytest

from restive.server.views.filters import FILTERS, show_benefit, show_middle, show_number, show_range, show_sure


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (math.nan, "–"), (-0.18234, "−0.182"), (12345.6, "12,346"), (7, "7")]
)
def test_numbers_have_three_digits_or_are_whole(value: float | None, shown: str) -> None:
    assert show_number(value) == shown


@pytest.mark.parametrize(
    ("row", "gain", "sure"),
    [
        ({"benefit": 12.0, "standard_error": 3.0}, "12 ± 6", "clear"),
        ({"benefit": 1.0, "standard_error": 3.0}, "1 ± 6", "unsure"),
        ({"benefit": 1.0, "standard_error": None}, "1.00", "not known"),
        ({"benefit": None, "standard_error": None}, "–", "not known"),
    ],
)
def test_a_benefit_comes_with_how_far_it_may_be_off(row: dict[str, float | None], gain: str, sure: str) -> None:
    assert (show_benefit(row), show_sure(row)) == (gain, sure)


def test_an_interval_that_is_not_known_is_a_dash() -> None:
    unknown = {"mean": None, "low": None, "high": None}
    assert (show_range(unknown), show_middle(unknown)) == ("–", "–")
    assert show_middle({"mean": 1.5, "low": None, "high": None}) == "1.50"


@pytest.mark.parametrize("name", ["number", "plain", "share", "time", "day", "whole"])
def test_what_is_not_known_is_a_dash_everywhere(name: str) -> None:
    assert FILTERS[name](None) == "–"
