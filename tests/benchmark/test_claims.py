"""Verdicts on what `lagrange` was to reach follow the numbers."""

from collections.abc import Callable

import pytest

from restive.benchmark.claims import TARGETS, judge_targets
from restive.benchmark.cost import Costs
from restive.benchmark.ranking import Scores
from restive.benchmark.scenarios import BASELINES, REQUIRED, SCENARIOS
from restive.paper.claims import FAILS, HOLDS, UNDECIDED, Claim

MakeScores = Callable[..., Scores]
FAMILIES = ("two-state", "two-state-noisy", "ten-state", "ten-state-noisy", "wireless", "wireless-noisy", "pharmacy")


def judge(scores: Scores) -> dict[str, Claim]:
    return {claim.name: claim for claim in judge_targets(scores)}


@pytest.fixture
def judged(make_scores: MakeScores) -> Callable[..., dict[str, Claim]]:
    return lambda **settings: judge(make_scores(scenarios=FAMILIES, others=True, **settings))


def test_every_target_has_a_claim_for_each_step_with_all_its_settings(make_scores: MakeScores) -> None:
    claims = judge(make_scores(scenarios=SCENARIOS, others=True, rates={"lagrange": 39.9}))
    settings = {"two-state": 6, "ten-state": 6, "normalized-rows": 3, "wireless-b20": 2, "sticky": 1, "pharmacy": 1}
    for target in TARGETS:
        for step, share in target.shares.items():
            claim = claims[f"lagrange-closes-{target.title}-{step}"]
            parts = {part.setting for part in claim.parts}
            assert len(parts) == len(claim.parts) == settings.get(target.title, len(parts))
            assert all(part.setting.startswith(target.kinds) for part in claim.parts)
            assert claim.agreement.low == share
            assert claim.verdict == HOLDS
            assert claim.ours
    assert len(claims["lagrange-closes-other-short-programs-10"].parts) == 5


@pytest.mark.parametrize(
    ("rate", "verdicts"),
    [(39.6, [HOLDS, HOLDS]), (38.2, [HOLDS, FAILS]), ((36.0, 40.0), [FAILS, HOLDS]), (33.0, [FAILS, FAILS])],
)
def test_a_share_is_reached_or_not(
    judged: Callable[..., dict[str, Claim]], rate: float | tuple[float, float], verdicts: list[str]
) -> None:
    claims = judged(rates={"lagrange": rate})
    assert [claims[f"lagrange-closes-two-state-{step}"].verdict for step in (100, 1000)] == verdicts


def test_the_mean_alone_does_not_decide(judged: Callable[..., dict[str, Claim]]) -> None:
    claim = judged(rates={"lagrange": 39.6}, shaky={"lagrange": 1.5})["lagrange-closes-two-state-1000"]
    assert all(part.value > 0.945 for part in claim.parts)
    assert claim.verdict == UNDECIDED


@pytest.mark.parametrize(("baseline", "other"), [("cet-whittle", "egt"), ("rma2b", "wiql")])
def test_once_below_another_learner_in_one_setting_is_enough_to_fail(
    judged: Callable[..., dict[str, Claim]], baseline: str, other: str
) -> None:
    assert judged()[f"lagrange-never-below-{baseline}"].verdict == HOLDS
    claims = judged(rates={f"wireless-b20-noisy/{baseline}": (39.1, 36.0)})
    assert claims[f"lagrange-never-below-{baseline}"].verdict == FAILS
    assert claims[f"lagrange-never-below-{other}"].verdict == HOLDS


def test_without_a_choice_all_must_collect_the_same_to_the_bit(judged: Callable[..., dict[str, Claim]]) -> None:
    alike = {f"two-state-b{budget}/{policy}": 31.0 for budget in (0, 50) for policy in ("lagrange", *BASELINES)}
    assert judged(rates=alike)["lagrange-alike-without-a-choice"].verdict == HOLDS
    nearly = {**alike, "two-state-b50/rma2b": 31.0 + 1e-9}
    assert judged(rates=nearly)["lagrange-alike-without-a-choice"].verdict == FAILS


def test_settings_without_a_choice_are_not_among_those_where_it_must_not_be_below(
    judged: Callable[..., dict[str, Claim]],
) -> None:
    settings = [part.setting for part in judged()["lagrange-never-below-egt"].parts]
    assert len(settings) == len(FAMILIES) + len(REQUIRED) - 2
    assert not any("B = 0," in setting or "B = 50," in setting for setting in settings)


def test_a_claim_says_how_many_of_its_settings_were_played_and_is_left_out_if_none_was(make_scores: MakeScores) -> None:
    claims = judge(make_scores(scenarios=["two-state", "crowd"]))
    assert claims["lagrange-closes-two-state-100"].sentence.endswith("(two-state, 1 setting).")
    assert claims["lagrange-never-below-egt"].sentence.endswith("(2 settings).")
    assert set(claims) == {
        "lagrange-closes-two-state-100",
        "lagrange-closes-two-state-1000",
        *(f"lagrange-never-below-{policy}" for policy in BASELINES),
    }


def test_the_remark_counts_the_leads_and_those_that_are_below(make_scores: MakeScores) -> None:
    scores = make_scores(scenarios=["two-state", "pharmacy"], rates={"pharmacy/egt": 39.5})
    claim = judge(scores)["lagrange-never-below-egt"]
    assert claim.remark.startswith("Of 10 leads, one for each setting and step, 4 are significantly below 0.")


@pytest.mark.parametrize(("ratio", "verdict"), [(5.9, HOLDS), (6.1, FAILS)])
def test_the_cost_is_judged_where_it_was_measured(make_scores: MakeScores, ratio: float, verdict: str) -> None:
    scores = make_scores(scenarios=["crowd"])
    assert not any("cost" in claim.name for claim in judge_targets(scores))
    claims = judge_targets(scores, Costs({10: {"egt": 40.0, "lagrange": 40.0 * ratio}}))
    assert [(claim.name, claim.verdict) for claim in claims if "cost" in claim.name] == [("lagrange-cost-10", verdict)]
