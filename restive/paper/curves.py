"""Scenes of the paper's figures, three budgets with and without noise, and the curves that policies draw in them.

Every policy meets the same instances and the same luck, so differences are taken instance by instance. Differences are
given as shares of the gap between random and the Whittle oracle: that makes budgets, noises and families comparable.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from restive.files import Columns
from restive.paper.experiment import Results, Size
from restive.paper.tasks.playing import seal
from restive.paper.work import Work
from restive.policies import make_policy
from restive.policies.base import Learner
from restive.stats import Band, band, ratio
from restive.types import Floats, Ints

FLOOR, CEILING = "random", "whittle-oracle"
LEARNERS = ("egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle")
ORACLES = ("whittle-oracle", "omr-oracle", "greedy-oracle", "threshold-oracle")
EVERYONE = (*LEARNERS, FLOOR, *ORACLES)
BUDGETS = (5, 10, 20)
AGENTS, HORIZON = 50, 1000

# About how long a step takes before any agent has moved, in seconds, and how many nanoseconds each agent adds, with two
# states and with ten: for the time left, and for the order of works.
STEP = 40e-6
PACE = {
    "ucwhittle": (60, 310), "rma2b": (300, 780), "thompson-whittle": (130, 3400), "cet-whittle": (70, 1100),
    "lagrange": (60, 280), "omr-oracle": (50, 120),
}  # fmt: skip
USUAL_PACE = (20, 55)


class Curve(NamedTuple):
    """What one policy collected: sums up to certain steps, mean over the runs of each instance."""

    steps: Ints  # [G]
    reward: Floats  # [I, G]
    cost: Floats  # [I, G]

    def mean(self, step: int) -> Floats:
        """The reward per step up to and including a step that was kept, [I]."""
        return self.reward[:, self.place(step)] / step

    def between(self, first: int, last: int) -> Floats:
        """The reward per step after step `first` up to and including `last`, [I]."""
        sums = self.reward[:, self.place(last)] - self.reward[:, self.place(first)]
        means: Floats = sums / (last - first)
        return means

    def running_mean(self) -> Floats:
        """The reward per step up to each kept step, [I, G]."""
        means: Floats = self.reward / self.steps
        return means

    def place(self, step: int) -> int:
        """Where a step is among those that were kept."""
        place = int(np.searchsorted(self.steps, step))
        assert self.steps[place] == step, f"step {step} was not kept"
        return place


def read_curve(columns: Columns) -> Curve:
    """The curve that a task wrote as columns; a bound has no cost."""
    steps = columns["step"][columns["instance"] == 0]
    reward = columns["reward"].reshape(-1, steps.size)
    return Curve(steps, reward, columns.get("cost", np.zeros(reward.size)).reshape(reward.shape))


def share(ahead: Curve, behind: Curve, floor: Curve, ceiling: Curve, step: int) -> Band:
    """How far one running mean is above another at a step, as a share of the gap between floor and ceiling."""
    one, two, least, most = (curve.mean(step) for curve in (ahead, behind, floor, ceiling))
    return ratio(one - two, most - least)


def growth(late: Floats, early: Floats) -> Band:
    """The exponent with which sums grew over a factor of ten in steps: log10 of the ratio of their means.

    >>> [float(part) for part in growth(np.array([100.0, 100.0]), np.array([10.0, 10.0]))]
    [1.0, 0.0, 1.0, 1.0]
    """
    grown = ratio(late, early)
    mean, low, high = (np.log10(np.maximum(part, 1e-300)) for part in (grown.mean, grown.low, grown.high))
    return Band(mean, grown.error / (grown.mean * np.log(10)), low, high)


@dataclass(frozen=True)
class Scene:
    """A family of problems and how much of it is played."""

    family: str
    instances: int
    runs: int
    noise: float  # the variance of the noisy half
    seed: int
    states: int = 2
    agents: int = AGENTS
    horizon: int = HORIZON
    fewer_runs: Mapping[str, int] = field(default_factory=dict)  # of policies that take very long

    def settings(self) -> Iterator[tuple[int, float]]:
        """Budgets and noises, the noiseless ones first."""
        return ((budget, noise) for noise in (0.0, self.noise) for budget in BUDGETS)

    def work(self, policy: str, budget: int, noise: float, runs: int | None = None) -> Work:
        """The work of playing a policy; one that does not learn from rewards is played without noise only."""
        player = make_policy(policy)
        noise = noise if isinstance(player, Learner) and player.name != FLOOR else 0.0
        runs = runs or min(self.runs, self.fewer_runs.get(player.name, self.runs))
        pace = PACE.get(player.name, USUAL_PACE)[self.states > 2]
        seconds = self.horizon * (STEP + 1e-9 * pace * self.instances * runs * self.agents)
        settings = {
            "family": self.family,
            "sizes": self._sizes(budget),
            "policy": policy,
            "horizon": self.horizon,
            "runs": runs,
            "seed": self.seed,
            "noise": noise,
            **seal(policy),
        }
        return Work("play", f"{self.family} B={budget} noise={noise:g} {policy}", settings, seconds)

    def bound(self, budget: int) -> Work:
        """The work of finding the fluid bound at every step."""
        settings = {"family": self.family, "sizes": self._sizes(budget), "horizon": self.horizon}
        return Work("bound", f"{self.family} B={budget} fluid bound", settings, 0.02 * self.instances)

    def _sizes(self, budget: int) -> dict[str, int]:
        return {"instances": self.instances, "agents": self.agents, "budget": budget, "seed": self.seed}

    def works(self, policies: tuple[str, ...]) -> list[Work]:
        """All policies at all budgets and noises, and the bounds."""
        played = [self.work(policy, *setting) for setting in self.settings() for policy in policies]
        return [*played, *(self.bound(budget) for budget in BUDGETS)]

    def name(self, budget: int, noise: float) -> str:
        """A setting in words."""
        return f"B = {budget}, {tell_noise(noise)}"


def tell_noise(noise: float) -> str:
    """A variance in words.

    >>> tell_noise(0.1), tell_noise(0.0)
    ('noise variance 0.1', 'noiseless')
    """
    return f"noise variance {noise:g}" if noise else "noiseless"


def two_state_scene(size: Size) -> Scene:
    """The paper's synthetic instances."""
    return Scene("two-state-v1", size.pick(50, 13), size.pick(13, 4), 1.0, size.seed)


def ten_state_scene(size: Size) -> Scene:
    """The same with ten states."""
    scarce = {"thompson-whittle": 1}
    return Scene("many-state-v1", size.pick(50, 13), size.pick(13, 2), 0.1, size.seed, 10, fewer_runs=scarce)


def wireless_scene(size: Size) -> Scene:
    """The satellite channels; each instance assigns them to agents anew, and is played once."""
    return Scene("wireless-v1", size.pick(100, 10), 1, 0.1, size.seed)


def family_scenes(size: Size) -> dict[str, Scene]:
    """The three families of the paper."""
    return {"two-state": two_state_scene(size), "ten-state": ten_state_scene(size), "wireless": wireless_scene(size)}


class Board:
    """The curves of a scene."""

    def __init__(self, scene: Scene, results: Results) -> None:
        self.scene = scene
        self.results = results

    def curve(self, policy: str, budget: int, noise: float) -> Curve:
        """What a policy collected."""
        return self._curve(self.scene.work(policy, budget, noise))

    def bound(self, budget: int) -> Floats:
        """The fluid bound on the running mean, [G], mean over instances."""
        curve = self._curve(self.scene.bound(budget))
        return np.asarray(curve.running_mean().mean(axis=0))

    def _curve(self, work: Work) -> Curve:
        return read_curve(self.results[work])

    def lead(self, ahead: str, behind: str, budget: int, noise: float, step: int = HORIZON) -> Band:
        """How far one policy's running mean is above another's, as a share of the random-to-Whittle gap."""
        one, two, floor, ceiling = (self.curve(policy, budget, noise) for policy in (ahead, behind, FLOOR, CEILING))
        return share(one, two, floor, ceiling, step)

    def gap_closed(self, policy: str, budget: int, noise: float, step: int = HORIZON) -> Band:
        """The share of the random-to-Whittle gap that the running mean has closed."""
        return self.lead(policy, FLOOR, budget, noise, step)

    def reached(self, policy: str, ceiling: str, budget: int, noise: float = 0.0) -> Band:
        """The share of the way from random to a ceiling that a policy goes in the last tenth of the steps."""
        last = self.scene.horizon
        late, floor, top = (
            self.curve(each, budget, noise).between(last - last // 10, last) for each in (policy, FLOOR, ceiling)
        )
        return ratio(late - floor, top - floor)

    def reward(self, policy: str, budget: int, noise: float, step: int = HORIZON) -> Band:
        """The running mean itself, in reward per step over all agents."""
        return band(self.curve(policy, budget, noise).mean(step))
