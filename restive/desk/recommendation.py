"""The list that a round ends in: who, why, how sure, and who is next; made from the record, now or years later."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import polars as pl

from restive.api import types
from restive.desk.config import Config
from restive.desk.decision import CHOSEN, MUST, SPARE
from restive.desk.explanations import explain
from restive.desk.names import ERASED, Names
from restive.desk.rounds import Round
from restive.desk.selection import BARS, ON_MUST
from restive.types import Floats, Ints

KINDS = {CHOSEN: "chosen", MUST: "must", SPARE: "spare"}
# Not `state`: a list that comes back with what was done must not be read as a table of next states.
COLUMNS = {
    **dict.fromkeys(("round", "rank"), pl.Int64),
    **dict.fromkeys(("agent", "group", "list", "state_now"), pl.String),
    **dict.fromkeys(("benefit", "error"), pl.Float64),
    "exploration": pl.Boolean,
    **dict.fromkeys(("probability", "priority", "margin"), pl.Float64),
    "reason": pl.String,
}


@dataclass(frozen=True)
class Advice:
    """A decided round. `notes` are remarks on what was taken in with it, a sentence each."""

    program: str
    config: Config
    found: Round
    names: Names
    ahead: bool
    groups: Sequence[str] = field(default=())
    notes: Sequence[str] = field(default=())

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        return self.found.round

    @property
    def chosen(self) -> list[str]:
        """Who is on the list, best first."""
        return self.names.call(self.found.list["agent"][self._kind != SPARE])

    @property
    def spares(self) -> list[str]:
        """Who is next if one of them falls out."""
        return self.names.call(self.found.list["agent"][self._kind == SPARE])

    @property
    def to_report(self) -> pl.DataFrame:
        """Who is still to be reported_at of, those on the list first, as a table of outcomes to fill in."""
        waiting = np.flatnonzero(self.found.after < 0)
        advised = self.found.columns["chosen"][waiting].astype(np.bool_)
        order = waiting[np.argsort(~advised, kind="stable")]
        states = pl.Series(self.config.states, dtype=pl.String)
        table = pl.DataFrame(
            {
                "round": np.full(order.size, self.round),
                "agent": pl.Series(self.names.call(self.found.number[order]), dtype=pl.String),
                "advised": self.found.columns["chosen"][order].astype(np.bool_),
                "state_now": states.gather(self.found.state[order]),
                "done": pl.Series([None] * order.size, dtype=pl.String),
                "next_state": pl.Series([None] * order.size, dtype=pl.String),
            }
        )
        return table.filter(pl.col("agent") != ERASED)

    @property
    def _kind(self) -> Ints:
        kind: Ints = self.found.list["kind"]
        return kind

    @property
    def budget(self) -> int:
        """What the round was opened with."""
        return int(self.found.header["budget"])

    @property
    def prices(self) -> dict[str, float | None]:
        """What each rule costs, as expected benefit of the whole list."""
        prices: dict[str, float | None] = (self.found.decided or {})["prices"]
        return prices

    @cached_property
    def table(self) -> pl.DataFrame:
        """The list and the spares, a row for each person; with `done` filled in it is a table of outcomes."""
        return pl.DataFrame(dict(zip(COLUMNS, self._cells(), strict=True)), schema=COLUMNS)

    def people(self, part: slice = slice(None)) -> list[types.ListedPerson]:
        """Rows of the table as plain data; only these are made."""
        rows = zip(*self._cells(part), strict=True)
        return [cast("types.ListedPerson", dict(zip(COLUMNS, row, strict=True))) for row in rows]

    def _cells(self, part: slice = slice(None)) -> list[list[Any]]:
        """The columns of the table, or of some of its rows."""
        listed = {name: column[part] for name, column in self.found.list.items()}
        kind, chosen = listed["kind"], np.count_nonzero(self._kind != SPARE)
        state = [self.config.states[code] for code in listed["state"].tolist()]
        number = np.arange(self.size)[part]
        place = np.where(kind == SPARE, number - chosen, number) + 1
        return [
            [self.round] * kind.size,
            place.tolist(),
            self.names.call(listed["agent"]),
            self._groups(listed),
            [KINDS[code] for code in kind.tolist()],
            state,
            _known(np.where(np.isinf(listed["error"]), np.nan, listed["benefit"])),
            _known(listed["error"]),
            listed["explored"].tolist(),
            listed["probability"].tolist(),
            _known(listed["priority"]),
            _known(listed["margin"]),
            self._reasons(listed, state),
        ]

    def _groups(self, listed: Mapping[str, Any]) -> list[str | None]:
        codes = listed.get("group", np.full(listed["kind"].size, -1))  # lists of old did not have it
        return [self.groups[code] if code >= 0 else None for code in codes.tolist()]

    def _reasons(self, listed: Mapping[str, Any], state: list[str]) -> list[str]:
        kind = listed["kind"]
        reasons = explain(
            self.config.words, state, listed["benefit"], listed["error"], explored=listed["explored"], must=kind == MUST,
            margin=listed["margin"], since=listed["since"], seen=listed["seen"], spare=kind == SPARE, ahead=self.ahead,
        )  # fmt: skip
        older = f" The state is from an earlier {self.config.words.every}."
        return [reason + older * kept for reason, kept in zip(reasons, listed["carried_over"].tolist(), strict=True)]

    def left_out(self) -> dict[str, int]:
        """How many of those present could not be chosen, by reason."""
        found = zip(BARS, np.bincount(self.found.columns["exclusion"]).tolist(), strict=False)
        return {why: number for why, number in found if number and why and why != BARS[ON_MUST]}

    @property
    def size(self) -> int:
        """How many are on the list, spares among them."""
        return int(self._kind.size)

    def as_json(self, most: int | None = None) -> types.ListedDecision:
        """Plain data, finite numbers or null; of the people all, or the first so many."""
        decided = self.found.decided or {}
        return {
            "program": self.program,
            "round": self.round,
            "decided_at": self.found.decided_at,
            "budget": self.budget,
            "present": int(self.found.number.size),
            "carried_over": int(self.found.carried_over.sum()),
            "left_out": self.left_out(),
            "policy": decided["policy"],
            "explored": decided["explored"],
            "expected_benefit": decided["benefit"],
            "prices": decided["prices"],
            "shadow": decided.get("shadow"),
            "notes": list(self.notes),
            "people": self.people(slice(most)),
        }


def _known(numbers: Floats) -> list[float | None]:
    """Numbers, None for what is not finite."""
    return [value if math.isfinite(value) else None for value in numbers.tolist()]
