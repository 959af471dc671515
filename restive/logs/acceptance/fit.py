"""Does the fit cover the truth: people whose rows are drawn from a known distribution, acted on by a known rule."""

from itertools import product

import numpy as np

from restive.logs.acceptance import Check, Result
from restive.logs.fit_report import interval
from restive.logs.generate import draw_people, generate_history
from restive.logs.row_prior import count_tails, sample_alpha
from restive.types import Bools, Floats

SEED = 0
PEOPLE, ROUNDS = (100, 1000), (8, 30)
RULES = {"at random": (0.3, 0.3, 0.3), "by state": (0.5, 0.2, 0.4)}
VALUE = np.array([0.0, 0.6, 1.0])
LEVEL = 0.95


def check_coverage(quick: bool, seed: int = SEED) -> list[Result]:
    """Coverage and bias of the mean rows and of the effect of acting in each state."""
    results = []
    for people, rounds, rule in product(PEOPLE, ROUNDS, RULES):
        if quick and (people, rounds) != (100, 8):
            continue
        histories = 60 if quick else 400
        rows, effects, bias = measure_coverage(people, rounds, RULES[rule], histories, seed)
        where = f"{people} people, {rounds} rounds, acting {rule}"
        least, most = (0.88, 1.0) if quick else (0.93, 0.97)
        wanted = f"{least:.2f}–{most:.2f}"
        for name, covered in (("mean rows", rows), ("effects", effects)):
            share = float(covered.mean())
            results.append(Result(f"coverage of {name}, {where}", wanted, f"{share:.3f}", least <= share <= most))
        limit = 0.3 if quick else 0.1
        worst = float(np.abs(bias).max())
        note = f"by state, ± {1 / np.sqrt(histories):.2f} by chance"
        results.append(Result(f"bias of effects, {where}", f"≤ {limit} se", f"{worst:.3f} se", worst <= limit, note))
    return results


def measure_coverage(
    people: int, rounds: int, rule: tuple[float, ...], histories: int, seed: int
) -> tuple[Bools, Bools, Floats]:
    """Whether intervals hold the true mean rows [H, A, S, S] and effects [H, S]; the mean bias of effects in se, [S]."""
    generator = np.random.default_rng([seed, people, rounds])
    states = VALUE.size
    mean = generator.dirichlet(np.full(states, 2.0), (histories, 2, states))
    weight = np.exp(generator.uniform(np.log(2), np.log(30), (histories, 2, states)))
    counts = np.empty((people, histories, 2, states, states))
    for number in range(histories):
        problem = draw_people(
            weight[number, ..., None] * mean[number], VALUE, people, seed=int(generator.integers(2**62))
        )
        history = generate_history(problem, rounds, int(generator.integers(2**62)), np.array(rule))
        counts[:, number] = history.counts
    alpha = sample_alpha(count_tails(counts), 200, generator)
    rows = alpha / alpha.sum(axis=-1, keepdims=True)
    effects, truth = (rows[:, :, 1] - rows[:, :, 0]) @ VALUE, (mean[:, 1] - mean[:, 0]) @ VALUE
    bias = ((effects.mean(axis=0) - truth) / effects.std(axis=0)).mean(axis=0)
    return _covers(rows, mean), _covers(effects, truth), bias


def _covers(draws: Floats, truth: Floats) -> Bools:
    low, high = interval(draws, LEVEL)
    return np.asarray((low <= truth) & (truth <= high))


CHECKS = (Check("coverage", check_coverage),)
