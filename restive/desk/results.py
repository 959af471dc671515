"""What the people of a program went through: states by round, groups, and who was never reached.

All counts are in the projection, so no round is read. The lift of a group is that of the program (`restive.desk.lift`) on
its people alone, with two differences. A place on the list that goes to one group is taken from another, so nothing is
deducted for displaced people (price 0). And the intervals hold for all groups together: with G groups each has the level
1 − 0.05 / G (Bonferroni), because several groups are several chances of a false alarm.
"""

import math
from typing import Literal

import numpy as np

from restive.api.results import GroupResult, ReachCounts, Results, RoundStates, StateCounts, Unreached
from restive.desk.agents import Agents, RoundTotals
from restive.desk.config import Words
from restive.desk.explanations import count_people
from restive.desk.export import describe_people
from restive.desk.lift import Lift, lift, sum_people
from restive.desk.program import Program
from restive.desk.projection import Projection
from restive.desk.status import find_reward_range, find_title
from restive.formats import finite_or_none
from restive.logs.estimators import LEVEL
from restive.problem import AT_MOST
from restive.types import Bools, Ints

MIN_GROUP = 10  # people with outcomes, in the program and in the control group
NO_GROUP = -1
NEVER_LISTED, NEVER_ELIGIBLE, NEVER_DONE = range(3)
KINDS: tuple[Literal["never listed", "never eligible", "never done"], ...] = (
    "never listed",
    "never eligible",
    "never done",
)


def get_results(program: Program) -> Results:
    """States by round, groups, and how many people were reached."""
    projection = program.projection
    groups = find_groups(projection)
    return {
        "name": program.name,
        "title": find_title(projection.config),
        "words": projection.config.as_json()["words"],
        "states": list(projection.config.states),
        "rounds": [_describe_states(totals, len(projection.config.states)) for totals in projection.rounds],
        "groups": groups,
        "groups_note": _note_groups(groups),
        "reach": count_reached(projection),
    }


def _describe_states(totals: RoundTotals, states: int) -> RoundStates:
    counts = np.array(totals.states, np.int64).reshape(2, 2, states).tolist()
    sides: list[StateCounts] = [
        {"reported": reported, "carried_over": carried_over, "unknown": absent}
        for (reported, carried_over), absent in zip(counts, totals.absent, strict=True)
    ]
    return {"round": totals.round, "label": totals.label, "at": totals.at, "program": sides[0], "control": sides[1]}


def find_groups(projection: Projection) -> list[GroupResult]:
    """All groups in the order in which they appeared, then the people without one; empty without groups."""
    if not projection.groups:
        return []
    agents, names = projection.agents, [*projection.groups, None]
    codes = [*range(len(projection.groups)), *([NO_GROUP] if (agents.group == NO_GROUP).any() else [])]
    lifts = dict(zip(codes, measure_groups(agents, projection.config.words, codes), strict=True))
    low, high = find_reward_range(projection) or (math.nan, math.nan)
    return [_describe_group(projection, names[code], agents.group == code, lifts[code], high - low) for code in codes]


def measure_groups(agents: Agents, words: Words, codes: list[int]) -> list[Lift]:
    """The lift of each group, whose intervals hold together in at least 95 of 100 programs; unknown ones do not count."""
    people = sum_people(agents)
    known = [_is_measurable(agents, agents.group == code) for code in codes]
    level = 1 - (1 - LEVEL) / max(1, sum(known))
    return [
        lift(people.take(rows), words, int(agents.unlisted[rows].sum()), level, price=0.0)
        for rows in (agents.group == code for code in codes)
    ]


def _is_measurable(agents: Agents, rows: Bools) -> bool:
    seen = rows & (agents.compared_seen > 0)
    return min(int((seen & agents.control).sum()), int((seen & ~agents.control).sum())) >= MIN_GROUP


def _describe_group(projection: Projection, name: str | None, rows: Bools, found: Lift, widest: float) -> GroupResult:
    agents, config = projection.agents, projection.config
    control = find_control(projection)
    active = agents.active & ~control
    note = _doubt(found, widest, config.words, bool(agents.control.any()))
    mean, low, high = (math.nan,) * 3 if note else (found.mean, found.low, found.high)
    return {
        "group": name,
        "people": int((rows & agents.active).sum()),
        "control": int((rows & agents.active & control).sum()),
        "share_of_people": _share((active & rows).sum(), active.sum()),
        "places": int(agents.places[rows].sum()),
        "share_of_places": _share(agents.places[rows].sum(), agents.places.sum()),
        "minimum_share": config.shares.get(name) or None if name is not None else None,
        "actions": int(agents.done[rows].sum()),
        "share_of_actions": _share(agents.done[rows].sum(), agents.done.sum()),
        "mean": finite_or_none(mean),
        "low": finite_or_none(low),
        "high": finite_or_none(high),
        "treated": found.treated,
        "untreated": found.control,
        "note": note,
    }


def _doubt(found: Lift, widest: float, words: Words, controlled: bool) -> str:
    """Why the lift of a group is not known; empty if it is."""
    if not controlled:
        return "there is no control group"
    for number, where in ((found.control, "in the control group"), (found.treated, "in the program")):
        if number < MIN_GROUP:
            return f"only {count_people(number, words)} of the group with outcomes {where}, at least {MIN_GROUP} are needed"
    return "" if found.high - found.low < widest else "the interval is too wide to say anything"


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def _note_groups(groups: list[GroupResult]) -> str:
    known = sum(not group["note"] for group in groups)
    if known < 2:
        return ""
    return (
        f"{known} groups are {known} chances of a false alarm. The intervals are wider for it: in at least 95 of 100 programs all of "
        "them hold at once."
    )


def find_control(projection: Projection) -> Bools:
    """Who is in the control group now; nobody after a waiting list has ended."""
    return projection.agents.control & projection.config.has_control(projection.next_round)


def count_reached(projection: Projection) -> ReachCounts:
    """How many active people were reached, and how many were not."""
    agents, control, kind = projection.agents, find_control(projection), _classify(projection)
    program = agents.active & ~control
    return {
        "people": int(program.sum()),
        "reached": int((program & (agents.done > 0)).sum()),
        "never_done": int((kind == NEVER_DONE).sum()),
        "never_listed": int((kind == NEVER_LISTED).sum()),
        "never_eligible": int((kind == NEVER_ELIGIBLE).sum()),
        "new": int((program & (agents.present == 0) & (agents.done == 0)).sum()),
        "control": int((agents.active & control).sum()),
    }


def _classify(projection: Projection) -> Ints:
    """Why each agent was never reached, an index of KINDS; −1 if it was, or is not an active agent of the program."""
    agents = projection.agents
    waiting = agents.active & ~find_control(projection) & (agents.done == 0) & (agents.present > 0)
    cases = [waiting & (agents.places > 0), waiting & (agents.eligible > 0), waiting]
    kind: Ints = np.select(cases, [NEVER_DONE, NEVER_LISTED, NEVER_ELIGIBLE], -1)
    return kind


def find_unreached(program: Program) -> Ints:
    """The numbers of the people for whom the action was never done, in the order of joining, without the control group."""
    return np.flatnonzero(_classify(program.projection) >= 0)


def describe_unreached(program: Program, numbers: Ints) -> list[Unreached]:
    """Some of these people, for how long, and why."""
    agents, at_most = program.projection.agents, program.config.spend == AT_MOST
    kinds = _classify(program.projection)
    rows: list[Unreached] = []
    for person in describe_people(program, numbers):
        number = person["number"]
        present, eligible, listed, failed = (
            int(column[number]) for column in (agents.present, agents.eligible, agents.places, agents.failed)
        )
        rows.append(
            {
                "number": number,
                "agent": person["agent"] or "",
                "display": person["display"],
                "group": person["group"],
                "state": person["state"],
                "reach": KINDS[int(kinds[number])],
                "rounds": present,
                "eligible": eligible,
                "listed": listed,
                "failed": failed,
                "why": _explain(int(kinds[number]), present, eligible, listed, failed, at_most),
            }
        )
    return rows


def _explain(kind: int, present: int, eligible: int, listed: int, failed: int, at_most: bool) -> str:
    """Why a person was never reached, in a sentence.

    >>> _explain(NEVER_LISTED, 12, 10, 0, 0, False)
    'Others ranked higher in 10 of 12 rounds; a rule kept them off the list in 2.'
    >>> _explain(NEVER_DONE, 12, 11, 3, 2, False)
    'On the list of 3 rounds: 2 not done, 1 not reported.'
    """
    if kind == NEVER_DONE:
        parts = [f"{failed:,} not done"] * bool(failed) + [f"{listed - failed:,} not reported"] * (listed > failed)
        return f"On the list of {_rounds(listed)}: {', '.join(parts)}."
    if kind == NEVER_ELIGIBLE:
        return f"A rule kept them off the list in all of {_rounds(present)}."
    higher = "Others ranked higher, or no gain was expected," if at_most else "Others ranked higher"
    kept_off = f"; a rule kept them off the list in {present - eligible:,}" if present > eligible else ""
    return f"{higher} in {eligible:,} of {_rounds(present)}{kept_off}."


def _rounds(number: int) -> str:
    return f"{number:,} round{'s' * (number != 1)}"
