"""`lagrange` against its formula in plain NumPy, by hand, and against what must not matter to it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from restive import InputError, Simulation, World, make_policy, make_problems, simulate
from restive.checks import check_policy
from restive.comparison import compare
from restive.contract import Draws, Shape, as_ranking
from restive.kernels import rng
from restive.policies.belief import flatten, grow
from restive.policies.lagrange import Lagrange, LagrangeBelief
from restive.problem import Problem
from restive.types import Floats, Ints

PRIOR = "above 0 and at most 1e9, the pseudo-count of each move, or None to estimate it"
SETTINGS = (
    "lagrange",
    "lagrange:discount=0",
    "lagrange:discount=0.999",
    "lagrange:curiosity=0",
    "lagrange:curiosity=3.0",
    "lagrange:prior=1",
    "lagrange:prior=0.01",
    "lagrange:mixture=false",
    "lagrange:curiosity=0,prior=1,mixture=False",
)


def some_belief(rng: np.random.Generator, policy: Lagrange, runs: int, agents: int, states: int) -> LagrangeBelief:
    """A belief with everything at random that ranking and sweeping look at, in which nothing is due to be estimated."""
    belief = policy.start(Shape(runs, agents, states, agents // 3, None, np.ones(runs)))
    belief.counts.moves[...] = rng.integers(0, 5, belief.counts.moves.shape)
    belief.weight[...] = rng.gamma(2.0, 2.0, belief.weight.shape)
    row = rng.dirichlet(np.ones(states), (runs, agents, 2, states))
    belief.posterior[...] = belief.counts.moves + belief.weight[:, None, :, :, None] * row
    belief.value[...], belief.reward[...] = rng.normal(size=(2, *belief.value.shape))
    belief.price[...] = rng.normal(size=runs) / 3
    belief.next_estimate[...] = 10**9
    return belief


def some_draws(runs: int, agents: int, step: int = 3) -> Draws:
    return Draws(rng.run_keys(9, np.arange(runs)), np.arange(agents) + 5, step, 1)


def literal_rank(belief: LagrangeBelief, state: Ints, curiosity: float) -> Floats:
    """The formula of the module's header."""
    where = state[:, :, None, None, None]
    here = np.take_along_axis(belief.posterior, where, axis=3)[:, :, :, 0]
    known = here.sum(axis=-1)
    row = here / known[..., None]
    mean = (row * belief.value[:, :, None]).sum(axis=-1)
    variance = (row * (belief.value[:, :, None] - mean[..., None]) ** 2).sum(axis=-1)
    weight = np.take_along_axis(belief.weight[:, None], state[:, :, None, None], axis=3)[..., 0]
    visits = np.maximum((known - weight).sum(axis=-1, keepdims=True), 0)
    rare = 2 * (3 * visits / (known + 1)) ** 0.25 - 3.2
    least = np.array([float(belief.step) / (float(belief.step) + 30), 1.0])
    bonus = np.sqrt(variance / (known + 1) * np.maximum(rare, least))
    gain = mean[..., 1] - mean[..., 0] + curiosity * (bonus[..., 1] - bonus[..., 0])
    priority: Floats = gain - belief.price[:, None]
    return priority


def literal_sweep(
    belief: LagrangeBelief, state: Ints, action: Ints, discount: float, pace: float
) -> tuple[Floats, Floats]:
    """Worth and price after one sweep."""
    row = belief.posterior / belief.posterior.sum(axis=-1, keepdims=True)
    wait, act = np.moveaxis(np.einsum("rnast,rnt->rnas", row, belief.value), 2, 0)
    gain = act - belief.price[:, None, None] - wait
    best = wait + np.maximum(gain, 0)
    worth = belief.reward + discount * (best - best.mean(axis=-1, keepdims=True))
    now = np.take_along_axis(gain, state[..., None], axis=-1)[..., 0]
    acted = action.mean(axis=1)
    step = pace * np.abs(now).mean(axis=1) * ((now > 0).mean(axis=1) - acted)
    return worth, belief.price + np.where((acted > 0) & (acted < 1), step, 0.0)


@pytest.mark.parametrize("states", [1, 2, 5])
@pytest.mark.parametrize("curiosity", [0.0, 0.33, 2.0])
def test_priorities_are_those_of_the_formula(curiosity: float, states: int) -> None:
    rng = np.random.default_rng(states)
    policy = Lagrange(curiosity=curiosity)
    belief, state = some_belief(rng, policy, 4, 30, states), rng.integers(0, states, (4, 30))
    draws = some_draws(4, 30)
    wanted = literal_rank(belief, state, curiosity)
    # With one state nothing is open; but equal squares differ by rounding, and the root of that is larger.
    exact = 1e-12 if states > 1 else 1e-7
    np.testing.assert_allclose(policy.rank(belief, state, draws).priority, wanted, rtol=1e-12, atol=exact)


@pytest.mark.parametrize("step", [0, 7, 99, 1999])
@pytest.mark.parametrize("budget", [0, 1, 10, 30])
@pytest.mark.parametrize("discount", [0.0, 0.95])
def test_a_step_sweeps_values_and_moves_the_price_by_the_formula(discount: float, budget: int, step: int) -> None:
    rng = np.random.default_rng(step)
    policy = Lagrange(discount=discount)
    belief = some_belief(rng, policy, 3, 30, 4)
    belief.step[...] = step
    state, after = rng.integers(0, 4, (2, 3, 30))
    action = rng.permuted(np.tile(np.arange(30) < budget, (3, 1)), axis=1).astype(np.int64)
    before = belief._replace(posterior=belief.posterior.copy(), value=belief.value.copy(), price=belief.price.copy())
    for r, n in np.ndindex(3, 30):
        before.posterior[r, n, action[r, n], state[r, n], after[r, n]] += 1
    policy.learn(belief, state, action, rng.normal(size=(3, 30)), after)
    worth, price = literal_sweep(before, state, action, discount, 0.6 / (1 + 0.02 * (step + 1)))
    np.testing.assert_array_equal(belief.posterior, before.posterior)
    np.testing.assert_allclose(belief.value, worth, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(belief.price, price, rtol=1e-12, atol=1e-12)
    assert bool((belief.price == before.price).all()) == (budget in (0, 30))


@pytest.mark.parametrize(("family", "period"), [("two-state-v1", 2), ("many-state-v1", 5)])
def test_values_are_swept_in_every_step_up_to_the_twentieth_and_then_less_often(family: str, period: int) -> None:
    game = play(family, "lagrange", 0)
    swept = []
    for step in range(1, 41):
        worth = game.belief.value.copy()
        game.advance(1)
        if not np.array_equal(worth, game.belief.value):
            swept.append(step)
    assert swept == [*range(1, 20), *range(20, 41, period)]


def test_one_priority_computed_by_hand() -> None:
    """Rows 1/2, 1/2 and 1/4, 3/4 into states worth 0 and 1, at a price of 0.1: 3/4 − 1/2 − 0.1 without curiosity."""
    policies = [Lagrange(curiosity=curiosity) for curiosity in (0.0, 2.0)]
    belief = policies[0].start(Shape(1, 1, 2, 1, None, np.ones(1)))
    belief.counts.moves[0, 0, 1, 0, 1] = 2.0
    belief.posterior[0, 0, 1, 0] = [1.0, 3.0]
    belief.value[0, 0], belief.price[0] = [0.0, 1.0], 0.1
    draws, state = some_draws(1, 1), np.zeros((1, 1), np.int64)
    belief.step[...] = 10
    plain, curious = (float(policy.rank(belief, state, draws).priority[0, 0]) for policy in policies)
    assert plain == pytest.approx(0.15, abs=1e-5)
    # variances (1/4) / (2 + 1) of waiting and (3/16) / (4 + 1) of acting; of 2 visits neither action is rare
    assert curious - plain == pytest.approx(2 * ((3 / 80) ** 0.5 - (1 / 12 * 10 / 40) ** 0.5))


def test_an_action_that_is_rare_in_a_state_gets_a_larger_bonus() -> None:
    """After 240 visits of a state with 5 pseudo-moves of acting, x is 3 · 240 / 6 = 120 and g² = 2 · 120^¼ − 3.2."""
    policies = [Lagrange(curiosity=curiosity) for curiosity in (0.0, 1.0)]
    belief = policies[0].start(Shape(1, 1, 2, 1, None, np.ones(1)))
    belief.weight[0, :, 0] = [2.0, 5.0]
    belief.posterior[0, 0, :, 0] = [[121.0, 121.0], [2.5, 2.5]]
    belief.value[0, 0] = [0.0, 1.0]
    draws, state = some_draws(1, 1), np.zeros((1, 1), np.int64)
    plain, curious = (float(policy.rank(belief, state, draws).priority[0, 0]) for policy in policies)
    assert curious - plain == pytest.approx((0.25 / 6 * (2 * 120**0.25 - 3.2)) ** 0.5, rel=1e-5)


def test_an_agent_that_acting_surely_helps_is_soon_chosen() -> None:
    """The first agent is in the good state whenever it was acted on; the second is there half the time anyway."""
    helped, idle = np.array([[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2]), np.full((2, 2, 2), 0.5)
    problem = Problem(np.stack([helped, idle]), [0, 1], budget=1)
    game = Simulation(World(problem, runs=20, seed=1), Lagrange())
    game.advance(60)
    chosen = []
    for _ in range(60):
        chosen.append(game.decide()[1][:, 0])
        game.advance(1)
    assert np.mean(chosen) > 0.97


def play(family: str, policy: str, steps: int, noise: float = 0.0, **settings: int) -> Simulation:
    problem = make_problems(family, **{"agents": 12, "budget": 3, "seed": 2, **settings})[0]
    game = Simulation(World(problem, runs=3, seed=4, noise=noise), make_policy(policy))
    game.advance(steps)
    return game


def choices(world: World, policy: str = "lagrange", steps: int = 150) -> Ints:
    """Who was chosen, [steps, R, N]."""
    game, chosen = Simulation(world, make_policy(policy)), []
    for _ in range(steps):
        chosen.append(game.decide()[1])
        game.advance(1)
    return np.array(chosen)


@pytest.mark.parametrize("spec", SETTINGS)
def test_every_setting_fulfils_the_contract(spec: str) -> None:
    check_policy(spec)


def test_the_order_of_agents_changes_no_choice_in_any_of_many_worlds() -> None:
    order, changed = np.arange(12)[::-1].copy(), []
    for family, noise in (("own-rewards-v1", 0.0), ("ladder-v1", 0.1), ("two-state-v1", 0.1)):
        for seed in range(40):
            world = World(make_problems(family, agents=12, budget=3, seed=seed)[0], runs=3, seed=seed, noise=noise)
            plain, turned = (choices(each, "lagrange", steps=30) for each in (world, world.permute(order)))
            if not np.array_equal(plain[..., order], turned):
                changed.append((family, seed))
    assert not changed


@pytest.mark.parametrize(
    ("setting", "values", "must"),
    [
        ("discount", [1, 1.0, -0.1, np.nan, np.inf], "from 0 to below 1"),
        ("curiosity", [-1, -1e-9, np.nan, np.inf, -np.inf, 10**400], "from 0 to 1e6, the bonus per unit of error"),
        ("prior", [0, -1, np.nan, np.inf, 10**400], PRIOR),
        ("discount", ["high", None, True], "of type float or int"),
        ("curiosity", ["much", None, False], "of type float or int"),
        ("prior", ["one", True], "of type float or None or int"),
        ("mixture", ["four", 1, 0, None, 0.5], "of type bool"),
    ],
)
def test_invalid_settings_are_refused_in_one_sentence(setting: str, values: list[Any], must: str) -> None:
    for value in values:
        with pytest.raises(InputError) as refused:
            Lagrange(**{setting: value})
        assert str(refused.value) == f"lagrange: {setting} is {value!r}; it must be {must}."


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("prior=-1", f"lagrange: prior is -1; it must be {PRIOR}."),
        ("discount=nan", "lagrange: discount is nan; it must be from 0 to below 1."),
        ("mixture=maybe", "lagrange: mixture is 'maybe'; it must be of type bool."),
        (
            "price=1",
            "lagrange: 'price=1' is not a setting; write setting=value. Settings: discount, curiosity, prior, mixture, "
            "memory, features.",
        ),
    ],
)
def test_an_invalid_line_of_settings_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        make_policy(f"lagrange:{spec}")
    assert str(refused.value) == sentence


def test_settings_have_an_effect() -> None:
    world = World(make_problems("few-types-v1", agents=30, budget=6, seed=3)[0], runs=2, seed=5)
    played = {spec: choices(world, spec, steps=100).tobytes() for spec in SETTINGS}
    assert len(set(played.values())) == len(SETTINGS)


def test_the_horizon_does_not_matter() -> None:
    problem = make_problems("two-state-v1", agents=12, budget=3, seed=2)[0]
    plays = [choices(World(problem, runs=3, seed=4, noise=0.1, horizon=horizon)) for horizon in (None, 150, 10**6)]
    np.testing.assert_array_equal(plays[0], plays[1])
    np.testing.assert_array_equal(plays[0], plays[2])


def priced(problem: Problem, unit: float = 1.0, offset: float = 0.0) -> Problem:
    return Problem(problem.transition, problem.reward * unit + offset, problem.budget, problem.start)


@pytest.mark.parametrize("family", ["two-state-v1", "own-rewards-v1", "ladder-v1"])
@pytest.mark.parametrize("unit", [1024, 2.0**-30])
def test_a_unit_without_rounding_changes_no_choice(family: str, unit: float) -> None:
    problem = make_problems(family, agents=12, budget=3, seed=2)[0]
    plain = World(problem, runs=3, seed=4, noise=0.01)
    other = World(priced(problem, unit), runs=3, seed=4, noise=0.01 * unit**2)
    np.testing.assert_array_equal(choices(plain), choices(other))


def assert_ranked_alike(problem: Problem, unit: float, offset: float, noise: float = 0.0) -> None:
    """Shown the same moves at the same prices, priorities are the same in the other unit, and nearly all prices are.

    Not all: a gain of 0, as agents have of whom little is known, is counted as worth the price or not by its rounding.
    """
    plain = World(problem, runs=3, seed=4, noise=noise)
    other = World(priced(problem, unit, offset), runs=3, seed=4, noise=noise * unit**2)
    policy, state = Lagrange(), plain.first_states()
    beliefs, parted = [policy.start(plain.shape), policy.start(other.shape)], 0
    for step in range(150):
        draws = plain.draws(step)
        one, two = (policy.rank(belief, state, draws).priority for belief in beliefs)
        np.testing.assert_allclose(two / unit, one, rtol=0, atol=1e-6, err_msg=f"step {step}")
        action = plain.choose(as_ranking(one, plain.shape, policy.name), draws)
        for world, belief in zip((plain, other), beliefs, strict=True):
            outcome = world.advance(state, action, draws)
            policy.learn(belief, state, action, outcome.reward, outcome.after)
        state = outcome.after
        parted += int((np.abs(beliefs[1].price / unit - beliefs[0].price) > 1e-6).sum())
        beliefs[1].price[...] = beliefs[0].price * unit
    assert parted <= 0.02 * 150 * 3


@pytest.mark.parametrize("family", ["two-state-v1", "own-rewards-v1", "ladder-v1"])
@pytest.mark.parametrize(("unit", "offset"), [(1000, 0), (1e-9, 0), (1, 64), (1, -64), (1, 1e6), (1, -1e6)])
def test_the_unit_and_the_offset_of_rewards_do_not_matter(family: str, unit: float, offset: float) -> None:
    problem = make_problems(family, agents=12, budget=3, seed=2)[0]
    assert_ranked_alike(problem, unit, offset, noise=0.01)


@pytest.mark.parametrize("offset", [-64, 64])
def test_an_offset_does_not_matter_where_a_state_is_never_seen(offset: float) -> None:
    transition = np.zeros((12, 2, 3, 3))
    transition[..., :2, :2] = make_problems("two-state-v1", agents=12, budget=3, seed=2)[0].transition
    transition[..., 2, 0] = 1.0
    assert_ranked_alike(Problem(transition, [0, 1, 0.5], 3, start=[0] * 12), 1.0, offset)


@pytest.mark.parametrize("spec", ["lagrange", "lagrange:curiosity=0"])
def test_the_order_of_agents_does_not_matter_with_kinds_in_use(spec: str) -> None:
    """The conformance checks end before kinds are sought."""
    world = World(make_problems("few-types-v1", agents=30, budget=6, seed=3)[0], runs=3, seed=5, noise=0.1)
    order = np.random.default_rng(0).permutation(30)
    plain, turned = (Simulation(each, make_policy(spec)) for each in (world, world.permute(order)))
    for step in range(200):
        plain.advance(1)
        turned.advance(1)
        assert np.array_equal(plain.state[:, order], turned.state), f"step {step}"
    assert (plain.belief.responsibility.sum(axis=(1, 2)) > 0).all()


@pytest.mark.parametrize("stop", [1, 19, 49, 53, 120])
def test_a_checkpoint_continues_bit_for_bit(stop: int, tmp_path: Path) -> None:
    problem = make_problems("few-types-v1", agents=30, budget=6, seed=3)[0]
    world = World(problem, runs=2, seed=5, noise=0.1)
    whole, half = Simulation(world, Lagrange(curiosity=0.5)), Simulation(world, Lagrange(curiosity=0.5))
    half.advance(stop)
    half.save(tmp_path / "half.npz")
    resumed = Simulation.load(tmp_path / "half.npz", world)
    whole.advance(160)
    resumed.advance(160 - stop)
    assert resumed.policy == Lagrange(curiosity=0.5)
    np.testing.assert_array_equal(whole.state, resumed.state)
    for name, array in flatten(whole.belief).items():
        np.testing.assert_array_equal(array, flatten(resumed.belief)[name], err_msg=name)
    assert whole.belief.responsibility.any()


def test_chunks_and_threads_do_not_matter() -> None:
    problems = make_problems("few-types-v1", instances=4, agents=300, budget=60, seed=3)
    one, several = (simulate(problems, "lagrange", 80, runs=10, seed=5, threads=threads) for threads in (1, 4))
    np.testing.assert_array_equal(one.reward, several.reward)
    world = World(problems, runs=10, seed=5, horizon=80)
    alone, _ = Simulation(world.chunk(13, 16), Lagrange()).advance(80)
    np.testing.assert_array_equal(one.reward[13:16], alone)


@pytest.mark.parametrize(("agents", "budget"), [(12, 0), (12, 12), (1, 0), (1, 1)])
def test_where_there_is_no_choice_it_learns_all_the_same(agents: int, budget: int) -> None:
    game = play("two-state-v1", "lagrange", 120, noise=0.1, agents=agents, budget=budget)
    assert (game.belief.price == 0).all()
    assert (game.belief.counts.moves.sum(axis=(2, 3, 4)) == 120).all()
    assert (game.belief.reward[..., 1] > game.belief.reward[..., 0]).all()
    for name, array in flatten(game.belief).items():
        assert np.isfinite(array).all(), name


def test_with_one_state_all_agents_are_alike() -> None:
    world = World(Problem(np.ones((6, 2, 1, 1)), np.arange(6.0)[:, None], budget=2), runs=20, seed=3, noise=1.0)
    game = Simulation(world, Lagrange())
    often = np.zeros(6)
    for _ in range(120):
        ranking, action = game.decide()
        assert (np.ptp(ranking.priority, axis=1) == 0).all()
        often += action.sum(axis=0)
        game.advance(1)
    # Each of 2400 times with probability one third: 800, with a deviation of 23.
    assert np.abs(often - 800).max() < 4 * 23.1


def test_the_belief_holds_what_was_observed() -> None:
    """Moves, the spread of rewards about their means, and a posterior of moves and the pool's row in every step."""
    world = World(make_problems("two-state-v1", agents=5, budget=2, seed=2)[0], runs=2, seed=4, noise=0.5)
    policy = Lagrange(mixture=False)
    belief, state = policy.start(world.shape), world.first_states()
    seen: dict[tuple[int, int, int], list[float]] = {}
    moves = np.zeros_like(belief.counts.moves)
    for step in range(90):
        draws = world.draws(step)
        action = np.zeros((2, 5), np.int64)
        action[:, [step % 5, step * step % 5]] = 1
        after, reward, *_ = world.advance(state, action, draws)
        policy.learn(belief, state, action, reward, after)
        for r, n in np.ndindex(2, 5):
            moves[r, n, action[r, n], state[r, n], after[r, n]] += 1
            seen.setdefault((r, n, int(after[r, n])), []).append(float(reward[r, n]))
        state = after
        np.testing.assert_array_equal(belief.counts.moves, moves)
        np.testing.assert_allclose(belief.posterior, moves + belief.levels.pool[:, None], rtol=1e-12)
        np.testing.assert_allclose(belief.weight, belief.levels.pool.sum(axis=-1), rtol=1e-12)
        assert (belief.weight < belief.levels.agent_weight).all()
    for run in range(2):
        spread = sum(np.var(rewards) * len(rewards) for (r, _, _), rewards in seen.items() if r == run)
        assert belief.squared_deviations[run] == pytest.approx(spread, rel=1e-9)
    np.testing.assert_allclose(belief.reward.sum(axis=-1), 0.0, atol=1e-12)


def test_a_given_prior_is_not_changed() -> None:
    game = play("few-types-v1", "lagrange:prior=0.25", 200, agents=30, budget=6)
    np.testing.assert_array_equal(game.belief.posterior, game.belief.counts.moves + 0.25)
    np.testing.assert_array_equal(game.belief.weight, 0.5)
    assert not game.belief.responsibility.any()


def test_kinds_are_fitted_after_fifty_steps_and_only_if_requested() -> None:
    kinds, none = (
        play("few-types-v1", f"lagrange:mixture={kinds}", 49, agents=30, budget=6) for kinds in (True, False)
    )
    assert not kinds.belief.responsibility.any()
    for game in (kinds, none):
        game.advance(10)
    assert (kinds.belief.responsibility.sum(axis=(1, 2)) > 0).all()
    assert not none.belief.responsibility.any()


def test_it_is_clearly_ahead_of_egt_and_wiql() -> None:
    problems = make_problems("two-state-v1", instances=12, agents=20, budget=4, seed=21)
    names = ("lagrange", "egt", "wiql", "lagrange:curiosity=0,prior=1,mixture=False")
    ours, *others, plain = (simulate(problems, name, 300, runs=3, seed=2).reward.mean(axis=1) for name in names)
    for other in others:
        ahead = ours - other
        assert ahead.mean() > 4 * ahead.std(ddof=1) / 6
        assert ahead.mean() > 0.15
        assert (ahead.reshape(12, 3).mean(axis=1) > 0).all()
        assert plain.mean() > other.mean()


def test_the_price_lets_about_as_many_through_as_are_acted_on() -> None:
    """Without curiosity, the share of agents whose gain exceeds the price comes to the budget's, 4 of 20."""
    problems = make_problems("two-state-v1", instances=6, agents=20, budget=4, seed=21)
    game = Simulation(World(problems, runs=3, seed=2), Lagrange(curiosity=0.0))
    game.advance(200)
    above = []
    for _ in range(100):
        above.append((game.decide()[0].priority > 0).mean())
        game.advance(1)
    assert abs(np.mean(above) - 0.2) < 0.03


@pytest.mark.parametrize("states", [1, 2, 5])
@pytest.mark.parametrize("curiosity", [0.0, 0.5])
def test_the_estimate_is_what_the_priority_is_made_of(states: int, curiosity: float) -> None:
    rng, policy = np.random.default_rng(states), Lagrange(curiosity=curiosity)
    belief, draws = some_belief(rng, policy, 3, 7, states), some_draws(3, 7)
    belief.step[...] = 9
    state = rng.integers(0, states, (3, 7))
    benefit, error, noise, center = policy.estimate(belief, state)
    assert center is not None
    ranked = as_ranking(policy.rank(belief, state, draws), Shape(3, 7, states, 2, None, np.ones(3)), "lagrange")
    whole = center - belief.price[:, None]
    np.testing.assert_allclose(whole, ranked.priority, rtol=1e-12, atol=1e-12)
    steady = literal_rank(belief, state, 0.0) + belief.price[:, None]
    np.testing.assert_allclose(benefit, steady, rtol=1e-9, atol=1e-9)
    assert np.allclose(center, benefit) == (curiosity == 0.0 or states == 1)
    assert not noise.any()
    assert error.min() >= 0
    assert (error.max() > 1e-6) == (states > 1)  # of one state nothing is open but how sums were rounded


def test_before_the_first_step_nothing_is_known_and_the_error_is_infinite() -> None:
    policy, state = Lagrange(), np.array([[0, 1, 1]])
    belief = policy.start(Shape(1, 3, 2, 1, None, np.ones(1)))
    benefit, error, noise = policy.estimate(belief, state)[:3]
    assert (benefit.tolist(), error.tolist()) == ([[0.0] * 3], [[np.inf] * 3])
    assert np.isfinite(noise).all()
    policy.learn(belief, state, np.array([[0, 1, 0]]), np.array([[0.0, 1.0, 1.0]]), np.array([[0, 1, 1]]))
    error = policy.estimate(belief, state).error
    assert (np.isfinite(error) & (error > 0)).all()


def literal_learn_some(
    belief: LagrangeBelief, some: Ints, state: Ints, action: Ints, policy: Lagrange
) -> tuple[Floats, Floats]:
    """Worth of all agents, and the price by those seen; the moves of this step are counted already."""
    pace = 0.6 / (1 + 0.02)
    full = np.zeros((state.shape[0], belief.value.shape[1]), np.int64)
    full[:, some] = state
    worth, _ = literal_sweep(belief, full, full * 0, policy.discount, pace)
    row = belief.posterior / belief.posterior.sum(axis=-1, keepdims=True)
    wait, act = np.moveaxis(np.einsum("rnast,rnt->rnas", row, belief.value), 2, 0)
    gain = np.take_along_axis((act - belief.price[:, None, None] - wait)[:, some], state[..., None], axis=-1)[..., 0]
    surplus = (gain > 0).sum(axis=1) - action.sum(axis=1)
    return worth, belief.price + pace * np.abs(gain).mean(axis=1) * surplus / belief.value.shape[1]


@pytest.mark.parametrize("acted", [0.0, 0.4, 1.0])
def test_agents_that_were_not_seen_are_swept_and_do_not_move_the_price(acted: float) -> None:
    rng, policy, some = np.random.default_rng(5), Lagrange(), np.array([0, 3, 4, 8])
    belief = some_belief(rng, policy, 3, 9, 2)
    state, after = rng.integers(0, 2, (2, 3, 4))
    action, reward = (rng.random((3, 4)) < acted).astype(np.int64), rng.normal(size=(3, 4))
    expected = belief._replace(posterior=belief.posterior.copy(), value=belief.value.copy(), price=belief.price.copy())
    moves = belief.counts.moves.copy()
    for r, m in np.ndindex(3, 4):
        cell = (r, some[m], action[r, m], state[r, m], after[r, m])
        expected.posterior[cell] += 1
        moves[cell] += 1
    worth, price = literal_learn_some(expected, some, state, action, policy)
    before = belief.price.copy()
    policy.learn_some(belief, some, state, action, reward, after)
    np.testing.assert_array_equal(belief.counts.moves, moves)
    np.testing.assert_array_equal(belief.counts.arrivals.sum(axis=2), np.isin(np.arange(9), some) * np.ones((3, 1)))
    np.testing.assert_allclose(belief.value, worth, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(belief.price, price, rtol=1e-12, atol=1e-12)
    assert (belief.price != before).any()


def test_seen_in_halves_agents_teach_as_much_of_moves_as_in_one() -> None:
    world = World(make_problems("two-state-v1", agents=10, budget=3, seed=1), runs=2, seed=3)
    whole, halves = Simulation(world, Lagrange()), Lagrange().start(world.shape)
    for _ in range(30):
        state, (_, action) = whole.state, whole.decide()
        outcome = world.advance(state, action, world.draws(whole.step))
        for some in (np.arange(0, 10, 2), np.arange(1, 10, 2)):
            given = [np.ascontiguousarray(array[:, some]) for array in (state, action, outcome.reward, outcome.after)]
            Lagrange().learn_some(halves, some, *given)  # type: ignore[arg-type]
        whole.advance(1)
    for name in ("moves", "arrivals", "total"):
        np.testing.assert_array_equal(getattr(halves.counts, name), getattr(whole.belief.counts, name))
    assert int(halves.step) == 60


def grown_by(game: Simulation, newcomers: int) -> LagrangeBelief:
    shape, belief = game.world.shape, game.belief
    assert isinstance(belief, LagrangeBelief)
    return grow(game.policy, belief, shape._replace(agents=shape.agents + newcomers))


@pytest.mark.parametrize("family", ["two-state-v1", "few-types-v1"])
def test_new_agents_start_with_what_was_learnt_from_the_others(family: str) -> None:
    problem = make_problems(family, agents=40, budget=8, seed=2)[0]
    game = Simulation(World(problem, runs=2, seed=4, horizon=300), Lagrange())
    game.advance(250)
    old = game.belief
    used = old.responsibility[:, 0].sum(axis=1) > 0
    assert used.all() == (family == "few-types-v1")
    new = grown_by(game, 3)
    prior = (old.posterior - old.counts.moves).mean(axis=1)
    for n in (40, 41, 42):
        np.testing.assert_allclose(new.posterior[:, n], prior, rtol=1e-6)
        np.testing.assert_allclose(new.posterior[:, n].sum(axis=-1), old.weight, rtol=1e-12)
        np.testing.assert_allclose(new.responsibility[:, n].sum(axis=-1), used, atol=1e-12)
        np.testing.assert_allclose(new.value[:, n], old.value.mean(axis=1), rtol=1e-12)
        assert new.counts.moves[:, n].sum() == 0
    np.testing.assert_allclose(np.ptp(new.reward[:, 40:], axis=2), np.ptp(problem.reward), rtol=1e-6)


def test_newcomers_keep_a_prior_that_is_set_and_are_new_before_the_first_step() -> None:
    world = World(make_problems("two-state-v1", agents=6, budget=2, seed=2), seed=4)
    game = Simulation(world, Lagrange(prior=0.25))
    game.advance(20)
    new = grown_by(game, 2)
    assert (new.posterior[:, 6:] == 0.25).all()
    assert new.responsibility.sum() == 0
    fresh = grown_by(Simulation(world, Lagrange()), 2)
    assert (fresh.posterior[:, 6:] == 1.0).all()
    assert fresh.value[:, 6:].tolist() == [[[0.0, 0.0]] * 2]


def test_a_unit_of_cost_changes_nothing_but_the_unit_of_the_price() -> None:
    plain = make_problems("two-state-v1", agents=12, budget=4, seed=4711)[0]
    games = [Simulation(World(problem, runs=3, seed=2), Lagrange()) for problem in (plain, costing(plain, 2.0))]
    rewards = [game.advance(80)[0] for game in games]
    assert np.array_equal(rewards[0], rewards[1])
    one, two = (game.belief.price for game in games)
    np.testing.assert_allclose(one, 2 * two, rtol=1e-12)


def costing(problem: Problem, cost: float) -> Problem:
    return problem.replace(cost=np.full(problem.shape[0], cost), budget=int(problem.budget * cost))


def test_it_acts_on_nobody_who_is_expected_to_lose_and_keeps_within_the_budget() -> None:
    for name in ("some-harmed-at-most-v1", "visits-v1"):
        problem = make_problems(name, agents=20, budget=16, seed=4711)[0].replace(spend="at most")
        game = Simulation(World(problem, runs=4, seed=1), Lagrange(curiosity=0.0))
        cost, unspent = np.ones(20) if problem.cost is None else problem.cost, 0.0
        for _ in range(100):
            benefit = game.policy.estimate(game.belief, game.state).benefit
            _, action = game.decide()
            assert (action @ cost <= 16 + 1e-9).all()
            assert game.step == 0 or (benefit[action == 1] > 0).all()  # nothing is known before the first step
            unspent += float((16 - action @ cost).sum())
            assert (game.belief.price >= 0).all()
            game.advance()
        assert name == "visits-v1" or unspent > 0.05 * 16 * 400


def test_it_gains_from_a_budget_that_need_not_be_spent_and_from_knowing_costs() -> None:
    def earn(problems: list[Problem], policy: str = "lagrange") -> float:
        return float(simulate(problems, policy, horizon=200, runs=2, seed=3, threads=1).reward.mean())

    harmed = [make_problems(name, instances=6, seed=4711) for name in ("some-harmed-v1", "some-harmed-at-most-v1")]
    assert earn(harmed[1]) > earn(harmed[0]) + 0.5
    visits = make_problems("visits-v1", instances=6, seed=4711)
    floor, ceiling = earn(visits, "random"), earn(visits, "whittle-oracle")
    assert earn(visits) > floor + 0.6 * (ceiling - floor)


def gap_closed(family: str, policies: list[str], horizon: int, **settings: int) -> list[float]:
    """The share of the gap that each policy has closed by the end."""
    problems = make_problems(family, instances=6, seed=4711, **settings)
    return [float(row.gap.mean) for row in compare(problems, policies, horizon, seed=1, threads=1, bound=False).rows]


def test_what_has_changed_is_forgotten_and_what_has_not_is_kept() -> None:
    never, learned, short = gap_closed("change-v1", ["lagrange:memory=inf", "lagrange", "lagrange:memory=100"], 1000)
    assert learned > never + 0.08
    assert short > never + 0.02
    never, learned, short = gap_closed("two-state-v1", ["lagrange:memory=inf", "lagrange", "lagrange:memory=50"], 1000)
    assert learned == pytest.approx(never, abs=0.01)
    assert short < never - 0.01


def test_a_half_life_halves_the_counts_and_keeps_the_prior() -> None:
    world = World(make_problems("two-state-v1", agents=9, budget=2, seed=3)[0], seed=5, noise=0.1)
    simulation = Simulation(world, make_policy("lagrange:memory=16"))
    simulation.advance(400)
    counts = simulation.belief.counts
    kept = 16 / np.log(2)  # Σ 2^(−age / 16)
    assert counts.moves.sum() / 9 == pytest.approx(kept, rel=0.1)
    assert counts.arrivals.sum() / 9 == pytest.approx(kept, rel=0.1)
    assert (simulation.belief.posterior - counts.moves > 0).all()


def test_features_that_matter_help_and_useless_ones_do_little_harm() -> None:
    without, using = gap_closed("features-v1", ["lagrange:features=false", "lagrange"], 30)
    assert using > without + 0.07
    without, using = gap_closed("features-v1", ["lagrange:features=false", "lagrange"], 30, relevance=0)
    assert using > without - 0.02


def test_newcomers_get_the_prior_of_those_who_are_like_them() -> None:
    (problem,) = make_problems("features-v1", agents=200, budget=40, seed=3, relevance=100)
    assert problem.features is not None
    world = World(problem.replace(features=problem.features), seed=5)
    policy = make_policy("lagrange")
    simulation = Simulation(world, policy)
    simulation.advance(40)
    features = np.concatenate([world.shape.known_features(), problem.features[None, :20]], axis=1)
    grown = grow(policy, simulation.belief, world.shape._replace(agents=220, features=features))
    prior = grown.posterior[0, 200:, :, :, 1] / grown.posterior[0, 200:].sum(axis=-1)
    truth, pooled = problem.transition[:20, :, :, 1], problem.transition[..., 1].mean(axis=0)
    assert np.abs(prior - truth).mean() < 0.7 * np.abs(pooled - truth).mean()


@pytest.mark.parametrize("memory", [0.5, -1.0, float("nan")])
def test_a_memory_that_is_none_is_refused(memory: float) -> None:
    with pytest.raises(InputError, match=r"memory is .*; it must be 1 or more, a half-life in steps, or None"):
        Lagrange(memory=memory)
