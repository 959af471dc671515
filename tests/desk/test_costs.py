"""People who cost different amounts: one budget for all, remembered costs, right probabilities, and all rules hold."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from restive import Agent
from restive.contract import Draws, Estimate, Ranking
from restive.desk import Desk, cost_selection
from restive.desk.cost_selection import choose_by_cost, count_displaced_by_cost
from restive.desk.events import FREE, IN_CONTROL, ON_MUST, ON_NEVER
from restive.desk.export import records_table, summarize_rounds
from restive.desk.program import Program
from restive.desk.replay import replay
from restive.desk.selection import Choice, Rules
from restive.desk.status import get_status
from restive.desk.table_columns import TableError
from restive.errors import InputError
from restive.kernels import rng
from restive.types import Floats

LEVELS = ["low", "high"]
PEOPLE = [f"p{n}" for n in range(12)]
COSTS = dict(zip(PEOPLE, np.random.default_rng(3).uniform(1, 9, 12).round(1).tolist(), strict=True))
RULES: dict[str, Any] = {"control": 0.0, "cool_down": 0, "seed": 5, "states_are_outcomes": False}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "a.db") as opened:
        yield opened


def create(desk: Desk, name: str = "visits", **settings: Any) -> Program:
    usual: dict[str, Any] = {"states": LEVELS, "rewards": [0, 1], "budget": 20, "cost_unit": "km", **RULES}
    return desk.create(name, **usual | settings)


def rows(**more: Any) -> list[dict[str, Any]]:
    """A table of states in which everybody is low."""
    return [{"agent": name, "state": "low", "cost": cost, **more} for name, cost in COSTS.items()]


def choose(priority: Floats, rules: Rules, step: int = 0, explore: float = 0.0, noise: Floats | None = None) -> Choice:
    """The choice of a round whose random numbers depend on the step."""
    draws = Draws(rng.run_keys(1, np.zeros(1, np.int64)), np.arange(priority.size) + 5, step, rules.budget)
    draws = draws._replace(cost=None if rules.cost is None else rules.cost[None])
    added = np.zeros(priority.size) if noise is None else noise
    drawn = priority + added * np.random.default_rng(step).normal(size=priority.size)
    blank = np.full((1, priority.size), np.nan)
    ranking = Ranking(drawn[None], np.array([explore]))
    return choose_by_cost(ranking, Estimate(priority[None], blank, added[None]), rules, draws)


def free(cost: list[float], budget: int, group: list[int] | None = None, **more: Any) -> Rules:
    """Rules under which everybody can be chosen."""
    groups = np.array(group if group is not None else [-1] * len(cost))
    return Rules(np.full(len(cost), FREE), groups, more.pop("shares", {}), budget, cost=np.array(cost), **more)


# --- the choice


@pytest.mark.parametrize("spend", ["exactly", "at most"])
@pytest.mark.parametrize("policy", ["egt", "lagrange", "thompson-whittle"])
def test_a_program_makes_the_choices_of_an_agent_with_costs_bit_for_bit(policy: str, spend: str, desk: Desk) -> None:
    program = create(desk, policy=policy, spend=spend, keep=0)
    agent = Agent(policy, PEOPLE, LEVELS, 20, cost=list(COSTS.values()), spend=spend, seed=5)
    generator, cost, known = np.random.default_rng(1), dict(COSTS), PEOPLE
    for round_ in range(1, 9):
        # Who was reported in the last round has a known state in the desk, and takes part.
        here = [name for name in PEOPLE if name in known or generator.random() < 0.5]
        states = {name: LEVELS[generator.integers(2)] for name in here}
        cost[here[0]] = float(generator.uniform(1, 9))
        agent.cost = list(cost.values())
        chosen = agent.act(states)
        table = [{"agent": name, "state": states[name], "cost": cost[name]} for name in here]
        decided = program.decide(table, again=True)
        assert set(decided.chosen) == set(chosen)
        assert decided.planned == pytest.approx(sum(cost[name] for name in chosen))
        assert sum(cost[name] for name in chosen) <= 20 * (1 + 1e-9)
        known = [here[0], *(name for name in here[1:] if generator.random() < 0.7)]
        after = {name: LEVELS[generator.integers(2)] for name in known}
        agent.learn(states, chosen, {name: LEVELS.index(after[name]) for name in known}, after)
        program.learn(
            [{"agent": name, "done": name in chosen, "next_state": after[name]} for name in known], round=round_
        )
    found = replay(program)
    assert found.proven
    assert found.same == 8


@pytest.mark.parametrize(
    ("explore", "noise", "shares"), [(0.0, 0.0, {}), (0.4, 0.0, {0: 0.5}), (0.0, 0.7, {0: 0.5}), (0.3, 0.5, {})]
)
def test_probabilities_are_how_often_people_are_chosen(
    explore: float, noise: float, shares: dict[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    priority = np.array([2.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.0])
    rules = free([2.5, 1.0, 2.0, 3.0, 1.0, 1.0, 0.5], 6, [1, 1, 0, 0, 0, 1, 1], shares=shares)
    rules.exclusion[4] = ON_MUST
    deviation, repeats = np.full(priority.size, noise), 4000
    choice = choose(priority, rules, 0, explore, deviation)
    probability, error = choice.probability, choice.error
    monkeypatch.setattr(cost_selection, "MAX_DRAWS", 1)  # their probabilities are not used
    choices = [choose(priority, rules, step, explore, deviation) for step in range(repeats)]
    often = np.mean([choice.chosen for choice in choices], axis=0)
    expected = np.sqrt(probability * (1 - probability) / repeats + error**2)
    assert (np.abs(probability - often) <= 4.5 * expected + 0.002).all()
    assert error.max() < 0.009  # of frequencies in 4096 draws
    assert ((often > 0.05) & (often < 0.95)).sum() >= 2
    assert probability[4] == 1.0
    assert not any((choice.chosen * rules.cost).sum() > 6 + 1e-6 for choice in choices)  # type: ignore[operator]


def test_without_ties_and_noise_probabilities_are_certain() -> None:
    choice = choose(np.array([3.0, 2.0, 1.0]), free([4.0, 3.0, 2.0], 6))
    assert choice.chosen.tolist() == [True, False, True]
    assert choice.probability.tolist() == [1.0, 0.0, 1.0]
    assert not choice.error.any()


def test_a_group_gets_its_share_of_the_budget_and_the_must_list_counts_towards_it() -> None:
    priority, cost, group = np.array([5.0, 4.0, 3.0, 2.0, 1.0]), [2.0, 2.0, 2.0, 2.0, 2.0], [0, 0, 0, 1, 1]
    assert choose(priority, free(cost, 6, group)).chosen.tolist() == [True, True, True, False, False]
    half = free(cost, 6, group, shares={1: 0.5})
    assert choose(priority, half).chosen.tolist() == [True, False, False, True, True]
    half.exclusion[4] = ON_MUST
    assert choose(priority, half).chosen.tolist() == [True, False, False, True, True]
    third = free(cost, 6, group, shares={1: 1 / 3})
    third.exclusion[4] = ON_MUST
    assert choose(priority, third).chosen.tolist() == [True, True, False, False, True]


def test_whom_the_control_group_would_have_had_on_the_list_is_who_is_chosen_alone_with_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cost_selection, "MAX_DRAWS", 1)
    generator, reached = np.random.default_rng(7), 0
    for step in range(150):
        size = 9
        priority, cost = generator.integers(0, 5, size).astype(float), generator.uniform(0.5, 4, size)
        treated = generator.choice([FREE, FREE, FREE, ON_MUST, ON_NEVER], size, p=[0.3, 0.3, 0.2, 0.05, 0.15])
        control = generator.random(size) < 0.3
        exclusion, group = np.where(control, IN_CONTROL, treated), generator.integers(-1, 2, size)
        # The shares of a group depend on what can be spent, here more than the budget in any case.
        rules = Rules(exclusion, group, {0: 0.4} if step % 2 else {}, 4, False, treated, cost)
        explore = float(step % 3 == 0)
        choice = choose(priority, rules, step, explore)
        if cost[exclusion == FREE].sum() < 4:
            continue
        for one in np.flatnonzero(control):
            alone = exclusion.copy()
            alone[one] = treated[one]
            assert choose(priority, rules._replace(exclusion=alone), step, explore).chosen[one] == choice.would_act[one]
            reached += int(choice.would_act[one])
        assert (choice.would_act[~control] == choice.chosen[~control]).all()
    assert reached > 50


def test_displaced_people_are_counted_by_lists_without_each_rule() -> None:
    priority, tie = np.array([4.0, 3.0, 2.0, 1.0]), np.zeros(4)
    rules = free([3.0, 2.0, 2.0, 1.0], 4, [0, 0, 1, 1], shares={1: 0.75})
    rules.exclusion[:2] = ON_NEVER, ON_MUST
    # With the rules 1 and 2 are on the list; without `never` 1 and 2, without the must list 2 and 3, then 2 and 1.
    assert count_displaced_by_cost(priority, tie, rules, {1: "north"}) == {
        "never list": 0, "must list": 1, "share of north": 0,
    }  # fmt: skip


# --- tables, memory and errors


def test_costs_are_remembered_and_the_latest_counts(desk: Desk) -> None:
    program = create(desk, keep=2)
    program.decide(rows())
    second = program.decide(
        [{"agent": "p0", "state": "high", "cost": 2.25}, {"agent": "p1", "state": "low", "cost": None}]
    )
    expected = [2.25, *list(COSTS.values())[1:]]
    assert program.projection.agents.cost.tolist() == expected
    assert second.found.given.cost is not None
    assert second.found.given.cost.tolist() == expected
    third = program.decide([{"agent": "p1", "state": "high"}])
    assert "no column for the cost, which stays as it was" in third.notes
    assert program.history("p0")[-1]["cost"] == 2.25
    assert replay(program).proven


def test_the_column_of_costs_may_have_another_name_and_decimal_commas(desk: Desk) -> None:
    program = create(desk)
    program.decide([{"agent": "ann", "state": 0, "Weg": "3,5"}], columns={"cost": "Weg"})
    assert program.projection.agents.cost.tolist() == [3.5]


def test_wrong_and_missing_costs_are_refused_and_nothing_is_recorded(desk: Desk) -> None:
    program = create(desk)
    with pytest.raises(TableError) as refused:
        program.decide([{"agent": "ann", "state": 0, "cost": 0}, {"agent": "ben", "state": 0, "cost": "far"}])
    assert [(fault.row, fault.column) for fault in refused.value.faults] == [(1, "cost"), (2, "cost")]
    assert "0 is not a cost; it must be above 0, up to 1e+09" in str(refused.value)
    with pytest.raises(InputError, match=r"The cost of 1 person is not known \(ben\); give each a number above 0"):
        program.decide([{"agent": "ann", "state": 0, "cost": 1}, {"agent": "ben", "state": 0, "cost": None}])
    with pytest.raises(InputError, match=r"The people on the must list cost 25 km, but the budget is 20 km\."):
        program.decide([{"agent": "ann", "state": 0, "cost": 25}], must=["ann"])
    assert program.projection.length == 1


def test_the_unit_may_change_but_not_whether_people_have_costs(desk: Desk) -> None:
    program, plain = create(desk), create(desk, "plain", cost_unit="")
    assert program.change(cost_unit="miles").cost_unit == "miles"
    for one, unit in ((program, " "), (plain, "km")):
        with pytest.raises(InputError, match="Whether people have costs cannot be changed in a running program"):
            one.change(cost_unit=unit)
    with pytest.raises(InputError, match="cost_unit is 'a\\\\nb'; it must be one line of at most 30 characters"):
        create(desk, "third", cost_unit="a\nb")
    with pytest.raises(InputError, match="A feature is called 'cost'"):
        create(desk, "third", features={"cost": []})


# --- what is shown


def test_lists_rounds_and_the_status_show_what_was_planned_and_spent(desk: Desk) -> None:
    program = create(desk)
    decided = program.decide(rows(), must=["p3"])
    chosen = decided.chosen
    assert decided.table["cost"].to_list()[: len(chosen)] == [COSTS[name] for name in chosen]
    assert decided.call_list["cost"].to_list() == decided.table["cost"].to_list()
    assert [row["cost"] for row in decided.people()] == decided.table["cost"].to_list()
    done = {name: place > 0 for place, name in enumerate(chosen)}
    table = [{"agent": name, "done": done.get(name, False), "next_state": "high"} for name in PEOPLE]
    program.learn(table)
    spent = sum(COSTS[name] for name, was in done.items() if was)
    (line,), status = summarize_rounds(program), get_status(program)
    assert line["planned"] == pytest.approx(decided.planned)
    assert line["spent"] == pytest.approx(spent)
    assert status["budget_used"] == pytest.approx(spent / 20)
    assert status["cost_unit"] == "km"
    assert records_table(program, program.get_round(1))["cost"].to_list() == list(COSTS.values())
    program.learn([{"agent": chosen[0], "done": True, "next_state": "high"}], round=1, correct=True)
    assert summarize_rounds(program)[0]["spent"] == pytest.approx(decided.planned)
    program.undo()
    program.undo()
    assert summarize_rounds(program)[0]["spent"] == 0.0
    program.undo()
    assert program.projection.agents.count == 0
    assert replay(program).proven


def test_a_budget_that_need_not_be_spent_says_how_much_of_it_is_used(desk: Desk) -> None:
    program = create(desk, spend="at most", budget=60)
    generator = np.random.default_rng(2)
    for round_ in range(1, 25):  # acting never helps, and often harms
        decided = program.decide(rows(), again=True)
        after = generator.random(12) < np.where(np.isin(PEOPLE, decided.chosen), 0.1, 0.9)
        table = [{"agent": name, "next_state": int(state)} for name, state in zip(PEOPLE, after, strict=True)]
        program.learn(table, round=round_)
    last = program.decide(rows(), again=True)
    assert last.planned is not None
    assert last.planned < 60
    assert any(note.endswith("of 60 km used: the policy expects nobody else to gain") for note in last.remarks)


def test_a_program_without_costs_has_none_in_its_records(desk: Desk) -> None:
    program = create(desk, "plain", cost_unit="", budget=3)
    decided = program.decide([{"agent": name, "state": 0} for name in PEOPLE])
    assert "cost" not in decided.table.columns
    assert decided.planned is None
    assert [row["cost"] for row in decided.people()][:1] == [None]
    assert "cost" not in list(program.log())[-1].columns
    assert summarize_rounds(program)[0]["spent"] is None
    assert "ignored columns: cost" in program.decide(rows(), again=True).notes
