"""Application domains: simulated people with the states and rewards of the desk's templates.

Nothing here was fitted to data. In a round people move up or down by at most one state. Each person has a type, speeds
p and q of moving up and down, uniform on [0.5, 1.5], and a response r to the action, uniform on the range of the type;
all are [I, N]. With the domain's climb, slip and lift of each state:

    waiting:  up = p · climb          down = q · slip                still = 1 − up − down
    acting:   up' = up + g · still    down' = (1 − g) · down         g = r · lift, if the action helps
              up' = (1 − h) · up      down' = down + h · still / 2   h = −r, if the action harms

Types scale p and q; the local markets of `pharmacy-v1` scale p, q and g. The first states, [I, N], are drawn from the
stationary distribution without actions, share(s) ∝ share(s − 1) · up(s − 1) / down(s).
"""

from typing import NamedTuple

import numpy as np

from restive.errors import InputError, check_whole
from restive.kernels import rng
from restive.problem import Problem
from restive.problems.many_state import walk_rows
from restive.problems.two_state import uniforms
from restive.types import Floats, Ints, Keys

TYPE, CLIMB, SLIP, RESPONSE, START, REGION, MARKET = range(7)  # the random numbers of a person


class PersonType(NamedTuple):
    """A type of person: factors of the speeds up and down, and the range of the response to the action."""

    climb: float
    slip: float
    low: float
    high: float


PERSON_TYPES = (
    PersonType(climb=3.0, slip=0.4, low=0.0, high=0.2),  # keen: engaged with or without the action
    PersonType(climb=1.0, slip=1.0, low=0.7, high=1.0),  # open: the action helps much
    PersonType(climb=0.8, slip=1.1, low=0.0, high=0.3),  # cool: it hardly helps
    PersonType(climb=1.0, slip=1.0, low=-0.6, high=-0.1),  # wary: it harms
)


class Domain(NamedTuple):
    """States from worst to best, the reward of each, how people move, and the shares of the types."""

    name: str
    states: tuple[str, ...]
    reward: tuple[float, ...]
    climb: tuple[float, ...]
    slip: tuple[float, ...]
    lift: tuple[float, ...]
    shares: tuple[float, ...]


class Market(NamedTuple):
    """A type of local market: factors of the speeds up and down, and of the lift."""

    climb: float
    slip: float
    lift: float


GENERAL_USAGE = Domain(
    name="general-usage-v1",
    states=("away", "active"),
    reward=(0.5, 4.0),
    climb=(0.03, 0.0),
    slip=(0.0, 0.08),
    lift=(0.8, 0.4),
    shares=(0.1, 0.5, 0.3, 0.1),
)
E_COMMERCE = Domain(
    name="e-commerce-v1",
    states=("lapsed", "browsing", "buying"),
    reward=(0.0, 0.25, 2.0),
    climb=(0.08, 0.05, 0.0),
    slip=(0.0, 0.15, 0.1),
    lift=(0.1, 0.7, 0.5),
    shares=(0.1, 0.55, 0.25, 0.1),
)
E_LEARNING = Domain(
    name="e-learning-v1",
    states=("stuck", "slow", "steady"),
    reward=(0.0, 0.5, 2.0),
    climb=(0.1, 0.05, 0.0),
    slip=(0.0, 0.15, 0.08),
    lift=(0.2, 0.8, 0.5),
    shares=(0.1, 0.55, 0.3, 0.05),
)
LOYALTY = Domain(
    name="loyalty-v1",
    states=("idle", "collecting", "redeeming"),
    reward=(0.0, 1.0, 3.0),
    climb=(0.08, 0.05, 0.0),
    slip=(0.0, 0.12, 0.08),
    lift=(0.1, 0.8, 0.4),
    shares=(0.1, 0.5, 0.25, 0.15),
)
PATIENT_MANAGEMENT = Domain(
    name="patient-management-v1",
    states=("behind", "patchy", "current"),
    reward=(0.5, 2.0, 5.0),
    climb=(0.1, 0.05, 0.0),
    slip=(0.0, 0.15, 0.08),
    lift=(0.2, 0.9, 0.3),
    shares=(0.12, 0.55, 0.28, 0.05),
)
PHARMACY = Domain(
    name="pharmacy-v1",
    states=("silent", "occasional", "regular", "frequent"),
    reward=(0.0, 1.0, 3.0, 8.0),
    climb=(0.12, 0.06, 0.02, 0.0),
    slip=(0.0, 0.2, 0.06, 0.06),
    lift=(0.1, 0.9, 0.9, 0.1),
    shares=(0.1, 0.55, 0.25, 0.1),
)
MATERNAL_HEALTH = Domain(
    name="maternal-health-v1",
    states=("disengaged", "partial", "engaged"),
    reward=(0.0, 1.0, 2.0),
    climb=(0.06, 0.08, 0.0),
    slip=(0.0, 0.15, 0.1),
    lift=(0.6, 0.7, 0.2),
    shares=(0.15, 0.45, 0.35, 0.05),
)
DOMAINS = (GENERAL_USAGE, E_COMMERCE, E_LEARNING, LOYALTY, PATIENT_MANAGEMENT, PHARMACY, MATERNAL_HEALTH)

REGIONS = ("capital", "coast", "inland")
REGION_SHARES = (0.4, 0.35, 0.25)
MARKETS = (
    Market(climb=1.2, slip=0.7, lift=0.9),  # settled: people have few reasons to leave
    Market(climb=0.8, slip=1.3, lift=1.0),  # contested: other platforms draw them away
    Market(climb=0.7, slip=1.0, lift=0.7),  # thin: there is little demand to win
)
MARKET_SHARES = ((0.2, 0.7, 0.1), (0.5, 0.4, 0.1), (0.3, 0.1, 0.6))  # of each region


def general_usage(instances: int = 1, agents: int = 200, budget: int = 20, seed: int = 0) -> list[Problem]:
    """Users of a product, away or active; reward: active days a week; some get a call. Simulated people."""
    return populate(GENERAL_USAGE, budget, _keys(instances, seed), agents)


def e_commerce(instances: int = 1, agents: int = 200, budget: int = 20, seed: int = 0) -> list[Problem]:
    """Customers of a shop in three states; reward: orders a month; some get a discount. Simulated people."""
    return populate(E_COMMERCE, budget, _keys(instances, seed), agents)


def e_learning(instances: int = 1, agents: int = 200, budget: int = 20, seed: int = 0) -> list[Problem]:
    """Learners in three states; reward: modules finished a week; some get a finishing offer. Simulated people."""
    return populate(E_LEARNING, budget, _keys(instances, seed), agents)


def loyalty(instances: int = 1, agents: int = 200, budget: int = 20, seed: int = 0) -> list[Problem]:
    """Members of a loyalty club in three states; reward: activities a month; some get a bonus offer. Simulated people."""
    return populate(LOYALTY, budget, _keys(instances, seed), agents)


def patient_management(instances: int = 1, agents: int = 200, budget: int = 20, seed: int = 0) -> list[Problem]:
    """Patients in three states; reward: follow-ups kept a week; some are promised a bonus. Simulated people."""
    return populate(PATIENT_MANAGEMENT, budget, _keys(instances, seed), agents)


def pharmacy(instances: int = 1, agents: int = 200, budget: int = 20, seed: int = 0) -> list[Problem]:
    """Pharmacists in four states and three types of market; reward: orders a week; some get a coupon. Simulated people."""
    keys = _keys(instances, seed)
    shares = np.array(MARKET_SHARES)[_regions(keys, agents)]
    market = np.array(MARKETS)[_pick(uniforms(keys, agents, MARKET), shares)]
    return populate(PHARMACY, budget, keys, agents, market)


def maternal_health(instances: int = 1, agents: int = 200, budget: int = 20, seed: int = 0) -> list[Problem]:
    """Mothers in three states; reward: health messages heard a week; some get a call. Simulated people."""
    return populate(MATERNAL_HEALTH, budget, _keys(instances, seed), agents)


def find_groups(family: str, agents: int = 200, seed: int = 0, instance: int = 0) -> list[str]:
    """The group of each agent of a family: the region in pharmacy-v1, "" in the others.

    >>> find_groups("pharmacy-v1", agents=4, seed=7)
    ['coast', 'coast', 'capital', 'inland']
    """
    known = [domain.name for domain in DOMAINS]
    if family not in known:
        raise InputError(f"family is {family!r}; it must be one of {', '.join(known)}.")
    check_whole("agents", agents, 1)
    check_whole("seed", seed, 0, rng.MAX_SEED)
    check_whole("instance", instance, 0)
    if family != PHARMACY.name:
        return [""] * agents
    keys = rng.run_keys(seed, np.array([instance]))
    return [REGIONS[code] for code in _regions(keys, agents)[0]]


def populate(domain: Domain, budget: int, keys: Keys, agents: int, market: Floats | None = None) -> list[Problem]:
    """One problem of a domain for each key; `market`, [I, N, 3], scales climb, slip and lift of each person."""
    person = np.array(PERSON_TYPES)[_pick(uniforms(keys, agents, TYPE), np.array(domain.shares))]
    climb, slip, low, high = np.moveaxis(person, -1, 0)
    more_climb, more_slip, more_lift = np.moveaxis(np.ones((*person.shape[:2], 3)) if market is None else market, -1, 0)
    up = (more_climb * climb * (0.5 + uniforms(keys, agents, CLIMB)))[..., None] * domain.climb
    down = (more_slip * slip * (0.5 + uniforms(keys, agents, SLIP)))[..., None] * domain.slip
    response = low + (high - low) * uniforms(keys, agents, RESPONSE)
    gain = (more_lift * np.maximum(response, 0))[..., None] * domain.lift
    harm = np.maximum(-response, 0)[..., None]
    moves = np.stack([wait(down, up), act(down, up, gain, harm)], axis=2)
    start = _pick(uniforms(keys, agents, START), stationary_share(down, up))
    return [
        Problem(rows, domain.reward, budget, first, domain.states, domain.name)
        for rows, first in zip(moves, start, strict=True)
    ]


def wait(down: Floats, up: Floats) -> Floats:
    """The transition rows [..., S, S] without the action."""
    return walk_rows(down, 1 - up - down, up)


def act(down: Floats, up: Floats, gain: Floats, harm: Floats) -> Floats:
    """The transition rows [..., S, S] with the action; gain or harm is 0.

    >>> down, up = np.array([0.0, 0.5]), np.array([0.25, 0.0])
    >>> act(down, up, gain=np.array([0.5]), harm=np.array([0.0])).tolist()
    [[0.375, 0.625], [0.25, 0.75]]
    >>> act(down, up, gain=np.array([0.0]), harm=np.array([1.0])).tolist()
    [[1.0, 0.0], [0.75, 0.25]]
    """
    still = 1 - up - down
    # Not 1 − up' − down', which rounding can take below 0.
    stays = (1 - gain - harm / 2) * still + gain * down + harm * up
    return walk_rows((1 - gain) * down + harm / 2 * still, stays, (1 - harm) * up + gain * still)


def stationary_share(down: Floats, up: Floats) -> Floats:
    """The stationary distribution, [..., S], without actions.

    >>> stationary_share(np.array([0.0, 0.5]), np.array([0.25, 0.0])).round(3).tolist()  # up half as often as down
    [0.667, 0.333]
    """
    ratio = np.ones_like(up)
    ratio[..., 1:] = np.cumprod(up[..., :-1] / down[..., 1:], axis=-1)
    share: Floats = ratio / ratio.sum(axis=-1, keepdims=True)
    return share


def _keys(instances: int, seed: int) -> Keys:
    return rng.run_keys(seed, np.arange(instances))


def _pick(uniform: Floats, shares: Floats) -> Ints:
    """The index of the share, [..., K], that each uniform number falls into."""
    edges = np.cumsum(shares, axis=-1)[..., :-1]
    passed: Ints = (uniform[..., None] >= edges).sum(axis=-1, dtype=np.int64)
    return passed


def _regions(keys: Keys, agents: int) -> Ints:
    return _pick(uniforms(keys, agents, REGION), np.array(REGION_SHARES))
