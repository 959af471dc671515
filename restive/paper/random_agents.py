"""Random agents of the paper: Figure 1 with two states, the appendix with ten, and where WIQL overtakes.

The paper remarks on Figure 1 that WIQL learns more slowly but would reach the Whittle oracle; `overtaking` runs ten times
as long to see when.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from restive.paper.claims import OURS, Claim, Experiment, Findings, Range, above, below, measured
from restive.paper.curves import (
    ALL_POLICIES,
    BUDGETS,
    CEILING,
    EARLY,
    FLOOR,
    HORIZON,
    SHARE,
    Scoreboard,
    Setup,
    draw_scoreboard,
    family_setups,
    lead_claim,
    leads,
    near_random,
    outdoes,
    outdoes_by_noise,
    standings,
    ten_state_setup,
    two_state_setup,
    under_the_bound,
)
from restive.paper.jobs import Job, Results, Size
from restive.plotting import LOOKS, Line, draw_lines
from restive.report.tables import Table
from restive.stats import band, difference, ratio

FIGURE_1 = "Figure 1, section 5.1"
UNDISCOUNTED = "wiql:discount=1"


def two_state_jobs(size: Size) -> list[Job]:
    """All policies, also those that the paper leaves out of its noisy half; and WIQL without a discount."""
    setup = two_state_setup(size)
    return [*setup.jobs(ALL_POLICIES), *(setup.job(UNDISCOUNTED, *setting) for setting in setup.settings())]


def examine_two_state(size: Size, results: Results) -> Findings:
    """Leads between policies."""
    board = Scoreboard(two_state_setup(size), results)
    claims = (
        outdoes(board, "two-state", FIGURE_1, "wiql"),
        outdoes(board, "two-state", FIGURE_1, "wiql", EARLY),
        *outdoes_by_noise(board, "two-state", FIGURE_1, "ucwhittle"),
        *outdoes_by_noise(board, "two-state", FIGURE_1, "rma2b"),
        outdoes(board, "two-state", FIGURE_1, FLOOR),
        *outdoes_by_noise(board, "two-state", FIGURE_1, "ucwhittle", ahead="wiql"),
        *outdoes_by_noise(board, "two-state", FIGURE_1, "rma2b", ahead="wiql"),
        lead_claim(
            board,
            "two-state-wiql-discount",
            "WIQL collects more with a discount of 0.9 than with its original 1 (two-state).",
            "appendix, benchmarks",
            "wiql",
            UNDISCOUNTED,
            quantity=f"wiql less {UNDISCOUNTED}",
        ),
        lead_claim(
            board,
            "two-state-model-based-is-slow",
            "Learning the whole model of every agent is too slow: eps-GT collects more than such a learner.",
            "abstract, section 2.3",
            "egt",
            "thompson-whittle",
            nearby=(100, 50, 20),
            remark="The paper compares with UCWhittle and R(MA)²B only; posterior sampling learns the model too.",
        ),
        near_random(board, "two-state", "appendix, ten states", "ucwhittle"),
        near_random(board, "two-state", FIGURE_1, "rma2b"),
        lead_claim(
            board,
            "two-state-whittle-above-greedy",
            "With the model known, Whittle's indices collect more than greedy at every budget.",
            "section 5.1",
            "whittle-oracle",
            "greedy-oracle",
            noises=(0.0,),
            nearby=(),
        ),
        _gap_narrows(board),
        _omr_lowest(board),
        under_the_bound(board, "two-state"),
    )
    figure = draw_scoreboard(board, ALL_POLICIES, "Random two-state agents")
    return Findings(claims, {"two-state": figure}, (standings(board, ALL_POLICIES),))


def _gap_narrows(board: Scoreboard) -> Claim:
    gaps = {
        budget: board.curve("whittle-oracle", budget, 0.0).mean(HORIZON)
        - board.curve("greedy-oracle", budget, 0.0).mean(HORIZON)
        for budget in BUDGETS
    }
    return Claim(
        name="two-state-whittle-greedy-gap-narrows",
        sentence="The lead of Whittle's indices over greedy shrinks as the budget grows.",
        place="section 5.1",
        quantity="lead at the smaller budget less lead at the larger, reward per step over all agents",
        agreement=above(0),
        parts=tuple(measured(f"B = {low} to {high}", band(gaps[low] - gaps[high])) for low, high in pairwise(BUDGETS)),
    )


def _omr_lowest(board: Scoreboard) -> Claim:
    baselines = [
        leads(board, baseline, "omr-oracle", noises=(0.0,)) for baseline in ("whittle-oracle", "greedy-oracle")
    ]
    return Claim(
        name="two-state-omr-lowest",
        sentence="Of the three oracles OMR collects the least.",
        place="section 5.1",
        quantity=f"lead of the weaker of whittle-oracle and greedy-oracle over omr-oracle, {SHARE}",
        agreement=above(0),
        parts=tuple(min(pair, key=lambda part: part.value) for pair in zip(*baselines, strict=True)),
        remark="OMR is simulated here as the fluid plan of the agents as they are, one share for each agent and state.",
    )


TWO_STATE = Experiment(
    name="two-state",
    title="Random two-state agents",
    place=FIGURE_1,
    about=(
        "50 agents, rewards 0 and 1, every probability of reaching state 1 uniform on [0, 1], 1000 steps. The noisy half "
        "adds a Gaussian of variance 1 to every reward that a learner sees; what is shown is the expected reward. "
        "Settings that the paper does not print (D, p, eta, gamma of eps-GT) are the defaults of `egt`."
    ),
    list_jobs=two_state_jobs,
    examine=examine_two_state,
)


TEN_STATE_PLACE = "appendix, ten states"


def ten_state_jobs(size: Size) -> list[Job]:
    """All policies, and of the two-state setup what the comparison with it needs."""
    two, ten = two_state_setup(size), ten_state_setup(size)
    compared = [two.job(policy, *setting) for setting in two.settings() for policy in ("egt", "wiql", FLOOR, CEILING)]
    return [*ten.jobs(ten_state_policies(size)), *compared]


def ten_state_policies(size: Size) -> tuple[str, ...]:
    """All policies; the quick size leaves out the one that takes half of the time and is not in the paper."""
    return tuple(policy for policy in ALL_POLICIES if not (size.quick and policy == "thompson-whittle"))


def examine_ten_state(size: Size, results: Results) -> Findings:
    """Leads between policies, and whether they are larger than with two states."""
    board, simpler = Scoreboard(ten_state_setup(size), results), Scoreboard(two_state_setup(size), results)
    claims = (
        outdoes(board, "ten-state", TEN_STATE_PLACE, "wiql"),
        outdoes(board, "ten-state", TEN_STATE_PLACE, "wiql", EARLY),
        outdoes(board, "ten-state", OURS, FLOOR),
        outdoes(board, "ten-state", OURS, "ucwhittle"),
        outdoes(board, "ten-state", OURS, "rma2b"),
        _larger_lead(board, simpler),
        under_the_bound(board, "ten-state"),
    )
    figure = draw_scoreboard(board, ten_state_policies(size), "Random ten-state agents")
    return Findings(claims, {"ten-state": figure}, (standings(board, ten_state_policies(size)),))


def _larger_lead(ten: Scoreboard, two: Scoreboard) -> Claim:
    parts = [
        measured(
            f"B = {many[0]}, {'noisy' if many[1] else 'noiseless'}",
            difference(ten.lead("egt", "wiql", *many), two.lead("egt", "wiql", *few)),
        )
        for many, few in zip(ten.setup.settings(), two.setup.settings(), strict=True)
    ]
    return Claim(
        name="ten-state-larger-lead",
        sentence="The lead of eps-GT over WIQL is larger with ten states than with two.",
        place=TEN_STATE_PLACE,
        quantity=f"lead with ten states less lead with two, {SHARE}",
        agreement=above(0),
        parts=tuple(parts),
    )


TEN_STATE = Experiment(
    name="ten-state",
    title="Random ten-state agents",
    place=TEN_STATE_PLACE,
    about=(
        "50 agents with ten states worth 0 to 9, every row of every agent uniform on the simplex (the paper says only "
        "that they are random), 1000 steps, eps-GT with gamma = -8.9. The noisy half adds a Gaussian of variance 0.1. "
        "thompson-whittle, which is not in the paper and is very slow here, has one run of each instance, and "
        "none in the quick form."
    ),
    list_jobs=ten_state_jobs,
    examine=examine_ten_state,
)


OVERTAKING_PLACE = "section 5.1"
OVERTAKING_POLICIES = ("egt", "wiql", FLOOR, CEILING)
FIRST_SHOWN_STEP = 20


def long_horizon(size: Size) -> int:
    """Ten times that of the figures."""
    return size.pick(10_000, 2_000)


def long_setups(size: Size) -> dict[str, Setup]:
    """The three families without noise, longer and with fewer runs; the quick form has the paper's own only."""
    chosen = {family: setup for family, setup in family_setups(size).items() if family == "two-state" or not size.quick}
    return {
        family: replace(setup, horizon=long_horizon(size), runs=min(setup.runs, 2)) for family, setup in chosen.items()
    }


def overtaking_jobs(size: Size) -> list[Job]:
    """eps-GT, WIQL and the two ends of the gap."""
    return [
        setup.job(policy, budget, 0.0)
        for setup in long_setups(size).values()
        for budget in BUDGETS
        for policy in OVERTAKING_POLICIES
    ]


def examine_overtaking(size: Size, results: Results) -> Findings:
    """Whether and when the slower one gets ahead."""
    boards = {family: Scoreboard(setup, results) for family, setup in long_setups(size).items()}
    figures = {f"overtaking-{family}": _draw_overtaking(board, family) for family, board in boards.items()}
    return Findings(_overtaking_claims(boards["two-state"]), figures, (_tabulate_overtaking(boards),))


def crossing(board: Scoreboard, budget: int) -> int | None:
    """The step from which on WIQL's running mean is above that of eps-GT, None if that is not within the horizon."""
    wiql, egt = (board.curve(policy, budget, 0.0) for policy in ("wiql", "egt"))
    ahead = (wiql.reward - egt.reward).mean(axis=0) > 0
    ahead[wiql.steps < FIRST_SHOWN_STEP] = False
    behind = np.flatnonzero(~ahead)
    return None if behind[-1] == ahead.size - 1 else int(wiql.steps[behind[-1] + 1])


def _overtaking_claims(board: Scoreboard) -> tuple[Claim, ...]:
    last = board.setup.horizon
    late = "share of the gap from random to the Whittle oracle, in reward per step of the last tenth"
    leads_at_last = tuple(measured(f"B = {b}", board.lead("wiql", "egt", b, 0.0, last)) for b in BUDGETS)
    wiql, egt = (
        tuple(measured(f"B = {budget}", board.reached(policy, CEILING, budget)) for budget in BUDGETS)
        for policy in ("wiql", "egt")
    )
    return (
        Claim(
            "wiql-overtakes-in-time",
            f"Given long enough, WIQL collects more than eps-GT: by step {last:,} it is ahead (two-state).",
            OURS,
            f"lead of wiql over egt at step {last:,}, {SHARE}",
            above(0),
            leads_at_last,
            remark="The paper says only that WIQL tends to the Whittle oracle; that and when it overtakes is ours.",
        ),
        Claim(
            "wiql-reaches-whittle",
            f"Given long enough, WIQL does as well as the Whittle oracle: by step {last:,} it does (two-state).",
            OVERTAKING_PLACE,
            late,
            Range(0.95, float("inf")),
            wiql,
            remark="The paper names no horizon; this one is ours.",
        ),
        Claim(
            "egt-settles-below-whittle",
            "eps-GT settles at less than what the Whittle oracle collects (two-state).",
            OVERTAKING_PLACE,
            late,
            below(1),
            egt,
        ),
    )


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
            curve, floor, ceiling = (board.curve(each, budget, 0.0) for each in (policy, FLOOR, CEILING))
            means = [each.running_mean() for each in (curve, floor, ceiling)]
            kept = curve.steps >= FIRST_SHOWN_STEP
            shares = [
                ratio(means[0][:, g] - means[1][:, g], means[2][:, g] - means[1][:, g]) for g in np.flatnonzero(kept)
            ]
            middle, low, high = (np.array([getattr(s, part) for s in shares]) for part in ("mean", "low", "high"))
            label = f"{policy}, B = {budget}"
            lines.append(Line(label, curve.steps[kept].astype(float), middle, low, high, LOOKS[policy][0], style))
    title = f"eps-GT and WIQL over {board.setup.horizon:,} steps, {family}, noiseless"
    return draw_lines(lines, "step", "share of the random-to-Whittle gap closed so far", title, log_x=True)


OVERTAKING = Experiment(
    name="overtaking",
    title="Where WIQL overtakes",
    place=OVERTAKING_PLACE,
    about="The three families without noise over 10,000 steps, at most two runs of each (quick: two-state, 2,000).",
    list_jobs=overtaking_jobs,
    examine=examine_overtaking,
)
