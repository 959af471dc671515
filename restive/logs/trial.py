"""Reads a trial: what a program adds for each person and round, against a control group that is never acted on.

The table has a column `arm`, 1 for the program and 0 for the control group. Which people of the control group the program
would have acted on is in the column `would_act`, as an export of the desk has it, or follows from the column `priority`
(or `index`): in each round, those whose priority reaches the lowest one that the program acted on. Without either there
is only the difference in means. A person counts as touched when acting was advised, where the table says so, whether
or not it was done. The estimators are described in `restive.logs.estimators`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from restive.errors import InputError, check_whole
from restive.formats import finite_or_none, show_count, show_number, show_percent
from restive.logs.estimators import (
    FEW_TOUCHED,
    LEVEL,
    Effect,
    Sums,
    adjusted,
    base,
    binary,
    is_sharper,
    onward,
    reshuffled,
    subgroup,
)
from restive.logs.group_sequential import find_boundaries
from restive.logs.history import History
from restive.logs.sections import DisplayedEstimates, Section
from restive.types import Bools, Floats

PRIORITY_COLUMNS = ("priority", "index")
NAMES = {
    "base": "difference in means",
    "subgroup": "people acted on",
    "reshuffled": "reshuffled",
    "onward": "people acted on, from the first time on",
    "base, adjusted": "difference in means, adjusted",
    "onward, adjusted": "from the first time on, adjusted",
    "subgroup, with pseudo-counts": "people acted on, with pseudo-counts",
}
MIN_PER_COVARIATE = 5  # people in each arm


class Look(NamedTuple):
    """A planned look at a trial."""

    number: int  # from 1
    of: int
    boundary: float  # in standard errors


@dataclass(frozen=True, repr=False)
class TrialReading(DisplayedEstimates):
    """The lift of a program by each estimator that is possible.

    Attributes
    ----------
    effects
        By each estimator.
    used
        The one that is reported first: the sharper one of base and onward, or with pseudo-counts.
    program, control, touched, touched_control
        The number of people in each arm, and of those who were, or would have been, acted on.
    actions, rounds
        Actions, and rounds of all people of the program.
    look
        The planned look, if there are several.
    notes
        Why other estimators are not possible, and what else a reader should know.
    """

    numbers: ClassVar[str] = "estimators"
    effects: tuple[Effect, ...]
    used: Effect
    program: int
    control: int
    touched: int
    touched_control: int | None
    actions: float
    rounds: float
    look: Look | None
    notes: tuple[str, ...]

    def interval(self, effect: Effect) -> tuple[float, float]:
        """The 95% interval, or the repeated interval of a planned look."""
        half_width = effect.half_width(self._level())
        return effect.mean - half_width, effect.mean + half_width

    def _level(self) -> float:
        from scipy.special import ndtr

        return LEVEL if self.look is None else float(2 * ndtr(self.look.boundary) - 1)

    def per_action(self) -> tuple[float, float, float]:
        """What one action adds in all, with its interval; NaN without actions."""
        scale = self.rounds / self.actions if self.actions else math.nan
        low, high = self.interval(self.used)
        return scale * self.used.mean, scale * low, scale * high

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        named = ("program", "control", "touched", "touched_control", "actions", "notes")
        rows = {effect.estimator: self._describe(effect) for effect in self.effects}
        parts = dict(zip(("mean", "low", "high"), map(finite_or_none, self.per_action()), strict=True))
        look = self.look._asdict() if self.look else None
        return {
            "used": self.used.estimator, "estimators": rows, "per_action": parts, "look": look,
            **{name: getattr(self, name) for name in named},
        }  # fmt: skip

    def _describe(self, effect: Effect) -> dict[str, float | None]:
        numbers = dict(zip(("low", "high"), self.interval(effect), strict=True))
        numbers |= {"mean": effect.mean, "error": effect.error, "variance_ratio": self._ratio(effect)}
        return {name: finite_or_none(number) for name, number in numbers.items()}

    def _ratio(self, effect: Effect) -> float:
        """How many times smaller the variance is than that of the difference in means."""
        plain = self.effects[0].error
        return plain**2 / effect.error**2 if effect.error else math.nan

    def sections(self) -> tuple[Section, ...]:
        """The lift in sentences, with a table and a figure of all estimators."""
        from restive.report.tables import Table

        rows = []
        for effect in self.effects:
            ratio = self._ratio(effect)
            shown = "1" if effect.estimator == "base" else show_number(ratio, 2)
            rows.append((NAMES[effect.estimator], *self._show(effect.mean, *self.interval(effect)), shown))
        level = "95% interval" if self.look is None else f"interval of look {self.look.number} of {self.look.of}"
        heads = ("estimator", "lift", "from", "to", "times less variance")
        note = f"Lift per person and round; {level}. Times less variance: than the difference in means."
        table = Table("", heads, tuple(rows), note)
        caption = "The lift by each estimator with its interval; the line is no difference."
        return (Section("What the program adds", self._sentences(), table, self._draw, caption),)

    def _sentences(self) -> tuple[str, ...]:
        if math.isnan(self.used.mean):
            return ("The lift is not known: each arm needs at least two people with outcomes.", *self.notes)
        (low, high), mean = self.interval(self.used), self.used.mean
        shown = self._show(abs(mean), low, high)
        more = f"{shown[0]} {'more' if mean >= 0 else 'less'} per round"
        clear = f"Each person in the program has {more} than without it"
        unclear = f"No clear difference yet: each person in the program has {more} than without it"
        said = [f"{clear if low > 0 or high < 0 else unclear} (95% interval from {shown[1]} to {shown[2]})."]
        if self.look is not None:
            said[0] = said[0].replace("95% interval", f"interval of look {self.look.number} of {self.look.of}")
        action = self.per_action()
        if math.isfinite(action[0]):
            one, least, most = self._show(*action)
            said.append(f"One action adds {one} in all, from {least} to {most}.")
        return (*said, self._explain(), *self.notes)

    def _explain(self) -> str:
        """Which estimator is used and why."""
        people = f"{self.program:,} people in the program against {self.control:,}"
        if self.used.estimator == "base":
            return f"By the difference in means of {people}."
        share = show_percent(self.touched / self.program)
        times = show_number(math.sqrt(self._ratio(self.used)), 2)
        return (
            f"By the {self.touched:,} people acted on, {share} of the program, against {self.touched_control:,} of the control "
            f"group whom it would have acted on: the interval is {times} times narrower than by the difference in means."
        )

    def _show(self, mean: float, low: float, high: float) -> tuple[str, str, str]:
        from restive.desk.explanations import show_estimate

        return show_estimate(mean, low, high) or ("not known", "", "")

    def _draw(self) -> Any:
        from restive.plotting import BLUE, GREY, Dot, draw_dots

        rows = {}
        for effect in self.effects:
            if math.isfinite(effect.mean):
                colour = BLUE if effect.estimator == self.used.estimator else GREY
                rows[NAMES[effect.estimator]] = [Dot("", effect.mean, *self.interval(effect), colour)]
        return draw_dots(rows, "lift per person and round", {"no difference": 0.0})


def read_trial(
    source: object,
    *,
    price: float | None = None,
    looks: Sequence[float] = (),
    look: int | None = None,
    spending: str = "obrien-fleming",
) -> TrialReading:
    """The lift of the program of a history with two arms.

    Parameters
    ----------
    source
        A `History`, or what `History.read` takes: a frame, a file, an export, a program.
    price
        What the marginal action adds to the reward, all rounds together; by default two thirds of the mean effect
        of an action.
    looks
        The fractions of the trial after which it was planned to look, rising up to 1; none if only at the end.
    look
        Which of them this is, from 1; by default the last one.
    spending
        How the error is spent over the looks: "obrien-fleming" or "pocock".

    Returns
    -------
    TrialReading
        The effect by every estimator that is possible, and the one to read.

    Raises
    ------
    InputError
        If the source has no arms, an arm has fewer than two people, or the looks do not rise to 1.

    Examples
    --------
    >>> people, arm = range(20), [0, 1] * 10
    >>> after = ["high" if n >= 10 - 4 * arm[n] else "low" for n in people]  # 5 of 10 in the control group, 7 in the other
    >>> table = {"agent": [*people] * 2, "time": [1] * 20 + [2] * 20, "arm": arm * 2, "action": arm * 2}
    >>> reading = read_trial(History.read(table | {"state": ["low"] * 20 + after}, rewards={"low": 0, "high": 1}))
    >>> reading.used.estimator, round(reading.used.mean, 2)
    ('base', 0.2)
    """
    history = source if isinstance(source, History) else History.read(source)
    sums, counted, notes = sum_people(history)
    plain = base(sums)
    effects = [plain]
    program, control = sums.arms()
    known = sums.touched.any()
    used = plain
    if known:
        effects += [subgroup(sums, price), reshuffled(sums, price), onward(sums, price)]
        used = effects[-1] if is_sharper(effects[-1], plain) else plain
        few = binary(sums) if min(program.touched.sum(), control.touched.sum()) < FEW_TOUCHED else None
        if few is not None:
            effects.append(few)
            used = few if used is not plain else plain
        notes += _explain_base(sums, used)
    effects += _adjust(effects, sums, find_covariates(history)[counted], price)
    touched = int(program.touched.sum()) if known else int((program.actions > 0).sum())
    return TrialReading(
        tuple(effects), used, program.seen.size, control.seen.size, touched, int(control.touched.sum()) if known else None,
        float(program.actions.sum()), float(program.seen.sum()), _find_look(looks, look, spending), tuple(notes),
    )  # fmt: skip


def _adjust(effects: Sequence[Effect], sums: Sums, covariates: Floats, price: float | None) -> list[Effect]:
    """The estimates with covariates regressed out, if there are enough people for that."""
    covariates = covariates[:, np.ptp(covariates, axis=0) > 0]
    smaller = min(int(sums.control.sum()), int((~sums.control).sum()))
    if not covariates.shape[1] or smaller < MIN_PER_COVARIATE * (covariates.shape[1] + 1):
        return []
    known = [each for each in effects if each.estimator in ("base", "onward") and math.isfinite(each.mean)]
    return [adjusted(effect, sums, covariates, price) for effect in known]


def sum_people(history: History) -> tuple[Sums, Bools, list[str]]:
    """The sums of the people of a trial, whether each person of the history is one of them, and notes.

    Nobody is touched if it is not known who of the control group would have been. Rows without an arm do not count: after a
    waiting list, the control group of a program has joined it.
    """
    arm, notes = _find_arms(history)
    compared = history.arm >= 0 if history.arm is not None else np.zeros(history.agent.size, np.bool_)
    mine = np.where(compared, arm[history.agent], -1)
    listed = history.action == 1 if history.advised is None else history.advised == 1
    touch, why = _find_touches(history, mine, listed)
    if why:
        notes.append(f"Only the difference in means is possible: {why}")
    first = np.full(history.n_agents, np.iinfo(np.int64).max)
    np.minimum.at(first, history.agent[touch], history.round[touch])
    rewarded = ~np.isnan(history.reward) & compared
    since = rewarded & (history.round >= first[history.agent])
    reward = np.where(rewarded, history.reward, 0.0)

    def add(rows: Bools, weights: Floats | None = None) -> Floats:
        values = None if weights is None else weights[rows]
        return np.bincount(history.agent[rows], values, history.n_agents).astype(np.float64)

    people = add(rewarded), add(rewarded, reward), add(since), add(since, reward), add(listed & (mine == 1))
    seen, total, since_seen, since_total, actions = people
    sums = Sums(total, seen, since_total, since_seen, (since_seen > 0), actions, arm == 0)
    counted = (arm >= 0) & (seen > 0)
    return sums.take(counted), counted, notes


def _find_arms(history: History) -> tuple[Any, list[str]]:
    """The arm of each person, −1 where it is not known."""
    if history.arm is None:
        raise InputError(
            "The history has no column 'arm': 1 for people in the program and 0 for the control group.", location="arm"
        )
    high, low = np.full(history.n_agents, -1), np.full(history.n_agents, 2)
    np.maximum.at(high, history.agent, history.arm)
    known = history.arm >= 0
    np.minimum.at(low, history.agent[known], history.arm[known])
    if (mixed := np.flatnonzero((low == 0) & (high == 1))).size:
        raise InputError(
            f"{show_count(mixed.size, 'person', 'people')} changed arms, such as {history.agents[int(mixed[0])]}; "
            "in a trial everybody stays in one.", location="arm",
        )  # fmt: skip
    missing = int((high < 0).sum())
    return high, [f"{show_count(missing, 'person', 'people')} without an arm are left out."] if missing else []


def _find_touches(history: History, arm: Any, listed: Bools) -> tuple[Bools, str]:
    """The rows in which people were, or in the control group would have been, acted on; or why that is not known."""
    nobody = np.zeros(history.agent.size, np.bool_)
    acted = history.action == 1
    if (acted & (arm == 0)).any():
        people = np.unique(history.agent[acted & (arm == 0)]).size
        return nobody, f"{show_count(people, 'person', 'people')} of the control group were acted on."
    if (acted & ~listed & (arm == 1)).any():
        people = np.unique(history.agent[acted & ~listed & (arm == 1)]).size
        return nobody, f"{show_count(people, 'person was', 'people were')} acted on without being advised."
    would = _find_column(history, ("would_act",))
    if would is not None:
        if np.isnan(would[arm == 0]).any():
            return nobody, "the column would_act has empty cells for the control group."
        return np.where(arm == 0, would > 0, listed & (arm == 1)), ""
    priority = _find_column(history, PRIORITY_COLUMNS)
    if priority is None:
        return nobody, (
            "the table does not say whom of the control group the program would have acted on (column would_act, or priority)."
        )
    if np.isnan(priority[(arm == 0) | (listed & (arm == 1))]).any():
        return nobody, "priorities are missing."
    cutoff = np.full(history.n_rounds + 1, np.inf)
    np.minimum.at(cutoff, history.round[listed & (arm == 1)], priority[listed & (arm == 1)])
    return np.where(arm == 0, priority >= cutoff[history.round], listed & (arm == 1)), ""


def _find_column(history: History, names: Sequence[str]) -> Floats | None:
    """A column of numbers of the source, whether it changes over time or not."""
    for name in names:
        if name in history.by_row:
            return history.by_row[name]
        if history.features is not None and name in history.feature_names:
            return np.asarray(history.features[history.agent, history.feature_names.index(name)])
    return None


def find_covariates(history: History) -> Floats:
    """What is known of each person before the trial, [N, F]: the first state and the features, unknown ones at the mean."""
    first = np.append(0, np.flatnonzero(np.diff(history.agent)) + 1)
    states = np.eye(history.n_states)[history.state[first]][:, 1:]
    columns = [states]
    if history.features is not None:
        skipped = ("would_act", *PRIORITY_COLUMNS)
        kept = [place for place, name in enumerate(history.feature_names) if name not in skipped]
        columns.append(history.features[:, kept])
    covariates = np.column_stack(columns)
    mean = np.nan_to_num(np.nanmean(covariates, axis=0)) if covariates.size else np.zeros(0)
    return np.where(np.isnan(covariates), mean, covariates)


def _explain_base(sums: Sums, used: Effect) -> list[str]:
    program, control = sums.arms()
    touched = [int(arm.touched.sum()) for arm in (program, control)]
    if used.estimator != "base":
        few = min(touched) < FEW_TOUCHED
        said = f"Only {min(touched)} people of one arm were, or would have been, acted on: the interval is rough."
        return [said] if few else []
    if min(touched) < 2:
        return [f"{touched[0]} people were acted on and {touched[1]} of the control group would have been: too few."]
    share = show_percent(touched[0] / max(1, program.seen.size))
    return [f"Nothing is gained by looking at the people acted on: the program acted on {share} of its people."]


def _find_look(looks: Sequence[float], look: int | None, spending: str) -> Look | None:
    if not looks:
        return None
    number = check_whole("look", len(looks) if look is None else look, 1, len(looks))
    return Look(number, len(looks), float(find_boundaries(looks, spending)[number - 1]))
