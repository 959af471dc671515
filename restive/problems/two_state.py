"""Families of agents with two states, a bad one of reward 0 and a good one of reward 1 unless they say otherwise.

    two-state-v1    the paper's synthetic instances: P(s → 1 | a) ~ U(0, 1), independently for each agent, state, action
    few-types-v1    each agent is one of a few hidden types, so that learning from all agents at once helps early
    own-rewards-v1  each agent has uniform rewards of its own; for half of the agents state 0 is the better one
    sticky-v1       agents leave a state with probability at most 0.05, so that effects show late and last
    harmful-v1      acting harms every agent, and the policy has to find those it harms least
    helpful-v1      two-state-v1 with the two actions in order, so that acting never harms: the generator in the public
                    code of related work by the paper's authors
    change-v1       two-state-v1 whose probabilities are drawn again at one step
    slow-drift-v1   two-state-v1 whose probabilities move to others in the course of the run
    some-harmed-v1  acting harms a third of the agents and helps the others; in some-harmed-at-most-v1 the budget, ample
                    for those it helps, need not be spent
    visits-v1       helpful-v1 with costs from 1 to 5: a visit to somebody who lives farther away takes more of the budget
    ordered-v1      the instances of the paper's regret curve: two agents, one with larger benefits in all states

`good` [I, N, A, S] is the probability of moving to state 1. Instance i and agent n of a seed do not depend on how many
instances and agents there are.
"""

import numpy as np

from restive.errors import check_whole
from restive.kernels import rng
from restive.problem import AT_MOST, Problem
from restive.types import Bools, Floats, Keys

MAX_STICKY_LEAVE = 0.05
HARMED_SHARE = 1 / 3
MAX_DISTANCE_COST = 4.0
# One candidate in 17 is accepted, so that a thousand have none with a probability of 10^-26.
ORDERED_CANDIDATES = 1000
MIN_ORDERED_DIFFERENCE = 0.15


def uniforms(keys: Keys, agents: int, cell: int) -> Floats:
    """The `cell`-th uniform number in [0, 1) of each agent, [I, N]."""
    return rng.uniform(rng.branch(keys, rng.FAMILY, cell), np.arange(agents))


def uniform_probabilities(keys: Keys, agents: int, first: int = 0) -> Floats:
    """A uniform number for each agent, action and state, [I, N, 2, 2], from four cells."""
    cells = [uniforms(keys, agents, cell) for cell in range(first, first + 4)]
    return np.stack(cells, axis=-1).reshape(keys.size, agents, 2, 2)


def fill_rows(good: Floats) -> Floats:
    """The transition rows with these probabilities of moving to state 1.

    >>> fill_rows(np.array([0.25, 1.0])).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    return np.stack([1 - good, good], axis=-1)


def build_instances(good: Floats, budget: int, name: str) -> list[Problem]:
    """One problem for each instance in `good`, with rewards 0 and 1."""
    return [Problem(fill_rows(each), [0.0, 1.0], budget, states=("bad", "good"), name=name) for each in good]


def two_state(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states of reward 0 and 1; P(s → 1 | a) ~ U(0, 1), independently for each agent, state and action."""
    good = uniform_probabilities(rng.run_keys(seed, np.arange(instances)), agents)
    return build_instances(good, budget, "two-state-v1")


def few_types(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0, types: int = 4) -> list[Problem]:
    """Two states of reward 0 and 1; each agent is of a uniformly random type, and types are drawn as in two-state-v1."""
    check_whole("types", types, 1)
    keys = rng.run_keys(seed, np.arange(instances))
    type_of = (uniforms(keys, agents, 4) * types).astype(np.int64)
    good = uniform_probabilities(keys, types)[np.arange(instances)[:, None], type_of]
    return build_instances(good, budget, "few-types-v1")


def own_rewards(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states with uniform rewards, independent for each agent; transitions as in two-state-v1."""
    keys = rng.run_keys(seed, np.arange(instances))
    rewards = np.stack([uniforms(keys, agents, cell) for cell in (4, 5)], axis=-1)
    transition = fill_rows(uniform_probabilities(keys, agents))
    return [
        Problem(rows, reward, budget, name="own-rewards-v1") for rows, reward in zip(transition, rewards, strict=True)
    ]


def sticky(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states of reward 0 and 1; the probability of leaving a state ~ U(0, 0.05), for each agent, state and action."""
    leave = MAX_STICKY_LEAVE * uniform_probabilities(rng.run_keys(seed, np.arange(instances)), agents)
    return build_instances(np.stack([leave[..., 0], 1 - leave[..., 1]], axis=-1), budget, "sticky-v1")


def harmful(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states of reward 0 and 1; P(s → 1 | wait) ~ U(0, 1), and acting multiplies it by another uniform number."""
    drawn = uniform_probabilities(rng.run_keys(seed, np.arange(instances)), agents)
    good = np.stack([drawn[:, :, 0], drawn[:, :, 0] * drawn[:, :, 1]], axis=2)
    return build_instances(good, budget, "harmful-v1")


def helpful(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states of reward 0 and 1; P(s → 1 | a) is the smaller (wait) and the larger (act) of two uniform numbers."""
    drawn = uniform_probabilities(rng.run_keys(seed, np.arange(instances)), agents)
    return build_instances(np.sort(drawn, axis=2), budget, "helpful-v1")


def change(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0, change: int = 500) -> list[Problem]:
    """Agents of two-state-v1 that all become others, drawn independently, before step `change`."""
    return _drift(instances, agents, budget, seed, change, change, "change-v1")


def slow_drift(
    instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0, steps: int = 1000
) -> list[Problem]:
    """Agents of two-state-v1 whose probabilities move linearly to those of others, drawn independently, in `steps` steps."""
    return _drift(instances, agents, budget, seed, 0, steps, "slow-drift-v1")


def _drift(instances: int, agents: int, budget: int, seed: int, first: int, last: int, name: str) -> list[Problem]:
    keys = rng.run_keys(seed, np.arange(instances))
    before, after = (build_instances(uniform_probabilities(keys, agents, cell), budget, name) for cell in (0, 4))
    return [one.change_to(two, first, last) for one, two in zip(before, after, strict=True)]


def some_harmed(instances: int = 1, agents: int = 50, budget: int = 45, seed: int = 0) -> list[Problem]:
    """Each agent is one of harmful-v1 with probability 1/3, else one of helpful-v1."""
    keys = rng.run_keys(seed, np.arange(instances))
    drawn = uniform_probabilities(keys, agents)
    harmed = np.stack([drawn[:, :, 0], drawn[:, :, 0] * drawn[:, :, 1]], axis=2)
    chosen = (uniforms(keys, agents, 4) < HARMED_SHARE)[..., None, None]
    return build_instances(np.where(chosen, harmed, np.sort(drawn, axis=2)), budget, "some-harmed-v1")


def some_harmed_at_most(instances: int = 1, agents: int = 50, budget: int = 45, seed: int = 0) -> list[Problem]:
    """The agents of some-harmed-v1 with a budget that need not be spent."""
    problems = some_harmed(instances, agents, budget, seed)
    return [problem.replace(spend=AT_MOST, name="some-harmed-at-most-v1") for problem in problems]


def visits(instances: int = 1, agents: int = 50, budget: int = 20, seed: int = 0) -> list[Problem]:
    """The agents of helpful-v1 with costs 1 + 4 U², U ~ U(0, 1), independently of their probabilities."""
    distance = uniforms(rng.run_keys(seed, np.arange(instances)), agents, 4)
    costs = 1.0 + MAX_DISTANCE_COST * distance * distance
    problems = helpful(instances, agents, 0, seed)
    return [
        problem.replace(cost=cost, budget=budget, name="visits-v1")
        for problem, cost in zip(problems, costs, strict=True)
    ]


def ordered(instances: int = 1, seed: int = 0) -> list[Problem]:
    """Two agents of two-state-v1, accepted if all benefits of one are at least those of the other, whose differ by 0.15.

    A threshold between the two benefits of the other agent leaves one state in which acting costs, and always one agent
    on which acting costs nothing.
    """
    keys = rng.run_keys(seed, np.arange(instances * ORDERED_CANDIDATES))
    good = uniform_probabilities(keys, 2).reshape(instances, ORDERED_CANDIDATES, 2, 2, 2)
    accepted = good[np.arange(instances), _is_ordered(good).argmax(axis=1)]
    return [Problem(fill_rows(each), [0.0, 1.0], 1, name="ordered-v1") for each in accepted]


def _is_ordered(good: Floats) -> Bools:
    """Whether the agents [..., N, A, S] are in order."""
    benefit = good[..., 1, :] - good[..., 0, :]
    better = benefit[..., 0, :].min(axis=-1) >= benefit[..., 1, :].max(axis=-1)
    accepted: Bools = better & (benefit[..., 1, 1] - benefit[..., 1, 0] >= MIN_ORDERED_DIFFERENCE)
    return accepted
