"""What `lagrange` is to reach, as claims: shares of the gap by certain steps, and never less than eps-GT or WIQL.

The ranges were set before anything was measured. A part holds by the rule of `restive.paper.claims`: its whole
95% interval, not only its mean, has to be in the range. That a policy is never below another is judged at the step that
is worst for it, of all that were kept from step 20 on: one step whose whole interval is below 0 is enough to fail.
"""

from collections.abc import Callable
from typing import NamedTuple

from restive.benchmark.fields import HERO
from restive.benchmark.scores import EARLY, LATE, NOT_BELOW, SETTLED, Match, Scores
from restive.paper.claims import OURS, Claim, Range, exact
from restive.paper.curves import AGENTS, BUDGETS
from restive.paper.standings import SHARE

RIVALS = ("egt", "wiql")


class Target(NamedTuple):
    """How much of the gap is to be closed in a family, at three budgets with and without noise."""

    title: str
    family: str
    early: float
    late: float


TARGETS = (
    Target("two-state", "two-state-v1", 0.76, 0.93),
    Target("ten-state", "many-state-v1", 0.25, 0.60),
    Target("wireless", "wireless-v1", 0.40, 0.65),
)


def judge_targets(scores: Scores) -> tuple[Claim, ...]:
    """All claims for which anything was played."""
    claims = (
        *(_closes(scores, target, step) for target in TARGETS for step in (EARLY, LATE)),
        *(_never_below(scores, rival) for rival in RIVALS),
        _alike(scores),
    )
    return tuple(claim for claim in claims if claim.parts)


def _closes(scores: Scores, target: Target, step: int) -> Claim:
    played = _settings(scores, lambda match: _is_of(match, target))
    share, wanted = target.early if step == EARLY else target.late, 2 * len(BUDGETS)
    some = "" if len(played) == wanted else f", {len(played)} of {wanted} settings"
    return Claim(
        name=f"{HERO}-closes-{target.title}-{step}",
        sentence=f"{HERO} closes at least {share:g} of the gap by step {step} ({target.title}{some}).",
        place=OURS,
        quantity=f"gap closed by {HERO} at step {step}, {SHARE}",
        agreement=Range(share, float("inf")),
        parts=tuple(match.gap_closed(HERO, step) for match in played),
    )


def _never_below(scores: Scores, rival: str) -> Claim:
    played = _settings(scores, lambda match: not _forced(match))
    return Claim(
        name=f"{HERO}-never-below-{rival}",
        sentence=f"{HERO} is never below {rival}, at no step from {SETTLED} on ({_many(len(played))}).",
        place=OURS,
        quantity=f"lead of {HERO} over {rival} at the step that is worst for it, {SHARE}",
        agreement=NOT_BELOW,
        parts=tuple(match.lowest_lead(HERO, rival) for match in played),
        remark="Each of some hundred steps has its own 95% interval, so a policy that is as good may fail by chance.",
    )


def _alike(scores: Scores) -> Claim:
    played = _settings(scores, _forced)
    return Claim(
        name=f"{HERO}-alike-without-a-choice",
        sentence="Where nobody or everybody is acted on, all collect the same.",
        place=OURS,
        quantity=f"largest difference of reward from {HERO}, over instances and steps",
        agreement=Range(0.0, 0.0),
        parts=tuple(
            exact(f"{match.field.setting()}, {rival}", match.largest_difference(HERO, rival))
            for match in played
            for rival in RIVALS
        ),
    )


def _many(settings: int) -> str:
    return "1 setting" if settings == 1 else f"{settings} settings"


def _settings(scores: Scores, wanted: Callable[[Match], bool]) -> list[Match]:
    return list(filter(wanted, scores.everywhere()))


def _forced(match: Match) -> bool:
    """Whether there is nothing to choose."""
    return match.field.budget in (0, match.field.agents)


def _is_of(match: Match, target: Target) -> bool:
    field = match.field
    return field.family == target.family and field.agents == AGENTS and field.budget in BUDGETS
