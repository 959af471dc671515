"""The power formula keeps its promise in simulated trials."""

from dataclasses import replace

import numpy as np
import pytest

from restive import InputError, make_problems
from restive.logs.fit import fit
from restive.logs.generate import generate_history
from restive.logs.model import FittedModel
from restive.logs.power import people_needed, power_of, simulate_trials


@pytest.fixture(scope="module")
def model() -> FittedModel:
    return fit(generate_history(make_problems("two-state-v1", instances=1, agents=60, budget=4)[0], rounds=12, seed=3))


def test_people_needed_have_the_power_they_were_asked_for() -> None:
    people = people_needed(-0.2, program=1.0, control=2.0, share=0.7, power=0.9, level=0.99)
    assert power_of(people, -0.2, program=1.0, control=2.0, share=0.7, level=0.99) == pytest.approx(0.9, abs=1e-4)
    assert people_needed(0.0, program=1.0, control=1.0) == np.inf


def test_simulated_trials_have_the_promised_power(model: FittedModel) -> None:
    trials = simulate_trials(model, people=200, rounds=8, budget=30, policy="informed", draws=800, seed=4)
    program, control = (float(variance.mean()) for variance in trials.variances)
    promised = power_of(200, float(trials.lift.mean()), program, control)
    simulated = float((np.abs(trials.lift) > 1.96 * trials.error).mean())
    assert abs(simulated - promised) < 0.03 + 2 * (0.25 / 800) ** 0.5
    assert trials.acted[:, :100].sum(axis=1).tolist() == [8 * 30] * 800
    assert trials.acted[:, 100:].sum() == 0


def test_the_groups_of_a_trial_are_independent(model: FittedModel) -> None:
    unknown = replace(model, counts=np.zeros_like(model.counts), last_state=np.zeros_like(model.last_state), draws=())
    trials = simulate_trials(unknown, people=60, rounds=4, budget=0, draws=600, seed=2)
    means = trials.reward[:, :30].mean(axis=1), trials.reward[:, 30:].mean(axis=1)
    assert abs(np.corrcoef(*means)[0, 1]) < 0.15
    assert abs(trials.lift.mean()) < 3.5 * trials.lift.std() / np.sqrt(600)


def test_a_trial_without_a_control_group_is_refused(model: FittedModel) -> None:
    with pytest.raises(InputError, match="both groups"):
        simulate_trials(model, people=20, rounds=4, budget=2, share=1.0)
