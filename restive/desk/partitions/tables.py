"""Tables of states, read by partition, and newcomers: people who are in no partition so far.

    read_states      the states of a partition by place        -> GIVEN, and PEOPLE if somebody changed the group
    read_newcomers   the rows about people who are not known   -> a file of newcomers
    find_known       newcomers who are known, or look like somebody who is

A table is about one partition or, for up to a few million people, about all. Newcomers are numbered in the order of their
table, after everybody else.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from restive.desk import table_schema
from restive.desk.config import Config
from restive.desk.ingest import as_integers, name_few
from restive.desk.partitions.files import CHOICES, GIVEN, PEOPLE, File, Folder
from restive.desk.partitions.tasks import Partition, Setting, digest_columns, load_config
from restive.desk.roster import Names
from restive.desk.table_columns import AllKnown, Fault, TableError, accept, match_headers
from restive.desk.table_files import ROW, read_parquet
from restive.errors import InputError, NotFound
from restive.types import Ints


class Lists(NamedTuple):
    """Ids with a place on the list, without one, and of people who have left."""

    must: Sequence[str] = ()
    never: Sequence[str] = ()
    left: Sequence[str] = ()

    def mark(self, people: pl.Series) -> dict[str, Any]:
        """Who of these people is on each list."""
        return {
            name: people.is_in(pl.Series(list(some), dtype=pl.String).implode()).to_numpy()
            for name, some in self._asdict().items()
        }


class Given(NamedTuple):
    """What was read of a table of states."""

    files: Mapping[str, File]
    rows: int  # of the table
    found: int  # of them, about people of this partition
    outcomes: int  # people with a state who were in the round before
    listed: tuple[int, ...]  # how many of each of the lists are found here
    groups: Sequence[tuple[int, str]]  # that are new, with the first row of each
    digest: str  # of states and lists


class Newcomers(NamedTuple):
    """People who are in no partition so far."""

    file: File  # with the columns of people and of what is given of them
    people: int
    listed: tuple[int, ...]
    groups: Sequence[tuple[int, str]]


def read_states(setting: Setting, partition: Partition, where: str, shared: bool, lists: Lists) -> Given:
    """The states, and whether the action of the round before was done, by place; −1 where they are not given.

    shared: whether the table is about the people of all partitions
    """
    folder = Folder(setting.folder)
    people = folder.read(partition.people)
    agent = people["agent"]
    table = _read_outcomes(load_config(setting.config), where, lambda ids: bool(ids.equals(agent)))
    rows = len(table)
    if shared:
        table = table.filter(table["agent"].is_in(agent.implode()))
    place = _find_places(table, agent, where)
    state, done = np.full(partition.size, -1, np.int16), np.full(partition.size, -1, np.int8)
    state[place], done[place] = as_integers(table["after"]), as_integers(table["done"])
    marked = lists.mark(agent)
    columns = {"state": state, "done": done, **marked}
    files = {GIVEN: folder.write(setting.name(partition, GIVEN), columns)}
    outcomes = 0
    if CHOICES in partition.files:
        before = folder.read(partition.files[CHOICES].path, ["state"])["state"].to_numpy()
        outcomes = int(((before >= 0) & (state[: before.size] >= 0)).sum())
    groups = list[tuple[int, str]]()
    if "group" in table.columns and (changed := _change_groups(people, place, table["group"])) is not None:
        files[PEOPLE] = folder.write(setting.name(partition, PEOPLE), changed.to_dict())
        groups = _find_groups(table, setting.groups)
    listed = tuple(int(some.sum()) for some in marked.values())
    return Given(files, rows, len(place), outcomes, listed, groups, digest_columns(columns))


def _read_file(where: str) -> pl.DataFrame:
    source = Folder(where)
    try:
        return read_parquet(source.files.cat_file(source.root), where)
    except FileNotFoundError:
        raise NotFound(f"File not found: {where}.", location="states") from None


def _read_outcomes(config: Config, where: str, all_known: AllKnown) -> pl.DataFrame:
    """A validated table of states, with `done` and, if the table has it, the group."""
    frame = _read_file(where)
    table = table_schema.read_outcomes(frame, where, config.states, config.rewards, all_known, config.mapping)
    if len(table) and table["after"].null_count() == len(table):
        raise InputError(f"{where}: no row has a state; the columns are agent, state and, if you like, done and group.")
    if "group" in match_headers(frame, accept(table_schema.STATES, config.mapping)):
        named = table_schema.read_states(frame, where, config.states, all_known, mapping=config.mapping)
        table = table.join(named.select("agent", "group"), on="agent", how="left", maintain_order="left")
    return table


def _find_places(table: pl.DataFrame, people: pl.Series, where: str) -> Ints:
    """The places of people; those who are not in the partition are refused."""
    if table["agent"].equals(people):
        return np.arange(len(people))
    places = pl.DataFrame({"agent": people, "place": np.arange(len(people))})
    found = table.join(places, on="agent", how="left", maintain_order="left")
    unknown = found.filter(pl.col("place").is_null())
    if len(unknown):
        why = f"{name_few(unknown['agent'].to_list())}: not in this partition of the program"
        raise TableError(where, [Fault(unknown[ROW][0], "agent", why)])
    return as_integers(found["place"])


def _change_groups(people: pl.DataFrame, place: Ints, group: pl.Series) -> pl.DataFrame | None:
    """The people with the groups that a table gives; None if nobody's changes."""
    moved = group.is_not_null() & group.ne_missing(people["group"].gather(place))
    if not moved.any():
        return None
    news = pl.DataFrame({"place": place, "new": group}).filter(moved)
    found = (
        people.with_row_index("place")
        .cast({"place": pl.Int64})
        .join(news, on="place", how="left", maintain_order="left")
    )
    return found.with_columns(group=pl.coalesce("new", "group")).select(people.columns)


def _find_groups(table: pl.DataFrame, known: Sequence[str]) -> list[tuple[int, str]]:
    """The groups that are new, with the first row of each."""
    first = table.unique("group", keep="first", maintain_order=True).drop_nulls("group")
    return [(row, name) for row, name in first.select(ROW, "group").rows() if name not in known]


def read_newcomers(setting: Setting, where: str, people: Sequence[str], lists: Lists) -> Newcomers:
    """The rows of a table about people who are not in these files of people."""
    config, folder = load_config(setting.config), Folder(setting.folder)
    table = table_schema.read_states(_read_file(where), where, config.states, mapping=config.mapping)
    for path in people:
        table = table.filter(~table["agent"].is_in(folder.read(path, ["agent"])["agent"].implode()))
    marked = lists.mark(table["agent"])
    columns = {
        "agent": table["agent"], "group": table["group"], "joined": np.full(len(table), setting.round, np.int32),
        "state": as_integers(table["state"]).astype(np.int16), "done": np.full(len(table), -1, np.int8), **marked,
    }  # fmt: skip
    file = folder.write(f"settings/{setting.round:05d}-{{digest}}.parquet", columns)
    listed = tuple(int(some.sum()) for some in marked.values())
    return Newcomers(file, len(table), listed, _find_groups(table, setting.groups))


def find_known(setting: Setting, partition: Partition, newcomers: str) -> tuple[list[str], dict[str, str]]:
    """Newcomers who are in a partition, and those who differ from somebody there only by leading zeros or case."""
    folder = Folder(setting.folder)
    new, people = (folder.read(path, ["agent"])["agent"] for path in (newcomers, partition.people))
    return new.filter(new.is_in(people.implode())).to_list(), Names(people).find_alike(new)
