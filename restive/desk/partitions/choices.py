"""The choices of a round in one partition: what the selection asks of it, and its record once the last places are known.

A selection has a stage for the minimum of each group and one for all others, as in `restive.desk.selection`. Each stage
ends at a cut (`restive.desk.partitions.selection`), and from the cuts every partition knows who of its people is chosen
and with what probability: nothing else of the other partitions is needed. Whether people of the control group would
have been chosen, margins and the reserve list follow from who is next to the last place in all partitions (`Edge`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from restive.desk.agents import NEVER
from restive.desk.decision import CHOSEN, MUST, RESERVE_SIZE, SPARES
from restive.desk.events import FREE, IN_CONTROL, ON_MUST
from restive.desk.partitions.files import ACTIVITY, CHOICES, LIST, RANKED, File, Folder
from restive.desk.partitions.selection import Agents, Cut, Window, look, order_keys
from restive.desk.partitions.tasks import Partition, Setting, is_worth, least_priority, load_config, update_activity
from restive.desk.selection import FIRST, GROUPS, REST
from restive.kernels import rng
from restive.types import Bools, Floats, Ints


class Stage(NamedTuple):
    """A stage of the selection: the minimum of a group, or of all others (group −1)."""

    group: int
    cut: Cut | None  # None if nobody is chosen, or if it is not known so far

    @property
    def stream(self) -> int:
        """The stream of random numbers that breaks ties."""
        return rng.TIE if self.group < 0 else GROUPS


class _Field:
    """The people of a partition in a selection."""

    def __init__(self, setting: Setting, partition: Partition, columns: Sequence[str]) -> None:
        stored = Folder(setting.folder).read(partition.files[RANKED].path, ["priority", "exclusion", "group", *columns])
        self.stored, self.number = stored, partition.number
        self.priority, self.exclusion = stored["priority"].to_numpy(), stored["exclusion"].to_numpy()
        self.group, self.draws = stored["group"].to_numpy(), setting.draws(partition)
        self.least = least_priority(load_config(setting.config), setting.shared)
        self.worth = (self.exclusion == FREE) & is_worth(self.priority, self.least)
        self.stage = np.zeros(partition.size, np.int64)

    def among(self, stage: Stage) -> Ints:
        """Those who can be chosen in a stage after those before."""
        left = self.worth & (self.stage == 0)
        return np.flatnonzero(left if stage.group < 0 else left & (self.group == stage.group))

    def agents(self, stage: Stage, some: Ints) -> Agents:
        return Agents(self.priority[some], self.number[some], self.draws.branch(stage.stream))

    def take(self, stages: Sequence[Stage]) -> None:
        """Mark those who are chosen in these stages."""
        for stage in stages:
            if stage.cut is not None:
                some = self.among(stage)
                marked = some[self.agents(stage, some).mark(stage.cut)]
                self.stage[marked] = REST if stage.group < 0 else FIRST


def look_at(
    setting: Setting, partition: Partition, stages: Sequence[Stage], above: tuple[int, ...], low: int, high: int
) -> Window:
    """What a partition says of a window of keys in the last of these stages."""
    field = _Field(setting, partition, ())
    field.take(stages[:-1])
    return look(field.agents(stages[-1], field.among(stages[-1])).keys(above), low, high)


class Edge(NamedTuple):
    """Who is next to the last place, in a partition or in all."""

    last: tuple[tuple[float, float], ...]  # of each stage, the lowest priority of those chosen, and its lowest draw
    chosen: float  # the lowest priority of those chosen by priority, infinite if there is nobody
    waiting: float  # the highest one of those who are not
    spares: tuple[tuple[float, float, int], ...]  # the first ones of the reserve list: −priority, draw, number


def edge(setting: Setting, partition: Partition, stages: Sequence[Stage]) -> Edge:
    """Who is next to the last place in a partition."""
    field = _Field(setting, partition, ())
    field.take(stages)
    last = tuple(_find_last(field, stage) for stage in stages)
    taken, waiting = field.stage > 0, np.flatnonzero(field.worth & (field.stage == 0))
    best = waiting
    if waiting.size > RESERVE_SIZE:
        cutoff = np.partition(field.priority[waiting], -RESERVE_SIZE)[-RESERVE_SIZE]
        best = waiting[field.priority[waiting] >= cutoff]
    drawn = rng.uniform(field.draws.branch(SPARES), field.number[best])[0]
    order = np.lexsort((drawn, -field.priority[best]))[:RESERVE_SIZE]
    spares = zip(*(each[order].tolist() for each in (-field.priority[best], drawn, field.number[best])), strict=True)
    lowest, highest = field.priority[taken].min(initial=math.inf), field.priority[waiting].max(initial=-math.inf)
    return Edge(last, float(lowest), float(highest), tuple(spares))


def _find_last(field: _Field, stage: Stage) -> tuple[float, float]:
    some = field.stage == (REST if stage.group < 0 else FIRST)
    if stage.group >= 0:
        some &= field.group == stage.group
    lowest = field.priority[some].min(initial=math.inf)
    tied = field.number[some & (field.priority == lowest)]
    return float(lowest), float(rng.uniform(field.draws.branch(stage.stream), tied)[0].min(initial=math.inf))


class Recorded(NamedTuple):
    """The files of a round, and how many are on the list."""

    files: Mapping[str, File]
    advised: int


def record(
    setting: Setting, partition: Partition, stages: Sequence[Stage], edges: Edge, still_open: Sequence[bool]
) -> Recorded:
    """Record the choices of a round; `still_open`: stages that would also have taken one person more of any priority."""
    folder, round_ = Folder(setting.folder), setting.round
    field = _Field(setting, partition, ("as_treated", "state", "carried_over"))
    field.take(stages)
    must = field.exclusion == ON_MUST
    chosen, probability = must | (field.stage > 0), must + _inclusion(field, stages)
    would_act = chosen | _would_act(field, stages, edges, still_open)
    state, carried_over = field.stored["state"].to_numpy().astype(np.int64), field.stored["carried_over"].to_numpy()
    activity = update_activity(setting, partition)
    last = activity.last_action.copy()
    fresh = (state >= 0) & ~carried_over
    activity.state[fresh], activity.state_round[fresh] = state[fresh], round_
    activity.record_selected(np.flatnonzero(chosen), round_)
    columns = {
        "state": state.astype(np.int16), "carried_over": carried_over, "chosen": chosen, "probability": probability,
        "exclusion": field.exclusion, "would_act": would_act,
    }  # fmt: skip
    places = np.flatnonzero(chosen)
    places = places[np.lexsort((field.number[places], -field.priority[places]))]
    people = folder.read(partition.people)
    listed = {
        "agent": people["agent"][places], "number": field.number[places], "group": people["group"][places],
        "kind": np.where(must[places], MUST, CHOSEN).astype(np.uint8), "state": state[places].astype(np.int16),
        "carried_over": carried_over[places], "priority": field.priority[places],
        "margin": field.priority[places] - edges.waiting, "probability": probability[places],
        "since": np.where(last[places] == NEVER, -1, round_ - last[places]),
    }  # fmt: skip
    narrow = {name: array.astype(np.int32) for name, array in vars(activity).items()}
    written = {CHOICES: columns, LIST: listed, ACTIVITY: narrow}
    files = {kind: folder.write(setting.name(partition, kind), part) for kind, part in written.items()}
    return Recorded(files, places.size)


def _inclusion(field: _Field, stages: Sequence[Stage]) -> Floats:
    """The probability of each person, if ties are broken at random: first + (1 − first) · rest."""
    keys, total = order_keys(field.priority), np.zeros(field.priority.size)
    for stage in stages:
        if stage.cut is not None:
            cutoff = np.uint64(stage.cut.keys[0])
            best = np.where(keys > cutoff, 1.0, np.where(keys == cutoff, stage.cut.share, 0.0))
            among = field.worth if stage.group < 0 else field.worth & (field.group == stage.group)
            total = np.where(among, total + (1 - total) * best, total)
    return total


def _would_act(field: _Field, stages: Sequence[Stage], edges: Edge, still_open: Sequence[bool]) -> Bools:
    """Whether people of the control group would have been chosen, in the stage of their group or in the last one."""
    as_treated = field.stored["as_treated"].to_numpy()
    control = field.exclusion == IN_CONTROL
    found: Bools = control & (as_treated == ON_MUST)
    waiting = control & (as_treated == FREE) & (field.priority > field.least)
    for stage, (lowest, drawn), is_open in zip(stages, edges.last, still_open, strict=True):
        some = np.flatnonzero(waiting if stage.group < 0 else waiting & (field.group == stage.group))
        tie = rng.uniform(field.draws.branch(stage.stream), field.number[some])[0]
        priority = field.priority[some]
        found[some] |= (priority > lowest) | ((priority == lowest) & (tie >= drawn)) | is_open
    return found
