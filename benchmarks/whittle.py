"""Whittle indices against markovianbandit-pkg (Gast, Gaujal and Khun 2023): `python -m benchmarks.whittle`.

Both compute the indices and test indexability, on the same random agents. The package takes one agent at a time; its
objects remember their answer, so each repeat gets new ones, and making them does not count.
"""

import io
from contextlib import redirect_stdout

import numpy as np

from benchmarks.timing import Row, best_of
from restive.solvers.whittle import Indices, whittle_indices
from restive.types import Floats

with np.errstate():  # the package makes numpy raise on invalid values, for everybody, when it is imported
    from markovianbandit import RestlessBandit


def draw_agents(agents: int, states: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    transition = rng.exponential(size=(agents, 2, states, states))
    return transition / transition.sum(axis=-1, keepdims=True), rng.random((agents, states))


def time_package(transition: Floats, reward: Floats, discount: float) -> tuple[float, Indices]:
    """The seconds it took, and what it found."""
    bandits = [RestlessBandit.from_P0_P1_R0_R1(*moves, pay, pay) for moves, pay in zip(transition, reward, strict=True)]
    with redirect_stdout(io.StringIO()):
        seconds = best_of(lambda: [bandit.compute_whittle_indices(discount=discount) for bandit in bandits], 1)
    indexable = np.array([bandit.is_indexable(discount) for bandit in bandits])
    return seconds, Indices(np.array([bandit.indices for bandit in bandits]), indexable)


def compare(name: str, agents: int, states: int, discount: float, repeats: int, wanted: str) -> Row:
    """One row, after a look whether both find the same."""
    transition, reward = draw_agents(agents, states)
    found, seconds = whittle_indices(transition, reward, discount), []
    for _ in range(repeats):
        theirs, known = time_package(transition, reward, discount)
        ours = best_of(lambda: whittle_indices(transition, reward, discount), 30)
        seconds.append((ours, theirs))
    np.testing.assert_array_equal(found.indexable, known.indexable)
    np.testing.assert_allclose(found.value[known.indexable], known.value[known.indexable], rtol=1e-7, atol=1e-10)
    ours, theirs = np.min(seconds, axis=0)
    return Row(f"Whittle indices, {name}", "markovianbandit-pkg", float(ours), float(theirs), wanted)


def rows() -> list[Row]:
    return [
        compare("10,000 two-state agents", 10_000, 2, 0.9, 3, "≥ 300"),
        compare("10,000 ten-state agents", 10_000, 10, 0.9, 2, "≥ 100"),
        compare("10,000 ten-state agents, average reward", 10_000, 10, 1.0, 2, "≥ 100"),
        compare("one 500-state agent", 1, 500, 0.9, 5, "≤ 2"),
    ]


def main() -> None:
    for row in rows():
        ratio = f"{row.theirs / row.ours:6.1f} times as fast, wanted {row.wanted}"
        print(f"{row.what:58} {1000 * row.ours:7.2f} ms   {row.against} {row.theirs:6.3f} s   {ratio}")


if __name__ == "__main__":
    main()
