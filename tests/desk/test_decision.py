"""Decisions: the list in its order, margins, reserve, prices and the record, by hand with a policy of known priorities."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desk.stories import call, make, record, write
from restive.contract import Estimate, Ranking
from restive.desk import Desk
from restive.desk.decision import CHOSEN, MUST, RESERVE, RESERVE_SIZE, decide
from restive.desk.program import Program
from restive.desk.selection import COOLING, FREE, IN_CONTROL, ON_MUST, ON_NEVER, in_control
from restive.errors import InputError
from restive.policies.egt import Egt

NAN, INF = float("nan"), float("inf")
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


def test_equals_on_the_reserve_list_come_in_the_order_of_joining(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, budget=0)
    policy.priority = [1.0] * 14
    recommendation = program.decide(dict.fromkeys(call(14), 0))
    assert recommendation.chosen == []
    assert recommendation.reserve == call(10)
    assert {row[0] for row in listed(program, 1, "margin")} == {-INF}


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
    worth = [policy.priority[n] for n in range(8)]
    kept = worth[free[1]] + worth[free[3]]
    lifted = {"control group": control[0], "cooling down": free[0], "never list": free[2]}
    prices = {name: max(0.0, worth[free[1]] + max(worth[n], worth[free[3]]) - kept) for name, n in lifted.items()}
    best = sorted((worth[n] for n in (free[1], *free[3:])), reverse=True)
    assert recommendation.prices == prices | {"must list": sum(best[:2]) - kept}
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


def test_the_expected_benefit_is_that_of_the_list_or_unknown(desk: Desk, policy: FixedPolicy) -> None:
    program = make(desk, shadow="egt")
    policy.priority, policy.benefit = [3.0, 2.0, 1.0], [0.5, 0.25, 9.0]
    decided = decision(program, {"a": 0, "b": 0, "c": 0})
    assert decided["benefit"] == 0.75
    assert decided["shadow"] == {"policy": "egt", "common": 2, "benefit": 0.75}
    policy.benefit = [0.5, NAN, 9.0]
    assert decision(program, {"a": 1, "b": 0, "c": 0})["benefit"] is None
    policy.benefit = [0.5, INF, 9.0]
    assert decision(program, {"a": 0, "b": 1, "c": 0})["benefit"] is None


def decision(program: Program, states: dict[str, int]) -> dict[str, Any]:
    return program.decide(states).found.decided.about


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
    assert recommendation.prices == {"share of north": 1.0}


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
        )  # luck is averaged over few draws
        assert min((price for price in recommendation.prices.values() if price is not None), default=0.0) >= 0
        program.learn([{"agent": name, "next_state": int(rng.integers(2))} for name in agents[: rng.integers(1, 10)]])
