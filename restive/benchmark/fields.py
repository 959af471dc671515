"""The fields of the comparison, as data: a family of problems, its size, its noise, and whom it resembles.

All policies meet the same instances with the same luck: 50 agents, 1000 steps, 50 instances of 13 runs (quick: 13 of 4,
or of 2 where there are ten states). Policies that take very long play fewer runs; intervals are over instances, so they
are wider for it, not wrong. Beside the fields stand settings that only the claims need, played by the duellists alone.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from restive.errors import InputError
from restive.paper.curves import AGENTS, BUDGETS, CEILING, FLOOR, Scene, tell_noise
from restive.paper.experiment import Size, Undertaking
from restive.paper.work import Work
from restive.policies import make_policy
from restive.policies.base import Learner

HERO = "lagrange"  # whom the claims are about
# Ranked against each other. Beside them stand the controls: the hero without one of its parts, which shows what the
# part is worth.
CONTESTANTS = (FLOOR, "egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle", "cet-whittle", HERO)
CONTROLS = ("lagrange:curiosity=0", "lagrange:curiosity=1", "lagrange:prior=1", "lagrange:mixture=false")
DUELLISTS = (HERO, "egt", "wiql", FLOOR, CEILING)
SLOW: Mapping[str, int] = {"thompson-whittle": 1, "cet-whittle": 1}  # runs of each instance where there are ten states
OTHER_BUDGETS = "other-budgets"


@dataclass(frozen=True)
class Field:
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

    def scene(self, size: Size) -> Scene:
        """The family and how much of it is played."""
        return Scene(
            self.family,
            size.pick(50, 13),
            size.pick(*self.runs),
            self.noise,
            size.seed,
            self.states,
            self.agents,
            fewer_runs=self.fewer_runs,
        )

    def works(self, size: Size, policies: Iterable[str]) -> list[Work]:
        """What it takes to play these policies."""
        return [self.scene(size).work(policy, self.budget, self.noise) for policy in policies]

    def bound(self, size: Size) -> Work:
        """What it takes to find the fluid bound."""
        return self.scene(size).bound(self.budget)

    def sizes(self) -> str:
        """Its size in words.

        >>> FIELDS["crowd"].sizes()
        'N = 500, S = 2, B = 5, noiseless'
        """
        return f"N = {self.agents}, S = {self.states}, B = {self.budget}, {tell_noise(self.noise)}"

    def setting(self) -> str:
        """Budget and noise in words: a setting of a claim.

        >>> REQUIRED["ten-state-b5-noisy"].setting()
        'ten-state, B = 5, noise variance 0.1'
        """
        kind = re.sub(r"(-b\d+)?(-noisy)?$", "", self.name)
        return f"{kind}, B = {self.budget}, {tell_noise(self.noise)}"

    def as_json(self, size: Size) -> dict[str, Any]:
        """What it is, and how much of it is played, as plain data."""
        scene = self.scene(size)
        return {
            "field": self.name,
            "about": self.about,
            "family": self.family,
            "agents": self.agents,
            "states": self.states,
            "budget": self.budget,
            "noise": self.noise,
            "instances": scene.instances,
            "runs": scene.runs,
            "fewer_runs": dict(scene.fewer_runs),
            "horizon": scene.horizon,
        }


def _vary(name: str, family: str, noises: Iterable[float], **more: Any) -> list[Field]:
    """The settings of a family that only the claims need: the budgets other than 10, with these noises."""
    return [
        Field(f"{name}-b{budget}{'-noisy' * bool(variance)}", family, budget=budget, noise=variance, **more)
        for variance in noises
        for budget in BUDGETS
        if budget != Field.budget
    ]


_TEN: Mapping[str, Any] = {"states": 10, "runs": (13, 2), "fewer_runs": SLOW}
FIELDS: Mapping[str, Field] = {
    each.name: each
    for each in (
        Field(
            "two-state",
            "two-state-v1",
            "People who do well or not, each with chances of their own, as in programs that remind patients of a pill.",
        ),
        Field(
            "two-state-noisy",
            "two-state-v1",
            "The same people, but every report of how they do is off by as much as the whole difference.",
            noise=1.0,
        ),
        Field(
            "ten-state",
            "many-state-v1",
            "Ten states that jump about, as customers do between fine segments: few are seen often enough to be known.",
            **_TEN,
        ),
        Field("ten-state-noisy", "many-state-v1", "The same with noise in every reward.", noise=0.1, **_TEN),
        Field(
            "wireless",
            "wireless-v1",
            "Satellite links of five measured kinds, whose good and bad states are worth nearly the same.",
        ),
        Field(
            "wireless-noisy",
            "wireless-v1",
            "The same links with noise three times as large as what there is to win.",
            noise=0.1,
        ),
        Field(
            "few-types",
            "few-types-v1",
            "People of four hidden kinds, as users of a service: who learns from all at once knows the kinds early.",
        ),
        Field(
            "own-rewards",
            "own-rewards-v1",
            "Sites that are worth something else in each state, known through noise: half are better off in state 0.",
            noise=1.0,
        ),
        Field(
            "crowd",
            "two-state-v1",
            "Five hundred people and five calls a step: nobody is reached often, as with one nurse for a district.",
            budget=5,
            agents=500,
            runs=(2, 2),
        ),
        Field(
            "sticky",
            "sticky-v1",
            "Habits that hardly ever change, as smoking: what a call did shows late, and lasts.",
        ),
        Field(
            "harmful",
            "harmful-v1",
            "Every action hurts, as inspections that stop a machine; the task is to find those it hurts least.",
        ),
        Field(
            "ladder",
            "ladder-v1",
            "Five rungs of engagement, up or down one at a time, as of learners in a course; acting never hurts.",
            states=5,
        ),
    )
}
REQUIRED: Mapping[str, Field] = {
    each.name: each
    for each in (
        *_vary("two-state", "two-state-v1", (0.0, 1.0)),
        *_vary("ten-state", "many-state-v1", (0.0, 0.1), **_TEN),
        *_vary("wireless", "wireless-v1", (0.0, 0.1)),
        *_vary("few-types", "few-types-v1", (0.0,)),
        *_vary("own-rewards", "own-rewards-v1", (1.0,)),
        *_vary("sticky", "sticky-v1", (0.0,)),
        *_vary("harmful", "harmful-v1", (0.0,)),
        Field("two-state-b0", "two-state-v1", budget=0),
        Field("two-state-b50", "two-state-v1", budget=AGENTS),
    )
}


def everyone(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """All that play a field: contestants, these extra ones, controls and the oracle."""
    return tuple(dict.fromkeys((*CONTESTANTS, *extra, *CONTROLS, CEILING)))


def undertakings(extra: Iterable[str] = ()) -> dict[str, Undertaking]:
    """What there is to do by name: the fields with all policies, these extra ones too, and the other budgets."""
    players = everyone(extra)

    def plan_field(each: Field) -> Undertaking:
        return Undertaking(each.name, each.about, lambda size: [*each.works(size, players), each.bound(size)])

    def plan_others(size: Size) -> list[Work]:
        return [work for each in REQUIRED.values() for work in each.works(size, DUELLISTS)]

    others = Undertaking(OTHER_BUDGETS, "Other budgets of three families, which only the claims need.", plan_others)
    return {name: plan_field(each) for name, each in FIELDS.items()} | {OTHER_BUDGETS: others}


def find_fields(names: Iterable[str], known: Mapping[str, Undertaking]) -> list[Undertaking]:
    """The undertakings of these names in their order; none means all of them."""
    wanted = list(names) or list(known)
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise InputError(f"there is no field {name!r}; there are {', '.join(known)}{hint}")
    return [each for name, each in known.items() if name in wanted]


def check_policies(extra: Iterable[str], engine: str) -> tuple[str, ...]:
    """The policies to play beside the standard ones, each once, if they can be played by that engine."""
    chosen = tuple(dict.fromkeys(extra))
    for policy in chosen:
        if not isinstance(make_policy(policy), Learner):
            raise InputError(
                f"{policy}: an oracle knows the model, and only policies that learn it are compared; "
                f"{CEILING} is shown beside them."
            )
        file = policy.partition(":")[0]
        if file.endswith(".py") and engine.startswith("dask://"):
            raise InputError(
                f"{file}: the workers at {engine} do not have that file; "
                "play it with --engine threads or dask, whose workers are on this machine."
            )
    return tuple(policy for policy in chosen if policy not in (*CONTESTANTS, *CONTROLS))
