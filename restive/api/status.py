"""The status of a program as the HTTP API answers it; see `restive.api.types`."""

from typing import Literal

from restive.api.types import Answer, DueRound, Result, Words


class PeopleCounts(Answer):
    """The number of people by status."""

    active: int
    left: int
    erased: int
    new: int
    """People who joined in the last round, unless it was the first."""
    control: int
    """Active people in the control group, which is never treated."""


class StatusRound(Answer):
    """One round in the status of a program; means are per person."""

    round: int
    label: str
    """The name of the round, by its due date: Week of 16 Nov 2026."""
    due: str
    """The date when the round was due, in ISO 8601; without a rhythm, the day of the decision."""
    at: str
    present: int
    budget: int
    advised: int
    planned: float | None
    """The costs of the people on the list, added up; null if people have no costs."""
    spent: float | None
    """The costs of those of the list for whom the action was done; null if people have no costs."""
    done: int
    failed: int
    outcomes: int
    unlisted: int
    explored: int
    reward_mean: float | None
    control_mean: float | None


class WaitingRound(Answer):
    """A round with missing outcomes."""

    round: int
    label: str
    missing: int
    """People whose outcome is missing."""


class Lift(Answer):
    """The gain per person and round against the control group, with a 95% interval."""

    mean: float | None
    low: float | None
    high: float | None
    treated_mean: float | None
    control_mean: float | None
    treated: int
    control: int
    extra: float | None
    """The total gain."""
    extra_low: float | None
    extra_high: float | None
    sentence: str
    estimator: str
    """`base`, the difference in means, or `onward`, by the people on the lists from their first one on."""
    explanation: str
    """Which estimator was used and why."""


class Band(Answer):
    """A curve with its 95% band, one number per round."""

    mean: list[float | None]
    error: list[float | None]
    low: list[float | None]
    high: list[float | None]


class LiftCurve(Answer):
    """The rewards of both groups and their difference, by round."""

    treated: Band
    control: Band
    lift: Band
    first: int
    """The number of the first round."""


class ShadowComparison(Answer):
    """The shadow policy compared with the policy."""

    policy_mean: float | None
    shadow_mean: float | None
    mean: float | None
    """Shadow minus policy."""
    low: float | None
    high: float | None
    overlap: float | None
    """The share of the list that both policies choose."""
    unsupported: float | None
    """The share of records that say nothing about the shadow."""
    rounds: int
    effective_sample_size: float | None
    """The effective sample size."""
    sentence: str


class StateEffect(Answer):
    """What the actions done in one state added to the reward of their round, on average over these actions."""

    state: str
    acted: int
    """Outcomes in this state after the action."""
    waited: int
    """Outcomes in this state without it."""
    mean: float | None
    """Null: not known."""
    low: float | None
    """The lower end of the 95% interval of the mean."""
    high: float | None
    spread: float | None
    """The standard deviation of the effect over people, which is not an error of the mean; null: not known."""
    knowledge: Literal["known", "thin", "not known"]
    """`thin`: it rests on few outcomes; `not known`: on too few people, or the interval says nothing."""
    note: str
    """Why it is thin or not known; empty if it is known."""


class RewardRange(Answer):
    """The range of rewards, for the scales of charts."""

    low: float
    high: float
    observed: bool
    """Whether it is the range of the rewards reported so far; otherwise that of the config."""


class DriftAlarm(Answer):
    """A change of how people move from a state, with or without the action."""

    action: bool | None
    """Whether it is about people who were acted on; null: about all people who were not."""
    state: str | None
    since: int
    """The first round with other moves."""
    at: str
    """When that round was decided."""
    found: int
    """The round whose outcomes raised the alarm."""
    before: list[float]
    """The probability of each next state before, in the order of the states; empty if it is about all states."""
    after: list[float]
    sentence: str
    advice: str


class NextStep(Answer):
    """One thing to do next."""

    message: str
    verb: str | None
    """The verb of the desk for it, `decide` or `learn`; null: nothing can be done."""
    round: int | None


class Progress(Answer):
    """What a program has done so far, its lift, and what to do next."""

    name: str
    title: str
    policy: str
    seed: int
    people: PeopleCounts
    words: Words
    rounds: list[StatusRound]
    waiting: list[WaitingRound]
    lift: Lift | None
    caution: str
    """Why the lift is not reliable yet; empty if it is."""
    shadow_policy: str | None
    drift: list[DriftAlarm]
    """Changes that were found in the last rounds; empty if nothing changed."""
    horizon: int | None
    timezone: str
    """The time zone of the dates."""
    due: DueRound | None
    """The next round; null without a rhythm, before the first round of a program without a first date, and after the end."""
    steps: list[NextStep]
    """What to do next, the most urgent first."""
    version: str
    actions: int
    assumed: int
    """Of the actions, those of people on a list who were not reported on: they count as done."""
    budget_used: float | None
    """The share of all budgets that was used."""
    cost_unit: str
    """The unit of costs and of the budget; empty: everybody costs 1."""
    extra_per_action: list[float | None] | None
    total: str
    """The total gain as a sentence, a range as long as it may be 0; empty if it is not known."""


class Status(Progress):
    """The status of a program: its progress, and what is known about its effect."""

    curve: LiftCurve | None
    shadow: ShadowComparison | None
    effects: list[StateEffect]
    """What the action adds in each state."""
    effects_of: int | None
    """People from whom the effects are estimated, if they are too many to use all; null: everybody."""
    reward_range: RewardRange | None
    """Null before the first reward, if rewards are reported."""


class Undone(Result):
    """The last request, which is taken back."""

    event: int
    """The first event that it recorded."""
    what: str
    """decided, learned, corrected, withdrawn, left or cancelled."""
    round: int | None
    results_of: int | None
    """The round whose results were recorded with a list."""
    at: str
    by: str
    people: int
    """People who joined by it and are gone again."""
    message: str
    """What it was, in words."""
