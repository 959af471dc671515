"""What is recorded is there: whole, in order, once, whoever writes at the same time and whoever is killed."""

import itertools
import signal
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa

from desk.appending import PROCESSES, append_some, append_until_killed, columns_for, erase_and_die, open_and_create
from desk.postgres import Postgres
from restive.desk import Desk, RequestContext
from restive.desk import store as module
from restive.desk import writer as writer_module
from restive.desk.audit import KEYED, Repeated
from restive.desk.codec import Column
from restive.desk.events import CHUNK
from restive.desk.roster import ROSTER_CHUNK
from restive.desk.store import Event, Store, StoreError, Writer
from restive.errors import InputError

GENERATOR = np.random.default_rng(11)


def outcome_columns(number: Column) -> dict[str, Column]:
    size = len(number)
    reward = np.where(GENERATOR.random(size) < 0.1, np.nan, GENERATOR.random(size))
    return {
        "number": number,
        "done": GENERATOR.random(size) < 0.5,
        "reward": reward,
        "after": np.full(size, -1, np.int16),
    }


def assert_same_event(one: Event, other: Event) -> None:
    assert one._replace(columns={}, extra={}) == other._replace(columns={}, extra={})
    for mine, its in [(one.columns, other.columns), *((one.extra[name], other.extra[name]) for name in one.extra)]:
        assert list(mine) == list(its)
        for name in mine:
            assert mine[name].dtype == its[name].dtype
            assert mine[name].tobytes() == its[name].tobytes()
    assert list(one.extra) == list(other.extra)


def make_program(store: Store, name: str = "calls") -> int:
    with store.creating(name) as writer:
        writer.append("created", {"config": {"budget": 3}})
        return writer.program


def test_events_of_every_shape_come_back_in_order(store: Store) -> None:
    program = make_program(store)
    ranked = {"number": GENERATOR.permutation(50), "priority": GENERATOR.random(50)}
    with store.writing(program) as writer:
        reported = [
            writer.append("opened", {"budget": 2}, outcome_columns(np.arange(0, 40_000, 3)), round=0),
            writer.append("changed", {"name": 'naïve "\u0000\ud800" text', "deep": {"x": [1.5, -0.0, True]}}),
            writer.append("decided", {}, {"a": np.arange(3), "b": np.zeros(5)}, {"list": ranked, "Älist": {}}, 0),
            writer.append("erased", {}, {"number": np.array([], np.int64), "why": np.array([], np.uint8)}),
        ]
    found = list(store.events(program))
    assert [event.number for event in found] == [0, 1, 2, 3, 4]
    for event, mine in zip(found[1:], reported, strict=True):
        assert_same_event(event, mine)
    assert store.length(program) == store.verify(program) == 5


def test_events_are_chosen_by_number_kind_and_round_across_batches(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, other = make_program(store), make_program(store, "other")
    with store.writing(program) as writer:
        for step in range(20):
            writer.append("opened", {}, columns_for(step), round=step)
            writer.append("outcomes", {}, columns_for(step), round=step)
    monkeypatch.setattr(module, "EVENT_BATCH", 7)
    monkeypatch.setattr(module, "MAX_PART_BYTES", 1500)

    def numbers(**choice: object) -> list[int]:
        return [event.number for event in store.events(program, **choice)]  # type: ignore[arg-type]

    assert numbers() == list(range(41))
    assert numbers(first=30) == list(range(30, 41))
    assert numbers(kinds=["outcomes"]) == list(range(2, 41, 2))
    assert numbers(kinds=["outcomes", "created"], round=3) == [8]
    assert numbers(kinds=[]) == []
    assert numbers(first=41) == []
    assert all(event.columns == {} and event.extra == {} for event in store.events(program, columns=False))
    steps = [int(event.columns["step"][0]) for event in store.events(program, first=1)]
    assert steps == [step for step in range(20) for _ in range(2)]
    assert store.length(other) == 1


def test_history_of_an_agent_is_what_the_events_say(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HISTORY_BATCH", 3)
    program, generator = make_program(store), np.random.default_rng(5)
    with store.writing(program) as writer:
        for step in range(12):
            number = np.flatnonzero(generator.random(3 * CHUNK) < 0.7)
            kind = "outcomes" if step % 3 else "opened"
            writer.append(kind, {"step": step}, outcome_columns(number), round=step, extra={"list": {"number": number}})
            writer.append("changed", {}, {"other": np.arange(4)})
    for agent in (0, CHUNK - 1, CHUNK, 2 * CHUNK + 17, 3 * CHUNK - 1):
        for kinds in (None, ["outcomes"]):
            expected = []
            for event in store.events(program, kinds=kinds):
                here = np.flatnonzero(event.columns.get("number", np.array([])) == agent)
                if len(here):
                    row = {name: column[here] for name, column in event.columns.items()}
                    expected.append(event._replace(columns=row, extra={}))
            assert len(expected) > 2
            assert repr(list(store.history(program, agent, kinds))) == repr(expected)
    assert list(store.history(program, 3 * CHUNK)) == []
    assert list(store.history(program, -1)) == []


def test_history_reads_the_agents_chunks_by_an_index(tmp_path: Path) -> None:
    asked: list[str] = []
    with Store.open(tmp_path / "store.db") as store:
        program = make_program(store)
        sa.event.listen(
            store._engine, "before_cursor_execute", lambda _c, _u, statement, *_: asked.append(statement), named=False
        )
        list(store.history(program, 5, ["opened"]))
        (query,) = [statement for statement in asked if statement.startswith("SELECT")]
        config = store.execute(sa.text("EXPLAIN QUERY PLAN " + query.replace("?", "1")))  # type: ignore[arg-type]
        assert any("INDEX parts_by_chunk (program=? AND chunk=? AND event>?)" in row.detail for row in config)


def test_names_are_places_across_chunks_and_erased_ones_are_null(store: Store) -> None:
    program = make_program(store)
    names = [f"Zoë {place}" for place in range(2 * ROSTER_CHUNK + 5)]
    borders = [0, 1, 7, ROSTER_CHUNK, ROSTER_CHUNK, ROSTER_CHUNK + 1, len(names)]
    assert store.names(program).to_list() == []
    for low, high in itertools.pairwise(borders):
        with store.writing(program) as writer:
            writer.add_names(pl.Series(names[low:high], dtype=pl.String) if low % 2 else names[low:high])
    assert store.names(program).to_list() == names
    gone = [0, ROSTER_CHUNK - 1, ROSTER_CHUNK, len(names) - 1]
    with store.writing(program) as writer:
        for agent in [*gone, gone[0]]:
            writer.erase_name(agent)
        writer.add_names(["late"])
    left = [None if place in gone else name for place, name in enumerate(names)]
    assert store.names(program).to_list() == [*left, "late"]
    assert store.names(program).dtype == pl.String


@pytest.mark.parametrize("agent", [-1, 2, ROSTER_CHUNK])
def test_a_name_that_is_not_there_cannot_be_erased(tmp_path: Path, agent: int) -> None:
    with Store.open(tmp_path / "store.db") as store:
        program = make_program(store)
        with store.writing(program) as writer:
            writer.add_names(["ann", "bob"])
        with pytest.raises(InputError, match=f"no agent with the number {agent}"), store.writing(program) as writer:
            writer.erase_name(agent)


def readable_text(folder: Path) -> bytes:
    """Everything in the files of a folder, as it is and decompressed wherever a compressed text begins."""
    found = []
    for content in (path.read_bytes() for path in folder.rglob("*") if path.is_file()):
        found.append(content)
        place = content.find(b"\x78\x01")
        while place >= 0:
            stream = zlib.decompressobj()
            try:
                for start in range(place, min(place + 4096, len(content)), 16):
                    found.append(stream.decompress(content[start : start + 16]))
            except zlib.error:
                pass
            place = content.find(b"\x78\x01", place + 1)
    return b"".join(found)


def test_an_erased_name_is_nowhere_in_the_files_of_sqlite(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        program = make_program(store)
        for name in ["Ada Lovelace", "Grace Hopper", *(f"person {place}" for place in range(60))]:
            with store.writing(program) as writer:
                writer.add_names([name])  # each leaves an older copy of the whole chunk behind
                writer.append("joined", {}, {"number": np.array([writer.length])})
        assert b"Ada Lovelace" in readable_text(tmp_path)
        with store.writing(program) as writer:
            writer.erase_name(0)
        found = readable_text(tmp_path)
        assert b"Ada Lovelace" not in found
        assert b"Grace Hopper" in found
        assert store.names(program)[:2].to_list() == [None, "Grace Hopper"]


def test_a_name_that_a_reader_kept_in_the_files_is_cleared_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restive.desk.database.LOCK_TIMEOUT_SECONDS", 0)
    with Store.open(tmp_path / "store.db") as store:
        program = make_program(store)
        with store.writing(program) as writer:
            writer.add_names(["Ada Lovelace", "Grace Hopper"])
        with store._engine.connect() as reader:
            reader.execute(sa.text("SELECT count(*) FROM events")).scalar()
            sentence = "to clear them, erase again, without any name"
            with pytest.raises(StoreError, match=sentence) as reported, store.writing(program) as writer:
                writer.erase_name(0)
            assert reported.value.recorded is True
            assert store.names(program).to_list() == [None, "Grace Hopper"]
            assert b"Ada Lovelace" in readable_text(tmp_path)
        store.purge_deleted()
        found = readable_text(tmp_path)
        assert (b"Ada Lovelace" in found, b"Grace Hopper" in found) == (False, True)


def test_an_erased_name_is_nowhere_in_the_tables_of_postgresql(server: Postgres) -> None:
    database = server.new_database()
    with Store.open(server.address(database)) as store:
        program = make_program(store)
        for names in (["Ada Lovelace"], ["Grace Hopper"], [f"person {place}" for place in range(100)]):
            with store.writing(program) as writer:
                writer.add_names(names)
        folder = server.data / "base" / str(server.execute(f"SELECT oid FROM pg_database WHERE datname = '{database}'"))
        server.execute("CHECKPOINT")
        assert b"Ada Lovelace" in readable_text(folder)
        with store.writing(program) as writer:
            writer.erase_name(0)
        server.execute("CHECKPOINT")
        found = readable_text(folder)
        assert b"Ada Lovelace" not in found
        assert b"Grace Hopper" in found


@pytest.fixture
def cut_off(tmp_path: Path) -> Iterator[Desk]:
    """A desk that was opened before another process erased Ada Lovelace and was killed before it cleared the files."""
    address = str(tmp_path / "store.db")
    with Desk(address) as desk:
        desk.create("calls", states=["low", "high"]).decide({"Ada Lovelace": "low", "Grace Hopper": "high"})
        process = PROCESSES.Process(target=erase_and_die, args=(address, "calls", "Ada Lovelace", "key"))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert desk.program("calls").names.call([0, 1]) == ["(erased)", "Grace Hopper"]
        assert b"Ada Lovelace" in readable_text(tmp_path)
        yield desk


def check_cleared(folder: Path) -> None:
    found = readable_text(folder)
    assert (b"Ada Lovelace" in found, b"Grace Hopper" in found) == (False, True)


def test_an_erasure_that_was_cut_off_is_finished_when_its_key_is_used_again(cut_off: Desk, tmp_path: Path) -> None:
    with pytest.raises(Repeated) as repeated:
        cut_off.program("calls").erase(["Ada Lovelace"], context=RequestContext(key="key", asked=f"{KEYED}digest"))
    assert repeated.value.answer["count"] == 1
    check_cleared(tmp_path)


def test_an_erasure_that_was_cut_off_is_finished_at_the_next_start(cut_off: Desk, tmp_path: Path) -> None:
    Store.open(tmp_path / "store.db", read_only=True).close()
    assert b"Ada Lovelace" in readable_text(tmp_path)
    Store.open(tmp_path / "store.db").close()
    check_cleared(tmp_path)


def test_a_store_opens_although_an_erasure_that_was_cut_off_cannot_be_finished(
    cut_off: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restive.desk.database.LOCK_TIMEOUT_SECONDS", 0)
    with cut_off.store._engine.connect() as reader:
        reader.execute(sa.text("SELECT count(*) FROM events")).scalar()
        Store.open(tmp_path / "store.db").close()
        assert b"Ada Lovelace" in readable_text(tmp_path)
    Store.open(tmp_path / "store.db").close()
    check_cleared(tmp_path)


def test_newest_snapshots_are_kept_and_found_by_what_they_cover(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_PIECE", 10)
    program = make_program(store)
    assert store.snapshot(program, "belief") is None
    for step in range(5):
        with store.writing(program) as writer:
            writer.append("changed", {})
            writer.put_snapshot("belief", b"old")
            writer.put_snapshot("belief", b"belief %d " % step * 5)
            writer.put_snapshot("empty", b"")
    assert store.snapshot(program, "belief") == (6, b"belief 4 " * 5)
    assert store.snapshot(program, "belief", before=5) == (5, b"belief 3 " * 5)
    assert store.snapshot(program, "belief", before=4) == (4, b"belief 2 " * 5)
    assert store.snapshot(program, "belief", before=3) is None
    assert store.snapshot(program, "empty") == (6, b"")
    with store.writing(program) as writer:
        writer.drop_snapshots(after=5)
    assert store.snapshot(program, "belief") == (5, b"belief 3 " * 5)
    assert store.snapshot(program, "empty") == (5, b"")


def write_and_fail(writer: Writer) -> None:
    writer.append("opened", {}, columns_for(0))
    writer.add_names(["ann"])
    writer.put_snapshot("belief", b"x")
    raise KeyError


def test_a_block_that_fails_records_nothing(store: Store) -> None:
    program = make_program(store)
    with pytest.raises(KeyError), store.writing(program) as writer:
        write_and_fail(writer)
    with pytest.raises(KeyError), store.creating("never") as writer:
        write_and_fail(writer)
    assert store.verify(program) == 1
    assert len(store.names(program)) == 0
    assert store.snapshot(program, "belief") is None
    assert [row.name for row in store.programs()] == ["calls"]


def test_programs_are_found_by_name_and_near_names_are_reported(store: Store) -> None:
    with pytest.raises(InputError, match=r"has no program 'calls'; it has none yet\."):
        store.find("calls")
    ids = [make_program(store, name) for name in ("calls", "visits")]
    assert [store.find(name).id for name in ("calls", "visits")] == ids
    assert [row.name for row in store.programs()] == ["calls", "visits"]
    with pytest.raises(InputError, match="there are calls"):
        store.find("call")
    with pytest.raises(InputError, match="already has a program 'calls'"):
        make_program(store, "calls")
    with pytest.raises(InputError, match="no program with the id 99"), store.writing(99):
        pass
    with pytest.raises(InputError, match="There is no event 1; the program has 1"):
        store.event(ids[0], 1)


def test_a_header_that_is_no_json_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        program = make_program(store)
        for header in ({"budget": float("nan")}, {"budget": np.arange(2)}):
            with pytest.raises(InputError, match="'opened' cannot be JSON"), store.writing(program) as writer:
                writer.append("opened", header)


def test_a_clock_that_jumps_back_reorders_nothing(address: str) -> None:
    start = datetime(2026, 3, 29, 1, 59, 59, 5, tzinfo=UTC)
    times = [start, start, start + timedelta(hours=1), start - timedelta(days=400), start + timedelta(hours=2)]
    away = timezone(timedelta(hours=-7))
    ticks: Iterator[datetime] = (time.astimezone(away) for time in times)
    with Store.open(address, clock=lambda: next(ticks)) as store:
        program = make_program(store)
    for _ in range(3):
        with Store.open(address, clock=lambda: next(ticks)) as store, store.writing(program) as writer:
            writer.append("changed", {})
    with Store.open(address) as store:
        found = [event.at for event in store.events(program)]
    assert found == [
        "2026-03-29T01:59:59.000005+00:00",
        "2026-03-29T02:59:59.000005+00:00",
        "2026-03-29T02:59:59.000005+00:00",
        "2026-03-29T03:59:59.000005+00:00",
    ]


TAMPERING = {
    "header": "UPDATE events SET header = '{}' WHERE number = 2",
    "kind": "UPDATE events SET kind = 'left' WHERE number = 2",
    "round": "UPDATE events SET round = 7 WHERE number = 2",
    "time": "UPDATE events SET at = '2020' WHERE number = 2",
    "digest": "UPDATE events SET digest = 'ab' WHERE number = 2",
    "a part": "UPDATE parts SET body = x'00' WHERE event = 2 AND chunk = 0",
    "a part gone": "DELETE FROM parts WHERE event = 2 AND chunk = 1",
    "parts gone": "DELETE FROM parts WHERE event = 2",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING)
def test_the_first_event_that_was_tampered_with_is_named(tmp_path: Path, statement: str) -> None:
    with Store.open(tmp_path / "store.db") as store:
        program = make_program(store)
        with store.writing(program) as writer:
            for step in range(4):
                writer.append("opened", {"budget": step}, columns_for(step), round=step)
        assert store.verify(program) == 5
        with store._engine.connect().execution_options(writing=True) as connection, connection.begin():
            assert connection.exec_driver_sql(statement).rowcount
        with pytest.raises(InputError, match=r"Event 2 in the store .* is not as it was written"):
            store.verify(program)


def test_a_missing_event_is_named(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        program = make_program(store)
        with store.writing(program) as writer:
            for _ in range(3):
                writer.append("changed", {})
        with store._engine.connect().execution_options(writing=True) as connection, connection.begin():
            connection.exec_driver_sql("DELETE FROM events WHERE number = 2")
        with pytest.raises(InputError, match="Event 2 in"):
            store.verify(program)


def test_processes_that_append_at_once_get_numbers_without_gaps(address: str) -> None:
    count = 25
    with Store.open(address) as store:
        program = make_program(store)
        writers = [PROCESSES.Process(target=append_some, args=(address, program, who, count)) for who in "ab"]
        for process in writers:
            process.start()
        for process in writers:
            process.join()
        assert [process.exitcode for process in writers] == [0, 0]
        found = list(store.events(program, first=1))
        assert [event.number for event in found] == list(range(1, 2 * count + 1))
        for who in "ab":
            assert [event.round for event in found if event.header["who"] == who] == list(range(count))
        assert store.verify(program) == 2 * count + 1


def test_neighbours_are_read_together_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PART_BYTES", 10)
    rows: list[Any] = [SimpleNamespace(size=size) for size in (4, 6, 1, 30, 0, 10, 10)]
    groups = [[row.size for row in group] for group in module._group_by_size(rows)]
    assert groups == [[4, 6], [1], [30], [0, 10], [10]]
    assert list(module._group_by_size([])) == []


def test_threads_share_a_store(store: Store) -> None:
    program = make_program(store)

    def append_and_read(who: int) -> int:
        for step in range(5):
            with store.writing(program) as writer:
                reported = writer.append("opened", {"who": who}, columns_for(step))
            assert_same_event(store.event(program, reported.number), reported)
        return len(list(store.history(program, 8000)))

    with ThreadPoolExecutor(4) as threads:
        seen = list(threads.map(append_and_read, range(4)))
    assert max(seen) == 20
    assert store.verify(program) == 21


def test_processes_that_open_an_empty_store_at_once_all_succeed_and_one_creates(address: str) -> None:
    names = ["same", "same", "own"]
    pipes = [PROCESSES.Pipe(duplex=False) for _ in names]
    processes = [
        PROCESSES.Process(target=open_and_create, args=(address, name, pipe[1]))
        for name, pipe in zip(names, pipes, strict=True)
    ]
    for process in processes:
        process.start()
    reported = [pipe[0].recv() for pipe in pipes]
    for process in processes:
        process.join()
    assert reported[2] == "created"
    assert sorted(reported[:2])[1] == "created"
    assert sorted(reported[:2])[0].startswith("Conflict: The store")
    assert sorted(reported[:2])[0].endswith("already has a program 'same'.")
    for pipe in pipes:
        pipe[0].close()
        pipe[1].close()


def kill_while_appending(address: str, program: int, generator: np.random.Generator) -> tuple[int, str]:
    """Kill a process somewhere between two acknowledgements; the last that it sent."""
    receiver, sender = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=append_until_killed, args=(address, program, sender))
    process.start()
    sender.close()
    for _ in range(int(generator.integers(1, 6))):
        last: tuple[int, str] = receiver.recv()
    process.join(float(generator.random()) * 0.004)  # the point of the kill, not a wait for anything
    process.kill()
    process.join()
    try:
        while True:
            last = receiver.recv()
    except EOFError:
        receiver.close()
        return last


def check_kills(address: str, kills: int) -> None:
    generator = np.random.default_rng(5)
    with Store.open(address) as store:
        program = make_program(store)
        for _ in range(kills):
            number, digest = kill_while_appending(address, program, generator)
            assert store.event(program, number).digest == digest
            length = store.verify(program)
            assert length > number
            assert length % 2 == 1  # the one of the creation, and whole pairs
        assert [int(event.columns["step"][0]) for event in store.events(program, 1)] == list(range(1, length))


def test_what_was_acknowledged_survives_kills_of_the_writer(address: str) -> None:
    check_kills(address, 5)


@pytest.mark.soak
def test_what_was_acknowledged_survives_hundreds_of_kills(address: str) -> None:
    check_kills(address, 300)


def test_writers_of_one_process_stand_in_line_and_do_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path / "a.db") as store:
        with store.creating("one") as writer:
            program = writer.program

        def write() -> int:
            with store.writing(program) as writer:
                return writer.append("said", {}).number

        with ThreadPoolExecutor(1) as other, store.writing(program):
            monkeypatch.setattr(module, "LOCK_TIMEOUT_SECONDS", 0.05)
            with pytest.raises(StoreError, match="somebody else is writing to it and does not finish; nothing was"):
                other.submit(write).result()
        with pytest.raises(ZeroDivisionError), store.writing(program):
            print(1 / 0)
        assert write() == 0
