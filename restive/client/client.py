"""The client of a server: `Client` is the server, `Program` has the verbs of `restive.desk.Program` over HTTP.

    with Client("https://desk.example", token) as client:
        program = client.program("coupons")
        recommendation = program.decide("monday.csv")
        program.learn({"agent": recommendation.chosen, "done": [True] * len(recommendation.chosen)})

Without a token, that of the environment variable RESTIVE_TOKEN is used. Threads may share a client. Every verb that
records something sends an idempotency key, a random one unless `key` is given. A second call with the same key and the
same input, even days later from another process, records nothing and returns the first answer.

Tables are what the desk accepts: a path, a polars or pandas frame, columns, rows, or a mapping from agent to state.
Files are sent as they are. Tables in memory are sent as JSON, or as Parquet if they have many rows, or columns or types
that JSON cannot express. polars is imported only if a table in memory is given.
"""

import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from urllib.parse import quote

from restive.api import administration, types
from restive.api.administration import Invitation, User
from restive.api.results import Report, Results, Unreached
from restive.api.settings import Changes, NewProgram, TableReading
from restive.api.status import Status, Undone
from restive.client.transport import PREFIX, Body, Query, Transport, make_key
from restive.client.webhooks import Webhooks
from restive.errors import Hint, InputError

if TYPE_CHECKING:
    import polars as pl

PAGE_SIZE = 1000
MAX_LIST_ROWS = 100_000  # of a list that comes with a decision; the rest is requested in pages
LIST_SUFFIXES = (".csv", ".xlsx", ".parquet")
MAX_JSON_ROWS = 50_000  # the server reads larger tables faster from Parquet
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MEDIA_TYPES = {".csv": CSV, ".tsv": CSV, ".txt": CSV, ".parquet": PARQUET, ".xlsx": EXCEL}
PAIRS: tuple[Literal["columns", "values"], ...] = ("columns", "values")
INTEGERS = ("Int64", "Int32", "Int16", "Int8", "UInt32", "UInt16", "UInt8")
# The columns of the API with the polars types that JSON can express.
STATES = {"agent": ("String", *INTEGERS), "state": ("String", *INTEGERS), "group": ("String",)}
OUTCOMES = {
    "agent": ("String", *INTEGERS),
    "done": ("Boolean",),
    "next_state": ("String", *INTEGERS),
    "reward": (*INTEGERS, "Float64", "Float32"),
    "round": INTEGERS,
}


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


class Program:
    """One program of a server."""

    def __init__(self, transport: Transport, name: str) -> None:
        if not re.fullmatch(r"\w[\w.\-]*", name):  # a slash would change the address
            raise InputError(f"The program's name is {name!r}; it has letters, digits, dots, dashes or underscores.")
        self.name = name
        self._transport, self._path = transport, f"{PREFIX}/programs/{quote(name)}"
        self.webhooks = Webhooks(transport, self._path)

    def __repr__(self) -> str:
        return f"Program({self.name!r} at {self._transport.address})"

    def about(self) -> types.Program:
        """The settings and the numbers of people, rounds and events."""
        return self._transport.get(self._path, types.Program)

    @property
    def config(self) -> types.Config:
        """The current settings."""
        return self.about()["config"]

    def status(self) -> Status:
        """Rounds, people, the gain of the program, what was learned, and what to do next."""
        return self._transport.get(f"{self._path}/status", Status)

    def results(self) -> Results:
        """States by round, groups with their lift, and how many people were reached."""
        return self._transport.get(f"{self._path}/results", Results)

    def unreached(self) -> Iterator[Unreached]:
        """The people for whom the action was never done, for how long and why, without the control group."""
        return self._get_pages("/unreached")

    def report(self) -> Report:
        """The program on one page, for a funder, without ids and names."""
        return self._transport.get(f"{self._path}/report", Report)

    def calendar(self) -> str:
        """The due dates of lists, from the next one on, as the text of an iCalendar file (.ics)."""
        return self._transport.request("GET", f"{self._path}/calendar").text

    def save_table(self, table: str, path: str | PathLike[str], overwrite: bool = False) -> None:
        """Write a table, such as rounds, people, states or groups, to a .csv, .xlsx or .parquet file."""
        self._save(path, LIST_SUFFIXES, f"/tables/{quote(table, safe='')}", overwrite)

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
    ) -> Recommendation:
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
        answer = self._send("POST", "/rounds", body, {**query, "limit": MAX_LIST_ROWS}, key, dry_run)
        if answer["next"] is not None:
            answer |= {"people": [*self.get_list(answer["round"])], "next": None}
        return Recommendation(answer)

    def learn(
        self,
        outcomes: object,
        round: int | None = None,
        correct: bool = False,
        dry_run: bool = False,
        key: str | None = None,
        **reading: Unpack[TableReading],
    ) -> types.OutcomeCounts:
        """Record outcomes: whether the action was done, the next state, the reward.

        Rows without a round are of `round`, by default of the oldest round that waits for these people.
        """
        settings: Query = {"round": round, "correct": correct or None, "dry_run": dry_run or None}
        body, query = encode_table(outcomes, "outcomes", OUTCOMES, settings, reading)
        answer: types.OutcomeCounts = self._send("POST", "/outcomes", body, query, key, dry_run)
        return answer

    def correct_states(self, states: object, round: int, dry_run: bool = False, key: str | None = None) -> int:
        """Replace states of a round that were recorded wrongly; returns how many differed."""
        body, query = encode_table(states, "states", STATES, {"dry_run": dry_run or None})
        return int(self._send("PUT", f"/rounds/{round:d}/states", body, query, key, dry_run)["corrected"])

    def withdraw(self, agents: object, round: int, dry_run: bool = False, key: str | None = None) -> int:
        """Withdraw what was reported of agents in a round, as if it had not been; returns of how many."""
        return self._remove(f"/rounds/{round:d}/withdraw", agents, dry_run, key)

    def leave(self, agents: object, dry_run: bool = False, key: str | None = None) -> int:
        """Record that agents left; one who appears in later states is back. Returns how many left."""
        return self._remove("/leave", agents, dry_run, key)

    def erase(self, agents: object, dry_run: bool = False, key: str | None = None) -> int:
        """Erase names for good; outcomes stay, under a number without a name. Returns how many were erased."""
        return self._remove("/erase", agents, dry_run, key)

    def cancel(self, round: int, dry_run: bool = False, key: str | None = None) -> int:
        """Cancel a round that nobody acts on; returns how many people were on its list."""
        answer = self._send("POST", f"/rounds/{round:d}/cancel", None, {"dry_run": dry_run}, key, dry_run)
        return int(answer["listed"])

    def undo(self, event: int | None = None, dry_run: bool = False, key: str | None = None) -> Undone:
        """Take back the last list, report or correction, as if it had not been recorded; returns what it was.

        event  its first event; if another request was the last, it is refused
        """
        query: Query = {"event": event, "dry_run": dry_run}
        answer: Undone = self._send("POST", "/undo", None, query, key, dry_run)
        return answer

    def change(self, key: str | None = None, **settings: Unpack[Changes]) -> types.Config:
        """Change budget, spend, cost_unit, cool_down, keep, shares, display, states_are_outcomes, title, the calendar, or how tables
        are read."""
        config: types.Config = self._send("PATCH", "", Body.of(settings), {}, key)["config"]
        return config

    def archive(self, dry_run: bool = False, key: str | None = None) -> None:
        """Make the program read-only, but for erasing names, until it is restored."""
        self._send("POST", "/archive", None, {"dry_run": dry_run}, key, dry_run)

    def restore(self, dry_run: bool = False, key: str | None = None) -> None:
        """Let an archived program be used again."""
        self._send("POST", "/restore", None, {"dry_run": dry_run}, key, dry_run)

    def delete(self, confirm: str, dry_run: bool = False, key: str | None = None) -> int:
        """Delete the program for good; `confirm` is its name again. Returns how many events were deleted."""
        return int(self._send("DELETE", "", None, {"confirm": confirm, "dry_run": dry_run}, key, dry_run)["events"])

    def rounds(self) -> Iterator[types.RoundSummary]:
        """The totals of each round, from the first on."""
        return self._get_pages("/rounds")

    def get_round(self, round: int) -> types.RoundDetail:
        """The totals of a round and its decision."""
        return self._transport.get(f"{self._path}/rounds/{round:d}", types.RoundDetail)

    def get_list(self, round: int) -> Iterator[types.ListedPerson]:
        """The list of a round, then its reserve list."""
        return self._get_pages(f"/rounds/{round:d}/list")

    def download(self, round: int, path: str | PathLike[str], overwrite: bool = False, full: bool = False) -> None:
        """Write the call list of a round, or all columns, to a .csv, .xlsx or .parquet file."""
        self._save(path, LIST_SUFFIXES, f"/rounds/{round:d}/list", overwrite, {"columns": "all"} if full else None)

    def _save(
        self,
        path: str | PathLike[str],
        suffixes: tuple[str, ...],
        address: str,
        overwrite: bool,
        query: Query | None = None,
    ) -> None:
        """Write the answer to a request to a file, whose suffix ends the address."""
        from restive.files import write_atomic  # imports NumPy

        file = Path(path)
        suffix = file.suffix.lower()
        if suffix not in suffixes:
            what = "a list" if suffixes is LIST_SUFFIXES else "an export"
            raise InputError(f"{file.name}: {what} is a {', '.join(suffixes)} file.", location=file)
        if file.exists() and not overwrite:
            raise InputError(f"{file} already exists.", code="file_exists", location=file, hint=Hint.OVERWRITE)
        write_atomic(file, self._transport.request("GET", f"{self._path}{address}{suffix}", query).content)

    def export(self, path: str | PathLike[str], overwrite: bool = False) -> None:
        """Write all people, rounds and records as Parquet files into one .zip file."""
        self._save(path, (".zip",), "/export", overwrite)

    def people(self, find: str = "") -> Iterator[types.Person]:
        """The people in the order of joining, or those whose id contains `find`."""
        return self._get_pages("/people", {"find": find or None})

    def history(self, agent: str) -> list[types.HistoryEntry]:
        """The history of a person, round by round."""
        return [*self._transport.get_pages(f"{self._path}/history", {"agent": agent})]

    def events(self, after: int = 0) -> Iterator[administration.Event]:
        """The event log without columns, from event number `after` on."""
        return self._get_pages("/events", {"after": after or None})

    def audit(self) -> Iterator[administration.AuditEntry]:
        """The audit log of the program, the newest entry first."""
        return self._get_pages("/audit")

    def _get_pages(self, path: str, query: Query | None = None) -> Iterator[Any]:
        return self._transport.get_pages(self._path + path, {**(query or {}), "limit": PAGE_SIZE})

    def _send(
        self, method: str, path: str, body: Body | None, query: Query, key: str | None, dry_run: bool = False
    ) -> Any:
        return self._transport.send(method, self._path + path, query, body, None if dry_run else key or make_key())

    def _remove(self, path: str, agents: object, dry_run: bool, key: str | None) -> int:
        body = Body.of({"agents": list_agents(agents) or [], "dry_run": dry_run})
        return int(self._send("POST", path, body, {}, key, dry_run)["count"])


class Client:
    """A server.

    address          http://HOST:PORT or https://HOST
    token            a token of the server; None: that of the environment, if there is one
    timeout_seconds  how long to wait for an answer
    retries          how often a request is sent again when its answer is lost or the server is busy
    tls              the certificates to trust; None: those of the system
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8787",
        token: str | None = None,
        timeout_seconds: float = 120.0,
        retries: int = 4,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._transport = Transport(address, token, timeout_seconds, retries, tls)

    def __repr__(self) -> str:
        return f"Client({self._transport.address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def health(self) -> types.Health:
        """The state and the version of the server; needs no token."""
        return self._transport.get("/health", types.Health)

    def me(self) -> types.Me:
        """The owner and the roles of the token."""
        return self._transport.get(f"{PREFIX}/me", types.Me)

    def templates(self) -> Iterator[types.Template]:
        """The application domains that a program can be created from."""
        return self._transport.get_pages(f"{PREFIX}/templates")

    def policies(self) -> Iterator[types.PolicyInfo]:
        """The policies that a program can use."""
        return self._transport.get_pages(f"{PREFIX}/policies")

    def programs(self) -> Iterator[types.ProgramSummary]:
        """The programs that the token gives access to, the oldest first."""
        return self._transport.get_pages(f"{PREFIX}/programs", {"limit": PAGE_SIZE})

    def program(self, name: str) -> Program:
        """The program of that name; no request is sent, so it need not exist."""
        return Program(self._transport, name)

    def create(
        self, name: str, template: str | None = None, key: str | None = None, **settings: Unpack[NewProgram]
    ) -> Program:
        """Create a program from a template and settings, or from settings alone."""
        program = self.program(name)
        body: dict[str, Any] = {"name": name, **({} if template is None else {"template": template}), **settings}
        self._transport.send("POST", f"{PREFIX}/programs", body=Body.of(body), key=key or make_key())
        return program

    def users(self) -> Iterator[User]:
        """Everybody who can sign in or send a token, the oldest first."""
        return self._transport.get_pages(f"{PREFIX}/users")

    def invite(self, name: str, grants: Mapping[str | None, str], days: int | None = None) -> Invitation:
        """Add a person with a role in each program (None: in all of them); the link signs one browser in, once."""
        body = Body.of({"name": name, "grants": _list_grants(grants), "days": days})
        answer: Invitation = self._transport.send("POST", f"{PREFIX}/users", body=body)
        return answer

    def invite_again(self, name: str) -> Invitation:
        """A new link for a user; the last one is void."""
        answer: Invitation = self._transport.send("POST", f"{PREFIX}/users/{quote(name, safe='')}/invitation")
        return answer

    def change_user(self, name: str, grants: Mapping[str | None, str]) -> User:
        """Replace all roles of a user."""
        path, body = f"{PREFIX}/users/{quote(name, safe='')}/grants", Body.of({"grants": _list_grants(grants)})
        answer: User = self._transport.send("PUT", path, body=body)
        return answer

    def revoke_user(self, name: str) -> User:
        """End all access of a user at once."""
        answer: User = self._transport.send("DELETE", f"{PREFIX}/users/{quote(name, safe='')}")
        return answer

    def audit(self) -> Iterator[administration.AuditEntry]:
        """The audit log of the whole store, the newest entry first."""
        return self._transport.get_pages(f"{PREFIX}/audit", {"limit": PAGE_SIZE})


def _list_grants(grants: Mapping[str | None, str]) -> list[dict[str, str | None]]:
    return [{"program": program, "role": role} for program, role in grants.items()]


def encode_table(
    table: object,
    name: str,
    columns: Mapping[str, tuple[str, ...]],
    settings: Query,
    reading: TableReading | None = None,
) -> tuple[Body, Query]:
    """The body and the query string of a table with settings: all in a JSON body, or the settings in the query."""
    given = {key: value for key, value in settings.items() if value is not None}
    if table is None:
        return Body.of(given), {}
    if isinstance(table, str | PathLike):
        file, sheet = Path(table), ""
        if "#" in file.name:
            from restive.desk.table_files import split_sheet

            file, sheet = split_sheet(file)
        return _read_file(file), given | _as_query(reading or {}) | ({"sheet": sheet} if sheet else {})
    from restive.desk.table_files import as_frame

    frame = as_frame(table).drop("row")
    if frame.height <= MAX_JSON_ROWS and _fits_json(frame, columns):
        return Body.of({name: frame.to_dict(as_series=False)} | given | dict(reading or {})), {}
    content = BytesIO()
    frame.write_parquet(content)
    return Body(content.getvalue(), PARQUET), given | _as_query(reading or {})


def _as_query(reading: TableReading) -> dict[str, str | int | bool | list[str] | None]:
    """How a table is read, as a query string has it."""
    query: dict[str, str | int | bool | list[str] | None] = {
        name: [f"{key}={value}" for key, value in pairs.items()] for name in PAIRS if (pairs := reading.get(name))
    }
    if "cut_points" in reading:
        cut = reading["cut_points"]
        limits = "" if cut is None else ", ".join(f"{limit:g}" for limit in cut["at"])
        query["cut_points"] = "none" if cut is None else f"{cut['column']}: {limits}, more is {cut['more_is']}"
    if reading.get("phone_country"):
        query["phone_country"] = reading["phone_country"]
    return query


def _read_file(path: Path) -> Body:
    """The content of a table file, with the media type of its suffix."""
    media_type = MEDIA_TYPES.get(path.suffix.lower())
    if media_type is None:
        raise InputError(f"{path.name}: a table is a .csv, .tsv, .txt, .xlsx or .parquet file.", location=path)
    return Body(path.read_bytes(), media_type)


def list_agents(given: object) -> list[str] | None:
    """The ids in a list, a file or a frame; None stays None."""
    if given is None:
        return None
    table = isinstance(given, str | PathLike | Mapping) or hasattr(given, "columns")
    if isinstance(given, Iterable) and not table:
        return [str(each) for each in given]
    from restive.desk.ingest import read_list

    names: list[str] = read_list(given, "agents").to_list()
    return names


def _fits_json(frame: "pl.DataFrame", columns: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether JSON can express the table."""
    kinds = {name: str(kind) for name, kind in frame.schema.items()}
    known = all(name in columns and (kind == "Null" or kind in columns[name]) for name, kind in kinds.items())
    return known and all(frame[name].is_finite().all() for name, kind in kinds.items() if kind.startswith("Float"))
