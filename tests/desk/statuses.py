"""Statuses of made-up programs, for tests of what shows them."""

from dataclasses import asdict
from typing import Any, cast

from restive.api.status import PeopleCounts, Status, StatusRound
from restive.desk.config import Words
from restive.desk.status import as_plain
from restive.version import __version__


def make_status(words: Words, **fields: Any) -> Status:
    """A status with these fields, as plain data, and otherwise of a program that has not begun."""
    usual = {
        "name": "shops",
        "title": "",
        "policy": "lagrange",
        "seed": 7,
        "people": count_people(),
        "words": asdict(words),
        "rounds": [],
        "waiting": [],
        "lift": None,
        "curve": None,
        "caution": "",
        "shadow_policy": None,
        "shadow": None,
        "effects": [],
        "effects_of": None,
        "reward_range": {"low": 0.0, "high": 4.0, "observed": False},
        "drift": [],
        "horizon": None,
        "timezone": "UTC",
        "due": None,
        "steps": [],
        "version": __version__,
        "actions": 0,
        "budget_used": None,
        "cost_unit": "",
        "extra_per_action": None,
        "total": "",
    }
    return cast("Status", usual | {name: as_plain(value) for name, value in fields.items()})


def count_people(active: int = 0, **others: int) -> PeopleCounts:
    return cast("PeopleCounts", {"active": active, "left": 0, "erased": 0, "new": 0, "control": 0} | others)


def make_round(number: int, **totals: Any) -> StatusRound:
    usual = {
        "round": number,
        "label": "Week of 2 Mar 2026",
        "due": "2026-03-02",
        "at": "2026-03-02T08:15:59.000001+00:00",
        **dict.fromkeys(("present", "budget", "advised", "done", "failed", "outcomes", "unlisted", "explored"), 0),
        "planned": None,
        "spent": None,
        **dict.fromkeys(("reward_mean", "control_mean")),
    }
    return cast("StatusRound", usual | totals)
