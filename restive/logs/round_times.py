"""Rounds of a history: the distinct times of its rows, or periods of a stated length."""

import re
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from restive.desk.table_files import quote
from restive.desk.table_mapping import spell_dates
from restive.logs.columns import HistoryTable
from restive.logs.options import PERIOD
from restive.types import Ints

MONTHS = {"mo": 1, "y": 12}
HOURS = {"h": 1, "d": 24, "w": 168}
UNCLEAR_DATE = r"^\d\d?[/-]\d\d?[/-]\d{4}"


def read_rounds(table: HistoryTable, every: str | None) -> tuple[pl.Series, Ints]:
    """What rounds are called, and the round of each row, from 1; 0 where there is a fault."""
    times = _read_times(table)
    if times.null_count() == len(times):
        return times.unique(), np.zeros(len(times), np.int64)
    if every is None:
        names = times.drop_nulls().unique().sort()
        return names, np.where(times.is_null(), 0, names.search_sorted(times.fill_null(names[0])) + 1)
    number, unit = PERIOD.fullmatch(every).groups()  # type: ignore[union-attr] # checked by ReadOptions
    if times.dtype.is_integer() != (unit == ""):
        kind = "whole numbers" if times.dtype.is_integer() else "dates"
        table.add_fault(None, table.headers["time"], f"the times are {kind}; a period of {every!r} is not")
        return times.unique(), np.zeros(len(times), np.int64)
    first, length, position = _positions(times, int(number), unit)
    round_ = ((position - first) // length + 1).fill_null(0).to_numpy()
    starts = pl.Series([first + length * step for step in range(int(round_.max()))], dtype=pl.Int64)
    return _name_starts(starts, unit), round_


def _positions(times: pl.Series, number: int, unit: str) -> tuple[int, int, pl.Series]:
    """The position of the first period, the length of a period, and the positions of times: hours, months or as given."""
    if unit in HOURS:
        hours = times.cast(pl.Datetime("us")).dt.epoch("us") // 3_600_000_000
        day = 1 if unit == "h" else 24
        return _least(hours) // day * day, number * HOURS[unit], hours
    if unit in MONTHS:
        months = times.dt.year().cast(pl.Int64) * 12 + times.dt.month().cast(pl.Int64) - 1
        return _least(months), number * MONTHS[unit], months
    return _least(times), number, times


def _least(positions: pl.Series) -> int:
    return int(positions.drop_nulls().to_numpy().min())


def _name_starts(starts: pl.Series, unit: str) -> pl.Series:
    """Positions of periods as whole numbers, dates or times."""
    if unit in HOURS:
        began = pl.Series([datetime(1970, 1, 1) + timedelta(hours=hour) for hour in starts.to_list()])
        return began if unit == "h" else began.cast(pl.Date)
    if unit in MONTHS:
        return pl.Series([datetime(month // 12, month % 12 + 1, 1) for month in starts.to_list()]).cast(pl.Date)
    return starts


def _read_times(table: HistoryTable) -> pl.Series:
    """Whole numbers, dates or times of day on a date; null where there is a fault."""
    cells = table.frame[table.headers["time"]]
    if cells.dtype == pl.Date:
        times = cells
    elif isinstance(cells.dtype, pl.Datetime):
        times = cells.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if cells.dtype.time_zone else cells
    else:
        text = spell_dates(table.texts("time"))
        times = _parse_times(text)
        if len(confused := text.filter(times.is_null() & text.str.contains(UNCLEAR_DATE))):
            header, example = table.headers["time"], quote(confused[0])
            table.add_fault(None, header, f"day and month of {example} can be confused; write dates like 2026-11-17")
        else:
            table.add_faults(
                "time", times.is_null() & text.is_not_null(),
                lambda i: f"{quote(text[i])} is not a whole number and not a date like 2026-11-17 or 2026-11-17 14:30",
            )  # fmt: skip
    empty = table.cells("time").is_null()
    table.add_faults("time", empty, lambda _: "empty; every row must say when it was")
    return times


def _parse_times(text: pl.Series) -> pl.Series:
    """Texts as whole numbers, or as dates, or as times, whatever the first one is."""
    first = (text.drop_nulls().head(1).to_list() or [""])[0]
    if re.fullmatch(r"[+-]?\d+(\.0)?", first):
        return text.str.strip_suffix(".0").cast(pl.Int64, strict=False)
    dates = text.str.to_date("%Y-%m-%d", strict=False)
    if dates.null_count() == text.null_count():
        return dates
    plain = text.str.replace("T", " ", literal=True).str.replace(r"(Z|\+00:?00)$", "")
    whole = plain.str.replace(r"^(\S+)$", "$1 00:00").str.replace(r"( \d\d?:\d\d)$", "$1:00")
    return whole.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)


def describe_times(rounds: pl.Series, every: str | None) -> list[str]:
    """A sentence about times that are not evenly spaced."""
    steps = rounds.diff().drop_nulls()
    if every is not None or not len(steps) or steps.min() == steps.max():
        return []
    least, most = (str(step).removesuffix(", 0:00:00") for step in (steps.min(), steps.max()))
    return [f"Times are {least} to {most} apart; each is a round. A period (every) would make them even."]
