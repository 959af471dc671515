"""The benchmark in tables and sentences, all computed from its numbers.

A sentence that has nothing to say is left out. Shares are of the gap from random to the Whittle oracle. A difference is
significant if its 95% interval excludes 0.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeAlias

from restive.benchmark.cost import REFERENCE, Costs
from restive.benchmark.ranking import BOUND, ScenarioResult, Scores
from restive.benchmark.scenarios import CANDIDATE, CONTROLS, LATE, REFERENCES, STAGES
from restive.formats import enumerate_words, show_count, show_fixed, show_interval
from restive.paper.claims import Part
from restive.paper.curves import CEILING, FLOOR
from restive.paper.jobs import Size
from restive.report.tables import Table

Found: TypeAlias = Iterable[tuple[str, str]]  # policies, each with a remark

TIED = "*"
NEAR = 0.02  # shares that count as equal when the cost decides
HALF = 0.5
MUCH = 0.05  # of the gap, left above the oracle
TINY = 0.005  # less would be shown as 0.00


def tabulate_ranks(scores: Scores, stage: str) -> Table:
    """Scenarios down, policies across; the last row has the means over all scenarios."""
    places = {name: result.places(result.scenario.step_of(stage)) for name, result in scores.scenarios.items()}
    rows = [
        (name, *(f"{placed[policy].rank}{TIED * placed[policy].tied}" for policy in scores.policies))
        for name, placed in places.items()
    ]
    means = [sum(placed[policy].rank for placed in places.values()) / len(places) for policy in scores.policies]
    return Table(
        f"Ranks by {scores.show_step(stage)}",
        ("scenario", *scores.policies),
        (*rows, ("mean rank", *(f"{mean:.2f}" for mean in means))),
        "A rank is 1 plus the number of policies that are significantly better, by the 95% interval of the difference "
        f"instance by instance; so ranks can be shared. {TIED} marks the best policy and those not significantly worse.",
    )


def tabulate_gaps(result: ScenarioResult) -> Table:
    """The gap closed by every policy at the reported steps, with the fluid bound on the same scale."""
    ends, steps = {FLOOR: "0", CEILING: "1"}, result.scenario.steps
    rows = tuple(
        (policy, *(ends.get(policy) or _show(result.gap_closed(policy, step)) for step in steps))
        for policy in (*result.policies, *CONTROLS, *result.references, CEILING, BOUND)
    )
    return Table(f"Gap closed in {result.scenario.name}", ("policy", *(f"t = {step}" for step in steps)), rows)


def tabulate_left(scores: Scores, stage: str) -> Table | None:
    """The gap closed by the candidate beside that of the references, where there are any, and what is left."""
    heads = ("scenario", CANDIDATE, *REFERENCES, *(f"{name} less {CANDIDATE}" for name in REFERENCES))
    rows = []
    for name, result in scores.scenarios.items():
        if result.references:
            step = result.scenario.step_of(stage)
            closed = [_show(result.gap_closed(each, step)) for each in (CANDIDATE, *result.references)]
            left = [_show(result.lead(each, CANDIDATE, step)) for each in result.references]
            rows.append((name, *closed, *left))
    if not rows:
        return None
    return Table(
        f"What is left above {CANDIDATE} by {scores.show_step(stage)}",
        heads,
        tuple(rows),
        "Shares of the gap. Both references know the rewards and the distribution of the agents. They are simulated, "
        "and not bounds: a policy may pass them.",
    )


def tabulate_controls(scores: Scores) -> list[Table]:
    """The lead of the candidate over each of its controls."""
    return [
        Table(
            f"What the parts of {CANDIDATE} add by {scores.show_step(stage)}",
            ("scenario", *CONTROLS),
            tuple(
                (name, *(_show(result.lead(CANDIDATE, each, result.scenario.step_of(stage))) for each in CONTROLS))
                for name, result in scores.scenarios.items()
            ),
            f"Lead of {CANDIDATE} over itself with other settings, as a share of the gap. Controls are not ranked.",
        )
        for stage in STAGES
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


def describe_scenario(result: ScenarioResult, size: Size) -> str:
    """A scenario, how much of it was run, and which policy is best in it."""
    scenario = result.scenario
    setup = scenario.setup(size)
    slow: dict[int, list[str]] = {}
    for policy, runs in setup.fewer_runs.items():
        if runs < setup.runs:
            slow.setdefault(runs, []).append(policy)
    groups = (f"{runs} of {enumerate_words(policies)}" for runs, policies in sorted(slow.items()))
    fewer = f"; {', '.join(groups)}, which are slow" if slow else ""
    return (
        f"{scenario.about} {scenario.family}, {scenario.describe_size()}; {show_count(setup.runs, 'run')} of each "
        f"instance{fewer}. {describe_ranking(result)}"
    )


def describe_ranking(result: ScenarioResult) -> str:
    """Which policy is best early and late, and by how much over eps-GT."""
    return " ".join(_describe_best(result, result.scenario.step_of(stage)) for stage in STAGES)


def _describe_best(result: ScenarioResult, step: int) -> str:
    best, *others = result.tied(step)
    closed = show_fixed(result.gap_closed(best, step).value)
    lead = "" if best == REFERENCE else f", {_show(result.lead(best, REFERENCE, step))} above {REFERENCE}"
    sentence = f"By step {step} {best} is best with {closed} of the gap{lead}"
    if not others:
        return f"{sentence}."
    return f"{sentence}; {enumerate_words(others)} {'is' if len(others) == 1 else 'are'} not significantly worse."


def advise(scores: Scores, costs: Costs | None = None) -> list[str]:
    """Which policy to use when, as far as these numbers say."""
    sentences = [
        *(_most_often_best(scores, stage) for stage in STAGES),
        *(_ahead_of_candidate(scores, stage) for stage in STAGES),
        *(_tied_with_candidate(scores, stage) for stage in STAGES),
        _cheapest(scores, costs) if costs else "",
        *(_none_half_way(scores, stage) for stage in STAGES),
        _room_above_the_oracle(scores),
        _above_the_oracle(scores),
        _below_random(scores),
    ]
    return [sentence for sentence in sentences if sentence]


def _most_often_best(scores: Scores, stage: str) -> str:
    results = scores.scenarios.values()
    tied = Counter(policy for result in results for policy in result.tied(result.scenario.step_of(stage)))
    first, second, *_ = sorted(((policy, tied[policy]) for policy in scores.policies), key=lambda entry: -entry[1])
    total = show_count(len(scores.scenarios), "scenario")
    return (
        f"By {scores.show_step(stage)} {first[0]} is best or not significantly worse than the best in {first[1]} of {total}; "
        f"{f'next is {second[0]} with {second[1]}' if second[1] else 'no other policy is'}."
    )


def _ahead_of_candidate(scores: Scores, stage: str) -> str:
    def find(result: ScenarioResult) -> Found:
        step = result.scenario.step_of(stage)
        if CANDIDATE not in result.tied(step):
            best = result.best(step)
            lead = result.lead(best, CANDIDATE, step).value
            yield best, f"by {show_fixed(lead) if lead >= TINY else f'less than {2 * TINY:g}'}"

    by = f"By {scores.show_step(stage)}"
    return (
        _name_scenarios(scores, f"{by} best, and significantly better than {CANDIDATE}", find)
        or f"{by} no policy is significantly better than {CANDIDATE} in any scenario."
    )


def _tied_with_candidate(scores: Scores, stage: str) -> str:
    def find(result: ScenarioResult) -> Found:
        tied = result.tied(result.scenario.step_of(stage))
        return ((policy, "") for policy in tied if CANDIDATE in tied and policy != CANDIDATE)

    by = f"By {scores.show_step(stage)}"
    return _name_scenarios(scores, f"{by} not significantly worse than the best, like {CANDIDATE}", find)


def _cheapest(scores: Scores, costs: Costs) -> str:
    def find(result: ScenarioResult) -> Found:
        last = result.scenario.horizon
        best = result.best(last)
        near = [policy for policy in scores.policies if result.lead(best, policy, last).value <= NEAR]
        taken = costs.nanoseconds[min(costs.nanoseconds, key=lambda states: abs(states - result.scenario.states))]
        yield min(near, key=lambda policy: taken[policy]), ""

    return _name_scenarios(scores, f"The cheapest policy within {NEAR:g} of the best by {scores.show_step(LATE)}", find)


def _none_half_way(scores: Scores, stage: str) -> str:
    most = {}
    for name, result in scores.scenarios.items():
        step = result.scenario.step_of(stage)
        most[name] = result.gap_closed(result.best(step), step).value
    names = [f"{name} (at most {show_fixed(value)})" for name, value in most.items() if value < HALF]
    sentence = f"By {scores.show_step(stage)} no policy closes half of the gap in"
    return f"{sentence} {enumerate_words(names)}." if names else ""


def _room_above_the_oracle(scores: Scores) -> str:
    left = {name: result.gap_closed(BOUND, result.scenario.horizon) for name, result in scores.scenarios.items()}
    names = [f"{name} (up to {show_fixed(part.value - 1)})" for name, part in left.items() if part.low > 1 + MUCH]
    sentence = "The fluid bound leaves room above the Whittle oracle, as a share of the gap, in"
    return f"{sentence} {enumerate_words(names)}." if names else ""


def _above_the_oracle(scores: Scores) -> str:
    def find(result: ScenarioResult) -> Found:
        closed = {policy: result.gap_closed(policy, result.scenario.horizon) for policy in scores.policies}
        return ((policy, show_fixed(part.value)) for policy, part in closed.items() if part.low > 1)

    return _name_scenarios(scores, f"By {scores.show_step(LATE)} significantly above the Whittle oracle", find)


def _below_random(scores: Scores) -> str:
    def find(result: ScenarioResult) -> Found:
        last = result.scenario.horizon
        worse = [policy for policy in scores.policies if policy != FLOOR and result.is_better(FLOOR, policy, last)]
        return ((policy, show_fixed(result.gap_closed(policy, last).value)) for policy in worse)

    return _name_scenarios(scores, f"By {scores.show_step(LATE)} significantly worse than random", find)


def _name_scenarios(scores: Scores, sentence: str, find: Callable[[ScenarioResult], Found]) -> str:
    """A sentence with the scenarios by policy for which something was found, or nothing."""
    scenarios: dict[str, list[str]] = {}
    for name, result in scores.scenarios.items():
        for policy, remark in find(result):
            scenarios.setdefault(policy, []).append(f"{name} ({remark})" if remark else name)
    found = [f"{policy} in {enumerate_words(names)}" for policy, names in scenarios.items()]
    return f"{sentence}: {'; '.join(found)}." if found else ""
