"""Lemma 4.3: counts against trying every policy, and claims that turn with their numbers."""

from itertools import combinations, product

import numpy as np
import pytest

from restive.files import Columns
from restive.paper.claims import FAILS, HOLDS
from restive.paper.jobs import Results, Size, run_job
from restive.paper.reproduction import EXPERIMENTS
from restive.paper.tasks import good_agents as task
from restive.paper.tasks.good_agents import (
    check_lemma,
    draw_instances,
    free_starts,
    has_enough,
    list_thresholds,
)
from restive.paper.theorems import SIZES, lemma_job
from restive.solvers.myopic import benefit
from restive.types import Bools, Floats

LEMMA = EXPERIMENTS["lemma-4.3"]
QUICK = Size(quick=True)


@pytest.fixture(scope="module")
def made() -> dict[str, Columns]:
    return {each.digest(): run_job(each.task, each.settings).columns for each in LEMMA.list_jobs(QUICK)}


def verdicts(made: dict[str, Columns]) -> dict[str, str]:
    found = LEMMA.examine(QUICK, Results(made))
    return {claim.name.removeprefix("lemma-4.3-"): claim.verdict for claim in found.claims}


def can_be_free(move: Floats, gain: Floats, bar: float, budget: int, state: tuple[int, ...], steps: int) -> bool:
    """Whether some policy acts on good agents only for so many steps, by trying all of them."""
    if steps == 0:
        return True
    agents, states = gain.shape
    for chosen in combinations(range(agents), budget):
        if any(gain[n, state[n]] < bar for n in chosen):
            continue
        reached = product(
            *([s for s in range(states) if move[n, int(n in chosen), state[n], s] > 0] for n in range(agents))
        )
        if all(can_be_free(move, gain, bar, budget, after, steps - 1) for after in reached):
            return True
    return False


def try_all(move: Floats, gain: Floats, bars: Floats, budget: int, steps: int) -> Bools:
    agents, states = gain.shape
    starts = list(product(range(states), repeat=agents))
    return np.array([[can_be_free(move, gain, bar, budget, start, steps) for bar in bars] for start in starts])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("agents", "states", "budget"), [(1, 2, 1), (2, 2, 1), (2, 2, 2), (2, 3, 1), (3, 2, 2)])
def test_free_starts_are_those_found_by_trying_every_policy(
    agents: int, states: int, budget: int, sparse: bool
) -> None:
    transition, reward = draw_instances(agents, states, 6, 1, sparse)
    gain = benefit(transition, reward)
    bars = list_thresholds(gain)
    for steps, free in enumerate(free_starts(transition, gain, bars, budget), start=1):
        if steps <= 3:
            for i in range(6):
                np.testing.assert_array_equal(free[i], try_all(transition[i], gain[i], bars[i], budget, steps))


def test_counts_are_those_of_every_case_one_by_one() -> None:
    transition, reward = draw_instances(2, 2, 12, 3, sparse=True)
    gain = benefit(transition, reward)
    bars = list_thresholds(gain)
    columns = check_lemma(2, 2, 12, 3, sparse=True)
    for budget in (1, 2):
        expected = dict.fromkeys(("free_once", "free_twice", "free_ever", "enough", "instances_free_ever"), 0)
        for i in range(12):
            least = np.sort(gain[i].min(axis=1))[-budget]
            few = bars[i] > least
            once, twice, ever = (try_all(transition[i], gain[i], bars[i], budget, steps) & few for steps in (1, 2, 4))
            expected["free_once"] += once.sum()
            expected["free_twice"] += twice.sum()
            expected["free_ever"] += ever.sum()  # with four joint states, what lasts four steps lasts for ever
            expected["instances_free_ever"] += ever.any()
            expected["enough"] += 4 * (~few).sum()
        assert {name: columns[name][budget - 1] for name in expected} == expected
    assert columns["cases"].tolist() == [12 * 4 * 8] * 2
    assert columns["free_ever"].min() > 0


def test_positive_transitions_leave_no_counterexample_after_two_steps() -> None:
    transition, reward = draw_instances(3, 2, 200, 0, sparse=False)
    gain = benefit(transition, reward)
    bars = list_thresholds(gain)
    once, twice, thrice = free_starts(transition, gain, bars, budget=2)
    np.testing.assert_array_equal(twice, thrice)
    np.testing.assert_array_equal(twice, np.broadcast_to(has_enough(gain, bars, 2)[:, None], twice.shape))
    assert (once & ~twice).any()


def test_a_cost_at_the_end_of_a_long_way_is_found() -> None:
    way = np.eye(6, k=1)
    way[5, 5] = 1.0  # every step leads on by one, and only the last state is bad
    gain = np.array([[[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]]])
    found = list(free_starts(np.array([[[way, way]]]), gain, np.array([[1.0]]), budget=1))
    assert [int(free.sum()) for free in found] == [5, 4, 3, 2, 1, 0, 0]


def test_a_small_chance_of_a_small_cost_does_not_vanish() -> None:
    # Benefits of 0: a threshold one float above them would cost 5e-324, of which no share differs from nothing.
    row = np.array([0.9, 0.1])
    transition = np.array([[[[row, row], [row, row]]]])
    gain = np.array([[[1.0, 0.0]]])
    bars = list_thresholds(gain)
    assert bars[0, 3] > 0
    once, *_, ever = free_starts(transition, gain, bars[:, 3:], budget=1)
    assert once[0, :, 0].tolist() == [True, False]
    assert not ever.any()


def test_every_threshold_is_like_one_of_those_listed() -> None:
    transition, reward = draw_instances(3, 3, 5, 2, sparse=True)
    gain = benefit(transition, reward)
    bars = list_thresholds(gain)
    for i in range(5):
        listed = {(gain[i] >= bar).tobytes() for bar in bars[i]}
        others = np.random.default_rng(0).uniform(gain[i].min() - 0.1, gain[i].max() + 0.1, size=200)
        assert {(gain[i] >= bar).tobytes() for bar in others} <= listed


@pytest.mark.parametrize("sparse", [False, True])
def test_instances_are_what_they_should_be_and_stay_the_same_if_more_are_drawn(sparse: bool) -> None:
    transition, reward = draw_instances(3, 3, 40, 7, sparse)
    np.testing.assert_allclose(transition.sum(axis=-1), 1.0, rtol=1e-14)
    assert transition.shape == (40, 3, 2, 3, 3)
    assert (transition > 0).all() != sparse
    if sparse:  # of three chances two may be gone, each with probability 1/2
        assert (transition == 0).mean() == pytest.approx(1 / 3, abs=0.05)
    assert reward.min() >= 0
    assert reward.max() < 1
    alike = (transition == transition[:, :1]).all(axis=(1, 2, 3, 4))
    assert alike.nonzero()[0].tolist() == [0, 10, 20, 30]
    for few, more in zip(draw_instances(3, 3, 11, 7, sparse), (transition, reward), strict=True):
        np.testing.assert_array_equal(few, more[:11])
    assert not np.isin(draw_instances(2, 3, 40, 7, sparse)[1], reward).any()


def test_a_wrong_threshold_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_lemma(2, 2, 50, 0, sparse=False)["beside_threshold"].tolist() == [0, 0]
    monkeypatch.setattr(task, "largest_threshold", lambda gain, budget: float(np.sort(gain.max(axis=-1))[-budget]))
    assert check_lemma(2, 2, 50, 0, sparse=False)["beside_threshold"].min() > 0


def test_the_lemma_holds_and_needs_its_assumptions(made: dict[str, Columns]) -> None:
    found = LEMMA.examine(QUICK, Results(made))
    assert set(verdicts(made).values()) == {HOLDS}
    assert "of 3,900 instances" in found.claims[0].remark
    positive, sparse = found.tables
    assert len(positive.rows) == len(sparse.rows) == sum(agents for agents, _ in SIZES)
    assert found.figures == {}


@pytest.mark.parametrize(
    ("column", "sparse", "value", "claim"),
    [
        ("free_twice", False, 1, "enough-good-agents"),
        ("enough_but_costly", False, 1, "never-forced"),
        ("beside_threshold", False, 1, "largest-threshold"),
        ("free_once", False, 0, "needs-two-steps"),
        ("free_ever", True, 0, "needs-positive-transitions"),
    ],
)
def test_a_single_wrong_count_turns_its_claim(
    made: dict[str, Columns], column: str, sparse: bool, value: int, claim: str
) -> None:
    turned = lemma_job(QUICK, 3, 2, sparse).digest()
    counts = np.zeros(3, dtype=np.int64)
    counts[1] = value
    changed = verdicts(made | {turned: made[turned] | {column: counts}})
    assert [name for name, verdict in changed.items() if verdict == FAILS] == [claim]


def test_the_quick_size_has_a_tenth_of_the_instances() -> None:
    full, quick = (LEMMA.list_jobs(size) for size in (Size(), QUICK))
    assert sum(each.settings["instances"] for each in full) == 10 * sum(each.settings["instances"] for each in quick)
