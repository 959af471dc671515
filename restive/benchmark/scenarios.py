"""Scenarios of the benchmark, as data: a family of problems, its size, its noise, and what it resembles.

All policies get the same instances and random numbers: 50 agents, 1000 steps, 50 instances of 13 runs (quick: 13 of 4, or
of 2 with ten states). Slow policies get fewer runs; intervals are over instances, so theirs are wider, not wrong. Some
further settings are needed only by the claims, and are run with fewer policies.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from restive.errors import InputError, did_you_mean
from restive.paper.curves import AGENTS, BUDGETS, CEILING, FLOOR, Setup, describe_noise
from restive.paper.jobs import Job, Plan, Size
from restive.policies import make_policy
from restive.policies.base import Learner

CANDIDATE = "lagrange"  # the policy that the claims are about
# Policies that are ranked, and controls, which are not: the candidate without one of its parts.
RANKED = (FLOOR, "egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle", "cet-whittle", CANDIDATE)
CONTROLS = ("lagrange:curiosity=0", "lagrange:curiosity=1", "lagrange:prior=1", "lagrange:mixture=false")
CLAIM_POLICIES = (CANDIDATE, "egt", "wiql", FLOOR, CEILING)
SLOW: Mapping[str, int] = {"thompson-whittle": 1, "cet-whittle": 1}  # runs of each instance with ten states
OTHER_BUDGETS = "other-budgets"


@dataclass(frozen=True)
class Scenario:
    """One family of problems at one size, budget and noise."""

    name: str
    family: str
    about: str = ""
    budget: int = 10
    noise: float = 0.0
    states: int = 2
    agents: int = AGENTS
    runs: tuple[int, int] = (13, 4)  # of each instance, full and quick
    fewer_runs: Mapping[str, int] = field(default_factory=dict)

    def setup(self, size: Size) -> Setup:
        """The family and how much of it is simulated."""
        return Setup(
            self.family,
            size.pick(50, 13),
            size.pick(*self.runs),
            self.noise,
            size.seed,
            self.states,
            self.agents,
            fewer_runs=self.fewer_runs,
        )

    def jobs(self, size: Size, policies: Iterable[str]) -> list[Job]:
        """The jobs of these policies."""
        return [self.setup(size).job(policy, self.budget, self.noise) for policy in policies]

    def bound(self, size: Size) -> Job:
        """The job of the fluid bound."""
        return self.setup(size).bound(self.budget)

    def describe_size(self) -> str:
        """Its size.

        >>> SCENARIOS["crowd"].describe_size()
        'N = 500, S = 2, B = 5, noiseless'
        """
        return f"N = {self.agents}, S = {self.states}, B = {self.budget}, {describe_noise(self.noise)}"

    def setting(self) -> str:
        """Name, budget and noise, as a setting of a claim.

        >>> REQUIRED["ten-state-b5-noisy"].setting()
        'ten-state, B = 5, noise variance 0.1'
        """
        kind = re.sub(r"(-b\d+)?(-noisy)?$", "", self.name)
        return f"{kind}, B = {self.budget}, {describe_noise(self.noise)}"

    def as_json(self, size: Size) -> dict[str, Any]:
        """The scenario and how much of it is simulated, as plain data."""
        setup = self.setup(size)
        return {
            "scenario": self.name,
            "about": self.about,
            "family": self.family,
            "agents": self.agents,
            "states": self.states,
            "budget": self.budget,
            "noise": self.noise,
            "instances": setup.instances,
            "runs": setup.runs,
            "fewer_runs": dict(setup.fewer_runs),
            "horizon": setup.horizon,
        }


def _vary(name: str, family: str, noises: Iterable[float], **more: Any) -> list[Scenario]:
    """The settings of a family that only the claims need: the budgets other than 10, with these noises."""
    return [
        Scenario(f"{name}-b{budget}{'-noisy' * bool(variance)}", family, budget=budget, noise=variance, **more)
        for variance in noises
        for budget in BUDGETS
        if budget != Scenario.budget
    ]


_TEN: Mapping[str, Any] = {"states": 10, "runs": (13, 2), "fewer_runs": SLOW}
SCENARIOS: Mapping[str, Scenario] = {
    each.name: each
    for each in (
        Scenario(
            "two-state",
            "two-state-v1",
            "People who do well or not, each with different probabilities, as in programs that remind patients of a pill.",
        ),
        Scenario(
            "two-state-noisy",
            "two-state-v1",
            "The same people, but every report has an error as large as the difference between the states.",
            noise=1.0,
        ),
        Scenario(
            "ten-state",
            "many-state-v1",
            "Ten states with frequent jumps, as customers between fine segments: few are visited often enough to be learned.",
            **_TEN,
        ),
        Scenario("ten-state-noisy", "many-state-v1", "The same with noise in every reward.", noise=0.1, **_TEN),
        Scenario(
            "wireless",
            "wireless-v1",
            "Satellite links of five measured kinds, whose good and bad states are worth nearly the same.",
        ),
        Scenario(
            "wireless-noisy",
            "wireless-v1",
            "The same links with noise three times as large as the difference in reward.",
            noise=0.1,
        ),
        Scenario(
            "few-types",
            "few-types-v1",
            "People of four hidden types, as users of a service: pooling over agents finds the types early.",
        ),
        Scenario(
            "own-rewards",
            "own-rewards-v1",
            "Sites with different rewards in each state, observed with noise: half are better off in state 0.",
            noise=1.0,
        ),
        Scenario(
            "crowd",
            "two-state-v1",
            "Five hundred people and five calls a step: each is reached rarely, as with one nurse for a district.",
            budget=5,
            agents=500,
            runs=(2, 2),
        ),
        Scenario(
            "sticky",
            "sticky-v1",
            "Habits that rarely change, as smoking: the effect of a call shows late, and lasts.",
        ),
        Scenario(
            "harmful",
            "harmful-v1",
            "Every action does harm, as inspections that stop a machine; the task is to find the least harm.",
        ),
        Scenario(
            "ladder",
            "ladder-v1",
            "Five levels of engagement, up or down one at a time, as of learners in a course; acting never does harm.",
            states=5,
        ),
    )
}
REQUIRED: Mapping[str, Scenario] = {
    each.name: each
    for each in (
        *_vary("two-state", "two-state-v1", (0.0, 1.0)),
        *_vary("ten-state", "many-state-v1", (0.0, 0.1), **_TEN),
        *_vary("wireless", "wireless-v1", (0.0, 0.1)),
        *_vary("few-types", "few-types-v1", (0.0,)),
        *_vary("own-rewards", "own-rewards-v1", (1.0,)),
        *_vary("sticky", "sticky-v1", (0.0,)),
        *_vary("harmful", "harmful-v1", (0.0,)),
        Scenario("two-state-b0", "two-state-v1", budget=0),
        Scenario("two-state-b50", "two-state-v1", budget=AGENTS),
    )
}


def all_policies(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """All policies of a scenario: ranked, extra, controls and the oracle."""
    return tuple(dict.fromkeys((*RANKED, *extra, *CONTROLS, CEILING)))


def plans(extra: Iterable[str] = ()) -> dict[str, Plan]:
    """The plans by name: the scenarios with all policies, including extra ones, and the other budgets."""
    policies = all_policies(extra)

    def plan_scenario(each: Scenario) -> Plan:
        return Plan(each.name, each.about, lambda size: [*each.jobs(size, policies), each.bound(size)])

    def plan_others(size: Size) -> list[Job]:
        return [job for each in REQUIRED.values() for job in each.jobs(size, CLAIM_POLICIES)]

    others = Plan(OTHER_BUDGETS, "Other budgets of three families, which only the claims need.", plan_others)
    return {name: plan_scenario(each) for name, each in SCENARIOS.items()} | {OTHER_BUDGETS: others}


def find_scenarios(names: Iterable[str], known: Mapping[str, Plan]) -> list[Plan]:
    """The plans of these names in their order; no name means all of them."""
    wanted = list(names) or list(known)
    for name in wanted:
        if name not in known:
            raise InputError(f"there is no scenario {name!r}; there are {', '.join(known)}{did_you_mean(name, known)}")
    return [each for name, each in known.items() if name in wanted]


def check_policies(extra: Iterable[str], engine: str) -> tuple[str, ...]:
    """The extra policies, each once, if that engine can run them."""
    chosen = tuple(dict.fromkeys(extra))
    for policy in chosen:
        if not isinstance(make_policy(policy), Learner):
            raise InputError(
                f"{policy}: an oracle knows the model, and only policies that learn are compared; "
                f"{CEILING} is always shown."
            )
        file = policy.partition(":")[0]
        if file.endswith(".py") and engine.startswith("dask://"):
            raise InputError(
                f"{file}: the workers at {engine} do not have that file; "
                "use --engine threads or dask, whose workers are on this machine."
            )
    return tuple(policy for policy in chosen if policy not in (*RANKED, *CONTROLS))
