"""An agenda knows what is there and what is missing, and a report has what is complete."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from restive import InputError
from restive.paper.agenda import carry_out_agenda, complete, prepare
from restive.paper.experiment import Results, Size, Undertaking
from restive.paper.work import Work

SIZES = {"instances": 1, "agents": 3, "budget": 1, "seed": 0}
SIZE = Size(quick=True, seed=4)


def play(policy: str) -> Work:
    settings = {"family": "two-state-v1", "sizes": SIZES, "policy": policy, "horizon": 3, "runs": 1, "seed": 0}
    return Work("play", f"a game of {policy}", settings)


ONE = Undertaking("one", "Two policies.", lambda size: [play("random"), play("egt")])
TWO = Undertaking("two", "One of them again, and another.", lambda size: [play("egt"), play("wiql")])


def test_a_work_that_two_need_belongs_to_the_first_and_is_done_once(tmp_path: Path) -> None:
    agenda = prepare([ONE, TWO], [ONE, TWO], SIZE, tmp_path / "told.json")
    labels = {name: [work.label for work in works] for name, works in agenda.missing.items()}
    assert labels == {"one": ["a game of random", "a game of egt"], "two": ["a game of wiql"]}
    done: list[tuple[str, str]] = []
    with ThreadPoolExecutor(1) as executor:
        made = carry_out_agenda(agenda, tmp_path, executor, lambda name, work, seconds: done.append((name, work.label)))
    assert len(made) == len(list((tmp_path / "results").glob("*.parquet"))) == 3
    assert sorted(done) == [("one", "a game of egt"), ("one", "a game of random"), ("two", "a game of wiql")]
    assert prepare([TWO], [ONE, TWO], SIZE, tmp_path / "told.json").missing == {"two": []}


def test_what_was_not_asked_for_is_told_only_if_it_is_complete(tmp_path: Path) -> None:
    agenda = prepare([ONE], [ONE, TWO], SIZE, tmp_path / "told.json")
    with ThreadPoolExecutor(1) as executor:
        made = carry_out_agenda(agenda, tmp_path, executor, lambda name, work, seconds: None)
    assert list(complete([ONE], [ONE, TWO], SIZE, tmp_path, made)) == ["one"]
    assert list(complete([], [ONE, TWO], SIZE, tmp_path, {})) == ["one"]
    (found,) = complete([], [ONE, TWO], SIZE, tmp_path, {}).values()
    assert found[play("egt")]["step"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("there", [{"size": "full", "seed": 4}, {"size": "quick", "seed": 0}])
def test_a_report_of_another_size_or_seed_is_refused(there: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "told.json").write_text(json.dumps(there))
    with pytest.raises(InputError, match=r"holds the report of .* and this one would be of quick size and seed 4"):
        prepare([ONE], [ONE], SIZE, tmp_path / "told.json")
    assert prepare([ONE], [ONE], SIZE, tmp_path / "another.json").missing["one"]


def test_a_result_that_was_never_made_is_asked_for_in_vain_with_a_sentence() -> None:
    with pytest.raises(InputError, match="a game of egt: no such work was done; something was changed in between"):
        Results({})[play("egt")]
