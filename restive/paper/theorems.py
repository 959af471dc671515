"""Theorem 3.1 and lemma 4.3, checked exactly on many small instances.

The theorem: greedy is optimal for two-state agents that are all alike, whatever their number, budget and horizon. The
lemma: where some policy acts at no cost, every joint state has at least B good agents. A case of the lemma is an
instance with a budget, a threshold and a start; it assumes that every transition is possible, and sparse instances show
what that assumption is needed for. How both are computed is in `restive.paper.tasks`.
"""

import numpy as np

from restive.files import Columns
from restive.paper.claims import OURS, Claim, Experiment, Findings, Part, Range, above, exact
from restive.paper.jobs import Job, Results, Size
from restive.paper.tasks.worst_case import CASES
from restive.report.tables import Table

THEOREM_PLACE = "theorem 3.1, section 3 and its proof"
ROUNDING, RATIO_ROUNDING = 1e-9, 1e-6  # of values, and of their ratios, see `restive.solvers.homogeneous_dp.FLOOR`
# Agents, budget, steps, and how many instances of each case.
CHECKED = (
    (2, 1, 25, 10_000),
    (3, 1, 25, 10_000),
    (4, 2, 25, 10_000),
    (6, 2, 25, 10_000),
    (6, 5, 25, 5_000),
    (12, 4, 20, 2_000),
    (24, 8, 15, 500),
    (36, 12, 10, 200),
    (60, 20, 5, 50),
)
OTHER_SEED = 1_000_003  # so that no two rows of the table have the same instances
SEARCHED = ((2, 1, 3), (2, 1, 30), (3, 1, 10), (4, 2, 10), (6, 2, 10), (6, 4, 10))
NAMES = {"mirror": "I(1) > I(0)"}

Setting = tuple[int, int, int]


def check_job(size: Size, agents: int, budget: int, horizon: int, per_case: int) -> Job:
    """Random instances of every case."""
    settings = {
        "agents": agents,
        "budget": budget,
        "horizon": horizon,
        "per_case": size.pick(per_case, max(3, per_case // 10)),
        "seed": size.seed + OTHER_SEED * CHECKED.index((agents, budget, horizon, per_case)),
    }
    return Job("theorem", f"theorem N={agents} B={budget} T={horizon}", settings, size.pick(3.0, 0.3))


def search_job(size: Size, agents: int, budget: int, horizon: int) -> Job:
    """The search for the smallest margin."""
    settings = {
        "agents": agents,
        "budget": budget,
        "horizon": horizon,
        "starts": size.pick(2000, 200),
        "rounds": size.pick(60, 30),
        "seed": size.seed,
    }
    return Job("hardest", f"hardest N={agents} B={budget} T={horizon}", settings, size.pick(3.0, 0.3))


def theorem_jobs(size: Size) -> list[Job]:
    """All checks and all searches."""
    return [*(check_job(size, *each) for each in CHECKED), *(search_job(size, *each) for each in SEARCHED)]


def examine_theorem(size: Size, results: Results) -> Findings:
    """Whether any choice beat greedy, and by what margin greedy stays ahead."""
    checked = {each[:3]: results[check_job(size, *each)] for each in CHECKED}
    searched = {each: results[search_job(size, *each)] for each in SEARCHED}
    claims = (_optimal(checked), _never_negative(searched), _eigenvalue())
    return Findings(claims, {}, (_tabulate_checks(checked), _tabulate_searches(searched)))


def _optimal(checked: dict[Setting, Columns]) -> Claim:
    total = sum(int(columns["instances"].sum()) for columns in checked.values())
    parts = tuple(
        exact(f"case {_case_name(case)}", max(float(columns["gap"][place]) for columns in checked.values()))
        for place, case in enumerate(CASES)
    )
    return Claim(
        name="greedy-optimal-for-equal-two-state-agents",
        sentence="Greedy is optimal for two-state agents that are all alike, for any number of them and any budget.",
        place=THEOREM_PLACE,
        quantity=f"largest amount by which the optimum is above greedy, over {total:,} instances",
        agreement=Range(0.0, ROUNDING),
        parts=parts,
        remark=(
            "Exact up to rounding, at every step and for every count of agents in state 1, with ties broken in the "
            "worst way. The proof takes I(1) ≤ I(0) as no loss; that is right, with the actions renamed rather than "
            "the states: acting on B is waiting with N − B, and both benefits change their sign."
        ),
    )


def _never_negative(searched: dict[Setting, Columns]) -> Claim:
    return Claim(
        name="greedy-margin-never-negative",
        sentence="No choice is better than a greedy one, not even on the instances that a search makes for it.",
        place=THEOREM_PLACE,
        quantity="smallest advantage of a greedy choice in the long run, per unit of its advantage in one step",
        agreement=Range(-RATIO_ROUNDING, float("inf")),
        parts=tuple(exact(_describe(setting), float(columns["margin"][0])) for setting, columns in searched.items()),
        remark="1 at the last step; 0 means that a choice that is worse in one step is as good in the long run.",
    )


def _eigenvalue() -> Claim:
    """The proof's matrix where acting surely swaps the states and waiting surely stays in 1, whatever it does in 0."""
    rises = 0.5  # the probability of going from 0 to 1 by waiting, which does not matter
    matrix = np.array([[0.0, 1.0 - rises], [0.0, -1.0]])
    return Claim(
        name="second-eigenvalue-above-minus-one",
        sentence="In case 4 of the proof the smaller eigenvalue stays above −1, as a descent on a grid has shown.",
        place="proof of theorem 3.1, case 4",
        quantity="the smaller eigenvalue where acting swaps the states and waiting stays in state 1",
        agreement=above(-1),
        parts=(exact("acting swaps the states, waiting stays in 1", float(np.linalg.eigvals(matrix).min())),),
        remark=(
            "It is −1 there, so the minimum is attained. It is never below: with u and v the probabilities of reaching 1 by "
            "acting in 0 and by waiting in 1, and c the effect of the state on waiting, the characteristic polynomial "
            "at −1 is at least 1 − uv + c(1 − u)² ≥ 0. That is all that the proof needs."
        ),
    )


def _tabulate_checks(checked: dict[Setting, Columns]) -> Table:
    rows = tuple(
        (
            _describe(setting),
            f"{int(columns['instances'].sum()):,}",
            f"{columns['gap'].max():.1e}",
            *(f"{margin:.3f}" for margin in columns["margin"]),
        )
        for setting, columns in checked.items()
    )
    heads = ("setting", "instances", "largest gap", *(f"margin, case {_case_name(case)}" for case in CASES))
    return Table("Random instances of every case", heads, rows, "Gap: optimum less greedy; margin as in the claim.")


def _tabulate_searches(searched: dict[Setting, Columns]) -> Table:
    names = ("wait_0", "wait_1", "act_0", "act_1")
    rows = tuple(
        (_describe(setting), f"{columns['margin'][0]:.2e}", *(f"{columns[name][0]:.4f}" for name in names))
        for setting, columns in searched.items()
    )
    heads = (
        "setting",
        "smallest margin",
        *(f"probability of state 1, {name.replace('_', ' from ')}" for name in names),
    )
    return Table("The search for the smallest margin", heads, rows)


def _describe(setting: Setting) -> str:
    return "N = {}, B = {}, T = {}".format(*setting)


def _case_name(case: str) -> str:
    return NAMES.get(case, case)


THEOREM = Experiment(
    name="theorem-3.1",
    title="Greedy is optimal for agents that are alike",
    place=THEOREM_PLACE,
    about=(
        "Dynamic programming over the number of agents in state 1, exact for dozens of agents, on random instances of "
        "each case of the proof (case 2 in its two halves, case 4 by its eigenvalues) and of the case that the proof "
        "sets aside; then a search that changes instances to make greedy look as bad as it can."
    ),
    list_jobs=theorem_jobs,
    examine=examine_theorem,
)


LEMMA_PLACE = "lemma 4.3"
# Agents and states, with the number of instances of that size.
SIZES = {(2, 2): 10_000, (2, 3): 10_000, (3, 2): 10_000, (3, 3): 3_000, (4, 2): 5_000, (4, 3): 1_000}
SPARSE_SHARE, QUICK_SHARE = 5, 10
# About how many nanoseconds a case takes; sparse instances need more steps.
PACE, SPARSE_PACE = 250, 700
COUNTED = {
    "instances": "instances",
    "cases": "cases",
    "enough": "B good everywhere",
    "enough_but_costly": "cost all the same",
    "free_once": "free without, 1 step",
    "free_twice": "free without, 2 steps",
    "free_ever": "free without, any steps",
    "instances_free_ever": "in so many instances",
}

Found = dict[tuple[int, int], Columns]  # by agents and states


def lemma_jobs(size: Size) -> list[Job]:
    """Every number of agents and states, with all transitions possible and with some of them not."""
    return [lemma_job(size, *shape, sparse) for sparse in (False, True) for shape in SIZES]


def lemma_job(size: Size, agents: int, states: int, sparse: bool) -> Job:
    """The job of checking instances of one size with all budgets."""
    instances = SIZES[agents, states] // (SPARSE_SHARE if sparse else 1) // size.pick(1, QUICK_SHARE)
    settings = {"agents": agents, "states": states, "instances": instances, "seed": size.seed, "sparse": sparse}
    cases = instances * agents * 2 * agents * states * states**agents
    label = f"lemma 4.3 N={agents} S={states}{' sparse' if sparse else ''}"
    return Job("check_lemma", label, settings, 1e-9 * cases * (SPARSE_PACE if sparse else PACE))


def examine_lemma(size: Size, results: Results) -> Findings:
    """Count counterexamples."""
    positive, sparse = ({shape: results[lemma_job(size, *shape, kind)] for shape in SIZES} for kind in (False, True))
    tables = (_counts("All transitions possible", positive), _counts("Some transitions impossible", sparse))
    return Findings(_lemma_claims(positive, sparse), {}, tables)


def _name(shape: tuple[int, int]) -> str:
    return "N = {}, S = {}".format(*shape)


def _total(columns: Columns, name: str) -> int:
    return int(columns[name].sum())


def _parts(found: Found, name: str) -> tuple[Part, ...]:
    return tuple(
        exact(f"{_name(shape)}: of {_total(columns, 'cases'):,} cases", _total(columns, name))
        for shape, columns in found.items()
    )


def _lemma_claims(positive: Found, sparse: Found) -> tuple[Claim, ...]:
    cases = sum(_total(columns, "cases") for columns in positive.values())
    instances = sum(int(columns["instances"][0]) for columns in positive.values())
    least = min(float(columns["least_chance"].min()) for columns in positive.values())
    none = Range(0.0, 0.0)
    return (
        Claim(
            "lemma-4.3-enough-good-agents",
            "If every transition is possible and some policy has no cost, all joint states have B good agents.",
            LEMMA_PLACE,
            "cases of zero cost over two steps with fewer than B good agents in some joint state",
            none,
            _parts(positive, "free_twice"),
            remark=(
                f"{cases:,} cases of {instances:,} instances; the smallest transition probability is {least:.1e}. Zero "
                "cost over more steps is zero cost over two. Every benefit of an instance is a threshold, and so is a "
                "number just above it: all others are like one of these."
            ),
        ),
        Claim(
            "lemma-4.3-never-forced",
            "Where all joint states have B good agents, no policy has to act on one that is not good.",
            "section 4.1, after lemma 4.3",
            "cases without zero cost although all joint states have at least B good agents",
            none,
            _parts(positive, "enough_but_costly"),
        ),
        Claim(
            "lemma-4.3-largest-threshold",
            "The largest threshold of that kind is the B-th largest of the agents' least benefits.",
            OURS,
            "thresholds of which `largest_threshold` says otherwise than counting in every joint state",
            none,
            tuple(exact(_name(shape), _total(columns, "beside_threshold")) for shape, columns in positive.items()),
        ),
        Claim(
            "lemma-4.3-needs-two-steps",
            "A single step is not enough for the lemma: its cost depends on the start alone.",
            OURS,
            "cases of zero cost over one step with fewer than B good agents in some joint state",
            above(0),
            _parts(positive, "free_once"),
        ),
        Claim(
            "lemma-4.3-needs-positive-transitions",
            "The lemma needs its assumption: with impossible transitions zero cost may go with fewer good agents.",
            OURS,
            "cases of zero cost over any number of steps with fewer than B good agents in some joint state",
            above(0),
            _parts(sparse, "free_ever"),
            remark="The simplest has one agent who stays where it is, in a good state, and never sees its bad one.",
        ),
    )


def _counts(title: str, found: Found) -> Table:
    rows = tuple(
        (_name(shape), str(budget), *(f"{int(counts[name][row]):,}" for name in COUNTED))
        for shape, counts in found.items()
        for row, budget in enumerate(counts["budget"])
    )
    return Table(
        title,
        ("size", "B", *COUNTED.values()),
        rows,
        "A case is an instance with a threshold and a start. B good everywhere: all joint states have at least B good "
        "agents; cost all the same: those of them in which every policy pays. Free without: some policy pays nothing "
        "over so many steps although a joint state has fewer than B good agents.",
    )


LEMMA = Experiment(
    name="lemma-4.3",
    title="Enough good agents in every joint state",
    place=LEMMA_PLACE,
    about=(
        "Random instances of 2 to 4 agents with 2 or 3 states and every budget: rows uniform on the simplex, rewards "
        "uniform on [0, 1], all agents alike in every tenth. The least cost of any policy is computed by dynamic "
        "programming over all joint states, from every start, and compared with the number of good agents in each. In "
        "sparse instances every probability but the largest of a row is 0 with probability 1/2."
    ),
    list_jobs=lemma_jobs,
    examine=examine_lemma,
)
