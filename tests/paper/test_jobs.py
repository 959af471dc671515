"""Jobs are identified by what their result depends on, run once by any engine, and cached as they come."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from restive import InputError, files
from restive.paper import jobs as module
from restive.paper.engines import open_engine
from restive.paper.jobs import (
    Job,
    Outcome,
    Plan,
    Results,
    Run,
    Size,
    code_digest,
    interleave,
    list_sources,
    load_results,
    run_jobs,
)

LABELLED = Job("play", "two-state-v1 B=5 egt:eta=0.1", {"policy": "egt", "runs": 3, "sizes": {"a": 1, "b": 2}})


def test_the_digest_depends_on_task_settings_and_code_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    same = [replace(LABELLED, label="other"), replace(LABELLED, weight=9.0)]
    same.append(replace(LABELLED, settings={"runs": 3, "sizes": {"b": 2, "a": 1}, "policy": "egt"}))
    assert {each.digest() for each in same} == {LABELLED.digest()}
    other = [replace(LABELLED, task="bound"), replace(LABELLED, settings={**LABELLED.settings, "runs": 4})]
    assert LABELLED.digest() not in {each.digest() for each in other}
    digest = LABELLED.digest()
    monkeypatch.setattr(module, "code_digest", lambda: "other code")
    assert LABELLED.digest() != digest
    monkeypatch.undo()
    monkeypatch.setattr(module, "__version__", "99")
    assert LABELLED.digest() != digest


def test_settings_survive_json() -> None:
    assert json.loads(json.dumps(LABELLED.spec())) == LABELLED.spec()


def test_the_file_is_named_in_words_that_any_file_system_takes() -> None:
    name = replace(LABELLED, label="a/b:c d\\e*?é=1.5").file_name()
    assert name == f"a-b-c-d-e-=1.5-{LABELLED.digest()}.parquet"


def test_the_code_digest_covers_all_that_tasks_import_and_no_report() -> None:
    script = (
        "import sys, restive.paper.tasks; print(*(m.__file__ for n, m in sys.modules.items() if n[:8] == 'restive.'))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    passive = {module.ROOT / "paper/__init__.py"} | {module.ROOT / name for name in ("display.py", "formats.py")}
    covered = set(list_sources(module.ROOT))
    assert set(map(Path, loaded)) - passive <= covered
    names = {path.relative_to(module.ROOT).as_posix() for path in covered}
    assert {"policies/lagrange.py", "problems/wireless.json"} <= names
    assert not [name for name in names if name.startswith(("desk", "server", "report", "plotting"))]
    assert not [name for name in names if name.startswith("paper/") and not name.startswith("paper/tasks/")]


def test_the_code_digest_changes_with_code_and_data_and_not_with_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kernels/step.py", "paper/tasks/play.py", "problems/channels.json", "paper/report.py", "types.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "COMPUTING", ("kernels", "paper/tasks", "problems", "types.py"))
    digests = [code_digest.__wrapped__()]
    for name, text in (("types.py", "a = 1"), ("types.py", "# Why.\na  =  1"), ("problems/channels.json", "[]"),
                       ("kernels/step.py", "b = 1"), ("paper/report.py", "c = 1")):  # fmt: skip
        (tmp_path / name).write_text(text)
        digests.append(code_digest.__wrapped__())
    assert [one != two for one, two in pairwise(digests)] == [True, False, True, True, False]


def job(policy: str = "egt", seed: int = 1, horizon: int = 20, weight: float = 1.0) -> Job:
    sizes = {"instances": 2, "agents": 6, "budget": 2, "seed": seed}
    settings = {"family": "two-state-v1", "sizes": sizes, "policy": policy, "horizon": horizon, "runs": 2, "seed": seed}
    return Job("play", f"two-state-v1 {policy}", settings, weight)


JOBS = [job("egt"), job("wiql"), job("random", 2), job("greedy-oracle")]


def do(jobs: list[Job], folder: Path, executor: Executor | None = None) -> list[str]:
    """Do what is missing; returns the labels in the order in which they were done."""
    done: list[str] = []
    _, missing = load_results(jobs, folder)
    with executor or ThreadPoolExecutor(2) as pool:
        for _ in run_jobs(missing, folder, pool, lambda job, seconds: done.append(job.label)):
            pass
    return done


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}


def test_a_job_that_was_run_is_read_and_not_done_again(tmp_path: Path) -> None:
    assert sorted(do(JOBS, tmp_path)) == sorted(job.label for job in JOBS)
    before = contents(tmp_path)
    assert do(JOBS, tmp_path) == []
    found, missing = load_results([*JOBS, job("egt", seed=9)], tmp_path)
    assert missing == [job("egt", seed=9)]
    assert set(found) == {each.digest() for each in JOBS}
    assert contents(tmp_path) == before


def test_a_changed_job_does_not_touch_an_old_result(tmp_path: Path) -> None:
    do([job("egt")], tmp_path)
    before = contents(tmp_path)
    do([job("egt", horizon=21)], tmp_path)
    after = contents(tmp_path)
    assert len(after) == 2
    assert before.items() <= after.items()


def test_the_same_job_is_done_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    assert do([job("egt")] * 3, tmp_path) == ["two-state-v1 egt"]


def test_jobs_begin_from_both_ends_so_that_light_and_heavy_ones_run_side_by_side() -> None:
    jobs = [job("egt", seed=weight, weight=weight) for weight in (1, 8, 2, 4, 3, 9)]
    assert [each.weight for each in interleave(jobs)] == [9, 1, 2, 3, 4, 8]
    assert interleave([]) == []


def test_jobs_are_done_in_that_order(tmp_path: Path) -> None:
    jobs = [job("egt", weight=1), job("wiql", weight=3), job("random", weight=2)]
    labels = [each.label for each in interleave(jobs)]
    assert do(jobs, tmp_path, ThreadPoolExecutor(1)) == labels


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        coming = run_jobs(JOBS, tmp_path, pool, lambda job, seconds: None)
        next(coming)
        next(coming)
        coming.close()  # type: ignore[attr-defined]
    there = len(contents(tmp_path))
    assert 2 <= there < len(JOBS)
    assert len(do(JOBS, tmp_path)) == len(JOBS) - there


@pytest.mark.parametrize("length", [0, 100, -1])
def test_a_half_written_result_is_refused_and_says_what_to_do(length: int, tmp_path: Path) -> None:
    do(JOBS, tmp_path)
    path = tmp_path / JOBS[1].file_name()
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match=r"an incomplete one\. Remove that file and run again"):
        load_results(JOBS, tmp_path)
    path.unlink()
    assert do(JOBS, tmp_path) == [JOBS[1].label]


def test_a_result_under_a_name_that_is_not_its_own_is_refused(tmp_path: Path) -> None:
    do(JOBS[:1], tmp_path)
    (tmp_path / JOBS[0].file_name()).rename(tmp_path / JOBS[1].file_name())
    with pytest.raises(InputError, match="the result of another job than its name says"):
        load_results(JOBS, tmp_path)


def test_a_full_disk_stops_the_run_and_leaves_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\); earlier results are kept"):
        do(JOBS, tmp_path)
    assert contents(tmp_path) == {}
    monkeypatch.undo()
    assert len(do(JOBS, tmp_path)) == len(JOBS)


def test_the_first_error_ends_it_and_drops_what_has_not_begun(tmp_path: Path) -> None:
    wrong = Job("play", "wrong", {**JOBS[0].settings, "policy": "nobody"}, weight=99)
    with pytest.raises(InputError, match="there is no policy 'nobody'"):
        do([wrong, *JOBS], tmp_path, ThreadPoolExecutor(1))


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
        do(JOBS, tmp_path, Other(**other))
    assert contents(tmp_path) == {}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    with open_engine("dask", workers=2) as executor:
        yield executor


def busy_worker() -> int:
    """The process number of a worker, as it reports it."""
    time.sleep(0.2)
    return os.getpid()


def test_all_engines_and_numbers_of_workers_give_the_same_bytes(tmp_path: Path, cluster: Executor) -> None:
    for folder in ("one", "three", "dask"):
        (tmp_path / folder).mkdir()
    do(JOBS, tmp_path / "one", ThreadPoolExecutor(1))
    do(JOBS, tmp_path / "three", ThreadPoolExecutor(3))
    for _ in run_jobs(JOBS, tmp_path / "dask", cluster, lambda job, seconds: None):
        pass
    assert contents(tmp_path / "one") == contents(tmp_path / "three") == contents(tmp_path / "dask")
    assert len(contents(tmp_path / "one")) == len(JOBS)


def test_the_job_of_a_worker_that_is_killed_is_done_again(tmp_path: Path, cluster: Executor) -> None:
    long = [job("thompson-whittle", seed=seed, horizon=4000) for seed in range(6)]
    (tmp_path / "killed").mkdir()
    (tmp_path / "calm").mkdir()
    victim = cluster.submit(busy_worker).result()
    first = threading.Event()

    def kill() -> None:
        first.wait(60)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    for _ in run_jobs(long, tmp_path / "killed", cluster, lambda job, seconds: first.set()):
        pass
    killer.join()
    assert not Path(f"/proc/{victim}/exe").exists() or not os.path.exists("/proc")
    do(long, tmp_path / "calm")
    assert contents(tmp_path / "killed") == contents(tmp_path / "calm")
    assert len(contents(tmp_path / "killed")) == len(long)


def test_results_are_records_that_others_can_read(tmp_path: Path) -> None:
    do(JOBS[:1], tmp_path)
    about, columns = files.read_parquet(tmp_path / JOBS[0].file_name(), module.FORMAT, "a result")
    assert about == JOBS[0].spec()
    assert set(columns) == {"instance", "step", "reward", "cost"}


TINY = {"instances": 1, "agents": 3, "budget": 1, "seed": 0}
QUICK = Size(quick=True, seed=4)


def tiny_job(policy: str) -> Job:
    settings = {"family": "two-state-v1", "sizes": TINY, "policy": policy, "horizon": 3, "runs": 1, "seed": 0}
    return Job("play", f"a game of {policy}", settings)


ONE = Plan("one", "Two policies.", lambda size: [tiny_job("random"), tiny_job("egt")])
TWO = Plan("two", "One of them again, and another.", lambda size: [tiny_job("egt"), tiny_job("wiql")])


def start(chosen: list[Plan], folder: Path) -> Run:
    return Run(chosen, [ONE, TWO], QUICK, folder / "report.json")


def test_a_job_that_two_plans_need_belongs_to_the_first_and_is_done_once(tmp_path: Path) -> None:
    run = start([ONE, TWO], tmp_path)
    labels = {name: [job.label for job in jobs] for name, jobs in run.missing.items()}
    assert labels == {"one": ["a game of random", "a game of egt"], "two": ["a game of wiql"]}
    done: list[tuple[str, str]] = []
    with ThreadPoolExecutor(1) as executor:
        run.complete(executor, lambda name, job, seconds: done.append((name, job.label)))
    assert len(run.columns) == len(list((tmp_path / "results").glob("*.parquet"))) == 3
    assert sorted(done) == [("one", "a game of egt"), ("one", "a game of random"), ("two", "a game of wiql")]
    assert start([TWO], tmp_path).missing == {"two": []}


def test_what_was_not_asked_for_is_reported_only_if_it_is_complete(tmp_path: Path) -> None:
    run = start([ONE], tmp_path)
    with ThreadPoolExecutor(1) as executor:
        run.complete(executor, lambda name, job, seconds: None)
    assert list(run.results()) == ["one"]
    ((name, found),) = start([], tmp_path).results().items()
    assert name == "one"
    assert found[tiny_job("egt")]["step"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("there", [{"size": "full", "seed": 4}, {"size": "quick", "seed": 0}])
def test_a_report_of_another_size_or_seed_is_refused(there: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(there))
    with pytest.raises(InputError, match=r"holds the report of .* and this one would be of quick size and seed 4"):
        start([ONE], tmp_path)
    assert Run([ONE], [ONE], QUICK, tmp_path / "another.json").missing["one"]


def test_a_result_that_was_never_made_is_asked_for_in_vain_with_a_sentence() -> None:
    with pytest.raises(InputError, match="a game of egt: no such job was run; something was changed in between"):
        Results({})[tiny_job("egt")]
