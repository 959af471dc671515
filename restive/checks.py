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
from restive.policies.base import Draws, Learner, Model, Oracle, Policy, as_ranking
from restive.policies.belief import agent_axes, flatten, grow, refill
from restive.problem import Problem
from restive.problems import make_problems
from restive.simulate import Simulation, simulate
from restive.types import Floats, Ints
from restive.world import World

RUNS, HORIZON = 3, 40
NEWCOMERS = 3


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
        _check_estimate,
        _check_learn_some,
        _check_growth,
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


def _check_estimate(policy: Policy[Any], world: World) -> None:
    for steps in (0, HORIZON // 2):
        game, _ = _play(policy, world, steps)
        belief, state = _copy(game.belief), game.state.copy()
        estimate = policy.estimate(game.belief, game.state)
        same = not _changed(belief, game.belief) and np.array_equal(state, game.state)
        _require(same, f"{policy.name}: estimate changed what it was given; change the belief in learn only.")
        for part, array in estimate._asdict().items():
            _require(
                np.shape(array) == state.shape,
                f"{policy.name}: estimate gave {part} of shape {list(np.shape(array))}; it must be "
                f"{list(state.shape)}, runs by agents.",
            )
        sane = bool((np.isfinite(estimate.luck) & (estimate.luck >= 0)).all()) and not (estimate.error < 0).any()
        _require(sane, f"{policy.name}: estimate gave an error or luck below 0, or luck that is not finite.")


def _check_learn_some(policy: Policy[Any], world: World) -> None:
    """All seen is a plain step; of agents that were not seen nothing is written that belongs to them."""
    if isinstance(policy, Oracle):
        return
    game, _ = _play(policy, world, HORIZON // 2)
    state, (_, action), agents = game.state, game.decide(), np.arange(world.shape.agents)
    outcome = world.advance(state, action, world.draws(game.step))
    seen = (state, action, outcome.reward, outcome.after)
    plain, whole, partly = (_copy(game.belief) for _ in range(3))
    policy.learn(plain, *seen)
    policy.learn_some(whole, agents, *seen)
    names = _changed(plain, whole)
    _require(not names, f"{policy.name}: learn_some of all agents left {', '.join(names)} otherwise than learn did.")
    some, others = agents[::2], agents[1::2]
    parts: list[Any] = [np.ascontiguousarray(array[:, some]) for array in seen]
    policy.learn_some(partly, some, *parts)
    _require_others_kept(policy, agent_axes(policy, world.shape), others, game.belief, partly)


def _require_others_kept(
    policy: Policy[Any], axes: dict[str, int | None], others: Ints, before: Any, after: Any
) -> None:
    """A learn_some of its own may let the others profit from what agents share, but what was seen of them stays."""
    owned = {name: axis for name, axis in axes.items() if axis is not None}
    first, then = flatten(before), flatten(after)
    kept = [
        np.array_equal(np.take(first[name], others, axis), np.take(then[name], others, axis), equal_nan=True)
        for name, axis in owned.items()
    ]
    own = type(policy).learn_some is not Learner.learn_some
    _require(
        not kept or (any(kept) if own else all(kept)),
        f"{policy.name}: learn_some changed what was seen of agents that it was told nothing of; keep to `agents`.",
    )


def _check_growth(policy: Policy[Any], world: World) -> None:
    """Newcomers in mid-run: what is known of the others stays, and the policy goes on."""
    if isinstance(policy, Oracle):
        return
    game, _ = _play(policy, world, HORIZON // 2)
    before, agents = _copy(game.belief), world.shape.agents
    shape = world.shape._replace(agents=agents + NEWCOMERS)
    grown = grow(policy, game.belief, shape)
    for name, axis in agent_axes(policy, shape).items():
        array = flatten(grown)[name]
        kept = array if axis is None else np.take(array, np.arange(agents), axis)
        _require(
            np.array_equal(kept, flatten(before)[name], equal_nan=True),
            f"{policy.name}: {name} of its belief is not what it was before newcomers came; welcome may write theirs.",
        )
    state = np.zeros((world.shape.runs, shape.agents), np.int64)
    state[:, :agents] = game.state
    for step in range(game.step, game.step + 3):
        draws = Draws(world.keys, np.arange(shape.agents), step, shape.budget)
        priority = as_ranking(policy.rank(grown, state, draws), shape, policy.name).priority
        _require(not np.isnan(priority).any(), f"{policy.name}: a priority is NaN after newcomers came.")
        action = (np.argsort(np.argsort(-priority, axis=1), axis=1) < shape.budget).astype(np.int64)
        policy.learn(grown, state, action, np.zeros(state.shape), state)


def _copy(belief: Any) -> Any:
    return refill(belief, {name: array.copy() for name, array in flatten(belief).items()})


def _changed(before: Any, after: Any) -> list[str]:
    """The names of the arrays that are not the same."""
    first, then = flatten(before), flatten(after)
    return [name for name, array in first.items() if not np.array_equal(array, then[name], equal_nan=True)]


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
