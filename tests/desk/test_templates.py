"""Templates: words that make sentences, numbers that make a program, and simulated people that fit."""

import re
from pathlib import Path

import pytest

from restive import PROBLEMS, InputError, make_problems
from restive.api.types import Template, Words
from restive.desk.config import TEMPLATES, find_template
from restive.problems.domains import DOMAINS, find_groups

each_template = pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))


def test_there_is_a_template_for_every_domain_under_its_own_name() -> None:
    assert [f"{name}-v1" for name in TEMPLATES] == [domain.name for domain in DOMAINS]
    assert all(name == template["name"] for name, template in TEMPLATES.items())


def test_a_template_is_found_by_its_name() -> None:
    for name, template in TEMPLATES.items():
        assert find_template(name) is template


@pytest.mark.parametrize(
    ("name", "near"), [("pharmacies", "pharmacy"), ("PHARMACY", "pharmacy"), ("loyality", "loyalty")]
)
def test_a_name_that_is_nearly_right_is_refused_with_the_right_one(name: str, near: str) -> None:
    with pytest.raises(
        InputError, match=f"There is no template '{name}'; there are general-usage, .*did you mean '{near}'"
    ):
        find_template(name)


@pytest.mark.parametrize("name", ["", "zzz"])
def test_a_name_that_is_like_none_is_refused_with_all_there_are(name: str) -> None:
    with pytest.raises(
        InputError, match=rf"There is no template '{name}'; there are general-usage, .*maternal-health\.$"
    ):
        find_template(name)


@each_template
def test_simulated_people_have_the_states_rewards_and_groups_of_their_template(template: Template) -> None:
    assert template["problem"] in PROBLEMS
    (problem,) = make_problems(template["problem"], agents=100, budget=template["budget"])
    assert list(problem.states) == template["states"]
    assert problem.reward[0].tolist() == template["rewards"]
    assert set(find_groups(template["problem"], agents=100)) == set(template["groups"] or [""])


@each_template
def test_states_go_from_bad_to_good_and_each_has_its_sign(template: Template) -> None:
    assert 2 <= len(template["states"]) <= 4
    assert (
        len(set(template["states"]))
        == len(template["rewards"])
        == len(set(template["signs"]))
        == len(template["states"])
    )
    assert template["rewards"] == sorted(set(template["rewards"]))


@each_template
def test_states_and_groups_are_single_plain_words_that_survive_a_table(template: Template) -> None:
    for word in (*template["states"], *template["groups"]):
        assert re.fullmatch("[a-z]+", word)
        assert word not in ("none", "null", "nan", "na", "true", "false")  # which readers of tables take for no text


@each_template
def test_defaults_are_such_as_a_program_can_have(template: Template) -> None:
    assert template["budget"] >= 1
    assert 0 < template["control"] < 0.5
    assert template["cool_down"] >= 0
    assert template["keep"] == 0
    assert template["horizon"] is None


@each_template
def test_words_fit_into_sentences(template: Template) -> None:
    assert template["about"][0].isupper()
    assert template["about"].endswith(".")
    assert template["about"].count(".") == 1
    assert template["reward_unit"].endswith(f" a {template['every']}")
    assert f"each {template['every']}" in template["about"]
    assert template["action"].startswith("a ")
    assert template["action"] in template["acted"]
    assert template["people"] == f"{template['person']}s"
    assert template["people"] in template["about"]
    for words in (template["action"], template["acted"], template["verb"], *template["signs"]):
        assert words == words.strip().rstrip(".")
        assert words[0].islower()


@each_template
def test_texts_are_short(template: Template) -> None:
    assert len(template["about"]) <= 110
    assert max(len(sign) for sign in template["signs"]) <= 60
    assert max(len(state) for state in template["states"]) <= 12


def test_the_page_explains_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/templates.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(named))) == sorted(Template.__annotations__ | Words.__annotations__)


def test_patient_management_speaks_of_patients() -> None:
    template = find_template("patient-management")
    assert (template["person"], template["people"]) == ("patient", "patients")
    assert "care worker" not in template["about"]
