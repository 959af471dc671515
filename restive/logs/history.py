"""A history: who was in which state in which round, who was acted on, and what followed.

Arrays have one entry for each row, sorted by agent and then by round; agents and states are positions, rounds count
from 1. The reward of a row is that of arriving in the next state, as everywhere in this package.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from restive.display import Displayed
from restive.logs.gaps import Gaps
from restive.problem import Problem
from restive.types import Bools, Floats, Ints

BY_ROW = (
    "agent", "round", "state", "action", "next_state", "reward", "propensity", "advised", "arm", "group", "available"
)  # fmt: skip
UNKNOWN = -1  # a next state, action, advice, arm or group that is not known


@dataclass(frozen=True, repr=False)
class History(Displayed):
    """A validated history; `restive.logs.tables` reads one from a file or a frame.

    Parameters
    ----------
    agents
        [N] names, in the order of their positions.
    states
        The S names of states, in the order of their positions: worst first where there is an order.
    rounds
        [T] what each round is called in the source: whole numbers or dates, rising.
    agent, round, state, action, next_state, reward
        One entry for each row. `next_state` is -1 and `reward` NaN where they are not known; `action` is 0 or 1.
    value
        [S] the expected reward on arriving in each state: the mean of what was observed, or as given.
    propensity
        The probability of acting, before the draw, or of being advised, where `advised` is known; None if the source
        does not have it.
    advised, arm, group
        Whether acting was advised; 1 for the program and 0 for the control group; a position in `groups`. -1 where
        not known; None if the source does not have them.
    groups
        The names of the groups.
    available
        Whether acting was possible.
    features, feature_names
        [N, F] fixed numbers of each agent, NaN where unknown, and their names.
    by_row
        Other columns of numbers that change over time, one entry for each row, NaN where unknown.
    notes
        What reading found and a reader should know, in sentences.
    gaps
        Rounds between two known states of an agent whose actions are known and whose states are not; None if there are
        none, and of a part of a history.

    Examples
    --------
    >>> table = {"agent": ["ann", "ann", "ben", "ben"], "time": [1, 2, 1, 2], "state": ["low", "high", "low", "low"]}
    >>> history = History.read(table | {"action": [1, 0, 0, 0]}, rewards={"low": 0, "high": 1})
    >>> history.n_agents, history.n_rounds, history.states, history.last_state.tolist()
    (2, 2, ('low', 'high'), [1, 0])
    """

    agents: pl.Series
    states: tuple[str, ...]
    rounds: pl.Series
    agent: Ints
    round: Ints
    state: Ints
    action: Ints
    next_state: Ints
    reward: Floats
    value: Floats
    propensity: Floats | None = None
    advised: Ints | None = None
    arm: Ints | None = None
    group: Ints | None = None
    groups: tuple[str, ...] = ()
    available: Bools | None = None
    features: Floats | None = None
    feature_names: tuple[str, ...] = ()
    by_row: Mapping[str, Floats] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    gaps: Gaps | None = None

    def facts(self) -> dict[str, object]:
        """People, rounds, states and actions."""
        when = f"{len(self.rounds)} ({self.rounds[0]} to {self.rounds[-1]})" if len(self.rounds) else 0
        counts = {"rows": self.state.size, "actions": int((self.action == 1).sum())}
        return {"people": len(self.agents), "rounds": when, "states": ", ".join(self.states), **counts}

    def to_frame(self) -> pl.DataFrame:
        """One row for each row of the table, with the columns that are known."""
        names = pl.Series(self.states)
        after = names.gather(np.maximum(self.next_state, 0)).set(pl.Series(self.next_state == UNKNOWN), None)
        columns = {
            "agent": self.agents.gather(self.agent),
            "time": self.rounds.gather(self.round - 1),
            "state": names.gather(self.state),
            "action": self.action,
            "next_state": after,
            "reward": self.reward,
            "propensity": self.propensity,
        }
        return pl.DataFrame({name: column for name, column in columns.items() if column is not None})

    @classmethod
    def read(cls, source: object, *, store: str | None = None, **options: Any) -> "History":
        """Read a history; what is wrong with the table is one `InputError` that lists every fault with row and column.

        Parameters
        ----------
        source
            A .csv, .tsv, .xlsx or .parquet file, a polars or pandas frame, columns, rows, the folder of an export, a
            program of the desk, or "program:NAME" for the program of that name in `store`.
        store
            The SQLite file or PostgreSQL address of that program.
        options
            How the table is read: `columns`, `states`, `rewards`, `action_is`, `every`, `reward_on`, `propensity_of`
            and `features`, see `restive.logs.options.ReadOptions`.
        """
        from restive.logs.tables import read_history

        return read_history(source, store=store, **options)

    def problem(self, budget: int) -> Problem:
        """The people as a problem with a `budget`, with the moves expected of each after a fit."""
        from restive.logs.fit import fit

        return fit(self, held_out=False).problem(budget)

    @property
    def n_agents(self) -> int:
        """N."""
        return len(self.agents)

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.states)

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.rounds)

    @cached_property
    def known(self) -> Bools:
        """The rows whose next state is known: the moves."""
        return self.next_state >= 0

    @cached_property
    def actions(self) -> tuple[int, ...]:
        """The actions that were taken: (0, 1), or one of them."""
        return tuple(np.unique(self.action).tolist())

    @cached_property
    def decided_by_state(self) -> bool:
        """Whether both actions were taken, but only one of them in each state, where acting was possible."""
        possible = slice(None) if self.available is None else self.available
        pairs = np.unique(self.state[possible] * 2 + self.action[possible])
        return len(self.actions) == 2 and np.unique(pairs // 2).size == pairs.size

    @cached_property
    def counts(self) -> Floats:
        """How often each agent moved under each action from each state to each state, [N, A, S, S]."""
        shape = (self.n_agents, 2, self.n_states, self.n_states)
        rows = (part[self.known] for part in (self.agent, self.action, self.state, self.next_state))
        counts = np.bincount(np.ravel_multi_index(tuple(rows), shape), minlength=math.prod(shape))
        return counts.reshape(shape).astype(np.float64)

    @cached_property
    def last_state(self) -> Ints:
        """The latest known state of each agent, [N]."""
        last = np.append(np.flatnonzero(np.diff(self.agent)), self.agent.size - 1)
        return np.asarray(np.where(self.known[last], self.next_state[last], self.state[last]))

    def select(self, rows: Bools | Ints) -> "History":
        """The history of some `rows`, a mask or positions, with the same agents, states and rounds."""
        parts = {name: getattr(self, name) for name in BY_ROW}
        by_row = {name: part[rows] for name, part in self.by_row.items()}
        selected = {name: part[rows] for name, part in parts.items() if part is not None}
        return replace(self, by_row=by_row, gaps=None, **selected)
