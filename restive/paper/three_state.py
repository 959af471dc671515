"""The paper's second counterexample: with three states greedy is not optimal, although all agents are alike.

Two agents in states 1 and 2, where acting adds 1/4 in the next step, so that greedy may act on either. All numbers are
exact. As in the paper the reward of the start counts, so that a horizon of T is T rewards and T − 1 moves.
"""

from fractions import Fraction

from matplotlib.figure import Figure

from restive.files import Columns
from restive.paper.claims import OURS, Claim, Range, above, exact
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.panels import Line, draw_lines
from restive.paper.tasks.counterexamples import THREE_STATES, join
from restive.paper.work import Work
from restive.report.tables import Table

PLACE = "appendix D"
AT_START = 3  # rewards of the starting states 1 and 2
HORIZON, LONGEST, SHIFT = 3, 20, 1000
FIRST_ON = ("state 1", "state 2")  # the agents are in these states
# The right-hand sides as printed, each a chance and a value of what follows.
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
PRINTED = tuple(sum((chance * value for chance, value in terms), start=Fraction(AT_START)) for terms in PRINTED_TERMS)
WAYS = {"ties_to_one": "ties to state 1", "ties_at_random": "ties at random", "ties_to_two": "ties to state 2"}

ARRIVALS = Work("arrivals", "counterexample 2 benefits", {"family": THREE_STATES}, 0.01)
FIRST = Work("first_choices", "counterexample 2 first choice", {"family": THREE_STATES, "moves": HORIZON - 1}, 0.01)
HORIZONS = Work("three_states", "counterexample 2 horizons", {"moves": LONGEST - 1, "shift": SHIFT}, 0.2)


def plan(size: Size) -> list[Work]:
    """Three small works, the same at any size."""
    return [ARRIVALS, FIRST, HORIZONS]


def examine(size: Size, results: Results) -> Findings:
    """The paper's sums, and longer horizons."""
    worth = [AT_START + value for value in join(results[FIRST], "worth")]
    horizons = results[HORIZONS]
    claims = (
        _equal_benefits(results[ARRIVALS]),
        _not_optimal(worth),
        _printed_values(worth),
        _without_ties(horizons),
        _even_with_the_best_ties(horizons),
    )
    return Findings(claims, {"counterexample-2": draw(horizons)}, (_first_actions(worth), _losses(horizons)))


def _equal_benefits(arrivals: Columns) -> Claim:
    gains = [act - wait for act, wait in zip(join(arrivals, "act"), join(arrivals, "wait"), strict=True)]
    of_state = dict(zip(arrivals["state"].tolist(), gains, strict=True))
    return Claim(
        name="three-state-equal-benefits",
        sentence="Acting adds 1/4 in the next step in state 1 and in state 2.",
        place=PLACE,
        quantity="exact benefit less 1/4",
        agreement=Range(0.0, 0.0),
        parts=tuple(exact(f"state {state}", float(of_state[state] - Fraction(1, 4))) for state in (1, 2)),
    )


def _not_optimal(worth: list[Fraction]) -> Claim:
    return Claim(
        name="three-state-greedy-not-optimal",
        sentence="With three states greedy is not optimal: it may act on state 1, where acting on state 2 is better.",
        place="appendix D; remark in section 3",
        quantity="value of acting on state 2 first less that of acting on state 1 first, exact",
        agreement=above(0),
        parts=(exact("from states 1 and 2, T = 3", float(worth[1] - worth[0])),),
        remark=f"{worth[1]} and {worth[0]}, with the reward of the start. What follows is the best in both cases.",
    )


def _printed_values(worth: list[Fraction]) -> Claim:
    return Claim(
        name="three-state-printed-values",
        sentence="Acting on state 1 first and acting on state 2 first are worth the two sums that are printed.",
        place=PLACE,
        quantity="printed sum less exact value",
        agreement=Range(0.0, 0.0),
        parts=tuple(
            exact(f"acting on {state} first: {value}, printed {printed}", float(printed - value))
            for state, printed, value in zip(FIRST_ON, PRINTED, worth, strict=True)
        ),
        remark=(
            "In the first sum all of 23/28 goes with states (1, 0). Half of it belongs to (2, 0), as acting leads from "
            "state 1 to state 2 half of the time. The printed sum is too large by 23/784 and still below the second: "
            "the conclusion stands."
        ),
    )


def _without_ties(horizons: Columns) -> Claim:
    loss = horizons["shifted_best"] - horizons["shifted_greedy"]
    return Claim(
        name="three-state-greedy-not-optimal-without-ties",
        sentence="Ties are not needed: greedy also loses where acting adds a little more in state 1 than in state 2.",
        place=OURS,
        quantity="best value less that of greedy, exact",
        agreement=above(0),
        parts=tuple(
            exact(f"acting leads from 1 to 2 with a chance 1/{SHIFT} larger, T = {horizon}", loss[horizon - 2])
            for horizon in (HORIZON, LONGEST)
        ),
    )


def _even_with_the_best_ties(horizons: Columns) -> Claim:
    loss = horizons["best"] - horizons["ties_to_two"]
    return Claim(
        name="three-state-greedy-loses-with-any-ties",
        sentence="With more than three steps greedy is not optimal however its ties are broken.",
        place=OURS,
        quantity="best value less that of greedy with ties to state 2, exact",
        agreement=above(0),
        parts=tuple(exact(f"T = {horizon}", loss[horizon - 2]) for horizon in (4, 5, 10, LONGEST)),
        remark=(
            "Of all ways to break its ties, to state 2 is the best and to state 1 the worst for greedy. With T = 3 the "
            "former is optimal. With more, the best policy would rather act on an agent in state 0, where that changes "
            "nothing, than on one in state 1, which would sooner go to state 2 and from there to 0, for good."
        ),
    )


def _first_actions(worth: list[Fraction]) -> Table:
    rows = tuple(
        (state, f"{printed} = {float(printed):.4f}", f"{value} = {float(value):.4f}", f"{value - AT_START}")
        for state, printed, value in zip(FIRST_ON, PRINTED, worth, strict=True)
    )
    return Table(
        "From states 1 and 2 with T = 3",
        ("acting first on", "as printed", "exact", "exact, without the reward of the start"),
        rows,
    )


def _losses(horizons: Columns) -> Table:
    rows = []
    for row in range(HORIZON - 2, LONGEST - 1):
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


def draw(horizons: Columns) -> Figure:
    """What greedy loses, by horizon and by how it breaks ties."""
    steps, lines = horizons["moves"] + 1, []
    for way, name in WAYS.items():
        loss = horizons["best"] - horizons[way]
        lines.append(Line(name, steps, loss, loss, loss))
    return draw_lines(lines, "T", "best value less that of greedy", "What greedy loses with three states")


EXPERIMENT = Experiment(
    name="counterexample-2",
    title="Greedy and three states",
    place=PLACE,
    about=(
        "Two agents that are alike, in states 1 and 2 of three, one action a step. All values are computed in "
        "fractions by dynamic programming over the joint states; the reward of the start counts, as in the paper. "
        "Beyond the paper: horizons up to 20, other ways to break ties, and agents whose benefits are not tied."
    ),
    plan=plan,
    examine=examine,
)
