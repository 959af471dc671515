"""The paper's first counterexample: with agents that differ, greedy is not optimal.

Four two-state agents, two of each type, one action a step, 20 steps, all in state 0 at first. What greedy, alternating
and the best policy expect is exact; the paper's own simulation of 300 runs is done again, and every policy is played.
"""

from fractions import Fraction
from math import sqrt

import numpy as np
from matplotlib.figure import Figure

from restive.files import Columns
from restive.paper.claims import Claim, Part, Range, above, exact, measured
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.panels import draw_dots
from restive.paper.standings import with_reach
from restive.paper.tasks.counterexamples import UNLIKE_AGENTS, join
from restive.paper.work import Work
from restive.policies import POLICIES
from restive.report.tables import Table
from restive.stats import Band, band
from restive.types import Floats

PLACE = "appendix C"
MOVES, PAPER_RUNS = 20, 300
OBSERVED = {"greedy": 15.02, "alternating": 16.78}  # in the paper, the mean of 300 runs
PLAYED = {"greedy": "greedy-oracle", "alternating": "alternating"}
EVERYONE = ("alternating", *POLICIES)
SHOWN_MOVES = (1, 2, 3, 5, 10, 20)
# What the paper prints, by type: phi(0, 0), phi(0, 1), phi(1, 0), phi(1, 1), and I(0), I(1).
PRINTED_ARRIVALS = {
    1: (Fraction(0), Fraction(2, 3), Fraction(1, 3), Fraction(1, 2)),
    2: (Fraction(0), Fraction(3, 4), Fraction(0), Fraction(3, 4)),
}
PRINTED_BENEFITS = {1: (Fraction(1, 6), Fraction(2, 3)), 2: (Fraction(3, 4), Fraction(3, 4))}

ARRIVALS = Work("arrivals", "counterexample 1 benefits", {"family": UNLIKE_AGENTS}, 0.01)
VALUES = Work("unlike_agents", "counterexample 1 exact values", {"moves": MOVES}, 0.3)
FIRST = Work("first_choices", "counterexample 1 first choice", {"family": UNLIKE_AGENTS, "moves": MOVES}, 0.3)
RULE = Work("best_choices", "counterexample 1 best policy", {"moves": MOVES}, 0.1)


def plan(size: Size) -> list[Work]:
    """The exact numbers, and every policy played."""
    return [ARRIVALS, VALUES, FIRST, RULE, *(played(policy, size) for policy in EVERYONE)]


def played(policy: str, size: Size) -> Work:
    """The work of playing a policy; the paper's number of runs comes first among them."""
    settings = {
        "family": UNLIKE_AGENTS,
        "policy": policy,
        "moves": MOVES,
        "runs": size.pick(3000, PAPER_RUNS),
        "seed": size.seed,
    }
    return Work("collect", f"counterexample 1 {policy}", settings, size.pick(0.5, 0.1))


def examine(size: Size, results: Results) -> Findings:
    """Exact numbers against the paper's, and everyone against the best."""
    values = results[VALUES]
    rewards = {policy: results[played(policy, size)]["reward"] for policy in EVERYONE}
    claims = (
        _not_optimal(values),
        _alternating_ahead(values, rewards),
        _observed(values),
        _printed_benefits(results[ARRIVALS]),
        _printed_two_steps(values),
    )
    bands = {policy: band(reward) for policy, reward in rewards.items()}
    tables = (
        _simulated(values, rewards),
        _by_moves(values),
        _best_rule(results[RULE], results[FIRST]),
        _standings(values, rewards),
    )
    return Findings(claims, {"counterexample-1": draw(values, bands)}, tables)


def last(values: Columns, policy: str) -> Fraction:
    """What greedy, alternating or the best policy expects over all 20 steps."""
    return join(values, policy)[-1]


def _not_optimal(values: Columns) -> Claim:
    best = last(values, "best")
    return Claim(
        name="heterogeneous-greedy-not-optimal",
        sentence="Greedy is not optimal when agents differ.",
        place="appendix C; remark in section 3",
        quantity="best expectation over 20 steps less that of greedy, exact",
        agreement=above(0),
        parts=(exact("four agents of two types, B = 1, T = 20", float(best - last(values, "greedy"))),),
        remark=(
            "Alternating is not optimal either: until the last step the best policy acts on an agent of type 1 in "
            f"state 0 if there is one, and expects {float(best - last(values, 'alternating')):.4f} more."
        ),
    )


def _alternating_ahead(values: Columns, rewards: dict[str, Floats]) -> Claim:
    lead = (rewards[PLAYED["alternating"]] - rewards[PLAYED["greedy"]])[:PAPER_RUNS]
    return Claim(
        name="heterogeneous-alternating-above-greedy",
        sentence="Acting on the two agents of type 1 in turn collects more than greedy, which acts on type 2 for ever.",
        place=PLACE,
        quantity="reward of alternating less that of greedy over 20 steps",
        agreement=above(0),
        parts=(
            exact("exact expectation", float(last(values, "alternating") - last(values, "greedy"))),
            measured(f"{PAPER_RUNS} runs of ours", band(lead)),
        ),
    )


def _observed(values: Columns) -> Claim:
    return Claim(
        name="heterogeneous-observed-rewards",
        sentence="In 300 runs of 20 steps greedy collected 15.02 and alternating 16.78 on average.",
        place=PLACE,
        quantity=(
            "the paper's mean less the exact expectation, as a share of what 300 runs and two printed digits allow: "
            "1.96 standard errors and 0.005"
        ),
        agreement=Range(-1.0, 1.0),
        parts=tuple(_deviation(values, policy, observed) for policy, observed in OBSERVED.items()),
        remark="The paper does not say where the agents start; all in state 0 is what its numbers fit.",
    )


def _deviation(values: Columns, policy: str, observed: float) -> Part:
    expected, error = float(last(values, policy)), sqrt(values[f"{policy}_variance"][-1] / PAPER_RUNS)
    return exact(f"{policy}: {observed} seen, {expected:.4f} expected", (observed - expected) / (1.96 * error + 0.005))


def _printed_benefits(arrivals: Columns) -> Claim:
    parts = []
    for kind, agents in ((1, (0, 1)), (2, (2, 3))):
        rows = [row for row, agent in enumerate(arrivals["agent"]) if agent in agents]
        wait, act = ([join(arrivals, action)[row] for row in rows] for action in ("wait", "act"))
        found = [value for pair in zip(wait, act, strict=True) for value in pair]
        printed = PRINTED_ARRIVALS[kind] * len(agents)
        parts.append(exact(f"phi of type {kind}", float(max(abs(a - b) for a, b in zip(found, printed, strict=True)))))
        for state, benefit in enumerate(PRINTED_BENEFITS[kind]):
            gain = act[state] - wait[state]
            parts.append(exact(f"I({state}) of type {kind}: {gain}, printed {benefit}", float(abs(benefit - gain))))
    return Claim(
        name="heterogeneous-printed-benefits",
        sentence="The expected rewards on arrival and the benefits of both types are as printed.",
        place=PLACE,
        quantity="largest difference between printed and exact",
        agreement=Range(0.0, 0.0),
        parts=tuple(parts),
        remark=(
            "The two benefits of type 1 have changed places in print: its own phi gives I(0) = 2/3 and I(1) = 1/6. "
            "Both are below the 3/4 of type 2, so greedy and the conclusion stay the same."
        ),
    )


def _printed_two_steps(values: Columns) -> Claim:
    first = join(values, "alternating_first")
    two_steps = {"steps 1 and 2": first[1], f"steps {MOVES - 1} and {MOVES}": first[-1] - first[-3]}
    return Claim(
        name="heterogeneous-printed-two-steps",
        sentence="An agent of type 1 that is acted on every other step expects 8/9 over two steps.",
        place=PLACE,
        quantity="8/9 less the exact expectation over two steps",
        agreement=Range(0.0, 0.0),
        parts=tuple(
            exact(f"{steps}: {float(value):.4f}", float(Fraction(8, 9) - value)) for steps, value in two_steps.items()
        ),
        remark=(
            "8/9 is right from state 0, where the agent is at first. Later it is acted on in state 1 now and then, "
            "where acting leads to state 1 less often, and two steps tend to 16/19 = 0.8421: as there are two such "
            "agents, that is still more than the 3/4 a step of greedy."
        ),
    )


def _simulated(values: Columns, rewards: dict[str, Floats]) -> Table:
    rows = []
    for policy, observed in OBSERVED.items():
        ours, value = band(rewards[PLAYED[policy]][:PAPER_RUNS]), last(values, policy)
        deviation = sqrt(values[f"{policy}_variance"][-1])
        rows.append((policy, f"{observed}", with_reach(ours, 2), f"{float(value):.4f}", f"{deviation:.3f}", f"{value}"))
    value = last(values, "best")
    rows.append(("the best", "", "", f"{float(value):.4f}", "", f"{value}"))
    return Table(
        "Reward over 20 steps",
        ("policy", "paper, 300 runs", "300 runs of ours", "exact expectation", "deviation of a run", "as a fraction"),
        tuple(rows),
        "± is half of the 95% interval over runs.",
    )


def _by_moves(values: Columns) -> Table:
    kept = [row for row, moves in enumerate(values["moves"]) if moves in SHOWN_MOVES]
    columns = [join(values, policy) for policy in ("greedy", "alternating", "best")]
    rows = tuple((str(values["moves"][row]), *(f"{float(each[row]):.4f}" for each in columns)) for row in kept)
    return Table("Exact expectation over fewer steps", ("steps", "greedy", "alternating", "the best"), rows)


def _best_rule(rule: Columns, first: Columns) -> Table:
    """Steps in which the best does the same share a row."""
    kinds = (1 + rule["agent"] // 2).reshape(-1, 3)
    left = rule["left"].reshape(-1, 3)[:, 0]
    rows: list[tuple[int, int, tuple[str, ...]]] = []
    for steps, kind in zip(left, kinds, strict=True):
        cells = tuple(f"type {each}" for each in kind)
        begun = rows.pop()[0] if rows and rows[-1][2] == cells else int(steps)
        rows.append((begun, int(steps), cells))
    worth = join(first, "worth")
    return Table(
        "Whom the best policy acts on, by the states of the two agents of type 1",
        ("steps left", "both in 0", "one in 0", "both in 1"),
        tuple((str(low) if low == high else f"{low} to {high}", *cells) for low, high, cells in rows),
        "Of type 1 it is an agent in state 0. Acting on type 2 in the first step and in the best way after it expects "
        f"{float(worth[2]):.4f}, on type 1 {float(worth[0]):.4f}.",
    )


def _standings(values: Columns, rewards: dict[str, Floats]) -> Table:
    best = float(last(values, "best"))
    ranked = sorted(((policy, band(reward)) for policy, reward in rewards.items()), key=lambda row: -float(row[1].mean))
    others = {policy: reward for policy, reward in rewards.items() if policy != "random"}
    still = [policy for policy, reward in others.items() if np.array_equal(reward, rewards["random"])]
    return Table(
        "Every policy over 20 steps",
        ("policy", "reward", "share of the best"),
        tuple((policy, with_reach(each, 2), f"{float(each.mean) / best:.3f}") for policy, each in ranked),
        f"The best there is expects {best:.4f}. ± is half of the 95% interval over runs. Run by run the same as "
        f"random, in so few steps: {', '.join(still) or 'none'}.",
    )


def draw(values: Columns, bands: dict[str, Band]) -> Figure:
    """A dot with its interval for every policy, and where the exact expectations are."""
    ranked = sorted(bands.items(), key=lambda item: -float(item[1].mean))
    rows = [(policy, float(each.mean), float(each.low), float(each.high)) for policy, each in ranked]
    reference = {f"{policy}, exact": float(last(values, policy)) for policy in ("greedy", "alternating", "best")}
    return draw_dots(rows, "reward over 20 steps, mean and 95% interval over runs", reference)


EXPERIMENT = Experiment(
    name="counterexample-1",
    title="Greedy and agents that differ",
    place=PLACE,
    about=(
        "Two agents of each of two types, one action a step, 20 steps with rewards on arrival. The paper does not say "
        "where the agents start: here all do in state 0. What greedy, alternating and the best policy expect is "
        "computed in fractions by dynamic programming; every policy is played as well."
    ),
    plan=plan,
    examine=examine,
)
