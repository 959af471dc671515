"""The paper's two counterexamples: greedy is not optimal with agents that differ, nor with three states.

Appendix C: four two-state agents, two of each type, one action a step, 20 steps, all in state 0 at first. The
expectations of greedy, alternating and the best policy are exact; the paper's own simulation of 300 runs is repeated,
and every policy is simulated. Appendix D: two equal agents with three states, in exact fractions.
"""

from fractions import Fraction
from math import sqrt

import numpy as np
from matplotlib.figure import Figure

from restive.files import Columns
from restive.paper.claims import Part, exact, measured
from restive.paper.curves import with_reach
from restive.paper.experiment import Measured
from restive.paper.jobs import Job, Results, Size
from restive.paper.tasks.counterexamples import THREE_STATES, UNLIKE_AGENTS, join
from restive.plotting import BLUE, Dot, Line, draw_dots, draw_lines
from restive.policies import POLICIES
from restive.report.tables import Table
from restive.stats import Band, band
from restive.types import Floats

MOVES, PAPER_RUNS = 20, 300
OBSERVED = {"greedy": 15.02, "alternating": 16.78}  # in the paper, the mean of 300 runs
PLAYED = {"greedy": "greedy-oracle", "alternating": "alternating"}
SIMULATED = ("alternating", *POLICIES)
SHOWN_MOVES = (1, 2, 3, 5, 10, 20)
# What the paper prints, by type: phi(0, 0), phi(0, 1), phi(1, 0), phi(1, 1), and I(0), I(1).
PRINTED_ARRIVALS = {
    1: (Fraction(0), Fraction(2, 3), Fraction(1, 3), Fraction(1, 2)),
    2: (Fraction(0), Fraction(3, 4), Fraction(0), Fraction(3, 4)),
}
PRINTED_BENEFITS = {1: (Fraction(1, 6), Fraction(2, 3)), 2: (Fraction(3, 4), Fraction(3, 4))}

TWO_STATE_ARRIVALS = Job("arrivals", "counterexample 1 benefits", {"family": UNLIKE_AGENTS}, 0.01)
VALUES = Job("unlike_agents", "counterexample 1 exact values", {"moves": MOVES}, 0.3)
TWO_STATE_FIRST = Job("first_choices", "counterexample 1 first choice", {"family": UNLIKE_AGENTS, "moves": MOVES}, 0.3)
RULE = Job("best_choices", "counterexample 1 best policy", {"moves": MOVES}, 0.1)


def heterogeneous_jobs(size: Size) -> list[Job]:
    """The exact numbers, and every policy simulated."""
    return [TWO_STATE_ARRIVALS, VALUES, TWO_STATE_FIRST, RULE, *(simulated(policy, size) for policy in SIMULATED)]


def simulated(policy: str, size: Size) -> Job:
    """The job of simulating a policy; its first runs are as many as the paper's."""
    settings = {
        "family": UNLIKE_AGENTS,
        "policy": policy,
        "moves": MOVES,
        "runs": size.pick(3000, PAPER_RUNS),
        "seed": size.seed,
    }
    return Job("collect", f"counterexample 1 {policy}", settings, size.pick(0.5, 0.1))


def measure_heterogeneous(size: Size, results: Results) -> Measured:
    """Exact numbers against the paper's, and all policies against the best."""
    values = results[VALUES]
    rewards = {policy: results[simulated(policy, size)]["reward"] for policy in SIMULATED}
    greedy, alternating, best = (last(values, policy) for policy in ("greedy", "alternating", "best"))
    lead = (rewards[PLAYED["alternating"]] - rewards[PLAYED["greedy"]])[:PAPER_RUNS]
    first = join(values, "alternating_first")
    two_steps = {"steps 1 and 2": first[1], f"steps {MOVES - 1} and {MOVES}": first[-1] - first[-3]}
    parts = {
        "heterogeneous-greedy-not-optimal": [exact("four agents of two types, B = 1, T = 20", float(best - greedy))],
        "heterogeneous-alternating-above-greedy": [
            exact("exact expectation", float(alternating - greedy)),
            measured(f"{PAPER_RUNS} runs of ours", band(lead)),
        ],
        "heterogeneous-observed-rewards": [_deviation(values, *each) for each in OBSERVED.items()],
        "heterogeneous-printed-benefits": _compare_benefits(results[TWO_STATE_ARRIVALS]),
        "heterogeneous-printed-two-steps": [
            exact(f"{steps}: {float(value):.4f}", float(Fraction(8, 9) - value)) for steps, value in two_steps.items()
        ],
    }
    bands = {policy: band(reward) for policy, reward in rewards.items()}
    tables = (
        _simulated(values, rewards),
        _by_moves(values),
        _best_rule(results[RULE], results[TWO_STATE_FIRST]),
        _standings(values, rewards),
    )
    figures = {"counterexample-1": draw_heterogeneous(values, bands)}
    return Measured(parts, figures=figures, tables=tables, values={"more": float(best - alternating)})


def last(values: Columns, policy: str) -> Fraction:
    """What greedy, alternating or the best policy expects over all 20 steps."""
    return join(values, policy)[-1]


def _deviation(values: Columns, policy: str, observed: float) -> Part:
    expected, error = float(last(values, policy)), sqrt(values[f"{policy}_variance"][-1] / PAPER_RUNS)
    return exact(f"{policy}: {observed} seen, {expected:.4f} expected", (observed - expected) / (1.96 * error + 0.005))


def _compare_benefits(arrivals: Columns) -> list[Part]:
    """How far the printed arrivals and benefits of each type are from the exact ones."""
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
    return parts


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


def draw_heterogeneous(values: Columns, bands: dict[str, Band]) -> Figure:
    """A dot with its interval for every policy, and where the exact expectations are."""
    ranked = sorted(bands.items(), key=lambda item: -float(item[1].mean))
    rows = {policy: [Dot("", float(each.mean), float(each.low), float(each.high), BLUE)] for policy, each in ranked}
    reference = {f"{policy}, exact": float(last(values, policy)) for policy in ("greedy", "alternating", "best")}
    return draw_dots(rows, "reward over 20 steps, mean and 95% interval over runs", reference)


AT_START = 3  # rewards of the starting states 1 and 2
HORIZON, MAX_HORIZON, SHIFT = 3, 20, 1000
FIRST_ON = ("state 1", "state 2")  # the agents are in these states
# The right-hand sides as printed, each a probability and a value of what follows.
PRINTED_TERMS = (
    (
        (Fraction(5, 56), Fraction(47 + 3 * 28, 28)),
        (Fraction(5, 56), Fraction(19, 4)),
        (Fraction(23, 28), Fraction(5, 2)),
    ),
    (
        (Fraction(1, 28), Fraction(17, 28) + 4),
        (Fraction(1, 7), 3 + Fraction(47, 28)),
        (Fraction(15, 28), Fraction(5, 2)),
        (Fraction(5, 28), Fraction(3, 7) + 2),
        (Fraction(3, 28), Fraction(11, 4) + 2),
    ),
)
PRINTED_SUMS = tuple(
    sum((probability * value for probability, value in terms), start=Fraction(AT_START)) for terms in PRINTED_TERMS
)
WAYS = {"ties_to_one": "ties to state 1", "ties_at_random": "ties at random", "ties_to_two": "ties to state 2"}

THREE_STATE_ARRIVALS = Job("arrivals", "counterexample 2 benefits", {"family": THREE_STATES}, 0.01)
THREE_STATE_FIRST = Job(
    "first_choices", "counterexample 2 first choice", {"family": THREE_STATES, "moves": HORIZON - 1}, 0.01
)
HORIZONS = Job("three_states", "counterexample 2 horizons", {"moves": MAX_HORIZON - 1, "shift": SHIFT}, 0.2)


def three_state_jobs(size: Size) -> list[Job]:
    """Three small jobs, the same at any size."""
    return [THREE_STATE_ARRIVALS, THREE_STATE_FIRST, HORIZONS]


def measure_three_state(size: Size, results: Results) -> Measured:
    """The paper's sums, and longer horizons."""
    worth = [AT_START + value for value in join(results[THREE_STATE_FIRST], "worth")]
    horizons = results[HORIZONS]
    arrivals = results[THREE_STATE_ARRIVALS]
    gains = [act - wait for act, wait in zip(join(arrivals, "act"), join(arrivals, "wait"), strict=True)]
    of_state = dict(zip(arrivals["state"].tolist(), gains, strict=True))
    shifted, tied = horizons["shifted_best"] - horizons["shifted_greedy"], horizons["best"] - horizons["ties_to_two"]
    parts = {
        "three-state-equal-benefits": [
            exact(f"state {state}", float(of_state[state] - Fraction(1, 4))) for state in (1, 2)
        ],
        "three-state-greedy-not-optimal": [exact("from states 1 and 2, T = 3", float(worth[1] - worth[0]))],
        "three-state-printed-values": [
            exact(f"acting on {state} first: {value}, printed {printed}", float(printed - value))
            for state, printed, value in zip(FIRST_ON, PRINTED_SUMS, worth, strict=True)
        ],
        "three-state-greedy-not-optimal-without-ties": [
            exact(f"acting leads from 1 to 2 with a probability 1/{SHIFT} larger, T = {horizon}", shifted[horizon - 2])
            for horizon in (HORIZON, MAX_HORIZON)
        ],
        "three-state-greedy-loses-with-any-ties": [
            exact(f"T = {horizon}", tied[horizon - 2]) for horizon in (4, 5, 10, MAX_HORIZON)
        ],
    }
    figures, tables = {"counterexample-2": draw_three_state(horizons)}, (_first_actions(worth), _losses(horizons))
    return Measured(parts, figures=figures, tables=tables, values={"on_one": worth[0], "on_two": worth[1]})


def _first_actions(worth: list[Fraction]) -> Table:
    rows = tuple(
        (state, f"{printed} = {float(printed):.4f}", f"{value} = {float(value):.4f}", f"{value - AT_START}")
        for state, printed, value in zip(FIRST_ON, PRINTED_SUMS, worth, strict=True)
    )
    return Table(
        "From states 1 and 2 with T = 3",
        ("acting first on", "as printed", "exact", "exact, without the reward of the start"),
        rows,
    )


def _losses(horizons: Columns) -> Table:
    rows = []
    for row in range(HORIZON - 2, MAX_HORIZON - 1):
        best = AT_START + float(horizons["best"][row])
        losses = [float(horizons["best"][row] - horizons[way][row]) for way in WAYS]
        rows.append((str(row + 2), f"{best:.4f}", *(f"{loss:.4f} ({loss / best:.1%})" for loss in losses)))
    return Table(
        "What greedy loses from states 1 and 2",
        ("T", "best", *(f"greedy, {way}" for way in WAYS.values())),
        tuple(rows),
        "The best value, with the reward of the start, and how far greedy is below it. To state 1 is the worst and to "
        "state 2 the best of all ways to break ties.",
    )


def draw_three_state(horizons: Columns) -> Figure:
    """What greedy loses, by horizon and by how it breaks ties."""
    steps, lines = horizons["moves"] + 1, []
    for way, name in WAYS.items():
        loss = horizons["best"] - horizons[way]
        lines.append(Line(name, steps, loss, loss, loss))
    return draw_lines(lines, "T", "best value less that of greedy", "What greedy loses with three states")
