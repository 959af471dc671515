"""Features of people: columns of the table of states that a program declares, fixed from the day a person joins.

    {"age": [], "region": ["north", "south"]}    a number, and one of some categories

A policy gets numbers, [N, F]: a number as it is, and for each category 1 or 0. An empty cell is NaN in all of its
columns: not known. Names are compared as headers are, categories without case.
"""

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from restive.desk.roster import MAX_ID, normalize_name
from restive.desk.table_mapping import normalize_header
from restive.desk.table_schema import COST, OUTCOMES, STATES, Features
from restive.errors import InputError
from restive.problem import MAX_FEATURES
from restive.types import Floats

RESERVED = {header for columns in (STATES, COST, OUTCOMES) for names in columns.values() for header in names}


def check_features(given: object) -> dict[str, tuple[str, ...]]:
    """Validate the features of a program.

    >>> check_features({"Home region": ["north", "south"], "age": []})
    {'home_region': ('north', 'south'), 'age': ()}
    """
    if not isinstance(given, Mapping):
        raise InputError(f"features is {reprlib.repr(given)}; it must give the categories of each, none for a number.")
    features = {}
    for name, categories in given.items():
        header, known = normalize_header(str(name)), _categories(str(name), categories)
        if not header or len(header) > MAX_ID or header in RESERVED or header in features:
            raise InputError(f"A feature is called {str(name)!r}; it needs a name of its own, other than a column's.")
        features[header] = known
    if count_columns(features) > MAX_FEATURES:
        raise InputError(
            f"The features have {count_columns(features)} numbers and categories; at most {MAX_FEATURES} are possible."
        )
    return features


def _categories(name: str, given: object) -> tuple[str, ...]:
    listed = [normalize_name(str(each)) for each in given] if isinstance(given, list | tuple) else None
    different = listed is not None and len({each.lower() for each in listed}) == len(listed) != 1
    if listed is None or not different or not all(0 < len(each) <= MAX_ID for each in listed):
        raise InputError(
            f"The categories of {name} are {reprlib.repr(given)}; give two or more different names, or none for a number."
        )
    return tuple(listed)


def parse_features(texts: Sequence[str]) -> dict[str, list[str]]:
    """Features from texts such as age and region=north,south.

    >>> parse_features(["age", "region=north,south"])
    {'age': [], 'region': ['north', 'south']}
    """
    features = {}
    for text in texts:
        name, equals, categories = text.partition("=")
        features[name.strip()] = [each.strip() for each in categories.split(",")] if equals else []
    return features


def count_columns(features: Features) -> int:
    """The number of columns F that a policy gets.

    >>> count_columns({"age": (), "region": ("north", "south", "east")})
    4
    """
    return sum(len(categories) or 1 for categories in features.values())


def encode(table: pl.DataFrame, features: Features) -> Floats:
    """The columns that `read_states` returned as a policy gets them, [M, F].

    >>> table = pl.DataFrame({"age": [40.0, None], "region": [1, 0]})
    >>> encode(table, {"age": (), "region": ("north", "south")})
    array([[40.,  0.,  1.],
           [nan,  1.,  0.]])
    """
    parts = [np.zeros((table.height, 0))]
    for name, categories in features.items():
        values = table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()[:, None]
        if categories:
            values = np.where(np.isnan(values), np.nan, values == np.arange(len(categories)))
        parts.append(values)
    return np.concatenate(parts, axis=1)


def encode_known(known: Mapping[str, Floats], features: Features, agents: int) -> Floats:
    """The features of agents of a history as a policy gets them, [N, F].

    `known` are numbers by header, and 1 or 0 by header and category. A category that the program does not have counts as
    not known.

    >>> known = {"Age": np.array([40.0]), "Region=South": np.array([1.0]), "Region=west": np.array([0.0])}
    >>> encode_known(known, {"region": ("north", "south"), "age": ()}, 1)
    array([[ 0.,  1., 40.]])
    """
    columns = {}
    for header, values in known.items():
        name, equals, category = header.partition("=")
        columns[normalize_header(name), normalize_name(category).lower() if equals else None] = values
    parts = [np.zeros((agents, 0))]
    for name, categories in features.items():
        there = [category for header, category in columns if header == name]
        if not there or (None in there) == bool(categories):
            kind = f"has the categories {', '.join(categories)}" if categories else "is a number"
            raise InputError(
                f"The feature {name} of the program {kind}; the history has no such column.", location="history"
            )
        codes: list[str | None] = [category.lower() for category in categories] or [None]
        values = np.stack([columns.get((name, code), np.zeros(agents)) for code in codes], axis=1)
        parts.append(np.where(values.sum(axis=1, keepdims=True) == 0, np.nan, values) if categories else values)
    return np.concatenate(parts, axis=1)


def find_declared(known: Iterable[str]) -> dict[str, list[str]]:
    """The features that a program would declare to use those of a history, by their headers and categories.

    >>> find_declared(["Age", "Region=north", "Region=south"])
    {'Age': [], 'Region': ['north', 'south']}
    """
    declared = dict[str, list[str]]()
    for header in known:
        name, equals, category = header.partition("=")
        declared.setdefault(name, []).extend([category] if equals else [])
    return declared


def decode(encoded: Floats, features: Features) -> dict[str, list[Any]]:
    """The value of each feature of agents, [M, F]: a number, a category, or None where unknown.

    >>> decode(np.array([[40.0, 0.0, 1.0], [np.nan] * 3]), {"age": (), "region": ("north", "south")})
    {'age': [40.0, None], 'region': ['south', None]}
    """
    values, first = {}, 0
    for name, categories in features.items():
        part = encoded[:, first : first + (len(categories) or 1)]
        first += part.shape[1]
        known = ~np.isnan(part[:, 0])
        codes = part.argmax(axis=1).tolist() if categories else part[:, 0].tolist()
        named = [categories[code] for code in codes] if categories else codes
        values[name] = [value if there else None for value, there in zip(named, known, strict=True)]
    return values
