"""The result of a simulation: rewards and costs of every run and step, with the specification that reproduces them.

Traces are saved as Parquet, one row for each run, with the specification in the file's metadata.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from restive import files, stats
from restive.display import Displayed, axes_of
from restive.errors import InputError, check_whole
from restive.formats import show_count, show_mean
from restive.policies.base import Policy
from restive.problem import Problem
from restive.types import Floats, Ints
from restive.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from restive.world import World

FORMAT = "restive-trace-2"
WORLD_FACTS = ("fingerprint", "instances", "runs", "budget", "spend", "horizon", "noise", "missing", "delay", "seed")


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Displayed):
    """Rewards and costs of R runs over T steps.

    Parameters
    ----------
    reward
        [R, T], the expected reward of the states reached in a step, summed over agents.
    cost
        [R, T], Σ (threshold − benefit) over the agents acted on below the threshold: the paper's c_t.
    instance
        [R], the number of the problem that each run plays.
    spec
        Policy, settings, problem, sizes, noise, seed and version: enough to reproduce the trace.

    Examples
    --------
    >>> from restive import make_problems, simulate
    >>> problems = make_problems("two-state-v1", instances=2, agents=10, budget=2, seed=7)
    >>> trace = simulate(problems, "random", horizon=50, runs=3, seed=7)
    >>> trace.reward.shape, trace.instance.tolist(), trace.spec["policy"]
    ((6, 50), [0, 0, 0, 1, 1, 1], 'random')
    """

    reward: Floats
    cost: Floats
    instance: Ints
    spec: dict[str, Any]

    @property
    def seed(self) -> int:
        """The seed of the simulation."""
        return int(self.spec["seed"])

    @property
    def version(self) -> str:
        """The version of restive that ran the simulation."""
        return str(self.spec["version"])

    def facts(self) -> dict[str, object]:
        """Policy, problem, size and the reward per step."""
        whole, spec = self.mean_reward(), self.spec
        return {
            "policy": spec["policy"],
            "problem": spec["problem"] or "own problem",
            "size": f"{show_count(spec['instances'], 'instance')} × {show_count(spec['runs'], 'run')} × "
            f"{show_count(spec['horizon'], 'step')}",
            "agents": spec["agents"],
            "budget": spec["budget"],
            "reward": f"{show_mean(float(whole.mean), float(whole.error))} a step",
            "seed": spec["seed"],
        }

    def to_frame(self) -> pl.DataFrame:
        """One row for each run and step, from step 1 on: `instance`, `run`, `step`, `reward` and `cost`."""
        runs, steps = self.reward.shape
        return pl.DataFrame(
            {
                "instance": np.repeat(self.instance, steps),
                "run": np.repeat(np.arange(runs), steps),
                "step": np.tile(np.arange(1, steps + 1), runs),
                "reward": self.reward.ravel(),
                "cost": self.cost.ravel(),
            }
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the running mean of the reward with its band on `ax`, or on new axes; returns the axes."""
        band, steps = self.bands(), np.arange(1, self.reward.shape[1] + 1)
        with axes_of(ax) as drawn:
            (line,) = drawn.plot(steps, band.mean, label=self.spec["policy"], linewidth=1.4)
            drawn.fill_between(steps, band.low, band.high, color=line.get_color(), alpha=0.15, linewidth=0)
            drawn.set(xlabel="step", ylabel="mean reward per step so far")
        return drawn

    def lead(self, other: "Trace", level: float = 0.95) -> "stats.Band":
        """The running mean minus that of an `other` trace with the same random numbers, [T], with its band of this `level`."""
        self._require_same(other)
        difference = self.running_mean() - other.running_mean()
        return stats.band(self.by_instance(difference) if self._several() else difference, level)

    def running_mean(self) -> Floats:
        """The mean reward per step up to and including each step, [R, T]."""
        return stats.running_mean(self.reward)

    def by_instance(self, values: Floats) -> Floats:
        """The mean of `values` over the runs of each instance: [R, ...] to [I, ...]."""
        return stats.mean_by(self.instance, values)

    def bands(self, level: float = 0.95) -> "stats.Band":
        """The running mean with its confidence band over instances (over runs if there is one instance).

        `level` is the probability with which the band contains the true mean of a step.
        """
        means = self.running_mean()
        return stats.band(self.by_instance(means) if self._several() else means, level)

    def mean_reward(self, first: int = 0, level: float = 0.95) -> "stats.Band":
        """The reward per step from step `first` on, with its interval of confidence `level` over instances."""
        means = self.reward[:, check_whole("first", first, 0, self.reward.shape[1] - 1) :].mean(axis=1)
        return stats.band(self.by_instance(means) if self._several() else means, level)

    def regret(self, reference: "Trace | None" = None) -> Floats:
        """The cumulative cost, [R, T], minus that of a `reference` policy where assumption 4.2 does not make it zero."""
        if reference is not None:
            self._require_same(reference, (*WORLD_FACTS, "threshold"))
        regret = np.cumsum(self.cost, axis=1)
        return regret if reference is None else regret - np.cumsum(reference.cost, axis=1)

    def gap_closed(
        self, floor: "Trace", ceiling: "Trace", step: int | None = None, level: float = 0.95
    ) -> "stats.Band":
        """The share of the gap from `floor` to `ceiling` that the running mean has closed.

        Parameters
        ----------
        floor, ceiling
            Traces of the same world, with the same random numbers: as a rule `random` and `whittle-oracle`.
        step
            The step at which the running means are compared, from 1; by default the last one.
        level
            The probability with which the interval contains the true share.

        Raises
        ------
        InputError
            If the traces are of different worlds.
        """
        horizon = self.reward.shape[1]
        column = check_whole("step", horizon if step is None else step, 1, horizon) - 1
        for other in (floor, ceiling):
            self._require_same(other)
        means = [trace.running_mean()[:, column] for trace in (self, floor, ceiling)]
        if self._several():
            means = [self.by_instance(values) for values in means]
        return stats.ratio(means[0] - means[1], means[2] - means[1], level)

    def _require_same(self, other: "Trace", facts: tuple[str, ...] = WORLD_FACTS) -> None:
        if differ := [fact for fact in facts if self.spec.get(fact) != other.spec.get(fact)]:
            raise InputError(f"traces of different worlds cannot be compared; they differ in {', '.join(differ)}.")

    def _several(self) -> bool:
        return bool(self.instance[-1] > 0)

    def save(self, path: str | PathLike[str]) -> None:
        """Write to the Parquet file `path`, atomically; its checksum goes to a second file, `<path>.sha256`."""
        columns = {"instance": self.instance, "reward": self.reward, "cost": self.cost}
        files.write_parquet(path, FORMAT, self.spec, columns)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Trace":
        """Read the file `path`, written by `save`."""
        spec, columns = files.read_parquet(path, FORMAT, "a trace")
        return cls(columns["reward"], columns["cost"], columns["instance"], spec)


def describe(
    problem: Problem | Sequence[Problem], policy: Policy[Any], world: "World", runs: int, seed: int, noise: float
) -> dict[str, Any]:
    """The specification of a trace as plain data: all that is needed to reproduce it."""
    problems = [problem] if isinstance(problem, Problem) else list(problem)
    return {
        "version": __version__,
        "policy": policy.name,
        "settings": policy.settings(),
        "problem": problems[0].name,
        "fingerprint": fingerprint(problems),
        "instances": len(problems),
        "runs": int(runs),
        "agents": world.shape.agents,
        "states": world.shape.states,
        "budget": world.shape.budget,
        "spend": world.shape.spend,
        "horizon": world.shape.horizon,
        "noise": float(noise),
        "missing": world.missing,
        "delay": world.delay,
        "seed": int(seed),
        "threshold": world.threshold.tolist(),
    }


def fingerprint(problems: Sequence[Problem]) -> str:
    """Digest of the dynamics, rewards, starts, features and costs of problems."""
    digest = hashlib.sha256()
    for each in problems:
        start = np.array(-1) if each.start is None else each.start
        known = (array for array in (each.features, each.cost) if array is not None)
        for array in (each.transition, each.reward, start, *(each.drift or ()), *known):
            digest.update(np.asarray(array).tobytes())
    return digest.hexdigest()[:16]
