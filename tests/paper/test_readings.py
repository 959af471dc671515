"""Readings of the paper: which policies, families and noise each claim is judged with, and a user's own settings."""

import json
from pathlib import Path

import pytest

from restive import InputError
from restive.paper.engines import open_engine
from restive.paper.jobs import Size
from restive.paper.readings import READINGS, Reading, make_reading
from restive.paper.reproduction import EXPERIMENTS, examine_all, find_experiments, prepare
from restive.policies import make_policy

LITERAL, AUTHORS = READINGS


def specs(name: str, reading: Reading) -> set[tuple[str, str, float]]:
    jobs = EXPERIMENTS[name].list_jobs(Size(quick=True, reading=reading))
    return {
        (job.settings["family"], job.settings["policy"], job.settings["noise"]) for job in jobs if job.task == "play"
    }


@pytest.mark.parametrize("reading", READINGS)
def test_a_policy_of_a_reading_is_the_one_of_its_preset(reading: Reading) -> None:
    for name, preset in reading.policies.items():
        assert make_policy(reading.specify(name)) == make_policy(f"{name}:{preset}")
    assert make_policy(reading.specify("egt:eta=0.1")) == make_policy(f"egt:{reading.policies['egt']},eta=0.1")
    assert reading.specify("random") == "random"


def test_the_readings_differ_in_policies_families_and_noise() -> None:
    literal, authors = specs("ten-state", LITERAL), specs("ten-state", AUTHORS)
    assert ("many-state-v1", "egt:D=theory,exploration=most,width=printed", 0.1) in literal
    assert ("normalized-rows-v1", "egt:D=theory,p=3.5,unseen=first", 0.01) in authors
    assert ("helpful-v1", "wiql:unseen=first", 1.0) in specs("two-state", AUTHORS)
    assert ("wireless-v1", "ucwhittle", 0.01) in specs("wireless", AUTHORS)


def test_equal_policies_of_both_readings_are_one_job() -> None:
    assert ("wireless-v1", "ucwhittle", 0.0) in specs("wireless", LITERAL) & specs("wireless", AUTHORS)
    both = EXPERIMENTS["wireless"].under(READINGS).list_jobs(Size(quick=True))
    assert len({job.digest() for job in both}) < len(both)


def test_an_experiment_without_open_settings_is_examined_once(tmp_path: Path) -> None:
    assert EXPERIMENTS["lemma-4.3"].tell_apart(Size(), READINGS) == {"literal": LITERAL, "authors": LITERAL}
    assert EXPERIMENTS["regret"].tell_apart(Size(), READINGS) == {"literal": LITERAL, "authors": AUTHORS}
    run = prepare(find_experiments(["counterexample-2"]), Size(quick=True), tmp_path)
    with open_engine("threads") as executor:
        run.complete(executor, lambda experiment, job, seconds: None)
    found = examine_all(run, formats=()).findings["counterexample-2"]
    assert found["literal"] is found["authors"]


def test_the_regret_curve_has_the_theorems_setting_under_each_reading() -> None:
    jobs = {reading.name: EXPERIMENTS["regret"].list_jobs(Size(reading=reading))[0] for reading in READINGS}
    assert jobs["literal"].settings["policy"] == "egt:D=theory,exploration=most,width=printed"
    assert jobs["authors"].settings["policy"] == "egt:D=theory,p=3.5,unseen=first"
    assert all(job.settings["theory"] for job in jobs.values())


KINDS = ("slip: ", "not printed: ", "our band: ", "inferred: ")


def test_every_reason_begins_with_its_kind() -> None:
    reasons = [why for each in EXPERIMENTS.values() for whys in each.reasons.values() for why in whys.items()]
    assert reasons
    assert {reading for reading, _ in reasons} <= {"all", "literal", "authors"}
    assert [why for _, why in reasons if not why.startswith(KINDS)] == []


def test_the_eleven_wireless_claims_of_the_paper_are_not_decidable() -> None:
    claims = [claim for each in EXPERIMENTS.values() for claim in each.claims]
    assert len([claim for claim in claims if claim.substitute]) == 11
    assert all("wireless" in claim.name and not claim.ours for claim in claims if claim.substitute)


def test_own_settings_are_those_of_the_texts_and_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'policies = { egt = "authors" }\nfamilies = { two-state = "sticky-v1" }\nnoise = { wireless = 0.5 }'
    )
    own = make_reading(["egt:p=2", "wiql:unseen=first"], path)
    assert own.specify("egt") == "egt:D=theory,p=2,unseen=first"
    assert specs("two-state", own) >= {("sticky-v1", "wiql:unseen=first", 1.0), ("sticky-v1", "rma2b", 0.0)}
    assert json.loads(json.dumps(own.as_json()))["noise"] == {"wireless": 0.5}


@pytest.mark.parametrize(
    ("texts", "file", "sentence"),
    [
        (["egt:q=2"], "", "egt: 'q=2' is not a setting; write setting=value"),
        (["egt:p=-1"], "", "p is -1; it must be 0 or more"),
        (["etg:p=2"], "", "'etg' is not a policy of the paper's experiments; .*; did you mean 'egt'?"),
        (["lagrange:prior=1"], "", "'lagrange' is not a policy of the paper's experiments"),
        ([], "policy = 1", "'policy' is not a setting of a reading; .*; did you mean 'policies'?"),
        ([], "policies = 1", "own.toml: policies must be a table with settings for each name."),
        ([], "noise = { wireless = -1 }", "own.toml: noise must be a table with a variance for each name."),
        ([], 'families = { two = "sticky-v1" }', "'two' is not a family of the paper's experiments"),
        ([], 'families = { two-state = "stick" }', "'stick' is not a family of problems"),
        ([], "p = ", "own.toml: cannot be read as TOML"),
        ([], None, "own.toml: cannot be read as TOML"),
    ],
)
def test_bad_settings_get_one_sentence(texts: list[str], file: str | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    if file is not None:
        path.write_text(file)
    with pytest.raises(InputError, match=sentence):
        make_reading(texts, path)
