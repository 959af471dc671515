"""The paper's regret curve: two agents, one of them better, and a threshold nearer and nearer to a benefit above it."""

import math

from matplotlib.figure import Figure

from restive.paper.claims import Claim, Part, Range, above, below, measured
from restive.paper.curves import Curve, growth, read_curve
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.panels import Line, draw_lines
from restive.paper.standings import with_reach
from restive.paper.work import Work
from restive.report.tables import Table
from restive.stats import Band, band, ratio

PLACE = "section 4.1, theorem 4.4; appendix, regret curve"
SHARES = (0.1, 0.5, 0.9)
LESS = (0.1, 0.01)
RIVALS = ("egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle", "random", "threshold-oracle")
INSTANCES = 10
RIVALS_HORIZON = 10_000
PACE = 60e-6  # about how many seconds a step of few runs takes


def horizon(size: Size) -> int:
    """Long enough to see the curve bend for the smallest gap."""
    return size.pick(100_000, 5_000)


def work(size: Size, share: float, policy: str = "theory", scale: float = 1.0) -> Work:
    """A policy's regret at one threshold; `theory` is eps-GT as theorem 4.4 sets it."""
    theory = policy == "theory"
    steps = horizon(size) if theory else RIVALS_HORIZON // size.pick(1, 5)
    settings = {
        "share": share,
        "policy": policy,
        "instances": INSTANCES,
        "horizon": steps,
        "runs": size.pick(100, 10) if theory and scale == 1.0 else size.pick(20, 5),
        "seed": size.seed,
        "scale": scale,
    }
    return Work("regret", f"regret share={share:g} {policy} scale={scale:g}", settings, PACE * steps)


def plan(size: Size) -> list[Work]:
    """eps-GT as the theorem sets it, with less exploration, and all others at the threshold in the middle."""
    theory = [work(size, share, scale=scale) for share in SHARES for scale in (1.0, *LESS)]
    return [*theory, *(work(size, 0.5, policy) for policy in RIVALS)]


def examine(size: Size, results: Results) -> Findings:
    """How the regret grows, and with what."""
    curves = {share: read_curve(results[work(size, share)]) for share in SHARES}
    less = {(share, scale): read_curve(results[work(size, share, scale=scale)]) for scale in LESS for share in SHARES}
    rivals = {policy: read_curve(results[work(size, 0.5, policy)]) for policy in RIVALS}
    claims = (_sublinear(curves), _flattens(curves, less), _larger_for_smaller_gap(curves))
    return Findings(claims, {"regret": _draw(curves)}, (_growth(curves, less), _others(rivals)))


def late_growth(curve: Curve) -> Band:
    """The exponent with which the regret grew over the last factor of ten in steps."""
    return growth(curve.cost[:, -1], curve.cost[:, curve.place(int(curve.steps[-1]) // 10)])


def late_share(curve: Curve) -> Band:
    """The share of the regret that came in the second half of the steps."""
    last = int(curve.steps[-1])
    return ratio(curve.cost[:, -1] - curve.cost[:, curve.place(last // 2)], curve.cost[:, -1])


def _sublinear(curves: dict[float, Curve]) -> Claim:
    return Claim(
        name="regret-sublinear",
        sentence="The regret of eps-GT grows more slowly than the number of steps.",
        place=PLACE,
        quantity="exponent of the growth of the regret over the last factor of ten in steps",
        agreement=below(1),
        parts=tuple(measured(_threshold(share), late_growth(curve)) for share, curve in curves.items()),
        remark="Linear growth has exponent 1, logarithmic growth an exponent that falls towards 0.",
    )


def _flattens(curves: dict[float, Curve], less: dict[tuple[float, float], Curve]) -> Claim:
    nearby: tuple[Part, ...] = tuple(
        measured(f"{_threshold(share)}, {scale:g} of the theorem's D", late_share(curve))
        for (share, scale), curve in less.items()
    )
    return Claim(
        name="regret-flattens",
        sentence="The regret of eps-GT comes to rest at a constant as the horizon grows.",
        place="appendix, regret curve",
        quantity="share of the regret that comes in the second half of the steps",
        agreement=Range(-math.inf, 0.05),
        parts=tuple(measured(_threshold(share), late_share(curve)) for share, curve in curves.items()),
        nearby=nearby,
        remark=(
            "With the theorem's settings exploration fades as D / (visits · Δ²), so that its cost grows with the "
            "logarithm of the steps and never stops; with linear growth the share would be 0.5."
        ),
    )


def _larger_for_smaller_gap(curves: dict[float, Curve]) -> Claim:
    pairs = [(SHARES[1], SHARES[0]), (SHARES[2], SHARES[1])]
    return Claim(
        name="regret-larger-for-smaller-gap",
        sentence="The smaller the gap between the threshold and the least benefit above it, the larger the regret.",
        place=PLACE,
        quantity="regret at the smaller gap less regret at the larger, at the last step",
        agreement=above(0),
        parts=tuple(
            measured(f"theta = {near:g} against {far:g}", band(curves[near].cost[:, -1] - curves[far].cost[:, -1]))
            for near, far in pairs
        ),
    )


def _threshold(share: float) -> str:
    return f"theta = {share:g}"


def _draw(curves: dict[float, Curve]) -> Figure:
    lines = []
    for share, curve in curves.items():
        line = band(curve.cost)
        lines.append(Line(_threshold(share), curve.steps.astype(float), line.mean, line.low, line.high))
    return draw_lines(lines, "step", "regret so far", "Regret of eps-GT as theorem 4.4 sets it", log_x=True)


def _growth(curves: dict[float, Curve], less: dict[tuple[float, float], Curve]) -> Table:
    every = {(share, 1.0): curve for share, curve in curves.items()} | less
    rows = tuple(
        (
            _threshold(share),
            f"{scale:g}",
            *(f"{curve.cost[:, curve.place(step)].mean():.1f}" for step in _landmarks(curve)),
            f"{late_growth(curve).mean:.2f}",
            f"{late_share(curve).mean:.2f}",
        )
        for (share, scale), curve in every.items()
    )
    steps = _landmarks(next(iter(curves.values())))
    heads = ("threshold", "D, times the theorem's", *(f"t = {step:,}" for step in steps), "growth", "second half")
    return Table("Regret of eps-GT", heads, rows, "Mean over instances; growth and second half as in the claims.")


def _landmarks(curve: Curve) -> list[int]:
    last = int(curve.steps[-1])
    return [last // 100, last // 10, last // 2, last]


def _others(rivals: dict[str, Curve]) -> Table:
    rows = tuple(
        (policy, *(with_reach(band(curve.cost[:, curve.place(step)]), 1) for step in _landmarks(curve)))
        for policy, curve in rivals.items()
    )
    steps = _landmarks(next(iter(rivals.values())))
    heads = ("policy", *(f"t = {step:,}" for step in steps))
    note = "Their usual settings, threshold with theta = 0.5; ± half of the 95% interval over instances."
    return Table("Regret of all policies", heads, rows, note)


EXPERIMENT = Experiment(
    name="regret",
    title="The regret curve",
    place=PLACE,
    about=(
        "Two agents, one action a step; the first is better in all of its states, and gamma = theta · I(1) + "
        "(1 − theta) · I(0) of the second, so that acting on the second in its state 0 is the only thing that costs. "
        "eps-GT has the settings of theorem 4.4: D = 16, p = 1, eta = the gap. 10 instances. The regret is exact "
        "along each run, from the true benefits."
    ),
    plan=plan,
    examine=examine,
)
