"""What a simulation gave: rewards and costs of every run and step, and where they come from.

reward  [R, T]  expected reward of the states reached in a step, summed over agents
cost    [R, T]  Σ (threshold − benefit) over the agents acted on below the threshold: the paper's c_t
spec            policy, settings, problem, sizes, noise, seed and version: enough to make it again

Traces go to Parquet and back, one row for each run, the spec in the file's metadata.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from restive import files, stats
from restive.errors import InputError, check_whole
from restive.policies.base import Policy
from restive.problem import Problem
from restive.types import Floats, Ints
from restive.version import __version__

if TYPE_CHECKING:
    from restive.world import World

FORMAT = "restive-trace-2"
SAME_WORLD = ("fingerprint", "instances", "runs", "budget", "horizon", "noise", "seed")


@dataclass(frozen=True, eq=False)
class Trace:
    """Rewards and costs of R runs over T steps, with their origin."""

    reward: Floats
    cost: Floats
    instance: Ints
    spec: dict[str, Any]

    @property
    def seed(self) -> int:
        """The seed that makes it again."""
        return int(self.spec["seed"])

    @property
    def version(self) -> str:
        """The version of restive that made it."""
        return str(self.spec["version"])

    def running_mean(self) -> Floats:
        """The mean reward per step up to and including each step, [R, T]."""
        return stats.running_mean(self.reward)

    def by_instance(self, values: Floats) -> Floats:
        """The mean over the runs of each instance: [R, ...] to [I, ...]."""
        return stats.mean_by(self.instance, values)

    def bands(self, level: float = 0.95) -> "stats.Band":
        """The running mean with its confidence band over instances (over runs, when there is one instance)."""
        means = self.running_mean()
        return stats.band(self.by_instance(means) if self._several() else means, level)

    def mean_reward(self, first: int = 0, level: float = 0.95) -> "stats.Band":
        """The reward per step from step `first` on, with its standard error over instances."""
        means = self.reward[:, check_whole("first", first, 0, self.reward.shape[1] - 1) :].mean(axis=1)
        return stats.band(self.by_instance(means) if self._several() else means, level)

    def regret(self, reference: "Trace | None" = None) -> Floats:
        """The cumulated cost, [R, T], less that of the reference policy where assumption 4.2 does not make it zero."""
        if reference is not None:
            self._require_same(reference, (*SAME_WORLD, "threshold"))
        regret = np.cumsum(self.cost, axis=1)
        return regret if reference is None else regret - np.cumsum(reference.cost, axis=1)

    def gap_closed(
        self, floor: "Trace", ceiling: "Trace", step: int | None = None, level: float = 0.95
    ) -> "stats.Band":
        """The share of the way from `floor` to `ceiling` that the running mean has gone by `step` (or the end)."""
        horizon = self.reward.shape[1]
        place = check_whole("step", horizon if step is None else step, 1, horizon) - 1
        for other in (floor, ceiling):
            self._require_same(other)
        means = [trace.running_mean()[:, place] for trace in (self, floor, ceiling)]
        if self._several():
            means = [self.by_instance(values) for values in means]
        return stats.ratio(means[0] - means[1], means[2] - means[1], level)

    def _require_same(self, other: "Trace", facts: tuple[str, ...] = SAME_WORLD) -> None:
        if differ := [fact for fact in facts if self.spec.get(fact) != other.spec.get(fact)]:
            raise InputError(f"traces of different worlds cannot be compared; they differ in {', '.join(differ)}.")

    def _several(self) -> bool:
        return bool(self.instance[-1] > 0)

    def save(self, path: str | PathLike[str]) -> None:
        """Write to Parquet; the file appears whole or not at all."""
        columns = {"instance": self.instance, "reward": self.reward, "cost": self.cost}
        files.save(path, FORMAT, self.spec, columns)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Trace":
        """Read what `save` wrote."""
        spec, columns = files.load(path, FORMAT, "a trace")
        return cls(columns["reward"], columns["cost"], columns["instance"], spec)


def describe(
    problem: Problem | Sequence[Problem], policy: Policy[Any], world: "World", runs: int, seed: int, noise: float
) -> dict[str, Any]:
    """All that is needed to make a trace again, as plain data."""
    problems = [problem] if isinstance(problem, Problem) else list(problem)
    digest = hashlib.sha256()
    for each in problems:
        for array in (each.transition, each.reward, np.array(-1) if each.start is None else each.start):
            digest.update(array.tobytes())
    return {
        "version": __version__,
        "policy": policy.name,
        "settings": policy.settings(),
        "problem": problems[0].name,
        "fingerprint": digest.hexdigest()[:16],
        "instances": len(problems),
        "runs": int(runs),
        "agents": world.shape.agents,
        "states": world.shape.states,
        "budget": world.shape.budget,
        "horizon": world.shape.horizon,
        "noise": float(noise),
        "seed": int(seed),
        "threshold": world.threshold.tolist(),
    }
