"""Charts show the numbers of the status, rounded."""

import pytest

from restive.desk.status import get_status
from restive.server.views.charts import describe_curve, has_lift, plot_lift, plot_rewards
from server.views.browsing import Site


def test_a_plot_has_the_numbers_of_the_status(played: Site) -> None:
    curve = get_status(played.desk.program("demo"))["curve"]
    assert curve is not None
    plot = plot_rewards(curve)
    assert plot["x"] == [1, 2, 3, 4, 5]
    assert [side["name"] for side in plot["sides"]] == ["in the program", "control group"]
    assert plot["sides"][0]["high"] == pytest.approx(curve["treated"]["high"], rel=1e-4)
    assert plot_lift(curve)["sides"][0]["mean"] == pytest.approx(curve["lift"]["mean"], rel=1e-4)
    assert plot_lift(curve)["zero"]


def test_without_a_control_group_there_is_one_line_and_no_lift(played: Site) -> None:
    curve = get_status(played.desk.program("odd"))["curve"]
    assert curve is not None
    assert len(plot_rewards(curve)["sides"]) == 1
    assert not has_lift(curve)
    assert describe_curve(curve, "control") == "Not known yet."


def test_a_single_round_is_described_by_one_value() -> None:
    band = {"mean": [None, 2.0], "low": [None, None], "high": [None, None]}
    assert describe_curve({"first": 3, "lift": band}, "lift") == "2 in round 4."
