"""Configs: every refusal with its sentence, and JSON that gives back the same config."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.desk.config import (
    CHANGEABLE,
    Config,
    Words,
    check_name,
    make_learner,
    parse_rewards,
    parse_shares,
    parse_words,
)
from restive.errors import InputError

TWO: dict[str, Any] = {"states": ("low", "high")}

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"states": ("low",)}, r"states is \('low',\); give 2 to 1000 different names, the worst first"),
    ({"states": ("low", "Low")}, "give 2 to 1000 different names"),
    ({"states": ("low", "")}, "give 2 to 1000 different names"),
    ({"states": ("low", " high")}, "give 2 to 1000 different names"),
    ({"states": ("low", "hi\ngh")}, "give 2 to 1000 different names"),
    ({"states": ("low", 1)}, "give 2 to 1000 different names"),
    ({"states": "low,high"}, "states is 'low,high'; give 2 to 1000 different names"),
    ({"states": tuple(f"s{i}" for i in range(1001))}, "give 2 to 1000 different names"),
    ({"rewards": (0, 1, 2)}, r"rewards is \(0, 1, 2\); give 2 numbers, one for each state, or none at all"),
    ({"rewards": 3}, "rewards is 3; give 2 numbers"),
    ({"rewards": (0, np.inf)}, "the reward of high is inf; it must be a finite number"),
    ({"rewards": (np.nan, 1)}, "the reward of low is nan; it must be a finite number"),
    ({"rewards": (0, "1")}, "the reward of high is '1'; it must be a finite number"),
    ({"budget": -1}, "budget is -1; it must be a whole number from 0 to 1000000000"),
    ({"budget": 2.5}, "budget is 2.5; it must be a whole number"),
    ({"budget": True}, "budget is True; it must be a whole number"),
    ({"budget": 10**9 + 1}, "it must be a whole number from 0 to 1000000000"),
    ({"seed": -1}, "seed is -1; it must be a whole number from 0 to"),
    ({"spend": "most"}, "spend is 'most'; it must be 'exactly' or 'at most'."),
    ({"cool_down": -1}, "cool_down is -1; it must be a whole number from 0 to 1000000"),
    ({"keep": None}, "keep is None; it must be a whole number from 0 to 1000000"),
    ({"horizon": 0}, "horizon is 0; it must be a whole number from 1 to 1000000000"),
    ({"horizon": 10**400}, "it must be a whole number from 1 to 1000000000"),
    ({"control": 1}, "control is 1; it must be the share of people in the control group, from 0 to below 1"),
    ({"control": -0.1}, "control is -0.1; it must be the share"),
    ({"control": np.nan}, "control is nan; it must be the share"),
    ({"reward_range": 0}, "reward_range is 0; it must be the largest difference of two rewards, above 0"),
    ({"shares": [0.5]}, r"shares is \[0.5\]; it must give the minimum share of each group"),
    ({"shares": {"north": 1.2}}, "the share of north is 1.2; it must lie between 0 and 1"),
    ({"shares": {"north": np.nan}}, "the share of north is nan; it must lie between 0 and 1"),
    ({"shares": {"north": 0.6, "south": 0.5}}, "The shares of groups add up to 1.1; at most 1 is allowed"),
    ({"policy": "lagrnge"}, "there is no policy 'lagrnge'"),
    ({"policy": ""}, "there is no policy ''"),
    ({"policy": None}, "policy is None; it must be a policy"),
    ({"shadow": ""}, "there is no policy ''"),
    ({"policy": "whittle-oracle"}, "whittle-oracle is an oracle, which needs the true model; use a learner"),
    ({"shadow": "greedy-oracle"}, "greedy-oracle is an oracle"),
    ({"policy": "wiql:discount=2"}, "wiql: discount is 2"),
    ({"policy": "rma2b"}, "rma2b plans up to the horizon; give it one"),
]


@pytest.mark.parametrize(("settings_", "sentence"), REFUSED)
def test_a_config_that_makes_no_sense_is_refused_in_a_sentence(settings_: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Config(**TWO | settings_)


def test_a_config_of_the_least_and_the_most_is_allowed() -> None:
    Config(("a", "b"), budget=0, seed=0, control=0, cool_down=0, keep=0, horizon=1, shares={"n": 0, "s": 1})
    many = tuple(f"s{i}" for i in range(1000))
    Config(many, tuple(range(1000)), "random", budget=10**9, control=0.999, cool_down=10**6, keep=10**6, horizon=10**9)


texts = st.text(min_size=1, max_size=8).filter(lambda text: text.strip() == text and text.isprintable())
rewards_of = st.floats(-1e100, 1e100)
configs = st.lists(texts, min_size=2, max_size=5, unique_by=str.lower).flatmap(
    lambda states: st.builds(
        Config,
        states=st.just(tuple(states)),
        rewards=st.none() | st.tuples(*[rewards_of] * len(states)),
        policy=st.sampled_from(["random", "egt:eta=0.5", "lagrange", "wiql"]),
        shadow=st.none() | st.sampled_from(["random", "thompson-whittle:prior=2"]),
        budget=st.integers(0, 10**9),
        horizon=st.none() | st.integers(1, 10**9),
        seed=st.integers(0, 2**48),
        control=st.floats(0, 0.999),
        cool_down=st.integers(0, 10**6),
        keep=st.integers(0, 10**6),
        shares=st.dictionaries(st.text(max_size=5), st.floats(0, 0.25), max_size=4),
        reward_range=st.floats(1e-12, 1e12),
        pseudonyms=st.none() | st.text(max_size=5),
        template=st.none() | st.text(max_size=5),
        words=st.builds(Words, person=st.text(max_size=5), every=st.text(max_size=5)),
    )
)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(configs)
def test_a_config_comes_back_from_json_the_same(config: Config) -> None:
    assert Config.from_json(json.loads(json.dumps(config.as_json(), allow_nan=False))) == config


def test_numbers_of_numpy_become_plain_ones() -> None:
    given: dict[str, Any] = {"rewards": np.array([0, 1]), "budget": np.int64(3), "horizon": np.int32(9)}
    given |= {"control": np.float32(0.5), "shares": {"n": np.float32(0.25)}, "keep": np.uint8(1)}
    plain = Config(("a", "b"), (0, 1), budget=3, horizon=9, control=0.5, shares={"n": 0.25}, keep=1)
    made = json.dumps(Config(("a", "b"), **given).as_json(), allow_nan=False)
    assert made == json.dumps(plain.as_json(), allow_nan=False)


def test_what_a_record_leaves_out_has_its_default() -> None:
    assert Config.from_json({"states": ["a", "b"]}) == Config(("a", "b"))
    assert Config.from_json({"states": ["a", "b"], "words": {"person": "mother"}}).words == Words(person="mother")


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({}, "A config needs states: their names, the worst first"),
        (TWO | {"bugdet": 3}, "A config has no 'bugdet'; it has budget, columns, control, control_until"),
        (TWO | {"words": {"persons": "x"}}, "it must give texts for person, people, action, acted, verb, every"),
        (TWO | {"words": {"person": 3}}, "it must give texts for person"),
        (TWO | {"words": "mother"}, "words is 'mother'; it must give texts for person"),
    ],
)
def test_a_record_that_is_no_config_is_refused(record: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Config.from_json(record)


def test_what_may_change_changes_and_is_checked() -> None:
    config = Config(("a", "b"))
    changed = config.changed({"budget": 3, "cool_down": 1, "keep": 0, "shares": {"n": 0.5}})
    assert changed == Config(("a", "b"), budget=3, cool_down=1, keep=0, shares={"n": 0.5})
    with pytest.raises(InputError, match="budget is -3"):
        config.changed({"budget": -3})


def test_the_horizon_is_settled_once() -> None:
    with pytest.raises(InputError, match="'horizon' cannot be changed in a running program"):
        Config(("a", "b"), horizon=7).changed({"budget": 3, "horizon": 9})


@pytest.mark.parametrize("name", [*sorted(set(Config(("a", "b")).as_json()) - set(CHANGEABLE)), "nothing"])
def test_what_the_past_rests_on_cannot_change(name: str) -> None:
    with pytest.raises(
        InputError, match=f"'{name}' cannot be changed in a running program; budget, spend, cost_unit, cool_down"
    ):
        Config(("a", "b")).changed({name: None})


def test_the_shape_is_what_a_policy_is_reported() -> None:
    by_state = Config(("a", "b", "c"), (-1, 0, 3), budget=5, horizon=9).shape(20)
    assert (by_state.runs, by_state.agents, by_state.states, by_state.budget, by_state.horizon) == (1, 20, 3, 5, 9)
    assert by_state.reward_range.tolist() == [4.0]
    reported = Config(("a", "b"), reward_range=2.5, budget=5).shape(3)
    assert (reported.budget, reported.reward_range.tolist()) == (3, [2.5])
    assert Config(("a", "b"), budget=5).shape(8, 2).budget == 2


@pytest.mark.parametrize("name", ["a", "Coupons-2024", "1.x_y", "ä" * 60])
def test_names_of_letters_digits_and_a_few_signs_are_allowed(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", ".", "_x", "a b", "a/b", "a" * 61, "a\n", "a'"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="a name has 1 to 60 letters, digits, dots, dashes or underscores"):
        check_name(name)


@pytest.mark.parametrize("text", ["", "0;1", "a,b", "0,"])
def test_rewards_that_are_no_numbers_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="give a number for each state, such as 0,1, or `reported`"):
        parse_rewards(text)


@pytest.mark.parametrize("text", ["north", "=0.3", "north=", "north=much"])
def test_shares_that_say_no_group_or_number_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=f"share is '{text}'; write GROUP=SHARE, such as north=0.3"):
        parse_shares([text])


def test_the_name_of_a_group_may_have_an_equals_sign() -> None:
    assert parse_shares(["a=b=0.5"]) == {"a=b": 0.5}


def test_learners_are_made_with_their_settings() -> None:
    assert make_learner("egt:eta=0.5").settings()["eta"] == 0.5


@pytest.mark.parametrize("text", ["", "person", "person=", "=patient", "who=us", "Person=patient"])
def test_words_that_say_nothing_or_are_not_used_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=f"word is '{text}'; write person=patient, or similar for people, action"):
        parse_words(["people=patients", text])


def test_a_word_may_have_an_equals_sign_and_the_last_one_counts() -> None:
    assert parse_words(["action=a=b", "person=x", "person=y"]) == {"action": "a=b", "person": "y"}


@pytest.mark.parametrize(
    ("content", "ending", "reason"),
    [
        ("open(__file__ + 'x')\n", "", "FileNotFoundError"),
        (
            "from restive.policies.egt import Egt\n\nclass Mine(Egt):\n    pass\n",
            ":depth",
            "its settings are not valid",
        ),
    ],
)
def test_a_policy_file_that_fails_is_reported_without_its_folder(
    tmp_path: Path, content: str, ending: str, reason: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(content)
    with pytest.raises(InputError) as refused:
        make_learner(f"{file}{ending}")
    assert refused.value.message == f"mine.py: the policy cannot be loaded ({reason})."
    assert refused.value.location == file
