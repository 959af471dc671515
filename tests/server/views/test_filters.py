"""Numbers as pages write them, and charts with the numbers of the status, rounded."""

import math

import pytest

from restive.desk.status import get_status
from restive.server.views.base import templates
from restive.server.views.filters import (
    FILTERS,
    describe_curve,
    has_lift,
    plot_lift,
    plot_rewards,
    show_middle,
    show_number,
    show_range,
)
from server.views.browsing import Site


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (math.nan, "–"), (-0.18234, "−0.182"), (12345.6, "12,346"), (7, "7")]
)
def test_numbers_have_three_digits_or_are_whole(value: float | None, shown: str) -> None:
    assert show_number(value) == shown


def test_an_interval_that_is_not_known_is_a_dash() -> None:
    unknown = {"mean": None, "low": None, "high": None}
    assert (show_range(unknown), show_middle(unknown)) == ("–", "–")
    assert show_middle({"mean": 1.5, "low": None, "high": None}) == "1.50"


def test_times_are_those_of_the_program_or_utc() -> None:
    shown = templates().from_string("{{ at | time }} {{ none | time }}")
    program = {"program": {"timezone": "Asia/Kolkata"}}
    assert shown.render(data=program, at="2026-03-02T20:15:59+00:00") == "3 Mar 2026, 01:45 –"
    assert shown.render(data={"program": None}, at="2026-03-02T20:15:59+00:00") == "2 Mar 2026, 20:15 –"


@pytest.mark.parametrize("name", ["number", "plain", "share", "day", "whole"])
def test_what_is_not_known_is_a_dash_everywhere(name: str) -> None:
    assert FILTERS[name](None) == "–"


def test_a_plot_has_the_numbers_of_the_status(played: Site) -> None:
    status = get_status(played.desk.program("demo"))
    curve, scale, rounds = status["curve"], status["reward_range"], status["rounds"]
    assert curve is not None
    assert scale is not None
    plot = plot_rewards(curve, rounds, scale)
    assert plot["range"] == [scale["low"], scale["high"]]
    assert plot["x"] == [1, 2, 3, 4, 5]
    assert plot["labels"] == [f"Week of {tick}" for tick in plot["ticks"]]
    assert [side["name"] for side in plot["sides"]] == ["in the program", "control group"]
    assert plot["sides"][0]["high"] == pytest.approx(curve["treated"]["high"], rel=1e-4)
    assert plot_lift(curve, rounds)["sides"][0]["mean"] == pytest.approx(curve["lift"]["mean"], rel=1e-4)
    assert plot_lift(curve, rounds)["zero"]


def test_without_a_control_group_there_is_one_line_and_no_lift(played: Site) -> None:
    curve = get_status(played.desk.program("odd"))["curve"]
    assert curve is not None
    assert len(plot_rewards(curve, [])["sides"]) == 1
    assert not has_lift(curve)
    assert describe_curve(curve, "control", []) == "Not known yet."


def test_a_single_round_is_described_by_one_value() -> None:
    band = {"mean": [None, 2.0], "low": [None, None], "high": [None, None]}
    rounds = [{"round": 3, "label": "March 2026"}, {"round": 4, "label": "April 2026"}]
    assert describe_curve({"first": 3, "lift": band}, "lift", rounds) == "2 in April 2026 (round 4)."
