"""The choice under rules against frequencies, prices against all possible lists, and the list of a round by hand."""

import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.stories import call, make, record, write
from restive import make_policy
from restive.contract import Draws, Estimate, Ranking, Shape, as_ranking
from restive.desk import Desk
from restive.desk.decision import CHOSEN, MUST, RESERVE, RESERVE_SIZE, decide
from restive.desk.events import COOLING, EXCLUSIONS, FREE, IN_CONTROL, ON_MUST, ON_NEVER
from restive.desk.program import Program
from restive.desk.projection import in_control
from restive.desk.replay import replay
from restive.desk.selection import (
    MIN_PROBABILITY,
    Choice,
    Rules,
    _first,
    choose_agents,
    count_displaced,
)
from restive.errors import InputError
from restive.kernels import rng
from restive.kernels.top_k import choose
from restive.policies.base import Learner
from restive.policies.egt import Egt
from restive.types import Floats, Ints

NO_GROUP: Mapping[int, float] = {}


def make_draws(agents: int, budget: int, step: int = 0, seed: int = 1) -> Draws:
    return Draws(rng.run_keys(seed, np.zeros(1, np.int64)), np.arange(agents) + 5, step, budget)


def make_rules(bar: list[int], budget: int, group: list[int] | None = None, shares: Any = NO_GROUP) -> Rules:
    return Rules(np.array(bar), np.array(group if group is not None else [-1] * len(bar)), shares, budget)


def select(
    priority: Floats, rules: Rules, step: int = 0, explore: float = 0.0, mean: Any = None, noise: Any = None
) -> Choice:
    blank = np.zeros(priority.size)
    estimate = Estimate(*(np.asarray(part)[None] for part in (blank if mean is None else mean, blank, blank)))
    estimate = estimate._replace(noise=(blank if noise is None else noise)[None])
    ranking = Ranking(priority[None], np.array([explore]))
    return choose_agents(ranking, estimate, rules, make_draws(priority.size, rules.budget, step))


class Case(NamedTuple):
    priority: list[float]
    rules: Rules
    explore: float = 0.0


INF, NAN = math.inf, math.nan
CASES = {
    "ties": Case([1, 1, 1, 0], make_rules([FREE] * 4, 2)),
    "all equal": Case([0, 0, 0, 0, 0], make_rules([FREE] * 5, 2)),
    "exploring": Case([5, 4, 3, 2, 1], make_rules([FREE] * 5, 2), 0.3),
    "always exploring": Case([5, 4, 3, 2, 1], make_rules([FREE] * 5, 2), 1.0),
    "infinite equals": Case([INF, INF, INF, 2, -INF], make_rules([FREE] * 5, 2), 0.2),
    "bars": Case([9, 8, 3, 3, 3, 1], make_rules([IN_CONTROL, ON_NEVER, FREE, FREE, FREE, ON_MUST], 3), 0.25),
    "a minimum": Case([5, 5, 5, 1, 1, 0], make_rules([FREE] * 6, 3, [0, 0, 0, 1, 1, 1], {1: 0.3}), 0.2),
    "two minimums": Case([2, 2, 2, 2, 2, 2, 9], make_rules([FREE] * 7, 4, [0, 0, 0, 1, 1, -1, -1], {0: 0.5, 1: 0.25})),
    "a minimum at random": Case(
        [5, 5, 4, 1, 1, 0], make_rules([FREE] * 6, 3, [0, 0, -1, 1, 1, 1], {0: 0.3, 1: 0.3}), 1.0
    ),
    "a tie across a minimum": Case([3, 3, 3, 3, 0, 0], make_rules([FREE] * 6, 3, [0, 0, 1, 1, 1, -1], {0: 0.3})),
    "a minimum that the must list fills": Case(
        [5, 4, 3, 3, 3, 1],
        make_rules([FREE, FREE, FREE, FREE, COOLING, ON_MUST], 3, [0, 0, 1, 1, 1, 1], {1: 0.34}),
        0.1,
    ),
}
TIMES = [300, pytest.param(20_000, marks=pytest.mark.soak)]


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("case", CASES)
def test_the_probability_on_record_is_how_often_an_agent_is_chosen(case: str, times: int) -> None:
    priority, rules, explore = CASES[case]
    often, random = np.zeros(len(priority)), 0
    for step in range(times):
        choice = select(np.array(priority, float), rules, step, explore)
        often += choice.chosen
        random += choice.random
    probability = choice.probability
    near = 5 * np.sqrt(probability * (1 - probability) / times) + 1e-12
    assert (np.abs(often / times - probability) <= near).all(), (often / times, probability)
    assert probability.sum() == pytest.approx(rules.places(), abs=1e-12)
    assert abs(random / times - explore) <= 5 * math.sqrt(explore * (1 - explore) / times)


def test_probabilities_known_by_hand() -> None:
    assert select(np.array([1.0, 1.0, 1.0, 0.0]), CASES["ties"].rules).probability == pytest.approx(
        [2 / 3, 2 / 3, 2 / 3, 0]
    )
    half = select(np.array([5.0, 4, 3, 2]), make_rules([FREE] * 4, 2), explore=0.5)
    assert half.probability == pytest.approx([0.75, 0.75, 0.25, 0.25])
    priority, rules, _ = CASES["a tie across a minimum"]
    # One of two is the group's own; then two of the three that are left and level with it.
    found = select(np.array(priority, float), rules).probability
    assert found == pytest.approx([0.5 + 0.5 * 2 / 3] * 2 + [2 / 3] * 2 + [0, 0])


NOISY_RULES = {
    "free": make_rules([FREE] * 8, 3),
    "barred": make_rules([FREE, IN_CONTROL, FREE, ON_MUST, FREE, COOLING, FREE, FREE], 3),
    "minimum": make_rules([FREE] * 8, 3, [0, 0, 0, 0, 1, 1, 1, 1], {1: 0.6}),
}


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("rules", NOISY_RULES)
def test_the_probability_with_noise_is_how_often_an_agent_is_chosen(rules: str, times: int) -> None:
    mean = np.array([1.0, 0.8, 0.6, 0.5, 0.4, 0.2, 0.0, -0.3])
    noise = np.array([0.5, 0.1, 0.8, 0.3, 0.0, 0.5, 1.0, 0.4])
    rng = np.random.default_rng(2)
    bells = (rng.random((times, 8, 4)).sum(axis=-1) - 2) * 3**0.5
    often, probability = np.zeros(8), np.zeros(8)
    for step, bell in enumerate(bells):
        choice = select(mean + noise * bell - 0.7, NOISY_RULES[rules], step, mean=mean, noise=noise)
        often += choice.chosen
        probability += choice.probability
    assert np.abs(often - probability).max() / times < 5 * 0.5 / times**0.5
    assert probability.sum() / times == pytest.approx(3, abs=0.03)


@pytest.mark.parametrize("times", TIMES)
def test_the_probability_of_lagrange_is_how_often_it_chooses(times: int) -> None:
    policy, agents, rng = make_policy("lagrange"), 12, np.random.default_rng(3)
    assert isinstance(policy, Learner)
    shape = Shape(1, agents, 2, 3, None, np.ones(1))
    belief = policy.start(shape)
    state = rng.integers(2, size=(1, agents))
    for _ in range(15):
        action = (rng.random((1, agents)) < 0.3).astype(np.int64)
        after = (rng.random((1, agents)) < 0.3 + 0.4 * action).astype(np.int64)
        policy.learn(belief, state, action, after.astype(float), after)
        state = after
    rules, often, probability = make_rules([FREE] * agents, 3), np.zeros(agents), np.zeros(agents)
    estimate = policy.estimate(belief, state)
    assert not estimate.noise.any()  # its exploration is a bonus, so that probabilities are exact
    for step in range(times):
        draws = make_draws(agents, 3, step)
        choice = choose_agents(as_ranking(policy.rank(belief, state, draws), shape, ""), estimate, rules, draws)
        often += choice.chosen
        probability += choice.probability
    assert np.abs(often - probability).max() / times < 5 * 0.5 / times**0.5


def test_a_choice_because_of_noise_is_marked() -> None:
    mean, noise = np.array([1.0, 0.5, 0.0]), np.array([0.0, 0.0, 5.0])
    choice = select(np.array([1.0, 0.5, 4.0]), make_rules([FREE] * 3, 2), mean=mean, noise=noise)
    assert choice.chosen.tolist() == [True, False, True]
    assert choice.by_noise.tolist() == [False, False, True]


def test_what_happened_is_never_said_to_be_impossible() -> None:
    mean, noise = np.array([9.0, 0.0, 0.0]), np.array([1e-6, 1.0, 1.0])
    choice = select(np.array([-9.0, 1.0, 0.0]), make_rules([FREE] * 3, 1), mean=mean, noise=noise)
    assert choice.chosen.tolist() == [False, True, False]
    assert choice.probability.tolist() == [1 - MIN_PROBABILITY, MIN_PROBABILITY, 0.0]


bars = st.sampled_from([FREE, FREE, FREE, IN_CONTROL, ON_NEVER, COOLING, ON_MUST])


@st.composite
def situations(draw: st.DrawFn, most: int = 12) -> tuple[Floats, Rules]:
    agents = draw(st.integers(1, most))
    bar = draw(st.lists(bars, min_size=agents, max_size=agents))
    group = draw(st.lists(st.integers(-1, 2), min_size=agents, max_size=agents))
    parts = draw(st.dictionaries(st.integers(0, 2), st.integers(1, 10), max_size=3))
    whole = draw(st.integers(0, 10)) + sum(parts.values())
    budget = draw(st.integers(bar.count(ON_MUST), agents + 3))
    priority = draw(st.lists(st.sampled_from([-INF, -0.5, 0.0, 0.25, 1.0, INF]), min_size=agents, max_size=agents))
    shares = {code: part / whole for code, part in parts.items()}
    return np.array(priority), make_rules(bar, budget, group, shares)


def least(rules: Rules, code: int, share: float) -> int:
    """What a share asks for, as far as there are people for it."""
    able = np.isin(rules.exclusion, (FREE, ON_MUST)) & (rules.group == code)
    return min(math.ceil(share * rules.places() - 1e-9), int(able.sum()))


def can_be_kept(rules: Rules) -> bool:
    must = [int(((rules.exclusion == ON_MUST) & (rules.group == code)).sum()) for code in rules.shares]
    asked = [least(rules, code, share) for code, share in rules.shares.items()]
    beyond = sum(max(0, a - m) for a, m in zip(asked, must, strict=True))
    return beyond <= rules.places() - int((rules.exclusion == ON_MUST).sum())


@settings(derandomize=True, max_examples=60, deadline=None)
@given(situations(), st.sampled_from([0.0, 0.4, 1.0]), st.booleans(), st.integers(0, 50))
def test_exactly_the_budget_or_all_who_may_are_chosen_and_rules_are_kept(
    situation: tuple[Floats, Rules], explore: float, noisy: bool, step: int
) -> None:
    priority, rules = situation
    mean = np.nan_to_num(priority, posinf=3.0, neginf=-3.0)
    noise = np.full(priority.size, 0.5) if noisy else None
    choice = select(mean if noisy else priority, rules, step, explore, mean, noise)
    assert choice.chosen.sum() == min(rules.budget, np.isin(rules.exclusion, (FREE, ON_MUST)).sum())
    assert choice.chosen[rules.exclusion == ON_MUST].all()
    assert not choice.chosen[np.isin(rules.exclusion, (IN_CONTROL, ON_NEVER, COOLING))].any()
    if can_be_kept(rules):
        for code, share in rules.shares.items():
            assert (choice.chosen & (rules.group == code)).sum() >= least(rules, code, share)
    assert ((choice.probability >= 0) & (choice.probability <= 1 + 1e-12)).all()
    assert (choice.probability[choice.chosen] > 0).all()
    assert (choice.probability[~choice.chosen] < 1).all()
    if not noisy:
        assert choice.probability.sum() == pytest.approx(rules.places(), abs=1e-9)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=1, max_size=30), st.floats(0, 1), st.integers(0, 99), st.data())
def test_without_rules_it_is_the_choice_of_the_simulation(
    values: list[float], explore: float, step: int, data: st.DataObject
) -> None:
    budget = data.draw(st.integers(0, len(values)))
    draws = make_draws(len(values), budget, step)
    action = np.empty((1, len(values)), np.int64)
    coins, ties = draws.branch(rng.EXPLORE), draws.branch(rng.TIE)
    choose(np.array([values]), np.array([explore]), budget, coins, ties, draws.agents, action)
    found = select(np.array(values), make_rules([FREE] * len(values), budget), step, explore)
    assert found.chosen.tolist() == (action[0] == 1).tolist()


def best_list(worth: Floats, rules: Rules) -> set[int]:
    """The best of all lists that keep the rules."""
    able = np.flatnonzero(np.isin(rules.exclusion, (FREE, ON_MUST)))
    must = set(np.flatnonzero(rules.exclusion == ON_MUST).tolist())
    lists = [
        set(some)
        for some in itertools.combinations(able.tolist(), rules.places())
        if must <= set(some)
        and all(
            sum(rules.group[n] == code for n in some) >= least(rules, code, share)
            for code, share in rules.shares.items()
        )
    ]
    return max(lists, key=lambda some: float(worth[list(some)].sum()))


@settings(derandomize=True, max_examples=50, deadline=None)
@given(situations(most=7), st.data())
def test_displaced_are_those_who_are_not_on_the_best_list_without_the_rule(
    situation: tuple[Floats, Rules], data: st.DataObject
) -> None:
    _, rules = situation
    # Powers of two: no two lists have the same sum.
    worth = 2.0 ** np.array(data.draw(st.permutations(range(rules.exclusion.size))))
    displaced = count_displaced(worth, np.zeros(worth.size), rules, {0: "a", 1: "b", 2: "c"})
    lifted = {
        EXCLUSIONS[code]: rules._replace(exclusion=np.where(rules.exclusion == code, FREE, rules.exclusion))
        for code in set(rules.exclusion)
    }
    lifted.pop(EXCLUSIONS[FREE], None)
    for code in rules.shares:
        others = {other: share for other, share in rules.shares.items() if other != code}
        lifted[f"share of {'abc'[code]}"] = rules._replace(shares=others)
    assert displaced.keys() == lifted.keys()
    for name, without in lifted.items():
        if can_be_kept(rules) and can_be_kept(without):
            assert displaced[name] == len(best_list(worth, rules) - best_list(worth, without)), name


def test_places_that_rules_change_known_by_hand() -> None:
    worth, tie = np.array([4.0, 3.0, 2.0, 1.0, 0.5]), np.zeros(5)
    rules = make_rules([IN_CONTROL, FREE, FREE, FREE, ON_MUST], 2, [0, 0, 0, 1, 1], {})
    assert count_displaced(worth, tie, rules, {}) == {"control group": 1, "must list": 1}
    shares = make_rules([FREE] * 5, 2, [0, 0, 0, 1, 1], {1: 0.5})
    assert count_displaced(worth, tie, shares, {1: "north"}) == {"share of north": 1}
    kept = make_rules([FREE, FREE, FREE, FREE, ON_NEVER], 2)
    assert count_displaced(worth, tie, kept, {}) == {"never list": 0}
    at_most = make_rules([FREE, FREE, FREE, IN_CONTROL, FREE], 4)._replace(at_most=True)
    assert count_displaced(worth, tie, at_most, {}, least=2.5) == {"control group": 0}
    tied = make_rules([FREE, ON_NEVER], 1)
    ties = (np.array([0.9, 0.1]), np.array([0.1, 0.9]))
    assert [count_displaced(np.zeros(2), tie, tied, {})["never list"] for tie in ties] == [0, 1]


def test_the_control_group_depends_on_seed_and_number_alone() -> None:
    everyone = in_control(7, 0.3, np.arange(20_000))
    assert abs(everyone.mean() - 0.3) < 5 * (0.3 * 0.7 / 20_000) ** 0.5
    assert in_control(7, 0.3, np.arange(900, 1000)).tolist() == everyone[900:1000].tolist()
    some: Ints = np.array([19_000, 3, 77])
    assert in_control(7, 0.3, some).tolist() == everyone[some].tolist()
    assert (in_control(8, 0.3, np.arange(20_000)) != everyone).any()
    assert everyone[in_control(7, 0.1, np.arange(20_000))].all()  # a larger share has the smaller one in it
    assert not in_control(7, 0.0, np.arange(1000)).any()


# A seed with one of the first eight agents in a control group of a fifth, and not the first.
SEED = next(s for s in range(100) if np.flatnonzero(in_control(s, 0.2, np.arange(8))).tolist() == [2])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


class FixedPolicy:
    """Lets egt policy for what the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.priority: list[float] = []
        self.benefit: list[float] | None = None
        self.explore = 0.0
        monkeypatch.setattr(Egt, "rank", lambda *_: Ranking(np.array([self.priority]), np.array([self.explore])))
        monkeypatch.setattr(Egt, "estimate", lambda *_: self.estimate())

    def estimate(self) -> Estimate:
        benefit = np.array([self.benefit or self.priority])
        return Estimate(benefit, np.full(benefit.shape, 0.5), np.zeros(benefit.shape))


@pytest.fixture
def policy(monkeypatch: pytest.MonkeyPatch) -> FixedPolicy:
    return FixedPolicy(monkeypatch)


def listed(program: Program, round_: int, *names: str) -> list[tuple[Any, ...]]:
    found = program.get_round(round_).listed
    return list(zip(*(found[name].tolist() for name in names), strict=True))


def test_the_list_is_in_falling_order_then_come_the_next_ten(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=3)
    policy.priority = [0.0, 5.0, 1.0, 4.0, 5.0, *np.linspace(0.9, 0.1, 12).tolist()]
    program.decide(dict.fromkeys(call(17), 0))
    found = listed(program, 1, "agent", "kind", "priority", "margin")
    assert found[:3] == [(1, CHOSEN, 5.0, 4.0), (4, CHOSEN, 5.0, 4.0), (3, CHOSEN, 4.0, 3.0)]
    assert found[3] == (2, RESERVE, 1.0, -3.0)
    assert [row[0] for row in found[4:]] == list(range(5, 14))
    assert [row[1] for row in found[3:]] == [RESERVE] * RESERVE_SIZE
    assert [row[3] for row in found[3:]] == pytest.approx([row[2] - 4.0 for row in found[3:]])


def test_equals_on_the_reserve_list_are_drawn_at_random(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=0)
    policy.priority = [1.0] * 14
    reserves = [program.decide(dict.fromkeys(call(14), 0), again=True).reserve for _ in range(60)]
    assert all(len(set(reserve)) == RESERVE_SIZE for reserve in reserves)
    counts = [sum(name in reserve for reserve in reserves) for name in call(14)]
    assert min(counts) > 30  # 43 of 60 are expected, whatever the place in the file
    assert max(counts) < 56
    assert len({reserve[0] for reserve in reserves}) > 10
    assert {row[0] for row in listed(program, 1, "margin")} == {-INF}
    assert replay(program).proven


def test_a_random_list_has_random_spares(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=1)
    policy.priority, policy.explore = [float(n) for n in range(14)], 1.0
    first = [program.decide(dict.fromkeys(call(14), 0), again=True).reserve[0] for _ in range(40)]
    assert len(set(first)) > 8


def test_there_is_no_reserve_when_everybody_is_chosen(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=9)
    policy.priority = [2.0, 1.0]
    recommendation = program.decide({"a": 0, "b": 0})
    assert (recommendation.chosen, recommendation.reserve) == (["a", "b"], [])
    assert {row[0] for row in listed(program, 1, "margin")} == {INF}
    assert program.get_round(1).choice["probability"].tolist() == [1.0, 1.0]


def test_every_reason_not_to_be_chosen_is_on_record_and_has_its_price(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=2, cool_down=3, control=0.2, seed=SEED)
    agents = call(8)
    policy.priority = [1.0] * 8
    control = np.flatnonzero(program_control(program, 8)).tolist()
    free = [n for n in range(8) if n not in control]
    program.decide(dict.fromkeys(agents, 0), must=[agents[free[0]], agents[free[1]]])
    policy.priority = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    recommendation = program.decide(dict.fromkeys(agents, 1), must=[agents[free[1]]], never=[agents[free[2]]])
    bar = dict.fromkeys(range(8), FREE)
    bar |= {control[0]: IN_CONTROL, free[0]: COOLING, free[1]: ON_MUST, free[2]: ON_NEVER}
    assert program.get_round(2).choice["exclusion"].tolist() == list(bar.values())
    lifted = {"control group": control[0], "cooling down": free[0], "never list": free[2]}
    places = {name: int(n < free[3]) for name, n in lifted.items()}  # a lower number has a higher priority
    assert recommendation.displaced == places | {"must list": 0}
    assert recommendation.exclusions() == {"control group": 1, "never list": 1, "cooling down": 1}
    assert recommendation.chosen == [agents[free[1]], agents[free[3]]]
    kinds = dict(listed(program, 2, "agent", "kind"))
    assert (kinds[free[1]], kinds[free[3]], kinds[free[4]]) == (MUST, CHOSEN, RESERVE)
    assert program.get_round(2).choice["probability"].tolist() == [float(n in (free[1], free[3])) for n in range(8)]


def program_control(program: Program, agents: int) -> Any:
    return in_control(program.config.seed, program.config.control, np.arange(agents))


def test_control_comes_before_never_and_never_before_cooling(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=2, cool_down=5, control=0.2, seed=SEED)
    policy.priority = [1.0] * 8
    control = program_control(program, 8)
    first = [name for name, out in zip(call(8), control, strict=True) if not out][:2]
    program.decide(dict.fromkeys(call(8), 0), must=first)
    program.decide(dict.fromkeys(call(8), 1), never=call(8))
    assert program.get_round(2).choice["exclusion"].tolist() == np.where(control, IN_CONTROL, ON_NEVER).tolist()
    assert program.recommendation(2).chosen == []


def test_a_lot_is_reported_as_exploration_but_for_the_must_list(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=2)
    policy.priority, policy.explore = [3.0, 2.0, 1.0, 0.0], 1.0
    program.decide(dict.fromkeys(call(4), 0), must=["a03"])
    found = program.get_round(1)
    about = found.decided.about
    assert (about["random"], about["explored"], about["explore"]) == (True, 1, 1.0)
    reported = dict(listed(program, 1, "agent", "explored"))
    assert reported.pop(3) is False
    assert sum(reported.values()) == 1
    assert found.choice["probability"] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.0])


def test_a_decision_records_what_followed_in_each_state_before(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, shadow="egt")
    policy.priority = [3.0, 2.0, 1.0]
    first = program.decide({"a": 0, "b": 0, "c": 1}).found.decided.about
    assert (first["outcomes"], first["better"]) == ([[0, 0], [0, 0]], [[0, 0], [0, 0]])
    assert first["shadow"] == {"policy": "egt", "common": 2}
    program.learn([{"agent": "a", "next_state": 1}, {"agent": "b", "next_state": 0}, {"agent": "c", "next_state": 1}])
    second = program.decide({"a": 1, "b": 0, "c": 0}).found.decided.about
    assert (second["outcomes"], second["better"]) == ([[0, 1], [2, 0]], [[0, 1], [1, 0]])


def test_a_wish_that_is_no_number_is_refused_and_nothing_is_recorded(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk)
    policy.priority = [1.0, NAN]
    with pytest.raises(InputError, match="egt: a priority is NaN in round 1; nothing was recorded"):
        program.decide({"a": 0, "b": 0})
    assert program.store.length(program.id) == 1


def test_rounds_since_the_last_action_are_reported(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=1)
    policy.priority = [2.0, 1.0]
    program.decide({"a": 0, "b": 0})
    program.decide({"a": 0, "b": 1})
    program.learn([{"agent": "a", "done": False}, {"agent": "b", "done": True}], round=2)
    program.decide({"a": 1, "b": 1})
    assert [listed(program, round_, "agent", "since") for round_ in (1, 2, 3)] == [
        [(0, -1), (1, -1)],
        [(0, 1), (1, -1)],
        [(0, 2), (1, 1)],
    ]


def test_shares_of_groups_that_nobody_is_in_ask_for_nothing(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=2, shares={"north": 0.5, "mars": 0.5})
    policy.priority = [3.0, 2.0, 1.0]
    recommendation = program.decide({"a": (0, "south"), "b": (0, "south"), "c": (0, "north")})
    assert recommendation.chosen == ["a", "c"]
    assert recommendation.displaced == {"share of north": 1}


def test_the_same_projection_and_round_give_the_same_decision(desk: Desk) -> None:
    program, story = make(desk, policy="lagrange", shadow="thompson-whittle", control=0.2), write(rounds=4)
    record(program, story[:3])
    given = program.decide(story[3].states, dry_run=True).found.given
    one, two = (decide(desk.program("one").projection, 4, given) for _ in range(2))
    assert one.about == two.about
    for mine, theirs in ((one.choice, two.choice), (one.listed, two.listed)):
        assert {name: array.tobytes() for name, array in mine.items()} == {
            name: array.tobytes() for name, array in theirs.items()
        }


@pytest.mark.parametrize("policy", ["egt", "lagrange", "wiql", "thompson-whittle"])
def test_exactly_the_budget_or_all_who_may_are_on_the_list_in_every_round(desk: Desk, policy: str) -> None:
    rng, agents = np.random.default_rng(1), call(10)
    program = make(desk, policy=policy, shares={"n": 0.4, "s": 0.2}, cool_down=2, control=0.2)
    control = program_control(program, 10)
    for round_ in range(1, 9):
        states = {name: (int(rng.integers(2)), "ns"[n % 2]) for n, name in enumerate(agents)}
        budget, order = int(rng.integers(1, 12)), rng.permutation(10).tolist()
        must = [n for n in order[: rng.integers(2)] if not control[n]]
        never = order[1 : 1 + rng.integers(3)]
        recommendation = program.decide(
            states, budget, must=[agents[n] for n in must], never=[agents[n] for n in never]
        )
        columns = program.get_round(round_).choice
        able = int(np.isin(columns["exclusion"], (FREE, ON_MUST)).sum())
        assert len(recommendation.chosen) == len(set(recommendation.chosen)) == min(budget, able)
        assert len(recommendation.reserve) == min(RESERVE_SIZE, able - len(recommendation.chosen))
        assert np.flatnonzero(columns["exclusion"] == ON_MUST).tolist() == must
        assert columns["probability"].sum() == pytest.approx(
            len(recommendation.chosen), abs=0.3
        )  # noise is averaged over few draws
        assert max(recommendation.displaced.values(), default=0) <= budget
        program.learn([{"agent": name, "next_state": int(rng.integers(2))} for name in agents[: rng.integers(1, 10)]])


def select_at_most(
    priority: Floats, rules: Rules, step: int = 0, explore: float = 0.0, mean: Any = None, noise: Any = None
) -> Choice:
    """A choice under a budget that need not be spent; a priority of −0.7 is break-even."""
    blank = np.zeros(priority.size)
    parts = (blank if mean is None else mean, blank, blank if noise is None else noise)
    ranking = Ranking(priority[None], np.array([explore]), np.array([-0.7]))
    draws = make_draws(priority.size, rules.budget, step)._replace(spend="at most")
    return choose_agents(ranking, Estimate(*(part[None] for part in parts)), rules._replace(at_most=True), draws)


@pytest.mark.parametrize("explore", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("case", CASES)
def test_a_budget_that_need_not_be_spent_leaves_out_who_would_lose(case: str, explore: float) -> None:
    priority, rules, _ = CASES[case]
    values = np.array(priority, float) - 3.7  # three or less is not worth it
    often, probability, times = np.zeros(values.size), np.zeros(values.size), 300
    for step in range(times):
        choice = select_at_most(values, rules, step, explore)
        often, probability = often + choice.chosen, probability + choice.probability
        assert choice.chosen.sum() <= rules.places()
        losing = choice.chosen & (rules.exclusion == FREE) & (values <= -0.7)
        assert choice.random or not losing.any()
        assert choice.random or (choice.left_out == (rules.free() & (values <= -0.7))).all()
        if not choice.random:
            worth = rules.free() & (values > -0.7)
            must = int((rules.exclusion == ON_MUST).sum())
            assert choice.chosen.sum() == must + min(rules.places() - must, worth.sum())
    assert (np.abs(often - probability) / times <= 5 * 0.5 / times**0.5).all()


@pytest.mark.parametrize("rules", NOISY_RULES)
def test_its_probability_with_noise_is_how_often_an_agent_is_chosen(rules: str) -> None:
    mean = np.array([0.5, 0.3, 0.1, 0.0, -0.1, -0.3, -0.5, -0.8])
    noise = np.array([0.5, 0.1, 0.8, 0.3, 0.0, 0.5, 1.0, 0.4])
    bells = (np.random.default_rng(2).random((300, 8, 4)).sum(axis=-1) - 2) * 3**0.5
    often, probability = np.zeros(8), np.zeros(8)
    for step, bell in enumerate(bells):
        choice = select_at_most(mean + noise * bell - 0.7, NOISY_RULES[rules], step, mean=mean, noise=noise)
        often += choice.chosen
        probability += choice.probability
    assert np.abs(often - probability).max() / 300 < 5 * 0.5 / 300**0.5


def test_a_program_says_how_much_of_its_budget_was_used(desk: Desk) -> None:
    plain, careful = (make(desk, name, policy="lagrange", budget=7, spend=spend) for name, spend in SPENDING)
    story = write(rounds=8)
    for program in (plain, careful):
        record(program, story)
    assert plain.decide(story[0].states).as_json()["notes"] == []
    decided = careful.decide(story[0].states)
    answer, listed = decided.as_json(), len(decided.chosen)
    assert listed < 7
    assert answer["left_out"] == 9 - listed
    assert answer["notes"] == [f"{listed} of 7 used: the policy expects nobody else to gain"]
    assert careful.recommendation(9).as_json()["notes"] == answer["notes"]
    assert decided.reserve == []
    assert replay(careful).proven
    careful.change(spend="exactly")
    assert len(careful.decide(story[1].states).chosen) == 7
    assert replay(careful).proven


SPENDING = (("plain", "exactly"), ("careful", "at most"))


@pytest.mark.parametrize("explore", [0.0, 1.0])
@pytest.mark.parametrize("at_most", [False, True])
def test_whoever_would_have_been_chosen_is_chosen_once_in_the_program(explore: float, at_most: bool) -> None:
    generator, would, different = np.random.default_rng(4), 0, 0
    for step in range(200):
        agents, budget = int(generator.integers(4, 12)), int(generator.integers(1, 6))
        treated = generator.choice([FREE, FREE, FREE, ON_MUST, ON_NEVER], agents)
        control = generator.random(agents) < 0.3
        exclusion = np.where(control, IN_CONTROL, treated)
        group = generator.integers(-1, 2, agents)
        rules = Rules(exclusion, group, {0: 0.5} if step % 2 else {}, budget, at_most, treated)
        if int((exclusion == ON_MUST).sum()) > budget or not (exclusion == FREE).any():
            continue
        priority = generator.integers(-2, 3, agents).astype(float)
        found = _choose_with_break_even(priority, rules, step, explore)
        assert (found.would_act[~control] == found.chosen[~control]).all()
        for one in np.flatnonzero(control & (treated == FREE)):
            moved = exclusion.copy()
            moved[one] = treated[one]
            again = _choose_with_break_even(priority, rules._replace(exclusion=moved), step, explore)
            would += int(found.would_act[one])
            different += int(again.chosen[one] != found.would_act[one])
        assert found.would_act[control & (treated == ON_MUST)].all()
        assert not found.would_act[control & (treated == ON_NEVER)].any()

    assert would > 50
    assert different == 0


def _choose_with_break_even(priority: Floats, rules: Rules, step: int, explore: float) -> Choice:
    blank = np.zeros((1, priority.size))
    ranking = Ranking(priority[None], np.array([explore]), np.zeros(1))
    draws = make_draws(priority.size, rules.budget, step)._replace(spend="at most" if rules.at_most else "exactly")
    return choose_agents(ranking, Estimate(priority[None], blank, blank), rules, draws)


@given(st.integers(0, 1000), st.integers(0, 12))
@settings(deadline=None)
def test_the_first_by_priority_then_by_tie_are_those_of_a_sort(seed: int, wanted: int) -> None:
    random = np.random.default_rng(seed)
    priority, tie = random.integers(0, 3, size=(2, 12)).astype(np.float64) * [[1.0], [0.25]]
    some = np.flatnonzero(random.random(12) < 0.7)
    ordered = [agent for agent in np.lexsort((-tie, -priority)) if agent in some]
    assert sorted(_first(some, wanted, priority, tie)) == sorted(ordered[:wanted])
