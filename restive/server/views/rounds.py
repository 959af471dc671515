"""The rounds of a program, one line each, and one round with what came of its list."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import APIRouter, Request

from restive.desk.decision import SPARE
from restive.desk.lift import lift_by_round
from restive.desk.program import Program
from restive.desk.projection import RoundTotals
from restive.desk.recommendation import KINDS
from restive.desk.rounds import DONE, UNKNOWN, Round
from restive.errors import NotFound
from restive.server.views.asking import ask, head, read_number
from restive.server.views.base import PageRoute, page
from restive.server.views.paging import turn_to
from restive.types import Ints

router = APIRouter(route_class=PageRoute, include_in_schema=False)
LINES, ROWS = 50, 200  # on one page: rounds, people
UNASKED = "unasked"
SAID = ("at", "budget", "present", "carried_over", "advised", "explored", "failed", "unasked", "outcomes", "waiting")


@page(router, "/programs/{name}/rounds", "rounds.html")
async def rounds(request: Request, name: str, page: str = "") -> dict[str, Any]:
    """All rounds, the newest first."""
    return await ask(request, name, list_rounds, read_number(page, "page"))


@page(router, "/programs/{name}/rounds/{n}", "round.html")
async def one_round(request: Request, name: str, n: str, page: str = "") -> dict[str, Any]:
    """One round."""
    return await ask(request, name, look_into, read_number(n, "round"), read_number(page, "page"))


def list_rounds(program: Program, page: int) -> dict[str, Any]:
    """A page of rounds in short."""
    newest_first = program.rounds[::-1]
    part = turn_to(page, len(newest_first), LINES)
    return {"program": head(program), "part": part._asdict(), "rounds": say_lines(newest_first[part.rows])}


def look_into(program: Program, number: int, page: int) -> dict[str, Any]:
    """A round in short, what holds for its list, and what came of the people on it."""
    if number > len(program.rounds):
        raise NotFound(f"{program.name} has no round {number}.")
    found = program.get_round(number)
    listed = _find_listed(found)
    part = turn_to(page, listed.size, ROWS)
    about: dict[str, Any] = {"left_out": {}, "prices": {}, "policy": None, "shadow": None}
    if found.decided is not None:
        said = program.advice(number).as_json(0)
        about = {key: value for key, value in said.items() if key in about}
    return {
        "program": head(program),
        "round": say_lines([program.projection.totals(number)])[0],
        **about,
        "part": part._asdict(),
        "people": _follow_up(program, found, listed[part.rows]),
    }


def say_lines(lines: Sequence[RoundTotals]) -> list[dict[str, Any]]:
    """Rounds as plain data, the mean rewards of both sides with their 95% intervals."""
    if not lines:
        return []
    sides = [[line.treated for line in lines], [line.control for line in lines]]
    sums, squares, counts = (
        np.array([[getattr(each, name) for each in side] for side in sides]) for name in ("total", "square", "seen")
    )
    curve = lift_by_round(sums, squares, counts)
    bands = {"treated": curve.treated, "control": curve.control, "lift": curve.lift}
    return [
        {
            "round": line.round,
            **{name: getattr(line, name) for name in SAID},
            "done": line.done - line.unasked,
            "decided": line.decided >= 0,
            "cancelled": line.cancelled,
            "expected": line.benefit,
            **{
                name: {part: finite(getattr(band, part)[place]) for part in ("mean", "low", "high")}
                for name, band in bands.items()
            },
        }
        for place, line in enumerate(lines)
    ]


def finite(value: float) -> float | None:
    """The number, or None for what is none."""
    return float(value) if math.isfinite(value) else None


def _find_listed(found: Round) -> Ints:
    """The numbers of those on the list in its order, then of those who were acted on unasked."""
    unasked: Ints = found.number[(found.done == DONE) & ~found.chosen]
    if found.decided is None:
        return unasked
    on_it: Ints = found.list["agent"][found.list["kind"] != SPARE].astype(np.int64)
    everybody: Ints = np.concatenate([on_it, unasked])
    return everybody


def _follow_up(program: Program, found: Round, numbers: Ints) -> list[dict[str, Any]]:
    """What was done and what came of it, a row for each person."""
    states, places = program.config.states, found.find(numbers)[0]
    kinds = dict(zip(found.list["agent"].tolist(), found.list["kind"].tolist(), strict=True)) if found.list else {}
    rows = []
    for agent, number, place in zip(program.names.call(numbers), numbers.tolist(), places.tolist(), strict=True):
        done, after = int(found.done[place]), int(found.after[place])
        rows.append(
            {
                "agent": agent,
                "list": KINDS[kinds[number]] if found.chosen[place] else UNASKED,
                "state": states[int(found.state[place])],
                "done": None if done == UNKNOWN else done == DONE,
                "after": states[after] if after >= 0 else None,
                "reward": finite(found.reward[place]) if after >= 0 else None,
            }
        )
    return rows
