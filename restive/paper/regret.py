"""Regret: the paper's regret curve, the bound of theorem 4.4 against the measured regret, and regret over episodes.

The curve has two agents, one of them better, and a threshold that comes nearer and nearer to a benefit above it. The
bound has the constants of the proof. Appendix B measures the regret against Whittle's policy over many episodes and
over one.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from restive.paper.claims import Part, exact, measured
from restive.paper.curves import (
    AGENTS,
    CEILING,
    FLOOR,
    LEARNERS,
    Curve,
    Scoreboard,
    growth,
    read_curve,
    two_state_setup,
    with_reach,
)
from restive.paper.experiment import Measured
from restive.paper.jobs import Job, Results, Size
from restive.paper.tasks.simulation import gaps, thresholds
from restive.plotting import LOOKS, Line, draw_lines
from restive.policies.egt import theory_scale
from restive.problems import make_problems
from restive.report.tables import Table
from restive.solvers.myopic import benefit
from restive.stats import Band, band, ratio
from restive.types import Floats, Ints

SHARES = (0.1, 0.5, 0.9)
SMALLER_SCALES = (0.1, 0.01)
BASELINES = ("egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle", "random", "threshold-oracle")
INSTANCES = 10
BASELINES_HORIZON = 10_000
SECONDS_PER_STEP = 60e-6  # about how many seconds a step of few runs takes
SECONDS_PER_RUN = 0.15e-6  # about how many seconds each run adds to a step of two agents


def curve_horizon(size: Size) -> int:
    """Long enough to see the curve bend for the smallest gap."""
    return size.pick(100_000, 2_000)


def curve_job(size: Size, share: float, policy: str = "theory", scale: float = 1.0) -> Job:
    """A policy's regret at one threshold; `theory` is eps-GT as theorem 4.4 sets it."""
    theory = policy == "theory"
    steps = curve_horizon(size) if theory else BASELINES_HORIZON // size.pick(1, 5)
    runs = size.pick(100, 10) if theory and scale == 1.0 else size.pick(20, 5)
    settings = {
        "share": share,
        "policy": size.reading.specify("egt" if theory else policy),
        "theory": theory,
        "instances": INSTANCES,
        "horizon": steps,
        "runs": runs,
        "seed": size.seed,
        "scale": scale,
    }
    seconds = steps * (SECONDS_PER_STEP / 2 + SECONDS_PER_RUN * INSTANCES * runs)
    return Job("regret", f"regret share={share:g} {policy} scale={scale:g}", settings, seconds)


def curve_jobs(size: Size) -> list[Job]:
    """eps-GT as the theorem sets it, with less exploration, and all others at the threshold in the middle."""
    theory = [curve_job(size, share, scale=scale) for share in SHARES for scale in (1.0, *SMALLER_SCALES)]
    return [*theory, *(curve_job(size, 0.5, policy) for policy in BASELINES)]


def measure_curve(size: Size, results: Results) -> Measured:
    """How the regret grows, and with what."""
    curves = read_curves(size, results)
    smaller = {
        (share, scale): read_curve(results[curve_job(size, share, scale=scale)])
        for scale in SMALLER_SCALES
        for share in SHARES
    }
    baselines = {policy: read_curve(results[curve_job(size, 0.5, policy)]) for policy in BASELINES}
    parts = {
        "regret-sublinear": [measured(f"theta = {share:g}", late_growth(curve)) for share, curve in curves.items()],
        "regret-flattens": [measured(f"theta = {share:g}", late_share(curve)) for share, curve in curves.items()],
        "regret-larger-for-smaller-gap": [
            measured(f"theta = {near:g} against {far:g}", band(curves[near].cost[:, -1] - curves[far].cost[:, -1]))
            for far, near in pairwise(SHARES)
        ],
    }
    nearby = [
        measured(f"theta = {share:g}, {scale:g} of the theorem's D", late_share(curve))
        for (share, scale), curve in smaller.items()
    ]
    tables = (_tabulate_growth(curves, smaller), _tabulate_baselines(baselines))
    return Measured(parts, {"regret-flattens": nearby}, {"regret": _draw_curve(curves)}, tables)


def read_curves(size: Size, results: Results) -> dict[float, Curve]:
    """The regret of eps-GT as the theorem sets it, by threshold."""
    return {share: read_curve(results[curve_job(size, share)]) for share in SHARES}


def late_growth(curve: Curve) -> Band:
    """The exponent with which the regret grew over the last factor of ten in steps."""
    return growth(curve.cost[:, -1], curve.cost[:, curve.place(int(curve.steps[-1]) // 10)])


def late_share(curve: Curve) -> Band:
    """The share of the regret that came in the second half of the steps."""
    last = int(curve.steps[-1])
    return ratio(curve.cost[:, -1] - curve.cost[:, curve.place(last // 2)], curve.cost[:, -1])


def _draw_curve(curves: dict[float, Curve]) -> Figure:
    lines = [Line.of(f"theta = {share:g}", curve.steps, band(curve.cost)) for share, curve in curves.items()]
    return draw_lines(lines, "step", "regret so far", "Regret of eps-GT as theorem 4.4 sets it", log_x=True)


def _tabulate_growth(curves: dict[float, Curve], smaller: dict[tuple[float, float], Curve]) -> Table:
    every = {(share, 1.0): curve for share, curve in curves.items()} | smaller
    rows = tuple(
        (
            f"theta = {share:g}",
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


def _tabulate_baselines(baselines: dict[str, Curve]) -> Table:
    rows = tuple(
        (policy, *(with_reach(band(curve.cost[:, curve.place(step)]), 1) for step in _landmarks(curve)))
        for policy, curve in baselines.items()
    )
    steps = _landmarks(next(iter(baselines.values())))
    heads = ("policy", *(f"t = {step:,}" for step in steps))
    note = "Their usual settings, threshold with theta = 0.5; ± half of the 95% interval over instances."
    return Table("Regret of all policies", heads, rows, note)


Bound = Callable[[Floats, float, Ints], Floats]
FROM_STEP = 10
TWO_STATES, TWO_AGENTS, ONE_ACTION = 2, 2, 1


def bound_jobs(size: Size) -> list[Job]:
    """The regrets of the regret curve."""
    return [curve_job(size, share) for share in SHARES]


def measure_bound(size: Size, results: Results) -> Measured:
    """The largest share of the bound that the regret ever takes up."""
    problems = make_problems("ordered-v1", instances=INSTANCES, seed=size.seed)
    gains = np.stack([benefit(problem.transition, problem.reward) for problem in problems])
    curves = read_curves(size, results)
    parts = {f"regret-within-{name}-bound": _taken_up(curves, gains, bound) for name, bound in BOUNDS.items()}
    return Measured(parts, tables=(_tabulate_bound(curves, gains),))


def logarithmic(gains: Floats, share: float, steps: Ints) -> Floats:
    """Σ over bad pairs of (γ − I) · (S · N · D · log T / Δ² + 12 · |good pairs|), [I, G]: where the proof ends."""
    gamma = thresholds(gains, share)
    gap, bad = gaps(gains, gamma), gains < gamma[:, None, None]
    depth = np.where(bad, gamma[:, None, None] - gains, 0.0).sum(axis=(1, 2))
    good = (~bad).sum(axis=(1, 2))
    random = gains.shape[2] * TWO_AGENTS * theory_scale(TWO_AGENTS, ONE_ACTION) * np.log(steps) / gap[:, None] ** 2
    total: Floats = depth[:, None] * (random + 12.0 * good[:, None])
    return total


def square_root(gains: Floats, share: float, steps: Ints) -> Floats:
    """k · √(B · N · D · S · |bad pairs| · T · log T) with k = the largest γ − I over Δ, [I, G]."""
    gamma = thresholds(gains, share)
    gap, below = gaps(gains, gamma), np.maximum(gamma[:, None, None] - gains, 0.0)
    worst, bad = below.max(axis=(1, 2)) / gap, (below > 0).sum(axis=(1, 2))
    inside = (
        ONE_ACTION
        * TWO_AGENTS
        * theory_scale(TWO_AGENTS, ONE_ACTION)
        * TWO_STATES
        * bad[:, None]
        * steps
        * np.log(steps)
    )
    total: Floats = worst[:, None] * np.sqrt(inside)
    return total


BOUNDS: dict[str, Bound] = {"logarithmic": logarithmic, "square-root": square_root}


def _taken_up(curves: dict[float, Curve], gains: Floats, bound: Bound) -> list[Part]:
    """The largest share of the bound that the regret ever takes up, by threshold."""
    parts = []
    for share, curve in curves.items():
        late = curve.steps >= FROM_STEP
        taken = (curve.cost[:, late] / bound(gains, share, curve.steps[late])).max(axis=1)
        parts.append(exact(f"theta = {share:g}", taken.max()))
    return parts


def _tabulate_bound(curves: dict[float, Curve], gains: Floats) -> Table:
    rows = []
    for share, curve in curves.items():
        gap = gaps(gains, thresholds(gains, share))
        bounds = [bound(gains, share, curve.steps)[:, -1].mean() for bound in BOUNDS.values()]
        numbers = (curve.cost[:, -1].mean(), *bounds)
        rows.append(
            (f"theta = {share:g}", f"{gap.min():.3f} to {gap.max():.3f}", *(f"{each:,.0f}" for each in numbers))
        )
    heads = ("threshold", "gap Δ", "regret measured", *(f"{name} bound" for name in BOUNDS))
    return Table("The bound and the regret at the last step", heads, tuple(rows), "Means over instances.")


LENGTH, EPISODES, BUDGET = 100, 20, 10
# The learners that tend to Whittle's policy; eps-GT and R(MA)²B tend to others.
TOWARDS_WHITTLE = ("wiql", "ucwhittle", "thompson-whittle")


def episodes_job(size: Size, policy: str) -> Job:
    """A policy over episodes, on the instances of the two-state experiment."""
    instances, runs = size.pick(50, 13), size.pick(2, 1)
    settings = {
        "family": two_state_setup(size).family,
        "sizes": {"instances": instances, "agents": AGENTS, "budget": BUDGET, "seed": size.seed},
        "policy": size.reading.specify(policy),
        "length": LENGTH,
        "episodes": EPISODES,
        "runs": runs,
        "seed": size.seed,
    }
    return Job("episodes", f"episodes {policy}", settings, 60e-9 * instances * runs * AGENTS * LENGTH * EPISODES)


def episodes_jobs(size: Size) -> list[Job]:
    """All learners over episodes, and over one long one."""
    setup = two_state_setup(size)
    once = [setup.job(policy, BUDGET, 0.0) for policy in (*LEARNERS, FLOOR, CEILING)]
    return [*(episodes_job(size, policy) for policy in (*LEARNERS, FLOOR, CEILING)), *once]


def measure_episodes(size: Size, results: Results) -> Measured:
    """How the regret falls with episodes, and how it grows with the length of one."""
    curves = {policy: read_curve(results[episodes_job(size, policy)]) for policy in (*LEARNERS, FLOOR, CEILING)}
    board = Scoreboard(two_state_setup(size), results)
    falls = []
    for policy in TOWARDS_WHITTLE:
        regret = regret_per_episode(curves, policy)
        falls.append(measured(f"{policy}, {EPISODES} episodes of {LENGTH}", ratio(regret[:, -1], regret[:, 0])))
    linear, earlier = (
        [measured(f"{policy}{when}", regret_growth(board, policy, first)) for policy in TOWARDS_WHITTLE]
        for first, when in ((100, ""), (10, ", from 10 to 100 steps"))
    )
    return Measured(
        {"episodes-regret-falls": falls, "episodes-one-is-linear": linear},
        {"episodes-one-is-linear": earlier},
        {"episodes": _draw_episodes(curves)},
        (_tabulate_episodes(curves, board),),
    )


def regret_per_episode(curves: dict[str, Curve], policy: str) -> Floats:
    """(1 / K) Σ over K episodes of what Whittle's policy collects more, [I, K], for K = 1, 2, …"""
    behind: Floats = (curves[CEILING].reward - curves[policy].reward) / (curves[policy].steps / LENGTH)
    return behind


def regret_growth(board: Scoreboard, policy: str, first: int) -> Band:
    """The exponent with which the regret against Whittle's policy grows up to ten times the `first` step."""
    curve, ceiling = (board.curve(each, BUDGET, 0.0) for each in (policy, CEILING))
    behind = ceiling.reward - curve.reward
    return growth(behind[:, curve.place(10 * first)], behind[:, curve.place(first)])


def _tabulate_episodes(curves: dict[str, Curve], board: Scoreboard) -> Table:
    rows = []
    for policy in (*LEARNERS, FLOOR):
        regret = regret_per_episode(curves, policy)
        cells = [f"{regret[:, k - 1].mean():.1f}" for k in (1, 5, 10, EPISODES)]
        rows.append((policy, *cells, f"{regret_growth(board, policy, 100).mean:.2f}"))
    heads = ("policy", *(f"K = {k}" for k in (1, 5, 10, EPISODES)), "growth in one episode")
    note = (
        f"Regret per episode of {LENGTH} steps against whittle-oracle, reward over all agents; growth from 100 to 1000."
    )
    return Table("Regret over K episodes", heads, tuple(rows), note)


def _draw_episodes(curves: dict[str, Curve]) -> Figure:
    lines = []
    for policy in LEARNERS:
        episodes = curves[policy].steps / LENGTH
        lines.append(Line.of(policy, episodes, band(regret_per_episode(curves, policy)), *LOOKS[policy]))
    title = f"Regret per episode of {LENGTH} steps against Whittle's policy, B = {BUDGET}"
    return draw_lines(lines, "episodes", "regret per episode", title)
