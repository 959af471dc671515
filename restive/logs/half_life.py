"""Forgetting: the weight 2^(−age / half-life) of moves, with a half-life chosen by how well each round is predicted.

A move of person i from s under a is predicted one step ahead by the moves before it, of this person and of everybody:

    p(t) = (w m(t) + n_i(t)) / (w + Σ_t n_i(t)),   m(t) ∝ 1/S + Σ_i n_i(t),   n: moves before, with their weights

with the w of `WEIGHTS` that predicts best, for each action and state. The prequential log score (Dawid 1984) is the sum of
log p over all moves. Of the `HALF_LIVES` that gain more than `MIN_GAIN` standard errors, clustered by person, over
counting all moves the same, the one with the largest gain is used, if there is one. If nothing changes, forgetting only
loses, so that hardly ever happens.

Age counts rounds: moves of the last round before the prediction have age 0.
"""

import math

import numpy as np

from restive.errors import InputError
from restive.kernels.jit import compiled
from restive.logs.history import History
from restive.logs.model import Forgetting
from restive.types import Bools, Floats, Ints

AUTO, NONE = "auto", "none"
HALF_LIVES, MAX_PART = (4, 8, 16, 32, 64, 128, 256), 2  # in rounds; at most so many times those of the history
WEIGHTS = np.append(2.0 ** np.arange(-1, 10), 1e9)  # the last: everybody has the same row
MIN_GAIN, MIN_PEOPLE, MIN_ROUNDS = 2.5, 10, 8
MAX_MOVES = 100_000  # that the half-life is chosen by, of people spread evenly over all


def find_half_life(history: History, given: str | float | None = AUTO) -> Forgetting:
    """The half-life of a history: by prequential log score (`auto`), `none`, or as given in rounds.

    >>> from restive.logs.generate import draw_people, generate_history
    >>> people = draw_people(np.full((2, 2, 2), 3.0), np.arange(2.0), people=50, seed=1)
    >>> find_half_life(generate_history(people, rounds=20, seed=2)).half_life
    >>> find_half_life(generate_history(people, rounds=20, seed=2), "6").half_life
    6.0
    """
    if given is None or given == NONE:
        return Forgetting()
    if given != AUTO:
        return Forgetting(_check(given))
    if history.n_rounds < MIN_ROUNDS or history.n_agents < MIN_PEOPLE:
        return Forgetting()
    return _choose(history)


def weigh(history: History, half_life: float | None, now: int | None = None) -> Floats:
    """The weight of each row as of the end of round `now`, the last one by default."""
    age = (history.n_rounds if now is None else now) - history.round.astype(np.int64)
    return np.ones(age.size) if half_life is None else np.exp2(-age / half_life)


def count_weighted(history: History, half_life: float | None, now: int | None = None) -> Floats:
    """How often each agent moved, each move with its weight, [N, A, S, S]."""
    if half_life is None:
        return history.counts
    known, shape = history.known, (history.n_agents, 2, history.n_states, history.n_states)
    rows = (part[known] for part in (history.agent, history.action, history.state, history.next_state))
    weight = weigh(history, half_life, now)[known]
    counts = np.bincount(np.ravel_multi_index(tuple(rows), shape), weight, math.prod(shape))
    return np.asarray(counts.reshape(shape), np.float64)


def keep_some(weight: Floats, generator: np.random.Generator) -> Bools:
    """Rows that stay if each does with the probability of its weight.

    The distribution of rows is fitted to these: whole moves say how much people differ, parts of moves do not, because
    their sums vary less than as many whole ones.
    """
    return np.asarray(generator.random(weight.size) < weight)


def _check(given: str | float) -> float:
    try:
        rounds = float(given)
    except ValueError:
        rounds = math.nan
    if not 0 < rounds < math.inf:
        raise InputError(
            f"The half-life {given!r} must be auto, none or a number of rounds above 0.", location="half_life"
        )
    return rounds


def _choose(history: History) -> Forgetting:
    known, shape = history.known, (history.n_rounds, 2, history.n_states, history.n_states)
    moves = tuple(part[known] for part in (history.agent, history.round - 1, history.action, history.state))
    after = history.next_state[known]
    by_round = np.bincount(np.ravel_multi_index((*moves[1:], after), shape), minlength=math.prod(shape)).reshape(shape)
    some = moves[0] % max(1, -(-after.size // MAX_MOVES)) == 0
    agent, round_, action, state = (part[some] for part in moves)
    scores = {
        half_life: score_half_life(
            agent, round_, action, state, after[some], by_round, 0.5 ** (1 / half_life), history.n_agents
        )
        for half_life in (math.inf, *(each for each in HALF_LIVES if each <= MAX_PART * history.n_rounds))
    }
    base, number = scores.pop(math.inf), max(after[some].size, 1)
    gains = tuple((float(each), *_gain(score - base, number)) for each, score in scores.items())
    clear = [(gain, half_life) for half_life, gain, error in gains if gain > MIN_GAIN * error]
    return Forgetting(max(clear)[1] if clear else None, gains)


def _gain(differences: Floats, number: int) -> tuple[float, float]:
    """The gain a move, and its standard error, from those of people, [N]."""
    total, judged = float(differences.sum()), differences[differences != 0]
    spread = float(np.sqrt(((judged - total / max(judged.size, 1)) ** 2).sum()))
    return total / number, spread / number


def score_half_life(
    agent: Ints, round_: Ints, action: Ints, state: Ints, after: Ints, by_round: Ints, keep: float, agents: int
) -> Floats:
    """The log score of each agent, [N], if a move counts `keep` of itself after each round.

    Moves are sorted by agent and round, rounds count from 0; `by_round` [T, A, S, S] are the moves of everybody.
    """
    pooled = np.empty(by_round.shape)
    total = np.full(by_round.shape[1:], 0.0)
    for number, moved in enumerate(by_round):
        pooled[number] = total + 1 / by_round.shape[-1]
        total = keep * total + moved
    pooled /= pooled.sum(axis=-1, keepdims=True)
    gained = np.empty((agent.size, WEIGHTS.size))
    _score(agent, round_, action, state, after, pooled, keep, WEIGHTS, gained)
    cell = action * by_round.shape[-1] + state
    total = np.stack([np.bincount(cell, each) for each in gained.T])  # [W, A · S]
    best = gained[np.arange(agent.size), total.argmax(axis=0)[cell]]
    return np.asarray(np.bincount(agent, best, agents), np.float64)


@compiled
def _score(
    agent: Ints,
    round_: Ints,
    action: Ints,
    state: Ints,
    after: Ints,
    pooled: Floats,
    keep: float,
    weights: Floats,
    scores: Floats,
) -> None:
    """The log scores of moves, [M, W]."""
    counts, seen_at = np.zeros(pooled.shape[1:]), np.zeros(pooled.shape[1:3], np.int64)
    for j in range(agent.size):
        if j == 0 or agent[j] != agent[j - 1]:
            counts[:] = 0.0
        a, s, t = action[j], state[j], after[j]
        own, row = counts[a, s], pooled[round_[j], a, s]
        fade = keep ** (round_[j] - 1 - seen_at[a, s])
        seen = fade * own.sum()
        for k in range(weights.size):
            scores[j, k] = np.log((weights[k] * row[t] + fade * own[t]) / (weights[k] + seen))
        own *= fade * keep
        own[t] += 1.0
        seen_at[a, s] = round_[j]
