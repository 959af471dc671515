"""An agent in an environment of one's own chooses, learns and continues as a simulation and a program of the desk do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from restive import Agent, InputError, Problem, World, make_problems, simulate
from restive.checkpoint import save
from restive.contract import Draws, Estimate, Ranking, Shape
from restive.desk import Desk
from restive.kernels import rng
from restive.policies import POLICIES
from restive.policies.base import Learner
from restive.policies.belief import flatten
from restive.policies.random import NoBelief
from restive.types import Floats, Ints

LEARNERS = [name for name, kind in POLICIES.items() if issubclass(kind, Learner)]
FAST = ["random", "egt", "wiql", "lagrange"]
N, B, T, SEED = 12, 3, 40, 11
PEOPLE, LEVELS = ["ann", "ben", "cleo", "dev"], ["low", "high"]


def problem() -> Problem:
    return make_problems("many-state-v1", agents=N, budget=B, states=3, seed=3)[0]


def make_agent(policy: str | Learner[Any], **settings: Any) -> Agent:
    span = float(np.ptp(problem().reward))
    usual = {"agents": N, "states": 3, "budget": B, "seed": SEED, "horizon": T, "reward_range": span}
    return Agent(policy, **usual | settings)


def play(agent: Agent, world: World, state: Ints, steps: range, present: Callable[[int], Ints] | None = None) -> Any:
    """Play these steps in a world; only the agents `present` in a step are seen. Returns expected rewards and states."""
    rewards = []
    for step in steps:
        names = agent.agents
        seen = range(N) if present is None else present(step).tolist()
        states = {names[n]: agent.states[state[n]] for n in seen}
        chosen = agent.act(states)
        action = np.isin(names, chosen).astype(np.int64)[None]
        outcome = world.advance(state[None], action, world.draws(step))
        after = outcome.after[0]
        agent.learn(
            states,
            chosen,
            {names[n]: outcome.reward[0, n] for n in seen},
            {names[n]: agent.states[after[n]] for n in seen},
        )
        state = after
        rewards.append(float(outcome.total[0]))
    return rewards, state


def assert_same_belief(one: Agent, other: Agent) -> None:
    theirs = flatten(other.belief)
    for name, array in flatten(one.belief).items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def two_people() -> Agent:
    return Agent("egt", agents=["ann", "ben"], states=LEVELS, budget=1)


# --- the same as elsewhere


@pytest.mark.parametrize("policy", LEARNERS)
def test_an_agent_makes_the_choices_of_a_simulation_bit_for_bit(policy: str) -> None:
    world = World(problem(), seed=SEED, noise=0.5, horizon=T)
    agent, state, rewards = make_agent(policy), world.first_states()[0], []
    for step in range(T):
        chosen = agent.act(state)
        assert chosen == sorted(chosen)
        action = np.zeros((1, N), np.int64)
        action[0, chosen] = 1
        outcome = world.advance(state[None], action, world.draws(step))
        agent.learn(state, chosen, outcome.reward[0], outcome.after[0])
        rewards.append(float(outcome.total[0]))
        state = outcome.after[0]
    expected = simulate(problem(), policy, horizon=T, seed=SEED, noise=0.5)
    assert rewards == expected.reward[0].tolist()
    assert agent.step == T


@pytest.mark.parametrize("spend", ["exactly", "at most"])
@pytest.mark.parametrize("policy", FAST)
def test_with_costs_an_agent_makes_the_choices_of_a_simulation_bit_for_bit(policy: str, spend: str) -> None:
    costs = np.random.default_rng(2).uniform(0.5, 3, N)
    priced = problem().replace(cost=costs, budget=7, spend=spend)
    world = World(priced, seed=SEED, horizon=T)
    agent = make_agent(policy, budget=7, cost=costs, spend=spend)
    rewards, _ = play(agent, world, world.first_states()[0], range(T))
    assert rewards == simulate(priced, policy, horizon=T, seed=SEED).reward[0].tolist()


@pytest.mark.parametrize("policy", FAST)
def test_names_and_numbers_lead_to_the_same_choices(policy: str) -> None:
    world = World(problem(), seed=SEED, horizon=T)
    numbered, named = make_agent(policy), make_agent(policy, agents=[f"p{n}" for n in range(N)], states=["c", "a", "b"])
    first = world.first_states()[0]
    assert play(numbered, world, first, range(T))[0] == play(named, world, first, range(T))[0]
    assert_same_belief(numbered, named)


@pytest.mark.parametrize("policy", [*FAST, "thompson-whittle"])
def test_an_agent_makes_the_choices_of_a_program_of_the_desk(policy: str, tmp_path: Path) -> None:
    """With people who are missing, people who join, and outcomes that are never reported."""
    agent = Agent(policy, agents=PEOPLE, states=LEVELS, budget=2, seed=5, horizon=30)
    generator, people, known = np.random.default_rng(1), list(PEOPLE), list[str]()
    with Desk(tmp_path / "a.db") as desk:
        rules: dict[str, Any] = {"control": 0.0, "keep": 0, "cool_down": 0, "states_are_outcomes": False}
        program = desk.create(
            "one", states=LEVELS, rewards=[0, 1], budget=2, seed=5, horizon=30, policy=policy, **rules
        )
        for round_ in range(1, 15):
            if round_ == 6:
                people += agent.add_agents(["eve", "fay"])
            # Who was reported in the last round has a known state in the desk, and takes part.
            here = [name for name in people if name in known or round_ in (1, 6) or generator.random() < 0.5]
            states = {name: LEVELS[generator.integers(2)] for name in here}
            chosen = agent.act(states)
            assert set(program.decide(states, again=True).chosen) == set(chosen)
            known = [here[0], *(name for name in here[1:] if generator.random() < 0.6)]
            after = {name: LEVELS[generator.integers(2)] for name in known}
            agent.learn(states, chosen, {name: LEVELS.index(after[name]) for name in known}, after)
            rows = [{"agent": name, "done": name in chosen, "next_state": after[name]} for name in known]
            program.learn(rows, round=round_)


class Known(NamedTuple):
    features: Floats  # [R, N, F]


class ByFeature(Learner[Known]):
    """A policy of one's own that acts on those with the largest first feature."""

    name: ClassVar[str] = "by-feature"

    def start(self, shape: Shape) -> Known:
        return Known(shape.known_features().copy())

    def rank(self, belief: Known, state: Ints, draws: Draws) -> Floats:
        return np.nan_to_num(belief.features[..., 0])


def test_features_reach_the_policy_and_survive_new_agents_and_a_file(tmp_path: Path) -> None:
    agent = Agent(ByFeature(), agents=["ann", "ben"], states=LEVELS, budget=1, features=[[0.5, 1.0], [2.0, 0.0]])
    assert agent.act(["low", "low"]) == ["ben"]
    assert agent.add_agents(["cleo"]) == ["cleo"]
    assert agent.act(["low"] * 3) == ["ben"]
    agent.add_agents(["dev", "eve"], features=[[3.0, 0.0], [4.0, np.nan]])
    agent.save(tmp_path / "a.npz")
    loaded = Agent.load(tmp_path / "a.npz", ByFeature)
    assert loaded.act(["low"] * 5) == ["eve"]
    assert loaded.act({"dev": "low", "ann": "low"}) == ["dev"]
    assert_same_belief(loaded, agent)
    with pytest.raises(InputError, match=r"features has shape \[1, 3\]; it must be \[1, 2\]"):
        loaded.add_agents(["fay"], features=[[1, 2, 3]])
    with pytest.raises(InputError, match="features is given, but the other agents have none"):
        two_people().add_agents(["fay"], features=[[1, 2]])
    assert loaded.agents == ["ann", "ben", "cleo", "dev", "eve"]


# --- missing, new, saved


@pytest.mark.parametrize("policy", ["egt", "wiql"])
def test_missing_agents_are_neither_chosen_nor_learnt_from(policy: str) -> None:
    agent = make_agent(policy)
    missing = [None] * (N - 5)
    assert agent.act([0, None, 1, None, 2, *missing]) == [0, 2, 4]
    agent.learn([0] * N, [0, 2, 4], [1.0, np.nan, 0.0, None, None, *missing], [2, None, 1, None, None, *missing])
    assert agent.belief.visits.sum(axis=(2, 3))[0].tolist() == [1, 0, 1] + [0] * (N - 3)
    assert agent.act({7: 1}) == [7]
    assert agent.act({}) == []
    agent.learn({}, [], {}, {})


@pytest.mark.parametrize("policy", LEARNERS)
def test_a_saved_agent_continues_bit_for_bit(policy: str, tmp_path: Path) -> None:
    world = World(problem(), seed=SEED, horizon=T)
    present = lambda step: np.flatnonzero((np.arange(N) + step) % 5)  # noqa: E731
    whole, part = (make_agent(policy, agents=[f"p{n}" for n in range(N)]) for _ in range(2))
    first = world.first_states()[0]
    rewards, _ = play(whole, world, first, range(T), present)
    start, state = play(part, world, first, range(15), present)
    part.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz")
    assert (loaded.step, loaded.policy, loaded.agents, loaded.budget) == (15, part.policy, part.agents, B)
    assert start + play(loaded, world, state, range(15, T), present)[0] == rewards
    assert_same_belief(loaded, whole)


def test_new_agents_are_added_at_the_end_and_survive_a_file(tmp_path: Path) -> None:
    numbered = make_agent("lagrange", agents=0)
    assert numbered.act([]) == []
    assert numbered.add_agents(3) == [0, 1, 2]
    assert numbered.act([0, 1, 2]) == [0, 1, 2]
    numbered.learn([0, 1, 2], [0, 1, 2], [0, 1, 0], [1, 1, 0])
    assert numbered.add_agents(2) == [3, 4]
    named = two_people()
    named.act(["low", "high"])
    assert named.add_agents(["cleo"]) == ["cleo"]
    named.save(tmp_path / "a.npz")
    loaded = Agent.load(tmp_path / "a.npz")
    assert loaded.agents == ["ann", "ben", "cleo"]
    assert loaded.act({"cleo": "low"}) == ["cleo"]
    assert repr(loaded) == "Agent('egt', agents=3, states=2, budget=1, step=2)"


def test_the_budget_may_be_changed_between_rounds() -> None:
    agent = make_agent("random")
    assert len(agent.act([0] * N)) == B
    agent.budget = 5
    assert len(agent.act([0] * N)) == 5
    agent.budget = 0
    assert agent.act([0] * N) == []


def test_recorded_data_can_be_learnt_before_the_first_choice() -> None:
    agent = two_people()
    for chosen, reward in (("ann", 1.0), ("ben", 0.0)):
        agent.learn(["low", "low"], [chosen], [reward, reward], ["low", "low"])
    assert agent.step == 0
    agent.act(["low", "low"])
    assert agent.explain().benefit.tolist() == [1.0, -1.0]


# --- explanations


def test_an_explanation_has_the_state_and_the_numbers_of_everybody_present() -> None:
    agent = make_agent("egt:gamma=-1000", agents=[f"p{n}" for n in range(N)])
    states = {f"p{n}": n % 3 for n in (5, 2, 9, 7)}
    chosen = agent.act(states)
    shown = agent.explain()
    assert (shown.agent, shown.state) == (["p2", "p5", "p7", "p9"], [2, 2, 1, 0])
    assert [name for name, yes in zip(shown.agent, shown.chosen, strict=True) if yes] == chosen
    np.testing.assert_allclose(shown.probability, 0.75)  # all priorities are equal
    assert np.isinf(shown.error).all()


@pytest.mark.parametrize("policy", ["wiql", "lagrange"])
def test_probabilities_are_the_frequencies_of_repeated_choices(policy: str) -> None:
    world = World(problem(), seed=SEED, horizon=T)
    agent = make_agent(policy)
    _, state = play(agent, world, world.first_states()[0], range(T))
    agent.act(state)
    shown, tally, repeats = agent.explain(), np.zeros(N), 1000
    probability, error = shown.probability, shown.probability_error
    assert not error.any()  # exact without noise
    for seed in range(repeats):
        again = make_agent(policy, seed=seed)
        again.belief, again.step = agent.belief, T
        tally[again.act(state)] += 1
    expected = np.sqrt(probability * (1 - probability) / repeats + error**2)
    assert (np.abs(tally / repeats - probability) <= 4.5 * expected + 0.005).all()
    assert probability.sum() == pytest.approx(B, abs=0.02)


class Noisy(Learner[NoBelief]):
    """Priorities that fall with the number of the agent, with noise."""

    name: ClassVar[str] = "noisy"

    def start(self, shape: Shape) -> NoBelief:
        return NoBelief()

    def rank(self, belief: NoBelief, state: Ints, draws: Draws) -> Ranking:
        drawn = [rng.near_normal(np.uint64(rng.fold(draws.branch(rng.POSTERIOR)[0], n))) for n in draws.agents]
        return Ranking(-np.arange(N) / N + 0.3 * np.array(drawn)[None], np.zeros(1))

    def estimate(self, belief: NoBelief, state: Ints) -> Estimate:
        return Estimate(-np.arange(N)[None] / N, np.zeros((1, N)), np.full((1, N), 0.3))


def test_probabilities_with_noise_are_within_their_errors_of_the_frequencies_of_repeated_choices() -> None:
    agent, tally, repeats = make_agent(Noisy()), np.zeros(N), 2000
    agent.act(np.zeros(N, int))
    shown = agent.explain()
    for seed in range(repeats):
        tally[make_agent(Noisy(), seed=seed).act(np.zeros(N, int))] += 1
    expected = np.sqrt(shown.probability * (1 - shown.probability) / repeats + shown.probability_error**2)
    assert (np.abs(tally / repeats - shown.probability) <= 4.5 * expected).all()
    assert ((shown.probability_error > 0) & (shown.probability_error < 0.02)).all()


@pytest.mark.parametrize("policy", ["random", "egt"])
def test_with_costs_probabilities_are_the_frequencies_of_repeated_choices(policy: str) -> None:
    costs = np.tile([1.0, 1.5, 2.0], N // 3)
    agent, state, tally, repeats = make_agent(policy, budget=6, cost=costs), np.zeros(N, int), np.zeros(N), 1000
    agent.act(state)
    probability, error = agent.explain().probability, agent.explain().probability_error
    assert len(np.unique(probability)) == 3  # agents of one cost are alike
    assert ((error > 0) & (error < 0.01)).all()
    for seed in range(repeats):
        tally[make_agent(policy, budget=6, cost=costs, seed=seed).act(state)] += 1
    expected = np.sqrt(probability * (1 - probability) / repeats + error**2)
    assert (np.abs(tally / repeats - probability) <= 4.5 * expected + 0.005).all()


def test_costs_may_change_between_rounds_join_with_new_agents_and_survive_a_file(tmp_path: Path) -> None:
    agent = Agent("lagrange", agents=["ann", "ben"], states=LEVELS, budget=3, cost=[1, 5], spend="at most")
    assert agent.act(["low", "low"]) == ["ann"]
    agent.cost = [5, 1]
    assert agent.act(["low", "low"]) == ["ben"]
    agent.add_agents(["cleo"], cost=[2])
    assert agent.act(["low", "low", "low"]) == ["ben", "cleo"]
    agent.save(tmp_path / "a.npz")
    loaded = Agent.load(tmp_path / "a.npz")
    assert (loaded.spend, np.asarray(loaded.cost).tolist()) == ("at most", [5, 1, 2])
    for call, sentence in (
        (lambda: agent.add_agents(["dev"]), "cost is missing, but the other agents have costs."),
        (lambda: two_people().add_agents(["dev"], cost=[1]), "cost is given, but the others have none."),
        (lambda: setattr(two_people(), "cost", [1, 2]), "cost is set, but the agent was made without costs."),
        (
            lambda: agent.learn(["low"] * 3, ["ann"], [0] * 3, ["low"] * 3),
            "chosen names 1 agents, which cost 5; the budget is 3, which may be changed.",
        ),
    ):
        with pytest.raises(InputError, match=f"^{sentence}$"):
            call()


def test_an_explanation_belongs_to_the_last_choice() -> None:
    agent = two_people()
    for call in (
        lambda: agent.learn(["low", "low"], [], [0, 0], ["low", "low"]),
        lambda: agent.add_agents(["cleo"]),
    ):
        agent.act({"ann": "low", "ben": "low"})
        assert agent.explain().agent == ["ann", "ben"]
        call()
        with pytest.raises(InputError, match="call act first, and explain before learn"):
            agent.explain()


# --- what is refused


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"policy": "whittle-oracle"}, "whittle-oracle is an oracle, which needs the true model; use a learner."),
        ({"policy": "rma2b", "horizon": None}, "rma2b plans up to the horizon; give it one."),
        ({"agents": "ann"}, "agents is 'ann'; it must be a whole number from 0 on."),
        ({"agents": ["ann", "ben", "ann"]}, "agents names 'ann' twice."),
        ({"agents": ["ann", 2]}, "agents must be a number from 0 on, or a list of names, all texts or all whole numbers."),
        ({"states": 0}, "states is 0; it must be a whole number from 1 on."),
        ({"states": []}, "states must be a number from 1 on, or a list of names, all texts or all whole numbers."),
        ({"budget": -1}, "budget is -1; it must be a whole number from 0 on."),
        ({"cost": [1, 0, 1]}, "cost of agent 1 is 0; a cost is above 0 and finite."),
        ({"spend": "all"}, "spend is 'all'; it must be 'exactly' or 'at most'."),
        ({"seed": -1}, f"seed is -1; it must be a whole number from 0 to {2**63 - 1}."),
        ({"horizon": 0}, "horizon is 0; it must be a whole number from 1 on."),
        ({"reward_range": np.nan}, "reward_range is nan; it must be the largest difference of two rewards, from 0 to 1e+12."),
    ],
)  # fmt: skip
def test_invalid_settings_are_refused_with_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    usual: dict[str, Any] = {"policy": "egt", "agents": 3, "states": 2, "budget": 1}
    with pytest.raises(InputError) as refused:
        Agent(**usual | settings)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        (
            ["low"],
            "states has shape [1]; it must be [2], one entry for each agent, or a mapping from agents to entries.",
        ),
        ("low", "states has shape []; it must be [2], one entry for each agent, or a mapping from agents to entries."),
        ([["low"], ["low", "high"]], "states is not a list of single entries."),
        (["low", "lo"], "states: the state of agent 'ben' is 'lo'; it must be one of 'low', 'high'."),
        ([0, 1], "states: the state of agent 'ann' is 0; it must be one of 'low', 'high'."),
        ({"ann": "low", "bne": "low"}, "states names agent 'bne'; it must be one of 'ann', 'ben'."),
        ({"ann": "low", "ben": ["low"]}, "states is not a list of single entries."),
    ],
)
def test_invalid_states_are_refused_with_one_sentence(states: Any, sentence: str) -> None:
    agent = two_people()
    with pytest.raises(InputError) as refused:
        agent.act(states)
    assert (str(refused.value), refused.value.location, agent.step) == (sentence, "states", 0)


@pytest.mark.parametrize("value", [3, -1, 0.5, "0", np.inf])
def test_numbers_that_are_no_states_are_refused(value: object) -> None:
    with pytest.raises(
        InputError, match=r"states: the state of agent 1 is .*; it must be a whole number from 0 to 2\."
    ):
        make_agent("egt", agents=3).act({1: value})
    with pytest.raises(InputError, match=r"names agent .*; it must be a whole number from 0 to 2\."):
        make_agent("egt", agents=3).act({value: 1})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"chosen": ["ann", "ben"]}, "chosen names 2 agents; the budget is 1, which may be changed."),
        ({"chosen": ["ann", "ann"]}, "chosen names agent 'ann' twice."),
        ({"chosen": ["eve"]}, "chosen names agent 'eve'; it must be one of 'ann', 'ben'."),
        ({"chosen": "ann"}, "chosen is 'ann'; it must be a list of agents."),
        ({"chosen": None}, "chosen is None; it must be a list of agents."),
        ({"rewards": [1, np.inf]}, "rewards: the reward of agent 'ben' is inf; it must be a finite number."),
        ({"rewards": [1, "many"]}, "rewards: the reward of agent 'ben' is 'many'; it must be a finite number."),
        ({"rewards": [1, None]}, "rewards has no entry of agent 'ben', whose next state is given."),
        ({"next_states": {"ann": "low"}}, "next_states has no entry of agent 'ben', whose reward is given."),
        ({"states": {"ann": "low"}}, "states has no entry of agent 'ben', whose reward is given."),
        (
            {"next_states": ["low", "?"]},
            "next_states: the state of agent 'ben' is '?'; it must be one of 'low', 'high'.",
        ),
    ],
)
def test_invalid_outcomes_are_refused_with_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    agent = two_people()
    outcome: dict[str, Any] = {"states": LEVELS, "chosen": ["ann"], "rewards": [1, 0], "next_states": LEVELS}
    with pytest.raises(InputError) as refused:
        agent.learn(**outcome | changes)
    assert str(refused.value) == sentence
    assert_same_belief(agent, two_people())


def test_in_a_long_list_the_most_similar_name_is_suggested() -> None:
    agent = Agent("egt", agents=[f"person {n}" for n in range(50)], states=2, budget=1)
    with pytest.raises(InputError, match=r"names agent 'preson 7'; there is no such agent; did you mean 'person 7'\?"):
        agent.act({"preson 7": 1})


def test_new_agents_are_numbered_or_named_as_the_others_are() -> None:
    with pytest.raises(InputError, match="agents is 2, but the agents are named; give a list of names"):
        two_people().add_agents(2)
    with pytest.raises(InputError, match="the agents are numbered; give the number of new ones"):
        make_agent("egt").add_agents(["ann"])
    with pytest.raises(InputError, match="agents names 'ann' twice"):
        two_people().add_agents(["ann"])


def test_files_that_are_no_agents_are_refused(tmp_path: Path) -> None:
    agent, path = two_people(), tmp_path / "a.npz"
    save(path, agent.policy, agent.belief, {})
    with pytest.raises(InputError, match=r"a\.npz: not a checkpoint of an Agent \(agents is missing\)"):
        Agent.load(path)
    facts: dict[str, Any] = {"agents": 3, "states": 2, "budget": 1, "spend": "exactly", "seed": 0, "horizon": None}
    facts["reward_range"] = 1.0
    save(path, agent.policy, agent.belief, {}, **facts, step=0)
    with pytest.raises(InputError, match="a damaged checkpoint; its arrays are not those of egt for these agents"):
        Agent.load(path)
    save(path, agent.policy, agent.belief, {}, **facts, step=-1)
    with pytest.raises(InputError, match="a damaged checkpoint; step is -1"):
        Agent.load(path)


class Stubborn(Learner[Any]):
    """A policy of one's own whose priorities are given."""

    name: ClassVar[str] = "stubborn"

    def start(self, shape: Shape) -> Any:
        return None

    def rank(self, belief: Any, state: Ints, draws: Draws) -> Floats | Ranking:
        return np.where(state == 2, np.nan, state)


def test_a_policy_of_ones_own_acts_and_its_errors_name_it() -> None:
    agent = Agent(Stubborn(), agents=3, states=3, budget=1)
    assert agent.act([0, 1, 0]) == [1]
    with pytest.raises(InputError, match="stubborn: the priority of agent 2 is NaN in step 1"):
        agent.act([0, 1, 2])
    with pytest.raises(InputError, match="stubborn: its belief is a NoneType; it must be a NamedTuple of arrays"):
        agent.save("nowhere.npz")
