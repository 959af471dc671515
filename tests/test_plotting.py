"""Figures are drawn in each format, name every policy, and say where they come from."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Path2d
from reading import assert_all_words_can_be_read

from restive import InputError, Problem, make_problems
from restive.comparison import Comparison, compare
from restive.plotting import (
    BOUND,
    COLOURS,
    LOOKS,
    Dot,
    Line,
    draw_comparison,
    draw_dots,
    draw_lines,
    inline_svg,
    push_apart,
    readable,
    write_figure,
)
from restive.report.tables import describe_spec


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    problems = make_problems("two-state-v1", instances=3, agents=6, budget=2)
    return compare(problems, ["random", "egt", "whittle-oracle"], horizon=40, runs=2, seed=9, noise=0.25)


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_each_ending_gives_its_format(comparison: Comparison, tmp_path: Path, ending: str, magic: bytes) -> None:
    write_figure(draw_comparison(comparison), tmp_path / f"figure.{ending}")
    assert (tmp_path / f"figure.{ending}").read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [f"figure.{ending}"]


def test_another_ending_is_refused(comparison: Comparison, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape("a figure ends in .png, .svg or .pdf")):
        write_figure(draw_comparison(comparison), tmp_path / "figure.jpg")


def test_every_difference_has_a_band_and_every_line_the_colour_that_its_policy_has_everywhere(
    comparison: Comparison,
) -> None:
    figure = draw_comparison(comparison)
    _, axes = figure.axes
    assert [line.get_color() for line in axes.lines] == [
        *(LOOKS[policy][0] for policy in ("random", "egt", "whittle-oracle")),
        BOUND,
    ]
    assert [len(each.collections) for each in figure.axes] == [2, 0]
    assert {text.get_text() for text in axes.texts} == {"random", "egt", "whittle-oracle", "fluid bound"}


def test_the_bound_is_drawn_where_it_is(comparison: Comparison) -> None:
    _, axes = draw_comparison(comparison).axes
    np.testing.assert_array_equal(axes.lines[-1].get_ydata(), [comparison.bound] * 2)


def test_labels_do_not_overlap(comparison: Comparison) -> None:
    figure = draw_comparison(comparison)
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert not any(one.overlaps(two) for number, one in enumerate(boxes) for two in boxes[:number])


def test_differences_are_paired_and_come_first(comparison: Comparison) -> None:
    axes, _ = draw_comparison(comparison).axes
    assert "minus egt" in axes.get_title("left")
    random, egt, oracle = (row.trace for row in comparison.rows)
    drawn = np.asarray(axes.lines[2].get_ydata(), dtype=float)
    np.testing.assert_allclose(drawn, (oracle.running_mean() - egt.running_mean()).mean(axis=0))
    assert not np.any(axes.lines[1].get_ydata())
    lead, alone = random.lead(egt), random.bands()
    assert float(lead.error[-1]) < float(np.hypot(alone.error[-1], egt.bands().error[-1]))


def test_one_policy_or_one_run_has_no_differences() -> None:
    problem = make_problems("two-state-v1", agents=4, budget=1)[0]
    assert len(draw_comparison(compare(problem, ["egt"], horizon=5, runs=2)).axes) == 1
    assert len(draw_comparison(compare(problem, ["egt", "random"], horizon=5)).axes) == 1


def test_the_caption_says_what_seed_and_version_made_it(comparison: Comparison) -> None:
    words = describe_spec(comparison.spec)
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
    figure = draw_comparison(found)
    figure.canvas.draw()
    assert [len(axes.collections) for axes in figure.axes] == [0, 0]


def test_labels_that_find_no_room_share_what_there_is() -> None:
    np.testing.assert_allclose(push_apart([0.5] * 5, gap=1.0, ends=(0.0, 1.0)), [0.0, 0.25, 0.5, 0.75, 1.0])
    assert push_apart([3.0], gap=1.0, ends=(0.0, 5.0)) == [3.0]


def test_labels_move_as_little_as_may_be() -> None:
    values = sorted(np.random.default_rng(1).uniform(0, 10, 9))
    places = push_apart(values, gap=0.8, ends=(0.0, 10.0))
    assert np.diff(places).min() >= 0.8 - 1e-12
    moved = np.square(np.subtract(places, values)).sum()
    for nudge in np.random.default_rng(2).normal(0, 0.05, (2000, 9)):
        other = places + nudge
        if np.diff(other).min() >= 0.8 and other[0] >= 0 and other[-1] <= 10:
            assert np.square(other - values).sum() > moved - 1e-9


@pytest.mark.parametrize("colour", COLOURS)
def test_names_can_be_read_on_white(colour: str) -> None:
    level = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(readable(colour))]
    assert 1.05 / (np.dot(level, [0.2126, 0.7152, 0.0722]) + 0.05) >= 4.45  # 4.5, and hexadecimal digits round


def test_figures_on_one_page_keep_their_ids_apart(comparison: Comparison) -> None:
    one, two = (inline_svg(draw_comparison(comparison), name) for name in ("one", "two"))
    ids = re.findall(r' id="([^"]*)"', one)
    assert ids
    assert len(ids) == len(set(ids))
    assert not set(ids) & set(re.findall(r' id="([^"]*)"', two))
    assert set(re.findall(r'(?:url\(|href=")#([^")]*)', one)) == set(ids)


def test_a_figure_on_a_page_takes_its_colours_and_draws_what_the_file_does(
    comparison: Comparison, tmp_path: Path
) -> None:
    drawn = inline_svg(draw_comparison(comparison), "one")
    assert not re.search("#000000|#ffffff|<style|<metadata|font-family", drawn)
    assert all(f">{name}</text>" in drawn for name in ("random", "egt", "fluid bound"))
    write_figure(draw_comparison(comparison), tmp_path / "figure.svg")
    file = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert len(drawn) < 0.6 * len(file)
    lines, same = (re.findall(r' d="([^"QC]{300,})"', text) for text in (drawn, file))
    assert len(lines) == 8  # two bands and three means of differences, three means
    for path, other in zip(lines, same, strict=True):
        found, wanted = (np.array(re.findall(r"-?\d+\.?\d*", each), float) for each in (path, other))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=0.01)


def test_curves_keep_the_letters_that_lines_can_do_without() -> None:
    figure = Figure()
    figure.add_artist(PathPatch(Path2d([(0, 0), (1, 1), (0, 1), (1, 0), (0.5, 0.5)], [1, 4, 4, 4, 2]), fill=False))
    assert re.search(r' d="M [\d. ]+ C [\d. ]+ L [\d. ]+"', inline_svg(figure, "one"))


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
    numbers = {"measured": (1.0, 0.5, 1.5), "exact": (2.0, 2.0, 2.0), "unsure": (3.0, np.nan, np.nan)}
    rows = {name: [Dot("", *each, BOUND)] for name, each in numbers.items()}
    drawn = draw_dots(rows, "reward", {"best": 2.9, "good": 2.8, "$worst": 0.5, "bad": 0.55})
    (axes,) = drawn.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["measured", "exact", "unsure"]
    shown = [np.asarray(line.get_xdata()).tolist() for line in axes.lines]
    assert shown[:4] == [[0.5, 1.5], [1.0], [2.0, 2.0], [2.0]]
    assert [line[0] for line in shown[6:]] == [2.9, 2.8, 0.5, 0.55]
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["best", "good", "$worst", "bad"]
    assert_all_words_can_be_read(drawn)


def test_dots_need_no_reference() -> None:
    assert not draw_dots({"one": [Dot("", 1.0, 1.0, 1.0, BOUND)]}, "reward", {}).legends
