"""Features of people: declared once, read with the states, given to the policy, and fixed from then on."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from restive.desk import Desk, Program, TableError
from restive.desk.config import Config
from restive.desk.export import export
from restive.desk.features import check_features
from restive.desk.replay import replay
from restive.errors import InputError
from restive.kernels.rng import run_keys
from restive.problems import make_problems
from restive.simulation import Simulation
from restive.world import World

FEATURES = {"Age": [], "home region": ["North", "South"]}
SETTINGS: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "budget": 1, "control": 0.0, "seed": 1}
THREE: list[dict[str, Any]] = [
    {"agent": "ann", "state": "low", "age": "40", "Home Region": "south"},
    {"agent": "ben", "state": "high", "age": "", "Home Region": "NORTH"},
    {"agent": "cem", "state": "low", "age": "31.5", "Home Region": None},
]
KNOWN = np.array([[40, 0, 1], [np.nan, 1, 0], [31.5, np.nan, np.nan]])


def create(path: Path, name: str = "one", **settings: Any) -> Program:
    return Desk(path / "desk.db").create(name, **{**SETTINGS, "features": FEATURES, **settings})


def test_features_are_recorded_when_people_join_and_given_to_the_policy(tmp_path: Path) -> None:
    program = create(tmp_path)
    assert program.config.features == {"age": (), "home_region": ("North", "South")}
    program.decide(THREE)
    assert np.array_equal(program.projection.agents.features, KNOWN, equal_nan=True)
    program.learn([{"agent": name, "next_state": "high"} for name in ("ann", "ben", "cem")])
    program.decide([{"agent": "dee", "state": "low", "age": 7, "home region": "north"}])
    assert program.projection.agents.features[3].tolist() == [7, 1, 0]
    assert replay(program).proven
    with Desk(tmp_path / "desk.db") as again:
        export(again.program("one"), tmp_path / "export")
    table = pl.read_parquet(tmp_path / "export" / "agents.parquet")
    assert table["age"].to_list() == [40, None, 31.5, 7]
    assert table["home_region"].to_list() == ["South", "North", None, "North"]


def test_features_of_known_people_stay_and_a_note_says_so(tmp_path: Path) -> None:
    program = create(tmp_path)
    assert not [note for note in program.decide(THREE).notes if "feature" in note]
    older = [{**row, "age": "41"} for row in THREE[:1]]
    assert "other features than when they joined, ignored: 1 person (ann)" in program.decide(older, again=True).notes
    assert np.array_equal(program.projection.agents.features, KNOWN, equal_nan=True)
    plain = {"ann": "low", "ben": "low"}
    assert "no column for these features: age, home_region" in program.decide(plain, again=True).notes


def test_all_wrong_cells_are_reported_at_once(tmp_path: Path) -> None:
    wrong = [{**THREE[0], "age": "old"}, {**THREE[1], "Home Region": "east"}, THREE[2]]
    with pytest.raises(TableError) as caught:
        create(tmp_path).decide(wrong)
    assert [fault[:3] for fault in caught.value.faults] == [
        (1, "age", "'old' is not a finite number; write it like 1250 or 2.5"),
        (2, "Home Region", "'east' is not one of North, South"),
    ]


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        ("age", "features is 'age'; it must give the categories of each, none for a number"),
        ({"state": []}, "A feature is called 'state'; it needs a name of its own"),
        ({"a b": [], "A-b": []}, "A feature is called 'A-b'"),
        ({"": []}, "A feature is called ''"),
        ({"region": ["north"]}, r"The categories of region are \['north'\]; give two or more different names, or none"),
        ({"region": ["north", "North"]}, "two or more different names"),
        ({"region": "north"}, "The categories of region are 'north'"),
        ({f"f{n}": [] for n in range(101)}, "The features have 101 numbers and categories; at most 100"),
    ],
)
def test_features_that_cannot_be_are_refused(features: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_features(features)


def test_a_config_with_features_comes_back_from_plain_data() -> None:
    config = Config(("low", "high"), features=FEATURES)
    assert Config.from_json(config.as_json()) == config
    assert config.shape(3).features is not None
    assert Config(("low", "high")).shape(3).features is None
    with pytest.raises(InputError, match="'features' cannot be changed"):
        config.changed({"features": {}})


def test_a_program_with_features_decides_as_a_simulation_with_the_same_seed(tmp_path: Path) -> None:
    (problem,) = make_problems("features-v1", agents=12, budget=3, seed=5)
    assert problem.features is not None
    columns = {f"f{place}": problem.features[:, place].tolist() for place in range(4)}
    settings = {**SETTINGS, "budget": 3, "features": {name: [] for name in columns}, "policy": "lagrange"}
    with Desk(tmp_path / "twin.db") as desk:
        program = desk.create("twin", **settings)
        world = World(problem, seed=1)
        assert np.array_equal(world.keys, run_keys(1, np.zeros(1, np.int64)))
        simulation = Simulation(world, program.projection.policy_states["policy"].policy)
        people = [f"p{n}" for n in range(12)]
        for _ in range(12):
            state = simulation.state[0].tolist()
            chosen = program.decide(pl.DataFrame({"agent": people, "state": state, **columns})).chosen
            _, action = simulation.decide()
            assert sorted(chosen) == sorted(people[n] for n in np.flatnonzero(action[0]))
            simulation.advance()
            after = simulation.state[0].tolist()
            rows = [{"agent": one, "next_state": there} for one, there in zip(people, after, strict=True)]
            program.learn(rows)
