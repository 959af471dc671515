"""Scenarios of the benchmark, from `scenarios.toml`: a family of problems, its size and noise, and what it resembles.

All policies get the same instances and random numbers: 50 agents, 1000 steps, 50 instances of 13 runs (quick: 13 of 4,
or of 2 with ten states); the families of the desk's templates have 200 people and 100 steps. Slow policies get fewer
runs; intervals are over instances, so theirs are wider, not wrong. Some further settings are needed only by the claims.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from restive.errors import InputError, did_you_mean
from restive.paper.curves import AGENTS, BUDGETS, CEILING, FLOOR, HORIZON, Setup, describe_noise
from restive.paper.jobs import Job, Plan, Size
from restive.policies import make_policy
from restive.policies.base import Learner

CANDIDATE = "lagrange"  # the policy that the claims are about
# Policies that are ranked, and controls, which are not: the candidate without one of its parts.
RANKED = (FLOOR, "egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle", "cet-whittle", CANDIDATE)
# Learners that were tried and are not ranked; `--policy` adds them.
UNRANKED = ("lp-update", "bcor-like")
CONTROLS = ("lagrange:curiosity=0", "lagrange:curiosity=2", "lagrange:prior=1", "lagrange:mixture=false")
BASELINES = tuple(policy for policy in RANKED if policy not in (FLOOR, CANDIDATE))
CLAIM_POLICIES = (*RANKED, CEILING)
OTHER_BUDGETS = "other-budgets"
REPORTED_STEPS = (10, 30, 50, 100, 300, 1000)
EARLY, LATE = STAGES = ("early", "late")
# Simulated references that know the family, see `restive.paper.tasks.references`; True: with full information.
REFERENCES = {"full information": True, "informed prior": False}
REFERENCE_RUNS = 1
REFERENCE_SECONDS = 4e-6  # for each agent and step, for progress only
JSON_FIELDS = ("about", "family", "agents", "states", "budget", "noise", "missing", "delay")


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
    horizon: int = HORIZON
    early: int = 100  # the step that stands for the beginning, as the horizon does for the end
    runs: Sequence[int] = (13, 4)  # of each instance, full and quick
    fewer_runs: Mapping[str, int] = field(default_factory=dict)  # of slow policies
    missing: float = 0.0  # the probability that a state is unknown in a step, for the oracle too
    delay: int = 0  # of outcomes, in steps
    settings: Mapping[str, int] = field(default_factory=dict)  # of the family
    references: bool = True  # whether the simulated references are defined: agents do not change, and all is observed

    @property
    def kind(self) -> str:
        """The name without budget and noise.

        >>> REQUIRED["ten-state-b5-noisy"].kind
        'ten-state'
        """
        return re.sub(r"(-b\d+)?(-noisy)?$", "", self.name)

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that are reported, the horizon included.

        >>> SCENARIOS["pharmacy"].steps
        (10, 30, 50, 100)
        """
        return (*(step for step in REPORTED_STEPS if step < self.horizon), self.horizon)

    def step_of(self, stage: str) -> int:
        """The step that stands for a stage."""
        return self.early if stage == EARLY else self.horizon

    def setup(self, size: Size) -> Setup:
        """The family and how much of it is simulated."""
        sizes = size.pick(50, 13), size.pick(*self.runs)
        observed = {name: getattr(self, name) for name in ("missing", "delay") if getattr(self, name)}
        setup = Setup(
            self.family, *sizes, self.noise, size.seed, self.states, self.agents, self.horizon, self.fewer_runs
        )
        return replace(setup, observed=observed, settings_of_family=self.settings)

    def jobs(self, size: Size, policies: Iterable[str]) -> list[Job]:
        """The jobs of these policies."""
        return [self.setup(size).job(policy, self.budget, self.noise) for policy in policies]

    def runs_of(self, policy: str, size: Size) -> int:
        """The number of runs of each instance that a policy or a reference gets."""
        runs = self.setup(size).runs
        return (
            REFERENCE_RUNS if policy in REFERENCES else min(runs, self.fewer_runs.get(policy.partition(":")[0], runs))
        )

    def floor_jobs(self, size: Size) -> dict[int, Job]:
        """The jobs of random with the runs of slow policies and references, by number of runs."""
        slow = {self.runs_of(policy, size) for policy in (*self.fewer_runs, *REFERENCES)}
        setup = self.setup(size)
        return {runs: setup.job(FLOOR, self.budget, self.noise, runs) for runs in sorted(slow - {setup.runs})}

    def bound(self, size: Size) -> Job:
        """The job of the fluid bound."""
        return self.setup(size).bound(self.budget)

    def reference_jobs(self, size: Size) -> dict[str, Job]:
        """The jobs of the simulated references by name, none if they are not defined; they know the rewards."""
        setup = self.setup(size)
        settings = {
            "family": self.family,
            "sizes": setup.sizes(self.budget),
            "horizon": self.horizon,
            "runs": REFERENCE_RUNS,
            "seed": size.seed,
        }
        weight = REFERENCE_SECONDS * setup.instances * self.agents * self.horizon
        return {
            name: Job("reference", f"{self.family} B={self.budget} {name}", {**settings, "full": full}, weight)
            for name, full in REFERENCES.items()
            if self.references
        }

    def describe_size(self) -> str:
        """Its size.

        >>> SCENARIOS["crowd"].describe_size()
        'N = 500, S = 2, B = 5, noiseless'
        """
        horizon = "" if self.horizon == HORIZON else f", T = {self.horizon}"
        missing = f", {self.missing:.0%} of states unknown" if self.missing else ""
        delay = f", outcomes {self.delay} steps late" if self.delay else ""
        size = f"N = {self.agents}, S = {self.states}, B = {self.budget}{horizon}"
        return f"{size}, {describe_noise(self.noise)}{missing}{delay}"

    def setting(self) -> str:
        """Name, budget and noise, as a setting of a claim.

        >>> REQUIRED["ten-state-b5-noisy"].setting()
        'ten-state, B = 5, noise variance 0.1'
        """
        return f"{self.kind}, B = {self.budget}, {describe_noise(self.noise)}"

    def as_json(self, size: Size) -> dict[str, Any]:
        """The scenario and how much of it is simulated, as plain data."""
        setup = self.setup(size)
        return {
            "scenario": self.name,
            **{name: getattr(self, name) for name in JSON_FIELDS},
            "instances": setup.instances,
            "runs": setup.runs,
            "fewer_runs": dict(setup.fewer_runs),
            "horizon": setup.horizon,
        }


def _read_scenarios() -> dict[str, Scenario]:
    tables = tomllib.loads(files("restive.benchmark").joinpath("scenarios.toml").read_text(encoding="utf-8"))
    return {name: Scenario(name, **table) for name, table in tables.items()}


def _vary(name: str, noises: Iterable[float]) -> list[Scenario]:
    """The settings of a scenario that only the claims need: the budgets other than 10, with these noises."""
    like = replace(SCENARIOS[name], about="", fewer_runs={**FEWER_RUNS, **SCENARIOS[name].fewer_runs})
    return [
        replace(like, name=f"{name}-b{budget}{'-noisy' * bool(noise)}", budget=budget, noise=noise)
        for noise in noises
        for budget in BUDGETS
        if budget != Scenario.budget
    ]


SCENARIOS: Mapping[str, Scenario] = _read_scenarios()
FEWER_RUNS = {"ucwhittle": 1, "rma2b": 1, "thompson-whittle": 4, "cet-whittle": 4}  # at other budgets
VARIED = {
    "two-state": (0.0, 1.0),
    "ten-state": (0.0, 0.1),
    "normalized-rows": (0.0,),
    "wireless": (0.0, 0.1),
    "few-types": (0.0,),
    "own-rewards": (1.0,),
    "sticky": (0.0,),
    "harmful": (0.0,),
}
REQUIRED: Mapping[str, Scenario] = {
    each.name: each
    for each in (
        *(scenario for name, noises in VARIED.items() for scenario in _vary(name, noises)),
        Scenario("two-state-b0", "two-state-v1", budget=0, runs=(1, 1)),
        Scenario("two-state-b50", "two-state-v1", budget=AGENTS, runs=(1, 1)),
    )
}


def all_policies(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """All policies of a scenario: ranked, extra, controls and the oracle."""
    return tuple(dict.fromkeys((*RANKED, *extra, *CONTROLS, CEILING)))


def plans(extra: Iterable[str] = ()) -> dict[str, Plan]:
    """The plans by name: the scenarios with all policies, including extra ones, and the other budgets."""
    policies = all_policies(extra)

    def plan_scenario(each: Scenario) -> Plan:
        def list_jobs(size: Size) -> list[Job]:
            others = [*each.reference_jobs(size).values(), *each.floor_jobs(size).values()]
            return [*each.jobs(size, policies), each.bound(size), *others]

        return Plan(each.name, each.about, list_jobs)

    def plan_others(size: Size) -> list[Job]:
        return [
            job
            for each in REQUIRED.values()
            for job in (*each.jobs(size, CLAIM_POLICIES), *each.floor_jobs(size).values())
        ]

    others = Plan(OTHER_BUDGETS, "Other budgets of eight families, which only the claims need.", plan_others)
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
                "use --engine threads, processes or dask, whose workers are on this machine."
            )
    return tuple(policy for policy in chosen if policy not in (*RANKED, *CONTROLS))
