"""The benchmark in tables and sentences, all computed from its numbers.

A sentence that has nothing to say is left out. Shares are of the gap from random to the Whittle oracle. A difference is
significant if its 95% interval excludes 0.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from restive.benchmark.cost import REFERENCE, Costs
from restive.benchmark.ranking import BOUND, EARLY, LATE, STEPS, ScenarioResult, Scores
from restive.benchmark.scenarios import CANDIDATE, CONTROLS
from restive.formats import show_count, show_fixed, show_interval
from restive.paper.claims import Part
from restive.paper.curves import CEILING, FLOOR
from restive.paper.jobs import Size
from restive.report.tables import Table

TIED = "*"
NEAR = 0.02  # shares that count as equal when the cost decides
HALF = 0.5
MUCH = 0.05  # of the gap, left above the oracle
TINY = 0.005  # less would be shown as 0.00
ABOUT_COSTS = "Measured by this call, after everything else was done, and not cached."
ABOUT_GAPS = (
    f"Shares of the gap from {FLOOR} to {CEILING} that are closed in running mean reward, with 95% intervals over "
    f"instances. What the {BOUND} has above 1 is the most that could be left above the oracle; its interval, like all "
    "others, includes the noise of the oracle."
)


def tabulate_ranks(scores: Scores, step: int) -> Table:
    """Scenarios down, policies across; the last row has the means over all scenarios."""
    places = {name: result.places(step) for name, result in scores.scenarios.items()}
    rows = [
        (name, *(f"{placed[policy].rank}{TIED * placed[policy].tied}" for policy in scores.policies))
        for name, placed in places.items()
    ]
    means = [sum(placed[policy].rank for placed in places.values()) / len(places) for policy in scores.policies]
    return Table(
        f"Ranks by step {step}",
        ("scenario", *scores.policies),
        (*rows, ("mean rank", *(f"{mean:.2f}" for mean in means))),
        "A rank is 1 plus the number of policies that are significantly better, by the 95% interval of the difference "
        f"instance by instance; so ranks can be shared. {TIED} marks the best policy and those not significantly worse.",
    )


def tabulate_gaps(result: ScenarioResult) -> Table:
    """The gap closed by every policy at four steps, with the fluid bound on the same scale."""
    ends = {FLOOR: "0", CEILING: "1"}
    rows = tuple(
        (policy, *(ends.get(policy) or _show(result.gap_closed(policy, step)) for step in STEPS))
        for policy in (*result.policies, *CONTROLS, CEILING, BOUND)
    )
    return Table(f"Gap closed in {result.scenario.name}", ("policy", *(f"t = {step}" for step in STEPS)), rows)


def tabulate_controls(scores: Scores) -> list[Table]:
    """The lead of the candidate over each of its controls."""
    return [
        Table(
            f"What the parts of {CANDIDATE} add by step {step}",
            ("scenario", *CONTROLS),
            tuple(
                (name, *(_show(result.lead(CANDIDATE, control, step)) for control in CONTROLS))
                for name, result in scores.scenarios.items()
            ),
            f"Lead of {CANDIDATE} over itself with other settings, as a share of the gap. Controls are not ranked.",
        )
        for step in (EARLY, LATE)
    ]


def tabulate_costs(costs: Costs, machine: str) -> Table:
    """Nanoseconds and their ratio to eps-GT."""
    sizes = list(costs.nanoseconds)
    rows = tuple(
        (
            policy,
            *(
                cell
                for states in sizes
                for cell in (f"{costs.nanoseconds[states][policy]:.0f}", f"{costs.ratio(states, policy):.1f}")
            ),
        )
        for policy in costs.nanoseconds[sizes[0]]
    )
    return Table(
        "Cost of a step",
        ("policy", *(head for states in sizes for head in (f"S = {states}, ns", f"S = {states}, × egt"))),
        rows,
        "Nanoseconds for each agent and step of a simulation on one thread, best of several rounds; random shows the "
        f"cost of simulating the world. {machine}.",
    )


def _show(part: Part) -> str:
    return show_interval(*part[1:])


def describe_benchmark(scores: Scores) -> str:
    """What was run, in a few sentences."""
    return (
        f"{len(scores.policies)} online policies on {show_count(len(scores.scenarios), 'scenario')}, the same instances "
        f"and the same random numbers for all: {scores.size.pick(50, 13)} instances of each scenario, 1000 steps. Shares "
        "are of the gap in running mean reward from random (0) to the Whittle oracle (1), which knows the model. "
        f"Controls are {CANDIDATE} with other settings: {join(CONTROLS)}."
    )


def describe_scenario(result: ScenarioResult, size: Size) -> str:
    """A scenario, how much of it was run, and which policy is best in it."""
    scenario = result.scenario
    setup = scenario.setup(size)
    slow = setup.fewer_runs
    fewer = f"; {join(map(str, sorted(set(slow.values()))))} of {join(slow)}, which are slow" if slow else ""
    return (
        f"{scenario.about} {scenario.family}, {scenario.describe_size()}; {show_count(setup.runs, 'run')} of each "
        f"instance{fewer}. {describe_ranking(result)}"
    )


def describe_ranking(result: ScenarioResult) -> str:
    """Which policy is best early and late, and by how much over eps-GT."""
    return " ".join(_describe_best(result, step) for step in (EARLY, LATE))


def _describe_best(result: ScenarioResult, step: int) -> str:
    best, *others = result.tied(step)
    closed = show_fixed(result.gap_closed(best, step).value)
    lead = "" if best == REFERENCE else f", {_show(result.lead(best, REFERENCE, step))} above {REFERENCE}"
    sentence = f"By step {step} {best} is best with {closed} of the gap{lead}"
    if not others:
        return f"{sentence}."
    return f"{sentence}; {join(others)} {'is' if len(others) == 1 else 'are'} not significantly worse."


def advise(scores: Scores, costs: Costs | None = None) -> list[str]:
    """Which policy to use when, as far as these numbers say."""
    sentences = [
        *(_most_often_best(scores, step) for step in (EARLY, LATE)),
        *(_ahead_of_candidate(scores, step) for step in (EARLY, LATE)),
        *(_tied_with_candidate(scores, step) for step in (EARLY, LATE)),
        _cheapest(scores, costs),
        *(_none_half_way(scores, step) for step in (EARLY, LATE)),
        _room_above_the_oracle(scores),
        _above_the_oracle(scores),
        _below_random(scores),
    ]
    return [sentence for sentence in sentences if sentence]


def _most_often_best(scores: Scores, step: int) -> str:
    often = dict.fromkeys(scores.policies, 0)
    for result in scores.scenarios.values():
        for policy in result.tied(step):
            often[policy] += 1
    first, second, *_ = sorted(often.items(), key=lambda entry: -entry[1])
    total = show_count(len(scores.scenarios), "scenario")
    return (
        f"By step {step} {first[0]} is best or not significantly worse than the best in {first[1]} of {total}; "
        f"{f'next is {second[0]} with {second[1]}' if second[1] else 'no other policy is'}."
    )


def _ahead_of_candidate(scores: Scores, step: int) -> str:
    scenarios: dict[str, list[str]] = {}
    for name, result in scores.scenarios.items():
        best = result.best(step)
        if CANDIDATE not in result.tied(step):
            lead = result.lead(best, CANDIDATE, step).value
            much = show_fixed(lead) if lead >= TINY else f"less than {2 * TINY:g}"
            scenarios.setdefault(best, []).append(f"{name} (by {much})")
    if not scenarios:
        return f"By step {step} no policy is significantly better than {CANDIDATE} in any scenario."
    return f"By step {step} best, and significantly better than {CANDIDATE}: {_by_policy(scenarios)}."


def _tied_with_candidate(scores: Scores, step: int) -> str:
    scenarios: dict[str, list[str]] = {}
    for name, result in scores.scenarios.items():
        tied = result.tied(step)
        for policy in tied if CANDIDATE in tied else ():
            scenarios.setdefault(policy, []).append(name)
    scenarios.pop(CANDIDATE, None)
    if not scenarios:
        return ""
    return f"By step {step} not significantly worse than the best, like {CANDIDATE}: {_by_policy(scenarios)}."


def _cheapest(scores: Scores, costs: Costs | None) -> str:
    """By policy, the scenarios in which it is the cheapest of those as good as the best."""
    if costs is None:
        return ""
    scenarios: dict[str, list[str]] = {}
    for name, result in scores.scenarios.items():
        best = result.best(LATE)
        near = [policy for policy in scores.policies if result.lead(best, policy, LATE).value <= NEAR]
        taken = costs.nanoseconds[min(costs.nanoseconds, key=lambda states: abs(states - result.scenario.states))]
        scenarios.setdefault(min(near, key=lambda policy: taken[policy]), []).append(name)
    return f"The cheapest policy within {NEAR:g} of the best by step {LATE}: {_by_policy(scenarios)}."


def _none_half_way(scores: Scores, step: int) -> str:
    names = [
        f"{name} (at most {show_fixed(result.gap_closed(result.best(step), step).value)})"
        for name, result in scores.scenarios.items()
        if result.gap_closed(result.best(step), step).value < HALF
    ]
    return f"By step {step} no policy closes half of the gap in {join(names)}." if names else ""


def _room_above_the_oracle(scores: Scores) -> str:
    left = {name: result.gap_closed(BOUND, LATE) for name, result in scores.scenarios.items()}
    names = [f"{name} (up to {show_fixed(part.value - 1)})" for name, part in left.items() if part.low > 1 + MUCH]
    if not names:
        return ""
    return f"The fluid bound leaves room above the Whittle oracle, as a share of the gap, in {join(names)}."


def _above_the_oracle(scores: Scores) -> str:
    found = _where(scores, lambda result, policy: result.gap_closed(policy, LATE).low > 1)
    return f"By step {LATE} significantly above the Whittle oracle: {_by_policy(found)}." if found else ""


def _below_random(scores: Scores) -> str:
    found = _where(scores, lambda result, policy: policy != FLOOR and result.is_better(FLOOR, policy, LATE))
    return f"By step {LATE} significantly worse than random: {_by_policy(found)}." if found else ""


def _where(scores: Scores, holds: Callable[[ScenarioResult, str], bool]) -> dict[str, list[str]]:
    """By policy, the scenarios in which something holds, with the gap closed."""
    scenarios: dict[str, list[str]] = {}
    for name, result in scores.scenarios.items():
        for policy in scores.policies:
            if holds(result, policy):
                closed = show_fixed(result.gap_closed(policy, LATE).value)
                scenarios.setdefault(policy, []).append(f"{name} ({closed})")
    return scenarios


def _by_policy(scenarios: Mapping[str, Sequence[str]]) -> str:
    return join((f"{policy} in {join(names)}" for policy, names in scenarios.items()), "; ")


def join(words: Iterable[str], comma: str = ", ") -> str:
    """Words as an enumeration.

    >>> join(["a"]), join(["a", "b"]), join(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *first, last = words
    joint = " and " if comma == ", " else comma
    return f"{comma.join(first)}{joint}{last}" if first else last
