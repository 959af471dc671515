"""References that know the family: their posteriors against closed forms, and what they observe."""

import numpy as np
import pytest

from restive.paper.tasks.references import (
    DirichletPrior,
    Informed,
    SamplePrior,
    make_prior,
    match_dirichlet,
    reference,
    sample_agents,
    weigh_sample,
)
from restive.problems import make_problems
from restive.problems.two_state import fill_rows
from restive.simulation import Simulation
from restive.world import World

SIZES = {"instances": 6, "agents": 20, "budget": 4, "seed": 4711}


def test_sampled_agents_are_weighted_by_the_likelihood_of_the_moves() -> None:
    agents = fill_rows(np.array([[[0.25, 0.25], [0.25, 0.25]], [[0.75, 0.75], [0.75, 0.75]]]))
    moves = np.zeros((2, 2, 2, 2))
    moves[1, 0, 0, 1] = 1  # one move to the good state, waiting in the bad one: odds of 3 to 1
    whole = SamplePrior(agents, np.array([0.5, 0.5]), by_state=False).mean(moves)
    assert whole[..., 1] == pytest.approx(np.array([np.full((2, 2), 0.5), np.full((2, 2), 0.625)]), abs=1e-6)
    by_state = SamplePrior(agents, np.array([0.5, 0.5]), by_state=True).mean(moves)
    assert by_state[1, :, :, 1] == pytest.approx(np.array([[0.625, 0.5], [0.625, 0.5]]), abs=1e-6)


def test_a_sample_gives_nearly_the_exact_posterior_where_that_is_known() -> None:
    prior = weigh_sample(sample_agents("two-state-v1", SIZES), by_state=True)
    moves = np.random.default_rng(5).integers(0, 6, (40, 2, 2, 2)).astype(float)
    difference = prior.mean(moves) - DirichletPrior(1.0).mean(moves)
    assert np.abs(difference).max() < 0.08
    assert np.sqrt(np.square(difference).mean()) < 0.02


def test_the_weight_of_rows_follows_their_variance() -> None:
    uniform, normalized = (
        match_dirichlet(sample_agents(name, SIZES)) for name in ("many-state-v1", "normalized-rows-v1")
    )
    assert uniform.weight == pytest.approx(1.0, abs=0.02)
    assert normalized.weight == pytest.approx(2.6, abs=0.1)


def test_a_family_of_few_kinds_has_a_prior_of_few_agents() -> None:
    prior = make_prior("wireless-v1", SIZES)
    assert isinstance(prior, SamplePrior)
    assert len(prior.agents) == 5
    assert prior.share.sum() == pytest.approx(1.0)
    assert make_prior("few-types-v1", SIZES) is None


@pytest.mark.parametrize(("full", "seen"), [(True, 2), (False, 1)])
def test_full_information_shows_both_actions_in_every_step(full: bool, seen: int) -> None:
    world = World(make_problems("two-state-v1", **SIZES), 2, 7, horizon=30)
    simulation = Simulation(world, Informed(DirichletPrior(1.0), full))
    simulation.advance(30)
    moves = simulation.belief.moves
    assert (moves.sum(axis=(2, 3, 4)) == 30 * seen).all()
    if full:
        assert (moves.sum(axis=(3, 4)) == 30).all()


def test_shown_moves_have_the_probabilities_of_the_model() -> None:
    (problem,) = make_problems("two-state-v1", agents=20, budget=4, seed=4711)
    simulation = Simulation(World(problem, 200, 7, horizon=20), Informed(DirichletPrior(1.0), True))
    simulation.advance(20)
    moves = simulation.belief.moves.sum(axis=0)
    seen = moves.sum(axis=-1)
    error = moves[..., 1] / seen - problem.transition[..., 1]
    assert np.abs(error / np.sqrt(0.25 / seen)).max() < 4.5


def test_indices_of_the_first_step_are_those_of_the_prior_and_later_ones_differ() -> None:
    world = World(make_problems("two-state-v1", **SIZES), 1, 7, horizon=30)
    simulation = Simulation(world, Informed(DirichletPrior(1.0), False))
    simulation.advance(1)
    assert np.ptp(simulation.belief.indices) == pytest.approx(0.0, abs=1e-12)
    simulation.advance(10)
    assert np.ptp(simulation.belief.indices) > 0.1


@pytest.mark.parametrize("family", ["two-state-v1", "few-types-v1", "general-usage-v1"])
def test_knowing_more_is_worth_more(family: str) -> None:
    full, informed = (
        reference(family, SIZES, horizon=100, runs=4, seed=3, full=full)["reward"].reshape(6, -1)[:, -1].mean()
        for full in (True, False)
    )
    assert full > informed
