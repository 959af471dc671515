"""The recommendation of a round: the list of people with reasons, built from the record, at once or years later."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any, cast

import numpy as np
import polars as pl

from restive.api import types
from restive.desk.agents import RoundTotals
from restive.desk.config import Config
from restive.desk.decision import CHOSEN, MUST, RESERVE
from restive.desk.display import decode_cells
from restive.desk.events import EXCLUSIONS, ON_MUST
from restive.desk.explanations import Followed, Person, describe_followed, explain, show_amount
from restive.desk.outcomes import PreviousResults, describe_previous
from restive.desk.roster import ERASED, Names
from restive.desk.rounds import Round
from restive.desk.table_files import PART_ROWS, write_table_file
from restive.desk.table_schema import NOT_REACHED
from restive.formats import finite_or_none
from restive.types import Floats, Ints

LISTS = {CHOSEN: "chosen", MUST: "must", RESERVE: "reserve"}
# Not `state`: a list that comes back with `done` filled in must not be read as a table of next states.
COLUMNS = {
    **dict.fromkeys(("round", "rank"), pl.Int64),
    **dict.fromkeys(("agent", "group", "list", "state_now"), pl.String),
    "exploration": pl.Boolean,
    **dict.fromkeys(("cost", "probability", "priority", "margin"), pl.Float64),
    "reason": pl.String,
}
DONE_CHOICES = ("yes", "no", NOT_REACHED)


@dataclass(frozen=True)
class Recommendation:
    """A decided round. `notes` are remarks on its input, a sentence each."""

    program: str
    config: Config
    found: Round
    totals: RoundTotals
    names: Names
    groups: Sequence[str] = field(default=())
    notes: Sequence[str] = field(default=())
    results: PreviousResults | None = None
    find_cells: Callable[[Ints], Mapping[int, str]] = lambda _: {}  # the display cells of agents, as JSON

    @property
    def round(self) -> int:
        """The number of the round."""
        return self.found.round

    @property
    def chosen(self) -> list[str]:
        """The people on the list, best first."""
        return self.names.call(self.found.listed["agent"][self._list != RESERVE])

    @property
    def reserve(self) -> list[str]:
        """The people on the reserve list, best first."""
        return self.names.call(self.found.listed["agent"][self._list == RESERVE])

    @property
    def to_report(self) -> pl.DataFrame:
        """The people whose outcomes are missing, those on the list first, as a table of outcomes to fill in."""
        waiting = np.flatnonzero(self.found.after < 0)
        advised = self.found.choice["chosen"][waiting].astype(np.bool_)
        order = waiting[np.argsort(~advised, kind="stable")]
        states = pl.Series(self.config.states, dtype=pl.String)
        table = pl.DataFrame(
            {
                "round": np.full(order.size, self.round),
                "agent": pl.Series(self.names.call(self.found.number[order]), dtype=pl.String),
                "advised": self.found.choice["chosen"][order].astype(np.bool_),
                "state_now": states.gather(self.found.state[order]),
                "done": pl.Series([None] * order.size, dtype=pl.String),
                "next_state": pl.Series([None] * order.size, dtype=pl.String),
            }
        )
        return table.filter(pl.col("agent") != ERASED)

    @property
    def _list(self) -> Ints:
        kind: Ints = self.found.listed["kind"]
        return kind

    @property
    def size(self) -> int:
        """The number of rows, reserve list included."""
        return int(self._list.size)

    @property
    def budget(self) -> int:
        """The budget of the round."""
        return self.found.given.budget

    @property
    def planned(self) -> float | None:
        """The costs of the people on the list, added up; None if people have no costs."""
        cost = self.found.given.cost
        return None if cost is None else float(cost[self.found.chosen].sum())

    @property
    def remarks(self) -> list[str]:
        """What is recorded of the round before, the notes, and how much of the budget was used if not all of it."""
        used, unit = float(self.found.chosen.sum()) if self.planned is None else self.planned, self.config.cost_unit
        unused = (
            f"{show_amount(used, '')} of {show_amount(self.budget, unit)} used: the policy expects nobody else to gain"
        )
        left_out = self.found.decided.about["left_out"]
        taken = [] if self.results is None else [describe_previous(self.results, self.config.words)]
        return [*taken, *self.notes, *([unused] if left_out and used < self.budget else [])]

    @property
    def displaced(self) -> dict[str, int]:
        """For each rule, how many places of the list would go to other people without it."""
        displaced: dict[str, int] = self.found.decided.about["displaced"]
        return displaced

    @cached_property
    def table(self) -> pl.DataFrame:
        """The list and the reserve list, one row per person; with `done` filled in it is a table of outcomes."""
        return self._rows()

    @cached_property
    def call_list(self) -> pl.DataFrame:
        """The few columns that a caller needs, with `done` and the next state to fill in; it is a table of outcomes."""
        return self._as_call_list(self.table)

    def _as_call_list(self, table: pl.DataFrame) -> pl.DataFrame:
        rank = (
            pl.when(pl.col("list") == "reserve")
            .then(pl.format("reserve {}", "rank"))
            .otherwise(pl.format("{}", "rank"))
        )
        reward = () if self.config.rewards is not None else ("reward",)
        blank = {name: pl.lit(None, dtype=pl.String) for name in ("done", "next_state", *reward)}
        return table.select(
            rank.alias("rank"),
            "agent",
            *self.config.display,
            *(["group"] if (self.found.listed["group"] >= 0).any() else []),
            *self._cost,
            "state_now",
            "reason",
            **blank,
            round="round",
        ).filter(pl.col("agent") != ERASED)

    @property
    def choices(self) -> dict[str, Sequence[str]]:
        """The values that a cell to fill in can have, by column."""
        return {"done": DONE_CHOICES, "next_state": self.config.states}

    def write(self, path: str | PathLike[str], full: bool = False) -> None:
        """Write the call list, or all columns, to a .csv, .xlsx or .parquet file; filled in, it is a table of outcomes."""
        blank = pl.lit(None, dtype=pl.String)
        parts = (self._rows(slice(first, first + PART_ROWS)) for first in range(0, max(self.size, 1), PART_ROWS))
        tables = (
            part.with_columns(done=blank, next_state=blank) if full else self._as_call_list(part) for part in parts
        )
        write_table_file(tables, path, self.choices, self.totals.label)

    def people(self, part: slice = slice(None)) -> list[types.ListedPerson]:
        """Some rows of the table as plain data, the display columns in an object of their own."""
        columns = self._columns(part)
        shown = [columns.pop(name) for name in self.config.display]
        display = [dict(zip(self.config.display, cells, strict=True)) for cells in zip(*shown, strict=True)]
        size = len(columns["agent"])
        columns.setdefault("cost", [None] * size)
        columns["display"] = display or [{} for _ in range(size)]
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        return cast("list[types.ListedPerson]", rows)

    def _rows(self, part: slice = slice(None)) -> pl.DataFrame:
        columns = self._columns(part)
        return pl.DataFrame(columns, schema={name: COLUMNS.get(name, pl.String) for name in columns})

    def _columns(self, part: slice) -> dict[str, list[Any]]:
        """Some rows of the table, column by column."""
        listed = {name: column[part] for name, column in self.found.listed.items()}
        kind, chosen = listed["kind"], np.count_nonzero(self._list != RESERVE)
        place = np.arange(self.size)[part]
        return {
            "round": [self.round] * kind.size,
            "rank": (np.where(kind == RESERVE, place - chosen, place) + 1).tolist(),
            "agent": self.names.call(listed["agent"]),
            **self._display(listed["agent"]),
            **{name: listed[name].tolist() for name in self._cost},
            "group": [self.groups[code] if code >= 0 else None for code in listed["group"].tolist()],
            "list": [LISTS[code] for code in kind.tolist()],
            "state_now": [self.config.states[code] for code in listed["state"].tolist()],
            "exploration": listed["explored"].astype(np.bool_).tolist(),
            "probability": listed["probability"].tolist(),
            "priority": _finite(listed["priority"]),
            "margin": _finite(listed["margin"]),
            "reason": self._reasons(listed),
        }

    @property
    def _cost(self) -> list[str]:
        """The column of costs, if people have costs."""
        return ["cost"] if "cost" in self.found.listed else []

    def _display(self, agents: Ints) -> dict[str, list[Any]]:
        """The display columns of some agents."""
        names = self.config.display
        cells = self.find_cells(agents) if names else {}
        rows = [decode_cells(cells.get(agent), names) for agent in agents.tolist()]
        return {name: [row[name] for row in rows] for name in names}

    def _reasons(self, listed: dict[str, Any]) -> list[str]:
        known = listed | {"must": listed["kind"] == MUST}
        rows = zip(*(known[name].tolist() for name in Person._fields), strict=True)
        states = zip(listed["state"].tolist(), rows, strict=True)
        return [explain(self.config.words, Person(*row), self._followed[state]) for state, row in states]

    @cached_property
    def _followed(self) -> list[str]:
        """What was known of each state when the round was decided."""
        about, words, last = self.found.decided.about, self.config.words, len(self.config.states) - 1
        sides = [map(Followed, *columns) for columns in zip(about["outcomes"], about["better"], strict=True)]
        pairs = enumerate(zip(*sides, strict=True))
        return [describe_followed(words, waited, acted, state == last) for state, (waited, acted) in pairs]

    def exclusions(self) -> dict[str, int]:
        """The number of people who could not be chosen, by rule."""
        counts = zip(EXCLUSIONS, np.bincount(self.found.choice["exclusion"]).tolist(), strict=False)
        return {rule: number for rule, number in counts if number and rule and rule != EXCLUSIONS[ON_MUST]}

    def as_json(self, max_people: int | None = None) -> types.ListedDecision:
        """The recommendation as plain data, with all people or the first ones."""
        about = self.found.decided.about
        return {
            "program": self.program,
            "round": self.round,
            "label": self.totals.label,
            "due": self.totals.due,
            "decided_at": self.found.at,
            "budget": self.budget,
            "planned": self.planned,
            "present": int(self.found.number.size),
            "carried_over": int(self.found.carried_over.sum()),
            "exclusions": self.exclusions(),
            "policy": about["policy"],
            "explored": about["explored"],
            "left_out": about["left_out"],
            "displaced": about["displaced"],
            "shadow": about.get("shadow"),
            "notes": self.remarks,
            "results": None if self.results is None else cast("types.PreviousResults", self.results._asdict()),
            "people": self.people(slice(max_people)),
        }


def _finite(numbers: Floats) -> list[float | None]:
    return [finite_or_none(value) for value in numbers.tolist()]
