"""Theorem 4.4: the constant of its bound, as the proof has it, against the regret that was measured."""

from collections.abc import Callable

import numpy as np

from restive.paper.claims import Claim, Part, Range, exact
from restive.paper.curves import Curve, read_curve
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.regret_curve import INSTANCES, SHARES, work
from restive.paper.tasks.regret import gaps, thresholds
from restive.paper.work import Work
from restive.policies.egt import Egt
from restive.problems import make_problems
from restive.report.tables import Table
from restive.solvers.myopic import benefit
from restive.types import Floats, Ints

Bound = Callable[[Floats, float, Ints], Floats]
PLACE = "theorem 4.4, section 4.1 and its proof"
FROM_STEP = 10
STATES, AGENTS, BUDGET = 2, 2, 1


def plan(size: Size) -> list[Work]:
    """The regrets of the regret curve."""
    return [work(size, share) for share in SHARES]


def examine(size: Size, results: Results) -> Findings:
    """The largest share of the bound that the regret ever takes up."""
    problems = make_problems("ordered-v1", instances=INSTANCES, seed=size.seed)
    gains = np.stack([benefit(problem.transition, problem.reward) for problem in problems])
    curves = {share: read_curve(results[work(size, share)]) for share in SHARES}
    shares = {name: _taken_up(curves, gains, bound) for name, bound in BOUNDS.items()}
    claims = tuple(
        Claim(
            name=f"regret-within-{name}-bound",
            sentence=f"The regret of eps-GT is at most the {name} bound with the constant that the proof gives.",
            place=PLACE,
            quantity="regret as a share of the bound, the largest over steps and instances, each a mean over runs",
            agreement=Range(0.0, 1.0),
            parts=parts,
            remark=REMARK,
        )
        for name, parts in shares.items()
    )
    return Findings(claims, {}, (_table(curves, gains),))


def logarithmic(gains: Floats, share: float, steps: Ints) -> Floats:
    """Σ over bad pairs of (γ − I) · (S · N · D · log T / Δ² + 12 · |good pairs|), [I, G]: where the proof ends."""
    gamma = thresholds(gains, share)
    gap, bad = gaps(gains, gamma), gains < gamma[:, None, None]
    depth = np.where(bad, gamma[:, None, None] - gains, 0.0).sum(axis=(1, 2))
    good = (~bad).sum(axis=(1, 2))
    random = STATES * AGENTS * _scale() * np.log(steps) / gap[:, None] ** 2
    total: Floats = depth[:, None] * (random + 12.0 * good[:, None])
    return total


def square_root(gains: Floats, share: float, steps: Ints) -> Floats:
    """k · √(B · N · D · S · |bad pairs| · T · log T) with k = the largest γ − I over Δ, [I, G]."""
    gamma = thresholds(gains, share)
    gap, below = gaps(gains, gamma), np.maximum(gamma[:, None, None] - gains, 0.0)
    worst, bad = below.max(axis=(1, 2)) / gap, (below > 0).sum(axis=(1, 2))
    inside = BUDGET * AGENTS * _scale() * STATES * bad[:, None] * steps * np.log(steps)
    total: Floats = worst[:, None] * np.sqrt(inside)
    return total


BOUNDS: dict[str, Bound] = {"logarithmic": logarithmic, "square-root": square_root}
REMARK = (
    "The proof replaces Σ 1/k up to T by log T, which is less by up to 1, and drops that exploration is never above 1; "
    "the second makes the bound far larger than it need be, so the first does no harm here. Its last line takes "
    "√(ab) as a bound of a + b, where it is one of the smaller of the two, and leaves out the term of the good pairs."
)


def _scale() -> float:
    return Egt.theory(AGENTS, BUDGET, gap=1.0, gamma=0.0).D


def _taken_up(curves: dict[float, Curve], gains: Floats, bound: Bound) -> tuple[Part, ...]:
    parts = []
    for share, curve in curves.items():
        late = curve.steps >= FROM_STEP
        taken = (curve.cost[:, late] / bound(gains, share, curve.steps[late])).max(axis=1)
        parts.append(exact(f"theta = {share:g}", taken.max()))
    return tuple(parts)


def _table(curves: dict[float, Curve], gains: Floats) -> Table:
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


EXPERIMENT = Experiment(
    name="regret-bound",
    title="The regret bound of theorem 4.4",
    place=PLACE,
    about=(
        "The theorem gives an order; its proof gives the constants. Both forms are evaluated on every instance of the "
        "regret curve and at every step from 10 on."
    ),
    plan=plan,
    examine=examine,
)
