"""How results show themselves: a short `repr`, a table and a small figure in a notebook, and frames for other libraries.

A class that mixes in `Displayed` defines `facts`; one with numbers also defines `to_frame`, one that can be drawn `plot`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALL, DPI = (4.6, 2.6), 110  # of a figure in a notebook, in inches
CELL = "text-align: left; padding: 0.1em 1em 0.1em 0"


class Displayed:
    """A result with a short text, a table and a figure for notebooks, and its numbers as a frame."""

    def facts(self) -> Mapping[str, object]:
        """What identifies the result, by name, in the order in which it is shown."""
        raise NotImplementedError

    def to_frame(self) -> pl.DataFrame:
        """The numbers as a polars frame."""
        raise NotImplementedError(f"{type(self).__name__} has no table.")

    def to_pandas(self) -> Any:
        """The numbers as a pandas frame; pandas must be installed."""
        import pandas as pd

        return pd.DataFrame({column.name: column.to_numpy() for column in self.to_frame()})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The numbers for any library that reads Arrow's interface, such as `pandas.DataFrame.from_arrow`."""
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self.facts().items())})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="{CELL}">{escape(str(name))}</th><td style="{CELL}">{escape(str(value))}</td></tr>'
            for name, value in self.facts().items()
        )
        plot = getattr(self, "plot", None)
        return f"<div><b>{type(self).__name__}</b><table>{rows}</table>{draw_small(plot) if plot else ''}</div>"


def draw_small(draw: "Callable[[Axes], object]") -> str:
    """An element of HTML with a figure drawn by a function of axes; empty without Matplotlib."""
    if find_spec("matplotlib") is None:
        return ""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SMALL, dpi=DPI, layout="constrained")
    draw(figure.subplots())
    return embed(figure)


def embed(figure: "Figure") -> str:
    """An element of HTML that holds the figure itself."""
    from base64 import b64encode

    content = BytesIO()
    figure.savefig(content, format="png", dpi=DPI)
    return f'<img alt="" style="max-width: 100%" src="data:image/png;base64,{b64encode(content.getvalue()).decode()}">'


@contextmanager
def axes_of(given: "Axes | None") -> "Iterator[Axes]":
    """The given axes, or those of a new figure that a notebook shows; spines and small print as in all figures."""
    if given is None:
        from matplotlib import pyplot as plt

        _, given = plt.subplots(figsize=SMALL, layout="constrained")
    yield given
    given.spines[["top", "right"]].set_visible(False)
    given.tick_params(labelsize=8)
    for label in (given.xaxis.label, given.yaxis.label, given.title):
        label.set_fontsize(9)
    if given.get_legend_handles_labels()[1]:
        given.legend(fontsize=8, frameon=False)
