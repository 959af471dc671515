"""A dozen fields as plain data, all policies with the same instances and luck, and names that are found or refused."""

import json
from pathlib import Path

import pytest

from restive import POLICIES, PROBLEMS, InputError
from restive.benchmark.fields import (
    CONTESTANTS,
    CONTROLS,
    DUELLISTS,
    FIELDS,
    OTHER_BUDGETS,
    REQUIRED,
    check_policies,
    everyone,
    find_fields,
    undertakings,
)
from restive.paper.curves import two_state_scene
from restive.paper.experiment import Size
from restive.paper.tasks import TASKS, carry_out
from restive.policies import make_policy
from restive.policies.base import Learner


def test_there_are_a_dozen_fields_of_families_that_exist_each_with_a_sentence() -> None:
    assert len(FIELDS) == 12
    for name, field in {**FIELDS, **REQUIRED}.items():
        assert field.name == name
        assert field.family in PROBLEMS
    for field in FIELDS.values():
        assert field.about.endswith(".")
        assert len(field.about.split()) > 5


@pytest.mark.parametrize("size", [Size(), Size(quick=True)])
@pytest.mark.parametrize("name", undertakings())
def test_plans_are_plain_work(name: str, size: Size) -> None:
    works = undertakings()[name].plan(size)
    assert works
    assert all(work.task in TASKS for work in works)
    assert all(json.loads(json.dumps(work.settings)) == work.settings for work in works)


@pytest.mark.parametrize("name", FIELDS)
def test_everyone_meets_the_same_instances_with_the_same_luck(name: str) -> None:
    works = FIELDS[name].works(Size(), everyone())
    for setting in ("family", "sizes", "seed", "horizon"):
        assert len({json.dumps(work.settings[setting], sort_keys=True) for work in works}) == 1
    assert works[0].settings["sizes"]["instances"] == 50


def test_every_learner_of_the_registry_takes_part_and_no_oracle_is_ranked() -> None:
    assert set(CONTESTANTS) == {name for name in POLICIES if isinstance(make_policy(name), Learner)}
    assert all(isinstance(make_policy(policy), Learner) for policy in (*CONTESTANTS, *CONTROLS))
    assert set(DUELLISTS) <= {*CONTESTANTS, "whittle-oracle"}


def test_a_field_that_is_a_figure_of_the_paper_is_the_same_work() -> None:
    scene = two_state_scene(Size())
    assert FIELDS["two-state-noisy"].works(Size(), ["egt"])[0] == scene.work("egt", 10, 1.0)


def test_the_settings_of_the_claims_are_three_budgets_of_three_families_with_and_without_noise() -> None:
    found = {(field.family, field.budget, field.noise) for field in (*FIELDS.values(), *REQUIRED.values())}
    noises = {"two-state-v1": 1.0, "many-state-v1": 0.1, "wireless-v1": 0.1}
    wanted = {
        (family, budget, noise) for family, high in noises.items() for budget in (5, 10, 20) for noise in (0, high)
    }
    assert wanted | {("two-state-v1", 0, 0.0), ("two-state-v1", 50, 0.0)} <= found


def test_slow_policies_play_fewer_runs_where_there_are_ten_states() -> None:
    runs = {work.settings["policy"]: work.settings["runs"] for work in FIELDS["ten-state"].works(Size(), everyone())}
    assert (runs["egt"], runs["thompson-whittle"], runs["cet-whittle"]) == (13, 1, 1)
    quick = FIELDS["ten-state"].works(Size(quick=True), ["egt"])[0].settings
    assert (quick["runs"], quick["sizes"]["instances"]) == (2, 13)


def test_fields_are_found_in_their_order_and_unknown_ones_refused_with_the_nearest() -> None:
    known = undertakings()
    assert [each.name for each in find_fields(["sticky", "two-state"], known)] == ["two-state", "sticky"]
    assert [each.name for each in find_fields([], known)] == [*FIELDS, OTHER_BUDGETS]
    with pytest.raises(
        InputError, match=r"there is no field 'stiky'; there are two-state, .*; did you mean 'sticky'\?"
    ):
        find_fields(["stiky"], known)


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


def test_a_file_that_was_edited_is_other_work_and_is_not_played_as_what_it_was(
    tmp_path: Path, lowest_first: str
) -> None:
    own = tmp_path / "own.py"
    own.write_text(lowest_first)
    (before,) = FIELDS["two-state"].works(Size(quick=True), [str(own)])
    assert set(carry_out(before.task, {**before.settings, "horizon": 3}).columns) >= {"instance", "step", "reward"}
    own.write_text(lowest_first.replace("-state", "state"))
    (after,) = FIELDS["two-state"].works(Size(quick=True), [str(own)])
    assert before.digest() != after.digest()
    with pytest.raises(InputError, match=r"own\.py: was changed while it was to be played; run again"):
        carry_out(before.task, before.settings)
