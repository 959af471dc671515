"""Application domains: the law that their people follow, where they begin, their groups, and that acting matters."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from restive import InputError, make_problems
from restive.comparison import compare
from restive.problems.domains import (
    DOMAINS,
    MARKET_SHARES,
    MARKETS,
    PERSON_TYPES,
    PHARMACY,
    REGION_SHARES,
    REGIONS,
    Domain,
    act,
    find_groups,
    stationary_share,
    wait,
)
from restive.types import Floats, Ints

KEEN, OPEN, COOL, WARY = range(4)
MARKETLESS = [domain for domain in DOMAINS if domain is not PHARMACY]
each_domain = pytest.mark.parametrize("domain", DOMAINS, ids=[domain.name for domain in DOMAINS])
each_marketless = pytest.mark.parametrize("domain", MARKETLESS, ids=[domain.name for domain in MARKETLESS])


def draw_rows(domain: Domain) -> Floats:
    """Transitions of 5,000 people, [N, A, S, S]."""
    return np.concatenate([each.transition for each in make_problems(domain.name, instances=5, agents=1000, seed=3)])


def read_paces(domain: Domain, rows: Floats) -> tuple[Floats, Floats]:
    """How fast each person climbs and slips, [N], read off the rows of waiting at the lowest and the highest state."""
    return rows[:, 0, 0, 1] / domain.climb[0], rows[:, 0, -1, -2] / domain.slip[-1]


def read_response(domain: Domain, rows: Floats) -> Floats:
    """The response of each person, [N], read off what acting does to the chance of leaving the lowest state."""
    waiting, acting = rows[:, 0, 0, 1], rows[:, 1, 0, 1]
    helped = (acting - waiting) / (1 - waiting) / domain.lift[0]
    return np.where(acting >= waiting, helped, acting / waiting - 1)


def read_kinds(domain: Domain, rows: Floats) -> Ints:
    """The kind of each person, [N]: only the keen climb that fast, and ranges of responses do not overlap otherwise."""
    climb, _ = read_paces(domain, rows)
    response = read_response(domain, rows)
    return np.select([climb > 1.5, response < 0, response > 0.5], [KEEN, WARY, OPEN], COOL)


@each_domain
def test_more_agents_and_instances_leave_people_their_moves_and_first_states(domain: Domain) -> None:
    few = make_problems(domain.name, instances=2, agents=5, budget=1, seed=9)
    many = make_problems(domain.name, instances=4, agents=12, budget=7, seed=9)
    for one, other in zip(few, many, strict=False):
        assert one.start is not None
        assert other.start is not None
        assert one.transition.tobytes() == other.transition[:5].tobytes()
        assert one.start.tolist() == other.start[:5].tolist()


@each_domain
def test_seeds_and_instances_differ(domain: Domain) -> None:
    first, second = make_problems(domain.name, instances=2, seed=0)
    (third,) = make_problems(domain.name, seed=1)
    assert not np.array_equal(first.transition, second.transition)
    assert not np.array_equal(first.transition, third.transition)


@each_domain
def test_even_the_quickest_person_has_probabilities(domain: Domain) -> None:
    markets = MARKETS if domain is PHARMACY else (None,)
    for kind, market in product(PERSON_TYPES, markets):
        climb, slip = (market.climb, market.slip) if market else (1.0, 1.0)
        up = 1.5 * kind.climb * climb * np.array(domain.climb)
        down = 1.5 * kind.slip * slip * np.array(domain.slip)
        assert (up + down < 1).all()
        assert kind.high * max(domain.lift) <= 1
    assert sum(domain.shares) == pytest.approx(1)


@each_domain
def test_people_move_one_state_at_most_and_every_state_can_be_left(domain: Domain) -> None:
    rows = draw_rows(domain)
    places = np.arange(len(domain.states))
    distance = np.abs(np.subtract.outer(places, places))
    assert (rows[..., distance > 1] == 0).all()
    assert (rows[:, 0][:, distance == 1] > 0).all()


@each_domain
def test_a_person_has_one_pace_of_climbing_and_one_of_slipping_in_all_states(domain: Domain) -> None:
    rows = draw_rows(domain)
    climb, slip = read_paces(domain, rows)
    for state in range(len(domain.states) - 1):
        assert rows[:, 0, state, state + 1] == pytest.approx(climb * domain.climb[state])
        assert rows[:, 0, state + 1, state] == pytest.approx(slip * domain.slip[state + 1])


@each_marketless
def test_kinds_come_in_their_shares(domain: Domain) -> None:
    counts = np.bincount(read_kinds(domain, draw_rows(domain)), minlength=4)
    assert stats.chisquare(counts, 5000 * np.array(domain.shares)).pvalue > 1e-3


@each_marketless
def test_paces_and_responses_are_unrelated_and_uniform_on_the_ranges_of_a_kind(domain: Domain) -> None:
    rows = draw_rows(domain)
    kinds, (climb, slip), response = read_kinds(domain, rows), read_paces(domain, rows), read_response(domain, rows)
    for number, kind in enumerate(PERSON_TYPES):
        mine = kinds == number
        samples = (climb[mine] / kind.climb, slip[mine] / kind.slip, response[mine])
        ranges = ((0.5, 1.0), (0.5, 1.0), (kind.low, kind.high - kind.low))
        for sample, (low, width) in zip(samples, ranges, strict=True):
            assert stats.kstest(sample, "uniform", (low, width)).pvalue > 1e-3
        for one, other in combinations(samples, 2):
            assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(one.size)


@each_marketless
def test_acting_does_what_the_law_says_in_every_state(domain: Domain) -> None:
    rows = draw_rows(domain)
    response = read_response(domain, rows)
    gain, harm = np.maximum(response, 0)[:, None] * domain.lift, np.maximum(-response, 0)[:, None]
    for state in range(len(domain.states) - 1):
        up, down = (rows[:, :, state, state + 1], rows[:, :, state, state - 1] if state else 0 * rows[:, :, 0, 0])
        still = 1 - up[:, 0] - down[:, 0]
        assert up[:, 1] == pytest.approx((1 - harm[:, 0]) * up[:, 0] + gain[:, state] * still)
        if state:
            assert down[:, 1] == pytest.approx((1 - gain[:, state]) * down[:, 0] + harm[:, 0] / 2 * still)


@each_domain
def test_acting_helps_most_people_and_puts_the_wary_off_everywhere(domain: Domain) -> None:
    rows = draw_rows(domain)
    above = np.cumsum(rows[..., ::-1], axis=-1)[..., ::-1]  # the chance of that state or a better one
    change = above[:, 1, :, 1:] - above[:, 0, :, 1:]
    helped, hurt = (change > -1e-12).all(axis=(1, 2)), (change < 1e-12).all(axis=(1, 2))
    assert (helped ^ hurt).all()
    assert stats.binomtest(int(hurt.sum()), 5000, domain.shares[WARY]).pvalue > 1e-3


def test_who_is_acted_on_still_has_probabilities_that_sum_to_one() -> None:
    for up, gain, harm in product((0.0, 0.3, 0.85), (0.0, 0.4, 1.0), (0.0, 0.5, 1.0)):
        if gain and harm:
            continue
        rows = act(np.array([0.0, 0.1, 0.8]), np.array([up, up, 0.0]), np.array([gain]), np.array([harm]))
        assert (rows >= 0).all()
        assert rows.sum(axis=-1) == pytest.approx(1)


@each_domain
def test_the_long_run_is_what_waiting_leaves_as_it_is(domain: Domain) -> None:
    paces = np.array([0.5, 1.0, 4.5])[:, None]
    up, down = paces * domain.climb, paces[::-1] * domain.slip
    shares = stationary_share(down, up)
    assert np.einsum("ns,nst->nt", shares, wait(down, up)) == pytest.approx(shares)
    assert shares.sum(axis=1) == pytest.approx(1)


@each_domain
def test_people_begin_where_being_left_alone_has_led(domain: Domain) -> None:
    problems = make_problems(domain.name, instances=5, agents=1000, seed=3)
    start = np.concatenate([problem.start for problem in problems if problem.start is not None])
    climb, slip = read_paces(domain, draw_rows(domain))
    shares = stationary_share(slip[:, None] * domain.slip, climb[:, None] * domain.climb)
    for state in range(len(domain.states)):
        error = np.sqrt((shares[:, state] * (1 - shares[:, state])).sum())
        assert abs((start == state).sum() - shares[:, state].sum()) < 4 * error


def mean_factors(shares: tuple[float, ...]) -> Floats:
    """What a market does to climbing, slipping and lifting, averaged over the shares of markets."""
    factors: Floats = np.array(shares) @ np.array(MARKETS)
    return factors


def test_regions_come_in_their_shares_and_differ_as_their_markets_do() -> None:
    rows = draw_rows(PHARMACY)
    region = np.array([find_groups("pharmacy-v1", 1000, seed=3, instance=i) for i in range(5)]).ravel()
    counts = [(region == name).sum() for name in REGIONS]
    assert stats.chisquare(counts, 5000 * np.array(REGION_SHARES)).pvalue > 1e-3
    kinds = np.array(PHARMACY.shares) @ np.array(
        [(kind.climb, kind.slip, max(kind.low + kind.high, 0) / 2) for kind in PERSON_TYPES]
    )
    numbers = (*read_paces(PHARMACY, rows), np.maximum(read_response(PHARMACY, rows), 0))
    for name, shares in zip(REGIONS, MARKET_SHARES, strict=True):
        for number, factor, kind in zip(numbers, mean_factors(shares), kinds, strict=True):
            mine = number[region == name]
            assert abs(mine.mean() - factor * kind) < 4 * mine.std() / np.sqrt(mine.size)


def test_groups_stay_when_more_are_asked_for_and_only_pharmacists_have_any() -> None:
    assert find_groups("pharmacy-v1", 50, seed=9)[:5] == find_groups("pharmacy-v1", 5, seed=9)
    assert find_groups("pharmacy-v1", 50, seed=9) != find_groups("pharmacy-v1", 50, seed=9, instance=1)
    for domain in MARKETLESS:
        assert find_groups(domain.name, 3) == ["", "", ""]


@pytest.mark.parametrize(
    ("family", "settings", "sentence"),
    [
        ("pharmacy", {}, "family is 'pharmacy'; it must be one of general-usage-v1, .*, maternal-health-v1"),
        ("pharmacy-v1", {"agents": 0}, "agents is 0; it must be a whole number from 1 on"),
        ("pharmacy-v1", {"seed": -1}, "seed is -1; it must be a whole number from 0 to"),
        ("loyalty-v1", {"instance": -1}, "instance is -1; it must be a whole number from 0 on"),
    ],
)
def test_groups_of_what_is_not_there_are_refused(family: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        find_groups(family, **settings)


# A change that moves these numbers is a new version of the family.
@pytest.mark.parametrize(
    ("name", "waiting", "acting", "start"),
    [
        ("general-usage-v1", 0.03610933346804391, 0.7654623834359378, [0, 0, 0, 1, 0, 1, 1, 0]),
        ("e-commerce-v1", 0.09629155591478376, 0.554579463299496, [0, 0, 0, 1, 0, 2, 2, 1]),
        ("e-learning-v1", 0.12036444489347971, 0.6252076405641757, [0, 1, 0, 1, 0, 2, 2, 1]),
        ("loyalty-v1", 0.09629155591478376, 0.6544300908867894, [0, 1, 0, 1, 0, 2, 1, 1]),
        ("patient-management-v1", 0.12036444489347971, 0.6958358178288551, [0, 1, 0, 1, 0, 2, 2, 1]),
        ("pharmacy-v1", 0.17332480064661077, 0.7314675282817298, [0, 2, 1, 2, 0, 3, 2, 1]),
        ("maternal-health-v1", 0.07221866693608782, 0.5667811102059662, [0, 0, 0, 1, 0, 2, 1, 1]),
    ],
)
def test_version_one_of_a_domain_stays_as_it_is(name: str, waiting: float, acting: float, start: list[int]) -> None:
    (problem,) = make_problems(name, seed=2026)
    assert problem.start is not None
    assert problem.transition[0, 0, 0, 1] == pytest.approx(waiting, rel=1e-14)
    assert problem.transition[0, 1, -2, -1] == pytest.approx(acting, rel=1e-14)
    assert problem.start[:8].tolist() == start


@each_domain
def test_acting_matters_and_lagrange_learns_on_whom_within_forty_rounds(domain: Domain) -> None:
    problems = make_problems(domain.name, instances=10, seed=21)
    left_alone = [problem.with_budget(0) for problem in problems]
    (nobody,) = compare(left_alone, "random", 40, seed=22, bound=False).rows
    chance, learner = compare(problems, ["random", "lagrange"], 40, seed=22, bound=False).rows
    assert nobody.whole.high < chance.whole.low
    assert learner.gap.low > 0.2
    assert learner.whole.mean > 1.3 * nobody.whole.mean
