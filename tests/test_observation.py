"""Unknown states and late outcomes: what a policy gets to see, and that nothing else changes."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from restive import POLICIES, InputError, Problem, Simulation, World, make_policy, make_problems, simulate
from restive.contract import Draws, Model, Shape
from restive.policies.base import Learner, Oracle
from restive.types import Floats, Ints


class Nothing(NamedTuple):
    steps: Ints


class Recorder(Learner[Nothing]):
    """Ranks by state, and writes down what it is shown."""

    def __init__(self) -> None:
        self.ranked: list[Ints] = []
        self.learned: list[tuple[Any, ...]] = []

    def start(self, shape: Shape) -> Nothing:
        return Nothing(np.zeros(1, np.int64))

    def rank(self, belief: Nothing, state: Ints, draws: Draws) -> Floats:
        self.ranked.append(state.copy())
        return state.astype(np.float64)

    def learn(self, belief: Nothing, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        self.learned.append((np.arange(state.shape[1]), state, action, reward, after))

    def learn_some(self, belief: Nothing, agents: Ints, *parts: Any) -> None:
        self.learned.append((agents, *parts))


class Watched(NamedTuple):
    recorder: Recorder
    states: list[Ints]  # the true ones, before each step and after the last
    actions: list[Ints]


def problems() -> list[Problem]:
    return make_problems("many-state-v1", instances=2, agents=40, budget=8, states=3, seed=4)


def watch(steps: int, **observed: Any) -> Watched:
    world, recorder = World(problems(), runs=2, seed=6, noise=0.5, **observed), Recorder()
    simulation = Simulation(world, recorder)
    states, actions = [simulation.state], []
    for _ in range(steps):
        actions.append(simulation.decide()[1])
        simulation.advance()
        states.append(simulation.state)
    recorder.ranked = recorder.ranked[::2]  # decided twice in each step
    return Watched(recorder, states, actions)


def test_unknown_states_are_the_last_known_ones_and_all_are_known_at_first() -> None:
    recorder, states, _ = watch(200, missing=0.2)
    assert np.array_equal(recorder.ranked[0], states[0])
    shown, stale = recorder.ranked[0], 0
    for seen, true in zip(recorder.ranked[1:], states[1:], strict=False):
        same = (seen == true).all(axis=0)
        assert (seen[:, ~same] == shown[:, ~same]).all()
        stale, shown = stale + int((~same).sum()), seen
    assert 0.12 < stale / (199 * 40) < 0.2  # a fifth are unknown, and some of those stay where they were in all runs


def test_a_policy_learns_the_moves_whose_both_states_are_known() -> None:
    recorder, states, actions = watch(200, missing=0.2)
    counts = []
    for step, (agents, state, action, _, after) in enumerate(recorder.learned):
        assert np.array_equal(state, states[step][:, agents])
        assert np.array_equal(action, actions[step][:, agents])
        assert np.array_equal(after, states[step + 1][:, agents])
        counts.append(agents.size)
    assert np.mean(counts) / 40 == pytest.approx(0.64, abs=0.03)


def test_outcomes_arrive_when_they_are_due() -> None:
    recorder, states, actions = watch(30, delay=7)
    assert all(np.array_equal(seen, true) for seen, true in zip(recorder.ranked, states, strict=False))
    assert len(recorder.learned) == 23
    prompt = watch(30).recorder.learned
    for step, late in enumerate(recorder.learned):
        assert np.array_equal(late[1], states[step])
        assert np.array_equal(late[2], actions[step])
        assert all(np.array_equal(one, two) for one, two in zip(late, prompt[step], strict=True))


def test_late_outcomes_with_unknown_states_are_those_known_at_their_own_step() -> None:
    both, known = watch(30, delay=7, missing=0.3).recorder.learned, watch(30, missing=0.3).recorder.learned
    assert len(both) == 23
    assert all(
        np.array_equal(one, two)
        for late, prompt in zip(both, known, strict=False)
        for one, two in zip(late, prompt, strict=True)
    )


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_plays_with_unknown_states_and_late_outcomes(name: str) -> None:
    (problem,) = make_problems("two-state-v1", agents=9, budget=2, seed=3)
    for observed in ({"missing": 0.4}, {"delay": 5}, {"missing": 0.999, "delay": 2}):
        trace = simulate(problem, name, horizon=25, runs=2, **observed)
        assert np.isfinite(trace.reward).all()
        assert trace.spec["missing"] == observed.get("missing", 0.0)


@pytest.mark.parametrize("name", ["egt", "lagrange", "thompson-whittle"])
def test_chunks_and_checkpoints_do_not_change_what_is_observed(name: str, tmp_path: Path) -> None:
    world, policy = World(problems(), 3, seed=5, missing=0.25, delay=4, horizon=30), make_policy(name)
    whole, _ = Simulation(world, policy).advance(30)
    alone = np.vstack([Simulation(world.chunk(run, run + 1), policy).advance(30)[0] for run in range(6)])
    assert np.array_equal(whole, alone)
    stopped = Simulation(world, policy)
    first, _ = stopped.advance(11)
    stopped.save(tmp_path / "half.npz")
    rest, _ = Simulation.load(tmp_path / "half.npz", world).advance(19)
    assert np.array_equal(whole, np.hstack([first, rest]))
    with pytest.raises(InputError, match="a checkpoint of another world"):
        Simulation.load(tmp_path / "half.npz", World(problems(), runs=3, seed=5, horizon=30))


def test_policies_that_do_not_learn_by_rewards_do_not_mind_late_ones() -> None:
    for name in ("random", "whittle-oracle"):
        late, prompt = (simulate(problems(), name, horizon=30, delay=delay).reward for delay in (9, 0))
        assert np.array_equal(late, prompt)


class Whole(Oracle[Nothing]):
    """Learns, but only from all agents at once."""

    def start(self, shape: Shape, model: Model) -> Nothing:
        return Nothing(np.zeros(1, np.int64))

    def rank(self, belief: Nothing, state: Ints, draws: Draws) -> Floats:
        return np.zeros(state.shape)

    def learn(self, belief: Nothing, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        belief.steps[:] += 1


def test_a_policy_that_cannot_learn_from_some_of_the_agents_is_said_so() -> None:
    with pytest.raises(InputError, match="Whole: it learns, but not from some of the agents; define learn_some"):
        simulate(problems(), Whole(), horizon=9, missing=0.2)
    assert simulate(problems(), Whole(), horizon=9, delay=2).reward.shape == (2, 9)


@pytest.mark.parametrize(
    ("observed", "sentence"),
    [
        ({"missing": 1.0}, "missing is 1.0; it is a probability below 1"),
        ({"missing": -0.1}, "missing is -0.1"),
        ({"delay": -1}, "delay is -1"),
        ({"delay": 2.5}, "delay is 2.5"),
    ],
)
def test_what_cannot_be_observed_is_refused(observed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        World(problems(), **observed)
