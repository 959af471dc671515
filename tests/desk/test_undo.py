"""Undo: after it a program knows what it would know without what was undone, bit for bit."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desk.stories import STEADY, call, know, make, refuse, write
from restive.desk import Desk
from restive.desk.audit import KeyTaken, Repeated, RequestContext
from restive.desk.program import Program
from restive.desk.replay import replay
from restive.errors import InputError

Request = tuple[str, dict[str, Any]]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def ask(program: Program, request: Request) -> None:
    verb, given = request
    getattr(program, verb)(**given)


def test_a_list_is_taken_back_with_the_results_and_people_that_came_with_it(desk: Desk) -> None:
    program = make(desk, states_are_outcomes=True)
    program.decide({"ann": 0, "ben": 1, "cem": 0})
    before = know(program)
    program.decide({"ann": 1, "ben": 0, "dora": 1})
    found = program.undoable()
    assert found is not None
    assert (found.what, found.round, found.results_of, found.people) == ("decided", 2, 1, 1)
    assert found.message.startswith("list of round 2 (")
    assert found.message.endswith(") that came with it, by which 1 person joined")
    assert program.undo(dry_run=True) == found
    assert len(program.rounds) == 2
    assert program.undo(found.event) == found
    assert know(program) == before
    assert program.names.roster.to_list() == ["ann", "ben", "cem"]
    assert [entry["round"] for entry in program.history("ann")] == [1]
    assert "next_state" not in program.history("ann")[0]
    with pytest.raises(InputError, match="'dora' is not in the program"):
        program.history("dora")
    assert [event.kind for event in program.log()][-1] == "undone"
    assert replay(desk.program("one")).proven


def test_names_that_came_with_an_undone_list_are_gone_from_the_files(tmp_path: Path) -> None:
    people = [{"agent": f"person-{n}", "state": 0, "name": f"Zoe Okafor {n}"} for n in range(60)]
    with Desk(tmp_path / "desk.db") as desk:
        program = make(desk, display=["name"])
        program.decide(people[:20])
        program.decide(people)
        program.undo(dry_run=True)
        assert any(b"Okafor 59" in file.read_bytes() for file in tmp_path.iterdir())
        program.undo()
        content = b"".join(file.read_bytes() for file in tmp_path.iterdir())  # also the write-ahead log
    assert (b"Okafor 19" in content, b"Okafor 20" in content, b"person-59" in content) == (True, False, False)


def test_the_next_decision_has_the_same_number_and_its_own_people(desk: Desk) -> None:
    program = make(desk, control=0.4)
    program.decide({"ann": 0, "ben": 1})
    program.decide({"ann": 1, "zoe": 0})
    program.undo()
    again = program.decide({"ann": 0, "carl": 1, "dora": 0})
    assert again.round == 2
    assert program.names.roster.to_list() == ["ann", "ben", "carl", "dora"]
    assert [entry["state"] for entry in program.history("carl")] == ["good"]
    assert program.get_round(2).number.tolist() == [0, 2, 3]
    assert program.get_round(2).at == again.found.at
    other = make(desk, "other", control=0.4)
    other.decide({"ann": 0, "ben": 1})
    other.decide({"ann": 0, "carl": 1, "dora": 0})
    assert know(program) == know(other)
    assert replay(program).proven


def test_undo_again_takes_back_what_was_recorded_before(desk: Desk) -> None:
    program = make(desk)
    known = [know(program)]
    steps: list[Callable[[], object]] = [
        lambda: program.decide({"ann": 0, "ben": 1}),
        lambda: program.learn([{"agent": "ann", "done": True, "next_state": 1}]),
        lambda: program.learn([{"agent": "ann", "done": False, "next_state": 0}], correct=True),
        lambda: program.correct_states({"ben": 0}, round=1),
        lambda: program.leave(["ben"]),
        lambda: program.decide({"ann": 1}),
        lambda: program.cancel(2),
    ]
    for step in steps:
        step()
        known.append(know(program))
    whats = []
    for before in known[-2::-1]:
        whats.append(program.undo().what)
        assert know(program) == before
    assert whats == ["cancelled", "decided", "left", "corrected", "learned", "learned", "decided"]
    assert program.undoable() is None
    refuse(program, "Nothing is recorded that could be undone", "undo")
    found = replay(program)
    assert (found.proven, found.rounds) == (True, 2)


def test_what_rests_on_a_request_is_named(desk: Desk) -> None:
    program = make(desk)
    program.decide({"ann": 0, "ben": 1})
    program.learn([{"agent": "ann", "done": True, "next_state": 1}])
    report = program.undoable()
    assert report is not None
    program.decide({"ann": 1, "ben": 1})
    refuse(program, "because round 2 .* was decided from it. Undo that first", "undo", report.event)
    refuse(program, "Event 99 does not begin a request", "undo", 99)
    program.undo()
    program.change(budget=1)
    assert program.undo(report.event) == report
    assert program.config.budget == 1
    refuse(program, f"Event {report.event} does not begin", "undo", report.event)


def test_nothing_before_an_erasure_can_be_undone(desk: Desk) -> None:
    program = make(desk)
    program.decide({"ann": 0, "ben": 1})
    program.erase(["ann"])
    assert program.undoable() is None
    refuse(program, "Ids were erased on .* cannot be undone", "undo")
    program.leave(["ben"])
    assert program.undo().what == "left"


def test_the_key_of_a_request_that_was_undone_is_refused(desk: Desk) -> None:
    program, context = make(desk), RequestContext(key="monday", asked="x")
    program.decide({"ann": 0, "ben": 1}, context=context)
    undo = RequestContext(key="oops", asked="y")
    program.undo(context=undo)
    with pytest.raises(Repeated) as repeated:
        program.undo(context=undo)
    assert repeated.value.answer["what"] == "decided"
    with pytest.raises(KeyTaken, match="was undone"):
        program.decide({"ann": 0, "ben": 1}, context=context)
    assert not program.rounds


def test_the_same_states_after_a_report_that_was_undone_are_still_one_round(desk: Desk) -> None:
    program = make(desk)
    program.decide({"ann": 0, "ben": 1})
    program.learn([{"agent": "ann", "done": True, "next_state": 1}])
    program.undo()
    refuse(program, "from the same states, and nothing was recorded since", "decide", {"ann": 0, "ben": 1})


def test_another_process_sees_what_was_undone(desk: Desk, tmp_path: Path) -> None:
    program = make(desk)
    program.decide({"ann": 0, "ben": 1})
    with Desk(tmp_path / "desk.db") as second:
        other = second.program("one")
        other.decide({"ann": 1, "carl": 0})
        assert other.names.roster.to_list() == ["ann", "ben", "carl"]
        program.undo()
        program.decide({"ann": 1, "dora": 0})
        assert know(other) == know(program)
        assert other.names.roster.to_list() == ["ann", "ben", "dora"]
        assert other.history("dora") == program.history("dora")


@pytest.mark.parametrize("place", range(3))
def test_a_snapshot_with_what_was_undone_is_dropped(desk: Desk, place: int) -> None:
    program, story = make(desk), write(agents=5, rounds=2)
    for number, (states, rows) in enumerate(story):
        if number == 1:
            before = know(program)
        program.decide(states)
        if place == number:
            program.cache.save(now=True)
        program.learn(rows, round=number + 1)
    if place == 2:
        program.cache.save(now=True)
    program.undo()
    program.undo()
    assert know(program) == before == know(desk.program("one"))
    assert replay(desk.program("one")).proven


def random_request(program: Program, rng: np.random.Generator) -> Request:
    """Any request that the program may be asked now, also one that it refuses."""
    rounds, people = len(program.rounds), call(int(rng.integers(4, 10)))
    some = [name for name in people if rng.random() < 0.6] or people[:1]
    states = {name: int(rng.integers(2)) for name in some}
    if not rounds or rng.random() < 0.3:
        return "decide", {"states": states, "again": True}
    round_, kind = int(rng.integers(1, rounds + 1)), rng.integers(7)
    rows = [{"agent": name, "done": bool(rng.integers(2)), "next_state": state} for name, state in states.items()]
    requests: list[Request] = [
        ("learn", {"outcomes": rows, "round": round_, "correct": bool(rng.integers(2))}),
        ("learn", {"outcomes": rows, "round": round_, "correct": True}),
        ("correct_states", {"states": states, "round": round_}),
        ("withdraw", {"agents": some[:2], "round": round_}),
        ("leave", {"agents": some[:2]}),
        ("cancel", {"round": round_}),
        ("change", {"budget": int(rng.integers(1, 4))}),
    ]
    return requests[int(kind)]


def live(program: Program, rng: np.random.Generator, steps: int) -> list[Request]:
    """Make random requests, of which some are undone; those that stand."""
    standing: list[Request] = []
    for _ in range(steps):
        if rng.random() < 0.3 and program.undoable() is not None:
            program.undo()
            last = max(place for place, (verb, _) in enumerate(standing) if verb != "change")
            del standing[last]
            continue
        request, length = random_request(program, rng), program.store.length(program.id)
        try:
            ask(program, request)
        except InputError:
            continue
        if program.store.length(program.id) > length:
            standing.append(request)
        if rng.random() < 0.1:
            program.cache.save(now=True)
    return standing


def check_undone(desk: Desk, seed: int, policy: str, steps: int) -> None:
    settings: dict[str, Any] = {"policy": policy, "control": 0.2, "keep": 3, "cool_down": 1}
    settings["states_are_outcomes"] = bool(seed % 2)
    program, straight = make(desk, "undone", **settings), make(desk, "straight", **settings)
    for request in live(program, np.random.default_rng(seed), steps):
        ask(straight, request)
    assert know(program) == know(straight)
    assert program.names.roster.to_list() == straight.names.roster.to_list()
    for name in straight.names.roster:
        mine, theirs = ([{**row, "at": ""} for row in each.history(name)] for each in (program, straight))
        assert mine == theirs
    assert replay(desk.program("undone")).proven


@pytest.mark.parametrize("seed", range(3))
def test_any_program_ends_as_if_what_was_undone_had_not_happened(desk: Desk, seed: int) -> None:
    check_undone(desk, seed, "egt", 24)


@pytest.mark.soak
@pytest.mark.parametrize("policy", STEADY)
@pytest.mark.parametrize("seed", range(10, 22))
def test_any_long_program_ends_as_if_what_was_undone_had_not_happened(desk: Desk, seed: int, policy: str) -> None:
    check_undone(desk, seed, policy, 80)
