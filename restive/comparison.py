"""Comparison of policies on the same instances with the same random numbers: the data of a table, a figure or a page.

Every comparison also simulates `random`, the floor, and `whittle-oracle`, the ceiling, to compute the share of the gap
that each policy closes; they appear in the result only if they were asked for.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from restive.display import Displayed, axes_of
from restive.errors import InputError
from restive.formats import UNKNOWN, show_count, show_interval
from restive.policies import POLICIES, make_policy
from restive.policies.base import Oracle, Policy
from restive.precompile import compile_ahead
from restive.problem import Problem
from restive.simulation import simulate
from restive.solution import reward_bounds
from restive.stats import Band
from restive.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOOR, CEILING = "random", "whittle-oracle"
NO_LEARNERS = {FLOOR, *(name for name, policy in POLICIES.items() if issubclass(policy, Oracle))}
# After so many steps a policy has called all its kernels: `lagrange` looks for types and for changes from step 50 on.
WARM_UP_STEPS = 64
LANDMARKS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


@dataclass(frozen=True)
class Row:
    """The results of one policy."""

    label: str
    trace: Trace
    whole: Band  # reward per step over the horizon
    end: Band  # the same over the last tenth
    gap: Band  # share of the floor-to-ceiling gap closed
    speed: float  # agent-steps per second, planning included

    def show_gap(self) -> str:
        """The gap closed with its interval; the floor and the ceiling are 0 and 1 by definition, a dash is no gap."""
        if np.isnan(self.gap.mean):
            return UNKNOWN
        shown = show_interval(float(self.gap.mean), float(self.gap.low), float(self.gap.high))
        return {FLOOR: "0", CEILING: "1"}.get(self.label, shown)


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """The results of `compare`.

    Parameters
    ----------
    rows
        One for each policy, in the order in which they were given.
    spec
        What was simulated, as in `Trace.spec`.
    bound
        The reward per step that no policy can beat, mean over instances; None if it was not computed.

    Examples
    --------
    >>> from restive import make_problems
    >>> found = compare(make_problems("two-state-v1", instances=2, agents=6, budget=2), ["egt"], horizon=20, bound=False)
    >>> found.to_frame().select("policy", "difference").rows()
    [('egt', 0.0)]
    """

    rows: tuple[Row, ...]
    spec: dict[str, Any]
    bound: float | None = None

    @property
    def reference(self) -> Row:
        """The row that others are compared with: the learner with the highest reward, or else the best of all."""
        learners = [row for row in self.rows if row.trace.spec["policy"] not in NO_LEARNERS]
        return max(learners or self.rows, key=lambda row: float(row.whole.mean))

    def facts(self) -> dict[str, object]:
        """The problem, and the reward per step of each policy with its paired difference from the best learner."""
        best, spec = self.reference, self.spec
        runs = f"{show_count(spec['instances'], 'instance')} × {show_count(spec['runs'], 'run')}"
        about: dict[str, object] = {"problem": f"{spec['problem'] or 'own problem'}, {runs} of {spec['horizon']} steps"}
        for row in self.rows:
            found = f"{float(row.whole.mean):.3f} a step"
            if row is not best and np.isfinite((lead := self.lead(row)).low):
                shown = show_interval(float(lead.mean), float(lead.low), float(lead.high), 3)
                found += f", {shown} beside {best.label}"
            about[row.label] = found
        return about

    def lead(self, row: Row) -> Band:
        """The reward per step of a `row` minus that of the reference on the same random numbers, with its 95% interval."""
        band = row.trace.lead(self.reference.trace)
        return Band(*(part[-1] for part in band))

    def to_frame(self) -> pl.DataFrame:
        """One row for each policy: reward per step, paired difference from the reference, gap closed and speed."""
        rows = []
        for row in self.rows:
            parts = {"reward": row.whole, "last_tenth": row.end, "difference": self.lead(row), "gap_closed": row.gap}
            bands = {
                f"{name}{ending}": float(value)
                for name, band in parts.items()
                for ending, value in zip(("", "_error", "_low", "_high"), band, strict=True)
            }
            rows.append({"policy": row.label, "reference": self.reference.label, **bands, "speed": row.speed})
        return pl.DataFrame(rows)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the paired differences from the best learner over time on `ax`, or on new axes; returns the axes."""
        best = self.reference
        with axes_of(ax) as drawn:
            for row in self.rows:
                band, steps = row.trace.lead(best.trace), np.arange(1, row.trace.reward.shape[1] + 1)
                (line,) = drawn.plot(steps, band.mean, label=row.label, linewidth=1.4)
                drawn.fill_between(steps, band.low, band.high, color=line.get_color(), alpha=0.15, linewidth=0)
            drawn.set(xlabel="step", ylabel=f"reward per step so far,\nbeside {best.label}")
        return drawn

    def as_json(self) -> dict[str, Any]:
        """The numbers as plain data, with the running mean at round steps."""
        shared = {key: value for key, value in self.spec.items() if key not in ("policy", "settings", "threshold")}
        return {**shared, "fluid_bound": self.bound, "policies": [_row_as_json(row) for row in self.rows]}


def compare(
    problem: Problem | Iterable[Problem],
    policies: str | Policy[Any] | Sequence[str | Policy[Any]],
    horizon: int,
    runs: int = 1,
    seed: int = 0,
    noise: float = 0.0,
    threads: int | None = None,
    progress: Callable[[str, int], None] = lambda label, steps: None,
    bound: bool = True,
    missing: float = 0.0,
    delay: int = 0,
) -> Comparison:
    """Simulate several policies on the same problems with the same random numbers.

    Parameters
    ----------
    problem
        A problem, or several instances of one shape and budget.
    policies
        Policies, or their names with settings; see `make_policy`.
    horizon
        The number of steps.
    runs
        The number of runs on each problem.
    seed
        The seed of all random numbers; every policy meets the same ones.
    noise
        The variance of the Gaussian noise added to each observed reward.
    threads
        The maximal number of chunks at once; by default the number of processors.
    progress
        Called with the label of a policy and the number of run-steps done since its last call.
    bound
        Whether to compute the fluid bound too, which the expected reward per step of no policy can exceed.
    missing
        The probability that the state of an agent is unknown to the policy in a step.
    delay
        The number of steps after which the outcome of a step is reported to the policy.

    Returns
    -------
    Comparison
        Rewards, the share of the gap from `random` to `whittle-oracle` that each policy closes, and its speed.

    Raises
    ------
    InputError
        If there is no problem or policy, or an argument is not valid.

    Examples
    --------
    >>> from restive import make_problems
    >>> problems = make_problems("two-state-v1", instances=2, agents=6, budget=2)
    >>> found = compare(problems, ["random", "egt"], horizon=50, runs=2, bound=False)
    >>> found.reference.label, bool(found.lead(found.rows[0]).mean < 0)
    ('egt', True)
    """
    problems = list(problem) if isinstance(problem, Iterable) else [problem]
    if not problems:
        raise InputError("problems must be one Problem or a list of at least one.")
    policies = [policies] if isinstance(policies, str | Policy) else policies
    simulated = {_label(policy): make_policy(policy) for policy in (FLOOR, CEILING, *policies)}
    traces, seconds = {}, {}
    with compile_ahead(problems[0], list(simulated.values()), horizon if bound else None):
        for label, policy in simulated.items():
            _warm_up(problems[0], policy, horizon)
            begun = time.perf_counter()
            report = partial(progress, label)
            traces[label] = simulate(
                problems, policy, horizon, runs, seed, noise, None, threads, report, missing=missing, delay=delay
            )
            seconds[label] = time.perf_counter() - begun
        limit = mean_bound(problems, horizon) if bound else None
    work = len(problems) * runs * problems[0].shape[0] * horizon
    rows = [
        make_row(label, traces[label], traces[FLOOR], traces[CEILING], work / seconds[label])
        for label in dict.fromkeys(map(_label, policies))
    ]
    return Comparison(tuple(rows), rows[0].trace.spec, limit)


def mean_bound(problems: Sequence[Problem], horizon: int) -> float:
    """The fluid bound on the reward per step, mean over the problems."""
    bounds = [reward_bounds(problem, np.array([horizon]))[-1] for problem in problems]
    return float(np.mean(bounds)) / horizon


def landmarks(horizon: int) -> list[int]:
    """The round steps up to the horizon, and the horizon itself.

    >>> landmarks(300)
    [10, 20, 50, 100, 200, 300]
    """
    return sorted({*(step for step in LANDMARKS if step < horizon), horizon})


def _label(policy: str | Policy[Any]) -> str:
    return policy if isinstance(policy, str) else repr(policy)


def _warm_up(problem: Problem, policy: Policy[Any], horizon: int) -> None:
    """Compile kernels, so that the speed excludes compilation."""
    simulate(problem, policy, horizon=min(horizon, WARM_UP_STEPS), threads=1)


def make_row(label: str, trace: Trace, floor: Trace, ceiling: Trace, speed: float) -> Row:
    """The results of one policy, given the traces of the floor and the ceiling and its agent-steps per second."""
    tenth = -(-trace.reward.shape[1] // 10)
    end = trace.mean_reward(first=trace.reward.shape[1] - tenth)
    return Row(label, trace, trace.mean_reward(), end, trace.gap_closed(floor, ceiling), speed)


def _row_as_json(row: Row) -> dict[str, Any]:
    means = row.trace.bands().mean
    return {
        "policy": row.label,
        "settings": {name: _plain(value) for name, value in row.trace.spec["settings"].items()},
        "reward": _band_as_json(row.whole),
        "reward_last_tenth": _band_as_json(row.end),
        "gap_closed": _band_as_json(row.gap),
        "agent_steps_per_second": round(row.speed),
        "running_mean": {str(step): float(means[step - 1]) for step in landmarks(len(means))},
    }


def _plain(value: Any) -> Any:
    """Infinity is not JSON either: a setting that is infinite is a text."""
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _band_as_json(band: Band) -> dict[str, float | None]:
    """NaN is not JSON: a number that one instance cannot give is null."""
    return {name: float(value) if np.isfinite(value) else None for name, value in band._asdict().items()}
