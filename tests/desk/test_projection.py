"""The projection of the log: known answers, corrections that end as if right at once, people who come, go and move."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desk.stories import LEARNERS, STEADY, Chapter, call, know, make, record, write
from restive.contract import Draws
from restive.desk import Desk
from restive.desk import projection as module
from restive.desk.events import Corrected, Event
from restive.desk.program import Program
from restive.desk.projection import Projection
from restive.desk.replay import replay
from restive.errors import InputError
from restive.policies.egt import Egt


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def spoil(story: list[Chapter]) -> list[Chapter]:
    """The same story with some of it recorded wrong: next states, what was done, both, and states."""
    wrong = copy.deepcopy(story)
    for number in (0, 2, 3):
        rows = wrong[number].rows
        rows[0]["next_state"] = 1 - rows[0]["next_state"]
        rows[-1]["done"] = not rows[-1]["done"]
        rows[1] |= {"next_state": 1 - rows[1]["next_state"], "done": not rows[1]["done"]}
    for number in (1, 3):
        for name in call(4):
            wrong[number].states[name] = 1 - wrong[number].states[name]
    return wrong


@pytest.mark.parametrize("shadow", STEADY)
def test_corrections_end_as_if_all_had_been_right_at_once(desk: Desk, shadow: str) -> None:
    story = write()
    right, wrong = (make(desk, name, policy="random", shadow=shadow) for name in ("right", "wrong"))
    record(right, story)
    record(wrong, spoil(story))
    wrong.cache.save(now=True)
    assert know(wrong) != know(right)
    assert wrong.learn(story[3].rows, round=4, correct=True).corrected == 3
    flipped = {name: 1 - state for name, state in story[1].states.items()}
    assert wrong.correct_states(flipped, round=2) == 5  # four were so already
    assert wrong.correct_states(story[1].states, round=2) == 9  # a correction of the correction
    assert wrong.learn(story[0].rows, round=1, correct=True).corrected == 3
    assert wrong.correct_states(story[3].states, round=4) == 4
    worse = [row | {"done": not row["done"]} for row in story[2].rows]
    wrong.learn(worse, round=3, correct=True)
    wrong.learn(story[2].rows, round=3, correct=True)
    assert know(wrong) == know(right)
    assert know(desk.program("wrong")) == know(right)
    assert replay(wrong).proven


@pytest.mark.parametrize("policy", ["lagrange", pytest.param("egt", marks=pytest.mark.soak)])
def test_a_correction_in_mid_story_is_forgotten_by_its_end(desk: Desk, policy: str) -> None:
    story = write(rounds=4)
    right, wrong = (make(desk, name, policy="random", shadow=policy) for name in ("right", "wrong"))
    record(right, story[:2])
    record(right, story[2:], first=2)
    record(wrong, [*spoil(story)[:1], story[1]])
    wrong.learn(story[0].rows, round=1, correct=True)
    record(wrong, story[2:], first=2)
    assert know(wrong) == know(right)
    assert replay(wrong).proven


def test_a_kept_state_that_was_corrected_twice_counts_as_reported(desk: Desk) -> None:
    right, wrong = make(desk, "right", keep=1), make(desk, "wrong", keep=1)
    for program in (right, wrong):
        program.decide({"a": 0, "b": 1})
        program.learn([{"agent": "b", "done": False}])
        program.decide({"b": 1} | ({"a": 0} if program is right else {}))
    wrong.correct_states({"a": 1}, round=2)
    wrong.correct_states({"a": 0}, round=2)
    assert (
        wrong.projection.states(2).carried_over.tolist() == wrong.get_round(2).carried_over.tolist() == [False, False]
    )
    assert wrong.projection.agents.state_round.tolist() == right.projection.agents.state_round.tolist() == [2, 2]


def lines(program: Program, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(line, name) for name in names) for line in program.rounds]


def test_what_was_done_can_be_reported_first_and_the_rest_later(desk: Desk) -> None:
    two_steps, one_step = make(desk, "two-steps"), make(desk, "one-step")
    states, done = dict.fromkeys(call(4), 0), [True, False, True, False]
    whole = [
        {"agent": name, "done": so, "next_state": n % 2} for n, (name, so) in enumerate(zip(call(4), done, strict=True))
    ]
    reported = [{"agent": row["agent"], "done": row["done"]} for row in whole]
    for program in (two_steps, one_step):
        program.decide(states)
    assert two_steps.learn(reported)[1:5] == (4, 0, 0, 4)
    assert lines(two_steps, "done", "outcomes") == [(2, 0)]
    assert not flat(two_steps)["visits"].any()
    later = [{"agent": row["agent"], "next_state": row["next_state"]} for row in whole]
    assert two_steps.learn(later)[1:5] == (4, 0, 0, 0)
    one_step.learn(whole)
    assert know(two_steps) == know(one_step)
    assert flat(two_steps)["visits"].sum() == 4


def flat(program: Program) -> dict[str, Any]:
    return dict(program.projection.policy_states["policy"].belief._asdict())


@pytest.mark.parametrize("when", ["before the rest", "with the rest", "after the rest"])
def test_what_was_done_can_be_corrected_alone(desk: Desk, when: str) -> None:
    right, wrong = make(desk, "right", cool_down=3), make(desk, "wrong", cool_down=3)
    for program in (right, wrong):
        program.decide({"a": 0, "b": 1, "c": 0}, must=["a", "b"])
    right.learn([{"agent": "a", "done": False, "next_state": 1}])
    wrong.learn([{"agent": "a", "done": True}])
    fix = {"agent": "a", "done": False}
    if when == "before the rest":
        wrong.learn([fix], correct=True)
        wrong.learn([{"agent": "a", "next_state": 1}])
    elif when == "with the rest":
        taken = wrong.learn([fix | {"next_state": 1}], correct=True)
        assert (taken.new, taken.corrected) == (1, 1)
    else:
        wrong.learn([{"agent": "a", "next_state": 1}])
        wrong.learn([fix], correct=True)
    assert know(wrong) == know(right)
    assert lines(wrong, "done", "failed", "outcomes") == [(0, 1, 1)]
    assert wrong.get_round(1).done.tolist() == [0, -1, -1]
    assert wrong.get_round(1).after.tolist() == [1, -1, -1]


def test_the_lines_count_what_was_advised_done_and_seen(desk: Desk) -> None:
    program = make(desk, rewards=[1, 3])
    program.decide(dict.fromkeys(call(5), 0), must=call(2))
    program.learn(
        [
            {"agent": "a00", "done": True, "next_state": 1},
            {"agent": "a01", "done": False, "next_state": 0},
            {"agent": "a02", "done": True, "next_state": 1},
            {"agent": "a03", "done": False},
        ]
    )
    assert lines(program, "budget", "present", "carried_over", "advised") == [(2, 5, 0, 2)]
    assert lines(program, "done", "failed", "unlisted", "outcomes") == [(2, 1, 1, 3)]
    assert (program.rounds[0].treated.total, program.rounds[0].treated.square) == (7.0, 19.0)
    assert program.projection.agents.total.tolist() == [3.0, 1.0, 3.0, 0.0, 0.0]
    assert program.projection.agents.seen.tolist() == [1, 1, 1, 0, 0]


def test_outcomes_of_the_control_group_are_added_up_apart(desk: Desk) -> None:
    program = make(desk, control=0.4, seed=5)
    program.decide(dict.fromkeys(call(20), 0))
    program.learn([{"agent": name, "next_state": 1} for name in call(20)])
    control = int(program.projection.agents.control.sum())
    assert 0 < control < 20
    assert (program.rounds[0].control.seen, program.rounds[0].treated.seen) == (control, 20 - control)


def test_outcomes_may_come_after_many_later_rounds(desk: Desk) -> None:
    prompt, late = (
        make(desk, "prompt", policy="random", shadow="egt"),
        make(desk, "late", policy="random", shadow="egt"),
    )
    story = write(rounds=7)
    for chapter in story:
        late.decide(chapter.states)
    for number, chapter in enumerate(story, 1):
        prompt.decide(chapter.states)
        prompt.learn(chapter.rows, round=number)
    late.learn([row | {"round": n} for n in range(7, 0, -1) for row in story[n - 1].rows])
    visits, total = (
        [
            projection.policy_states["shadow"].belief._asdict()[name]
            for projection in (prompt.projection, late.projection)
        ]
        for name in ("visits", "total")
    )
    assert np.array_equal(*visits)
    assert np.allclose(*total)
    assert visits[0].sum() == sum(len(chapter.rows) for chapter in story)


# Learners that welcome newcomers with what the others taught, or look at everybody at once, are another matter.
@pytest.mark.parametrize("policy", ["egt", "wiql", "random"])
def test_who_joins_later_is_as_one_who_was_there_without_a_state(desk: Desk, policy: str) -> None:
    growing, whole = (make(desk, name, policy="random", shadow=policy) for name in ("growing", "whole"))
    story = write(agents=9, rounds=4)
    early = [Chapter({n: s for n, s in one.states.items() if n < "a05"}, one.rows) for one in story[:2]]
    early = [Chapter(one.states, [row for row in one.rows if row["agent"] < "a05"]) for one in early]
    absent: dict[str, Any] = dict.fromkeys(call(9)[5:])
    record(growing, early)
    record(whole, [Chapter(one.states | absent, one.rows) for one in early])
    assert (growing.projection.agents.count, whole.projection.agents.count) == (5, 9)
    for program in (growing, whole):
        record(program, story[2:], first=2)
    assert lines(growing, "agents") == [(5,), (5,), (9,), (9,)]
    assert lines(whole, "agents") == [(9,)] * 4
    assert lines(growing, "absent") == [([0, 0],)] * 4
    assert lines(whole, "absent") == [([4, 0],), ([4, 0],), ([0, 0],), ([0, 0],)]
    for line, other in zip(growing.rounds, whole.rounds, strict=True):
        line.agents, line.absent = 9, other.absent
    assert know(growing) == know(whole)


@pytest.mark.parametrize("policy", LEARNERS)
def test_people_may_join_in_any_round_and_settings_may_change(desk: Desk, policy: str) -> None:
    program, rng = make(desk, policy=policy, horizon=12), np.random.default_rng(2)
    for number in range(1, 5):
        there = {name: int(rng.integers(2)) for name in call(3 * number)}
        assert len(program.decide(there).chosen) == 2
        program.learn([{"agent": name, "next_state": int(rng.integers(2))} for name in there])
        if number == 2:
            program.change(cool_down=2, keep=1)
            program.cache.save(now=True)
        if number == 3:
            program = desk.program("one")
    assert program.projection.agents.count == 12
    assert replay(program).proven


def test_the_control_group_stays_when_people_join(desk: Desk) -> None:
    program = make(desk, control=0.3)
    program.decide(dict.fromkeys(call(30), 0))
    before = program.projection.agents.control.copy()
    program.decide(dict.fromkeys(call(60), 0))
    assert program.projection.agents.control[:30].tolist() == before.tolist()
    assert before.any()
    assert not (
        set(program.names.call(np.flatnonzero(program.projection.agents.control)))
        & set(program.recommendation(2).chosen)
    )


def test_who_left_is_out_until_a_table_names_it_again(desk: Desk) -> None:
    program = make(desk, keep=5)
    program.decide({"a": 0, "b": 0, "c": 1})
    assert program.leave(["b"]) == 1
    program.decide()
    assert program.get_round(2).number.tolist() == [0, 2]
    program.decide({"a": 1, "b": None})
    assert program.get_round(3).number.tolist() == [0, 2]
    program.decide({"b": 1})
    assert program.get_round(4).number.tolist() == [0, 1, 2]
    assert program.projection.agents.count == 3
    program.decide(again=True)
    assert program.get_round(5).number.tolist() == [0, 1, 2]
    assert replay(program).proven


def test_an_erased_agent_is_out_for_good_and_its_name_is_new(desk: Desk) -> None:
    program = make(desk)
    program.decide({"a": 0, "b": 0})
    program.learn([{"agent": "a", "next_state": 1}])
    program.erase(["a"])
    program.decide({"a": 0, "b": 1})
    assert program.get_round(2).number.tolist() == [1, 2]
    assert program.projection.agents.total.tolist() == [1.0, 0.0, 0.0]
    assert program.projection.agents.erased.tolist() == [True, False, False]
    assert replay(program).proven


def test_groups_change_from_then_on(desk: Desk) -> None:
    program = make(desk, shares={"north": 1.0}, budget=1)
    program.decide({"a": (0, "north"), "b": (0, "south"), "c": (0, None)})
    assert program.recommendation(1).chosen == ["a"]
    program.decide({"a": (0, "south"), "b": (0, "north"), "c": (0, "east")})
    assert program.recommendation(2).chosen == ["b"]
    assert program.projection.groups == ["north", "south", "east"]
    assert program.projection.agents.group.tolist() == [1, 0, 2]
    program.decide({"a": (0, None), "b": 1, "c": 0})  # nothing said: as before
    assert program.projection.agents.group.tolist() == [1, 0, 2]
    assert replay(program).proven


def test_settings_change_from_then_on_and_the_past_is_decided_again_by_the_old(desk: Desk) -> None:
    program = make(desk)
    story = write(rounds=4)
    record(program, story[:2])
    program.change(budget=4, cool_down=2)
    record(program, story[2:], first=2)
    assert lines(program, "budget", "advised") == [(2, 2), (2, 2), (4, 4), (4, 4)]
    assert replay(program).proven


def test_a_policy_ranks_each_round_once_and_only_those_who_are_there(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Egt.rank

    def rank(self: Egt, belief: Any, state: Any, draws: Draws) -> Any:
        belief.total[...] += 1
        return plain(self, belief, state, draws)

    monkeypatch.setattr(Egt, "rank", rank)
    program = make(desk, keep=0)
    program.decide({"a": 0, "b": 0})
    program.decide({"a": 1, "b": 0}, dry_run=True)
    program.decide({"a": 1, "b": 0})
    program.decide({"b": 1})
    for one in (program, desk.program("one")):
        total = one.projection.policy_states["policy"].belief.total
        assert (np.unique(total[0, 0]).tolist(), np.unique(total[0, 1]).tolist()) == ([2.0], [3.0])
    assert replay(program).proven


@pytest.mark.parametrize(("states", "people"), [(2, 2000), (20, 5)])
def test_more_people_than_the_policies_have_room_for_are_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, states: int, people: int
) -> None:
    monkeypatch.setattr(module, "MAX_BELIEF_BYTES", 50_000)
    program = make(desk, states=[f"s{state}" for state in range(states)], rewards=None, policy="lagrange")
    length = program.store.length(program.id)
    most = rf"at most \d+ people with {states} states"
    with pytest.raises(InputError, match=rf"^There would be {people} people; a program has room for {most}\.$"):
        program.decide({f"a{number}": 0 for number in range(people)})
    assert program.store.length(program.id) == length
    assert program.decide({"a": 0}).round == 1


def test_a_log_that_does_not_fit_is_refused(desk: Desk) -> None:
    program = make(desk)
    program.decide({"a": 0, "b": 0})
    log = list(program.log())
    projection = Projection(lambda number: log[number])
    projection.apply(log[0])
    late = log[1]._replace(columns={**log[1].columns, "number": np.array([4, 5])})
    with pytest.raises(InputError, match="Event 1: new agents start at number 4, but there are 0 agents"):
        projection.apply(late)
    for event in log[1:]:
        projection.apply(event)
    correction = Event(3, "corrected", 1, "", *Corrected(projection.states(1)).record(), "")
    with pytest.raises(InputError, match="Event 3 is a revision that was unknown when the projection started"):
        projection.apply(correction)
