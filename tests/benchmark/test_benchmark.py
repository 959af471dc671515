"""The benchmark as a whole: its folder, its pages and its figures."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from interruption import interrupt
from matplotlib.figure import Figure
from reading import Outline

from restive.benchmark.benchmark import LIMITS, Benchmark, draw_scores, write_benchmark
from restive.benchmark.cost import Costs
from restive.benchmark.ranking import BOUND, Scores
from restive.benchmark.scenarios import CANDIDATE, CONTROLS, OTHER_BUDGETS, RANKED, REFERENCES, SCENARIOS, plans
from restive.benchmark.summary import describe_ranking
from restive.cli import main
from restive.paper.jobs import Size
from restive.version import __version__

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "restive", "compare"]
SMALL = ["--quick", "--scenario", "sticky", "--no-cost"]


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
    """The same without a process of its own: for what ends before any job."""

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["restive", "compare", *words])
        monkeypatch.setattr(signal, "signal", lambda *given: None)  # an interruption of the tests is for pytest
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run


def read_report(folder: Path) -> dict[str, Any]:
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
    found = read_report(made)
    assert (found["version"], found["seed"], found["size"]) == (__version__, 0, "quick")
    assert [scenario["scenario"] for scenario in found["scenarios"]] == ["sticky"]
    assert found["policies"] == list(RANKED)
    assert len(results(made)) == len(plans()["sticky"].list_jobs(Size(quick=True)))
    assert (made / "new/page.md").read_text(encoding="utf-8").startswith("# Online policies, compared")


def test_a_second_call_runs_no_job_and_prints_the_same(made: Path) -> None:
    before, printed = {path: path.stat().st_mtime_ns for path in (made / "results").iterdir()}, read_report(made)
    ended = call(*SMALL, "--out", str(made), "--json")
    assert ended.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in (made / "results").iterdir()} == before
    assert json.loads(ended.stdout) == printed == read_report(made)


def test_an_own_policy_is_ranked_beside_the_others_by_any_engine_on_this_machine(
    made: Path, tmp_path: Path, lowest_first: str
) -> None:
    (tmp_path / "own.py").write_text(lowest_first)
    pages = []
    for engine in ("threads", "processes", "dask"):
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
        pages.append(read_report(folder)["scenarios"])
    assert pages[0] == pages[1] == pages[2]
    assert "own.py" in pages[0][0]["gap_closed"]


@pytest.mark.parametrize("words", [["--seed", "5", "--quick"], []])
def test_a_comparison_of_another_seed_or_size_is_not_written_over(
    words: list[str], made: Path, call_here: CallHere
) -> None:
    before = read_report(made)
    ended = call_here("--scenario", "sticky", "--out", str(made), *words)
    assert ended.code == 2
    assert "holds the report of quick size and seed 0, and this one would be of" in ended.err
    assert read_report(made) == before


def test_a_damaged_result_is_refused_before_any_job_runs(made: Path, tmp_path: Path, call_here: CallHere) -> None:
    (tmp_path / "results").mkdir()
    name, content = next(iter(results(made).items()))
    (tmp_path / "results" / name).write_bytes(content[:50])
    ended = call_here("--quick", "--scenario", "two-state", "--out", str(tmp_path))
    assert ended.code == 2
    assert name in ended.err
    assert len(results(tmp_path)) == 1


def test_an_interruption_ends_with_130_and_the_next_call_goes_on(made: Path, tmp_path: Path) -> None:
    assert interrupt(["compare", *SMALL], tmp_path) == (130, "restive: interrupted.")
    kept = results(tmp_path)
    assert len(kept) == 1
    for name, content in list(results(made).items())[:-1]:
        if name not in kept:
            (tmp_path / "results" / name).write_bytes(content)
    assert call(*SMALL, "--out", str(tmp_path)).returncode == 0
    assert results(tmp_path) == results(made)


def test_the_list_names_every_scenario_and_does_nothing(
    tmp_path: Path, call_here: CallHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call_here("--list")
    assert ended.code == 0
    assert all(name in ended.out for name in (*SCENARIOS, OTHER_BUDGETS))
    listed = json.loads(call_here("--list", "--json").out)
    assert [each["scenario"] for each in listed] == [*SCENARIOS, OTHER_BUDGETS]
    assert all(each["about"].endswith(".") for each in listed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--scenario", "stiky"], "there is no scenario 'stiky'; there are two-state, "),
        (["--scenario", "stiky"], "did you mean 'sticky'?"),
        (["--policy", "egtt"], "there is no policy 'egtt'"),
        (["--policy", "egt:eta=-1"], "egt: eta is -1; it must be above 0."),
        (["--policy", "missing.py"], "missing.py: policy file not found"),
        (["--policy", "a-file.py", "--engine", "dask://far:1"], "a-file.py: the workers at dask://far:1 do not have"),
        (["--policy", "omr-oracle"], "omr-oracle: an oracle knows the model"),
        (["--engine", "fax"], "the engine is 'fax'; it must be processes, threads, dask, or dask"),
        (["--workers", "0"], "workers is 0; it must be a whole number from 1 on"),
        (["--seed", "-1"], "seed is -1; it must be a whole number from 0"),
        (["--out", "a-file.py/below"], "a-file.py/below: cannot write there (Not a directory); choose another folder"),
        (["--markdown", "a-file.py/page.md"], "a-file.py/page.md: cannot write there (File exists)"),
    ],
)
def test_bad_input_gets_one_sentence_before_any_job_runs(
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
    assert numbers(page) == numbers(ROOT / "docs/reference/results/compared.md")


def test_the_page_in_the_docs_has_numbers_in_every_section() -> None:
    assert min(map(len, numbers(ROOT / "docs/reference/results/compared.md"))) > 10


def numbers(page: Path) -> list[list[str]]:
    """The lines of each section with numbers, without the claims about the cost and the number of claims."""
    text, sections = page.read_text(encoding="utf-8"), []
    for title in ("## Ranks", "## Gap closed", f"## Targets of {CANDIDATE}"):
        lines = text.partition(title)[2].partition("\n## ")[0].splitlines()
        sections.append([line for line in lines if line and "costs at most" not in line and " claims: " not in line])
    return sections


MakeScores = Callable[..., Scores]
COSTS = Costs({states: dict.fromkeys(RANKED, 10.0 * states) for states in (2, 10)})
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def benchmark(make_scores: MakeScores) -> Benchmark:
    made = Benchmark(make_scores(rates={BOUND: 41.0, "sticky/wiql": 39.9}, others=True), COSTS)
    made.about["machine"] = EVIL
    return made


@pytest.fixture(scope="module")
def folder(benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("comparison")
    (made / "figures").mkdir()
    write_benchmark(benchmark, made, f"restive compare {EVIL}", made / "page.md")
    return made


def read(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def test_the_page_is_whole_needs_nothing_and_all_links_lead_somewhere_in_it(folder: Path) -> None:
    outline = Outline(read(folder, "comparison.html"))
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)
    assert not set(outline.tags) & {"script", "link", "img", "iframe"}


def test_what_was_named_by_others_cannot_break_the_page(folder: Path) -> None:
    assert EVIL not in read(folder, "comparison.html")
    assert read(folder, "comparison.html").count("&lt;script&gt;") == 3  # the machine twice, and the command


def test_words_tables_and_claims_are_on_the_page_and_in_the_markdown(benchmark: Benchmark, folder: Path) -> None:
    html = re.sub(r"&nbsp;", " ", read(folder, "comparison.html")).replace("&#39;", "'")
    flat = " ".join(read(folder, "page.md").replace("\\", "").split())
    result = benchmark.scores.scenarios["sticky"]
    sentences = [
        *benchmark.advice,
        describe_ranking(result),
        result.scenario.about,
        *(claim.sentence for claim in benchmark.claims),
    ]
    for sentence in sentences:
        assert sentence in html
        assert sentence in flat
    for title in ("Ranks by step 1000", "Ranks by step 100", "Gap closed in sticky", "Cost of a step"):
        assert title in html
        assert title in flat
    assert html.count("<figure>") == 2


def test_markdown_lines_are_short_but_for_tables_and_its_tables_are_even(folder: Path) -> None:
    lines = read(folder, "page.md").splitlines()
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120
    tables = re.findall(r"(?:^\|.*\n)+", read(folder, "page.md"), re.MULTILINE)
    assert len(tables) == 4 + 2 * bool(CONTROLS) + 3 + 1 + 1
    for table in tables:
        assert len({re.sub(r"\\\|", "", line).count("|") for line in table.splitlines()}) == 1


def test_the_data_have_every_number_of_every_scenario(benchmark: Benchmark, folder: Path) -> None:
    report = json.loads(read(folder, "comparison.json"))
    assert report == json.loads(json.dumps(benchmark.as_json()))
    assert [scenario["scenario"] for scenario in report["scenarios"]] == ["two-state", "ten-state", "sticky"]
    sticky = report["scenarios"][2]
    assert sticky["gap_closed"]["lagrange"]["100"]["value"] == pytest.approx(0.9)
    assert sticky["gap_closed"][BOUND]["1000"]["low"] == pytest.approx(1.1)
    assert sticky["ranks"]["1000"]["wiql"] == {"rank": 1, "tied": True}
    assert sticky["ranks"]["1000"]["lagrange"] == {"rank": 2, "tied": False}
    assert report["advice"] == benchmark.advice
    assert {claim["verdict"] for claim in report["claims"]} <= {"holds", "fails", "undecided"}
    assert len(report["costs"]) == 2 * len(RANKED)
    assert (report["seed"], report["size"]) == (0, "quick")


def test_figures_are_written_in_three_formats(folder: Path) -> None:
    names = {path.name for path in (folder / "figures").iterdir()}
    assert names == {f"{name}.{kind}" for name in ("overview", "scenarios") for kind in ("png", "svg", "pdf")}


def test_slow_policies_are_said_to_have_played_fewer_runs(folder: Path) -> None:
    assert "2 runs of each instance; 1 of thompson-whittle and cet-whittle, which are slow" in read(
        folder, "comparison.html"
    )


def test_without_costs_nothing_is_said_of_them(make_scores: MakeScores, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    write_benchmark(Benchmark(make_scores(), None), tmp_path, "", tmp_path / "page.md")
    for name in ("comparison.html", "page.md"):
        assert "Cost" not in read(tmp_path, name)
        assert "cheapest" not in read(tmp_path, name)
    assert json.loads(read(tmp_path, "comparison.json"))["costs"] is None


def test_the_claims_alone_make_a_page_too(make_scores: MakeScores, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    write_benchmark(Benchmark(make_scores(scenarios=[], others=True), None), tmp_path, "", tmp_path / "page.md")
    assert Outline(read(tmp_path, "comparison.html")).open == []
    assert "not below egt" in read(tmp_path, "page.md")
    assert list((tmp_path / "figures").iterdir()) == []


@pytest.fixture(scope="module")
def figures(make_scores: MakeScores) -> dict[str, Figure]:
    scores = make_scores(
        scenarios=SCENARIOS, extra=("egt:eta=0.5",), rates={"sticky/wiql": 10.0, BOUND: 41.0}, shaky={"egt": 3.0}
    )
    return draw_scores(scores)


def test_every_scenario_has_a_panel_with_every_policy_but_random_at_its_right_end(figures: dict[str, Figure]) -> None:
    panels = {axes.get_title(loc="left"): axes for axes in figures["scenarios"].axes}
    assert list(panels) == list(SCENARIOS)
    for name, axes in panels.items():
        named = {text.get_text() for text in axes.texts}
        assert named == {
            "egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle", "cet-whittle", "lagrange", "egt:eta=0.5",
            "whittle-oracle", BOUND,
        }.union(REFERENCES if SCENARIOS[name].references else ())  # fmt: skip
        assert axes.get_xscale() == "log"


def test_a_line_shows_the_gap_closed_so_far_and_what_is_far_off_is_cut(figures: dict[str, Figure]) -> None:
    panels = {axes.get_title(loc="left"): axes for axes in figures["scenarios"].axes}
    lines = panels["two-state"].lines
    ends = sorted({round(float(np.asarray(line.get_ydata())[-1]), 2) for line in lines})
    assert ends == [0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0, 1.1]
    for axes in panels.values():
        assert LIMITS[0] <= axes.get_ylim()[0] < axes.get_ylim()[1] <= LIMITS[1]


def test_steps_are_marked_at_round_numbers(figures: dict[str, Figure]) -> None:
    axes = figures["scenarios"].axes[0]
    assert axes.get_xticks().tolist() == [10, 20, 50, 100, 200, 500, 1000]


def test_the_overview_has_a_row_for_each_scenario_and_a_dot_with_an_interval_for_each_policy(
    figures: dict[str, Figure],
) -> None:
    (axes,) = figures["overview"].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == list(SCENARIOS)
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == 8 * len(SCENARIOS)
    (legend,) = figures["overview"].legends
    assert [text.get_text() for text in legend.get_texts()][-1] == "egt:eta=0.5"
    shown = {round(float(np.asarray(dot.get_xdata())[0]), 2) for dot in dots}
    assert min(shown) == LIMITS[0]
    intervals = [np.ptp(np.asarray(line.get_xdata())) for line in axes.lines if line.get_marker() != "o"]
    assert max(intervals) > 0.1


def test_no_words_are_cut_off(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        figure.draw_without_rendering()
        width, height = figure.bbox.size
        for text in [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]:
            left, bottom, right, top = text.get_window_extent().extents
            assert min(left, bottom, width - right, height - top) >= 0, text.get_text()


def test_one_scenario_is_one_panel(make_scores: MakeScores) -> None:
    drawn = draw_scores(make_scores(scenarios=["crowd"]))
    assert [len(figure.axes) for figure in drawn.values()] == [1, 1]
