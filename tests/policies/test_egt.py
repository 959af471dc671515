"""eps-GT against a slow and literal algorithm 1, step by step, and against numbers worked out by hand."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from restive import InputError, Simulation, World, make_policy, make_problems, simulate
from restive.contract import Ranking, Shape
from restive.kernels import rng
from restive.policies.egt import Egt, Rule, _width, theory_scale
from restive.types import Floats, Ints


def howard_width(n: int, horizon: int) -> float:
    return 1.7 * math.sqrt((math.log(math.log(2 * n)) + 0.72 * math.log(10.4 * horizon)) / n)


def printed_width(n: int, horizon: int) -> float:
    return math.sqrt(math.log(math.log(2 * n + 0.72 * math.log(10.4 * horizon))) / (n + 2))


class Literal:
    """Algorithm 1 for one run, in lists and dictionaries, with the holes filled as the module says."""

    def __init__(self, policy: Egt, agents: int, budget: int, horizon: int | None, reward_range: float) -> None:
        self.policy, self.agents, self.budget, self.horizon = policy, agents, budget, horizon
        self.gamma = -89 / 90 * reward_range if policy.gamma is None else policy.gamma
        self.seen: dict[tuple[int, int, int], list[float]] = {}

    def rewards(self, agent: int, state: int, action: int) -> list[float]:
        return self.seen.get((agent, state, action), [])

    def estimate(self, agent: int, state: int) -> float:
        acted, waited = self.rewards(agent, state, 1), self.rewards(agent, state, 0)
        if not acted or not waited:
            return math.inf if self.policy.unseen == "first" else 0.0
        return sum(acted) / len(acted) - sum(waited) / len(waited)

    def bound(self, agent: int, state: int, step: int) -> float:
        horizon = self.horizon or step + 1
        counts = [len(self.rewards(agent, state, action)) for action in (1, 0)]
        if 0 in counts:
            return math.inf
        width = howard_width if self.policy.width == "howard" else printed_width
        return self.estimate(agent, state) + sum(width(n, horizon) for n in counts)

    def epsilon(self, state: Ints) -> float:
        visits = [sum(len(self.rewards(m, int(state[m]), a)) for a in (0, 1)) for m in range(self.agents)]
        count = min(visits) if self.policy.exploration == "least" else max(visits)
        scale = self.policy.D
        if isinstance(scale, str):
            scale = max(8 * self.agents / self.budget, 8 * self.agents / (self.agents - self.budget), 2)
        return min(1.0, scale / (math.pow(count + 1, self.policy.p) * min(self.policy.eta**2, 1 / 2)))

    def choose(self, state: Ints, step: int, coin: float, tie: Floats) -> set[int]:
        everyone = range(self.agents)
        if coin < self.epsilon(state):
            return set(sorted(everyone, key=lambda m: -tie[m])[: self.budget])
        estimates = {m: self.estimate(m, int(state[m])) for m in everyone}
        good = [m for m in everyone if estimates[m] >= self.gamma]
        others = [m for m in everyone if m not in good]
        bounds = {m: self.bound(m, int(state[m]), step) for m in others}
        others.sort(key=lambda m: (-bounds[m], -tie[m]))
        candidates = good + others[: max(0, self.budget - len(good))]
        return set(sorted(candidates, key=lambda m: (m not in good, -estimates[m], -tie[m]))[: self.budget])

    def learn(self, state: Ints, action: Ints, reward: Floats) -> None:
        for m in range(self.agents):
            self.seen.setdefault((m, int(state[m]), int(action[m])), []).append(float(reward[m]))


SETTINGS: list[dict[str, Any]] = [
    {},
    {"exploration": "most"},
    {"gamma": 0.0, "D": 0.05},
    {"gamma": 0.4, "D": 0.1, "eta": 0.5},
    {"gamma": math.inf, "D": 0.05},
    {"gamma": -math.inf, "D": 0.05},
    {"gamma": 1e9, "D": 0.05},
    {"gamma": 0.2, "D": 2.0, "p": 2.0},
    {"gamma": 0.1, "D": 0.0},
    {"gamma": 0.3, "D": 1.0, "p": 0.5, "exploration": "most"},
    {"gamma": 0.0, "D": 0.05, "width": "printed"},
    {"gamma": 0.2, "D": 0.05, "unseen": "first"},
    {"gamma": math.inf, "D": 0.05, "unseen": "first"},
    {**Egt.presets["printed"], "gamma": 0.3},
    {**Egt.presets["authors"], "gamma": 0.3},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(("family", "noise", "horizon"), [("two-state-v1", 0.0, 120), ("many-state-v1", 1.0, None)])
def test_every_choice_is_that_of_the_literal_algorithm(
    settings: dict[str, Any], family: str, noise: float, horizon: int | None
) -> None:
    more = {"states": 3} if family == "many-state-v1" else {}
    problem = make_problems(family, agents=7, budget=3, seed=21, **more)[0]
    world, policy = World(problem, runs=3, seed=4, noise=noise, horizon=horizon), Egt(**settings)
    literal = [Literal(policy, 7, 3, horizon, float(world.shape.reward_range[0])) for _ in range(3)]
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    for step in range(120):
        draws = world.draws(step)
        ranking = policy.rank(belief, state, draws)
        action = world.choose(ranking, draws)
        coins = rng.uniform(draws.branch(rng.EXPLORE), np.zeros(1, np.int64))[:, 0]
        ties = draws.uniform(rng.TIE)
        for r in range(3):
            assert ranking.explore[r] == pytest.approx(literal[r].epsilon(state[r]), rel=1e-12)
            chosen = literal[r].choose(state[r], step, coins[r], ties[r])
            assert set(np.flatnonzero(action[r]).tolist()) == chosen, f"run {r}, step {step}"
        outcome = world.advance(state, action, draws)
        policy.learn(belief, state, action, outcome.reward, outcome.after)
        for r in range(3):
            literal[r].learn(state[r], action[r], outcome.reward[r])
        state = outcome.after


def rank_with(
    policy: Egt,
    seen: dict[tuple[int, int, int], list[float]],
    state: list[int],
    horizon: int | None = 1000,
    step: int = 0,
) -> Ranking:
    """The ranking of one run after the given rewards of (agent, state, action)."""
    world = World(make_problems("two-state-v1", agents=len(state), budget=1)[0], horizon=horizon)
    belief = policy.begin(world.shape, world.model)
    for (agent, where, action), rewards in seen.items():
        belief.visits[0, agent, where, action] = len(rewards)
        belief.total[0, agent, where, action] = sum(rewards)
    return policy.rank(belief, np.array([state]), world.draws(step))


def test_estimates_are_differences_of_means() -> None:
    seen = {(0, 1, 1): [1.0, 0.0], (0, 1, 0): [0.0, 0.0, 1.0, 0.0], (1, 0, 1): [1.0], (2, 0, 0): [1.0]}
    ranking = rank_with(Egt(gamma=-5.0), seen, [1, 0, 0])
    assert ranking.priority.tolist() == [[0.5 - 0.25, 0.0, 0.0]]


def test_exploration_fades_with_the_least_or_the_most_visited_state() -> None:
    seen = {(0, 0, 1): [1.0] * 3, (0, 0, 0): [0.0] * 6, (1, 0, 0): [0.0] * 4, (1, 1, 0): [0.0] * 99}
    assert rank_with(Egt(D=1.0), seen, [0, 0]).explore.tolist() == [pytest.approx(1 / (5 * 0.5))]
    assert rank_with(Egt(D=1.0, exploration="most"), seen, [0, 0]).explore.tolist() == [pytest.approx(1 / (10 * 0.5))]
    assert rank_with(Egt(D=1.0, p=2.0, eta=0.5), seen, [0, 0]).explore.tolist() == [pytest.approx(1 / (25 * 0.25))]
    assert rank_with(Egt(D=9.0), seen, [0, 0]).explore.tolist() == [1.0]
    assert rank_with(Egt(D=0.0), seen, [0, 0]).explore.tolist() == [0.0]


def test_good_agents_come_first_then_unseen_ones_then_the_others_by_bound() -> None:
    seen = {
        (0, 0, 1): [1.0],
        (0, 0, 0): [0.9],
        (1, 0, 1): [1.0] * 50,
        (1, 0, 0): [0.8] * 50,
        (2, 0, 1): [0.6] * 2,
        (2, 0, 0): [0.0] * 2,
        (4, 0, 1): [0.5] * 2,
        (4, 0, 0): [0.0] * 2,
    }
    # Benefits .1 and .2 fall short of gamma; .1 has the larger bound, being seen once. Agent 3 was never seen.
    priority = rank_with(Egt(gamma=0.3), seen, [0] * 5).priority[0]
    assert np.argsort(-priority).tolist() == [2, 4, 3, 0, 1]


def test_an_estimate_that_just_reaches_the_threshold_is_good() -> None:
    seen = {(0, 0, 1): [0.5] * 99, (0, 0, 0): [0.0] * 99, (1, 0, 1): [0.49], (1, 0, 0): [0.0]}
    # Agent 1 has by far the larger bound, so agent 0 comes first only if it counts as good.
    assert rank_with(Egt(gamma=0.5), seen, [0, 0]).priority[0].argmax() == 0
    assert rank_with(Egt(gamma=float(np.nextafter(0.5, 1))), seen, [0, 0]).priority[0].argmax() == 1


@pytest.mark.parametrize(("horizon", "step", "inside"), [(500, 7, 500), (None, 0, 1), (None, 9, 10)])
@pytest.mark.parametrize(("name", "width"), [("howard", howard_width), ("printed", printed_width)])
def test_bounds_follow_the_formula(
    horizon: int | None, step: int, inside: int, name: str, width: Callable[[int, int], float]
) -> None:
    seen = {(0, 0, 1): [0.5] * 4, (0, 0, 0): [0.25] * 9, (1, 0, 1): [0.5], (1, 0, 0): [0.5]}
    priority = rank_with(Egt(gamma=2.0, width=name), seen, [0, 0], horizon, step).priority[0]
    assert priority[0] - priority[1] == pytest.approx(0.25 + width(4, inside) + width(9, inside) - 2 * width(1, inside))


@pytest.mark.parametrize(("name", "expected"), [("howard", 1.497), ("printed", 0.315)])
def test_widths_after_ten_visits_of_a_thousand_steps(name: str, expected: float) -> None:
    # Howard: 1.7 √((log log 20 + 0.72 log 10400) / 10) = 1.7 √((1.097 + 6.660) / 10);
    # printed: √(log log(20 + 6.660) / 12) = √(1.189 / 12).
    assert _width(10.0, Rule(horizon=1000.0, least=True, unseen=0.0, howard=name == "howard")) == pytest.approx(
        expected, abs=5e-4
    )


def test_pairs_not_seen_yet_come_first_or_count_as_no_benefit() -> None:
    # Agent 0 was seen under both actions, agent 1 under acting alone, agent 2 under waiting alone, agent 3 never.
    seen = {(0, 0, 1): [1.0], (0, 0, 0): [0.2], (1, 0, 1): [1.0], (2, 0, 0): [1.0]}
    assert rank_with(Egt(), seen, [0] * 4).priority.tolist() == [[0.8, 0.0, 0.0, 0.0]]
    assert rank_with(Egt(unseen="first"), seen, [0] * 4).priority.tolist() == [[0.8, np.inf, np.inf, np.inf]]


def test_unseen_pairs_do_not_disturb_the_order_below_the_threshold() -> None:
    seen = {(n, 0, a): [0.1 * n * a] * 5 for n in range(3) for a in (0, 1)}
    priority = rank_with(Egt(gamma=5.0, unseen="first"), seen, [0] * 4).priority[0]
    assert np.argsort(-priority).tolist() == [3, 2, 1, 0]
    assert np.isfinite(priority[:3]).all()


@pytest.mark.parametrize(("budget", "scale"), [(5, 80.0), (10, 40.0), (45, 80.0), (50, 400.0), (0, 400.0)])
def test_the_scale_of_the_theorem_follows_the_budget(budget: int, scale: float) -> None:
    # max(8 · 50 / B, 8 · 50 / (50 − B), 2); without a budget, or with one for all, the divisor is 1.
    assert theory_scale(50, budget) == scale
    world = World(make_problems("two-state-v1", agents=50, budget=budget)[0], horizon=100)
    policy = Egt(D="theory", p=2.0)
    belief = policy.begin(world.shape, world.model)
    belief.visits[:] = 49.0
    explore = policy.rank(belief, np.zeros((1, 50), np.int64), world.draws(3)).explore[0]
    assert explore == pytest.approx(min(1.0, scale / (99**2 * 0.5)))


def test_presets_are_named_settings_that_others_may_change() -> None:
    assert make_policy("egt:printed") == Egt(D="theory", exploration="most", width="printed")
    assert make_policy("egt:authors") == Egt(D="theory", p=3.5, unseen="first")
    assert make_policy("egt:authors,eta=0.1,p=2") == Egt(D="theory", p=2, unseen="first", eta=0.1)


@pytest.mark.parametrize("gamma", [1.0, 1e6, 1e17, math.inf])
def test_an_unreachable_threshold_leaves_the_order_of_the_bounds(gamma: float) -> None:
    seen = {(n, 0, a): [0.1 * n * a] * 5 for n in range(6) for a in (0, 1)}
    priority = rank_with(Egt(gamma=gamma), seen, [0] * 6).priority[0]
    assert np.argsort(priority).tolist() == list(range(6))
    assert np.isfinite(priority).all()


def test_huge_rewards_keep_bad_agents_below_good_ones() -> None:
    seen = {
        (0, 0, 1): [2e17],
        (0, 0, 0): [0.0],
        (1, 0, 1): [0.9e17],
        (1, 0, 0): [0.0],
        (3, 0, 1): [0.8e17],
        (3, 0, 0): [0.0],
    }
    priority = rank_with(Egt(gamma=1e17), seen, [0, 0, 0, 0]).priority[0]
    assert np.argsort(-priority).tolist() == [0, 2, 1, 3]


def test_exploration_is_as_frequent_as_epsilon() -> None:
    problem = make_problems("two-state-v1", agents=6, budget=2, seed=5)[0]
    world, policy = World(problem, runs=4000, seed=6, horizon=60), Egt(D=0.6)
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    explored, expected, spread = 0.0, 0.0, 0.0
    for step in range(60):
        draws = world.draws(step)
        ranking = policy.rank(belief, state, draws)
        greedy = Ranking(ranking.priority, np.zeros(4000))
        action = world.choose(ranking, draws)
        # With a budget of 2 of 6 a uniform draw is the greedy choice in 1 of 15 cases, ties aside.
        astray = (action != world.choose(greedy, draws)).any(axis=1)
        distinct = (np.diff(np.sort(ranking.priority, axis=1), axis=1) > 0).all(axis=1)
        explored += astray[distinct].sum()
        probability = ranking.explore[distinct] * 14 / 15
        expected, spread = expected + probability.sum(), spread + (probability * (1 - probability)).sum()
        outcome = world.advance(state, action, draws)
        policy.learn(belief, state, action, outcome.reward, outcome.after)
        state = outcome.after
    assert expected > 1000
    assert abs(explored - expected) < 4 * math.sqrt(spread)


def test_the_default_threshold_is_just_above_minus_the_reward_range() -> None:
    ten = World(make_problems("many-state-v1", agents=2, budget=1)[0])
    assert float(Egt().begin(ten.shape, ten.model).gamma[0]) == pytest.approx(-8.9)
    two = World(make_problems("two-state-v1", agents=2, budget=1)[0])
    assert float(Egt().begin(two.shape, two.model).gamma[0]) == pytest.approx(-89 / 90)


def test_the_setting_of_the_theorem_is_one_call_away() -> None:
    theory = Egt.theory(agents=50, budget=10, gap=0.2, gamma=0.1)
    assert (theory.D, theory.p, theory.eta, theory.gamma) == (40.0, 1.0, 0.2, 0.1)
    assert Egt.theory(agents=50, budget=45, gap=0.2, gamma=0.1).D == 80.0
    assert Egt.theory(agents=5, budget=5, gap=0.2, gamma=0.1).D == 40.0
    assert Egt.theory(agents=5, budget=0, gap=0.2, gamma=0.1).D == 40.0


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("egt:gamma=nan", "egt: gamma is nan; it must be a number, or None"),
        ("egt:eta=0", "egt: eta is 0; it must be above 0"),
        ("egt:eta=-1", "egt: eta is -1; it must be above 0"),
        ("egt:D=-0.1", "egt: D is -0.1; it must be 0 or more, or 'theory'"),
        ("egt:D=nan", "egt: D is nan; it must be 0 or more, or 'theory'"),
        ("egt:D=theorem", "egt: D is 'theorem'; it must be 0 or more, or 'theory'"),
        ("egt:unseen=last", "egt: unseen is 'last'; it must be 'zero' or 'first'"),
        ("egt:width=wide", "egt: width is 'wide'; it must be 'howard' or 'printed'"),
        ("egt:p=-1", "egt: p is -1; it must be 0 or more"),
        ("egt:exploration=best", "egt: exploration is 'best'; it must be 'least' or 'most'"),
        ("egt:exploration=3", "egt: exploration is 3; it must be of type str"),
        ("egt:eta=much", "egt: eta is 'much'; it must be of type float or int"),
    ],
)
def test_invalid_settings_are_refused(spec: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make_policy(spec)


def test_an_estimate_exactly_at_the_threshold_is_good() -> None:
    world = World(make_problems("two-state-v1", agents=2, budget=1)[0], horizon=100)
    policy = Egt(gamma=0.5)
    belief = policy.begin(world.shape, world.model)
    belief.visits[:] = 2.0
    belief.total[0, 0, 0] = [0.0, 1.0]  # estimate 0.5, exactly gamma
    belief.total[0, 1, 0] = [0.0, 0.9]  # below it, with a bound above
    priority = policy.rank(belief, np.zeros((1, 2), np.int64), world.draws(3)).priority[0]
    assert priority[0] == 0.5
    assert priority[1] < 0.0


def test_an_enormous_eta_is_like_one() -> None:
    problem = make_problems("two-state-v1", agents=4, budget=1)[0]
    one, huge = (simulate(problem, f"egt:eta={eta}", 30) for eta in (1, 1e200))
    assert np.array_equal(one.reward, huge.reward)


def test_the_estimate_is_the_difference_of_means_with_an_error_by_the_range() -> None:
    policy = Egt()
    belief = policy.start(Shape(runs=1, agents=3, states=2, budget=1, horizon=None, reward_range=np.array([4.0])))
    belief.visits[0, 0, 1], belief.total[0, 0, 1] = (1.0, 4.0), (0.5, 10.0)
    belief.visits[0, 1, 0], belief.total[0, 1, 0] = (9.0, 0.0), (3.0, 0.0)
    benefit, error, noise = policy.estimate(belief, np.array([[1, 0, 0]]))[:3]
    assert benefit.tolist() == [[10.0 / 4 - 0.5, 0.0, 0.0]]
    np.testing.assert_allclose(error, [[2.0 * math.sqrt(1 + 1 / 4), np.inf, np.inf]], rtol=1e-15)
    assert noise.tolist() == [[0.0] * 3]


def test_with_a_given_threshold_the_range_and_the_error_are_unknown() -> None:
    policy = Egt(gamma=0.3)
    belief = policy.start(Shape(runs=1, agents=2, states=1, budget=1, horizon=None, reward_range=np.ones(1)))
    belief.visits[0, 0, 0] = 1.0
    error = policy.estimate(belief, np.zeros((1, 2), np.int64)).error
    assert np.isnan(error[0, 0])
    assert error[0, 1] == np.inf


def test_above_the_threshold_the_estimate_is_the_priority() -> None:
    world = World(make_problems("two-state-v1", agents=30, budget=5, seed=3), runs=2, seed=1)
    game = Simulation(world, Egt(gamma=-9.0))
    game.advance(60)
    estimate = game.policy.estimate(game.belief, game.state)
    np.testing.assert_array_equal(game.decide()[0].priority, estimate.benefit)
    assert np.abs(estimate.benefit).max() > 0
