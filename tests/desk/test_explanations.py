"""Every case has its sentence, in the program's words, without jargon and with significant digits only."""

import math
from typing import Any

import numpy as np
import pytest

from restive.desk.config import Words
from restive.desk.explanations import Person, count_people, count_rounds, describe_gain, explain, reward_noun, rounded

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


def why(benefit: float = 0.41, error: float = 0.1, words: Words = WORDS, **known: Any) -> str:
    far_sighted = known.pop("far_sighted", True)
    return explain(words, Person("silent", benefit, error, **known), far_sighted)


def test_a_clear_benefit_is_expected() -> None:
    expected = (
        "Now silent: a coupon is expected to bring about 0.4 more orders over the weeks to come, give or take 0.2."
    )
    assert why() == expected
    assert "more orders next week" in why(far_sighted=False)


def test_a_benefit_within_its_error_is_unsure() -> None:
    assert "may bring about 0.1 more orders" in why(0.12, 0.1)
    assert "not sure, but still among the best choices." in why(0.12, 0.1)
    assert "still next in line" in why(0.12, 0.1, reserve=True)


def test_expected_harm_is_said_honestly() -> None:
    sentence = why(-0.3, 0.05)
    assert "a coupon is not expected to help (a loss of about 0.30 orders over the weeks to come" in sentence
    assert sentence.endswith("but the budget allows it.")


def test_a_must_comes_before_everything_else() -> None:
    sentence = why(-0.3, 0.05, must=True, explored=True, margin=0.0)
    assert sentence.startswith("On the must list. Now silent:")
    assert "random" not in sentence
    assert why(math.nan, math.nan, must=True) == "On the must list."


def test_exploration_is_a_random_choice_to_learn() -> None:
    assert "chosen at random, to learn what a coupon does for this pharmacist; the estimate so far" in why(
        explored=True
    )
    assert why(0.0, math.inf, explored=True).endswith("for this pharmacist.")


@pytest.mark.parametrize(("benefit", "error"), [(math.nan, math.nan), (0.0, math.inf), (math.nan, 0.1)])
def test_what_is_not_known_is_not_given_a_number(benefit: float, error: float) -> None:
    assert why(benefit, error) == "Now silent: too little is known yet to say what a coupon brings."


def test_a_benefit_without_an_error_has_no_give_or_take() -> None:
    assert (
        why(0.412, math.nan)
        == "Now silent: a coupon is expected to bring about 0.41 more orders over the weeks to come."
    )


def test_only_ties_are_broken_at_random() -> None:
    assert "the choice among them is random" in why(margin=0.0)
    assert "the choice among them is random" not in why(margin=0.01)
    assert "the choice among them is random" not in why(margin=math.nan)


@pytest.mark.parametrize(
    ("seen", "words"),
    [(0, "no week seen"), (1, "Little is known yet: 1 week seen"), (4, "4 weeks seen"), (5, None), (900, None)],
)
def test_little_known_is_said(seen: int, words: str | None) -> None:
    assert ("Little is known" in why(seen=seen)) == (words is not None)
    assert (words or "") in why(seen=seen)


@pytest.mark.parametrize(
    ("since", "words"), [(-1, "Never got a coupon so far."), (1, "Got a coupon 1 week ago."), (12, "12 weeks ago.")]
)
def test_the_last_action_is_recalled(since: int, words: str) -> None:
    assert why(since=since).endswith(words)


def test_the_reserve_list_is_named() -> None:
    assert why(reserve=True).endswith("On the reserve list, in case someone drops out.")


def test_no_case_has_jargon_or_an_odd_number() -> None:
    generator = np.random.default_rng(8)
    many = 4000
    explored, must, reserve, carried_over = generator.random((4, many)) < 0.3
    benefit = generator.choice([math.nan, 0.0, 1e-9, -1e-9, -0.2, 0.3, 12345.6], many)
    error = generator.choice([math.nan, math.inf, 0.0, 1e-12, 0.1, 50.0], many)
    margin, since = generator.choice([0.0, 0.5, math.nan], many), generator.integers(-1, 9, many)
    for words in (WORDS, Words()):
        seen = generator.integers(0, 9, many)
        for row in zip(benefit, error, explored, must, margin, since, seen, reserve, carried_over, strict=True):
            sentence = explain(words, Person("low", *(value.item() for value in row)))
            assert not [word for word in JARGON if word in sentence.lower()]
            assert "e-" not in sentence
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


def test_a_benefit_that_rounds_to_nothing_is_said_in_words() -> None:
    assert describe_gain(WORDS, 0.01, 1.0) == "almost no change in orders over the weeks to come, give or take 2"


def test_units_lose_their_time_only_where_they_have_one() -> None:
    assert reward_noun(Words(every="week", reward_unit="modules finished per week")) == "modules finished"
    assert reward_noun(Words(every="month", reward_unit="orders a week")) == "orders a week"
    assert count_rounds(WORDS, 1200) == "1,200 weeks"


def test_people_are_counted_in_the_words_of_the_program() -> None:
    shops = Words(person="shop", people="shops")
    counted = [count_people(number, shops) for number in (0, 1, 2, 1234)]
    assert counted == ["0 shops", "1 shop", "2 shops", "1,234 shops"]
    assert count_people(1, shops, "new ") == "1 new shop"
