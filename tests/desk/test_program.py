"""The verbs of a program, on both stores: what is recorded, and that what is refused leaves no trace."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from desk.appending import PROCESSES
from desk.deciding import decide_when_reported
from restive.desk import AlreadyDecided, Desk, Program, TableError
from restive.desk.replay import digest, replay
from restive.desk.store import Store
from restive.errors import Hint, InputError

FOUR = {"ann": "low", "ben": "high", "cem": "low", "dee": "low"}
SETTINGS: dict[str, Any] = {
    "states": ["low", "high"], "rewards": [0, 1], "budget": 2, "control": 0.0, "seed": 1, "states_are_outcomes": False,
}  # fmt: skip


@pytest.fixture
def program(address: str) -> Iterator[Program]:
    with Desk(address) as desk:
        yield desk.create("one", **SETTINGS)


NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Program]:
    """A program where the kind of store does not matter."""
    with Desk(tmp_path / "small.db", clock=lambda: NOW) as desk:
        yield desk.create("one", **SETTINGS)


def mark(program: Program) -> tuple[int, str, list[str | None]]:
    """What changes with anything that is recorded."""
    log = list(program.log())
    return len(log), log[-1].digest, program.store.names(program.id).to_list()


def came(*agents: str, **rest: object) -> list[dict[str, object]]:
    return [{"agent": agent, "next_state": "high", **rest} for agent in agents]


def blank(round_: int) -> str:
    """The note on a round of which nothing is known when the next one is opened."""
    return f"round {round_} (2 Mar 2026) has no outcomes yet"


def test_a_whole_round_is_decided_and_closed(program: Program) -> None:
    recommendation = program.decide(FOUR)
    assert (recommendation.round, recommendation.budget, len(recommendation.chosen), len(recommendation.reserve)) == (
        1,
        2,
        2,
        2,
    )
    assert sorted(recommendation.chosen + recommendation.reserve) == sorted(FOUR)
    assert recommendation.notes == ["4 new people joined"]
    taken = program.learn(came(*FOUR))
    assert (taken.rounds, taken.new, taken.corrected, taken.repeated, taken.waiting) == ([1], 4, 0, 0, 0)
    found = program.get_round(1)
    assert (found.done == found.chosen).all()
    assert found.reward.tolist() == [1.0] * 4
    assert [event.kind for event in program.log()] == ["created", "joined", "decided", "outcomes"]
    assert replay(program).proven


VERBS: dict[str, Callable[[Program], object]] = {
    "decide": lambda program: program.decide({"eve": "low", "ann": "high"}, dry_run=True),
    "learn": lambda program: program.learn(came("ben", "dee"), round=2, dry_run=True),
    "learn a correction": lambda program: program.learn(
        [{"agent": "ann", "next_state": "low"}], round=1, correct=True, dry_run=True
    ),
    "correct_states": lambda program: program.correct_states({"ann": "high"}, 1, dry_run=True),
    "leave": lambda program: program.leave(["ann"], dry_run=True),
    "erase": lambda program: program.erase(["ann"], dry_run=True),
    "cancel": lambda program: program.cancel(2, dry_run=True),
}


def test_dry_runs_say_what_would_be_and_record_nothing(program: Program) -> None:
    program.decide(FOUR)
    program.learn(came("ann"))
    program.decide({**FOUR, "ben": "low"})
    before, believed = mark(program), digest(program.projection)
    reported = {verb: call(program) for verb, call in VERBS.items()}
    assert mark(program) == before
    assert digest(program.projection) == believed
    assert reported["decide"].round == 3  # type: ignore[attr-defined]
    assert reported["learn"].new == 2  # type: ignore[attr-defined]
    assert reported["learn a correction"].corrected == 1  # type: ignore[attr-defined]
    assert [reported[verb] for verb in ("correct_states", "leave", "erase", "cancel")] == [1, 1, 1, 2]


def test_a_dry_run_shows_the_list_that_is_then_decided(program: Program) -> None:
    shown = program.decide(FOUR, dry_run=True)
    assert shown.table.equals(program.decide(FOUR).table)


REFUSED: dict[str, tuple[Callable[[Program], object], str]] = {
    "an unknown state": (lambda p: p.decide({"eve": "nowhere"}), "'nowhere' is not a state; the states are low, high"),
    "a missing column": (lambda p: p.decide([{"agent": "eve"}]), "there is no column 'state'"),
    "no table": (lambda p: p.decide(5), "is not a table"),
    "a budget below 0": (lambda p: p.decide(FOUR, budget=-1), "budget is -1; it must be a whole number from 0"),
    "a budget with a fraction": (lambda p: p.decide(FOUR, budget=1.5), "budget is 1.5"),  # type: ignore[arg-type]
    "a round far off": (lambda p: p.decide(FOUR, round=9), "round is 9; it must be a whole number from 1 to 2"),
    "an unknown person who must": (
        lambda p: p.decide(FOUR, must=["zoe"]),
        "zoe: on the must list, but not in the program",
    ),
    "must and never": (lambda p: p.decide(FOUR, must=["ann"], never=["ann"]), "ann: on the must list and on the never"),
    "too many who must": (lambda p: p.decide(FOUR, must=list(FOUR)), "4 people are on the must list, but the budget"),
    "an outcome of an unknown person": (
        lambda p: p.learn(came("zoe")),
        "row 1, column agent: 'zoe' is not in the program",
    ),
    "an outcome of no round": (
        lambda p: p.learn(came("ann", round=2)),
        "column round: 2: rounds go from 1 to 1",
    ),
    "an outcome of no kind": (lambda p: p.learn([{"agent": "ann"}]), "no column reports an outcome"),
    "another outcome": (
        lambda p: p.learn([{"agent": "ann", "next_state": "low"}]),
        "already has another outcome in round 1",
    ),
    "states of an unknown person": (lambda p: p.correct_states({"zoe": "low"}, 1), "'zoe' took no part in round 1"),
    "states of no round": (lambda p: p.correct_states({"ann": "low"}, 2), "round is 2"),
    "an unknown person who leaves": (lambda p: p.leave(["ann", "zoe"]), "zoe: not in the program one."),
    "an unknown person to erase": (lambda p: p.erase(["ann", "zoe"]), "zoe: not in the program one."),
    "a round with outcomes to cancel": (
        lambda p: p.cancel(1),
        "of one has outcomes and cannot be cancelled",
    ),
    "no round to cancel": (lambda p: p.cancel(2), "round is 2; it must be a whole number from 1 to 1"),
    "an id without its zeros": (
        lambda p: p.decide({"ANN": "low"}),
        "leading zeros or capitals (ANN for ann). Nothing was recorded.",
    ),
    "states to change": (lambda p: p.change(states=["a", "b"]), "'states' cannot be changed in a running program"),
    "another horizon": (lambda p: p.change(horizon=9), "'horizon' cannot be changed in a running program"),
    "a bad budget": (lambda p: p.change(budget=-1), "budget is -1"),
    "nobody in the table": (lambda p: p.decide({}), "states: the table has no rows"),
    "nobody in a frame": (
        lambda p: p.decide(pl.DataFrame({"agent": [], "state": []})),
        "states: the table has no rows",
    ),
    "a round not there": (lambda p: p.recommendation(2), "round is 2; it must be a whole number from 1 to 1"),
}


def test_what_does_not_fit_is_refused_in_a_sentence_and_leaves_no_trace(small: Program) -> None:
    small.decide(FOUR)
    small.learn(came("ann"))
    before, believed = mark(small), digest(small.projection)
    for what, (call, sentence) in REFUSED.items():
        with pytest.raises(InputError) as reported:
            call(small)
        assert sentence in str(reported.value), what
        assert mark(small) == before, what
        assert digest(small.projection) == believed, what


def test_all_faults_of_a_table_are_reported_at_once_also_those_of_several_rounds(small: Program) -> None:
    small.decide(FOUR)
    small.learn(came(*FOUR))
    small.decide({"ann": "low"}, budget=1)
    before = mark(small)
    rows = came("ann", round=2) + came("zoe", round=2) + came("kim", round=1) + came("zoe", round=1)
    rows.append({"agent": "ben", "next_state": "low", "round": 1})
    with pytest.raises(TableError) as reported:
        small.learn(rows)
    assert [fault.row for fault in reported.value.faults] == [2, 3, 4]
    with pytest.raises(TableError) as cells:
        small.decide([{"agent": "", "state": 7}, {"agent": "x", "state": "?"}, {"agent": "x", "state": 1}])
    assert {(fault.row, fault.column) for fault in cells.value.faults} == {
        (1, "agent"), (1, "state"), (2, "state"), (3, "agent"),
    }  # fmt: skip
    assert mark(small) == before


def test_faults_of_cells_and_strangers_are_reported_together(small: Program) -> None:
    small.decide(FOUR)
    before = mark(small)
    rows = [
        {"agent": "ann", "next_state": "nowhere"},
        {"agent": "zoe", "next_state": "high"},
        {"agent": " kim ", "next_state": "high", "done": "perhaps"},
        {"agent": "", "next_state": "high"},
        {"agent": "ben", "next_state": "high"},
    ]
    with pytest.raises(TableError) as reported:
        small.learn(rows)
    assert sorted((fault.row, fault.column) for fault in reported.value.faults) == [
        (1, "next_state"), (2, "agent"), (3, "agent"), (3, "done"), (4, "agent"),
    ]  # fmt: skip
    assert reported.value.total == 5
    assert "'kim' is not in the program" in str(reported.value)
    assert mark(small) == before


def test_a_round_beyond_the_horizon_is_decided_and_remarked_on(tmp_path: Path) -> None:
    with Desk(tmp_path / "x.db", clock=lambda: NOW) as desk:
        program = desk.create("one", **SETTINGS | {"horizon": 2})
        notes = [program.decide(FOUR, again=True).notes for _ in range(3)]
        beyond = "round 3 is beyond the horizon of 2 rounds"
        assert notes == [["4 new people joined"], [blank(1)], [beyond, blank(2)]]
        assert replay(program).proven


def test_no_outcomes_before_the_first_round(small: Program) -> None:
    with pytest.raises(InputError, match="no round is decided yet"):
        small.learn(came("ann"))
    with pytest.raises(InputError, match="one has no round yet"):
        small.recommendation(1)
    with pytest.raises(InputError, match="Nobody has a state in this round"):
        small.decide()


def test_a_table_of_outcomes_that_comes_again_changes_nothing(program: Program) -> None:
    program.decide(FOUR)
    program.learn(came(*FOUR, done=True))
    before = mark(program)
    taken = program.learn(came(*FOUR, done=True))
    assert (taken.new, taken.corrected, taken.repeated, taken.waiting) == (0, 0, 4, 0)
    assert mark(program) == before


def test_the_same_states_are_one_round_unless_another_is_meant(program: Program) -> None:
    first = program.decide(FOUR)
    before = mark(program)
    with pytest.raises(AlreadyDecided, match="from the same states") as refused:
        program.decide(FOUR)
    assert refused.value.hint == Hint.AGAIN
    assert mark(program) == before
    assert program.recommendation(1).chosen == first.chosen
    assert program.decide(FOUR, again=True).round == 2
    program.learn(came("ann"), round=1)
    assert program.decide(FOUR).round == 3  # something came in since


def test_a_round_is_decided_once_and_the_second_is_reported_when(tmp_path: Path) -> None:
    hours = iter(range(100))
    with Desk(tmp_path / "x.db", clock=lambda: datetime(2027, 1, 1, tzinfo=UTC) + timedelta(hours=next(hours))) as desk:
        program = desk.create("one", **SETTINGS)
        at = program.decide(FOUR).found.at
        assert at == program.get_round(1).at
        with pytest.raises(
            AlreadyDecided, match=r"^Round 1 \(1 Jan 2027\) was decided on 1 Jan 2027, 04:00 \(UTC\)\.$"
        ) as refused:
            program.decide(round=1)
        assert (refused.value.code, refused.value.location, refused.value.hint) == ("already_decided", "round", None)
        with pytest.raises(
            AlreadyDecided, match=r"Round 1 \(1 Jan 2027\) of one was decided on .* from the same"
        ) as refused:
            program.decide(FOUR)
        assert refused.value.hint == Hint.AGAIN
        assert len(program.rounds) == 1


def test_of_two_threads_one_decides_and_the_other_is_reported(program: Program) -> None:
    ends: list[str] = []
    ready = threading.Barrier(3)

    def run(round_: int | None) -> None:
        own = Program(program.store, program.store.find("one"))
        ready.wait()
        try:
            own.decide(FOUR, round=round_)
            ends.append("decided")
        except AlreadyDecided:
            ends.append("reported")

    threads = [threading.Thread(target=run, args=(round_,)) for round_ in (1, 1, None)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["decided", "reported", "reported"]
    assert [event.kind for event in program.log()] == ["created", "joined", "decided"]
    assert replay(program).proven


def test_of_two_processes_one_decides_and_the_other_is_reported(program: Program, address: str) -> None:
    ready = PROCESSES.Barrier(2)
    pipes = [PROCESSES.Pipe() for _ in range(2)]
    workers = [
        PROCESSES.Process(target=decide_when_reported, args=(address, "one", FOUR, ready, pipe)) for _, pipe in pipes
    ]
    for worker in workers:
        worker.start()
    assert all(pipe.poll(60) for pipe, _ in pipes)
    ends = [pipe.recv() for pipe, _ in pipes]
    for worker in workers:
        worker.join()
    chosen = program.recommendation(1).chosen
    assert sorted(end[0] for end in ends) == ["decided", "reported"]
    assert [end[1] for end in ends if end[0] == "decided"] == [chosen]
    assert len(program.rounds) == 1
    assert replay(program).proven


def test_outcomes_come_in_parts_late_and_for_several_rounds_at_once(program: Program) -> None:
    first = program.decide(FOUR)
    failed = first.chosen[0]
    assert program.learn([{"agent": failed, "done": "no"}]).waiting == 4
    second = program.decide({**FOUR, "ann": "high"})
    assert program.learn(came("ann"), dry_run=True).rounds == [1]
    late = program.learn(came("ann", "ben", round=1) + came("ann", round=2))
    assert (late.rounds, late.new, late.waiting) == ([1, 2], 3, 5)
    assert program.learn(came("cem", "dee"), round=1).waiting == 0
    assert program.learn(came("ben", "cem", "dee")).rounds == [2]
    one = program.get_round(1)
    done = dict(zip(program.names.call(one.number), one.done.tolist(), strict=True))
    assert done == {name: int(name in first.chosen and name != failed) for name in FOUR}
    assert (program.rounds[0].failed, program.rounds[0].done, program.rounds[1].done) == (1, 1, len(second.chosen))
    assert replay(program).proven


def test_who_is_not_in_the_table_is_left_out_until_a_table_has_them_again(small: Program) -> None:
    small.decide(FOUR)
    left_out = small.decide({"ann": "low", "ben": None}, budget=4)
    assert left_out.chosen == ["ann"]
    assert left_out.notes == ["left out, without a state in this round: 3 people (ben, cem, dee)", blank(1)]
    without_table = small.decide(budget=4, dry_run=True)  # asks for the last known states of everybody
    assert sorted(without_table.chosen) == ["ann", "ben", "cem", "dee"]
    back = small.decide({"ann": "low", "cem": "low"}, budget=4)
    assert sorted(back.chosen) == ["ann", "cem"]
    assert not any("joined" in note for note in back.notes)


def test_states_are_kept_for_some_rounds_and_then_left_out(small: Program) -> None:
    small.change(keep=2)
    small.decide(FOUR)
    for round_ in (2, 3):
        recommendation = small.decide({"ann": "low"}, again=True)
        assert (recommendation.found.number.size, int(recommendation.found.carried_over.sum())) == (4, 3)
        assert recommendation.notes == ["state carried over from an earlier round: 3 people", blank(round_ - 1)], round_
    last = small.decide({"ann": "low"}, again=True)
    assert last.found.number.size == 1
    assert last.notes == ["left out, without a state in this round: 3 people (ben, cem, dee)", blank(3)]
    assert last.chosen == ["ann"]


def test_who_left_is_not_chosen_and_is_back_with_the_next_state(small: Program) -> None:
    small.change(keep=2)
    small.decide(FOUR)
    assert small.leave(pl.DataFrame({"agent": ["ann", "ben"]})) == 2
    gone = small.decide({"cem": "high", "dee": "low"}, budget=4)
    assert sorted(gone.chosen) == ["cem", "dee"]
    assert small.learn(came("ann"), round=1).new == 1  # what came of an earlier round still counts
    back = small.decide({"ann": "low", "cem": "low"}, budget=4)
    assert sorted(back.chosen) == ["ann", "cem", "dee"]
    assert back.notes == [
        "returned after leaving: 1 person (ann)", "state carried over from an earlier round: 1 person", blank(2),
    ]  # fmt: skip
    assert small.names.roster.to_list() == list(FOUR)


def test_an_erased_name_is_gone_and_what_it_taught_stays(program: Program, address: str) -> None:
    chosen = program.decide(FOUR).chosen
    program.learn(came(*FOUR))
    believed, log = digest_of_beliefs(program), list(program.log())
    with Desk(address) as other:
        assert other.program("one").erase(["ann"]) == 1  # which this process finds out by itself
    assert program.names.roster.to_list() == [None, "ben", "cem", "dee"]
    assert [event.digest for event in program.log()][: len(log)] == [event.digest for event in log]
    assert digest_of_beliefs(program) == believed
    expected = ["(erased)" if name == "ann" else name for name in chosen]
    assert program.recommendation(1).chosen == expected
    with pytest.raises(InputError, match="ann: not in the program one"):
        program.erase(["ann"])
    again = program.decide({**FOUR, "ben": "low"}, budget=4)  # the same name is somebody new
    assert sorted(again.chosen) == sorted(FOUR)
    assert program.names.roster.to_list() == [None, "ben", "cem", "dee", "ann"]
    assert program.projection.agents.active.tolist() == [False, True, True, True, True]
    assert replay(program).proven


def test_erasing_nobody_clears_the_files_and_records_nothing(small: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[Store] = []
    monkeypatch.setattr(Store, "purge_deleted", lambda store: cleared.append(store))
    small.decide(FOUR)
    before = mark(small)
    assert small.erase([], dry_run=True) == 0
    assert cleared == []
    assert small.erase([]) == 0
    assert cleared == [small.store]
    assert mark(small) == before
    assert small.erase(["ann"]) == 1
    assert cleared == [small.store] * 2  # once by the store itself


def test_what_is_waited_for_leaves_out_those_who_were_erased(program: Program) -> None:
    program.decide(FOUR)
    program.erase(["ann"])
    assert program.learn(came("ben", "cem")).waiting == 1
    taken = program.learn([*came("dee"), {"agent": "ben", "next_state": "low"}], correct=True)
    assert (taken.new, taken.corrected, taken.waiting) == (1, 1, 0)
    assert (program.rounds[0].gone, program.rounds[0].waiting) == (1, 0)
    assert replay(program).proven


def digest_of_beliefs(program: Program) -> bytes:
    from restive.policies.belief import flatten

    return b"".join(array.tobytes() for array in flatten(program.projection.policy_states["policy"].belief).values())


def test_lists_of_people_who_must_or_never(small: Program) -> None:
    small.decide(FOUR)
    recommendation = small.decide(
        {**FOUR, "ann": "high"}, must=["dee"], never=pl.DataFrame({"agent": ["ann", "ben", "zoe"]})
    )
    assert sorted(recommendation.chosen) == ["cem", "dee"]
    assert recommendation.notes == ["on the never list, but not in the program: 1 person (zoe)", blank(1)]
    kinds = dict(zip(recommendation.table["agent"], recommendation.table["list"], strict=True))
    assert kinds == {"cem": "chosen", "dee": "must"}
    assert recommendation.exclusions() == {"never list": 2}
    assert set(recommendation.displaced) == {"never list", "must list"}
    assert replay(small).proven


@pytest.mark.parametrize(("budget", "listed"), [(0, 0), (1, 1), (4, 4), (10**9, 4)])
def test_the_list_has_as_many_as_the_budget_or_as_there_are(budget: int, listed: int, small: Program) -> None:
    recommendation = small.decide(FOUR, budget=budget)
    assert (len(recommendation.chosen), len(recommendation.reserve)) == (listed, 4 - listed)
    assert recommendation.found.choice["probability"].sum() == pytest.approx(listed)


def test_one_agent_alone_can_be_a_program(small: Program) -> None:
    for state in ("low", "high", "low"):
        assert small.decide({"solo": state}).chosen == ["solo"]
        assert small.learn([{"agent": "solo", "next_state": "high"}]).waiting == 0
    assert replay(small).proven


def test_nobody_is_chosen_when_everybody_is_in_the_control_group(tmp_path: Path) -> None:
    with Desk(tmp_path / "x.db") as desk:
        program = desk.create("one", **SETTINGS | {"control": 0.999})
        recommendation = program.decide(FOUR)
        assert (recommendation.chosen, recommendation.reserve, recommendation.exclusions()) == (
            [],
            [],
            {"control group": 4},
        )
        with pytest.raises(InputError, match="ann: on the must list, but in the control group"):
            program.decide(FOUR, must=["ann"])
        program.learn(came(*FOUR))
        assert not program.get_round(1).done.any()
        assert replay(program).proven


def test_what_is_changed_counts_from_the_next_round_on(program: Program, address: str) -> None:
    program.decide({name: (state, "north") for name, state in FOUR.items()})
    assert program.change(budget=1, cool_down=3, shares={"south": 0.5}).budget == 1
    with Desk(address) as other:
        again = other.program("one")
        assert (again.config.cool_down, again.config.shares) == (3, {"south": 0.5})
        recommendation = again.decide({"ann": ("low", "south"), "eve": ("low", "south")})
        recorded = next(event.header for event in again.log() if event.kind == "changed")
    assert recorded == {"budget": 1, "cool_down": 3, "shares": {"south": 0.5}}
    assert len(recommendation.chosen) == 1
    assert "nobody is in the group south, which has a share" not in recommendation.notes
    assert "moved to another group: 1 person (ann)" in recommendation.notes
    assert "new group: south" in recommendation.notes
    groups = dict(zip(recommendation.table["agent"], recommendation.table["group"], strict=True))
    south = {"ann", "eve"}
    assert groups == {name: "south" if name in south else "north" for name in groups}
    assert replay(program).proven


def test_numbers_of_numpy_are_recorded_as_plain_ones(small: Program) -> None:
    small.decide(FOUR)
    shares = {"north": np.float32(0.25)}
    config = small.change(budget=np.int64(3), cool_down=np.int32(1), keep=np.uint8(4), shares=shares)
    assert (config.budget, config.cool_down, config.keep, config.shares) == (3, 1, 4, {"north": 0.25})
    (recorded,) = (event.header for event in small.log() if event.kind == "changed")
    assert recorded == {"budget": 3, "cool_down": 1, "keep": 4, "shares": {"north": 0.25}}
    assert small.decide(FOUR, budget=np.int64(1), again=True).budget == 1  # type: ignore[arg-type]
    assert replay(small).proven


def test_nobody_acts_by_a_list_that_was_cancelled_and_nothing_is_waited_for(program: Program, address: str) -> None:
    program.change(cool_down=3)
    first = program.decide(FOUR)
    untouched = {name: array.copy() for name, array in program.projection.agents.arrays().items()}
    assert program.cancel(1) == 2
    assert [event.kind for event in program.log()][-1] == "cancelled"
    line = program.rounds[0]
    assert (line.cancelled, line.waiting, line.advised, line.done, line.outcomes) == (True, 0, 2, 0, 0)
    assert (untouched["last_action"] == 1).sum() == 2
    assert (program.projection.agents.last_action < 0).all()  # free again
    second = program.decide(FOUR)  # the same states, and no --again is needed
    assert (second.round, second.exclusions(), second.notes) == (2, {}, [])
    assert program.learn(came(*FOUR)).rounds == [2]
    assert program.recommendation(1).chosen == first.chosen  # what was decided stays on record
    with Desk(address) as other:
        again = other.program("one")
        assert (again.rounds[0].cancelled, again.get_round(1).cancelled, again.get_round(2).cancelled) == (
            True,
            True,
            False,
        )
        assert digest(again.projection) == digest(program.projection)
        assert replay(again).proven


def test_a_cancelled_round_takes_no_outcomes_and_is_cancelled_and_decided_no_more(program: Program) -> None:
    program.decide(FOUR)
    program.cancel(1)
    before = mark(program)
    for call, sentence in (
        (
            lambda: program.learn(came("ann"), round=1),
            f"outcomes: {program.rounds[0].mention} was cancelled, so it has no outcomes.",
        ),
        (
            lambda: program.learn(came("ann", round=1)),
            f"outcomes: {program.rounds[0].mention} was cancelled, so it has no outcomes.",
        ),
        (lambda: program.learn(came("ann", round=1), correct=True), f"{program.rounds[0].mention} was cancelled"),
        (lambda: program.learn(came("ann")), "no round is decided yet"),
        (lambda: program.cancel(1), "of one is cancelled already."),
        (lambda: program.decide(round=1), f"R{program.rounds[0].mention[1:]} was cancelled."),
    ):
        with pytest.raises(InputError) as reported:
            call()
        assert sentence in str(reported.value)
        assert mark(program) == before
    assert program.decide(FOUR, round=2).round == 2


def test_there_is_nothing_to_cancel_before_the_first_round(small: Program) -> None:
    for round_ in (0, 1):
        with pytest.raises(InputError, match="one has no round yet"):
            small.cancel(round_)
    small.decide(FOUR)
    with pytest.raises(InputError, match="round is 0; it must be a whole number from 1 to 1"):
        small.cancel(0)


def test_a_round_in_which_something_was_done_cannot_be_cancelled(small: Program) -> None:
    chosen = small.decide(FOUR).chosen
    small.learn([{"agent": chosen[0], "done": True}])
    with pytest.raises(InputError, match=r"Round 1 .* of one has outcomes and cannot be cancelled"):
        small.cancel(1)
    assert not small.rounds[0].cancelled


def test_cancelling_sets_only_the_cool_down_of_that_round_back(small: Program) -> None:
    small.change(cool_down=3, budget=1)
    first, second, third = (small.decide(FOUR, again=True).chosen[0] for _ in range(3))
    assert len({first, second, third}) == 3
    small.cancel(2)
    small.learn(came(*FOUR), round=1)
    fourth = small.decide(FOUR)
    assert fourth.exclusions() == {"cooling down": 1}  # of the third round; the first one is long enough ago
    assert third not in fourth.chosen
    assert replay(small).proven


@pytest.mark.parametrize("policy", ["lagrange", "egt", "thompson-whittle"])
def test_corrections_around_a_cancelled_round_keep_the_proof(policy: str, tmp_path: Path) -> None:
    with Desk(tmp_path / "x.db") as desk:
        program = desk.create("one", **SETTINGS | {"policy": policy, "cool_down": 2, "shadow": "wiql"})
        program.decide(FOUR)
        program.learn(came(*FOUR))
        program.decide({**FOUR, "dee": "high"})
        program.cancel(2)
        program.decide(FOUR)
        program.learn(came("ann", "ben"))
        assert program.learn([{"agent": "ann", "next_state": "low"}], round=1, correct=True).corrected == 1
        assert program.correct_states({"ben": "low"}, 1) == 1
        program.cache.save(now=True)
        found = replay(desk.program("one"))
        assert (found.proven, found.rounds) == (True, 3)
        assert desk.program("one").rounds[1].cancelled


def test_ids_that_look_like_known_ones_are_refused_unless_they_are_new(program: Program) -> None:
    program.decide({"007": "low", "Ann": "low", "12": "high"})
    before = mark(program)
    rows = {"7": "low", "ANN": "low", "0012": "low", "12": "low", "zoe": "high"}
    with pytest.raises(InputError) as reported:
        program.decide(rows)
    assert str(reported.value) == (
        "3 new ids differ from known ones only by leading zeros or capitals (7 for 007, ANN for Ann, 0012 for 12). "
        "Nothing was recorded. Write known ids as before (in a spreadsheet, as text)."
    )
    assert reported.value.hint == Hint.NEW
    with pytest.raises(InputError, match="3 new ids differ"):
        program.decide(rows, dry_run=True)
    assert mark(program) == before
    recommendation = program.decide(rows, new=True)
    assert "4 new people joined" in recommendation.notes
    assert program.names.roster.to_list() == ["007", "Ann", "12", "7", "ANN", "0012", "zoe"]
    assert program.decide({"7": "high", "007": "low"}).round == 3  # both are known now


def test_a_table_without_a_round_is_about_the_oldest_one_that_waits_for_these_people(program: Program) -> None:
    program.decide(FOUR)
    program.learn(came("ann", "ben"))
    program.decide(FOUR)
    with pytest.raises(InputError, match="row 2, column agent: 'zoe' is not"):
        program.learn(came("cem", "zoe"))
    assert program.learn(came("dee", "cem"), dry_run=True).rounds == [1]
    assert program.learn(came("ann", "cem")).rounds == [2]  # round 1 does not wait for both
    assert program.learn(came("dee", round=2)).rounds == [2]
    assert program.learn(came("dee")).rounds == [1]
    assert replay(program).proven


def test_cancelled_rounds_wait_for_nothing(small: Program) -> None:
    small.decide(FOUR)
    small.learn(came("ann"))
    small.decide({**FOUR, "ann": "high"})
    small.cancel(2)
    assert small.learn(came("ben", "cem")).rounds == [1]
    small.decide(FOUR)
    small.learn(came("ann"))
    assert small.learn(came("dee")).rounds == [1]


def test_who_left_already_is_not_counted_again(small: Program) -> None:
    small.decide(FOUR)
    assert small.leave(["ann"]) == 1
    before = mark(small)
    assert small.leave(["ann"]) == 0
    assert mark(small) == before
    assert small.leave(["ann", "ben", "ben"]) == 1
    assert small.projection.agents.active.tolist() == [False, False, True, True]


def test_a_group_is_called_new_only_after_the_first_round(small: Program) -> None:
    assert small.decide({"ann": ("low", "north"), "ben": ("low", "east")}).notes == ["2 new people joined"]
    notes = small.decide({"ann": ("low", "south"), "cem": ("low", "north")}).notes
    assert notes == [
        "new group: south", "1 new person joined", "moved to another group: 1 person (ann)",
        "left out, without a state in this round: 1 person (ben)", blank(1),
    ]  # fmt: skip


def test_a_round_of_which_anything_is_known_is_not_called_a_mistake(small: Program) -> None:
    small.decide(FOUR)
    small.learn(came("ann"))
    assert small.decide({**FOUR, "ann": "high"}).notes == []
    small.cancel(2)
    assert small.decide({**FOUR, "ann": "high"}).notes == []
    assert small.decide({**FOUR, "ann": "low"}).notes == [blank(3)]
