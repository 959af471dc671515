"""Targets of `lagrange`, as claims: shares of the gap by certain steps, never below another learner, and cost.

The ranges were fixed before anything was measured. A part holds by the rule of `restive.paper.claims`: its whole 95%
interval, not only its mean, must be in the range. Whether a policy is never below another is judged at its worst
reported step, from step 10 on: one step whose whole interval is below 0 is enough to fail.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from restive.benchmark.cost import REFERENCE, Costs
from restive.benchmark.ranking import FIRST_RANKED_STEP, NOT_BELOW, ScenarioResult, Scores
from restive.benchmark.scenarios import BASELINES, CANDIDATE
from restive.formats import show_count
from restive.paper.claims import OURS, Claim, Range, exact
from restive.paper.curves import BUDGETS, SHARE

MAX_COST = {2: 3.0, 10: 6.0}  # relative to eps-GT, by number of states
CHANCE_BELOW = 0.025  # the probability that the whole 95% interval of a lead of 0 is below 0


class Target(NamedTuple):
    """The share of the gap to close by each step, in some kinds of scenarios at some budgets."""

    title: str
    kinds: tuple[str, ...]
    budgets: Sequence[int]
    shares: Mapping[int, float]  # by step


TARGETS = (
    Target("two-state", ("two-state",), BUDGETS, {100: 0.81, 1000: 0.945}),
    Target("ten-state", ("ten-state",), BUDGETS, {100: 0.38, 1000: 0.73}),
    Target("normalized-rows", ("normalized-rows",), BUDGETS, {100: 0.26, 1000: 0.60}),
    Target("wireless-b5", ("wireless",), (5,), {100: 0.53, 1000: 0.73}),
    Target("wireless-b10", ("wireless",), (10,), {100: 0.65, 1000: 0.83}),
    Target("wireless-b20", ("wireless",), (20,), {100: 0.62, 1000: 0.86}),
    Target("sticky", ("sticky",), (10,), {100: 0.24, 1000: 0.65}),
    Target("ladder", ("ladder",), (10,), {100: 0.50, 1000: 0.86}),
    Target("pharmacy", ("pharmacy",), (20,), {10: 0.35, 30: 0.58, 100: 0.80}),
    Target(
        "other-short-programs",
        ("general-usage", "e-commerce", "e-learning", "loyalty", "patient-management"),
        (20,),
        {10: 0.55, 30: 0.75, 100: 0.87},
    ),
)


def judge_targets(scores: Scores, costs: Costs | None = None) -> tuple[Claim, ...]:
    """All claims for which anything was simulated or timed."""
    results = scores.all_results()
    forced = [result for result in results if result.scenario.budget in (0, result.scenario.agents)]
    free = [result for result in results if result not in forced]
    claims = [
        *(_closes(target, step, free) for target in TARGETS for step in target.shares),
        *(_never_below(baseline, free) for baseline in BASELINES),
        _alike_without_a_choice(forced),
        *(_cost(costs, states) for states in MAX_COST if costs and states in costs.nanoseconds),
    ]
    return tuple(claim for claim in claims if claim.parts)


def _closes(target: Target, step: int, results: list[ScenarioResult]) -> Claim:
    found = [r for r in results if r.scenario.kind in target.kinds and r.scenario.budget in target.budgets]
    share = target.shares[step]
    return Claim(
        name=f"{CANDIDATE}-closes-{target.title}-{step}",
        sentence=f"{CANDIDATE} closes at least {share:g} of the gap by step {step} "
        f"({target.title}, {show_count(len(found), 'setting')}).",
        place=OURS,
        quantity=f"gap closed by {CANDIDATE} at step {step}, {SHARE}",
        agreement=Range(share, float("inf")),
        parts=tuple(result.gap_closed(CANDIDATE, step) for result in found),
    )


def _never_below(baseline: str, results: list[ScenarioResult]) -> Claim:
    settings = show_count(len(results), "setting")
    leads = [lead for result in results for lead in result.leads(CANDIDATE, baseline)]
    below = sum(lead.high < 0 for lead in leads)
    return Claim(
        name=f"{CANDIDATE}-never-below-{baseline}",
        sentence=f"{CANDIDATE} is not below {baseline} at any reported step from {FIRST_RANKED_STEP} on ({settings}).",
        place=OURS,
        quantity=f"lead of {CANDIDATE} over {baseline} at its worst step, {SHARE}",
        agreement=NOT_BELOW,
        parts=tuple(result.lowest_lead(CANDIDATE, baseline) for result in results),
        remark=f"Of {len(leads)} leads, one for each setting and step, {below} are significantly below 0. Of as many leads "
        f"that are 0, about {round(CHANCE_BELOW * len(leads))} would be by chance.",
    )


def _alike_without_a_choice(forced: list[ScenarioResult]) -> Claim:
    return Claim(
        name=f"{CANDIDATE}-alike-without-a-choice",
        sentence="With a budget of no agents or of all agents, every policy collects the same.",
        place=OURS,
        quantity=f"largest difference of reward from {CANDIDATE}, over instances and steps",
        agreement=Range(0.0, 0.0),
        parts=tuple(
            exact(f"{result.scenario.setting()}, {baseline}", result.largest_difference(CANDIDATE, baseline))
            for result in forced
            for baseline in BASELINES
        ),
    )


def _cost(costs: Costs, states: int) -> Claim:
    limit = MAX_COST[states]
    return Claim(
        name=f"{CANDIDATE}-cost-{states}",
        sentence=f"A step of {CANDIDATE} costs at most {limit:g} times that of {REFERENCE} with {states} states.",
        place=OURS,
        quantity=f"cost of a step relative to {REFERENCE}, measured on this machine by this call",
        agreement=Range(0.0, limit),
        parts=(exact(f"S = {states}", costs.ratio(states, CANDIDATE)),),
        remark="The best of several rounds counts; there is no interval, and other machines have other ratios.",
    )
