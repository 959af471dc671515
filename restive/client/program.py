"""A program on a server: the verbs of `restive.desk.Program`, over HTTP.

Every verb that records something carries an idempotency key, its own unless one is given. Calling it again with the
same key and the same table, be it days later from another process, records nothing new and answers as it did.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Unpack
from urllib.parse import quote

from restive.api import types
from restive.api.status import Status
from restive.client.encoding import OUTCOMES, STATES, list_agents, pack
from restive.client.transport import PREFIX, Body, Query, Sender, make_key
from restive.errors import InputError
from restive.files import write_atomic

PAGE = 1000  # items asked for at a time
MAX_LIST_LENGTH = 100_000  # rows of a list that come with a decision; the rest is asked for
ENDINGS = (".csv", ".xlsx", ".parquet")
Names = list[str]
History = list[types.HistoryEntry]


@dataclass(frozen=True)
class Recommendation:
    """A decided round with its whole list; `data` has all that the server said of it."""

    data: types.DecidedRound

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        return self.data["round"]

    @property
    def people(self) -> list[types.ListedPerson]:
        """The list, then the spares, a row for each person with the reason."""
        return self.data["people"]

    @property
    def chosen(self) -> list[str]:
        """Who is on the list, best first."""
        return [row["agent"] for row in self.people if row["list"] != "reserve"]

    @property
    def reserve(self) -> list[str]:
        """Who is next if one of them falls out."""
        return [row["agent"] for row in self.people if row["list"] == "reserve"]

    @property
    def notes(self) -> list[str]:
        """Remarks on what was taken in, a sentence each."""
        return self.data["notes"]

    @property
    def recorded(self) -> bool:
        """False after a dry run."""
        return self.data["recorded"]


class Program:
    """One program of a server; nothing is asked until a verb is called."""

    def __init__(self, sender: Sender, name: str) -> None:
        if not re.fullmatch(r"\w[\w.\-]*", name):  # a slash, however it is written, would lead to another address
            raise InputError(f"the program's name is {name!r}; it has letters, digits, dots, dashes or underscores.")
        self.name = name
        self._sender, self._path = sender, f"{PREFIX}/programs/{quote(name)}"

    def __repr__(self) -> str:
        return f"Program({self.name!r} at {self._sender.address})"

    def about(self) -> types.Program:
        """Its config, and how many people, rounds and events it has."""
        found: types.Program = self._ask("")
        return found

    @property
    def config(self) -> types.Config:
        """By what it decides now."""
        return self.about()["config"]

    def status(self) -> Status:
        """What to do next, who is in, whether it works, what was learned."""
        found: Status = self._ask("/status")
        return found

    def decide(
        self, states: object = None, budget: int | None = None, must: object = None, never: object = None,
        round: int | None = None, again: bool = False, new: bool = False, dry_run: bool = False,
        key: str | None = None,
    ) -> Recommendation:  # fmt: skip
        """Decide a round.

        states   a file, frame, rows or {agent: state}; None: as last known
        budget   how many can be acted on; None: the config's
        must     agents on the list in any case; never: agents not on it in this round
        round    its number: a round decided before is refused, whoever did it
        again    another round though nothing was recorded since the last one, which had the same states
        new      let people in whose ids differ from known ones only by zeros before them or by capitals
        dry_run  say what would be decided, and record nothing
        """
        rest: Query = {
            "budget": budget, "must": list_agents(must), "never": list_agents(never), "round": round,
            "again": again, "new": new, "dry_run": dry_run,
        }  # fmt: skip
        body, query = pack(states, "states", STATES, rest)
        said = self._send(
            "POST", "/rounds", body, {**query, "limit": MAX_LIST_LENGTH}, None if dry_run else key or make_key()
        )
        if said["next"] is not None:
            said |= {"people": [*self.list(said["round"])], "next": None}
        return Recommendation(said)

    def learn(
        self, outcomes: object, round: int | None = None, correct: bool = False, dry_run: bool = False,
        key: str | None = None,
    ) -> types.OutcomeCounts:  # fmt: skip
        """Take in what happened: who was acted on, the next state, the reward; for the last round if none is named."""
        body, query = pack(outcomes, "outcomes", OUTCOMES, {"round": round, "correct": correct, "dry_run": dry_run})
        said: types.OutcomeCounts = self._send("POST", "/outcomes", body, query, None if dry_run else key or make_key())
        return said

    def correct_states(self, states: object, round: int, dry_run: bool = False, key: str | None = None) -> int:
        """Mend the states of a round that were recorded wrong; returns how many were."""
        body, query = pack(states, "states", STATES, {"dry_run": dry_run})
        said = self._send("PUT", f"/rounds/{round:d}/states", body, query, None if dry_run else key or make_key())
        return int(said["corrected"])

    def leave(self, agents: object, dry_run: bool = False, key: str | None = None) -> int:
        """Agents who are gone; one who appears again in a table of states is back. Returns how many left."""
        return self._drop("/leave", agents, dry_run, key)

    def erase(self, agents: object, dry_run: bool = False, key: str | None = None) -> int:
        """Forget names for good: what they taught stays, as a number without a name. Returns how many were erased."""
        return self._drop("/erase", agents, dry_run, key)

    def cancel(self, round: int, dry_run: bool = False, key: str | None = None) -> int:
        """Nobody acts by the list of this round, which was a mistake; returns how many were on it."""
        query: Query = {"dry_run": dry_run}
        said = self._send("POST", f"/rounds/{round:d}/cancel", None, query, None if dry_run else key or make_key())
        return int(said["listed"])

    def change(self, key: str | None = None, **settings: Unpack[types.Changes]) -> types.Config:
        """Change budget, cool_down, keep or shares from now on."""
        config: types.Config = self._send("PATCH", "", Body.of(settings), {}, key or make_key())["config"]
        return config

    def rounds(self) -> Iterator[types.RoundSummary]:
        """Its rounds in short, the first first."""
        return self._pages("/rounds")

    def round(self, round: int) -> types.RoundDetail:
        """A round as it stands now, and how it was decided."""
        found: types.RoundDetail = self._ask(f"/rounds/{round:d}")
        return found

    def download(self, round: int, path: str | PathLike[str], overwrite: bool = False) -> None:
        """Write the list of a round to a .csv, .xlsx or .parquet file, which appears whole or not at all."""
        place = Path(path)
        if place.suffix.lower() not in ENDINGS:
            raise InputError(f"{place.name}: a list is written to a file that ends in {', '.join(ENDINGS)}.")
        if place.exists() and not overwrite:
            raise InputError(
                f"{place}: there is such a file, perhaps with results in it; name another, or overwrite it."
            )
        address = f"{self._path}/rounds/{round:d}/list{place.suffix.lower()}"
        write_atomic(place, self._sender.request("GET", address).content)

    def people(self, find: str = "") -> Iterator[types.Person]:
        """Its people in the order of joining, or those whose id has `find` in it."""
        return self._pages("/people", {"find": find or None})

    def history(self, agent: str) -> History:
        """What happened to one person, round by round."""
        return [*self._pages("/history", {"agent": agent}, None)]

    def events(self, after: int = 0) -> Iterator[types.Event]:
        """Its log, without columns; `after` so many events."""
        return self._pages("/events", {"after": after or None})

    def audit(self) -> Iterator[types.AuditEntry]:
        """Who did what in it, the newest first."""
        return self._pages("/audit")

    def list(self, round: int) -> Iterator[types.ListedPerson]:
        """The list of a round as it was decided, then the spares."""
        return self._pages(f"/rounds/{round:d}/list")

    def _ask(self, path: str) -> Any:
        return self._sender.ask(self._path + path)

    def _pages(self, path: str, query: Query | None = None, limit: int | None = PAGE) -> Iterator[Any]:
        return self._sender.pages(self._path + path, {**(query or {}), "limit": limit})

    def _send(self, method: str, path: str, body: Body | None, query: Query, key: str | None) -> Any:
        return self._sender.send(method, self._path + path, query, body, key)

    def _drop(self, path: str, agents: object, dry_run: bool, key: str | None) -> int:
        body = Body.of({"agents": list_agents(agents) or [], "dry_run": dry_run})
        return int(self._send("POST", path, body, {}, None if dry_run else key or make_key())["count"])
