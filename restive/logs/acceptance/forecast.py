"""Forecasts against the truth: coverage of the intervals, the policy that is named best, and the promised power."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from restive.logs.acceptance import Check, Result
from restive.logs.fit import fit
from restive.logs.forecast import AT_RANDOM, settle, summarise
from restive.logs.generate import generate_history
from restive.logs.model import FittedModel
from restive.logs.power import people_needed, simulate_trials
from restive.logs.rollout import Programs, find_policy, gains_of_acting, play, play_world, start_warm
from restive.policies.base import Policy
from restive.policies.random import Random
from restive.problem import Problem
from restive.problems import make_problems
from restive.stats import student_quantile
from restive.types import Floats
from restive.world import World

SEED = 0
NAMES = ("lagrange", "informed", AT_RANDOM)
TRUE_RUNS = 40  # of each policy on the true people: the noise of their mean is small beside the interval
ROUNDS, DRAWS = 12, 100
HISTORIES = {False: 400, True: 12}
TRIALS = {False: 2_000, True: 300}
WHY_NOT_NAMED = "informed is planned with the model that it is played on, so that errors of the model favour it"
COVERAGE, POWER_TOLERANCE, NAMED_RIGHT = (0.93, 0.97), 0.03, 0.8


class Setting(NamedTuple):
    """Histories of one family, and the program that is forecast."""

    family: str
    agents: int
    rounds: int  # of the history
    rule: tuple[float, ...]  # the probability of acting in each state; one number for all
    budget: int


SETTINGS = {
    "two states, short": Setting("two-state-v1", 100, 8, (0.3,), 10),
    "few types, long": Setting("few-types-v1", 200, 30, (0.3,), 20),
    "acting by state": Setting("patient-management-v1", 200, 12, (0.4, 0.3, 0.2), 20),
}


class Outcome(NamedTuple):
    """A forecast and what was true, for each of P policies."""

    inside: Floats  # [P] whether the interval of the lift holds the true one
    seen: Floats  # [P] whether that of what will be seen holds what was seen
    clear: bool  # whether the best policy is better than the second by more than a standard error
    named: bool  # whether it was named best


def forecast_one(setting: Setting, number: int) -> Outcome:
    """Generate a history, forecast from it, and play the same policies on the true people."""
    problem = make_problems(setting.family, instances=1, agents=setting.agents, budget=1, seed=10_000 * SEED + number)[
        0
    ]
    rule = np.array(setting.rule) if len(setting.rule) > 1 else setting.rule[0]
    history = generate_history(problem, setting.rounds, 10_000 * SEED + number, rule)
    model = fit(history, seed=number, draws=DRAWS, held_out=False)
    policies: tuple[Policy[Any], ...] = tuple(
        Random() if name == AT_RANDOM else find_policy(model, name) for name in NAMES
    )
    programs = Programs((*policies, Random()), (setting.budget,), ROUNDS, DRAWS, number, runs=2, bounds=0)
    played = play(model, programs, threads=1)
    rows = summarise(played, programs, (*NAMES, "as now"), 0)
    true = problem.replace(budget=setting.budget, start=history.last_state)
    beliefs = [start_warm(model, policy, programs, setting.budget) for policy in policies]
    lift, seen = _play_true(true, policies, beliefs, number)
    inside = [row.lift.low <= each <= row.lift.high for row, each in zip(rows, lift, strict=False)]
    held = [row.seen.low <= each <= row.seen.high for row, each in zip(rows, seen, strict=False)]
    second, best = np.argsort(lift)[-2:]
    error = settle(played.lift[best, 0] - played.lift[second, 0]).std(ddof=1)
    named = max(range(len(NAMES)), key=lambda p: rows[p].lift.mean) == best
    return Outcome(np.array(inside, float), np.array(held, float), bool(lift[best] - lift[second] > error), bool(named))


def _play_true(
    problem: Problem, policies: tuple[Policy[Any], ...], beliefs: list[Any], number: int
) -> tuple[Floats, Floats]:
    """The true lift of each policy, and what one run of it shows."""
    world = World(problem, TRUE_RUNS, 10**6 + number, horizon=ROUNDS)
    gain, nobody = gains_of_acting(problem.transition, problem.reward, ROUNDS)
    untouched = float((nobody * world.model.start[0]).sum())
    lift, seen = [], []
    for policy, belief in zip(policies, beliefs, strict=True):
        gained, reward = play_world(world, policy, ROUNDS, gain[:, None], belief)
        lift.append(gained.mean())
        seen.append(reward[0] - untouched)
    return np.array(lift), np.array(seen)


def check_coverage(name: str, quick: bool) -> list[Result]:
    """How often intervals hold the truth, and the right policy is named."""
    setting = SETTINGS[name]
    outcomes = [forecast_one(setting, number) for number in range(HISTORIES[quick])]
    low, high = COVERAGE
    slack = 3.0 * (0.05 * 0.95 / len(outcomes)) ** 0.5 if quick else 0.0
    results, note = [], f"{len(outcomes)} histories"
    for part, what in (("inside", "lift"), ("seen", "what will be seen")):
        shares = np.mean([getattr(outcome, part) for outcome in outcomes], axis=0)
        for policy, share in zip(NAMES, shares, strict=True):
            holds = bool(low - slack <= share <= high + slack)
            what_of = f"coverage of {what}, {policy}, {name}"
            results.append(Result(what_of, f"{low}–{high}", f"{share:.3f}", holds, note))
    clear = [outcome.named for outcome in outcomes if outcome.clear]
    share = float(np.mean(clear)) if clear else np.nan
    named = not share < NAMED_RIGHT - slack
    note = f"{len(clear)} of {len(outcomes)} histories differ by more than a standard error"
    note += "" if named else f"; {WHY_NOT_NAMED}"
    results.append(
        Result(
            f"right policy named best, {name}",
            f"≥ {NAMED_RIGHT}",
            f"{share:.3f}",
            named,
            note,
        )
    )
    return results


def check_power(quick: bool) -> list[Result]:
    """Trials with as many people as the formula asks for are significant as often as it promises."""
    problem = make_problems("two-state-v1", instances=1, agents=400, budget=1, seed=SEED)[0]
    model = fit(generate_history(problem, 12, SEED), seed=SEED, draws=DRAWS, held_out=False)
    results = []
    for policy, share, per_person in (("informed", 0.5, 0.1), ("lagrange", 0.5, 0.2), ("random", 0.8, 0.5)):
        results.append(_check_power_of(model, policy, share, per_person, TRIALS[quick], quick))
    return results


def _check_power_of(
    model: FittedModel, policy: str, share: float, per_person: float, trials: int, quick: bool
) -> Result:
    """Plan a trial from a pilot, then simulate it; the people vary, the model does not."""
    model = replace(model, draws=())
    pilot = simulate_trials(model, 800, ROUNDS, round(800 * share * per_person), share, policy, 400, SEED + 1, 1)
    program, control = (float(variance.mean()) for variance in pilot.variances)
    needed = int(np.ceil(people_needed(float(pilot.lift.mean()), program, control, share)))
    planned = simulate_trials(
        model, needed, ROUNDS, round(needed * share * per_person), share, policy, trials, SEED + 2, 1
    )
    cutoff = student_quantile(0.95, needed - 2)
    reached = float((np.abs(planned.lift) > cutoff * planned.error).mean())
    slack = 3 * (0.16 / trials) ** 0.5 if quick else 0.0
    holds = abs(reached - 0.8) <= POWER_TOLERANCE + slack
    wanted = f"0.80 ± {POWER_TOLERANCE}"
    note = f"{needed} people in all, {trials} trials"
    return Result(f"power of a trial of {policy}", wanted, f"{reached:.3f}", holds, note)


CHECKS: tuple[Check, ...] = (
    *(Check(name, partial(check_coverage, name)) for name in SETTINGS),
    Check("power", check_power),
)
