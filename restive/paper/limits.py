"""Where policies tend to: the reference policy at falling thresholds, WIQL after long, and Whittle's with many agents."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from restive.paper.claims import exact, measured
from restive.paper.curves import (
    BUDGETS,
    CEILING,
    FLOOR,
    HORIZON,
    Curve,
    Scoreboard,
    growth,
    read_curve,
    two_state_setup,
)
from restive.paper.experiment import Measured
from restive.paper.figures import long_setups
from restive.paper.jobs import Job, Results, Size
from restive.plotting import Line, draw_lines
from restive.report.tables import Table
from restive.stats import Band, difference, ratio
from restive.types import Floats

GREEDY, REFERENCE = "greedy-oracle", "threshold-oracle"
# Thresholds of the reference policy, falling: no benefit is above the first, and none below the last.
THRESHOLDS = (1.0, 0.0, -0.5, -1.0)


def reference_jobs(size: Size) -> list[Job]:
    """The reference policy at each threshold, greedy, and the two ends of the gap."""
    setup = two_state_setup(size)
    policies = (*map(_name_reference, THRESHOLDS), REFERENCE, GREEDY, FLOOR, CEILING)
    return [setup.job(policy, budget, 0.0) for budget in BUDGETS for policy in policies]


def _name_reference(threshold: float) -> str:
    return f"{REFERENCE}:gamma={threshold:g}"


def measure_reference(size: Size, results: Results) -> Measured:
    """The reference policy against greedy, and each threshold against the next lower one."""
    board = Scoreboard(two_state_setup(size), results)
    highest, *_, lowest = map(_name_reference, THRESHOLDS)
    equal, poorer = [], []
    for budget in BUDGETS:
        greedy, reference = (board.curve(policy, budget, 0.0).reward for policy in (GREEDY, highest))
        equal.append(exact(f"B = {budget}", np.abs(greedy - reference).max()))
        for high, low in pairwise(THRESHOLDS):
            lead = board.lead(_name_reference(high), _name_reference(low), budget, 0.0)
            poorer.append(measured(f"B = {budget}, gamma = {high:g} against {low:g}", lead))
    parts = {
        "reference-greedy-at-the-largest-threshold": equal,
        "reference-poorer-with-lower-threshold": poorer,
        "reference-random-at-the-lowest-threshold": [
            measured(f"B = {budget}", board.lead(lowest, FLOOR, budget, 0.0)) for budget in BUDGETS
        ],
    }
    rows = [("largest of assumption 4.2", REFERENCE), *((f"{each:g}", _name_reference(each)) for each in THRESHOLDS)]
    cells = tuple(
        (name, *(f"{board.gap_closed(policy, budget, 0.0).mean:.3f}" for budget in BUDGETS)) for name, policy in rows
    )
    heads = ("gamma", *(f"B = {budget}" for budget in BUDGETS))
    note = f"Share of the gap from random to the Whittle oracle closed after {HORIZON} steps."
    return Measured(parts, tables=(Table("The reference policy by its threshold", heads, cells, note),))


DISCOUNTS = (0.9, 0.5, 0.99)  # the first is that of WIQL


def limit_job(size: Size, budget: int, discount: float = DISCOUNTS[0]) -> Job:
    """What WIQL with this discount tends to, on the instances of the long curves."""
    setup = long_setups(size)["two-state"]
    settings = {
        "family": setup.family,
        "sizes": {"instances": setup.instances, "agents": setup.agents, "budget": budget, "seed": setup.seed},
        "discount": discount,
        "horizon": setup.horizon,
        "runs": setup.runs,
        "seed": setup.seed,
    }
    return Job("wiql_limit", f"limit of wiql B={budget} discount={discount:g}", settings, size.pick(2.0, 0.3))


def limit_jobs(size: Size) -> list[Job]:
    """The limits, WIQL itself, and the two ends of the gap."""
    setup = long_setups(size)["two-state"]
    played = [setup.job(policy, budget, 0.0) for budget in BUDGETS for policy in ("wiql", FLOOR, CEILING)]
    return [*(limit_job(size, budget, discount) for budget in BUDGETS for discount in DISCOUNTS), *played]


def measure_limit(size: Size, results: Results) -> Measured:
    """How near the limit comes to Whittle's policy, and WIQL to its limit."""
    board = Scoreboard(long_setups(size)["two-state"], results)
    last = board.setup.horizon
    reached = {
        (budget, discount): _share_reached(board, budget, read_curve(results[limit_job(size, budget, discount)]))
        for budget in BUDGETS
        for discount in DISCOUNTS
    }
    learnt, earlier = (
        {budget: board.reached("wiql", CEILING, budget, step=step) for budget in BUDGETS} for step in (last, last // 10)
    )
    usual = DISCOUNTS[0]
    parts = {
        "wiql-limit-is-whittle": [measured(f"B = {budget}", reached[budget, usual]) for budget in BUDGETS],
        "wiql-reaches-its-limit": [
            measured(f"B = {budget}", difference(learnt[budget], reached[budget, usual])) for budget in BUDGETS
        ],
    }
    nearby = [
        measured(f"B = {budget}, discount {discount:g}", reached[budget, discount])
        for discount in DISCOUNTS[1:]
        for budget in BUDGETS
    ]
    rows = tuple(
        (f"limit, discount {discount:g}", *(f"{reached[budget, discount].mean:.3f}" for budget in BUDGETS))
        for discount in DISCOUNTS
    )
    heads = ("policy", *(f"B = {budget}" for budget in BUDGETS))
    wiql = tuple(
        (f"wiql by step {step:,}", *(f"{each.mean:.3f}" for each in found.values()))
        for step, found in ((last // 10, earlier), (last, learnt))
    )
    note = "Share of the gap from random to the Whittle oracle, in reward per step of the last tenth of the steps."
    table = Table("What WIQL tends to", heads, (*rows, *wiql), note)
    return Measured(parts, {"wiql-limit-is-whittle": nearby}, tables=(table,), values={"last": last})


def _share_reached(board: Scoreboard, budget: int, curve: Curve) -> Band:
    """As `Scoreboard.reached`, for a curve that is not one of the board."""
    last = board.setup.horizon
    late, floor, top = (
        each.between(last - last // 10, last)
        for each in (curve, board.curve(FLOOR, budget, 0.0), board.curve(CEILING, budget, 0.0))
    )
    return ratio(late - floor, top - floor)


NUMBERS = (4, 8, 16, 40)  # the last is ten times the first
SHARES = (0.25, 0.5)


def equal_agents_job(size: Size, agents: int, share: float) -> Job:
    """Average rewards of so many equal agents, for random types with three states."""
    settings = {"agents": agents, "share": share, "states": 3, "types": size.pick(20, 3), "seed": size.seed}
    label = f"equal agents N={agents} share={share:g}"
    return Job("many_equal_agents", label, settings, size.pick(1.0, 0.15) * 7e-5 * agents**3)


def equal_agents_jobs(size: Size) -> list[Job]:
    """Every number of agents at every share."""
    return [equal_agents_job(size, agents, share) for share in SHARES for agents in NUMBERS]


def measure_equal_agents(size: Size, results: Results) -> Measured:
    """How the distance of Whittle's policy to the bound falls with the number of agents."""
    missing = {}
    for share in SHARES:
        for agents in NUMBERS:
            found = results[equal_agents_job(size, agents, share)]
            missing[share, agents] = (found["bound"] - found["whittle"], found["bound"] - found["random"])
    first, *_, last = NUMBERS
    parts = {
        "many-agents-below-the-bound": [
            exact(f"B / N = {share:g}, N = {agents}", below.min()) for (share, agents), (below, _) in missing.items()
        ],
        "many-agents-whittle-tends-to-the-bound": [
            measured(f"B / N = {share:g}, N = {last}", ratio(*missing[share, last])) for share in SHARES
        ],
        "many-agents-rate": [
            measured(
                f"B / N = {share:g}, N = {first} to {last}", growth(missing[share, last][0], missing[share, first][0])
            )
            for share in SHARES
        ],
    }
    rows = tuple(
        (f"{share:g}", *(f"{ratio(*missing[share, agents]).mean:.4f}" for agents in NUMBERS)) for share in SHARES
    )
    heads = ("B / N", *(f"N = {agents}" for agents in NUMBERS))
    note = "Bound less Whittle's policy, in average reward, as a share of bound less random choice; mean over types. Exact."
    table = Table("What many equal agents miss", heads, rows, note)
    return Measured(parts, figures={"many-agents": _draw_missing(missing)}, tables=(table,))


def _draw_missing(missing: Mapping[tuple[float, int], tuple[Floats, Floats]]) -> Figure:
    lines = []
    for share in SHARES:
        bands = [ratio(*missing[share, agents]) for agents in NUMBERS]
        lines.append(Line.of(f"B / N = {share:g}", np.array(NUMBERS), Band(*np.array(bands).T)))
    title = "Whittle's policy with N equal agents"
    return draw_lines(lines, "N", "share of the random-to-bound gap missed", title, log_x=True)
