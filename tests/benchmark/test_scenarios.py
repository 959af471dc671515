"""Scenarios as plain data, policies with the same random numbers, and names that are found or refused."""

import json
from pathlib import Path

import pytest

from restive import POLICIES, PROBLEMS, InputError
from restive.benchmark.scenarios import (
    CLAIM_POLICIES,
    CONTROLS,
    OTHER_BUDGETS,
    RANKED,
    REQUIRED,
    SCENARIOS,
    UNRANKED,
    all_policies,
    check_policies,
    find_scenarios,
    plans,
)
from restive.paper.curves import two_state_setup
from restive.paper.jobs import Size, run_job
from restive.paper.tasks import TASKS
from restive.policies import make_policy
from restive.policies.base import Learner
from restive.problems.domains import DOMAINS


def test_scenarios_are_of_families_that_exist_and_each_has_a_sentence() -> None:
    assert len(SCENARIOS) >= 19
    for name, scenario in {**SCENARIOS, **REQUIRED}.items():
        assert scenario.name == name
        assert scenario.family in PROBLEMS
        assert {10, scenario.early, scenario.horizon} <= set(scenario.steps)
        states = {problem.shape[1] for problem in PROBLEMS[scenario.family](instances=1, agents=2, budget=1)}
        assert states == {scenario.states}
    for scenario in SCENARIOS.values():
        assert scenario.about.endswith(".")
        assert len(scenario.about.split()) > 5


@pytest.mark.parametrize("size", [Size(), Size(quick=True)])
@pytest.mark.parametrize("name", plans())
def test_plans_are_lists_of_jobs(name: str, size: Size) -> None:
    jobs = plans()[name].list_jobs(size)
    assert jobs
    assert all(job.task in TASKS for job in jobs)
    assert all(json.loads(json.dumps(job.settings)) == job.settings for job in jobs)


@pytest.mark.parametrize("name", SCENARIOS)
def test_all_policies_get_the_same_instances_and_random_numbers(name: str) -> None:
    jobs = SCENARIOS[name].jobs(Size(), all_policies())
    for setting in ("family", "sizes", "seed", "horizon"):
        assert len({json.dumps(job.settings[setting], sort_keys=True) for job in jobs}) == 1
    assert jobs[0].settings["sizes"]["instances"] == 50


def test_every_learner_of_the_registry_is_ranked_or_said_not_to_be_and_no_oracle_is() -> None:
    assert {*RANKED, *UNRANKED} == {name for name in POLICIES if isinstance(make_policy(name), Learner)}
    assert all(isinstance(make_policy(policy), Learner) for policy in (*RANKED, *CONTROLS))
    assert set(CLAIM_POLICIES) <= {*RANKED, "whittle-oracle"}


def test_a_scenario_that_is_a_figure_of_the_paper_has_the_same_jobs() -> None:
    setup = two_state_setup(Size())
    assert SCENARIOS["two-state-noisy"].jobs(Size(), ["egt"])[0] == setup.job("egt", 10, 1.0)


def test_the_settings_of_the_claims_are_three_budgets_of_three_families_with_and_without_noise() -> None:
    found = {
        (scenario.family, scenario.budget, scenario.noise) for scenario in (*SCENARIOS.values(), *REQUIRED.values())
    }
    noises = {"two-state-v1": 1.0, "many-state-v1": 0.1, "wireless-v1": 0.1}
    wanted = {
        (family, budget, noise) for family, high in noises.items() for budget in (5, 10, 20) for noise in (0, high)
    }
    assert wanted | {("two-state-v1", 0, 0.0), ("two-state-v1", 50, 0.0)} <= found


def test_every_template_family_of_the_paper_is_a_short_program_of_200_people() -> None:
    for domain in DOMAINS[:6]:
        scenario = SCENARIOS[domain.name.removesuffix("-v1")]
        size = (scenario.family, scenario.agents, scenario.budget, scenario.horizon)
        assert size == (domain.name, 200, 20, 100)
        assert {10, 30, 100} <= set(scenario.steps)


@pytest.mark.parametrize(("name", "missing", "delay"), [("missing-states", 0.2, 0), ("late-rewards", 0.0, 10)])
def test_what_policies_cannot_observe_is_the_same_for_all_and_for_the_oracle(
    name: str, missing: float, delay: int
) -> None:
    jobs = SCENARIOS[name].jobs(Size(quick=True), all_policies())
    assert {(job.settings.get("missing", 0.0), job.settings.get("delay", 0)) for job in jobs} == {(missing, delay)}
    job = SCENARIOS[name].jobs(Size(quick=True), ["egt"])[0]
    sizes = {**job.settings["sizes"], "instances": 2}
    small = {**job.settings, "sizes": sizes, "horizon": 60}
    plain = {key: value for key, value in small.items() if key not in ("missing", "delay")}
    observed, all_seen = (run_job(job.task, each).columns["reward"] for each in (small, plain))
    assert (observed != all_seen).any()


def test_slow_policies_play_fewer_runs_where_there_are_ten_states() -> None:
    runs = {job.settings["policy"]: job.settings["runs"] for job in SCENARIOS["ten-state"].jobs(Size(), all_policies())}
    assert (runs["egt"], runs["thompson-whittle"], runs["cet-whittle"]) == (13, 1, 1)
    quick = SCENARIOS["ten-state"].jobs(Size(quick=True), ["egt"])[0].settings
    assert (quick["runs"], quick["sizes"]["instances"]) == (2, 13)


def test_scenarios_are_found_in_their_order_and_unknown_ones_refused_with_the_nearest() -> None:
    known = plans()
    assert [each.name for each in find_scenarios(["sticky", "two-state"], known)] == ["two-state", "sticky"]
    assert [each.name for each in find_scenarios([], known)] == [*SCENARIOS, OTHER_BUDGETS]
    with pytest.raises(
        InputError, match=r"there is no scenario 'stiky'; there are two-state, .*; did you mean 'sticky'\?"
    ):
        find_scenarios(["stiky"], known)


def test_extra_policies_are_played_once_and_only_where_they_can_be() -> None:
    assert check_policies(["egt:eta=0.5", "egt", "egt:eta=0.5"], "threads") == ("egt:eta=0.5",)
    with pytest.raises(InputError, match=r"greedy-oracle: an oracle knows the model"):
        check_policies(["greedy-oracle"], "threads")
    with pytest.raises(InputError, match=r"there is no policy 'egtt'.*did you mean 'egt'"):
        check_policies(["egtt"], "threads")


def test_a_file_of_ones_own_is_refused_where_its_workers_do_not_have_it(tmp_path: Path, lowest_first: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(lowest_first)
    assert check_policies([str(own)], "dask") == (str(own),)
    with pytest.raises(InputError, match=r"own\.py: the workers at dask://far:8786 do not have that file"):
        check_policies([str(own)], "dask://far:8786")


def test_a_file_that_was_edited_is_another_job(tmp_path: Path, lowest_first: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(lowest_first)
    (before,) = SCENARIOS["two-state"].jobs(Size(quick=True), [str(own)])
    assert set(run_job(before.task, {**before.settings, "horizon": 3}).columns) >= {"instance", "step", "reward"}
    own.write_text(lowest_first.replace("-state", "state"))
    (after,) = SCENARIOS["two-state"].jobs(Size(quick=True), [str(own)])
    assert before.digest() != after.digest()
    with pytest.raises(InputError, match=r"own\.py: changed during the run; run again"):
        run_job(before.task, before.settings)
