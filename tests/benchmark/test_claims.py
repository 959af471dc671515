"""Verdicts on what `lagrange` was to reach follow the numbers."""

from collections.abc import Callable

import pytest

from restive.benchmark.claims import TARGETS, judge_targets
from restive.benchmark.ranking import Scores
from restive.paper.claims import FAILS, HOLDS, UNDECIDED, Claim

MakeScores = Callable[..., Scores]
FAMILIES = ("two-state", "two-state-noisy", "ten-state", "ten-state-noisy", "wireless", "wireless-noisy")


def judge(scores: Scores) -> dict[str, Claim]:
    return {claim.name: claim for claim in judge_targets(scores)}


@pytest.fixture
def judged(make_scores: MakeScores) -> Callable[..., dict[str, Claim]]:
    return lambda **settings: judge(make_scores(scenarios=FAMILIES, others=True, **settings))


def test_every_family_has_two_claims_with_all_six_settings(judged: Callable[..., dict[str, Claim]]) -> None:
    claims = judged(rates={"lagrange": 39.9})
    for target in TARGETS:
        for step in (100, 1000):
            claim = claims[f"lagrange-closes-{target.title}-{step}"]
            assert len({part.setting for part in claim.parts}) == 6
            assert all(part.setting.startswith(target.title) for part in claim.parts)
            assert claim.verdict == HOLDS
            assert claim.ours
            assert "settings" not in claim.sentence


@pytest.mark.parametrize(
    ("rate", "verdicts"),
    [(39.4, [HOLDS, HOLDS]), (38.0, [HOLDS, FAILS]), ((36.0, 40.0), [FAILS, HOLDS]), (33.0, [FAILS, FAILS])],
)
def test_a_share_is_reached_or_not(
    judged: Callable[..., dict[str, Claim]], rate: float | tuple[float, float], verdicts: list[str]
) -> None:
    claims = judged(rates={"lagrange": rate})
    assert [claims[f"lagrange-closes-two-state-{step}"].verdict for step in (100, 1000)] == verdicts


def test_the_mean_alone_does_not_decide(judged: Callable[..., dict[str, Claim]]) -> None:
    claim = judged(rates={"lagrange": 39.4}, shaky={"lagrange": 1.5})["lagrange-closes-two-state-1000"]
    assert all(part.value > 0.93 for part in claim.parts)
    assert claim.verdict == UNDECIDED


@pytest.mark.parametrize(("baseline", "other"), [("egt", "wiql"), ("wiql", "egt")])
def test_once_below_a_rival_in_one_setting_is_enough_to_fail(
    judged: Callable[..., dict[str, Claim]], baseline: str, other: str
) -> None:
    assert judged()[f"lagrange-never-below-{baseline}"].verdict == HOLDS
    claims = judged(rates={f"wireless-b20-noisy/{baseline}": (39.1, 36.0)})
    assert claims[f"lagrange-never-below-{baseline}"].verdict == FAILS
    assert claims[f"lagrange-never-below-{other}"].verdict == HOLDS


def test_without_a_choice_all_must_collect_the_same_to_the_bit(judged: Callable[..., dict[str, Claim]]) -> None:
    alike = {f"two-state-b{budget}/{policy}": 31.0 for budget in (0, 50) for policy in ("lagrange", "egt", "wiql")}
    assert judged(rates=alike)["lagrange-alike-without-a-choice"].verdict == HOLDS
    nearly = {**alike, "two-state-b50/wiql": 31.0 + 1e-9}
    assert judged(rates=nearly)["lagrange-alike-without-a-choice"].verdict == FAILS


def test_settings_without_a_choice_are_not_among_those_where_it_must_not_be_below(
    judged: Callable[..., dict[str, Claim]],
) -> None:
    settings = [part.setting for part in judged()["lagrange-never-below-egt"].parts]
    assert len(settings) == len(FAMILIES) + 20
    assert not any("B = 0," in setting or "B = 50," in setting for setting in settings)


def test_a_claim_says_how_many_of_its_settings_were_played_and_is_left_out_if_none_was(make_scores: MakeScores) -> None:
    claims = judge(make_scores(scenarios=["two-state", "crowd"]))
    assert claims["lagrange-closes-two-state-100"].sentence.endswith("(two-state, 1 of 6 settings).")
    assert claims["lagrange-never-below-egt"].sentence.endswith("(2 settings).")
    assert set(claims) == {
        "lagrange-closes-two-state-100",
        "lagrange-closes-two-state-1000",
        "lagrange-never-below-egt",
        "lagrange-never-below-wiql",
    }
