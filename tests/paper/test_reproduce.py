"""`restive reproduce` and the list of experiments: what it makes, how it goes on, and how it ends when it cannot."""

import contextlib
import json
import os
import pty
import re
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from interruption import interrupt

from restive import InputError
from restive.paper.experiment import Measured
from restive.paper.jobs import Results, Size
from restive.paper.readings import READINGS
from restive.paper.reproduction import EXPERIMENTS, find_experiments
from restive.paper.tasks import TASKS
from restive.version import __version__


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_plans_are_plain_data_and_the_quick_one_is_lighter(name: str) -> None:
    weights = []
    for size in (Size(), Size(quick=True)):
        jobs = EXPERIMENTS[name].list_jobs(size)
        assert jobs
        assert all(job.task in TASKS for job in jobs)
        assert all(json.loads(json.dumps(job.settings)) == job.settings for job in jobs)
        weights.append(sum(job.weight for job in jobs))
    assert weights[1] <= weights[0]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_another_seed_means_other_jobs(name: str) -> None:
    plans = [EXPERIMENTS[name].list_jobs(Size(seed=seed)) for seed in (0, 1)]
    one, two = ({job.digest() for job in plan if "seed" in job.settings} for plan in plans)
    assert not one & two


def test_no_two_works_of_different_settings_share_a_file() -> None:
    jobs = [job for each in EXPERIMENTS.values() for job in each.list_jobs(Size())]
    files = {job.file_name(): job.spec() for job in jobs}
    assert all(files[job.file_name()] == job.spec() for job in jobs)


def test_every_claim_has_a_name_of_its_own_and_stands_in_the_order_of_its_experiment() -> None:
    names = [claim.name for each in EXPERIMENTS.values() for claim in each.claims]
    assert len(set(names)) == len(names) == 98
    assert [claim.name for claim in EXPERIMENTS["gamma"].claims][2:4] == [
        "gamma-low-is-best-two-state",
        "gamma-higher-is-slower-ten-state",
    ]


def test_a_claim_has_the_place_of_its_experiment_and_the_range_above_0_unless_it_says_otherwise() -> None:
    first, *_ = EXPERIMENTS["two-state"].claims
    assert (first.place, str(first.agreement)) == ("Figure 1, section 5.1", "above 0")
    assert first.quantity == "lead of egt over wiql, {share}"
    assert first.verdict == "undecided"  # nothing was measured


def test_a_number_for_a_claim_that_does_not_exist_is_an_error() -> None:
    odd = replace(EXPERIMENTS["counterexample-2"], measure=lambda size, results: Measured({"no-such-claim": []}))
    with pytest.raises(AssertionError, match=r"counterexample-2: there is no claim no-such-claim"):
        odd.examine(Size(), Results({}))


def test_names_are_found_in_the_order_of_the_catalogue() -> None:
    assert [each.name for each in find_experiments(["regret", "two-state", "regret"])] == ["two-state", "regret"]
    assert find_experiments([]) == find_experiments(["all"]) == list(EXPERIMENTS.values())
    assert find_experiments(["all", "regret"]) == list(EXPERIMENTS.values())


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"there is no experiment 'gama'; there are two-state, .*; did you mean 'gamma'\?"
    ):
        find_experiments(["two-state", "gama"])


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
    times = ended.stderr.partition("Where the time went")[2]
    assert re.search(r"regret-bound +6 +\d+\.\d\n", times)
    assert re.search(r"lemma-4\.3 +12 +\d+\.\d\n", times)
    return folder


def test_everything_is_in_one_folder(made: Path) -> None:
    assert {path.name for path in made.iterdir()} == {"results", "figures", "claims.json", "report.html"}
    assert all(name.endswith(".parquet") for name in results(made))
    found = claims(made)
    assert (found["version"], found["seed"], found["size"]) == (__version__, 0, "quick")
    assert {claim["experiment"] for claim in found["claims"]} == {"regret-bound", "lemma-4.3"}
    assert [reading["name"] for reading in found["readings"]] == ["literal", "authors"]
    for claim in found["claims"]:
        assert {each["verdict"] for each in claim["readings"].values()} <= {"holds", "fails", "undecided"}


def test_a_second_call_runs_no_job_and_prints_the_same(made: Path) -> None:
    before, said = {path: path.stat().st_mtime_ns for path in (made / "results").iterdir()}, claims(made)
    ended = call(*SMALL, "--out", str(made), "--json")
    assert ended.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in (made / "results").iterdir()} == before
    assert claims(made) == said  # also of the experiment that was not asked for again
    assert json.loads(ended.stdout) == said


def test_figures_are_files_in_the_formats_asked_for_and_in_the_report_in_any_case(tmp_path: Path) -> None:
    for words, formats in ((["--formats", "png,pdf"], ["pdf", "png"]), ([], [])):
        folder = tmp_path / "-".join(["drawn", *formats])
        assert call("counterexample-2", "--quick", "--out", str(folder), *words).returncode == 0
        assert sorted(path.suffix[1:] for path in (folder / "figures").iterdir()) == formats
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert page.count("<figure") == 1
        assert ("As files: figures/counterexample-2.png, .pdf." in page) == bool(formats)


def test_own_settings_have_a_folder_and_verdicts_of_their_own(tmp_path: Path) -> None:
    ended = call("regret-bound", "--quick", "--set", "egt:p=2", "--set", "egt:unseen=first", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    (folder,) = tmp_path.iterdir()
    assert folder.name == "reproduction-quick-egt-p=2-unseen=first"
    assert [reading["policies"] for reading in claims(folder)["readings"]] == [{"egt": "p=2,unseen=first"}]
    assert {tuple(claim["readings"]) for claim in claims(folder)["claims"]} == {("own settings",)}
    assert "own settings" in ended.stdout
    again = call("regret-bound", "--quick", "--out", str(folder))
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "holds a report with other settings; choose another folder." in again.stderr


@pytest.mark.parametrize("words", [["--seed", "5", "--quick"], []])
def test_a_report_of_another_seed_or_size_is_not_written_over(words: list[str], made: Path) -> None:
    before = claims(made)
    ended = call("regret-bound", "--out", str(made), *words)
    assert ended.returncode == 2
    assert "holds the report of quick size and seed 0, and this one would be of" in ended.stderr
    assert claims(made) == before


def test_a_damaged_result_is_refused_before_any_job_runs_also_if_it_was_not_asked_for(
    made: Path, tmp_path: Path
) -> None:
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


def test_an_interruption_ends_with_130_and_the_next_call_goes_on(tmp_path: Path) -> None:
    assert interrupt(["reproduce", *SMALL], tmp_path) == (130, "restive: interrupted.")
    assert not (tmp_path / "report.html").exists()
    kept = results(tmp_path)
    assert len(kept) == 1
    assert call(*SMALL, "--out", str(tmp_path)).returncode == 0
    assert kept.items() <= results(tmp_path).items()
    jobs = EXPERIMENTS["regret-bound"].under(READINGS).list_jobs(Size(quick=True))
    assert len(results(tmp_path)) == len({job.digest() for job in jobs})


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
    assert ended.stderr.splitlines()[-1].endswith("earlier results are kept, and the same call continues from there.")
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
        (["regret", "--engine", "fax"], "the engine is 'fax'; it must be processes, threads, dask, or dask://"),
        (
            ["regret", "--engine", "dask://nowhere"],
            "must be processes, threads, dask, or dask://host:port of a scheduler",
        ),
        (["regret", "--formats", "jpg"], "formats is 'jpg'; it must be png, svg, pdf with commas between, or none."),
        (["regret", "--workers", "0"], "workers is 0; it must be a whole number from 1 on"),
        (["regret", "--set", "egt:q=2"], "egt: 'q=2' is not a setting; write setting=value. Settings: gamma, eta, "),
        (["regret", "--settings", "a-file"], "a-file: cannot be read as TOML ("),
        (["regret", "--seed", "-1"], "seed is -1; it must be a whole number from 0"),
        (
            ["regret", "--out", "a-file/below"],
            "a-file/below: cannot write there (Not a directory); choose another folder",
        ),
        (["regret", "--markdown", "a-file/page.md"], "a-file/page.md: cannot write there (File exists)"),
        (["regret", "--out", "a-file"], "a-file: cannot write there (File exists); choose another folder"),
    ],
)
def test_bad_input_gets_one_sentence_before_any_job_runs(words: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("not a folder")
    ended = call(*words, "--quick", cwd=tmp_path)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a-file"]


def verdicts(page: Path) -> list[list[str]]:
    """The rows of the page that the command writes: claim, place, agreement, twice verdict and number, why."""
    lines = [line.split(" | ") for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [line for line in lines if len(line) == 8][1:]


def test_the_page_in_the_docs_has_a_row_for_every_claim_with_its_verdict() -> None:
    rows = verdicts(ROOT / "docs/reference/results/reproduction.md")
    assert len(rows) > 60
    for row in rows:
        for verdict in row[3], row[5]:
            assert re.fullmatch(r"holds|fails|undecided|not decidable on substitute data \(seen: \w+\)", verdict)
        assert row[7] != "|" or row[1] == "ours" or "fails" not in (row[3], row[5]), row[0]
    assert f"restive {__version__}" in (ROOT / "docs/reference/results/reproduction.md").read_text(encoding="utf-8")


@pytest.mark.soak
def test_the_whole_paper_comes_out_as_the_docs_say(tmp_path: Path) -> None:
    ended = subprocess.run(
        [*COMMAND, "--out", str(tmp_path / "all"), "--markdown", str(tmp_path / "page.md")], timeout=3600, check=False
    )
    assert ended.returncode == 0
    assert verdicts(tmp_path / "page.md") == verdicts(ROOT / "docs/reference/results/reproduction.md")
