"""Learning curves of all policies: Figure 1, the ten states of the appendix, Figure 2, and where WIQL overtakes.

The paper remarks on Figure 1 that WIQL learns more slowly but would reach the Whittle oracle; `overtaking` runs ten
times as long to see when.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from restive.paper.claims import Part, measured
from restive.paper.curves import (
    BUDGETS,
    CEILING,
    FIRST_SHOWN_STEP,
    FLOOR,
    HORIZON,
    Lead,
    Scoreboard,
    Setup,
    compare_with_bound,
    draw_scoreboard,
    family_setups,
    standings,
    ten_state_setup,
    two_state_setup,
    wireless_setup,
)
from restive.paper.experiment import Measured, Parts
from restive.paper.jobs import Job, Results, Size
from restive.paper.readings import PAPER_POLICIES
from restive.plotting import LOOKS, Line, draw_lines
from restive.report.tables import Table
from restive.stats import Band, band, difference

UNDISCOUNTED = "wiql:discount=1"
ORACLE_RUNS = 20  # of each wireless instance where the oracle is held against the bound, which is very near
ORACLE_OF = {"egt": "greedy-oracle", "wiql": CEILING, "ucwhittle": CEILING, "rma2b": "omr-oracle"}
MORE_EXPLORATION = ("egt:D=1", "egt:D=3", "egt:D=10")
LESS_NOISE = (0.03, 0.01, 0.003, 0.001)
OVERTAKING_POLICIES = ("egt", "wiql", FLOOR, CEILING)


def _measure_board(
    name: str, title: str, board: Scoreboard, policies: tuple[str, ...], parts: Parts, nearby: Parts | None = None
) -> Measured:
    """Parts with the figure of all policies, in reward and in shares of the gap, and their table."""
    figures = {
        name: draw_scoreboard(board, policies, f"{title}: average (over time) cumulative reward"),
        f"{name}-gap": draw_scoreboard(board, policies, f"{title}: gap from random to Whittle closed", True),
    }
    return Measured(parts, nearby or {}, figures, (standings(board, policies),), board=board)


def two_state_jobs(size: Size) -> list[Job]:
    """All policies, also those that the paper leaves out of its noisy half; and WIQL without a discount."""
    setup = two_state_setup(size)
    return [*setup.jobs(PAPER_POLICIES), *(setup.job(UNDISCOUNTED, *setting) for setting in setup.settings())]


def measure_two_state(size: Size, results: Results) -> Measured:
    """Leads between policies."""
    board = Scoreboard(two_state_setup(size), results)
    parts = {
        "two-state-whittle-greedy-gap-narrows": _compare_gaps(board),
        "two-state-omr-lowest": _compare_with_omr(board),
        "two-state-under-the-bound": compare_with_bound(board),
    }
    return _measure_board("two-state", "Figure 1, synthetic instances", board, PAPER_POLICIES, parts)


def _compare_gaps(board: Scoreboard) -> list[Part]:
    """By how much the lead of Whittle's indices over greedy falls from each budget to the next."""
    gaps = {}
    for budget in BUDGETS:
        whittle, greedy = (board.curve(policy, budget, 0.0) for policy in ("whittle-oracle", "greedy-oracle"))
        gaps[budget] = whittle.mean(HORIZON) - greedy.mean(HORIZON)
    return [measured(f"B = {low} to {high}", band(gaps[low] - gaps[high])) for low, high in pairwise(BUDGETS)]


def _compare_with_omr(board: Scoreboard) -> list[Part]:
    """The lead of the weaker of the two other oracles."""
    whittle, greedy = (
        Lead(oracle, "omr-oracle", noise="noiseless").at(board, HORIZON)
        for oracle in ("whittle-oracle", "greedy-oracle")
    )
    return [min(pair, key=lambda part: part.value) for pair in zip(whittle, greedy, strict=True)]


def ten_state_jobs(size: Size) -> list[Job]:
    """All policies, and of the two-state setup what the comparison with it needs."""
    two, ten = two_state_setup(size), ten_state_setup(size)
    compared = [two.job(policy, *setting) for setting in two.settings() for policy in OVERTAKING_POLICIES]
    return [*ten.jobs(ten_state_policies(size)), *compared]


def ten_state_policies(size: Size) -> tuple[str, ...]:
    """All policies; the one that is slow and not in the paper at full size and with uniform rows only."""
    left_out = size.quick or "ten-state" in size.reading.families
    return tuple(policy for policy in PAPER_POLICIES if not (left_out and policy == "thompson-whittle"))


def measure_ten_state(size: Size, results: Results) -> Measured:
    """Leads between policies, and whether they are larger than with two states."""
    ten, two = Scoreboard(ten_state_setup(size), results), Scoreboard(two_state_setup(size), results)
    larger = [
        measured(
            f"B = {many[0]}, {'noisy' if many[1] else 'noiseless'}",
            difference(ten.lead("egt", "wiql", *many), two.lead("egt", "wiql", *few)),
        )
        for many, few in zip(ten.setup.settings(), two.setup.settings(), strict=True)
    ]
    parts = {"ten-state-larger-lead": larger, "ten-state-under-the-bound": compare_with_bound(ten)}
    return _measure_board("ten-state", "Appendix, ten states", ten, ten_state_policies(size), parts)


def wireless_jobs(size: Size) -> list[Job]:
    """All policies; eps-GT and WIQL with less noise and eps-GT with more exploration, to see where claims hold."""
    setup = wireless_setup(size)
    oracle = [setup.job(CEILING, budget, 0.0, ORACLE_RUNS) for budget in BUDGETS]
    nearby = [
        *((setup, policy, noise) for noise in less_noise(size) for policy in ("egt", "wiql")),
        *((setup, policy, 0.0) for policy in more_exploration(size)),
        *((longer, policy, 0.0) for longer in _longer_wireless(size) for policy in ("egt", FLOOR, ORACLE_OF["egt"])),
    ]
    others = [where.job(policy, budget, noise) for where, policy, noise in nearby for budget in BUDGETS]
    return [*setup.jobs(PAPER_POLICIES), *oracle, *others]


def less_noise(size: Size) -> tuple[float, ...]:
    """Less and less noise."""
    return LESS_NOISE[: size.pick(len(LESS_NOISE), 1)]


def more_exploration(size: Size) -> tuple[str, ...]:
    """eps-GT with more and more exploration."""
    return MORE_EXPLORATION[: size.pick(len(MORE_EXPLORATION), 1)]


def _longer_wireless(size: Size) -> list[Setup]:
    """The same over more steps, where there is time for it."""
    return [setup for family, setup in long_setups(size).items() if family == "wireless"]


def measure_wireless(size: Size, results: Results) -> Measured:
    """Leads between policies, and how near each comes to its oracle."""
    board = Scoreboard(wireless_setup(size), results)
    later = [
        measured(
            f"B = {budget}, noiseless, {setup.horizon:,} steps",
            reached(Scoreboard(setup, results), "egt", budget, 0.0),
        )
        for setup in _longer_wireless(size)
        for budget in BUDGETS
    ]
    parts = {
        "wireless-egt-reaches-its-oracle": _list_reached(board, ["egt"], (0.0, board.setup.noise)),
        "wireless-egt-nearer-its-oracle": _compare_reached(board),
        "wireless-under-the-bound": compare_with_bound(board, ORACLE_RUNS),
    }
    nearby = {
        "wireless-egt-above-wiql": [
            measured(board.setup.name(budget, noise) + ", t = 1000", board.lead("egt", "wiql", budget, noise))
            for noise in less_noise(size)
            for budget in BUDGETS
        ],
        "wireless-egt-reaches-its-oracle": [
            *_list_reached(board, more_exploration(size), [0.0]),
            *later,
            *_list_reached(board, ["egt"], less_noise(size)),
        ],
    }
    return _measure_board("wireless", "Figure 2, wireless channels (substitutes)", board, PAPER_POLICIES, parts, nearby)


def reached(board: Scoreboard, policy: str, budget: int, noise: float) -> Band:
    """The share of the way from random to its own oracle that a learner goes in the last tenth of the steps."""
    return board.reached(policy, ORACLE_OF[policy.partition(":")[0]], budget, noise)


def _list_reached(board: Scoreboard, policies: Iterable[str], noises: Iterable[float]) -> list[Part]:
    return [
        measured(f"{policy}, {board.setup.name(budget, noise)}", reached(board, policy, budget, noise))
        for policy in policies
        for noise in noises
        for budget in BUDGETS
    ]


def _compare_reached(board: Scoreboard) -> list[Part]:
    """How much further eps-GT has gone to its oracle than others to theirs; the paper has noise with WIQL only."""
    parts = []
    for baseline in ("wiql", "ucwhittle", "rma2b"):
        for budget, noise in board.setup.settings():
            if not noise or baseline == "wiql":
                own, other = (reached(board, policy, budget, noise) for policy in ("egt", baseline))
                parts.append(measured(f"{baseline}, {board.setup.name(budget, noise)}", difference(own, other)))
    return parts


def long_setups(size: Size) -> dict[str, Setup]:
    """The three families without noise, longer and with fewer runs; the quick form has the paper's own only."""
    chosen = {family: setup for family, setup in family_setups(size).items() if family == "two-state" or not size.quick}
    horizon = size.pick(10_000, 2_000)
    return {family: replace(setup, horizon=horizon, runs=min(setup.runs, 2)) for family, setup in chosen.items()}


def overtaking_jobs(size: Size) -> list[Job]:
    """eps-GT, WIQL and the two ends of the gap."""
    return [
        setup.job(policy, budget, 0.0)
        for setup in long_setups(size).values()
        for budget in BUDGETS
        for policy in OVERTAKING_POLICIES
    ]


def measure_overtaking(size: Size, results: Results) -> Measured:
    """Whether and when the slower one gets ahead."""
    boards = {family: Scoreboard(setup, results) for family, setup in long_setups(size).items()}
    board = boards["two-state"]
    last = board.setup.horizon
    wiql, egt = (
        [measured(f"B = {budget}", board.reached(policy, CEILING, budget)) for budget in BUDGETS]
        for policy in ("wiql", "egt")
    )
    parts = {
        "wiql-overtakes-in-time": [
            measured(f"B = {budget}", board.lead("wiql", "egt", budget, 0.0, last)) for budget in BUDGETS
        ],
        "wiql-reaches-whittle": wiql,
        "egt-settles-below-whittle": egt,
    }
    figures = {f"overtaking-{family}": _draw_overtaking(board, family) for family, board in boards.items()}
    return Measured(parts, figures=figures, tables=(_tabulate_overtaking(boards),), values={"last": last})


def crossing(board: Scoreboard, budget: int) -> int | None:
    """The step from which on WIQL's running mean is above that of eps-GT, None if that is not within the horizon."""
    wiql, egt = (board.curve(policy, budget, 0.0) for policy in ("wiql", "egt"))
    ahead = (wiql.reward - egt.reward).mean(axis=0) > 0
    ahead[wiql.steps < FIRST_SHOWN_STEP] = False
    behind = np.flatnonzero(~ahead)
    return None if behind[-1] == ahead.size - 1 else int(wiql.steps[behind[-1] + 1])


def _tabulate_overtaking(boards: dict[str, Scoreboard]) -> Table:
    rows, last = [], boards["two-state"].setup.horizon
    for family, board in boards.items():
        for budget in BUDGETS:
            step = crossing(board, budget)
            shares = (f"{board.reached(policy, CEILING, budget).mean:.3f}" for policy in ("egt", "wiql"))
            rows.append((family, str(budget), f"{step:,}" if step else f"not within {last:,}", *shares))
    heads = ("family", "B", "WIQL is ahead from step", "egt, last tenth", "wiql, last tenth")
    note = "Running means, mean over instances; last tenth: share of the random-to-Whittle gap closed in it."
    return Table("Where WIQL overtakes", heads, tuple(rows), note)


def _draw_overtaking(board: Scoreboard, family: str) -> Figure:
    lines = []
    for budget, style in zip(BUDGETS, (":", "--", "-"), strict=True):
        for policy in ("egt", "wiql"):
            steps = board.curve(policy, budget, 0.0).steps
            kept = [place for place, step in enumerate(steps) if step >= FIRST_SHOWN_STEP]
            closed = board.gap_curve(policy, budget, 0.0, kept)
            lines.append(Line.of(f"{policy}, B = {budget}", steps[kept], closed, LOOKS[policy][0], style))
    title = f"eps-GT and WIQL over {board.setup.horizon:,} steps, {family}, noiseless"
    return draw_lines(lines, "step", "share of the random-to-Whittle gap closed so far", title, log_x=True)
