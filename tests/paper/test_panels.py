"""Figures of the report: every line is drawn, named where it ends, told apart, and within the bounds of the figure."""

import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from restive.files import Columns
from restive.paper.curves import BUDGETS, EVERYONE, Board, Scene
from restive.paper.experiment import Results
from restive.paper.panels import Line, draw_board, draw_dots, draw_lines
from restive.paper.tasks.playing import kept_steps, tabulate
from restive.version import __version__

SCENE = Scene("two-state-v1", 4, 2, 1.0, 7, fewer_runs={"rma2b": 1})
VARIANTS = ("egt:eta=0.1", "egt", "egt:eta=1.5", "whittle-oracle", "random")


def curve(level: float, spread: float) -> Columns:
    """Sums of rewards that are wild at first, then rise to a level; four instances that differ by the spread."""
    steps = kept_steps(SCENE.horizon)
    mean = level - 0.3 * np.exp(-steps / 200) + np.where(steps < 5, -9.0, 0.0)
    return tabulate(steps, reward=(mean + spread * np.arange(4)[:, None]) * steps)


def make_board(policies: tuple[str, ...], apart: float = 0.1) -> Board:
    columns = {}
    for budget, noise in SCENE.settings():
        columns[SCENE.bound(budget).digest()] = curve(2.0 * budget, 0.0)
        for number, policy in enumerate(policies):
            columns[SCENE.work(policy, budget, noise).digest()] = curve(budget + apart * number - noise, 0.01)
    return Board(SCENE, Results(columns))


def boxes_of_words(figure: Figure) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Every word on the figure and where it stands, in pixels."""
    figure.draw_without_rendering()
    texts = figure.texts + [
        text for axes in figure.axes for text in (*axes.texts, axes.xaxis.label, axes.yaxis.label, *ticks(axes))
    ]
    return [(text.get_text(), text.get_window_extent().extents) for text in texts if text.get_text().strip()]


def ticks(axes: Axes) -> list[Text]:
    across, up = axes.get_xlim(), axes.get_ylim()
    shown = [tick for tick in axes.xaxis.get_major_ticks() if min(across) <= tick.get_loc() <= max(across)]
    shown += [tick for tick in axes.yaxis.get_major_ticks() if min(up) <= tick.get_loc() <= max(up)]
    return [tick.label1 for tick in shown]


def assert_all_words_can_be_read(figure: Figure) -> None:
    words, (width, height) = boxes_of_words(figure), figure.bbox.size
    for word, (left, bottom, right, top) in words:
        assert min(left, bottom, width - right, height - top) >= 0, f"{word} is cut off"
    for (one, a), (two, b) in combinations(words, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] + 1 or b[3] <= a[1] + 1, f"{one} lies over {two}"


@pytest.fixture(scope="module")
def figure() -> Figure:
    return draw_board(make_board(EVERYONE), EVERYONE, "Random agents")


def test_a_board_has_a_panel_for_each_budget_with_and_without_noise(figure: Figure) -> None:
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [SCENE.name(budget, noise) for noise in (0.0, 1.0) for budget in BUDGETS]


def test_every_panel_names_every_line_and_the_bound(figure: Figure) -> None:
    for axes in figure.axes:
        assert sorted(text.get_text() for text in axes.texts) == sorted([*EVERYONE, "fluid bound"])
        assert len(axes.lines) == len(EVERYONE) + 1
        assert sum(isinstance(each, FillBetweenPolyCollection) for each in axes.collections) == len(EVERYONE)


@pytest.mark.parametrize("apart", [0.1, 0.0])
def test_no_word_of_a_board_is_cut_off_or_lies_over_another(apart: float) -> None:
    assert_all_words_can_be_read(draw_board(make_board(EVERYONE, apart), EVERYONE, "Random agents"))


def test_a_line_shows_the_running_mean_over_instances(figure: Figure) -> None:
    line = figure.axes[1].lines[EVERYONE.index("wiql")]
    steps = np.asarray(line.get_xdata())
    expected = 10.1 - 0.3 * np.exp(-steps / 200) + np.where(steps < 5, -9.0, 0.0) + 0.01 * 1.5
    np.testing.assert_allclose(np.asarray(line.get_ydata()), expected, rtol=1e-12)
    assert (steps[0], steps[-1]) == (1, 1000)


def test_the_first_steps_do_not_set_the_scale(figure: Figure) -> None:
    for axes, budget in zip(figure.axes, BUDGETS * 2, strict=True):
        assert budget - 4 < axes.get_ylim()[0] < budget < 2 * budget < axes.get_ylim()[1]


def test_panels_of_a_budget_have_one_scale(figure: Figure) -> None:
    for quiet, noisy in zip(figure.axes[:3], figure.axes[3:], strict=True):
        assert quiet.get_ylim() == noisy.get_ylim()


def test_lines_differ_in_colour_or_dashes(figure: Figure) -> None:
    assert looks(figure, EVERYONE, dashes=True) == len(EVERYONE)


def test_variants_of_a_policy_each_have_a_colour_of_their_own() -> None:
    drawn = draw_board(make_board(VARIANTS), VARIANTS, "Variants")
    assert looks(drawn, VARIANTS, dashes=False) == len(VARIANTS)
    brightness = [sum(to_rgb(line.get_color())) for line in drawn.axes[0].lines[:3]]
    assert brightness == sorted(brightness)
    assert "egt (default)" in {text.get_text() for text in drawn.axes[0].texts}


def looks(figure: Figure, policies: tuple[str, ...], dashes: bool) -> int:
    lines = figure.axes[0].lines[: len(policies)]
    return len({(line.get_color(), line.is_dashed() if dashes else None) for line in lines})


def test_the_caption_says_what_was_played(figure: Figure) -> None:
    (caption,) = [text.get_text() for text in figure.texts if "seed" in text.get_text()]
    for part in ("two-state-v1", "4 instances × 2 runs (rma2b 1 run)", "seed 7", f"restive {__version__}"):
        assert part in caption


def rising(label: str, x: np.ndarray, slope: float, **looks: str) -> Line:
    return Line(label, x, slope * x, slope * x - 1, slope * x + 1, **looks)


@pytest.mark.parametrize("log_x", [False, True])
def test_lines_in_one_panel_are_named_and_keep_the_looks_they_were_given(log_x: bool) -> None:
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    lines = [rising("$one", x, 1.0), rising("two of a rather long name", x, 1.001, colour="#123456", style=":")]
    drawn = draw_lines(lines, "steps", "regret", "It rises", log_x)
    (axes,) = drawn.axes
    assert {text.get_text() for text in axes.texts} == {"$one", "two of a rather long name"}
    assert (axes.lines[1].get_color(), axes.lines[1].get_linestyle()) == ("#123456", ":")
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale()) == (
        "steps",
        "regret",
        "log" if log_x else "linear",
    )
    assert_all_words_can_be_read(drawn)


def test_a_line_with_gaps_and_without_a_band_is_drawn_as_far_as_it_is_known() -> None:
    unknown = np.full(3, np.nan)
    drawn = draw_lines([Line("known", np.arange(3), np.array([1.0, 2.0, np.nan]), unknown, unknown)], "x", "y", "")
    (axes,) = drawn.axes
    assert not axes.collections
    assert axes.texts[0].get_position()[1] == 2.0


def test_whole_numbers_have_ticks_at_whole_numbers() -> None:
    x = np.arange(1.0, 4.0)
    (axes,) = draw_lines([rising("one", x, 1.0)], "episodes", "regret", "").axes
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_dots_show_intervals_and_references_by_name() -> None:
    rows = [("measured", 1.0, 0.5, 1.5), ("exact", 2.0, 2.0, 2.0), ("unsure", 3.0, np.nan, np.nan)]
    drawn = draw_dots(rows, "reward", {"best": 2.9, "good": 2.8, "$worst": 0.5, "bad": 0.55})
    (axes,) = drawn.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["measured", "exact", "unsure"]
    measured = axes.collections[-1].get_paths()[0]
    np.testing.assert_array_equal(measured.vertices, [[0.5, 0], [1.5, 0]])
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [1.0, 2.0, 3.0])
    assert {text.get_text().strip() for text in axes.texts} == {"best", "good", "$worst", "bad"}
    assert_all_words_can_be_read(drawn)


def test_dots_need_no_reference() -> None:
    (axes,) = draw_dots([("one", 1.0, 1.0, 1.0)], "reward", {}).axes
    assert not axes.texts


def test_no_line_of_a_reference_crosses_the_name_of_another() -> None:
    names = {"a rather long name": 0.1, "another long name": 0.12, "third": 0.9, "the fourth of them": 0.88}
    drawn = draw_dots([("one", 0.0, 0.0, 0.0), ("two", 1.0, 1.0, 1.0)], "reward", names)
    drawn.draw_without_rendering()
    (axes,) = drawn.axes
    for line in axes.lines[1:]:
        across, top = line.get_transform().transform(np.asarray(line.get_xydata())[1])
        for text in axes.texts:
            left, bottom, right, _ = text.get_window_extent().extents
            assert not (left + 1 < across < right - 1 and bottom < top - 1), re.sub(r"\s+", " ", text.get_text())
