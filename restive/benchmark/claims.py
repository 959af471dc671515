"""Targets of `lagrange`, as claims: shares of the gap by certain steps, and never less than eps-GT or WIQL.

The ranges were fixed before anything was measured. A part holds by the rule of `restive.paper.claims`: its whole 95%
interval, not only its mean, must be in the range. Whether a policy is never below another is judged at its worst step,
of all recorded from step 20 on: one step whose whole interval is below 0 is enough to fail.
"""

from typing import NamedTuple

from restive.benchmark.ranking import EARLY, FIRST_RANKED_STEP, LATE, NOT_BELOW, ScenarioResult, Scores
from restive.benchmark.scenarios import CANDIDATE
from restive.formats import show_count
from restive.paper.claims import OURS, Claim, Range, exact
from restive.paper.curves import AGENTS, BUDGETS, SHARE

BASELINES = ("egt", "wiql")


class Target(NamedTuple):
    """The share of the gap to close in a family, at three budgets with and without noise."""

    title: str
    family: str
    early: float
    late: float


TARGETS = (
    Target("two-state", "two-state-v1", 0.76, 0.93),
    Target("ten-state", "many-state-v1", 0.25, 0.60),
    Target("wireless", "wireless-v1", 0.40, 0.65),
)


def judge_targets(scores: Scores) -> tuple[Claim, ...]:
    """All claims for which anything was simulated."""
    results = scores.all_results()
    forced = [result for result in results if result.scenario.budget in (0, result.scenario.agents)]
    free = [result for result in results if result not in forced]
    claims = [
        *(_closes(target, step, results) for target in TARGETS for step in (EARLY, LATE)),
        *(_never_below(baseline, free) for baseline in BASELINES),
        Claim(
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
        ),
    ]
    return tuple(claim for claim in claims if claim.parts)


def _closes(target: Target, step: int, results: list[ScenarioResult]) -> Claim:
    settings = {(target.family, AGENTS, budget) for budget in BUDGETS}
    found = [r for r in results if (r.scenario.family, r.scenario.agents, r.scenario.budget) in settings]
    share, wanted = target.early if step == EARLY else target.late, 2 * len(BUDGETS)
    some = "" if len(found) == wanted else f", {len(found)} of {wanted} settings"
    return Claim(
        name=f"{CANDIDATE}-closes-{target.title}-{step}",
        sentence=f"{CANDIDATE} closes at least {share:g} of the gap by step {step} ({target.title}{some}).",
        place=OURS,
        quantity=f"gap closed by {CANDIDATE} at step {step}, {SHARE}",
        agreement=Range(share, float("inf")),
        parts=tuple(result.gap_closed(CANDIDATE, step) for result in found),
    )


def _never_below(baseline: str, results: list[ScenarioResult]) -> Claim:
    settings = show_count(len(results), "setting")
    return Claim(
        name=f"{CANDIDATE}-never-below-{baseline}",
        sentence=f"{CANDIDATE} is not below {baseline} at any step from {FIRST_RANKED_STEP} on ({settings}).",
        place=OURS,
        quantity=f"lead of {CANDIDATE} over {baseline} at its worst step, {SHARE}",
        agreement=NOT_BELOW,
        parts=tuple(result.lowest_lead(CANDIDATE, baseline) for result in results),
        remark="Each of about a hundred steps has its own 95% interval, so a policy that is as good may fail by chance.",
    )
