"""The one way a kernel is compiled: numba, without the GIL unless it is very short, cached on disk.

numba stamps a cached kernel with its own file only, so a kernel that calls a helper from another file would keep the
old helper after an edit. Kernels therefore call jitted helpers from `restive.kernels` or from their own file, and the
cache folder carries a digest of everything in `restive.kernels` and the version: a changed helper means a new folder.
Within it each file has a folder by its own digest, because numba unpickles what it kept for a file, records and all,
before it asks whether the file has changed: a record that was renamed meanwhile would end every later start.
The first compilation in a process says so on standard error, because it makes that start slow.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
import platformdirs
from numba.core import event

from restive.version import __version__

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@cache
def cache_folder() -> Path:
    """Where this version's machine code is kept: the folder changes when a shared helper or the version does."""
    digest = hashlib.sha256(f"{__version__} {numba.__version__}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return Path(platformdirs.user_cache_dir("restive", appauthor=False)) / f"kernels-{digest.hexdigest()[:12]}"


@cache
def _stamp(source: str) -> str:
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()[:12]


@contextmanager
def _own_cache(source: str) -> Iterator[Path]:
    """The folder for one file, kept to our kernels: a user's own numba functions stay where the user put them."""
    settings: Any = numba.config
    users = settings.CACHE_DIR
    folder = (Path(users) / cache_folder().name if users else cache_folder()) / _stamp(source)
    settings.CACHE_DIR = str(folder)
    try:
        yield folder
    finally:
        settings.CACHE_DIR = users


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile `function` at its first call, release the GIL while it runs, and keep the machine code on disk."""
    return _compile(function, nogil=True)


def brief(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The same for a kernel that is done sooner than threads can hand the GIL over: it keeps it."""
    return _compile(function, nogil=False)


def _compile(function: Callable[Parameters, Result], nogil: bool) -> Callable[Parameters, Result]:
    with _own_cache(function.__code__.co_filename) as folder:
        # Without a folder of ours numba would keep it beside the source, where nothing tells it of a changed helper.
        kernel: Callable[Parameters, Result] = numba.njit(cache=_can_write(folder), nogil=nogil)(function)
    return kernel


@cache
def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


class _Announcer(event.Listener):
    """Says once per process that kernels of ours are being compiled."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, happening: Any) -> None:
        kernel = happening.data["dispatcher"].py_func
        if not self.said and kernel.__module__.startswith("restive."):
            self.said = True
            print("restive: compiling kernels at their first use; later starts skip this.", file=sys.stderr)

    def on_end(self, happening: Any) -> None:
        """Nothing to say: the work goes on."""


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]
