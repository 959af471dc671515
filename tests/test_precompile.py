"""Compilation in other processes: only if something is compiled, on few agents of the same kind, and never left behind."""

import io
import pickle
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from restive import POLICIES, make_policy, make_problems, precompile
from restive.kernels.jit import at_first_compilation, compiled
from restive.precompile import AGENTS, compile_ahead, exercise, exercise_bound, run_tasks
from restive.problem import Problem


@pytest.fixture
def problem() -> Problem:
    first, later = make_problems("two-state-v1", instances=2, agents=30, budget=8, seed=1)
    known = {"features": np.ones((30, 2)), "cost": np.linspace(1, 2, 30), "spend": "at most"}
    return first.replace(**known).change_to(later, 5)


def _add(these: list[Any], more: Any) -> list[Any]:
    these.extend(more)
    return these


def new_kernel() -> Any:
    def add(one: int, two: int) -> int:
        return one + two

    return compiled(add)


def test_a_hook_is_called_once_and_only_if_something_is_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    calls: list[str] = []
    with at_first_compilation(lambda: calls.append("idle")):
        pass
    kernel = new_kernel()
    with at_first_compilation(lambda: calls.append("busy")):
        assert (kernel(1, 2), kernel(1.5, 2)) == (3, 3.5)
    assert new_kernel()("a", "b") == "ab"
    assert calls == ["busy"]


def test_processes_are_started_at_the_first_compilation_and_ended_after_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, problem: Problem
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(precompile, "COMMAND", [sys.executable, "-c", "import time; time.sleep(600)"])
    monkeypatch.setattr(precompile, "available_processors", lambda: 3)
    started: list[Any] = []
    begin = precompile._start_processes
    monkeypatch.setattr(precompile, "_start_processes", lambda tasks: _add(started, begin(tasks)))
    policies = [make_policy(name) for name in ("egt", "lagrange", "wiql")]
    with compile_ahead(problem, policies, 100):
        assert started == []
        new_kernel()(1, 2)
        assert [process.poll() for process in started] == [None, None]
    assert all(process.poll() is not None for process in started)


def test_the_slowest_policy_and_the_bound_come_first(monkeypatch: pytest.MonkeyPatch, problem: Problem) -> None:
    given: list[Any] = []
    monkeypatch.setattr(precompile, "_start_processes", lambda tasks: _add(given, tasks)[:0])
    monkeypatch.setattr(precompile, "at_first_compilation", lambda hook: hook() or at_first_compilation(hook))
    with compile_ahead(problem, [make_policy(name) for name in ("egt", "lagrange", "wiql")], 100):
        pass
    assert [task.args[2] for task in given] == [make_policy("lagrange"), 100, make_policy("wiql"), make_policy("egt")]
    assert [task.func for task in given] == [exercise, exercise_bound, exercise, exercise]
    few = Problem(**given[0].args[0], budget=given[0].args[1])
    assert few.shape == (AGENTS, 2)
    assert (few.spend, few.drift is None, few.budget) == ("at most", False, 8)
    np.testing.assert_array_equal(few.cost, problem.cost[:AGENTS])  # type: ignore[index]


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_can_be_exercised(name: str, problem: Problem) -> None:
    exercise(*precompile._cut(problem.replace(drift=None)), make_policy(name))


def test_a_task_that_fails_does_not_stop_the_next(monkeypatch: pytest.MonkeyPatch, problem: Problem) -> None:
    done: list[str] = []
    monkeypatch.setattr(precompile, "exercise_bound", lambda *given: done.append("bound"))
    tasks = [partial(int, "no number"), partial(eval, "__import__('restive').precompile.exercise_bound()")]
    monkeypatch.setattr(sys, "stdin", type("Input", (), {"buffer": io.BytesIO(pickle.dumps(tasks))}))
    run_tasks()
    assert done == ["bound"]
