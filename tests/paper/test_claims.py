"""A claim is judged by its range and its intervals, and shown by its worst part."""

import json
import math

import numpy as np
import pytest

from restive.paper.claims import (
    FAILS,
    HOLDS,
    NOT_DECIDABLE,
    UNDECIDED,
    Claim,
    Part,
    Range,
    above,
    below,
    count_verdicts,
    exact,
    measured,
    parse_range,
    show_scaled,
)
from restive.stats import band


def claim_of(*parts: Part, agreement: Range | None = None, nearby: tuple[Part, ...] = ()) -> Claim:
    return Claim("name", "A sentence.", "section 1", "a number", agreement or above(0), parts, nearby)


@pytest.mark.parametrize(
    ("agreement", "low", "high", "verdict"),
    [
        (above(0), 0.1, 0.3, HOLDS),
        (above(0), -0.1, 0.3, UNDECIDED),
        (above(0), -0.3, -0.1, FAILS),
        (above(0), 0.0, 0.0, FAILS),
        (below(1), 1.0, 1.0, FAILS),
        (below(1), 0.5, 0.999, HOLDS),
        (Range(-0.1, 0.1), -0.1, 0.1, HOLDS),
        (Range(-0.1, 0.1), -0.2, 0.2, UNDECIDED),
        (Range(-0.1, 0.1), 0.11, 0.2, FAILS),
        (Range(-0.1, 0.1), 0.05, 0.2, UNDECIDED),
        (Range(0.95, math.inf), 0.96, 1.2, HOLDS),
        (above(0), math.nan, math.nan, UNDECIDED),
    ],
)
def test_a_part_is_judged_by_where_its_interval_lies(agreement: Range, low: float, high: float, verdict: str) -> None:
    assert Part("a setting", (low + high) / 2, low, high).judge(agreement) == verdict


def test_a_claim_needs_all_parts_and_one_can_sink_it() -> None:
    good, open_, bad = (
        Part("good", 1, 0.5, 1.5),
        Part("open", 0.1, -0.5, 0.7),
        Part("bad", -1, -1.5, -0.5),
    )
    assert claim_of(good, good).verdict == HOLDS
    assert claim_of(good, open_).verdict == UNDECIDED
    assert claim_of(good, open_, bad).verdict == FAILS


def test_a_claim_without_any_part_is_not_taken_for_true() -> None:
    assert claim_of().verdict == UNDECIDED


def test_a_failing_claim_names_the_nearest_setting_in_which_it_holds() -> None:
    bad, near, far = Part("bad", -1, -1.5, -0.5), Part("near", 1, 0.5, 2), Part("far", 2, 1, 3)
    open_ = Part("open", 0, -1, 1)
    assert claim_of(bad, nearby=(open_, near, far)).closest == "it holds for near"
    assert claim_of(bad, far).closest == "it holds for far"
    assert claim_of(bad, far, near, far, near).closest == "it holds for 4 of its 5 settings, such as far"
    assert claim_of(bad, far, nearby=(open_, near)).closest == "it holds for far; beyond them near"
    assert claim_of(bad, nearby=(bad, open_)).closest == "in none of the 2 other settings measured"
    assert claim_of(near, nearby=(far,)).closest == ""


def test_ranges_are_said_in_words() -> None:
    said = [
        str(each) for each in (above(0.5), below(1), Range(-0.1, 0.1), Range(0.95, math.inf), Range(-math.inf, 0.05))
    ]
    assert said == ["above 0.5", "below 1", "from -0.1 to 0.1", "at least 0.95", "at most 0.05"]
    assert str(Range(0, 0)) == "exactly 0"


@pytest.mark.parametrize(
    "text", ["above 0.5", "below 1", "from -0.1 to 0.1", "at least 0.95", "at most 0.05", "exactly 0"]
)
def test_a_range_is_read_from_the_words_that_it_is_said_in(text: str) -> None:
    assert str(parse_range(text)) == text


def test_words_that_are_no_range_are_refused() -> None:
    with pytest.raises(ValueError, match="'about 5' is not a range"):
        parse_range("about 5")


def test_one_unit_gives_no_interval_and_no_verdict() -> None:
    part = measured("one instance", band(np.array([3.0])))
    assert claim_of(part).verdict == UNDECIDED
    assert claim_of(exact("computed", 3.0)).verdict == HOLDS


def test_a_claim_goes_to_json_without_infinities() -> None:
    data = claim_of(measured("one", band(np.array([3.0]))), exact("two", 4.0)).as_json()
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again["range"][1] is None
    assert [part["verdict"] for part in again["parts"]] == [UNDECIDED, HOLDS]
    assert again["parts"][0]["low"] is None


POSITIVE = above(0)


def make_claim(
    *parts: Part, agreement: Range = POSITIVE, sentence: str = "It rises.", place: str = "Figure 1"
) -> Claim:
    return Claim("c", sentence, place, "lead", agreement, parts)


@pytest.mark.parametrize(
    ("given", "shown"),
    [(1.0, "1.000"), (-0.0049, "−0.0049"), (99.9999, "100.00"), (1e6, "1\u202f000\u202f000"),
     (math.nan, "not measured"), (-math.inf, "−∞"), (2.5e-12, "2.5e−12"), (1.23456789e-5, "0.000012")],
)  # fmt: skip
def test_numbers_have_three_decimals_or_what_they_need(given: float, shown: str) -> None:
    assert show_scaled(given) == shown


def test_a_number_and_its_interval_have_the_same_decimals() -> None:
    part = Part("s", 9.5, -0.25, 123.0)
    assert (part.show_value(), part.show_interval()) == ("9.5", "[−0.2, 123.0]")


def test_what_is_exact_has_no_interval_and_what_was_measured_once_says_so() -> None:
    assert (Part("s", 12345.0, 12345.0, 12345.0).show_value(), Part("s", 0.5, 0.5, 0.5).show_interval()) == (
        "12\u202f345",
        "",
    )
    assert Part("s", 0.5, math.nan, math.nan).show_interval() == "no interval"


def test_the_worst_part_is_the_one_that_fails_most_then_the_one_nearest_to_failing() -> None:
    holding, barely = Part("holding", 5.0, 4.0, 6.0), Part("barely", 9.0, 0.1, 18.0)
    unsure, unknown = Part("unsure", 1.0, -1.0, 3.0), Part("unknown", 1.0, math.nan, math.nan)
    failing, worse = Part("failing", -1.0, -1.9, -0.1), Part("worse", -2.0, -2.1, -1.9)
    ranked = make_claim(holding, barely, unsure, failing, worse, unknown).worst_first()
    assert [part.setting for part in ranked] == ["worse", "failing", "unknown", "unsure", "barely", "holding"]
    assert make_claim(holding, barely).show_worst() == "9.00 [0.10, 18.00]"
    assert make_claim().show_worst() == "not measured"


def test_the_worst_part_of_a_range_may_be_too_high() -> None:
    low, high = Part("low", -0.3, -0.4, -0.2), Part("high", 0.5, 0.4, 0.6)
    assert make_claim(low, high, agreement=Range(-0.1, 0.1)).worst_first()[0] is high


def test_counts_speak_english() -> None:
    assert count_verdicts(["holds"]) == "1 holds"
    assert count_verdicts(["undecided", "fails", "fails", "undecided"]) == "2 undecided, 2 fail"
    assert count_verdicts([]) == "no claims"


def test_a_claim_about_replaced_data_is_not_decidable_and_says_what_was_seen() -> None:
    claim = Claim("c", "It rises.", "Figure 2", "lead", above(0), (Part("s", 1.0, 0.5, 1.5),), substitute=True)
    assert (claim.verdict, claim.seen) == (NOT_DECIDABLE, HOLDS)
    assert claim.show_verdict() == "not decidable on substitute data (seen: holds)"
    assert count_verdicts([claim.verdict] * 2) == "2 not decidable"
