"""Dask behind `concurrent.futures`: worker processes of our own, or those of a scheduler that runs already.

Workers of our own have one thread each and no limit of memory. They are reached through loopback alone and end when
this process does, however it ends: each watches a pipe that only this process holds open. Ctrl-C is not theirs to
answer. One that dies is replaced, and its work given to another, up to `DEATHS_ALLOWED` times.
distributed logs and warns of all this; here it keeps quiet, since what matters comes out as a result or an error.
"""

import asyncio
import logging
import os
import shutil
import signal
import socket
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar

import dask
from distributed import Client, LocalCluster
from distributed.comm import connect
from distributed.utils import LoopRunner, sync

from restive.errors import InputError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

DEATHS_ALLOWED = 3
SECONDS_TO_JOIN = 10
LOOPBACK = "127.0.0.1"
# What must be the same on a worker for its results to be the same bit for bit.
SHARED_PACKAGES = ("restive", "numpy", "numba")
SILENT = logging.CRITICAL + 1
LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application")
# The last is distributed's own choice.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "6640"}
SETTINGS = {
    "distributed.scheduler.allowed-failures": DEATHS_ALLOWED,
    # No work waits at a worker behind another, which might be deadly: it would be blamed for the death as well.
    "distributed.scheduler.worker-saturation": 1.0,
    # A worker that does not answer for long is busy; if it were dead, the system would have closed its connection.
    "distributed.scheduler.worker-ttl": None,
    # A worker that is slow to come back is not given up; what happens without any is said below.
    "distributed.deploy.lost-worker-timeout": "8760 hours",
    # Workers that cannot be started again are an error in the end, rather than a wait without one.
    "distributed.scheduler.no-workers-timeout": "5 minutes",
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.worker.daemon": True,
    "distributed.worker.use-file-locking": False,
    "distributed.worker.profile.enabled": False,
    "distributed.nanny.pre-spawn-environ": ENVIRONMENT,
    "distributed.admin.large-graph-warning-threshold": "1 TB",
}


class Cluster(Executor):
    """The executor of a Dask client, with the whole of the standard interface.

    Arguments travel inside the work, because Dask would take some of their names, like `key`, for its own.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._inner = client.get_executor(pure=False)

    def submit(
        self, work: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        """Give the work to the scheduler."""
        future: Future[Result] = self._inner.submit(partial(work, *args, **kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; wait for what there is, or drop it."""
        self._inner.shutdown(wait=wait and not cancel_futures)


@contextmanager
def start_cluster(workers: int) -> Iterator[Executor]:
    """So many worker processes on this machine."""
    with (
        TemporaryDirectory(prefix="restive-", ignore_cleanup_errors=True) as folder,
        dask.config.set({**SETTINGS, "temporary-directory": folder}),
        _quiet(),
        _environment(),
        _loop() as loop,
        _start(workers, loop) as cluster,
        Client(cluster, loop=loop, set_as_default=False) as client,
    ):
        # Nothing is kept there without a limit of memory, and a command that is interrupted could not clear up.
        shutil.rmtree(folder, ignore_errors=True)
        yield Cluster(client)


def _start(workers: int, loop: Any) -> Any:
    # Without an address the server for metrics, dashboard or not, would want the usual port and warn if it is taken.
    no_dashboard = {"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"}
    try:
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=None,
            host=LOOPBACK,
            silence_logs=SILENT,
            loop=loop,
            scheduler_kwargs=no_dashboard,
        )
    except RuntimeError:
        raise InputError(
            "the engine dask could not start its workers; they begin by reading the main script, "
            "which must open an engine only under if __name__ == '__main__'."
        ) from None


@contextmanager
def join_cluster(host: str, port: int) -> Iterator[Executor]:
    """The workers of the scheduler at that address, if they can give the same results as this process."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    _reach(host, port, place)
    with dask.config.set(SETTINGS), _quiet(), _loop() as loop, _join(place, loop) as client:
        _check_workers(client, place)
        yield Cluster(client)


def _reach(host: str, port: int, place: str) -> None:
    """Refuse at once where nobody listens; Dask would try again and again until its time is over."""
    try:
        socket.create_connection((host, port), SECONDS_TO_JOIN).close()
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"dask://{place}: no scheduler can be reached there ({why}).") from None


def _join(place: str, loop: Any) -> Any:
    with warnings.catch_warnings():
        # Of any differing package; those that matter are compared below.
        warnings.filterwarnings("ignore", module="distributed")
        try:
            sync(loop, _greet, f"tcp://{place}")
            return Client(f"tcp://{place}", timeout=SECONDS_TO_JOIN, loop=loop, set_as_default=False)
        except Exception as error:
            raise InputError(f"dask://{place}: what answers there is no Dask scheduler that can be joined.") from error


async def _greet(address: str) -> None:
    """Be greeted in time; a client would wait for ever on someone who says nothing."""
    greeted = await asyncio.wait_for(connect(address), SECONDS_TO_JOIN)
    await greeted.close()


def _check_workers(client: Any, place: str) -> None:
    try:
        client.wait_for_workers(1, timeout=SECONDS_TO_JOIN)
    except TimeoutError:
        raise InputError(f"dask://{place}: the scheduler has no workers; start one with dask worker.") from None
    versions = client.get_versions(packages=SHARED_PACKAGES)
    here = versions["client"]["packages"]
    for worker, found in versions["workers"].items():
        there = found["packages"]
        for package in SHARED_PACKAGES:
            if there[package] != here[package]:
                raise InputError(
                    f"dask://{place}: the worker at {worker} has {package} {there[package]}; "
                    f"it must be {here[package]}, as here, for the results to be the same."
                )


@contextmanager
def _quiet() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(SILENT)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def _environment() -> Iterator[None]:
    """Give back the environment as it was before distributed set it for its workers."""
    kept = {name: os.environ.get(name) for name in (*ENVIRONMENT, "PYTHONWARNINGS")}
    # Python's tracker of semaphores would complain after an interruption, when it alone is left to remove them.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [kept["PYTHONWARNINGS"], "ignore:resource_tracker"]))
    try:
        yield
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _loop() -> Iterator[Any]:
    """An event loop in a thread of its own."""
    runner = LoopRunner()
    with _deaf_to_interruption():
        runner.start()
    try:
        yield runner.loop
    finally:
        runner.stop()


@contextmanager
def _deaf_to_interruption() -> Iterator[None]:
    """Threads that begin here do not hear Ctrl-C, nor do the processes that they start: it is for the main thread."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the first process would start it, and that lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
