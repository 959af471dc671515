"""The roster of a program: the names of its agents, their numbers and their pseudonyms; the only personal data.

The store keeps names in chunks of ROSTER_CHUNK, in the order of joining, so that place = agent number. A chunk is its
names joined by line feeds as UTF-8 and compressed; a name has no control characters, and an erased name is an empty
line.

    pseudonym = first 32 hex digits of HMAC-SHA256(key, name)

A program with pseudonyms stores those instead of names. The same name always has the same pseudonym; without the key
nobody can say whose it is. The key is a file that only its owner can read, in a folder of its own; the config holds its
fingerprint. A program on another machine needs a copy of that file. Deleting the key makes all names unknown for good.
"""

import hashlib
import hmac
import os
import secrets
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import platformdirs
import polars as pl

from restive.desk.database import StoreError
from restive.errors import InputError
from restive.types import Ints

ROSTER_CHUNK = 65536
MAX_ID = 200  # characters of an id, a state or a group
# Zero-width joiners and non-joiners are part of the spelling between letters of these scripts, and nowhere else.
JOINING = (
    r"\p{M}\p{Arabic}\p{Syriac}\p{Nko}\p{Mongolian}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}\p{Tamil}"
    r"\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}\p{Khmer}\p{Myanmar}\p{Tibetan}"
)
JOINERS = "\u200c\u200d"
JOINER = f"[{JOINERS}]"
INVISIBLE: Sequence[tuple[str, str]] = (  # patterns and what replaces them
    (rf"[[\p{{Cf}}\p{{Default_Ignorable_Code_Point}}]--{JOINER}]", ""),
    (rf"({JOINER}){JOINER}+", "$1"),
    (rf"(^|[^{JOINING}]){JOINER}", "$1"),
    (rf"{JOINER}([^{JOINING}]|$)", "$1"),
)
ERASED = "(erased)"
MAX_DICT_LOOKUPS = 2**14  # up to so many names a dictionary is faster than a join
MAX_STRANGERS = 2**16  # names in memory of people who have no number: new ones, and those looked up in vain
KEYS_FOLDER = "RESTIVE_KEYS"


class Pseudonyms:
    """A key and the pseudonyms that it gives."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @property
    def fingerprint(self) -> str:
        """Identifies the key without revealing it."""
        return hashlib.sha256(b"restive key " + self._key).hexdigest()[:16]

    def hide(self, names: Sequence[str]) -> list[str]:
        """The pseudonym of each name.

        >>> Pseudonyms(b"not so secret").hide(["Ann", "Ben", "Ann"])[::2]
        ['cebb50a548a2903dbf2d89a173db3707', 'cebb50a548a2903dbf2d89a173db3707']
        """
        return [hmac.digest(self._key, name.encode(), "sha256").hex()[:32] for name in names]


def keys_folder() -> Path:
    """The folder of keys: in the user's data folder, or where RESTIVE_KEYS says."""
    given = os.environ.get(KEYS_FOLDER)
    return Path(given) if given else Path(platformdirs.user_data_dir("restive", appauthor=False)) / "keys"


def make_key() -> Pseudonyms:
    """A new key, on the disk when this returns."""
    made = Pseudonyms(secrets.token_bytes(32))
    folder = keys_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{made.fingerprint}.key"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(made._key)
        file.flush()
        os.fsync(file.fileno())
    listing = os.open(folder, os.O_RDONLY)
    os.fsync(listing)
    os.close(listing)
    return made


def find_key(fingerprint: str) -> Pseudonyms:
    """The key of that fingerprint."""
    path = keys_folder() / f"{fingerprint}.key"
    if not path.exists():
        raise InputError(
            f"{path}: the key of this program's pseudonyms is not there; copy it from where the program was made, "
            f"or set {KEYS_FOLDER} to its folder.",
            code="key_missing",
        )
    found = Pseudonyms(path.read_bytes())
    if found.fingerprint != fingerprint:
        raise InputError(f"{path}: not the key that this program was made with.", code="key_wrong")
    return found


def normalize_names(names: pl.Series) -> pl.Series:
    """Names in one spelling: composed Unicode (NFC), plain blanks, none around it, and no invisible characters.

    Soft hyphens, byte order marks, zero-width spaces and marks of direction come from copying; with them a name would
    be another person's. Zero-width joiners stay between letters of scripts that need them, such as Persian and Hindi.

    >>> normalize_names(pl.Series(["\\ufeffann ", "zoe\\u0308", "ben\\u00a0ali"])).to_list()
    ['ann', 'zoë', 'ben ali']
    """
    plain = names.str.strip_chars()
    if not plain.str.contains(r"[^ -~]").any():
        return plain
    text = plain.str.normalize("NFC").str.replace_all(r"\p{Zs}", " ")
    for pattern, replacement in INVISIBLE:
        text = text.str.replace_all(pattern, replacement)
    return text.str.strip_chars()


def normalize_name(name: str) -> str:
    """One name in the spelling of the roster.

    >>> normalize_name(" ann "), normalize_name("zoe\\u0308")
    ('ann', 'zoë')
    """
    if name.isascii() and name.isprintable():  # a series takes a hundred times as long
        return name.strip()
    return str(normalize_names(pl.Series([name], dtype=pl.String))[0])


def as_names(names: Sequence[str] | pl.Series) -> pl.Series:
    """The names as a series; names that a roster cannot hold are refused."""
    series = pl.Series("name", names, dtype=pl.String)
    wrong = series.is_null() | (series == "") | series.str.contains(r"[\x00-\x1f\x7f]")
    if wrong.any():
        raise InputError(f"Name {wrong.arg_max()} of those that join is empty or has a control character in it.")
    return series


def join_names(names: pl.Series) -> bytes:
    """One chunk as bytes; null is an erased name.

    >>> split_names([join_names(pl.Series(["ann", None, "bob"]))]).to_list()
    ['ann', None, 'bob']
    """
    return zlib.compress("\n".join(names.fill_null("").to_list()).encode(), 1)


def split_names(bodies: Iterable[bytes]) -> pl.Series:
    """The names of consecutive chunks."""
    try:
        texts = [zlib.decompress(body).decode() for body in bodies]
    except (TypeError, UnicodeDecodeError, zlib.error) as error:
        raise StoreError(f"The roster is damaged ({error}): use a backup.") from None
    chunks = [pl.Series("name", [text]).str.split("\n").explode() for text in texts]
    names = pl.concat(chunks, rechunk=True) if chunks else pl.Series("name", [], dtype=pl.String)
    return names.set(names == "", None)


class Names:
    """The roster in memory, place = number. With pseudonyms it holds those; names given by people stay in memory."""

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
        """Names as the roster holds them; pseudonyms of the roster are left unchanged."""
        if self.pseudonyms is None:
            return names
        known = self.find(names).is_not_null()
        listed = names.to_list()
        hidden = self.pseudonyms.hide(listed)
        fresh = {code: name for code, name, coded in zip(hidden, listed, known, strict=True) if not coded}
        if len(self.given) + len(fresh) > len(self) + MAX_STRANGERS:
            there = set(self.roster)
            for code in [code for code in self.given if code not in there]:
                del self.given[code]
        self.given |= fresh
        return pl.Series(names.name, hidden, pl.String).zip_with(~known, names.cast(pl.String))

    def forget(self, numbers: Ints) -> None:
        """Drop the names of erased agents that were given by people."""
        for code in self.roster[numbers]:
            self.given.pop(code, None)

    def find(self, names: pl.Series) -> pl.Series:
        """The number of each name, null for unknown ones; fast if they are the whole roster in order."""
        if self._is_roster(names):
            return pl.Series("number", np.arange(self.roster.len()))
        if max(len(self), names.len()) <= MAX_DICT_LOOKUPS:
            if self._numbers is None:
                self._numbers = {name: number for number, name in enumerate(self.roster.to_list()) if name is not None}
            return pl.Series("number", [self._numbers.get(name) for name in names.cast(pl.String).to_list()], pl.Int64)
        if self._table is None:
            self._table = pl.DataFrame({"name": self.roster, "number": np.arange(self.roster.len())}).drop_nulls()
        wanted = pl.DataFrame({"name": names.cast(pl.String)})
        return wanted.join(self._table, on="name", how="left", maintain_order="left")["number"]

    def find_one(self, name: str) -> int | None:
        """The number of the agent with this name, in any spelling; None if it is unknown."""
        number: int | None = self.find(self.inward(pl.Series("agent", [normalize_name(name)], pl.String)))[0]
        return number

    def knows(self, names: pl.Series) -> bool:
        """Whether all names are in the roster.

        Of more than MAX_DICT_LOOKUPS names only if they are the whole roster in order, each once: to look up so many
        takes long.
        """
        if names.dtype != pl.String or names.null_count():
            return False
        few = max(len(self), names.len()) <= MAX_DICT_LOOKUPS
        return self._is_roster(names) or (few and not self.find(names).null_count())

    def _is_roster(self, names: pl.Series) -> bool:
        same = len(self) == names.len() > 0 and self.roster[0] == names[0]  # most others differ there already
        return same and self.roster.equals(names)

    def find_alike(self, names: pl.Series) -> dict[str, str]:
        """Of unknown names, those that differ from a known one only by leading zeros or case.

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
        """The numbers of agents whose name contains `part`, in the order of joining; erased agents have no name.

        >>> Names(pl.Series(["ann", None, "hannah"])).search("AN").tolist()
        [0, 2]
        """
        roster = pl.DataFrame({"name": self.roster, "number": np.arange(len(self))}).drop_nulls()
        if not part:
            return roster["number"].to_numpy()
        part = normalize_name(part)
        wanted, shown = part.lower(), pl.col("name")
        if self.given:
            shown = pl.lit(pl.Series(self.call(roster["number"].to_numpy()), dtype=pl.String))
        plain = shown.str.to_lowercase()
        if self.pseudonyms is not None:  # a whole name is found by its pseudonym
            plain = pl.when(pl.col("name") == self.pseudonyms.hide([part])[0]).then(pl.lit(wanted)).otherwise(plain)
        return roster.filter(plain.str.contains(wanted, literal=True))["number"].to_numpy()

    def add(self, names: pl.Series) -> None:
        """Add new agents after the last."""
        self.roster = pl.concat([self.roster, names.alias(self.roster.name)])
        self._table = self._numbers = None

    def call(self, numbers: Ints | Sequence[int]) -> list[str]:
        """The names of agents: as given by people if this process knows them, otherwise as in the roster."""
        if len(numbers) == 0:
            return []
        found = self.roster[np.asarray(numbers, np.int64)]
        names = (found.fill_null(ERASED) if found.null_count() else found).to_list()
        return [self.given.get(name, name) for name in names] if self.given else names
