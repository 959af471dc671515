"""Ranking of policies in a scenario: leads, significance and ranks.

Everything is a share of the gap from random (0) to the Whittle oracle (1) in running mean reward, with a 95% interval
over instances. A policy is significantly better than another at a step if the interval of its lead, taken instance by
instance, lies above 0. The rank of a policy is 1 plus the number of policies that are significantly better; the best is
the one with the highest mean. Intervals are not widened for the number of comparisons.

Slow policies and references have fewer runs than random and the oracle, so that the noise of first states does not
cancel. Random is also simulated with as few runs, and its difference from random with all runs, whose expectation is 0,
is a control variate: at each step its regression coefficient over instances times that difference is subtracted.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from restive.benchmark.scenarios import (
    CLAIM_POLICIES,
    CONTROLS,
    OTHER_BUDGETS,
    RANKED,
    REFERENCES,
    REQUIRED,
    SCENARIOS,
    Scenario,
)
from restive.formats import enumerate_words
from restive.paper.claims import WORST_FIRST, Part, Range, measured
from restive.paper.curves import CEILING, FLOOR, Curve, read_curve, share
from restive.paper.jobs import Results, Size
from restive.stats import band
from restive.types import Ints

BOUND = "fluid bound"
FIRST_RANKED_STEP = 10  # running means of fewer steps are mostly noise
NOT_BELOW = Range(0.0, float("inf"))


class Place(NamedTuple):
    """The place of a policy among the others at a step."""

    rank: int
    tied: bool  # it is the best, or not significantly worse


def reduce_noise(curve: Curve, few: Curve, many: Curve) -> Curve:
    """The curve less the noise that it shares with random in as few runs; `many` is random with all runs."""
    noise = few.reward - many.reward
    centred = noise - noise.mean(axis=0)
    square = np.square(centred).sum(axis=0)
    slope = (centred * (curve.reward - many.reward)).sum(axis=0) / np.where(square > 0, square, np.inf)
    return curve._replace(reward=curve.reward - slope * noise)


class ScenarioResult:
    """The curves of a scenario, and the ranking of policies in it."""

    def __init__(
        self,
        scenario: Scenario,
        size: Size,
        results: Results,
        ranked: Iterable[str],
        unranked: Iterable[str] = (),
        referenced: bool = False,
    ) -> None:
        self.scenario = scenario
        self.policies = tuple(ranked)
        simulated = tuple(dict.fromkeys((*self.policies, *unranked)))
        jobs = zip(simulated, scenario.jobs(size, simulated), strict=True)
        self.curves: dict[str, Curve] = {policy: read_curve(results[job]) for policy, job in jobs}
        found = {**scenario.reference_jobs(size), BOUND: scenario.bound(size)} if referenced else {}
        self.curves |= {name: read_curve(results[job]) for name, job in found.items()}
        self.references = tuple(name for name in REFERENCES if name in found)
        floors = {runs: read_curve(results[job]) for runs, job in scenario.floor_jobs(size).items()}
        for name in (*simulated, *self.references):
            if floor := floors.get(scenario.runs_of(name, size)):
                self.curves[name] = reduce_noise(self.curves[name], floor, self.curves[FLOOR])
        self._leads: dict[tuple[str, str, int], Part] = {}
        self._places: dict[int, dict[str, Place]] = {}

    @property
    def steps(self) -> Ints:
        """The steps at which rewards were recorded."""
        return self.curves[FLOOR].steps

    def lead(self, ahead: str, behind: str, step: int) -> Part:
        """How far one policy is above another."""
        if (ahead, behind, step) not in self._leads:
            one, two, floor, ceiling = (self.curves[each] for each in (ahead, behind, FLOOR, CEILING))
            shared = share(one, two, floor, ceiling, step)
            self._leads[ahead, behind, step] = measured(f"{self.scenario.setting()}, t = {step}", shared)
        return self._leads[ahead, behind, step]

    def gap_closed(self, policy: str, step: int) -> Part:
        """The share of the gap that a policy has closed; for the fluid bound, what no policy can exceed."""
        return self.lead(policy, FLOOR, step)

    def is_better(self, ahead: str, behind: str, step: int) -> bool:
        """Whether the whole interval of the lead is above 0."""
        return self.lead(ahead, behind, step).low > 0

    def best(self, step: int) -> str:
        """The policy with the highest mean; the first of equal ones."""
        return max(self.policies, key=lambda policy: float(self.curves[policy].mean(step).mean()))

    def places(self, step: int) -> dict[str, Place]:
        """The place of every policy."""
        if step not in self._places:
            best, many = self.best(step), self.policies
            better = {behind: [ahead for ahead in many if self.is_better(ahead, behind, step)] for behind in many}
            self._places[step] = {policy: Place(1 + len(each), best not in each) for policy, each in better.items()}
        return self._places[step]

    def tied(self, step: int) -> list[str]:
        """The best policy and those not significantly worse, the highest mean first."""
        means = {policy: float(self.curves[policy].mean(step).mean()) for policy in self.policies}
        chosen = [policy for policy, place in self.places(step).items() if place.tied]
        return sorted(chosen, key=lambda policy: -means[policy])

    def leads(self, ahead: str, behind: str) -> list[Part]:
        """The lead at every reported step: mean and interval of the difference, divided by the mean gap."""
        parts = []
        for step in self.scenario.steps:
            one, two, floor, ceiling = (self.curves[each].mean(step) for each in (ahead, behind, FLOOR, CEILING))
            lead, gap = band(one - two), abs(float((ceiling - floor).mean())) or math.nan
            shares = (float(number) / gap for number in (lead.mean, lead.low, lead.high))
            parts.append(Part(f"{self.scenario.setting()}, t = {step}", *shares))
        return parts

    def lowest_lead(self, ahead: str, behind: str) -> Part:
        """The lead at its worst reported step.

        The worst step is one whose whole interval is below 0, if any, else one whose interval reaches below 0, and
        among those the one with the smallest mean.
        """
        return min(self.leads(ahead, behind), key=lambda lead: (WORST_FIRST.index(lead.judge(NOT_BELOW)), lead.value))

    def largest_difference(self, one: str, two: str) -> float:
        """The largest difference in reward between two policies, over all instances and steps."""
        return float(np.abs(self.curves[one].reward - self.curves[two].reward).max())


class Scores(NamedTuple):
    """The results of all complete scenarios, and of the settings that only the claims need."""

    scenarios: dict[str, ScenarioResult]
    others: dict[str, ScenarioResult]
    policies: tuple[str, ...]  # the ranked ones
    size: Size

    def show_step(self, stage: str) -> str:
        """The steps that stand for a stage: that of most scenarios, then those of shorter programs."""
        first, *others = sorted({result.scenario.step_of(stage) for result in self.scenarios.values()}, reverse=True)
        return f"step {first}" + (f" ({enumerate_words(map(str, others))} in shorter programs)" if others else "")

    def all_policies(self) -> tuple[str, ...]:
        """The ranked policies and the controls."""
        return (*self.policies, *CONTROLS)

    def all_results(self) -> list[ScenarioResult]:
        """Results of scenarios and of other settings."""
        return [*self.scenarios.values(), *self.others.values()]


def read_scores(results: dict[str, Results], size: Size, extra: Iterable[str] = ()) -> Scores:
    """The scores that follow from the results of some plans."""
    policies = tuple(dict.fromkeys((*RANKED, *extra)))
    scenarios = {
        name: ScenarioResult(SCENARIOS[name], size, found, policies, (*CONTROLS, CEILING), referenced=True)
        for name, found in results.items()
        if name != OTHER_BUDGETS
    }
    found = results.get(OTHER_BUDGETS)
    others = (
        {name: ScenarioResult(each, size, found, CLAIM_POLICIES) for name, each in REQUIRED.items()} if found else {}
    )
    return Scores(scenarios, others, policies, size)
