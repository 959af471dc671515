"""The people of a program: found by a part of their id, and one of them with all that happened, round by round."""

from typing import Any

import numpy as np
import polars as pl
from fastapi import APIRouter, Request

from restive.desk.history import find_history
from restive.desk.names import Names
from restive.desk.program import Program
from restive.desk.projection import NEVER
from restive.errors import NotFound
from restive.server.views.asking import ask, head, read_number
from restive.server.views.base import PageRoute, page
from restive.server.views.paging import turn_to
from restive.types import Ints

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ROWS = 100  # people on one page
ROUNDS = 200  # rounds of one of them
LONGEST = 200  # letters that are looked for


@page(router, "/programs/{name}/people", "people.html")
async def people(request: Request, name: str, find: str = "", page: str = "") -> dict[str, Any]:
    """The people, or those whose id has `find` in it."""
    return await ask(request, name, search, find.strip()[:LONGEST], read_number(page, "page"))


@page(router, "/programs/{name}/person", "person.html")
async def person(request: Request, name: str, agent: str = "", page: str = "") -> dict[str, Any]:
    """One of them."""
    return await ask(request, name, follow, agent, read_number(page, "page"))


def search(program: Program, find: str, page: int) -> dict[str, Any]:
    """A page of people: ids that begin with what is looked for come first, then those that have it elsewhere."""
    numbers = program.names.search(find)
    if find:
        numbers = numbers[np.argsort(~_begins(program.names, numbers, find.lower()), kind="stable")]
    part = turn_to(page, numbers.size, ROWS)
    rows = [describe(program, number) for number in numbers[part.rows].tolist()]
    return {"program": head(program), "find": find, "part": part._asdict(), "people": rows}


def _begins(names: Names, numbers: Ints, part: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of these ids begin so; the column is asked as a whole, unless this process was reported the names of codes."""
    called = pl.Series(names.call(numbers), dtype=pl.String) if names.given else names.roster[numbers]
    return called.str.to_lowercase().str.starts_with(part).to_numpy()


def describe(program: Program, number: int) -> dict[str, Any]:
    """One person in short."""
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


def follow(program: Program, agent: str, page: int) -> dict[str, Any]:
    """One person with all rounds, the newest first."""
    if not agent:
        raise NotFound("There is nobody without an id.")
    rounds = find_history(program, agent)[::-1]
    names = program.names
    number = names.find(names.inward(pl.Series("agent", [agent])))[0]
    part = turn_to(page, len(rounds), ROUNDS)
    return {
        "program": head(program),
        "person": describe(program, int(number)),
        "listed": sum(bool(row.get("chosen")) for row in rounds),
        "done": sum(bool(row.get("done")) for row in rounds),
        "part": part._asdict(),
        "rounds": rounds[part.rows],
    }
