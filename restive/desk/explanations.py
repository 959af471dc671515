"""The sentences of a program in its own words: why a person is on the list, and numbers with their uncertainty.

A reason states the person's state, the expected benefit of acting with its uncertainty, and whether a rule or a random
draw decided. Benefits come from the policy; "give or take" is 1.96 standard errors, a 95% interval. A benefit larger
than that is clear, a smaller one unsure, one below 0 a loss.
"""

import math
from typing import NamedTuple

from restive.desk.config import Words
from restive.formats import UNKNOWN, typeset

NORMAL_95 = 1.959963984540054  # standard errors on each side of a 95% normal interval
MIN_SEEN = 5  # with fewer rounds seen than this, little is known of a person
NOT_GIVEN = -2


class Person(NamedTuple):
    """What is known of a person on the list; what is not given is not mentioned."""

    state: str
    benefit: float  # as in `Policy.estimate`: NaN if it is not known
    error: float  # infinite if nothing was seen yet
    explored: bool = False  # chosen at random, to learn
    must: bool = False  # on the must list, whatever the benefit
    margin: float = math.nan  # distance of the priority from the cutoff, 0 where a random draw broke a tie
    since: int = NOT_GIVEN  # rounds since the last action, −1 for never
    seen: int = NOT_GIVEN  # rounds with an outcome
    reserve: bool = False
    carried_over: bool = False  # the state is from an earlier round


def explain(words: Words, person: Person, far_sighted: bool = True) -> str:
    """Why a person is on the list or on the reserve list; `far_sighted` if the benefit counts all future rounds.

    >>> words = Words(action="a coupon", every="week", reward_unit="orders a week")
    >>> explain(words, Person("few orders", benefit=0.41, error=0.1), far_sighted=False)
    'Now few orders: a coupon is expected to bring about 0.4 more orders next week, give or take 0.2.'
    """
    parts = [_main_reason(words, person, far_sighted)]
    if person.margin == 0 and not (person.must or person.explored):
        parts.append("Others rank equally; the choice among them is random.")
    if 0 <= person.seen < MIN_SEEN:
        seen = count_rounds(words, person.seen) if person.seen else f"no {words.every}"
        parts.append(f"Little is known yet: {seen} seen so far.")
    if person.since >= 0:
        parts.append(f"{capitalize(words.acted)} {count_rounds(words, person.since)} ago.")
    if person.since == -1:
        parts.append(f"Never {words.acted} so far.")
    if person.reserve:
        parts.append("On the reserve list, in case someone drops out.")
    if person.carried_over:
        parts.append(f"The state is from an earlier {words.every}.")
    return " ".join(parts)


def _main_reason(words: Words, person: Person, far_sighted: bool) -> str:
    """A rule, the exploration or the benefit, in this order."""
    now, gain = f"Now {person.state}", describe_gain(words, person.benefit, person.error, far_sighted)
    if person.must:
        known = f" {now}: {words.action} is expected to bring {gain}." if gain else ""
        return f"On the must list.{known}"
    if person.explored:
        so_far = f"; the estimate so far is {gain}" if gain else ""
        return f"{now}: chosen at random, to learn what {words.action} does for this {words.person}{so_far}."
    if not gain:
        return f"{now}: too little is known yet to say what {words.action} brings."
    if person.benefit < 0:
        return f"{now}: {words.action} is not expected to help ({gain}), but the budget allows it."
    if person.benefit <= NORMAL_95 * person.error:
        rank = "next in line" if person.reserve else "among the best choices"
        return f"{now}: {words.action} may bring {gain}; not sure, but still {rank}."
    return f"{now}: {words.action} is expected to bring {gain}."


def describe_gain(words: Words, benefit: float, error: float, far_sighted: bool = True) -> str:
    """A benefit in words, empty where nothing is known of it.

    >>> describe_gain(Words(reward_unit="visits a month", every="month"), -1.234, 0.3)
    'a loss of about 1.2 visits over the months to come, give or take 0.6'
    """
    if math.isnan(benefit) or math.isinf(error):
        return ""
    value, half_width = rounded(abs(benefit), NORMAL_95 * error)
    span = f"over the {words.every}s to come" if far_sighted else f"next {words.every}"
    if float(value.replace(",", "")) == 0:
        gain = f"almost no change in {reward_noun(words)} {span}"
    else:
        gain = f"{f'about {value} more' if benefit > 0 else f'a loss of about {value}'} {reward_noun(words)} {span}"
    return gain + (f", give or take {half_width}" if half_width else "")


def show_benefit(benefit: float | None, error: float | None) -> str:
    """A benefit with the half-width of its 95% interval; None is not known.

    >>> show_benefit(0.41, 0.1), show_benefit(0.41, None), show_benefit(0.0, math.inf)
    ('0.4 ± 0.2', '0.41', '–')
    """
    if benefit is None or math.isnan(benefit) or (error is not None and math.isinf(error)):
        return UNKNOWN
    value, half_width = rounded(benefit, math.nan if error is None else NORMAL_95 * error)
    return f"{value} ± {half_width}" if half_width else value


def how_sure(benefit: float | None, error: float | None) -> str:
    """In words: a benefit beyond its 95% interval is clear.

    >>> [how_sure(benefit, 0.1) for benefit in (0.3, 0.1, -0.1, -0.3)], how_sure(0.2, math.inf)
    (['clear', 'unsure', 'unsure', 'clear loss'], 'not known')
    """
    if benefit is None or error is None or not math.isfinite(benefit) or not math.isfinite(error):
        return "not known"
    if abs(benefit) <= NORMAL_95 * error:
        return "unsure"
    return "clear" if benefit > 0 else "clear loss"


def rounded(value: float, uncertainty: float = math.nan) -> tuple[str, str]:
    """A number and its uncertainty with the significant digits only; the second is empty if it is not known.

    >>> rounded(0.4129, 0.196), rounded(1234.5, 88.0), rounded(0.4129), rounded(3.0, 0.0)
    (('0.4', '0.2'), ('1,230', '90'), ('0.41', ''), ('3.0', '0'))
    """
    known = math.isfinite(uncertainty)
    leading = max(uncertainty, abs(value) / 1000) if known and uncertainty > 0 else abs(value) / 10
    if not math.isfinite(value) or leading <= 0:
        return f"{value:.0f}", f"{uncertainty:.0f}" if known else ""
    # One digit is enough unless it is a 1, which covers everything from 0.95 to 1.95.
    decimals = -math.floor(math.log10(leading / 1.95) + 1e-9)
    texts = [
        typeset(f"{round(number, decimals) + 0.0:,.{max(0, decimals)}f}")
        for number in (value, uncertainty if known else 0.0)
    ]
    return texts[0], (texts[1] if uncertainty > 0 else "0") if known else ""


def show_estimate(value: float | None, low: float | None, high: float | None) -> tuple[str, str, str] | None:
    """A number and the ends of its interval, to two significant digits of the half-width; None if one is not known.

    >>> show_estimate(-0.4129, -2.0, 1.1742)
    ('−0.41', '−2.00', '1.17')
    """
    if value is None or low is None or high is None or not math.isfinite(high - low):
        return None
    digits = (high - low) / 20
    return rounded(value, digits)[0], rounded(low, digits)[0], rounded(high, digits)[0]


def reward_noun(words: Words) -> str:
    """The reward unit without its period.

    >>> reward_noun(Words(reward_unit="orders a week", every="week")), reward_noun(Words(reward_unit="score"))
    ('orders', 'score')
    """
    for per in ("a", "an", "per", "each", "every"):
        if words.reward_unit.endswith(f" {per} {words.every}"):
            return words.reward_unit.removesuffix(f" {per} {words.every}")
    return words.reward_unit


def count_rounds(words: Words, number: int) -> str:
    """A number of rounds.

    >>> count_rounds(Words(every="week"), 1), count_rounds(Words(every="week"), 3)
    ('1 week', '3 weeks')
    """
    return f"{number:,} {words.every}" if number == 1 else f"{number:,} {words.every}s"


def count_people(number: int, words: Words, adjective: str = "") -> str:
    """A number of people.

    >>> count_people(1, Words(), "new "), count_people(2000, Words())
    ('1 new person', '2,000 people')
    """
    return f"{number:,} {adjective}{words.person if number == 1 else words.people}"


def capitalize(text: str) -> str:
    """The text with a capital first letter, and the others as they are."""
    return text[:1].upper() + text[1:]
