"""Numbers have as many digits as they are worth, the worst part stands for a claim, and Markdown stays whole."""

import math

import pytest

from restive.paper.claims import Claim, Part, Range, above
from restive.paper.summary import interval, key_number, markdown, number, tally, value, worst_first

ABOUT = {
    "version": "1.2",
    "code": "abc",
    "seed": 3,
    "size": "quick",
    "machine": "m|n",
    "python": "3.11",
    "date": "2031-02-03",
}


POSITIVE = above(0)


def claim(*parts: Part, agreement: Range = POSITIVE, sentence: str = "It rises.", place: str = "Figure 1") -> Claim:
    return Claim("c", sentence, place, "lead", agreement, parts)


@pytest.mark.parametrize(
    ("given", "shown"),
    [(1.0, "1.000"), (-0.0049, "−0.0049"), (99.9999, "100.00"), (1e6, "1\u202f000\u202f000"),
     (math.nan, "not measured"), (-math.inf, "−∞"), (2.5e-12, "2.5e−12"), (1.23456789e-5, "0.000012")],
)  # fmt: skip
def test_numbers_have_three_decimals_or_what_they_need(given: float, shown: str) -> None:
    assert number(given) == shown


def test_a_number_and_its_interval_have_the_same_decimals() -> None:
    part = Part("s", 9.5, -0.25, 123.0)
    assert (value(part), interval(part)) == ("9.5", "[−0.2, 123.0]")


def test_what_is_exact_has_no_interval_and_what_was_measured_once_says_so() -> None:
    assert (value(Part("s", 12345.0, 12345.0, 12345.0)), interval(Part("s", 0.5, 0.5, 0.5))) == ("12\u202f345", "")
    assert interval(Part("s", 0.5, math.nan, math.nan)) == "no interval"


def test_the_worst_part_is_the_one_that_fails_most_then_the_one_nearest_to_failing() -> None:
    holding, barely = Part("holding", 5.0, 4.0, 6.0), Part("barely", 9.0, 0.1, 18.0)
    unsure, unknown = Part("unsure", 1.0, -1.0, 3.0), Part("unknown", 1.0, math.nan, math.nan)
    failing, worse = Part("failing", -1.0, -1.9, -0.1), Part("worse", -2.0, -2.1, -1.9)
    ranked = worst_first(claim(holding, barely, unsure, failing, worse, unknown))
    assert [part.setting for part in ranked] == ["worse", "failing", "unknown", "unsure", "barely", "holding"]
    assert key_number(claim(holding, barely)) == "9.00 [0.10, 18.00]"
    assert key_number(claim()) == "not measured"


def test_the_worst_part_of_a_range_may_be_too_high() -> None:
    low, high = Part("low", -0.3, -0.4, -0.2), Part("high", 0.5, 0.4, 0.6)
    assert worst_first(claim(low, high, agreement=Range(-0.1, 0.1)))[0] is high


def test_counts_speak_english() -> None:
    assert tally(["holds"]) == "1 holds"
    assert tally(["undecided", "fails", "fails", "undecided"]) == "2 undecided, 2 fail"
    assert tally([]) == "no claims"


def test_markdown_has_a_row_for_each_claim_whatever_is_in_its_words() -> None:
    odd = claim(Part("a|b", 1.0, 1.0, 1.0), Part("c", 2.0, 2.0, 2.0), sentence="x | <b> `y` *z*\nend", place="§ 1")
    page = markdown([odd, claim(Part("s", -1.0, -1.5, -0.5))], ABOUT)
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        r"| x \| \<b\> \`y\` \*z\* end | § 1 | holds | above 0 | 1 | a\|b |",
        "| It rises. | Figure 1 | fails | above 0 | −1.000 [−1.500, −0.500] |  |",
    ]


def test_markdown_says_where_it_comes_from_and_how_verdicts_are_given() -> None:
    page = markdown([claim(Part("s", 1.0, 1.0, 1.0))], ABOUT)
    for told in ("`restive reproduce --markdown docs/reproduction.md`", "not edited by hand",
                 "1 claims of the paper: 1 holds",
                 "restive 1.2", "seed 3", "quick size", r"m\|n", "2031-02-03", "all of it lies outside"):  # fmt: skip
        assert told in page
    assert max(map(len, page.splitlines())) <= 120
