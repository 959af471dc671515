"""Every experiment plans plain work and is told of; names are found or refused."""

import json

import pytest

from restive import InputError
from restive.paper.catalogue import EXPERIMENTS, find_experiments
from restive.paper.experiment import Size
from restive.paper.tasks import TASKS


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_plans_are_plain_data_and_the_quick_one_is_lighter(name: str) -> None:
    weights = []
    for size in (Size(), Size(quick=True)):
        works = EXPERIMENTS[name].plan(size)
        assert works
        assert all(work.task in TASKS for work in works)
        assert all(json.loads(json.dumps(work.settings)) == work.settings for work in works)
        weights.append(sum(work.weight for work in works))
    assert weights[1] <= weights[0]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_another_seed_is_other_work(name: str) -> None:
    plans = [EXPERIMENTS[name].plan(Size(seed=seed)) for seed in (0, 1)]
    one, two = ({work.digest() for work in plan if "seed" in work.settings} for plan in plans)
    assert not one & two


def test_no_two_works_of_different_settings_share_a_file() -> None:
    works = [work for each in EXPERIMENTS.values() for work in each.plan(Size())]
    files = {work.file_name(): work.spec() for work in works}
    assert all(files[work.file_name()] == work.spec() for work in works)


def test_names_are_found_in_the_order_of_the_catalogue() -> None:
    assert [each.name for each in find_experiments(["regret", "two-state", "regret"])] == ["two-state", "regret"]
    assert find_experiments([]) == find_experiments(["all"]) == list(EXPERIMENTS.values())
    assert find_experiments(["all", "regret"]) == list(EXPERIMENTS.values())


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"there is no experiment 'gama'; there are two-state, .*; did you mean 'gamma'\?"
    ):
        find_experiments(["two-state", "gama"])
