from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr  # type: ignore[import-untyped]

from restive.desk import Desk
from restive.desk.config import Config, Words
from restive.desk.replay import replay
from restive.desk.report import make_report
from restive.desk.schedule import Schedule, check_first_due, check_rhythm, check_timezone, make_calendar
from restive.desk.status import get_status, summarize
from restive.desk.tables import make_table
from restive.errors import InputError

MONDAY = date(2026, 11, 16)
WEEKLY = Schedule("Asia/Kolkata", "week", MONDAY)
STATES = [{"agent": f"p{number}", "state": "low"} for number in range(6)]


def after(days: int) -> date:
    return MONDAY + timedelta(days=days)


@pytest.mark.parametrize(
    ("day", "previous", "due"),
    [
        (0, None, 0),
        (3, None, 0),
        (-3, None, 0),  # early for the first date
        (-8, None, -14),  # more than a period before it: the dates go on into the past
        (7, 0, 7),
        (11, 0, 7),  # four days late
        (4, 0, 7),  # four days before: early for the next date, because this one has its round
        (1, 0, 7),  # one more round on the day after is early too: no two rounds have one date
        (7, 7, 14),  # decided early, then one more on the day itself
        (21, 0, 21),  # two weeks without a round stay a gap
        (11, 7, 14),  # late by four days and then early by three
    ],
)
def test_a_round_belongs_to_the_last_open_date_or_is_early(day: int, previous: int | None, due: int) -> None:
    assert WEEKLY.assign(after(day), None if previous is None else after(previous)) == after(due)


@pytest.mark.parametrize(
    ("today", "previous", "due"),
    [
        (-20, None, 0),
        (2, None, 0),
        (0, 0, 7),
        (6, 0, 7),
        (9, 0, 7),  # two days late
        (14, 0, 14),  # the date without a round is a gap, not late forever
        (4, 7, 14),  # decided early
        (-9, -14, 0),  # a first date that is chosen in a running program is the next one
    ],
)
def test_the_next_date_follows_the_calendar(today: int, previous: int | None, due: int) -> None:
    assert WEEKLY.next_due(after(today), None if previous is None else after(previous)) == after(due)


def test_months_end_on_their_last_day_and_come_back_to_the_31st() -> None:
    monthly = Schedule("UTC", "month", date(2026, 1, 31))
    assert [monthly.date_of(month) for month in range(4)] == [
        date(2026, 1, 31), date(2026, 2, 28), date(2026, 3, 31), date(2026, 4, 30),
    ]  # fmt: skip
    assert monthly.next_due(date(2026, 2, 27), date(2026, 1, 31)) == date(2026, 2, 28)
    assert monthly.next_due(date(2026, 3, 1), date(2026, 2, 28)) == date(2026, 3, 31)
    assert monthly.assign(date(2026, 3, 2), date(2026, 1, 31)) == date(2026, 2, 28)
    assert monthly.next_due(date(2027, 12, 31), None) == date(2027, 12, 31)


def test_the_day_is_that_of_the_program_also_when_clocks_change() -> None:
    assert WEEKLY.day_of("2026-11-15T19:00:00+00:00") == MONDAY
    berlin = Schedule("Europe/Berlin", "week", date(2026, 10, 19))
    # 25 October 2026 has 25 hours in Berlin: 22:30 UTC is the next day before the change, the same day after it.
    assert berlin.day_of("2026-10-24T22:30:00+00:00") == date(2026, 10, 25)
    assert berlin.day_of("2026-10-25T22:30:00+00:00") == date(2026, 10, 25)
    midnights = [
        datetime(2026, 10, 19, 0, 30, tzinfo=ZoneInfo("Europe/Berlin")) + timedelta(days=7 * n) for n in (0, 1, 2)
    ]
    days = [berlin.day_of(at.astimezone(UTC).isoformat()) for at in midnights]
    assert days == [date(2026, 10, 19), date(2026, 10, 26), date(2026, 11, 2)]
    assert [berlin.assign(day, None) for day in days] == days


def test_without_a_rhythm_a_round_is_named_by_its_day_and_nothing_is_due() -> None:
    free = Schedule("UTC", "none", MONDAY)
    assert free.assign(after(3), after(3)) == after(3)
    assert free.describe(4, datetime(2026, 11, 20, tzinfo=UTC), after(3)) is None


@pytest.mark.parametrize(
    ("days", "when", "sentence"),
    [
        (0, "due today", "This week's list is due today, Monday 16 Nov 2026."),
        (2, "2 days late", "This week's list was due on Monday 16 Nov 2026 and is 2 days late."),
        (-1, "due tomorrow", "The next list is due on Monday 16 Nov 2026, tomorrow."),
        (-3, "due in 3 days", "The next list is due on Monday 16 Nov 2026, in 3 days."),
    ],
)
def test_the_due_date_is_told_from_today(days: int, when: str, sentence: str) -> None:
    noon = datetime(2026, 11, 16, 6, 30, tzinfo=UTC) + timedelta(days=days)
    due = WEEKLY.describe(3, noon, date(2026, 11, 9))
    assert due == {
        "round": 3, "due": "2026-11-16", "label": "Week of 16 Nov 2026", "days": -days, "when": when, "sentence": sentence,
    }  # fmt: skip


def test_settings_that_name_no_zone_rhythm_or_date_are_refused_with_what_is_allowed() -> None:
    for wrong in ("Mars/Olympus", "", "../etc/passwd", "Asia", 5, None):
        with pytest.raises(InputError, match="name of a time zone, such as Asia/Kolkata") as refused:
            check_timezone(wrong)
        assert refused.value.location == "timezone"
    for wrong in ("fortnight", "0 days", "367 days", "5 months", "", 7):
        with pytest.raises(InputError, match="day, week, two weeks, month, a number of days up to 366"):
            check_rhythm(wrong, "round")
    for wrong in ("23.11.2026", "2026-02-30", "0001-01-01", 5):
        with pytest.raises(InputError, match="a date such as 2026-11-23"):
            check_first_due(wrong)
    assert check_first_due(MONDAY) == "2026-11-16"


def test_the_rhythm_and_the_word_for_the_length_of_a_round_go_together() -> None:
    config = Config(states=("low", "high"), words=Words(every="week"))
    assert config.rhythm == "week"
    monthly = config.changed({"rhythm": "month"})
    assert (monthly.rhythm, monthly.words.every) == ("month", "month")
    free = monthly.changed({"rhythm": "none"})
    assert (free.rhythm, free.words.every) == ("none", "round")
    assert Config.from_json(free.as_json()) == free
    assert Config(states=("low", "high")).rhythm == "none"


def test_labels_of_past_rounds_stay_when_the_calendar_changes_and_replay_is_the_same(tmp_path: Path) -> None:
    now = datetime(2026, 11, 15, 20, 0, tzinfo=UTC)  # Monday in India
    with Desk(tmp_path / "desk.db", clock=lambda: now) as desk:
        program = desk.create(
            "calls", states=["low", "high"], rewards=[0, 1], budget=2, timezone="Asia/Kolkata", rhythm="week"
        )
        assert get_status(program)["due"] is None
        program.decide(STATES)
        assert get_status(program)["rounds"][0]["label"] == "Week of 16 Nov 2026"
        now += timedelta(days=9)
        assert summarize(program)["due"] == {
            "round": 2, "due": "2026-11-23", "label": "Week of 23 Nov 2026", "days": -2, "when": "2 days late",
            "sentence": "This week's list was due on Monday 23 Nov 2026 and is 2 days late.",
        }  # fmt: skip
        program.decide(STATES, again=True)
        program.change(rhythm="month", first_due="2026-12-01", timezone="UTC")
        now += timedelta(days=7)
        program.decide(STATES, again=True)
        labels = [totals.label for totals in program.rounds]
        assert labels == ["Week of 16 Nov 2026", "Week of 23 Nov 2026", "December 2026"]
        assert [totals.label for totals in desk.program("calls").rounds] == labels
        assert program.history("p0")[-1]["label"] == "December 2026"
        report = make_report(program)
        assert report["period"] == "16 Nov 2026 to December 2026"
        assert report["states_note"] == "First: the week of 16 Nov 2026 (round 1); last: December 2026 (round 3)."
        assert make_table(program, "states")["label"].unique(maintain_order=True).to_list() == labels
        assert replay(program).proven


@pytest.mark.parametrize(
    ("rhythm", "first", "dates"),
    [
        ("week", date(2026, 11, 16), ["2026-11-16", "2026-11-23", "2026-11-30"]),
        ("10 days", date(2026, 11, 16), ["2026-11-16", "2026-11-26", "2026-12-06"]),
        ("month", date(2026, 11, 16), ["2026-11-16", "2026-12-16", "2027-01-16"]),
        ("month", date(2027, 1, 31), ["2027-01-31", "2027-02-28", "2027-03-31"]),
        ("month", date(2027, 1, 29), ["2027-01-29", "2027-02-28", "2027-03-29"]),
    ],
)
def test_the_calendar_file_recurs_on_the_due_dates(rhythm: str, first: date, dates: list[str]) -> None:
    schedule = Schedule("UTC", rhythm, first)
    due = schedule.describe(1, datetime(first.year, first.month, 1, tzinfo=UTC), None)
    text = make_calendar("calls é", "Calls; north, " + "ü" * 60, due, schedule, left=3)
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    lines = dict(line.partition(":")[::2] for line in text.replace("\r\n ", "").split("\r\n"))
    assert lines["DTSTART;VALUE=DATE"] == first.strftime("%Y%m%d")
    assert lines["SUMMARY"] == "Calls\\; north\\, " + "ü" * 60 + ": list due"
    start = datetime(first.year, first.month, first.day)
    assert [each.date().isoformat() for each in rrulestr(lines["RRULE"], dtstart=start)] == dates
    assert dates == [schedule.date_of(index).isoformat() for index in range(3)]


def test_a_program_without_due_dates_has_a_calendar_without_events() -> None:
    text = make_calendar("calls", "Calls", None, Schedule(), None)
    assert text.startswith("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n")
    assert "VEVENT" not in text
