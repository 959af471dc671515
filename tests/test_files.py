"""Tables come back bit for bit, damaged files are refused, and files are complete or absent."""

import hashlib
import multiprocessing
import os
import resource
import stat
from pathlib import Path

import numpy as np
import polars
import pytest

from restive import InputError, files

COLUMNS = {"one": np.arange(3), "two": np.array([[0.1, 0.2], [0.3, np.nan], [np.inf, -0.0]])}


def test_a_table_comes_back_bit_for_bit(tmp_path: Path) -> None:
    files.write_parquet(tmp_path / "a.parquet", "kind-1", {"seed": 7, "of": [1, None]}, COLUMNS)
    about, columns = files.read_parquet(tmp_path / "a.parquet", "kind-1", "a thing")
    assert about == {"seed": 7, "of": [1, None]}
    assert {name: (array.dtype, array.tobytes()) for name, array in columns.items()} == {
        name: (array.dtype, array.tobytes()) for name, array in COLUMNS.items()
    }


def test_a_table_of_another_kind_is_refused(tmp_path: Path) -> None:
    files.write_parquet(tmp_path / "a.parquet", "kind-1", {}, COLUMNS)
    with pytest.raises(InputError, match=r"a\.parquet: not a thing of this version \(format 'kind-1', not 'kind-2'\)"):
        files.read_parquet(tmp_path / "a.parquet", "kind-2", "a thing")


def test_a_truncated_table_is_refused(tmp_path: Path) -> None:
    files.write_parquet(tmp_path / "a.parquet", "kind-1", {}, COLUMNS)
    content = (tmp_path / "a.parquet").read_bytes()
    for length in range(0, len(content), 37):
        (tmp_path / "a.parquet").write_bytes(content[:length])
        with pytest.raises(InputError, match="an incomplete one"):
            files.read_parquet(tmp_path / "a.parquet", "kind-1", "a thing")


def test_every_changed_byte_is_refused_before_anything_parses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write_parquet(tmp_path / "a.parquet", "kind-1", {}, COLUMNS)
    content = (tmp_path / "a.parquet").read_bytes()
    monkeypatch.setattr(polars, "read_parquet", None)
    for place in range(len(content)):
        for flip in (0x01, 0xFF):
            (tmp_path / "a.parquet").write_bytes(
                content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :]
            )
            with pytest.raises(InputError, match=r"a\.parquet: (damaged|not a)"):
                files.read_parquet(tmp_path / "a.parquet", "kind-1", "a thing")


def test_the_checksum_is_that_of_sha256sum(tmp_path: Path) -> None:
    files.write_parquet(tmp_path / "a.parquet", "kind-1", {}, COLUMNS)
    digest = hashlib.sha256((tmp_path / "a.parquet").read_bytes()).hexdigest()
    assert (tmp_path / "a.parquet.sha256").read_text() == f"{digest}  a.parquet\n"


def test_a_table_without_its_checksum_is_read_as_it_is(tmp_path: Path) -> None:
    files.write_parquet(tmp_path / "a.parquet", "kind-1", {"seed": 1}, COLUMNS)
    (tmp_path / "a.parquet.sha256").unlink()
    assert files.read_parquet(tmp_path / "a.parquet", "kind-1", "a thing")[0] == {"seed": 1}


def test_an_archive_with_a_changed_byte_never_reads_as_other_numbers(tmp_path: Path) -> None:
    files.write_npz(tmp_path / "a.npz", COLUMNS)
    content = (tmp_path / "a.npz").read_bytes()
    for place in range(len(content)):
        (tmp_path / "a.npz").write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            arrays = files.read_npz(tmp_path / "a.npz")
        except InputError:
            continue
        for name, array in arrays.items():  # a member may be missing, which the reader of a format notices
            assert array.tobytes() == COLUMNS[name].tobytes()


def test_a_file_has_the_permissions_asked_for(tmp_path: Path) -> None:
    files.write_atomic(tmp_path / "key", b"secret", mode=0o600)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def _write_with_little_room(path: Path) -> None:
    """The system itself refuses to write more than 1000 bytes, as a full disk does in mid-file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        files.write_atomic(path, b"new" * 1000)
    except OSError as error:
        os._exit(3 if error.filename == str(path) else 4)


def test_a_disk_that_fills_up_in_mid_file_leaves_the_old_one(tmp_path: Path) -> None:
    files.write_atomic(tmp_path / "a", b"old")
    writer = multiprocessing.get_context("spawn").Process(target=_write_with_little_room, args=(tmp_path / "a",))
    writer.start()
    writer.join()
    assert writer.exitcode == 3
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]
