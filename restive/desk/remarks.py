"""Remarks on what was brought to a round: nothing is wrong, but somebody should know."""

from collections.abc import Mapping, Sequence

import numpy as np

from restive.desk.config import Words
from restive.desk.ingest import name_few
from restive.desk.names import Names
from restive.desk.projection import Present, Projection
from restive.errors import InputError

FEW = 3


def count(number: int, words: Words, what: str = "") -> str:
    """So many people.

    >>> count(1, Words(), "new "), count(2000, Words())
    ('1 new person', '2,000 people')
    """
    return f"{number:,} {what}{words.person if number == 1 else words.people}"


def say_names(what: str, names: Sequence[str], words: Words) -> list[str]:
    """How many people something holds for, and who.

    >>> say_names("back, though they had left", ["ann", "ben"], Words())
    ['back, though they had left: 2 people (ann, ben)']
    """
    return [f"{what}: {count(len(names), words)} ({name_few(list(names))})"] if names else []


def remark_on_round(program: str, projection: Projection, present: Present, names: Names) -> list[str]:
    """Older states, people left out, groups that nobody is in, a round beyond the horizon, one without outcomes."""
    agents, config, round_ = projection.agents, projection.config, projection.next_round
    out = agents.active.copy()
    out[present.number] = False
    kept = int(present.carried_over.sum())
    notes = [f"with a state kept from an earlier round: {count(kept, config.words)}"] if kept else []
    notes += say_names("left out, without a recent state", names.call(np.flatnonzero(out)), config.words)
    if config.shares:
        used = {projection.groups[code] for code in np.unique(agents.group[agents.active]) if code >= 0}
        notes += [f"nobody is in the group {group}, which has a share" for group in config.shares if group not in used]
    if config.horizon is not None and round_ > config.horizon:
        notes.append(f"round {round_} is beyond the {config.horizon} rounds that were planned")
    last = len(projection.rounds)
    if last and projection.rounds[-1].waiting == projection.rounds[-1].present:
        notes.append(f"round {last} has no outcomes yet; if it was a mistake: restive desk cancel {program} {last}")
    return notes


def remark_on_groups(projection: Projection, groups: Sequence[str]) -> list[str]:
    """Groups that appear after the first round."""
    return [f"a new group: {group}" for group in groups] if projection.rounds and projection.groups else []


def refuse_alike(alike: Mapping[str, str]) -> None:
    """Refuse new names that are most likely old ones written another way, as spreadsheets do."""
    if alike:
        shown = ", ".join(f"{new} for {known}" for new, known in list(alike.items())[:FEW])
        raise InputError(
            f"new ids that differ from known ones only by zeros before them or by capitals: {len(alike):,} ({shown}); "
            "nothing was recorded. Write them as before (in a spreadsheet, as text), or say that they are new (--new)."
        )
