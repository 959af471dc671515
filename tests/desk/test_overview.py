"""A program at a glance, held against its log."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from restive.desk import Desk, Program
from restive.desk.overview import compare_shadow, find_learned, look_at, summarise
from restive.desk.replay import replay

PEOPLE = [f"p{n:02}" for n in range(24)]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.delenv("RESTIVE_STORE", raising=False)
    with Desk(tmp_path / "desk.db") as opened:
        yield opened


def make_program(desk: Desk, **settings: Any) -> Program:
    usual: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 2], "budget": 4, "control": 0.25, "seed": 5}
    return desk.create("one", **usual | settings)


def play(program: Program, rounds: int) -> None:
    """Acting always helps, waiting never does."""
    for _ in range(rounds):
        advice = program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
        program.learn([{"agent": name, "next_state": "high" if name in advice.chosen else "low"} for name in PEOPLE])


def test_a_program_without_rounds_says_what_to_do_first(desk: Desk) -> None:
    program = make_program(desk)
    seen = look_at(program)
    assert (seen.people.active, seen.rounds, seen.lift, seen.curve, seen.learned) == (0, [], None, None, [])
    assert [*map(str, seen.steps)] == [
        "Nobody has joined yet; the first round takes in everybody whose state is given: "
        f"restive desk decide one --store {program.store.address} --states STATES.csv"
    ]
    json.dumps(seen.as_json(), allow_nan=False)


def test_the_lines_of_rounds_add_up_to_the_records(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 6)
    seen = look_at(program)
    control = program.projection.agents.control
    assert 0 < control.sum() == seen.people.control < 24
    for row in seen.rounds:
        found = program.get_round(row.round)
        assert (row.present, row.budget, row.advised, row.done, row.outcomes_in) == (24, 4, 4, 4, 24)
        assert row.reward_mean == pytest.approx(found.reward[~control].mean()) == pytest.approx(8 / (~control).sum())
        assert row.control_mean == 0.0
    assert seen.actions == 24
    assert seen.budget_used == 1.0
    assert seen.waiting == []
    json.dumps(seen.as_json(), allow_nan=False)


def test_a_program_that_helps_has_a_lift_whose_interval_holds_what_it_added(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 12)
    lift = look_at(program).lift
    assert lift is not None
    added = (
        8 / (~program.projection.agents.control).sum()
    )  # four times 2 a round, shared by those who are not in control
    assert lift.low < added < lift.high
    assert lift.low > 0


def test_without_a_control_group_there_is_no_lift_and_that_is_said(desk: Desk) -> None:
    program = make_program(desk, control=0.0)
    play(program, 2)
    seen = look_at(program)
    assert seen.lift is None
    assert "There is no control group, so nobody can say what the program adds." in map(str, seen.steps)


def test_rounds_that_wait_are_named_with_how_many_are_missing(desk: Desk) -> None:
    program = make_program(desk)
    program.decide(dict.fromkeys(PEOPLE, "low"))
    program.learn([{"agent": PEOPLE[0], "next_state": "low"}, {"agent": PEOPLE[1], "done": "no"}])
    program.open(dict.fromkeys(PEOPLE, "high"))
    waiting = look_at(program).waiting
    assert [(each.round, each.missing, each.decided) for each in waiting] == [(1, 23, True), (2, 24, False)]
    called = f"one --store {program.store.address}"
    assert [*map(str, look_at(program).steps)] == [
        f"Round 1 waits for outcomes of 23 people: restive desk learn {called} --outcomes OUTCOMES.csv",
        f"Round 2 is open and has no list yet: restive desk decide {called}",
    ]


def test_steps_leave_the_store_out_where_the_environment_says_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    program = make_program(desk)
    monkeypatch.setenv("RESTIVE_STORE", program.store.address)
    assert str(look_at(program).steps[0]).endswith(": restive desk decide one --states STATES.csv")
    monkeypatch.setenv("RESTIVE_STORE", "elsewhere.db")
    assert f" one --store {program.store.address} --states" in str(look_at(program).steps[0])


def test_nobody_waits_for_outcomes_of_people_who_were_erased(desk: Desk) -> None:
    program = make_program(desk)
    for _ in range(2):
        program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
    program.learn([{"agent": name, "next_state": "low"} for name in PEOPLE[2:]], round=1)
    program.erase(PEOPLE[:2])
    assert [(line.gone, line.waiting) for line in program.rounds] == [(2, 0), (2, 22)]
    assert [(each.round, each.missing) for each in look_at(program).waiting] == [(2, 22)]
    assert summarise(program)["waiting"] == 22
    program.erase(PEOPLE[2:3])  # whose outcome of round 1 is in
    assert [(line.gone, line.waiting) for line in program.rounds] == [(2, 0), (3, 21)]
    assert program.learn([{"agent": name, "next_state": "low"} for name in PEOPLE[3:]], round=2).waiting == 0
    assert look_at(program).waiting == []
    program.cache.save(now=True)
    again = desk.program("one")
    assert [(line.gone, line.waiting) for line in again.rounds] == [(2, 0), (3, 0)]
    assert replay(again).proven


def test_what_nobody_asked_for_is_counted_apart_and_uses_no_budget(desk: Desk) -> None:
    program = make_program(desk, control=0.0)
    advice = program.decide(dict.fromkeys(PEOPLE, "low"))
    unasked = [name for name in PEOPLE if name not in advice.chosen][:3]
    rows = [{"agent": name, "done": True} for name in unasked]
    rows += [{"agent": name, "done": n > 0} for n, name in enumerate(advice.chosen)]
    program.learn(rows)
    seen = look_at(program)
    (row,) = seen.rounds
    assert (row.advised, row.done, row.failed, row.unasked) == (4, 3, 1, 3)
    assert (seen.actions, seen.budget_used) == (6, 0.75)


def test_a_round_is_dated_by_its_decision_or_else_by_its_opening(tmp_path: Path) -> None:
    hours = iter(range(100))
    start = datetime(2027, 1, 1, tzinfo=UTC)
    with Desk(tmp_path / "hours.db", clock=lambda: start + timedelta(hours=next(hours))) as desk:
        program = make_program(desk)
        program.open(dict.fromkeys(PEOPLE, "low"))
        opened = program.get_round(1).at
        assert program.rounds[0].at == look_at(program).rounds[0].at == opened
        decided = program.decide().found.decided_at
        assert decided > opened
        assert program.rounds[0].at == look_at(program).rounds[0].at == decided
        program.learn([{"agent": PEOPLE[0], "next_state": "low"}])
        assert program.rounds[0].at == desk.program("one").rounds[0].at == decided


def test_those_who_joined_with_the_last_round_are_new_unless_it_was_the_first(desk: Desk) -> None:
    program, counted = make_program(desk, keep=9), []
    for there in (PEOPLE[:10], PEOPLE[:15], PEOPLE[:15], PEOPLE):
        program.decide(dict.fromkeys(there, "low"), again=True)
        counted.append(look_at(program).people.new)
    assert counted == [0, 5, 0, 9]
    program.leave(PEOPLE[-2:])
    assert look_at(program).people.new == 7


def test_people_are_counted_by_what_became_of_them(desk: Desk) -> None:
    program = make_program(desk, control=0.0)
    play(program, 1)
    program.leave(PEOPLE[:3])
    program.erase(PEOPLE[2:4])
    people = look_at(program).people
    assert (people.active, people.left, people.erased) == (20, 2, 2)


def test_what_was_learned_is_the_mean_of_the_policys_estimates(desk: Desk) -> None:
    program = make_program(desk, policy="lagrange")
    play(program, 8)
    program.leave(PEOPLE[:4])
    policy_state, active = program.projection.policy_states["policy"], program.projection.agents.active
    for code, learned in enumerate(find_learned(program)):
        benefit = policy_state.policy.estimate(policy_state.belief, np.full((1, 24), code)).benefit[0][active]
        assert (learned.state, learned.people) == (("low", "high")[code], 20)
        assert learned.benefit == pytest.approx(benefit.mean())
        assert learned.helped == (benefit > 0).sum()
    assert find_learned(program)[0].benefit > 0


def test_a_policy_that_estimates_nothing_has_learned_nothing_to_show(desk: Desk) -> None:
    program = make_program(desk, policy="random")
    play(program, 2)
    assert [learned.people for learned in find_learned(program)] == [0, 0]
    json.dumps(look_at(program).as_json(), allow_nan=False)


def test_a_shadow_that_wishes_the_same_is_no_better_and_no_worse(desk: Desk) -> None:
    program = make_program(desk, policy="random", shadow="random")
    play(program, 5)
    shadow = compare_shadow(program)
    assert shadow is not None
    assert shadow.overlap == 1.0
    assert shadow.mean == pytest.approx(0.0)
    assert shadow.policy_mean == pytest.approx(shadow.shadow_mean)


def test_a_shadow_waits_for_outcomes_and_only_the_last_rounds_are_compared(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make_program(desk, policy="random", shadow="random")
    program.decide(dict.fromkeys(PEOPLE, "low"))
    assert compare_shadow(program) is None
    program.learn([{"agent": name, "next_state": "low"} for name in PEOPLE])
    play(program, 4)
    free = int((~program.projection.agents.control).sum())
    compared = []
    for last in (200, 2):
        monkeypatch.setattr("restive.desk.overview.SHADOWED", last)
        shadow = compare_shadow(program)
        compared.append(0 if shadow is None else shadow.rounds)
    assert compared == [5 * free, 2 * free]


def test_a_program_in_one_line(desk: Desk) -> None:
    program = make_program(desk, template="loyalty", states=["low", "high"])
    play(program, 2)
    program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
    assert summarise(program) == {
        "name": "one", "created": program.created, "people": 24, "rounds": 3, "events": 10, "waiting": 24,
        "policy": "lagrange", "template": "loyalty", "title": "", "error": None,
    }  # fmt: skip


def test_a_program_whose_policy_is_gone_still_has_its_line(desk: Desk, tmp_path: Path) -> None:
    from desk.test_desk import OWN

    (tmp_path / "fair.py").write_text(OWN)
    program = make_program(desk, policy=str(tmp_path / "fair.py"))
    play(program, 1)
    (tmp_path / "fair.py").unlink()
    line = summarise(desk.program("one"))
    assert (line["name"], line["people"], line["events"]) == ("one", None, None)
    assert "fair.py: file not found" in (line["error"] or "")


def test_a_cancelled_round_is_waited_for_no_more_and_its_budget_is_not_used(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 2)
    program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
    assert look_at(program).budget_used == pytest.approx(8 / 12)
    program.cancel(3)
    seen = look_at(program)
    assert (seen.budget_used, seen.actions, seen.waiting, seen.caution) == (1.0, 8, [], "")
    assert [(row.budget, row.advised, row.done) for row in seen.rounds] == [(4, 4, 4), (4, 4, 4), (0, 0, 0)]
    assert summarise(program)["waiting"] == 0
    assert seen.steps[0].sentence.startswith("Round 4 can be decided")
    program.open(dict.fromkeys(PEOPLE, "high"))
    program.cancel(4)
    seen = look_at(program)
    assert seen.waiting == []
    assert seen.steps[0].sentence.startswith("Round 5 can be decided")
    json.dumps(seen.as_json(), allow_nan=False)


def test_many_missing_outcomes_come_with_a_caution(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 4)
    assert look_at(program).caution == ""
    program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
    few = [{"agent": name, "next_state": "low"} for name in PEOPLE]
    program.learn(few[:17], round=5)
    reported = (
        "Only 113 of 120 outcomes are in. If people on the list are reported sooner than others, this is not to be"
    )
    assert look_at(program).caution.startswith(reported)  # 7 of 120 are more than one in twenty
    assert look_at(program).as_json()["caution"].startswith(reported)
    program.learn(few[17:18], round=5)
    assert look_at(program).caution == ""  # 6 are not


def test_what_is_expected_of_each_is_the_benefit_shared_by_those_on_the_list(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 6)
    (*_, last) = look_at(program).rounds
    benefit = program.rounds[-1].benefit
    assert benefit is not None
    assert last.expected_each == pytest.approx(benefit / 4)
    assert look_at(program).as_json()["rounds"][-1]["expected_each"] == pytest.approx(benefit / 4)


@pytest.mark.parametrize(
    ("settings", "title"),
    [
        ({}, "Pharmacy orders"),
        ({"budget": 7, "rewards": [0, 1, 2, 3]}, "Pharmacy orders"),
        ({"states": ["low", "high"]}, ""),
        ({"words": {"person": "patient", "people": "patients"}}, ""),
        ({"words": {"action": "a call"}}, ""),
    ],
)
def test_the_title_is_the_templates_unless_states_or_words_are_others(
    settings: dict[str, Any], title: str, desk: Desk
) -> None:
    program = desk.create("one", template="pharmacy", **settings)
    assert look_at(program).title == title


def test_words_of_its_own_leave_the_other_words_of_the_template(desk: Desk) -> None:
    words = desk.create("one", template="pharmacy", words={"person": "patient"}).config.words
    assert (words.person, words.people, words.action) == ("patient", "pharmacists", "a coupon")
