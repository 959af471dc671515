"""Cases of the proof are distinguished and drawn, and the search finds where greedy only just does not lose."""

from itertools import product

import numpy as np
import pytest

from restive.errors import InputError
from restive.paper.tasks.worst_case import CASES, classify, draw_cases, search_margin
from restive.solvers import homogeneous_dp
from restive.solvers.homogeneous_dp import solve_counts
from restive.types import Floats


def two_states(up: Floats) -> Floats:
    return np.stack([1 - up, up], axis=-1)


def list_cases(transition: Floats) -> set[str]:
    """Every case of the proof that one instance belongs to, read off its conditions; on a border they are several."""
    (q001, q011), (q101, q111) = transition[..., 1]
    if q111 - q011 > q101 - q001:
        return {"mirror"}
    a, b, c, d = 1 - q101, 1 - q011, q011 - q001, q111 - q101
    oscillates = np.abs(np.linalg.eigvals([[a * c, (1 - a) * c], [b * d, (1 - b) * d]]).imag).max() > 1e-7
    conditions = {
        "1": q011 >= q001 and q111 <= q101 and q111 >= q011,
        "2a": q011 <= q001 and q111 <= q101 and q111 * q001 <= q101 * q011,
        "2b": q011 <= q001 and q111 <= q101 and q111 * q001 >= q101 * q011,
        "3": q111 >= q101 and q011 >= q001,
        "4-real": q111 <= q101 and q011 >= q001 and q011 >= q111 and not oscillates,
        "4-complex": q111 <= q101 and q011 >= q001 and q011 >= q111 and oscillates,
    }
    return {name for name, holds in conditions.items() if holds}


def test_case_is_one_whose_conditions_hold() -> None:
    random = np.random.default_rng(1)
    borders = np.array(list(product([0.0, 0.25, 0.5, 1.0], repeat=4))).reshape(-1, 2, 2)
    transition = two_states(np.concatenate([borders, random.uniform(size=(3000, 2, 2))]))
    named = [CASES[case] for case in classify(transition)]
    listed = [list_cases(each) for each in transition]
    assert all(name in several for name, several in zip(named, listed, strict=True))
    assert set(named) == set(CASES)
    assert any(len(several) > 1 for several in listed)


def test_cases_have_their_share_of_all_instances() -> None:
    case = classify(two_states(np.random.default_rng(2).uniform(size=(400_000, 2, 2))))
    share = dict(zip(CASES, np.bincount(case, minlength=len(CASES)) / case.size, strict=True))
    share["4"] = share.pop("4-real") + share.pop("4-complex")
    expected = {"mirror": 1 / 2, "1": 1 / 24, "2a": 5 / 48, "2b": 1 / 48, "3": 1 / 8, "4": 5 / 24}
    assert share == pytest.approx(expected, abs=0.004)


def test_mirror_is_the_rest_with_waiting_and_acting_renamed() -> None:
    transition, case = draw_cases(50, seed=3)
    mirror = CASES.index("mirror")
    np.testing.assert_array_equal(classify(transition[:, ::-1]) == mirror, case != mirror)
    for budget in (1, 2, 3):
        found = solve_counts(transition, [0, 1], agents=5, budget=budget, horizon=8)
        swapped = solve_counts(transition[:, ::-1], [0, 1], agents=5, budget=5 - budget, horizon=8)
        np.testing.assert_allclose(swapped.margin, found.margin, rtol=0, atol=1e-6)


def test_every_case_is_drawn_and_the_first_draws_stay() -> None:
    transition, case = draw_cases(40, seed=4)
    assert transition.shape == (40 * len(CASES), 2, 2, 2)
    np.testing.assert_array_equal(case, np.repeat(np.arange(len(CASES)), 40))
    np.testing.assert_array_equal(classify(transition), case)
    np.testing.assert_allclose(transition.sum(axis=-1), 1, rtol=0, atol=1e-15)
    more, cases = draw_cases(3000, seed=4)  # several blocks
    np.testing.assert_array_equal(classify(more), cases)
    for c in range(len(CASES)):
        np.testing.assert_array_equal(more[cases == c][:40], transition[case == c])
    assert len(np.unique(more, axis=0)) == len(more)
    assert not np.array_equal(draw_cases(40, seed=5).transition, transition)


# Over two steps the margin of two agents is min(1, 1 + wait − (up[0, 1] up[1, 0] − up[0, 0] up[1, 1])), as is tested
# beside `solve_counts`. In case 1 it is least at [[1/2, 1/2], [1, 1/2]]; in case 4 acting swaps the states there, the
# margin is 1 − up[0, 0], and eigenvalues are complex up to up[0, 0] = (3 − √5) / 2.
LEAST = {"mirror": 0, "1": 3 / 4, "2a": 0, "2b": 0, "3": 1, "4-real": 0, "4-complex": (5**0.5 - 1) / 2}


@pytest.mark.parametrize("case", CASES)
def test_search_comes_close_to_the_least_margin_of_two_agents_over_two_steps(case: str) -> None:
    found = search_margin(2, 1, horizon=2, starts=300, rounds=40, case=case)
    assert LEAST[case] - 1e-6 <= found.margin <= LEAST[case] + 2e-3
    assert CASES[int(classify(found.transition))] == case


@pytest.mark.parametrize(("agents", "budget"), [(2, 1), (6, 3), (9, 7)])
def test_search_finds_where_greedy_only_ties(agents: int, budget: int) -> None:
    starts = search_margin(agents, budget, horizon=12, starts=200, rounds=0, seed=1)
    found = search_margin(agents, budget, horizon=12, starts=200, rounds=40, seed=1)
    assert starts.margin > 0.005
    assert found.margin == pytest.approx(0, abs=1e-4)
    assert found.margin >= -1e-6
    assert solve_counts(found.transition[None], [0, 1], agents, budget, 12).margin[0] == found.margin


def test_search_without_rounds_returns_the_hardest_start() -> None:
    transition, case = draw_cases(100, seed=6)
    margin = solve_counts(transition[case == 2], [0, 1], agents=3, budget=1, horizon=5).margin
    found = search_margin(3, 1, horizon=5, starts=100, rounds=0, seed=6, case=CASES[2])
    assert found.margin == margin.min()
    np.testing.assert_array_equal(found.transition, transition[case == 2][margin.argmin()])


def test_search_depends_on_the_seed_and_not_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(threads: int, seed: int) -> tuple[float, bytes]:
        monkeypatch.setattr(homogeneous_dp, "available_processors", lambda: threads)
        margin, transition = search_margin(3, 1, horizon=5, starts=90, rounds=10, seed=seed)
        return margin, transition.tobytes()

    assert search(1, seed=8) == search(3, seed=8)
    assert search(1, seed=8) != search(1, seed=9)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match=r"budget is 2; it must be a whole number from 1 to 1"):
        search_margin(2, 2, horizon=5)
    with pytest.raises(InputError, match=r"agents is 1; it must be a whole number from 2 on"):
        search_margin(1, 0, horizon=5)
    with pytest.raises(InputError, match=r"case is '4'; it must be one of mirror, 1, 2a, .*, or None for any"):
        search_margin(2, 1, horizon=5, case="4")
    with pytest.raises(InputError, match=r"transition has the shape \(2, 3, 3\)"):
        classify(np.full((2, 3, 3), 1 / 3))


@pytest.mark.soak
@pytest.mark.parametrize("agents", [2, 3, 6, 12, 30])
def test_greedy_never_loses_in_any_case(agents: int) -> None:
    transition, _ = draw_cases(20_000 if agents < 30 else 2_000, seed=agents)
    for budget in {1, agents // 2, agents - 1}:
        found = solve_counts(transition, [0, 1], agents, budget, horizon=30)
        assert found.gap.max() <= 1e-9
        assert found.margin.min() >= -1e-6
