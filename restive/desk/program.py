"""A program: its verbs, each one transaction over the log. What a verb says is recorded when it returns, or not at all.

    decide   states in, list out           learn    outcomes in, also late, partial or corrected ones
    leave    people who are gone           erase    names that must be forgotten

Rounds are numbered from 1 here, as people count them.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from restive.desk import events
from restive.desk.advice import Advice
from restive.desk.corrections import find_mended, mend_outcomes, mend_states
from restive.desk.decision import decide
from restive.desk.fold import Fold, Present
from restive.desk.intake import (
    Arrivals,
    Brought,
    check_lists,
    find_listed,
    find_present,
    name_few,
    place_states,
    read_brought,
    read_given,
    read_list,
    read_reports,
    sort_outcomes,
    split_rounds,
)
from restive.desk.ledger import Line
from restive.desk.memory import Memory
from restive.desk.names import Names
from restive.desk.plan import Plan, Words
from restive.desk.rounds import Round, gather
from restive.desk.sheets import ROW
from restive.desk.store import Event, ProgramRow, Store, Writer
from restive.desk.tables import Faults, read_states
from restive.errors import InputError, check_whole
from restive.types import Ints


class AlreadyDecided(InputError):  # noqa: N818 - said to people, not only to programmers
    """The round has its list; a second decision would act on twice as many people."""


class _Undo(Exception):  # noqa: N818 - no error, but what a dry run ends with
    pass


class Taken(NamedTuple):
    """What became of a table of outcomes."""

    rounds: list[int]
    new: int
    corrected: int
    repeated: int
    waiting: int  # people of these rounds of whom no outcome is known yet
    notes: list[str]


class Program:
    """One program of a store."""

    def __init__(self, store: Store, row: ProgramRow) -> None:
        self.store, self.name, self.created, self.id = store, row.name, row.created, row.id
        self.memory = Memory(store, row.id)

    @property
    def plan(self) -> Plan:
        """By what it decides now."""
        return self.fold.plan

    @property
    def fold(self) -> Fold:
        """What all its events add up to."""
        return self.memory.fold()

    @property
    def names(self) -> Names:
        """Who its agents are."""
        return self.memory.names(self.fold)

    @property
    def lines(self) -> list[Line]:
        """Its rounds in short."""
        return self.fold.ledger.lines

    def log(self) -> Iterator[Event]:
        """Its events, in order."""
        return self.store.events(self.id)

    def decide(
        self, states: object = None, budget: int | None = None, must: object = None, never: object = None,
        round: int | None = None, again: bool = False, dry_run: bool = False,
    ) -> Advice:  # fmt: skip
        """Decide a round: that of number `round` if it was opened before, else one opened now with these states.

        states   a file or table with agent, state and perhaps group; None: as last known
        budget   how many can be acted on; None: the plan's
        must     agents on the list in any case; never: agents not on it in this round
        round    its number: a round decided before is refused, whoever did it
        again    open another round though nothing was recorded since the last one, which had the same states
        dry_run  say what would be decided, and record nothing
        """
        brought = read_brought(states, budget, must, never, self.plan)
        advice: list[Advice] = []
        with suppress(_Undo), self._writing() as (writer, fold):
            asked = _check_round(fold, round)
            so_far, notes = self._take_or_open(writer, fold, asked, brought, again)
            opened = so_far[0]
            made = decide(fold, opened)
            rest = {"columns": made.columns, "extra": {"list": made.list}, "round": opened.round}
            found = gather([*so_far, self.memory.append(writer, events.DECIDED, made.header, **rest)])
            self.memory.keep_round(found)
            advice.append(self._advise(fold, found, notes))
            if dry_run:
                raise _Undo
        return advice[0]

    def open(
        self, states: object = None, budget: int | None = None, must: object = None, never: object = None,
        again: bool = False,
    ) -> int:  # fmt: skip
        """Open a round with states and a budget, to be decided later; returns its number."""
        brought = read_brought(states, budget, must, never, self.plan)
        with self._writing() as (writer, fold):
            self._open_new(writer, fold, brought, again)
            number = len(fold.ledger.lines)
        return number

    def advice(self, round: int) -> Advice:
        """The list of a round, as it was decided."""
        found = self.round(round)
        if found.decided is None:
            raise InputError(f"round {round} of {self.name} is open, but not decided yet.")
        return self._advise(self.fold, found, [])

    def recognise(self, agents: object) -> None:
        """Call people by these names from now on, where the store knows only their pseudonyms."""
        self.names.inward(read_list(agents, "names"))

    def round(self, round: int) -> Round:
        """A round as it stands now, outcomes and corrections included."""
        lines = self.lines
        if not lines:
            raise InputError(f"{self.name} has no round yet.")
        check_whole("round", round, 1, len(lines))
        return self.memory.round(round - 1)

    def learn(self, outcomes: object, round: int | None = None, correct: bool = False, dry_run: bool = False) -> Taken:
        """Take in what happened: who was acted on, the next state, the reward; for the last round if none is named.

        correct  let rows replace what is on record; the policies then know what they would know had it been right
        """
        table, where, others = read_reports(outcomes, self.plan, self.names)
        taken: list[Taken] = []
        with suppress(_Undo), self._writing() as (writer, fold):
            by_round = split_rounds(table, where, fold, round)
            reports, faults = [], []
            for number, part in by_round.items():
                try:
                    reports.append(self._learn(writer, fold, where, part, number, correct))
                except Faults as found:
                    faults += found.faults
            if faults:
                raise Faults(where, faults)
            new, corrected, repeated, waiting, mistaken = (sum(column) for column in zip(*reports, strict=True))
            notes = [f"columns not read: {', '.join(others)}"] if others else []
            if mistaken:
                whom = _count(mistaken, fold.plan.words)
                notes.append(f"acted on, though in the control group: {whom}; this blurs what the program adds")
            taken.append(Taken([number + 1 for number in by_round], new, corrected, repeated, waiting, notes))
            if dry_run:
                raise _Undo
        return taken[0]

    def correct_states(self, states: object, round: int, dry_run: bool = False) -> int:
        """Mend the states of a round that were recorded wrong; returns how many were."""
        frame, where = read_given(states, "states")
        table = read_states(frame, where, self.plan.states).with_columns(frame[ROW].alias("row"))
        mended = 0
        with suppress(_Undo), self._writing() as (writer, fold):
            found = self.round(round)
            number, state = find_mended(table, where, self.memory.names(fold), found)
            mended = number.size
            mend_states(self.memory, writer, fold, found, number, state)
            if dry_run:
                raise _Undo
        return mended

    def leave(self, agents: object, dry_run: bool = False) -> int:
        """Agents who are gone; one who appears again in a table of states is back. Returns how many left."""
        return self._drop(agents, events.LEFT, dry_run)

    def erase(self, agents: object, dry_run: bool = False) -> int:
        """Forget names for good: what they taught stays, as a number without a name. Returns how many were erased.

        Without any names it takes out of the store's files what earlier erasures may have left there.
        """
        erased = self._drop(agents, events.ERASED, dry_run)
        self.memory.forget()
        if not erased and not dry_run:
            self.store.scrub()  # an erasure before this one may have left old copies in the files
        return erased

    def change(self, **settings: Any) -> Plan:
        """Change budget, cool_down, keep or shares from now on."""
        with self._writing() as (writer, fold):
            plan = fold.plan.changed(settings).as_json()
            self.memory.append(writer, events.CHANGED, {name: plan[name] for name in settings})
        return self.plan

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, Fold]]:
        """A transaction, with the program as it stands under its lock; what fails is forgotten here too."""
        try:
            with self.store.writing(self.id) as writer:
                yield writer, self.memory.fold(writer.length)
        except BaseException:
            self.memory.forget()
            raise
        self.memory.save()

    def _advise(self, fold: Fold, found: Round, notes: list[str]) -> Advice:
        ahead = fold.minds["policy"].policy.far_sighted
        return Advice(self.name, fold.plan, found, self.memory.names(fold), ahead, notes)

    def _take_or_open(
        self, writer: Writer, fold: Fold, asked: int | None, brought: Brought, again: bool
    ) -> tuple[list[Event], list[str]]:
        """The events of the round that was opened before, or of one opened now."""
        lines = fold.ledger.lines
        waiting = [line.round for line in lines if line.decided < 0]
        if asked is None and waiting and brought.table is None:
            asked = waiting[0]
        if asked is None or asked == len(lines):
            opened, notes = self._open_new(writer, fold, brought, again)
            return [opened], notes
        if not brought.nothing():
            raise InputError(f"round {asked + 1} was opened with states and a budget of its own; decide it without.")
        return list(self.store.events(self.id, round=asked)), []

    def _open_new(self, writer: Writer, fold: Fold, brought: Brought, again: bool) -> tuple[Event, list[str]]:
        """Open a round, unless it is the last one asked for twice: the same table, and nothing came in since."""
        before, lines = writer.length, fold.ledger.lines
        last = lines[-1] if lines and max(lines[-1].opened, lines[-1].decided) == before - 1 else None
        opened, notes = self._open(writer, fold, brought)
        if last is None or again or opened.number != before:
            return opened, notes
        if self.store.event(self.id, last.opened).header["input"] == opened.header["input"]:
            done, number = "decided" if last.decided >= 0 else "opened", last.round + 1
            raise AlreadyDecided(
                f"round {number} of {self.name} was {done} at {last.at} from these very states, and nothing came in "
                f"since; nothing was recorded now. Its list: restive desk round {self.name} {number}. If another "
                "round is meant although nobody moved, say so (--again)."
            )
        return opened, notes

    def _open(self, writer: Writer, fold: Fold, brought: Brought) -> tuple[Event, list[str]]:
        notes = [f"columns not read: {', '.join(brought.unread)}"] if brought.unread else []
        budget = fold.plan.budget if brought.budget is None else brought.budget
        arrivals = None
        if brought.table is not None:
            arrivals = place_states(brought.table, self.memory.names(fold), fold)
            notes += self._join(writer, fold, arrivals)
        names, round_ = self.memory.names(fold), len(fold.ledger.lines)
        present = find_present(fold, arrivals, round_)
        if present.number.size == 0:
            raise InputError("nobody has a state in this round; give a table of states.")
        must, strangers = find_listed(brought.must, names)
        never, unknown = find_listed(brought.never, names)
        if strangers:
            raise InputError(f"{name_few(strangers)}: on the must list, but not in the program.")
        if unknown:
            notes.append(f"{len(unknown)} on the never list are not in the program")
        notes += [f"nobody is in the group {group}, which has a share" for group in _empty_groups(fold)]
        notes += _say_missing(fold, present) + _say_over(fold, round_)
        check_lists(must, never, fold, present, budget, names)
        columns = present._asdict() | {"state": present.state.astype(np.int16)}
        extra = {what: {"number": listed} for what, listed in (("must", must), ("never", never)) if listed.size}
        header = {"budget": budget, "input": _digest(*_brought(present, arrivals), budget, must, never)}
        return self.memory.append(writer, events.OPENED, header, columns=columns, round=round_, extra=extra), notes

    def _join(self, writer: Writer, fold: Fold, arrivals: Arrivals) -> list[str]:
        """Let in those who are new, and move those who changed their group."""
        notes, new, first = [], arrivals.new, fold.ledger.agents
        groups: dict[str, Any] = {"groups": new.groups}
        if new.names.len():
            columns = {"number": np.arange(first, first + new.names.len()), "group": new.group.astype(np.int16)}
            names = self.memory.names(fold)
            writer.add_names(new.names)
            names.add(new.names)
            self.memory.append(writer, events.JOINED, groups | {"first": first}, columns=columns)
            notes.append(f"{_count(new.names.len(), fold.plan.words, 'new ')} joined")
        if arrivals.moved.size:
            columns = {"number": arrivals.moved, "group": arrivals.moved_to.astype(np.int16)}
            self.memory.append(writer, events.GROUPED, groups, columns=columns)
            notes.append(f"in another group from now on: {_count(arrivals.moved.size, fold.plan.words)}")
        return notes

    def _learn(
        self, writer: Writer, fold: Fold, where: str, table: pl.DataFrame, number: int, correct: bool
    ) -> tuple[int, int, int, int, int]:
        """Record the outcomes of one round; returns how many are new, corrected, repeated, awaited, and mistaken."""
        found = self.memory.round(number)
        if found.decided is None:
            raise InputError(f"{where}: round {number + 1} is not decided yet, so nothing can have come of it.")
        sorted_ = sort_outcomes(table, where, self.memory.names(fold), found, fold, correct)
        came = int((sorted_.new.after >= 0).sum())
        waiting = found.missing - fold.ledger.lines[number].gone - came
        if sorted_.corrected.number.size:
            mend_outcomes(self.memory, writer, fold, found, sorted_.corrected)
        if sorted_.new.number.size:
            self.memory.append(writer, events.OUTCOMES, {}, columns=sorted_.new.columns(), round=number)
        mistaken = int((fold.ledger.control[sorted_.new.number] & sorted_.new.done & ~sorted_.new.known).sum())
        return sorted_.new.number.size, sorted_.corrected.number.size, sorted_.repeated, waiting, mistaken

    def _drop(self, agents: object, kind: str, dry_run: bool) -> int:
        listed, dropped = read_list(agents, "agents"), 0
        with suppress(_Undo), self._writing() as (writer, fold):
            number, unknown = find_listed(listed, self.memory.names(fold))
            if unknown:
                raise InputError(f"{name_few(unknown)}: not in the program {self.name}; nothing was changed.")
            dropped = number.size
            if dropped:
                gone = self._count_missing(fold, number) if kind == events.ERASED else {}
                self.memory.append(writer, kind, gone, columns={"number": number})
            if kind == events.ERASED:
                for agent in number.tolist():
                    writer.erase_name(agent)
            if dry_run:
                raise _Undo
        return dropped

    def _count_missing(self, fold: Fold, number: Ints) -> dict[str, dict[str, int]]:
        """How many outcomes of each round will never come, because nobody can say any more whose they are."""
        missing = {}
        for line in fold.ledger.lines:
            if line.waiting:
                found = self.memory.round(line.round)
                places, there = found.find(number)
                missing[str(line.round)] = int((there & (found.after[places] < 0)).sum())
        return {"missing": missing}


def _check_round(fold: Fold, round_: int | None) -> int | None:
    """The round that is asked for, from 0, if it can still be decided."""
    if round_ is None:
        return None
    lines = fold.ledger.lines
    number = check_whole("round", round_, 1, len(lines) + 1) - 1
    if number < len(lines) and lines[number].decided >= 0:
        at = lines[number].at
        raise AlreadyDecided(f"round {round_} was decided already, at {at}; nothing was recorded now.")
    return number


def _empty_groups(fold: Fold) -> list[str]:
    """Groups that the plan gives a share and that nobody is in: most likely a slip of the pen."""
    used = {fold.ledger.groups[code] for code in np.unique(fold.ledger.group[fold.ledger.active]) if code >= 0}
    return [group for group in fold.plan.shares if group not in used]


def _count(number: int, words: Words, what: str = "") -> str:
    return f"{number:,} {what}{words.person if number == 1 else words.people}"


def _say_missing(fold: Fold, present: Present) -> list[str]:
    """Of how many people an older state is taken, and how many have none that is recent enough."""
    kept, out = int(present.kept.sum()), int(fold.ledger.active.sum()) - present.number.size
    told = ((kept, "with a state kept from an earlier round"), (out, "left out, without a recent state"))
    return [f"{why}: {_count(number, fold.plan.words)}" for number, why in told if number > 0]


def _say_over(fold: Fold, round_: int) -> list[str]:
    horizon = fold.plan.horizon
    over = horizon is not None and round_ >= horizon
    return [f"round {round_ + 1} is beyond the {horizon} rounds that were planned"] if over else []


def _brought(present: Present, arrivals: Arrivals | None) -> tuple[Ints, Ints]:
    """What a round was asked for with: the table that was given, or all that was known."""
    return (present.number, present.state) if arrivals is None else (arrivals.number, arrivals.state)


def _digest(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
        digest.update(b"|")
    return digest.hexdigest()
