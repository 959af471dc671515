"""The paper's two counterexamples in exact fractions, and policies simulated on them run by run.

The families keep probabilities as floats; all of these are fractions of small numbers, and are read as such here. What
comes out exact is a pair of columns, numerator and denominator, as long as both fit into 64 bits. Rewards come on
arrival; the reward of the starting state is left to the caller.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Model, Shape
from restive.files import Columns
from restive.policies import make_policy
from restive.policies.base import Oracle, Policy
from restive.problems import make_problems
from restive.simulation import simulate
from restive.solvers.joint_dp import Numbers, evaluate_joint, follow, joint_index, solve_joint
from restive.solvers.myopic import benefit, phi
from restive.types import Floats, Ints

UNLIKE_AGENTS, THREE_STATES = "counterexample-heterogeneous-v1", "counterexample-three-state-v1"
MAX_DENOMINATOR = 1000


class Exact(NamedTuple):
    """The one instance of a family, in fractions."""

    transition: Numbers  # [N, A, S, S]
    reward: Numbers  # [N, S]
    start: Ints  # [N]
    budget: int

    @property
    def begin(self) -> int:
        """The index of the joint state of the start."""
        return joint_index(list(self.start), self.reward.shape[1])


def read_exact(family: str) -> Exact:
    """The only instance of a family, with its numbers as exact fractions."""
    (problem,) = make_problems(family)
    assert problem.start is not None
    return Exact(_as_fractions(problem.transition), _as_fractions(problem.reward), problem.start, problem.budget)


def _as_fractions(numbers: Floats) -> Numbers:
    read = [Fraction(float(number)).limit_denominator(MAX_DENOMINATOR) for number in numbers.flat]
    return np.array(read, dtype=object).reshape(numbers.shape)


def split(name: str, values: Iterable[Fraction]) -> Columns:
    """Fractions as two columns of whole numbers.

    >>> split("probability", [Fraction(1, 3), Fraction(2)])
    {'probability_numerator': array([1, 2]), 'probability_denominator': array([3, 1])}
    """
    ratios = [Fraction(value).as_integer_ratio() for value in values]
    above, below = (np.array(part, dtype=np.int64) for part in zip(*ratios, strict=True))
    return {f"{name}_numerator": above, f"{name}_denominator": below}


def join(columns: Columns, name: str) -> list[Fraction]:
    """The fractions that `split` took apart.

    >>> join(split("probability", [Fraction(1, 3), Fraction(2)]), "probability")
    [Fraction(1, 3), Fraction(2, 1)]
    """
    pairs = zip(columns[f"{name}_numerator"], columns[f"{name}_denominator"], strict=True)
    return [Fraction(int(above), int(below)) for above, below in pairs]


def arrivals(family: str) -> Columns:
    """What each agent expects on arrival from each state by waiting and by acting: one row for each agent and state."""
    exact = read_exact(family)
    wait, act = np.moveaxis(phi(exact.transition, exact.reward), -1, 0)
    agents, states = wait.shape
    rows = {"agent": np.repeat(np.arange(agents), states), "state": np.tile(np.arange(states), agents)}
    return rows | split("wait", wait.flat) | split("act", act.flat)


def first_choices(family: str, moves: int) -> Columns:
    """What it is worth to act on each agent in the first move, and in the best way after that; the budget is 1.

    >>> join(first_choices("counterexample-three-state-v1", moves=1), "worth")
    [Fraction(47, 28), Fraction(47, 28)]
    """
    exact = read_exact(family)
    joint = solve_joint(exact.transition, exact.reward, exact.budget, moves)
    weights = np.eye(len(joint.sets), dtype=np.int64)[joint.best]
    worth = []
    for choice in np.eye(len(joint.sets), dtype=np.int64):
        weights[0] = choice
        worth.append(evaluate_joint(exact.transition, exact.reward, moves, joint.sets, weights)[0, exact.begin])
    return {"agent": joint.sets.argmax(axis=1), **split("worth", worth)}


def unlike_agents(moves: int) -> Columns:
    """Greedy, alternating and the best over 1 to so many moves: expectations, and the variance of the first two."""
    exact = read_exact(UNLIKE_AGENTS)
    joint = solve_joint(exact.transition, exact.reward, exact.budget, moves)
    by_gain = follow(benefit(exact.transition, exact.reward), joint.sets)
    greedy = evaluate_joint(exact.transition, exact.reward, moves, joint.sets, by_gain)
    turns, steady = (np.resize(np.eye(4, dtype=np.int64)[order], (moves, 4)) for order in ([0, 1], [2]))
    alternating = [moments(exact, turns[:length]) for length in range(1, moves + 1)]
    coins = [moments(exact, steady[:length]) for length in range(1, moves + 1)]
    return {
        "moves": np.arange(1, moves + 1),
        **split("greedy", greedy[moves - 1 :: -1, exact.begin]),
        **split("alternating", [sum(mean, start=Fraction()) for mean, _ in alternating]),
        **split("alternating_first", [mean[0] for mean, _ in alternating]),
        **split("best", joint.values[moves - 1 :: -1, exact.begin]),
        "greedy_variance": np.array([float(sum(variance)) for _, variance in coins]),
        "alternating_variance": np.array([float(sum(variance)) for _, variance in alternating]),
    }


def moments(exact: Exact, plan: Ints) -> tuple[list[Fraction], list[Fraction]]:
    """Mean and variance of what each agent collects if plan [T, N] says who is acted on, whatever happens.

    mean_t(s) = Σ_j P(s, j) (r(j) + mean_{t+1}(j))
    square_t(s) = Σ_j P(s, j) (r(j)² + 2 r(j) mean_{t+1}(j) + square_{t+1}(j));  variance = square_0 − mean_0²
    """
    means, variances = [], []
    for n, reward in enumerate(exact.reward):
        mean, square = np.zeros((2, reward.size), dtype=object)
        for action in plan[::-1, n]:
            move = exact.transition[n, action]
            mean, square = move @ (reward + mean), move @ (reward * reward + 2 * reward * mean + square)
        means.append(mean[exact.start[n]])
        variances.append(square[exact.start[n]] - mean[exact.start[n]] ** 2)
    return means, variances


def best_choices(moves: int) -> Columns:
    """Whom the best policy acts on, with 1 to so many moves left and none, one or both of type 1 in state 1."""
    exact = read_exact(UNLIKE_AGENTS)
    joint = solve_joint(exact.transition, exact.reward, exact.budget, moves)
    places = [joint_index((first, second, 0, 0), 2) for first, second in ((0, 0), (0, 1), (1, 1))]
    chosen = joint.sets[joint.best[::-1, places]].argmax(axis=-1)
    left = np.repeat(np.arange(1, moves + 1), len(places))
    return {"left": left, "in_one": np.tile(np.arange(3), moves), "agent": chosen.ravel()}


def three_states(moves: int, shift: int) -> Columns:
    """The best, and greedy with its ties broken in three ways, over 1 to so many moves; one row for each number.

    `shifted_best` and `shifted_greedy` are for agents whose probability of moving from state 1 to state 2 by acting is
    larger by 1/shift: no two benefits are alike, and greedy has no choice.
    """
    exact, step = read_exact(THREE_STATES), Fraction(1, shift)
    gain = benefit(exact.transition, exact.reward)
    shifted = exact._replace(transition=exact.transition.copy())
    shifted.transition[:, 1, 1] += np.array([0 * step, -step, step])
    return {
        "moves": np.arange(1, moves + 1),
        "best": _best(exact, moves),
        "ties_to_one": _follow(exact, moves, gain + np.array([0 * step, step, 0 * step])),
        "ties_to_two": _follow(exact, moves, gain + np.array([0 * step, 0 * step, step])),
        "ties_at_random": _follow(exact, moves, gain),
        "shifted_best": _best(shifted, moves),
        "shifted_greedy": _follow(shifted, moves, benefit(shifted.transition, shifted.reward)),
    }


def _best(exact: Exact, moves: int) -> Floats:
    """What can be had at most over 1 to so many moves, rounded once."""
    values = solve_joint(exact.transition, exact.reward, exact.budget, moves).values
    return values[moves - 1 :: -1, exact.begin].astype(np.float64)


def _follow(exact: Exact, moves: int, priority: Numbers) -> Floats:
    """What acting on the highest priority collects over 1 to so many moves, rounded once."""
    sets = np.eye(len(exact.start), dtype=np.int64)
    values = evaluate_joint(exact.transition, exact.reward, moves, sets, follow(priority, sets))
    return values[moves - 1 :: -1, exact.begin].astype(np.float64)


class Turns(NamedTuple):
    """Who is acted on step by step, over and over."""

    order: Ints


@dataclass(frozen=True)
class Alternating(Oracle[Turns]):
    """The first two agents in turn, whatever their states: the paper's baseline of greedy."""

    name: ClassVar[str] = "alternating"

    def start(self, shape: Shape, model: Model) -> Turns:
        """Agents 0 and 1."""
        return Turns(np.arange(2))

    def rank(self, belief: Turns, state: Ints, draws: Draws) -> Floats:
        """Whose turn it is comes first, all others after."""
        turn = belief.order[draws.step % belief.order.size]
        return np.broadcast_to(draws.agents == turn, state.shape).astype(np.float64)


def collect(family: str, policy: str, moves: int, runs: int, seed: int) -> Columns:
    """What a policy collects in each run; the first runs stay the same if more are asked for."""
    simulated: Policy[Any] = Alternating() if policy == Alternating.name else make_policy(policy)
    reward = simulate(make_problems(family), simulated, moves, runs, seed, threads=1).reward
    return {"run": np.arange(runs), "reward": reward.sum(axis=1)}
