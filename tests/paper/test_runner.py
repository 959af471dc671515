"""Works are done once by any engine, kept as they come, and the same bit for bit, also when a worker dies."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from restive import InputError, files
from restive.paper import runner
from restive.paper.engines import open_engine
from restive.paper.runner import carry_out_all, gather, pair_up
from restive.paper.tasks import Outcome
from restive.paper.work import Work


def work(policy: str = "egt", seed: int = 1, horizon: int = 20, weight: float = 1.0) -> Work:
    sizes = {"instances": 2, "agents": 6, "budget": 2, "seed": seed}
    settings = {"family": "two-state-v1", "sizes": sizes, "policy": policy, "horizon": horizon, "runs": 2, "seed": seed}
    return Work("play", f"two-state-v1 {policy}", settings, weight)


WORKS = [work("egt"), work("wiql"), work("random", 2), work("greedy-oracle")]


def do(works: list[Work], folder: Path, executor: Executor | None = None) -> list[str]:
    """Do what is missing; returns the labels in the order in which they were done."""
    done: list[str] = []
    _, missing = gather(works, folder)
    with executor or ThreadPoolExecutor(2) as pool:
        for _ in carry_out_all(missing, folder, pool, lambda work, seconds: done.append(work.label)):
            pass
    return done


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}


def test_work_that_was_done_is_read_and_not_done_again(tmp_path: Path) -> None:
    assert sorted(do(WORKS, tmp_path)) == sorted(work.label for work in WORKS)
    before = contents(tmp_path)
    assert do(WORKS, tmp_path) == []
    found, missing = gather([*WORKS, work("egt", seed=9)], tmp_path)
    assert missing == [work("egt", seed=9)]
    assert set(found) == {each.digest() for each in WORKS}
    assert contents(tmp_path) == before


def test_changed_work_does_not_touch_an_old_result(tmp_path: Path) -> None:
    do([work("egt")], tmp_path)
    before = contents(tmp_path)
    do([work("egt", horizon=21)], tmp_path)
    after = contents(tmp_path)
    assert len(after) == 2
    assert before.items() <= after.items()


def test_the_same_work_is_done_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    assert do([work("egt")] * 3, tmp_path) == ["two-state-v1 egt"]


def test_works_begin_from_both_ends_so_that_light_and_heavy_ones_run_side_by_side() -> None:
    works = [work("egt", seed=weight, weight=weight) for weight in (1, 8, 2, 4, 3, 9)]
    assert [each.weight for each in pair_up(works)] == [9, 1, 2, 3, 4, 8]
    assert pair_up([]) == []


def test_works_are_done_in_that_order(tmp_path: Path) -> None:
    works = [work("egt", weight=1), work("wiql", weight=3), work("random", weight=2)]
    labels = [each.label for each in pair_up(works)]
    assert do(works, tmp_path, ThreadPoolExecutor(1)) == labels


def test_interrupted_work_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        coming = carry_out_all(WORKS, tmp_path, pool, lambda work, seconds: None)
        next(coming)
        next(coming)
        coming.close()  # type: ignore[attr-defined]
    there = len(contents(tmp_path))
    assert 2 <= there < len(WORKS)
    assert len(do(WORKS, tmp_path)) == len(WORKS) - there


@pytest.mark.parametrize("length", [0, 100, -1])
def test_a_half_written_result_is_refused_and_says_what_to_do(length: int, tmp_path: Path) -> None:
    do(WORKS, tmp_path)
    path = tmp_path / WORKS[1].file_name()
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match=r"an incomplete one\. Remove that file and run again"):
        gather(WORKS, tmp_path)
    path.unlink()
    assert do(WORKS, tmp_path) == [WORKS[1].label]


def test_a_result_under_a_name_that_is_not_its_own_is_refused(tmp_path: Path) -> None:
    do(WORKS[:1], tmp_path)
    (tmp_path / WORKS[0].file_name()).rename(tmp_path / WORKS[1].file_name())
    with pytest.raises(InputError, match="the result of other work than its name says"):
        gather(WORKS, tmp_path)


def test_a_full_disk_stops_the_work_and_leaves_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(
        InputError, match=r"cannot be written \(No space left on device\); what was done before is kept"
    ):
        do(WORKS, tmp_path)
    assert contents(tmp_path) == {}
    monkeypatch.undo()
    assert len(do(WORKS, tmp_path)) == len(WORKS)


def test_the_first_error_ends_it_and_drops_what_has_not_begun(tmp_path: Path) -> None:
    wrong = Work("play", "wrong", {**WORKS[0].settings, "policy": "nobody"}, weight=99)
    with pytest.raises(InputError, match="there is no policy 'nobody'"):
        do([wrong, *WORKS], tmp_path, ThreadPoolExecutor(1))


class Other(Executor):
    """An executor of one's own: it does all at once, as another version or with other code."""

    def __init__(self, **other: Any) -> None:
        self.other = other

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        outcome: Outcome = fn(*args, **kwargs)
        future.set_result(outcome._replace(**self.other))
        return future


@pytest.mark.parametrize("other", [{"version": "0.0.7"}, {"code": "feedbeef"}])
def test_a_worker_of_another_version_or_with_other_code_is_refused(other: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"a worker has restive .*{next(iter(other.values()))}.* must be the same"):
        do(WORKS, tmp_path, Other(**other))
    assert contents(tmp_path) == {}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    with open_engine("dask", workers=2) as executor:
        yield executor


def busy_worker() -> int:
    """The process number of a worker, told by itself."""
    time.sleep(0.2)
    return os.getpid()


def test_all_engines_and_numbers_of_workers_give_the_same_bytes(tmp_path: Path, cluster: Executor) -> None:
    for folder in ("one", "three", "dask"):
        (tmp_path / folder).mkdir()
    do(WORKS, tmp_path / "one", ThreadPoolExecutor(1))
    do(WORKS, tmp_path / "three", ThreadPoolExecutor(3))
    for _ in carry_out_all(WORKS, tmp_path / "dask", cluster, lambda work, seconds: None):
        pass
    assert contents(tmp_path / "one") == contents(tmp_path / "three") == contents(tmp_path / "dask")
    assert len(contents(tmp_path / "one")) == len(WORKS)


def test_the_work_of_a_worker_that_is_killed_is_done_again(tmp_path: Path, cluster: Executor) -> None:
    long = [work("thompson-whittle", seed=seed, horizon=4000) for seed in range(6)]
    (tmp_path / "killed").mkdir()
    (tmp_path / "calm").mkdir()
    victim = cluster.submit(busy_worker).result()
    first = threading.Event()

    def kill() -> None:
        first.wait(60)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    for _ in carry_out_all(long, tmp_path / "killed", cluster, lambda work, seconds: first.set()):
        pass
    killer.join()
    assert not Path(f"/proc/{victim}/exe").exists() or not os.path.exists("/proc")
    do(long, tmp_path / "calm")
    assert contents(tmp_path / "killed") == contents(tmp_path / "calm")
    assert len(contents(tmp_path / "killed")) == len(long)


def test_results_are_records_that_others_can_read(tmp_path: Path) -> None:
    do(WORKS[:1], tmp_path)
    about, columns = files.read_parquet(tmp_path / WORKS[0].file_name(), runner.FORMAT, "a result")
    assert about == WORKS[0].spec()
    assert set(columns) == {"instance", "step", "reward", "cost"}
