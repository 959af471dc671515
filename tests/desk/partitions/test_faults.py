"""Bad input is refused with a sentence, records nothing, and damage to files is found."""

import json
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from desk.partitions.comparing import CONFIG
from restive.cli import app
from restive.desk import AlreadyDecided
from restive.desk.config import Config
from restive.desk.partitions.program import PartitionedProgram, create
from restive.desk.table_columns import TableError
from restive.errors import Conflict, InputError, NotFound

AGENTS = [f"p{n:04d}" for n in range(1500)]


@pytest.fixture
def engine() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture
def program(tmp_path: Path, engine: Executor) -> PartitionedProgram:
    return make(tmp_path, engine)


def make(
    folder: Path, engine: Executor, agents: list[str] = AGENTS, url: str = "", **settings: Any
) -> PartitionedProgram:
    pl.DataFrame({"agent": agents}).write_parquet(folder / "people.parquet")
    config = Config.from_json({**CONFIG, "budget": 20, **settings})
    return create(url or str(folder / "program"), str(folder / "people.parquet"), config, engine, 1024)


def table(folder: Path, **columns: Any) -> str:
    given = {"agent": AGENTS, "state": ["here", "away"] * 750, **columns}
    pl.DataFrame(given).write_parquet(folder / "states.parquet")
    return str(folder / "states.parquet")


def test_any_file_system_of_fsspec_holds_a_program(
    tmp_path: Path, engine: Executor, program: PartitionedProgram
) -> None:
    elsewhere = make(tmp_path, engine, url=f"memory://{tmp_path.name}/program")
    states = table(tmp_path)
    first, second = program.decide(states, engine), elsewhere.decide(states, engine)
    assert (first.listed, first.reserve, first.lists) == (20, second.reserve, second.lists)
    assert elsewhere.verify(engine) == []
    again = PartitionedProgram(elsewhere.folder.url)
    assert again.decide(states, engine, again=True).round == 2
    with pytest.raises(Conflict, match="Round 1 of memory://"):
        elsewhere.folder.commit(1, {})


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (
            {"agent": ["P0000", *AGENTS[1:]]},
            InputError,
            r"1 new ids differ from known ones only .* \(P0000 for p0000\)",
        ),
        ({"state": ["gone", "away"] * 750}, TableError, "gone"),
        ({"agent": [AGENTS[1], *AGENTS[1:]]}, TableError, "p0001"),
        ({"state": [None, None] * 750}, InputError, "no row has a state"),
    ],
)
def test_a_faulty_table_is_refused(
    tmp_path: Path, engine: Executor, program: PartitionedProgram, columns: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        program.decide(table(tmp_path, **columns), engine)
    assert PartitionedProgram(program.folder.url).rounds == 0
    program.decide(table(tmp_path), engine)


def test_a_table_of_a_partition_with_others_is_refused(
    tmp_path: Path, engine: Executor, program: PartitionedProgram
) -> None:
    for place in range(2):
        pl.DataFrame({"agent": AGENTS[:2], "state": [0, 1]}).write_parquet(tmp_path / f"part-{place:05d}.parquet")
    with pytest.raises(
        TableError, match=r"part-00001\.parquet, row 1, column agent: p0000, p0001: not in this partition"
    ):
        program.decide(str(tmp_path), engine)
    (tmp_path / "part-00001.parquet").unlink()
    with pytest.raises(NotFound, match=r"part-00001\.parquet"):
        program.decide(str(tmp_path), engine)


def test_people_who_are_known_are_no_newcomers(tmp_path: Path, engine: Executor, program: PartitionedProgram) -> None:
    for place, some in enumerate((AGENTS[:1024], AGENTS[1024:])):
        states = {"agent": some, "state": [0] * len(some)}
        pl.DataFrame(states).write_parquet(tmp_path / f"part-{place:05d}.parquet")
    for new, message in (
        ("p0003", r"newcomers\.parquet: p0003: in the program already"),
        ("P0003", "P0003 for p0003"),
    ):
        pl.DataFrame({"agent": ["q1", new], "state": [1, 0]}).write_parquet(tmp_path / "newcomers.parquet")
        with pytest.raises(InputError, match=message):
            program.decide(str(tmp_path), engine)
    assert program.decide(str(tmp_path), engine, new=True, dry_run=True).joined == 2
    decided = program.decide(str(tmp_path), engine, new=True, must=["q1"])
    assert (decided.joined, decided.people, program.agents) == (2, 1502, 1502)
    assert program.folder.read(program.partitions[1].people)["agent"][-2:].to_list() == ["q1", "P0003"]


def test_a_table_is_recognised_though_its_newcomers_and_groups_are_known_now(
    tmp_path: Path, engine: Executor, program: PartitionedProgram
) -> None:
    states = table(tmp_path, agent=[*AGENTS[:1000], *(f"q{n}" for n in range(500))], group=["a", "b"] * 750)
    assert program.decide(states, engine).joined == 500
    with pytest.raises(AlreadyDecided):
        program.decide(states, engine)
    assert PartitionedProgram(program.folder.url).groups == ("a", "b")


def test_lists_and_rounds_that_contradict_are_refused(
    tmp_path: Path, engine: Executor, program: PartitionedProgram
) -> None:
    states = table(tmp_path)
    for given, message in (
        ({"must": ["nobody"]}, "1 people on the must list are not in the program"),
        ({"left": ["nobody", "p0001"]}, "1 people who left are not in the program"),
        ({"must": AGENTS[:2], "never": AGENTS[1:3]}, "p0001.*: on the must list and on the never list"),
        ({"must": AGENTS}, "in the control group or without a state"),
        ({"budget": -1}, "budget is -1"),
        ({"round": 2}, "The next round of .* is 1, not 2"),
    ):
        with pytest.raises(InputError, match=message):
            program.decide(states, engine, **given)
    assert program.decide(states, engine, dry_run=True).listed == 20
    assert program.decide(states, engine).round == 1
    with pytest.raises(AlreadyDecided):
        program.decide(states, engine)


def test_programs_that_cannot_be_are_refused(tmp_path: Path, engine: Executor, program: PartitionedProgram) -> None:
    with pytest.raises(Conflict, match="a partitioned program already"):
        make(tmp_path, engine)
    other = str(tmp_path / "other")
    with pytest.raises(InputError, match=r"p0000: more than once"):
        make(tmp_path, engine, [*AGENTS, "p0000"], other)
    for settings, message in (
        ({"policy": "egt"}, "needs lagrange"),
        ({"rewards": None}, "needs rewards"),
        ({"shadow": "random"}, "no shadow"),
    ):
        with pytest.raises(InputError, match=message):
            make(tmp_path, engine, url=other, **settings)
    with pytest.raises(NotFound, match="not a partitioned program"):
        PartitionedProgram(other)


def test_damage_is_found(tmp_path: Path, engine: Executor, program: PartitionedProgram) -> None:
    program.decide(table(tmp_path), engine)
    program.decide(table(tmp_path), engine, again=True)
    hurt, lost = (tmp_path / "program" / program.partitions[0].files[kind].path for kind in ("belief", "choices"))
    hurt.write_bytes(hurt.read_bytes() + b"x")
    lost.unlink()
    record = tmp_path / "program" / "log" / "00001.json"
    record.write_text(record.read_text().replace('"budget": 20', '"budget": 21'))
    found = program.verify(engine)
    assert [fault.partition(" ")[2] for fault in found[1:]] == ["has another content", "is missing"]
    assert found[0] == "the record of round 2 does not follow that of round 1"


def test_files_that_are_not_needed_are_removed(tmp_path: Path, engine: Executor, program: PartitionedProgram) -> None:
    part = tmp_path / "program" / "parts" / "00000"
    part.mkdir(parents=True)
    for name in ("belief-00001-dead.parquet.12.tmp", "list-00001-dead.parquet", "given-00002-other.parquet"):
        (part / name).touch()
    for round_ in (1, 2, 3):
        program.decide(table(tmp_path), engine, again=True)
        if round_ == 1:
            assert {file.name for file in part.iterdir() if "dead" in file.name} == set()
            assert (part / "given-00002-other.parquet").exists()
    kinds = sorted(file.name[: file.name.rindex("-")] for file in part.iterdir())
    assert kinds == [
        "activity-00002", "activity-00003", "belief-00002", "belief-00003", "choices-00001", "choices-00002", "choices-00003",
        "list-00001", "list-00002", "list-00003",
    ]  # fmt: skip
    assert program.verify(engine) == []


def test_commands_print_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"agent": AGENTS}).write_parquet("people.parquet")
    table(tmp_path)
    pl.DataFrame({"agent": AGENTS[:3]}).write_csv("never.csv")
    init = ["init", "p", "--people", "people.parquet", "--states", "away,here", "--rewards", "0,1", "--size", "1024"]
    decide = ["decide", "p", "--states", "states.parquet", "--never", "never.csv"]
    answers = []
    for given in (init, decide, ["status", "p"], ["verify", "p"]):
        result = CliRunner().invoke(app, ["desk", "partition", *given, "--json"])
        assert result.exit_code == 0, result.output
        answers.append(json.loads(result.stdout))
    made, decided, status, verified = answers
    assert (made["people"], made["partitions"], verified) == (1500, 2, {"faults": []})
    assert (decided["listed"], status["rounds"][0]["listed"], len(status["partitions"])) == (10, 10, 2)
