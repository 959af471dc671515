"""What a team is told before a program starts."""

from pathlib import Path

import numpy as np
import pytest

from restive.desk import Desk
from restive.desk.config import TEMPLATES, Config
from restive.desk.config_advice import describe_control, describe_setup, find_doubts, smallest_effect
from restive.desk.desk import make_config

TWO = Config(states=("low", "high"), rewards=(0.0, 1.0))


def test_the_sentence_speaks_of_the_planned_rounds_in_the_words_of_the_program() -> None:
    sentence = describe_control(make_config("calls", "maternal-health", horizon=26))
    assert sentence.startswith("In 26 weeks a control group of 10% can show an effect of about 0.")
    assert "messages heard a week per mother with 100 mothers" in sentence
    assert "simulated" in sentence
    assert "at most, whatever people do" in describe_control(TWO)


def test_without_a_control_group_nothing_is_promised() -> None:
    assert describe_setup(Config(states=("low", "high"), rewards=(0.0, 1.0), control=0.0)) == []


def test_more_people_and_a_larger_control_group_show_smaller_effects() -> None:
    few, many = (smallest_effect(TWO, people, 12) for people in (100, 1000))
    assert few == pytest.approx(many * np.sqrt(10))
    even = Config(states=("low", "high"), rewards=(0.0, 1.0), control=0.5)
    assert smallest_effect(even, 100, 12) < few


@pytest.mark.parametrize("template", TEMPLATES)
def test_people_of_a_template_vary_less_than_people_may(template: str) -> None:
    config = make_config("x", template)
    assert config.rewards is not None
    at_most = Config(states=config.states, rewards=config.rewards)
    assert 0.3 < smallest_effect(config, 300, 12) / smallest_effect(at_most, 300, 12) < 1


def test_an_effect_of_that_size_shows_in_80_of_100_trials() -> None:
    config, people, trials = make_config("x", "e-learning"), 300, 2000
    effect = smallest_effect(config, people, 12)
    spread = effect / 2.8016 / np.sqrt(1 / 270 + 1 / 30)
    draws = np.random.default_rng(3).normal(0, spread, (trials, people))
    treated, control = draws[:, :270] + effect, draws[:, 270:]
    error = np.sqrt(treated.var(axis=1, ddof=1) / 270 + control.var(axis=1, ddof=1) / 30)
    shown = (treated.mean(axis=1) - control.mean(axis=1)) > 1.96 * error
    assert 0.77 < shown.mean() < 0.83


def test_rewards_that_fall_are_doubted_and_equal_ones_are_not() -> None:
    assert find_doubts(Config(states=("a", "b", "c"), rewards=(0.0, 2.0, 1.0))) == [
        "the reward of c is below that of b, although states are listed from worst to best"
    ]
    assert not find_doubts(Config(states=("a", "b", "c"), rewards=(0.0, 1.0, 1.0)))
    assert not find_doubts(Config(states=("a", "b"), rewards=None))


def test_a_share_of_a_group_that_is_spelt_otherwise_is_noted(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("x", states=["low", "high"], rewards=[0, 1], budget=1, shares={"thane": 0.5})
        states = [{"agent": f"p{number}", "state": "low", "group": "Thane"} for number in range(9)]
        notes = program.decide(states).notes
    assert "nobody is in the group thane, which has a share; did you mean 'Thane'?" in notes
