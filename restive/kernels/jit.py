"""The decorators that compile kernels with numba: GIL released unless the kernel is very short, cached on disk.

numba invalidates a cached kernel by its own file only, so a kernel that calls a helper from another file would keep the
old helper after an edit. Kernels therefore call jitted helpers from `restive.kernels` or from their own file, and the
name of the cache folder has a digest of everything in `restive.kernels` and the version. Within it each source file has
a folder named by its own digest, because numba unpickles the cached index, NamedTuples included, before it asks whether
the file has changed: a renamed NamedTuple would make every later start fail.
"""

import gc
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
import platformdirs
from numba.core.compiler import Compiler

from restive.version import __version__

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

SECONDS_PER_LINE = 2.0  # between two lines on a terminal while kernels are compiled


@cache
def cache_folder() -> Path:
    """The folder of the machine code of this version and these shared kernels."""
    digest = hashlib.sha256(f"{__version__} {numba.__version__}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return Path(platformdirs.user_cache_dir("restive", appauthor=False)) / f"kernels-{digest.hexdigest()[:12]}"


@cache
def _file_digest(source: str) -> str:
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()[:12]


@contextmanager
def _use_cache_of(source: str) -> Iterator[Path]:
    """Set numba's cache folder to that of one source file, and restore the user's setting afterwards."""
    settings: Any = numba.config
    users = settings.CACHE_DIR
    folder = (Path(users) / cache_folder().name if users else cache_folder()) / _file_digest(source)
    settings.CACHE_DIR = str(folder)
    try:
        yield folder
    finally:
        settings.CACHE_DIR = users


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile `function` at its first call, release the GIL while it runs, and cache the machine code on disk."""
    return _compile(function, nogil=True)


def brief(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The same for a kernel so short that releasing the GIL costs more than it gains."""
    return _compile(function, nogil=False)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The same for a helper with one caller: a part of its caller, since numba would optimise its code for both."""
    return _compile(function, nogil=True, inline="always")


def _compile(function: Callable[Parameters, Result], **chosen: Any) -> Callable[Parameters, Result]:
    with _use_cache_of(function.__code__.co_filename) as folder:
        # If this folder cannot be written, numba would cache beside the source, where edited helpers go unnoticed.
        options: dict[str, Any] = {"no_cfunc_wrapper": True, "pipeline_class": _AnnouncingCompiler, **chosen}
        kernel: Callable[Parameters, Result] = numba.njit(cache=_can_write(folder), **options)(function)
    return kernel


@cache
def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


class _AnnouncingCompiler(Compiler):
    """numba's compiler, with a notice before the first compilation of a process and then a line from time to time."""

    def compile_extra(self, func: Any) -> Any:
        _announcer.announce(func.__name__)
        with _without_collection():
            return super().compile_extra(func)  # type: ignore[no-untyped-call]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause the garbage collector, which takes an eighth of a compilation and finds hardly anything."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Announcer:
    """Tells on standard error that kernels are compiled; more than once only on a terminal."""

    def __init__(self) -> None:
        self.functions = 0
        self.next = 0.0
        self.hooks: list[Callable[[], None]] = []

    def announce(self, function: str) -> None:
        hooks, self.hooks = self.hooks, []
        for hook in hooks:
            hook()
        if self.functions == 0:
            print("restive: compiling kernels at their first use; later starts skip this.", file=sys.stderr)
            self.next = time.monotonic() + SECONDS_PER_LINE
        self.functions += 1
        if time.monotonic() >= self.next and sys.stderr.isatty():
            print(f"restive: compiling, function {self.functions}: {function.strip('_')}", file=sys.stderr)
            self.next = time.monotonic() + SECONDS_PER_LINE


_announcer = _Announcer()


@contextmanager
def at_first_compilation(hook: Callable[[], None]) -> Iterator[None]:
    """Call `hook` before the first kernel that is compiled in this context, if any is."""
    _announcer.hooks.append(hook)
    try:
        yield
    finally:
        if hook in _announcer.hooks:
            _announcer.hooks.remove(hook)
