"""Theorem 3.1 and lemma 4.3, checked exactly on many small instances.

The theorem: greedy is optimal for two-state agents that are all alike, whatever their number, budget and horizon. The
lemma: where some policy acts at no cost, every joint state has at least B good agents. A case of the lemma is an
instance with a budget, a threshold and a start; it assumes that every transition is possible, and sparse instances show
what that assumption is needed for. How both are computed is in `restive.paper.tasks`.
"""

import numpy as np

from restive.files import Columns
from restive.paper.claims import Part, exact
from restive.paper.experiment import Measured
from restive.paper.jobs import Job, Results, Size
from restive.paper.tasks.worst_case import CASES
from restive.report.tables import Table

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


def measure_theorem(size: Size, results: Results) -> Measured:
    """Whether any choice beat greedy, and by what margin greedy stays ahead."""
    checked = {each[:3]: results[check_job(size, *each)] for each in CHECKED}
    searched = {each: results[search_job(size, *each)] for each in SEARCHED}
    parts = {
        "greedy-optimal-for-equal-two-state-agents": [
            exact(f"case {_case_name(case)}", max(float(columns["gap"][place]) for columns in checked.values()))
            for place, case in enumerate(CASES)
        ],
        "greedy-margin-never-negative": [
            exact(_describe(setting), float(columns["margin"][0])) for setting, columns in searched.items()
        ],
        "second-eigenvalue-above-minus-one": [exact("acting swaps the states, waiting stays in 1", _eigenvalue())],
    }
    instances = sum(int(columns["instances"].sum()) for columns in checked.values())
    tables = (_tabulate_checks(checked), _tabulate_searches(searched))
    return Measured(parts, tables=tables, values={"instances": instances})


def _eigenvalue() -> float:
    """The smaller one of the proof's matrix where acting surely swaps the states and waiting surely stays in 1."""
    rises = 0.5  # the probability of going from 0 to 1 by waiting, which does not matter
    return float(np.linalg.eigvals(np.array([[0.0, 1.0 - rises], [0.0, -1.0]])).min())


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


def measure_lemma(size: Size, results: Results) -> Measured:
    """Count counterexamples."""
    positive, sparse = ({shape: results[lemma_job(size, *shape, kind)] for shape in SIZES} for kind in (False, True))
    tables = (_counts("All transitions possible", positive), _counts("Some transitions impossible", sparse))
    parts = {
        "lemma-4.3-enough-good-agents": _parts(positive, "free_twice"),
        "lemma-4.3-never-forced": _parts(positive, "enough_but_costly"),
        "lemma-4.3-largest-threshold": [
            exact(_name(shape), _total(columns, "beside_threshold")) for shape, columns in positive.items()
        ],
        "lemma-4.3-needs-two-steps": _parts(positive, "free_once"),
        "lemma-4.3-needs-positive-transitions": _parts(sparse, "free_ever"),
    }
    values = {
        "cases": sum(_total(columns, "cases") for columns in positive.values()),
        "instances": sum(int(columns["instances"][0]) for columns in positive.values()),
        "least": min(float(columns["least_chance"].min()) for columns in positive.values()),
    }
    return Measured(parts, tables=tables, values=values)


def _name(shape: tuple[int, int]) -> str:
    return "N = {}, S = {}".format(*shape)


def _total(columns: Columns, name: str) -> int:
    return int(columns[name].sum())


def _parts(found: Found, name: str) -> list[Part]:
    return [
        exact(f"{_name(shape)}: of {_total(columns, 'cases'):,} cases", _total(columns, name))
        for shape, columns in found.items()
    ]


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
