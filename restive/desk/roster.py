"""The names of the agents, the only personal data: chunks of ROSTER_CHUNK names in the order of joining, compressed.

Place = agent number. A chunk is its names joined by line feeds as UTF-8, so a name has no control characters; an erased
name is an empty line, read as null.
"""

import zlib
from collections.abc import Iterable, Sequence

import polars as pl

from restive.errors import InputError

ROSTER_CHUNK = 65536


def as_names(names: Sequence[str] | pl.Series) -> pl.Series:
    """The names as a series; refuse what a roster cannot hold."""
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
    """The names of chunks that follow each other."""
    chunks = [pl.Series("name", [zlib.decompress(body).decode()]).str.split("\n").explode() for body in bodies]
    names = pl.concat(chunks, rechunk=True) if chunks else pl.Series("name", [], dtype=pl.String)
    return names.set(names == "", None)
