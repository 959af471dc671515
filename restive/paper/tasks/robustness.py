"""Where results end: the worst that greedy can do, slow chains, and rewards that are not stationary.

Greedy: two different two-state agents, one action, rewards 0 and 1, both in state 0 at first. One family of such pairs
has an agent A that acting brings to state 1 with probability ε at every step, and who falls back at once; and an agent
B that acting brings to state 1 with a probability just below ε, and who stays there. Greedy always acts on A and
collects ε T; acting on B collects about T − 1/ε.

Slow chains: an agent has a context, which it leaves with a small probability whatever is done, and a payoff of 0 or 1
on arrival, whose probability depends on context and action. So benefits do not depend on how slow the context is.
"""

from collections.abc import Mapping

import numpy as np

from restive.contract import Draws
from restive.files import Columns
from restive.kernels import rng
from restive.paper.tasks.simulation import TheoryEgt, follow, recorded_steps, thresholds
from restive.policies import make_policy
from restive.problem import Problem
from restive.problems import make_problems
from restive.solvers.joint_dp import evaluate_joint, list_sets, solve_joint
from restive.solvers.joint_dp import follow as follow_priority
from restive.solvers.myopic import benefit
from restive.types import Floats, Keys
from restive.world import World

COPIES, MIN_STEP = 4, 1e-3
REWARD = np.array([[0.0, 1.0], [0.0, 1.0]])


def greedy_share(good: Floats, horizon: int) -> float:
    """What greedy collects of the best, exactly; good [N, A, S] are probabilities of moving to state 1."""
    transition = np.stack([1 - good, good], axis=-1)
    sets = list_sets(2, 1)
    best = solve_joint(transition, REWARD, 1, horizon).values[0, 0]
    weights = follow_priority(benefit(transition, REWARD), sets)
    greedy = evaluate_joint(transition, REWARD, horizon, sets, weights)[0, 0]
    return float(greedy / best) if best > 0 else 1.0


def lasting_pair(horizon: int) -> Floats:
    """Agents A and B with ε = 1 / √T, [N, A, S]."""
    effect = horizon**-0.5
    return np.array([[[0.0, 0.0], [effect, effect]], [[0.0, 1.0], [0.99 * effect, 1.0]]])


def worst_greedy_share(horizon: int, starts: int, rounds: int, seed: int) -> Columns:
    """The smallest share that a search over pairs of agents finds, its probabilities, and the share of the lasting pair."""
    keys = rng.run_keys(seed, np.arange(starts))
    pairs = rng.uniform(rng.branch(keys, rng.FAMILY, 0), np.arange(8)).reshape(starts, 2, 2, 2)
    shares = np.array([greedy_share(each, horizon) for each in pairs])
    best, share = pairs[shares.argmin()], shares.min()
    for turn in range(rounds):
        tried = _vary(best, keys[:COPIES], turn, MIN_STEP ** (turn / rounds))
        found = [greedy_share(each, horizon) for each in tried]
        if min(found) < share:
            best, share = tried[int(np.argmin(found))], min(found)
    return {
        "share": np.full(8, share),
        "good": best.ravel(),
        "lasting": np.full(8, greedy_share(lasting_pair(horizon), horizon)),
    }


def _vary(pair: Floats, keys: Keys, turn: int, step: float) -> Floats:
    """Changed copies of a pair: half of its numbers stay, the others move by up to `step`, cut off at 0 and 1."""
    draws = rng.uniform(rng.branch(keys, rng.FAMILY, 1 + turn), np.arange(16)).reshape(-1, 2, *pair.shape)
    moved = np.clip(pair + step * (2 * draws[:, 1] - 1), 0.0, 1.0)
    return np.where(draws[:, 0] < 0.5, pair, moved)


def slow_problems(leave: float, instances: int, seed: int) -> list[Problem]:
    """The instances of the regret curve with contexts that change with probability `leave`; state = context + 2 · payoff."""
    contexts = np.array([[1 - leave, leave], [leave, 1 - leave]])
    problems = []
    for each in make_problems("ordered-v1", instances=instances, seed=seed):
        payoff = each.transition  # [N, A, context, payoff]
        joint = np.einsum("cd,nacr->nacrd", contexts, payoff).reshape(2, 2, 2, 4)
        problems.append(Problem(np.concatenate([joint, joint], axis=2), [0.0, 0.0, 1.0, 1.0], 1, name="slow contexts"))
    return problems


def slow_regret(leave: float, share: float, instances: int, horizon: int, runs: int, seed: int) -> Columns:
    """The cost of eps-GT, as theorem 4.4 sets it, with slow contexts."""
    problems = slow_problems(leave, instances, seed)
    gains = np.stack([benefit(problem.transition, problem.reward) for problem in problems])
    world = World(problems, runs, seed, threshold=list(thresholds(gains, share)), horizon=horizon)
    return follow(world, TheoryEgt(share), recorded_steps(horizon))


class DriftingNoise(World):
    """A world in which the variance of the noise swings between 0 and twice its mean; expected rewards stay."""

    period: int
    mean_std: float

    @classmethod
    def of(
        cls, problems: list[Problem], runs: int, seed: int, noise: float, horizon: int, period: int
    ) -> "DriftingNoise":
        """A world with this mean variance and period in steps."""
        world = cls(problems, runs, seed, noise, horizon=horizon)
        world.period, world.mean_std = period, world.noise_std
        return world

    def draws(self, step: int) -> Draws:
        """The random numbers of a step, with the variance of that step."""
        self.noise_std = self.mean_std * float(np.sqrt(1 + np.sin(2 * np.pi * step / self.period)))
        return super().draws(step)


def drift(
    family: str, sizes: Mapping[str, int], policy: str, horizon: int, runs: int, seed: int, noise: float, period: int
) -> Columns:
    """Simulate a policy where the variance of the noise drifts."""
    world = DriftingNoise.of(make_problems(family, **sizes), runs, seed, noise, horizon, period)
    return follow(world, make_policy(policy), recorded_steps(horizon))


class ChangedRewards(World):
    """A world in which, from one step on, every agent has the rewards of the agent half of all agents before it."""

    change: int
    changed: bool = False

    def draws(self, step: int) -> Draws:
        """The random numbers of a step, with the rewards of that step."""
        if step >= self.change and not self.changed:
            self.model = self.model._replace(reward=pass_on(self.model.reward))
            self.changed = True
        return super().draws(step)


def pass_on(reward: Floats) -> Floats:
    """Rewards [..., N, S], each moved on by half of the agents.

    >>> pass_on(np.array([[1.0], [2.0], [3.0], [4.0]])).ravel()
    array([3., 4., 1., 2.])
    """
    return np.roll(reward, reward.shape[-2] // 2, axis=-2)


def change(
    family: str, sizes: Mapping[str, int], policy: str, horizon: int, runs: int, seed: int, change: int
) -> Columns:
    """Simulate a policy where rewards are passed on after `change` steps; with 0 they are so in the model from the start."""
    problems = make_problems(family, **sizes)
    if change == 0:
        later = [Problem(each.transition, pass_on(each.reward), each.budget, name=each.name) for each in problems]
        return follow(World(later, runs, seed, horizon=horizon), make_policy(policy), recorded_steps(horizon))
    world = ChangedRewards(problems, runs, seed, horizon=horizon)
    world.change = change
    return follow(world, make_policy(policy), recorded_steps(horizon))
