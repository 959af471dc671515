"""`restive reproduce`, called as its users call it: what it makes, how it goes on, and how it ends when it cannot."""

import contextlib
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from restive.paper.catalogue import EXPERIMENTS
from restive.version import __version__

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "restive", "reproduce"]
SMALL = ["regret-bound", "--quick"]


def call(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=300, check=False, **options)


def claims(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    return found


def results(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "results").glob("*.parquet"))}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduction")
    ended = call(*SMALL, "lemma-4.3", "--out", str(folder))
    assert (ended.returncode, ended.stderr.count("Traceback")) == (0, 0), ended.stderr
    assert "hold" in ended.stdout
    return folder


def test_everything_is_in_one_folder(made: Path) -> None:
    assert {path.name for path in made.iterdir()} == {"results", "figures", "claims.json", "report.html"}
    assert all(name.endswith(".parquet") for name in results(made))
    found = claims(made)
    assert (found["version"], found["seed"], found["size"]) == (__version__, 0, "quick")
    assert {claim["experiment"] for claim in found["claims"]} == {"regret-bound", "lemma-4.3"}
    assert {claim["verdict"] for claim in found["claims"]} <= {"holds", "fails", "undecided"}


def test_a_second_call_does_nothing_anew_and_says_the_same(made: Path) -> None:
    before, said = {path: path.stat().st_mtime_ns for path in (made / "results").iterdir()}, claims(made)
    ended = call(*SMALL, "--out", str(made), "--json")
    assert ended.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in (made / "results").iterdir()} == before
    assert claims(made) == said  # also of the experiment that was not asked for again
    assert json.loads(ended.stdout) == said


@pytest.mark.parametrize("words", [["--seed", "5", "--quick"], []])
def test_a_report_of_another_seed_or_size_is_not_written_over(words: list[str], made: Path) -> None:
    before = claims(made)
    ended = call("regret-bound", "--out", str(made), *words)
    assert ended.returncode == 2
    assert "holds the report of quick size and seed 0, and this one would be of" in ended.stderr
    assert claims(made) == before


def test_a_damaged_result_is_refused_before_any_work_also_if_it_was_not_asked_for(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "copy")
    victim = next((tmp_path / "copy/results").glob("regret*.parquet"))
    victim.write_bytes(victim.read_bytes()[:50])
    ended = call("counterexample-2", "--quick", "--out", str(tmp_path / "copy"))
    assert ended.returncode == 2
    assert str(victim) in ended.stderr
    assert not list((tmp_path / "copy/results").glob("counterexample*"))


@pytest.mark.parametrize("engine", ["dask", "threads"])
def test_engines_and_workers_change_nothing(engine: str, made: Path, tmp_path: Path) -> None:
    ended = call(*SMALL, "--out", str(tmp_path), "--engine", engine, "--workers", "1")
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert results(tmp_path).items() <= results(made).items()


def test_an_interruption_ends_with_130_and_the_next_call_goes_on(made: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "regret", "--quick", "--out", str(tmp_path)], stderr=subprocess.PIPE, text=True
    ) as running:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("results/*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert (running.returncode, said.splitlines()[-1]) == (130, "restive: interrupted.")
    assert not (tmp_path / "report.html").exists()
    kept = results(tmp_path)
    assert 0 < len(kept) < len(EXPERIMENTS["regret"].plan(_quick()))
    assert call("regret", "--quick", "--out", str(tmp_path)).returncode == 0
    assert kept.items() <= results(tmp_path).items()
    assert len(results(tmp_path)) == len(EXPERIMENTS["regret"].plan(_quick()))


def _quick() -> Any:
    from restive.paper.experiment import Size

    return Size(quick=True)


def test_a_terminal_shows_a_bar_for_each_experiment_and_the_time_left(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *SMALL, "--out", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    ) as running:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while piece := os.read(ours, 65_536):
                shown += piece
    os.close(ours)
    assert running.returncode == 0
    said = shown.decode()
    assert re.search(r"regret-bound .*━.* \d+%", said)
    assert re.search(r"all .*━.* \d+% \S*\d:\d\d:\d\d", re.sub(r"\x1b\[[\d;?]*\w", "", said))


def test_the_list_names_every_experiment_and_does_nothing(tmp_path: Path) -> None:
    ended = call("--list", cwd=tmp_path)
    assert ended.returncode == 0
    assert all(name in ended.stdout for name in EXPERIMENTS)
    assert [each["experiment"] for each in json.loads(call("--list", "--json", cwd=tmp_path).stdout)] == list(
        EXPERIMENTS
    )
    assert list(tmp_path.iterdir()) == []


def _small_files() -> None:
    """As on a disk that fills up: no file can become larger than this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))


def test_a_disk_that_fills_up_gets_a_sentence_and_what_was_whole_stays(made: Path, tmp_path: Path) -> None:
    ended = call(*SMALL, "--out", str(tmp_path), preexec_fn=_small_files, env={**os.environ, "RESTIVE_DEBUG": ""})
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].endswith("what was done before is kept, and the same call goes on from there.")
    assert "Traceback" not in ended.stderr
    assert not list(tmp_path.rglob("*.part"))
    assert call(*SMALL, "--out", str(tmp_path)).returncode == 0


def test_a_half_written_result_is_refused(made: Path, tmp_path: Path) -> None:
    assert call(*SMALL, "--out", str(tmp_path)).returncode == 0
    victim = next(iter((tmp_path / "results").glob("*.parquet")))
    victim.write_bytes(victim.read_bytes()[:-9])
    ended = call(*SMALL, "--out", str(tmp_path))
    assert ended.returncode == 2
    assert str(victim) in ended.stderr
    assert "Remove that file and run again" in ended.stderr
    victim.unlink()
    assert call(*SMALL, "--out", str(tmp_path)).returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["two-stat"], "there is no experiment 'two-stat'; there are two-state, "),
        (["two-stat"], "did you mean 'two-state'?"),
        (["regret", "--engine", "fax"], "the engine is 'fax'; it must be threads, dask, or dask://host:port"),
        (["regret", "--engine", "dask://nowhere"], "must be threads, dask, or dask://host:port of a scheduler"),
        (["regret", "--workers", "0"], "workers is 0; it must be a whole number from 1 on"),
        (["regret", "--seed", "-1"], "seed is -1; it must be a whole number from 0"),
        (
            ["regret", "--out", "a-file/below"],
            "a-file/below: cannot write there (Not a directory); choose another folder",
        ),
        (["regret", "--markdown", "a-file/page.md"], "a-file/page.md: cannot write there (File exists)"),
        (["regret", "--out", "a-file"], "a-file: cannot write there (File exists); choose another folder"),
    ],
)
def test_bad_input_gets_one_sentence_before_any_work(words: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("not a folder")
    ended = call(*words, "--quick", cwd=tmp_path)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a-file"]


def verdicts(page: Path) -> list[list[str]]:
    """The rows of the page that the command writes: claim, place, verdict, agreement, number, setting."""
    lines = [line.split(" | ") for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [line for line in lines if len(line) == 6][1:]


def test_the_page_in_the_docs_has_a_row_for_every_claim_with_its_verdict() -> None:
    rows = verdicts(ROOT / "docs/reproduction.md")
    assert len(rows) > 60
    assert {row[2] for row in rows} <= {"holds", "fails", "undecided"}
    assert f"restive {__version__}" in (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")


@pytest.mark.soak
def test_the_whole_paper_comes_out_as_the_docs_say(tmp_path: Path) -> None:
    ended = subprocess.run(
        [*COMMAND, "--out", str(tmp_path / "all"), "--markdown", str(tmp_path / "page.md")], timeout=3600, check=False
    )
    assert ended.returncode == 0
    assert verdicts(tmp_path / "page.md") == verdicts(ROOT / "docs/reproduction.md")
