"""A program: its verbs, each one transaction over the log. What a verb says is recorded when it returns, or not at all.

    decide   states in, list out           learn    outcomes in, also late, partial or corrected ones
    leave    people who are gone           erase    names that must be forgotten

Rounds count from 1. Each of these verbs takes a context: who asks, and a key by which it
is known if it is asked a second time; then it raises `Repeated` with what was answered, and records nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from restive.desk import events
from restive.desk.audit import NO_CONTEXT, Repeated, RequestContext
from restive.desk.cache import ProgramCache
from restive.desk.config import Config
from restive.desk.corrections import find_corrected, mend_outcomes, mend_states
from restive.desk.decision import decide
from restive.desk.explanations import count_people
from restive.desk.ingest import (
    RoundInput,
    find_listed,
    name_few,
    name_people,
    read_given,
    read_list,
    read_outcome_table,
    read_round_input,
    sort_outcomes,
    split_rounds,
)
from restive.desk.names import Names
from restive.desk.opening import AlreadyDecided, open_round
from restive.desk.projection import Projection, RoundTotals
from restive.desk.recommendation import Recommendation
from restive.desk.rounds import Round, gather
from restive.desk.store import Event, ProgramRow, Store, StoreError, Writer
from restive.desk.table_files import ROW
from restive.desk.table_schema import Fault, TableError, read_states
from restive.errors import Conflict, Hint, InputError, NotFound, check_whole
from restive.types import Ints

LOOKED_BACK = 10  # rounds that a table without a round might be about


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


class _Heard(NamedTuple):
    counts: tuple[int, int, int, int, int]  # new, corrected, repeated, awaited, mistaken
    aside: list[str]


class Program:
    """One program of a store."""

    def __init__(self, store: Store, row: ProgramRow) -> None:
        self.store, self.name, self.created, self.id = store, row.name, row.created, row.id
        self.cache = ProgramCache(store, row.id, row.name)

    @property
    def config(self) -> Config:
        """By what it decides now."""
        return self.projection.config

    @property
    def projection(self) -> Projection:
        """What all its events add up to."""
        return self.cache.projection()

    @property
    def names(self) -> Names:
        """Who its agents are."""
        return self.cache.names(self.projection)

    @property
    def rounds(self) -> list[RoundTotals]:
        """The totals of each round, the first first."""
        return self.projection.rounds

    def log(self) -> Iterator[Event]:
        """Its events, in order."""
        return self.store.events(self.id)

    def decide(
        self, states: object = None, budget: int | None = None, must: object = None, never: object = None,
        round: int | None = None, again: bool = False, new: bool = False, dry_run: bool = False, context: RequestContext = NO_CONTEXT,
    ) -> Recommendation:  # fmt: skip
        """Decide a round: that of number `round` if it was opened before, else one opened now with these states.

        states   a file or table with agent, state and perhaps group; None: as last known
        budget   how many can be acted on; None: the config's
        must     agents on the list in any case; never: agents not on it in this round
        round    its number: a round decided before is refused, whoever did it
        again    open another round though nothing was recorded since the last one, which had the same states
        new      let people in whose ids differ from known ones only by zeros before them or by capitals
        dry_run  say what would be decided, and record nothing
        """
        brought = read_round_input(states, budget, must, never, self.cache.last_known().config, new, self.cache.knows)
        recommendation: list[Recommendation] = []
        with suppress(_Undo), self._writing(context, "decided") as (writer, projection):
            asked = _check_round(projection, round)
            so_far, notes = self._take_or_open(writer, projection, asked, brought, again)
            opened = so_far[0]
            made = decide(projection, opened)
            rest = {"columns": made.columns, "extra": {"list": made.list}, "round": opened.round}
            found = gather([*so_far, self.cache.append(writer, events.DECIDED, made.header, **rest)])
            self.cache.keep_round(found)
            recommendation.append(self._recommend(projection, found, notes))
            _tell(writer, projection, "decided", opened.round, notes, listed=int(made.columns["chosen"].sum()))
            if dry_run:
                raise _Undo
        return recommendation[0]

    def open(
        self, states: object = None, budget: int | None = None, must: object = None, never: object = None,
        again: bool = False, new: bool = False, context: RequestContext = NO_CONTEXT,
    ) -> int:  # fmt: skip
        """Open a round with states and a budget, to be decided later; returns its number."""
        brought = read_round_input(states, budget, must, never, self.cache.last_known().config, new, self.cache.knows)
        with self._writing(context, "opened") as (writer, projection):
            opened, notes = open_round(self.cache, writer, projection, brought, again)
            _tell(writer, projection, "opened", opened.round, notes)
            number = len(projection.rounds)
        return number

    def recommendation(self, round: int, notes: Sequence[str] = ()) -> Recommendation:
        """The list of a round, as it was decided."""
        found = self.get_round(round)
        if found.decided is None:
            raise NotFound(f"round {round} of {self.name} is open, but not decided yet.")
        return self._recommend(self.projection, found, notes)

    def recognise(self, agents: object) -> None:
        """Call people by these names from now on, where the store knows only their pseudonyms."""
        self.names.inward(read_list(agents, "names"))

    def get_round(self, round: int) -> Round:
        """A round as it stands now, outcomes and corrections included."""
        if not self.rounds:
            raise NotFound(f"{self.name} has no round yet.")
        try:
            check_whole("round", round, 1, len(self.rounds))
        except InputError as error:
            raise NotFound(str(error)) from None
        return self.cache.get_round(round)

    def learn(
        self, outcomes: object, round: int | None = None, correct: bool = False, dry_run: bool = False,
        context: RequestContext = NO_CONTEXT,
    ) -> Taken:  # fmt: skip
        """Take in what happened: who was acted on, the next state, the reward; for the last round if none is named.

        correct  let rows replace what is on record; the policies then know what they would know had it been right
        """
        known = self.cache.last_known()
        table, where, others = read_outcome_table(outcomes, known.config, self.cache.names(known))
        taken: list[Taken] = []
        with suppress(_Undo), self._writing(context, "learned") as (writer, projection):
            by_round = split_rounds(table, where, projection, round)
            if round is None and table["round"].null_count() == table.height:
                self._refuse_unclear(projection, table, where, *by_round)
            faults: list[Fault] = []
            reports, hint = [], None
            for number, part in by_round.items():
                try:
                    reports.append(self._learn(writer, projection, where, part, number, correct))
                except TableError as found:
                    faults, hint = faults + found.faults, found.hint
            if faults:
                raise TableError(where, faults, hint=hint)
            new, corrected, repeated, waiting, mistaken = (
                sum(column) for column in zip(*(part.counts for part in reports), strict=True)
            )
            aside = [name for part in reports for name in part.aside]
            notes = [f"ignored columns: {', '.join(others)}"] if others else []
            if mistaken:
                whom = count_people(mistaken, projection.config.words)
                notes.append(f"treated although in the control group: {whom}; this makes the lift less reliable")
            notes += name_people("ignored, not in the round", aside, projection.config.words)
            taken.append(Taken(list(by_round), new, corrected, repeated, waiting, notes))
            _tell(writer, projection, "learned", max(by_round), **taken[0]._asdict())
            if dry_run:
                raise _Undo
        return taken[0]

    def correct_states(
        self, states: object, round: int, dry_run: bool = False, context: RequestContext = NO_CONTEXT
    ) -> int:
        """Mend the states of a round that were recorded wrong; returns how many were."""
        frame, where = read_given(states, "states")
        table = read_states(frame, where, self.config.states).with_columns(frame[ROW].alias("row"))
        corrected = 0
        with suppress(_Undo), self._writing(context, "corrected") as (writer, projection):
            found = self.get_round(round)
            number, state = find_corrected(table, where, self.cache.names(projection), found)
            corrected = number.size
            mend_states(self.cache, writer, projection, found, number, state)
            _tell(writer, projection, "corrected", found.round, corrected=corrected)
            if dry_run:
                raise _Undo
        return corrected

    def leave(self, agents: object, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> int:
        """Agents who are gone; one who appears again in a table of states is back. Returns how many left."""
        return self._drop(agents, events.LEFT, dry_run, context)

    def erase(self, agents: object, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> int:
        """Forget names for good: what they taught stays, as a number without a name. Returns how many were erased.

        Without any names it takes out of the store's files what earlier erasures may have left there.
        """
        erased = self._drop(agents, events.ERASED, dry_run, context)
        self.cache.forget()
        if not erased and not dry_run:
            self.store.scrub()  # an erasure before this one may have left old copies in the files
        return erased

    def cancel(self, round: int, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> int:
        """Nobody acts by the list of this round, which was a mistake; returns how many were on it."""
        with suppress(_Undo), self._writing(context, "cancelled") as (writer, projection):
            self.get_round(round)
            line = projection.totals(round)
            if line.outcomes or line.done or line.cancelled:
                why = "was cancelled before" if line.cancelled else "has outcomes, so it was no mistake"
                raise Conflict(f"round {round} of {self.name} {why}; nothing was changed.")
            self.cache.append(writer, events.CANCELLED, {}, round=round)
            _tell(writer, projection, "cancelled", round, listed=line.advised)
            if dry_run:
                raise _Undo
        return line.advised

    def change(self, *, context: RequestContext = NO_CONTEXT, **settings: Any) -> Config:
        """Change budget, cool_down, keep or shares from now on."""
        with self._writing(context, "changed") as (writer, projection):
            config = projection.config.changed(settings).as_json()
            changed = {name: value for name, value in config.items() if name in settings}
            self.cache.append(writer, events.CHANGED, changed)
            _tell(writer, projection, "changed", config=config, changed=changed)
        return self.config

    @contextmanager
    def _writing(self, context: RequestContext, verb: str) -> Iterator[tuple[Writer, Projection]]:
        """A transaction, with the program as it stands under its lock; what fails is forgotten here too."""
        writer = None
        try:
            with self.store.writing(self.id, context, verb) as writer:
                yield writer, self.cache.projection(writer.length)
        except Repeated:
            raise
        except BaseException as error:
            # A table that is refused before anything was written need not cost the next one a look at the whole log.
            refused = isinstance(error, InputError) and not isinstance(error, StoreError)
            if not (refused and writer is not None and writer.length == writer.before):
                self.cache.forget()
            raise
        self.cache.save()

    def _recommend(self, projection: Projection, found: Round, notes: Sequence[str]) -> Recommendation:
        far_sighted = projection.policy_states["policy"].policy.far_sighted
        return Recommendation(
            self.name, projection.config, found, self.cache.names(projection), far_sighted, projection.groups, notes
        )

    def _take_or_open(
        self, writer: Writer, projection: Projection, asked: int | None, brought: RoundInput, again: bool
    ) -> tuple[list[Event], list[str]]:
        """The events of the round that was opened before, or of one opened now."""
        lines = projection.rounds
        waiting = [line.round for line in lines if line.decided < 0 and not line.cancelled]
        if asked is None and waiting and brought.table is None:
            asked = waiting[0]
        if asked is None or asked == projection.next_round:
            opened, notes = open_round(self.cache, writer, projection, brought, again)
            return [opened], notes
        if not brought.nothing():
            raise InputError(f"round {asked} was opened with states and a budget of its own; decide it without.")
        return list(self.store.events(self.id, round=asked)), []

    def _refuse_unclear(self, projection: Projection, table: pl.DataFrame, where: str, usual: int) -> None:
        """A table that names no round, about people of whom an earlier round still waits to hear."""
        earlier = [line for line in projection.rounds[: usual - 1] if line.decided >= 0 and line.waiting]
        if not earlier:
            return
        names = self.cache.names(projection)
        numbers = names.find(names.inward(table["agent"])).drop_nulls().to_numpy().astype(np.int64)
        for line in [line for line in earlier if line.waiting >= numbers.size > 0][-LOOKED_BACK:]:
            found = self.cache.get_round(line.round)
            places, there = found.find(numbers)
            if (there & (found.after[places] < 0)).all():
                raise InputError(
                    f"{where}: the table does not say which round it is about, and round {line.round} waits for the "
                    "outcomes of all these people.",
                    code="round_unclear",
                    hint=Hint.ROUND,
                )

    def _learn(
        self, writer: Writer, projection: Projection, where: str, table: pl.DataFrame, number: int, correct: bool
    ) -> "_Heard":
        """Record the outcomes of a round; what became of them."""
        found = self.cache.get_round(number)
        if found.cancelled:
            raise InputError(f"{where}: round {number} was cancelled, so nothing can have come of it.")
        if found.decided is None:
            raise InputError(f"{where}: round {number} is not decided yet, so nothing can have come of it.")
        sorted_ = sort_outcomes(table, where, self.cache.names(projection), found, projection, correct)
        came = int((sorted_.new.after >= 0).sum())
        waiting = found.missing - projection.totals(number).gone - came
        if sorted_.corrected.number.size:
            mend_outcomes(self.cache, writer, projection, found, sorted_.corrected)
        if sorted_.new.number.size:
            self.cache.append(writer, events.OUTCOMES, {}, columns=sorted_.new.columns(), round=number)
        mistaken = int((projection.agents.control[sorted_.new.number] & sorted_.new.done & ~sorted_.new.known).sum())
        new, corrected = sorted_.new.number.size, sorted_.corrected.number.size
        return _Heard((new, corrected, sorted_.repeated, waiting, mistaken), sorted_.not_in_round)

    def _drop(self, agents: object, kind: str, dry_run: bool, context: RequestContext) -> int:
        listed, dropped = read_list(agents, "agents"), 0
        with suppress(_Undo), self._writing(context, kind) as (writer, projection):
            number, unknown = find_listed(listed, self.cache.names(projection))
            if unknown:
                raise InputError(f"{name_few(unknown)}: not in the program {self.name}; nothing was changed.")
            if kind == events.LEFT:
                number = number[projection.agents.active[number]]
            dropped = number.size
            if dropped:
                gone = self._count_missing(projection, number) if kind == events.ERASED else {}
                self.cache.append(writer, kind, gone, columns={"number": number})
            if kind == events.ERASED:
                for agent in number.tolist():
                    writer.erase_name(agent)
            _tell(writer, projection, kind, count=dropped)
            if dry_run:
                raise _Undo
        return dropped

    def _count_missing(self, projection: Projection, number: Ints) -> dict[str, dict[str, int]]:
        """How many outcomes of each round will never come, because nobody can say any more whose they are."""
        missing = {}
        for line in projection.rounds:
            if line.waiting:
                found = self.cache.get_round(line.round)
                places, there = found.find(number)
                missing[str(line.round)] = int((there & (found.after[places] < 0)).sum())
        return {"missing": missing}


def _tell(
    writer: Writer,
    projection: Projection,
    verb: str,
    round_: int | None = None,
    notes: Sequence[str] = (),
    **answer: Any,
) -> None:
    """Write down who did what; remarks may name people, whom a store with pseudonyms does not know."""
    kept = [] if projection.config.pseudonyms else list(notes)
    writer.tell(verb, round_, ({} if round_ is None else {"round": round_}) | answer | {"notes": kept})


def _check_round(projection: Projection, round_: int | None) -> int | None:
    """The round that is asked for, if it can still be decided."""
    if round_ is None:
        return None
    check_whole("round", round_, 1, projection.next_round)
    if round_ == projection.next_round:
        return round_
    totals = projection.totals(round_)
    if totals.cancelled:
        raise Conflict(f"round {round_} was cancelled; decide another.")
    if totals.decided >= 0:
        raise AlreadyDecided(f"round {round_} was decided already, at {totals.at}; nothing was recorded now.")
    return round_
