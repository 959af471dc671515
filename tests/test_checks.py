"""The checks pass for everything that ships, and each of them catches the fault it is there for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from restive import POLICIES, PROBLEMS, Problem, make_policy, make_problems
from restive.checks import CheckError, check_policy, check_problem
from restive.contract import Draws, Estimate, Model, Ranking, Shape
from restive.policies.base import Learner
from restive.types import Floats, Ints


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_fulfils_the_contract_with_two_states(name: str) -> None:
    check_policy(make_policy(name))


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_fulfils_the_contract_with_four_states(name: str) -> None:
    check_policy(make_policy(name), make_problems("many-state-v1", agents=5, budget=2, seed=1, states=4)[0])


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("budget", [0, 3])
def test_every_policy_works_when_nobody_or_everybody_is_acted_on(name: str, budget: int) -> None:
    check_policy(make_policy(name), make_problems("two-state-v1", agents=3, budget=budget, seed=2)[0])


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_works_with_agents_of_a_single_state(name: str) -> None:
    check_policy(make_policy(name), Problem(np.ones((3, 2, 1, 1)), [1.0], budget=1))


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_passes_its_checks(name: str) -> None:
    check_problem(make_problems(name)[0])


class Memory(NamedTuple):
    seen: Floats


@dataclass(frozen=True)
class Sound(Learner[Any]):
    """A policy with nothing wrong, for the faulty ones to spoil."""

    name: ClassVar[str] = "sound"

    def start(self, shape: Shape) -> Any:
        return Memory(np.zeros((shape.runs, shape.agents, shape.states)))

    def rank(self, belief: Any, state: Ints, draws: Draws) -> Ranking | Floats:
        return -np.take_along_axis(belief.seen, state[..., None], axis=2)[..., 0]

    def learn(self, belief: Any, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        runs, agents = np.indices(state.shape)
        belief.seen[runs, agents, state] += reward


class Forgetful(Sound):
    def start(self, shape: Shape) -> Any:
        return {"seen": np.zeros(1)}


class Hoarder(Sound):
    def start(self, shape: Shape) -> Any:
        return Memory([0.0])  # type: ignore[arg-type]


class Undecided(Sound):
    def rank(self, belief: Any, state: Ints, draws: Draws) -> Floats:
        return np.full(state.shape, np.nan)


class Overeager(Sound):
    def rank(self, belief: Any, state: Ints, draws: Draws) -> Ranking:
        return Ranking(np.zeros(state.shape), np.full(state.shape[0], 1.5))


class Meddler(Sound):
    def rank(self, belief: Any, state: Ints, draws: Draws) -> Ranking | Floats:
        state[:] = 0
        return super().rank(belief, state, draws)


class Forger(Sound):
    def learn(self, belief: Any, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        reward[:] = 0.0


class Assigner(Sound):
    def learn(self, belief: Any, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        belief.seen += 1.0


class Fickle(Sound):
    def rank(self, belief: Any, state: Ints, draws: Draws) -> Ranking | Floats:
        belief.seen[:] += 1.0
        return belief.seen[:, :, 0].copy()  # type: ignore[no-any-return]


class Dreamer(Sound):
    def rank(self, belief: Any, state: Ints, draws: Draws) -> Floats:
        return np.random.default_rng().random(state.shape)


class Wanderer(Sound):
    """Draws on what is around it, but once a step only."""

    def learn(self, belief: Any, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        belief.seen[:] += np.random.default_rng().random(belief.seen.shape)


class Gossip(Sound):
    def rank(self, belief: Any, state: Ints, draws: Draws) -> Ranking | Floats:
        noise: Floats = np.sin(1e3 * draws.uniform().sum() * np.arange(1, state.shape[1] + 1))
        return np.broadcast_to(noise, state.shape).copy()


class Secretive(Sound):
    """Counts what it has learnt outside the belief."""

    calls: ClassVar[dict[int, int]] = {}

    def rank(self, belief: Any, state: Ints, draws: Draws) -> Ranking | Floats:
        noise = draws.uniform()
        return np.roll(noise, 1, axis=1) if self.calls.get(id(belief.seen), 0) > 30 else noise

    def start(self, shape: Shape) -> Any:
        belief = super().start(shape)
        self.calls[id(belief.seen)] = 0
        return belief

    def learn(self, belief: Any, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        self.calls[id(belief.seen)] = self.calls.get(id(belief.seen), 0) + 1


class Peeker(Sound):
    def begin(self, shape: Shape, model: Model) -> Any:
        return Memory(model.transition[model.instance, :, 1, :, 1].copy())


class RewardPeeker(Sound):
    def begin(self, shape: Shape, model: Model) -> Any:
        return Memory(model.reward[model.instance].copy())


class FirstComer(Sound):
    def rank(self, belief: Any, state: Ints, draws: Draws) -> Floats:
        return np.broadcast_to(-np.arange(state.shape[1], dtype=float), state.shape).copy()


class Middle(Sound):
    def rank(self, belief: Any, state: Ints, draws: Draws) -> Floats:
        places = np.arange(state.shape[1]) - (state.shape[1] - 1) / 2
        return np.broadcast_to(-np.abs(places), state.shape).copy()


class Flat(Sound):
    def estimate(self, belief: Any, state: Ints) -> Estimate:
        return Estimate(*np.zeros((3, state.shape[1])))


class Pollster(Sound):
    def estimate(self, belief: Any, state: Ints) -> Estimate:
        belief.seen[:] += 1.0
        return super().estimate(belief, state)


class NegativeNoise(Sound):
    def estimate(self, belief: Any, state: Ints) -> Estimate:
        return super().estimate(belief, state)._replace(noise=np.full(state.shape, -1.0))


class Sloth(Sound):
    def learn_some(self, belief: Any, agents: Ints, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        pass


class Spiller(Sound):
    """Writes the observations of some agents to the first agents."""

    def learn_some(self, belief: Any, agents: Ints, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        self.learn(Memory(belief.seen[:, : agents.size]), state, action, reward, after)


class Cramped(Sound):
    def start(self, shape: Shape) -> Any:
        return Memory(np.zeros((shape.runs, shape.agents + 1)))

    def rank(self, belief: Any, state: Ints, draws: Draws) -> Floats:
        return np.zeros(state.shape)

    def learn(self, belief: Any, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        belief.seen[:, 1:] += reward


class Common(NamedTuple):
    common: Floats
    seen: Floats


class Undeclared(Sound):
    """Has an array [R, S, S] that agents share, and does not say so."""

    def start(self, shape: Shape) -> Any:
        return Common(np.zeros((shape.runs, shape.states, shape.states)), super().start(shape).seen)


class Declared(Undeclared):
    agent_axes: ClassVar[Mapping[str, int | None]] = {"common": None}


class Misnamed(Undeclared):
    agent_axes: ClassVar[Mapping[str, int | None]] = {"commons": None}


class Usurper(Sound):
    def welcome(self, belief: Any, newcomers: int) -> None:
        belief.seen[:] = belief.seen.mean()


class UnknownNewcomer(Sound):
    def welcome(self, belief: Any, newcomers: int) -> None:
        belief.seen[:, -newcomers:] = np.nan


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (Flat, r"estimate returned benefit of shape \[7\]; it must be \[3, 7\]"),
        (Pollster, "estimate changed its arguments"),
        (NegativeNoise, "an error or noise below 0"),
        (Sloth, "learn_some of all agents and learn differ in seen"),
        (Spiller, "learn_some changed the rows of agents that were not observed"),
        (
            Cramped,
            r"seen of its belief has shape \[1, 3\] with 2 agents and \[1, 4\] with 3, but is declared to have ag",
        ),
        (Undeclared, "common of its belief .* or declare its axis of agents in agent_axes"),
        (Misnamed, "agent_axes names commons, which its belief does not have"),
        (Usurper, "seen of its belief changed for present agents when new ones joined"),
        (UnknownNewcomer, "a priority is NaN after new agents joined"),
        (Forgetful, "start must return a NamedTuple"),
        (Hoarder, r"the belief's seen is a list; make it a plain array"),
        (Undecided, "the priority of agent 0 is NaN in step 0"),
        (Overeager, "rank returned explore 1.5; it is a probability"),
        (Meddler, "rank changed the states"),
        (Forger, "learn changed its arguments"),
        (
            Assigner,
            r"test_checks\.py, line \d+: AttributeError: .*write belief\.total\[:\] \+= \.\.\., not belief\.total",
        ),
        (Fickle, "two calls of rank in step 0 differ"),
        (Dreamer, "two calls of rank in step 0 differ"),
        (Wanderer, "the same seed gave two results; take all randomness from draws"),
        (Gossip, "differs when it is simulated alone"),
        (Secretive, "continued differently after a checkpoint"),
        (Peeker, "a learner must not use it"),
        (RewardPeeker, "a learner must not use it"),
        (FirstComer, "treat all agents the same"),
        (Middle, "treat all agents the same"),
    ],
)
def test_each_fault_is_named(policy: type[Sound], sentence: str) -> None:
    with pytest.raises(CheckError, match=sentence):
        check_policy(policy())


def test_a_correct_user_policy_passes() -> None:
    check_policy(Sound())
    check_policy(Declared())


def test_odd_problems_get_remarks() -> None:
    same = Problem([[np.full((2, 2), 0.5)] * 2], [1, 1], budget=1)
    assert check_problem(same) == (
        "acting and waiting are the same for every agent",
        "all rewards are equal, so no policy is better than another",
    )


def test_large_rewards_of_many_agents_are_no_fault() -> None:
    problem = Problem(np.ones((300, 2, 1, 1)), np.random.default_rng(0).normal(size=(300, 1)) * 1e12, budget=1)
    check_problem(problem)
