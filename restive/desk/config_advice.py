"""What a team should know before a program starts: how large an effect its control group can show, and doubtful settings.

The control group shows an effect d with 80% power, by the difference in means of a person's mean reward, if

    d ≥ (z(.95) + z(.8)) · sd · √(1 / treated + 1 / control)

with sd the standard deviation of a person's mean reward over the rounds. Of templates it is that of their simulated
people without actions; otherwise it is at most half the difference between the best and the worst reward.
"""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from restive.desk.config import TEMPLATES, Config
from restive.logs.power import NORMAL
from restive.problems import make_problems

PEOPLE, ROUNDS = (100, 300, 1000), 12  # that the sentence on the control group speaks of
SIMULATED_PEOPLE = 1000
REACH = NORMAL.inv_cdf(0.975) + NORMAL.inv_cdf(0.8)


def find_doubts(config: Config) -> list[str]:
    """Settings that are allowed and probably not meant.

    >>> find_doubts(Config(states=("high", "low"), rewards=(1.0, 0.0)))
    ['the reward of low is below that of high, although states are listed from worst to best']
    """
    if config.rewards is None:
        return []
    return [
        f"the reward of {state} is below that of {before}, although states are listed from worst to best"
        for (before, low), (state, high) in pairwise(zip(config.states, config.rewards, strict=True))
        if high < low
    ]


def describe_setup(config: Config) -> list[str]:
    """Everything to know about these settings, in sentences."""
    return [*filter(None, [describe_control(config)]), *find_doubts(config)]


def describe_control(config: Config) -> str:
    """How large an effect the control group can show, in a sentence; empty without one."""
    if not config.control:
        return ""
    rounds, words = config.control_until or config.horizon or ROUNDS, config.words
    least, *others = (f"{smallest_effect(config, people, rounds):.2g}" for people in PEOPLE)
    more = ", ".join(f"{effect} with {people:,}" for effect, people in zip(others, PEOPLE[1:], strict=True))
    basis = "people like the template's simulated ones" if _family(config) else "at most, whatever people do"
    return (
        f"In {rounds:,} {words.every}s a control group of {config.control:.0%} can show an effect of about {least} "
        f"{words.reward_unit} per {words.person} with {PEOPLE[0]} {words.people}, {more} ({basis}). Smaller effects "
        "probably do not show."
    )


def smallest_effect(config: Config, people: int, rounds: int) -> float:
    """The smallest effect per person and round that the control group shows with 80% power, before any data.

    >>> round(smallest_effect(Config(states=("low", "high"), rewards=(0.0, 1.0)), people=300, rounds=12), 4)
    0.2696
    """
    control = max(round(people * config.control), 1)
    return REACH * _spread(config, rounds) * math.sqrt(1 / (people - control) + 1 / control)


def _spread(config: Config, rounds: int) -> float:
    """The standard deviation of a person's mean reward over the rounds, or its largest possible value."""
    if family := _family(config):
        return _simulated_spread(family, rounds)
    span = config.reward_range if config.rewards is None else max(config.rewards) - min(config.rewards)
    return span / 2


def _family(config: Config) -> str:
    """The family of simulated people, if states and rewards are those of the template."""
    template = TEMPLATES.get(config.template or "")
    if template is None or [list(config.states), list(config.rewards or ())] != [
        template["states"],
        template["rewards"],
    ]:
        return ""
    return template["problem"]


@lru_cache(maxsize=64)
def _simulated_spread(family: str, rounds: int) -> float:
    """The spread of simulated people without actions."""
    (problem,) = make_problems(family, agents=SIMULATED_PEOPLE, budget=0, seed=1)
    generator, everyone = np.random.default_rng(1), np.arange(SIMULATED_PEOPLE)
    cumulative = problem.transition[:, 0].cumsum(axis=-1)
    state = np.zeros(SIMULATED_PEOPLE, np.int64) if problem.start is None else problem.start
    total = np.zeros(SIMULATED_PEOPLE)
    for _ in range(rounds):
        passed = generator.random((SIMULATED_PEOPLE, 1)) >= cumulative[everyone, state, :-1]
        state = passed.sum(axis=-1)
        total += problem.reward[everyone, state]
    return float((total / rounds).std(ddof=1))
