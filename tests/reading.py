"""Checks that all text of a figure can be read, and that a page is whole."""

import re
from collections import Counter
from html.parser import HTMLParser
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


class Outline(HTMLParser):
    """What the page is made of; fails on a tag that is closed out of turn."""

    EMPTY = ("meta", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: Counter[str] = Counter()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            self.ids += [str(value)] * (name == "id")
            self.links += [str(value)] * (name in ("href", "xlink:href", "src"))
            self.links += re.findall(r"url\((.*?)\)", str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
