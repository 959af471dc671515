"""Forecast: what a program would bring, by budget and policy, with what is not known of the people.

Every program is played on draws of the fitted model (`restive.logs.rollout`). Two intervals, both 95% and over the draws:

    lift   what the program does: the expected reward beyond that of acting on nobody, without the noise of one run
    seen   what will be seen: the reward of one run beyond what acting on nobody brings on average

The noise of the runs within a draw is taken out of the lifts: with B the variance between draws, W within them and k
runs, lift_b = mean + (lift̄_b − mean) · √(B / (B + W / k)), which has variance B (constrained empirical Bayes, Louis
1984). A variance B that is lost in the noise counts as its standard error, not as 0. Differences between policies are
taken run by run first, since all of them meet the same random numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from restive.errors import InputError, check_whole
from restive.formats import UNKNOWN, enumerate_words, show_count, show_number, show_percent, typeset
from restive.logs.alternatives import people_of
from restive.logs.model import Alternative, FittedModel
from restive.logs.power import people_needed, power_of, show_people, simulate_trials
from restive.logs.rollout import AsNow, Played, Programs, can_start_warm, find_policy, play
from restive.logs.sections import DisplayedEstimates, Section
from restive.policies.base import Learner, Policy
from restive.policies.random import Random
from restive.report.tables import Table
from restive.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = ("lagrange", "informed")
WARM, COLD = "warm", "cold"
NOBODY, AT_RANDOM, AS_NOW = "nobody", "at random", AsNow.name
DRAWS, MIN_DRAWS = 200, 20
MIN_MOVES = 30  # a state with fewer moves under an action is called thinly known
TRIAL_DRAWS, MAX_TRIAL_PEOPLE = 20, 4_000
TAILS = (0.025, 0.975)
BESIDE_DRAWS = 100
BESIDE = {
    "memory": (
        "If people remember one state more",
        "The history shows that the state before counts too. Here it does: people move by their last two states, and policies "
        "see the last one.",
    ),
    "change": (
        "If people move as in the last third of the rounds",
        "The history shows that people changed. Here they move as in the last third of its rounds.",
    ),
}


class Interval(NamedTuple):
    """A mean over the draws of a model, with the interval that holds 95% of them."""

    mean: float
    low: float
    high: float

    def show(self) -> str:
        """The numbers to two digits of the interval's width.

        >>> Interval(41.2, 17.6, 66.3).show(), Interval(0.1234, 0.1, 0.15).show()
        ('41 [18, 66]', '0.123 [0.100, 0.150]')
        """
        low, high = self.show_ends()
        return f"{self._show(self.mean)} [{low}, {high}]"

    def show_ends(self) -> tuple[str, str]:
        """The two ends of the interval."""
        return self._show(self.low), self._show(self.high)

    def _show(self, number: float) -> str:
        width = self.high - self.low
        decimals = int(np.clip(1 - np.floor(np.log10(width)), 0, 4)) if width > 0 else 0
        return typeset(f"{round(number, decimals) + 0.0:,.{decimals}f}")


class Words(NamedTuple):
    """What an action, a round and the reward are called."""

    action: str = "action"
    round: str = "round"
    reward: str = "reward"


@dataclass(frozen=True)
class Row:
    """One policy with one budget; lifts are totals over all people and rounds."""

    budget: int
    policy: str
    reward: Interval  # a round, expected
    lift: Interval  # against nobody, expected
    seen: Interval  # against nobody, as one run shows it
    over_random: Interval
    over_now: Interval
    best: float  # the share of draws in which no other policy brings more
    loss: float  # what choosing it loses on average against the best of each draw


@dataclass(frozen=True)
class Limit:
    """What is true of a budget whatever the policy, and a trial of the policy that was named best."""

    budget: int
    bound: Interval  # the lift that no policy can exceed, even one that knows everything
    worth: Interval  # of one more action in every round, in all, to one that knows everything
    policy: str
    people: Interval  # needed in all for a power of 80%, half of them in the program
    power: float  # with as many people as in the history


class Beside(NamedTuple):
    """The same programs with people of another model, where `restive.logs.examine` found that the first does not hold."""

    key: str  # the question of `examine`
    rows: tuple[Row, ...]


@dataclass(frozen=True, repr=False)
class Forecast(DisplayedEstimates):
    """The answer of `forecast`."""

    numbers: ClassVar[str] = "programs"
    measure: ClassVar[str] = "lift"
    rows: tuple[Row, ...]
    limits: tuple[Limit, ...]
    nobody: Interval  # reward a round
    rounds: int
    people: int
    draws: int
    seed: int
    words: Words
    notes: tuple[str, ...]  # what is not known
    beside: tuple[Beside, ...] = ()

    def best(self, budget: int) -> Row:
        """The policy that brings most on average with a budget."""
        return max((row for row in self.rows if row.budget == budget), key=lambda row: row.lift.mean)

    def as_json(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return {
            "people": self.people,
            "rounds": self.rounds,
            "draws": self.draws,
            "seed": self.seed,
            "reward_of_nobody": self.nobody._asdict(),
            "programs": [_as_json(row) for row in self.rows],
            "budgets": [_as_json(limit) for limit in self.limits],
            "beside": {each.key: [_as_json(row) for row in each.rows] for each in self.beside},
            "not_known": list(self.notes),
        }

    def sections(self) -> tuple[Section, ...]:
        """What to show, the most important first."""
        headlines = tuple(map(self._headline, (limit.budget for limit in self.limits)))
        rows = "The line is what the program does, 95% of what the history leaves open; nobody is 0."
        limits = tuple(map(self._describe_limit, self.limits))
        return (
            Section("What it would bring", headlines, self._tabulate(), partial(draw_forecast, self), rows),
            *(self._describe_beside(each) for each in self.beside),
            Section(f"One more {self.words.action}, the limit, and a trial", limits, self._tabulate_limits()),
            Section("What is not known", self.notes),
        )

    def _headline(self, budget: int) -> str:
        row, (action, each, reward) = self.best(budget), self.words
        count = f"{show_count(budget, action)} a {each}"
        if row.lift.high <= 0:
            return f"{count} bring less than doing nothing, with any policy: {row.lift.show()}."
        chooser = {AT_RANDOM: "given at random", AS_NOW: "given as now"}.get(row.policy, f"given as {row.policy} says")
        brings = f"{count}, {chooser}, bring about {row.lift.show()} more {reward} over"
        length = f"{show_count(self.rounds, each)} than acting on nobody"
        doubt = " The history does not show whether they bring anything." if row.lift.low <= 0 else ""
        low, high = row.seen.show_ends()
        return f"{brings} {length}. Allowing for random variation, one program will see {low} to {high}.{doubt}"

    def _describe_beside(self, beside: Beside) -> Section:
        title, found = BESIDE[beside.key]
        lines = [
            (f"{row.budget:,} {row.policy}", row.lift.show(), other.lift.show(), show_percent(other.best))
            for row, other in zip(self.rows, beside.rows, strict=True)
        ]
        named = [
            max((row for row in beside.rows if row.budget == limit.budget), key=lambda row: row.lift.mean)
            for limit in self.limits
        ]
        other = [
            f"With {show_count(row.budget, self.words.action)} a {self.words.round}, {row.policy} then brings most: "
            f"{row.lift.show()}; above, {self.best(row.budget).policy} does."
            for row in named
            if row.policy != self.best(row.budget).policy
        ]
        heads = ("program", "lift, as above", "lift", "best in")
        return Section(title, (found, *other), Table("", heads, tuple(lines), "Lifts as above."))

    def _describe_limit(self, limit: Limit) -> str:
        action, each, reward = self.words
        worth = f"one more is worth up to {limit.worth.show()} {reward} over {show_count(self.rounds, each)}"
        bound = f"no way of choosing brings more than {limit.bound.show()}"
        return f"With {show_count(limit.budget, action)} a {each}, {worth}, and {bound}. {self._describe_trial(limit)}"

    def _describe_trial(self, limit: Limit) -> str:
        if not np.isfinite(limit.people.mean):
            return "No trial can be planned: no lift is expected."
        range_ = f"{show_number(round(limit.people.low))} to {show_people(limit.people.high)}"
        return (
            f"A trial that compares means needs {show_people(limit.people.mean)} people ({range_}), half of them in "
            f"the program of {limit.policy}; with the {self.people:,} people here its power is {limit.power:.2f}."
        )

    def _tabulate(self) -> Table:
        heads = ("program", f"{self.words.reward} a {self.words.round}", "lift", "will be seen")
        lines = [
            (
                f"{row.budget:,} {row.policy}",
                row.reward.show(),
                row.lift.show(),
                " to ".join(row.seen.show_ends()),
                row.over_random.show() if row.policy != AT_RANDOM else UNKNOWN,
                row.over_now.show() if row.policy != AS_NOW else UNKNOWN,
                *(show_percent(row.best), show_number(row.loss, 2)),
            )
            for row in self.rows
        ]
        note = (
            f"Lifts are totals over {show_count(self.people, 'person', 'people')} and "
            f"{show_count(self.rounds, self.words.round)}, beyond nobody ({self.nobody.show()} a {self.words.round}); "
            f"95% intervals over {self.draws} draws of the model, seed {self.seed}. Best in: the share of draws in "
            "which it brings most. Loss: what it brings less than the best of each draw, on average."
        )
        return Table("", (*heads, "over random", "over as now", "best in", "loss"), tuple(lines), note)

    def _tabulate_limits(self) -> Table:
        heads = ("budget", "worth of one more", "limit of any policy", "reached by", "of the limit")
        lines = []
        for limit in self.limits:
            best, bound = self.best(limit.budget), limit.bound
            reached = show_percent(best.lift.mean / bound.mean if bound.mean > 0 else np.nan)
            lines.append((f"{limit.budget:,}", limit.worth.show(), bound.show(), best.policy, reached))
        return Table("", heads, tuple(lines), "Worth and limit: if everybody's moves were known (fluid relaxation).")


def forecast(
    model: FittedModel, budgets: int | Sequence[int] = (), rounds: int = 26, policies: Sequence[str | Policy[Any]] = POLICIES,
    draws: int = DRAWS, seed: int = 0, words: Words | None = None, start: str = WARM, threads: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Forecast:  # fmt: skip
    """What a program would bring to the people of a fitted model.

    Parameters
    ----------
    model
        What `fit` returns.
    budgets
        The number of actions in each round, or several to compare; by default as many as now, half and twice that.
    rounds
        How long the program lasts.
    policies
        Policies that learn, by name, with settings or from an own file; "informed" ranks by what the history says.
    draws
        The number of draws of the model.
    seed
        The seed of the draws and of the runs on them.
    words
        What actions, rounds and rewards are called in sentences.
    start
        "warm" if learners start from the history, "cold" if they know nothing of these people.
    threads
        How many parts of the work run at once; by default one for each processor.
    progress
        Called with the number of parts of the work that are done, and of all parts.

    Returns
    -------
    Forecast
        A row for each budget and policy, the limit of any policy, and what is not known.

    Raises
    ------
    InputError
        If the history has only one action, or a number or policy is not valid.

    Examples
    --------
    >>> from restive import fit, make_problems
    >>> from restive.logs.generate import generate_history
    >>> people = make_problems("two-state-v1", instances=1, agents=40)[0]
    >>> model = fit(generate_history(people, rounds=10, seed=1), draws=20, held_out=False)
    >>> forecast(model, budgets=[8], rounds=5, draws=20).best(8).policy
    'lagrange'
    """
    _require_both_actions(model)
    asked = (budgets,) if isinstance(budgets, int) else budgets or _usual_budgets(model)
    budgets = tuple(check_whole("budget", each, 0, len(model.counts)) for each in asked)
    names = [*dict.fromkeys(each if isinstance(each, str) else each.name for each in policies), AT_RANDOM, AS_NOW]
    chosen = [find_policy(model, each) for each in dict.fromkeys(policies)]
    programs = Programs(
        (*chosen, Random(), find_policy(model, AS_NOW)),
        tuple(dict.fromkeys(budgets)),
        check_whole("rounds", rounds, 1),
        check_whole("draws", draws, MIN_DRAWS),
        seed,
        warm=_is_warm(start),
    )
    played = play(model, programs, threads, progress)
    rows = [row for b in range(len(programs.budgets)) for row in summarise(played, programs, names, b)]
    limits = [_limit(model, played, programs, rows, b, threads) for b in range(len(programs.budgets))]
    beside = tuple(_play_beside(model, programs, names, each, threads) for each in model.alternatives)
    people = len(model.counts)
    nobody = make_interval(played.nobody / rounds)
    notes = (*_note_starts(programs), *_notes(model, rounds))
    said = words or name_things(model)
    return Forecast(tuple(rows), tuple(limits), nobody, rounds, people, draws, seed, said, notes, beside)


def _play_beside(
    model: FittedModel, programs: Programs, names: Sequence[str], alternative: Alternative, threads: int | None
) -> Beside:
    """The same programs with the people of an alternative."""
    fewer = programs._replace(draws=min(programs.draws, BESIDE_DRAWS), bounds=0)
    played = play(model, fewer, threads, people=people_of(model, alternative))
    rows = [row for b in range(len(programs.budgets)) for row in summarise(played, fewer, names, b)]
    return Beside(alternative.key, tuple(rows))


def settle(runs: Floats) -> Floats:
    """The values of R draws without the noise of their runs, [R] of [R, K]: shrunk so that only the draws vary.

    Runs that were not played are NaN; the variance within draws is that of draws with several runs.
    """
    played = np.isfinite(runs).sum(axis=1)
    mean = np.nanmean(runs, axis=1)
    within = float(np.nanvar(runs[played > 1], axis=1, ddof=1).mean()) if (played > 1).any() else 0.0
    noise, spread = within / played, float(mean.var(ddof=1))
    between = max(spread - float(noise.mean()), spread * (2 / (len(mean) - 1)) ** 0.5)
    total = between + noise
    share = np.divide(between, total, out=np.ones_like(total), where=total > 0)
    return np.asarray(mean.mean() + (mean - mean.mean()) * np.sqrt(share))


def make_interval(values: Floats) -> Interval:
    """The mean and the interval of the draws; its ends cover 95% on average for any number of draws."""
    low, high = np.quantile(values, TAILS, method="weibull")
    return Interval(float(values.mean()), float(low), float(high))


def summarise(played: Played, programs: Programs, names: Sequence[str], b: int) -> list[Row]:
    """The rows of one budget."""
    lifts = played.lift[:, b].copy()  # [P, R, K]
    random, now = len(names) - 2, len(names) - 1
    lifts[random] = np.where(np.isnan(lifts[random]), np.nan, played.at_random[b][:, None])
    leader = int(np.nanmean(lifts, axis=(1, 2)).argmax())
    behind = np.stack([settle(each - lifts[leader]) for each in (*lifts, np.zeros_like(lifts[0]))])  # nobody is last
    best, loss = behind.argmax(axis=0), (behind.max(axis=0) - behind).mean(axis=1)
    rows = []
    for p, name in enumerate(names):
        lift = settle(lifts[p])
        rows.append(
            Row(
                programs.budgets[b],
                name,
                reward=make_interval((played.nobody + lift) / programs.rounds),
                lift=make_interval(lift),
                seen=make_interval(played.reward[p, b] - played.nobody)._replace(mean=float(lift.mean())),
                over_random=make_interval(settle(lifts[p] - lifts[random])),
                over_now=make_interval(settle(lifts[p] - lifts[now])),
                best=float((best == p).mean()),
                loss=float(loss[p]),
            )
        )
    return rows


def _limit(
    model: FittedModel, played: Played, programs: Programs, rows: Sequence[Row], b: int, threads: int | None
) -> Limit:
    """The bound, the worth of one more action, and a trial of the best policy, with one budget."""
    budget, size = programs.budgets[b], len(model.counts)
    place, row = max(enumerate(rows[b * len(programs.policies) :][: len(programs.policies)]), key=_mean_lift)
    group = min(size, MAX_TRIAL_PEOPLE // 2)
    shape = 2 * group, programs.rounds, round(budget * group / size)
    trials = simulate_trials(
        model,
        *shape,
        policy=programs.policies[place],
        draws=TRIAL_DRAWS,
        seed=programs.seed,
        threads=threads,
        warm=programs.warm,
    )
    program, control = (float(variance.mean()) for variance in trials.variances)
    scale = size * programs.rounds
    people = [people_needed(max(lift, 0.0) / scale, program, control) for lift in row.lift]
    lifts = settle(played.lift[place, b]) / scale
    power = np.mean([power_of(size, float(lift), program, control) for lift in lifts])
    bound, worth = make_interval(played.bound[b]), make_interval(played.worth[b])
    return Limit(budget, bound, worth, row.policy, Interval(people[0], people[2], people[1]), float(power))


def _mean_lift(placed: tuple[int, Row]) -> float:
    return placed[1].lift.mean


def _require_both_actions(model: FittedModel) -> None:
    waited, acted = model.counts.sum(axis=(0, 2, 3))
    if not waited or not acted:
        only = "nobody" if not acted else "everybody"
        raise InputError(
            f"The history has only one action: {only} was ever acted on, so it says nothing about what acting adds. "
            "Plan a trial instead: restive trial plan.",
            code="one_action",
        )


def _is_warm(start: str) -> bool:
    if start not in (WARM, COLD):
        raise InputError(f"start is {start!r}; it must be {WARM!r} or {COLD!r}.", location="start")
    return start == WARM


def _note_starts(programs: Programs) -> list[str]:
    """Which learners know nothing of the people when they start."""
    learners = [
        each for each in programs.policies if isinstance(each, Learner) and not isinstance(each, Random | AsNow)
    ]
    cold = [each.name for each in learners if not (programs.warm and can_start_warm(each))]
    if not cold:
        return []
    return [f"What {enumerate_words(cold)} would bring with what the history says: here learning starts from nothing."]


def _usual_budgets(model: FittedModel) -> tuple[int, ...]:
    now = max(1, round(model.logged.actions_per_round))
    return tuple(min(each, len(model.counts)) for each in (max(1, now // 2), now, 2 * now))


def name_things(model: FittedModel, given: Sequence[str] = ()) -> Words:
    """What things are called: as given, and the reward by its states if it is whether people are in them."""
    good = [name for name, value in zip(model.states, model.value, strict=True) if value == 1]
    counted = good and not set(np.unique(model.value)) - {0.0, 1.0}
    usual = Words(reward=f"rounds of people in {enumerate_words(good)}") if counted else Words()
    if len(given) > len(usual):
        raise InputError(f"{', '.join(given)}: words are an action, a round and a reward.", location="words")
    return Words(*given, *usual[len(given) :])


def _notes(model: FittedModel, rounds: int) -> list[str]:
    """What the forecast rests on and the history cannot say."""
    moves = model.counts.sum(axis=(0, 3))
    notes = []
    for action, what in enumerate(("left alone", "acted on")):
        thin = [name for name, seen in zip(model.states, moves[action], strict=True) if seen < MIN_MOVES]
        if thin:
            seen = f"Fewer than {MIN_MOVES} moves of people who were {what} are known in {enumerate_words(thin)}"
            notes.append(
                f"{seen}: what happens there is taken from the other people and states, and is not known well."
            )
    if rounds > model.logged.rounds:
        notes.append(f"The forecast is for {rounds} rounds; the history has {model.logged.rounds}.")
    notes += [
        "Whether those who were acted on differed in ways that the history does not have: then the lift is theirs, not "
        "that of acting. restive examine looks for signs of it.",
        "Whether people will move as they did in the history, and whether they influence each other: both are assumed.",
        "Rewards beyond those of the states: each state counts by its expected reward.",
    ]
    return notes


def _as_json(part: Row | Limit) -> dict[str, Any]:
    """The fields as plain data; infinities are null."""
    record: dict[str, Any] = {}
    for name, value in vars(part).items():
        numbers = value._asdict() if isinstance(value, Interval) else value
        if isinstance(numbers, dict):
            numbers = {key: number if np.isfinite(number) else None for key, number in numbers.items()}
        record[name] = numbers
    return record


def draw_forecast(answer: Forecast) -> "Figure":
    """The lift of each program with its interval, a row for each budget."""
    from restive.plotting import GREY, SHORT_DASHES, Dot, choose_looks, draw_dots

    names = tuple(dict.fromkeys(row.policy for row in answer.rows))
    looks = {**choose_looks(names), AT_RANDOM: (GREY, "-"), AS_NOW: (GREY, SHORT_DASHES)}
    rows: dict[str, list[Dot]] = {}
    for row in answer.rows:
        colour, style = looks[row.policy]
        dot = Dot(row.policy, row.lift.mean, row.lift.low, row.lift.high, colour, style != "-")
        rows.setdefault(f"{show_count(row.budget, answer.words.action)} a {answer.words.round}", []).append(dot)
    label = f"more {answer.words.reward} than with nobody, over {show_count(answer.rounds, answer.words.round)}"
    return draw_dots(rows, label, {NOBODY: 0.0}, f"95% intervals over {answer.draws} draws, seed {answer.seed}.")
