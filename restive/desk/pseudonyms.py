"""Pseudonyms: names turned into codes on the way in, by a secret key that never enters the store.

    pseudonym = first 32 hex digits of HMAC-SHA256(key, name)

The same name always has the same pseudonym, so rounds fit together; without the key nobody can say whose it is. The key
is a file in a folder of its own, readable by its owner alone; the config keeps only the key's fingerprint. A program on
another machine needs a copy of that file. Deleting the key makes all names of the program unknown for good.
"""

import hashlib
import hmac
import os
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from restive.errors import InputError
from restive.files import write_atomic

FOLDER = "RESTIVE_KEYS"


class Pseudonyms:
    """A key, and what it turns names into."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @property
    def fingerprint(self) -> str:
        """What tells this key from others, without telling it."""
        return hashlib.sha256(b"restive key " + self._key).hexdigest()[:16]

    def hide(self, names: Sequence[str]) -> list[str]:
        """The pseudonym of each name.

        >>> Pseudonyms(b"not so secret").hide(["Ann", "Ben", "Ann"])[::2]
        ['cebb50a548a2903dbf2d89a173db3707', 'cebb50a548a2903dbf2d89a173db3707']
        """
        return [hmac.digest(self._key, name.encode(), "sha256").hex()[:32] for name in names]


def keys_folder() -> Path:
    """Where keys are kept: beside the user's other data, or where RESTIVE_KEYS says."""
    given = os.environ.get(FOLDER)
    return Path(given) if given else Path(platformdirs.user_data_dir("restive", appauthor=False)) / "keys"


def make_key() -> Pseudonyms:
    """A new key, on the disk when this returns."""
    made = Pseudonyms(os.urandom(32))
    folder = keys_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(folder / f"{made.fingerprint}.key", made._key, mode=0o600)
    return made


def find_key(fingerprint: str) -> Pseudonyms:
    """The key of that fingerprint."""
    place = keys_folder() / f"{fingerprint}.key"
    if not place.exists():
        message = (
            f"{place.name}: the key of this program's pseudonyms is not there; copy it from where the program was made, "
            f"or name its folder in {FOLDER}."
        )
        raise InputError(message, location=place)
    found = Pseudonyms(place.read_bytes())
    if found.fingerprint != fingerprint:
        raise InputError(f"{place.name}: not the key that this program was made with.", location=place)
    return found
