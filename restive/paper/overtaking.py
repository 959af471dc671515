"""The paper's remark on Figure 1: WIQL learns more slowly but would reach the Whittle oracle. When does it overtake?"""

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from restive.paper.claims import OURS, Claim, Range, above, below, measured
from restive.paper.curves import BUDGETS, CEILING, FLOOR, Board, Scene, family_scenes
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.panels import LOOKS, Line, draw_lines
from restive.paper.standings import SHARE
from restive.paper.work import Work
from restive.report.tables import Table
from restive.stats import ratio

PLACE = "section 5.1"
POLICIES = ("egt", "wiql", FLOOR, CEILING)
SETTLED = 20


def long_horizon(size: Size) -> int:
    """Ten times that of the figures."""
    return size.pick(10_000, 2_000)


def scenes(size: Size) -> dict[str, Scene]:
    """The three families without noise, longer and with fewer runs; the quick form has the paper's own only."""
    chosen = {family: scene for family, scene in family_scenes(size).items() if family == "two-state" or not size.quick}
    return {
        family: replace(scene, horizon=long_horizon(size), runs=min(scene.runs, 2)) for family, scene in chosen.items()
    }


def plan(size: Size) -> list[Work]:
    """eps-GT, WIQL and the two ends of the gap."""
    return [
        scene.work(policy, budget, 0.0) for scene in scenes(size).values() for budget in BUDGETS for policy in POLICIES
    ]


def examine(size: Size, results: Results) -> Findings:
    """Whether and when the slower one gets ahead."""
    boards = {family: Board(scene, results) for family, scene in scenes(size).items()}
    two_states = boards["two-state"]
    claims = (_overtakes(two_states), _reaches_whittle(two_states), _stays_below(two_states))
    figures = {f"overtaking-{family}": _draw(board, family) for family, board in boards.items()}
    return Findings(claims, figures, (_table(boards),))


def crossing(board: Board, budget: int) -> int | None:
    """The step from which on WIQL's running mean is above that of eps-GT, None if that is not within the horizon."""
    wiql, egt = (board.curve(policy, budget, 0.0) for policy in ("wiql", "egt"))
    ahead = (wiql.reward - egt.reward).mean(axis=0) > 0
    ahead[wiql.steps < SETTLED] = False
    behind = np.flatnonzero(~ahead)
    return None if behind[-1] == ahead.size - 1 else int(wiql.steps[behind[-1] + 1])


def _overtakes(two_states: Board) -> Claim:
    last = two_states.scene.horizon
    return Claim(
        name="wiql-overtakes-in-time",
        sentence=f"Given long enough, WIQL collects more than eps-GT: by step {last:,} it is ahead (two-state).",
        place=OURS,
        quantity=f"lead of wiql over egt at step {last:,}, {SHARE}",
        agreement=above(0),
        parts=tuple(measured(f"B = {budget}", two_states.lead("wiql", "egt", budget, 0.0, last)) for budget in BUDGETS),
        remark="The paper says only that WIQL tends to the Whittle oracle; that and when it overtakes is ours.",
    )


def _reaches_whittle(two_states: Board) -> Claim:
    last = two_states.scene.horizon
    return Claim(
        name="wiql-reaches-whittle",
        sentence=f"Given long enough, WIQL does as well as the Whittle oracle: by step {last:,} it does (two-state).",
        place=PLACE,
        quantity="share of the gap from random to the Whittle oracle, in reward per step of the last tenth",
        agreement=Range(0.95, float("inf")),
        parts=tuple(measured(f"B = {budget}", two_states.reached("wiql", CEILING, budget)) for budget in BUDGETS),
        remark="The paper names no horizon; this one is ours.",
    )


def _stays_below(two_states: Board) -> Claim:
    return Claim(
        name="egt-settles-below-whittle",
        sentence="eps-GT settles at less than what the Whittle oracle collects (two-state).",
        place=PLACE,
        quantity="share of the gap from random to the Whittle oracle, in reward per step of the last tenth",
        agreement=below(1),
        parts=tuple(measured(f"B = {budget}", two_states.reached("egt", CEILING, budget)) for budget in BUDGETS),
    )


def _table(boards: dict[str, Board]) -> Table:
    rows, last = [], boards["two-state"].scene.horizon
    for family, board in boards.items():
        for budget in BUDGETS:
            step = crossing(board, budget)
            shares = (f"{board.reached(policy, CEILING, budget).mean:.3f}" for policy in ("egt", "wiql"))
            rows.append((family, str(budget), f"{step:,}" if step else f"not within {last:,}", *shares))
    heads = ("family", "B", "WIQL is ahead from step", "egt, last tenth", "wiql, last tenth")
    note = "Running means, mean over instances; last tenth: share of the random-to-Whittle gap closed in it."
    return Table("Where WIQL overtakes", heads, tuple(rows), note)


def _draw(board: Board, family: str) -> Figure:
    lines = []
    for budget, style in zip(BUDGETS, (":", "--", "-"), strict=True):
        for policy in ("egt", "wiql"):
            curve, floor, ceiling = (board.curve(each, budget, 0.0) for each in (policy, FLOOR, CEILING))
            means = [each.running_mean() for each in (curve, floor, ceiling)]
            kept = curve.steps >= SETTLED
            shares = [
                ratio(means[0][:, g] - means[1][:, g], means[2][:, g] - means[1][:, g]) for g in np.flatnonzero(kept)
            ]
            middle, low, high = (np.array([getattr(s, part) for s in shares]) for part in ("mean", "low", "high"))
            label = f"{policy}, B = {budget}"
            lines.append(Line(label, curve.steps[kept].astype(float), middle, low, high, LOOKS[policy][0], style))
    title = f"eps-GT and WIQL over {board.scene.horizon:,} steps, {family}, noiseless"
    return draw_lines(lines, "step", "share of the random-to-Whittle gap closed so far", title, log_x=True)


EXPERIMENT = Experiment(
    name="overtaking",
    title="Where WIQL overtakes",
    place=PLACE,
    about="The three families without noise over 10,000 steps, at most two runs of each (quick: two-state, 2,000).",
    plan=plan,
    examine=examine,
)
