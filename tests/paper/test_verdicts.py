"""Verdicts follow the numbers: made-up curves in which all is as the paper says, and then turned round."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from restive.files import Columns
from restive.paper import ablations, figures
from restive.paper.claims import FAILS, HOLDS, Claim
from restive.paper.jobs import Job, Results, Size
from restive.paper.reproduction import EXPERIMENTS
from restive.paper.tasks.simulation import recorded_steps, tabulate

QUICK = Size(quick=True)
# Reward per step of the paper's world; what is not named is as good as its policy.
RATES = {
    "bound": 41.0, "whittle-oracle": 40.0, "greedy-oracle": 39.0, "omr-oracle": 38.0, "threshold-oracle": 37.0,
    "egt": 36.0, "wiql": 34.0, "thompson-whittle": 31.0, "ucwhittle": 30.2, "rma2b": 30.1, "random": 30.0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _leave_figures_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (figures, ablations):
        monkeypatch.setattr(module, "draw_scoreboard", lambda *_: Figure())


def made_up(job: Job, rates: dict[str, float]) -> Columns:
    """Curves that rise in a straight line, a little higher in some instances than in others, alike for all policies."""
    settings = job.settings
    policy = settings.get("policy", job.task)
    rate = rates.get(policy, rates.get(policy.partition(":")[0], 0.0))
    instances = settings.get("instances", settings.get("sizes", {}).get("instances"))
    length = settings.get("horizon", 0) or settings["length"] * settings["episodes"]
    steps = (
        settings["length"] * np.arange(1, settings["episodes"] + 1) if "length" in settings else recorded_steps(length)
    )
    reward = (rate + 0.001 * np.arange(instances)[:, None]) * steps
    return tabulate(steps, reward=reward, cost=np.sqrt(steps) * np.ones((instances, 1)))


def examine(name: str, rates: dict[str, float], size: Size = QUICK) -> dict[str, Claim]:
    experiment = EXPERIMENTS[name]
    columns = {job.digest(): made_up(job, rates) for job in experiment.list_jobs(size)}
    return {claim.name: claim for claim in experiment.examine(size, Results(columns)).claims}


@pytest.mark.parametrize("name", ["two-state", "wireless", "ten-state"])
def test_in_the_papers_world_eps_gt_is_ahead_and_with_the_rates_exchanged_it_is_not(name: str) -> None:
    there = examine(name, RATES)
    exchanged = examine(name, {**RATES, "egt": 30.5, "wiql": 36.0, "ucwhittle": 35.0, "rma2b": 35.5})
    for baseline in ("wiql", "wiql-early", "random"):
        assert there[f"{name}-egt-above-{baseline}"].seen == HOLDS
    assert exchanged[f"{name}-egt-above-wiql"].seen == FAILS
    assert exchanged[f"{name}-egt-above-random"].seen == HOLDS
    assert there[f"{name}-under-the-bound"].verdict == HOLDS
    assert examine(name, {**RATES, "bound": 39.5})[f"{name}-under-the-bound"].verdict == FAILS


TURNED: list[tuple[str, str, dict[str, float]]] = [
    ("two-state", "two-state-egt-above-ucwhittle-noiseless", {"ucwhittle": 37.0}),
    ("two-state", "two-state-egt-above-rma2b-noisy", {"rma2b": 37.0}),
    ("two-state", "two-state-wiql-above-rma2b-noiseless", {"rma2b": 37.0}),
    ("two-state", "two-state-model-based-is-slow", {"thompson-whittle": 37.0}),
    ("two-state", "two-state-ucwhittle-near-random", {"ucwhittle": 33.0}),
    ("two-state", "two-state-rma2b-near-random", {"rma2b": 28.0}),
    ("two-state", "two-state-whittle-above-greedy", {"greedy-oracle": 40.5}),
    ("two-state", "two-state-omr-lowest", {"omr-oracle": 39.5}),
    ("wireless", "wireless-egt-nearer-its-oracle", {"wiql": 38.5}),
    ("overtaking", "egt-settles-below-whittle", {"egt": 40.5}),
    ("eta", "eta-insensitive-two-state", {"egt:eta=0.1": 33.0}),
    ("eta", "eta-insensitive-wireless", {"egt:eta=0.1": 37.5}),
    ("gamma", "gamma-low-is-best-ten-state", {"egt:gamma=4.5": 37.0}),
]


@pytest.mark.parametrize(("name", "claim", "turned"), TURNED, ids=[claim for _, claim, _ in TURNED])
def test_a_claim_that_holds_fails_when_its_numbers_are_turned(name: str, claim: str, turned: dict[str, float]) -> None:
    assert examine(name, RATES)[claim].seen == HOLDS
    assert examine(name, {**RATES, **turned})[claim].seen == FAILS


@pytest.mark.parametrize("gamma", ["-4.5", "0", "2.25", "4.5"])
def test_no_threshold_of_the_full_size_may_be_better_than_the_lowest(gamma: str) -> None:
    claim = "gamma-low-is-best-ten-state"
    assert examine("gamma", RATES, Size())[claim].seen == HOLDS
    assert examine("gamma", {**RATES, f"egt:gamma={gamma}": 37.0}, Size())[claim].seen == FAILS


def test_eps_gt_reaches_its_oracle_only_where_it_does() -> None:
    claim = "wireless-egt-reaches-its-oracle"
    assert examine("wireless", {**RATES, "egt": 38.9})[claim].seen == HOLDS
    assert examine("wireless", RATES)[claim].seen == FAILS


def test_a_higher_threshold_is_slower_only_where_it_is() -> None:
    higher = {"egt:gamma=0.5": 35.0, "egt:gamma=4.5": 35.0, "egt:gamma=0.05": 35.0}
    there, nowhere = examine("gamma", {**RATES, **higher}), examine("gamma", RATES)
    for claim in (name for name in there if name.startswith("gamma-higher")):
        assert there[claim].seen == HOLDS
        assert nowhere[claim].seen == FAILS  # no difference is no slower


def regrets(grow: Callable[[np.ndarray, float], np.ndarray]) -> dict[str, Claim]:
    """Claims of the regret curve when regret grows so with the steps, for each share of the threshold."""
    experiment = EXPERIMENTS["regret"]
    columns = {}
    for job in experiment.list_jobs(QUICK):
        made = made_up(job, RATES)
        made["cost"] = grow(made["step"], job.settings["share"]) * (1 + 0.001 * made["instance"])
        columns[job.digest()] = made
    return {claim.name: claim for claim in experiment.examine(QUICK, Results(columns)).claims}


def test_regret_is_judged_by_how_it_grows() -> None:
    flat = regrets(lambda steps, share: share * np.minimum(steps, 50.0))
    straight = regrets(lambda steps, share: (1 - share) * steps)
    assert [flat[f"regret-{claim}"].verdict for claim in ("sublinear", "flattens", "larger-for-smaller-gap")] == [
        HOLDS
    ] * 3
    assert straight["regret-sublinear"].verdict != HOLDS
    assert straight["regret-flattens"].verdict == FAILS
    assert straight["regret-larger-for-smaller-gap"].verdict == FAILS
