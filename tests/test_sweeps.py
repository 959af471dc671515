"""Sweeps: every problem with every policy, the same on every engine, continued from a folder."""

from pathlib import Path

import pytest

import restive
from restive import InputError, Trace, compare, make_problems, sweep

PROBLEMS = {f"N={n}": make_problems("two-state-v1", instances=2, agents=n, budget=2) for n in (6, 9)}
POLICIES = ["egt", "lagrange:curiosity=0"]


def test_rows_are_those_of_comparisons() -> None:
    found = sweep(PROBLEMS, POLICIES, horizon=40, runs=2, seed=3).to_frame()
    assert found.select("problem", "policy").rows() == [(name, policy) for name in PROBLEMS for policy in POLICIES]
    for name, problems in PROBLEMS.items():
        alone = compare(problems, POLICIES, horizon=40, runs=2, seed=3, bound=False).to_frame().drop("speed")
        assert found.filter(problem=name).drop("problem").equals(alone)


@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_results_do_not_depend_on_the_engine(engine: str) -> None:
    wanted = sweep(PROBLEMS, ["egt"], horizon=20).to_frame()
    assert sweep(PROBLEMS, ["egt"], horizon=20, engine=engine, workers=2).to_frame().equals(wanted)


def test_a_folder_continues_an_earlier_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sweep(PROBLEMS, ["egt"], horizon=20, folder=tmp_path)
    assert len(list(tmp_path.glob("*.parquet"))) == 6  # two problems; egt, the floor and the ceiling
    for path in tmp_path.glob("egt-*.parquet*"):
        path.unlink()
    done: list[tuple[int, int]] = []
    again = sweep(PROBLEMS, ["egt"], horizon=20, folder=tmp_path, progress=lambda *count: done.append(count))
    assert done == [(4, 6), (5, 6), (6, 6)]
    assert again.to_frame().equals(first.to_frame())

    def refuse(*_: object, **__: object) -> Trace:
        raise AssertionError("a kept job is run again")

    monkeypatch.setattr("restive.sweeps.simulate", refuse)
    assert sweep(PROBLEMS, ["egt"], horizon=20, folder=tmp_path).to_frame().equals(first.to_frame())
    with pytest.raises(AssertionError, match="run again"):
        sweep(PROBLEMS, ["egt"], horizon=21, folder=tmp_path)


def test_nothing_to_do_is_refused() -> None:
    with pytest.raises(InputError, match="at least one problem"):
        sweep({}, ["egt"], horizon=20)


def test_the_function_is_a_public_name() -> None:
    assert callable(restive.sweep)
    assert repr(sweep(PROBLEMS, ["egt"], horizon=20)) == "Sweep(problems=2, policies=1, best=egt)"
