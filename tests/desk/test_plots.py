"""The figure is written in each format, shows both groups and the lift with bands, and names its source."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from desk import statuses
from restive.api.status import Status
from restive.desk.config import Words
from restive.desk.lift import lift, lift_by_round
from restive.desk.plots import CONTROL, LIFT, PROGRAM, draw_status, make_figure
from restive.errors import InputError
from restive.logs.estimators import Sums
from restive.version import __version__


def make_status(rounds: int = 6, control: int = 10) -> Status:
    generator = np.random.default_rng(1)
    aside = np.arange(40) < control
    reward = generator.gamma(2.0, 0.5, (rounds, 40)) + 0.5 * ~aside
    sides = (~aside, aside)
    sums = np.array([[row[side].sum() for row in reward] for side in sides]).reshape(2, rounds)
    squares = np.array([[(row[side] ** 2).sum() for row in reward] for side in sides]).reshape(2, rounds)
    counts = np.array([[40 - control] * rounds, [control] * rounds])
    return statuses.make_status(
        Words(person="shop", people="shops", every="week", reward_unit="orders a week"),
        title="$5 coupons for $hops",
        policy="lagrange:curiosity=0.5",
        people=statuses.count_people(40, control=control),
        lift=lift(Sums.untouched(reward.sum(axis=0), np.full(40, rounds), aside)),
        curve=lift_by_round(sums, squares, counts),
    )


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_each_extension_gives_its_format(tmp_path: Path, ending: str, magic: bytes) -> None:
    draw_status(make_status(), tmp_path / f"shops.{ending}")
    assert (tmp_path / f"shops.{ending}").read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [f"shops.{ending}"]


def test_another_extension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape("a figure ends in .png, .svg or .pdf")):
        draw_status(make_status(), tmp_path / "shops.gif")


def test_both_groups_and_the_lift_have_lines_bands_and_names() -> None:
    status = make_status()
    above, below = make_figure(status).axes
    assert status["curve"] is not None
    assert [line.get_color() for line in above.lines] == [PROGRAM, CONTROL]
    np.testing.assert_array_equal(above.lines[1].get_ydata(), status["curve"]["control"]["mean"])
    np.testing.assert_array_equal(above.lines[1].get_xdata(), np.arange(1, 7))
    assert {text.get_text() for text in above.texts} == {"in the program", "control group"}
    assert LIFT in [line.get_color() for line in below.lines]
    assert below.get_xlabel() == "week of"
    assert above.get_ylabel() == "orders a week\nper shop"
    assert "over all rounds" in below.get_title(loc="left")


def test_the_caption_names_the_source() -> None:
    figure = make_figure(make_status())
    small = figure.get_supxlabel()
    for part in ("shops", "lagrange:curiosity=0.5", "seed 7", "40 shops, 10 of them", "95%", __version__):
        assert part in small


def test_without_a_control_group_there_is_one_line_and_no_lift() -> None:
    (axes,) = make_figure(make_status(control=0)).axes
    assert len(axes.lines) == 1


def test_a_single_round_shows_its_intervals() -> None:
    above, _ = make_figure(make_status(rounds=1)).axes
    upright = [part.get_segments() for part in above.collections if isinstance(part, LineCollection)]
    assert [len(segments) for segments in upright] == [1, 1]
    assert above.get_xlim() == (0.5, 1.5)
    above, _ = make_figure(make_status(rounds=2)).axes
    assert not any(part.get_segments() for part in above.collections if isinstance(part, LineCollection))


def test_rounds_go_on_from_the_first_that_is_given() -> None:
    status = make_status()
    assert status["curve"] is not None
    status["curve"]["first"] = 21
    np.testing.assert_array_equal(make_figure(status).axes[0].lines[0].get_xdata(), np.arange(21, 27))


def test_a_band_that_is_very_wide_does_not_flatten_the_rest() -> None:
    status = make_status(rounds=12)
    assert status["curve"] is not None
    status["curve"]["control"]["high"][3] = 1000.0
    assert make_figure(status).axes[0].get_ylim()[1] < 10


def test_nothing_to_plot_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to plot before the outcomes of the first round"):
        make_figure({**make_status(), "curve": None})
    with pytest.raises(InputError, match="nothing to plot"):
        make_figure(make_status(rounds=0))
