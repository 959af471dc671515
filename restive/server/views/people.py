"""People of a program: search by a part of the id or of a display column, and the history of one person."""

from typing import Any

import numpy as np
import polars as pl

from restive.desk.agents import NEVER
from restive.desk.display import match_cells
from restive.desk.export import describe_people
from restive.desk.program import Program
from restive.desk.roster import Names
from restive.errors import NotFound
from restive.server.views.base import Data, Query, paginate, program_page
from restive.types import Ints

PEOPLE_PER_PAGE, ROUNDS_PER_PAGE = 100, 200
MAX_SEARCH = 200  # characters
MAX_DISPLAY_SEARCH = 200_000  # people whose display columns are searched


@program_page("people", "people.html")
def build_people(program: Program, query: Query) -> Data:
    """A page of people whose ids or display columns contain `find`; ids that begin with it come first."""
    find = query.get("find", "").strip()[:MAX_SEARCH]
    numbers = program.names.search(find)
    if find:
        numbers = numbers[np.argsort(~_starts_with(program.names, numbers, find.lower()), kind="stable")]
        numbers = np.concatenate([numbers, np.setdiff1d(_find_display(program, find), numbers)])
    part = paginate(query.number("page"), numbers.size, PEOPLE_PER_PAGE)
    return {
        "find": find,
        "searched": list(program.config.display),
        "part": part._asdict(),
        "people": describe(program, numbers[part.rows]),
    }


def _find_display(program: Program, find: str) -> Ints:
    """The people with a display column that contains `find`."""
    columns, everybody = program.config.display, program.names.search("")
    if not columns or everybody.size > MAX_DISPLAY_SEARCH:
        return everybody[:0]
    return np.array(match_cells(program.store.display(program.id, everybody), columns, find), np.int64)


def _starts_with(names: Names, numbers: Ints, prefix: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which ids begin with `prefix`; the column is read as a whole, unless names of pseudonyms are known."""
    ids = pl.Series(names.call(numbers), dtype=pl.String) if names.given else names.roster[numbers]
    return ids.str.to_lowercase().str.starts_with(prefix).to_numpy()


def describe(program: Program, numbers: Ints) -> list[dict[str, Any]]:
    """Summaries of some people."""
    agents, labels = program.projection.agents, [totals.label for totals in program.rounds]
    rows: list[dict[str, Any]] = [{**row} for row in describe_people(program, numbers)]
    for row in rows:
        state_round, last_action = (int(column[row["number"]]) for column in (agents.state_round, agents.last_action))
        row["state_round"] = state_round if row["state"] is not None and state_round > NEVER else None
        row["control"] &= program.config.has_control(program.projection.next_round)
        row["expected"] = bool(agents.expected[row["number"]])
        row["last_action"] = last_action if last_action > NEVER else None
        row["last_action_label"] = labels[last_action - 1] if last_action > NEVER else None
        row["state_label"] = labels[min(state_round, len(labels)) - 1] if row["state_round"] else None
        row["reward_mean"] = row["reward_total"] / row["rounds_seen"] if row["rounds_seen"] else None
    return rows


@program_page("person", "person.html")
def build_person(program: Program, query: Query) -> Data:
    """One person with all rounds, newest first."""
    agent = query.get("agent", "")
    if not agent:
        raise NotFound("The URL has no id of a person.")
    rounds = program.history(agent)[::-1]
    names = program.names
    number = names.find_one(agent)
    part = paginate(query.number("page"), len(rounds), ROUNDS_PER_PAGE)
    return {
        "person": describe(program, np.array([number]))[0],
        "cost_unit": program.config.cost_unit,
        "listed": sum(bool(row.get("chosen")) for row in rounds),
        "done": sum(bool(row.get("done")) for row in rounds),
        "part": part._asdict(),
        "rounds": rounds[part.rows],
    }
