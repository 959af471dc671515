"""Calibration of the benefits that are shown: does the 95% interval hold the truth in 95 of 100 cases?

The truth of an agent in a state is act(s) − wait(s) under the optimal values of its TRUE model, at the price and discount of
the learner. For each scenario and round the table has, over all agents in all states whose benefit is stated:

    people    the share of intervals benefit ± 1.96 errors that hold the truth
    now       the same for the agents in their current states
    means     the share of intervals of the mean of a state over all agents that hold its truth
    rmse/sd   the root mean squared error over the standard deviation of the truth
    known     the share of agents and states whose benefit is stated

The agents of an instance share what is uncertain, so its intervals hold the truth or fail together: shares have 95%
intervals over instances, and are judged by them as the claims are (`restive.paper.claims`).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from restive.benchmark.scenarios import SCENARIOS, Scenario
from restive.errors import InputError, did_you_mean
from restive.formats import finite_or_none
from restive.paper.claims import FAILS, HOLDS, UNDECIDED, Part, Range, render_claims
from restive.paper.jobs import Size, describe_run
from restive.parallel import available_processors
from restive.policies.lagrange import Lagrange
from restive.problems import make_problems
from restive.report.tables import Table
from restive.simulation import Simulation
from restive.stats import ratio
from restive.types import Bools, Floats
from restive.world import World

# Families whose dynamics change, so that there is no one truth.
DRIFTING = ("change-v1", "slow-drift-v1")
ROUNDS = (10, 30, 100, 300)
NORMAL_95 = 1.96
INSTANCES, QUICK_INSTANCES = 10, 3
# What was wanted before anything was measured.
WANTED: Mapping[str, Range] = {"people": Range(0.93, 0.97), "means": Range(0.93, 0.97), "rmse/sd": Range(0.0, 0.9)}
MARKS = {HOLDS: "", UNDECIDED: " ?", FAILS: " ✗"}


class Calibration(NamedTuple):
    """One row of the table; parts are numbers with their 95% intervals over instances."""

    scenario: str
    round: int
    people: Part
    now: Part
    means: Part
    relative_error: Part
    known: float

    def judged(self) -> dict[str, str]:
        """The verdict on each number that was wanted in some range, by the head of its column."""
        return {head: part.judge(WANTED[head]) for head, part in self.parts().items()}

    def parts(self) -> dict[str, Part]:
        """The numbers that were wanted in some range, by the head of their column."""
        return dict(zip(WANTED, (self.people, self.means, self.relative_error), strict=True))


def find_true_benefits(transition: Floats, reward: Floats, price: Floats | float, discount: float) -> Floats:
    """act(s) − wait(s) of each agent, [N, S], under the optimal values of its model, by value iteration.

    transition: [N, A, S, S]; reward: [N, S]; price: of acting on each agent, [N], or on any
    """
    value, price = np.zeros(reward.shape), np.asarray(price)[..., None]
    while True:
        wait, act = np.moveaxis(np.einsum("nast,nt->nas", transition, value), 1, 0)
        better = reward + discount * np.maximum(wait, act - price)
        better -= better.mean(axis=-1, keepdims=True)
        if np.abs(better - value).max() <= 1e-12 * max(np.abs(better).max(), 1.0):
            benefit: Floats = act - wait
            return benefit
        value = better


def find_calibrated(names: Iterable[str]) -> list[Scenario]:
    """The scenarios of these names, or all; only those whose dynamics stay the same and whose states are observed."""
    known = {name: each for name, each in SCENARIOS.items() if _is_stationary(each)}
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise InputError(
                f"there is no calibration of a scenario {name!r}; there are {', '.join(known)}{did_you_mean(name, known)}"
            )
    return [each for name, each in known.items() if name in wanted or not wanted]


def _is_stationary(scenario: Scenario) -> bool:
    return scenario.family not in DRIFTING and not scenario.missing and not scenario.delay


def calibrate(scenario: Scenario, instances: int, seed: int, rounds: Iterable[int] = ROUNDS) -> list[Calibration]:
    """Simulate `lagrange` on a scenario and compare the benefits that it states with the truth."""
    settings = scenario.setup(Size(False, seed)).sizes(scenario.budget) | {"instances": instances}
    problems = make_problems(scenario.family, **settings)
    world, policy = World(problems, runs=1, seed=seed, noise=scenario.noise), Lagrange()
    simulation, found = Simulation(world, policy), []
    model = world.model
    for round_ in rounds:
        simulation.advance(round_ - simulation.step)
        stated = policy.benefits(simulation.belief, world.shape, np.arange(world.shape.agents))
        prices = simulation.belief.price[:, None] * simulation.belief.cost
        rows = zip(model.transition[model.instance], model.reward[model.instance], prices, strict=True)
        truth = np.stack([find_true_benefits(*row, discount=policy.discount) for row in rows])
        here, known = simulation.state[..., None], np.isfinite(stated.benefit)
        within = np.abs(stated.benefit - truth) <= NORMAL_95 * stated.error
        mean_within = np.abs(stated.mean - truth.mean(axis=1)) <= NORMAL_95 * stated.mean_error
        parts = (
            _share("people", within, known),
            _share("now", *(np.take_along_axis(array, here, axis=2) for array in (within, known))),
            _share("means", mean_within, np.isfinite(stated.mean)),
            _relative_error(stated.benefit, truth, known),
        )
        found.append(Calibration(scenario.name, round_, *parts, float(known.mean())))
    return found


def calibrate_all(names: Iterable[str], size: Size, report: Callable[[str], None]) -> list[Calibration]:
    """The rows of the scenarios of these names, or of all, simulated in threads; `report` is told each that begins."""

    def run(scenario: Scenario) -> list[Calibration]:
        report(f"calibrating {scenario.name}")
        return calibrate(scenario, size.pick(INSTANCES, QUICK_INSTANCES), size.seed)

    with ThreadPoolExecutor(available_processors()) as pool:
        return [row for rows in pool.map(run, find_calibrated(names)) for row in rows]


def tabulate_calibration(rows: Iterable[Calibration]) -> Table:
    """The table of all scenarios and rounds."""
    heads = ("scenario", "round", "people", "now", "means", "rmse/sd", "known")
    lines = []
    for each in rows:
        marks = {head: MARKS[verdict] for head, verdict in each.judged().items()}
        shown = (
            _show(each.people) + marks["people"],
            _show(each.now),
            _show(each.means) + marks["means"],
            _show(each.relative_error) + marks["rmse/sd"],
            f"{each.known:.2f}",
        )
        lines.append((each.scenario, str(each.round), *shown))
    return Table(
        "Calibration of stated benefits",
        heads,
        tuple(lines),
        "Shares of 95% intervals that hold the truth: of people in all states, in their states now, of the means of "
        "states; root mean squared error over the standard deviation of the truth; share of benefits that are stated. "
        "In brackets: 95% intervals over instances. Wanted: people and means from 0.93 to 0.97, rmse/sd at most 0.9; "
        "✗: the whole interval is outside, ?: a part of it is.",
    )


def summarise_calibration(rows: Sequence[Calibration]) -> list[str]:
    """How many rows hold, for each number that was wanted, and the mean over all rows, a sentence each."""
    sentences = []
    for head, wanted in WANTED.items():
        verdicts = Counter(row.judged()[head] for row in rows)
        values = np.array([row.parts()[head].value for row in rows])
        inside = int(((values >= wanted.low) & (values <= wanted.high)).sum())
        sentences.append(
            f"{head}, wanted from {wanted.low:g} to {wanted.high:g}: {inside} of {len(rows)} rows. With their intervals "
            f"{verdicts[HOLDS]} hold, {verdicts[UNDECIDED]} are undecided and {verdicts[FAILS]} fail. Mean over rows "
            f"{np.nanmean(values):.3f}, median {np.nanmedian(values):.3f}."
        )
    return sentences


def render_calibration(rows: Sequence[Calibration], size: Size) -> str:
    """A page in Markdown: what holds, and the table."""
    table = tabulate_calibration(rows)
    return render_claims(
        "calibration.md.j2",
        describe_run(size),
        title=table.title,
        instances=size.pick(INSTANCES, QUICK_INSTANCES),
        summary=summarise_calibration(rows),
        table=table,
    )


def as_json(row: Calibration) -> dict[str, str | int | float | dict[str, float | None] | None]:
    """A row as plain data; what is not defined is null."""
    parts = {name: value.numbers() for name, value in row._asdict().items() if isinstance(value, Part)}
    verdicts = {f"{head}_verdict".replace("/", "_"): verdict for head, verdict in row.judged().items()}
    return {"scenario": row.scenario, "round": row.round, **parts, "known": finite_or_none(row.known), **verdicts}


def _share(setting: str, within: Bools, known: Bools) -> Part:
    """The share of intervals that hold the truth, over instances, the first axis.

    Its interval is that over instances, but not narrower than if all intervals were independent (Wilson 1927): if all of
    a few hold the truth, the next one may fail.
    """
    axes = tuple(range(1, known.ndim))
    found = ratio((within & known).sum(axis=axes).astype(np.float64), known.sum(axis=axes).astype(np.float64))
    share, number = float(found.mean), int(known.sum())
    if number == 0:
        return Part(setting, share, np.nan, np.nan)
    weight = NORMAL_95**2 / number
    middle = (share + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * share * (1 - share) + weight**2 / 4) / (1 + weight)
    low, high = min(float(found.low), middle - reach), max(float(found.high), middle + reach)
    return Part(setting, share, max(low, 0.0), min(high, 1.0))


def _relative_error(benefit: Floats, truth: Floats, known: Bools) -> Part:
    """The root mean squared error over the standard deviation of the truth."""
    squares = np.where(known, (benefit - truth) ** 2, 0.0).sum(axis=(1, 2))
    spread = np.where(known, (truth - truth[known].mean()) ** 2, 0.0).sum(axis=(1, 2)) if known.any() else squares
    found = ratio(squares, spread)
    return Part("rmse/sd", *(math.sqrt(max(float(part), 0.0)) for part in (found.mean, found.low, found.high)))


def _show(part: Part) -> str:
    if np.isnan(part.value):
        return "–"
    return f"{part.value:.2f} [{part.low:.2f}, {part.high:.2f}]"
