"""A control group until a round: it joins the program then, and the lift counts the rounds before."""

from pathlib import Path

import numpy as np
import pytest

from restive.desk import Desk, Program
from restive.desk.config import Config
from restive.desk.export import export
from restive.desk.replay import replay
from restive.desk.status import get_status, measure_lift
from restive.errors import InputError
from restive.logs.trial import read_trial

PEOPLE = [f"p-{n:02}" for n in range(40)]
UNTIL = 2


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk.db")


def start(desk: Desk, name: str = "waiting", until: int | None = UNTIL) -> Program:
    return desk.create(
        name,
        states=["low", "high"],
        rewards=[0, 1],
        policy="random",
        budget=30,
        control=0.4,
        control_until=until,
        seed=3,
    )


def play(program: Program, rounds: int) -> list[set[str]]:
    """Rounds in which everybody on the list is well afterwards, and nobody else; who was on each list."""
    lists: list[set[str]] = []
    for _ in range(rounds):
        listed = lists[-1] if lists else set()
        decided = program.decide({agent: "high" if agent in listed else "low" for agent in PEOPLE}, again=True)
        lists.append(set(decided.chosen))
    return lists


def find_control(program: Program) -> set[str]:
    return set(program.names.call(np.flatnonzero(program.projection.agents.control)))


def test_the_control_group_is_on_lists_after_its_last_round(desk: Desk) -> None:
    program = start(desk)
    lists = play(program, UNTIL + 2)
    control = find_control(program)
    assert control
    assert not control & (lists[0] | lists[1])
    assert control & lists[2]
    assert program.recommendation(UNTIL).exclusions()["control group"] == len(control)
    assert "control group" not in program.recommendation(UNTIL + 1).exclusions()
    with pytest.raises(InputError, match="on the must list, but in the control group"):
        start(desk, "kept", until=None).decide(dict.fromkeys(PEOPLE, "low"), must=PEOPLE)
    program.decide(dict.fromkeys(PEOPLE, "low"), must=sorted(control)[:2])


def test_the_lift_counts_the_rounds_before(desk: Desk) -> None:
    program, kept = start(desk), start(desk, "kept", until=None)
    for each in (program, kept):
        play(each, UNTIL + 1)  # the results of the last round are not in yet
    assert measure_lift(program.projection)[:-1] == measure_lift(kept.projection)[:-1]
    before = measure_lift(program.projection)
    assert before.mean > 0
    play(program, 2)
    after = measure_lift(program.projection)
    assert after[:-1] == before[:-1]
    last = program.rounds[UNTIL - 1].mention
    assert after.explanation.endswith(f"Measured up to {last}; after that the control group joined the program.")
    totals = program.rounds[UNTIL]
    assert (totals.control.seen, totals.treated.seen) == (0, len(PEOPLE))
    status = get_status(program)
    assert status["people"]["control"] == 0
    assert not [step for step in status["steps"] if "control group" in step["message"]]


def test_nobody_joins_the_control_group_after_its_last_round(desk: Desk) -> None:
    program = start(desk)
    play(program, UNTIL)
    before = program.projection.agents.control.sum()
    program.decide(dict.fromkeys([*PEOPLE, *(f"new-{n:02}" for n in range(40))], "low"))
    assert program.projection.agents.control.sum() == before


def test_a_waiting_list_replays_bit_for_bit(desk: Desk) -> None:
    program = start(desk)
    play(program, UNTIL + 3)
    program.learn([{"agent": PEOPLE[0], "next_state": "high"}], round=UNTIL, correct=True)
    assert replay(program).proven


def test_a_report_on_somebody_who_joined_later_is_no_warning(desk: Desk) -> None:
    program = start(desk)
    play(program, UNTIL + 1)
    agent = sorted(find_control(program) - set(program.recommendation(UNTIL + 1).chosen))[0]
    notes = program.learn([{"agent": agent, "done": True, "next_state": "high"}], round=UNTIL + 1).notes
    assert not [note for note in notes if "control group" in note]


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "soon", True])
def test_the_last_round_is_a_round(wrong: object) -> None:
    with pytest.raises(InputError, match="control_until"):
        Config(states=("a", "b"), control_until=wrong)  # type: ignore[arg-type]


def test_a_waiting_list_needs_a_control_group() -> None:
    with pytest.raises(InputError, match="needs a control group"):
        Config(states=("a", "b"), control=0.0, control_until=4)


def test_a_trial_read_from_the_program_counts_the_same_rounds(desk: Desk, tmp_path: Path) -> None:
    program = start(desk)
    play(program, UNTIL + 1)
    before = [effect.mean for effect in read_trial(program).effects]
    play(program, 3)
    assert measure_lift(program.projection).mean in [pytest.approx(mean) for mean in before]
    export(program, tmp_path / "export")
    for source in (program, tmp_path / "export"):
        assert [effect.mean for effect in read_trial(source).effects] == pytest.approx(before, nan_ok=True)
