"""Tables of the comparison: ranks, the gap closed in each field, what controls are behind by, what steps cost."""

import math

from restive.benchmark.cost import Costs
from restive.benchmark.fields import CONTROLS, HERO
from restive.benchmark.scores import BOUND, EARLY, LATE, STEPS, Match, Scores
from restive.paper.claims import Part
from restive.paper.curves import CEILING, FLOOR
from restive.paper.summary import MINUS
from restive.report.tables import Table

LEVEL = "*"
ABOUT_GAPS = (
    f"Shares of the gap from {FLOOR} to {CEILING} that are closed in running mean reward, with 95% intervals over "
    f"instances. What the {BOUND} has above 1 is the most that could be left above the oracle; its interval, like all "
    "others, has the luck of the oracle in it."
)


def tabulate_ranks(scores: Scores, step: int) -> Table:
    """Fields down, policies across; the last row has the means over all fields."""
    places = {name: match.places(step) for name, match in scores.matches.items()}
    rows = [
        (name, *(f"{placed[policy].rank}{LEVEL * placed[policy].level}" for policy in scores.policies))
        for name, placed in places.items()
    ]
    means = [sum(placed[policy].rank for placed in places.values()) / len(places) for policy in scores.policies]
    return Table(
        f"Ranks by step {step}",
        ("field", *scores.policies),
        (*rows, ("mean rank", *(f"{mean:.2f}" for mean in means))),
        f"A rank is 1 plus the number of policies that are told to be better, by the 95% interval of the difference "
        f"instance by instance; so ranks can be shared. {LEVEL} marks the best and those not told apart from it.",
    )


def tabulate_gaps(match: Match) -> Table:
    """The gap closed by every policy at four steps, with the fluid bound on the same scale."""
    shown = [*match.policies, *CONTROLS, CEILING, BOUND]
    rows = tuple((policy, *(_cell(match, policy, step) for step in STEPS)) for policy in shown)
    return Table(f"Gap closed in {match.field.name}", ("policy", *(f"t = {step}" for step in STEPS)), rows)


def _cell(match: Match, policy: str, step: int) -> str:
    return {FLOOR: "0", CEILING: "1"}.get(policy) or show(match.gap_closed(policy, step))


def show(part: Part) -> str:
    """A share with its interval, to two decimals.

    >>> show(Part("", 0.761, -0.002, 0.9)), show(Part("", math.nan, math.nan, math.nan))
    ('0.76 [0.00, 0.90]', '–')
    """
    if math.isnan(part.value):
        return "–"  # there is no gap
    mean, low, high = (two(each) for each in part[1:])
    return mean if math.isnan(part.low) else f"{mean} [{low}, {high}]"


def two(number: float) -> str:
    """To two decimals, and no zero below zero.

    >>> two(-0.004), two(-0.126)
    ('0.00', '−0.13')
    """
    return f"{round(number, 2) + 0.0:.2f}".replace("-", MINUS)


def tabulate_controls(scores: Scores) -> list[Table]:
    """How far the whole policy is above each of its controls."""
    if not CONTROLS:
        return []
    return [
        Table(
            f"What the parts of {HERO} are worth by step {step}",
            ("field", *CONTROLS),
            tuple(
                (name, *(show(match.lead(HERO, control, step)) for control in CONTROLS))
                for name, match in scores.matches.items()
            ),
            f"Lead of {HERO} over itself with other settings, as a share of the gap. Controls are not ranked.",
        )
        for step in (EARLY, LATE)
    ]


def tabulate_costs(costs: Costs, machine: str) -> Table:
    """Nanoseconds and their ratio to eps-GT."""
    sizes = list(costs.nanoseconds)
    rows = tuple(
        (policy, *(cell for states in sizes for cell in _cost_cells(costs, states, policy)))
        for policy in costs.nanoseconds[sizes[0]]
    )
    return Table(
        "Cost of a step",
        ("policy", *(head for states in sizes for head in (f"S = {states}, ns", f"S = {states}, × egt"))),
        rows,
        "Nanoseconds for each agent and step of a simulation on one thread, best of several turns; random shows what "
        f"the world's own move takes of that. {machine}.",
    )


def _cost_cells(costs: Costs, states: int, policy: str) -> tuple[str, str]:
    return f"{costs.nanoseconds[states][policy]:.0f}", f"{costs.ratio(states, policy):.1f}"
