"""What agents share: found again in simulated populations, and the same as a plain reading of pairs and variances."""

import numpy as np
import pytest

from restive.kernels.hierarchical_prior import (
    MAX_WEIGHT,
    MIN_WEIGHT,
    Levels,
    first_shares,
    learn_pool,
    learn_rewards,
)
from restive.types import Floats, Ints

ROUNDS = 30


def populate(rng: np.random.Generator, mean: Floats, weight: float, agents: int, moves: int) -> Floats:
    """So many moves out of each state, [N, A, S, S], of agents whose rows are Dirichlet around `mean` [A, S, S]."""
    rows = rng.standard_gamma(np.broadcast_to(weight * mean, (agents, *mean.shape)))
    return rng.multinomial(moves, rows / rows.sum(axis=-1, keepdims=True)).astype(np.float64)


def begin(moves: Floats) -> Levels:
    """The levels before there are data."""
    actions, states = moves.shape[1:3]
    weight = np.full((actions, states), float(states))
    return Levels(np.ones((actions, states, states)), weight, np.full(1, 2.0 * states), first_shares())


def settle(moves: Floats, rounds: int = ROUNDS) -> tuple[Floats, Floats]:
    """The common rows and the weights of agents that rounds of learning come to, [A, S, S] and [A, S]."""
    levels = begin(moves)
    for _ in range(rounds):
        learn_pool(moves, levels)
    return levels.pool / levels.pool.sum(axis=-1, keepdims=True), levels.agent_weight


def literal_candidates(common: Floats, size: Floats) -> Floats:
    """The five rows that each common row may resemble, [K, A, S, S]."""
    actions, states = size.shape
    rows = np.zeros((5, actions, states, states))
    rows[0] = 1 / states
    rows[1] = np.eye(states)
    for a, s in np.ndindex(actions, states):
        others = [u for u in range(states) if u != s]
        for t in range(states):
            far = [u for u in others if 0 <= u + t - s < states and size[a, u] > 0]
            moved = sum(common[a, u, u + t - s] for u in far)
            if sum(size[a, u] for u in far) == 0:  # the same distance in the other direction
                far = [u for u in range(states) if 0 <= u + s - t < states]
                moved = sum(common[a, u, u + s - t] for u in far)
            rows[2, a, s, t] = (moved + 0.1 / states) / (sum(size[a, u] for u in far) + 0.1)
        rows[3, a, s] = common[a, others].sum(axis=0) + 0.1 / states
        rows[4, a, s] = common[1 - a, s] + 0.1 / states
    normalised: Floats = rows / rows.sum(axis=-1, keepdims=True)
    return normalised


def literal_pool(moves: Floats, levels: Levels) -> Levels:
    """One round by whole arrays, and pair by pair for the weights of agents."""
    _, old, (base_weight,), share = levels
    _, actions, states, _ = moves.shape
    seen = moves.sum(axis=-1)
    trust = np.where(seen > 0, (old + 1) / (old + seen), 0.0)
    common, size = (trust[..., None] * moves).sum(axis=0), (trust * seen).sum(axis=0)
    rows = literal_candidates(common, size)
    said = common * ((base_weight + 1) / (base_weight + np.maximum(size, 1)))[..., None]
    spare = np.array([1.0, 0.1, 0.1, 0.1, 0.1])
    for _ in range(2):
        part = share[:, None, None, None] * rows
        found = (part / np.maximum(part.sum(axis=0), 1e-300) * said).sum(axis=(1, 2, 3)) + spare
        share = found / found.sum()
    base = np.einsum("k,kast->ast", share, rows)
    trusts, shares = [2 / states * (20 / (20 + base_weight)) ** 2], [1 / (2 * states + 1)]
    for a, s in np.ndindex(actions, states):
        if size[a, s] > 1.5:
            row = common[a, s] / size[a, s]
            excess = ((row - base[a, s]) ** 2).sum() - (1 - (row**2).sum()) / (size[a, s] - 1)
            trusts.append((size[a, s] / (base_weight + size[a, s])) ** 2)
            shares.append(excess / (1 - (base[a, s] ** 2).sum()))
    apart = np.average(shares, weights=trusts)
    base_weight = np.sqrt(base_weight * (np.clip(1 / apart - 1, 1, 5000) if apart > 0 else 5000))
    row = (base_weight * base + common + 4 / states) / (base_weight + size + 4)[..., None]
    excess, total = literal_correlation(moves, row, old)
    everywhere = (excess.sum() + 0.6 / (states + 1)) / (total.sum() + 0.6)
    own = (excess + 5 * everywhere) / (total + 5)
    weight = np.sqrt(old * np.where(own > 0, np.clip(1 / own - 1, 0.2, 500), 500))
    known = (base_weight + size) / (weight + 1)
    worth = np.maximum((weight + 1) * known / (known + 1) - 1, 0.2)
    return Levels(worth[..., None] * row, weight, np.array([base_weight]), share)


def literal_correlation(moves: Floats, row: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Every move of an agent beside every other one of it, and beside moves by the row: sums and weights, [A, S]."""
    excess, total = np.zeros(weight.shape), np.zeros(weight.shape)
    for n, a, s in np.ndindex(*moves.shape[:3]):
        went = np.repeat(np.arange(moves.shape[-1]), moves[n, a, s].astype(int))
        if went.size < 2:
            continue
        same = (went[:, None] == went)[~np.eye(went.size, dtype=bool)].mean()
        square = (row[a, s] ** 2).sum()
        trust = (went.size / (weight[a, s] + went.size)) ** 2
        excess[a, s] += trust * (same - 2 * row[a, s][went].mean() + square) / (1 - square)
        total[a, s] += trust
    return excess, total


@pytest.mark.parametrize("weight", [2.0, 20.0, 100.0])
@pytest.mark.parametrize("states", [2, 4])
def test_the_rows_and_the_weight_of_a_population_are_found_again(states: int, weight: float) -> None:
    rng = np.random.default_rng(7)
    weights = []
    for _ in range(12):
        mean = rng.dirichlet(np.full(states, 4.0), (2, states))
        rows, found = settle(populate(rng, mean, weight, agents=400, moves=60))
        weights.append(found)
        # A share of the moves strays at most by about 1/4 · (1 / 60 + 1 / weight) / 400 in variance: five deviations.
        assert np.abs(rows - mean).max() < 5 * np.sqrt(0.25 * (1 / 60 + 1 / (weight + 1)) / 400)
    logs = np.log(np.array(weights) / weight)
    assert abs(logs.mean()) < 0.02 + 4 * logs.std() / np.sqrt(logs.size)
    assert logs.std() < 0.25


def test_counts_of_any_size_give_the_same_weight() -> None:
    """Agents seen often and agents seen rarely are of one population: neither biases the weight."""
    rng = np.random.default_rng(8)
    mean = rng.dirichlet(np.full(3, 4.0), (2, 3))
    mixed = np.concatenate([populate(rng, mean, 10.0, 600, moves) for moves in (3, 15, 200)])
    rows, weight = settle(mixed)
    assert np.abs(rows - mean).max() < 0.02
    assert np.abs(np.log(weight / 10)).max() < 0.2


def test_identical_agents_give_a_large_weight() -> None:
    rng = np.random.default_rng(1)
    mean = rng.dirichlet(np.full(3, 4.0), (2, 3))
    moves = rng.multinomial(60, np.broadcast_to(mean, (300, 2, 3, 3))).astype(np.float64)
    assert (settle(moves)[1] > 200).all()


def test_agents_with_nothing_in_common_give_a_weight_near_zero() -> None:
    where = np.random.default_rng(2).integers(0, 3, (300, 2, 3))
    _, weight = settle(60.0 * np.eye(3)[where])
    assert (weight >= MIN_WEIGHT).all()
    assert (weight < 1.01 * MIN_WEIGHT).all()


@pytest.mark.parametrize("states", [1, 2, 7])
def test_without_data_rows_are_nearly_uniform_and_agents_differ_as_uniform_rows_do(states: int) -> None:
    rows, weight = settle(np.zeros((5, 2, states, states)))
    # The base row is uniform but for a little staying, a share of 0.1 / 1.4.
    base = 1.3 / 1.4 / states + np.eye(states) * 0.1 / 1.4
    wanted = (2 * states * base + 4 / states) / (2 * states + 4)
    np.testing.assert_allclose(rows, np.broadcast_to(wanted, rows.shape), rtol=1e-12)
    np.testing.assert_allclose(weight, states, rtol=1e-12)


def test_a_row_without_data_resembles_the_rows_with_data_as_these_resemble_each_other() -> None:
    """On a ladder, where acting climbs one rung and waiting falls one, the rung never seen does as the others do."""
    states = 6
    moves = np.zeros((30, 2, states, states))
    for s in (1, 2, 4):
        moves[:, 0, s, s - 1] = moves[:, 1, s, s + 1] = 20.0
    rows, _ = settle(moves)
    assert rows[0, 3, 2] > 0.6 < rows[1, 3, 4]
    # Where all rows are alike, whatever state and action they are of, one without data is believed to be so too.
    moves[:] = 0.0
    moves[:, :, :4] = [12.0, 2.0, 2.0, 2.0, 1.0, 1.0]
    moves[:, 0, 4] = moves[:, 0, 0]
    rows, _ = settle(moves)
    assert np.abs(rows[1, 4] - np.array([12, 2, 2, 2, 1, 1]) / 20).max() < 0.1


def test_one_state_has_nowhere_else_to_go() -> None:
    rows, weight = settle(np.random.default_rng(3).integers(0, 90, (7, 2, 1, 1)).astype(np.float64))
    np.testing.assert_allclose(rows, 1.0, rtol=1e-12)
    assert ((weight >= MIN_WEIGHT) & (weight <= MAX_WEIGHT)).all()


@pytest.mark.parametrize("seed", range(4))
def test_each_round_agrees_with_counting_pairs_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    moves = rng.integers(0, 2 + 3 * seed, (12, 2, 3, 3)).astype(np.float64)
    levels = begin(moves)
    for _ in range(5):
        wanted = literal_pool(moves, levels)
        learn_pool(moves, levels)
        for one, other in zip(levels, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)


def test_the_order_of_agents_does_not_matter() -> None:
    rng = np.random.default_rng(4)
    moves = rng.integers(0, 9, (25, 2, 3, 3)).astype(np.float64)
    plain, turned = settle(moves), settle(moves[rng.permutation(25)].copy())
    for one, other in zip(plain, turned, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


class Rewards:
    """Rewards seen by agents in states, stored one by one: `mean` [N, S] and noise around it, `arrivals` of each."""

    def __init__(self, arrivals: Floats | Ints, mean: Floats, noise: float, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.arrivals = arrivals.astype(np.float64)
        self.seen = {
            (n, s): mean[n, s] + noise * rng.standard_normal(int(arrivals[n, s])) for n, s in np.ndindex(arrivals.shape)
        }

    def learn(self, offset: float = 0.0) -> Floats:
        total, spread = np.zeros(self.arrivals.shape), 0.0
        for cell, rewards in self.seen.items():
            total[cell] = (rewards + offset).sum()
            spread += float(((rewards - rewards.mean()) ** 2).sum()) if rewards.size else 0.0
        learnt = np.empty(self.arrivals.shape)
        learn_rewards(self.arrivals, total, spread, learnt)
        return learnt


def random_effects(rewards: Rewards) -> tuple[float, Floats]:
    """The textbook: variances by the analysis of variance, means that weigh agents by the variance of theirs."""
    seen, (agents, states) = rewards.seen, rewards.arrivals.shape
    cells = [cell for cell in seen if seen[cell].size]
    count = sum(seen[cell].size for cell in cells)
    within = sum(((seen[cell] - seen[cell].mean()) ** 2).sum() for cell in cells) / (count - len(cells))
    between, denominator, freedom = 0.0, 0.0, 0
    for s in range(states):
        groups = [seen[n, s] for n in range(agents) if seen[n, s].size]
        sizes, all_of_it = np.array([group.size for group in groups]), np.concatenate(groups)
        between += sum(group.size * (group.mean() - all_of_it.mean()) ** 2 for group in groups)
        denominator += all_of_it.size - (sizes**2).sum() / all_of_it.size
        freedom += len(groups) - 1
    among = (between - freedom * within) / denominator
    shrunken = np.empty((agents, states))
    for s in range(states):
        means = np.array([seen[n, s].mean() if seen[n, s].size else 0.0 for n in range(agents)])
        sizes = np.array([seen[n, s].size for n in range(agents)])
        precision = np.where(sizes > 0, 1 / (among + within / np.maximum(sizes, 1)), 0.0)
        middle = (precision * means).sum() / precision.sum()
        trust = among / (among + within / np.maximum(sizes, 1))
        shrunken[:, s] = np.where(sizes > 0, middle + trust * (means - middle), middle)
    return within / among, shrunken


def test_rewards_that_are_alike_and_noisy_are_pooled() -> None:
    """With noise, one state at a time: to the digit the mean of all rewards, or so near that agents hardly differ."""
    pooled = 0
    for seed in range(20):
        arrivals = np.random.default_rng(seed).integers(1, 9, (40, 1))
        rewards = Rewards(arrivals, np.full((40, 1), 3.0), noise=2.0, seed=seed)
        learnt, mean = rewards.learn(), np.concatenate(list(rewards.seen.values())).mean()
        raw = np.array([rewards.seen[n, 0].mean() for n in range(40)])
        assert learnt.std() < 0.5 * raw.std()
        pooled += bool(np.abs(learnt - mean).max() < 1e-6)
    assert 6 <= pooled <= 18  # about half the time random variation leaves less variance between agents than within


def test_rewards_without_noise_are_each_agents_own() -> None:
    rng = np.random.default_rng(5)
    own = rng.normal(size=(10, 3))
    learnt = Rewards(rng.integers(2, 9, (10, 3)), own, noise=0.0).learn()
    np.testing.assert_allclose(learnt, own, rtol=1e-9)


def test_rewards_without_noise_that_are_the_same_for_all_stay_the_same_for_all() -> None:
    rng = np.random.default_rng(5)
    learnt = Rewards(rng.integers(0, 9, (10, 3)), np.tile([0.1, 0.7, 1 / 3], (10, 1)), noise=0.0).learn()
    np.testing.assert_allclose(learnt, np.tile([0.1, 0.7, 1 / 3], (10, 1)), rtol=1e-12)


def test_a_state_that_an_agent_never_visited_has_the_pooled_reward() -> None:
    arrivals = np.full((6, 2), 4.0)
    arrivals[2, 1] = 0.0
    mean = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 9.0], [0.0, 3.0], [0.0, 4.0], [0.0, 5.0]])
    learnt = Rewards(arrivals, mean, noise=0.0).learn()
    assert learnt[2, 1] == pytest.approx(3.0)
    np.testing.assert_allclose(learnt[[0, 5], 1], [1.0, 5.0])


def test_one_reward_of_each_agent_is_pooled_because_noise_and_difference_cannot_be_separated() -> None:
    learnt = Rewards(np.ones((5, 1)), np.arange(5.0)[:, None], noise=0.0).learn()
    np.testing.assert_allclose(learnt, 2.0, atol=1e-6)


@pytest.mark.parametrize("apart", [0.3, 1.0, 5.0])
def test_shrinkage_is_that_of_one_way_random_effects(apart: float) -> None:
    rng = np.random.default_rng(6)
    rewards = Rewards(rng.integers(0, 12, (30, 4)), rng.normal(0, apart, (30, 4)), noise=1.0)
    weight, wanted = random_effects(rewards)
    np.testing.assert_allclose(rewards.learn(), wanted, rtol=1e-9, atol=1e-12)
    assert abs(np.log(weight * apart**2)) < 0.6  # the variance within agents is 1


@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_a_large_offset_of_all_rewards_is_only_added(offset: float) -> None:
    rng = np.random.default_rng(6)
    rewards = Rewards(rng.integers(0, 12, (30, 4)), rng.normal(0, 2, (30, 4)), noise=1.0)
    np.testing.assert_allclose(rewards.learn(offset) - offset, rewards.learn(), atol=1e-7)


def test_a_state_that_nobody_visited_has_an_average_reward() -> None:
    arrivals = np.array([[2.0, 2.0, 0.0]] * 3)
    rewards = Rewards(arrivals, np.tile([0.0, 1.0, 7.0], (3, 1)), noise=0.0)
    np.testing.assert_allclose(rewards.learn(), np.tile([0.0, 1.0, 0.5], (3, 1)), atol=1e-9)
    np.testing.assert_allclose(rewards.learn(100.0) - 100.0, rewards.learn(), atol=1e-9)
