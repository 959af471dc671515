"""The desk through the library: the same choices as the simulation, and nothing lost between two processes' lives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from restive import make_problems
from restive.desk import Desk, Program, StoreError
from restive.desk.config import TEMPLATES
from restive.desk.desk import default_store, make_config, name_store, open_desk, refuse_taken
from restive.desk.replay import digest, replay
from restive.errors import InputError
from restive.policies.belief import flatten
from restive.simulation import Simulation
from restive.world import World

LEARNERS = ["random", "egt", "wiql", "ucwhittle", "thompson-whittle", "cet-whittle", "lagrange", "rma2b"]
HORIZON = 40


def names(agents: int) -> list[str]:
    return [f"a{number:03}" for number in range(agents)]


def states_of(state: Any) -> dict[str, int]:
    return dict(zip(names(state.size), state.tolist(), strict=True))


def outcomes_of(action: Any, reward: Any, after: Any) -> list[dict[str, Any]]:
    return [
        {"agent": agent, "done": bool(done), "reward": float(gain), "next_state": int(then)}
        for agent, done, gain, then in zip(names(action.size), action, reward, after, strict=True)
    ]


@pytest.mark.parametrize("policy", LEARNERS)
def test_desk_agrees_with_simulation_across_restarts(policy: str, tmp_path: Path) -> None:
    agree_with_simulation(policy, tmp_path / "desk.db", steps=12, restart_every=4)


@pytest.mark.soak
@pytest.mark.parametrize("policy", LEARNERS)
def test_desk_agrees_with_simulation_when_every_step_is_another_process(policy: str, tmp_path: Path) -> None:
    agree_with_simulation(policy, tmp_path / "desk.db", steps=HORIZON, restart_every=1)


def agree_with_simulation(policy: str, store: Path, steps: int, restart_every: int) -> None:
    """Play both side by side; a snapshot now and then, so that restarts find one of just now, or of some rounds ago."""
    problem = make_problems("two-state-v1", agents=12, budget=3, seed=4)[0]
    world = World(problem, seed=9, noise=0.1, horizon=HORIZON)
    simulation = Simulation(world, make(policy))
    settings: dict[str, Any] = {"budget": 3, "horizon": HORIZON, "seed": 9, "control": 0.0, "reward_range": 1.0}
    with Desk(store) as desk:
        desk.create("same", states=["bad", "good"], policy=policy, **settings)
    for first in range(0, steps, restart_every):
        with Desk(store) as desk:
            program = desk.program("same")
            for step in range(first, first + restart_every):
                play_step(program, simulation, world, step)
                if step % 15 == 3:
                    program.cache.save(now=True)
    mine, theirs = flatten(program.projection.policy_states["policy"].belief), flatten(simulation.belief)
    assert mine.keys() == theirs.keys()
    for name, array in theirs.items():
        assert np.array_equal(mine[name], array), name


def play_step(program: Program, simulation: Any, world: World, step: int) -> None:
    recommendation = program.decide(states_of(simulation.state[0]))
    _, action = simulation.decide()
    chosen = np.isin(names(12), recommendation.chosen)
    assert chosen.tolist() == (action[0] == 1).tolist(), step
    outcome = world.advance(simulation.state, action, world.draws(step))
    simulation.policy.learn(simulation.belief, simulation.state, action, outcome.reward, outcome.after)
    simulation.state, simulation.step = outcome.after, step + 1
    program.learn(outcomes_of(action[0], outcome.reward[0], outcome.after[0]))


def make(policy: str) -> Any:
    from restive import make_policy

    return make_policy(policy)


def play(program: Any, rounds: int, seed: int = 1, wrong: bool = False) -> None:
    """Thirty people, some missing, some late, some actions that fail; `wrong` reports one outcome wrong."""
    generator = np.random.default_rng(seed)
    state = generator.integers(2, size=30)
    for round_ in range(rounds):
        there = generator.random(30) < 0.9
        states = {name: int(code) for name, code, here in zip(names(30), state, there, strict=True) if here}
        recommendation = program.decide(states)
        took_part = [int(name[1:]) for name in program.names.call(program.get_round(recommendation.round).number)]
        done = np.array([generator.random() < 0.8 and name in ACTED[round_ % 3] for name in names(30)])
        after = (generator.random(30) < np.where(done, 0.8, 0.3)).astype(int)
        rows: list[dict[str, Any]]
        rows = [{"agent": names(30)[n], "done": bool(done[n]), "next_state": int(after[n])} for n in took_part]
        if wrong and round_ == 2:
            rows[4] |= {"next_state": 1 - rows[4]["next_state"], "done": not rows[4]["done"]}
        program.learn(rows[:20], round=recommendation.round)
        if round_ % 2:
            program.learn(rows[20:], round=recommendation.round)
        state = after


ACTED = [set(names(30)[0:5]), set(names(30)[7:11]), set(names(30)[20:27])]


@pytest.mark.parametrize("policy", ["lagrange", "egt", "thompson-whittle"])
def test_replay_proves_every_decision_and_the_belief(policy: str, tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create(
            "one", states=["bad", "good"], rewards=[0, 1], policy=policy, shadow="wiql", budget=4, cool_down=2
        )
        play(program, 12)
        found = replay(program)
    assert found.proven
    assert (found.rounds, found.same, found.differing) == (12, 12, [])


@pytest.mark.parametrize("policy", ["lagrange", "egt", "thompson-whittle"])
def test_a_correction_ends_as_if_it_had_been_right_at_once(policy: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"states": ["bad", "good"], "rewards": [0, 1], "policy": policy, "budget": 4, "seed": 3}
    with Desk(tmp_path / "desk.db") as desk:
        right, wrong = (desk.create(name, control=0.0, **settings) for name in ("right", "wrong"))
        play(right, 6)
        play(wrong, 6, wrong=True)
        before = digest(wrong.projection)
        row = right.get_round(3)
        agent = row.number[4]
        name = right.names.call([agent])[0]
        fixed = [{"agent": name, "done": bool(row.done[4]), "next_state": int(row.after[4])}]
        with pytest.raises(Exception, match="another outcome in round 3"):
            wrong.learn(fixed, round=3)
        assert digest(wrong.projection) == before
        taken = wrong.learn(fixed, round=3, correct=True)
        assert (taken.new, taken.corrected, taken.repeated) == (0, 1, 0)
        for one, two in zip(beliefs(right), beliefs(wrong), strict=True):
            assert np.array_equal(one, two)
        assert np.array_equal(right.projection.agents.total, wrong.projection.agents.total)
        assert replay(wrong).proven


def beliefs(program: Any) -> list[Any]:
    return list(flatten(program.projection.policy_states["policy"].belief).values())


OWN = """
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
from restive.policies.base import Learner

class Belief(NamedTuple):
    acted: np.ndarray

@dataclass(frozen=True)
class Fair(Learner):
    name = "fair"
    weight: float = 1.0

    def start(self, shape):
        return Belief(np.zeros((shape.runs, shape.agents)))

    def rank(self, belief, state, draws):
        return -self.weight * belief.acted

    def learn(self, belief, state, action, reward, after):
        belief.acted[...] += action
"""


def test_a_policy_of_ones_own_decides_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "fair.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    with Desk(tmp_path / "desk.db") as desk:
        desk.create("own", states=["bad", "good"], rewards=[0, 1], policy="fair.py:weight=2", budget=1, control=0.0)
    monkeypatch.chdir(tmp_path / "elsewhere")
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.program("own")
        lists = []
        for _ in range(3):
            lists += program.decide(dict.fromkeys("abc", 0)).chosen
            program.learn([{"agent": name, "next_state": 0} for name in "abc"])
        assert sorted(lists) == ["a", "b", "c"]
        assert replay(program).proven


def test_settings_stand_above_those_of_the_template() -> None:
    config = make_config("shops", "pharmacy", budget=7)
    assert (config.budget, config.cool_down, config.template, config.words.action) == (7, 2, "pharmacy", "a coupon")
    template = TEMPLATES["pharmacy"]
    assert (config.states, config.rewards) == (tuple(template["states"]), tuple(template["rewards"]))


def test_states_of_ones_own_do_not_keep_the_rewards_of_a_template() -> None:
    config = make_config("shops", "pharmacy", states=["low", "high"])
    assert (config.states, config.rewards) == (("low", "high"), None)


def test_the_seed_follows_from_the_name_unless_it_is_given() -> None:
    one, same, other = (make_config(name, "pharmacy").seed for name in ("shops", "shops", "schools"))
    assert one == same != other
    assert make_config("shops", "pharmacy", seed=5).seed == 5


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "a program needs states: their names, the worst first, or a template that has them"),
        ({"template": "farmacy"}, "did you mean 'pharmacy'"),
        ({"states": ["low", "high"], "policy": "egtt"}, "there is no policy 'egtt'"),
        ({"states": ["low", "high"], "shadow": "whittle-oracle"}, "is an oracle, which needs the true model"),
        ({"states": ["low", "high"], "policy": "nowhere.py"}, "policy file not found"),
        ({"states": ["low", "high"], "colour": "red"}, "A config has no 'colour'"),
        ({"states": ["low", "high"], "rewards": [1, 2, 3]}, "give 2 numbers, one for each state"),
    ],
)
def test_a_config_that_cannot_be_is_refused_and_no_program_is_made(
    settings: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        with pytest.raises(InputError, match=sentence):
            desk.create("one", **settings)
        assert desk.programs() == []


def test_a_name_that_is_taken_is_refused_and_leaves_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESTIVE_KEYS", str(tmp_path / "keys"))
    with Desk(tmp_path / "desk.db") as desk:
        desk.create("one", template="loyalty")
        with pytest.raises(InputError, match="already has a program 'one'"):
            desk.create("one", template="loyalty", pseudonyms=True)
        assert [program.name for program in desk.programs()] == ["one"]
    assert not (tmp_path / "keys").exists()


def test_a_desk_without_a_place_is_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_data_dir", lambda *given, **named: str(tmp_path / "data" / "restive"))
    with pytest.raises(InputError, match="there is no store yet"):
        open_desk()
    assert not (tmp_path / "data").exists()
    with Desk() as desk:
        desk.create("one", template="loyalty")
    with open_desk() as desk:
        assert [program.name for program in desk.programs()] == ["one"]
    assert default_store() == tmp_path / "data" / "restive" / "desk.db"


def test_a_command_names_the_store_unless_it_is_the_usual_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_data_dir", lambda *given, **named: str(tmp_path / "data"))
    monkeypatch.delenv("RESTIVE_STORE", raising=False)
    assert name_store(str(default_store())) == ""
    assert name_store("team.db") == " --store team.db"
    assert name_store("the team's.db") == """ --store 'the team'"'"'s.db'"""
    assert name_store("postgresql://ann@host/x?a=1&b=2") == " --store 'postgresql://ann@host/x?a=1&b=2'"
    monkeypatch.setenv("RESTIVE_STORE", "team.db")
    assert name_store("team.db") == ""
    assert name_store("other.db") == " --store other.db"


@pytest.mark.parametrize("store", ["list.csv", "desk", "desk.db.csv", "folder/", ".db"])
@pytest.mark.parametrize("make_one", [False, True])
def test_a_store_that_does_not_end_like_one_is_refused(
    store: str, make_one: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.csv").write_text("agent,state")
    with pytest.raises(InputError, match=r"a store is a file that ends in \.db, or an address such as postgresql://"):
        open_desk(store, make=make_one)
    assert [file.name for file in tmp_path.iterdir()] == ["list.csv"]


@pytest.mark.parametrize("store", ["a.db", "b.sqlite", "c.sqlite3", "sqlite:///d.db"])
def test_stores_end_in_one_of_three_ways(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_desk(store, make=True) as desk:
        desk.create("one", template="loyalty")
    with open_desk(store) as desk:
        assert [program.name for program in desk.programs()] == ["one"]


def test_a_name_is_refused_beforehand_only_where_it_is_taken(tmp_path: Path) -> None:
    store = str(tmp_path / "desk.db")
    refuse_taken("one", store)
    assert not list(tmp_path.iterdir())  # to ask makes no store
    with Desk(store) as desk:
        desk.create("one", template="loyalty")
    refuse_taken("two", store)
    with pytest.raises(InputError, match="already has a program 'one'"):
        refuse_taken("one", store)
    for bad, sentence in ((tmp_path / "no" / "x.db", "There is no folder"), (tmp_path / "x.csv", "ends in .db")):
        with pytest.raises(InputError, match=sentence):
            refuse_taken("one", str(bad))
    assert [program.name for program in Desk(store).programs()] == ["one"]


def test_a_desk_that_is_to_be_read_only_shows_everything_and_takes_nothing(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        recommendation = desk.create("one", template="loyalty", control=0.0, budget=1).decide({"a": 0, "b": 1})
    with Desk(tmp_path / "desk.db", read_only=True) as desk:
        program = desk.program("one")
        assert program.recommendation(1).chosen == recommendation.chosen
        assert replay(program).proven
        with pytest.raises(StoreError, match="nothing of this call was recorded"):
            program.decide({"a": 1})
