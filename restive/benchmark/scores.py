"""Who is ahead in a field, by how much, and who cannot be told apart.

Everything is a share of the gap from random (0) to the Whittle oracle (1) in running mean reward, with a 95% interval
over instances. Two policies are told apart at a step if the interval of the lead of one over the other, taken instance
by instance, does not include 0. The rank of a policy is 1 plus the number of policies that are told to be better; the
best is the one of the highest mean. Intervals are not widened for the number of comparisons.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from restive.benchmark.fields import CONTESTANTS, CONTROLS, DUELLISTS, FIELDS, OTHER_BUDGETS, REQUIRED, Field
from restive.paper.claims import FAILS, HOLDS, UNDECIDED, Part, Range, measured
from restive.paper.curves import CEILING, FLOOR, Curve, read_curve, share
from restive.paper.experiment import Results, Size
from restive.stats import band
from restive.types import Ints

SOON, EARLY, MIDDLE, LATE = STEPS = (50, 100, 300, 1000)
BOUND = "fluid bound"
SETTLED = 20  # before this step a running mean is luck
NOT_BELOW = Range(0.0, float("inf"))
ORDER = (FAILS, UNDECIDED, HOLDS)


class Place(NamedTuple):
    """How a policy fares among the others at a step."""

    rank: int
    level: bool  # it is the best, or not told apart from it


class Match:
    """The curves of a field, and what they say of the policies that are ranked in it."""

    def __init__(
        self,
        field: Field,
        size: Size,
        results: Results,
        ranked: Iterable[str],
        beside: Iterable[str] = (),
        bounded: bool = False,
    ) -> None:
        self.field = field
        self.policies = tuple(ranked)
        played = tuple(dict.fromkeys((*self.policies, *beside)))
        works = zip(played, field.works(size, played), strict=True)
        self.curves: dict[str, Curve] = {policy: read_curve(results[work]) for policy, work in works}
        if bounded:
            self.curves[BOUND] = read_curve(results[field.bound(size)])
        self._leads: dict[tuple[str, str, int], Part] = {}
        self._places: dict[int, dict[str, Place]] = {}

    @property
    def steps(self) -> Ints:
        """The steps that were kept."""
        return self.curves[FLOOR].steps

    def lead(self, ahead: str, behind: str, step: int) -> Part:
        """How far one policy is above another."""
        if (ahead, behind, step) not in self._leads:
            one, two, floor, ceiling = (self.curves[each] for each in (ahead, behind, FLOOR, CEILING))
            shared = share(one, two, floor, ceiling, step)
            self._leads[ahead, behind, step] = measured(f"{self.field.setting()}, t = {step}", shared)
        return self._leads[ahead, behind, step]

    def gap_closed(self, policy: str, step: int) -> Part:
        """The share of the gap that a policy has closed; of the fluid bound, what nobody can close."""
        return self.lead(policy, FLOOR, step)

    def told_better(self, ahead: str, behind: str, step: int) -> bool:
        """Whether the whole interval of the lead is above 0."""
        return self.lead(ahead, behind, step).low > 0

    def best(self, step: int) -> str:
        """The policy of the highest mean; of those that are alike, the first."""
        return max(self.policies, key=lambda policy: float(self.curves[policy].mean(step).mean()))

    def places(self, step: int) -> dict[str, Place]:
        """Rank and level of every policy."""
        if step not in self._places:
            best, many = self.best(step), self.policies
            better = {behind: [ahead for ahead in many if self.told_better(ahead, behind, step)] for behind in many}
            self._places[step] = {policy: Place(1 + len(each), best not in each) for policy, each in better.items()}
        return self._places[step]

    def level(self, step: int) -> list[str]:
        """The best, and all that are not told apart from it, the higher the earlier."""
        means = {policy: float(self.curves[policy].mean(step).mean()) for policy in self.policies}
        chosen = [policy for policy, place in self.places(step).items() if place.level]
        return sorted(chosen, key=lambda policy: -means[policy])

    def lowest_lead(self, ahead: str, behind: str) -> Part:
        """A lead at the step from `SETTLED` on that is worst for it: one whose whole interval is below 0 if there is
        any, else one whose interval reaches below 0, and of those the one of the smallest mean.

        The interval is that of the difference; it and the mean are divided by the mean gap at the step.
        """
        means = {policy: self.curves[policy].running_mean() for policy in (ahead, behind, FLOOR, CEILING)}
        gap = np.abs((means[CEILING] - means[FLOOR]).mean(axis=0))
        mean, _, low, high = band(means[ahead] - means[behind])
        rows = zip(self.steps, mean / gap, low / gap, high / gap, strict=True)
        leads = [
            Part(f"{self.field.setting()}, t = {step}", *map(float, numbers))
            for step, *numbers in rows
            if step >= SETTLED
        ]
        return min(leads, key=lambda lead: (ORDER.index(lead.judge(NOT_BELOW)), lead.value))

    def largest_difference(self, one: str, two: str) -> float:
        """The largest difference of what two policies collected, over all instances and steps: 0 if they are equal."""
        return float(np.abs(self.curves[one].reward - self.curves[two].reward).max())


class Scores(NamedTuple):
    """All fields that are complete, and the settings that only the claims need."""

    matches: dict[str, Match]  # by field
    others: dict[str, Match]
    policies: tuple[str, ...]  # those that are ranked
    size: Size

    def everyone(self) -> tuple[str, ...]:
        """The policies that are ranked, and the controls."""
        return (*self.policies, *CONTROLS)

    def everywhere(self) -> list[Match]:
        """Fields and other settings."""
        return [*self.matches.values(), *self.others.values()]


def read_scores(results: dict[str, Results], size: Size, extra: Iterable[str] = ()) -> Scores:
    """What the results of some undertakings come to."""
    policies = tuple(dict.fromkeys((*CONTESTANTS, *extra)))
    matches = {
        name: Match(FIELDS[name], size, found, policies, (*CONTROLS, CEILING), bounded=True)
        for name, found in results.items()
        if name != OTHER_BUDGETS
    }
    duels = results.get(OTHER_BUDGETS)
    others = {name: Match(each, size, duels, DUELLISTS) for name, each in REQUIRED.items()} if duels else {}
    return Scores(matches, others, policies, size)
