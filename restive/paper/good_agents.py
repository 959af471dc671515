"""Lemma 4.3: where some policy acts at no cost, every joint state has at least B good agents.

Checked case by case on small random instances: a case is an instance with a budget, a threshold and a start. How is in
`restive.paper.tasks.good_agents`. The lemma assumes that every transition is possible; sparse instances show what
that is for.
"""

from restive.files import Columns
from restive.paper.claims import OURS, Claim, Experiment, Findings, Part, Range, above, exact
from restive.paper.jobs import Job, Results, Size
from restive.report.tables import Table

PLACE = "lemma 4.3"
# Agents and states, with the number of instances of that size.
SIZES = {(2, 2): 10_000, (2, 3): 10_000, (3, 2): 10_000, (3, 3): 3_000, (4, 2): 5_000, (4, 3): 1_000}
SPARSE_SHARE, QUICK_SHARE = 5, 10
# About how many nanoseconds a case takes; sparse instances need more steps.
PACE, SPARSE_PACE = 250, 700


def lemma_jobs(size: Size) -> list[Job]:
    """Every number of agents and states, with all transitions possible and with some of them not."""
    return [job(size, *shape, sparse) for sparse in (False, True) for shape in SIZES]


def job(size: Size, agents: int, states: int, sparse: bool) -> Job:
    """The job of checking instances of one size with all budgets."""
    instances = SIZES[agents, states] // (SPARSE_SHARE if sparse else 1) // size.pick(1, QUICK_SHARE)
    settings = {"agents": agents, "states": states, "instances": instances, "seed": size.seed, "sparse": sparse}
    cases = instances * agents * 2 * agents * states * states**agents
    label = f"lemma 4.3 N={agents} S={states}{' sparse' if sparse else ''}"
    return Job("check_lemma", label, settings, 1e-9 * cases * (SPARSE_PACE if sparse else PACE))


def examine_lemma(size: Size, results: Results) -> Findings:
    """Count counterexamples."""
    positive, sparse = ({shape: results[job(size, *shape, kind)] for shape in SIZES} for kind in (False, True))
    claims = (
        _enough(positive),
        _never_forced(positive),
        _largest_threshold(positive),
        _two_steps(positive),
        _positivity(sparse),
    )
    tables = (
        _counts("All transitions possible", positive),
        _counts("Some transitions impossible", sparse),
    )
    return Findings(claims, {}, tables)


def _name(shape: tuple[int, int]) -> str:
    return f"N = {shape[0]}, S = {shape[1]}"


def _total(columns: Columns, name: str) -> int:
    return int(columns[name].sum())


def _enough(positive: dict[tuple[int, int], Columns]) -> Claim:
    cases = sum(_total(columns, "cases") for columns in positive.values())
    instances = sum(int(columns["instances"][0]) for columns in positive.values())
    least = min(float(columns["least_chance"].min()) for columns in positive.values())
    return Claim(
        name="lemma-4.3-enough-good-agents",
        sentence="If every transition is possible and some policy has no cost, all joint states have B good agents.",
        place=PLACE,
        quantity="cases of zero cost over two steps with fewer than B good agents in some joint state",
        agreement=Range(0.0, 0.0),
        parts=_parts(positive, "free_twice"),
        remark=(
            f"{cases:,} cases of {instances:,} instances; the smallest transition probability is {least:.1e}. Zero "
            "cost over more steps is zero cost over two. Every benefit of an instance is a threshold, and so is a "
            "number just above it: all others are like one of these."
        ),
    )


def _parts(found: dict[tuple[int, int], Columns], name: str) -> tuple[Part, ...]:
    return tuple(
        exact(f"{_name(shape)}: of {_total(columns, 'cases'):,} cases", _total(columns, name))
        for shape, columns in found.items()
    )


def _never_forced(positive: dict[tuple[int, int], Columns]) -> Claim:
    return Claim(
        name="lemma-4.3-never-forced",
        sentence="Where all joint states have B good agents, no policy has to act on one that is not good.",
        place="section 4.1, after lemma 4.3",
        quantity="cases without zero cost although all joint states have at least B good agents",
        agreement=Range(0.0, 0.0),
        parts=_parts(positive, "enough_but_costly"),
    )


def _largest_threshold(positive: dict[tuple[int, int], Columns]) -> Claim:
    return Claim(
        name="lemma-4.3-largest-threshold",
        sentence="The largest threshold of that kind is the B-th largest of the agents' least benefits.",
        place=OURS,
        quantity="thresholds of which `largest_threshold` says otherwise than counting in every joint state",
        agreement=Range(0.0, 0.0),
        parts=tuple(exact(_name(shape), _total(columns, "beside_threshold")) for shape, columns in positive.items()),
    )


def _two_steps(positive: dict[tuple[int, int], Columns]) -> Claim:
    return Claim(
        name="lemma-4.3-needs-two-steps",
        sentence="A single step is not enough for the lemma: its cost depends on the start alone.",
        place=OURS,
        quantity="cases of zero cost over one step with fewer than B good agents in some joint state",
        agreement=above(0),
        parts=_parts(positive, "free_once"),
    )


def _positivity(sparse: dict[tuple[int, int], Columns]) -> Claim:
    return Claim(
        name="lemma-4.3-needs-positive-transitions",
        sentence="The lemma needs its assumption: with impossible transitions zero cost may go with fewer good agents.",
        place=OURS,
        quantity="cases of zero cost over any number of steps with fewer than B good agents in some joint state",
        agreement=above(0),
        parts=_parts(sparse, "free_ever"),
        remark="The simplest has one agent who stays where it is, in a good state, and never sees its bad one.",
    )


def _counts(title: str, found: dict[tuple[int, int], Columns]) -> Table:
    columns = {
        "instances": "instances",
        "cases": "cases",
        "enough": "B good everywhere",
        "enough_but_costly": "cost all the same",
        "free_once": "free without, 1 step",
        "free_twice": "free without, 2 steps",
        "free_ever": "free without, any steps",
        "instances_free_ever": "in so many instances",
    }
    rows = [
        (_name(shape), str(budget), *(f"{int(counts[name][row]):,}" for name in columns))
        for shape, counts in found.items()
        for row, budget in enumerate(counts["budget"])
    ]
    return Table(
        title,
        ("size", "B", *columns.values()),
        tuple(rows),
        "A case is an instance with a threshold and a start. B good everywhere: all joint states have at least B good "
        "agents; cost all the same: those of them in which every policy pays. Free without: some policy pays nothing "
        "over so many steps although a joint state has fewer than B good agents.",
    )


LEMMA = Experiment(
    name="lemma-4.3",
    title="Enough good agents in every joint state",
    place=PLACE,
    about=(
        "Random instances of 2 to 4 agents with 2 or 3 states and every budget: rows uniform on the simplex, rewards "
        "uniform on [0, 1], all agents alike in every tenth. The least cost of any policy is computed by dynamic "
        "programming over all joint states, from every start, and compared with the number of good agents in each. In "
        "sparse instances every probability but the largest of a row is 0 with probability 1/2."
    ),
    list_jobs=lemma_jobs,
    examine=examine_lemma,
)
