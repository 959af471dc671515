"""Calibration of the benefits that are shown: does the 95% interval hold the truth in 95 of 100 cases?

The truth of an agent in a state is act(s) − wait(s) under the optimal values of its TRUE model, at the price and discount of
the learner. For each scenario and round the table has, over all agents in all states whose benefit is stated:

    people    the share of intervals benefit ± 1.96 errors that hold the truth
    now       the same for the agents in their current states
    means     the share of intervals of the mean of a state over all agents that hold its truth
    rmse/sd   the root mean squared error over the standard deviation of the truth
    known     the share of agents and states whose benefit is stated
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from restive.benchmark.scenarios import SCENARIOS, Scenario
from restive.errors import InputError, did_you_mean
from restive.formats import finite_or_none
from restive.paper.jobs import Size
from restive.policies.lagrange import Lagrange
from restive.problems import make_problems
from restive.report.tables import Table
from restive.simulation import Simulation
from restive.types import Bools, Floats
from restive.world import World

# Families whose dynamics change, so that there is no one truth.
DRIFTING = ("change-v1", "slow-drift-v1")
ROUNDS = (10, 30, 100, 300)
NORMAL_95 = 1.96
INSTANCES, QUICK_INSTANCES = 10, 3


class Calibration(NamedTuple):
    """One row of the table."""

    scenario: str
    round: int
    people: float
    now: float
    means: float
    relative_error: float
    known: float


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
        known = np.isfinite(stated.benefit)
        within = np.abs(stated.benefit - truth) <= NORMAL_95 * stated.error
        here = simulation.state[..., None]
        now = np.take_along_axis(within, here, axis=2)[np.take_along_axis(known, here, axis=2)]
        mean_within = np.abs(stated.mean - truth.mean(axis=1)) <= NORMAL_95 * stated.mean_error
        error = _root_mean_square((stated.benefit - truth)[known])
        means = _share(mean_within[np.isfinite(stated.mean)])
        relative = error / truth[known].std() if known.any() else np.nan
        row = (_share(within[known]), _share(now), means, float(relative), float(known.mean()))
        found.append(Calibration(scenario.name, round_, *row))
    return found


def calibrate_all(names: Iterable[str], size: Size, report: Callable[[str], None]) -> list[Calibration]:
    """The rows of the scenarios of these names, or of all; `report` is told each scenario before it is simulated."""
    rows = []
    for each in find_calibrated(names):
        report(f"calibrating {each.name}")
        rows += calibrate(each, size.pick(INSTANCES, QUICK_INSTANCES), size.seed)
    return rows


def tabulate_calibration(rows: Iterable[Calibration]) -> Table:
    """The table of all scenarios and rounds."""
    heads = ("scenario", "round", "people", "now", "means", "rmse/sd", "known")
    lines = tuple((each.scenario, str(each.round), *(_show(value) for value in each[2:])) for each in rows)
    return Table(
        "Calibration of stated benefits",
        heads,
        lines,
        "Shares of 95% intervals that hold the truth: of people in all states, in their states now, of the means of "
        "states; root mean squared error over the standard deviation of the truth; share of benefits that are stated.",
    )


def as_json(row: Calibration) -> dict[str, str | int | float | None]:
    """A row as plain data; what is not defined is null."""
    return {name: finite_or_none(value) if isinstance(value, float) else value for name, value in row._asdict().items()}


def _share(values: Bools) -> float:
    return float(values.mean()) if values.size else float("nan")


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt((values**2).mean())) if values.size else float("nan")


def _show(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"
