"""Reading histories: every form of table, and every bad input refused with its place."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from restive import History, make_problems
from restive.desk import Desk
from restive.desk.export import export
from restive.desk.table_files import write_table_file
from restive.errors import InputError
from restive.logs.columns import HistoryError
from restive.logs.generate import generate_history
from restive.problem import Problem

VALUES = {"low": 0.0, "high": 1.0}
TABLE = pl.DataFrame(
    {
        "agent": ["ann", "ann", "ann", "ben", "ben", "ben"],
        "time": [1, 2, 3, 1, 2, 3],
        "state": ["low", "high", "high", "low", "low", "high"],
        "action": [1, 0, 0, 0, 1, 0],
    }
)


def read(table: object = TABLE, **options: Any) -> History:
    return History.read(table, **({"rewards": VALUES} | options))


def refuse(table: object, **options: Any) -> str:
    with pytest.raises(InputError) as refused:
        read(table, **options)
    return refused.value.message


def change(**columns: Any) -> pl.DataFrame:
    return TABLE.with_columns(**{name: pl.Series(cells, strict=False) for name, cells in columns.items()})


def large(rows: int = 400, seed: int = 1) -> tuple[pl.DataFrame, np.random.Generator]:
    """Twenty rounds of people who were acted on at random."""
    generator = np.random.default_rng(seed)
    states = np.array(["low", "high"])[generator.integers(2, size=rows)]
    frame = {"agent": np.arange(rows) // 20, "time": np.arange(rows) % 20, "state": states}
    return pl.DataFrame(frame | {"action": generator.integers(2, size=rows)}), generator


def test_next_states_and_rewards_come_from_the_next_round() -> None:
    history = read()
    assert history.agents.to_list() == ["ann", "ben"]
    assert history.states == ("low", "high")
    assert history.next_state.tolist() == [1, 1, -1, 0, 1, -1]
    assert np.nan_to_num(history.reward, nan=-1.0).tolist() == [1, 1, -1, 0, 1, -1]
    assert history.last_state.tolist() == [1, 1]
    assert history.value.tolist() == [0, 1]


@pytest.mark.parametrize("ending", ["csv", "tsv", "xlsx", "parquet"])
def test_files_and_frames_give_the_same_history(ending: str, tmp_path: Path) -> None:
    table = change(time=[date(2026, 1, day) for day in (1, 8, 15, 1, 8, 15)], reward=[0.5, 1, 2, 0.5, 3, 2.5])
    file = tmp_path / f"calls.{ending}"
    write_table_file(table, file)
    found = [History.read(source) for source in (file, str(file), table, table.lazy(), table.to_dict(as_series=False))]
    for history in found:
        assert history.next_state.tolist() == [1, 1, -1, 0, 1, -1]
        assert history.rounds.to_list() == [date(2026, 1, 1), date(2026, 1, 8), date(2026, 1, 15)]
        assert history.value.tolist() == [0.5, 1.5]


def test_a_pandas_frame_is_read() -> None:
    assert read(pd.DataFrame(TABLE.to_dict(as_series=False))).next_state.tolist() == [1, 1, -1, 0, 1, -1]


def test_rows_may_come_in_any_order() -> None:
    history = read(TABLE[[5, 0, 3, 2, 4, 1]])
    assert history.agents.to_list() == ["ben", "ann"]
    assert history.next_state.tolist() == [0, 1, -1, 1, 1, -1]


def test_other_headers_states_and_actions_are_mapped() -> None:
    table = change(action=["sms", "no", "no", "no", "call", "no"]).rename({"agent": "Customer ID", "state": "segment"})
    table = table.with_columns(state=pl.lit("Texas"))
    options = {"columns": {"agent": "customer id", "state": "segment"}, "action_is": ["call", "sms"]}
    history = read(table, states=["high", "low"], **options)
    assert history.states == ("high", "low")
    assert history.action.tolist() == [1, 0, 0, 0, 1, 0]
    assert history.value.tolist() == [1, 0]
    assert "no column 'Customer'" in refuse(table, columns={"agent": "Customer"})
    assert "'who' is not a column of a history" in refuse(table, columns={"who": "customer id"})
    assert "no cell is 'visit'; there are 'call', 'no', 'sms'" in refuse(table, **options | {"action_is": ["visit"]})


def test_gaps_stay_gaps_and_the_lost_moves_are_counted() -> None:
    history = read(TABLE.filter(pl.col("agent").eq("ben") | pl.col("time").ne(2)))
    assert history.next_state.tolist() == [-1, -1, 0, 1, -1]
    assert "1 moves of 1 people are lost in gaps: the state in the next round is not known." in history.notes
    empty = read(change(state=["low", None, "high", "low", "low", "high"]))
    assert empty.next_state.tolist() == [-1, -1, 0, 1, -1]
    assert "1 rows without a state are left out." in empty.notes


def test_a_row_without_an_action_is_only_what_followed() -> None:
    history = read(change(action=[1, 0, None, 0, 1, None]))
    assert history.next_state.tolist() == [1, 1, 0, 1]
    assert "2 rows without an action count only as the state that followed." in history.notes


def test_next_states_of_the_table_are_used_and_differences_noted() -> None:
    history = read(change(next_state=["low", "high", "low", "low", "high", None]))
    assert history.next_state.tolist() == [0, 1, 0, 0, 1, -1]
    assert any("In 1 of 4 rows next_state is not the state of the next round" in note for note in history.notes)


@pytest.mark.parametrize(
    ("every", "times", "rounds"),
    [
        ("7d", ["2026-01-01", "2026-01-09", "2026-01-20"], [1, 2, 3]),
        ("1w", ["2026-01-01 09:30", "2026-01-09T10:00:05", "2026-01-20"], [1, 2, 3]),
        ("1mo", ["2025-11-30", "2025-12-01", "2026-02-10"], [1, 2, 4]),
        ("12h", ["2026-01-01T09:30Z", "2026-01-01T21:15Z", "2026-01-02T09:31Z"], [1, 2, 3]),
        ("7", ["3", "12", "20"], [1, 2, 3]),
    ],
)
def test_rounds_are_periods_of_a_stated_length(every: str, times: list[str], rounds: list[int]) -> None:
    history = read(change(time=times * 2), every=every)
    assert history.round.tolist() == rounds * 2
    assert len(history.rounds) == rounds[-1]


def test_dates_with_a_time_zone_are_read_as_utc() -> None:
    times = pl.Series([datetime(2026, 1, day) for day in (1, 2, 3, 1, 2, 3)]).dt.replace_time_zone("Europe/Berlin")
    assert read(change(time=times)).rounds.dtype == pl.Datetime("us")


def test_uneven_times_are_noted() -> None:
    assert any("Times are 1 to 3 apart" in note for note in read(change(time=[1, 2, 5] * 2)).notes)


def test_columns_that_never_change_are_features() -> None:
    table, generator = large()
    person = np.arange(400) // 20
    table = table.with_columns(
        age=pl.Series(30.0 + person % 7), region=pl.Series(np.array(["north", "south", "west"])[person % 3]),
        phone=pl.Series(5000 + person), country=pl.lit("CH"), steps=pl.Series(generator.random(400)),
        comment=pl.Series([f"text {place}" for place in range(400)]),
    )  # fmt: skip
    history = read(table)
    assert history.features is not None
    assert history.feature_names == ("age", "region=north", "region=south", "region=west")
    assert history.features[:3].tolist() == [[30, 1, 0, 0], [31, 0, 1, 0], [32, 0, 0, 1]]
    assert list(history.by_row) == ["steps"]
    assert history.select(history.round == 1).by_row["steps"].size == 20
    left_out = [note for note in history.notes if note.startswith("Not used as features")]
    assert [note.partition(": ")[2].partition(" (")[0] for note in left_out] == ["phone", "country", "steps", "comment"]
    named = read(table, features=("steps", "phone"))
    assert named.feature_names == ("phone", "steps")
    assert named.features is not None
    assert named.features[:, 1].tolist() == history.by_row["steps"][::20].tolist()
    assert "there is no other column 'stepps'; did you mean 'steps'?" in refuse(table, features=("stepps",))


def test_arms_groups_advice_and_availability_are_read() -> None:
    history = read(
        change(
            arm=["program"] * 3 + ["control"] * 3, group=["north"] * 3 + [None] * 3, advised=[1, 0, 0, 0, 0, 0],
            available=[True, True, False, True, True, False],
        )
    )  # fmt: skip
    assert history.arm is not None and history.arm.tolist() == [1, 1, 1, 0, 0, 0]  # noqa: PT018
    assert history.group is not None and history.group.tolist() == [0, 0, 0, -1, -1, -1]  # noqa: PT018
    assert history.groups == ("north",)
    assert history.available is not None and history.available.sum() == 4  # noqa: PT018
    assert "row 1, column arm: 'both' is not control (0) or program (1)" in refuse(change(arm=["both"] * 6))
    assert "row 1, column available: empty" in refuse(change(available=[None, 1, 1, 1, 1, 1]))
    assert "row 1, column action: acted on, although" in refuse(change(available=[0, 1, 1, 1, 1, 1]))


# Bad input: nothing is guessed.


def test_the_same_agent_and_time_twice_is_refused_with_both_rows() -> None:
    refused = refuse(change(time=[1, 2, 2, 1, 2, 3]))
    assert refused == "history, row 3, column agent: 'ann' appears twice at 2, also in row 2; keep one"


def test_states_that_differ_by_case_or_blanks_are_refused_with_the_near_match() -> None:
    refused = refuse(change(state=["low", "High", "high", "low", "low ", "high"]))
    assert "row 2, column state: 'High' differs from 'high' only by case or blanks" in refused
    assert "row 5, column state: 'low ' differs from 'low' only by case or blanks" in refused
    assert "'medium' is not a state; they are low, high" in refuse(change(state=["medium"] * 6), states=["low", "high"])


def test_an_action_that_is_not_0_or_1_is_refused() -> None:
    refused = refuse(change(action=["yes", "0", "1", "no", "0", "1"]))
    assert "row 1, column action: 'yes' is not 0 or 1; set action-is" in refused
    assert "row 4, column action: 'no' is not 0 or 1" in refused
    refused = refuse(change(action=["yes", "no", "no", "no", "no", "yes"]))
    assert refused.endswith("column action: no cell is 0 or 1; set action-is to those that mean acting: 'no', 'yes'")
    assert read(change(action=["True", "False"] * 3)).action.tolist() == [1, 0] * 3


def test_rewards_on_departure_are_detected_and_can_be_stated() -> None:
    table, generator = large()
    own = pl.Series((table["state"] == "high").cast(pl.Float64) * 3 + generator.normal(size=400))
    arrival = own.shift(-1)
    assert "set reward-on to departure" in refuse(table.with_columns(reward=own), rewards={})
    assert "set reward-on to departure" in refuse(
        table.with_columns(reward=(table["state"] == "high").cast(pl.Float64)), rewards={}
    )
    for options, reward in (({"reward_on": "departure"}, own), ({}, arrival), ({"reward_on": "arrival"}, arrival)):
        history = read(table.with_columns(reward=reward), rewards={}, **options)
        assert history.value.round(0).tolist() == [0, 3]
    assert "it must be arrival or departure" in refuse(table, reward_on="leaving")


def test_rewards_that_do_not_depend_on_states_are_not_called_on_departure() -> None:
    table, generator = large()
    for reward in (generator.normal(size=400), np.ones(400), 1.0 * (np.arange(400) // 20)):
        read(table.with_columns(reward=pl.Series(reward)), rewards={})


def test_impossible_propensities_are_refused_by_row() -> None:
    refused = refuse(change(propensity=[0, 1, 0.5, 0.5, 1.5, None]))
    assert "row 1, column propensity: the probability is 0, but the person was acted on" in refused
    assert "row 2, column propensity: the probability is 1, but the person was not acted on" in refused
    assert "row 5, column propensity: 1.5 is not a probability from 0 to 1" in refused
    assert "row 6, column propensity: empty" in refused


def test_a_probability_of_what_was_done_is_detected_and_can_be_stated() -> None:
    table, generator = large(2000)
    acting = generator.uniform(0.1, 0.6, 2000)
    table = table.with_columns(action=pl.Series((generator.random(2000) < acting).astype(int)))
    acted = table["action"].to_numpy() == 1
    done = table.with_columns(propensity=pl.Series(np.where(acted, acting, 1 - acting)))
    assert "set propensity-of to done" in refuse(done)
    assert "set propensity-of to done" in refuse(table.with_columns(propensity=pl.lit(1.0)))
    right = read(done, propensity_of="done").propensity
    assert right is not None
    assert np.allclose(right, acting)
    assert read(table.with_columns(propensity=pl.Series(acting))).propensity is not None
    assert read(done, propensity_of="acting").propensity is not None


def test_propensities_of_advice_may_differ_from_what_was_done() -> None:
    table = change(advised=[0, 1, 0, 0, 0, 0], propensity=[0, 1, 0.5, 0.5, 0.5, 0.5])
    assert read(table).propensity is not None


@pytest.mark.parametrize(("action", "who"), [(0, "Nobody was ever"), (1, "Everybody was always")])
def test_one_action_alone_is_noted(action: int, who: str) -> None:
    history = read(change(action=[action] * 6))
    assert history.actions == (action,)
    assert any(note.startswith(f"{who} acted on") for note in history.notes)


def test_acting_by_state_alone_is_noted() -> None:
    history = read(change(action=[1, 0, 0, 1, 1, 0]))
    assert history.decided_by_state
    assert (
        "Acting was decided by the state alone: its effect cannot be separated from that of the state." in history.notes
    )
    assert not read().decided_by_state


def test_states_known_only_when_acted_on_are_refused() -> None:
    table, _ = large()
    known = pl.when(pl.col("action") == 1).then("state")
    message = "is known only of people who were acted on"
    assert f"column state: the state {message}" in refuse(table.with_columns(state=known))
    assert f"column next_state: the state that follows {message}" in refuse(table.with_columns(next_state=known))


def test_fewer_than_30_moves_are_noted() -> None:
    assert any("Fewer than 30 moves" in note and "acting in low (2)" in note for note in read().notes)
    table, _ = large()
    assert not any("Fewer than 30 moves" in note for note in read(table).notes)


def test_all_faults_are_reported_at_once() -> None:
    table = change(time=["1", "soon", "3", "1", "2", "2"], action=["1", "0", "2", "0", "1", "0"], agent=["ann"] * 6)
    with pytest.raises(HistoryError) as refused:
        read(table)
    assert refused.value.code == "invalid_history"
    assert [(fault.row, fault.column) for fault in refused.value.faults] == [
        (2, "time"), (3, "action"), (4, "agent"), (6, "agent"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (TABLE.drop("action"), {}, "there is no column 'action'; the columns are 'agent', 'time', 'state'"),
        (TABLE.rename({"action": "actions"}), {}, "there is no column 'action'; did you mean 'actions'?"),
        (TABLE.head(0), {}, "there are no rows below the header"),
        (TABLE, {"rewards": {}}, "no column 'reward'; set the reward of each state (rewards)"),
        (TABLE, {"rewards": {"low": 0}}, "'high' has no reward; rewards are needed for high, low"),
        (TABLE, {"rewards": VALUES | {"mid": 0}}, "'mid' is not a state; rewards are needed for high, low"),
        (change(time=[1, 3, 5, 2, 4, 6]), {}, "no move is known: nobody has states in two successive rounds; set"),
        (change(time=["01/02/2026"] * 6), {}, "day and month of '01/02/2026' can be confused"),
        (change(time=["yesterday"] * 6), {}, "is not a whole number and not a date like 2026-11-17"),
        (change(time=[None, 2, 3, 1, 2, 3]), {}, "row 1, column time: empty"),
        (TABLE, {"every": "7d"}, "the times are whole numbers; a period of '7d' is not"),
        (TABLE, {"every": "weekly"}, "'weekly' is not a period; write it like 7d"),
        (change(agent=[" ", "ann", "ann", "ben", "ben", "ben"]), {}, "row 1, column agent: the id is empty"),
        (change(reward=["x"] * 6), {"rewards": {}}, "'x' is not a finite number"),
        (large()[0].with_columns(state=pl.col("time") * 100 + pl.col("agent")), {}, "400 different states, such as"),
        ("missing.csv", {}, "File not found: missing.csv. A program of the desk is named program:NAME."),
    ],
)
def test_what_cannot_be_read_is_refused(table: object, options: dict[str, Any], message: str) -> None:
    assert message in refuse(table, **options)


def test_a_generated_history_is_read_back_as_it_was(tmp_path: Path) -> None:
    problem = make_problems("two-state-v1", instances=1, agents=20)[0]
    problem = Problem(problem.transition, np.array([0.0, 1.0]), 2, states=("bad", "good"))
    history = generate_history(problem, rounds=6, seed=2)
    names = pl.Series(history.states)
    file = tmp_path / "history.csv"
    write_table_file(
        pl.DataFrame(
            {
                "agent": history.agents.gather(history.agent), "time": history.round, "action": history.action,
                "state": names.gather(history.state), "next_state": names.gather(history.next_state),
                "reward": history.reward, "propensity": history.propensity,
            }
        ),
        file,
    )  # fmt: skip
    found = History.read(file)
    for name in ("agent", "round", "state", "action", "next_state", "reward", "propensity", "value"):
        assert np.array_equal(getattr(found, name), getattr(history, name)), name


def test_a_program_of_the_desk_and_its_export_are_histories(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create(
            "calls",
            states=["low", "high"],
            rewards=[0, 5],
            budget=1,
            control=0.3,
            seed=1,
            policy="random",
            features={"age": ()},
        )
        people = [{"agent": name, "group": "north", "age": 30 + ord(name[0])} for name in ("ann", "ben", "cem", "dee")]
        for state in ("low", "high"):
            program.decide([{**person, "state": state} for person in people])
            program.learn([{"agent": person["agent"], "next_state": "high"} for person in people])
        program.erase(["ann"])
        direct = History.read(program)
        export(program, tmp_path / "out")
    named = History.read("program:calls", store=str(tmp_path / "desk.db"))
    exported = History.read(tmp_path / "out", rewards={"low": 0, "high": 5})
    for history in (direct, named, exported):
        assert history.agents.to_list() == ["(erased) 0", "ben", "cem", "dee"]
        assert history.states == ("low", "high")
        assert history.next_state.tolist() == [1] * 8
        assert history.value.tolist()[1] == 5
        assert history.arm is not None and set(history.arm.tolist()) == {0, 1}  # noqa: PT018
        assert history.advised is not None and history.advised.sum() == 2  # noqa: PT018
        assert np.array_equal(history.advised, history.action)
        assert history.propensity is not None
        assert history.propensity.reshape(4, 2).sum(axis=0).round(9).tolist() == [1, 1]
        assert history.feature_names == ("age",)
        assert history.groups == ("north",)
    with Desk(tmp_path / "desk.db") as desk:
        desk.create("new", states=["low", "high"], rewards=[0, 5], budget=1)
        assert "Program 'new' has no rounds yet." in refuse(desk.program("new"))
    assert "is not an export of a program" in refuse(tmp_path)
