"""Conformance checks that tell what is wrong with a policy or a problem, and how to mend it; run them on your own.

check_policy(MyPolicy())      silent when all is well, CheckError with a sentence when not
check_problem(my_problem)     the same; returns remarks on what is allowed but looks odd
"""

import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from restive.errors import InputError
from restive.policies import make_policy
from restive.policies.base import Model, Oracle, Policy, as_ranking
from restive.problem import Problem
from restive.problems import make_problems
from restive.simulate import Simulation, simulate
from restive.snapshot import flatten
from restive.types import Floats
from restive.world import World

RUNS, HORIZON = 3, 40


class CheckError(AssertionError):
    """A policy or problem breaks the contract; the sentence says where and how to mend it."""


def check_policy(policy: str | Policy[Any], problem: Problem | None = None) -> None:
    """Play a policy in small worlds and see that it keeps the contract of `restive.policies.base`.

    >>> from restive import make_policy
    >>> check_policy(make_policy("egt"))
    """
    player = make_policy(policy)
    played = problem or make_problems("two-state-v1", agents=7, budget=2, seed=3)[0]
    world = World(played, runs=RUNS, seed=5, noise=0.1, horizon=HORIZON)
    for check in (
        _check_belief,
        _check_choices,
        _check_inputs_untouched,
        _check_repeatable,
        _check_runs_apart,
        _check_snapshot,
        _check_no_peeking,
        _check_agents_permute,
    ):
        try:
            check(player, world)
        except InputError as error:
            raise CheckError(str(error)) from None
        except CheckError:
            raise
        except Exception as error:  # whatever a policy may raise, which and where is what helps
            place = traceback.extract_tb(error.__traceback__)[-1]
            hint = " Write belief.total[:] += ..., not belief.total += ...: a belief's fields cannot be assigned to."
            said = f"{player.name}: {Path(place.filename).name}, line {place.lineno}: {type(error).__name__}: {error}."
            raise CheckError(said + hint * ("set attribute" in str(error))) from error


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise CheckError(sentence)


def _play(policy: Policy[Any], world: World, steps: int = HORIZON) -> tuple[Simulation, Floats]:
    simulation = Simulation(world, policy)
    reward, _ = simulation.advance(steps)
    return simulation, reward


def _check_belief(policy: Policy[Any], world: World) -> None:
    belief = policy.begin(world.shape, world.model)
    named = isinstance(belief, tuple) and hasattr(belief, "_asdict")
    _require(named, f"{policy.name}: start must return a NamedTuple of arrays.")
    for field, value in flatten(belief).items():
        _require(
            isinstance(value, np.ndarray) and value.dtype != object,
            f"{policy.name}: the belief's {field} is a {type(value).__name__}; make it a plain array, np.array(...), "
            "so that it can be saved.",
        )


def _check_choices(policy: Policy[Any], world: World) -> None:
    """Step by step: the loop itself refuses rankings of a wrong shape, NaN, and exploration that is no probability."""
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    for step in range(HORIZON):
        draws = world.draws(step)
        ranking = as_ranking(policy.rank(belief, state, draws), world.shape, policy.name)
        action = world.choose(ranking, draws)
        again = as_ranking(policy.rank(belief, state, draws), world.shape, policy.name)
        _require(
            all(np.array_equal(one, two) for one, two in zip(ranking, again, strict=True)),
            f"{policy.name}: asked twice in step {step}, it ranked otherwise; take all randomness from draws, and "
            "change the belief in learn only.",
        )
        exact = bool((action.sum(axis=1) == world.shape.budget).all())
        _require(exact, f"{policy.name}: not exactly {world.shape.budget} actions in step {step}.")
        outcome = world.advance(state, action, draws)
        policy.learn(belief, state, action, outcome.reward, outcome.after)
        state = outcome.after


def _check_inputs_untouched(policy: Policy[Any], world: World) -> None:
    belief, state, draws = policy.begin(world.shape, world.model), world.first_states(), world.draws(0)
    before = state.copy()
    ranking = as_ranking(policy.rank(belief, state, draws), world.shape, policy.name)
    _require(np.array_equal(before, state), f"{policy.name}: rank changed the states; work on a copy.")
    action = world.choose(ranking, draws)
    outcome = world.advance(state, action, draws)
    given = (state, action, outcome.reward, outcome.after)
    copies = [array.copy() for array in given]
    policy.learn(belief, *given)
    same = all(np.array_equal(copy, array) for copy, array in zip(copies, given, strict=True))
    _require(same, f"{policy.name}: learn changed what it was given; write into the belief only.")


def _check_repeatable(policy: Policy[Any], world: World) -> None:
    same = np.array_equal(_play(policy, world)[1], _play(policy, world)[1])
    _require(same, f"{policy.name}: the same seed gave two answers; take all randomness from draws.")


def _check_runs_apart(policy: Policy[Any], world: World) -> None:
    whole = _play(policy, world)[1]
    for run in range(world.shape.runs):
        alone = _play(policy, world.chunk(run, run + 1))[1]
        _require(
            np.array_equal(whole[run : run + 1], alone),
            f"{policy.name}: run {run} went otherwise when it was played alone; a run must not depend on the others.",
        )


def _check_snapshot(policy: Policy[Any], world: World) -> None:
    whole = _play(policy, world)[1]
    half = HORIZON // 2
    simulation, first = _play(policy, world, half)
    with tempfile.TemporaryDirectory() as folder:
        simulation.save(Path(folder) / "half.npz")
        resumed = Simulation.load(Path(folder) / "half.npz", world, type(policy))
    rest, _ = resumed.advance(HORIZON - half)
    _require(
        resumed.policy == policy and np.array_equal(whole, np.hstack([first, rest])),
        f"{policy.name}: it went otherwise after a snapshot; what it remembers belongs in the belief, "
        "what it is in its settings.",
    )


def _check_no_peeking(policy: Policy[Any], world: World) -> None:
    """Two truths, one history: a learner must rank alike."""
    if isinstance(policy, Oracle):
        return
    transition, reward, start = (np.ascontiguousarray(array[..., ::-1]) for array in world.model[:3])
    other = Model(transition, reward, start, world.model.instance)
    beliefs = [policy.begin(world.shape, model) for model in (world.model, other)]
    state = world.first_states()
    for step in range(HORIZON // 2):
        draws = world.draws(step)
        rankings = [as_ranking(policy.rank(belief, state, draws), world.shape, policy.name) for belief in beliefs]
        _require(
            all(np.array_equal(one, two) for one, two in zip(*rankings, strict=True)),
            f"{policy.name}: with the same history it ranked otherwise for another model; a learner must not see it.",
        )
        outcome = world.advance(state, action := world.choose(rankings[0], draws), draws)
        for belief in beliefs:
            policy.learn(belief, state, action, outcome.reward, outcome.after)
        state = outcome.after


def _check_agents_permute(policy: Policy[Any], world: World) -> None:
    """In the reverse order and in one turned by half: a favourite place is not the same agent in all of them."""
    agents = np.arange(world.shape.agents)
    for order in (agents[::-1].copy(), np.roll(agents, agents.size // 2)):
        plain, reordered = Simulation(world, policy), Simulation(world.permute(order), policy)
        for step in range(HORIZON):
            plain.advance(1)
            reordered.advance(1)
            _require(
                np.array_equal(plain.state[:, order], reordered.state),
                f"{policy.name}: reordering the agents changed who was chosen by step {step}; treat all agents alike.",
            )


def check_problem(problem: Problem) -> tuple[str, ...]:
    """See that a problem is whole, survives its files and can be played; say what is allowed but looks odd.

    >>> check_problem(Problem([[np.eye(2), np.eye(2)]], [0, 1], budget=1))
    ('acting and waiting are the same for every agent', 'agent 0 cannot leave state 0, whatever is done')
    """
    again = Problem(problem.transition, problem.reward, problem.budget, problem.start, problem.states, problem.name)
    for ending in (".json", ".npz"):
        with tempfile.TemporaryDirectory() as folder:
            again.save(Path(folder) / f"problem{ending}")
            back = Problem.load(Path(folder) / f"problem{ending}")
        same = np.array_equal(back.transition, problem.transition) and np.array_equal(back.reward, problem.reward)
        _require(
            same and back.budget == problem.budget, f"the problem did not come back the same from a {ending} file."
        )
    played = simulate(problem, "random", horizon=5, runs=2).reward
    low, high = problem.reward.min(axis=1).sum(), problem.reward.max(axis=1).sum()
    slack = 1e-9 * float(np.abs(problem.reward).max(axis=1).sum())
    within = bool(((played >= low - slack) & (played <= high + slack)).all())
    _require(within, "a played step is worth more or less than its states can be.")
    return tuple(_remarks(problem))


def _remarks(problem: Problem) -> list[str]:
    remarks = []
    wait, act = problem.transition[:, 0], problem.transition[:, 1]
    if np.array_equal(wait, act):
        remarks.append("acting and waiting are the same for every agent")
    if np.ptp(problem.reward) == 0:
        remarks.append("all rewards are equal, so nothing can be gained")
    stuck = np.argwhere((np.diagonal(wait, axis1=1, axis2=2) == 1) & (np.diagonal(act, axis1=1, axis2=2) == 1))
    if len(stuck) and problem.shape[1] > 1:
        remarks.append(f"agent {stuck[0][0]} cannot leave state {stuck[0][1]}, whatever is done")
    return remarks
