"""Rounds of a program: all of them, and one round with its results."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from restive.desk.agents import RoundTotals
from restive.desk.decision import RESERVE
from restive.desk.lift import lift_by_round
from restive.desk.program import Program
from restive.desk.recommendation import LISTS
from restive.desk.rounds import DONE, UNKNOWN, Round
from restive.errors import NotFound
from restive.server.views.base import Data, Query, finite, paginate, program_page, read_number
from restive.types import Ints

ROUNDS_PER_PAGE, PEOPLE_PER_PAGE = 50, 200
UNLISTED = "unlisted"
TOTALS = (
    "at", "budget", "present", "carried_over", "advised", "planned", "spent", "explored", "failed", "unlisted", "outcomes",
    "waiting",
)  # fmt: skip


@program_page("rounds", "rounds.html")
def build_rounds(program: Program, query: Query) -> Data:
    """All rounds, newest first."""
    newest_first = program.rounds[::-1]
    part = paginate(query.number("page"), len(newest_first), ROUNDS_PER_PAGE)
    unit = program.config.cost_unit
    return {"part": part._asdict(), "cost_unit": unit, "rounds": summarize_rounds(newest_first[part.rows])}


@program_page("rounds/{round}", "round.html")
def build_round(program: Program, query: Query) -> Data:
    """The summary of a round, and the results of the people on its list."""
    number = query.number("round")
    find_round(program, str(number))
    found = program.get_round(number)
    listed = _find_listed(found)
    part = paginate(query.number("page"), listed.size, PEOPLE_PER_PAGE)
    decision: dict[str, Any] = {**program.recommendation(number).as_json(0)}
    about = {name: decision[name] for name in ("exclusions", "displaced", "policy", "shadow")}
    return {
        "round": summarize_rounds([program.projection.totals(number)])[0],
        "before": program.rounds[number - 2].label if number > 1 else None,
        "after": program.rounds[number].label if number < len(program.rounds) else None,
        "cost_unit": program.config.cost_unit,
        **about,
        "part": part._asdict(),
        "people": describe_results(program, found, listed[part.rows]),
    }


def find_round(program: Program, asked: str) -> int | None:
    """The round that is asked for, by default the last one; None if there is no round yet."""
    number = read_number(asked, "round", len(program.rounds))
    if number > len(program.rounds):
        raise NotFound(f"{program.name} has no round {number}.")
    return number or None


def summarize_rounds(rounds: Sequence[RoundTotals]) -> list[dict[str, Any]]:
    """Rounds in plain data, with the mean rewards of both groups and their 95% intervals."""
    if not rounds:
        return []
    sides = [[each.treated for each in rounds], [each.control for each in rounds]]
    sums, squares, counts = (
        np.array([[getattr(each, name) for each in side] for side in sides]) for name in ("total", "square", "seen")
    )
    curve = lift_by_round(sums, squares, counts)
    bands = {"treated": curve.treated, "control": curve.control, "lift": curve.lift}
    return [
        {
            "round": totals.round,
            "label": totals.label,
            "due": totals.due,
            **{name: getattr(totals, name) for name in TOTALS},
            "done": totals.done - totals.unlisted,
            "cancelled": totals.cancelled,
            **{
                name: {part: finite(getattr(band, part)[index]) for part in ("mean", "low", "high")}
                for name, band in bands.items()
            },
        }
        for index, totals in enumerate(rounds)
    ]


def _find_listed(found: Round) -> Ints:
    """The numbers of the people on the list, then of those who got the action without being on it."""
    unlisted: Ints = found.number[(found.done == DONE) & ~found.chosen]
    return np.concatenate([find_chosen(found), unlisted])


def find_chosen(found: Round) -> Ints:
    """The numbers of the people on the list, without the reserve."""
    chosen: Ints = found.listed["agent"][found.listed["kind"] != RESERVE].astype(np.int64)
    return chosen


def describe_results(program: Program, found: Round, numbers: Ints) -> list[dict[str, Any]]:
    """Action and outcome of each person."""
    states, places = program.config.states, found.find(numbers)[0]
    kinds = dict(zip(found.listed["agent"].tolist(), found.listed["kind"].tolist(), strict=True))
    rows = []
    agents, display = program.names.call(numbers), program.display(numbers)
    for agent, cells, number, place in zip(agents, display, numbers.tolist(), places.tolist(), strict=True):
        done, after = int(found.done[place]), int(found.after[place])
        rows.append(
            {
                "agent": agent,
                "display": cells,
                "list": LISTS[kinds[number]] if found.chosen[place] else UNLISTED,
                "state": states[int(found.state[place])],
                "done": None if done == UNKNOWN else done == DONE,
                "assumed": bool(found.assumed[place]),
                "next_state": states[after] if after >= 0 else None,
                "reward": finite(found.reward[place]) if after >= 0 else None,
            }
        )
    return rows
