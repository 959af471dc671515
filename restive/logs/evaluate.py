"""Evaluate a policy that was not followed, from a logged history (off-policy evaluation under a budget).

The budget is replaced by its path of thresholds (`restive.kernels.threshold_path`), so people are independent. Values
are mean rewards for each person and round, over windows of H rounds that start from the logged states:

    doubly robust           mean[ V_0 + Σ_t ρ_t (r_t + V_t+1 − Q_t) ]; for H > 1 the weights ρ_t are divided by their mean
    marginal doubly robust  the same with ρ_t = (d_candidate / d_log)(person, state, t) · w_t
    per decision            mean over t of Σ ρ_t r_t / Σ ρ_t
    model                   mean[ V_0 ]

(Dudik et al. 2011; Jiang and Li 2016; Thomas and Brunskill 2016; Kallus and Uehara 2020). Errors: bootstrap over people
with the thresholds solved again and the working models held; the difference to what was logged is paired.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from restive.errors import InputError, check_whole
from restive.formats import finite_or_none, show_count, show_fixed, show_interval, show_number, show_percent
from restive.kernels import threshold_path as path
from restive.kernels.threshold_path import Entries, walk
from restive.logs.candidate import NOBODY, Windows, make_candidate
from restive.logs.history import History
from restive.logs.model import FittedModel
from restive.logs.panel import Log, Units, budget_share, make_units, sort_entries
from restive.logs.propensity import estimate_propensity
from restive.logs.sections import DisplayedEstimates, Section
from restive.logs.working_model import BinnedRows, ModelRows, expected_rewards, plan_windows
from restive.parallel import available_processors, map_chunks
from restive.stats import Band, student_quantile
from restive.types import Bools, Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from restive.policies.base import Policy

MIN_EFFECTIVE = 100  # effective sample below which nothing is said
MIN_EFFECTIVE_ACTED = 30  # effective number of rounds in which both the log and the candidate act
MAX_UNSUPPORTED = 0.05
MAX_PRODUCT_ROUNDS = 5  # beyond, weights are not multiplied over all rounds of a window
MIN_ESTIMATED = 0.01  # an estimated propensity closer to 0 or 1 is taken as no support
ROBUST, MARGINAL, DECISION, MODEL = "doubly robust", "marginal doubly robust", "per decision", "model"
NO_RATIO = np.zeros(0)


class Estimate(NamedTuple):
    """One estimator: its value, its difference to what was logged, and its effective sample."""

    value: Band
    difference: Band
    effective: float  # NaN for the model

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "value": _plain(self.value),
            "difference": _plain(self.difference),
            "effective": finite_or_none(self.effective),
        }


@dataclass(frozen=True, repr=False)
class Evaluation(DisplayedEstimates):
    """What a policy would have brought, for each person and round; numbers are given only if there is no refusal."""

    numbers: ClassVar[str] = "estimates"
    measure: ClassVar[str] = "difference"
    policy: str
    rounds: int
    estimator: str  # the one to read
    estimates: dict[str, Estimate]
    logged: Band
    people: int
    units: int  # windows of a person
    people_per_round: float
    effective: float  # units that count
    effective_acted: float  # rounds in which both the log and the candidate act
    unsupported: float
    refusal: str
    notes: tuple[str, ...]

    @property
    def value(self) -> Band:
        """The mean reward of a person in a round under the policy."""
        return self.estimates[self.estimator].value

    @property
    def difference(self) -> Band:
        """The value minus what was logged, paired."""
        return self.estimates[self.estimator].difference

    def as_json(self) -> dict[str, Any]:
        """The numbers as plain data; estimates are left out if they are refused."""
        facts = ("policy", "rounds", "people", "units", "people_per_round", "refusal")
        counts = ("effective", "effective_acted", "unsupported")
        record: dict[str, Any] = {name: getattr(self, name) for name in facts}
        record |= {name: finite_or_none(getattr(self, name)) for name in counts}
        record |= {"logged": _plain(self.logged), "notes": list(self.notes)}
        if not self.refusal:
            record |= {"estimator": self.estimator, "value": _plain(self.value), "difference": _plain(self.difference)}
            record["estimates"] = {name: each.as_json() for name, each in self.estimates.items()}
        return record

    def sections(self) -> tuple[Section, ...]:
        """The answer, and what it rests on."""
        basis = Section("What this rests on", (*self._support(), *self.notes))
        title = f"What {self.policy!r} would have brought"
        if self.refusal:
            return (Section(title, (self.refusal,)), basis)
        caption = "Difference to what was logged, for each person and round, with 95% intervals."
        return (
            Section(title, self._sentences(), self._table(), self._draw, caption),
            basis,
        )

    def _sentences(self) -> tuple[str, ...]:
        value, gain = self.value, self.difference
        digits = _digits(gain)
        verdict = (
            "higher" if round(float(gain.low), digits) > 0 else "lower" if round(float(gain.high), digits) < 0 else ""
        )
        said = f"Under {self.policy!r} rewards would have been {verdict} than logged"
        if not verdict:
            said = f"This history cannot tell whether rewards would have been higher or lower under {self.policy!r}"
        scale = self.people_per_round
        whole = show_interval(scale * float(gain.mean), scale * float(gain.low), scale * float(gain.high), 1)
        return (
            f"{said}: difference {_show(gain, digits)} for each person and round, with its 95% interval.",
            f"Mean reward: {_show(value, digits)} under it, {_show(self.logged, digits)} as logged.",
            f"For the {show_number(round(scale))} people of a round together: {whole} a round.",
        )

    def _table(self) -> Any:
        from restive.report.tables import Table

        digits = _digits(self.difference)
        rows = tuple(
            (name, _show(each.value, digits), _show(each.difference, digits), _count(each.effective))
            for name, each in self.estimates.items()
        )
        note = f"The answer is that of {self.estimator}. The interval of the model is that of the people, as if it were true."
        return Table("", ("estimator", "mean reward", "difference to logged", "effective sample"), rows, note)

    def _support(self) -> tuple[str, ...]:
        unit = "person-rounds" if self.rounds == 1 else f"person-histories of {self.rounds} rounds"
        return (
            f"{show_number(self.people)} people, {show_number(self.units)} {unit}; weighted to the policy they count as "
            f"{show_number(round(self.effective))}, and {show_number(round(self.effective_acted))} in which both act.",
            f"Decisions of {self.policy!r} that the log never took in such a case: {show_percent(self.unsupported)}.",
        )

    def _draw(self) -> "Figure":
        from restive.plotting import BLUE, GREY, Dot, draw_dots

        rows = {}
        for name, each in self.estimates.items():
            mean, low, high = (
                float(part) for part in (each.difference.mean, each.difference.low, each.difference.high)
            )
            rows[name] = [Dot("", mean, low, high, BLUE if name == self.estimator else GREY)]
        return draw_dots(rows, "mean reward minus logged, for each person and round", {"as logged": 0.0})


def _plain(band: Band) -> dict[str, float | None]:
    return {name: finite_or_none(float(part)) for name, part in band._asdict().items()}


def _digits(band: Band) -> int:
    reach = float(band.high - band.low)
    return int(np.clip(2 - np.floor(np.log10(reach)), 1, 6)) if np.isfinite(reach) and reach > 0 else 3


def _show(band: Band, digits: int) -> str:
    return show_interval(float(band.mean), float(band.low), float(band.high), digits)


def _count(effective: float) -> str:
    return show_number(round(effective)) if np.isfinite(effective) else show_fixed(np.nan)


def evaluate(
    history: History | object,
    policy: "str | Policy[Any] | Floats",
    rounds: int = 1,
    *,
    model: FittedModel | None = None,
    budget: int | None = None,
    resamples: int = 200,
    seed: int = 0,
    threads: int | None = None,
) -> Evaluation:
    """What `policy` would have brought in `rounds` rounds from the logged states on.

    Parameters
    ----------
    history
        A history, or what `History.read` reads.
    policy
        A policy, its name with settings or its file; "state:a,b" for people in state a first, then b; "column:score"
        for a feature; "nobody"; or an array of scores, one for each row of the history.
    rounds
        How many rounds it decides, from each logged state on; 1 to compare single decisions.
    model
        A fitted model, for policies that plan with one and for the model's own answer; fitted here if None.
    budget
        How many people are acted on in a round; None for as many as were.
    resamples
        How many bootstrap resamples of people.
    seed
        The seed of the resamples.
    threads
        How many resamples are computed at once; by default one for each processor.

    Returns
    -------
    Evaluation
        The value and its difference to what was logged, with intervals; or a refusal that says why the log cannot tell.

    Raises
    ------
    InputError
        If the history cannot be read, there is no such policy, or it would decide more rounds than were logged.

    Examples
    --------
    >>> from restive import make_problems
    >>> from restive.logs.generate import generate_history
    >>> people = make_problems("two-state-v1", instances=1, agents=40)[0]
    >>> answer = evaluate(generate_history(people, rounds=10, seed=1), "state:bad,good", resamples=20)
    >>> round(float(answer.difference.mean), 4), answer.refusal
    (0.0071, '')
    """
    history, told = _prepare(history if isinstance(history, History) else History.read(history))
    rounds = check_whole("rounds", rounds, 1, history.n_rounds)
    windows = Windows.of(history, rounds)
    candidate = make_candidate(history, policy, windows, model, seed)
    budget = candidate.budget if budget is None else check_whole("budget", budget, 0)
    log, assumed = _make_log(history, windows, budget)
    entries, order = sort_entries(log, candidate)
    bootstrap = _Bootstrap(entries, log, check_whole("resamples", resamples, 2), seed, threads)
    if rounds == 1:
        expected = expected_rewards(history, candidate, log.reward)[log.units.row[:, 0]]
        runs = {ROBUST: bootstrap.run(expected[order])}
    else:
        plan = plan_windows(log, candidate, BinnedRows(history, candidate))
        runs = {ROBUST: bootstrap.run(plan.in_order(order))}
        if candidate.exact:
            runs[MARGINAL] = bootstrap.run(plan.in_order(order), plan.ratio.T.ravel()[order])
    if model is not None:
        runs[MODEL] = bootstrap.run(plan_windows(log, candidate, ModelRows(log, model)).in_order(order))
    notes = (*told, *assumed, *candidate.notes, *_say_left_out(log.units, windows))
    return _conclude(candidate.name, rounds, runs, log.units, bootstrap.n_people, notes)


class _Bootstrap:
    """Sums of `walk` for all people and for resamples of them."""

    def __init__(self, entries: Entries, log: Log, resamples: int, seed: int, threads: int | None) -> None:
        people, person = np.unique(entries.person, return_inverse=True)
        self.entries, (self.n_units, self.rounds) = entries._replace(person=person), log.units.row.shape
        self.n_people, self.resamples, self.seed, self.threads = people.size, resamples, seed, threads

    def run(self, model: Floats, ratio: Floats = NO_RATIO) -> Floats:
        """[1 + resamples, H, columns], everybody once first."""
        model, ratio = np.ascontiguousarray(model), np.ascontiguousarray(ratio)
        sums = np.empty((1 + self.resamples, self.rounds, path.COLUMNS))

        def work(first: int, last: int) -> None:
            for number in range(first, last):
                sums[number] = walk(self.entries, self.rounds, self.n_units, model, ratio, self._weights(number))

        map_chunks(work, len(sums), available_processors(), self.threads)
        return sums

    def _weights(self, number: int) -> Floats:
        if not number:
            return np.ones(self.n_people)
        drawn = np.random.default_rng([self.seed, number]).integers(self.n_people, size=self.n_people)
        return np.bincount(drawn, minlength=self.n_people).astype(np.float64)


def _prepare(history: History) -> tuple[History, tuple[str, ...]]:
    """The rows of the program, with what was advised as the action; and what a reader should know of it."""
    notes = []
    if history.arm is not None and (history.arm == 0).any():
        history = history.select(history.arm != 0)
        notes.append("The control group is left out: nobody in it could be acted on.")
    if history.advised is not None:
        history = replace(history, action=history.advised)
        notes.append("What is judged is whom to advise; what was done may differ.")
    return history, tuple(notes)


def _make_log(history: History, windows: Windows, budget: int | None) -> tuple[Log, tuple[str, ...]]:
    """The history in units, and what is assumed about its propensities."""
    reward = np.where(np.isnan(history.reward) & history.known, history.value[history.next_state], history.reward)
    available = np.ones(reward.size, np.bool_) if history.available is None else history.available
    units = make_units(history, windows, reward)
    if not units.person.size:
        rounds = show_count(windows.rounds, "round")
        raise InputError(f"Nobody has {rounds} in a row with all rewards; ask for fewer.", location="rounds")
    propensity, assumed = _propensities(history, available)
    return Log(
        history, windows, units, reward, propensity, available, budget_share(history, available, budget)
    ), assumed


def _propensities(history: History, available: Bools) -> tuple[Floats, tuple[str, ...]]:
    """The probability of acting in each row, and what is assumed about it."""
    if history.propensity is not None:
        known = np.where(available, history.propensity, 0.0)
        wrong = np.flatnonzero(np.where(history.action == 1, known <= 0, known >= 1))
        if wrong.size:
            name, number = (
                history.agents[int(history.agent[wrong[0]])],
                history.rounds[int(history.round[wrong[0]]) - 1],
            )
            raise InputError(
                f"Agent {name!r}, time {number}: the propensity excludes what was done.", location="propensity"
            )
        return known, ()
    found = estimate_propensity(history, available)
    low = np.where(history.action == 1, MIN_ESTIMATED, 0.0)
    high = np.where(history.action == 1, 1.0, 1 - MIN_ESTIMATED)
    found = np.where(found < MIN_ESTIMATED, low, np.where(found > 1 - MIN_ESTIMATED, high, found))
    note = (
        "The history has no probabilities of acting. They are estimated from state, features and past; the answer "
        "assumes that nothing else decided who was acted on."
    )
    return np.where(available, found, 0.0), (note,)


def _say_left_out(units: Units, windows: Windows) -> tuple[str, ...]:
    said = []
    if units.incomplete:
        what = ("row", "rows") if windows.rounds == 1 else ("person-history", "person-histories")
        said.append(f"Left out: {show_count(units.incomplete, *what)} with a gap or without a reward.")
    if (early := int(windows.first[0]) - 1) > 0:
        said.append(f"Left out: the first {show_count(early, 'round')}, which fill no window.")
    return tuple(said)


def _conclude(
    name: str, rounds: int, runs: dict[str, Floats], units: Units, n_people: int, notes: tuple[str, ...]
) -> Evaluation:
    """The estimates of all runs, the one to read, and whether anything can be said."""
    supports = {run: _Support.of(runs[run][0]) for run in (ROBUST, MARGINAL) if run in runs}
    refusals = {run: each.refuse(name, rounds, units.person.size) for run, each in supports.items()}
    known = [run for run, refusal in refusals.items() if not refusal]
    preferred = (MARGINAL, ROBUST) if rounds > MAX_PRODUCT_ROUNDS else (ROBUST, MARGINAL)
    chosen = next((run for run in preferred if run in known), list(supports)[-1])
    logged, values = _values(runs, rounds, known)
    estimates = {
        each: Estimate(
            _band(value, n_people),
            _band(value - logged, n_people),
            np.nan if each == MODEL else supports.get(each, supports[ROBUST]).effective,
        )
        for each, value in values.items()
    }
    if known:
        notes += _say_assumptions(rounds, chosen, estimates, supports[ROBUST].effective)
    support, refusal = supports[chosen], refusals[chosen]
    return Evaluation(
        policy=name,
        rounds=rounds,
        estimator=chosen,
        estimates={} if refusal else estimates,
        logged=_band(logged, n_people),
        people=n_people,
        units=units.person.size,
        people_per_round=units.person.size / np.unique(units.window).size,
        effective=support.effective,
        effective_acted=support.acted,
        unsupported=support.unsupported,
        refusal=refusal,
        notes=notes,
    )


def _say_assumptions(rounds: int, chosen: str, estimates: dict[str, Estimate], effective: float) -> tuple[str, ...]:
    """What the answer needs beyond the weights, and whether the model contradicts it."""
    said = []
    if chosen == MARGINAL:
        left = show_count(round(effective), "history", "histories")
        said.append(
            f"Weights over all {rounds} rounds leave {left}; {MARGINAL} weighs by person and state instead, "
            "which assumes that the next state depends on the present one and the action only."
        )
    value, model = estimates[chosen].value, estimates[MODEL].value
    if model.high < value.low or value.high < model.low:
        said.append("The model contradicts this: it leaves out something that matters here; see restive examine.")
    return tuple(said)


def _values(runs: dict[str, Floats], rounds: int, known: Sequence[str]) -> tuple[Floats, dict[str, Floats]]:
    """The logged mean reward, and the value by each estimator that can be shown, [1 + resamples] each."""
    whole = runs[ROBUST]
    logged = whole[..., path.LOGGED].sum(axis=1) / whole[..., path.UNITS].sum(axis=1)
    values = {run: _robust_value(runs[run], rounds) for run in known}
    if ROBUST in known:
        values[DECISION] = (whole[..., path.REWARD] / whole[..., path.WEIGHT]).mean(axis=1)
    model = runs.get(MODEL, whole)
    values[MODEL] = model[:, 0, path.LED] / model[:, 0, path.UNITS] / rounds
    return logged, values


def _robust_value(sums: Floats, rounds: int) -> Floats:
    """The doubly robust mean reward; for several rounds the weights are divided by their mean."""
    units = sums[:, :1, path.UNITS]
    after = units if rounds == 1 else sums[..., path.WEIGHT]
    before = np.concatenate([units, after[:, :-1]], axis=1)
    total = sums[..., path.LED] / before + sums[..., path.RESIDUAL] / after
    return np.asarray(total.sum(axis=1) / rounds)


def _band(values: Floats, n_people: int) -> Band:
    """The first value, with the standard deviation of the others as its error."""
    error = np.asarray(values[1:].std(ddof=1) if values.size > 2 else np.nan)
    reach = student_quantile(0.95, n_people - 1) * error
    return Band(values[0], error, values[0] - reach, values[0] + reach)


class _Support(NamedTuple):
    """How much of the log can be weighted to the candidate."""

    effective: float
    acted: float
    acts: bool
    unsupported: float
    longest: int  # the rounds for which the effective sample suffices

    @classmethod
    def of(cls, sums: Floats) -> "_Support":
        """From the sums over all people, [H, columns]: effective numbers are (Σ weight)² / Σ weight²."""
        square = sums[:, path.ACTED_SQUARE].sum()
        samples = sums[:, path.WEIGHT] ** 2 / np.maximum(sums[:, path.SQUARE], 1e-300)
        base = np.maximum(sums[:, path.BASE], 1e-300)
        return cls(
            effective=float(samples.min()),
            acted=float(sums[:, path.ACTED].sum() ** 2 / square) if square > 0 else 0.0,
            acts=bool(sums[:, path.SPENT].sum() > 0),
            unsupported=float(1 - np.prod(1 - sums[:, path.UNSUPPORTED] / base)),
            longest=int((np.minimum.accumulate(samples) >= MIN_EFFECTIVE).sum()),
        )

    def refuse(self, name: str, rounds: int, units: int) -> str:
        """Why nothing can be said, in a sentence; empty if something can."""
        asked = f"{show_count(rounds, 'round')} under {name!r}"
        unit = "person-round" if rounds == 1 else "person-history"
        many = "person-rounds" if rounds == 1 else "person-histories"
        if self.unsupported > MAX_UNSUPPORTED:
            return (
                f"{asked}: {show_percent(self.unsupported)} of its decisions were never taken in such a case, so this "
                "history cannot say what they bring."
            )
        if self.effective < MIN_EFFECTIVE:
            advice = (
                f"ask for at most {show_count(self.longest, 'round')}" if self.longest else "it cannot be evaluated"
            )
            return (
                f"{asked}: {show_count(round(self.effective), unit, many)} of {show_number(units)}, and "
                f"{MIN_EFFECTIVE} are needed; {advice}."
            )
        if not self.acts and name != NOBODY:
            return f"{asked}: nobody was acted on, so with the logged budget it acts on nobody; set a budget."
        if self.acts and self.acted < MIN_EFFECTIVE_ACTED:
            return (
                f"{asked}: {show_count(round(self.acted), 'person-round')} in which both it and the log act, and "
                f"{MIN_EFFECTIVE_ACTED} are needed; it cannot be evaluated."
            )
        return ""
