"""The sentences of a program in its own words: why a person is on the list, and numbers with their uncertainty.

A reason says whether a rule or a random draw decided, and what followed so far in the person's state with the action and
without it: counts, not estimates. What the policy ranks by is no finding, and is not in it.
"""

import math
from typing import NamedTuple

from restive.desk.config import Words
from restive.formats import typeset

MIN_OUTCOMES = 5  # in a state under each action; with fewer nothing is known of the action there
NOT_GIVEN = -2


class Followed(NamedTuple):
    """What followed in a state under one action: how many outcomes, and how many of them better."""

    outcomes: int
    better: int


class Person(NamedTuple):
    """What is known of a person on the list; what is not given is not mentioned."""

    explored: bool = False  # chosen at random, to learn
    must: bool = False  # on the must list, however the policy ranks
    margin: float = math.nan  # distance of the priority from the cutoff, 0 where a random draw broke a tie
    since: int = NOT_GIVEN  # rounds since the last action, −1 for never
    carried_over: bool = False  # the state is from an earlier round


def explain(words: Words, person: Person, followed: str) -> str:
    """Why a person is on the list or on the reserve list; `followed` is what is known of the state.

    >>> words = Words(action="a coupon", acted="got a coupon", every="week")
    >>> explain(words, Person(must=True, since=2), "Nothing is known.")
    'On the must list. Nothing is known. Got a coupon 2 weeks ago.'
    """
    tied = person.margin == 0 and not (person.must or person.explored)
    parts = [
        "On the must list." if person.must else "Chosen at random, to learn." if person.explored else "",
        followed,
        "Drawn at random among equals." if tied else "",
        f"{capitalize(words.acted)} {count_rounds(words, person.since)} ago." if person.since >= 0 else "",
        f"Never {words.acted}." if person.since == -1 else "",
        f"The state is from an earlier {words.every}." if person.carried_over else "",
    ]
    return " ".join(filter(None, parts))


def describe_followed(words: Words, waited: Followed, acted: Followed, best: bool) -> str:
    """What followed in a state with the action and without; in the best state, how often it stayed.

    >>> words = Words(action="a coupon", every="week")
    >>> describe_followed(words, Followed(40, 5), Followed(8, 3), best=False)
    'Better a week later: 3 of 8 times after a coupon, 5 of 40 times without.'
    >>> describe_followed(words, Followed(40, 5), Followed(2, 1), best=False)
    'A coupon was tried only 2 times in this state.'
    """
    if min(waited.outcomes, acted.outcomes) < MIN_OUTCOMES:
        often = f"{acted.outcomes:,} {'time' if acted.outcomes == 1 else 'times'}"
        few = f"was tried only {often} in this state" if acted.outcomes else "was never tried in this state"
        many = f"was tried {often} in this state, with too few without to compare"
        return f"{capitalize(words.action)} {few if acted.outcomes < MIN_OUTCOMES else many}."
    kept = "Still in the best state" if best else "Better"
    after, without = (f"{each.better:,} of {each.outcomes:,} times" for each in (acted, waited))
    return f"{kept} a {words.every} later: {after} after {words.action}, {without} without."


def describe_effect(words: Words) -> str:
    """The effect that is estimated for each state.

    >>> describe_effect(Words(action="a coupon", every="week", reward_unit="orders a week"))
    'What a coupon added in the week after it, in orders a week'
    """
    return f"What {words.action} added in the {words.every} after it, in {words.reward_unit}"


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


def show_amount(amount: float, unit: str) -> str:
    """An amount of the budget in its unit.

    >>> show_amount(1250.5, "km"), show_amount(40.0, "euros")
    ('1,250.5 km', '40 euros')
    """
    return f"{amount:,.2f}".rstrip("0").rstrip(".") + f" {unit}" * bool(unit)


def capitalize(text: str) -> str:
    """The text with a capital first letter, and the others as they are."""
    return text[:1].upper() + text[1:]
