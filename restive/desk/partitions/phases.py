"""The phases of a round that ask all partitions again and again: learning in passes, and the selection by windows.

The coordinator sends what is known so far and gets sums or counts back. `Tasks` runs one task for every partition on any
`concurrent.futures.Executor` (`restive.paper.engines`): threads, or the workers of Dask, where the task of a worker that died
is run by another one.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

import numpy as np

from restive.desk.decision import RESERVE_SIZE
from restive.desk.partitions.choices import Edge, Stage, look_at
from restive.desk.partitions.files import BELIEF, CHOICES, GIVEN, PEOPLE, RANKED
from restive.desk.partitions.messages import call, pack, unpack
from restive.desk.partitions.selection import Window, find_cut
from restive.desk.partitions.tables import Newcomers
from restive.desk.partitions.tasks import (
    Learned,
    Partition,
    Ranked,
    Setting,
    join,
    learn,
    load_belief,
    load_policy,
    welcome,
)
from restive.desk.selection import find_minimums
from restive.paper.engines import result_of
from restive.policies.belief import agent_axes, flatten
from restive.policies.lagrange import UNOBSERVED, Observed
from restive.policies.lagrange_passes import Passes, learn_in_passes, welcome_in_passes
from restive.types import Floats

Result = TypeVar("Result")
Progress = Callable[[str, int, int], None]  # the phase, the tasks done, all of them


def no_progress(phase: str, done: int, tasks: int) -> None:
    """Report nothing."""


class Tasks:
    """Runs a task for every partition, and counts what is sent and received."""

    def __init__(self, engine: Executor, progress: Progress) -> None:
        self.engine, self.progress = engine, progress
        self.moved: dict[str, int] = {}
        self.seconds: dict[str, float] = {}

    def run(self, phase: str, function: Callable[..., Result], arguments: Sequence[tuple[Any, ...]]) -> list[Result]:
        """The results in order; the first error ends the phase."""
        begun = time.monotonic()
        messages = [pack(each) for each in arguments]
        futures = [self.engine.submit(call, function, each) for each in messages]
        results: list[Result] = []
        for future in futures:
            messages.append(result_of(future, f"{phase} of partition {len(results)}"))
            results.append(unpack(messages[-1]))
            self.progress(phase, len(results), len(futures))
        self.moved[phase] = self.moved.get(phase, 0) + sum(len(each) for each in messages)
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.monotonic() - begun
        return results


# A partition of one agent that is never observed: it follows what all agents share.
NOBODY = Partition(-1, 0, 1, {})


def _run_passes(
    tasks: Tasks,
    task: Callable[[Setting, Partition, Sequence[Floats]], Learned],
    setting: Setting,
    partitions: Sequence[Partition],
    steps: Passes,
) -> list[Learned]:
    """Ask all partitions for one pass after the other, and send the sums to `steps`; the results of the last one."""
    expected, sums = next(steps), list[Floats]()
    while True:
        found = tasks.run(task.__name__, task, [(setting, each, sums) for each in partitions])
        sums.append(expected.join([each.nodes for each in found], setting.agents))
        try:
            expected = steps.send(sums[-1].copy())
        except StopIteration:
            return found


def learn_round(tasks: Tasks, setting: Setting, partitions: Sequence[Partition]) -> tuple[list[Partition], Setting]:
    """Learn what came of the round before: partitions with their beliefs, and the setting with the shared numbers."""
    policy, nobody = load_policy(setting.config), load_belief(setting, NOBODY)
    unknown = np.full((1, 1), UNOBSERVED)
    steps = learn_in_passes(policy, nobody, Observed(unknown, unknown, np.zeros((1, 1)), unknown), setting.agents)
    found = _run_passes(tasks, learn, setting, [each.brief(GIVEN, CHOICES, BELIEF) for each in partitions], steps)
    learned = [
        part.having(**{BELIEF: each.belief}) if each.belief else part
        for part, each in zip(partitions, found, strict=True)
    ]
    axes = agent_axes(policy, nobody)
    shared = {name: array for name, array in flatten(nobody).items() if axes[name] is None}
    return learned, setting._replace(shared=shared).save()


def join_round(
    tasks: Tasks, setting: Setting, partitions: Sequence[Partition], newcomers: Newcomers, size: int
) -> tuple[list[Partition], Setting, dict[int, str]]:
    """Add newcomers to the last partition, up to its size, and to new ones; the digests of what is given of these."""
    policy, nobody = load_policy(setting.config), load_belief(setting, NOBODY)
    newcomer = dict[str, Floats]()
    if nobody.step > 0:
        steps = welcome_in_passes(policy, nobody, setting.agents)
        _run_passes(tasks, welcome, setting, [each.brief(BELIEF) for each in partitions], steps)
        axes = agent_axes(policy, nobody)
        newcomer = {name: array for name, array in flatten(nobody).items() if axes[name] is not None}
    agents, grown, given = setting.agents + newcomers.people, list(partitions), list[tuple[Any, ...]]()
    for place in range(setting.agents // size, (agents - 1) // size + 1):
        part = partitions[place] if place < len(partitions) else Partition(place, place * size, 0, {})
        larger = part._replace(size=min(agents - part.first, size))
        grown[place:] = [larger]
        first = max(part.first + part.size - setting.agents, 0)
        given.append((setting, larger.brief(PEOPLE, GIVEN, BELIEF), part.size, newcomers.file.path, first, newcomer))
    digests = dict[int, str]()
    for (_, part, *_), (files, digest) in zip(given, tasks.run("join", join, given), strict=True):
        grown[part.place], digests[part.place] = grown[part.place].having(**files), digest
    return grown, setting._replace(agents=agents).save(), digests


def select(
    tasks: Tasks,
    setting: Setting,
    partitions: Sequence[Partition],
    ranked: Sequence[Ranked],
    shares: Mapping[int, float],
    budget: int,
) -> tuple[list[Stage], list[bool]]:
    """The last place of each stage, and whether the stage would also have taken one person more of any priority."""
    free, worth, must = (sum(each) for each in zip(*((one.free, one.worth, one.must) for one in ranked), strict=True))
    listed, left = int(must.sum()), budget - int(must.sum())
    places = min(left, int(free.sum()))
    minimum = find_minimums(shares, worth, must, places)
    wanted = {code: int(minimum[code]) for code in sorted(shares)}
    wanted[-1] = min(places, int(worth.sum())) - int(minimum.sum())
    bounds = min(each.low for each in ranked), max(each.high for each in ranked)
    stages: list[Stage] = []
    for code, number in wanted.items():
        tried = [*stages, Stage(code, None)]

        def ask(above: tuple[int, ...], low: int, high: int, tried: list[Stage] = tried) -> list[Window]:
            return tasks.run(
                "select", look_at, [(setting, each.brief(RANKED), tried, above, low, high) for each in partitions]
            )

        stages.append(Stage(code, find_cut(ask, number, *bounds) if number else None))
    more = {
        code: int(find_minimums(shares, _one_more(worth, code), must, min(left, int(free.sum()) + 1))[code])
        for code in shares
    }
    more[-1] = left
    taken = {**wanted, -1: sum(wanted.values())}
    assert listed <= budget
    return stages, [taken[stage.group] < more[stage.group] for stage in stages]


def _one_more(counts: Any, code: int) -> Any:
    more = counts.copy()
    more[code + 1] += 1
    return more


def merge_edges(edges: Sequence[Edge]) -> Edge:
    """Who is next to the last place in all partitions."""
    last = tuple(min(pairs) for pairs in zip(*(each.last for each in edges), strict=True))
    spares = sorted(spare for each in edges for spare in each.spares)[:RESERVE_SIZE]
    return Edge(last, min(each.chosen for each in edges), max(each.waiting for each in edges), tuple(spares))
