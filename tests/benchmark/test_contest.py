"""`restive compare`, called as its users call it: what it makes, how it goes on, and how it ends when it cannot."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from restive.benchmark.fields import CONTESTANTS, FIELDS, HERO, OTHER_BUDGETS, undertakings
from restive.cli import main
from restive.paper.experiment import Size
from restive.version import __version__

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "restive", "compare"]
SMALL = ["--quick", "--field", "sticky", "--no-cost"]


def call(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=300, check=False, **options)


class Ended(NamedTuple):
    """What a call in this process came to."""

    code: int
    out: str
    err: str


CallHere = Callable[..., Ended]


@pytest.fixture
def call_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CallHere:
    """The same without a process of its own: for what ends before any work."""

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["restive", "compare", *words])
        monkeypatch.setattr(signal, "signal", lambda *given: None)  # an interruption of the tests is for pytest
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run


def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    return found


def results(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "results").glob("*.parquet"))}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("comparison")
    ended = call(*SMALL, "--out", str(folder), "--markdown", str(folder / "new/page.md"))
    assert (ended.returncode, ended.stderr.count("Traceback")) == (0, 0), ended.stderr
    assert "Ranks by step 1000" in ended.stdout
    assert "restive: sticky done after" in ended.stderr
    return folder


def test_everything_is_in_one_folder(made: Path) -> None:
    assert {path.name for path in made.iterdir()} == {"results", "figures", "comparison.json", "comparison.html", "new"}
    found = told(made)
    assert (found["version"], found["seed"], found["size"]) == (__version__, 0, "quick")
    assert [field["field"] for field in found["fields"]] == ["sticky"]
    assert found["policies"] == list(CONTESTANTS)
    assert len(results(made)) == len(undertakings()["sticky"].plan(Size(quick=True)))
    assert (made / "new/page.md").read_text(encoding="utf-8").startswith("# Online policies, compared")


def test_a_second_call_does_nothing_anew_and_says_the_same(made: Path) -> None:
    before, said = {path: path.stat().st_mtime_ns for path in (made / "results").iterdir()}, told(made)
    ended = call(*SMALL, "--out", str(made), "--json")
    assert ended.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in (made / "results").iterdir()} == before
    assert json.loads(ended.stdout) == said == told(made)


def test_an_own_policy_is_ranked_beside_the_others_by_any_engine_on_this_machine(
    made: Path, tmp_path: Path, lowest_first: str
) -> None:
    (tmp_path / "own.py").write_text(lowest_first)
    pages = []
    for engine in ("threads", "dask"):
        folder = tmp_path / engine
        (folder / "results").mkdir(parents=True)
        for name, content in results(made).items():
            (folder / "results" / name).write_bytes(content)
        words = ["--policy", "own.py", "--engine", engine, "--workers", "1", "--out", engine]
        ended = call(*SMALL, *words, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert "own.py" in ended.stdout
        assert results(made).items() <= results(folder).items()
        assert len(results(folder)) == len(results(made)) + 1
        pages.append(told(folder)["fields"])
    assert pages[0] == pages[1]
    assert "own.py" in pages[0][0]["gap_closed"]


@pytest.mark.parametrize("words", [["--seed", "5", "--quick"], []])
def test_a_comparison_of_another_seed_or_size_is_not_written_over(
    words: list[str], made: Path, call_here: CallHere
) -> None:
    before = told(made)
    ended = call_here("--field", "sticky", "--out", str(made), *words)
    assert ended.code == 2
    assert "holds the report of quick size and seed 0, and this one would be of" in ended.err
    assert told(made) == before


def test_a_damaged_result_is_refused_before_any_work(made: Path, tmp_path: Path, call_here: CallHere) -> None:
    (tmp_path / "results").mkdir()
    name, content = next(iter(results(made).items()))
    (tmp_path / "results" / name).write_bytes(content[:50])
    ended = call_here("--quick", "--field", "two-state", "--out", str(tmp_path))
    assert ended.code == 2
    assert name in ended.err
    assert len(results(tmp_path)) == 1


def test_an_interruption_ends_with_130_and_the_next_call_goes_on(tmp_path: Path) -> None:
    words = [*COMMAND, *SMALL, "--workers", "1", "--out", str(tmp_path)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as running:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("results/*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert (running.returncode, said.splitlines()[-1]) == (130, "restive: interrupted.")
    kept = results(tmp_path)
    assert 0 < len(kept) < len(undertakings()["sticky"].plan(Size(quick=True)))
    assert call(*SMALL, "--out", str(tmp_path)).returncode == 0
    assert kept.items() <= results(tmp_path).items()


def test_the_list_names_every_field_and_does_nothing(
    tmp_path: Path, call_here: CallHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call_here("--list")
    assert ended.code == 0
    assert all(name in ended.out for name in (*FIELDS, OTHER_BUDGETS))
    listed = json.loads(call_here("--list", "--json").out)
    assert [each["field"] for each in listed] == [*FIELDS, OTHER_BUDGETS]
    assert all(each["about"].endswith(".") for each in listed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--field", "stiky"], "there is no field 'stiky'; there are two-state, "),
        (["--field", "stiky"], "did you mean 'sticky'?"),
        (["--policy", "egtt"], "there is no policy 'egtt'"),
        (["--policy", "egt:eta=-1"], "egt: eta is -1; it must be above 0."),
        (["--policy", "missing.py"], "missing.py: policy file not found"),
        (["--policy", "a-file.py", "--engine", "dask://far:1"], "a-file.py: the workers at dask://far:1 do not have"),
        (["--policy", "omr-oracle"], "omr-oracle: an oracle knows the model"),
        (["--engine", "fax"], "the engine is 'fax'; it must be threads, dask, or dask://host:port"),
        (["--workers", "0"], "workers is 0; it must be a whole number from 1 on"),
        (["--seed", "-1"], "seed is -1; it must be a whole number from 0"),
        (["--out", "a-file.py/below"], "a-file.py/below: cannot write there (Not a directory); choose another folder"),
        (["--markdown", "a-file.py/page.md"], "a-file.py/page.md: cannot write there (File exists)"),
    ],
)
def test_bad_input_gets_one_sentence_before_any_work(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    call_here: CallHere,
    monkeypatch: pytest.MonkeyPatch,
    lowest_first: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file.py").write_text(lowest_first)
    ended = call_here(*words, "--quick")
    assert ended.code == 2
    assert sentence in ended.err
    assert len(ended.err.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"a-file.py", "__pycache__"}


@pytest.mark.soak
def test_the_whole_comparison_comes_out_as_the_docs_say(tmp_path: Path) -> None:
    """But for the code and the day it was made with."""
    page = tmp_path / "page.md"
    ended = subprocess.run(
        [*COMMAND, "--no-cost", "--out", str(tmp_path / "all"), "--markdown", str(page)], timeout=3600, check=False
    )
    assert ended.returncode == 0
    shown = (ROOT / "docs/compared.md").read_text(encoding="utf-8")
    for title in ("## Ranks", "## Gap closed", f"## What {HERO} was to reach"):
        made, kept = (text.partition(title)[2].partition("\n## ")[0] for text in (page.read_text("utf-8"), shown))
        assert made
        assert made == kept
