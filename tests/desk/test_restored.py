"""A store that goes back in time under an open program: the next write is refused, then all goes on from what is there."""

from collections.abc import Callable, Iterator

import pytest

from desk.backups import Backup
from desk.stories import know, make, record, write
from restive.desk import Desk, Program, cache
from restive.desk.replay import replay
from restive.desk.status import summarize
from restive.desk.store import StoreError
from restive.errors import InputError, NotFound

STORY = write(rounds=5)
SENTENCE = r"^The log of one is not the one that was read before.*restored.*; nothing was recorded: try again\.$"


@pytest.fixture
def desk(address: str) -> Iterator[Desk]:
    with Desk(address) as desk:
        yield desk


def go_back(desk: Desk, address: str) -> Program:
    """A program with four rounds in memory, over a store that has one."""
    program = make(desk, policy="lagrange")
    record(program, STORY[:1])
    backup = Backup(address)
    record(program, STORY[1:4], first=1)
    backup.restore()
    return program


def check_going_on(desk: Desk, program: Program, rounds: int = 2) -> None:
    """The program works, and a new one finds the same."""
    assert program.decide(STORY[1].states, again=True).round == rounds
    program.learn(STORY[1].rows, round=rounds)
    assert replay(program).proven
    assert know(desk.program("one")) == know(program)


VERBS: dict[str, Callable[[Program], object]] = {
    "decide": lambda program: program.decide(STORY[4].states),
    "learn": lambda program: program.learn(STORY[3].rows, round=4, correct=True),
    "correct": lambda program: program.correct_states({"a00": 1 - STORY[2].states["a00"]}, round=3),
    "leave": lambda program: program.leave(["a00"]),
    "erase": lambda program: program.erase(["a00"]),
    "cancel": lambda program: program.cancel(4),
    "change": lambda program: program.change(budget=3),
    "dry run": lambda program: program.decide(STORY[4].states, dry_run=True),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_the_first_write_to_a_restored_store_is_refused_and_the_next_goes_on_from_there(
    desk: Desk, address: str, verb: Callable[[Program], object]
) -> None:
    program = go_back(desk, address)
    with pytest.raises(StoreError, match=SENTENCE) as refused:
        verb(program)
    assert (refused.value.code, refused.value.recorded) == ("store_restored", False)
    check_going_on(desk, program)


def test_what_is_read_from_a_restored_store_is_what_is_there(desk: Desk, address: str) -> None:
    program = go_back(desk, address)
    assert summarize(program)["rounds"] == 1
    with pytest.raises(NotFound, match="round is 3"):
        program.recommendation(3)
    assert len(program.history("a00")) == 1
    assert know(program) == know(desk.program("one"))
    check_going_on(desk, program)


@pytest.mark.parametrize("rounds", [2, 5])
def test_a_restored_store_is_noticed_when_others_have_gone_on_with_it(desk: Desk, address: str, rounds: int) -> None:
    program = go_back(desk, address)
    length = program.cache.last_known().length
    with Desk(address) as elsewhere:
        other = elsewhere.program("one")
        for number in range(2, 2 + rounds):
            other.decide({name: 1 - state for name, state in STORY[4].states.items()} | {"new": 0}, again=True)
            other.learn([{"agent": "new", "next_state": 1}], round=number)
        assert (other.projection.length > length) == (rounds == 5)
        with pytest.raises(StoreError, match=SENTENCE):
            program.leave(["a00"])
        assert know(program) == know(other)
    check_going_on(desk, program, 2 + rounds)


def test_a_program_that_the_restored_store_does_not_have_is_not_taken_for_another(desk: Desk, address: str) -> None:
    make(desk, "zero")
    backup = Backup(address)
    lost = make(desk, policy="lagrange")
    record(lost, STORY[:2])
    backup.restore()
    with pytest.raises(NotFound):
        lost.leave(["a00"])
    with pytest.raises(NotFound):
        len(lost.rounds)
    with Desk(address) as elsewhere:
        another = make(elsewhere, "another")
        another.decide({"secret": 0})
        with pytest.raises(NotFound):
            len(lost.names)
        make(elsewhere, "one", policy="lagrange").decide(STORY[0].states)
        assert len(lost.names) == 9
        check_going_on(desk, lost)
        assert len(another.rounds) == 1


def test_an_open_program_is_not_taken_for_the_one_that_got_its_number(desk: Desk, address: str) -> None:
    make(desk, "zero")
    backup = Backup(address)
    lost = make(desk)
    backup.restore()
    with Desk(address) as elsewhere:
        another = make(elsewhere, "another")
        another.decide({"secret": 0})
        assert (lost.id == another.id) == ("://" not in address)
        with pytest.raises(NotFound):
            lost.decide({"ann": 0})
        with pytest.raises(NotFound):
            lost.change(budget=3)
        with pytest.raises(NotFound):
            len(lost.names)
        assert another.store.length(another.id) == 3


def test_a_snapshot_of_another_log_is_ignored(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ROUNDS_APART", 10**6)
    one, two = make(desk, "one"), make(desk, "two")
    record(one, STORY[:2])
    record(two, [story._replace(states=dict.fromkeys(story.states, 0)) for story in STORY[:2]])
    with desk.store.writing(two.id) as writer:
        writer.put_snapshot(cache.SLOT, one.projection.dump())
    assert know(desk.program("two")) == know(two)
    assert replay(desk.program("two")).proven


def test_a_log_with_a_gap_is_refused_with_a_sentence(desk: Desk) -> None:
    program, other = make(desk), make(desk, "two")
    record(program, STORY[:2])
    with desk.store.transact() as connection:
        connection.exec_driver_sql(f"DELETE FROM parts WHERE program = {program.id} AND event = 3")
        connection.exec_driver_sql(f"DELETE FROM events WHERE program = {program.id} AND number = 3")
    for reader in (program, desk.program("one")):
        reader.cache.forget()
        with pytest.raises(InputError, match=r"^Event 3 in the store .* is not as it was written: use a backup\.$"):
            reader.decide({"a00": 1})
    found = [summarize(each) for each in desk.programs()]
    assert [(each["name"], each["error"] is None) for each in found] == [("one", False), ("two", True)]
    assert other.decide({"a": 0}).round == 1
