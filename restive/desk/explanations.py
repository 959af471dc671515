"""The sentence beside each name on a list: why this person, in the words of the program.

It says the state, what acting is expected to bring and how sure that is, and whether a rule or the lot decided. M is
the people on the list. Benefits come from the policy; "give or take" is 1.96 standard errors, which holds the truth in
about 95 of 100 cases. A benefit larger than that is clear, a smaller one is called unsure, one below 0 a loss.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from restive.desk.config import Words
from restive.types import Bools, Floats, Ints

REACH = 1.959963984540054  # standard errors to each side that hold 95% of a normal law
FEW = 5  # with fewer rounds seen than this, a person is little known


class _Person(NamedTuple):
    """What is known of one person on the list."""

    state: str
    benefit: float
    error: float
    explored: bool
    must: bool
    margin: float
    since: int
    seen: int
    spare: bool


def explain(
    words: Words,
    state: Sequence[str],
    benefit: Floats,
    error: Floats,
    *,
    explored: Bools | None = None,
    must: Bools | None = None,
    margin: Floats | None = None,
    since: Ints | None = None,
    seen: Ints | None = None,
    spare: Bools | None = None,
    ahead: bool = True,
) -> list[str]:
    """Why each of M people is on the list or in reserve.

    benefit and error are those of `Policy.estimate` (NaN: not known; error inf: nothing seen yet). explored: on the
    list by luck, to learn. must: by a rule, whatever the benefit. margin: how far the priority is from the other side
    of the list's end, 0 where the lot decided. since: rounds since the last action, −1 for never. seen: rounds of this
    person that taught something. spare: in reserve. What is left out is not spoken of. ahead: the benefit counts all
    rounds to come, not the next one alone.

    >>> words = Words(action="a coupon", every="week", reward_unit="orders a week")
    >>> explain(words, ["few orders"], np.array([0.41]), np.array([0.1]), ahead=False)
    ['Now few orders: a coupon is expected to bring about 0.4 more orders next week, give or take 0.2.']
    """
    flag, none = np.zeros(len(state), bool), np.full(len(state), np.nan)
    unsaid = np.full(len(state), -2)
    columns = (
        np.asarray(benefit, float),
        np.asarray(error, float),
        flag if explored is None else explored,
        flag if must is None else must,
        none if margin is None else margin,
        unsaid if since is None else since,
        unsaid if seen is None else seen,
        flag if spare is None else spare,
    )
    rows = zip(state, *(column.tolist() for column in columns), strict=True)
    return [_sentence(words, _Person(*row), ahead) for row in rows]


def _sentence(words: Words, one: _Person, ahead: bool) -> str:
    parts = [_why(words, one, ahead)]
    if one.margin == 0 and not (one.must or one.explored):
        parts.append("Others are as good a choice; the lot decided.")
    if 0 <= one.seen < FEW:
        parts.append(f"Little is known yet: {times(words, one.seen) if one.seen else 'no ' + words.every} seen so far.")
    if one.since >= 0:
        parts.append(f"{capital(words.acted)} {times(words, one.since)} ago.")
    if one.since == -1:
        parts.append(f"Never {words.acted} so far.")
    if one.spare:
        parts.append("In reserve, should someone on the list drop out.")
    return " ".join(parts)


def _why(words: Words, one: _Person, ahead: bool) -> str:
    """The main clause: a rule, the lot, or the benefit, in this order."""
    now, gain = f"Now {one.state}", say_gain(words, one.benefit, one.error, ahead)
    if one.must:
        known = f" {now}: {words.action} is expected to bring {gain}." if gain else ""
        return f"On the list of {words.people} to {words.verb} in any case.{known}"
    if one.explored:
        so_far = f"; so far the estimate is {gain}" if gain else ""
        return f"{now}: drawn by lot, to learn what {words.action} does for this {words.person}{so_far}."
    if not gain:
        return f"{now}: too little is known yet to say what {words.action} brings."
    if one.benefit < 0:
        return f"{now}: {words.action} is not expected to help ({gain}), but the budget is to be used."
    if one.benefit <= REACH * one.error:
        standing = "still next in line" if one.spare else "still among the best choices there are"
        return f"{now}: {words.action} may bring {gain}; not sure, but {standing}."
    return f"{now}: {words.action} is expected to bring {gain}."


def say_gain(words: Words, benefit: float, error: float, ahead: bool = True) -> str:
    """A benefit in words, empty where nothing is known of it.

    >>> say_gain(Words(reward_unit="visits a month", every="month"), -1.234, 0.3)
    'a loss of about 1.2 visits over the months to come, give or take 0.6'
    """
    if math.isnan(benefit) or math.isinf(error):
        return ""
    value, reach = rounded(abs(benefit), REACH * error)
    span = f"over the {words.every}s to come" if ahead else f"next {words.every}"
    if float(value.replace(",", "")) == 0:
        gain = f"next to no change in {things(words)} {span}"
    else:
        gain = f"{f'about {value} more' if benefit > 0 else f'a loss of about {value}'} {things(words)} {span}"
    return gain + (f", give or take {reach}" if reach else "")


def rounded(value: float, reach: float = math.nan) -> tuple[str, str]:
    """A number and how far it may be off, with the digits that mean something; the second is empty if not known.

    >>> rounded(0.4129, 0.196), rounded(1234.5, 88.0), rounded(0.4129), rounded(3.0, 0.0)
    (('0.4', '0.2'), ('1,230', '90'), ('0.41', ''), ('3.0', '0'))
    """
    known = math.isfinite(reach)
    leading = max(reach, abs(value) / 1000) if known and reach > 0 else abs(value) / 10
    if not math.isfinite(value) or leading <= 0:
        return f"{value:.0f}", f"{reach:.0f}" if known else ""
    # One digit is enough, unless it is a 1, which may stand for anything from 0.95 to 1.95.
    decimals = -math.floor(math.log10(leading / 1.95) + 1e-9)
    texts = [f"{round(number, decimals):,.{max(0, decimals)}f}" for number in (value, reach if known else 0.0)]
    return texts[0], (texts[1] if reach > 0 else "0") if known else ""


def things(words: Words) -> str:
    """What rewards are counted in, without the time that they are counted over.

    >>> things(Words(reward_unit="orders a week", every="week")), things(Words(reward_unit="score"))
    ('orders', 'score')
    """
    for per in ("a", "an", "per", "each", "every") if words.reward_unit.endswith(words.every) else ():
        if words.reward_unit.endswith(f" {per} {words.every}"):
            return words.reward_unit.removesuffix(f" {per} {words.every}")
    return words.reward_unit


def times(words: Words, number: int) -> str:
    """So many rounds.

    >>> times(Words(every="week"), 1), times(Words(every="week"), 3)
    ('1 week', '3 weeks')
    """
    return f"{number:,} {words.every}" if number == 1 else f"{number:,} {words.every}s"


def capital(text: str) -> str:
    """The text with a capital first letter, and the others as they are."""
    return text[:1].upper() + text[1:]
