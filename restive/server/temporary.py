"""Temporary files of one server, all in one folder that only its user may enter: uploads have people in them.

The folder goes when the server ends. One that was killed leaves it behind, and the next server on the machine removes
it: whoever is alive holds a lock in its folder, which the system lets go in any case.
"""

import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

PREFIX, LOCK = "restive-server-", "lock"
NEW = 60.0  # seconds; a folder that was just made may not have its lock yet


@contextmanager
def own_folder() -> Iterator[Path]:
    """Have all temporary files made in a folder of this server's own, while the block runs."""
    sweep(Path(tempfile.gettempdir()))
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, (Path(folder) / LOCK).open("w") as file:
        lock(file)
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


def sweep(place: Path) -> None:
    """Remove the folders of servers that are no more."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, or gone by now
            about = folder.lstat()
            if stat.S_ISDIR(about.st_mode) and time.time() - about.st_mtime > NEW and not is_held(folder):
                shutil.rmtree(folder)


def is_held(folder: Path) -> bool:
    """Whether the server of that folder is alive; one that cannot be asked may be."""
    file = folder / LOCK
    if not file.exists():
        return False
    with file.open("a") as opened:
        return not lock(opened)


def lock(file: IO[str]) -> bool:
    """Take the lock, until the file is closed; False when somebody else has it, or there are no locks here."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
