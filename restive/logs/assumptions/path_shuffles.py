"""Shuffles of each person's path that keep how often every move was made, and statistics of them.

A symbol is a state with the action taken in it, a·S + s. If the next symbol depends on the present one alone, with rows
of each person's own that do not change, then all paths with the same first symbol and the same numbers of moves between
symbols are equally likely (Diaconis and Freedman 1980). So a statistic of the observed path can be compared with those
of shuffled paths: the test is exact, however much people differ. Shuffles are uniform (Altschul and Erickson 1985; Kandel,
Matias, Unger and Winkler 1996): a random tree of last moves towards the last symbol by Wilson's algorithm (1996), the other
moves of each symbol in random order. With two states and one action this permutes the lengths of runs.

Where the next state of a row is not the state of the following row (decisions hours apart, say), rows are not a path; then
next states are permuted among the rows of one person with the same symbol.
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.kernels.rng import fold, mix, unit
from restive.logs.assumptions.estimators import Estimate, cell_means
from restive.logs.history import History
from restive.parallel import map_chunks
from restive.types import Bools, Floats, Ints

MAX_WORK = 200_000_000  # rows times shuffles
MIN_SHUFFLES, MAX_SHUFFLES = 199, 999
PERIODS = 6
SHRINKAGE = 4.0
MIN_STRETCH = 3  # a shorter one has nothing to shuffle
_SHUFFLES_PER_CHUNK = 25
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Paths(NamedTuple):
    """Stretches of rows without a gap; a row's next state is the state of the next row of its stretch."""

    first: Ints  # [stretches + 1] the first row of each stretch
    agent: Ints  # [stretches]
    symbol: Ints  # [rows]
    next_state: Ints  # [rows]
    period: Ints  # [rows] 0 .. PERIODS − 1
    time: Floats  # [rows] from −1/2 in the first round to 1/2 in the last
    share: Floats  # [N, 2S, S] how often each person moved where
    mean: Floats  # [N, 2S] the mean value of the state that followed
    weight: Floats  # [N, 2S] one over the variance of that value, shrunk to that of everybody
    value: Floats  # [S]
    chained: bool  # whether the next state of a row is the state of the next one


class Shuffled(NamedTuple):
    """Statistics of the observed paths, first, and of shuffled ones; leading axis: 1 + shuffles."""

    memory: Floats  # [., 2S, 2S, S] how often each symbol before, symbol and next state followed each other
    change: Floats  # [., PERIODS, 2S, S] moves in each period minus those expected from the person's own shares
    in_period: Floats  # [PERIODS, 2S] rows that take part
    slope: Estimate  # the change of the value of the next state from the first round to the last
    chained: bool

    @property
    def rows(self) -> int:
        """How many rows take part."""
        return int(self.in_period.sum())


def find_paths(history: History, max_rows: int) -> Paths:
    """The paths of a history; people beyond `max_rows` rows are left out, in an order that is fixed but unrelated to time."""
    known = np.flatnonzero(history.known)
    agent, round_, state = history.agent[known], history.round[known], history.state[known]
    next_state = history.next_state[known]
    follows = (np.diff(agent) == 0) & (np.diff(round_) == 1)
    linked = follows & (next_state[:-1] == state[1:])
    chained = bool(linked.sum() >= 0.9 * follows.sum())
    breaks = ~linked if chained else np.diff(agent) != 0
    first = np.unique(np.concatenate([[0], np.flatnonzero(breaks) + 1, [known.size]]))
    symbol = history.action[known] * history.n_states + state
    counts = history.counts.reshape(history.n_agents, 2 * history.n_states, history.n_states)
    share = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
    edges = np.quantile(round_, np.arange(1, PERIODS) / PERIODS) if known.size else np.zeros(PERIODS - 1)
    paths = Paths(
        first=first,
        agent=agent[first[:-1]],
        symbol=symbol,
        next_state=next_state,
        period=np.searchsorted(edges, round_, side="left"),
        time=(round_ - 1) / max(1, history.n_rounds - 1) - 0.5,
        share=share,
        mean=share @ history.value,
        weight=_weigh(counts, history.value),
        value=history.value,
        chained=chained,
    )
    if known.size <= max_rows:
        return paths
    kept = np.random.default_rng(0).permutation(history.n_agents)[: history.n_agents * max_rows // known.size]
    return _keep(paths, kept)


def _weigh(counts: Floats, value: Floats) -> Floats:
    """One over the variance of the value that follows each symbol, with `SHRINKAGE` moves of everybody's added."""
    everybody = counts.sum(axis=0) + 1e-9
    shrunk = counts + SHRINKAGE * everybody / everybody.sum(axis=-1, keepdims=True)
    shrunk = shrunk / shrunk.sum(axis=-1, keepdims=True)
    variance = shrunk @ value**2 - (shrunk @ value) ** 2
    typical = float(np.ptp(value)) ** 2 or 1.0
    return np.asarray(1 / np.maximum(variance / typical, 0.01))


def _keep(paths: Paths, agents: Ints) -> Paths:
    """The stretches of some agents."""
    stretches = np.flatnonzero(np.isin(paths.agent, agents))
    length = np.diff(paths.first)[stretches]
    first = np.append(0, np.cumsum(length))
    rows = np.repeat(paths.first[stretches] - first[:-1], length) + np.arange(first[-1])
    parts = {name: getattr(paths, name)[rows] for name in ("symbol", "next_state", "period", "time")}
    return paths._replace(first=first, agent=paths.agent[stretches], **parts)


def shuffle_paths(history: History, seed: int = 0, max_shuffles: int = MAX_SHUFFLES) -> Shuffled:
    """The statistics of a history's paths and of their shuffles; as many shuffles as `MAX_WORK` allows."""
    paths = find_paths(history, MAX_WORK // MIN_SHUFFLES)
    rows = max(1, paths.symbol.size)
    states = history.n_states
    shuffles = max(MIN_SHUFFLES, min(MAX_WORK // rows, MAX_SHUFFLES))
    runs = 1 + min(shuffles, max_shuffles)
    memory = np.zeros((runs, 2 * states, 2 * states, states))
    change = np.zeros((runs, PERIODS, 2 * states, states))

    def work(first: int, last: int) -> None:
        _shuffle(paths, states, np.uint64(seed), first, memory[first:last], change[first:last])

    map_chunks(work, runs, -(-runs // _SHUFFLES_PER_CHUNK))
    return Shuffled(memory, change, _count_periods(paths, states), _fit_slope(paths), paths.chained)


def _count_periods(paths: Paths, states: int) -> Floats:
    """How many rows that can be shuffled each symbol has in each period."""
    length = np.diff(paths.first)
    use = np.repeat(length >= MIN_STRETCH, length)
    cell = paths.period[use] * 2 * states + paths.symbol[use]
    return np.bincount(cell, minlength=PERIODS * 2 * states).reshape(PERIODS, 2 * states).astype(np.float64)


def _fit_slope(paths: Paths) -> Estimate:
    """The weighted least-squares slope of the value of the next state over time, within persons and symbols."""
    agent = np.repeat(paths.agent, np.diff(paths.first))
    people, symbols = paths.weight.shape
    cell = agent * symbols + paths.symbol
    weight = paths.weight[agent, paths.symbol]
    time = paths.time - cell_means(paths.time[:, None], cell, np.ones(cell.size))[:, 0]
    surplus = paths.value[paths.next_state] - paths.mean[agent, paths.symbol]
    scale = max(float(weight @ time**2), 1e-12)
    slope = float(weight @ (time * surplus)) / scale
    return Estimate.of(slope, np.bincount(agent, weight * time * (surplus - slope * time), people) / scale)


@compiled
def _shuffle(paths: Paths, states: int, seed: np.uint64, first_run: int, memory: Floats, change: Floats) -> None:
    """Add the statistics of runs `first_run` and following; run 0 is the observed one."""
    symbols = 2 * states
    length = 0
    for stretch in range(paths.first.size - 1):
        length = max(length, paths.first[stretch + 1] - paths.first[stretch])
    observed = np.empty(length, np.int64)  # moves of each symbol, in the order in which they are made
    moves = np.empty(length, np.int64)
    start = np.empty(symbols + 1, np.int64)
    place = np.empty(symbols, np.int64)
    chosen = np.empty(symbols, np.int64)
    in_tree = np.empty(symbols, np.bool_)
    for stretch in range(paths.first.size - 1):
        first, last = paths.first[stretch], paths.first[stretch + 1]
        if last - first < MIN_STRETCH:
            continue
        symbol, agent = paths.symbol[first:last], paths.agent[stretch]
        _collect(symbol, paths.next_state[first:last], symbols, paths.chained, start, place, observed)
        key = fold(seed, stretch)
        for run in range(memory.shape[0]):
            moves[: last - first] = observed[: last - first]
            if first_run + run > 0:
                bits = fold(key, first_run + run)
                if paths.chained:
                    bits = _draw_last_moves(bits, moves, start, symbol[-1], chosen, in_tree)
                _permute(bits, moves, start, paths.chained)
            place[:] = start[:symbols]
            before, now = -1, symbol[0]
            for row in range(last - first):
                if not paths.chained:
                    now = symbol[row]
                move = moves[place[now]]
                place[now] += 1
                after = move % states if move < symbols else move - symbols
                if before >= 0:
                    memory[run, before, now, after] += 1.0
                period = paths.period[first + row]
                for state in range(states):
                    change[run, period, now, state] -= paths.share[agent, now, state]
                change[run, period, now, after] += 1.0
                before, now = now, move


@compiled
def _collect(
    symbol: Ints, next_state: Ints, symbols: int, chained: bool, start: Ints, place: Ints, moves: Ints
) -> None:
    """List the moves from each symbol; the last move of a stretch leads out of it, and is coded 2S + the next state."""
    start[:] = 0
    for each in symbol:
        start[each + 1] += 1
    for each in range(symbols):
        start[each + 1] += start[each]
        place[each] = start[each]
    for row in range(symbol.size):
        inside = chained and row + 1 < symbol.size
        moves[place[symbol[row]]] = symbol[row + 1] if inside else symbols + next_state[row]
        place[symbol[row]] += 1


@compiled
def _draw_last_moves(bits: np.uint64, moves: Ints, start: Ints, root: int, chosen: Ints, in_tree: Bools) -> np.uint64:
    """Draw the last move of each symbol, a uniform tree towards the root, and put it last; the root keeps its own."""
    symbols = chosen.size
    in_tree[:] = False
    in_tree[root] = True
    for leaf in range(symbols):
        if start[leaf + 1] == start[leaf]:
            continue
        at = leaf
        while not in_tree[at]:
            bits += _GOLDEN
            chosen[at] = start[at] + int(unit(mix(bits)) * (start[at + 1] - start[at]))
            at = moves[chosen[at]]
        at = leaf
        while not in_tree[at]:
            in_tree[at] = True
            at = moves[chosen[at]]
    for each in range(symbols):
        if each != root and start[each + 1] > start[each]:
            end = start[each + 1] - 1
            moves[end], moves[chosen[each]] = moves[chosen[each]], moves[end]
    return bits


@compiled
def _permute(bits: np.uint64, moves: Ints, start: Ints, chained: bool) -> None:
    """Put the moves of each symbol into random order, except the last one of a path."""
    for each in range(start.size - 1):
        end = start[each + 1] - 1 if chained else start[each + 1]
        for row in range(end - 1, start[each], -1):
            bits += _GOLDEN
            other = start[each] + int(unit(mix(bits)) * (row + 1 - start[each]))
            moves[row], moves[other] = moves[other], moves[row]
