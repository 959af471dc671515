"""What a piece of work does: functions of plain settings that return columns, alike in any thread, process or machine.

Nothing outside this folder and the rooms below `experiments` decides what comes out; see `restive.paper.work`.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from restive.files import Columns
from restive.paper.tasks.counterexamples import (
    arrivals,
    best_choices,
    collect,
    first_choices,
    three_states,
    unlike_agents,
)
from restive.paper.tasks.good_agents import check_lemma
from restive.paper.tasks.playing import bound, episodes, play
from restive.paper.tasks.regret import regret
from restive.paper.tasks.theorem import hardest, theorem
from restive.paper.work import code_digest
from restive.version import __version__

TASKS: Mapping[str, Callable[..., Columns]] = {
    "play": play,
    "bound": bound,
    "episodes": episodes,
    "regret": regret,
    "theorem": theorem,
    "hardest": hardest,
    "arrivals": arrivals,
    "first_choices": first_choices,
    "unlike_agents": unlike_agents,
    "best_choices": best_choices,
    "three_states": three_states,
    "collect": collect,
    "check_lemma": check_lemma,
}


class Outcome(NamedTuple):
    """What a piece of work gave, how long it took, and which version of restive did it, with the digest of its code."""

    columns: Columns
    seconds: float
    version: str
    code: str


def carry_out(task: str, settings: Mapping[str, Any]) -> Outcome:
    """Do a piece of work, here or on another machine."""
    begun = time.perf_counter()
    columns = TASKS[task](**settings)
    return Outcome(columns, time.perf_counter() - begun, __version__, code_digest())
