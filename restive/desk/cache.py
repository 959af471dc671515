"""A program in memory: the projection of its log, the names of its agents and the rounds last used, kept up to date.

Opening a program reads its newest snapshot and the events since. A snapshot is never needed: without one, or with one
that this version cannot read, the whole log is folded.
"""

from contextlib import suppress
from typing import Any

import polars as pl

from restive.desk import events
from restive.desk.names import Names
from restive.desk.projection import Projection
from restive.desk.pseudonyms import find_key
from restive.desk.rounds import Round, gather, take_in
from restive.desk.store import Event, Store, Writer
from restive.errors import InputError

# A snapshot is made after so many rounds, or sooner when so many rows of agents would have to be folded again.
ROUNDS_APART, ROWS_APART = 50, 20_000_000
AT_HAND = 2
SLOT = "projection"


class ProgramCache:
    """What a process knows of a program; `forget` when in doubt, the store has it all."""

    def __init__(self, store: Store, program: int, name: str) -> None:
        self.store, self.program, self.name = store, program, name
        self._projection: Projection | None = None
        self._names: Names | None = None
        self._given: dict[str, str] = {}  # what people call those whom the store knows by a pseudonym
        self._rounds: dict[int, Round] = {}
        self._outdated = False
        self._saved_round, self._rows = 0, 0  # when the last snapshot was made, and the rows folded since

    def forget(self) -> None:
        """Know nothing."""
        self._projection, self._names, self._rounds, self._outdated = None, None, {}, False

    def outdate(self) -> None:
        """A correction was recorded: what the events add up to is found anew when it is next asked for."""
        self._outdated = True

    def projection(self, length: int | None = None) -> Projection:
        """What the first `length` events add up to, by default all of them."""
        wanted = self.store.length(self.program) if length is None else length
        if self._projection is None or self._outdated:
            self._projection, self._outdated = self._begin(wanted), False
        if self._projection.length < wanted:
            self._rounds, self._names = {}, None  # others were at work
            self._follow(self._projection, wanted)
        return self._projection

    def last_known(self) -> Projection:
        """The projection as this process knows it, which others may have left behind: enough where only the config counts."""
        return self.projection() if self._projection is None or self._outdated else self._projection

    def _follow(self, projection: Projection, length: int) -> None:
        """Take in what came since; a correction is a new beginning."""
        for event in self.store.events(self.program, first=projection.length):
            if event.number >= length:
                return
            if event.kind == events.CORRECTED:
                self._projection = self._begin(length)
                return
            self._take(projection, event)

    def _begin(self, length: int) -> Projection:
        """A projection of so many events, from the newest snapshot there is."""
        self._rounds, self._names = {}, None
        projection = self.fresh_projection(length)
        kept = self.store.snapshot(self.program, SLOT, before=length)
        if kept is not None:
            try:
                projection.restore(kept[1])
            except InputError:
                projection = self.fresh_projection(length)
        self._saved_round, self._rows = len(projection.rounds), 0
        for event in self.store.events(self.program, first=projection.length):
            if event.number >= length:
                break
            self._take(projection, event)
        return projection

    def fresh_projection(self, length: int) -> Projection:
        """A projection of nothing yet, with the corrections that so many events hold."""
        known = [event for event in self.store.events(self.program, kinds=[events.CORRECTED]) if event.number < length]
        return Projection(lambda number: self.store.event(self.program, number), known)

    def _take(self, projection: Projection, event: Event) -> None:
        projection.apply(event)
        self._rows += event.columns["number"].size if "number" in event.columns else 0

    def append(self, writer: Writer, kind: str, header: dict[str, Any], **rest: Any) -> Event:
        """Write an event, and know it."""
        assert self._projection is not None
        event = writer.append(kind, header, **rest)
        if kind != events.CORRECTED and not self._outdated:
            self._take(self._projection, event)
        if event.round in self._rounds:
            take_in(self._rounds[event.round], event)
        return event

    def names(self, projection: Projection) -> Names:
        """Who the agents are."""
        if self._names is None or len(self._names) != projection.agents.count:
            key = None if projection.config.pseudonyms is None else find_key(projection.config.pseudonyms)
            self._names = Names(self.store.names(self.program), key, self._given)
        return self._names

    def knows(self, names: pl.Series) -> bool:
        """Whether these are names of agents that this process knows."""
        return self.names(self.last_known()).knows(names)

    def get_round(self, number: int) -> Round:
        """A round as it stands."""
        if number not in self._rounds:
            self.keep_round(gather(self.store.events(self.program, round=number)))
        return self._rounds[number]

    def keep_round(self, found: Round) -> None:
        """Have a round at hand, and not too many others."""
        self._rounds[found.round] = found
        while len(self._rounds) > AT_HAND:
            del self._rounds[next(iter(self._rounds))]

    def save(self, now: bool = False) -> None:
        """Make a snapshot when one is due; whether that works changes nothing that was promised."""
        projection = self._projection
        if projection is None or self._outdated or projection.agents.count == 0:
            return
        if not now and len(projection.rounds) - self._saved_round < ROUNDS_APART and self._rows < ROWS_APART:
            return
        with suppress(InputError), self.store.writing(self.program) as writer:
            if writer.length == projection.length:
                writer.put_snapshot(SLOT, projection.dump())
        self._saved_round, self._rows = len(projection.rounds), 0
