"""What a program's people went through, as the HTTP API answers it; see `restive.api.types`."""

from typing import Literal

from restive.api.types import Answer, Words


class StateCounts(Answer):
    """How many people of the program, or of the control group, are in which state in a round."""

    reported: list[int]
    """People by state, in the order of the states, whose state was reported or followed from an outcome."""
    carried_over: list[int]
    """People by state whose last known state is used, because nobody reported a newer one."""
    unknown: int
    """Active people without a known state."""


class RoundStates(Answer):
    """How many people are in which state in a round."""

    round: int
    label: str
    """The name of the round, by its due date: Week of 16 Nov 2026."""
    at: str
    """When it was decided."""
    program: StateCounts
    control: StateCounts


class GroupResult(Answer):
    """One group: size, its part of the lists and actions, and its lift."""

    group: str | None
    """Null: people without a group."""
    people: int
    """Active people, with the control group."""
    control: int
    share_of_people: float | None
    """Of the active people of the program, without the control group."""
    places: int
    """Places on all lists so far."""
    share_of_places: float | None
    minimum_share: float | None
    """The smallest share of the list by the rules now; null without such a rule."""
    actions: int
    """Actions done so far."""
    share_of_actions: float | None
    mean: float | None
    """The lift per person and round; null if it is not known."""
    low: float | None
    high: float | None
    treated: int
    """People of the program with an outcome."""
    untreated: int
    """People of the control group with an outcome."""
    note: str
    """Why the lift is not known; empty if it is."""


class ReachCounts(Answer):
    """How many active people of the program were reached; the control group is not among them."""

    people: int
    reached: int
    """People for whom the action was done at least once."""
    never_done: int
    """People who were on a list, but for whom the action was never reported as done."""
    never_listed: int
    """People who could have been on a list and never were."""
    never_eligible: int
    """People whom a rule kept off every list."""
    new: int
    """People who were in no round yet."""
    control: int
    """Active people in the control group, who are never on a list."""


class Results(Answer):
    """States by round, groups, and how many people were reached."""

    name: str
    title: str
    words: Words
    states: list[str]
    """The states, the worst first."""
    rounds: list[RoundStates]
    groups: list[GroupResult]
    """Empty if nobody has a group."""
    groups_note: str
    """How the intervals of the groups are to be read; empty without one."""
    reach: ReachCounts


class Unreached(Answer):
    """An active person of the program for whom the action was never done."""

    number: int
    agent: str
    display: dict[str, str | None]
    group: str | None
    state: str | None
    reach: Literal["never listed", "never eligible", "never done"]
    rounds: int
    """Rounds in which the person was present."""
    eligible: int
    """Rounds in which the person could have been on the list."""
    listed: int
    """Rounds in which the person was on the list."""
    failed: int
    """Rounds in which the person was on the list, and the action was reported as not done."""
    why: str


class ReportSection(Answer):
    """A part of a report: a heading and sentences."""

    heading: str
    sentences: list[str]


class StateShares(Answer):
    """Shares of people in a state, in the first and in the last round; null where nobody's state is known."""

    state: str
    program_first: float | None
    program_last: float | None
    control_first: float | None
    control_last: float | None


class Report(Answer):
    """A program on one page, for a funder: no ids and no names."""

    name: str
    title: str
    period: str
    verdict: str
    """Whether it worked, in a few words."""
    clear: bool
    """Whether the lift differs from 0 by more than its 95% interval, and enough outcomes are known."""
    mean: float | None
    """The lift per person and round, with its 95% interval."""
    low: float | None
    high: float | None
    unit: str
    sections: list[ReportSection]
    states: list[StateShares]
    states_note: str
    source: str
    """Version, policy and seed."""
