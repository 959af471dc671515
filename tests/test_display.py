"""How results show themselves: short texts, self-contained HTML, frames whose numbers are those of the arrays."""

import re
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure

from restive import (
    Agent,
    Problem,
    Simulation,
    Trace,
    World,
    evaluate,
    examine,
    fit,
    forecast,
    make_policy,
    make_problems,
    plan_trial,
    simulate,
)  # fmt: skip
from restive import display as module
from restive.comparison import Comparison, compare
from restive.logs.generate import generate_history
from restive.logs.sections import DisplayedEstimates, Section, flatten
from restive.report.tables import Table


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return make_problems("two-state-v1", instances=3, agents=6, budget=2)


@pytest.fixture(scope="module")
def comparison(problems: list[Problem]) -> Comparison:
    return compare(problems, ["random", "egt", "whittle-oracle"], horizon=30, runs=2)


@pytest.fixture(scope="module")
def trace(comparison: Comparison) -> Trace:
    return comparison.rows[1].trace


class Answered(DisplayedEstimates):
    numbers, measure = "programs", "lift"

    def as_json(self) -> dict[str, Any]:
        lift = {"mean": 1.0, "low": -0.5, "high": 2.5}
        return {"programs": [{"policy": "egt", "budget": 3, "lift": lift}]}

    def sections(self) -> tuple[Section, ...]:
        return (Section("Lift", ("It brings <1>.", "More."), Table("", ("policy", "lift"), (("egt", "1 & 2"),))),)


def shown(problems: list[Problem], comparison: Comparison) -> list[Any]:
    agent = Agent("egt", ["ann", "bob<"], ["low", "high"], 1)
    agent.act({"ann": "low", "bob<": "high"})
    simulation = Simulation(World(problems), make_policy("egt"))
    history = generate_history(make_problems("two-state-v1", agents=80)[0], rounds=12, seed=1)
    model = fit(history, draws=20, held_out=False)
    said = [history, model, examine(history, max_shuffles=19), evaluate(history, "state:bad", resamples=20)]
    said += [plan_trial(model, people=40, rounds=4, budget=4, trials=40), forecast(model, 2, rounds=3, draws=20)]
    return [problems[0], comparison.rows[0].trace, comparison, simulation, agent, Answered(), *said]


def test_texts_are_short_and_html_needs_nothing_else(problems: list[Problem], comparison: Comparison) -> None:
    for each in shown(problems, comparison):
        text, html = repr(each), each._repr_html_()
        assert "\n" not in text
        assert len(text) < 400
        assert "<table>" in html
        assert not re.search(r"https?:|<script|<link|url\(", html)
        assert html.count("<img") == hasattr(each, "plot")
        assert "bob<" not in html


def test_every_frame_is_read_by_polars_and_pandas(problems: list[Problem], comparison: Comparison) -> None:
    for each in shown(problems, comparison):
        frame = each.to_frame()
        assert frame.height > 0
        assert pl.DataFrame(each).equals(frame)
        pandas = each.to_pandas()
        assert isinstance(pandas, pd.DataFrame)
        assert list(pandas.columns) == frame.columns
        assert len(pandas) == frame.height


def test_the_frame_of_a_trace_has_its_numbers(trace: Trace) -> None:
    frame = trace.to_frame()
    row = frame.filter((pl.col("run") == 3) & (pl.col("step") == 5)).row(0, named=True)
    assert (row["instance"], row["reward"], row["cost"]) == (1, trace.reward[3, 4], trace.cost[3, 4])
    assert frame["reward"].sum() == pytest.approx(trace.reward.sum())


def test_the_frame_of_a_problem_has_its_numbers(problems: list[Problem]) -> None:
    one = problems[0]
    frame = one.to_frame().filter((pl.col("agent") == 2) & (pl.col("action") == 1) & (pl.col("state") == 0))
    assert frame["probability"].to_list() == one.transition[2, 1, 0].tolist()
    assert frame["reward"].to_list() == one.reward[2].tolist()


def test_the_frame_of_a_comparison_has_paired_differences(comparison: Comparison) -> None:
    frame = comparison.to_frame()
    assert frame["reference"].unique().to_list() == ["egt"]
    random, egt = (row.trace.by_instance(row.trace.reward.mean(axis=1)) for row in comparison.rows[:2])
    assert frame["difference"][0] == pytest.approx((random - egt).mean())
    assert frame["difference_error"][0] == pytest.approx((random - egt).std(ddof=1) / np.sqrt(3))
    assert frame["difference"][1] == 0.0


def test_figures_are_drawn_on_axes_that_are_given(
    problems: list[Problem], comparison: Comparison, trace: Trace
) -> None:
    for each in (problems[0], trace, comparison, Answered()):
        axes = Figure().subplots()
        assert each.plot(axes) is axes
        assert axes.lines


def test_without_axes_a_figure_is_made(trace: Trace) -> None:
    with mpl.rc_context({"backend": "agg"}):
        axes = trace.plot()
        assert axes.get_xlabel() == "step"
        from matplotlib import pyplot as plt

        plt.close("all")


def test_without_matplotlib_there_is_the_table(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert "<img" not in trace._repr_html_()


def test_the_parts_of_an_interval_become_columns() -> None:
    assert flatten({"a": 1, "b": {"low": 2, "high": 3}}) == {"a": 1, "b_low": 2, "b_high": 3}
    assert Answered().to_frame().row(0) == ("egt", 3, 1.0, -0.5, 2.5)


def test_traces_of_other_worlds_are_not_compared(problems: list[Problem], trace: Trace) -> None:
    from restive import InputError

    with pytest.raises(InputError, match="seed"):
        trace.lead(simulate(problems, "egt", 30, runs=2, seed=1))
