"""Figures of the comparison: the gap closed over time in every field, and at the last step in all of them at once."""

import numpy as np
from matplotlib.figure import Figure

from restive.benchmark.scores import BOUND, LATE, SETTLED, Match, Scores
from restive.paper.curves import CEILING, FLOOR
from restive.paper.panels import LOOKS, SELDOM, Dot, Line, draw_grid, draw_strips, looks
from restive.plotting import BOUND as BOUND_COLOUR
from restive.types import Ints
from restive.version import __version__

ACROSS = 3
LIMITS = (-0.3, 1.4)  # what lies beyond is cut off, so that the rest can be seen
NEARER = 1.12  # a step is shown if it is so many times the one before


def draw_scores(scores: Scores) -> dict[str, Figure]:
    """Both figures by the name of their file."""
    return {"overview": _draw_overview(scores), "fields": _draw_fields(scores)}


def _draw_overview(scores: Scores) -> Figure:
    shown = _shown(scores)
    chosen = looks(shown)
    rows = {
        name: [
            Dot(policy, *match.gap_closed(policy, LATE)[1:], chosen[policy][0], chosen[policy][1] != "-")
            for policy in shown
        ]
        for name, match in scores.matches.items()
    }
    label = f"share of the gap from random (0) to the Whittle oracle (1) closed by step {LATE}"
    return draw_strips(rows, label, LIMITS, _origin(scores))


def _draw_fields(scores: Scores) -> Figure:
    panels = {name: _lines(match, _shown(scores)) for name, match in scores.matches.items()}
    title = "Share of the gap from random (0) to the Whittle oracle (1) closed so far"
    return draw_grid(panels, ACROSS, LIMITS, ("step", "share of the gap closed"), title, _origin(scores))


def _shown(scores: Scores) -> tuple[str, ...]:
    """All policies that are ranked but random, which is 0 throughout."""
    return tuple(policy for policy in scores.policies if policy != FLOOR)


def _lines(match: Match, policies: tuple[str, ...]) -> list[Line]:
    steps = _spaced(match.steps[match.steps >= SETTLED])
    chosen = looks(policies)
    lines = [_line(match, policy, steps)._replace(colour=look, style=style) for policy, (look, style) in chosen.items()]
    one, bound = np.ones(steps.size), _line(match, BOUND, steps).mean
    oracle = Line(CEILING, steps, one, one, one, *LOOKS[CEILING])
    return [*lines, oracle, Line(BOUND, steps, bound, bound, bound, BOUND_COLOUR, SELDOM)]


def _line(match: Match, policy: str, steps: Ints) -> Line:
    shares = np.array([match.gap_closed(policy, int(step))[1:] for step in steps])
    return Line(policy, steps, *shares.T)


def _spaced(steps: Ints) -> Ints:
    """Steps far enough apart to be told apart on a logarithmic axis, and the last."""
    kept = [steps[0]]
    for step in steps:
        if step >= NEARER * kept[-1] or step == steps[-1]:
            kept.append(step)
    return np.unique(np.array(kept, np.int64))


def _origin(scores: Scores) -> str:
    """Where the numbers come from, in a line."""
    first = next(iter(scores.matches.values())).field.scene(scores.size)
    return (
        f"{first.instances} instances of each field, seed {scores.size.seed}, restive {__version__}. "
        "Bands are 95% intervals over instances. No policy can expect more than the fluid bound."
    )
