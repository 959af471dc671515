"""Fits of a million rows, 50,000 people and 20 rounds with four states, in seconds."""

from dataclasses import replace

import numpy as np

from benchmarks.timing import Row, best_of
from restive.logs.fit import fit
from restive.logs.generate import draw_people, generate_history
from restive.logs.history import History
from restive.problem import Problem

PEOPLE, ROUNDS, STATES, TYPES, FEATURES = 50_000, 20, 4, 4, 10


def rows() -> list[Row]:
    generator = np.random.default_rng(1)
    alpha, value = 6 * generator.dirichlet(np.full(STATES, 2.0), (2, STATES)), np.arange(STATES) / (STATES - 1)
    gradual = generate_history(draw_people(alpha, value, PEOPLE, 1), ROUNDS, 1)
    types = generator.dirichlet(np.ones(STATES), (TYPES, 2, STATES))[generator.integers(TYPES, size=PEOPLE)]
    features = generator.normal(size=(PEOPLE, FEATURES))
    scores = np.einsum("nf,fast->nast", features, generator.normal(0, 0.2, (FEATURES, 2, STATES, STATES)))
    shifted = np.exp(np.log(alpha) + scores)
    shifted /= shifted.sum(axis=-1, keepdims=True)
    names = tuple(f"x{number}" for number in range(FEATURES))
    known = replace(generate_history(Problem(shifted, value, 1), ROUNDS, 1), features=features, feature_names=names)
    return [
        measure("people who differ gradually", gradual, "≤ 5 s"),
        measure("four types of people", generate_history(Problem(types, value, 1), ROUNDS, 1), "≤ 5 s"),
        measure("ten features", known, "≤ 20 s"),
    ]


def measure(what: str, history: History, wanted: str) -> Row:
    return Row(f"fit of 1,000,000 rows, {what}", "-", best_of(lambda: fit(history), 2), 0.0, wanted)
