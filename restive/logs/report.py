"""One page from a history: who gains, what a program would bring, what one more action is worth, what a trial needs, and
what the history cannot say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from restive.errors import InputError
from restive.formats import enumerate_words, show_count
from restive.logs.alternatives import add_examination
from restive.logs.examine import Examination, examine
from restive.logs.fit import fit
from restive.logs.fit_report import Effect, find_effects
from restive.logs.forecast import AT_RANDOM, Forecast, Limit, forecast
from restive.logs.history import History
from restive.logs.model import FittedModel
from restive.logs.sections import Section
from restive.logs.trial_plan import TrialPlan, plan_trial

ROUNDS = 26
CONTROL = 0.5  # the share of people in the control group of a trial
TRIALS, MAX_TRIAL_PEOPLE = 100, 2000
READ = "To know"  # the title of a section of the fit that repeats the notes of reading


@dataclass(frozen=True)
class Report:
    """The answers of `fit`, `examine`, `forecast` and `plan_trial` about one history."""

    model: FittedModel
    examination: Examination
    forecast: Forecast | None
    plan: TrialPlan
    notes: tuple[str, ...]  # of reading the history
    refused: str = ""  # why there is no forecast

    def as_json(self) -> dict[str, Any]:
        """All answers as plain data."""
        return {
            "fit": self.model.as_json(),
            "forecast": self.forecast.as_json() if self.forecast else None,
            "trial": self.plan.as_json(),
            "examine": self.examination.as_json(),
            "notes": list(self.notes),
        }

    def sections(self) -> tuple[Section, ...]:
        """The answer in short, then each part, the most important first."""
        effects, *fitted = self.model.sections()
        played = self.forecast.sections() if self.forecast else ()
        verdicts, *details = self.examination.sections()
        return (
            Section("In short", self._summary()),
            effects._replace(title=f"Who gains: {effects.title[0].lower()}{effects.title[1:]}"),
            *played[:2],
            *(each._replace(title="What a trial needs") for each in self.plan.sections()),
            verdicts._replace(title="What the history cannot say: does the model hold?"),
            *played[2:],
            *([Section("What was read", self.notes)] if self.notes else []),
            *(each for each in fitted if each.title != READ),
            *details,
        )

    def _summary(self) -> tuple[str, ...]:
        """A sentence or two for each question of a program lead."""
        limits = self.forecast.limits if self.forecast else ()
        brought = [self._say_what_it_brings(limit) for limit in limits] or [f"What it brings: {self.refused}"]
        trial = " ".join(self.plan.sections()[0].sentences[:3])
        verdicts = " ".join(self.examination.sections()[0].sentences[1:])
        who = _say_who_gains(find_effects(self.model))
        return (who, *brought, f"A trial: {trial}", f"Whether this can be trusted: {verdicts}")

    def _say_what_it_brings(self, limit: Limit) -> str:
        assert self.forecast is not None
        (action, each, reward), row = self.forecast.words, self.forecast.best(limit.budget)
        count, length = show_count(limit.budget, action), show_count(self.forecast.rounds, each)
        random = next(
            other for other in self.forecast.rows if (other.budget, other.policy) == (limit.budget, AT_RANDOM)
        )
        chosen = f"; if given as {row.policy}, {row.lift.show()}" if row.policy != AT_RANDOM else ""
        return (
            f"{count} a {each} bring {random.lift.show()} more {reward} in {length} than acting on nobody, if given at "
            f"random{chosen}. One more a {each} is worth up to {limit.worth.show()}."
        )


def report(
    history: History,
    budgets: Sequence[int] = (),
    rounds: int = ROUNDS,
    seed: int = 0,
    progress: Callable[[str], None] = lambda part: None,
) -> Report:
    """Everything that a history says about a program.

    Parameters
    ----------
    budgets
        Numbers of actions in each round; by default as many as now, half and twice that.
    rounds
        How long the program, and a trial of it, last.
    seed
        Of draws and simulations; the same seed gives the same report.
    progress
        Called with the name of each part before it is computed.
    """
    progress("fitting people's moves")
    model = fit(history, seed)
    progress("examining the assumptions")
    examination = examine(history, seed)
    model = add_examination(model, history, examination, seed)
    progress("playing programs")
    played, refused = None, ""
    try:
        played = forecast(model, budgets, rounds, seed=seed)
    except InputError as error:
        if error.code != "one_action":
            raise
        refused = error.message
    progress("planning a trial")
    return Report(model, examination, played, _plan(history, model, played, rounds, seed), history.notes, refused)


def _plan(history: History, model: FittedModel, played: Forecast | None, rounds: int, seed: int) -> TrialPlan:
    """A trial of the people of the history, or of some of them if there are many, with the middle budget.

    The lift is that of the best policy of the forecast. Where none is expected, the plan is made from how rewards vary.
    """
    people = min(max(4, history.n_agents), MAX_TRIAL_PEOPLE)
    limit = played.limits[len(played.limits) // 2] if played else None
    lift = played.best(limit.budget).lift.mean / (history.n_agents * rounds) if played and limit else 0.0
    if limit is None or lift <= 0:
        return plan_trial(people=people, rounds=rounds, deviation=_deviation(history, rounds))
    budget = max(1, round(limit.budget * people / history.n_agents * (1 - CONTROL)))
    return plan_trial(
        model, people=people, rounds=rounds, budget=budget, control=CONTROL, lift=lift, trials=TRIALS, seed=seed
    )


def _deviation(history: History, rounds: int) -> float:
    """The standard deviation over people of the mean reward in so many rounds: as in the history, or more."""
    known = history.known & ~np.isnan(history.reward)
    number = np.bincount(history.agent[known], minlength=history.n_agents)
    total = np.bincount(history.agent[known], history.reward[known], history.n_agents)
    mean = total[number > 0] / number[number > 0]
    return float(np.sqrt(mean.var() * max(1.0, history.n_rounds / rounds)))


def _say_who_gains(effects: Sequence[Effect]) -> str:
    """Who gains and who loses, in a sentence."""
    gains = [effect for effect in effects if effect.mean.known and effect.mean.low > 0]
    losses = [effect for effect in effects if effect.mean.known and effect.mean.high < 0]
    rest = [effect for effect in effects if effect not in gains and effect not in losses]
    parts = []
    for some, what in ((sorted(gains, key=lambda each: -each.mean.value), "gain"), (losses, "lose")):
        if some:
            parts.append(f"people in {enumerate_words(f'{each.state} ({each.mean.show()})' for each in some)} {what}")
    if rest:
        named = enumerate_words(f"{each.state} ({each.mean.show()})" for each in rest)
        parts.append(f"it is not clear whether people in {named} gain")
    return f"Who gains by acting, in reward of the next round: {'; '.join(parts)}."
