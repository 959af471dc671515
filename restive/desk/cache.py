"""The state of a program in memory: the projection of its log, the names of its agents and the rounds last used.

Opening a program reads its newest snapshot and the events since. Snapshots are optional: without one, or with one that
this version cannot read, the whole log is applied.
"""

from contextlib import suppress

import polars as pl

from restive.desk.database import StoreError, StoreRestored
from restive.desk.events import REVISIONS, Change, Event, Head, standing
from restive.desk.projection import Projection
from restive.desk.roster import Names, find_key
from restive.desk.rounds import Round, gather
from restive.desk.store import Store, Writer
from restive.errors import InputError, NotFound

# A snapshot is made after so many rounds, or earlier when so many rows of agents would have to be applied again.
ROUNDS_APART, ROWS_APART = 50, 6_000_000
CACHED_ROUNDS = 2
SLOT = "projection"


class ProgramCache:
    """What a process knows of a program; everything in it can be read again from the store."""

    def __init__(self, store: Store, program: int, name: str) -> None:
        self.store, self.program, self.name = store, program, name
        self._projection: Projection | None = None
        self._names: Names | None = None
        self._given: dict[str, str] = {}  # names by pseudonym, as far as they were given to this process
        self._rounds: dict[int, Round] = {}
        self._outdated = False
        self._saved_round, self._rows = 0, 0  # at the last snapshot: the round; since then: rows applied

    def forget(self) -> None:
        """Drop everything; the next use looks the program up by its name."""
        self._projection, self._names, self._rounds, self._outdated = None, None, {}, False

    @property
    def agents(self) -> int:
        """The number of agents whose state is in memory."""
        return 0 if self._projection is None else self._projection.agents.count

    @property
    def knows_given_names(self) -> bool:
        """Whether names behind pseudonyms are in memory, which nobody can read again from the store."""
        return bool(self._given)

    def mark_outdated(self) -> None:
        """Rebuild the projection when it is next used, because a revision was recorded."""
        self._outdated = True

    def projection(self, head: Head | None = None) -> Projection:
        """The projection of all events up to `head`, by default to the end of the log.

        What is in memory is used only if the log still contains it: a restored store may have gone back.
        """
        wanted = self.store.head(self.name) if head is None else head
        if not self._is_beginning_of(wanted):
            self.forget()
        self.program = wanted.program
        with self.store.diagnosing(self.program):
            if self._projection is None or self._outdated:
                self._projection, self._outdated = self._load(wanted.length), False
            if self._projection.length < wanted.length:
                self._rounds, self._names = {}, None  # another process has written
                self._follow(self._projection, wanted.length)
        if (self._projection.length, self._projection.digest) != wanted[1:]:
            raise StoreRestored(self.name)
        return self._projection

    def projection_for(self, writer: Writer) -> Projection:
        """The projection under the lock of a writer; refuses to write after a log that is not the one in memory."""
        if not self._is_beginning_of(writer.head):
            raise StoreRestored(self.name)
        return self.projection(writer.head)

    def _is_beginning_of(self, head: Head) -> bool:
        """Whether the projection in memory, if there is one, is of the first events of that log."""
        if self._projection is None:
            return True
        known = Head(self.program, self._projection.length, self._projection.digest)
        if known.program != head.program or known.length > head.length:
            return False
        return known == head if known.length == head.length else self.store.contains(known)

    def last_known(self) -> Projection:
        """The projection without a look at the store; enough where only the config counts."""
        return self.projection() if self._projection is None or self._outdated else self._projection

    def _follow(self, projection: Projection, length: int) -> None:
        """Apply the events since; after a revision, start again."""
        for event in self.store.events(self.program, first=projection.length, end=length):
            if event.kind in REVISIONS:
                self._projection = self._load(length)
                return
            self._apply(projection, event)

    def _load(self, length: int) -> Projection:
        """The projection of so many events, from the newest snapshot."""
        self._rounds, self._names = {}, None
        projection = self.fresh_projection(length)
        snapshot = self.store.snapshot(self.program, SLOT, before=length)
        if snapshot is not None:
            try:
                projection.restore(snapshot[1])
                if not self.store.contains(Head(self.program, projection.length, projection.digest)):
                    raise InputError("The snapshot is of another log.")
            except InputError:
                projection = self.fresh_projection(length)
        self._saved_round, self._rows = len(projection.rounds), 0
        for event in self.store.events(self.program, first=projection.length, end=length):
            self._apply(projection, event)
        return projection

    def fresh_projection(self, length: int) -> Projection:
        """An empty projection, with the revisions among so many events."""
        known = self.store.events(self.program, end=length, kinds=REVISIONS)
        return Projection(lambda number: self.store.event(self.program, number), list(known))

    def _apply(self, projection: Projection, event: Event) -> None:
        projection.apply(event)
        self._rows += event.columns["number"].size if "number" in event.columns else 0

    def append(self, writer: Writer, change: Change, round_: int | None = None) -> Event:
        """Write an event and apply it."""
        assert self._projection is not None
        event = writer.append(change.kind, *change.record(), round=round_)
        if event.kind not in REVISIONS and not self._outdated:
            self._apply(self._projection, event)
        if event.round in self._rounds:
            self._rounds[event.round].apply(event)
        return event

    def names(self, projection: Projection) -> Names:
        """The names of the agents."""
        if self._names is None or len(self._names) != projection.agents.count:
            key = None if projection.config.pseudonyms is None else find_key(projection.config.pseudonyms)
            names = self.store.names(self.program)
            if len(names) < projection.agents.count:
                raise StoreError(
                    f"The roster has {len(names)} names for {projection.agents.count} agents: use a backup."
                )
            self._names = Names(names, key, self._given)
        return self._names

    def _loaded(self) -> Projection:
        """The projection in memory, even if a revision was just recorded; it is read if there is none."""
        return self.last_known() if self._projection is None else self._projection

    def knows(self, names: pl.Series) -> bool:
        """Whether these are names of agents that this process knows."""
        return self.names(self.last_known()).knows(names)

    def get_round(self, number: int) -> Round:
        """A round as it is known now."""
        if number not in self._rounds:
            with self.store.diagnosing(self.program):
                found = gather(standing(self.store.events(self.program, round=number), self._loaded().undone))
                if not found or not found[0].listed:
                    raise NotFound(f"There is no list of round {number}.")
            self.keep_round(found[0])
        return self._rounds[number]

    def keep_round(self, found: Round) -> None:
        """Cache a round; the oldest of too many is dropped."""
        self._rounds[found.round] = found
        while len(self._rounds) > CACHED_ROUNDS:
            del self._rounds[next(iter(self._rounds))]

    def save(self, now: bool = False) -> None:
        """Make a snapshot if one is due; a failure to write it is ignored, because it is optional."""
        projection = self._projection
        if projection is None or self._outdated or projection.agents.count == 0:
            return
        if not now and len(projection.rounds) - self._saved_round < ROUNDS_APART and self._rows < ROWS_APART:
            return
        with suppress(InputError), self.store.writing(self.program) as writer:
            if writer.head == Head(self.program, projection.length, projection.digest):
                writer.put_snapshot(SLOT, projection.dump())
        self._saved_round, self._rows = len(projection.rounds), 0
