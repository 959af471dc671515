"""Both figures show every policy that is ranked in every field, where the numbers say."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from restive.benchmark.drawings import LIMITS, draw_scores
from restive.benchmark.fields import FIELDS
from restive.benchmark.scores import BOUND, Scores

MakeScores = Callable[..., Scores]


@pytest.fixture(scope="module")
def figures(make_scores: MakeScores) -> dict[str, Figure]:
    scores = make_scores(
        fields=FIELDS, extra=("egt:eta=0.5",), rates={"sticky/wiql": 10.0, BOUND: 41.0}, shaky={"egt": 3.0}
    )
    return draw_scores(scores)


def test_every_field_has_a_panel_with_every_policy_but_random_at_its_right_end(figures: dict[str, Figure]) -> None:
    panels = {axes.get_title(loc="left"): axes for axes in figures["fields"].axes}
    assert list(panels) == list(FIELDS)
    for axes in panels.values():
        named = {text.get_text() for text in axes.texts}
        assert named == {
            "egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle", "cet-whittle", "lagrange", "egt:eta=0.5",
            "whittle-oracle", BOUND,
        }  # fmt: skip
        assert axes.get_xscale() == "log"


def test_a_line_shows_the_gap_closed_so_far_and_what_is_far_off_is_cut(figures: dict[str, Figure]) -> None:
    panels = {axes.get_title(loc="left"): axes for axes in figures["fields"].axes}
    lines = panels["two-state"].lines
    ends = sorted({round(float(np.asarray(line.get_ydata())[-1]), 2) for line in lines})
    assert ends == [0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1]
    for axes in panels.values():
        assert LIMITS[0] <= axes.get_ylim()[0] < axes.get_ylim()[1] <= LIMITS[1]


def test_steps_are_marked_at_round_numbers(figures: dict[str, Figure]) -> None:
    axes = figures["fields"].axes[0]
    assert axes.get_xticks().tolist() == [20, 50, 100, 200, 500, 1000]


def test_the_overview_has_a_row_for_each_field_and_a_dot_with_an_interval_for_each_policy(
    figures: dict[str, Figure],
) -> None:
    (axes,) = figures["overview"].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == list(FIELDS)
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == 8 * len(FIELDS)
    assert [text.get_text() for text in axes.texts][-1] == "egt:eta=0.5"
    shown = {round(float(np.asarray(dot.get_xdata())[0]), 2) for dot in dots}
    assert min(shown) == LIMITS[0]
    intervals = [np.ptp(np.asarray(line.get_xdata())) for line in axes.lines if line.get_marker() != "o"]
    assert max(intervals) > 0.1


def test_no_words_are_cut_off(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        figure.draw_without_rendering()
        width, height = figure.bbox.size
        for text in [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]:
            left, bottom, right, top = text.get_window_extent().extents
            assert min(left, bottom, width - right, height - top) >= 0, text.get_text()


def test_one_field_is_one_panel(make_scores: MakeScores) -> None:
    drawn = draw_scores(make_scores(fields=["crowd"]))
    assert [len(figure.axes) for figure in drawn.values()] == [1, 1]
