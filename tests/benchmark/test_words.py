"""Sentences change when the numbers do: made-up curves, turned round one by one."""

from collections.abc import Callable

import pytest

from restive.benchmark.cost import Costs
from restive.benchmark.fields import CONTESTANTS
from restive.benchmark.scores import BOUND, Scores
from restive.benchmark.words import advise, tell_field

MakeScores = Callable[..., Scores]
CHEAP = Costs({states: {policy: 10.0 * place for place, policy in enumerate(CONTESTANTS, 1)} for states in (2, 10)})


def find(sentences: list[str], *words: str) -> str:
    """The one sentence with all these words, or nothing."""
    found = [sentence for sentence in sentences if all(word in sentence for word in words)]
    assert len(found) <= 1
    return "".join(found)


def test_a_field_is_told_with_its_best_early_and_late_and_the_lead_over_eps_gt(make_scores: MakeScores) -> None:
    scores = make_scores(rates={"cet-whittle": (39.5, 37.0)})
    assert tell_field(scores.matches["two-state"]) == (
        "By step 100 cet-whittle is best with 0.95 of the gap, 0.35 [0.35, 0.35] above egt. "
        "By step 1000 lagrange is best with 0.90 of the gap, 0.30 [0.30, 0.30] above egt."
    )


def test_a_field_names_those_who_are_not_told_apart_and_does_not_hold_eps_gt_against_itself(
    make_scores: MakeScores,
) -> None:
    told = tell_field(make_scores(rates={"egt": 39.5}, shaky={"wiql": 20.0, "lagrange": 3.0}).matches["sticky"])
    assert "By step 1000 egt is best with 0.95 of the gap; lagrange and wiql are not told apart from it." in told


@pytest.mark.parametrize(("rate", "first"), [(39.0, "lagrange"), (37.5, "thompson-whittle")])
def test_who_is_most_often_best_is_counted(make_scores: MakeScores, rate: float, first: str) -> None:
    told = advise(make_scores(rates={"lagrange": rate, "sticky/wiql": 39.9}))
    assert (
        f"By step 1000 {first} is best or not told apart from the best in 2 of 3 fields; next is wiql with 1." in told
    )


def test_fields_in_which_others_are_better_are_told_with_the_lead(make_scores: MakeScores) -> None:
    told = advise(make_scores(rates={"sticky/wiql": (30.0, 41.0), "ten-state/egt": (30.0, 40.6)}))
    better = find(told, "By step 1000", "better than lagrange:")
    assert better.endswith("better than lagrange: egt in ten-state (by 0.05); wiql in sticky (by 0.09).")
    assert "By step 100 no policy is told to be better than lagrange in any field that was played." in told


def test_fields_in_which_others_are_as_good_are_told(make_scores: MakeScores) -> None:
    assert find(advise(make_scores()), "By step 1000", "neither is lagrange") == ""
    told = advise(make_scores(rates={"sticky/wiql": 39.0, "sticky/egt": 39.0, "two-state/egt": 39.0}))
    assert find(told, "By step 1000", "neither is lagrange").endswith("egt in two-state and sticky; wiql in sticky.")


def test_the_cheapest_of_those_near_the_best_follows_the_cost_and_the_shares(make_scores: MakeScores) -> None:
    near = make_scores(rates={"thompson-whittle": 38.85, "sticky/egt": 38.9})
    told = find(advise(near, CHEAP), "cheapest")
    assert told.endswith("by step 1000: thompson-whittle in two-state and ten-state; egt in sticky.")
    dear = {states: {**taken, "thompson-whittle": 1e6} for states, taken in CHEAP.nanoseconds.items()}
    assert find(advise(near, Costs(dear)), "cheapest").endswith("lagrange in two-state and ten-state; egt in sticky.")
    assert find(advise(near), "cheapest") == ""


def test_costs_are_those_of_the_number_of_states(make_scores: MakeScores) -> None:
    ten = {**CHEAP.nanoseconds[10], "lagrange": 1.0}
    near = make_scores(rates={"thompson-whittle": 38.85})
    told = find(advise(near, Costs({2: CHEAP.nanoseconds[2], 10: ten})), "cheapest")
    assert told.endswith("thompson-whittle in two-state and sticky; lagrange in ten-state.")


def test_fields_in_which_nobody_gets_half_way_are_told(make_scores: MakeScores) -> None:
    assert find(advise(make_scores()), "half") == ""
    low = {f"sticky/{policy}": (31.0, 34.0) for policy in CONTESTANTS if policy != "random"}
    told = advise(make_scores(rates=low))
    assert "By step 100 no policy closes half of the gap in sticky (at most 0.10)." in told
    assert "By step 1000 no policy closes half of the gap in sticky (at most 0.37)." in told


def test_what_is_left_above_the_oracle_is_told_where_it_is_much(make_scores: MakeScores) -> None:
    assert find(advise(make_scores(rates={BOUND: 40.4})), "fluid bound") == ""
    assert find(advise(make_scores(rates={f"sticky/{BOUND}": 42.0})), "fluid bound").endswith("in sticky (up to 0.20).")


def test_whoever_is_above_the_oracle_or_below_random_is_told(make_scores: MakeScores) -> None:
    usual = advise(make_scores())
    assert find(usual, "above the Whittle oracle:") == find(usual, "worse than random") == ""
    told = advise(make_scores(rates={"sticky/lagrange": 41.0, "two-state/ucwhittle": 29.0}))
    assert find(told, "above the Whittle oracle:").endswith("lagrange in sticky (1.10).")
    assert find(told, "worse than random").endswith("ucwhittle in two-state (−0.10).")


def test_an_interval_that_reaches_across_tells_nothing(make_scores: MakeScores) -> None:
    rates = {"two-state/ucwhittle": 29.0, "two-state/wiql": 40.5}
    sure, unsure = (advise(make_scores(rates=rates, shaky={"ucwhittle": spread, "wiql": spread})) for spread in (0, 9))
    for words in (("worse than random",), ("above the Whittle oracle:",), ("By step 1000", "better than lagrange:")):
        assert find(sure, *words)
        assert find(unsure, *words) == ""
    assert find(unsure, "By step 1000", "no policy is told to be better than lagrange")


def test_one_field_is_told_in_the_singular(make_scores: MakeScores) -> None:
    assert "in 1 of 1 field; no other is." in advise(make_scores(fields=["crowd"]))[0]
