"""The arrays over agents in a projection: known answers, and cool-downs against all that happened to an agent."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from desk.stories import call, make
from restive.desk import Desk
from restive.desk.agents import NEVER, Agents, RewardTotals, RoundTotals
from restive.desk.events import COOLING
from restive.types import Bools, Ints


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def make_agents(count: int = 1) -> Agents:
    agents = Agents.empty()
    agents.join(np.full(count, -1), np.zeros(count, np.bool_), np.zeros((count, 0)))
    return agents


def number(*agents: int) -> Ints:
    return np.array(agents, np.int64)


def said(*done: bool) -> Bools:
    return np.array(done, np.bool_)


def test_there_is_nobody_at_first_and_each_joins_at_the_end() -> None:
    agents = Agents.empty()
    assert agents.count == 0
    agents.join(number(-1, 2), said(False, True), np.array([[1.0], [np.nan]]))
    agents.join(number(0), said(False), np.array([[3.0]]))
    assert agents.count == 3
    assert agents.group.tolist() == [-1, 2, 0]
    assert np.array_equal(agents.features, np.array([[1.0], [np.nan], [3.0]]), equal_nan=True)
    assert agents.control.tolist() == [False, True, False]
    assert agents.active.all()
    assert not agents.erased.any()
    assert (agents.state.tolist(), agents.seen.tolist(), agents.total.tolist()) == ([-1] * 3, [0] * 3, [0.0] * 3)
    assert (agents.state_round == NEVER).all()
    assert (agents.last_action == NEVER).all()
    agents.last_action[0] = 4
    assert agents.previous_action[0] == agents.state_round[0] == NEVER  # arrays of their own


def test_an_action_that_failed_is_none() -> None:
    agents = make_agents()
    agents.record_selected(number(0), 3)
    agents.record_selected(number(0), 7)
    agents.record_done(number(0), said(False), 7)
    assert agents.last_action.tolist() == [3]
    agents.record_done(number(0), said(False), 7)  # said twice
    assert agents.last_action.tolist() == [3]
    agents.record_done(number(0), said(False), 3)
    assert agents.last_action.tolist() == [NEVER]


def test_an_action_without_advice_counts() -> None:
    agents = make_agents(2)
    agents.record_done(number(0, 1), said(True, False), 2)
    assert agents.last_action.tolist() == [2, NEVER]


def test_failures_that_come_in_the_wrong_order_leave_nothing() -> None:
    agents = make_agents()
    agents.record_selected(number(0), 3)
    agents.record_selected(number(0), 4)
    agents.record_done(number(0), said(False), 3)
    assert agents.last_action.tolist() == [4]
    agents.record_done(number(0), said(False), 4)
    assert agents.last_action.tolist() == [NEVER]


def test_an_action_that_is_reported_late_is_remembered_when_a_later_one_fails() -> None:
    agents = make_agents()
    agents.record_selected(number(0), 5)
    agents.record_done(number(0), said(True), 4)
    assert agents.last_action.tolist() == [5]
    agents.record_done(number(0), said(False), 5)
    assert agents.last_action.tolist() == [4]


def test_rounds_may_be_decided_in_any_order() -> None:
    agents = make_agents()
    agents.record_selected(number(0), 6)
    agents.record_selected(number(0), 2)
    assert (agents.last_action.tolist(), agents.previous_action.tolist()) == ([6], [2])
    agents.record_done(number(0), said(True), 6)
    assert (agents.last_action.tolist(), agents.previous_action.tolist()) == ([6], [2])


def test_the_newest_state_is_known_whenever_it_came_in() -> None:
    agents = make_agents(2)
    agents.record_states(number(0, 1), number(1, 0), 5)
    agents.record_states(number(0, 1), number(0, 1), 4)  # late
    assert (agents.state.tolist(), agents.state_round.tolist()) == ([1, 0], [5, 5])
    agents.record_states(number(1), number(1), 5)  # the first word on a round is that of its table
    assert agents.state.tolist() == [1, 0]
    agents.record_states(number(1), number(1), 6)
    assert (agents.state.tolist(), agents.state_round.tolist()) == ([1, 1], [5, 6])


def test_a_side_adds_up_rewards_and_their_squares() -> None:
    side = RewardTotals()
    side.add(np.array([1.0, -2.0]))
    side.add(np.array([]))
    side.add(np.array([0.5]))
    assert side == RewardTotals(3, -0.5, 5.25)


def test_a_line_waits_for_those_who_are_not_in_yet_and_can_still_come() -> None:
    line = RoundTotals(0, "now", "2026-11-16", "week", 2, 5, present=9, carried_over=1)
    assert line.waiting == 9
    line.outcomes, line.gone = 4, 2
    assert line.waiting == 3
    assert RoundTotals.from_json(json.loads(json.dumps(line.as_json()))) == line


def test_the_totals_of_a_round_come_back_from_plain_data() -> None:
    totals = RoundTotals(1, "now", "2026-11-16", "week", 2, 5, 3, 0, treated=RewardTotals(1, 0.1 + 0.2, 0.01))
    assert RoundTotals.from_json(json.loads(json.dumps(totals.as_json()))) == totals


@pytest.mark.parametrize("cool_down", [0, 2, 4])
def test_nobody_is_chosen_twice_in_so_many_rounds_whatever_was_done(desk: Desk, cool_down: int) -> None:
    program = make(desk, policy="random", cool_down=cool_down, budget=3)
    rng, agents = np.random.default_rng(cool_down), call(8)
    live: dict[str, set[int]] = {name: set() for name in agents}  # the rounds in which each was, or may have been
    waiting: list[tuple[int, str]] = []
    for round_ in range(1, 19):
        recommendation = program.decide({name: int(rng.integers(2)) for name in agents}, budget=int(rng.integers(0, 5)))
        cooling = {name for name in agents if any(round_ - at < cool_down for at in live[name])}
        bar = program.get_round(round_).choice["exclusion"]
        assert {name for name, code in zip(agents, bar, strict=True) if code == COOLING} == cooling, round_
        assert len(recommendation.chosen) == min(recommendation.budget, len(agents) - len(cooling))
        for name in recommendation.chosen:
            live[name].add(round_)
        waiting += [(round_, name) for name in agents if rng.random() < 0.8]
        reported = [one for one in waiting if rng.random() < 0.5]  # the others later, if ever
        waiting = [one for one in waiting if one not in reported]
        done = [bool(rng.random() < (0.6 if at in live[name] else 0.15)) for at, name in reported]
        for (at, name), so in zip(reported, done, strict=True):
            (live[name].add if so else live[name].discard)(at)
        rows = [{"agent": name, "done": so, "round": at} for (at, name), so in zip(reported, done, strict=True)]
        program.learn(rows)


def test_who_must_be_chosen_is_though_it_is_cooling_down(desk: Desk) -> None:
    program = make(desk, policy="random", cool_down=5, budget=1)
    states = dict.fromkeys(call(3), 0)
    assert program.decide(states, must=["a01"]).chosen == ["a01"]
    assert program.decide(states, must=["a01"], again=True).chosen == ["a01"]
    assert "a01" not in program.decide(states).chosen
