"""The calendar of a program: its time zone and rhythm, the due date of each round, and how rounds and times are named.

Due dates follow the calendar from the first one, however early or late a round is decided. A round belongs to the last
due date that has come, if that has no round yet; otherwise to the next one, if that is nearer, or it is one more round
of the same date. A date that passes without a round is a gap: only the newest open date can be late.
"""

import calendar
import os
import re
import reprlib
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from restive.api.types import DueRound
from restive.errors import InputError
from restive.formats import MONTHS, UNKNOWN, show_date

NO_RHYTHM, DAY, WEEK, TWO_WEEKS, MONTH = "none", "day", "week", "two weeks", "month"
RHYTHMS = (DAY, WEEK, TWO_WEEKS, MONTH, NO_RHYTHM)  # and a number of days
LENGTHS = {DAY: 1, WEEK: 7, TWO_WEEKS: 14}  # in days
DAYS = re.compile(r"(\d{1,4}) (day|week)s?")
MAX_DAYS = 366
NOUNS = (DAY, WEEK, MONTH)  # rhythms that are also a word for the length of a round
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CURRENT = {DAY: "Today's list", WEEK: "This week's list", MONTH: "This month's list"}


def check_timezone(given: object) -> str:
    """Validate the name of a time zone.

    >>> check_timezone("Asia/Kolkata")
    'Asia/Kolkata'
    """
    if isinstance(given, str) and _find_zone(given) is not None:
        return given
    raise InputError(
        f"timezone is {reprlib.repr(given)}; it must be the name of a time zone, such as Asia/Kolkata or UTC.",
        location="timezone",
    )


@lru_cache(maxsize=64)
def _find_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # an unknown name, one that is no name, a folder
        return None


@lru_cache(maxsize=1)
def list_timezones() -> list[str]:
    """The names of time zones that a form offers: places, and UTC."""
    return [*sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/")), "UTC"]


def find_local_timezone() -> str:
    """The time zone of this machine, UTC where it is not known, as on Windows."""
    link = os.path.realpath("/etc/localtime").rpartition("zoneinfo/")[2].removeprefix("Etc/")
    return next((name for name in (os.environ.get("TZ", ""), link) if name and _find_zone(name)), "UTC")


def check_rhythm(given: object, every: str) -> str:
    """Validate how often a round is due; None: by the program's word for the length of a round.

    >>> check_rhythm("14 days", "round"), check_rhythm("10 days", "round"), check_rhythm(None, "month")
    ('two weeks', '10 days', 'month')
    """
    if given is None:
        return every if every in NOUNS else NO_RHYTHM
    if given in RHYTHMS:
        return str(given)
    found = DAYS.fullmatch(given) if isinstance(given, str) else None
    days = int(found[1]) * LENGTHS[found[2]] if found else 0
    if not 1 <= days <= MAX_DAYS:
        raise InputError(
            f"rhythm is {reprlib.repr(given)}; it must be {', '.join(RHYTHMS[:-1])}, a number of days up to {MAX_DAYS} "
            f"such as '10 days', or {NO_RHYTHM}.",
            location="rhythm",
        )
    return next((name for name, length in LENGTHS.items() if length == days), f"{days} days")


def check_first_due(given: object) -> str | None:
    """Validate the first due date, as an ISO date; None: the day of the first decision."""
    if given is None or given == "":
        return None
    try:
        found = given if type(given) is date else date.fromisoformat(str(given))
    except ValueError:
        found = date.min
    if not 1900 < found.year < 3000:
        raise InputError(
            f"first_due is {reprlib.repr(given)}; it must be a date such as 2026-11-23.", location="first_due"
        )
    return found.isoformat()


def word_for(rhythm: str, every: str) -> str:
    """The word for the length of a round that goes with a rhythm; a program's own word stays.

    >>> word_for("month", "week"), word_for("10 days", "week"), word_for("week", "visit")
    ('month', 'round', 'visit')
    """
    return every if every not in (*NOUNS, "round") else rhythm if rhythm in NOUNS else "round"


def describe_rhythm(rhythm: str, first_due: str | None, timezone: str) -> str:
    """When rounds are due, in a sentence.

    >>> describe_rhythm("week", "2026-11-23", "Asia/Kolkata")
    'A list is due every week from Monday 23 Nov 2026; dates and times are those of Asia/Kolkata.'
    """
    start = "the first decision" if first_due is None else show_weekday(date.fromisoformat(first_due))
    due = "Lists have no due dates" if rhythm == NO_RHYTHM else f"A list is due every {rhythm} from {start}"
    return f"{due}; dates and times are those of {timezone}."


def label_round(due: str, rhythm: str) -> str:
    """The name of a round: its due date, or the week or month that begins with it.

    >>> [label_round("2026-11-16", rhythm) for rhythm in ("week", "month", "10 days")]
    ['Week of 16 Nov 2026', 'November 2026', '16 Nov 2026']
    """
    day = date.fromisoformat(due)
    if rhythm == MONTH:
        return f"{MONTHS[day.month - 1]} {day.year}"
    return {WEEK: "Week of ", TWO_WEEKS: "Two weeks from "}.get(rhythm, "") + show_date(day)


def mention_round(label: str, number: int) -> str:
    """A round in the middle of a sentence, with its number.

    >>> mention_round("Week of 16 Nov 2026", 7), mention_round("November 2026", 7), mention_round("16 Nov 2026", 7)
    ('the week of 16 Nov 2026 (round 7)', 'November 2026 (round 7)', 'round 7 (16 Nov 2026)')
    """
    if label[0].isdigit():
        return f"round {number} ({label})"
    named = f"the {label[0].lower()}{label[1:]}" if label.startswith(("Week", "Two weeks")) else label
    return f"{named} (round {number})"


def tick_label(label: str) -> str:
    """The name of a round on the axis of a chart.

    >>> tick_label("Week of 16 Nov 2026"), tick_label("November 2026")
    ('16 Nov 2026', 'November 2026')
    """
    return label.removeprefix("Week of ").removeprefix("Two weeks from ")


def show_weekday(day: date) -> str:
    """A date with its day of the week.

    >>> show_weekday(date(2026, 11, 23))
    'Monday 23 Nov 2026'
    """
    return f"{WEEKDAYS[day.weekday()]} {show_date(day)}"


def show_time(at: str | None, timezone: str = "UTC") -> str:
    """A recorded time to the minute, as clocks in the time zone show it.

    >>> show_time("2026-03-29T20:15:59.123456+00:00", "Asia/Kolkata")
    '30 Mar 2026, 01:45'
    """
    if not at:
        return UNKNOWN
    local = datetime.fromisoformat(at).astimezone(ZoneInfo(timezone))
    return f"{show_date(local.date())}, {local:%H:%M}"


def show_days(days: int) -> str:
    """How far a due date is away.

    >>> show_days(0), show_days(1), show_days(3), show_days(-1)
    ('today', 'tomorrow', 'in 3 days', '1 day late')
    """
    if days < 0:
        return f"{-days} day{'s' * (days < -1)} late"
    return ("today", "tomorrow")[days] if days < 2 else f"in {days} days"


@dataclass(frozen=True)
class Schedule:
    """When the rounds of a program are due; `first` is None before the first round of a program without a first date."""

    timezone: str = "UTC"
    rhythm: str = NO_RHYTHM
    first: date | None = None

    def day_of(self, at: str | datetime) -> date:
        """The day of a time in the program's time zone."""
        time = datetime.fromisoformat(at) if isinstance(at, str) else at
        return time.astimezone(ZoneInfo(self.timezone)).date()

    def assign(self, day: date, previous: date | None) -> date:
        """The due date of a round that is decided on this day; the round before had the date `previous`.

        A list that is made early has the next date, so no two rounds share one.
        """
        if self.rhythm == NO_RHYTHM or self.first is None:
            return day
        if previous is None:
            index = self._index(day)
            return self.date_of(0 if index == -1 else index)
        return self.next_due(day, previous) or day

    def next_due(self, today: date, previous: date | None) -> date | None:
        """The due date of the next round; None if there is none."""
        if self.rhythm == NO_RHYTHM or self.first is None:
            return None
        due = self.date_of(self._index(today))
        if previous is not None and due <= previous:
            index = self._index(previous)
            due = self.date_of(index + 1)
        return max(due, self.first)

    def date_of(self, index: int) -> date:
        """The due date of that number, from 0; in months, a day that a month does not have is its last day."""
        assert self.first is not None
        if self.rhythm != MONTH:
            return self.first + timedelta(days=index * self.length)
        return add_months(self.first, index)

    def _index(self, day: date) -> int:
        """The number of the last due date up to this day; negative before the first."""
        assert self.first is not None
        if self.rhythm != MONTH:
            return (day - self.first).days // self.length
        months = 12 * (day.year - self.first.year) + day.month - self.first.month
        return months if self.date_of(months) <= day else months - 1

    @property
    def length(self) -> int:
        """The days from one due date to the next; not of a rhythm of months."""
        return LENGTHS.get(self.rhythm) or int(self.rhythm.split()[0])

    def describe(self, number: int, now: datetime, previous: date | None) -> DueRound | None:
        """The next round and its due date; None if there is none."""
        today = self.day_of(now)
        due = self.next_due(today, previous)
        if due is None:
            return None
        days = (due - today).days
        return {
            "round": number,
            "due": due.isoformat(),
            "label": label_round(due.isoformat(), self.rhythm),
            "days": days,
            "when": show_days(days) if days < 0 else f"due {show_days(days)}",
            "sentence": _say_due(due, days, self.rhythm),
        }


def _say_due(due: date, days: int, rhythm: str) -> str:
    """The due date of the next list in a sentence."""
    subject = "The next list" if days > 0 else CURRENT.get(rhythm, "The next list")
    if days < 0:
        return f"{subject} was due on {show_weekday(due)} and is {show_days(days)}."
    if not days:
        return f"{subject} is due today, {show_weekday(due)}."
    return f"{subject} is due on {show_weekday(due)}, {show_days(days)}."


def add_months(day: date, months: int) -> date:
    """The same day of another month, or its last day.

    >>> add_months(date(2026, 1, 31), 1), add_months(date(2026, 1, 31), 2)
    (datetime.date(2026, 2, 28), datetime.date(2026, 3, 31))
    """
    year, month = divmod(12 * day.year + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def make_calendar(program: str, title: str, due: DueRound | None, schedule: Schedule, left: int | None) -> str:
    """The due dates from the next one on as an iCalendar file (RFC 5545): one event that recurs, with a reminder.

    `left` is the number of rounds that are still to come, None without a planned end. Without a due date there is no event.
    """
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//restive//desk//EN", f"X-WR-CALNAME:{_escape(title)}"]
    if due is not None:
        first = date.fromisoformat(due["due"])
        lines += [
            "BEGIN:VEVENT",
            f"UID:{quote(program)}@restive",
            f"DTSTAMP:{first:%Y%m%d}T000000Z",
            f"DTSTART;VALUE=DATE:{first:%Y%m%d}",
            f"RRULE:{_recurrence(schedule)}" + ("" if left is None else f";COUNT={left}"),
            f"SUMMARY:{_escape(f'{title}: list due')}",
            "TRANSP:TRANSPARENT",
            *(
                "BEGIN:VALARM",
                "ACTION:DISPLAY",
                "TRIGGER:PT9H",
                f"DESCRIPTION:{_escape(f'{title}: list due')}",
                "END:VALARM",
            ),
            "END:VEVENT",
        ]
    return "".join(f"{folded}\r\n" for line in [*lines, "END:VCALENDAR"] for folded in _fold(line))


def _recurrence(schedule: Schedule) -> str:
    """The rule by which due dates recur; a day that a month does not have is its last day."""
    if schedule.rhythm != MONTH:
        return f"FREQ=DAILY;INTERVAL={schedule.length}"
    assert schedule.first is not None
    day = schedule.first.day
    days = ",".join(map(str, range(28, day + 1)))
    return f"FREQ=MONTHLY;BYMONTHDAY={day}" if day <= 28 else f"FREQ=MONTHLY;BYMONTHDAY={days};BYSETPOS=-1"


def _escape(text: str) -> str:
    return re.sub(r"([\\;,])", r"\\\1", text)


def _fold(line: str) -> list[str]:
    """The parts of a line, each of at most 75 bytes; those after the first begin with a space."""
    parts = [""]
    for letter in line:
        if len(f"{parts[-1]}{letter}".encode()) > 75:
            parts.append(" ")
        parts[-1] += letter
    return parts
