"""Acceptance checks of `restive evaluate`: coverage and bias against simulated truth, and refusals."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from restive.logs.acceptance import Check, Result
from restive.logs.evaluate import Evaluation, evaluate
from restive.logs.generate import generate_history
from restive.problem import Problem
from restive.types import Floats, Ints

SEED = 0
TRUTH_PEOPLE, QUICK_TRUTH_PEOPLE = 300_000, 30_000
BASES = {
    2: np.array([[0.75, 0.25], [0.3, 0.7]]),
    3: np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6]]),
}


class Setting(NamedTuple):
    """Histories of people who differ, and a candidate that knows roughly who gains."""

    name: str
    people: int
    logged_rounds: int
    rounds: int
    rule: tuple[float, ...]  # [S] the logged probability of acting in each state
    known: bool = True  # whether the history has the probabilities


class World(NamedTuple):
    """People, and what the candidate believes that acting on them gains."""

    problem: Problem
    gain: Floats  # [N, S]


def draw_world(setting: Setting, people: int, generator: np.random.Generator) -> World:
    """People with rows about a base, gains that differ and may be negative, and beliefs with an error."""
    states = len(setting.rule)
    wait = generator.standard_gamma(8 * np.broadcast_to(BASES[states], (people, states, states))) + 1e-9
    wait /= wait.sum(axis=-1, keepdims=True)
    reward = np.arange(states) / (states - 1)
    act = wait * np.exp(generator.normal(0.8, 0.7, (people, 1, 1)) * reward)
    act /= act.sum(axis=-1, keepdims=True)
    gain = (act - wait) @ reward + generator.normal(0, 0.03, (people, states))
    return World(Problem(np.stack([wait, act], axis=1), reward, budget=0), gain)


def true_values(setting: Setting, people: int, seed: int) -> tuple[float, float]:
    """The mean reward for each person and round under the candidate and as logged, from a large population."""
    generator = np.random.default_rng([seed, 1])
    world = draw_world(setting, people, generator)
    rule = np.array(setting.rule)
    history = generate_history(world.problem, setting.logged_rounds, seed, rule)
    state = history.state.reshape(people, -1)
    totals, budget = [], history.action.mean()
    for first in range(setting.logged_rounds % setting.rounds, setting.logged_rounds, setting.rounds):
        totals.append(_play(world, state[:, first], int(budget * people), setting.rounds, generator))
    used = history.reward.reshape(people, -1)[:, setting.logged_rounds % setting.rounds :]
    return float(np.mean(totals)), float(used.mean())


def _play(world: World, state: Ints, budget: int, rounds: int, generator: np.random.Generator) -> float:
    everyone, total = np.arange(state.size), 0.0
    cumulative = world.problem.transition.cumsum(axis=-1)
    for _ in range(rounds):
        action = np.zeros(state.size, np.int64)
        action[np.argpartition(-world.gain[everyone, state], budget)[:budget]] = 1
        rows = cumulative[everyone, action, state]
        state = np.minimum((generator.random((state.size, 1)) >= rows).sum(axis=-1), rows.shape[1] - 1)
        total += float(world.problem.reward[everyone, state].mean())
    return total / rounds


def repeat(setting: Setting, repetitions: int, seed: int) -> list[Evaluation]:
    """Evaluations of histories of new people each time."""
    found = []
    for number in range(repetitions):
        generator = np.random.default_rng([seed, 2, number])
        world = draw_world(setting, setting.people, generator)
        history = generate_history(
            world.problem, setting.logged_rounds, int(generator.integers(2**31)), np.array(setting.rule), setting.known
        )
        scores = world.gain[history.agent, history.state]
        found.append(evaluate(history, scores, setting.rounds, resamples=100, seed=number, threads=1))
    return found


ONE_ROUND = (
    Setting("at random, .3", 300, 10, 1, (0.3, 0.3)),
    Setting("by state", 300, 10, 1, (0.2, 0.4, 0.3)),
    Setting("by state, probabilities estimated", 300, 10, 1, (0.2, 0.5), known=False),
)
FEW_ROUNDS = (
    Setting("2 rounds, by state", 500, 10, 2, (0.2, 0.4)),
    Setting("3 rounds", 1000, 9, 3, (0.3, 0.3)),
    Setting("5 rounds, three states", 1000, 10, 5, (0.15, 0.15, 0.15)),
)
MANY_ROUNDS = (
    Setting("20 rounds", 500, 20, 20, (0.2, 0.2)),
    Setting("20 rounds, three states, by state", 500, 20, 20, (0.3, 0.2, 0.1)),
)


def measure(setting: Setting, repetitions: int, quick: bool, low: float, high: float, max_bias: float) -> list[Result]:
    """Coverage of the paired difference, and its bias as a share of the true difference."""
    value, logged = true_values(setting, QUICK_TRUTH_PEOPLE if quick else TRUTH_PEOPLE, SEED)
    effect = value - logged
    answers = [each for each in repeat(setting, repetitions, SEED) if not each.refusal]
    means, lows, highs = (np.array([each.difference[place] for each in answers]) for place in (0, 2, 3))
    covered = float(((lows <= effect) & (effect <= highs)).mean())
    error = float(np.sqrt(0.95 * 0.05 / len(answers)))
    bias, bias_error = float(means.mean()) / effect - 1, float(means.std()) / abs(effect) / np.sqrt(len(answers))
    read = {name: sum(each.estimator == name for each in answers) for name in sorted({e.estimator for e in answers})}
    note = (
        f"{len(answers)} of {repetitions} histories answered ({', '.join(f'{n} {many}' for n, many in read.items())})"
    )
    return [
        Result(
            f"{setting.name}: coverage of the difference",
            f"{low:.2f}–{high:.2f}" if high < 1 else f"≥ {low:.2f}",
            f"{covered:.3f} ± {error:.3f}",
            low - 2 * error * quick <= covered <= high + 2 * error * quick,
            note,
        ),
        Result(
            f"{setting.name}: bias as a share of the effect",
            f"≤ {max_bias:.0%}",
            f"{bias:+.1%} ± {bias_error:.1%}",
            abs(bias) <= max_bias + 3 * bias_error * quick,
            f"effect {effect:.4f}",
        ),
    ]


def _check(settings: tuple[Setting, ...], low: float, high: float) -> Callable[[bool], list[Result]]:
    """A check of some settings; the quick form is a tenth of the first."""

    def run(quick: bool) -> list[Result]:
        chosen, repetitions = (settings[:1], 40) if quick else (settings, 400)
        return [result for each in chosen for result in measure(each, repetitions, quick, low, high, 0.1)]

    return run


UNSUPPORTED = {
    "acting follows from the state": (Setting("", 200, 10, 1, (0.0, 1.0)), None),
    "the same, probabilities estimated": (Setting("", 200, 10, 1, (0.0, 1.0), known=False), None),
    "almost nobody was acted on": (Setting("", 200, 10, 1, (0.002, 0.002)), 60),
    "scores that change, 7 rounds": (Setting("", 300, 7, 7, (0.5, 0.5)), None),
}


def check_refusals(quick: bool) -> list[Result]:
    """Histories that cannot say anything about the candidate."""
    found = []
    for name, (setting, budget) in UNSUPPORTED.items():
        many = 5 if quick else 100
        refused = 0
        for number in range(many):
            generator = np.random.default_rng([SEED, 3, number])
            world = draw_world(setting, setting.people, generator)
            rule = np.array(setting.rule)
            history = generate_history(world.problem, setting.logged_rounds, number, rule, setting.known)
            scores = generator.normal(size=history.agent.size)
            refused += bool(evaluate(history, scores, setting.rounds, budget=budget, resamples=2).refusal)
        found.append(Result(f"refused: {name}", "100%", f"{refused / many:.0%}", refused == many, f"{many} histories"))
    return found


CHECKS = (
    Check("one round", _check(ONE_ROUND, 0.93, 0.97)),
    Check("up to five rounds", _check(FEW_ROUNDS, 0.92, 0.97)),
    Check("twenty rounds", _check(MANY_ROUNDS, 0.90, 1.0)),
    Check("refusals", check_refusals),
)
