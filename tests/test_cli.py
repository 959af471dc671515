"""The command, called as its users call it: what it prints, where, and how it ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from restive import POLICIES, PROBLEMS, Problem, __version__, make_problems, simulate
from restive.cli import main

SMALL = ("--instances", "3", "--runs", "2", "--agents", "8", "--budget", "2", "--horizon", "120", "--seed", "7")


class Ended:
    """What a call of the command came to."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Call = Callable[..., Ended]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["restive", *words])
        monkeypatch.setattr(signal, "signal", lambda *given: None)  # an interruption of the tests is for pytest
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else int(bool(code)), captured.out, captured.err)

    return run


def test_json_has_the_numbers_that_the_library_gives(call: Call) -> None:
    ended = call("simulate", *SMALL, "--policy", "egt", "--policy", "wiql", "--noise", "0.5", "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    problems = make_problems("two-state-v1", instances=3, agents=8, budget=2, seed=7)
    trace = simulate(problems, "wiql", horizon=120, runs=2, seed=7, noise=0.5)
    assert [row["policy"] for row in found["policies"]] == ["egt", "wiql"]
    assert found["policies"][1]["reward"]["mean"] == pytest.approx(trace.reward.mean())
    assert found["policies"][1]["reward_last_tenth"]["mean"] == pytest.approx(trace.reward[:, -12:].mean())
    means = found["policies"][1]["running_mean"]
    assert list(means) == ["10", "20", "50", "100", "120"]
    assert means["50"] == pytest.approx(trace.reward[:, :50].mean())
    assert (found["seed"], found["noise"], found["version"]) == (7, 0.5, __version__)


def test_a_table_a_figure_and_a_page_are_made(call: Call, tmp_path: Path) -> None:
    figure, page = tmp_path / "new" / "figure.png", tmp_path / "page.html"
    ended = call("simulate", *SMALL, "--policy", "egt:eta=0.5", "--figure", str(figure), "--page", str(page))
    assert ended.code == 0
    assert "egt:eta=0.5" in ended.out
    assert "gap closed" in ended.out
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in page.read_text()
    assert str(figure) in ended.err


def test_an_own_problem_is_played_from_its_file(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    make_problems("many-state-v1", agents=4, budget=1, seed=3, states=3)[0].save(file)
    ended = call("simulate", "--problem", str(file), "--horizon", "20", "--runs", "3", "--policy", "all", "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    assert [row["policy"] for row in found["policies"]] == list(POLICIES)
    assert (found["agents"], found["states"], found["instances"]) == (4, 3, 1)


def test_solve_prints_all_that_is_known(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "mine.npz"
    agent = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.2, 0.8], [0.0, 1.0]]])
    Problem([agent, agent], [0, 1], budget=1, states=("low", "high")).save(file)
    ended = call("solve", "--problem", str(file), "--horizon", "50")
    assert ended.code == 0
    for words in ("0.800000", "0.500000", "high", "2 of 2 agents are indexable", "Largest threshold", "Fluid bound"):
        assert words in ended.out
    found = json.loads(call("solve", "--problem", str(file), "--horizon", "50", "--json").out)
    assert found["benefit"] == [[0.8, 0.5]] * 2
    assert found["largest_threshold"] == 0.5
    assert found["fluid_value_per_step"] <= found["fluid_bound_per_step"] <= 2


@pytest.mark.parametrize(("verb", "names"), [("policies", POLICIES), ("problems", PROBLEMS)])
def test_lists_name_everything_with_a_line(call: Call, verb: str, names: dict[str, object]) -> None:
    ended = call(verb)
    assert all(name in ended.out for name in names)
    listed = json.loads(call(verb, "--json").out)
    assert all(entry["about"].endswith(".") for entry in listed)
    assert len(listed) == len(names)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--policy", "nonsense"), "there is no policy 'nonsense'"),
        (("--policy", "egt:eta=-1"), "egt: eta is -1; it must be above 0."),
        (("--policy", "egt:et=1"), "'et=1' is not a setting"),
        (("--policy", "egt:eta=abc"), "eta is 'abc'"),
        (("--problem", "nonsense-v1"), "there is no problem 'nonsense-v1'"),
        (("--problem", "missing.json"), "missing.json: No such file or directory."),
        (("--budget", "51"), "budget is 51; it must be a whole number from 0 to 50"),
        (("--states", "3"), "two-state-v1 has no setting 'states'"),
        (("--horizon", "0"), "horizon is 0; it must be a whole number from 1 on."),
        (("--runs", "-1"), "runs is -1"),
        (("--instances", "0"), "instances is 0"),
        (("--seed", "-5"), "seed is -5"),
        (("--noise", "-1"), "noise is -1"),
        (("--noise", "nan"), "noise is nan"),
        (("--threads", "0"), "threads is 0"),
        (("--figure", "picture.jpg"), "a figure ends in .png, .svg or .pdf."),
        (("--page", "page.pdf"), "page.pdf: a page ends in .html."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(call: Call, words: tuple[str, ...], sentence: str) -> None:
    ended = call("simulate", *words)
    assert ended.code == 2
    assert sentence in ended.err
    assert ended.err.startswith("restive: ")
    assert ended.err.count("\n") == 1
    assert ended.out == ""


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"transition": 1}', '{"transition": [[[[2]]]], "reward": [1]}'])
def test_a_file_that_is_not_what_it_says_is_named(call: Call, tmp_path: Path, content: str) -> None:
    file = tmp_path / "broken.json"
    file.write_text(content)
    ended = call("solve", "--problem", str(file))
    assert ended.code == 2
    assert str(file) in ended.err


def test_a_folder_that_cannot_be_made_is_named_before_any_simulation(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = call("simulate", "--figure", str(tmp_path / "file" / "figure.png"), "--horizon", "1000000")
    assert ended.code == 2
    assert "file" in ended.err


def test_the_installed_command_answers() -> None:
    done = subprocess.run([sys.executable, "-m", "restive", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == __version__


def test_json_stays_json_where_one_instance_gives_no_error(call: Call) -> None:
    ended = call("simulate", "--instances", "1", "--runs", "1", "--horizon", "3", "--json")
    row = json.loads(ended.out)["policies"][0]
    assert row["reward"]["error"] is None
    assert np.isfinite(row["reward"]["mean"])


def test_an_error_in_ones_own_policy_names_its_line_and_hides_the_rest(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "faulty.py"
    file.write_text(
        "from restive.policies.base import Learner\n"
        "class Faulty(Learner):\n"
        "    def start(self, shape): return ()\n"
        "    def rank(self, belief, state, draws): return state / nothing\n"
    )
    ended = call("simulate", *SMALL, "--policy", str(file))
    assert ended.code == 1
    assert "faulty.py, line 4: NameError: name 'nothing' is not defined. RESTIVE_DEBUG=1" in ended.err
    assert "Traceback" not in ended.err


def test_debugging_shows_everything(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESTIVE_DEBUG", "1")
    monkeypatch.setattr("restive.cli._make", lambda *given: 1 / 0)
    monkeypatch.setattr(signal, "signal", lambda *given: None)
    monkeypatch.setattr(sys, "argv", ["restive", "simulate"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_an_interruption_ends_it_soon_with_a_word_and_its_own_exit_code() -> None:
    words = [
        "simulate",
        "--agents",
        "2000",
        "--horizon",
        "200000",
        "--instances",
        "2",
        "--runs",
        "3",
        "--policy",
        "egt",
    ]
    running = subprocess.Popen(
        [sys.executable, "-m", "restive", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with running:
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(timeout=4)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, "")
    assert err.endswith("restive: interrupted.\n")


def test_a_folder_in_the_way_is_named_before_any_simulation(call: Call, tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    ended = call("simulate", "--page", str(tmp_path / "page.html"), "--horizon", "10000000")
    assert (ended.code, ended.out) == (2, "")
    assert "there is a folder of that name" in ended.err


def test_all_stands_for_every_policy_among_others(call: Call) -> None:
    ended = call("simulate", *SMALL, "--policy", "egt:eta=0.5", "--policy", "all", "--json")
    assert [row["policy"] for row in json.loads(ended.out)["policies"]] == ["egt:eta=0.5", *POLICIES]


def test_infinite_settings_and_a_single_step_are_shown_all_the_same(call: Call, tmp_path: Path) -> None:
    ended = call(
        "simulate",
        *SMALL,
        "--horizon",
        "1",
        "--policy",
        "egt:gamma=-inf",
        "--json",
        "--figure",
        str(tmp_path / "a.png"),
    )
    assert ended.code == 0
    assert json.loads(ended.out, parse_constant=pytest.fail)["policies"][0]["settings"]["gamma"] == "-inf"
