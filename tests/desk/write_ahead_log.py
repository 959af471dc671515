"""The write-ahead log of a SQLite file: where its last commit is, and the files as a power cut can leave them.

SQLite appends a transaction to the log and flushes it before it acknowledges the commit; a checkpoint writes pages to the
database, flushes it, and only then lets the log begin again with other salts. So after a power cut

- the log is whole up to the last commit that was acknowledged, if it still has the salts of that moment, and up to the
  frame where a checkpoint began, which the shared memory says; what follows may be missing or torn at any sector, as may
  be all of a log that began again since;
- a page of the database that is in that whole part may be torn: some sectors old, some new;
- the shared memory beside them is lost, or has anything in it.

File format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

HEADER, FRAME_HEADER, SECTOR = 32, 24, 512
SALTS, CHECKPOINTED = slice(32, 40), slice(128, 132)  # of the shared memory: nBackfillAttempted


class Position(NamedTuple):
    """A place in a log: the salts of the log, and how many frames of it are committed."""

    salts: bytes
    frames: int


class Files(NamedTuple):
    """The bytes of a database, of its log and of the shared memory of those who have it open."""

    database: bytes
    log: bytes
    memory: bytes = b""


def find_log(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def find_memory(database: Path) -> Path:
    return database.with_name(f"{database.name}-shm")


def read_files(database: Path) -> Files:
    """The files of a store; nobody may be writing, also not in the middle of it: stop the process."""
    others = (find_log(database), find_memory(database))
    return Files(database.read_bytes(), *(file.read_bytes() if file.exists() else b"" for file in others))


def find_position(database: Path) -> Position | None:
    """Where the last commit ends; None if there is no log. Nobody may be writing."""
    log = find_log(database)
    if not log.exists() or log.stat().st_size < HEADER:
        return None
    with log.open("rb") as file:
        header = file.read(HEADER)
        salts, size, place, committed = header[16:24], _page_size(header), 0, 0
        while len(frame := file.read(FRAME_HEADER)) == FRAME_HEADER and frame[8:16] == salts:
            place += 1
            committed = place if struct.unpack(">I", frame[4:8])[0] else committed
            file.seek(size, 1)
    return Position(salts, committed)


def cut_power(now: Files, before: bytes, position: Position | None, generator: np.random.Generator) -> Files:
    """Files as a power cut can leave them, if all up to `position` was acknowledged; `before` is an older database."""
    log, database = bytearray(now.log), bytearray(now.database)
    if len(log) < HEADER:
        return now
    size = _page_size(now.log)
    flushed = _count_flushed(now, position)
    tear(log, HEADER + flushed * (FRAME_HEADER + size) if flushed else 0, generator)
    for page in {_page(now.log, place, size) for place in range(flushed)}:
        if generator.random() < 0.3:
            _mix(database, before, (page - 1) * size, size, generator)
    return Files(bytes(database), bytes(log))


def _count_flushed(now: Files, position: Position | None) -> int:
    """How many frames of the log are on the disk for sure."""
    salts, whole = now.log[16:24], (len(now.log) - HEADER) // (FRAME_HEADER + _page_size(now.log))
    if len(now.memory) < CHECKPOINTED.stop:
        return whole
    if now.memory[SALTS] != salts:  # all of it is in the database; it is about to begin again
        return whole
    acknowledged = position.frames if position is not None and position.salts == salts else 0
    return max(acknowledged, int(struct.unpack("=I", now.memory[CHECKPOINTED])[0]))


def tear(log: bytearray, kept: int, generator: np.random.Generator) -> None:
    """Cut off a file somewhere after `kept`, or spoil some of its sectors there, or leave it."""
    how, left = int(generator.integers(4)), len(log) - kept
    if how == 0 and left > 0:
        del log[kept + int(generator.integers(left)) :]
    elif how > 1 and left > 0:
        for start in range(kept, len(log), SECTOR):
            if generator.random() < 0.3:
                end = min(start + SECTOR, len(log))
                log[start:end] = bytes(end - start) if how == 2 else generator.bytes(end - start)


def write_files(database: Path, files: Files, generator: np.random.Generator) -> None:
    """Write an image beside which the shared memory is lost, or has anything in it."""
    database.write_bytes(files.database)
    find_log(database).write_bytes(files.log)
    memory = find_memory(database)
    memory.unlink(missing_ok=True)
    if generator.random() < 0.5:
        memory.write_bytes(generator.bytes(32768))


def _page_size(header: bytes) -> int:
    return int(struct.unpack(">I", header[8:12])[0])


def _page(log: bytes, place: int, size: int) -> int:
    start = HEADER + place * (FRAME_HEADER + size)
    return int(struct.unpack(">I", log[start : start + 4])[0])


def _mix(database: bytearray, before: bytes, start: int, size: int, generator: np.random.Generator) -> None:
    """Put older sectors into a page; where there was none, or it was not there yet, the page is cut or cleared."""
    for sector in range(start, min(start + size, len(database)), SECTOR):
        if generator.random() < 0.5:
            old = before[sector : sector + SECTOR]
            database[sector : sector + SECTOR] = old.ljust(SECTOR, b"\0")
