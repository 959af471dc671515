"""Who does the work of an experiment: an engine is a `concurrent.futures.Executor`, and any such executor is one.

    threads           threads of this process; kernels release the GIL
    dask              single-threaded worker processes on this machine
    dask://host:port  the workers of a Dask scheduler that runs already

A work is a pure function of its arguments, so its result does not depend on the engine, and a work whose worker died
can be done again. What Dask needs is in `restive.paper.clusters`, read only when it is used: it is slow to start.
"""

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeVar
from urllib.parse import urlsplit

from restive.errors import InputError, check_whole
from restive.parallel import available_processors

Result = TypeVar("Result")


class LostWorkError(RuntimeError):
    """A work has no result, because whoever had it died or went away."""


def check_engine(name: str, workers: int | None = None) -> None:
    """Refuse an engine that could not be opened, before any work is done for it.

    >>> check_engine("threads", 4)
    >>> check_engine("fax")
    Traceback (most recent call last):
        ...
    restive.errors.InputError: the engine is 'fax'; it must be threads, dask, or dask://host:port of a scheduler.
    """
    if workers is not None:
        check_whole("workers", workers, 1)
    if name == "threads":
        return
    if name != "dask":
        _split(name)
        if workers is not None:
            raise InputError(f"workers is {workers}; the scheduler at {name} has its own, so leave them out.")
    if find_spec("distributed") is None:
        raise InputError(f"the engine {name} needs Dask: pip install 'restive[dask]'.")


def _split(name: str) -> tuple[str, int]:
    """The host and port of dask://host:port."""
    try:
        address = urlsplit(name)
        host, port = address.hostname, address.port
    except (ValueError, AttributeError, TypeError):
        host, port = None, None
    if not host or not port or address.username is not None or name != f"dask://{address.netloc}":
        raise InputError(f"the engine is {name!r}; it must be threads, dask, or dask://host:port of a scheduler.")
    return host, port


@contextmanager
def open_engine(name: str = "threads", workers: int | None = None) -> Iterator[Executor]:
    """An executor of that name with so many workers, one for each processor by default.

    Leaving the block waits for all work; leaving it by an error drops what has not begun.

    >>> with open_engine("threads", workers=2) as engine:
    ...     list(engine.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    check_engine(name, workers)
    with _open(name, workers or available_processors()) as engine:
        try:
            yield engine
        except BaseException:
            engine.shutdown(wait=False, cancel_futures=True)
            raise
        engine.shutdown()


@contextmanager
def _open(name: str, workers: int) -> Iterator[Executor]:
    if name == "threads":
        yield ThreadPoolExecutor(workers, thread_name_prefix="restive")
        return
    from restive.paper.clusters import join_cluster, start_cluster

    with start_cluster(workers) if name == "dask" else join_cluster(*_split(name)) as engine:
        yield engine


def result_of(work: Future[Result], name: str) -> Result:
    """The result of a work; if nobody is left who could give it, a `LostWorkError` that names the work.

    >>> with open_engine("threads") as engine:
    ...     result_of(engine.submit(pow, 2, 5), "two to the fifth")
    32
    """
    try:
        return work.result()
    except CancelledError as error:
        raise LostWorkError(f"{name} is lost: it was cancelled, or the scheduler went away.") from error
    except BrokenExecutor as error:
        raise LostWorkError(f"{name} is lost: a worker died, and this executor does not replace it.") from error
    except Exception as error:
        # By its name, so that Dask need not be there: its own errors tell of workers, never of what a work did.
        if type(error).__module__.partition(".")[0] != "distributed":
            raise
        deaths = getattr(error, "allowed_failures", None)
        why = str(error).rstrip(".") if deaths is None else f"{deaths + 1} workers died while they had it"
        raise LostWorkError(f"{name} is lost: {why}.") from error
