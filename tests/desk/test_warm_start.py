"""Programs that start from a history: people found by id, newcomers, replay, erasure, refusals."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from restive import make_problems
from restive.cli import app
from restive.desk import Desk
from restive.desk.program import Program
from restive.desk.replay import replay
from restive.desk.status import get_status
from restive.errors import InputError
from restive.logs.fit import fit
from restive.logs.generate import generate_history
from restive.logs.model import FittedModel
from restive.logs.tables import read_history

PROBLEM = make_problems("two-state-v1", agents=30, budget=5, seed=3)[0]
MODEL = fit(generate_history(PROBLEM, rounds=40, seed=5), draws=20, types=1, held_out=False)
STATES = PROBLEM.states or ()
PEOPLE = MODEL.agents.to_list()


def create(desk: Desk, history: FittedModel = MODEL, **settings: Any) -> Program:
    return desk.create("warm", history=history, budget=5, seed=2, **settings)


def play(program: Program, rounds: int, people: list[str]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        chosen = program.decide(dict.fromkeys(people, STATES[0])).chosen
        rows = [{"agent": name, "done": name in chosen, "next_state": STATES[rng.integers(2)]} for name in people]
        program.learn(rows)


def moves(program: Program, name: str) -> np.ndarray:
    number = program.names.find_one(name)
    return np.asarray(program.projection.policy_states["policy"].belief.counts.moves[0, number])


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk.db")


def test_states_rewards_and_moves_come_from_the_history(desk: Desk) -> None:
    program = create(desk)
    assert program.config.states == MODEL.states
    assert program.config.rewards == tuple(MODEL.value)
    np.testing.assert_array_equal(moves(program, "p7"), MODEL.counts[7])
    assert [event.kind for event in program.log()] == ["created", "history"]


def test_people_of_the_history_are_not_in_the_program_until_they_have_a_state(desk: Desk) -> None:
    program = create(desk)
    assert get_status(program)["people"] == {"active": 0, "left": 0, "erased": 0, "new": 0, "control": 0}
    found = program.decide({"p3": STATES[0], "p4": STATES[1], "new one": STATES[0]})
    assert list(found.notes) == ["1 new person joined"]
    people = get_status(program)["people"]
    assert (people["active"], people["left"]) == (3, 0)
    assert moves(program, "new one").sum() == 0
    program.leave(["p3"])
    assert get_status(program)["people"]["left"] == 1


def test_the_first_list_follows_the_history(desk: Desk) -> None:
    program = create(desk, control=0.0)
    now = dict.fromkeys(PEOPLE, STATES[0])
    chosen = program.decide(now).chosen
    rows = MODEL.posterior_mean()
    effect = dict(zip(PEOPLE, rows[:, 1, 0, 1] - rows[:, 0, 0, 1], strict=True))
    assert min(effect[name] for name in chosen) > np.mean(list(effect.values())) + 0.1


def test_replay_is_bit_for_bit_also_from_a_snapshot(desk: Desk) -> None:
    program = create(desk)
    play(program, 3, [*PEOPLE[:10], "new one"])
    assert replay(program).proven
    program.cache.save(now=True)
    again = desk.program("warm")
    play(again, 2, PEOPLE[5:])
    assert replay(again).proven


def test_an_erased_person_has_no_name_any_more(desk: Desk) -> None:
    program = create(desk)
    program.erase(["p2"])
    assert program.names.find_one("p2") is None
    assert get_status(program)["people"]["erased"] == 1
    program.decide({"p2": STATES[0], "p5": STATES[0]})
    assert moves(program, "p2").sum() == 0  # whoever comes with that id is new


def test_ids_are_stored_as_codes_if_asked_for(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESTIVE_KEYS", str(tmp_path / "keys"))
    program = create(desk, pseudonyms=True)
    assert "p7" not in program.names.roster.to_list()
    np.testing.assert_array_equal(moves(program, "p7"), MODEL.counts[7])


def test_states_may_be_in_another_order(desk: Desk) -> None:
    program = create(desk, states=list(MODEL.states[::-1]), rewards=[1, 0])
    np.testing.assert_array_equal(moves(program, "p7"), MODEL.counts[7][:, ::-1, ::-1])


def test_groups_given_later_are_no_move(desk: Desk) -> None:
    found = create(desk).decide({"p3": (STATES[0], "north"), "p4": (STATES[0], "south")})
    assert not any("moved" in note for note in found.notes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"states": ["low", "high"]}, "The states of the history are bad, good; those of the program are low, high"),
        ({"policy": "egt"}, "egt cannot start from a history"),
        ({"features": {"age": []}}, "The feature age of the program is a number; the history has no such column"),
    ],
)
def test_what_does_not_match_is_refused(desk: Desk, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        create(desk, **settings)
    assert desk.programs() == []


def test_features_of_the_history_rank_newcomers(desk: Desk) -> None:
    generator = np.random.default_rng(6)
    rows: list[dict[str, object]] = []
    for person in range(80):
        young, now = person % 2 == 0, "low"
        for week in range(12):
            called = bool(generator.random() < 0.5)
            about = {"Age": 20 if young else 60, "Region": ("North", "South", "West")[person % 3]}
            rows.append({"agent": f"p{person}", "time": week, "state": now, "action": int(called), **about})
            now = "high" if generator.random() < (0.9 if young and called else 0.2) else "low"
    model = fit(read_history(rows, rewards={"low": 0, "high": 1}), draws=20, held_out=False)
    program = create(desk, model, control=0.0, features={"age": [], "region": ["north", "south"]})
    known = program.projection.agents.features
    np.testing.assert_array_equal(known[:4], [[20, 1, 0], [60, 0, 1], [20, np.nan, np.nan], [60, 1, 0]])
    newcomers = [{"agent": f"new {age} {k}", "state": "low", "age": age} for age in (20, 60) for k in range(5)]
    found = program.decide(newcomers)
    assert found.chosen == [f"new 20 {k}" for k in range(5)]
    program.learn([{"agent": each["agent"], "next_state": "low"} for each in newcomers])
    program.decide([{"agent": "p0", "state": "low", "age": 20, "region": "north"}])
    assert replay(program).proven
    program.cache.save(now=True)
    np.testing.assert_array_equal(desk.program("warm").projection.agents.features[:80], known[:80])


def test_two_spellings_of_one_id_are_refused(desk: Desk) -> None:
    names = pl.Series(["p1 ", *PEOPLE[1:]])
    with pytest.raises(InputError, match="'p1' is in the history twice"):
        create(desk, replace(MODEL, agents=names))


def test_the_command_takes_the_file_of_a_model(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "model.parquet")
    store = ["--store", str(tmp_path / "desk.db")]
    run = ["desk", "init", "calls", "--history", str(tmp_path / "model.parquet"), *store]
    dry = CliRunner().invoke(app, [*run, "--dry-run"])
    made = CliRunner().invoke(app, run)
    assert "would be created" in dry.output
    assert (made.exit_code, "States: bad, good; rewards: 0, 1." in made.output) == (0, True)
    with Desk(tmp_path / "desk.db") as desk:
        np.testing.assert_array_equal(moves(desk.program("calls"), "p7"), MODEL.counts[7])
