"""The power of a trial that compares the mean rewards of a program and of a control group that is never acted on.

With a share q of the people in the program and v1, v0 the variances of a person's mean reward in the two groups, the
error of the difference is √((v1 / q + v0 / (1 − q)) / people), and the people needed in all are

    people = (z(level) + z(power))² · (v1 / q + v0 / (1 − q)) / lift²
"""

from dataclasses import replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from restive.contract import Shape
from restive.errors import InputError, check_number, check_whole
from restive.logs.model import FittedModel
from restive.logs.rollout import Informed, can_start_warm, find_policy
from restive.parallel import map_chunks
from restive.policies.base import Policy
from restive.policies.random import Random
from restive.problem import Problem
from restive.simulation import Simulation, fitting_runs
from restive.types import Floats, Ints
from restive.world import World

NORMAL = NormalDist()


class Trials(NamedTuple):
    """Simulated trials, R of them; the first `n_program` of their M people are in the program."""

    reward: Floats  # [R, M] the mean reward of each person and round
    acted: Ints  # [R, M] how often each person was acted on
    n_program: int

    @property
    def lift(self) -> Floats:
        """The difference in means of each trial, [R]."""
        return np.asarray(self.reward[:, : self.n_program].mean(axis=1) - self.reward[:, self.n_program :].mean(axis=1))

    @property
    def variances(self) -> tuple[Floats, Floats]:
        """The variances of a person's mean reward in the program and in the control group, [R] each."""
        program, control = self.reward[:, : self.n_program], self.reward[:, self.n_program :]
        return program.var(axis=1, ddof=1), control.var(axis=1, ddof=1)

    @property
    def error(self) -> Floats:
        """The standard error of each difference, [R]."""
        program, control = self.variances
        return np.asarray(np.sqrt(program / self.n_program + control / (self.reward.shape[1] - self.n_program)))


def show_people(number: float) -> str:
    """A number of people, rounded up.

    >>> show_people(784.2), show_people(float("inf"))
    ('785', 'any number of')
    """
    return f"{int(np.ceil(number)):,}" if np.isfinite(number) else "any number of"


def people_needed(
    lift: float, program: float, control: float, share: float = 0.5, power: float = 0.8, level: float = 0.95
) -> float:
    """The people needed in all to see a lift per person and round with that power; infinite if there is no lift.

    >>> round(people_needed(0.1, program=0.25, control=0.25))  # shares of 45% and 55%: 392 in each group
    785
    """
    if lift == 0:
        return float("inf")
    reach = NORMAL.inv_cdf(0.5 * (1 + level)) + NORMAL.inv_cdf(power)
    return reach**2 * (program / share + control / (1 - share)) / lift**2


def power_of(
    people: float, lift: float, program: float, control: float, share: float = 0.5, level: float = 0.95
) -> float:
    """The probability that a trial of so many people in all is significant, on either side.

    >>> round(power_of(785, 0.1, program=0.25, control=0.25), 3), round(power_of(785, 0.0, 0.25, 0.25), 3)
    (0.8, 0.05)
    """
    cutoff, error = NORMAL.inv_cdf(0.5 * (1 + level)), ((program / share + control / (1 - share)) / people) ** 0.5
    return NORMAL.cdf(lift / error - cutoff) + NORMAL.cdf(-lift / error - cutoff)


def simulate_trials(
    model: FittedModel,
    people: int,
    rounds: int,
    budget: int,
    share: float = 0.5,
    policy: str | Policy[Any] = "lagrange",
    draws: int = 100,
    seed: int = 0,
    threads: int | None = None,
    warm: bool = True,
) -> Trials:
    """Trials on draws of a model, one for each: people drawn at random, some of them in the program.

    Parameters
    ----------
    people
        How many take part; people of the model are taken more than once only if it has fewer, and then stand for others
        with the same moves.
    budget
        The actions in each round, all of them in the program.
    share
        The share of people in the program.
    policy
        What chooses among the people of the program: a name or a policy, as in a forecast.
    warm
        Whether a learner that can start from the history does.
    """
    people, draws = check_whole("people", people, 4), check_whole("draws", draws, 1)
    n_program = round(people * check_number("share", share, "it is a share between 0 and 1", 0, 1))
    if not 2 <= n_program <= people - 2:
        raise InputError(f"share is {share}; both groups need at least 2 of the {people} people.", location="share")
    chosen = find_policy(model, policy)
    reward, acted = np.empty((draws, people)), np.zeros((draws, people), np.int64)

    def work(first: int, last: int) -> None:
        program, control = [], []
        places = [_sample(len(model.counts), people, [seed, number, 2]) for number in range(first, last)]
        for number, taken in zip(range(first, last), places, strict=True):
            rows, value, start = (
                model.draw(number, seed, taken),
                model.draw_value(number, seed),
                model.last_state[taken],
            )
            program.append(Problem(rows[:n_program], value, budget, start[:n_program]))
            control.append(Problem(rows[n_program:], value, 0, start[n_program:]))
        mine = chosen
        if isinstance(chosen, Informed):
            mine = Informed(np.stack([chosen.indices[taken[:n_program]] for taken in places]))
        treated = World(program, 1, seed, horizon=rounds, first_instance=first)
        untouched = World(control, 1, seed, first_instance=draws + first)
        known = None
        if warm and can_start_warm(mine):
            known = [replace(model, counts=model.counts[taken[:n_program]]) for taken in places]
        started = Simulation(treated, mine, history=known)
        _record(started, rounds, reward[first:last, :n_program], acted[first:last, :n_program])
        _record(Simulation(untouched, Random()), rounds, reward[first:last, n_program:], acted[first:last, n_program:])

    chunk = fitting_runs(Shape(1, people, len(model.states), 0, None, np.ones(1)))
    map_chunks(work, draws, -(-draws // chunk), threads)
    return Trials(reward, acted, n_program)


def _sample(known: int, people: int, seed: list[int]) -> Ints:
    """The positions of the people that take part, in random order; everybody equally often as far as possible."""
    generator = np.random.default_rng(seed)
    rounds = [generator.permutation(known) for _ in range(-(-people // known))]
    return generator.permutation(np.concatenate(rounds)[:people])


def _record(simulation: Simulation, rounds: int, reward: Floats, acted: Ints) -> None:
    """Fill the mean reward of each person, and how often they were acted on, [R, M] each."""
    reward[:] = 0.0
    for _ in range(rounds):
        _, action, outcome = simulation.take_step()
        reward += outcome.reward / rounds
        acted += action
