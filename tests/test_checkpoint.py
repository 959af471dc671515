"""Checkpoints: a loaded simulation continues bit for bit, and files that do not fit are refused."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from restive import InputError, Problem, Simulation, World, checkpoint, make_policy, make_problems
from restive.contract import Draws, Shape
from restive.policies.base import Learner, Policy
from restive.policies.egt import Egt, EgtBelief
from restive.policies.wiql import Wiql
from restive.types import Floats, Ints

CORE = ["random", "egt:gamma=0.1", "wiql:discount=0.7", "threshold-oracle", "greedy-oracle", "whittle-oracle"]


def world_of(**changes: Any) -> World:
    problems = make_problems("many-state-v1", instances=2, agents=5, budget=2, states=3, seed=11)
    return World(**{"problems": problems, "runs": 3, "seed": 2, "noise": 0.3, "horizon": 50, **changes})


def saved(path: Path, policy: str = "egt", steps: int = 10) -> Simulation:
    simulation = Simulation(world_of(), make_policy(policy))
    simulation.advance(steps)
    simulation.save(path)
    return simulation


@pytest.mark.parametrize("policy", CORE)
@pytest.mark.parametrize("pause", [0, 1, 23])
def test_a_restarted_simulation_continues_as_if_uninterrupted(policy: str, pause: int, tmp_path: Path) -> None:
    whole_reward, whole_cost = Simulation(world_of(), make_policy(policy)).advance(50)
    saved(tmp_path / "a.npz", policy, pause)
    again = Simulation.load(tmp_path / "a.npz", world_of())
    assert again.policy == make_policy(policy)
    assert again.step == pause
    reward, cost = again.advance(50 - pause)
    assert reward.tobytes() == np.ascontiguousarray(whole_reward[:, pause:]).tobytes()
    assert cost.tobytes() == np.ascontiguousarray(whole_cost[:, pause:]).tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_many_restarts_change_nothing(tmp_path: Path) -> None:
    whole, _ = Simulation(world_of(), Egt()).advance(12)
    simulation, columns = Simulation(world_of(), Egt()), []
    for _ in range(12):
        columns.append(simulation.advance(1)[0])
        simulation.save(tmp_path / "a.npz")
        simulation = Simulation.load(tmp_path / "a.npz", world_of())
    assert np.array_equal(np.hstack(columns), whole)


def test_a_chunk_is_saved_like_any_world(tmp_path: Path) -> None:
    whole, _ = Simulation(world_of(), Egt()).advance(20)
    simulation = Simulation(world_of().chunk(2, 5), Egt())
    simulation.advance(8)
    simulation.save(tmp_path / "a.npz")
    rest, _ = Simulation.load(tmp_path / "a.npz", world_of().chunk(2, 5)).advance(12)
    assert np.array_equal(rest, whole[2:5, 8:])


def test_continuing_does_not_change_what_was_saved(tmp_path: Path) -> None:
    simulation = saved(tmp_path / "a.npz")
    before = (tmp_path / "a.npz").read_bytes()
    simulation.advance(10)
    Simulation.load(tmp_path / "a.npz", world_of()).advance(10)
    assert (tmp_path / "a.npz").read_bytes() == before


def test_arrays_come_back_bit_for_bit_in_the_record_of_the_policy(tmp_path: Path) -> None:
    simulation = saved(tmp_path / "a.npz")
    loaded = checkpoint.load(tmp_path / "a.npz")
    for name, value in simulation.belief._asdict().items():
        back = loaded.belief[name]
        assert (back.dtype, back.shape, back.tobytes()) == (value.dtype, value.shape, value.tobytes())
    assert loaded.header["step"] == 10
    assert loaded.header["policy"] == "egt"
    assert type(Simulation.load(tmp_path / "a.npz", world_of()).belief) is EgtBelief


class Inner(NamedTuple):
    hits: Floats

    def rate(self) -> Floats:
        return self.hits + 1.0


class Outer(NamedTuple):
    inner: Inner
    flag: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

    def priority(self) -> Floats:
        return -self.inner.rate()


@dataclass(frozen=True)
class Nested(Learner[Outer]):
    """A policy of one's own whose belief has a record within it and methods."""

    name: ClassVar[str] = "nested"
    weights: tuple[float, ...] = (1.0, 2.0)

    def start(self, shape: Shape) -> Outer:
        return Outer(Inner(np.zeros((shape.runs, shape.agents))), np.array([True]))

    def rank(self, belief: Outer, state: Ints, draws: Draws) -> Floats:
        return belief.priority() * self.weights[1]

    def learn(self, belief: Outer, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        belief.inner.hits[...] += action


def test_a_user_policy_continues_too(tmp_path: Path) -> None:
    policy = Nested(weights=(0.0, 3.0))
    whole, _ = Simulation(world_of(), policy).advance(20)
    simulation = Simulation(world_of(), policy)
    simulation.advance(9)
    simulation.save(tmp_path / "a.npz")
    again = Simulation.load(tmp_path / "a.npz", world_of(), Nested)
    assert again.policy == policy
    assert type(again.belief) is Outer
    assert type(again.belief.inner) is Inner
    assert np.array_equal(again.advance(11)[0], whole[:, 9:])


def test_a_user_policy_needs_its_class(tmp_path: Path) -> None:
    simulation = Simulation(world_of(), Nested())
    simulation.save(tmp_path / "a.npz")
    with pytest.raises(
        InputError, match=r"a\.npz: there is no policy 'nested'.*Pass the class of a policy that is not registered"
    ):
        Simulation.load(tmp_path / "a.npz", world_of())


class Loose(NamedTuple):
    hits: Floats


@pytest.mark.parametrize(
    ("belief", "sentence"),
    [
        ({"hits": 1}, "egt: its belief is a dict; it must be a NamedTuple of arrays"),
        ((1, 2), "egt: its belief is a tuple; it must be a NamedTuple of arrays"),
        (Loose(np.array([{}], dtype=object)), r"egt: belief\.hits holds Python objects; it must be an array of plain"),
        (Loose(None), r"egt: belief\.hits holds Python objects"),  # type: ignore[arg-type]
    ],
)
def test_a_belief_that_cannot_be_saved_is_refused_before_anything_is_written(
    belief: Any, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        checkpoint.save(tmp_path / "a.npz", Egt(), belief, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 3},
        {"runs": 2},
        {"noise": 0.0},
        {"problems": make_problems("many-state-v1", instances=2, agents=5, budget=1, states=3, seed=11)},
        {"problems": make_problems("many-state-v1", instances=2, agents=5, budget=2, states=3, seed=12)},
        {"problems": make_problems("many-state-v1", instances=2, agents=5, budget=2, states=4, seed=11)},
        {"problems": make_problems("many-state-v1", instances=1, agents=5, budget=2, states=3, seed=11), "runs": 6},
    ],
)
def test_another_world_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    saved(tmp_path / "a.npz")
    with pytest.raises(
        InputError, match=r"a\.npz: a checkpoint of another world; problem, budget, noise, runs and seed must"
    ):
        Simulation.load(tmp_path / "a.npz", world_of(**changes))


def test_a_checkpoint_without_a_simulation_is_refused_by_a_simulation(tmp_path: Path) -> None:
    world = world_of()
    checkpoint.save(tmp_path / "a.npz", Egt(), Egt().begin(world.shape, world.model), {})
    assert checkpoint.load(tmp_path / "a.npz").policy == Egt()
    with pytest.raises(InputError, match="a checkpoint of another world"):
        Simulation.load(tmp_path / "a.npz", world)


def rewrite(path: Path, **changes: Any) -> None:
    """The same file with other entries in its header; None takes one out."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = {**json.loads(str(arrays.pop("header"))), **changes}
    header = {key: value for key, value in header.items() if value is not None}
    with path.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"format": "restive-checkpoint-9"},
            r"a\.npz: checkpoint format 'restive-checkpoint-9'; this version reads 'restive-ch",
        ),
        ({"belief": 1}, r"a\.npz: a belief of egt, version 1; egt here has version 2"),
        (
            {"policy": "egtt"},
            r"a\.npz: there is no policy 'egtt'; .*did you mean 'egt'\? Pass the class of",
        ),
        ({"settings": {"warmth": 3}}, r"a\.npz: its settings do not fit this version of egt \(.*warmth"),
        ({"settings": {"eta": -3}}, r"a\.npz: its settings do not fit this version of egt \(egt: eta is -3"),
        ({"format": None}, r"a\.npz: not a checkpoint \(its header is missing or incomplete\)"),
        ({"settings": None}, r"a\.npz: not a checkpoint \(its header is missing or incomplete\)"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    saved(tmp_path / "a.npz")
    rewrite(tmp_path / "a.npz")
    assert checkpoint.load(tmp_path / "a.npz").policy == Egt()
    rewrite(tmp_path / "a.npz", **changes)
    with pytest.raises(InputError, match=sentence):
        checkpoint.load(tmp_path / "a.npz")


def test_the_checkpoint_of_one_policy_is_refused_by_another(tmp_path: Path) -> None:
    saved(tmp_path / "a.npz", "egt")
    with pytest.raises(InputError, match=r"a\.npz: a belief of egt, version 2; wiql here has version 1"):
        checkpoint.load(tmp_path / "a.npz", Wiql)


@pytest.mark.parametrize("header", ["not json", "3", "[1]", '"text"', "null"])
def test_a_header_that_cannot_be_read_is_refused(header: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", header=np.array(header))
    with pytest.raises(InputError, match=r"a\.npz: not a checkpoint \(its header"):
        checkpoint.load(tmp_path / "a.npz")


def test_other_files_are_refused(tmp_path: Path) -> None:
    make_problems("two-state-v1", agents=2, budget=1)[0].save(tmp_path / "problem.npz")
    with pytest.raises(InputError, match=r"problem\.npz: not a checkpoint \(its header"):
        checkpoint.load(tmp_path / "problem.npz")
    for content in (b"", b"hello"):
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.npz: not an \.npz file of plain arrays"):
            checkpoint.load(tmp_path / "a.npz")
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "none.npz")
    saved(tmp_path / "b.npz")
    with pytest.raises(InputError, match=r"b\.npz: budget and reward and transition missing"):
        Problem.load(tmp_path / "b.npz")


def test_a_pickle_in_a_checkpoint_is_refused(tmp_path: Path) -> None:
    simulation = saved(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["belief.visits"] = simulation.belief.visits.astype(object)
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(
        InputError, match=r"a\.npz: not an \.npz file of plain arrays \(.*Object arrays cannot be loaded"
    ):
        checkpoint.load(tmp_path / "a.npz")


def test_a_checkpoint_cut_short_or_flipped_anywhere_is_refused_or_harmless(tmp_path: Path) -> None:
    simulation = saved(tmp_path / "whole.npz")
    content, path = (tmp_path / "whole.npz").read_bytes(), tmp_path / "spoilt.npz"
    for length in range(0, len(content), 101):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"spoilt\.npz: not an \.npz file"):
            checkpoint.load(path)
    refused = 0
    for place in range(0, len(content), 13):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        try:
            again = Simulation.load(path, world_of())
        except InputError:
            refused += 1
        else:
            assert again.state.tobytes() == simulation.state.tobytes()
            assert again.belief.visits.tobytes() == simulation.belief.visits.tobytes()
            assert again.belief.total.tobytes() == simulation.belief.total.tobytes()
    assert refused > 100


def test_a_half_written_checkpoint_never_replaces_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = saved(tmp_path / "a.npz")
    before = (tmp_path / "a.npz").read_bytes()

    def stop(file: Any, **_: Any) -> None:
        file.write(before[: len(before) // 2])
        raise OSError("the disk is full")

    monkeypatch.setattr(np, "savez", stop)
    simulation.advance(1)
    with pytest.raises(OSError, match="the disk is full"):
        simulation.save(tmp_path / "a.npz")
    assert (tmp_path / "a.npz").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize("gamma", [float("inf"), float("-inf"), None, 0.1, 1 / 3])
def test_settings_come_back_exactly(gamma: float | None, tmp_path: Path) -> None:
    policy: Policy[Any] = Egt(gamma=gamma, eta=0.1 + 0.2)
    world = world_of()
    checkpoint.save(tmp_path / "a.npz", policy, policy.begin(world.shape, world.model), {})
    assert checkpoint.load(tmp_path / "a.npz").policy == policy


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda arrays: arrays.update(state=arrays["state"] + 10**9), "states go from 0 to 2"),
        (lambda arrays: arrays.update(state=arrays["state"][:, :2]), "its arrays are not those of egt in this world"),
        (lambda arrays: arrays.update({"belief.visits": arrays["belief.visits"][:, :2]}), "its arrays are not those"),
        (lambda arrays: arrays.pop("belief.visits"), "its arrays are not those"),
        (lambda arrays: arrays.pop("state"), "its arrays are not those"),
    ],
)
def test_a_checkpoint_whose_arrays_do_not_fit_is_refused(tmp_path: Path, spoil: Any, sentence: str) -> None:
    saved(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        arrays = dict(archive)
    spoil(arrays)
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=f"a damaged checkpoint; {sentence}"):
        Simulation.load(tmp_path / "a.npz", world_of())
