"""Setups of the paper's figures (a family at three budgets, with and without noise), their curves, and leads.

Every policy gets the same instances and random numbers, so differences are taken instance by instance. Differences are
given as shares of the gap between random and the Whittle oracle: that makes budgets, noises and families comparable.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from restive.files import Columns
from restive.formats import show_count
from restive.paper.claims import Part, measured
from restive.paper.jobs import Job, Results, Size
from restive.paper.readings import Reading
from restive.paper.tasks.simulation import file_digest
from restive.plotting import BOUND, LONG_DASHES, LOOKS, Line, choose_looks, draw_panels, scale_panels
from restive.policies import make_policy
from restive.policies.base import Learner
from restive.report.tables import Table
from restive.stats import Band, band, ratio
from restive.types import Floats, Ints
from restive.version import __version__

FLOOR, CEILING = "random", "whittle-oracle"
LEARNERS = ("egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle")
BUDGETS = (5, 10, 20)
AGENTS, HORIZON = 50, 1000

# Expected duration of jobs, for progress and for their order: seconds per step, and nanoseconds that each agent adds, with
# two states and with ten.
SECONDS_PER_STEP = 40e-6
NANOSECONDS = {
    "ucwhittle": (60, 310), "rma2b": (300, 780), "thompson-whittle": (130, 3400), "cet-whittle": (70, 1100),
    "lagrange": (60, 280), "lp-update": (9000, 20_000), "bcor-like": (1000, 20_000),
    "omr-oracle": (50, 120),
}  # fmt: skip
USUAL_NANOSECONDS = (20, 55)


class Curve(NamedTuple):
    """Cumulated reward and cost of one policy up to certain steps, mean over the runs of each instance."""

    steps: Ints  # [G]
    reward: Floats  # [I, G]
    cost: Floats  # [I, G]

    def mean(self, step: int) -> Floats:
        """The reward per step up to and including a recorded step, [I]."""
        return self.reward[:, self.place(step)] / step

    def between(self, first: int, last: int) -> Floats:
        """The reward per step after step `first` up to and including `last`, [I]."""
        sums = self.reward[:, self.place(last)] - self.reward[:, self.place(first)]
        means: Floats = sums / (last - first)
        return means

    def running_mean(self) -> Floats:
        """The reward per step up to each recorded step, [I, G]."""
        means: Floats = self.reward / self.steps
        return means

    def place(self, step: int) -> int:
        """The index of a recorded step."""
        place = int(np.searchsorted(self.steps, step))
        assert self.steps[place] == step, f"step {step} was not recorded"
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
class Setup:
    """A family of problems and how much of it is simulated."""

    family: str
    instances: int
    runs: int
    noise: float  # the variance of the noisy half
    seed: int
    states: int = 2
    agents: int = AGENTS
    horizon: int = HORIZON
    fewer_runs: Mapping[str, int] = field(default_factory=dict)  # of slow policies, or of one with its settings
    reading: Reading = field(default_factory=Reading)
    observed: Mapping[str, float] = field(default_factory=dict)  # missing and delay, if not 0
    settings_of_family: Mapping[str, int] = field(default_factory=dict)  # other than sizes, budget and seed

    def settings(self) -> Iterator[tuple[int, float]]:
        """Budgets and noises, the noiseless ones first."""
        return ((budget, noise) for noise in (0.0, self.noise) for budget in BUDGETS)

    def job(self, policy: str, budget: int, noise: float, runs: int | None = None) -> Job:
        """The job of simulating a policy; one that does not learn from rewards is simulated without noise."""
        asked, policy = policy, self.reading.specify(policy)
        simulated = make_policy(policy)
        noise = noise if isinstance(simulated, Learner) and simulated.name != FLOOR else 0.0
        fewer = self.fewer_runs.get(asked, self.fewer_runs.get(simulated.name, self.runs))
        runs = runs or min(self.runs, fewer)
        nanoseconds = NANOSECONDS.get(simulated.name, USUAL_NANOSECONDS)[self.states > 2]
        seconds = self.horizon * (SECONDS_PER_STEP + 1e-9 * nanoseconds * self.instances * runs * self.agents)
        settings = {
            "family": self.family,
            "sizes": self.sizes(budget),
            "policy": policy,
            "horizon": self.horizon,
            "runs": runs,
            "seed": self.seed,
            "noise": noise,
            **self.observed,
            **file_digest(policy),
        }
        observed = "".join(f" {name}={value:g}" for name, value in self.observed.items())
        return Job("play", f"{self.family} B={budget} noise={noise:g}{observed} {policy}", settings, seconds)

    def bound(self, budget: int) -> Job:
        """The job of computing the fluid bound at every step."""
        settings = {"family": self.family, "sizes": self.sizes(budget), "horizon": self.horizon}
        return Job("bound", f"{self.family} B={budget} fluid bound", settings, 0.02 * self.instances)

    def sizes(self, budget: int) -> dict[str, int]:
        """The settings of the family's instances."""
        return {
            "instances": self.instances,
            "agents": self.agents,
            "budget": budget,
            "seed": self.seed,
            **self.settings_of_family,
        }

    def jobs(self, policies: tuple[str, ...]) -> list[Job]:
        """All policies at all budgets and noises, and the bounds."""
        simulated = [self.job(policy, *setting) for setting in self.settings() for policy in policies]
        return [*simulated, *(self.bound(budget) for budget in BUDGETS)]

    def name(self, budget: int, noise: float) -> str:
        """Budget and noise."""
        return f"B = {budget}, {describe_noise(noise)}"


def describe_noise(noise: float) -> str:
    """The noise of a setting.

    >>> describe_noise(0.1), describe_noise(0.0)
    ('noise variance 0.1', 'noiseless')
    """
    return f"noise variance {noise:g}" if noise else "noiseless"


def two_state_setup(size: Size) -> Setup:
    """The paper's synthetic instances."""
    setup = _make_setup(size, "two-state", "two-state-v1", 1.0, size.pick(50, 7), size.pick(13, 1))
    return replace(setup, fewer_runs={"rma2b": 8, "thompson-whittle": 4})


def ten_state_setup(size: Size) -> Setup:
    """The same with ten states."""
    setup = _make_setup(size, "ten-state", "many-state-v1", 0.1, size.pick(50, 5), size.pick(13, 1))
    return replace(setup, states=10, fewer_runs={"thompson-whittle": 1, "rma2b": 4, "ucwhittle": 4})


def wireless_setup(size: Size) -> Setup:
    """The satellite channels; each instance draws its own assignment of channels to agents, and has one run."""
    return _make_setup(size, "wireless", "wireless-v1", 0.1, size.pick(100, 6), 1)


def _make_setup(size: Size, name: str, family: str, noise: float, instances: int, runs: int) -> Setup:
    """A setup, with the family and the noise that the reading has for it instead, if any."""
    reading = size.reading
    family, noise = reading.families.get(name, family), reading.noise.get(name, noise)
    return Setup(family, instances, runs, noise, size.seed, reading=reading)


def family_setups(size: Size) -> dict[str, Setup]:
    """The three families of the paper."""
    return {"two-state": two_state_setup(size), "ten-state": ten_state_setup(size), "wireless": wireless_setup(size)}


class Scoreboard:
    """The curves of all policies in a setup."""

    def __init__(self, setup: Setup, results: Results) -> None:
        self.setup = setup
        self.results = results
        self.curves: dict[tuple[str, int, float], Curve] = {}

    def curve(self, policy: str, budget: int, noise: float) -> Curve:
        """The curve of a policy."""
        key = policy, budget, noise
        if key not in self.curves:
            self.curves[key] = self._curve(self.setup.job(*key))
        return self.curves[key]

    def bound(self, budget: int) -> Floats:
        """The fluid bound on the running mean, [G], mean over instances."""
        curve = self._curve(self.setup.bound(budget))
        return np.asarray(curve.running_mean().mean(axis=0))

    def _curve(self, job: Job) -> Curve:
        return read_curve(self.results[job])

    def lead(self, ahead: str, behind: str, budget: int, noise: float, step: int = HORIZON) -> Band:
        """How far one policy's running mean is above another's, as a share of the random-to-Whittle gap."""
        one, two, floor, ceiling = (self.curve(policy, budget, noise) for policy in (ahead, behind, FLOOR, CEILING))
        return share(one, two, floor, ceiling, step)

    def gap_closed(self, policy: str, budget: int, noise: float, step: int = HORIZON) -> Band:
        """The share of the random-to-Whittle gap that the running mean has closed."""
        return self.lead(policy, FLOOR, budget, noise, step)

    def gap_curve(self, policy: str, budget: int, noise: float, places: Sequence[int]) -> Band:
        """The share of the random-to-Whittle gap that the running mean has closed by each of some recorded steps."""
        one, floor, ceiling = (
            self.curve(each, budget, noise).running_mean()[:, places] for each in (policy, FLOOR, CEILING)
        )
        return ratio(one - floor, ceiling - floor)

    def reached(self, policy: str, ceiling: str, budget: int, noise: float = 0.0, step: int | None = None) -> Band:
        """The share of the way from random to a ceiling that a policy goes in the last tenth of the steps up to `step`."""
        last = step or self.setup.horizon
        late, floor, top = (
            self.curve(each, budget, noise).between(last - last // 10, last) for each in (policy, FLOOR, ceiling)
        )
        return ratio(late - floor, top - floor)

    def reward(self, policy: str, budget: int, noise: float, step: int = HORIZON) -> Band:
        """The running mean itself, in reward per step over all agents."""
        return band(self.curve(policy, budget, noise).mean(step))


EARLY = 100
FIRST_SHOWN_STEP = 20  # of shares of the gap, which mean little before
OTHER_STEPS = (500, 200, 100, 50, 20)
SHARE = "share of the gap from random to the Whittle oracle, in running mean reward"


class Lead(NamedTuple):
    """The lead of one policy over another at every budget, by some step."""

    ahead: str
    behind: str
    step: int = HORIZON
    noise: str = ""  # "noiseless" or "noisy", both if empty
    nearby: Sequence[int] = OTHER_STEPS  # other steps to look at if the claim fails

    def measure(self, board: Scoreboard) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """The leads at the step, and those at nearby steps; an early step has none."""
        others = self.nearby if self.step == HORIZON else ()
        return self.at(board, self.step), tuple(part for step in others for part in self.at(board, step))

    def at(self, board: Scoreboard, step: int) -> tuple[Part, ...]:
        """The leads at a step."""
        return tuple(
            measured(f"{board.setup.name(budget, noise)}, t = {step}", board.lead(*self[:2], budget, noise, step))
            for budget, noise in board.setup.settings()
            if self.noise in ("", "noisy" if noise else "noiseless")
        )


def compare_with_bound(board: Scoreboard, runs: int | None = None) -> list[Part]:
    """The Whittle oracle less the fluid bound at every budget; `runs` are those of the oracle, if not the setup's."""
    parts = []
    for budget in BUDGETS:
        jobs = board.setup.job(CEILING, budget, 0.0, runs), board.setup.bound(budget)
        oracle, bound = (read_curve(board.results[job]).mean(board.setup.horizon) for job in jobs)
        parts.append(measured(f"B = {budget}", band(oracle - bound)))
    return parts


def standings(board: Scoreboard, policies: tuple[str, ...]) -> Table:
    """Reward and gap closed of every policy in every setting."""
    settings = list(board.setup.settings())
    heads = ("policy", *(board.setup.name(*setting) for setting in settings))
    rows = tuple((policy, *(_cell(board, policy, *setting) for setting in settings)) for policy in policies)
    bounds = tuple(f"{board.bound(budget)[-1]:.3f}" for budget, _ in settings)
    return Table(
        "Reward per step after 1000 steps, and the gap closed",
        heads,
        (*rows, ("fluid bound", *bounds)),
        "Mean reward per step, summed over agents, ± half the width of its 95% interval over instances; then the share of the "
        "gap from random to the Whittle oracle that is closed after 100 and after 1000 steps.",
    )


def _cell(board: Scoreboard, policy: str, budget: int, noise: float) -> str:
    reward = board.reward(policy, budget, noise)
    early, late = (board.gap_closed(policy, budget, noise, step) for step in (EARLY, HORIZON))
    return f"{with_reach(reward)}; {early.mean:.2f}, {late.mean:.2f}"


def with_reach(interval: Band, decimals: int = 3) -> str:
    """A mean ± half the width of its interval.

    >>> with_reach(Band(*np.array([5.0, 1.0, 3.0, 7.0])), 1)
    '5.0 ± 2.0'
    """
    return f"{interval.mean:.{decimals}f} ± {interval.high - interval.mean:.{decimals}f}"


def draw_scoreboard(board: Scoreboard, policies: tuple[str, ...], title: str, closed: bool = False) -> Figure:
    """The running means of all policies in all settings, with their 95% bands over instances, and the fluid bound.

    With `closed` the shares of the gap from random to the Whittle oracle that the running means have closed.
    """
    draw = _gap_lines if closed else _lines
    lines = {setting: draw(board, policies, *setting) for setting in board.setup.settings()}
    panels = {
        board.setup.name(budget, noise): (
            each,
            scale_panels(other for (same, _), other in lines.items() if same == budget),
        )
        for (budget, noise), each in lines.items()
    }
    labels = ("step", "share of the gap closed so far" if closed else "mean reward per step so far, all agents")
    if board.setup.reading.title:
        title = f"{title}, {board.setup.reading.title}"
    caption = _describe_setup(board.setup, policies)
    if not closed:
        caption += " No policy can expect more than the fluid bound."
    return draw_panels(panels, len(BUDGETS), labels, title, caption)


def _gap_lines(board: Scoreboard, policies: tuple[str, ...], budget: int, noise: float) -> list[Line]:
    looks, lines = choose_looks(policies), []
    floor = board.curve(FLOOR, budget, noise)
    kept = [place for place in _spaced(floor.steps) if floor.steps[place] >= FIRST_SHOWN_STEP]
    for policy in policies:
        closed = board.gap_curve(policy, budget, noise, kept)
        lines.append(Line.of(policy, floor.steps[kept], closed, *looks[policy]))
    return lines


def _lines(board: Scoreboard, policies: tuple[str, ...], budget: int, noise: float) -> list[Line]:
    looks, lines = choose_looks(policies), []
    for policy in policies:
        curve = board.curve(policy, budget, noise)
        kept = _spaced(curve.steps)
        label = "egt (default)" if policy == "egt" and looks[policy] != LOOKS[policy] else policy
        lines.append(Line.of(label, curve.steps[kept], band(curve.running_mean()[:, kept]), *looks[policy]))
    bound = board.bound(budget)[kept]
    return [*lines, Line("fluid bound", curve.steps[kept], bound, bound, bound, BOUND, LONG_DASHES)]


def _spaced(steps: Ints) -> list[int]:
    """Indices of steps far enough apart to be distinguished in a panel, and of the last."""
    kept = [0]
    for place, step in enumerate(steps):
        if step - steps[kept[-1]] >= steps[-1] / 100:
            kept.append(place)
    return kept if kept[-1] == steps.size - 1 else [*kept, steps.size - 1]


def _describe_setup(setup: Setup, policies: tuple[str, ...]) -> str:
    """Where the numbers of a figure come from, in a line."""
    slow = {name: setup.fewer_runs[name] for name in policies if setup.fewer_runs.get(name, setup.runs) < setup.runs}
    fewer = [f"{name} {show_count(runs, 'run')}" for name, runs in slow.items()]
    runs = f"{show_count(setup.instances, 'instance')} × {show_count(setup.runs, 'run')}"
    return (
        f"{setup.family}, {runs}{''.join(f' ({each})' for each in fewer)}, seed {setup.seed}, restive {__version__}. "
        "Bands are 95% intervals of the mean over instances."
    )
