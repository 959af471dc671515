"""Every case has its sentence, in the program's words, without jargon and with significant digits only."""

import math
from typing import Any

import numpy as np
import pytest

from restive.desk.config import Words
from restive.desk.explanations import (
    Followed,
    Person,
    count_people,
    count_rounds,
    describe_followed,
    explain,
    reward_noun,
    rounded,
)

WORDS = Words(
    person="pharmacist",
    people="pharmacists",
    action="a coupon",
    acted="got a coupon",
    verb="give a coupon to",
    every="week",
    reward_unit="orders a week",
)
JARGON = ("bandit", "priority", "index", "epsilon", "nan", "inf", "policy", "agent", "arm ")


KNOWN = "Better a week later: 3 of 8 times after a coupon, 5 of 40 times without."


def why(followed: str = KNOWN, words: Words = WORDS, **known: Any) -> str:
    return explain(words, Person(**known), followed)


def test_a_reason_is_what_followed_so_far_in_the_state() -> None:
    assert why() == KNOWN
    assert describe_followed(WORDS, Followed(40, 5), Followed(8, 3), best=False) == KNOWN


def test_of_the_best_state_it_is_how_often_it_stayed() -> None:
    sentence = describe_followed(WORDS, Followed(1200, 1100), Followed(5, 5), best=True)
    assert (
        sentence == "Still in the best state a week later: 5 of 5 times after a coupon, 1,100 of 1,200 times without."
    )


@pytest.mark.parametrize(
    ("waited", "acted", "tried"),
    [
        (40, 0, "was never tried in this state"),
        (40, 1, "was tried only 1 time in this state"),
        (40, 4, "was tried only 4 times in this state"),
        (4, 90, "was tried 90 times in this state, with too few without to compare"),
    ],
)
def test_what_is_not_known_is_not_given_a_number(waited: int, acted: int, tried: str) -> None:
    sentence = describe_followed(WORDS, Followed(waited, 0), Followed(acted, 0), best=False)
    assert sentence == f"A coupon {tried}."


def test_a_must_comes_before_everything_else() -> None:
    assert why(must=True, explored=True, margin=0.0) == f"On the must list. {KNOWN}"


def test_exploration_is_a_random_choice_to_learn() -> None:
    assert why(explored=True, margin=0.0) == f"Chosen at random, to learn. {KNOWN}"


def test_only_ties_are_broken_at_random() -> None:
    assert why(margin=0.0) == f"{KNOWN} Drawn at random among equals."
    assert why(margin=0.01) == why(margin=math.nan) == KNOWN


@pytest.mark.parametrize(
    ("since", "words"), [(-1, "Never got a coupon."), (1, "Got a coupon 1 week ago."), (12, "12 weeks ago.")]
)
def test_the_last_action_is_recalled(since: int, words: str) -> None:
    assert why(since=since).endswith(words)


def test_no_case_has_jargon_or_an_odd_number() -> None:
    generator = np.random.default_rng(8)
    many = 1000
    explored, must, carried_over = generator.random((3, many)) < 0.3
    margin, since = generator.choice([0.0, 0.5, math.nan], many), generator.integers(-1, 9, many)
    outcomes = generator.integers(0, 12, (many, 2))
    for words in (WORDS, Words()):
        for (waited, acted), *row in zip(outcomes, explored, must, margin, since, carried_over, strict=True):
            followed = describe_followed(words, Followed(waited, 0), Followed(acted, acted), best=bool(row[0]))
            sentence = explain(words, Person(*(value.item() for value in row)), followed)
            assert not [word for word in JARGON if word in sentence.lower()]
            assert "  " not in sentence
            assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("value", "reach", "texts"),
    [
        (0.0, 0.3, ("0.0", "0.3")),
        (0.4129, 0.02, ("0.41", "0.02")),
        (12345.6, 98.0, ("12,350", "100")),
        (0.8, 1e-16, ("0.8000", "0.0000")),
        (0.3, 0.098, ("0.30", "0.10")),
        (0.0, 0.0, ("0", "0")),
        (-2.26, 0.5, ("−2.3", "0.5")),
    ],
)
def test_numbers_have_the_digits_that_mean_something(value: float, reach: float, texts: tuple[str, str]) -> None:
    assert rounded(value, reach) == texts


def test_units_lose_their_time_only_where_they_have_one() -> None:
    assert reward_noun(Words(every="week", reward_unit="modules finished per week")) == "modules finished"
    assert reward_noun(Words(every="month", reward_unit="orders a week")) == "orders a week"
    assert count_rounds(WORDS, 1200) == "1,200 weeks"


def test_people_are_counted_in_the_words_of_the_program() -> None:
    shops = Words(person="shop", people="shops")
    counted = [count_people(number, shops) for number in (0, 1, 2, 1234)]
    assert counted == ["0 shops", "1 shop", "2 shops", "1,234 shops"]
    assert count_people(1, shops, "new ") == "1 new shop"
