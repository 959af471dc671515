"""Conformance checks for policies and problems, for the package's own and for yours.

check_policy(MyPolicy())      returns None, or raises CheckError with the fault and how to fix it
check_problem(my_problem)     the same; returns remarks on unusual but valid properties
"""

import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from restive.contract import Draws, Model, as_ranking
from restive.errors import InputError
from restive.policies import make_policy
from restive.policies.base import Learner, Oracle, Policy
from restive.policies.belief import agent_axes, flatten, grow, require_axes, unflatten
from restive.problem import Problem
from restive.problems import make_problems
from restive.simulation import Simulation, simulate
from restive.types import Floats, Ints
from restive.world import World

RUNS, HORIZON = 3, 40
NEWCOMERS = 3


class CheckError(AssertionError):
    """A policy or problem breaks the contract; the message says where and how to fix it."""


def check_policy(policy: str | Policy[Any], problem: Problem | None = None) -> None:
    """Check in small simulations that a policy keeps the contract of `restive.policies.base`.

    Parameters
    ----------
    policy
        A policy, or its name with settings; see `make_policy`.
    problem
        The problem to simulate; by default a small random one.

    Raises
    ------
    CheckError
        If the policy breaks the contract.

    Examples
    --------
    >>> from restive import make_policy
    >>> check_policy(make_policy("egt"))
    """
    chosen = make_policy(policy)
    simulated = problem or make_problems("two-state-v1", agents=7, budget=2, seed=3)[0]
    world = World(simulated, runs=RUNS, seed=5, noise=0.1, horizon=HORIZON)
    for check in (
        _check_belief,
        _check_choices,
        _check_inputs_untouched,
        _check_repeatable,
        _check_runs_apart,
        _check_checkpoint,
        _check_model_not_used,
        _check_agents_permute,
        _check_estimate,
        _check_axes,
        _check_learn_some,
        _check_growth,
    ):
        try:
            check(chosen, world)
        except InputError as error:
            raise CheckError(str(error)) from None
        except CheckError:
            raise
        except Exception as error:  # a policy may raise anything
            frame = traceback.extract_tb(error.__traceback__)[-1]
            message = (
                f"{chosen.name}: {Path(frame.filename).name}, line {frame.lineno}: {type(error).__name__}: {error}."
            )
            if isinstance(error, AttributeError):
                message += (
                    " Fields of a belief cannot be assigned to: write belief.total[:] += ..., not belief.total += ..."
                )
            raise CheckError(message) from error


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise CheckError(message)


def _simulate(policy: Policy[Any], world: World, steps: int = HORIZON) -> tuple[Simulation, Floats]:
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
    """Rankings are valid and repeatable, and exactly `budget` agents are chosen."""
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    for step in range(HORIZON):
        draws = world.draws(step)
        ranking = as_ranking(policy.rank(belief, state, draws), world.shape, policy.name)
        action = world.choose(ranking, draws)
        again = as_ranking(policy.rank(belief, state, draws), world.shape, policy.name)
        _require(
            all(np.array_equal(one, two) for one, two in zip(ranking, again, strict=True)),
            f"{policy.name}: two calls of rank in step {step} differ; take all randomness from draws, and "
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
    _require(same, f"{policy.name}: learn changed its arguments; write into the belief only.")


def _check_repeatable(policy: Policy[Any], world: World) -> None:
    same = np.array_equal(_simulate(policy, world)[1], _simulate(policy, world)[1])
    _require(same, f"{policy.name}: the same seed gave two results; take all randomness from draws.")


def _check_runs_apart(policy: Policy[Any], world: World) -> None:
    whole = _simulate(policy, world)[1]
    for run in range(world.shape.runs):
        alone = _simulate(policy, world.chunk(run, run + 1))[1]
        _require(
            np.array_equal(whole[run : run + 1], alone),
            f"{policy.name}: run {run} differs when it is simulated alone; a run must not depend on the others.",
        )


def _check_checkpoint(policy: Policy[Any], world: World) -> None:
    whole = _simulate(policy, world)[1]
    half = HORIZON // 2
    simulation, first = _simulate(policy, world, half)
    with tempfile.TemporaryDirectory() as folder:
        simulation.save(Path(folder) / "half.npz")
        resumed = Simulation.load(Path(folder) / "half.npz", world, type(policy))
    rest, _ = resumed.advance(HORIZON - half)
    _require(
        resumed.policy == policy and np.array_equal(whole, np.hstack([first, rest])),
        f"{policy.name}: it continued differently after a checkpoint; keep all that it remembers in the belief, "
        "and all that defines it in its settings.",
    )


def _check_model_not_used(policy: Policy[Any], world: World) -> None:
    """A learner ranks the same for two models with one history."""
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
            f"{policy.name}: with the same history it ranked differently for another model; a learner must not use it.",
        )
        outcome = world.advance(state, action := world.choose(rankings[0], draws), draws)
        for belief in beliefs:
            policy.learn(belief, state, action, outcome.reward, outcome.after)
        state = outcome.after


def _check_agents_permute(policy: Policy[Any], world: World) -> None:
    """Reversing or rotating the agents does not change who is chosen."""
    agents = np.arange(world.shape.agents)
    for order in (agents[::-1].copy(), np.roll(agents, agents.size // 2)):
        plain, reordered = Simulation(world, policy), Simulation(world.permute(order), policy)
        for step in range(HORIZON):
            plain.advance(1)
            reordered.advance(1)
            _require(
                np.array_equal(plain.state[:, order], reordered.state),
                f"{policy.name}: reordering the agents changed who was chosen by step {step}; treat all agents the same.",
            )


def _check_estimate(policy: Policy[Any], world: World) -> None:
    for steps in (0, HORIZON // 2):
        simulation, _ = _simulate(policy, world, steps)
        belief, state = _copy(simulation.belief), simulation.state.copy()
        estimate = policy.estimate(simulation.belief, simulation.state)
        same = not _changed(belief, simulation.belief) and np.array_equal(state, simulation.state)
        _require(same, f"{policy.name}: estimate changed its arguments; change the belief in learn only.")
        for part, array in estimate._asdict().items():
            if part == "center" and array is None:
                continue
            _require(
                np.shape(array) == state.shape,
                f"{policy.name}: estimate returned {part} of shape {list(np.shape(array))}; it must be "
                f"{list(state.shape)}, runs by agents.",
            )
        valid = bool((np.isfinite(estimate.noise) & (estimate.noise >= 0)).all()) and not (estimate.error < 0).any()
        _require(valid, f"{policy.name}: estimate returned an error or noise below 0, or noise that is not finite.")


def _check_axes(policy: Policy[Any], world: World) -> None:
    if isinstance(policy, Learner):
        require_axes(policy, world.shape)


def _check_learn_some(policy: Policy[Any], world: World) -> None:
    """`learn_some` of all agents equals `learn`, and of some leaves the rows of the others unchanged."""
    if isinstance(policy, Oracle):
        return
    simulation, _ = _simulate(policy, world, HORIZON // 2)
    state, (_, action), agents = simulation.state, simulation.decide(), np.arange(world.shape.agents)
    outcome = world.advance(state, action, world.draws(simulation.step))
    observed = (state, action, outcome.reward, outcome.after)
    plain, whole, partial = (_copy(simulation.belief) for _ in range(3))
    policy.learn(plain, *observed)
    policy.learn_some(whole, agents, *observed)
    names = _changed(plain, whole)
    _require(not names, f"{policy.name}: learn_some of all agents and learn differ in {', '.join(names)}.")
    some, others = agents[::2], agents[1::2]
    parts: list[Any] = [np.ascontiguousarray(array[:, some]) for array in observed]
    policy.learn_some(partial, some, *parts)
    _require_others_unchanged(policy, others, simulation.belief, partial)


def _require_others_unchanged(policy: Policy[Any], others: Ints, before: Any, after: Any) -> None:
    """A policy's own learn_some may update other agents from what they share, but not all of their arrays."""
    owned = {name: axis for name, axis in agent_axes(policy, before).items() if axis is not None}
    first, then = flatten(before), flatten(after)
    unchanged = [
        np.array_equal(np.take(first[name], others, axis), np.take(then[name], others, axis), equal_nan=True)
        for name, axis in owned.items()
    ]
    own = type(policy).learn_some is not Learner.learn_some
    _require(
        not unchanged or (any(unchanged) if own else all(unchanged)),
        f"{policy.name}: learn_some changed the rows of agents that were not observed; keep to `agents`.",
    )


def _check_growth(policy: Policy[Any], world: World) -> None:
    """New agents in mid-run leave what is known of the others unchanged, and the policy continues."""
    if isinstance(policy, Oracle):
        return
    simulation, _ = _simulate(policy, world, HORIZON // 2)
    before, agents = _copy(simulation.belief), world.shape.agents
    shape = world.shape._replace(agents=agents + NEWCOMERS)
    if shape.features is not None:
        shape = shape._replace(features=np.pad(shape.features, ((0, 0), (0, NEWCOMERS), (0, 0))))
    grown = grow(policy, simulation.belief, shape)
    for name, axis in agent_axes(policy, before).items():
        array = flatten(grown)[name]
        present = array if axis is None else np.take(array, np.arange(agents), axis)
        _require(
            np.array_equal(present, flatten(before)[name], equal_nan=True),
            f"{policy.name}: {name} of its belief changed for present agents when new ones joined; "
            "welcome may write the rows of the new ones only.",
        )
    state = np.zeros((world.shape.runs, shape.agents), np.int64)
    state[:, :agents] = simulation.state
    for step in range(simulation.step, simulation.step + 3):
        draws = Draws(world.keys, np.arange(shape.agents), step, shape.budget)
        priority = as_ranking(policy.rank(grown, state, draws), shape, policy.name).priority
        _require(not np.isnan(priority).any(), f"{policy.name}: a priority is NaN after new agents joined.")
        action = (np.argsort(np.argsort(-priority, axis=1), axis=1) < shape.budget).astype(np.int64)
        policy.learn(grown, state, action, np.zeros(state.shape), state)


def _copy(belief: Any) -> Any:
    return unflatten(belief, {name: array.copy() for name, array in flatten(belief).items()})


def _changed(before: Any, after: Any) -> list[str]:
    """The names of the arrays that differ."""
    first, then = flatten(before), flatten(after)
    return [name for name, array in first.items() if not np.array_equal(array, then[name], equal_nan=True)]


def check_problem(problem: Problem) -> tuple[str, ...]:
    """Check that a problem survives its files and can be simulated; return remarks on what is valid but unusual.

    >>> check_problem(Problem([[np.eye(2), np.eye(2)]], [0, 1], budget=1))
    ('acting and waiting are the same for every agent', 'agent 0 cannot leave state 0 under either action')
    """
    again = problem.replace()
    for ending in (".json", ".npz"):
        with tempfile.TemporaryDirectory() as folder:
            again.save(Path(folder) / f"problem{ending}")
            back = Problem.load(Path(folder) / f"problem{ending}")
        same = np.array_equal(back.transition, problem.transition) and np.array_equal(back.reward, problem.reward)
        _require(
            same and (back.budget, back.spend) == (problem.budget, problem.spend),
            f"the problem changed when saved to and loaded from a {ending} file.",
        )
    reward = simulate(problem, "random", horizon=5, runs=2).reward
    low, high = problem.reward.min(axis=1).sum(), problem.reward.max(axis=1).sum()
    slack = 1e-9 * float(np.abs(problem.reward).max(axis=1).sum())
    within = bool(((reward >= low - slack) & (reward <= high + slack)).all())
    _require(within, "the reward of a simulated step is outside the range of its states' rewards.")
    return tuple(_remarks(problem))


def _remarks(problem: Problem) -> list[str]:
    remarks = []
    wait, act = problem.transition[:, 0], problem.transition[:, 1]
    if np.array_equal(wait, act):
        remarks.append("acting and waiting are the same for every agent")
    if np.ptp(problem.reward) == 0:
        remarks.append("all rewards are equal, so no policy is better than another")
    stuck = np.argwhere((np.diagonal(wait, axis1=1, axis2=2) == 1) & (np.diagonal(act, axis1=1, axis2=2) == 1))
    if len(stuck) and problem.shape[1] > 1:
        remarks.append(f"agent {stuck[0][0]} cannot leave state {stuck[0][1]} under either action")
    return remarks
