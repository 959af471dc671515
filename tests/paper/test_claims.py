"""A claim is judged by its range and its intervals, and by nothing else."""

import json
import math

import numpy as np
import pytest

from restive.paper.claims import FAILS, HOLDS, UNDECIDED, Claim, Part, Range, above, below, exact, measured
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
