"""Does a trial's interval hold its lift, is the sharper estimator sharper, and does a plan keep its promise?"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from restive.logs.acceptance import Check, Result
from restive.logs.estimators import Effect, base, onward, reshuffled, sharper, subgroup
from restive.logs.group_sequential import SPENDING, find_boundaries
from restive.logs.trial_plan import plan_trial
from restive.logs.trial_simulation import start_trials
from restive.problems import make_problems
from restive.types import Bools, Floats

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
LOOKS = (0.25, 0.5, 0.75, 1.0)


class Repeated(NamedTuple):
    """Trials of one setting."""

    effects: dict[str, list[Effect]]
    own: Floats  # [R] what each program brought to its own people
    touched: Floats  # [R] the share of people of the program who were touched
    fewest: float  # touched people of the arm with fewer of them, on average


def repeat(setting: Setting, trials: int, seed: int) -> Repeated:
    """Simulate the trial, each time with other people."""
    population = make_problems(setting.problem, instances=1, agents=POPULATION, seed=seed)[0]
    effects: dict[str, list[Effect]] = {estimate.__name__: [] for estimate in ESTIMATORS}
    own, touched, counts = [], [], []
    sizes = setting.people, setting.program, setting.budget
    for simulation in start_trials(population, *sizes, setting.policy, trials, seed, setting.rounds):
        simulation.advance(setting.rounds)
        for estimate in ESTIMATORS:
            effects[estimate.__name__] += map(estimate, simulation.all_sums())
        arms = [simulation.touched[:, side].sum(axis=1) for side in (~simulation.control, simulation.control)]
        own.append(simulation.own_lift())
        touched.append(arms[0] / setting.program)
        counts.append(np.minimum(*arms))
    return Repeated(effects, np.concatenate(own), np.concatenate(touched), float(np.concatenate(counts).mean()))


def covers(effects: list[Effect], truth: Floats) -> Floats:
    """Whether each interval holds the truth, NaN where there is no estimate."""
    mean, half_width = np.array([[effect.mean, effect.half_width()] for effect in effects]).T
    return np.where(np.isnan(mean), np.nan, np.abs(mean - truth) <= half_width)


def check_trials(quick: bool, seed: int = SEED) -> list[Result]:
    """Coverage of each estimator, and how many times less variance it has than the difference in means.

    For a fixed policy, coverage is of its lift; for a learner, of what each program brought to its own people.
    """
    results = []
    for setting in QUICK if quick else SETTINGS:
        found = repeat(setting, QUICK_TRIALS if quick else TRIALS, seed)
        truth = found.own if setting.learns else np.full(found.own.size, found.own.mean())
        for name, effects in found.effects.items():
            results.append(_judge_coverage(f"coverage of {name}, {setting}", covers(effects, truth), found, quick))
        results += [_judge_variance(name, setting, found) for name in ("subgroup", "reshuffled", "onward")]
    return results


def _judge_coverage(what: str, covered: Floats, found: Repeated, quick: bool) -> Result:
    least, most = (0.88, 1.0) if quick else (0.93, 0.97)
    share = float(np.nanmean(covered))
    note = f"{covered.size} trials, {found.fewest:.0f} touched in the smaller group"
    return Result(what, f"{least:.2f}–{most:.2f}", f"{share:.3f}", least <= share <= most, note)


def _judge_variance(name: str, setting: Setting, found: Repeated) -> Result:
    plain, sharp = (np.nanmean([each.error**2 for each in found.effects[which]]) for which in ("base", name))
    share, ratio = float(found.touched.mean()), float(plain / sharp)
    required = name == "onward" and share <= MAX_TOUCHED
    what, note = f"variance ratio of {name}, {setting}", f"{share:.0%} touched"
    return Result(what, "≥ 5" if required else "shown", f"{ratio:.1f}", ratio >= 5 or not required, note)


def check_power(quick: bool, seed: int = SEED) -> list[Result]:
    """The power that a plan promises at the size that it asks for, against new simulated trials."""
    results = []
    settings = ("two-state-v1", "lagrange", 20, 0.3), ("sticky-v1", "whittle-oracle", 20, 0.5)
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
            results.append(Result(what, f"0.80 ± {limit}", f"{seen:.3f}", abs(seen - 0.8) <= limit, f"{trials} trials"))
    return results


def check_looks(quick: bool, seed: int = SEED) -> list[Result]:
    """How often a program without any effect is said to have one, at any of four planned looks or of four unplanned ones."""
    people = make_problems("two-state-v1", instances=1, agents=POPULATION, seed=seed)[0]
    idle = people.replace(transition=people.transition[:, [0, 0]])
    levels = {name: 2 * ndtr(find_boundaries(LOOKS, name)) - 1 for name in SPENDING} | {"none": np.full(4, 0.95)}
    crossed: dict[str, list[Bools]] = {name: [] for name in levels}
    for trial in start_trials(idle, 300, 150, 4, "lagrange", 300 if quick else TRIALS, seed, 20):
        found = {name: np.zeros(len(trial.total), np.bool_) for name in levels}
        for look in range(4):
            trial.advance(5)
            effects = [sharper(sums) for sums in trial.all_sums()]
            for name, level in levels.items():
                found[name] |= [abs(effect.mean) > effect.half_width(float(level[look])) for effect in effects]
        for name, each in found.items():
            crossed[name].append(each)
    shares = {name: float(np.concatenate(parts).mean()) for name, parts in crossed.items()}
    limit = 0.09 if quick else 0.06
    said = "false alarms over four looks, spending"
    wrong = [Result(f"{said} {name}", f"≤ {limit}", f"{shares[name]:.3f}", shares[name] <= limit) for name in SPENDING]
    return [
        *wrong,
        Result("false alarms over four looks that were not planned", "shown", f"{shares['none']:.3f}", True),
    ]


CHECKS = (
    Check("looks", check_looks),
    Check("trials", check_trials),
    Check("power", check_power),
)
