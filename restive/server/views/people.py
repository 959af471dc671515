"""People of a program: search by a part of the id, and the history of one person."""

from typing import Any

import numpy as np
import polars as pl
from fastapi import APIRouter, Request

from restive.desk.history import find_history
from restive.desk.names import Names
from restive.desk.program import Program
from restive.desk.projection import NEVER
from restive.errors import NotFound
from restive.server.views.base import PageRoute, ask, head, page, paginate, read_number
from restive.types import Ints

PEOPLE_PER_PAGE, ROUNDS_PER_PAGE = 100, 200
MAX_SEARCH = 200  # characters

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@page(router, "/programs/{name}/people", "people.html")
async def show_people(request: Request, name: str, find: str = "", page: str = "") -> dict[str, Any]:
    """The people, or those whose id contains `find`."""
    return await ask(request, name, search, find.strip()[:MAX_SEARCH], read_number(page, "page"))


@page(router, "/programs/{name}/person", "person.html")
async def show_person(request: Request, name: str, agent: str = "", page: str = "") -> dict[str, Any]:
    """One person."""
    return await ask(request, name, build_person, agent, read_number(page, "page"))


def search(program: Program, find: str, page: int) -> dict[str, Any]:
    """A page of people; ids that begin with `find` come first, then those that contain it elsewhere."""
    numbers = program.names.search(find)
    if find:
        numbers = numbers[np.argsort(~_starts_with(program.names, numbers, find.lower()), kind="stable")]
    part = paginate(page, numbers.size, PEOPLE_PER_PAGE)
    rows = [describe(program, number) for number in numbers[part.rows].tolist()]
    return {"program": head(program), "find": find, "part": part._asdict(), "people": rows}


def _starts_with(names: Names, numbers: Ints, prefix: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which ids begin with `prefix`; the column is read as a whole, unless names of pseudonyms are known."""
    ids = pl.Series(names.call(numbers), dtype=pl.String) if names.given else names.roster[numbers]
    return ids.str.to_lowercase().str.starts_with(prefix).to_numpy()


def describe(program: Program, number: int) -> dict[str, Any]:
    """The summary of one person."""
    projection, config = program.projection, program.config
    agents = projection.agents
    state, group, state_round, last_action = (
        int(getattr(agents, name)[number]) for name in ("state", "group", "state_round", "last_action")
    )
    seen = int(agents.seen[number])
    return {
        "agent": program.names.call([number])[0],
        "group": projection.groups[group] if group >= 0 else None,
        "state": config.states[state] if state >= 0 else None,
        "state_round": state_round if state >= 0 and state_round > NEVER else None,
        "control": bool(agents.control[number]),
        "active": bool(agents.active[number]),
        "last_listed": last_action if last_action > NEVER else None,
        "outcomes": seen,
        "reward": float(agents.total[number]) / seen if seen else None,
    }


def build_person(program: Program, agent: str, page: int) -> dict[str, Any]:
    """One person with all rounds, newest first."""
    if not agent:
        raise NotFound("The URL has no id of a person.")
    rounds = find_history(program, agent)[::-1]
    names = program.names
    number = names.find(names.inward(pl.Series("agent", [agent])))[0]
    part = paginate(page, len(rounds), ROUNDS_PER_PAGE)
    return {
        "program": head(program),
        "person": describe(program, int(number)),
        "listed": sum(bool(row.get("chosen")) for row in rounds),
        "done": sum(bool(row.get("done")) for row in rounds),
        "part": part._asdict(),
        "rounds": rounds[part.rows],
    }
