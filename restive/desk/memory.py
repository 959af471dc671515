"""A program in memory: the fold of its log, the names of its agents and the rounds last used, kept up to date.

Opening a program reads its newest snapshot and the events since. A snapshot is never needed: without one, or with one
that this version cannot read, the whole log is folded.
"""

from contextlib import suppress
from typing import Any

import polars as pl

from restive.desk import events
from restive.desk.fold import Fold
from restive.desk.names import Names
from restive.desk.pseudonyms import find_key
from restive.desk.rounds import Round, gather, take_in
from restive.desk.store import Event, Store, Writer
from restive.errors import InputError

# A snapshot is made after so many rounds, or sooner when so many rows of agents would have to be folded again.
ROUNDS_APART, ROWS_APART = 50, 20_000_000
AT_HAND = 2
SLOT = "fold"


class Memory:
    """What a process knows of a program; `forget` when in doubt, the store has it all."""

    def __init__(self, store: Store, program: int, name: str) -> None:
        self.store, self.program, self.name = store, program, name
        self._fold: Fold | None = None
        self._names: Names | None = None
        self._given: dict[str, str] = {}  # what people call those whom the store knows by a pseudonym
        self._rounds: dict[int, Round] = {}
        self._outdated = False
        self._saved_round, self._rows = 0, 0  # when the last snapshot was made, and the rows folded since

    def forget(self) -> None:
        """Know nothing."""
        self._fold, self._names, self._rounds, self._outdated = None, None, {}, False

    def outdate(self) -> None:
        """A correction was recorded: what the events add up to is found anew when it is next asked for."""
        self._outdated = True

    def fold(self, length: int | None = None) -> Fold:
        """What the first `length` events add up to, by default all of them."""
        wanted = self.store.length(self.program) if length is None else length
        if self._fold is None or self._outdated:
            self._fold, self._outdated = self._begin(wanted), False
        if self._fold.length < wanted:
            self._rounds, self._names = {}, None  # others were at work
            self._follow(self._fold, wanted)
        return self._fold

    def last_known(self) -> Fold:
        """The fold as this process knows it, which others may have left behind: enough where only the plan counts."""
        return self.fold() if self._fold is None or self._outdated else self._fold

    def _follow(self, fold: Fold, length: int) -> None:
        """Take in what came since; a correction is a new beginning."""
        for event in self.store.events(self.program, first=fold.length):
            if event.number >= length:
                return
            if event.kind == events.CORRECTED:
                self._fold = self._begin(length)
                return
            self._take(fold, event)

    def _begin(self, length: int) -> Fold:
        """A fold of so many events, from the newest snapshot there is."""
        self._rounds, self._names = {}, None
        fold = self.fresh_fold(length)
        kept = self.store.snapshot(self.program, SLOT, before=length)
        if kept is not None:
            try:
                fold.restore(kept[1])
            except InputError:
                fold = self.fresh_fold(length)
        self._saved_round, self._rows = len(fold.ledger.lines), 0
        for event in self.store.events(self.program, first=fold.length):
            if event.number >= length:
                break
            self._take(fold, event)
        return fold

    def fresh_fold(self, length: int) -> Fold:
        """A fold of nothing yet, with the corrections that so many events hold."""
        known = [event for event in self.store.events(self.program, kinds=[events.CORRECTED]) if event.number < length]
        return Fold(lambda number: self.store.event(self.program, number), known)

    def _take(self, fold: Fold, event: Event) -> None:
        fold.apply(event)
        self._rows += event.columns["number"].size if "number" in event.columns else 0

    def append(self, writer: Writer, kind: str, header: dict[str, Any], **rest: Any) -> Event:
        """Write an event, and know it."""
        assert self._fold is not None
        event = writer.append(kind, header, **rest)
        if kind != events.CORRECTED and not self._outdated:
            self._take(self._fold, event)
        if event.round in self._rounds:
            take_in(self._rounds[event.round], event)
        return event

    def names(self, fold: Fold) -> Names:
        """Who the agents are."""
        if self._names is None or len(self._names) != fold.ledger.agents:
            key = None if fold.plan.pseudonyms is None else find_key(fold.plan.pseudonyms)
            self._names = Names(self.store.names(self.program), key, self._given)
        return self._names

    def knows(self, names: pl.Series) -> bool:
        """Whether these are names of agents that this process knows."""
        return self.names(self.last_known()).knows(names)

    def round(self, number: int) -> Round:
        """A round as it stands, from 0."""
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
        fold = self._fold
        if fold is None or self._outdated or fold.ledger.agents == 0:
            return
        if not now and len(fold.ledger.lines) - self._saved_round < ROUNDS_APART and self._rows < ROWS_APART:
            return
        with suppress(InputError), self.store.writing(self.program) as writer:
            if writer.length == fold.length:
                writer.put_snapshot(SLOT, fold.dump())
        self._saved_round, self._rows = len(fold.ledger.lines), 0
