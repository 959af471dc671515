import asyncio
import os
import stat
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from polars.testing import assert_frame_equal
from starlette.exceptions import HTTPException

from restive.desk.table_columns import TableError
from restive.desk.table_files import read_table_file, write_table_file
from restive.errors import InputError
from restive.server import table_reader
from restive.server.settings import MIB, UploadLimits
from restive.server.table_reader import SpareReader, is_plain, read_json_table, read_table

TABLE = pl.DataFrame({"agent": ["007", "ann", "Zoë"], "state": ["low", None, "high"]})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary files, which is to be empty afterwards."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def read(path: Path, kind: Literal["csv", "xlsx", "parquet"], limits: UploadLimits | None = None) -> pl.DataFrame:
    return asyncio.run(read_table(path, kind, "states", limits or UploadLimits())).frame


def refusal(path: Path, kind: Literal["csv", "xlsx", "parquet"], limits: UploadLimits | None = None) -> str:
    with pytest.raises(InputError) as error:
        read(path, kind, limits)
    return str(error.value)


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_a_table_is_what_the_desk_would_read_from_the_file(
    kind: Literal["csv", "xlsx", "parquet"], tmp_path: Path, folder: Path
) -> None:
    path, upload = tmp_path / f"table.{kind}", tmp_path / "upload"
    write_table_file(TABLE, path)
    upload.write_bytes(path.read_bytes())
    assert_frame_equal(read(upload, kind), read_table_file(path))
    assert list(folder.iterdir()) == []


def test_a_csv_file_that_needs_a_process_of_its_own_is_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = pl.DataFrame({"agent": [f'"{n}"' for n in range(70_000)], "state": ["low, or so"] * 70_000})
    rows.write_csv(path)
    assert not is_plain(path, 64 * MIB)
    assert_frame_equal(read(path, "csv"), read_table_file(path))


def test_how_a_file_was_read_comes_back_from_the_process_of_its_own(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "book.xlsx") as book:
        for name in ("Notes", "March"):
            book.add_worksheet(name).write_column(0, 0, ["agent", name])
    found = asyncio.run(read_table(tmp_path / "book.xlsx", "xlsx", "states", UploadLimits(), "March"))
    assert found.frame["agent"].to_list() == ["March"]
    assert (found.sheet, found.sheets) == ("March", ("Notes", "March"))
    with pytest.raises(InputError, match=r"states: no sheet '\.\./x'; there are Notes, March"):
        asyncio.run(read_table(tmp_path / "book.xlsx", "xlsx", "states", UploadLimits(), "../x\0"))


def test_small_and_plain_csv_files_need_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere")
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    small.write_text('agent,state\n"a, b",low\n' * 1000)
    large.write_text("agent,state\n" + "ann,low\n" * 200_000)
    assert len(read(small, "csv")) == 1999
    assert len(read(large, "csv")) == 200_000


def test_what_is_wrong_with_a_table_is_said_under_the_name_that_people_know(tmp_path: Path) -> None:
    empty, words = tmp_path / "empty", tmp_path / "words"
    empty.write_bytes(b"")
    words.write_bytes(b"no table at all")
    assert refusal(empty, "csv") == "states: the file is empty."
    for kind, name in (("parquet", "a Parquet"), ("xlsx", "an Excel")):
        said = refusal(words, kind)  # type: ignore[arg-type]
        assert said == f"states: the file is damaged or is not {name} file."


def damage(content: bytes) -> bytes:
    """A Parquet file whose middle is not what it was."""
    half = len(content) // 2
    return content[:half] + bytes(255 - byte for byte in content[half : half + 40]) + content[half + 40 :]


def test_a_damaged_file_is_an_error(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "table.parquet"
    pl.DataFrame({"agent": [f"{n * n}" for n in range(1000)]}).write_parquet(path)
    path.write_bytes(damage(path.read_bytes()))
    assert refusal(path, "parquet").startswith("states: ")
    assert list(folder.iterdir()) == []


def test_a_small_file_that_expands_to_very_many_rows_is_rejected(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "bomb.parquet"
    pl.DataFrame({"agent": pl.repeat(1, 30_000_000, dtype=pl.Int8, eager=True)}).write_parquet(path)
    assert path.stat().st_size < MIB
    said = refusal(path, "parquet", replace(UploadLimits(), max_memory_bytes=384 * MIB))
    assert said == (
        "states: it cannot be read within 384 MiB and 120 s; it is damaged, expands to far more than its "
        "size, or is not a Parquet file."
    )
    assert refusal(path, "parquet", replace(UploadLimits(), max_result_bytes=8 * MIB)).startswith(
        "states: it cannot be read within"
    )
    assert list(folder.iterdir()) == []


def test_a_zip_bomb_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("xl/workbook.xml", b"<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (300 * MIB))
    said = refusal(path, "xlsx", replace(UploadLimits(), max_memory_bytes=384 * MIB))
    assert said.startswith(
        ("states: it cannot be read within 384 MiB", "states: the file is damaged or is not an Excel file")
    )


def test_a_header_with_far_more_columns_than_the_rows_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{n}" for n in range(5000)) + "\n" + "x\n" * 50_000)
    assert not is_plain(path, 64 * MIB)
    assert refusal(path, "csv", replace(UploadLimits(), max_memory_bytes=512 * MIB)).startswith("states")


def test_reading_that_takes_too_long_is_ended(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "table.parquet"
    TABLE.write_parquet(path)
    said = refusal(path, "parquet", replace(UploadLimits(), timeout_seconds=0.05))
    assert said == "states: reading it takes longer than 0.05 s; split the table."
    assert list(folder.iterdir()) == []


def test_cancelling_leaves_neither_a_process_nor_a_file(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "table.parquet"
    TABLE.write_parquet(path)

    async def give_up() -> None:
        task = asyncio.create_task(read_table(path, "parquet", "states", UploadLimits()))
        while not any(folder.iterdir()):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert list(folder.iterdir()) == []


def test_only_this_user_can_read_the_result_of_the_child(tmp_path: Path) -> None:
    source, result = tmp_path / "table.csv", tmp_path / "result.arrow"
    source.write_text("agent\nann\n")
    before = os.umask(0o022)
    try:
        code = table_reader.convert(source, result)
    finally:
        os.umask(before)
    assert code == table_reader.EXIT_OK
    assert stat.S_IMODE(result.stat().st_mode) == 0o600
    assert pl.read_ipc_stream(result)["agent"].to_list() == ["ann"]


def test_the_child_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESTIVE_STORE", "postgresql://user:hush@host/name")
    assert "hush" not in str(table_reader.child_environment())


def test_no_more_tables_are_read_at_once_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, running, most = tmp_path / "table.parquet", 0, 0
    TABLE.write_parquet(path)

    async def read_slowly(link: Path, *given: object) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        TABLE.write_ipc_stream(link.with_name("result.arrow"))
        return b'["", "", "", []]'

    async def read_many() -> None:
        limits = replace(UploadLimits(), max_concurrent=2)
        await asyncio.gather(*(read_table(path, "parquet", "states", limits) for _ in range(6)))

    monkeypatch.setattr(table_reader, "_run_child", read_slowly)
    asyncio.run(read_many())
    assert most == 2


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["ann", "x" * 1001])])
def test_the_length_of_cells_is_limited_in_the_child(tmp_path: Path, dtype: pl.DataType) -> None:
    path = tmp_path / "table.parquet"
    frame = pl.DataFrame({"agent": ["ann", "x" * 1001], "state": ["low", "low"]})
    frame.with_columns(pl.col("agent").cast(dtype)).write_parquet(path)
    assert refusal(path, "parquet") == "states, row 2, column agent: the cell is longer than 1,000 bytes."


def test_cells_of_columns_that_no_table_has_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    notes = pl.DataFrame({"State": ["low", None], "notes": ["x" * 10**6] * 2, "Agent ID": [7, 8]})
    notes.with_columns(pl.col("State").cast(pl.Categorical)).write_parquet(path)
    found = read(path, "parquet")
    assert found.rows() == [(1, "low", "x" * 501, 7), (2, None, "x" * 501, 8)]
    assert found.columns == ["row", "State", "notes", "Agent ID"]


def test_the_size_of_the_result_counts_every_cell_in_full(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pl.DataFrame({"agent": ["x" * 900] * 10_000, "state": ["low"] * 10_000}).write_parquet(path)
    assert path.stat().st_size < 10_000
    assert "expands to far more than its size" in refusal(path, "parquet", UploadLimits(max_result_bytes=8 * MIB))
    assert read(path, "parquet").height == 10_000


def read_json(content: bytes) -> tuple[dict[str, object], pl.DataFrame | None]:
    return asyncio.run(read_json_table(content, "states", UploadLimits()))


def test_a_json_table_is_parsed_in_the_child(folder: Path) -> None:
    fields, table = read_json(b'{"budget": 3.0, "states": [{"agent": "ann", "state": 1}, {"agent": 7, "state": null}]}')
    assert fields == {"budget": 3, "states": []}
    assert table is not None
    assert table.rows() == [(1, "ann", 1), (2, "7", None)]
    assert read_json(b'{"states": null, "budget": 1}') == ({"states": None, "budget": 1}, None)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"{", HTTPException, "400: The body is not valid JSON at line 1, column 2"),
        (b"[]", InputError, "The body is a list; it must be an object."),
        (b'{"states": 1}', InputError, "states is a whole number; it must be a list of rows"),
        (b'{"states": [{"agent": "a"}]}', TableError, "states, row 1, column state: it is missing"),
        (b'{"x": "' + b"x" * MIB + b'"}', InputError, "The body is larger than 1 MiB without its table."),
        (b'{"states": {"agent": ["' + b"x" * 1001 + b'"], "state": [0]}}', InputError, "row 1, column agent: the cell"),
    ],
)
def test_errors_of_the_child_are_those_of_the_parser(content: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        read_json(content)
    assert type(caught.value) is error
    assert message in str(caught.value)


def test_a_server_keeps_a_reader_ready_after_the_first_table_and_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, bad = tmp_path / "table.parquet", tmp_path / "bad.parquet"
    write_table_file(TABLE, path)
    bad.write_bytes(b"PAR1 and nothing else")
    started: list[tuple[str, ...]] = []
    start = table_reader.start_child

    async def count(module: str, *arguments: str) -> asyncio.subprocess.Process:
        started.append(arguments)
        return await start(module, *arguments)

    async def story() -> None:
        limits, spare = UploadLimits(), SpareReader()
        async with spare.serving():
            for file in (path, bad, path):
                if file == bad:
                    with pytest.raises(InputError, match="Parquet"):
                        await read_table(file, "parquet", "states", limits)
                else:
                    found = await read_table(file, "parquet", "states", limits)
                    assert_frame_equal(found.frame, read_table_file(path))
                while spare._child is None:
                    await asyncio.sleep(0.01)
            child = spare._child
        assert child is not None
        assert child.returncode is not None

    monkeypatch.setattr(table_reader, "start_child", count)
    asyncio.run(story())
    assert [len(arguments) for arguments in started] == [
        7,
        0,
        0,
        0,
    ]  # the first has arguments, the others wait for them
