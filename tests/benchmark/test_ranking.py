"""Ranks, ties and leads of made-up curves, where they are known beforehand."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from restive.benchmark.ranking import BOUND, NOT_BELOW, Scores, reduce_noise
from restive.benchmark.scenarios import EARLY, LATE, REQUIRED, SCENARIOS
from restive.paper.claims import FAILS, HOLDS, UNDECIDED
from restive.paper.curves import Curve
from restive.paper.jobs import Size

MakeScores = Callable[..., Scores]
FIRST, LAST = 100, 1000


def test_the_gap_closed_is_a_share_from_random_to_the_oracle(make_scores: MakeScores) -> None:
    result = make_scores(rates={BOUND: 41.0}).scenarios["two-state"]
    shares = {"random": 0.0, "egt": 0.6, "lagrange": 0.9, "whittle-oracle": 1.0, BOUND: 1.1}
    for policy, share in shares.items():
        assert [result.gap_closed(policy, step).value for step in (10, 100, 1000)] == pytest.approx([share] * 3)


def test_ranks_count_policies_that_are_significantly_better(make_scores: MakeScores) -> None:
    result = make_scores(rates={"egt": 38.0}).scenarios["two-state"]
    ranks = {policy: place.rank for policy, place in result.places(LAST).items()}
    assert ranks == {
        "lagrange": 1, "egt": 2, "thompson-whittle": 2, "cet-whittle": 4, "wiql": 5, "rma2b": 6, "ucwhittle": 7,
        "random": 8,
    }  # fmt: skip
    assert [policy for policy, place in result.places(LAST).items() if place.tied] == ["lagrange"]


def test_a_policy_that_is_not_significantly_worse_than_the_best_shares_its_rank(make_scores: MakeScores) -> None:
    sure, unsure = (make_scores(shaky={"cet-whittle": shaky}).scenarios["sticky"] for shaky in (0.1, 6.0))
    assert sure.tied(LAST) == ["lagrange"]
    assert unsure.tied(LAST) == ["lagrange", "cet-whittle"]
    assert unsure.places(LAST)["cet-whittle"].rank == 1
    assert unsure.places(LAST)["lagrange"].rank == 1


def test_the_best_may_change_with_the_step_and_the_scenario(make_scores: MakeScores) -> None:
    scores = make_scores(rates={"egt": (39.5, 36.0), "sticky/wiql": 39.9})
    assert [scores.scenarios["two-state"].best(step) for step in (FIRST, LAST)] == ["egt", "lagrange"]
    assert scores.scenarios["sticky"].best(FIRST) == "wiql"


def test_extra_policies_are_ranked_too(make_scores: MakeScores) -> None:
    scores = make_scores(extra=("egt:eta=0.5",), rates={"egt:eta=0.5": 39.9})
    assert scores.policies[-1] == "egt:eta=0.5"
    assert scores.scenarios["two-state"].best(LAST) == "egt:eta=0.5"


def test_the_lowest_lead_is_that_of_the_worst_step(make_scores: MakeScores) -> None:
    result = make_scores(rates={"lagrange": (35.0, 39.0)}).scenarios["two-state"]
    worst = result.lowest_lead("lagrange", "egt")
    assert worst.setting == "two-state, B = 10, noiseless, t = 10"
    assert worst.value == pytest.approx(-0.1)
    assert result.lowest_lead("lagrange", "random").value == pytest.approx(0.5)


def test_a_step_that_fails_counts_before_a_lower_one_that_is_unsure(make_scores: MakeScores) -> None:
    result = make_scores().scenarios["two-state"]
    curve, swing = result.curves["egt"], np.where(np.arange(13) % 2, 90.0, -90.0)[:, None]
    below = np.where(curve.steps <= 50, -5.0 + swing, np.where(curve.steps == 300, -0.1, 1.0))
    result.curves["lagrange"] = curve._replace(reward=curve.reward + below * curve.steps)
    worst = result.lowest_lead("lagrange", "egt")
    assert worst.setting.endswith("t = 300")
    assert worst.judge(NOT_BELOW) == FAILS


@pytest.mark.parametrize(("rate", "shaky", "verdict"), [(36.5, 0.1, HOLDS), (36.5, 9.0, UNDECIDED), (35.5, 0.1, FAILS)])
def test_a_lead_is_judged_by_its_whole_interval(
    make_scores: MakeScores, rate: float, shaky: float, verdict: str
) -> None:
    result = make_scores(rates={"lagrange": rate}, shaky={"lagrange": shaky}).scenarios["two-state"]
    assert result.lowest_lead("lagrange", "egt").judge(NOT_BELOW) == verdict


def test_where_there_is_no_gap_there_is_no_share_and_all_are_first(make_scores: MakeScores) -> None:
    result = make_scores(rates={"whittle-oracle": 30.0}).scenarios["two-state"]
    assert math.isnan(result.gap_closed("egt", LAST).value)
    assert {place.rank for place in result.places(LAST).values()} == {1}


def test_other_settings_are_there_if_they_were_played(make_scores: MakeScores) -> None:
    assert make_scores().others == {}
    played = make_scores(others=True)
    assert len(played.all_results()) == 3 + len(REQUIRED)
    assert played.others["two-state-b0"].largest_difference("lagrange", "egt") == pytest.approx(3000.0)
    assert played.others["two-state-b0"].largest_difference("egt", "egt") == 0.0


def test_a_stage_is_a_step_of_each_scenario_and_those_of_shorter_programs_are_named(make_scores: MakeScores) -> None:
    scores = make_scores(scenarios=["two-state", "pharmacy"])
    assert [scores.show_step(stage) for stage in (EARLY, LATE)] == [
        "step 100 (30 in shorter programs)",
        "step 1000 (100 in shorter programs)",
    ]
    assert make_scores(scenarios=["pharmacy"]).show_step(LATE) == "step 100"


def test_leads_are_those_of_the_reported_steps_of_the_scenario(make_scores: MakeScores) -> None:
    scores = make_scores(scenarios=["two-state", "pharmacy"])
    for name, steps in (("two-state", (10, 30, 50, 100, 300, 1000)), ("pharmacy", (10, 30, 50, 100))):
        leads = scores.scenarios[name].leads("lagrange", "egt")
        assert [int(lead.setting.rpartition(" ")[2]) for lead in leads] == list(steps)
        assert [lead.value for lead in leads] == pytest.approx([0.3] * len(steps))


def test_noise_that_is_shared_with_random_in_as_few_runs_is_taken_off() -> None:
    noise = np.random.default_rng(3).normal(0, 5, (2, 40, 1))
    level = np.linspace(10, 20, 40)[:, None]
    many, few, own = (
        Curve(np.array([1]), reward, reward)
        for reward in (level, level + noise[0], level + 2 + 0.8 * noise[0] + 0.1 * noise[1])
    )
    lead = reduce_noise(own, few, many).reward - many.reward
    assert lead.mean() == pytest.approx(2, abs=0.3)
    assert lead.std() < 0.2 * (own.reward - many.reward).std()
    np.testing.assert_array_equal(reduce_noise(own, many, many).reward, own.reward)


def test_policies_with_fewer_runs_are_compared_with_random_in_as_few(make_scores: MakeScores) -> None:
    jobs = SCENARIOS["ten-state"].floor_jobs(Size())
    assert {runs: job.settings["runs"] for runs, job in jobs.items()} == {1: 1}
    assert SCENARIOS["ten-state"].runs_of("cet-whittle", Size()) == SCENARIOS["ten-state"].runs_of(
        "informed prior", Size()
    )
    assert make_scores().scenarios["ten-state"].gap_closed("cet-whittle", LAST).value == pytest.approx(0.7)
