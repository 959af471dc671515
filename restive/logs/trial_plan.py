"""Plans of a trial: how many people and rounds show a lift with a stated power, by each estimator.

With a model the trial is simulated: its expected lift δ, and for each estimator the mean error σ that it states and the
standard deviation s of its estimates over trials, which also contains how much what a learner finds out differs. With n
people instead, and the budget in proportion, both are √(people / n) times as large, and

    power(n) = Φ((δ − q σ) / s) + Φ((−δ − q σ) / s),     q = 1.96, or Student's quantile where few people are touched

Without a model there are the standard deviation d of a person's mean reward and the share f of people who are touched:
σ = s = d √(f (1/n1 + 1/n0)), with f = 1 for the difference in means. This leaves out what is gained by counting from the
first touch on, and what effects add to the variance.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

import numpy as np

from restive.errors import InputError, check_number, check_whole
from restive.formats import show_count, show_percent
from restive.logs.estimators import Effect, base, onward, reshuffled, subgroup
from restive.logs.model import FittedModel
from restive.logs.sections import DisplayedAnswer, Section
from restive.logs.trial_simulation import TrialSimulation, start_trials
from restive.policies import make_policy
from restive.problem import Problem
from restive.stats import student_quantile
from restive.types import Floats

ESTIMATORS = (base, subgroup, reshuffled, onward)
LEVEL, POWER = 0.95, 0.8
MAX_PEOPLE = 10_000_000
MAX_AGENT_STEPS = 40_000_000
MAX_REFINEMENTS, CLOSE = 8, 0.9  # of the people needed, by trials of at least half of the size before
CHECKPOINTS = 12  # at which rounds a trial could end, up to twice its length
NORMAL = NormalDist()


class Planned(NamedTuple):
    """What one estimator can see."""

    estimator: str
    error: float  # of the lift, in the trial as planned
    smallest_lift: float  # that is seen with the wanted power
    power: float | None  # to see the expected lift; None if none is expected
    people: int | None  # that give the wanted power, with the budget in proportion
    rounds: int | None  # that give it with the people as planned; None if more than twice as many are needed


@dataclass(frozen=True, repr=False)
class TrialPlan(DisplayedAnswer):
    """A trial, and what it can see."""

    numbers: ClassVar[str] = "rows"
    people: int
    control: int  # of them
    rounds: int | None
    budget: int | None
    policy: str
    lift: float | None  # expected, per person and round
    touched: float | None  # the share of people whom the program acts on
    wanted_power: float
    rows: tuple[Planned, ...]
    trials: int  # that were simulated
    curve: tuple[tuple[str, tuple[float, ...]], ...]  # the power by each estimator, for the numbers of people below
    sizes: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        rows = [{name: _finite(value) for name, value in row._asdict().items()} for row in self.rows]
        curve = {name: [_finite(power) for power in powers] for name, powers in self.curve}
        return {**asdict(self), "rows": rows, "curve": curve}

    @property
    def best(self) -> Planned:
        """The estimator with the smallest error."""
        return min(self.rows, key=lambda row: math.inf if math.isnan(row.error) else row.error)

    def sections(self) -> tuple[Section, ...]:
        """The plan in sentences, a table, and the power by the number of people."""
        from restive.report.tables import Table

        heads = ("estimator", "error", "smallest lift", "power", "people needed", "rounds needed")
        rows = tuple(_show_row(row, self) for row in self.rows)
        note = "Smallest lift: seen with a power of {}. People needed: with the budget and the control group in proportion."
        table = Table("", heads, rows, note.format(show_percent(self.wanted_power)))
        caption = f"Power by the number of people; the dashed line is {show_percent(self.wanted_power)}."
        return (
            Section("What the trial can see", self._sentences(), table, self._draw if self.curve else None, caption),
        )

    def _sentences(self) -> tuple[str, ...]:
        long = f" over {show_count(self.rounds, 'round')}" if self.rounds else ""
        best, plain = self.best, self.rows[0]
        said = [
            f"With {self.people:,} people, {self.control:,} of them in the control group,{long} the trial shows a lift of about "
            f"{best.smallest_lift:.2g} per person and round or more; by the difference in means, {plain.smallest_lift:.2g}."
        ]
        if self.lift is not None and best.power is not None:
            said.append(
                f"The expected lift is {self.lift:.3g}; it is seen in {show_percent(best.power)} of such trials."
            )
            if best.power < self.wanted_power:
                said.append(f"For {show_percent(self.wanted_power)}, {_needed(best)}.")
        if self.touched is not None:
            said.append(f"The program acts on {show_percent(self.touched)} of its people at least once.")
        return tuple(said)

    def _draw(self) -> Any:
        from restive.plotting import GREY, SHORT_DASHES, Line, draw_lines

        sizes = np.array(self.sizes)
        curves = {name: np.array(powers) for name, powers in self.curve}
        lines = [Line(name, sizes, powers, powers, powers) for name, powers in curves.items()]
        wanted = np.full(sizes.size, self.wanted_power)
        lines.append(Line(f"{self.wanted_power:.0%}", sizes, wanted, wanted, wanted, GREY, SHORT_DASHES))
        return draw_lines(lines, "people", "power", "", log_x=True)


def _needed(row: Planned) -> str:
    people = f"{row.people:,} people" if row.people else f"more than {MAX_PEOPLE:,} people"
    return f"{people} are needed, or {row.rounds} rounds" if row.rounds else f"{people} are needed"


def _show_row(row: Planned, plan: TrialPlan) -> tuple[str, ...]:
    known = row.power is not None and not math.isnan(row.error)
    error, smallest = (
        ("not known", "not known") if math.isnan(row.error) else (f"{row.error:.2g}", f"{row.smallest_lift:.2g}")
    )
    power = show_percent(row.power) if known and row.power is not None else "not known"
    people = (f"{row.people:,}" if row.people else f"> {MAX_PEOPLE:,}") if known else "not known"
    rounds = (
        (f"{row.rounds}" if row.rounds else f"> {2 * (plan.rounds or 0)}") if known and plan.trials else "not known"
    )
    return row.estimator, error, smallest, power, people, rounds


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plan_trial(
    source: FittedModel | Problem | None = None,
    *,
    people: int,
    rounds: int | None = None,
    budget: int | None = None,
    control: float = 0.5,
    policy: str = "lagrange",
    lift: float | None = None,
    deviation: float | None = None,
    touched: float | None = None,
    power: float = POWER,
    trials: int = 400,
    seed: int = 0,
) -> TrialPlan:
    """What a trial of so many people can see, and how many people and rounds it needs, by each estimator.

    Parameters
    ----------
    source
        A fitted model or a problem, on which the trial is simulated; without one, `deviation` is needed.
    people, rounds, budget
        People in both groups, and actions in each round, all of them in the program.
    control
        The share of people in the control group.
    policy
        The policy of the program.
    lift
        The lift to plan for, per person and round; by default that of the simulated program.
    deviation
        Without a source: the standard deviation, over people, of the mean reward of a person over the trial.
    touched
        Without a source: the share of people whom the program acts on at least once.
    power
        The probability with which the lift is to be seen.
    trials
        The number of simulated trials; fewer if there are many people.
    seed
        The seed of the simulated trials.

    Returns
    -------
    TrialPlan
        For each estimator the smallest lift that the trial can see, its power, and the people and rounds it needs.

    Raises
    ------
    InputError
        If a group is too small, or neither a source nor a deviation is given.

    Examples
    --------
    >>> plan = plan_trial(people=400, deviation=0.5, lift=0.1, touched=0.2)
    >>> [(row.estimator, round(row.smallest_lift, 3), row.people) for row in plan.rows]
    [('base', 0.14, 785), ('subgroup', 0.063, 157)]
    """
    people, size = check_whole("people", people, 4, MAX_PEOPLE), check_number("control", control, "a share", 0, 1)
    check_number("power", power, "it is a probability above 0.05 and below 1", LEVEL - 0.9, 0.999)
    n_control = round(people * size)
    if not 2 <= n_control <= people - 2:
        raise InputError(f"control is {control}; both groups need at least 2 of {people} people.", location="control")
    if source is None:
        return _plan_without_model(people, n_control, rounds, budget, lift, deviation, touched, power)
    if rounds is None or budget is None:
        raise InputError(
            "A trial on a model needs rounds and budget.", location="rounds" if rounds is None else "budget"
        )
    rounds, budget = check_whole("rounds", rounds, 1), check_whole("budget", budget, 1, people - n_control)
    trials = max(40, min(check_whole("trials", trials, 40), MAX_AGENT_STEPS // (people * rounds * 2)))
    design = _Design(source, people, size, rounds, budget, policy, trials, seed)
    found = design.simulate(np.linspace(1, 2 * rounds, CHECKPOINTS).round().astype(int).tolist())
    planned = found[rounds]
    expected = planned.lift if lift is None else lift
    rows = tuple(_plan_row(name, design, found, power, lift) for name in planned.names)
    sizes = np.unique(np.geomspace(people / 4, people * 8, 25).astype(int))
    curve = tuple(
        (name, tuple(_power(expected, planned.of(name), math.sqrt(people / n)) for n in sizes))
        for name in planned.names
    )
    return TrialPlan(
        people, n_control, rounds, budget, policy, expected, planned.touched, power, rows, trials, curve,
        tuple(sizes.tolist()),
    )  # fmt: skip


class _Spread(NamedTuple):
    """The errors of one estimator."""

    error: float  # that it states, root mean square
    deviation: float  # of its estimates over trials
    df: float


class _Found(NamedTuple):
    """Simulated trials that end after some round."""

    lift: float
    touched: float
    names: tuple[str, ...]
    spreads: tuple[_Spread, ...]

    def of(self, name: str) -> _Spread:
        return self.spreads[self.names.index(name)]


class _Design(NamedTuple):
    """A trial that is simulated."""

    source: FittedModel | Problem
    people: int
    control: float
    rounds: int
    budget: int
    policy: str
    trials: int
    seed: int

    def resize(self, people: int) -> "_Design":
        """The same with fewer people, and the budget in proportion."""
        return self._replace(people=people, budget=max(1, round(self.budget * people / self.people)))

    @property
    def min_people(self) -> int:
        """The fewest people for a budget of 1 and two people in each group."""
        return max(math.ceil(self.people / self.budget), math.ceil(2 / min(self.control, 1 - self.control)))

    def simulate(self, ends: Sequence[int] = ()) -> dict[int, _Found]:
        """Trials that end after each of these rounds, and after the planned ones."""
        program = self.people - round(self.people * self.control)
        found: dict[int, list[tuple[list[list[Effect]], Floats, float]]] = {}
        sizes = self.people, program, self.budget
        for trial in start_trials(self.source, *sizes, self.policy, self.trials, self.seed, self.rounds):
            for end in sorted({self.rounds, *ends}):
                trial.advance(end - trial.step)
                effects = [[estimate(sums) for estimate in ESTIMATORS] for sums in trial.all_sums()]
                touched = float(trial.touched[:, ~trial.control].mean())
                found.setdefault(end, []).append((effects, trial.own_lift(), touched))
        return {end: _summarize(parts) for end, parts in found.items()}


def _summarize(parts: Sequence[tuple[list[list[Effect]], Floats, float]]) -> _Found:
    effects = [row for part in parts for row in part[0]]
    lift = float(np.concatenate([part[1] for part in parts]).mean())
    names = tuple(estimate.__name__ for estimate in ESTIMATORS)
    spreads = tuple(_spread(column) for column in zip(*effects, strict=True))
    return _Found(lift, float(np.mean([part[2] for part in parts])), names, spreads)


def _spread(effects: Sequence[Effect]) -> _Spread:
    """Not known unless nearly all trials have an estimate."""
    known = [effect for effect in effects if not math.isnan(effect.mean)]
    if len(known) < 0.9 * len(effects):
        return _Spread(math.nan, math.nan, math.nan)
    error = math.sqrt(float(np.mean([effect.error**2 for effect in known])))
    return _Spread(error, float(np.std([each.mean for each in known])), float(np.median([each.df for each in known])))


def _power(lift: float, spread: _Spread, scale: float = 1.0) -> float:
    """The probability that the interval leaves out 0, on either side, with errors so many times as large."""
    if math.isnan(spread.error):
        return math.nan
    reach = float(student_quantile(LEVEL, spread.df / scale**2)) * spread.error
    high, low = ((side * lift / scale - reach) / spread.deviation for side in (1, -1))
    return NORMAL.cdf(high) + NORMAL.cdf(low)


def _smallest(spread: _Spread, power: float) -> float:
    return float(student_quantile(LEVEL, spread.df)) * spread.error + NORMAL.inv_cdf(power) * spread.deviation


def _plan_row(name: str, design: _Design, found: dict[int, _Found], power: float, lift: float | None) -> Planned:
    """The row of one estimator; a lift that is given is the same whenever the trial ends."""
    here = found[design.rounds]
    spread, expected = here.of(name), here.lift if lift is None else lift
    ends = (end for end, there in found.items() if _power(lift or there.lift, there.of(name)) >= power)
    needed = _find_people(name, design, here, power, lift)
    return Planned(name, spread.error, _smallest(spread, power), _power(expected, spread), needed, next(ends, None))


def _find_people(name: str, design: _Design, found: _Found, power: float, lift: float | None) -> int | None:
    """The people needed: if fewer than planned, by trials of that size, because errors of few touched people are rough."""
    wanted = None
    for _ in range(MAX_REFINEMENTS):
        spread = found.of(name)
        wanted = _people_needed(found.lift if lift is None else lift, spread, design.people, power)
        if wanted is None or wanted >= CLOSE * design.people:
            break
        smaller = design.resize(max(wanted, math.ceil(design.people / 2), design.min_people))
        found, design = smaller.simulate()[design.rounds], smaller
    return wanted if wanted is None else max(wanted, design.min_people)


def _people_needed(lift: float, spread: _Spread, people: int, power: float) -> int | None:
    """By bisection; None if there would be too many."""
    if math.isnan(spread.error) or _power(lift, spread, math.sqrt(people / MAX_PEOPLE)) < power:
        return None
    low, high = 4, MAX_PEOPLE
    while low < high:
        middle = (low + high) // 2
        enough = _power(lift, spread, math.sqrt(people / middle)) >= power
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def _plan_without_model(
    people: int, n_control: int, rounds: int | None, budget: int | None, lift: float | None, deviation: float | None,
    touched: float | None, power: float,
) -> TrialPlan:  # fmt: skip
    if deviation is None:
        raise InputError(
            "Without a model a plan needs the standard deviation of people's mean rewards.", location="deviation"
        )
    n_program = people - n_control
    if touched is None and rounds and budget:
        touched = min(1.0, rounds * budget / n_program)
    rows, curve = [], []
    sizes = np.unique(np.geomspace(people / 4, people * 8, 25).astype(int))
    for name, share in (("base", 1.0), ("subgroup", touched)):
        if share is None:
            continue
        error = deviation * math.sqrt(share * (1 / n_program + 1 / n_control))
        spread = _Spread(error, error, 1e7)
        probability = None if lift is None else _power(lift, spread)
        needed = None if lift is None else _people_needed(lift, spread, people, power)
        rows.append(Planned(name, error, _smallest(spread, power), probability, needed, None))
        if lift is not None:
            curve.append((name, tuple(_power(lift, spread, math.sqrt(people / n)) for n in sizes)))
    return TrialPlan(
        people, n_control, rounds, budget, "", lift, touched, power, tuple(rows), 0, tuple(curve), tuple(sizes.tolist())
    )


def smallest_visible_lift(
    people: int,
    control: float = 0.1,
    deviation: float | None = None,
    touched: float = 1.0,
    power: float = POWER,
    problem: Problem | None = None,
    rounds: int = 12,
    seed: int = 0,
) -> float:
    """The smallest lift per person and round that a control group of this share shows with the power.

    `deviation` is the standard deviation of people's mean rewards over the rounds; with a problem instead, that of its
    agents if nobody is acted on.

    >>> round(smallest_visible_lift(300, control=0.1, deviation=0.28), 2)
    0.15
    """
    if deviation is None:
        if problem is None:
            raise InputError("The smallest visible lift needs a deviation, or a problem.", location="deviation")
        deviation = untouched_deviation(problem, rounds, seed)
    return (
        plan_trial(people=people, control=control, deviation=deviation, touched=touched, power=power)
        .rows[-1]
        .smallest_lift
    )


def untouched_deviation(problem: Problem, rounds: int, seed: int = 0) -> float:
    """The standard deviation, over agents, of the mean reward over so many rounds without any action."""
    trial = TrialSimulation([problem.with_budget(0)], make_policy("random"), problem.shape[0], seed)
    trial.advance(rounds)
    return float((trial.total[0] / rounds).std(ddof=1))
