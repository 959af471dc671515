"""What can go wrong around a program: each fault is one clear sentence, loses nothing, and is over when its cause is.

After each fault the same program object goes on, and a new process finds everything as it was and proves it.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from desk.postgres import PASSWORD, Postgres
from desk.survivor import PLAN, PROCESSES, prove
from restive import cli
from restive.desk import Desk, Program, cache
from restive.desk.database import StoreError
from restive.desk.replay import digest, replay
from restive.desk.writer import Writer

NOTHING = "nothing of this call was recorded"
PEOPLE = 3000


def states(seed: int, people: int = PEOPLE) -> dict[str, int]:
    generator = np.random.default_rng(seed)
    return {f"p{number:05}": int(state) for number, state in enumerate(generator.integers(2, size=people))}


def outcomes(seed: int, people: int = PEOPLE) -> list[dict[str, Any]]:
    return [{"agent": agent, "next_state": state} for agent, state in states(seed, people).items()]


def begin(desk: Desk, people: int = PEOPLE) -> Program:
    """A program with a whole round behind it."""
    program = desk.create("calls", **PLAN)
    program.decide(states(0, people))
    program.learn(outcomes(1, people))
    return program


def said(error: pytest.ExceptionInfo[Any]) -> str:
    """The sentence, shown to who runs the test with -s."""
    sentence = str(error.value)
    print(f"\n  {sentence}")
    assert PASSWORD not in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


class Standing:
    """How a program stands, to compare with how it stands after a fault."""

    def __init__(self, program: Program) -> None:
        self.program, self.length, self.digest = program, program.projection.length, digest(program.projection)

    def check(self) -> None:
        """Nothing was lost and nothing was added, in memory as in the store."""
        assert self.program.store.verify(self.program.id) == self.length
        assert digest(self.program.projection) == self.digest
        with Desk(real_address(self.program)) as desk:
            assert digest(desk.program("calls").projection) == self.digest


def real_address(program: Program) -> str:
    url = program.store._engine.url
    return program.store.address if url.drivername == "sqlite" else url.render_as_string(hide_password=False)


def check_going_on(program: Program, address: str) -> None:
    """The same program goes on, and then a new process does."""
    rounds = len(program.rounds)
    recommendation = program.decide(states(rounds + 10))
    program.learn(outcomes(rounds + 11), round=recommendation.round)
    assert replay(program).proven
    elsewhere = PROCESSES.Process(target=prove, args=(address, "calls"))
    elsewhere.start()
    elsewhere.join()
    assert elsewhere.exitcode == 0
    assert len(program.rounds) == rounds + 2


@contextmanager
def pages(program: Program) -> Iterator[Callable[[int], None]]:
    """A disk with room for so many pages of the database."""
    room = [2**30]

    def limit(connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count={room[0]}").close()

    sa.event.listen(program.store._engine, "checkout", limit)
    yield lambda most: room.__setitem__(0, most)
    sa.event.remove(program.store._engine, "checkout", limit)


def test_a_full_disk_records_nothing_and_the_program_goes_on_when_there_is_room(tmp_path: Path) -> None:
    address = str(tmp_path / "store.db")
    with Desk(address) as desk:
        program = begin(desk)
        with pages(program) as leave_room_for:
            leave_room_for(1)  # as many as there are, then
            standing = Standing(program)
            with pytest.raises(StoreError) as reported:
                program.decide(states(2, 50_000))
            assert f"no room left on the disk; {NOTHING}: make room and try again" in said(reported)
            assert reported.value.recorded is False
            standing.check()
            for step in range(2, 40):
                leave_room_for(2**30)
                program.decide(states(step))
                standing = Standing(program)
                leave_room_for(1)
                if error := attempt(partial(program.learn, outcomes(step))):
                    break  # before that, it found room in pages that the failure had left free
            assert "no room left on the disk" in str(error)
            standing.check()
            leave_room_for(2**30)
            program.learn(outcomes(step))
        check_going_on(program, address)


def test_a_snapshot_that_finds_no_room_takes_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = str(tmp_path / "store.db")
    monkeypatch.setattr(cache, "ROUNDS_APART", 1)

    def fail(*_: object) -> None:
        raise sa.exc.OperationalError("", {}, Exception("disk full"))

    with Desk(address) as desk:
        program = begin(desk)
        monkeypatch.setattr(Writer, "put_snapshot", fail)
        recommendation = program.decide(states(2))
        assert program.store.verify(program.id) == program.projection.length
        with Desk(address) as another:
            assert another.program("calls").recommendation(recommendation.round).chosen == recommendation.chosen
        monkeypatch.undo()
        program.learn(outcomes(3))
        check_going_on(program, address)


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """A file system of its own."""
    folder = Path(tempfile.mkdtemp())
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    try:
        if made.returncode:
            pytest.skip("only root can mount a small disk")
        yield folder
    finally:
        if not made.returncode:
            subprocess.run(["umount", "--lazy", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def attempt(verb: Callable[[], object]) -> StoreError | None:
    """How it failed, if it did."""
    try:
        verb()
    except StoreError as error:
        return error
    return None


def fill(folder: Path, leave: int) -> Path:
    """Fill a disk but for some bytes."""
    filler = folder / "filler"
    free = shutil.disk_usage(folder).free
    filler.write_bytes(bytes(max(0, free - leave)))
    return filler


@pytest.mark.soak
def test_a_disk_that_is_really_full_records_nothing_and_the_program_goes_on_when_there_is_room() -> None:
    generator, failures = np.random.default_rng(8), 0
    with small_disk("24m") as folder, Desk(address := str(folder / "store.db")) as desk:
        program = begin(desk)
        for turn in range(30):
            filler = fill(folder, leave=int(generator.integers(0, 200_000)))
            standing = Standing(program)
            error = attempt(partial(program.decide, states(turn, PEOPLE + 500 * turn)))
            if error is not None:
                failures += 1
                assert error.recorded is False, str(error)
                assert "there is no room left on the disk" in str(error)
                standing.check()
            filler.unlink()
        assert 5 < failures < 30
        print(f"full disk: {failures} of 30 decisions found no room, nothing lost")
        with small_disk("64k") as tiny:
            fill(tiny, leave=4096)
            error = attempt(lambda: Desk(tiny / "store.db"))
            print(f"  {error}")
            assert "Opening the store" in str(error)
        check_going_on(program, address)


@contextmanager
def as_somebody() -> Iterator[None]:
    """Without the rights of root, to whom no file is read-only."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@contextmanager
def as_before() -> Iterator[None]:
    """With the rights that the process began with."""
    user = os.geteuid()
    os.seteuid(os.getuid())
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may use; pytest's own are for their owner only."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


def allow(folder: Path, files: int, inside: int) -> None:
    for file in folder.iterdir():
        file.chmod(files)
    folder.chmod(inside)


def test_a_file_that_may_only_be_read_is_reported_and_written_again_when_it_may_be(open_folder: Path) -> None:
    address = str(open_folder / "store.db")
    with Desk(address) as desk:
        program = begin(desk)
        program.decide(states(4))  # so that all kernels are loaded, which somebody else may not read
        program.learn(outcomes(5))
    allow(open_folder, 0o444, 0o777)
    with as_somebody(), Desk(address) as desk:
        program = desk.program("calls")
        standing = Standing(program)
        for verb in (partial(program.decide, states(2)), partial(program.erase, ["p00001"])):
            with pytest.raises(StoreError) as reported:
                verb()
            assert f"it may only be read; {NOTHING}: allow writing to its files" in said(reported)
            standing.check()
        with as_before():
            allow(open_folder, 0o666, 0o777)
        program.decide(states(2))
        program.learn(outcomes(3))
        with as_before():
            check_going_on(program, address)


def test_a_folder_that_may_only_be_read_is_reported_and_its_programs_can_be_looked_at(open_folder: Path) -> None:
    address = str(open_folder / "store.db")
    with Desk(address) as desk:
        standing = Standing(begin(desk))
    allow(open_folder, 0o444, 0o555)
    with as_somebody():
        with pytest.raises(StoreError) as reported:
            Desk(address)
        assert "Opening the store" in said(reported)
        with Desk(address, read_only=True) as desk:
            program = desk.program("calls")
            assert digest(program.projection) == standing.digest
            assert len(program.recommendation(1).chosen) == 4
            with pytest.raises(StoreError) as reported:
                program.decide(states(2))
            assert "may only be read" in said(reported)
    allow(open_folder, 0o666, 0o777)
    with Desk(address) as desk:
        check_going_on(desk.program("calls"), address)


@pytest.fixture
def own_server() -> Iterator[Postgres]:
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def stop_at(kind: str, server: Postgres, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    """Stop the server before an event of this kind is sent, or after the last statement of its transaction; once."""
    place = "append" if before else "finish"
    plain = getattr(Writer, place)

    def stop(writer: Writer, *rest: Any, **more: Any) -> Any:
        reached = kind in rest if before else any(event.kind == kind for event in writer.appended)
        if reached:
            monkeypatch.setattr(Writer, place, plain)
        if reached and before:
            server.stop("immediate")
        answer = plain(writer, *rest, **more)
        if reached and not before:
            server.stop("immediate")
        return answer

    monkeypatch.setattr(Writer, place, stop)


def test_a_server_that_stops_in_mid_write_loses_nothing(own_server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    address = own_server.address(own_server.new_database())
    with Desk(address) as desk:
        program = begin(desk)
        standing = Standing(program)
        stop_at("decided", own_server, monkeypatch, before=True)
        with pytest.raises(StoreError) as reported:
            program.decide(states(2))
        assert f"the connection was lost; {NOTHING}: try again when the server is up" in said(reported)
        assert reported.value.recorded is False
        with pytest.raises(StoreError) as reported:
            program.learn(outcomes(3))
        assert "no server answers there" in said(reported)
        own_server.start()
        standing.check()
        stop_at("decided", own_server, monkeypatch, before=False)
        with pytest.raises(StoreError) as reported:
            program.decide(states(2))
        assert "it is not known whether this call was recorded" in said(reported)
        assert reported.value.recorded is None
        own_server.start()
        standing.check()
        check_going_on(program, address)


def test_a_call_that_is_interrupted_in_mid_write_leaves_the_program_as_it_was(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Writer.append

    def interrupt(writer: Writer, kind: str, *rest: Any, **more: Any) -> Any:
        if kind in ("decided", "outcomes"):
            raise KeyboardInterrupt
        return append(writer, kind, *rest, **more)

    with Desk(address) as desk:
        program = begin(desk)
        for verb in (partial(program.decide, states(2)), partial(program.decide, {"new": 1})):
            standing = Standing(program)
            monkeypatch.setattr(Writer, "append", interrupt)
            with pytest.raises(KeyboardInterrupt):
                verb()
            monkeypatch.undo()
            standing.check()
        check_going_on(program, address)


def test_a_clock_that_jumps_back_changes_no_order_and_no_decision(address: str) -> None:
    start = datetime(2026, 10, 25, 2, 30, tzinfo=UTC)
    jumps = [timedelta(minutes=-37 * step) if step % 2 else timedelta(minutes=step) for step in range(200)]
    ticks = iter(start + jump for jump in jumps)
    with Desk(address, clock=lambda: next(ticks)) as desk:
        program = begin(desk)
        program.decide(states(2))
        program.learn(outcomes(3))
        times = [event.at for event in program.log()]
        assert times == sorted(times)
        assert len(set(times)) < len(times)  # it did jump back: time stood still instead
        jumped = program.decide(states(4)).chosen
    with Desk(address) as desk:
        undisturbed = desk.create("undisturbed", **PLAN)
        for step in (0, 2, 4):
            steady = undisturbed.decide(states(step)).chosen
            undisturbed.learn(outcomes(step + 1))
        assert steady == jumped
        program = desk.program("calls")
        program.learn(outcomes(5))
        check_going_on(program, address)


def test_rounds_can_be_asked_for_in_any_order_while_others_are_decided(tmp_path: Path) -> None:
    with Desk(tmp_path / "store.db") as desk:
        program = begin(desk, 20)
        for step in range(1, 6):
            program.decide(states(step, 20), again=True)
            for round_ in (1, step, step + 1, 1, max(1, step - 2)):
                assert program.get_round(round_).round == round_


class Command:
    """`restive desk` in this process, on one store."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.store, self.capsys, self.monkeypatch = folder, str(folder / "store.db"), capsys, monkeypatch
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        (folder / "states.csv").write_text("agent,state\n" + "".join(f"p{i},{i % 2}\n" for i in range(40)))

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and what was said beside it."""
        self.monkeypatch.setattr(sys, "argv", ["restive", "desk", *words, "--store", self.store])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        return int(ended.value.code or 0), out, err


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    made = Command(tmp_path, monkeypatch, capsys)
    assert made("init", "calls", "--states", "low,high", "--rewards", "0,1", "--budget", "5")[0] == 0
    return made


def test_a_list_that_cannot_be_written_is_recorded_all_the_same_and_written_later(command: Command) -> None:
    long = command.folder / ("x" * 248 + ".csv")  # the file that it is written to first has a longer name
    states_ = str(command.folder / "states.csv")
    code, _, err = command("decide", "calls", "--states", states_, "--out", str(long))
    print(err)
    assert code == 2
    assert "File name too long. The round is recorded; to write its list: restive desk round calls 1 --out FILE" in err
    code, _, err = command("decide", "calls", "--states", states_)
    print(err)
    assert code == 2
    assert re.search(r"Round 1 \(.+\) of calls was decided on .+ from the same states", err)
    assert command("round", "calls", "1", "--full", "--out", str(command.folder / "list.csv"))[0] == 0
    assert (command.folder / "list.csv").read_text().count("chosen") == 5
    assert command("replay", "calls")[0] == 0
    assert sorted(path.name for path in command.folder.glob("*.csv")) == ["list.csv", "states.csv"]


def test_a_list_that_could_never_be_written_is_refused_before_anything_is_recorded(command: Command) -> None:
    states_ = str(command.folder / "states.csv")
    for out, why in (("list.doc", "cannot write files that end in '.doc'"), ("", "")):
        place = command.folder / out if out else command.folder / "states.csv" / "list.csv"
        code, _, err = command("decide", "calls", "--states", states_, "--out", str(place))
        print(err)
        assert code == 2
        assert why in err
    with Desk(command.store) as desk:
        assert desk.program("calls").rounds == []


def test_a_store_that_may_only_be_read_is_one_sentence_of_the_command(command: Command, open_folder: Path) -> None:
    place = Path(shutil.copy(command.store, open_folder))
    command.store, states_ = str(place), str(shutil.copy(command.folder / "states.csv", open_folder))
    allow(open_folder, 0o444, 0o555)
    with as_somebody():
        code, out, err = command("decide", "calls", "--states", states_)
    print(err)
    assert (code, out) == (2, "")
    assert err.startswith(f"restive: Opening the store {place} failed, it may only be read; nothing was changed: allow")
    assert err.count("\n") == 1
    allow(open_folder, 0o666, 0o777)
    assert command("decide", "calls", "--states", states_)[0] == 0
    assert command("replay", "calls")[0] == 0


@pytest.mark.parametrize("words", [("--json",), ()])
def test_a_reader_who_goes_away_ends_the_command_quietly_and_the_round_is_recorded(
    command: Command, words: tuple[str, ...]
) -> None:
    line = [sys.executable, "-m", "restive", "desk", "decide", "calls", *words, "--store", command.store]
    states_ = ["--states", str(command.folder / "states.csv")]
    running = subprocess.Popen([*line, *states_], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    reported_at = running.stderr.read().decode()
    running.stderr.close()
    code = running.wait()
    print(f"\n  exit {code}: {reported_at!r}")
    assert "Traceback" not in reported_at
    assert "Exception ignored" not in reported_at
    with Desk(command.store) as desk:
        assert len(desk.program("calls").recommendation(1).chosen) == 5
        assert replay(desk.program("calls")).proven
