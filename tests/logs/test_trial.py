"""A trial is read from a table: who would have been acted on from a column or from priorities, or why it is not known."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from restive import History, InputError, make_problems, read_trial
from restive.cli import app
from restive.logs.trial import NAMES, TrialReading, sum_people
from restive.logs.trial_simulation import TrialSimulation, draw_people
from restive.policies import make_policy

PEOPLE, PROGRAM, ROUNDS = 200, 120, 10


def make_table() -> pl.DataFrame:
    """One simulated trial, with the priorities of a fixed index."""
    problem = make_problems("helpful-v1", agents=3000, seed=4)[0]
    trial = TrialSimulation(draw_people(problem, PEOPLE, 5, 1, 5), make_policy("whittle-oracle"), PROGRAM, 7)
    parts = []
    for number in range(ROUNDS):
        state, total = trial.state[0].copy(), trial.total[0].copy()
        action, would_act = trial._decide()
        ranking: Any = trial.policy.rank(trial.belief, trial.state, trial.world.draws(number))
        trial.advance()
        parts.append(
            pl.DataFrame(
                {
                    "agent": np.arange(PEOPLE),
                    "time": np.full(PEOPLE, number + 1),
                    "state": state,
                    "action": action[0],
                    "reward": trial.total[0] - total,
                    "next_state": trial.state[0],
                    "arm": (np.arange(PEOPLE) < PROGRAM).astype(int),
                    "would_act": would_act[0],
                    "priority": ranking.priority[0],
                }
            )
        )
    return pl.concat(parts)


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return make_table()


def read(table: pl.DataFrame, **options: Any) -> TrialReading:
    return read_trial(History.read(table), **options)


def by_name(reading: TrialReading) -> dict[str, float]:
    return {effect.estimator: effect.mean for effect in reading.effects}


def test_sums_are_those_of_the_rows(table: pl.DataFrame) -> None:
    sums, counted, notes = sum_people(History.read(table))
    assert counted.all()
    assert notes == []
    assert sums.total.sum() == pytest.approx(table["reward"].sum())
    first = table.filter(pl.col("would_act")).group_by("agent").agg(pl.col("time").min().alias("first"))
    since = table.join(first, on="agent").filter(pl.col("time") >= pl.col("first"))
    assert sums.since_seen.sum() == since.height
    assert sums.since_total.sum() == pytest.approx(since["reward"].sum())
    assert sums.actions.sum() == 5 * ROUNDS


def test_priorities_say_the_same_as_the_column(table: pl.DataFrame) -> None:
    reading = read(table.drop("priority"))
    assert reading.used.estimator == "onward"
    assert reading.used.error < reading.effects[0].error / 2
    assert by_name(read(table.drop("would_act"))) == by_name(reading)
    assert by_name(read(table.drop("would_act").rename({"priority": "index"}))) == by_name(reading)


def test_the_interval_of_a_look_is_wider(table: pl.DataFrame) -> None:
    early, late, single = (
        read(table, looks=[0.5, 1.0], look=1),
        read(table, looks=[0.5, 1.0]),
        read(table),
    )
    widths = [float(np.diff(each.interval(each.used))[0]) for each in (early, late, single)]
    assert widths[0] > 1.4 * widths[2]
    assert widths[0] > widths[1] > widths[2]
    assert early.look is not None
    assert early.look.boundary == pytest.approx(2.963, abs=1e-3)
    assert "look 1 of 2" in early.sections()[0].sentences[0]


def test_one_action_adds_the_lift_of_its_share(table: pl.DataFrame) -> None:
    reading = read(table)
    assert reading.per_action()[0] == pytest.approx(reading.used.mean * PROGRAM * ROUNDS / (5 * ROUNDS))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: t.drop("would_act", "priority"), "does not say whom of the control group"),
        (lambda t: t.with_columns(would_act=pl.when(pl.col("time") > 2).then("would_act")), "empty cells"),
        (lambda t: t.with_columns(action=pl.when(pl.col("agent") == 150).then(1).otherwise("action")), "1 person of the"),
        (lambda t: t.with_columns(advised=pl.when(pl.col("time") > 1).then("action").otherwise(0)), "without being advised"),
    ],
)  # fmt: skip
def test_without_who_would_have_been_acted_on_there_is_only_the_difference_in_means(
    table: pl.DataFrame, change: Any, why: str
) -> None:
    reading = read(change(table))
    assert reading.used.estimator == "base"
    assert {effect.estimator for effect in reading.effects} == {"base", "base, adjusted"}
    assert any(note.startswith("Only the difference in means") and why in note for note in reading.notes)
    assert any(why in sentence for sentence in reading.sections()[0].sentences)


def test_where_everybody_is_touched_nothing_is_gained_and_it_says_so() -> None:
    generator = np.random.default_rng(3)
    rows = {
        "agent": np.repeat(np.arange(80), 2), "time": np.tile([1, 2], 80), "state": generator.integers(0, 2, 160),
        "next_state": generator.integers(0, 2, 160), "reward": generator.random(160),
        "arm": np.repeat(np.arange(80) % 2, 2),
    }  # fmt: skip
    early = rows["time"] == 1
    rows |= {"action": rows["arm"] * early, "would_act": early}
    reading = read(pl.DataFrame(rows))
    assert by_name(reading)["onward"] == pytest.approx(by_name(reading)["base"])
    assert reading.touched_control == 40
    assert reading.used.estimator == "base"
    assert (
        "Nothing is gained by looking at the people acted on: the program acted on 100% of its people." in reading.notes
    )


def test_few_binary_outcomes_are_read_with_pseudo_counts() -> None:
    generator = np.random.default_rng(3)
    people = np.arange(120)
    after = generator.integers(0, 2, 120)
    rows = {"agent": people, "time": np.ones(120, int), "state": generator.integers(0, 2, 120), "next_state": after}
    rows |= {"reward": after, "arm": people % 2, "action": (people % 8 == 1) * 1, "priority": -(people // 2 % 4)}
    reading = read(pl.DataFrame(rows))
    assert reading.used.estimator == "subgroup, with pseudo-counts"
    assert (reading.touched, reading.touched_control) == (15, 15)
    assert any("Only 15 people" in note for note in reading.notes)


def test_a_table_without_arms_and_people_who_change_them_are_refused(table: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="no column 'arm'"):
        read(table.drop("arm"))
    with pytest.raises(InputError, match="changed arms, such as 3"):
        read(table.with_columns(arm=pl.when((pl.col("agent") == 3) & (pl.col("time") == 2)).then(0).otherwise("arm")))


def test_people_without_an_arm_are_left_out(table: pl.DataFrame) -> None:
    reading = read(table.with_columns(arm=pl.when(pl.col("agent") > 1).then("arm")))
    assert reading.program == PROGRAM - 2
    assert "2 people without an arm are left out." in reading.notes


def test_the_command_prints_every_estimator_and_writes_a_page(table: pl.DataFrame, tmp_path: Path) -> None:
    table.write_csv(tmp_path / "trial.csv")
    page, figure = tmp_path / "trial.html", tmp_path / "trial.svg"
    arguments = ["trial", "read", str(tmp_path / "trial.csv"), "--page", str(page), "--figure", str(figure)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    for name in ("base", "subgroup", "reshuffled", "onward"):
        assert NAMES[name] in result.output
    assert "<svg" in page.read_text()
    assert figure.stat().st_size > 1000
    wrong = CliRunner().invoke(app, [*arguments[:3], "--looks", "half"])
    assert wrong.exit_code != 0
