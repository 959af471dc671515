"""WIQL against a slow and literal Q-learning, step by step, and against an update worked out by hand."""

import numpy as np
import pytest

from restive import InputError, World, make_policy, make_problems, simulate
from restive.kernels import rng
from restive.policies.wiql import Wiql
from restive.types import Floats, Ints


class Literal:
    """Q-learning for one run: a dictionary of Q-values and one of visits for each agent."""

    def __init__(self, agents: int, budget: int, discount: float, unseen: str) -> None:
        self.agents, self.budget, self.discount, self.unseen = agents, budget, discount, unseen
        self.worth: dict[tuple[int, int, int], float] = {}
        self.visits: dict[tuple[int, int, int], int] = {}

    def value(self, agent: int, state: int, action: int) -> float:
        return self.worth.get((agent, state, action), 0.0)

    def priority(self, agent: int, state: int) -> float:
        if self.unseen == "first" and not all((agent, state, action) in self.visits for action in (0, 1)):
            return float("inf")
        return self.value(agent, state, 1) - self.value(agent, state, 0)

    def choose(self, state: Ints, step: int, coin: float, tie: Floats) -> set[int]:
        priority = [self.priority(m, int(state[m])) for m in range(self.agents)]
        if coin < self.agents / (self.agents + step):
            priority = [0.0] * self.agents
        return set(sorted(range(self.agents), key=lambda m: (-priority[m], -tie[m]))[: self.budget])

    def learn(self, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        for m in range(self.agents):
            key = (m, int(state[m]), int(action[m]))
            self.visits[key] = self.visits.get(key, 0) + 1
            best = max(self.value(m, int(after[m]), 0), self.value(m, int(after[m]), 1))
            target = float(reward[m]) + self.discount * best
            self.worth[key] = self.value(*key) + (target - self.value(*key)) / (self.visits[key] + 1)


@pytest.mark.parametrize(("discount", "unseen"), [(0.0, "zero"), (0.9, "zero"), (1.0, "zero"), (0.9, "first")])
@pytest.mark.parametrize(("family", "noise"), [("two-state-v1", 0.0), ("many-state-v1", 1.0)])
def test_every_choice_is_that_of_the_literal_algorithm(discount: float, unseen: str, family: str, noise: float) -> None:
    more = {"states": 3} if family == "many-state-v1" else {}
    problem = make_problems(family, agents=6, budget=2, seed=13, **more)[0]
    world, policy = World(problem, runs=4, seed=3, noise=noise), Wiql(discount=discount, unseen=unseen)
    literal = [Literal(6, 2, discount, unseen) for _ in range(4)]
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    for step in range(150):
        draws = world.draws(step)
        ranking = policy.rank(belief, state, draws)
        action = world.choose(ranking, draws)
        coins = rng.uniform(draws.branch(rng.EXPLORE), np.zeros(1, np.int64))[:, 0]
        ties = draws.uniform(rng.TIE)
        for r in range(4):
            chosen = literal[r].choose(state[r], step, coins[r], ties[r])
            assert set(np.flatnonzero(action[r]).tolist()) == chosen, f"run {r}, step {step}"
        outcome = world.advance(state, action, draws)
        policy.learn(belief, state, action, outcome.reward, outcome.after)
        for r in range(4):
            literal[r].learn(state[r], action[r], outcome.reward[r], outcome.after[r])
        state = outcome.after
    for (m, s, a), value in literal[2].worth.items():
        assert belief.q[2, m, s, a] == pytest.approx(value, rel=1e-12, abs=1e-12)
        assert belief.visits[2, m, s, a] == literal[2].visits[m, s, a]


def test_one_update_by_hand() -> None:
    world, policy = World(make_problems("two-state-v1", agents=1, budget=1)[0]), Wiql(discount=0.5)
    belief = policy.begin(world.shape, world.model)
    state, after, action = np.array([[0]]), np.array([[1]]), np.array([[1]])
    policy.learn(belief, state, action, np.array([[4.0]]), after)
    assert belief.q[0, 0].tolist() == [[0.0, 2.0], [0.0, 0.0]]
    policy.learn(belief, after, action, np.array([[1.0]]), state)
    # The target is 1 + 1/2 · 2 = 2, and the first step of learning goes half way.
    assert belief.q[0, 0].tolist() == [[0.0, 2.0], [0.0, 1.0]]
    policy.learn(belief, state, action, np.array([[4.0]]), after)
    # The second visit goes a third of the way to 4 + 1/2 · 1.
    assert belief.q[0, 0, 0, 1] == pytest.approx(2.0 + (4.5 - 2.0) / 3)


def test_pairs_not_seen_yet_come_first_or_count_as_no_difference() -> None:
    world = World(make_problems("two-state-v1", agents=3, budget=1)[0])
    belief = Wiql().begin(world.shape, world.model)
    belief.visits[0, 0, 0], belief.q[0, 0, 0] = (1.0, 2.0), (0.5, 0.75)
    belief.visits[0, 1, 0], belief.q[0, 1, 0] = (0.0, 2.0), (0.0, 0.5)
    state, draws = np.zeros((1, 3), np.int64), world.draws(7)
    assert Wiql().rank(belief, state, draws).priority.tolist() == [[0.25, 0.5, 0.0]]
    authors = make_policy("wiql:authors")
    assert authors == Wiql(unseen="first")
    assert authors.rank(belief, state, draws).priority.tolist() == [[0.25, np.inf, np.inf]]
    assert authors.estimate(belief, state).benefit.tolist() == [[0.25, 0.5, 0.0]]


def test_exploration_fades_with_the_steps() -> None:
    world, policy = World(make_problems("two-state-v1", agents=10, budget=2)[0], runs=3), Wiql()
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    for step, probability in [(0, 1.0), (10, 0.5), (90, 0.1)]:
        assert policy.rank(belief, state, world.draws(step)).explore.tolist() == [probability] * 3


def test_it_earns_more_than_the_random_policy() -> None:
    problems = make_problems("two-state-v1", instances=10, agents=20, budget=4, seed=1)
    wiql, uniform = (simulate(problems, name, horizon=400, runs=4) for name in ("wiql", "random"))
    more = wiql.by_instance((wiql.reward - uniform.reward)[:, 200:].mean(axis=1))
    assert more.mean() > 4 * more.std(ddof=1) / np.sqrt(10)


@pytest.mark.parametrize("discount", ["-0.1", "1.1", "nan"])
def test_an_invalid_discount_is_refused(discount: str) -> None:
    with pytest.raises(InputError, match=f"wiql: discount is {discount}; it must be between 0 and 1"):
        make_policy(f"wiql:discount={discount}")


def test_another_treatment_of_unseen_pairs_is_refused() -> None:
    with pytest.raises(InputError, match="wiql: unseen is 'last'; it must be 'zero' or 'first'"):
        make_policy("wiql:unseen=last")
