"""A program and its verbs, each of which is one transaction over the log: recorded when it returns, or not at all.

    decide   states in, list out           learn    outcomes in, also late, partial or corrected ones
    leave    agents who are gone           erase    names that must be deleted
    cancel   a list that nobody acts by     undo     the last of these, as if it had not happened

Rounds count from 1. Each verb takes a request context: the actor and an idempotency key. A verb with a key that was
used for the same request before raises `Repeated` with the recorded answer and records nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Unpack

import numpy as np
import polars as pl

from restive.api.settings import TableReading
from restive.api.types import HistoryEntry
from restive.desk.agents import RoundTotals
from restive.desk.audit import NO_CONTEXT, KeyTaken, Repeated, RequestContext
from restive.desk.cache import ProgramCache
from restive.desk.config import Config
from restive.desk.corrections import correct_states, find_wrong_states, withdraw_reports
from restive.desk.decision import decide
from restive.desk.display import decode_cells
from restive.desk.events import (
    Cancelled,
    Changed,
    Corrected,
    Decided,
    Erased,
    Event,
    Left,
    Reported,
    Undone,
    Withdrawn,
    standing,
)
from restive.desk.explanations import capitalize
from restive.desk.ingest import (
    AlreadyDecided,
    check_spelling,
    find_arrivals,
    find_listed,
    name_few,
    prepare_round,
    read_given,
    read_list,
    read_round_input,
)
from restive.desk.outbox import record_messages
from restive.desk.outcomes import (
    PreviousResults,
    describe_learned,
    learn_rounds,
    read_outcome_table,
    split_rounds,
    take_states_as_outcomes,
)
from restive.desk.projection import Projection
from restive.desk.recommendation import Recommendation
from restive.desk.roster import Names
from restive.desk.rounds import Round, describe_agent, gather
from restive.desk.store import ProgramRow, Store, StoreError, Writer
from restive.desk.table_schema import read_states
from restive.desk.tracing import span
from restive.desk.undo import Undoable, count_joined, describe_entry, find_entry, find_undoable
from restive.errors import Conflict, InputError, NotFound, check_whole
from restive.types import Ints


class LearnResult(NamedTuple):
    """What was recorded of a table of outcomes."""

    rounds: list[int]
    new: int
    corrected: int
    repeated: int
    waiting: int  # people of these rounds without an outcome so far
    notes: list[str]
    labels: list[str]  # the names of the rounds


class Program:
    """One program of a store."""

    def __init__(self, store: Store, row: ProgramRow) -> None:
        self.store, self.name, self.created = store, row.name, row.created
        self.cache = ProgramCache(store, row.id, row.name)

    @property
    def id(self) -> int:
        """The number of the program in the store."""
        return self.cache.program

    @property
    def archived(self) -> bool:
        """Whether the program is archived, and can only be read."""
        return self.store.find(self.name).archived is not None

    @property
    def config(self) -> Config:
        """The current config."""
        return self.projection.config

    @property
    def projection(self) -> Projection:
        """The state of the program after all its events."""
        return self.cache.projection()

    @property
    def names(self) -> Names:
        """The names of the agents."""
        return self.cache.names(self.projection)

    @property
    def rounds(self) -> list[RoundTotals]:
        """The totals of each round, the first first."""
        return self.projection.rounds

    def display(self, numbers: Ints | Sequence[int]) -> list[dict[str, str | None]]:
        """The display cells of some agents, in this order."""
        columns = self.config.display
        cells = self.store.display(self.id, numbers) if columns else {}
        return [decode_cells(cells.get(number), columns) for number in np.asarray(numbers).tolist()]

    def log(self) -> Iterator[Event]:
        """The events, in order."""
        return self.store.events(self.id)

    def decide(
        self,
        states: object = None,
        budget: int | None = None,
        must: object = None,
        never: object = None,
        round: int | None = None,
        again: bool = False,
        new: bool = False,
        states_are_outcomes: bool | None = None,
        dry_run: bool = False,
        context: RequestContext = NO_CONTEXT,
        display: Sequence[str] | None = None,
        **reading: Unpack[TableReading],
    ) -> Recommendation:
        """Decide the next round; its states are also recorded as outcomes of the round before.

        states   a file or table with agent, state and optionally group; None: the states last known
        budget   how many can be acted on; None: the config's
        must     agents on the list in any case; never: agents not on it in this round
        round    the number that the round must have; a round that is decided is refused
        again    decide another round although nothing was recorded since the last one, which had the same states
        new      accept new ids that differ from known ones only by leading zeros or by case
        states_are_outcomes  whether the states are also outcomes of the round before; None: as configured
        display  columns of the table that lists show from now on, beside those that they show already
        dry_run  return the decision without recording it
        reading  columns, values, cut_points, phone_country: how the table is read, from now on
        """
        known = self.cache.last_known().config
        asked: dict[str, Any] = {**reading} if display is None else {**reading, "display": [*known.display, *display]}
        config = known.read_as(asked)
        requested = read_round_input(states, budget, must, never, config, new, self.cache.knows)
        with self._writing(context, "decided", dry_run) as (writer, projection):
            self._remember(writer, projection, asked)
            number = projection.next_round
            _check_next(projection, round)
            arrivals = find_arrivals(self.cache, writer, projection, requested, again)
            results, remarks = None, list[str]()
            take = projection.config.states_are_outcomes if states_are_outcomes is None else states_are_outcomes
            if arrivals is not None and take:
                results, remarks = take_states_as_outcomes(self.cache, writer, projection, arrivals)
            given, notes = prepare_round(self.cache, writer, projection, requested, arrivals)
            notes += remarks
            decided = decide(projection, number, given)
            found = Round.start(self.cache.append(writer, decided, number))
            self.cache.keep_round(found)
            recommendation = self._recommend(projection, found, notes, results)
            if dry_run and projection.config.display:  # the cells of new people are in the store until the rollback
                cells = writer.display(found.listed["agent"])
                recommendation = replace(recommendation, find_cells=lambda _: cells)
            about = None if results is None else results._asdict()
            _audit(writer, projection, "decided", number, notes, listed=int(found.chosen.sum()), results=about)
        return recommendation

    def recommendation(
        self, round: int, notes: Sequence[str] = (), results: Mapping[str, Any] | None = None
    ) -> Recommendation:
        """The list of a round, as it was decided."""
        found = None if results is None else PreviousResults(**results)
        return self._recommend(self.projection, self.get_round(round), notes, found)

    def history(self, agent: str) -> list[HistoryEntry]:
        """An entry for each round in which the agent took part, read from the agent's own chunk of each event."""
        projection, names = self.projection, self.names
        number = names.find_one(str(read_list([agent], "agent", projection.config.mapping)[0]))
        if number is None:
            raise NotFound(f"{agent!r} is not in the program {self.name}.")
        kinds = (Decided.kind, Reported.kind, Corrected.kind, Withdrawn.kind)
        return [
            describe_agent(found, projection.config.states, projection.totals(found.round))
            for found in gather(standing(self.store.history(self.id, number, kinds=kinds), projection.undone))
        ]

    def recognise(self, agents: object) -> None:
        """Show these names from now on where the store knows only their pseudonyms."""
        self.names.inward(read_list(agents, "names", self.config.mapping))

    def get_round(self, round: int) -> Round:
        """A round as it is known now, with outcomes and corrections."""
        if not self.rounds:
            raise NotFound(f"{self.name} has no round yet.")
        try:
            check_whole("round", round, 1, len(self.rounds))
        except InputError as error:
            raise NotFound(error.message, location="round") from None
        return self.cache.get_round(round)

    def learn(
        self,
        outcomes: object,
        round: int | None = None,
        correct: bool = False,
        dry_run: bool = False,
        context: RequestContext = NO_CONTEXT,
        **reading: Unpack[TableReading],
    ) -> LearnResult:
        """Record what happened: who was acted on, the next state, the reward.

        round    the round of rows that name none; None: the oldest that waits for these people
        correct  let rows replace what is recorded; the policies then know what they would know had it been right
        """
        known = self.cache.last_known()
        table, where, remarks = read_outcome_table(outcomes, known.config.read_as(reading), self.cache.names(known))
        with self._writing(context, "learned", dry_run) as (writer, projection):
            self._remember(writer, projection, reading)
            by_round = split_rounds(table, where, self.cache, projection, round)
            learned = learn_rounds(self.cache, writer, projection, where, by_round, correct)
            notes = [*remarks, *describe_learned(learned, projection)]
            result = LearnResult(
                list(by_round),
                new=sum(each.rows.new.number.size + each.rows.replaced for each in learned),
                corrected=sum(each.rows.corrected.number.size - each.rows.replaced for each in learned),
                repeated=sum(each.rows.repeated for each in learned),
                waiting=sum(each.waiting for each in learned),
                notes=notes,
                labels=[projection.totals(number).label for number in by_round],
            )
            _audit(writer, projection, "learned", max(by_round), **result._asdict())
        return result

    def correct_states(
        self, states: object, round: int, dry_run: bool = False, context: RequestContext = NO_CONTEXT
    ) -> int:
        """Correct the states of a round that were recorded wrong; returns their number."""
        frame, where, _ = read_given(states, "states")
        config = self.cache.last_known().config
        table = read_states(frame, where, config.states, mapping=config.mapping)
        with self._writing(context, "corrected", dry_run) as (writer, projection):
            found = self.get_round(round)
            number, state = find_wrong_states(
                table, where, self.cache.names(projection), found, projection.totals(round)
            )
            correct_states(self.cache, writer, projection, found, number, state)
            _audit(writer, projection, "corrected", found.round, corrected=number.size)
        return number.size

    def withdraw(self, agents: object, round: int, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> int:
        """Withdraw what was reported of agents in a round, as if it had not been; returns of how many."""
        listed = read_list(agents, "agents")
        with self._writing(context, Withdrawn.kind, dry_run) as (writer, projection):
            found = self.get_round(round)
            number = withdraw_reports(self.cache, writer, projection, found, self._find_agents(projection, listed))
            _audit(writer, projection, Withdrawn.kind, found.round, count=number.size)
        return number.size

    def leave(self, agents: object, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> int:
        """Agents leave; one who appears again in a table of states is back. Returns how many left."""
        listed = read_list(agents, "agents", self.cache.last_known().config.mapping)
        with self._writing(context, Left.kind, dry_run) as (writer, projection):
            number = self._find_agents(projection, listed)
            number = number[projection.agents.active[number]]
            if number.size:
                self.cache.append(writer, Left(number))
            _audit(writer, projection, Left.kind, count=number.size)
        return number.size

    def erase(self, agents: object, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> int:
        """Delete names for good; what was learned stays, as a number without a name. Returns how many were erased.

        Without names it removes from the store's files what earlier erasures may have left there.
        """
        listed = read_list(agents, "agents", self.cache.last_known().config.mapping)
        try:
            with self._writing(context, Erased.kind, dry_run) as (writer, projection):
                number = self._find_agents(projection, listed)
                names = self.cache.names(projection)
                if number.size:
                    self.cache.append(writer, Erased(number, self._count_missing(projection, number)))
                for agent in number.tolist():
                    writer.erase_name(agent)
                _audit(writer, projection, Erased.kind, count=number.size)
        except (Repeated, KeyTaken):
            self.store.purge_pending()
            raise
        self.cache.forget()
        if not dry_run:
            names.forget(number)
        if not number.size and not dry_run:
            self.store.purge_deleted()
        return number.size

    def cancel(self, round: int, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> int:
        """Cancel a round that was decided by mistake: nobody acts by its list. Returns how many were on it."""
        with self._writing(context, "cancelled", dry_run) as (writer, projection):
            self.get_round(round)
            totals = projection.totals(round)
            if totals.cancelled:
                raise Conflict(f"{capitalize(totals.mention)} of {self.name} is cancelled already.")
            if totals.outcomes or totals.done:
                raise Conflict(f"{capitalize(totals.mention)} of {self.name} has outcomes and cannot be cancelled.")
            self.cache.append(writer, Cancelled(), round)
            _audit(writer, projection, "cancelled", round, listed=totals.advised)
        return totals.advised

    def undoable(self) -> Undoable | None:
        """What `undo` would take back, None if there is nothing."""
        return find_undoable(self.store, self.id, self.projection)

    def undo(self, event: int | None = None, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> Undoable:
        """Take back the last request: the program then knows what it would know without it; returns what it was.

        How tables are read stays as it was said with the request.

        event  the first event of the request, as `undoable` names it; if another request was the last, it is refused
        """
        with self._writing(context, "undone", dry_run) as (writer, projection):
            entry = find_entry(self.store, self.id, projection, event)
            joined = count_joined(self.store, self.id, entry)
            undone = describe_entry(entry, joined, projection)
            if joined:
                writer.drop_names(projection.agents.count - joined)
            self.cache.append(writer, Undone(entry.events.start, entry.events.stop))
            self.cache.mark_outdated()
            for said in self.store.events(self.id, entry.events.start, entry.events.stop, kinds=[Changed.kind]):
                self.cache.append(writer, Changed(said.header))
            writer.drop_snapshots(after=entry.events.start)
            writer.mark_undone(entry)
            _audit(writer, projection, "undone", entry.round, **undone._asdict())
        return undone

    def change(self, *, context: RequestContext = NO_CONTEXT, **settings: Any) -> Config:
        """Change budget, spend, cost_unit, cool_down, keep, shares, display, states_are_outcomes, title, timezone, rhythm,
        first_due, or how tables are read.

        The cells of display columns that are no longer declared are deleted from the store.
        """
        with self._writing(context, "changed") as (writer, projection):
            shown = set(projection.config.display)
            changed = self._change(writer, projection, projection.config.changed(settings), settings)
            if shown - set(projection.config.display):
                writer.keep_display(projection.config.display)
            _audit(writer, projection, "changed", config=projection.config.as_json(), changed=changed)
        return self.config

    def archive(self, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> None:
        """Make the program read-only, but for erasing names, until it is restored; a second time changes nothing."""
        self._set_archived(True, dry_run, context)

    def restore(self, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> None:
        """Undo `archive`; a second time changes nothing."""
        self._set_archived(False, dry_run, context)

    def _set_archived(self, archived: bool, dry_run: bool, context: RequestContext) -> None:
        verb = "archived" if archived else "restored"
        with self.store.writing(self.id, context, verb) as writer:
            if writer.set_archived(archived):
                writer.record_audit_entry(verb, None, {"archived": archived})
            if dry_run:
                writer.rollback()

    def _change(
        self, writer: Writer, projection: Projection, config: Config, settings: Iterable[str]
    ) -> dict[str, Any]:
        """Record some settings of a config."""
        if config.phone_country != projection.config.phone_country:
            check_spelling(self.cache.names(projection), projection, config.phone_country)
        changed = {name: value for name, value in config.as_json().items() if name in settings}
        self.cache.append(writer, Changed(changed))
        return changed

    def _remember(self, writer: Writer, projection: Projection, reading: Mapping[str, Any]) -> None:
        """Record how tables are read, if that is new."""
        config = projection.config.read_as(reading)
        if config != projection.config:
            self._change(writer, projection, config, reading)

    @contextmanager
    def _writing(
        self, context: RequestContext, verb: str, dry_run: bool = False
    ) -> Iterator[tuple[Writer, Projection]]:
        """A transaction with the program as it is under its lock; a dry run is rolled back, here and in the store."""
        writer = None
        self.cache.last_known()
        try:
            with span(f"desk {verb}", program=self.name), self.store.writing(self.id, context, verb) as writer:
                projection = self.cache.projection_for(writer)
                yield writer, projection
                if dry_run:
                    writer.rollback()
                else:
                    record_messages(writer, projection, self.store, self.name)
        except Repeated:
            raise
        except BaseException as error:
            # A table that is refused before anything was written must not cost the next one a read of the whole log.
            refused = isinstance(error, InputError) and not isinstance(error, StoreError)
            if not (refused and writer is not None and writer.length == writer.before):
                self.cache.forget()
            raise
        if dry_run:
            self.cache.forget()
        else:
            self.cache.save()

    def _recommend(
        self, projection: Projection, found: Round, notes: Sequence[str], results: PreviousResults | None = None
    ) -> Recommendation:
        names = self.cache.names(projection)
        find_cells = partial(self.store.display, self.id)
        totals = projection.totals(found.round)
        known = projection.config, found, totals, names, projection.groups
        return Recommendation(self.name, *known, notes, results, find_cells)

    def _find_agents(self, projection: Projection, listed: pl.Series) -> Ints:
        """The numbers of agents by their names."""
        number, unknown = find_listed(listed, self.cache.names(projection))
        if unknown:
            raise InputError(f"{name_few(unknown)}: not in the program {self.name}.", location="agents")
        return number

    def _count_missing(self, projection: Projection, number: Ints) -> dict[int, int]:
        """The outcomes of each round that can no longer be reported, because their agents have no names."""
        missing = {}
        for totals in projection.rounds:
            if totals.waiting:
                found = self.cache.get_round(totals.round)
                places, there = found.find(number)
                missing[totals.round] = int((there & (found.after[places] < 0)).sum())
        return missing


def _audit(
    writer: Writer,
    projection: Projection,
    verb: str,
    round_: int | None = None,
    notes: Sequence[str] = (),
    **answer: Any,
) -> None:
    """Record who did what; notes may name people, so a store with pseudonyms gets none."""
    recorded = [] if projection.config.pseudonyms else list(notes)
    about = {} if round_ is None else {"round": round_}
    writer.record_audit_entry(verb, round_, about | answer | {"notes": recorded})


def _check_next(projection: Projection, round_: int | None) -> None:
    """Refuse a number that is not that of the next round."""
    if round_ is None or check_whole("round", round_, 1, projection.next_round) == projection.next_round:
        return
    totals = projection.totals(round_)
    if totals.cancelled:
        raise Conflict(f"{capitalize(totals.mention)} was cancelled.", location="round")
    decided = f"{capitalize(totals.mention)} was decided on {projection.show_time(totals.at)}."
    raise AlreadyDecided(decided, location="round")
