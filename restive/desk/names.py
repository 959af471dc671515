"""The names of a program's agents and their numbers, both ways; the only place where a person is more than a number."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from restive.desk.pseudonyms import Pseudonyms
from restive.types import Ints

ERASED = "(erased)"
FEW = 2**14  # names that are looked up one by one, which is sooner done than a join of so few


class Names:
    """The roster in memory, place = number; with pseudonyms it knows those only, and what people say stays here."""

    def __init__(
        self, roster: pl.Series, pseudonyms: Pseudonyms | None = None, given: dict[str, str] | None = None
    ) -> None:
        self.roster = roster
        self.pseudonyms = pseudonyms
        self.given: dict[str, str] = {} if given is None else given
        self._table: pl.DataFrame | None = None
        self._numbers: dict[str, int] | None = None

    def __len__(self) -> int:
        return self.roster.len()

    def inward(self, names: pl.Series) -> pl.Series:
        """Names as the roster has them; a pseudonym of it, as a list may bring it back, stays what it is."""
        if self.pseudonyms is None:
            return names
        known = self.find(names).is_not_null()
        listed = names.to_list()
        hidden = self.pseudonyms.hide(listed)
        self.given |= {code: name for code, name, coded in zip(hidden, listed, known, strict=True) if not coded}
        return pl.Series(names.name, hidden, pl.String).zip_with(~known, names.cast(pl.String))

    def find(self, names: pl.Series) -> pl.Series:
        """The number of each name, null for one that is not known; often they are all there are, in their order."""
        if self._is_roster(names):
            return pl.Series("number", np.arange(self.roster.len()))
        if max(len(self), names.len()) <= FEW:
            if self._numbers is None:
                self._numbers = {name: number for number, name in enumerate(self.roster.to_list()) if name is not None}
            return pl.Series("number", [self._numbers.get(name) for name in names.cast(pl.String).to_list()], pl.Int64)
        if self._table is None:
            self._table = pl.DataFrame({"name": self.roster, "number": np.arange(self.roster.len())}).drop_nulls()
        wanted = pl.DataFrame({"name": names.cast(pl.String)})
        return wanted.join(self._table, on="name", how="left", maintain_order="left")["number"]

    def knows(self, names: pl.Series) -> bool:
        """Whether these are names of the roster, letter by letter, as far as that is quick to say."""
        if names.dtype != pl.String or names.null_count():
            return False
        return self._is_roster(names) or (max(len(self), names.len()) <= FEW and not self.find(names).null_count())

    def _is_roster(self, names: pl.Series) -> bool:
        same = len(self) == names.len() > 0 and self.roster[0] == names[0]  # most others differ there already
        return same and self.roster.equals(names)

    def find_alike(self, names: pl.Series) -> dict[str, str]:
        """Of names that are not known, those that differ from a known one only in zeros before it or in capitals.

        >>> Names(pl.Series(["007", "Ann"])).find_alike(pl.Series(["7", "ANN", "ben"]))
        {'7': '007', 'ANN': 'Ann'}
        """
        if self.pseudonyms is not None or not len(self) or not names.len():
            return {}
        plain = pl.col("name").str.normalize("NFKC").str.to_lowercase().str.strip_chars_start("0")
        known = pl.DataFrame({"name": self.roster}).drop_nulls().select(known="name", plain=plain)
        wanted = pl.DataFrame({"name": names}).select(name="name", plain=plain)
        found = wanted.join(known.unique("plain", maintain_order=True), on="plain", maintain_order="left")
        return dict(found.filter(pl.col("name") != pl.col("known")).select("name", "known").rows())

    def search(self, part: str) -> Ints:
        """The numbers of agents whose name has this in it, in the order of joining; those who were erased have none.

        >>> Names(pl.Series(["ann", None, "hannah"])).search("AN").tolist()
        [0, 2]
        """
        roster = pl.DataFrame({"name": self.roster, "number": np.arange(len(self))}).drop_nulls()
        if not part:
            return roster["number"].to_numpy()
        wanted, called = part.lower(), pl.col("name")
        if self.given:
            called = pl.lit(pl.Series(self.call(roster["number"].to_numpy()), dtype=pl.String))
        plain = called.str.to_lowercase()
        if self.pseudonyms is not None:  # a whole name, under the code that the store knows it by
            plain = pl.when(pl.col("name") == self.pseudonyms.hide([part])[0]).then(pl.lit(wanted)).otherwise(plain)
        return roster.filter(plain.str.contains(wanted, literal=True))["number"].to_numpy()

    def add(self, names: pl.Series) -> None:
        """New agents, numbered on from the last."""
        self.roster = pl.concat([self.roster, names.alias(self.roster.name)])
        self._table = self._numbers = None

    def call(self, numbers: Ints | Sequence[int]) -> list[str]:
        """What to call agents: as they were given if this process knows it, else as the roster has them."""
        if len(numbers) == 0:
            return []
        found = self.roster[np.asarray(numbers, np.int64)]
        called = (found.fill_null(ERASED) if found.null_count() else found).to_list()
        return [self.given.get(name, name) for name in called] if self.given else called
