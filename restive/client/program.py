"""A program over HTTP: the verbs of `restive.desk.Program`, as `Program` and as `AsyncProgram`.

Every verb that records something sends an idempotency key, a random one unless `key` is given. A second call with the same
key and the same input, even days later from another process, records nothing and returns the first answer.

Tables are what the desk accepts: a path, a polars or pandas frame, columns, rows, or a mapping from agent to state.
"""

import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Unpack
from urllib.parse import quote

from restive.api import administration, types
from restive.api.results import Report, Results, Unreached
from restive.api.settings import Changes, TableReading
from restive.api.status import Status, Undone
from restive.client.calls import Awaiting, Blocking, Pages, Request, Steps, call, collect, get, listing
from restive.client.encoding import OUTCOMES, STATES, encode_table, list_agents
from restive.client.transport import PREFIX, AsyncTransport, Body, Query, Transport, make_key
from restive.client.webhooks import AsyncWebhooks, Webhooks
from restive.errors import Hint, InputError

PAGE_SIZE = 1000
MAX_LIST_ROWS = 100_000  # of a list that comes with a decision; the rest is requested in pages
LIST_SUFFIXES = (".csv", ".xlsx", ".parquet")


@dataclass(frozen=True)
class Recommendation:
    """A decided round with its whole list; `data` is the answer of the server."""

    data: types.DecidedRound

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        return self.data["round"]

    @property
    def people(self) -> list[types.ListedPerson]:
        """The list, then the reserve list, with reasons."""
        return self.data["people"]

    @property
    def chosen(self) -> list[str]:
        """The ids of the people on the list, best first."""
        return [row["agent"] for row in self.people if row["list"] != "reserve"]

    @property
    def reserve(self) -> list[str]:
        """The ids of the people on the reserve list."""
        return [row["agent"] for row in self.people if row["list"] == "reserve"]

    @property
    def notes(self) -> list[str]:
        """Remarks on the input, a sentence each."""
        return self.data["notes"]

    @property
    def results(self) -> types.PreviousResults | None:
        """The outcomes of the round before that were recorded with the decision."""
        return self.data["results"]

    @property
    def recorded(self) -> bool:
        """False after a dry run."""
        return self.data["recorded"]


class ProgramCalls:
    """The calls of a program, run by `Program` and awaited by `AsyncProgram`."""

    def __init__(self, transport: Transport | AsyncTransport, name: str) -> None:
        if not re.fullmatch(r"\w[\w.\-]*", name):  # a slash would change the address
            raise InputError(f"The program's name is {name!r}; it has letters, digits, dots, dashes or underscores.")
        self.name = name
        self._address, self._path = transport.address, f"{PREFIX}/programs/{quote(name)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self._address})"

    @call
    def about(self) -> Steps[types.Program]:
        """The settings and the numbers of people, rounds and events."""
        return (yield from get(types.Program, self._path))

    @call
    def status(self) -> Steps[Status]:
        """Rounds, people, the gain of the program, what was learned, and what to do next."""
        return (yield from get(Status, f"{self._path}/status"))

    @call
    def results(self) -> Steps[Results]:
        """States by round, groups with their lift, and how many people were reached."""
        return (yield from get(Results, f"{self._path}/results"))

    @listing
    def unreached(self) -> Pages[Unreached]:
        """The people for whom the action was never done, for how long and why, without the control group."""
        return self._pages("/unreached")

    @call
    def report(self) -> Steps[Report]:
        """The program on one page, for a funder, without ids and names."""
        return (yield from get(Report, f"{self._path}/report"))

    @call
    def calendar(self) -> Steps[str]:
        """The due dates of lists, from the next one on, as the text of an iCalendar file (.ics)."""
        text: str = yield Request("GET", f"{self._path}/calendar", answer="text")
        return text

    @call
    def save_table(self, table: str, path: str | PathLike[str], overwrite: bool = False) -> Steps[None]:
        """Write a table, such as rounds, people, states or groups, to a .csv, .xlsx or .parquet file."""
        yield from self._save(path, LIST_SUFFIXES, f"/tables/{quote(table, safe='')}", overwrite)

    @call
    def decide(
        self,
        states: object = None,
        budget: int | None = None,
        must: object = None,
        never: object = None,
        round: int | None = None,
        again: bool = False,
        new: bool = False,
        states_are_outcomes: bool | None = None,
        dry_run: bool = False,
        key: str | None = None,
        **reading: Unpack[TableReading],
    ) -> Steps[Recommendation]:
        """Decide a round; its states are also recorded as outcomes of the round before.

        states   a file, a frame, rows or {agent: state}; None: the last known states
        budget   how many people can be acted on; None: the program's budget
        must     agents who must be on the list
        never    agents who must not be on the list of this round
        round    the number that the round must have; a decided round is refused
        again    decide another round although nothing was recorded since the last one, which had the same states
        new      accept new agents whose ids differ from known ones only in leading zeros or in case
        states_are_outcomes  whether the states are also outcomes of the round before; None: as configured
        dry_run  return the decision without recording it
        reading  columns, values, cut_points, phone_country: how the table is read, from now on
        """
        settings: Query = {
            "budget": budget,
            "must": list_agents(must),
            "never": list_agents(never),
            "round": round,
            "again": again or None,
            "new": new or None,
            "states_are_outcomes": states_are_outcomes,
            "dry_run": dry_run or None,
        }
        body, query = encode_table(states, "states", STATES, settings, reading)
        answer = yield self._request("POST", "/rounds", body, {**query, "limit": MAX_LIST_ROWS}, key, dry_run)
        if answer["next"] is not None:
            answer |= {"people": (yield from collect(self._pages(f"/rounds/{answer['round']:d}/list"))), "next": None}
        return Recommendation(answer)

    @call
    def learn(
        self,
        outcomes: object,
        round: int | None = None,
        correct: bool = False,
        dry_run: bool = False,
        key: str | None = None,
        **reading: Unpack[TableReading],
    ) -> Steps[types.OutcomeCounts]:
        """Record outcomes: whether the action was done, the next state, the reward.

        Rows without a round are of `round`, by default of the oldest round that waits for these people.
        """
        settings: Query = {"round": round, "correct": correct or None, "dry_run": dry_run or None}
        body, query = encode_table(outcomes, "outcomes", OUTCOMES, settings, reading)
        answer: types.OutcomeCounts = yield self._request("POST", "/outcomes", body, query, key, dry_run)
        return answer

    @call
    def correct_states(self, states: object, round: int, dry_run: bool = False, key: str | None = None) -> Steps[int]:
        """Replace states of a round that were recorded wrongly; returns how many differed."""
        body, query = encode_table(states, "states", STATES, {"dry_run": dry_run or None})
        return int((yield self._request("PUT", f"/rounds/{round:d}/states", body, query, key, dry_run))["corrected"])

    @call
    def withdraw(self, agents: object, round: int, dry_run: bool = False, key: str | None = None) -> Steps[int]:
        """Withdraw what was reported of agents in a round, as if it had not been; returns of how many."""
        return (yield from self._remove(f"/rounds/{round:d}/withdraw", agents, dry_run, key))

    @call
    def leave(self, agents: object, dry_run: bool = False, key: str | None = None) -> Steps[int]:
        """Record that agents left; one who appears in later states is back. Returns how many left."""
        return (yield from self._remove("/leave", agents, dry_run, key))

    @call
    def erase(self, agents: object, dry_run: bool = False, key: str | None = None) -> Steps[int]:
        """Erase names for good; outcomes stay, under a number without a name. Returns how many were erased."""
        return (yield from self._remove("/erase", agents, dry_run, key))

    @call
    def cancel(self, round: int, dry_run: bool = False, key: str | None = None) -> Steps[int]:
        """Cancel a round that nobody acts on; returns how many people were on its list."""
        answer = yield self._request("POST", f"/rounds/{round:d}/cancel", None, {"dry_run": dry_run}, key, dry_run)
        return int(answer["listed"])

    @call
    def undo(self, event: int | None = None, dry_run: bool = False, key: str | None = None) -> Steps[Undone]:
        """Take back the last list, report or correction, as if it had not been recorded; returns what it was.

        event  its first event; if another request was the last, it is refused
        """
        query: Query = {"event": event, "dry_run": dry_run}
        answer: Undone = yield self._request("POST", "/undo", None, query, key, dry_run)
        return answer

    @call
    def change(self, key: str | None = None, **settings: Unpack[Changes]) -> Steps[types.Config]:
        """Change budget, spend, cost_unit, cool_down, keep, shares, display, states_are_outcomes, title, the calendar, or how tables
        are read."""
        config: types.Config = (yield self._request("PATCH", "", Body.of(settings), {}, key))["config"]
        return config

    @call
    def archive(self, dry_run: bool = False, key: str | None = None) -> Steps[None]:
        """Make the program read-only, but for erasing names, until it is restored."""
        yield self._request("POST", "/archive", None, {"dry_run": dry_run}, key, dry_run)

    @call
    def restore(self, dry_run: bool = False, key: str | None = None) -> Steps[None]:
        """Let an archived program be used again."""
        yield self._request("POST", "/restore", None, {"dry_run": dry_run}, key, dry_run)

    @call
    def delete(self, confirm: str, dry_run: bool = False, key: str | None = None) -> Steps[int]:
        """Delete the program for good; `confirm` is its name again. Returns how many events were deleted."""
        return int(
            (yield self._request("DELETE", "", None, {"confirm": confirm, "dry_run": dry_run}, key, dry_run))["events"]
        )

    @listing
    def rounds(self) -> Pages[types.RoundSummary]:
        """The totals of each round, from the first on."""
        return self._pages("/rounds")

    @call
    def get_round(self, round: int) -> Steps[types.RoundDetail]:
        """The totals of a round and its decision."""
        return (yield from get(types.RoundDetail, f"{self._path}/rounds/{round:d}"))

    @listing
    def get_list(self, round: int) -> Pages[types.ListedPerson]:
        """The list of a round, then its reserve list."""
        return self._pages(f"/rounds/{round:d}/list")

    @call
    def download(
        self, round: int, path: str | PathLike[str], overwrite: bool = False, full: bool = False
    ) -> Steps[None]:
        """Write the call list of a round, or all columns, to a .csv, .xlsx or .parquet file."""
        yield from self._save(
            path, LIST_SUFFIXES, f"/rounds/{round:d}/list", overwrite, {"columns": "all"} if full else None
        )

    def _save(
        self,
        path: str | PathLike[str],
        suffixes: tuple[str, ...],
        address: str,
        overwrite: bool,
        query: Query | None = None,
    ) -> Steps[None]:
        """Write the answer to a request to a file, whose suffix ends the address."""
        from restive.files import write_atomic  # imports NumPy

        file = Path(path)
        suffix = file.suffix.lower()
        if suffix not in suffixes:
            what = "a list" if suffixes is LIST_SUFFIXES else "an export"
            raise InputError(f"{file.name}: {what} is a {', '.join(suffixes)} file.", location=file)
        if file.exists() and not overwrite:
            raise InputError(f"{file} already exists.", code="file_exists", location=file, hint=Hint.OVERWRITE)
        write_atomic(file, (yield Request("GET", f"{self._path}{address}{suffix}", query or {}, answer="bytes")))

    @call
    def export(self, path: str | PathLike[str], overwrite: bool = False) -> Steps[None]:
        """Write all people, rounds and records as Parquet files into one .zip file."""
        yield from self._save(path, (".zip",), "/export", overwrite)

    @listing
    def people(self, find: str = "") -> Pages[types.Person]:
        """The people in the order of joining, or those whose id contains `find`."""
        return self._pages("/people", {"find": find or None})

    @call
    def history(self, agent: str) -> Steps[list[types.HistoryEntry]]:
        """The history of a person, round by round."""
        return (yield from collect(Pages(f"{self._path}/history", {"agent": agent})))

    @listing
    def events(self, after: int = 0) -> Pages[administration.Event]:
        """The event log without columns, from event number `after` on."""
        return self._pages("/events", {"after": after or None})

    @listing
    def audit(self) -> Pages[administration.AuditEntry]:
        """The audit log of the program, the newest entry first."""
        return self._pages("/audit")

    def _pages(self, path: str, query: Query | None = None) -> Pages[Any]:
        return Pages(self._path + path, {**(query or {}), "limit": PAGE_SIZE})

    def _request(
        self, method: str, path: str, body: Body | None, query: Query, key: str | None, dry_run: bool = False
    ) -> Request:
        return Request(method, self._path + path, query, body, None if dry_run else key or make_key())

    def _remove(self, path: str, agents: object, dry_run: bool, key: str | None) -> Steps[int]:
        body = Body.of({"agents": list_agents(agents) or [], "dry_run": dry_run})
        return int((yield self._request("POST", path, body, {}, key, dry_run))["count"])


class Program(ProgramCalls, Blocking):
    """One program of a server."""

    def __init__(self, transport: Transport, name: str) -> None:
        super().__init__(transport, name)
        self._transport = transport
        self.webhooks = Webhooks(transport, self._path)

    @property
    def config(self) -> types.Config:
        """The current settings."""
        return self.about()["config"]


class AsyncProgram(ProgramCalls, Awaiting):
    """One program of a server, whose calls are awaited."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        super().__init__(transport, name)
        self._transport = transport
        self.webhooks = AsyncWebhooks(transport, self._path)
