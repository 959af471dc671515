"""A program whose people are divided into partitions, so that they need not fit on one machine; one process coordinates.

    read     every partition reads its states, and all faults are found before anything is computed
    learn    the policy learns what came of the round before, in passes: sums of a few numbers, up a fixed tree
    join     newcomers are added to the last partition, and to new ones
    rank     every partition ranks its people by what was learned
    select   the exact top B of all, a stage for each group with a minimum share and one for all others
    record   every partition writes its choices and its part of the list
    commit   one record in the log names these files and the shared numbers: from then on the round is decided

Decisions are those of one machine (`restive.desk.program`), bit for bit and for every partitioning: draws are functions
of the number of a person, sums do not depend on partitions, the top B is exact with the same ties, and rules need
counts only. What a phase computes is in files and in the arguments of tasks, so a worker that dies, and a coordinator
that dies before the commit, change nothing: the task or the round is done again. The coordinator sends and receives a
few kilobytes for each partition, whatever its size (`restive.desk.partitions.messages`).
"""

import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from restive.desk.config import Config, make_learner
from restive.desk.ingest import AlreadyDecided, check_similar_ids, name_few
from restive.desk.partitions.choices import Edge, Recorded, Stage, edge, record
from restive.desk.partitions.files import (
    ACTIVITY,
    BELIEF,
    CHOICES,
    GIVEN,
    KEPT,
    LIST,
    PEOPLE,
    RANKED,
    File,
    Folder,
    check_file,
    clean,
)
from restive.desk.partitions.people import (
    MAX_HASHES,
    SIZE,
    count_rows,
    cut_rows,
    find_repeated,
    find_tables,
    write_people,
)
from restive.desk.partitions.phases import Progress, Tasks, join_round, learn_round, merge_edges, no_progress, select
from restive.desk.partitions.tables import Given, Lists, Newcomers, find_known, read_newcomers, read_states
from restive.desk.partitions.tasks import (
    Partition,
    Ranked,
    Setting,
    load_policy,
    rank,
)
from restive.errors import Conflict, Hint, InputError, check_whole
from restive.policies.belief import agent_axes, flatten
from restive.policies.lagrange import Lagrange
from restive.version import __version__

LOG_START = 0
KNOWN = (PEOPLE, BELIEF, ACTIVITY, CHOICES)  # what is known of people after a round


class Decision(NamedTuple):
    """A decided round."""

    round: int
    people: int
    present: int
    carried_over: int
    outcomes: int  # of the round before, learned from
    joined: int  # newcomers
    listed: int
    price: float
    lists: list[str]  # a file for each partition
    reserve: list[dict[str, Any]]
    passes: int  # of the selection
    moved: dict[str, int]  # bytes sent and received by the coordinator, by phase
    seconds: dict[str, float]


def check_config(config: Config) -> None:
    """Refuse what a partitioned program cannot do."""
    if not isinstance(make_learner(config.policy), Lagrange):
        raise InputError(f"The policy is {config.policy}; a partitioned program needs lagrange.", location="policy")
    for name, missing in (
        ("rewards", config.rewards is None),
        ("states_are_outcomes", not config.states_are_outcomes),
    ):
        if missing:
            raise InputError(f"A partitioned program learns from states only, so it needs {name}.", location=name)
    for name in ("shadow", "cost_unit", "features", "display", "pseudonyms"):
        if getattr(config, name):
            raise InputError(f"A partitioned program has no {name}; use a program on one machine.", location=name)


def create(
    folder: str, people: str, config: Config, engine: Executor, size: int = SIZE, progress: Progress = no_progress
) -> "PartitionedProgram":
    """Number the people of a Parquet file, or of those in a folder, and write partitions of so many people."""
    check_config(config)
    within, tasks = Folder(folder), Tasks(engine, progress)
    if within.records():
        raise Conflict(f"{folder} is a partitioned program already.", location="folder")
    tables = find_tables(people)
    counts = tasks.run("count", count_rows, [(table,) for table in tables])
    parts = cut_rows(tables, counts, size)
    sizes = [sum(rows.size for rows in part) for part in parts]
    partitions = [Partition(index, index * size, count, {}) for index, count in enumerate(sizes)]
    settings = json.dumps(config.as_json())
    given = [(folder, settings, partition, part) for partition, part in zip(partitions, parts, strict=True)]
    written = tasks.run("people", write_people, given)
    paths, shares = [file.path for file, _ in written], -(-sum(sizes) // MAX_HASHES)
    repeated = tasks.run("ids", find_repeated, [(folder, paths, share, shares) for share in range(shares)])
    if names := [name for some in repeated for name in some]:
        raise InputError(f"{people}: {name_few(names)}: more than once; keep one row of each.", location="people")
    groups = dict.fromkeys(group for _, some in written for group in some)
    start = {
        "version": __version__,
        "at": _now(),
        "config": config.as_json(),
        "groups": list(groups),
        "size": size,
        "people": [[count, *file] for count, (file, _) in zip(sizes, written, strict=True)],
    }
    within.commit(LOG_START, start)
    return PartitionedProgram(folder)


def _digest_request(budget: int, digests: Mapping[int, str]) -> str:
    """The digest by which a repeated request is recognised, given those of all partitions."""
    return sha256("|".join([str(budget), *digests.values()]).encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class PartitionedProgram:
    """A partitioned program, as of the last record of its log."""

    def __init__(self, folder: str) -> None:
        self.folder = Folder(folder)
        start, digest = self.folder.record(LOG_START)
        self.config = Config.from_json(start["config"])
        self.size: int = start["size"]
        self.people = [File(*file) for _, *file in start["people"]]
        self._set_people([size for size, *_ in start["people"]], [{PEOPLE: file} for file in self.people])
        self.groups, self.rounds, self.digest = tuple(start["groups"]), 0, digest
        self.last: dict[str, Any] | None = None
        self._load_last()

    def _set_people(self, sizes: Sequence[int], files: Sequence[Mapping[str, Any]]) -> None:
        self.agents, self.partitions = sum(sizes), list[Partition]()
        for place, (size, known) in enumerate(zip(sizes, files, strict=True)):
            named = {kind: File(*file) for kind, file in known.items()}
            self.partitions.append(Partition(place, place * self.size, size, named))

    def _load_last(self) -> None:
        """Go on from the last record of the log."""
        self.rounds = self.folder.records() - 1
        if self.rounds:
            self.last, self.digest = self.folder.record(self.rounds)
            self.groups = tuple(self.last["groups"])
            self._set_people(self.last["sizes"], self.last["partitions"])

    def _setting(self) -> Setting:
        config = json.dumps(self.config.as_json())
        setting = Setting(self.folder.url, config, self.rounds + 1, self.agents, self.groups, {})
        return setting._replace(shared=self._shared(setting)).save()

    def _shared(self, setting: Setting) -> dict[str, Any]:
        """The arrays of the belief that all agents share."""
        policy = load_policy(setting.config)
        blank = policy.start(self.config.shape(1))
        shared = {name: array for name, array in flatten(blank).items() if agent_axes(policy, blank)[name] is None}
        if self.last is None:
            return shared
        known = self.last["shared"]
        return {name: np.array(known[name], array.dtype).reshape(array.shape) for name, array in shared.items()}

    def decide(
        self,
        states: str,
        engine: Executor,
        budget: int | None = None,
        must: Sequence[str] = (),
        never: Sequence[str] = (),
        round: int | None = None,
        again: bool = False,
        dry_run: bool = False,
        progress: Progress = no_progress,
        left: Sequence[str] = (),
        new: bool = False,
    ) -> Decision:
        """Decide the next round; its states are also what came of the round before.

        states  a Parquet file, or a folder with part-00000.parquet and so on, one for each partition, and newcomers.parquet;
                the columns are agent, state, if you like group and, where it was not as advised, done: whether the action of
                the round before was done
        left    people whose states are not carried over
        new     accept newcomers whose ids differ from known ones only by leading zeros or by case
        """
        budget = self.config.budget if budget is None else check_whole("budget", budget, 0)
        if round is not None and round != self.rounds + 1:
            raise Conflict(f"The next round of {self.folder.url} is {self.rounds + 1}, not {round}.", location="round")
        tasks, setting = Tasks(engine, progress), self._setting()
        given, newcomers, groups = self._read(tasks, setting, states, Lists(must, never, left), new)
        digests = dict(enumerate(each.digest for each in given))
        if not again and not newcomers and not any(PEOPLE in each.files for each in given):
            self._check_repeated(_digest_request(budget, digests))
        partitions = [part.having(**each.files) for part, each in zip(self.partitions, given, strict=True)]
        outcomes = sum(each.outcomes for each in given)
        if outcomes:
            partitions, setting = learn_round(tasks, setting, partitions)
        if groups != setting.groups:
            setting = setting._replace(groups=groups).save()
        if newcomers:
            partitions, setting, joined = join_round(tasks, setting, partitions, newcomers, self.size)
            digests |= joined
        ranked = tasks.run("rank", rank, [(setting, part.brief(GIVEN, *KNOWN)) for part in partitions])
        self._check_ranked(ranked, budget)
        partitions = [part.having(**{RANKED: each.file}) for part, each in zip(partitions, ranked, strict=True)]
        stages, still_open = select(tasks, setting, partitions, ranked, self._shares(groups), budget)
        edges = merge_edges(tasks.run("edge", edge, [(setting, part.brief(RANKED), stages) for part in partitions]))
        parts = [part.brief(PEOPLE, RANKED, GIVEN, ACTIVITY, CHOICES) for part in partitions]
        rest = stages, edges._replace(spares=()), still_open
        recorded = tasks.run("record", record, [(setting, part, *rest) for part in parts])
        totals: dict[str, Any] = {
            "budget": budget,
            "present": int(sum(each.states.sum() for each in ranked)) + sum(each.carried_over for each in ranked),
            "carried_over": sum(each.carried_over for each in ranked),
            "outcomes": outcomes,
            "joined": newcomers.people if newcomers else 0,
            "listed": sum(each.advised for each in recorded),
            "states": sum(each.states for each in ranked).tolist(),  # type: ignore[union-attr]
        }
        totals["input"] = _digest_request(budget, digests)
        totals["reserve"] = self._name_spares(edges, partitions)
        entry = self._describe(setting, partitions, recorded, stages, totals)
        if not dry_run:
            self.folder.commit(setting.round, entry)
        return self._finish(tasks, entry, dry_run)

    def _check_repeated(self, request: str) -> None:
        if self.last is not None and self.last["input"] == request:
            raise AlreadyDecided(
                f"Round {self.rounds} of {self.folder.url} was decided on {self.last['at']} from the same states.",
                hint=Hint.AGAIN,
            )

    def _shares(self, groups: Sequence[str]) -> dict[int, float]:
        known = {name: code for code, name in enumerate(groups)}
        return {known[name]: share for name, share in self.config.shares.items() if name in known and share > 0}

    def _read(
        self, tasks: Tasks, setting: Setting, states: str, lists: Lists, new: bool
    ) -> tuple[list[Given], Newcomers | None, tuple[str, ...]]:
        """What is given of each partition, the newcomers, and the groups with new ones."""
        source, within = Folder(states), states.rstrip("/")
        whole = source.files.isfile(source.root)
        names = [states if whole else f"{within}/part-{part.place:05d}.parquet" for part in self.partitions]
        parts = zip((part.brief(PEOPLE, CHOICES) for part in self.partitions), names, strict=True)
        given = tasks.run("read", read_states, [(setting, *each, whole, lists) for each in parts])
        newcomers = None
        if whole and given[0].rows > sum(each.found for each in given):
            people = [part.people for part in self.partitions]
            (newcomers,) = tasks.run("read", read_newcomers, [(setting, states, people, lists)])
        elif not whole and source.files.exists(source.path("newcomers.parquet")):
            (newcomers,) = tasks.run("read", read_newcomers, [(setting, f"{within}/newcomers.parquet", [], lists)])
        newcomers = newcomers if newcomers and newcomers.people else None
        if newcomers:
            self._check_newcomers(tasks, setting, newcomers, new)
        self._check_lists(lists, [*given, *([newcomers] if newcomers else [])])
        found = sorted((0 if whole else place, *pair) for place, each in enumerate(given) for pair in each.groups)
        if newcomers:
            found = sorted([*found, *((0 if whole else len(given), *pair) for pair in newcomers.groups)])
        return given, newcomers, tuple(dict.fromkeys([*self.groups, *(name for *_, name in found)]))

    def _check_newcomers(self, tasks: Tasks, setting: Setting, newcomers: Newcomers, new: bool) -> None:
        given = [(setting, part.brief(PEOPLE), newcomers.file.path) for part in self.partitions]
        found = tasks.run("read", find_known, given)
        if known := [name for some, _ in found for name in some]:
            raise InputError(
                f"newcomers.parquet: {name_few(known)}: in the program already; the states of known people are in the "
                "files of their partitions.",
                location="states",
            )
        if not new:
            check_similar_ids({name: other for _, alike in found for name, other in alike.items()})

    def _check_lists(self, lists: Lists, given: Sequence[Given | Newcomers]) -> None:
        if both := sorted(set(lists.must) & set(lists.never)):
            raise InputError(f"{name_few(both)}: on the must list and on the never list.", location="must")
        counts = dict(zip(lists._fields, zip(*(each.listed for each in given), strict=True), strict=True))
        for name, what in (("must", "on the must list"), ("left", "who left")):
            if missing := len(set(getattr(lists, name))) - sum(counts[name]):
                raise InputError(f"{missing} people {what} are not in the program.", location=name)

    def _check_ranked(self, ranked: Sequence[Ranked], budget: int) -> None:
        if wrong := [name for each in ranked for name in each.wrong_must]:
            raise InputError(
                f"{name_few(wrong)}: on the must list, but in the control group or without a state in this round.",
                location="must",
            )
        if (listed := int(sum(each.must.sum() for each in ranked))) > budget:
            raise InputError(f"{listed} people are on the must list, but the budget is {budget}.", location="budget")
        if not sum(int(each.states.sum()) + each.carried_over for each in ranked):
            raise InputError("Nobody has a state in this round.", location="states")
        if any(each.no_number for each in ranked):
            raise InputError(f"A priority is NaN in round {self.rounds + 1}; nothing was recorded.")

    def _name_spares(self, edges: Edge, partitions: Sequence[Partition]) -> list[dict[str, Any]]:
        """The reserve list."""
        reserve = []
        for negative, _, number in edges.spares:
            partition = partitions[number // self.size]
            agent = self.folder.read(partition.people, ["agent"])["agent"][number - partition.first]
            margin = -negative - edges.chosen if edges.chosen < math.inf else None
            reserve.append({"agent": agent, "number": number, "priority": -negative, "margin": margin})
        return reserve

    def _describe(
        self,
        setting: Setting,
        partitions: Sequence[Partition],
        recorded: Sequence[Recorded],
        stages: Sequence[Stage],
        totals: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The record of a round."""
        known = [{kind: part.files[kind] for kind in (PEOPLE, BELIEF) if kind in part.files} for part in partitions]
        return {
            "round": setting.round,
            "previous": self.digest,
            "version": __version__,
            "at": _now(),
            **totals,
            "cuts": [{"group": stage.group, **(stage.cut._asdict() if stage.cut else {})} for stage in stages],
            "shared": {name: np.asarray(array).tolist() for name, array in setting.shared.items()},
            "groups": setting.groups,
            "sizes": [part.size for part in partitions],
            "partitions": [{**before, **each.files} for before, each in zip(known, recorded, strict=True)],
        }

    def _finish(self, tasks: Tasks, entry: Mapping[str, Any], dry_run: bool) -> Decision:
        """Go on from a decided round, and remove files that are not needed any more."""
        decided = Decision(
            entry["round"], sum(entry["sizes"]), entry["present"], entry["carried_over"], entry["outcomes"],
            entry["joined"], entry["listed"],
            float(entry["shared"]["price"][0]), [files[LIST].path for files in entry["partitions"]], entry["reserve"],
            sum(cut.get("passes", 0) for cut in entry["cuts"]), tasks.moved, tasks.seconds,
        )  # fmt: skip
        if not dry_run:
            before = self.partitions
            self._load_last()
            known = [
                [file.path for part in (*before[place : place + 1], now) for file in part.files.values()]
                for place, now in enumerate(self.partitions)
            ]
            parts = [f"parts/{part.place:05d}" for part in self.partitions]
            url, number = self.folder.url, entry["round"]
            tasks.run("clean", clean, [(url, part, number, used) for part, used in zip(parts, known, strict=True)])
            for name in self.folder.list("settings"):
                if int(name[:5]) < number:
                    self.folder.remove(f"settings/{name}")
        return decided

    def entries(self) -> list[dict[str, Any]]:
        """The record of each round, the first first."""
        return [self.folder.record(number)[0] for number in range(1, self.rounds + 1)]

    def describe_rounds(self) -> list[dict[str, Any]]:
        """A row for each round: its list, and the mean reward of states in the control group and outside it."""
        rows, worth = list[dict[str, Any]](), np.array(self.config.rewards)
        for entry in self.entries():
            others, control = (
                None if not sum(counts) else round(float(np.dot(counts, worth)) / sum(counts), 4)
                for counts in entry["states"]
            )
            known = {name: entry[name] for name in ("round", "at", "budget", "present", "listed", "outcomes")}
            rows.append({**known, "control": control, "others": others, "price": round(entry["shared"]["price"][0], 6)})
        return rows

    def verify(self, engine: Executor, progress: Progress = no_progress) -> list[str]:
        """What is wrong with the log or with a file that it names; nothing if all is as it was recorded."""
        faults, files, previous = list[str](), list(self.people), self.folder.record(LOG_START)[1]
        for number in range(1, self.rounds + 1):
            entry, digest = self.folder.record(number)
            if entry["previous"] != previous:
                faults.append(f"the record of round {number} does not follow that of round {number - 1}")
            previous = digest
            kinds = KEPT if number < self.rounds else (PEOPLE, BELIEF, ACTIVITY, *KEPT)
            files += [File(*part[kind]) for part in entry["partitions"] for kind in kinds if kind in part]
        files = list(dict.fromkeys(files))
        found = Tasks(engine, progress).run("verify", check_file, [(self.folder.url, file) for file in files])
        return faults + [fault for fault in found if fault is not None]
