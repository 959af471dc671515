"""Tables and sentences say what the numbers say."""

from collections.abc import Callable

import pytest

from restive.benchmark import summary
from restive.benchmark.cost import Costs
from restive.benchmark.ranking import BOUND, Scores
from restive.benchmark.scenarios import LATE, RANKED
from restive.benchmark.summary import (
    advise,
    describe_ranking,
    tabulate_controls,
    tabulate_costs,
    tabulate_gaps,
    tabulate_left,
    tabulate_ranks,
)

MakeScores = Callable[..., Scores]


def test_ranks_have_scenarios_down_policies_across_marks_and_means(make_scores: MakeScores) -> None:
    table = tabulate_ranks(make_scores(rates={"sticky/egt": 39.0}), LATE)
    across = dict(zip(table.heads, zip(*table.rows, strict=True), strict=True))
    assert across["scenario"] == ("two-state", "ten-state", "sticky", "mean rank")
    assert across["lagrange"] == ("1*", "1*", "1*", "1.00")
    assert across["egt"] == ("4", "4", "1*", "3.00")
    assert across["thompson-whittle"] == ("2", "2", "3", "2.33")


def test_gaps_have_the_reported_steps_the_oracle_and_the_bound(make_scores: MakeScores) -> None:
    table = tabulate_gaps(make_scores(rates={BOUND: 41.0}, shaky={"wiql": 2.0}).scenarios["sticky"])
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.heads == ("policy", "t = 10", "t = 30", "t = 50", "t = 100", "t = 300", "t = 1000")
    assert rows["random"] == ("0",) * 6
    assert rows["whittle-oracle"] == ("1",) * 6
    assert rows["lagrange"] == ("0.90 [0.90, 0.90]",) * 6
    assert rows[BOUND] == ("1.10 [1.10, 1.10]",) * 6
    low, high = (float(part) for part in rows["wiql"][0].partition("[")[2].strip("]").split(", "))
    assert low < 0.4 < high


def test_where_there_is_no_gap_there_is_a_dash(make_scores: MakeScores) -> None:
    table = tabulate_gaps(make_scores(rates={"whittle-oracle": 30.0}).scenarios["sticky"])
    assert {row[1] for row in table.rows if row[0] == "egt"} == {"–"}


def test_controls_are_shown_by_what_they_are_behind(make_scores: MakeScores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "CONTROLS", ("cet-whittle",))
    early, late = tabulate_controls(make_scores(rates={"sticky/cet-whittle": 40.0}))
    assert early.heads == late.heads == ("scenario", "cet-whittle")
    assert [row[1].split()[0] for row in late.rows] == ["0.20", "0.20", "−0.10"]
    assert "100" in early.title
    assert "1000" in late.title


def test_what_is_left_is_shown_where_there_are_references(make_scores: MakeScores) -> None:
    table = tabulate_left(make_scores(scenarios=["sticky", "change"], rates={"sticky/informed prior": 38.0}), LATE)
    assert table is not None
    ((name, *cells),) = table.rows
    assert name == "sticky"
    assert [cell.split()[0] for cell in cells] == ["0.90", "0.98", "0.80", "0.08", "−0.10"]
    assert tabulate_left(make_scores(scenarios=["change"]), LATE) is None


def test_costs_have_nanoseconds_and_their_ratio_to_eps_gt() -> None:
    table = tabulate_costs(Costs({2: {"egt": 20.0, "wiql": 15.0}, 10: {"egt": 40.0, "wiql": 100.4}}), "a machine")
    assert table.heads[0] == "policy"
    assert table.rows == (("egt", "20", "1.0", "40", "1.0"), ("wiql", "15", "0.8", "100", "2.5"))
    assert table.note.endswith("a machine.")


CHEAP = Costs({states: {policy: 10.0 * place for place, policy in enumerate(RANKED, 1)} for states in (2, 10)})


def find(sentences: list[str], *words: str) -> str:
    """The one sentence with all these words, or nothing."""
    found = [sentence for sentence in sentences if all(word in sentence for word in words)]
    assert len(found) <= 1
    return "".join(found)


def test_a_scenario_is_described_by_its_best_early_and_late_and_the_lead_over_eps_gt(make_scores: MakeScores) -> None:
    scores = make_scores(rates={"cet-whittle": (39.5, 37.0)})
    assert describe_ranking(scores.scenarios["two-state"]) == (
        "By step 100 cet-whittle is best with 0.95 of the gap, 0.35 [0.35, 0.35] above egt. "
        "By step 1000 lagrange is best with 0.90 of the gap, 0.30 [0.30, 0.30] above egt."
    )


def test_a_scenario_names_policies_that_are_tied_and_does_not_hold_eps_gt_against_itself(
    make_scores: MakeScores,
) -> None:
    text = describe_ranking(make_scores(rates={"egt": 39.5}, shaky={"wiql": 20.0, "lagrange": 3.0}).scenarios["sticky"])
    assert "By step 1000 egt is best with 0.95 of the gap; lagrange and wiql are not significantly worse." in text


@pytest.mark.parametrize(("rate", "first"), [(39.0, "lagrange"), (37.5, "thompson-whittle")])
def test_who_is_most_often_best_is_counted(make_scores: MakeScores, rate: float, first: str) -> None:
    text = advise(make_scores(rates={"lagrange": rate, "sticky/wiql": 39.9}))
    assert (
        f"By step 1000 {first} is best or not significantly worse than the best in 2 of 3 scenarios; next is wiql with 1."
        in text
    )


def test_scenarios_in_which_others_are_better_are_named_with_the_lead(make_scores: MakeScores) -> None:
    text = advise(make_scores(rates={"sticky/wiql": (30.0, 41.0), "ten-state/egt": (30.0, 40.6)}))
    better = find(text, "By step 1000", "better than lagrange:")
    assert better.endswith("better than lagrange: egt in ten-state (by 0.05); wiql in sticky (by 0.09).")
    assert "By step 100 no policy is significantly better than lagrange in any scenario." in text


def test_scenarios_in_which_others_are_as_good_are_named(make_scores: MakeScores) -> None:
    assert find(advise(make_scores()), "By step 1000", "like lagrange") == ""
    text = advise(make_scores(rates={"sticky/wiql": 39.0, "sticky/egt": 39.0, "two-state/egt": 39.0}))
    assert find(text, "By step 1000", "like lagrange").endswith("egt in two-state and sticky; wiql in sticky.")


def test_the_cheapest_of_those_near_the_best_follows_the_cost_and_the_shares(make_scores: MakeScores) -> None:
    near = make_scores(rates={"thompson-whittle": 38.85, "sticky/egt": 38.9})
    text = find(advise(near, CHEAP), "cheapest")
    assert text.endswith("by step 1000: thompson-whittle in two-state and ten-state; egt in sticky.")
    dear = {states: {**taken, "thompson-whittle": 1e6} for states, taken in CHEAP.nanoseconds.items()}
    assert find(advise(near, Costs(dear)), "cheapest").endswith("lagrange in two-state and ten-state; egt in sticky.")
    assert find(advise(near), "cheapest") == ""


def test_costs_are_those_of_the_number_of_states(make_scores: MakeScores) -> None:
    ten = {**CHEAP.nanoseconds[10], "lagrange": 1.0}
    near = make_scores(rates={"thompson-whittle": 38.85})
    text = find(advise(near, Costs({2: CHEAP.nanoseconds[2], 10: ten})), "cheapest")
    assert text.endswith("thompson-whittle in two-state and sticky; lagrange in ten-state.")


def test_scenarios_in_which_no_policy_closes_half_of_the_gap_are_named(make_scores: MakeScores) -> None:
    assert find(advise(make_scores()), "half") == ""
    low = {f"sticky/{policy}": (31.0, 34.0) for policy in RANKED if policy != "random"}
    text = advise(make_scores(rates=low))
    assert "By step 100 no policy closes half of the gap in sticky (at most 0.10)." in text
    assert "By step 1000 no policy closes half of the gap in sticky (at most 0.37)." in text


def test_what_is_left_above_the_oracle_is_named_where_it_is_much(make_scores: MakeScores) -> None:
    assert find(advise(make_scores(rates={BOUND: 40.4})), "fluid bound") == ""
    assert find(advise(make_scores(rates={f"sticky/{BOUND}": 42.0})), "fluid bound").endswith("in sticky (up to 0.20).")


def test_policies_above_the_oracle_or_below_random_are_named(make_scores: MakeScores) -> None:
    usual = advise(make_scores())
    assert find(usual, "above the Whittle oracle:") == find(usual, "worse than random") == ""
    text = advise(make_scores(rates={"sticky/lagrange": 41.0, "two-state/ucwhittle": 29.0}))
    assert find(text, "above the Whittle oracle:").endswith("lagrange in sticky (1.10).")
    assert find(text, "worse than random").endswith("ucwhittle in two-state (−0.10).")


def test_an_interval_that_reaches_across_says_nothing(make_scores: MakeScores) -> None:
    rates = {"two-state/ucwhittle": 29.0, "two-state/wiql": 40.5}
    sure, unsure = (advise(make_scores(rates=rates, shaky={"ucwhittle": spread, "wiql": spread})) for spread in (0, 9))
    for words in (("worse than random",), ("above the Whittle oracle:",), ("By step 1000", "better than lagrange:")):
        assert find(sure, *words)
        assert find(unsure, *words) == ""
    assert find(unsure, "By step 1000", "no policy is significantly better than lagrange")


def test_one_scenario_is_described_in_the_singular(make_scores: MakeScores) -> None:
    assert "in 1 of 1 scenario; no other policy is." in advise(make_scores(scenarios=["crowd"]))[0]


def test_short_programs_are_described_by_their_own_steps(make_scores: MakeScores) -> None:
    scores = make_scores(scenarios=["two-state", "pharmacy"], rates={"pharmacy/egt": (39.5, 0.0)})
    assert "By step 30 egt is best with 0.95 of the gap" in describe_ranking(scores.scenarios["pharmacy"])
    text = find(advise(scores), "By step 1000 (100 in shorter programs)", "better than lagrange:")
    assert text.endswith("egt in pharmacy (by 0.05).")
    assert tabulate_ranks(scores, LATE).title == "Ranks by step 1000 (100 in shorter programs)"
