"""Does a trial's interval hold its lift, is the sharper estimator sharper, and does a plan keep its promise?"""

from typing import NamedTuple

import numpy as np

from restive.logs.acceptance import Check, Result
from restive.logs.estimators import Effect, base, onward, reshuffled, sharper, subgroup
from restive.logs.trial_plan import plan_trial
from restive.logs.trial_simulation import TrialSimulation, draw_people
from restive.policies import make_policy
from restive.problems import make_problems
from restive.types import Floats

SEED = 0
TRIALS, QUICK_TRIALS = 1500, 200
ESTIMATORS = (base, subgroup, reshuffled, onward, sharper)
POPULATION = 20_000
MAX_TOUCHED = 0.25


class Setting(NamedTuple):
    """A trial that is repeated."""

    problem: str
    policy: str
    people: int
    program: int
    rounds: int
    budget: int
    learns: bool = False

    def __str__(self) -> str:
        control = self.people - self.program
        size = f"{self.program} and {control} people, {self.rounds} rounds, budget {self.budget}"
        return f"{self.policy} on {self.problem}, {size}"


SETTINGS = (
    Setting("two-state-v1", "whittle-oracle", 400, 200, 10, 10),
    Setting("helpful-v1", "whittle-oracle", 400, 200, 20, 12),
    Setting("sticky-v1", "whittle-oracle", 600, 300, 20, 24),
    Setting("two-state-v1", "greedy-oracle", 400, 200, 1, 40),
    Setting("two-state-v1", "lagrange", 300, 150, 20, 3, learns=True),
    Setting("few-types-v1", "lagrange", 300, 150, 12, 5, learns=True),
    Setting("helpful-v1", "egt", 400, 200, 15, 4, learns=True),
    Setting("loyalty-v1", "lagrange", 400, 300, 20, 8, learns=True),
    Setting("pharmacy-v1", "lagrange", 400, 320, 30, 8, learns=True),
)
QUICK = (SETTINGS[0], SETTINGS[4])


class Repeated(NamedTuple):
    """Trials of one setting."""

    effects: dict[str, list[Effect]]
    own: Floats  # [R] what each program brought to its own people
    touched: Floats  # [R] the share of people of the program who were touched
    fewest: float  # touched people of an arm, on average


def repeat(setting: Setting, trials: int, seed: int) -> Repeated:
    """Simulate the trial, each time with other people."""
    population = make_problems(setting.problem, instances=1, agents=POPULATION, seed=seed)[0]
    problems = draw_people(population, setting.people, setting.budget, trials, seed)
    simulation = TrialSimulation(problems, make_policy(setting.policy), setting.program, seed, setting.rounds)
    simulation.advance(setting.rounds)
    sums = [simulation.sums(trial) for trial in range(trials)]
    effects = {estimate.__name__: [estimate(each) for each in sums] for estimate in ESTIMATORS}
    arms = [simulation.touched[:, side] for side in (~simulation.control, simulation.control)]
    fewest = min(float(arm.sum(axis=1).mean()) for arm in arms)
    return Repeated(effects, simulation.own_lift(), arms[0].mean(axis=1), fewest)


def covers(effects: list[Effect], truth: Floats) -> Floats:
    """Whether each interval holds the truth, NaN where there is no estimate."""
    mean, half_width = np.array([[effect.mean, effect.half_width()] for effect in effects]).T
    return np.where(np.isnan(mean), np.nan, np.abs(mean - truth) <= half_width)


def check_coverage(quick: bool, seed: int = SEED) -> list[Result]:
    """Coverage of each estimator: of the lift of a fixed policy, and of what a learner's program brought its people."""
    results = []
    least, most = (0.88, 1.0) if quick else (0.93, 0.97)
    for setting in QUICK if quick else SETTINGS:
        found = repeat(setting, QUICK_TRIALS if quick else TRIALS, seed)
        truth = found.own if setting.learns else np.full(found.own.size, found.own.mean())
        for name, effects in found.effects.items():
            share = float(np.nanmean(covers(effects, truth)))
            note = f"{found.fewest:.0f} touched in the smaller group"
            what = f"coverage of {name}, {setting}"
            results.append(Result(what, f"{least:.2f}–{most:.2f}", f"{share:.3f}", least <= share <= most, note))
    return results


def check_variance(quick: bool, seed: int = SEED) -> list[Result]:
    """How many times the variance of the difference in means is that of the others, where few are touched."""
    results = []
    for setting in QUICK if quick else SETTINGS:
        found = repeat(setting, QUICK_TRIALS if quick else TRIALS, seed)
        share = float(found.touched.mean())
        errors = {name: [effect.error for effect in effects] for name, effects in found.effects.items()}
        plain = float(np.nanmean(np.square(errors["base"])))
        for name in ("subgroup", "reshuffled", "onward"):
            ratio = plain / float(np.nanmean(np.square(errors[name])))
            required = name == "onward" and share <= MAX_TOUCHED
            holds = ratio >= 5 if required else True
            note = f"{share:.0%} touched"
            results.append(
                Result(
                    f"variance ratio of {name}, {setting}", "≥ 5" if required else "shown", f"{ratio:.1f}", holds, note
                )
            )
    return results


def check_power(quick: bool, seed: int = SEED) -> list[Result]:
    """The power that a plan promises at the size that it asks for, against new simulated trials."""
    results = []
    settings = ("two-state-v1", "lagrange", 20, 0.3), ("helpful-v1", "whittle-oracle", 12, 0.5)
    trials = 200 if quick else TRIALS
    for problem, policy, rounds, control in settings[:1] if quick else settings:
        population = make_problems(problem, instances=1, agents=POPULATION, seed=seed)[0]
        plan = plan_trial(
            population,
            people=400,
            rounds=rounds,
            budget=12,
            control=control,
            policy=policy,
            trials=trials,
            seed=seed + 1,
        )
        for row in plan.rows:
            if row.people is None or row.people * trials * rounds > (6_000_000 if quick else 60_000_000):
                continue
            program = row.people - round(row.people * control)
            setting = Setting(problem, policy, row.people, program, rounds, round(12 * row.people / 400))
            found = repeat(setting, trials, seed + 2)
            effects = found.effects[row.estimator]
            seen = float(np.mean([abs(effect.mean) > effect.half_width() for effect in effects]))
            limit = 0.1 if quick else 0.03
            what = f"power of {row.estimator} at the {row.people} people planned for, {policy} on {problem}"
            results.append(Result(what, f"0.80 ± {limit}", f"{seen:.3f}", abs(seen - 0.8) <= limit))
    return results


CHECKS = (Check("coverage", check_coverage), Check("variance", check_variance), Check("power", check_power))
