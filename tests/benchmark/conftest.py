"""Made-up curves: rewards per step as a test wants them, so that ranks, words and verdicts must follow the numbers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from restive.benchmark.ranking import BOUND, Scores, read_scores
from restive.benchmark.scenarios import CLAIM_POLICIES, OTHER_BUDGETS, REQUIRED, SCENARIOS, Scenario, all_policies
from restive.files import Columns
from restive.paper.curves import FLOOR
from restive.paper.jobs import Results, Size
from restive.paper.tasks.simulation import recorded_steps, tabulate

QUICK = Size(quick=True)
INSTANCES = 13
Rate = float | tuple[float, float]  # reward per step, or that of the first hundred steps and that of all after them
RATES: Mapping[str, Rate] = {
    BOUND: 40.0, "whittle-oracle": 40.0, "full information": 39.8, "informed prior": 39.5,
    "lagrange": 39.0, "thompson-whittle": 38.0, "cet-whittle": 37.0, "egt": 36.0,
    "wiql": 34.0, "rma2b": 32.0, "ucwhittle": 31.0, "random": 30.0,
}  # fmt: skip


@dataclass
class World:
    """Rates by policy or by `scenario/policy`, else the usual ones; those of shaky policies vary between instances."""

    rates: Mapping[str, Rate] = field(default_factory=dict)
    shaky: Mapping[str, float] = field(default_factory=dict)
    scenarios: Iterable[str] = ("two-state", "ten-state", "sticky")
    others: bool = False
    extra: tuple[str, ...] = ()

    def columns(self, each: Scenario, policy: str) -> Columns:
        """What a policy collects in a scenario: a straight line, or one that bends after a hundred steps."""
        known = {**RATES, **self.rates}
        rate = known.get(f"{each.name}/{policy}", known.get(policy, known.get(policy.partition(":")[0], 35.0)))
        early, late = rate if isinstance(rate, tuple) else (rate, rate)
        steps = recorded_steps(each.horizon)
        sums = early * np.minimum(steps, 100) + late * np.maximum(steps - 100, 0)
        swing = np.sin(np.arange(INSTANCES) * (1 + len(policy)))
        noise = self.shaky.get(policy, 0.0) * (swing - swing.mean())
        return tabulate(steps, reward=sums + noise[:, None] * steps)

    def results(self, each: Scenario, policies: Iterable[str]) -> dict[str, Columns]:
        """Those of some policies in a scenario, by the digests of their jobs."""
        played = list(policies)
        jobs = zip(played, each.jobs(QUICK, played), strict=True)
        made = {job.digest(): self.columns(each, policy) for policy, job in jobs}
        others = {BOUND: each.bound(QUICK), **each.reference_jobs(QUICK)}
        made |= {job.digest(): self.columns(each, FLOOR) for job in each.floor_jobs(QUICK).values()}
        return made | {job.digest(): self.columns(each, name) for name, job in others.items()}

    def scores(self) -> Scores:
        """What it all comes to."""
        found = {name: Results(self.results(SCENARIOS[name], all_policies(self.extra))) for name in self.scenarios}
        if self.others:
            pairs = [self.results(each, CLAIM_POLICIES) for each in REQUIRED.values()]
            found[OTHER_BUDGETS] = Results({digest: made for pair in pairs for digest, made in pair.items()})
        return read_scores(found, QUICK, self.extra)


MakeScores = Callable[..., Scores]


@pytest.fixture(scope="session")
def make_scores() -> MakeScores:
    """Scores of a world in which the rates are as given."""
    return lambda **settings: World(**settings).scores()


@pytest.fixture
def lowest_first() -> str:
    """A policy of one's own, as the text of its file."""
    return """
from typing import NamedTuple
from restive.policies.base import Learner

class Nothing(NamedTuple):
    pass

class LowestFirst(Learner):
    def start(self, shape):
        return Nothing()

    def rank(self, belief, state, draws):
        return -state
"""
