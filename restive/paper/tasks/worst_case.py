"""The hardest two-state agents for theorem 3.1 of Xu et al.: where greedy comes closest to losing.

An instance is four probabilities of reaching state 1, which pays 1, from state 0, which pays 0, by waiting and by
acting. The proof goes by cases of these four numbers, `CASES`, and treats benefit(1) ≤ benefit(0) alone. The rest,
`mirror`, is not the same with the states renamed, as their rewards would change places too, but with the actions
renamed: to act on B is to wait with N − B, and both benefits change their sign. So all that is true of `mirror` with a
budget of B is true of the other cases with N − B.

Random numbers are a pure function of the seed: a search finds the same instance on any number of threads.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from restive.errors import InputError, check_whole
from restive.files import Columns
from restive.kernels import rng
from restive.solvers.homogeneous_dp import solve_counts
from restive.types import Floats, Ints

CASES = ("mirror", "1", "2a", "2b", "3", "4-real", "4-complex")
REWARD = (0.0, 1.0)
BLOCK = 1 << 16  # instances drawn at a time
MIN_SURVIVORS, COPIES = 32, 8
MIN_STEP = 1e-4  # the last step of a search; the first is 1


class Drawn(NamedTuple):
    """Instances, transition [M, 2, 2, 2], with the place of each one's case [M] in `CASES`."""

    transition: Floats
    case: Ints


class Hardest(NamedTuple):
    """The smallest margin that a search has found, and the instance it belongs to, transition [2, 2, 2]."""

    margin: float
    transition: Floats


def classify(transition: ArrayLike) -> Ints:
    """Return the case, as a place in `CASES`, of instances [..., 2, 2, 2]: the first whose conditions they meet.

    With up(a, s) = transition[a, s, 1], let wait = up(0, 1) − up(0, 0) and act = up(1, 1) − up(1, 0), so that the
    benefits differ by act − wait. In `mirror` act > wait, and in all others act ≤ wait:

    1   act ≤ 0 ≤ wait and up(1, 1) ≥ up(0, 1)
    2   act ≤ 0 and wait ≤ 0: 2a if up(1, 1) up(0, 0) ≤ up(1, 0) up(0, 1), otherwise 2b
    3   act ≥ 0 and wait ≥ 0
    4   act ≤ 0 ≤ wait and up(1, 1) ≤ up(0, 1): real or complex, as are the eigenvalues of the matrix that takes the
        differences V(1, 0) − V(0, 0) and V(1, 1) − V(1, 0) of two greedy agents one step back

    >>> up = np.array([[[0.4, 0.5], [0.6, 0.8]], [[0.1, 0.4], [0.6, 0.5]], [[0.1, 0.4], [0.6, 0.8]]])
    >>> [CASES[case] for case in classify(np.stack([1 - up, up], axis=-1))]
    ['mirror', '1', '3']
    """
    transition = np.asarray(transition, dtype=np.float64)
    if transition.shape[-3:] != (2, 2, 2):
        raise InputError(f"transition has the shape {transition.shape}; it must end in 2 actions, 2 states, 2 states.")
    (wait_0, wait_1), (act_0, act_1) = np.moveaxis(transition[..., 1], (-2, -1), (0, 1))
    wait, act = wait_1 - wait_0, act_1 - act_0
    both_fall = (act <= 0) & (wait <= 0)
    trace, determinant = (1 - act_0) * wait + wait_1 * act, (wait_1 - act_0) * wait * act
    met = [
        act > wait,
        (act <= 0) & (wait >= 0) & (act_1 >= wait_1),
        both_fall & (act_1 * wait_0 <= act_0 * wait_1),
        both_fall,
        act >= 0,
        trace**2 >= 4 * determinant,
    ]
    return np.select(met, list(range(len(met))), len(met))


def draw_cases(per_case: int, seed: int) -> Drawn:
    """Draw `per_case` instances of every case, uniform on it: the first of a seed stay the same if more are drawn.

    >>> transition, case = draw_cases(2, seed=7)
    >>> transition.shape, [CASES[each] for each in case[::2]]
    ((14, 2, 2, 2), ['mirror', '1', '2a', '2b', '3', '4-real', '4-complex'])
    """
    check_whole("per_case", per_case, 0)
    kept: list[Floats] = [np.empty((0, 2, 2, 2))] * len(CASES)
    first = 0
    while min(map(len, kept)) < per_case:
        transition = _complete(_draw_probabilities(seed, first))
        case = classify(transition)
        kept = [np.concatenate([each, transition[case == c]])[:per_case] for c, each in enumerate(kept)]
        first += BLOCK
    return Drawn(np.concatenate(kept), np.repeat(np.arange(len(CASES)), per_case))


def search_margin(
    agents: int, budget: int, horizon: int, starts: int = 1000, rounds: int = 60, seed: int = 0, case: str | None = None
) -> Hardest:
    """Search for the two-state instance, of any case or of one, with the smallest margin (see `CountValues`) of greedy.

    `starts` random instances are improved in `rounds`. In each the better half goes on, down to a few; copies of them
    that differ by ever smaller steps, cut off at sure moves, are all solved at once, and an instance makes way for a
    better copy. In the instance found below acting swaps the states, and waiting leads from 0 to 1, and from 1 to 1
    with some probability x: two agents in different states earn 2 + x in two steps, whichever is acted on first.

    >>> hardest = search_margin(agents=2, budget=1, horizon=2, case="2a")
    >>> abs(hardest.margin) < 1e-9, hardest.transition[0, 0], hardest.transition[1].tolist()
    (True, array([0., 1.]), [[0.0, 1.0], [1.0, 0.0]])
    """
    check_whole("agents", agents, 2)
    check_whole("budget", budget, 1, agents - 1)
    check_whole("horizon", horizon, 1)
    check_whole("starts", starts, 1)
    check_whole("rounds", rounds, 0)
    wanted = _find_case(case)

    def measure(probabilities: Floats) -> Floats:
        transition = _complete(probabilities)
        margin = solve_counts(transition, REWARD, agents, budget, horizon).margin
        return margin if wanted is None else np.where(classify(transition) == wanted, margin, np.inf)

    probabilities = _draw_starts(starts, seed, wanted)
    margin = measure(probabilities)
    for turn in range(rounds):
        better = np.argsort(margin, kind="stable")[: max(MIN_SURVIVORS, len(margin) // 2)]
        tried = _vary(probabilities[better], seed, turn, MIN_STEP ** (turn / rounds))
        found = np.column_stack([margin[better], measure(tried.reshape(-1, 2, 2)).reshape(-1, COPIES)])
        place = np.arange(len(better)), found.argmin(axis=1)
        probabilities, margin = np.concatenate([probabilities[better, None], tried], axis=1)[place], found[place]
    return Hardest(float(margin.min()), _complete(probabilities[margin.argmin()]))


def _find_case(name: str | None) -> int | None:
    if name is not None and name not in CASES:
        raise InputError(f"case is {name!r}; it must be one of {', '.join(CASES)}, or None for any.")
    return None if name is None else CASES.index(name)


def _complete(probabilities: Floats) -> Floats:
    """Turn probabilities of reaching state 1, [..., 2, 2], into transitions [..., 2, 2, 2]."""
    return np.stack([1 - probabilities, probabilities], axis=-1)


def _draw_probabilities(seed: int, first: int) -> Floats:
    keys = rng.run_keys(seed, np.arange(first, first + BLOCK))
    return rng.uniform(rng.branch(keys, rng.FAMILY, 0), np.arange(4)).reshape(-1, 2, 2)


def _draw_starts(starts: int, seed: int, case: int | None) -> Floats:
    if case is None:
        blocks = [_draw_probabilities(seed, first) for first in range(0, starts, BLOCK)]
        return np.concatenate(blocks)[:starts]
    drawn = draw_cases(starts, seed)
    return drawn.transition[drawn.case == case, ..., 1]


def _vary(probabilities: Floats, seed: int, turn: int, step: float) -> Floats:
    """Return changed copies [K, COPIES, 2, 2] of probabilities [K, 2, 2]: half of the numbers stay, many become 0 or 1."""
    keys = rng.branch(rng.run_keys(seed, np.arange(len(probabilities) * COPIES)), rng.FAMILY, 1 + turn)
    draws = rng.uniform(keys, np.arange(8)).reshape(len(probabilities), COPIES, 2, 2, 2)
    stays, move = draws[..., 0] < 0.5, step * (2 * draws[..., 1] - 1)
    return np.where(stays, probabilities[:, None], np.clip(probabilities[:, None] + move, 0.0, 1.0))


def theorem(agents: int, budget: int, horizon: int, per_case: int, seed: int) -> Columns:
    """For each case of the proof: instances, the largest gap of greedy to the optimum, and its smallest margin."""
    transition, case = draw_cases(per_case, seed)
    found = solve_counts(transition, REWARD, agents, budget, horizon, threads=1)
    cases = np.arange(len(CASES))
    return {
        "case": cases,
        "instances": np.array([(case == each).sum() for each in cases]),
        "gap": np.array([found.gap[case == each].max() for each in cases]),
        "margin": np.array([found.margin[case == each].min() for each in cases]),
    }


def hardest(agents: int, budget: int, horizon: int, starts: int, rounds: int, seed: int) -> Columns:
    """The smallest margin that a search finds, and its four probabilities of reaching state 1, by action and state."""
    found = search_margin(agents, budget, horizon, starts, rounds, seed)
    probabilities = found.transition[..., 1].ravel()
    names = ("wait_0", "wait_1", "act_0", "act_1")
    return {"margin": np.array([found.margin])} | {
        name: np.array([probability]) for name, probability in zip(names, probabilities, strict=True)
    }
