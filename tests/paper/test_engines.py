"""Every engine gives the same results, even if a worker dies; an engine that is not available is refused.

Jobs synchronize by files, not by the clock: a job that has begun creates a file, and continues when there is a file
`go`.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster

from restive import InputError, make_problems, simulate
from restive.paper import engines
from restive.paper.engines import LostJobError, check_engine, open_engine, result_of
from restive.types import Floats

BAD_NAMES = [
    "", "fax", "Dask", "process", "dask:", "dask://", "dask://host", "dask://host:", "dask://host:port",
    "dask://host:0", "dask://host:70000", "dask://host:-1", "dask://:8786", "dask://host:8786/", "dask://me@host:8786",
    "dask://[::1:8786", "tcp://host:8786", None, 8786,
]  # fmt: skip


def wait_until(condition: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


def play(folder: Path, seed: int) -> Floats:
    """Create a file named after the seed and the process, wait for `go`, and simulate."""
    (folder / f"{seed}.{os.getpid()}").touch()
    wait_until((folder / "go").exists)
    problem = make_problems("two-state-v1", instances=1, seed=seed, agents=20, budget=4)
    return simulate(problem, "egt", horizon=200, runs=3, seed=seed, threads=1).reward


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def complain(sentence: str) -> None:
    raise InputError(sentence)


@pytest.fixture(autouse=True)
def wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may be slow to answer."""
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 120)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    with open_engine("dask", workers=2) as engine:
        yield engine


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler that runs already, with two workers."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as running:
        yield running.scheduler_address.replace("tcp://", "dask://")


@pytest.mark.parametrize("name", BAD_NAMES)
def test_an_unknown_engine_is_refused_with_the_known_ones(name: Any) -> None:
    with pytest.raises(InputError, match="must be processes, threads, dask, or dask://host:port of a scheduler"):
        check_engine(name)
    with pytest.raises(InputError, match="must be processes"), open_engine(name):
        pass


GOOD_NAMES = ["processes", "threads", "dask", "dask://host:8786", "dask://[::1]:8786", "dask://10.0.0.1:1"]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_valid_name_passes(name: str) -> None:
    check_engine(name)


@pytest.mark.parametrize("workers", [0, -1, 1.5, True])
def test_the_number_of_workers_is_at_least_one(workers: Any) -> None:
    with pytest.raises(InputError, match=r"workers is .*; it must be a whole number from 1 on"):
        check_engine("threads", workers)


def test_a_number_of_workers_for_a_running_scheduler_is_refused() -> None:
    with pytest.raises(InputError, match="has its own"):
        check_engine("dask://host:8786", 4)


@pytest.mark.parametrize("name", ["dask", "dask://host:8786"])
def test_without_dask_the_error_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda package: None)
    with pytest.raises(InputError, match=r"needs Dask: pip install 'restive\[dask\]'"):
        check_engine(name)
    check_engine("threads")


def test_threads_and_checks_do_not_import_dask() -> None:
    script = """if True:
        import sys
        from restive.paper.engines import check_engine, open_engine
        check_engine("dask")
        with open_engine("threads", 2) as engine:
            assert engine.submit(abs, -3).result() == 3
        assert not {"dask", "distributed", "tornado"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_an_error_in_the_block_cancels_jobs_that_have_not_begun() -> None:
    begun, release = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert release.wait(120)

    with pytest.raises(KeyError), open_engine("threads", workers=1) as engine:  # noqa: PT012
        first, second = engine.submit(hold), engine.submit(abs, -1)
        assert begun.wait(120)
        raise KeyError
    assert second.cancelled()
    release.set()
    first.result(120)


def test_processes_give_the_results_of_threads(tmp_path: Path) -> None:
    found = {}
    for name in ("processes", "threads"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "go").touch()
        with open_engine(name, workers=2) as engine:
            found[name] = list(engine.map(play, [folder] * 20, range(20)))
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    workers = {path.suffix for path in (tmp_path / "processes").glob("*.*")}
    assert 1 <= len(workers) <= 2
    assert f".{os.getpid()}" not in workers


def test_after_an_error_in_the_block_busy_processes_end(tmp_path: Path) -> None:
    with pytest.raises(KeyError), open_engine("processes", workers=1) as engine:  # noqa: PT012
        jobs = [engine.submit(play, tmp_path, seed) for seed in range(2)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 1)
        worker = psutil.Process(int(next(tmp_path.iterdir()).suffix[1:]))
        raise KeyError
    wait_until(lambda: not is_alive(worker))
    with pytest.raises(LostJobError, match="figure 1 is lost"):
        result_of(jobs[1], "figure 1")


SCRIPT = """
import os, signal, sys
from pathlib import Path
sys.path.append(sys.argv[2])
from restive.paper.engines import open_engine
from paper.test_engines import play, wait_until

if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    folder = Path(sys.argv[1])
"""
ENDED = (
    SCRIPT
    + """\
    with open_engine("processes", 2) as engine:
        jobs = [engine.submit(play, folder, seed) for seed in range(3)]
        wait_until(lambda: len(list(folder.iterdir())) == 2)
        print("busy", flush=True)
        jobs[0].result()
"""
)


@pytest.mark.parametrize(
    ("send", "number"), [(os.kill, signal.SIGINT), (os.killpg, signal.SIGINT), (os.kill, signal.SIGKILL)]
)
def test_processes_end_with_the_one_that_started_them(
    send: Callable[[int, int], None], number: int, tmp_path: Path
) -> None:
    script, begun = tmp_path / "ended.py", tmp_path / "begun"
    begun.mkdir()
    script.write_text(ENDED)
    command = subprocess.Popen(
        [sys.executable, script, begun, Path(__file__).parents[1]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert command.stdout is not None
    said = command.stdout.readline()
    started = psutil.Process(command.pid).children(recursive=True) if said else []
    send(command.pid, number)
    rest, complaints = command.communicate(timeout=120)
    assert (said, rest, complaints) == (b"busy\n", b"", b"")
    assert len(started) >= 3
    wait_until(lambda: not any(map(is_alive, started)))


def test_results_are_the_same_bit_for_bit_when_a_busy_worker_is_killed(cluster: Executor, tmp_path: Path) -> None:
    jobs = [cluster.submit(play, tmp_path, seed) for seed in range(6)]
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    seed, victim = next(tmp_path.iterdir()).name.split(".")
    os.kill(int(victim), signal.SIGKILL)
    wait_until(lambda: len(list(tmp_path.iterdir())) == 3)
    (tmp_path / "go").touch()
    found = [result_of(job, f"seed {number}") for number, job in enumerate(jobs)]
    assert len(list(tmp_path.glob(f"{seed}.*"))) == 2
    with open_engine("threads", workers=2) as engine:
        wanted = list(engine.map(play, [tmp_path] * 6, range(6)))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_workers_ignore_an_interruption(cluster: Executor, tmp_path: Path) -> None:
    job = cluster.submit(play, tmp_path, 1)
    wait_until(lambda: list(tmp_path.iterdir()))
    os.kill(int(next(tmp_path.iterdir()).suffix[1:]), signal.SIGINT)
    (tmp_path / "go").touch()
    result_of(job, "job")
    assert len(list(tmp_path.glob("1.*"))) == 1


def test_a_job_that_kills_its_workers_is_an_error_and_the_others_finish_whatever_the_settings_of_dask() -> None:
    def survive(number: int) -> int:
        if number == 0:
            time.sleep(0.2)  # for others to queue behind it
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    hasty = {"distributed.deploy.lost-worker-timeout": "0s", "distributed.scheduler.allowed-failures": 0}
    with dask.config.set(hasty), open_engine("dask", workers=1) as engine:
        deadly, *rest = [engine.submit(survive, number) for number in range(9)]
        with pytest.raises(LostJobError, match="figure 3 is lost: 4 workers died while they had it"):
            result_of(deadly, "figure 3")
        assert [result_of(job, "the rest") for job in rest] == list(range(1, 9))


def test_an_error_of_the_job_itself_is_raised_unchanged(cluster: Executor) -> None:
    with pytest.raises(InputError, match="no such thing"):
        result_of(cluster.submit(complain, "no such thing"), "job")


def test_the_same_job_twice_is_run_twice(cluster: Executor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for job in [cluster.submit(append, log, "a") for _ in range(3)]:
        job.result(120)
    assert log.read_text() == "aaa"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_local_cluster_listens_on_loopback_only(cluster: Executor) -> None:
    cluster.submit(abs, 1).result(120)
    ours = psutil.Process()
    listening = {
        connection.laddr.ip
        for process in [ours, *ours.children(recursive=True)]
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_a_running_scheduler_is_joined_by_its_address(scheduler: str) -> None:
    with open_engine(scheduler) as engine:
        assert list(engine.map(pow, [2, 3, 4], [5, 5, 5])) == [32, 243, 1024]
        assert engine.submit(os.getpid).result(120) != os.getpid()
    with open_engine(scheduler) as engine:
        assert engine.submit(abs, -3).result(120) == 3


def test_an_error_in_the_block_cancels_the_jobs_at_a_scheduler(scheduler: str, tmp_path: Path) -> None:
    with pytest.raises(KeyError), open_engine(scheduler) as engine:  # noqa: PT012
        jobs = [engine.submit(play, tmp_path, seed) for seed in range(4)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        raise KeyError
    wait_until(lambda: all(job.cancelled() for job in jobs))
    (tmp_path / "go").touch()
    with open_engine(scheduler) as engine:
        assert engine.submit(abs, -3).result(120) == 3
    assert len(list(tmp_path.glob("*.*"))) == 2


def test_a_worker_with_other_packages_is_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def get_versions(client: object, packages: tuple[str, ...]) -> dict[str, Any]:
        here, there = dict.fromkeys(packages, "1.0"), {**dict.fromkeys(packages, "1.0"), "numpy": None}
        return {"client": {"packages": here}, "workers": {"a": {"packages": here}, "b": {"packages": there}}}

    monkeypatch.setattr(Client, "get_versions", get_versions)
    with (
        pytest.raises(InputError, match=r"the worker at b has numpy None; it must be 1\.0, as here"),
        open_engine(scheduler),
    ):
        pass


def test_a_scheduler_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 2)
    with LocalCluster(
        n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1", silence_logs=logging.CRITICAL
    ) as empty:
        name = empty.scheduler_address.replace("tcp://", "dask://")
        with pytest.raises(InputError, match="has no workers; start one with dask worker"), open_engine(name):
            pass


def test_an_address_without_a_server_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(InputError, match=f"dask://127.0.0.1:{port}: no Dask scheduler can be reached there"):  # noqa: SIM117
        with open_engine(f"dask://127.0.0.1:{port}"):
            pass


def test_a_server_that_sends_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        name = f"dask://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(InputError, match="no Dask scheduler can be reached"), open_engine(name):
            pass


def test_a_server_that_closes_the_connection_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closing = threading.Thread(target=lambda: server.accept()[0].close())
        closing.start()
        name = f"dask://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match="no Dask scheduler can be reached"), open_engine(name):
            pass
        closing.join()


def test_a_job_of_a_broken_executor_is_lost() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert result_of(pool.submit(abs, -3), "job") == 3
        with pytest.raises(LostJobError, match="figure 1 is lost: a worker died"):
            result_of(pool.submit(die), "figure 1")


def test_a_cancelled_job_is_lost() -> None:
    job = Future[int]()
    job.cancel()
    with pytest.raises(LostJobError, match="figure 2 is lost: it was cancelled"):
        result_of(job, "figure 2")


INTERRUPTED = (
    SCRIPT
    + """\
    with open_engine("dask", 1) as engine:
        assert engine.submit(abs, -3).result() == 3
    with open_engine("dask", 2) as engine:
        jobs = [engine.submit(play, folder, seed) for seed in range(3)]
        wait_until(lambda: len(list(folder.iterdir())) == 2)
        os.kill(int(next(folder.iterdir()).suffix[1:]), signal.SIGKILL)
        wait_until(lambda: len(list(folder.iterdir())) == 3)
        print("busy", flush=True)
        jobs[0].result()
"""
)


@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_an_interruption_leaves_no_processes_output_or_files(send: Callable[[int, int], None], tmp_path: Path) -> None:
    here, temporary, begun = (tmp_path / name for name in ("here", "temporary", "begun"))
    for folder in (here, temporary, begun):
        folder.mkdir()
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    command = subprocess.Popen(
        [sys.executable, script, begun, Path(__file__).parents[1]],
        cwd=here,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert command.stdout is not None
    said = command.stdout.readline()
    started = psutil.Process(command.pid).children(recursive=True) if said else []
    send(command.pid, signal.SIGINT)
    rest, complaints = command.communicate(timeout=120)
    assert (said, rest, complaints, command.returncode) == (b"busy\n", b"", b"", 130)
    assert len(started) >= 3
    wait_until(lambda: not any(map(is_alive, started)))
    assert list(here.iterdir()) == []


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
