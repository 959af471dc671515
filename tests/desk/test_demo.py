"""The demo: simulated people through the real verbs, the same each time."""

import json
from pathlib import Path

import numpy as np
import pytest

from restive.desk import Desk, Program
from restive.desk.config import TEMPLATES, find_template
from restive.desk.demo import Population, run_demo
from restive.desk.replay import digest, replay
from restive.desk.status import get_status
from restive.errors import InputError


def play(folder: Path, name: str = "demo", seed: int = 7) -> Program:
    folder.mkdir()
    return run_demo(Desk(folder / "desk.db"), name, agents=40, rounds=7, seed=seed)


def test_the_same_seed_plays_the_same_demo(tmp_path: Path) -> None:
    one, two, other = play(tmp_path / "a"), play(tmp_path / "b", name="again"), play(tmp_path / "c", seed=8)
    assert digest_without_times(one) == digest_without_times(two) != digest_without_times(other)
    assert [one.recommendation(round_).chosen for round_ in range(1, 8)] == [
        two.recommendation(n).chosen for n in range(1, 8)
    ]
    for program in (one, two, other):
        program.store.close()


def digest_without_times(program: Program) -> str:
    for line in program.projection.rounds:
        line.at = ""
    return digest(program.cache.projection())


def test_a_demo_shows_what_a_real_program_meets(tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    with Desk(tmp_path / "desk.db") as desk:
        program = run_demo(
            desk, "demo", agents=100, rounds=8, progress=lambda done, all_: reported.append((done, all_))
        )
        lines = program.rounds
        assert reported == [(round_, 8) for round_ in range(1, 9)]
        assert sum(line.failed for line in lines) > 0
        assert [line.present for line in lines[:5]] == [90] * 5
        assert 90 < lines[5].present <= 100
        assert [line.outcomes == line.present for line in lines] == [True] * 7 + [False]
        assert program.projection.agents.control.any()
        assert replay(program).proven
        json.dumps(get_status(program), allow_nan=False)


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_can_be_played(template: str, tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = run_demo(desk, "demo", template, agents=12, rounds=2)
        assert program.config.template == template
        assert len(program.rounds) == 2


def test_people_have_names_in_the_words_of_the_template() -> None:
    people = Population(find_template("patient-management"), 120, seed=1)
    assert people.names[:2] == ["patient-001", "patient-002"]
    assert np.unique(people.names).size == 120


@pytest.mark.parametrize(("agents", "rounds"), [(9, 5), (0, 5), (10, 0), (10, 10_001), (2_000_000, 5)])
def test_a_demo_of_no_sense_is_refused_before_anything_is_made(agents: int, rounds: int, tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        with pytest.raises(InputError, match="it must be a whole number from"):
            run_demo(desk, "demo", agents=agents, rounds=rounds)
        assert desk.programs() == []
