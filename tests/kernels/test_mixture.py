"""Kinds of agents: found where there are some, left alone where there are none, given up when they no longer hold."""

from typing import NamedTuple

import numpy as np
import pytest

from restive.kernels.hierarchical_prior import (
    Levels,
    agent_correlation,
    first_shares,
    learn_pool,
    next_weight,
    prior_correlation,
)
from restive.kernels.mixture import N_TYPES, learn_mixture
from restive.types import Floats, Ints


class Learnt(NamedTuple):
    levels: Levels
    share: Floats
    weight: Floats
    posterior: Floats

    @property
    def pool(self) -> Floats:
        return self.levels.pool

    @property
    def used(self) -> bool:
        return bool(self.share.sum() > 0)


def no_levels(actions: int, states: int) -> Levels:
    pool, agent_weight = np.ones((actions, states, states)), np.full((actions, states), float(states))
    return Levels(pool, agent_weight, np.full(1, 2.0 * states), first_shares())


def nothing(moves: Floats) -> Learnt:
    agents, actions, states, _ = moves.shape
    share, weight = np.zeros((agents, N_TYPES)), np.zeros((actions, states))
    return Learnt(no_levels(actions, states), share, weight, np.full_like(moves, np.nan))


def settle(moves: Floats, rounds: int = 20, seek: int = 10, learnt: Learnt | None = None) -> Learnt:
    """Rounds of learning, kinds being sought in one of them."""
    learnt = learnt or nothing(moves)
    for number in range(rounds):
        seen = learn_pool(moves, learnt.levels)
        learn_mixture(moves, seen, learnt.pool, number == seek, learnt.share, learnt.weight, learnt.posterior)
    return learnt


def by_the_pool(moves: Floats, pool: Floats) -> tuple[Floats, Floats]:
    """Weight and posterior where there are no kinds."""
    return pool.sum(axis=-1), moves + pool


def draw(rng: np.random.Generator, rows: Floats, moves: int) -> Floats:
    return rng.multinomial(moves, rows).astype(np.float64)


def three_kinds(seed: int, moves: int = 40, agents: int = 40) -> tuple[Floats, Ints, Floats]:
    """Rows of three kinds [3, A, S, S], which of them each agent is of, and the moves of agents that never differ."""
    rng = np.random.default_rng(seed)
    rows, which = rng.dirichlet(np.full(3, 0.5), (3, 2, 3)), np.arange(agents) % 3
    return rows, which, draw(rng, rows[which], moves)


def names(share: Floats, which: Ints) -> list[set[int]]:
    return [set(share[which == kind].argmax(axis=1).tolist()) for kind in range(which.max() + 1)]


@pytest.mark.parametrize("seed", range(6))
def test_three_clear_kinds_are_distinguished_exactly(seed: int) -> None:
    rows, which, moves = three_kinds(seed)
    learnt = settle(moves)
    assert learnt.used
    np.testing.assert_allclose(learnt.share.sum(axis=1), 1.0, rtol=1e-12)
    # Five types are fitted, so one of the three may get two labels; but no label covers two of them.
    found = names(learnt.share, which)
    assert sum(map(len, found)) == len(set.union(*found))
    mean, by_pool = (each / each.sum(axis=-1, keepdims=True) for each in (learnt.posterior, moves + learnt.pool))
    for kind in range(3):
        of_it = which == kind
        # A type with one label is estimated as if the labels were known; an extra label rests on few agents and costs something.
        known = moves[of_it] + learnt.weight[..., None] * moves[of_it].mean(axis=0) / 40
        if len(found[kind]) == 1:
            np.testing.assert_allclose(mean[of_it], known / known.sum(axis=-1, keepdims=True), atol=0.02)
        errors = [np.abs(each[of_it] - rows[kind]).mean() for each in (mean, by_pool)]
        assert errors[0] < 0.7 * errors[1]


def test_agents_of_a_kind_are_worth_more_than_an_agents_own_moves() -> None:
    """With few moves of each agent, rows by kinds are nearer the truth than rows by the pool."""
    nearer = []
    for seed in range(6):
        rows, which, moves = three_kinds(seed, moves=8, agents=60)
        learnt = settle(moves)
        assert learnt.used
        means = [each / each.sum(axis=-1, keepdims=True) for each in (learnt.posterior, moves + learnt.pool)]
        nearer.append([np.abs(mean - rows[which]).mean() for mean in means])
    by_kinds, by_pool = np.mean(nearer, axis=0)
    assert by_kinds < 0.6 * by_pool


def test_no_kinds_are_fitted_if_the_mixture_is_off() -> None:
    _, _, moves = three_kinds(0)
    learnt = settle(moves, seek=-1)
    assert not learnt.used
    weight, posterior = by_the_pool(moves, learnt.pool)
    np.testing.assert_allclose(learnt.weight, weight, rtol=1e-12)
    np.testing.assert_allclose(learnt.posterior, posterior, rtol=1e-12)


@pytest.mark.parametrize("states", [2, 10])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alike", [True, False], ids=["homogeneous", "uniform"])
def test_agents_without_kinds_are_not_given_any(alike: bool, seed: int, states: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(states), (1 if alike else 40, 2, states))
    moves = draw(rng, np.broadcast_to(rows, (40, 2, states, states)), 50 // states)
    learnt = settle(moves)
    assert not learnt.share.any()
    weight, posterior = by_the_pool(moves, learnt.pool)
    np.testing.assert_allclose(learnt.weight, weight, rtol=1e-12)
    np.testing.assert_allclose(learnt.posterior, posterior, rtol=1e-12)


def test_kinds_are_used_while_they_fit_and_dropped_when_they_do_not() -> None:
    rows, which, moves = three_kinds(1)
    learnt = settle(moves)
    more = moves + draw(np.random.default_rng(2), rows[which], 40)
    settle(more, rounds=5, seek=-1, learnt=learnt)
    assert learnt.used
    assert (learnt.posterior > more).all()
    alike = more + draw(np.random.default_rng(3), np.broadcast_to(rows[0], moves.shape), 3000)
    settle(alike, rounds=5, seek=-1, learnt=learnt)
    assert not learnt.share.any()
    weight, posterior = by_the_pool(alike, learnt.pool)
    np.testing.assert_allclose(learnt.weight, weight, rtol=1e-12)
    np.testing.assert_allclose(learnt.posterior, posterior, rtol=1e-12)


def literal_round(moves: Floats, pool: Floats, share: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """One round for kinds in use, by whole arrays: shares, weights, posterior; given up, shares of 0 and the pool."""
    seen = moves.sum(axis=-1)
    common = pool / pool.sum(axis=-1, keepdims=True)
    trusted = moves / (weight + seen)[..., None]
    rows = 10 / (1 + weight)[..., None] * common + np.einsum("nk,nast->kast", share, trusted)
    rows /= rows.sum(axis=-1, keepdims=True)
    counted = moves * ((weight + 1) / (weight + np.maximum(seen, 1)))[..., None]
    score = np.einsum("nast,kast->nk", counted, np.log(rows / common))
    score += np.log((share.sum(axis=0) + 0.5) / (len(moves) + 0.5 * N_TYPES))
    gained = np.logaddexp.reduce(score, axis=1)
    share = np.exp(score - gained[:, None])
    mixed = np.einsum("nk,kast->nast", share, rows)
    heavier = np.empty_like(weight)
    for a, s in np.ndindex(weight.shape):
        old = float(weight[a, s])
        excess, whole = prior_correlation(old, moves.shape[-1])
        for times, row in zip(moves[:, a, s], mixed[:, a, s], strict=True):
            if times.sum() > 1:
                pairs = float((times * (times - 1)).sum())
                found, trust = agent_correlation(times.sum(), pairs, float(times @ row), float(row @ row), old)
                excess, whole = excess + found, whole + trust
        heavier[a, s] = next_weight(old, excess / whole)
    added = (N_TYPES - 1) * weight.size * (moves.shape[-1] - 1)
    if gained.sum() <= added * np.log(moves.sum()) / 4:
        return np.zeros_like(share), *by_the_pool(moves, pool)
    return share, heavier, moves + heavier[..., None] * mixed


@pytest.mark.parametrize("seed", range(8))
def test_a_round_agrees_with_a_plain_mixture(seed: int) -> None:
    """From shares at random, with kinds that hold (even seeds) and with agents that have none: these are given up."""
    rng = np.random.default_rng(seed)
    alike = np.broadcast_to(rng.dirichlet(np.ones(3), (2, 3)), (15, 2, 3, 3))
    moves = three_kinds(seed)[2] if seed % 2 == 0 else draw(rng, alike, 6)
    share = rng.dirichlet(np.ones(N_TYPES), len(moves))
    levels = no_levels(2, 3)
    levels.pool[...] = rng.gamma(2.0, 2.0, (2, 3, 3)) if seed % 2 == 0 else 0.1 * (moves.sum(axis=0) + 1)
    learnt = Learnt(levels, share, rng.gamma(5.0, 2.0, (2, 3)), np.empty_like(moves))
    for _ in range(3):
        wanted = literal_round(moves, learnt.pool, learnt.share, learnt.weight)
        learn_mixture(moves, moves.sum(axis=-1), learnt.pool, False, learnt.share, learnt.weight, learnt.posterior)
        for one, other in zip(learnt[1:], wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        if not learnt.used:
            break
    assert learnt.used == (seed % 2 == 0)


@pytest.mark.parametrize(
    "moves",
    [
        np.zeros((5, 2, 3, 3)),
        np.full((5, 2, 1, 1), 30.0),
        np.arange(18.0).reshape(1, 2, 3, 3),
        np.arange(36.0).reshape(2, 2, 3, 3) % 5,
        1e7 * np.eye(3)[np.arange(180).reshape(30, 2, 3) % 7 % 3],
        1e7 * np.eye(2)[np.arange(120).reshape(30, 2, 2) // 4 % 2 * np.array([0, 1])],
        np.concatenate([np.full((1, 2, 3, 3), 1e5), np.zeros((9, 2, 3, 3))]),
    ],
    ids=["no data", "one state", "one agent", "two agents", "never otherwise", "two kinds for sure", "one agent seen"],
)
def test_rows_stay_positive_and_finite_at_the_edges(moves: Floats) -> None:
    learnt = settle(moves)
    for array in (*learnt.levels, *learnt[1:]):
        assert np.isfinite(array).all()
    assert (learnt.posterior > moves).all()
    assert ((learnt.share >= 0) & (learnt.share <= 1)).all()


def test_the_order_of_agents_does_not_matter() -> None:
    _, _, moves = three_kinds(4)
    order = np.random.default_rng(0).permutation(len(moves))
    plain, turned = settle(moves), settle(moves[order].copy())
    assert plain.used
    np.testing.assert_allclose(turned.share, plain.share[order], atol=1e-9)
    np.testing.assert_allclose(turned.posterior, plain.posterior[order], rtol=1e-9)
