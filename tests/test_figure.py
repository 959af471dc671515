"""Figures are drawn in each format, name every policy, and say where they come from."""

import re
from pathlib import Path

import numpy as np
import pytest

from restive import InputError, Problem, make_problems
from restive.comparison import Comparison, compare
from restive.figure import BOUND, COLOURS, caption, draw, make_figure


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    problems = make_problems("two-state-v1", instances=3, agents=6, budget=2)
    return compare(problems, ["random", "egt", "whittle-oracle"], horizon=40, runs=2, seed=9, noise=0.25)


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_each_ending_gives_its_format(comparison: Comparison, tmp_path: Path, ending: str, magic: bytes) -> None:
    draw(comparison, tmp_path / f"figure.{ending}")
    assert (tmp_path / f"figure.{ending}").read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [f"figure.{ending}"]


def test_another_ending_is_refused(comparison: Comparison, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape("a figure ends in .png, .svg or .pdf")):
        draw(comparison, tmp_path / "figure.jpg")


def test_every_line_has_a_band_a_label_and_a_colour_of_its_own(comparison: Comparison) -> None:
    (axes,) = make_figure(comparison).axes
    assert [line.get_color() for line in axes.lines] == [*COLOURS[:3], BOUND]
    assert len(axes.collections) == 3
    assert {text.get_text() for text in axes.texts} == {"random", "egt", "whittle-oracle", "fluid bound"}


def test_the_bound_is_drawn_where_it_is(comparison: Comparison) -> None:
    (axes,) = make_figure(comparison).axes
    np.testing.assert_array_equal(axes.lines[-1].get_ydata(), [comparison.bound] * 2)


def test_labels_do_not_overlap(comparison: Comparison) -> None:
    figure = make_figure(comparison)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert not any(one.overlaps(two) for number, one in enumerate(boxes) for two in boxes[:number])


def test_the_caption_says_what_seed_and_version_made_it(comparison: Comparison) -> None:
    words = caption(comparison.spec)
    for part in (
        "two-state-v1",
        "N = 6",
        "B = 2",
        "noise variance 0.25",
        "3 instances × 2 runs",
        "seed 9",
        "restive 0.",
    ):
        assert part in words


def test_with_many_policies_there_are_lines_only_and_names_are_not_formulas() -> None:
    problem = make_problems("two-state-v1", agents=4, budget=1)[0]
    named = Problem(problem.transition, problem.reward, 1, name="$x^{$ and $5")
    found = compare(named, ["random", *(f"egt:eta={eta}" for eta in (0.1, 0.2, 0.3, 0.4, 0.5))], horizon=5, runs=2)
    figure = make_figure(found)
    figure.canvas.draw()
    assert len(figure.axes[0].collections) == 0
