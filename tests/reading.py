"""Checks that all text of a figure can be read."""

from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text


def boxes_of_words(figure: Figure) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Every text of the figure and where it is, in pixels."""
    figure.draw_without_rendering()
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        texts += [*axes.texts, axes.xaxis.label, axes.yaxis.label, *ticks(axes)]
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
