"""Forecasts against the truth: coverage of the intervals, the policy that is named best, and the promised power."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from restive.logs.acceptance import Check, Result
from restive.logs.alternatives import as_pairs, find_alternatives, people_of
from restive.logs.fit import fit
from restive.logs.forecast import AT_RANDOM, settle, summarise
from restive.logs.generate import generate_history
from restive.logs.history import History
from restive.logs.model import FittedModel
from restive.logs.power import people_needed, simulate_trials
from restive.logs.rollout import Programs, SeesPresent, find_policy, gains_of_acting, play, play_world, start_warm
from restive.policies.base import Policy
from restive.policies.random import Random
from restive.problem import Problem
from restive.problems import make_problems
from restive.stats import student_quantile
from restive.types import Floats
from restive.world import World

SEED = 0
NAMES = ("lagrange", "informed", AT_RANDOM)
TRUE_RUNS = 200  # of each policy on the true people: the noise of differences is small beside their standard error
ROUNDS, DRAWS = 12, 100
HISTORIES = {False: 400, True: 12}
TRIALS = {False: 2_000, True: 300}
PILOT_PEOPLE, PILOT_TRIALS = 800, 400
PILOT_ERROR = {False: 0.02, True: 0.05}  # of the lift that a trial is planned for
BESIDE_AGENTS, BESIDE_ROUNDS, BESIDE_BUDGET = 200, 30, 20
BESIDE = {"memory": "people remember one state more", "change": "people become others in the last third"}
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
    clear_draws: int  # draws of the model in which the best policy is better by more than a standard error
    named_draws: int  # of those, the draws in which the policy that was named is the best


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
    named = max(range(len(NAMES)), key=lambda p: rows[p].lift.mean)
    clear, right = _judge_names(played.lift[: len(NAMES), 0], lift, named)
    return Outcome(np.array(inside, float), np.array(held, float), clear[0], right[0], sum(clear[1:]), sum(right[1:]))


def _judge_names(runs: Floats, true: Floats, named: int) -> tuple[list[bool], list[bool]]:
    """For the truth and for each draw of the model: whether the best policy is clearly best, and is the one named then.

    Draws are the truth of a model that is exactly right: no forecast names the best policy more often than among them.
    """
    draws = np.stack([settle(each - runs[named]) for each in runs]).T  # [R, P]
    clear, right = [], []
    for lift in (true, *draws):
        second, best = np.argsort(lift)[-2:]
        error = settle(runs[best] - runs[second]).std(ddof=1)
        clear.append(bool(lift[best] - lift[second] > error))
        right.append(clear[-1] and bool(best == named))
    return clear, right


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
    most = sum(outcome.named_draws for outcome in outcomes) / max(1, sum(outcome.clear_draws for outcome in outcomes))
    note = (
        f"{len(clear)} of {len(outcomes)} histories differ by more than a standard error; "
        f"{most:.2f} if the model were exactly right"
    )
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


class Broken(NamedTuple):
    """A history that the first model is wrong for, and the people of the program that is forecast."""

    history: History
    people: Problem  # with two states, or four pairs of states


def draw_memory(number: int) -> Broken:
    """People whose probability of the good state is 30 points higher if they were in it before."""
    generator = np.random.default_rng([SEED, 11, number])
    base = np.clip(np.array([0.3, 0.55]) + 0.2 * generator.standard_normal((BESIDE_AGENTS, 1)), 0.05, 0.95)
    effect = generator.uniform(0, 0.3, (BESIDE_AGENTS, 1, 1))
    good = (
        base[:, None, None, :]
        + np.array([-0.15, 0.15])[:, None]
        + np.array([0.0, 1.0])[:, None, None] * effect[..., None]
    )
    good = np.clip(good, 0.02, 0.98).reshape(BESIDE_AGENTS, 2, 4)  # [N, A, (before, now)]
    rows = as_pairs(np.stack([1 - good, good], axis=-1), 0.0)
    pairs = Problem(rows, np.array([0.0, 1.0, 0.0, 1.0]), BESIDE_BUDGET)
    played = generate_history(pairs, BESIDE_ROUNDS, 30_000 + number)
    two: dict[str, Any] = {"states": ("bad", "good"), "value": np.array([0.0, 1.0])}
    folded = replace(played, state=played.state % 2, next_state=played.next_state % 2, **two)
    return Broken(folded, pairs.replace(start=played.last_state))


def draw_change(number: int) -> Broken:
    """People who become others in the last third of the rounds."""
    first, second = make_problems(
        "two-state-v1", instances=2, agents=BESIDE_AGENTS, budget=BESIDE_BUDGET, seed=20_000 + number
    )
    history = generate_history(first.change_to(second, BESIDE_ROUNDS * 2 // 3), BESIDE_ROUNDS, 40_000 + number)
    return Broken(history, second.replace(start=history.last_state))


def forecast_beside(key: str, number: int) -> Floats:
    """Whether the intervals of the lift hold the truth: of the first model and of the alternative, for P policies, [2, P]."""
    history, people = {"memory": draw_memory, "change": draw_change}[key](number)
    model = fit(history, seed=number, draws=DRAWS, held_out=False)
    policies: tuple[Policy[Any], ...] = (find_policy(model, "lagrange"), find_policy(model, "informed"), Random())
    programs = Programs((*policies, Random()), (BESIDE_BUDGET,), ROUNDS, DRAWS, number, runs=2, bounds=0)
    beliefs = [start_warm(model, policy, programs, BESIDE_BUDGET) for policy in policies]
    seen = policies
    if people.shape[1] != len(model.states):
        seen = tuple(SeesPresent(policy, len(model.states)) for policy in policies)
    lift, _ = _play_true(people, seen, beliefs, number)
    inside = []
    for source in (model, people_of(model, find_alternatives(history, [key], number)[0])):
        played = play(model, programs, threads=1, people=source)
        rows = summarise(played, programs, (*NAMES, "as now"), 0)
        inside.append([row.lift.low <= each <= row.lift.high for row, each in zip(rows, lift, strict=False)])
    return np.array(inside, float)


def check_beside(key: str, what: str, quick: bool) -> list[Result]:
    """How often the lifts of an alternative hold the truth, where the first model is wrong."""
    histories = 12 if quick else 200
    shares = np.mean([forecast_beside(key, number) for number in range(histories)], axis=0)
    low, high = COVERAGE
    slack = 3.0 * (0.05 * 0.95 / histories) ** 0.5 if quick else 0.0
    return [
        Result(
            f"coverage of lift beside the first model, {policy}, {what}",
            f"{low}–{high}",
            f"{share:.3f}",
            bool(low - slack <= share <= high + slack),
            f"{histories} histories; {first:.3f} by the first model",
        )
        for policy, first, share in zip(NAMES, *shares, strict=True)
    ]


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
    needed, pilots = 0, PILOT_TRIALS
    for _ in range(2):  # the second time with as many trials as the lift needs
        budget = round(PILOT_PEOPLE * share * per_person)
        pilot = simulate_trials(model, PILOT_PEOPLE, ROUNDS, budget, share, policy, pilots, SEED + 1, 1)
        program, control = (float(variance.mean()) for variance in pilot.variances)
        needed = int(np.ceil(people_needed(float(pilot.lift.mean()), program, control, share)))
        pilots = int(needed / PILOT_PEOPLE / (2.8 * PILOT_ERROR[quick]) ** 2)
        if pilots <= PILOT_TRIALS:
            break
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
    *(Check(key, partial(check_beside, key, what)) for key, what in BESIDE.items()),
    Check("power", check_power),
)
