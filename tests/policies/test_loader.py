"""A policy in a file of one's own is played by its path, and a file that has none gets a sentence."""

from pathlib import Path

import numpy as np
import pytest

from restive import InputError, make_policy, make_problems, simulate
from restive.checks import check_policy

SOUND = '''
"""Act on the agents with the smallest total reward."""
from __future__ import annotations
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
from restive.policies.base import Learner

class Paid(NamedTuple):
    total: np.ndarray

@dataclass(frozen=True)
class Neediest(Learner):
    weight: float = 1.0
    def start(self, shape):
        return Paid(np.zeros((shape.runs, shape.agents)))
    def rank(self, belief, state, draws):
        return -self.weight * belief.total
    def learn(self, belief, state, action, reward, after):
        belief.total[:] += reward
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "neediest.py"
    path.write_text(SOUND)
    return path


def test_it_is_found_by_its_path_and_takes_settings(file: Path) -> None:
    policy = make_policy(f"{file}:weight=2.5")
    assert (policy.name, policy.settings()) == ("Neediest", {"weight": 2.5})
    check_policy(policy)


def test_it_is_simulated_like_any_other(file: Path) -> None:
    problem = make_problems("two-state-v1", agents=6, budget=2)[0]
    trace = simulate(problem, str(file), horizon=30, runs=2)
    assert trace.spec["policy"] == "Neediest"
    assert np.array_equal(trace.reward, simulate(problem, make_policy(str(file)), horizon=30, runs=2).reward)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1", "exactly one policy with start and rank; this one has none"),
        ("from restive.policies.egt import Egt", "this one has none"),
        (SOUND + SOUND.split("@dataclass")[0] + "class Other(Neediest): pass", "this one has Neediest, Other"),
        ("def broken(:", r"cannot be run \(SyntaxError"),
        ("1 / 0", r"cannot be run \(ZeroDivisionError: division by zero\)"),
    ],
)
def test_a_file_without_one_policy_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text.replace("from __future__ import annotations\n", ""))
    with pytest.raises(InputError, match=sentence) as caught:
        make_policy(str(path))
    assert caught.value.location == path


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InputError, match=r"nowhere\.py: policy file not found"):
        make_policy("nowhere.py")


def test_a_setting_it_does_not_have_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match="'haste=1' is not a setting"):
        make_policy(f"{file}:haste=1")
