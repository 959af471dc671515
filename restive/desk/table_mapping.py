"""How a program reads the tables of its team: settings that are confirmed once and then remembered.

    columns        {"agent": "customer_id", "group": ""}    the header of a column; empty: it is not read
    values         {"1": "active", "unknown": ""}           the state that a text means; empty: none, as an empty cell
    cut_points     {"column": "days_since_order", "at": [30, 90], "more_is": "worse"}    states by classes of a number
    phone_country  91                                       ids are phone numbers of this country, if they look like it

A mapping applies before anything is recorded: events hold the numbers of agents and states.
"""

import itertools
import math
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from restive.desk.roster import MAX_ID, normalize_name
from restive.desk.table_files import MAX_HEADER
from restive.errors import InputError, check_whole, did_you_mean, parse_pairs

WORSE, BETTER = "worse", "better"
MAX_VALUES = 1000
MAX_COUNTRY = 999
CUT_POINTS = re.compile(rf"(.+?)\s*:\s*([^:]*?)\s*,?\s*more is ({WORSE}|{BETTER})", re.DOTALL)
CUT_POINTS_FORM = "write it like `days_since_order: 30, 90, more is worse`"
KEEP_ZERO = (39, 225, 242, 378, 379)  # calling codes of countries where the 0 is a part of the number, also from abroad
PHONE = r"^\+?[\d\s().\-/\u2010-\u2015]+$"
MIN_DIGITS, MAX_DIGITS = 7, 15  # of a phone number; E.164 allows 15
MIN_WITH_COUNTRY = 11  # digits of a number that begins with its country without + or 00
LIKE_PHONES = 0.9  # the share of ids that must look like phone numbers


@dataclass(frozen=True)
class CutPoints:
    """States by classes of a number: below the first cut point, from one to below the next, from the last on."""

    column: str
    at: tuple[float, ...]
    more_is: str

    def codes(self, numbers: pl.Series) -> pl.Series:
        """The state of each number; null stays null.

        >>> CutPoints("days", (30, 90), "worse").codes(pl.Series([0.0, 30.0, 200.0, None])).to_list()
        [2, 1, 0, None]
        """
        place = np.searchsorted(np.array(self.at), numbers.fill_null(0.0).to_numpy(), side="right")
        codes = len(self.at) - place if self.more_is == WORSE else place
        return pl.Series(codes, dtype=pl.Int16).set(numbers.is_null(), None)

    def describe(self, states: Sequence[str]) -> dict[str, str]:
        """The numbers that mean each state.

        >>> CutPoints("days", (30, 90), "worse").describe(["lost", "late", "active"])
        {'active': 'below 30', 'late': '30 to below 90', 'lost': '90 or more'}
        """
        cuts = [f"{cut:g}" for cut in self.at]
        inner = [f"{low} to below {high}" for low, high in itertools.pairwise(cuts)]
        named = reversed(states) if self.more_is == WORSE else states
        return dict(zip(named, [f"below {cuts[0]}", *inner, f"{cuts[-1]} or more"], strict=True))

    def __str__(self) -> str:
        """As people write it."""
        return f"{self.column}: {', '.join(f'{cut:g}' for cut in self.at)}, more is {self.more_is}"


class TableMapping(NamedTuple):
    """The settings of a program by which it reads tables."""

    columns: Mapping[str, str] = MappingProxyType({})
    values: Mapping[str, str] = MappingProxyType({})
    cut_points: CutPoints | None = None
    phone_country: int | None = None


NO_MAPPING = TableMapping()


def normalize_header(header: str) -> str:
    """A header as it is compared.

    >>> normalize_header(" Next State (2)")
    'next_state'
    """
    return re.sub(r"[\s\-_]+", "_", re.sub(r" \(\d+\)$", "", header.strip()).strip().lower())


def check_columns(given: object, known: Sequence[str]) -> dict[str, str]:
    """Validate the headers of columns.

    >>> check_columns({"agent": " Customer ID "}, ["agent", "state"])
    {'agent': 'Customer ID'}
    """
    if not isinstance(given, Mapping):
        raise InputError(f"columns is {reprlib.repr(given)}; it must give the header of each column.")
    for name in given:
        if name not in known:
            guess = did_you_mean(str(name), known)
            raise InputError(f"{name!r} is not a column; there are {', '.join(known)}{guess}", location="columns")
    columns = {name: str(header).strip() for name, header in given.items()}
    if long := next((header for header in columns.values() if len(header) > MAX_HEADER), None):
        raise InputError(f"The header {long[:40]!r}… is longer than {MAX_HEADER} characters.", location="columns")
    used = [header for name, header in columns.items() if header and name != "next_state"]
    if twice := next((header for header in used if used.count(header) > 1), None):
        raise InputError(f"{twice!r} is the header of two columns; each needs its own.", location="columns")
    return columns


def check_values(given: object, states: Sequence[str]) -> dict[str, str]:
    """Validate the texts that mean states.

    >>> check_values({" Aktiv": "Active", "unknown": ""}, ["lapsed", "active"])
    {'aktiv': 'active', 'unknown': ''}
    """
    if not isinstance(given, Mapping) or len(given) > MAX_VALUES:
        raise InputError(f"values is {reprlib.repr(given)}; it must give the state that each of some texts means.")
    names, values = {state.lower(): state for state in states}, dict[str, str]()
    for text, state in given.items():
        plain, spelt = normalize_name(str(state)).lower(), fold(str(text))
        found = names.get(plain) if plain else ""
        if found is None:
            raise InputError(f"{text!r} means {state!r}; the states are {', '.join(states)}.", location="values")
        if not 0 < len(spelt) <= MAX_ID or (spelt in names and names[spelt] != found):
            raise InputError(
                f"{text!r} cannot mean {found!r}; it is empty, too long or a state itself.", location="values"
            )
        values[spelt] = found
    return values


def fold(text: str) -> str:
    """A text as it is compared with values."""
    return normalize_name(text).lower()


def check_cut_points(given: object, states: Sequence[str]) -> CutPoints | None:
    """Validate cut points: one fewer than states, in ascending order.

    >>> check_cut_points({"column": "orders", "at": [1, 5], "more_is": "better"}, ["none", "some", "many"])
    CutPoints(column='orders', at=(1.0, 5.0), more_is='better')
    """
    if given is None or isinstance(given, CutPoints):
        return given
    if not isinstance(given, Mapping) or set(given) != {"column", "at", "more_is"}:
        raise InputError(
            f"cut_points is {reprlib.repr(given)}; it must have column, at and more_is.", location="cut_points"
        )
    column, at, more_is = str(given["column"]).strip(), given["at"], given["more_is"]
    cuts = tuple(float(cut) for cut in at if isinstance(cut, int | float)) if isinstance(at, list | tuple) else ()
    ascending = all(low < high for low, high in itertools.pairwise(cuts)) and all(map(math.isfinite, cuts))
    if not isinstance(at, list | tuple) or len(cuts) != len(at) or len(cuts) != len(states) - 1 or not ascending:
        raise InputError(
            f"The cut points are {reprlib.repr(at)}; {len(states)} states need {len(states) - 1} ascending numbers.",
            location="cut_points",
        )
    if not 0 < len(column) <= MAX_HEADER or more_is not in (WORSE, BETTER):
        raise InputError(
            f"The cut points are of {column!r}, more is {more_is!r}; they need the header of a column, and more must be "
            f"{WORSE} or {BETTER}.",
            location="cut_points",
        )
    return CutPoints(column, cuts, more_is)


def check_phone_country(given: object) -> int | None:
    """Validate the calling code of a country."""
    return None if given is None else check_whole("phone_country", given, 1, MAX_COUNTRY)


def parse_cut_points(text: str) -> dict[str, Any] | None:
    """Cut points as people write them; None from `none`.

    >>> parse_cut_points("days_since_order: 30, 90, more is worse")
    {'column': 'days_since_order', 'at': [30.0, 90.0], 'more_is': 'worse'}
    """
    if text.strip().lower() in ("", "none"):
        return None
    found = CUT_POINTS.fullmatch(text.strip())
    try:
        column, cuts, more_is = found.groups()  # type: ignore[union-attr]
        return {"column": column, "at": [float(cut) for cut in cuts.split(",")], "more_is": more_is}
    except (AttributeError, ValueError):
        raise InputError(f"cut points: {text!r} is not understood; {CUT_POINTS_FORM}.", location="cut_points") from None


def parse_mapping(
    columns: Sequence[str] | None = None,
    values: Sequence[str] | None = None,
    cut_points: str | None = None,
    phone_country: int | None = None,
) -> dict[str, Any]:
    """The settings of a mapping as people write them, in a command, a query or a form; those that are given.

    >>> parse_mapping(["agent=customer_id"], phone_country=0)
    {'columns': {'agent': 'customer_id'}, 'phone_country': None}
    """
    given: dict[str, Any] = {}
    if columns:
        given["columns"] = parse_pairs(columns, "columns", may_be_empty=True)
    if values:
        given["values"] = parse_pairs(values, "values", may_be_empty=True)
    if cut_points is not None:
        given["cut_points"] = parse_cut_points(cut_points)
    if phone_country is not None:
        given["phone_country"] = phone_country or None
    return given


def spell_phones(ids: pl.Series, country: int | None) -> pl.Series:
    """Ids that look like phone numbers as + and digits; others stay.

    A number begins with + or 00 and its country, with the 0 of a long-distance call, or with neither. In some countries,
    such as Italy, the 0 is a part of the number.

    >>> spell_phones(pl.Series(["06 698 1234", "+39 06 6981234"]), 39).to_list()
    ['+39066981234', '+39066981234']
    >>> spell_phones(pl.Series(["+91 98200-12345", "0091 9820012345", "098200 12345", "9820012345", "ann"]), 91).to_list()
    ['+919820012345', '+919820012345', '+919820012345', '+919820012345', 'ann']
    """
    if country is None:
        return ids
    digits = ids.str.replace_all(r"\D", "")
    length, code, trunk = digits.str.len_chars(), str(country), "" if country in KEEP_ZERO else "0"
    phone = ids.str.contains(PHONE) & length.is_between(MIN_DIGITS, MAX_DIGITS + 2)
    abroad = ids.str.starts_with("+") | (digits.str.starts_with(code) & (length >= MIN_WITH_COUNTRY))
    spelt = pl.DataFrame({"digits": digits, "abroad": abroad}).select(
        pl.when(pl.col("digits").str.starts_with("00"))
        .then(pl.concat_str(pl.lit("+"), pl.col("digits").str.slice(2)))
        .when("abroad")
        .then(pl.concat_str(pl.lit("+"), "digits"))
        .otherwise(pl.concat_str(pl.lit(f"+{code}"), pl.col("digits").str.strip_prefix(trunk)))
    )
    return spelt.to_series().zip_with(phone.fill_null(False), ids).alias(ids.name)


def days_before(cells: pl.Series, today: date) -> pl.Series | None:
    """The days from each date to today; None if the cells are not dates, or day and month could be confused.

    Texts are ISO dates, or day, month and year: with dots, or if a day above 12 shows the order.

    >>> days_before(pl.Series(["2026-11-01", None, "2026-10-19"]), date(2026, 11, 18)).to_list()
    [17.0, None, 30.0]
    >>> days_before(pl.Series(["1.11.2026"]), date(2026, 11, 18)).to_list()
    [17.0]
    """
    if cells.dtype in (pl.Date, pl.Datetime):
        dates = cells.cast(pl.Date)
    elif cells.dtype == pl.String and cells.null_count() < len(cells):
        dates = spell_dates(cells).str.replace(r"[ T]\d\d?:\d\d.*$", "").str.to_date("%Y-%m-%d", strict=False)
        if dates.null_count() > cells.null_count():
            return None
    else:
        return None
    return (pl.Series([today]) - dates).dt.total_days().cast(pl.Float64).alias(cells.name)


def spell_dates(texts: pl.Series) -> pl.Series:
    """Texts that begin with day, month and year, as in 18.11.2026 14:30, with an ISO date instead; others stay.

    With dots the day is first; with slashes or dashes a number above 12 in some text shows which one is the day, and
    without such a text they stay.

    >>> spell_dates(pl.Series(["1.11.2026", "18.11.2026 14:30", "2026-11-18"])).to_list()
    ['2026-11-1', '2026-11-18 14:30', '2026-11-18']
    >>> spell_dates(pl.Series(["11/30/2026", "11/1/2026"])).to_list(), spell_dates(pl.Series(["11/1/2026"])).to_list()
    (['2026-11-30', '2026-11-1'], ['11/1/2026'])
    """
    parts = texts.str.extract_groups(r"^(\d\d?)([./-])(\d\d?)[./-](\d{4})(\D.*)?$").struct.unnest()
    first, second = (parts[name].cast(pl.Int64) for name in ("1", "3"))
    if (first > 12).any() or (parts["2"] == ".").any():
        order = ("4", "3", "1")
    elif (second > 12).any():
        order = ("4", "1", "3")
    else:
        return texts
    dates = pl.concat_str(*order, separator="-") + pl.col("5").fill_null("")
    return parts.select(dates.alias("")).to_series().fill_null(texts).alias(texts.name)


def look_like_phones(ids: pl.Series) -> bool:
    """Whether most ids are phone numbers in a spelling that varies from table to table.

    >>> look_like_phones(pl.Series(["+91 98200-12345", "098200 12345"])), look_like_phones(pl.Series(["17", "18"]))
    (True, False)
    """
    texts = ids.cast(pl.String, strict=False).drop_nulls()
    digits = texts.str.replace_all(r"\D", "").str.len_chars()
    found = texts.str.contains(PHONE) & digits.is_between(9, MAX_DIGITS + 2)
    return len(texts) > 0 and int(found.sum()) >= LIKE_PHONES * len(texts)
