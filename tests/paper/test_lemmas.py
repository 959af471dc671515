"""The lemmas behind theorem 4.4, against simulations and sums of their own."""

import math

import numpy as np
import pytest
from examining import examine

from restive.paper.claims import FAILS, HOLDS
from restive.paper.lemmas import secured_visits
from restive.paper.tasks.concentration import concentration, excursions, howard_width
from restive.paper.tasks.decomposition import STEPS, expect_ahead


def verdicts(name: str) -> dict[str, str]:
    return {claim: found.verdict for claim, found in examine(name).items()}


def test_the_printed_concentration_lemma_fails_and_the_corrected_one_holds() -> None:
    assert verdicts("concentration") == {
        "concentration-as-printed": FAILS,
        "concentration-corrected": HOLDS,
        "concentration-in-the-proof": FAILS,
        "concentration-proof-with-larger-D": HOLDS,
    }


def test_the_printed_width_is_reached_as_often_as_in_a_plain_simulation() -> None:
    random, runs = np.random.default_rng(4), 40_000
    acts = random.random((runs, 100)) < 0.1
    noise = random.standard_normal((runs, 100))
    acted = acts.sum(axis=1)
    error = (noise * acts).sum(axis=1) / np.maximum(acted, 1) - (noise * ~acts).sum(axis=1) / (100 - acted)
    width = 1.7 * math.sqrt((math.log(math.log(200)) + 0.72 * math.log(10.4 / 0.05)) / 100)
    seen = np.mean(np.abs(error[acted > 0]) >= width)
    found = concentration(100, 0.1, [0.05])["printed"][0]
    assert found == pytest.approx(seen, abs=4 * math.sqrt(0.25 * 0.75 / runs))
    assert found == pytest.approx(0.24, abs=0.01)


def test_an_error_reaches_the_printed_width_at_some_visit_more_often_than_at_the_last() -> None:
    found = excursions(100, 0.1, 0.05, runs=2000, seed=1)
    assert found["printed"].mean() > concentration(100, 0.1, [0.05])["printed"][0]
    assert found["corrected"].mean() <= 0.05


def test_the_width_of_a_single_mean_holds_at_all_visits_together() -> None:
    means = np.cumsum(np.random.default_rng(5).standard_normal((5000, 300)), axis=1) / np.arange(1, 301)
    reached = np.abs(means) >= howard_width(np.arange(1.0, 301), 0.05)
    assert reached.any(axis=1).mean() <= 0.05


def test_the_proof_secures_two_logarithms_over_the_squared_gap() -> None:
    assert secured_visits(10**6) == pytest.approx(2 * math.log(10**6) / 0.09)
    assert secured_visits(10) == 2.5  # a quarter of the visits: all of them explore


def test_the_regret_decomposes_into_steps_and_not_as_printed() -> None:
    assert verdicts("decomposition") == {"regret-decomposes": HOLDS, "regret-decomposition-as-printed": HOLDS}


def test_the_regret_of_the_decomposition_is_that_of_a_walk_over_all_histories() -> None:
    transition, sets = np.random.default_rng(6).dirichlet((1, 1), size=(2, 2, 2)), ((1, 0), (0, 1))
    gamma, gains = 0.4, transition[:, 1, :, 1] - transition[:, 0, :, 1]

    def cost(state: tuple[int, int], chosen: tuple[int, int]) -> float:
        return float(sum(max(gamma - gains[n, state[n]], 0.0) * chosen[n] for n in range(2)))

    def chance(state: tuple[int, int], chosen: tuple[int, int], after: tuple[int, int]) -> float:
        return float(np.prod([transition[n, chosen[n], state[n], after[n]] for n in range(2)]))

    joint = [(0, 0), (0, 1), (1, 0), (1, 1)]
    costs = np.array([[cost(state, chosen) for state in joint] for chosen in sets])
    moves = np.array([[[chance(state, chosen, after) for after in joint] for state in joint] for chosen in sets])
    reference = np.full((2, 4), 0.5)
    ahead = expect_ahead(costs, moves, reference)

    def walk(step: int, state: tuple[int, int]) -> float:
        if step == STEPS:
            return 0.0
        return sum(
            0.5 * (cost(state, each) + sum(chance(state, each, after) * walk(step + 1, after) for after in joint))
            for each in sets
        )

    assert ahead[0] == pytest.approx([walk(0, state) for state in joint])
