"""The status is plain data, its JSON has finite numbers only, and the next steps are those that wait."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desk.statuses import count_people
from restive.api.status import NextStep, WaitingRound
from restive.desk import Desk, Program
from restive.desk.agents import RoundTotals
from restive.desk.config import Config, Words
from restive.desk.effects import Effect
from restive.desk.lift import lift_by_round
from restive.desk.output import step_with_command
from restive.desk.replay import replay
from restive.desk.status import (
    as_plain,
    compare_shadow,
    describe_total,
    find_drift,
    find_effects,
    get_status,
    judge_effect,
    measure_lift,
    next_steps,
    summarize,
)
from restive.errors import InputError

WORDS = Words(person="shop", people="shops", action="a coupon", every="week", reward_unit="orders a week")


PEOPLE = [f"p{n:02}" for n in range(24)]


def step(message: str, verb: str | None = None, round_: int | None = None) -> NextStep:
    return {"message": message, "verb": verb, "round": round_}


def test_numbers_that_are_not_finite_are_null() -> None:
    curve = lift_by_round(np.array([[6.0], [2.0]]), np.array([[36.0], [4.0]]), np.array([[1], [0]]))
    assert as_plain(curve) == {
        "treated": {"mean": [6.0], "error": [None], "low": [None], "high": [None]},
        "control": {"mean": [None], "error": [None], "low": [None], "high": [None]},
        "lift": {"mean": [None], "error": [None], "low": [None], "high": [None]},
        "first": 1,
    }


def test_rounds_that_wait_come_first_and_in_order() -> None:
    waiting: list[WaitingRound] = [
        {"round": 8, "label": "Week of 9 Nov 2026", "missing": 1},
        {"round": 7, "label": "Week of 2 Nov 2026", "missing": 1200},
    ]
    assert next_steps(WORDS, count_people(40, control=4), waiting, decided=8) == [
        step("The week of 2 Nov 2026 (round 7) waits for the outcomes of 1,200 shops.", "learn", 7),
        step("The week of 9 Nov 2026 (round 8) waits for the outcomes of 1 shop.", "learn", 8),
        step("The next list can be decided as soon as its states are known.", "decide"),
    ]


def test_the_first_round_the_last_one_and_a_missing_control_group_are_mentioned() -> None:
    assert "Nobody has joined yet" in next_steps(WORDS, count_people(0), [], decided=0)[0]["message"]
    (over,) = next_steps(
        WORDS,
        count_people(40, control=4),
        [{"round": 30, "label": "November 2026", "missing": 5}],
        decided=30,
        horizon=30,
    )[1:]
    assert over["message"].startswith("All 30 rounds are decided")
    assert over["verb"] is None
    assert "no control group" in next_steps(WORDS, count_people(40), [], decided=3)[-1]["message"]
    assert len(next_steps(WORDS, count_people(40), [], decided=0)) == 1


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.delenv("RESTIVE_STORE", raising=False)
    with Desk(tmp_path / "desk.db") as opened:
        yield opened


def make_program(desk: Desk, **settings: Any) -> Program:
    usual: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 2], "budget": 4, "control": 0.25, "seed": 5}
    return desk.create("one", **usual | {"states_are_outcomes": False} | settings)


def play(program: Program, rounds: int) -> None:
    """Acting always helps, waiting never does."""
    for _ in range(rounds):
        recommendation = program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
        program.learn(
            [{"agent": name, "next_state": "high" if name in recommendation.chosen else "low"} for name in PEOPLE]
        )


def test_a_program_without_rounds_says_what_to_do_first(desk: Desk) -> None:
    program = make_program(desk)
    seen = get_status(program)
    assert (seen["people"]["active"], seen["rounds"], seen["effects"], seen["actions"]) == (0, [], [], 0)
    unknown = ("lift", "curve", "budget_used", "extra_per_action")
    assert [seen[name] for name in unknown] == [None] * 4  # type: ignore[literal-required]
    assert seen["steps"] == [step("Nobody has joined yet; everybody with a state in the first round joins.", "decide")]
    json.dumps(seen, allow_nan=False)


def test_the_lines_of_rounds_add_up_to_the_records(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 6)
    seen = get_status(program)
    control = program.projection.agents.control
    assert 0 < control.sum() == seen["people"]["control"] < 24
    for row in seen["rounds"]:
        found = program.get_round(row["round"])
        assert (row["present"], row["budget"], row["advised"], row["done"], row["outcomes"]) == (24, 4, 4, 4, 24)
        assert row["reward_mean"] == pytest.approx(found.reward[~control].mean()) == pytest.approx(8 / (~control).sum())
        assert row["control_mean"] == 0.0
    assert seen["actions"] == 24
    assert seen["budget_used"] == 1.0
    assert seen["waiting"] == []
    json.dumps(seen, allow_nan=False)


def test_a_program_that_helps_has_a_lift_whose_interval_holds_what_it_added(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 11)  # so that people differ in how often they were chosen
    lift = get_status(program)["lift"]
    assert lift is not None
    assert lift["low"] is not None
    assert lift["high"] is not None
    added = (
        8 / (~program.projection.agents.control).sum()
    )  # four times 2 a round, shared by those who are not in control
    assert lift["low"] < added < lift["high"]
    assert lift["low"] > 0


def test_without_a_control_group_there_is_no_lift_and_that_is_said(desk: Desk) -> None:
    program = make_program(desk, control=0.0)
    play(program, 2)
    seen = get_status(program)
    assert seen["lift"] is None
    assert step("There is no control group, so the effect of the program cannot be measured.") in seen["steps"]


def test_rounds_that_wait_are_named_with_how_many_are_missing(desk: Desk) -> None:
    program = make_program(desk)
    program.decide(dict.fromkeys(PEOPLE, "low"))
    program.learn([{"agent": PEOPLE[0], "next_state": "low"}, {"agent": PEOPLE[1], "done": "no"}])
    program.decide(dict.fromkeys(PEOPLE, "high"))
    waiting = get_status(program)["waiting"]
    assert [(each["round"], each["missing"]) for each in waiting] == [(1, 23), (2, 24)]
    assert get_status(program)["steps"] == [
        step(f"Round 1 ({waiting[0]['label']}) waits for the outcomes of 23 people.", "learn", 1),
        step(f"Round 2 ({waiting[1]['label']}) waits for the outcomes of 24 people.", "learn", 2),
        step("The next list can be decided as soon as its states are known.", "decide"),
    ]


def test_commands_of_steps_name_the_store_only_if_the_environment_does_not(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = get_status(make_program(desk))["steps"]
    address = desk.store.address
    monkeypatch.setenv("RESTIVE_STORE", address)
    assert step_with_command("one", first, address).endswith(": restive desk decide one --states STATES.csv")
    monkeypatch.setenv("RESTIVE_STORE", "elsewhere.db")
    assert f" one --store {address} --states" in step_with_command("one", first, address)


def test_nobody_waits_for_outcomes_of_people_who_were_erased(desk: Desk) -> None:
    program = make_program(desk)
    for _ in range(2):
        program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
    program.learn([{"agent": name, "next_state": "low"} for name in PEOPLE[2:]], round=1)
    program.erase(PEOPLE[:2])
    assert [(line.gone, line.waiting) for line in program.rounds] == [(2, 0), (2, 22)]
    assert [(each["round"], each["missing"]) for each in get_status(program)["waiting"]] == [(2, 22)]
    assert summarize(program)["waiting"] == 22
    program.erase(PEOPLE[2:3])  # whose outcome of round 1 is in
    assert [(line.gone, line.waiting) for line in program.rounds] == [(2, 0), (3, 21)]
    assert program.learn([{"agent": name, "next_state": "low"} for name in PEOPLE[3:]], round=2).waiting == 0
    assert get_status(program)["waiting"] == []
    program.cache.save(now=True)
    again = desk.program("one")
    assert [(line.gone, line.waiting) for line in again.rounds] == [(2, 0), (3, 0)]
    assert replay(again).proven


def test_what_nobody_asked_for_is_counted_apart_and_uses_no_budget(desk: Desk) -> None:
    program = make_program(desk, control=0.0)
    recommendation = program.decide(dict.fromkeys(PEOPLE, "low"))
    unlisted = [name for name in PEOPLE if name not in recommendation.chosen][:3]
    rows = [{"agent": name, "done": True} for name in unlisted]
    rows += [{"agent": name, "done": n > 0} for n, name in enumerate(recommendation.chosen)]
    program.learn(rows)
    seen = get_status(program)
    (row,) = seen["rounds"]
    assert (row["advised"], row["done"], row["failed"], row["unlisted"]) == (4, 3, 1, 3)
    assert (seen["actions"], seen["budget_used"]) == (6, 0.75)


def test_a_round_is_dated_by_its_decision(tmp_path: Path) -> None:
    hours = iter(range(100))
    start = datetime(2027, 1, 1, tzinfo=UTC)
    with Desk(tmp_path / "hours.db", clock=lambda: start + timedelta(hours=next(hours))) as desk:
        program = make_program(desk)
        decided = program.decide(dict.fromkeys(PEOPLE, "low")).found.at
        assert program.rounds[0].at == get_status(program)["rounds"][0]["at"] == decided
        program.learn([{"agent": PEOPLE[0], "next_state": "low"}])
        assert program.rounds[0].at == desk.program("one").rounds[0].at == decided


def test_those_who_joined_with_the_last_round_are_new_unless_it_was_the_first(desk: Desk) -> None:
    program, counted = make_program(desk, keep=9), []
    for there in (PEOPLE[:10], PEOPLE[:15], PEOPLE[:15], PEOPLE):
        program.decide(dict.fromkeys(there, "low"), again=True)
        counted.append(get_status(program)["people"]["new"])
    assert counted == [0, 5, 0, 9]
    program.leave(PEOPLE[-2:])
    assert get_status(program)["people"]["new"] == 7


def test_people_are_counted_by_what_became_of_them(desk: Desk) -> None:
    program = make_program(desk, control=0.0)
    play(program, 1)
    program.leave(PEOPLE[:3])
    program.erase(PEOPLE[2:4])
    people = get_status(program)["people"]
    assert (people["active"], people["left"], people["erased"]) == (20, 2, 2)


def test_effects_are_estimated_from_outcomes_whatever_the_policy(desk: Desk) -> None:
    program = make_program(desk, policy="random", control=0.0)
    play(program, 12)
    low, high = find_effects(program.projection)
    assert (low["acted"], low["waited"], low["knowledge"], low["note"]) == (48, 240, "known", "")
    assert low["low"] is not None
    assert low["low"] <= (low["mean"] or 0) == 2.0  # acting always helps, waiting never does
    assert low["spread"] is None
    assert (high["acted"], high["mean"], high["knowledge"]) == (0, None, "not known")
    assert high["note"] == "only 0 people seen in this state with an action"
    json.dumps(get_status(program), allow_nan=False)


def test_an_effect_is_thin_where_it_rests_on_little_and_not_known_where_on_less(desk: Desk) -> None:
    program = make_program(desk, policy="random", control=0.0)
    play(program, 1)
    assert find_effects(program.projection)[0]["note"] == "only 4 people seen in this state with an action"
    play(program, 2)
    effect = find_effects(program.projection)[0]
    assert (effect["knowledge"], effect["note"]) == ("thin", "only 12 outcomes after an action")


def test_an_interval_wider_than_the_range_of_rewards_says_nothing() -> None:
    effect = Effect(0.5, -1.5, 2.5, math.nan, acted_people=9, waited_people=9)
    wide, narrow = (judge_effect("low", 90, 9, effect, widest, Words()) for widest in (3.0, 5.0))
    assert (wide["knowledge"], wide["mean"], wide["note"]) == (
        "not known",
        None,
        "the interval is too wide to say anything",
    )
    assert (narrow["knowledge"], narrow["mean"]) == ("thin", 0.5)


def test_the_total_is_a_range_as_long_as_it_may_be_0(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 6)
    effect = measure_lift(program.projection)
    clear = describe_total(effect._replace(extra=40.0, extra_low=20.0, extra_high=60.0), 10, Words(acted="got one"))
    assert (
        clear
        == "In total that is 40 reward (95% interval from 20 to 60); 4.0 (2.0 to 6.0) for each time someone got one."
    )
    early = describe_total(effect._replace(extra=40.0, extra_low=-20.0, extra_high=100.0), 10, Words())
    assert early == "Too early to say what that is in total: between −20 and 100 reward."
    assert describe_total(effect._replace(extra_low=math.nan), 10, Words()) == ""


def test_the_range_of_rewards_is_that_of_the_config_or_of_the_reports(desk: Desk) -> None:
    assert get_status(make_program(desk))["reward_range"] == {"low": 0.0, "high": 2.0, "observed": False}
    program = desk.create("two", states=["low", "high"], control=0.0, budget=1)
    assert get_status(program)["reward_range"] is None
    program.decide({"ann": 0, "ben": 1})
    program.learn([{"agent": "ann", "next_state": 0, "reward": -1.5}, {"agent": "ben", "next_state": 1, "reward": 7}])
    assert get_status(program)["reward_range"] == {"low": -1.5, "high": 7.0, "observed": True}


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
        monkeypatch.setattr("restive.desk.status.MAX_SHADOW_ROUNDS", last)
        shadow = compare_shadow(program)
        compared.append(0 if shadow is None else shadow.rounds)
    assert compared == [5 * free, 2 * free]


def test_a_program_in_one_line(desk: Desk) -> None:
    program = make_program(desk, template="loyalty", states=["low", "high"])
    play(program, 2)
    program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
    found = summarize(program)
    assert found["due"] is not None
    assert (found["due"]["round"], found["due"]["when"][:7]) == (4, "due in ")
    assert {**found, "due": None} == {
        "due": None,
        "name": "one", "created": program.created, "people": 24, "rounds": 3, "events": 7, "waiting": 24,
        "policy": "lagrange", "template": "loyalty", "title": "", "archived": False, "error": None,
    }  # fmt: skip


def test_a_program_whose_policy_is_gone_still_has_its_line(desk: Desk, tmp_path: Path) -> None:
    from desk.test_desk import OWN

    (tmp_path / "fair.py").write_text(OWN)
    program = make_program(desk, policy=str(tmp_path / "fair.py"))
    play(program, 1)
    (tmp_path / "fair.py").unlink()
    line = summarize(desk.program("one"))
    assert (line["name"], line["people"], line["events"]) == ("one", None, None)
    assert "fair.py: policy file not found" in (line["error"] or "")


def test_a_cancelled_round_is_waited_for_no_more_and_its_budget_is_not_used(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 2)
    program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
    assert get_status(program)["budget_used"] == 1.0  # the budget of the last round is not used yet, nor left over
    program.cancel(3)
    seen = get_status(program)
    assert (seen["budget_used"], seen["actions"], seen["waiting"], seen["caution"]) == (1.0, 8, [], "")
    assert [(row["budget"], row["advised"], row["done"]) for row in seen["rounds"]] == [(4, 4, 4), (4, 4, 4), (0, 0, 0)]
    assert summarize(program)["waiting"] == 0
    assert seen["steps"][0]["message"].startswith("The next list can be decided")
    program.decide(dict.fromkeys(PEOPLE, "high"))
    program.cancel(4)
    seen = get_status(program)
    assert seen["waiting"] == []
    assert seen["steps"][0]["message"].startswith("The next list can be decided")
    json.dumps(seen, allow_nan=False)


def test_many_missing_outcomes_come_with_a_caution(desk: Desk) -> None:
    program = make_program(desk)
    play(program, 4)
    assert get_status(program)["caution"] == ""
    program.decide(dict.fromkeys(PEOPLE, "low"), again=True)
    few = [{"agent": name, "next_state": "low"} for name in PEOPLE]
    program.learn(few[:17], round=5)
    reported = "Only 113 of 120 outcomes are known. If people on the list are reported sooner than others, the lift is"
    assert get_status(program)["caution"].startswith(reported)  # 7 of 120 are more than one in twenty
    program.learn(few[17:18], round=5)
    assert get_status(program)["caution"] == ""  # 6 are not


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
    assert get_status(program)["title"] == title


def test_words_of_its_own_leave_the_other_words_of_the_template(desk: Desk) -> None:
    words = desk.create("one", template="pharmacy", words={"person": "patient"}).config.words
    assert (words.person, words.people, words.action) == ("patient", "pharmacists", "a coupon")


def test_the_title_is_the_program_s_own_or_that_of_its_template(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("calls", template="pharmacy", title="  Calls in the north ")
        assert get_status(program)["title"] == summarize(program)["title"] == "Calls in the north"
        assert program.change(title="").title == ""
        assert get_status(program)["title"] == "Pharmacy orders"
        program.change(title="Anrufe, Süd")
        assert summarize(program)["title"] == "Anrufe, Süd"
        for wrong in ("x" * 81, "two\nlines", None, 7):
            with pytest.raises(InputError, match="title is"):
                program.change(title=wrong)
        assert replay(program).proven


def walk(desk: Desk, changes_in: int, rounds: int) -> Program:
    """A program of people who stay in their state four times out of five, and from a round on hardly ever in `here`."""
    program = desk.create("walk", states=["away", "here"], rewards=[0, 1], budget=6, policy="random", seed=1)
    generator = np.random.default_rng(2)
    people = [f"p{n}" for n in range(60)]
    state = generator.integers(2, size=60)
    for number in range(1, rounds + 1):
        program.decide({name: ("away", "here")[each] for name, each in zip(people, state, strict=True)})
        stays = np.where((state == 1) & (number >= changes_in), 0.1, 0.8)
        state = np.where(generator.random(60) < stays, state, 1 - state)
    return program


def test_a_change_of_how_people_move_is_said_with_its_row_and_its_date(desk: Desk) -> None:
    program = walk(desk, changes_in=15, rounds=20)
    [alarm] = get_status(program)["drift"]
    assert (alarm["action"], alarm["state"]) == (False, "here")
    assert abs(alarm["since"] - 15) <= 1
    assert alarm["at"] == program.rounds[alarm["since"] - 1].at
    assert alarm["before"][1] == pytest.approx(0.8, abs=0.06)
    assert alarm["after"][1] < 0.3
    since = f"Since {program.rounds[alarm['since'] - 1].mention}, people in 'here' move differently without an action: away "
    assert alarm["sentence"].startswith(since)
    assert alarm["advice"].startswith("Check that states")
    assert replay(program).belief == replay(program).believed


def test_nothing_is_said_where_nothing_changed(desk: Desk) -> None:
    assert get_status(walk(desk, changes_in=99, rounds=14))["drift"] == []


def test_alarms_of_selected_people_say_that_selection_may_be_the_reason() -> None:
    quiet, loud = [[[20, 10], [10, 20]], [[10, 10], [10, 10]]], [[[20, 10], [10, 20]], [[10, 10], [20, 0]]]
    rounds = [
        RoundTotals(
            n,
            "2026-03-02T08:00:00Z",
            "2026-03-02",
            "none",
            n,
            20,
            100,
            0,
            moves=np.ravel(quiet if n <= 20 else loud).tolist(),
        )
        for n in range(1, 30)
    ]
    [alarm] = find_drift(rounds, Config(states=("away", "here"), budget=20, words=WORDS))
    assert alarm["sentence"] == (
        "Since round 21 (2 Mar 2026), shops in 'here' move differently with a coupon: away 100% instead of 50%, "
        "here 0% instead of 50%."
    )
    assert "the policy selects others" in alarm["advice"]
