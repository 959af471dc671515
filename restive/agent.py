"""A policy for an environment or service of your own: `act` chooses agents, `learn` learns from what happened to them.

An `Agent` is one run of `Simulation` whose world is somewhere else: with the same seed, states and rewards it makes the
same choices, bit for bit. It keeps everything that it knows in arrays, which `save` writes and `load` reads.

states, rewards, next_states   one entry for each agent, None or NaN where it is missing; or a mapping from agents to
                               entries, without those that are missing
agents and states              numbers from 0 on, or names: different texts or different whole numbers
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from restive import checkpoint
from restive.contract import Draws, KnownMoves, Past, Ranking, Shape, as_ranking, select_actions
from restive.display import Displayed
from restive.errors import InputError, check_number, check_whole
from restive.kernels import rng
from restive.kernels.inclusion import inclusion_probabilities
from restive.kernels.spending import NO_GROUPS, ROUNDING, inclusion_within, spending_probabilities
from restive.names import Name, Names, as_array, as_numbers, is_known
from restive.policies import make_policy
from restive.policies.base import Learner, Policy
from restive.policies.belief import Axes, agent_axes, grow, put, require_axes, take
from restive.problem import EXACTLY, check_cost, check_features, check_spend
from restive.types import Bools, Floats, Ints

Entries: TypeAlias = Mapping[Any, Any] | Sequence[Any] | NDArray[Any]

FACTS = ("agents", "states", "budget", "spend", "seed", "horizon", "reward_range", "step")
MAX_REWARD_RANGE = 1e12
# The random stream in which the noise of priorities is drawn again, and how often it is.
REDRAWN, N_DRAWS = 2**32 + 2, 512
# With costs, probabilities are frequencies over so many draws.
N_COST_DRAWS = 4096
MAX_SHOWN = 8  # names in a notebook


class Explanation(NamedTuple):
    """The last decision, with one entry for each agent that was present, [M]."""

    agent: list[Any]
    state: list[Any]
    chosen: Bools
    probability: Floats  # of being chosen: the propensity
    priority: Floats
    benefit: Floats  # what acting now is estimated to add to the reward, NaN where unknown
    error: Floats  # its standard error, NaN where unknown, infinite where nothing was observed
    probability_error: Floats  # standard error of the probability, 0 where that is exact


class Decision(NamedTuple):
    """What `act` saw and did, about the M agents that were present."""

    present: Ints  # [M] their positions, ascending
    state: Ints  # [M]
    draws: Draws
    ranking: Ranking  # [1, M]
    action: Ints  # [M] 0 or 1


class Agent(Displayed):
    """A policy that chooses agents in every round and learns from what happens.

    Parameters
    ----------
    policy
        A learner, or its name with settings, such as "lagrange" or "egt:eta=0.5"; see `make_policy`.
    agents
        Their number, or a list of their names.
    states
        Their number, or a list of their names.
    budget
        The number of agents that can be acted on in a round, or with costs the sum of theirs; it may be changed between
        rounds.
    cost
        [N], above 0: what acting on each agent takes of the budget; None if it is 1 for all of them. It may be changed
        between rounds.
    spend
        "exactly" to spend the budget in every round as far as possible; "at most" to leave out agents that the policy
        does not expect to gain.
    seed
        The seed of all random numbers.
    horizon
        The number of rounds, for policies that plan ahead; None if it is not known.
    reward_range
        The largest possible reward of an agent in a round minus the smallest, for policies that use it.
    features
        [N, F], fixed numbers of each agent, NaN where unknown, for policies that use them; None if there are none.
    history
        What the policy starts from: the model that `restive.fit` made of a history of these agents, in this order
        (`FittedModel.about` sorts it so); None if there is none.

    Raises
    ------
    InputError
        If the policy is an oracle, a name is used twice, or a number is not valid.

    Attributes
    ----------
    policy
        The policy.
    belief
        What the policy knows: a NamedTuple of arrays.
    step
        The number of rounds decided.

    Examples
    --------
    >>> agent = Agent("egt", agents=["ann", "ben", "cleo"], states=["low", "high"], budget=1, seed=7)
    >>> agent.act(["low", "low", "high"])
    ['ben']
    >>> agent.learn(["low", "low", "high"], ["ben"], [0, 1, 1], ["low", "high", "high"])
    """

    def __init__(
        self,
        policy: str | Policy[Any],
        agents: int | Iterable[Name],
        states: int | Iterable[Name],
        budget: int,
        *,
        cost: ArrayLike | None = None,
        spend: str = EXACTLY,
        seed: int = 0,
        horizon: int | None = None,
        reward_range: float = 1.0,
        features: ArrayLike | None = None,
        history: KnownMoves | None = None,
    ) -> None:
        made = make_policy(policy)
        if not isinstance(made, Learner):
            raise InputError(f"{made.name} is an oracle, which needs the true model; use a learner.", location="policy")
        self.policy = made
        self._agents = Names("agent", "agents", agents, 0)
        self._states = Names("state", "states", states, 1)
        self.budget = budget
        self._cost = None if cost is None else check_cost(cost, self._agents.size)
        self.spend = check_spend(spend)
        self.seed = check_whole("seed", seed, 0, rng.MAX_SEED)
        self.horizon = None if horizon is None else check_whole("horizon", horizon, 1)
        must = f"it must be the largest difference of two rewards, from 0 to {MAX_REWARD_RANGE:g}"
        self.reward_range = check_number("reward_range", reward_range, must, 0, MAX_REWARD_RANGE)
        self.features = None if features is None else check_features(features, self._agents.size)
        self.step = 0
        self.belief: Any = made.start(self._shape())
        if history is not None:
            made.warm_start(self.belief, self._shape(), Past.of_runs([history], self._shape()))
        self._keys = rng.run_keys(self.seed, np.zeros(1, np.int64))
        self._last: Decision | None = None
        self._checked_axes: Axes | None = None

    @property
    def agents(self) -> list[Any]:
        """The names of all agents, in the order in which they joined."""
        return list(self._agents.names)

    @property
    def states(self) -> list[Any]:
        """The names of all states."""
        return list(self._states.names)

    @property
    def budget(self) -> int:
        """The number of agents that can be acted on in a round, or with costs the sum of theirs."""
        return self._budget

    @budget.setter
    def budget(self, value: int) -> None:
        self._budget = check_whole("budget", value, 0)

    @property
    def cost(self) -> Floats | None:
        """What acting on each agent takes of the budget, [N]; None if it is 1 for all of them."""
        return self._cost

    @cost.setter
    def cost(self, value: ArrayLike) -> None:
        if self._cost is None:
            raise InputError("cost is set, but the agent was made without costs.", location="cost")
        self._cost = check_cost(value, self._agents.size)

    def act(self, states: Entries) -> list[Any]:
        """The agents to act on in this round, in the order of joining: those of highest priority whose state is given.

        There are `budget` of them, or with costs as many as the budget allows; fewer if it need not be spent.

        Parameters
        ----------
        states
            The state of each agent, in their order, None where it is not known; or a mapping from agents to states.
        """
        present, state = self._read_states("states", states)
        cost = None if self.cost is None else self.cost[None, present]
        budget = min(self.budget, present.size) if cost is None else self.budget
        draws = Draws(self._keys, present, self.step, budget, cost, self.spend)
        whole = present.size == self._agents.size
        belief = self.belief if whole else take(self.belief, self._axes(), present)
        if present.size:
            ranked = self.policy.rank(belief, state[None], draws)
            ranking = as_ranking(ranked, self._shape()._replace(agents=present.size), self.policy.name)
        else:
            ranking = Ranking(np.zeros((1, 0)), np.zeros(1))
        try:
            action = select_actions(ranking, draws)[0]
        except InputError as error:
            raise InputError(f"{self.policy.name}: {error}") from None
        if not whole:
            put(self.belief, self._axes(), present, belief)
        self.step += 1
        self._last = Decision(present, state, draws, ranking, action)
        return self._agents.select(present[action == 1])

    def learn(self, states: Entries, chosen: Iterable[Any], rewards: Entries, next_states: Entries) -> None:
        """Learn from a round: in these states these agents were acted on, and got these rewards in these next states.

        Agents without a reward and next state were not observed and are left out. The round need not have been decided
        by `act`, so an agent can learn from recorded data first.

        Parameters
        ----------
        states
            The states before the round, as for `act`.
        chosen
            The agents that were acted on.
        rewards
            The reward of each agent, in their order, None or NaN where it is not known; or a mapping from agents.
        next_states
            The states after the round, like `rewards`.
        """
        present, state = self._read_states("states", states)
        action = self._read_chosen(chosen)
        observed, reward = self._read_rewards(rewards)
        arrived, after = self._read_states("next_states", next_states)
        self._require_same(observed, arrived, present)
        if not observed.size:
            return
        here = state[np.searchsorted(present, observed)]
        rows = (here[None], action[observed][None], reward[None], after[None])
        if observed.size == self._agents.size:
            self.policy.learn(self.belief, *rows)
        else:
            self._axes()
            self.policy.learn_some(self.belief, observed, *rows)
        self._last = None

    def explain(self) -> Explanation:
        """Why the last `act` chose as it did; `learn` and `add_agents` change what the policy knows and end this.

        If the priorities contain noise, the probabilities are averages over draws of it.
        """
        if self._last is None:
            raise InputError("explain: there is no decision to explain; call act first, and explain before learn.")
        present, state, draws, ranking, action = self._last
        whole = present.size == self._agents.size
        belief = self.belief if whole else take(self.belief, self._axes(), present)
        estimate = self.policy.estimate(belief, state[None])
        benefits = self.policy.benefits(self.belief, self._shape(), present)
        here = np.arange(present.size), state
        probability, error = _probability(ranking, estimate.expected_priority()[0], estimate.noise[0], draws)
        return Explanation(
            agent=self._agents.select(present),
            state=self._states.select(state),
            chosen=action == 1,
            probability=probability,
            priority=ranking.priority[0],
            benefit=benefits.benefit[0][here],
            error=benefits.error[0][here],
            probability_error=error,
        )

    def add_agents(
        self, agents: int | Iterable[Name], features: ArrayLike | None = None, cost: ArrayLike | None = None
    ) -> list[Any]:
        """Add new agents at the end, by number or by name, and return their names.

        The policy initialises them from what it knows of the others, if it can (`Policy.welcome`).

        Parameters
        ----------
        agents
            How many, or their names.
        features
            [M, F] of the new agents; unknown if they are not given.
        cost
            [M] of the new agents; needed if the others have costs.
        """
        self._axes()
        before, grown = self._agents.size, self._agents.add(agents)
        if (cost is None) != (self.cost is None):
            missing = "missing, but the other agents have costs" if cost is None else "given, but the others have none"
            raise InputError(f"cost is {missing}.", location="cost")
        costs = None if cost is None else check_cost(cost, grown.size - before)
        if self.features is not None:
            rows = (grown.size - before, self.features.shape[1])
            new = np.full(rows, np.nan) if features is None else check_features(features, rows[0])
            if new.shape != rows:
                raise InputError(f"features has shape {list(new.shape)}; it must be {list(rows)}.", location="features")
            self.features = np.concatenate([self.features, new])
        elif features is not None:
            raise InputError("features is given, but the other agents have none.", location="features")
        if self._cost is not None and costs is not None:
            self._cost = np.concatenate([self._cost, costs])
        self._agents, self._last = grown, None
        self.belief = grow(self.policy, self.belief, self._shape())
        return list(grown.names[before:])

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything that the agent knows to the file `path`, which is complete or absent."""
        facts = {"agents": self._agents.given, "states": self._states.given}
        facts |= {name: getattr(self, name) for name in FACTS if name not in facts}
        checkpoint.save(path, self.policy, self.belief, self._extra(), **facts)

    @classmethod
    def load(cls, path: str | PathLike[str], policy: type[Policy[Any]] | None = None) -> "Agent":
        """Continue from the file `path` of `save`, bit for bit; `policy` is the class of one that is not registered."""
        saved = checkpoint.load(path, policy)
        if missing := [name for name in FACTS if name not in saved.header]:
            raise InputError(f"{path}: not a checkpoint of an Agent ({missing[0]} is missing).")
        facts = {name: saved.header[name] for name in FACTS}
        try:
            step = check_whole("step", facts.pop("step"), 0)
            agent = cls(saved.policy, **facts, features=saved.extra.get("features"), cost=saved.extra.get("cost"))
        except InputError as error:
            raise InputError(f"{path}: a damaged checkpoint; {error}") from None
        agent.belief = saved.restore(path, agent.belief, "for these agents and states", **agent._extra())
        agent.step = step
        return agent

    def facts(self) -> dict[str, object]:
        """Policy, size and step, and who was chosen last."""
        sizes = {"agents": self._agents.size, "states": self._states.size, "budget": self.budget, "step": self.step}
        if self._last is None:
            return {"policy": self.policy, **sizes}
        chosen = [str(name) for name in self._agents.select(self._last.present[self._last.action == 1])]
        return {
            "policy": self.policy,
            **sizes,
            "chosen": ", ".join(chosen[:MAX_SHOWN]) + ", …" * (len(chosen) > MAX_SHOWN),
        }

    def to_frame(self) -> pl.DataFrame:
        """The last decision as `explain` gives it, one row for each agent that was present."""
        return pl.DataFrame(self.explain()._asdict())

    def __repr__(self) -> str:
        sizes = f"agents={self._agents.size}, states={self._states.size}, budget={self.budget}"
        return f"Agent({self.policy.name!r}, {sizes}, step={self.step})"

    def _shape(self) -> Shape:
        agents, features = self._agents.size, None if self.features is None else self.features[None]
        cost, budget = (None, min(self.budget, agents)) if self.cost is None else (self.cost[None], self.budget)
        sizes = (1, agents, self._states.size, budget)
        return Shape(*sizes, self.horizon, np.array([self.reward_range]), features, cost, self.spend)

    def _extra(self) -> dict[str, Any]:
        given = {"features": self.features, "cost": self.cost}
        return {name: array for name, array in given.items() if array is not None}

    def _axes(self) -> Axes:
        """The axes of agents in the belief, compared once with its arrays."""
        if self._checked_axes is None:
            require_axes(self.policy, self._shape())
            self._checked_axes = agent_axes(self.policy, self.belief)
        return self._checked_axes

    def _read(self, place: str, given: Entries) -> tuple[Ints, NDArray[Any]]:
        """The positions of the agents that have an entry, ascending, and their entries."""
        if isinstance(given, Mapping):
            position = self._agents.find(place, given)
            order = np.argsort(position, kind="stable")
            position, entry = position[order], as_array(place, list(given.values()))[order]
        else:
            position, entry = np.arange(self._agents.size), as_array(place, given)
        if entry.shape != position.shape:
            raise InputError(
                f"{place} has shape {list(entry.shape)}; it must be [{position.size}], one entry for each agent, or a "
                "mapping from agents to entries.",
                location=place,
            )
        known = is_known(entry)
        return position[known], entry[known]

    def _read_states(self, place: str, given: Entries) -> tuple[Ints, Ints]:
        position, entry = self._read(place, given)
        state, valid = self._states.positions(entry)
        if not valid.all():
            agent, value = self._first_wrong(position, entry, valid)
            raise InputError(
                f"{place}: the state of agent {agent!r} is {value!r}; {self._states.describe(value)}", location=place
            )
        return position, state

    def _read_rewards(self, given: Entries) -> tuple[Ints, Floats]:
        position, entry = self._read("rewards", given)
        reward, valid = as_numbers(entry)
        valid &= np.isfinite(reward)
        if not valid.all():
            agent, value = self._first_wrong(position, entry, valid)
            raise InputError(
                f"rewards: the reward of agent {agent!r} is {value!r}; it must be a finite number.", location="rewards"
            )
        return position, reward

    def _first_wrong(self, position: Ints, entry: NDArray[Any], valid: Bools) -> tuple[Any, Any]:
        wrong = int(np.argmin(valid))
        return self._agents.names[position[wrong]], entry[wrong : wrong + 1].tolist()[0]

    def _read_chosen(self, chosen: Iterable[Any]) -> Ints:
        """The actions of all agents, [N]."""
        position = self._agents.find("chosen", chosen)
        action = np.bincount(position, minlength=self._agents.size)
        if action.size and action.max() > 1:
            raise InputError(
                f"chosen names agent {self._agents.names[int(action.argmax())]!r} twice.", location="chosen"
            )
        spent = position.size if self.cost is None else float(self.cost[position].sum())
        if spent > self.budget * (1 + ROUNDING):
            cost = "" if self.cost is None else f", which cost {spent:g}"
            raise InputError(
                f"chosen names {position.size} agents{cost}; the budget is {self.budget}, which may be changed.",
                location="chosen",
            )
        return action

    def _require_same(self, observed: Ints, arrived: Ints, present: Ints) -> None:
        """Refuse a reward without next state, the reverse, and either without a state."""
        for there, missing, place, what in (
            (observed, arrived, "next_states", "reward"),
            (arrived, observed, "rewards", "next state"),
            (observed, present, "states", "reward"),
        ):
            if (lone := np.setdiff1d(there, missing)).size:
                agent = self._agents.names[lone[0]]
                raise InputError(f"{place} has no entry of agent {agent!r}, whose {what} is given.", location=place)


def _probability(ranking: Ranking, center: Floats, noise: Floats, draws: Draws) -> tuple[Floats, Floats]:
    """The probability that each agent is chosen, over exploration, ties and noise, [M], and its standard error."""
    exact = np.zeros(noise.size)
    if not noise.size:
        return exact, exact
    least, explore = float(ranking.least(draws)[0]), float(ranking.explore[0])
    if not noise.any():
        mean = ranking.priority[0]
    else:  # without its noise a priority is the center, up to a constant, and 0 at break-even
        mean, least = np.ascontiguousarray(center), -np.inf if least == -np.inf else 0.0
    budget, key = draws.budget, draws.branch(REDRAWN)[0]
    if draws.cost is not None:
        rest = draws.cost[0], budget, NO_GROUPS, key, draws.agents, N_COST_DRAWS
        return spending_probabilities(mean, noise, explore, least, *rest)
    if not noise.any() or not budget:
        closed: Floats = inclusion_within(ranking.priority, ranking.explore, ranking.least(draws), budget)[0]
        return closed, exact
    group, quota, deviation = np.full(noise.size, -1), np.zeros(0, np.int64), np.ascontiguousarray(noise)
    best, error = inclusion_probabilities(mean, deviation, group, quota, budget, key, draws.agents, N_DRAWS, least)
    return explore * budget / noise.size + (1 - explore) * best, (1 - explore) * error
