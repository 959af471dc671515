"""Files of a partitioned program, in a folder or below any URL that fsspec can open, and its log.

    log/00000.json             the config and the partitions; log/00012.json: the record of round 12
    people/part-00003.parquet  the ids and groups of the people of partition 3 at first, in the order of their numbers
    settings/ROUND-DIGEST.json what the tasks of a round share
    parts/00003/KIND-ROUND-DIGEST.parquet  what is known of them after a round, and the choices and list of the round

A file is named by the digest of its content, so it is never overwritten by another content: tasks that run twice, late
or at the same time write the same file or another one, and only those count that the record of a round names. On a disk
a file is written under another name, flushed and renamed. A record is created at once and only if there is none, and
holds the digest of the record before it: of two processes that decide the same round one fails, and the log is a chain.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, NamedTuple

import fsspec
import numpy as np
import polars as pl
from fsspec.implementations.local import LocalFileSystem

from restive.errors import Conflict, InputError, NotFound

# What each kind of file holds; those of earlier rounds are kept of CHOICES and LIST only.
PEOPLE, GIVEN, BELIEF, RANKED = "people", "given", "belief", "ranked"
ACTIVITY, CHOICES, LIST = "activity", "choices", "list"
KEPT = (CHOICES, LIST)


class File(NamedTuple):
    """A file of a partition, below the program's folder."""

    path: str
    digest: str
    size: int


class Folder:
    """The folder of a program."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self.files, self.root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise InputError(f"{url}: {error}.", location="folder") from None
        self.local = isinstance(self.files, LocalFileSystem)

    def path(self, name: str) -> str:
        """The path of a file in its file system."""
        return f"{self.root.rstrip('/')}/{name}"

    def read(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """A Parquet file, or those of some columns that it has."""
        path = self.path(name)
        try:
            source = path if self.local else BytesIO(self.files.cat_file(path))
            wanted = None if columns is None else [key for key in pl.read_parquet_schema(source) if key in columns]
            return pl.read_parquet(source, columns=wanted)
        except FileNotFoundError:
            raise NotFound(f"File not found: {self.url}/{name}.") from None

    def write(self, name: str, columns: Mapping[str, Any]) -> File:
        """Write arrays [N, ...] as columns of a Parquet file; `{digest}` in its name is replaced."""
        buffer = BytesIO()
        frame = pl.DataFrame({key: _flat(array) for key, array in columns.items()})
        frame.write_parquet(buffer, compression="lz4", statistics=False)
        return self.write_bytes(name, buffer.getbuffer())

    def write_bytes(self, name: str, content: "memoryview | bytes") -> File:
        """Write a file; `{digest}` in its name is replaced."""
        digest = hashlib.sha256(content).hexdigest()
        file = File(name.format(digest=digest[:16]), digest, len(content))
        path = self.path(file.path)
        if self.local:
            temporary = self._write_temporary(path, content)
            os.replace(temporary, path)
            _flush_folder(path)
        else:
            self.files.pipe_file(path, bytes(content))
        return file

    def read_bytes(self, name: str) -> bytes:
        """The content of a file."""
        content: bytes = self.files.cat_file(self.path(name))
        return content

    def _write_temporary(self, path: str, content: "memoryview | bytes") -> str:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{secrets.token_hex(8)}.tmp"
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return temporary

    def digest(self, name: str) -> str | None:
        """The digest of a file's content, None if there is no such file."""
        try:
            with self.files.open(self.path(name), "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return None

    def list(self, name: str) -> "list[str]":
        """The names of the files in a folder below this one."""
        try:
            return sorted(
                path.rsplit("/", 1)[-1] for path in self.files.ls(self.path(name), detail=False, refresh=True)
            )
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone already is no error."""
        try:
            self.files.rm_file(self.path(name))
        except FileNotFoundError:
            return

    def commit(self, number: int, record: Mapping[str, Any]) -> None:
        """Append a record to the log, at once or not at all; refuse if there is one with this number."""
        path, content = self.path(_log_name(number)), json.dumps(record, indent=1).encode()
        try:
            if self.local:
                temporary = self._write_temporary(path, content)
                try:
                    os.link(temporary, path)
                finally:
                    os.unlink(temporary)
                _flush_folder(path)
            else:
                self.files.pipe_file(path, content, mode="create")
        except FileExistsError:
            what = f"Round {number} of {self.url} was decided by another process" if number else f"{self.url} exists"
            raise Conflict(f"{what}; nothing was recorded.") from None

    def records(self) -> int:
        """The number of records in the log."""
        return sum(name.endswith(".json") for name in self.list("log"))

    def record(self, number: int) -> tuple[dict[str, Any], str]:
        """A record of the log and its digest."""
        try:
            content = self.files.cat_file(self.path(_log_name(number)))
        except FileNotFoundError:
            raise NotFound(f"{self.url} is not a partitioned program: it has no {_log_name(number)}.") from None
        return json.loads(content), hashlib.sha256(content).hexdigest()


def _log_name(number: int) -> str:
    return f"log/{number:05d}.json"


def _flat(array: Any) -> Any:
    """An array of more than two dimensions as rows of numbers, which a Parquet file can hold."""
    return array.reshape(len(array), -1) if isinstance(array, np.ndarray) and array.ndim > 2 else array


def _flush_folder(path: str) -> None:
    """Make the names in a file's folder durable."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_file(folder: str, file: File) -> str | None:
    """What is wrong with a file, None if it is as it was recorded."""
    digest = Folder(folder).digest(file.path)
    return None if digest == file.digest else f"{file.path} {'is missing' if digest is None else 'has another content'}"


def clean(folder: str, part: str, round_: int, used: Sequence[str]) -> int:
    """Remove the files of a partition that no record needs after a round; returns how many.

    Those of a later round stay: another process may be deciding it.
    """
    within, removed = Folder(folder), 0
    for name in within.list(part):
        kind, _, rest = name.partition("-")
        decided = int(rest[:5])
        if f"{part}/{name}" not in used and (decided == round_ or (decided < round_ and kind not in KEPT)):
            within.remove(f"{part}/{name}")
            removed += 1
    return removed
