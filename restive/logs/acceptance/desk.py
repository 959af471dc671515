"""Do the intervals of a program hold the truth: of the effect in each state, of the lift, which is also the total's, and of groups?

Programs of simulated people run through the desk's own code, with failed actions, late people and missing states. The truth of
an effect is, over the actions that were done in a state, the mean of the true effect on the person acted on; that of the
lift is what the program brought to its own people. A share holds if, within its own 95% interval, it can be 0.93 to 0.97.
"""

import math
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from restive.desk import Desk, Program
from restive.desk.config import TEMPLATES, find_template
from restive.desk.demo import Population, run_demo
from restive.desk.lift import sum_people
from restive.desk.results import find_groups
from restive.desk.status import find_effects, measure_lift
from restive.desk.tallies import ACT, COUNT
from restive.logs.acceptance import Check, Result
from restive.logs.estimators import base
from restive.types import Floats

AGENTS = 200
ROUNDS, QUICK_ROUNDS = (10, 30, 100), (10,)
PROGRAMS, QUICK_PROGRAMS = 80, 3
SEEDS_APART = 1000  # between settings, which would otherwise share their random numbers
LEAST, MOST = 0.93, 0.97
QUICK_LEAST = 0.6


class Measured(NamedTuple):
    """The intervals of one program in one round, with the truth."""

    round: int
    effects: list[bool]  # whether each stated effect holds
    states: int  # how many states there are
    spreads: list[float]  # of each stated spread, the ratio to the truth
    lift: bool | None  # None if it is not known
    plain: bool  # whether the difference in means holds
    width: float  # of the lift, of that of the difference in means
    groups: bool | None  # whether the lifts of all groups hold, None if none is known
    known_groups: int


def find_true_effects(program: Program, people: Population) -> tuple[Floats, Floats]:
    """By state, the mean and the standard deviation of the true effect over the actions that were done."""
    actions = program.projection.tallies.people[:, ACT, :, COUNT]
    place = {name: number for number, name in enumerate(people.names)}
    order = [place[name] for name in program.names.call(np.arange(len(actions)))]
    model = people.world.model
    value = np.einsum("nast,t->nas", model.transition[0][order], np.array(program.config.rewards))
    weight, effect = actions / np.maximum(actions.sum(axis=0), 1), value[:, ACT] - value[:, 1 - ACT]
    mean = (weight * effect).sum(axis=0)
    return mean, np.sqrt((weight * (effect - mean) ** 2).sum(axis=0))


def measure(program: Program, template: str, seed: int) -> Measured:
    """What the status of a program says now, against the truth."""
    people = Population(find_template(template), AGENTS, seed)
    mean, spread = find_true_effects(program, people)
    shown = find_effects(program.projection)
    held = [
        each["low"] <= truth <= each["high"]
        for each, truth in zip(shown, mean, strict=True)
        if each["low"] is not None and each["high"] is not None
    ]
    ratios = [each["spread"] / truth for each, truth in zip(shown, spread, strict=True) if each["spread"] is not None]
    lift, sums = measure_lift(program.projection), sum_people(program.projection.agents)
    plain, truth = base(sums.take(sums.seen > 0)), measure_own_lift(program, people)
    known = None if math.isnan(lift.mean) else lift.low <= truth <= lift.high
    means = abs(plain.mean - truth) <= plain.half_width(), (lift.high - lift.low) / (2 * plain.half_width())
    return Measured(len(program.rounds), held, len(shown), ratios, known, *means, *measure_groups(program, people))


def measure_own_lift(program: Program, people: Population, group: int | None = None) -> float:
    """What a program brought to its own people, or to those of a group, per person and round: with it minus without it."""
    agents = program.projection.agents
    counted = ~agents.control if group is None else ~agents.control & (agents.group == group)
    reward, place = np.array(program.config.rewards), {name: number for number, name in enumerate(people.names)}
    state, gain, seen = people.state, 0.0, 0
    nobody = np.zeros_like(state)
    for line in program.rounds:
        found = program.cache.get_round(line.round)
        state = people.world.advance(state, nobody, people.world.draws(line.round - 1)).after
        known = (found.after >= 0) & counted[found.number]
        names = program.names.roster.gather(found.number[known])
        without = reward[state[0, [place[name] for name in names]]]
        gain += float((found.reward[known] - without).sum())
        seen += int(known.sum())
    return gain / seen


def measure_groups(program: Program, people: Population) -> tuple[bool | None, int]:
    """Whether the lifts of all groups hold what the program brought to them, and how many are known."""
    names, held = program.projection.groups, []
    for each in find_groups(program.projection):
        if each["group"] is not None and each["low"] is not None and each["high"] is not None:
            truth = measure_own_lift(program, people, names.index(each["group"]))
            held.append(each["low"] <= truth <= each["high"])
    return all(held) if held else None, len(held)


def run_program(template: str, settings: dict[str, Any], seed: int, rounds: tuple[int, ...]) -> list[Measured]:
    """One simulated program, measured in these rounds."""
    found: list[Measured] = []
    with TemporaryDirectory() as folder, Desk(f"{folder}/programs.db") as desk:

        def look(played: int, _: int) -> None:
            if played in rounds:
                found.append(measure(desk.program("one"), template, seed))

        run_demo(desk, "one", template, AGENTS, rounds[-1], seed, look, shadow=None, **settings)
    return found


def check_status(name: str, template: str, settings: dict[str, Any], first_seed: int, quick: bool) -> list[Result]:
    """The shares of intervals in the status that hold the truth, by round."""
    rounds, programs = (QUICK_ROUNDS, QUICK_PROGRAMS) if quick else (ROUNDS, PROGRAMS)
    found = [run_program(template, settings, first_seed + number, rounds) for number in range(programs)]
    results: list[Result] = []
    for at in zip(*found, strict=True):
        held = [each for one in at for each in one.effects]
        known = f"{len(held)} of {sum(one.states for one in at)} stated"
        results.append(_judge("effects in states", name, at[0].round, held, known, quick))
        lifts = [one for one in at if one.lift is not None]
        plain, width = np.mean([(one.plain, one.width) for one in lifts], axis=0)
        several = f"{len(lifts)} programs; {plain:.3f} by the difference in means, {1 / width:.1f} times as wide"
        results.append(_judge("lift and total", name, at[0].round, [bool(one.lift) for one in lifts], several, quick))
        groups = [one.groups for one in at if one.groups is not None]
        if groups:
            many = f"{len(groups)} programs with {np.mean([one.known_groups for one in at if one.known_groups]):.1f} groups"
            results.append(_judge("lift of all groups at once", name, at[0].round, groups, many, quick, most=1.0))
        ratios = [each for one in at for each in one.spreads]
        if ratios:
            what = f"spread over people over its truth, {name}, round {at[0].round}"
            results.append(Result(what, "shown", f"{np.mean(ratios):.2f}", True, f"{len(ratios)} stated"))
    return results


def _judge(
    what: str, setting: str, round_: int, held: list[bool], note: str, quick: bool, most: float = MOST
) -> Result:
    """The share of intervals that hold; several at once may hold more often, because Bonferroni's bound is an inequality."""
    share = float(np.mean(held)) if held else math.nan
    slack = 1.96 * math.sqrt(0.95 * 0.05 / max(len(held), 1))
    wanted = f"{QUICK_LEAST:.2f}–1" if quick else f"{LEAST:.2f}–{most:.2f}"
    least, most = (QUICK_LEAST, 1.0) if quick else (LEAST - slack, most + slack)
    holds = not held or least <= share <= most
    title, pool = f"coverage of {what}, {setting}, round {round_}", f"coverage of {what}, round {round_}"
    return Result(title, wanted, f"{share:.3f}", holds, note, pool, sum(map(bool, held)), len(held))


def _list_checks() -> tuple[Check, ...]:
    """One check for each template, and some with another policy or a larger control group."""
    settings: list[tuple[str, str, dict[str, Any]]] = [(name, name, {}) for name in TEMPLATES]
    settings += [
        ("pharmacy-egt", "pharmacy", {"policy": "egt"}),
        ("loyalty-thompson", "loyalty", {"policy": "thompson-whittle"}),
        ("general-usage-control", "general-usage", {"control": 0.3, "budget": 8}),
        ("pharmacy-control", "pharmacy", {"control": 0.4}),
    ]
    runs: list[tuple[str, Callable[[bool], list[Result]]]] = [
        (name, partial(check_status, name, template, chosen, SEEDS_APART * (place + 1)))
        for place, (name, template, chosen) in enumerate(settings)
    ]
    return tuple(Check(name, run) for name, run in runs)


CHECKS = _list_checks()
