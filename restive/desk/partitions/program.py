"""A program whose people are divided into partitions, so that they need not fit on one machine; one process coordinates.

    read     every partition reads its states, and all faults are found before anything is computed
    learn    the policy learns what came of the round before, in passes: sums of a few numbers, up a fixed tree
    rank     every partition ranks its people by what was learned
    select   the exact top B of all, a stage for each group with a minimum share and one for all others
    record   every partition writes its choices and its part of the list
    commit   one record in the log names these files and the shared numbers: from then on the round is decided

Decisions are those of one machine (`restive.desk.program`), bit for bit and for every partitioning: draws are functions
of the number of a person, sums do not depend on partitions, the top B is exact with the same ties, and rules need
counts only. What a phase computes is in files and in the arguments of tasks, so a worker that dies, and a coordinator
that dies before the commit, change nothing: the task or the round is done again. The coordinator sends and receives a
few kilobytes for each partition, whatever its size.
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
from restive.desk.ingest import AlreadyDecided, name_few
from restive.desk.partitions.choices import Edge, Recorded, Stage, edge, record
from restive.desk.partitions.files import (
    ACTIVITY,
    BELIEF,
    CHOICES,
    GIVEN,
    KEPT,
    LIST,
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
from restive.desk.partitions.phases import Progress, Tasks, learn_round, merge_edges, no_progress, select
from restive.desk.partitions.tasks import (
    Given,
    Partition,
    Ranked,
    Setting,
    load_policy,
    rank,
    read_states,
)
from restive.errors import Conflict, Hint, InputError, check_whole
from restive.policies.belief import agent_axes, flatten
from restive.policies.lagrange import Lagrange
from restive.version import __version__

LOG_START = 0
KNOWN = (BELIEF, ACTIVITY, CHOICES)  # what is known of people after a round


class Decision(NamedTuple):
    """A decided round."""

    round: int
    people: int
    present: int
    carried_over: int
    outcomes: int  # of the round before, learned from
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
            raise InputError(f"A partitioned program has no {name}.", location=name)


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
    paths, shares = [partition.people for partition in partitions], -(-sum(sizes) // MAX_HASHES)
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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class PartitionedProgram:
    """A partitioned program, as of the last record of its log."""

    def __init__(self, folder: str) -> None:
        self.folder = Folder(folder)
        start, digest = self.folder.record(LOG_START)
        self.config = Config.from_json(start["config"])
        self.groups = tuple(start["groups"])
        self.people = [File(*file) for _, *file in start["people"]]
        first, self.partitions = 0, list[Partition]()
        for index, (size, *_) in enumerate(start["people"]):
            self.partitions.append(Partition(index, first, size, {}))
            first += size
        self.agents, self.rounds, self.digest = first, 0, digest
        self.last: dict[str, Any] | None = None
        self._load_last()

    def _load_last(self) -> None:
        """Go on from the last record of the log."""
        self.rounds = self.folder.records() - 1
        if self.rounds:
            self.last, self.digest = self.folder.record(self.rounds)
            self.partitions = [
                partition.having(**{kind: File(*file) for kind, file in files.items()})
                for partition, files in zip(self.partitions, self.last["partitions"], strict=True)
            ]

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
    ) -> Decision:
        """Decide the next round; its states are also what came of the round before.

        states  a Parquet file, or a folder with part-00000.parquet and so on, one for each partition; the columns are agent,
                state and, where it was not as advised, done: whether the action of the round before was done
        """
        budget = self.config.budget if budget is None else check_whole("budget", budget, 0)
        if round is not None and round != self.rounds + 1:
            raise Conflict(f"The next round of {self.folder.url} is {self.rounds + 1}, not {round}.", location="round")
        tasks, setting = Tasks(engine, progress), self._setting()
        given = self._read(tasks, setting, states, must, never)
        request = sha256("|".join([str(budget), *(each.digest for each in given)]).encode()).hexdigest()
        if self.last is not None and self.last["input"] == request and not again:
            raise AlreadyDecided(
                f"Round {self.rounds} of {self.folder.url} was decided on {self.last['at']} from the same states.",
                hint=Hint.AGAIN,
            )
        partitions = [part.having(**{GIVEN: each.file}) for part, each in zip(self.partitions, given, strict=True)]
        outcomes = sum(each.outcomes for each in given)
        if outcomes:
            partitions, setting = learn_round(tasks, setting, partitions)
        ranked = tasks.run("rank", rank, [(setting, part.brief(GIVEN, *KNOWN)) for part in partitions])
        self._check_ranked(ranked, budget)
        partitions = [part.having(**{RANKED: each.file}) for part, each in zip(partitions, ranked, strict=True)]
        stages, still_open = select(tasks, setting, partitions, ranked, self._shares(), budget)
        edges = merge_edges(tasks.run("edge", edge, [(setting, part.brief(RANKED), stages) for part in partitions]))
        recorded = tasks.run(
            "record",
            record,
            [(setting, part.brief(RANKED, GIVEN, ACTIVITY, CHOICES), stages, edges, still_open) for part in partitions],
        )
        totals = {
            "budget": budget,
            "present": int(sum(each.states.sum() for each in ranked)) + sum(each.carried_over for each in ranked),
            "carried_over": sum(each.carried_over for each in ranked),
            "outcomes": outcomes,
            "listed": sum(each.advised for each in recorded),
            "states": sum(each.states for each in ranked).tolist(),  # type: ignore[union-attr]
        }
        entry = self._describe(setting, partitions, recorded, stages, self._name_spares(edges), totals, request)
        if not dry_run:
            self.folder.commit(setting.round, entry)
        return self._finish(tasks, entry, dry_run)

    def _shares(self) -> dict[int, float]:
        known = {name: code for code, name in enumerate(self.groups)}
        return {known[name]: share for name, share in self.config.shares.items() if name in known and share > 0}

    def _read(
        self, tasks: Tasks, setting: Setting, states: str, must: Sequence[str], never: Sequence[str]
    ) -> list[Given]:
        source = Folder(states)
        whole = source.files.isfile(source.root)
        names = [states if whole else f"{states.rstrip('/')}/part-{part.place:05d}.parquet" for part in self.partitions]
        lists = whole, list(must), list(never)
        parts = zip((part.brief(CHOICES) for part in self.partitions), names, strict=True)
        given = tasks.run("read", read_states, [(setting, *each, *lists) for each in parts])
        if whole and (missing := given[0].rows - sum(each.found for each in given)):
            raise InputError(f"{states}: {missing} rows are about nobody in the program.", location="states")
        if len(set(must)) != (found := sum(each.must for each in given)):
            raise InputError(f"{len(set(must)) - found} on the must list are not in the program.", location="must")
        if both := sorted(set(must) & set(never)):
            raise InputError(f"{name_few(both)}: on the must list and on the never list.", location="must")
        return given

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

    def _name_spares(self, edges: Edge) -> list[dict[str, Any]]:
        """The reserve list."""
        reserve = []
        for negative, _, number in edges.spares:
            partition = next(part for part in self.partitions if part.first <= number < part.first + part.size)
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
        reserve: list[dict[str, Any]],
        totals: Mapping[str, Any],
        request: str,
    ) -> dict[str, Any]:
        """The record of a round."""
        belief = [{BELIEF: part.files[BELIEF]} if BELIEF in part.files else {} for part in partitions]
        return {
            "round": setting.round,
            "previous": self.digest,
            "version": __version__,
            "at": _now(),
            "input": request,
            **totals,
            "cuts": [{"group": stage.group, **(stage.cut._asdict() if stage.cut else {})} for stage in stages],
            "reserve": reserve,
            "shared": {name: np.asarray(array).tolist() for name, array in setting.shared.items()},
            "partitions": [{**known, **each.files} for known, each in zip(belief, recorded, strict=True)],
        }

    def _finish(self, tasks: Tasks, entry: Mapping[str, Any], dry_run: bool) -> Decision:
        """Go on from a decided round, and remove files that are not needed any more."""
        decided = Decision(
            entry["round"], self.agents, entry["present"], entry["carried_over"], entry["outcomes"], entry["listed"],
            float(entry["shared"]["price"][0]), [files[LIST].path for files in entry["partitions"]], entry["reserve"],
            sum(cut.get("passes", 0) for cut in entry["cuts"]), tasks.moved, tasks.seconds,
        )  # fmt: skip
        if not dry_run:
            before = self.partitions
            self._load_last()
            known = [
                [file.path for part in both for file in part.files.values()]
                for both in zip(before, self.partitions, strict=True)
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
            kinds = KEPT if number < self.rounds else (BELIEF, ACTIVITY, *KEPT)
            files += [File(*part[kind]) for part in entry["partitions"] for kind in kinds if kind in part]
        found = Tasks(engine, progress).run("verify", check_file, [(self.folder.url, file) for file in files])
        return faults + [fault for fault in found if fault is not None]
