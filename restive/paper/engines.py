"""Engines that run jobs: each is a `concurrent.futures.Executor`, and any other executor will do.

    processes         worker processes on this machine
    threads           threads of this process; kernels release the GIL
    dask              worker processes on this machine, replaced if they die
    dask://host:port  the workers of a running Dask scheduler

A job is a pure function of its arguments, so its result does not depend on the engine. With Dask the job of a worker
that died is run again by another. Dask is imported only when it is used.
"""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import get_all_start_methods, get_context, parent_process, resource_tracker
from typing import Any, TypeVar
from urllib.parse import urlsplit

from restive.errors import InputError, check_whole
from restive.parallel import available_processors

Result = TypeVar("Result")

NAMES = "processes, threads, dask, or dask://host:port of a scheduler"
PRELOADED = ["restive.paper.reproduction"]  # imported once for all workers, where the system can fork them
CONNECT_SECONDS = 30
LOOPBACK = "127.0.0.1"
SHARED_PACKAGES = ("restive", "numpy", "numba")  # their versions must agree for results to agree bit for bit
DASK_SETTINGS = {
    "distributed.scheduler.allowed-failures": 3,  # workers that may die with a job before it counts as lost
    "distributed.scheduler.worker-saturation": 1.0,  # no job waits behind another one that kills its worker
    "distributed.scheduler.worker-ttl": None,  # a busy worker may be silent for long
    "distributed.deploy.lost-worker-timeout": "8760 hours",  # a worker that is slow to restart is not given up
    "distributed.scheduler.no-workers-timeout": "5 minutes",  # workers that cannot be started again are an error
    "distributed.worker.daemon": True,
    "distributed.worker.use-file-locking": False,
}


class LostJobError(RuntimeError):
    """A job without a result, because its worker died or its scheduler went away."""


def check_engine(name: str, workers: int | None = None) -> None:
    """Refuse an engine that could not be opened, before any job is run.

    >>> check_engine("threads", 4)
    >>> check_engine("fax")
    Traceback (most recent call last):
        ...
    restive.errors.InputError: the engine is 'fax'; it must be processes, threads, dask, or dask://host:port of a scheduler.
    """
    if workers is not None:
        check_whole("workers", workers, 1)
    if name in ("processes", "threads"):
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
        raise InputError(f"the engine is {name!r}; it must be {NAMES}.")
    return host, port


@contextmanager
def open_engine(name: str = "threads", workers: int | None = None) -> Iterator[Executor]:
    """An executor of that name; by default it has one worker for each processor.

    Leaving the block waits for all jobs; leaving it by an error drops those that have not begun.

    >>> with open_engine("threads", workers=2) as engine:
    ...     list(engine.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    check_engine(name, workers)
    workers = workers or available_processors()
    if name == "processes":
        with _open_processes(workers) as pool:
            yield pool
        return
    if name == "threads":
        engine = ThreadPoolExecutor(workers, thread_name_prefix="restive")
        try:
            yield engine
        except BaseException:
            engine.shutdown(wait=False, cancel_futures=True)
            raise
        engine.shutdown()
        return
    with _open_dask(name, workers) as client:
        executor: Executor = client.get_executor(pure=False)
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False)
            raise
        executor.shutdown()


class _Processes(ProcessPoolExecutor):
    """A pool whose workers leave interrupts to this process, end with it, and can be ended in the middle of a job.

    A worker is never ended while it sends a result: the pool would wait for the rest of it for ever.
    """

    def __init__(self, workers: int) -> None:
        forks = "forkserver" in get_all_start_methods()
        context = get_context("forkserver" if forks else "spawn")
        if forks:
            context.set_forkserver_preload(PRELOADED)
        ended, self._end = context.Pipe(duplex=False)  # not an event: its semaphores would outlive this process
        with _interrupts_blocked():
            super().__init__(workers, mp_context=context, initializer=_watch, initargs=(ended,))
            for _ in range(workers):
                self.submit(int)  # starts a worker

    def submit(self, function: Callable[..., Result], /, *args: Any, **keywords: Any) -> "Future[Result]":
        """Submit a job."""
        return super().submit(_compute, function, args, keywords)

    def end(self) -> None:
        """Drop all jobs, also those that have begun."""
        self.shutdown(wait=False, cancel_futures=True)
        self._end.close()


@contextmanager
def _open_processes(workers: int) -> Iterator[Executor]:
    """A pool of worker processes; after an error they are ended at once."""
    pool = _Processes(workers)
    try:
        yield pool
    except BaseException:
        pool.end()
        raise
    pool.shutdown()


_sending = threading.Lock()  # of a worker: held from the end of a job to the start of the next one


def _compute(function: Callable[..., Result], args: tuple[Any, ...], keywords: dict[str, Any]) -> Result:
    """Run a job in a worker."""
    if _sending.locked():
        _sending.release()
    try:
        return function(*args, **keywords)
    finally:
        _sending.acquire()


def _watch(ended: Any) -> None:
    """End this worker when it is asked to, or when the process that started it is gone: nobody reads its results."""

    def wait_for_parent() -> None:
        if parent := parent_process():
            parent.join()
            os._exit(1)

    def wait_for_end() -> None:
        ended.poll(None)  # until the other side is closed
        with _sending:
            os._exit(1)

    for wait in (wait_for_parent, wait_for_end):
        threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _open_dask(name: str, workers: int) -> Iterator[Any]:
    """A client of a new local cluster, or of the scheduler at an address."""
    import dask
    from distributed import Client, LocalCluster

    with dask.config.set(DASK_SETTINGS):
        if name != "dask":
            with _connect(*_split(name)) as client:
                yield client
            return
        with _interrupts_blocked():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=None,
                host=LOOPBACK,
                # Without an address of its own, the metrics server would want Dask's usual port, which may be taken.
                scheduler_kwargs={"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"},
                silence_logs=logging.CRITICAL,
            )
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Threads and processes that are started here leave Ctrl-C to the main thread."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    _start_resource_tracker()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_resource_tracker() -> None:
    """Start Python's tracker of semaphores: it would unblock interrupts later, and complain after one."""
    warnings = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [warnings, "ignore:resource_tracker"]))
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if warnings is not None:
            os.environ["PYTHONWARNINGS"] = warnings


@contextmanager
def _connect(host: str, port: int) -> Iterator[Any]:
    """A client of a running scheduler whose workers have the same packages as this process."""
    from distributed import Client

    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        _require_greeting(host, port)
        client = Client(f"tcp://{place}", timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"dask://{place}: no Dask scheduler can be reached there ({error}).") from None
    with client:
        _check_workers(client, place)
        yield client


def _require_greeting(host: str, port: int) -> None:
    """Wait for the first byte that a scheduler sends: Dask's own handshake has no timeout."""
    with socket.create_connection((host, port), CONNECT_SECONDS) as connection:
        if not connection.recv(1):
            raise ConnectionError("the connection was closed")


def _check_workers(client: Any, place: str) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise InputError(f"dask://{place}: the scheduler has no workers; start one with dask worker.") from None
    versions = client.get_versions(packages=SHARED_PACKAGES)
    here = versions["client"]["packages"]
    for worker, found in versions["workers"].items():
        for package in SHARED_PACKAGES:
            if found["packages"][package] != here[package]:
                raise InputError(
                    f"dask://{place}: the worker at {worker} has {package} {found['packages'][package]}; "
                    f"it must be {here[package]}, as here, for the results to be the same."
                )


def result_of(future: Future[Result], name: str) -> Result:
    """The result of a job; if no worker is left that could return it, a `LostJobError` that names the job.

    >>> with open_engine("threads") as engine:
    ...     result_of(engine.submit(pow, 2, 5), "two to the fifth")
    32
    """
    try:
        return future.result()
    except CancelledError as error:
        raise LostJobError(f"{name} is lost: it was cancelled, or the scheduler went away.") from error
    except BrokenExecutor as error:
        raise LostJobError(f"{name} is lost: a worker died, and this executor does not replace it.") from error
    except Exception as error:
        # By module name, so that Dask need not be installed; its own errors are about workers, never about jobs.
        if type(error).__module__.partition(".")[0] != "distributed":
            raise
        deaths = getattr(error, "allowed_failures", None)
        reason = str(error).rstrip(".") if deaths is None else f"{deaths + 1} workers died while they had it"
        raise LostJobError(f"{name} is lost: {reason}.") from error
