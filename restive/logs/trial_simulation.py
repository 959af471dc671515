"""Simulated trials: R programs with a control group, in which it is known what would have happened without them.

The policy sees everybody, as in the desk, but acts only on the first `n_program` of the N people of each trial. People of
the control group would have been acted on from the first round in which their priority reaches the program's cutoff.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from restive.contract import as_ranking, reach_cutoff
from restive.kernels import rng
from restive.logs.estimators import Sums
from restive.logs.model import FittedModel
from restive.policies import make_policy
from restive.policies.base import Policy
from restive.problem import Problem
from restive.types import Bools, Floats, Ints
from restive.world import World

NOBODY = np.zeros(1, np.int64)
MAX_CELLS = 60_000  # people of all trials that are simulated at once


class TrialSimulation:
    """Trials in lock step, one for each problem.

    Attributes
    ----------
    total, since_total, since_seen, actions, untouched
        [R, N] sums so far: rewards, rewards and rounds from the first touch on, actions, and the rewards if there were no
        program, with the same random numbers.
    """

    def __init__(
        self, problems: Sequence[Problem], policy: Policy[Any], n_program: int, seed: int, horizon: int | None = None
    ) -> None:
        self.world = World(problems, seed=seed, horizon=horizon)
        self.policy = policy
        self.belief = policy.begin(self.world.shape, self.world.model)
        self.state = self.world.first_states()
        self.still = self.state.copy()  # the states without a program
        self.control: Bools = np.arange(self.world.shape.agents) >= n_program
        self.step = 0
        self.touched = np.zeros(self.state.shape, np.bool_)
        sums = np.zeros((5, *self.state.shape))
        self.total, self.since_total, self.since_seen, self.actions, self.untouched = sums

    def advance(self, rounds: int = 1) -> None:
        """Simulate more rounds."""
        for _ in range(rounds):
            self._advance()

    def _advance(self) -> None:
        world, draws = self.world, self.world.draws(self.step)
        action, would_act = self._decide()
        self.touched |= would_act
        outcome = world.advance(self.state, action, draws)
        self.policy.learn(self.belief, self.state, action, outcome.reward, outcome.after)
        without = world.advance(self.still, np.zeros_like(action), draws)
        self.state, self.still, self.step = outcome.after, without.after, self.step + 1
        self.total += outcome.reward
        self.untouched += without.reward
        self.since_total += np.where(self.touched, outcome.reward, 0)
        self.since_seen += self.touched
        self.actions += action

    def _decide(self) -> tuple[Ints, Bools]:
        """The actions, and whether each person was or would have been acted on, [R, N]."""
        world, draws = self.world, self.world.draws(self.step)
        ranking = as_ranking(self.policy.rank(self.belief, self.state, draws), world.shape, self.policy.name)
        exploring = rng.uniform(draws.branch(rng.EXPLORE), NOBODY) < ranking.explore[:, None]
        priority = np.where(exploring, 0.0, ranking.priority)
        free = ~self.control & (exploring | (priority > ranking.least(draws)[:, None]))
        program = ranking._replace(priority=np.where(free, priority, -np.inf), explore=np.zeros(len(priority)))
        action = world.choose(program, draws)
        chosen = (action == 1) & free
        reached = reach_cutoff(priority, rng.uniform(draws.branch(rng.TIE), draws.agents), chosen)
        everybody = ~(free & ~chosen).any(axis=1, keepdims=True)
        willing = exploring | (priority > ranking.least(draws)[:, None])
        return chosen.astype(np.int64), np.where(self.control, (reached | everybody) & willing, chosen)

    def sums(self, trial: int) -> Sums:
        """The sums of one trial."""
        parts = (array[trial] for array in (self.total, self.since_total, self.since_seen, self.touched, self.actions))
        total, since_total, since_seen, touched, actions = parts
        seen = np.full(total.size, float(self.step))
        return Sums(total, seen, since_total, since_seen, touched, actions, self.control)

    def all_sums(self) -> list[Sums]:
        """The sums of each trial."""
        return [self.sums(trial) for trial in range(len(self.total))]

    def own_lift(self) -> Floats:
        """What each program brought to its own people, per person and round, [R]: with it minus without it."""
        gain = (self.total - self.untouched)[:, ~self.control].mean(axis=1) / self.step
        return np.asarray(gain)


def start_trials(
    source: FittedModel | Problem,
    people: int,
    n_program: int,
    budget: int,
    policy: str,
    trials: int,
    seed: int,
    horizon: int,
) -> Iterator[TrialSimulation]:
    """Trials that have not begun, so many in all, in chunks that fit the memory."""
    chunk = max(1, MAX_CELLS // people)
    for first in range(0, trials, chunk):
        problems = draw_people(source, people, budget, min(chunk, trials - first), seed + first)
        yield TrialSimulation(problems, make_policy(policy), n_program, seed + first, horizon)


def draw_people(source: FittedModel | Problem, people: int, budget: int, trials: int, seed: int) -> list[Problem]:
    """The people of each trial: drawn with replacement, from draws of a model or from the agents of a problem."""
    problems = []
    for trial in range(trials):
        generator = np.random.default_rng([seed, trial, 2])
        if isinstance(source, Problem):
            taken = generator.integers(source.shape[0], size=people)
            start = None if source.start is None else source.start[taken]
            problems.append(Problem(source.transition[taken], source.reward[taken], budget, start))
        else:
            taken = generator.integers(len(source.counts), size=people)
            rows, start = source.draw(trial, seed, taken), source.last_state[taken]
            problems.append(Problem(rows, source.value, budget, start))
    return problems
