"""Dates and datetimes as numbers: parsing, formatting, range checks.

A Date is stored as days and a DateTime as milliseconds since 1970-01-01 UTC. Both are limited to the years 1 to 9999.
Earlier releases stored values outside this range, given as numbers. They are written as ISO 8601 text with an expanded
year (`+12345-01-01`), and Python rows contain that text instead of a date.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from omnigraph.errors import ValueFormatError
from omnigraph.scalar_types.describe import short_text

DAY_MS = 86_400_000
DATE_RANGE = (-719_162, 2_932_896)
"""First and last day of the years 1 to 9999, as days since 1970-01-01."""
DATETIME_RANGE = (DATE_RANGE[0] * DAY_MS, (DATE_RANGE[1] + 1) * DAY_MS - 1)
"""First and last millisecond of the years 1 to 9999."""

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?(Z|[+-]\d{2}:\d{2})?", re.ASCII)
_EXPANDED = re.compile(r"([+-][0-9]{4,}|[0-9]{4})(-[0-9]{2}-[0-9]{2})(.*)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_date(text: str) -> int:
    """Return the days since 1970-01-01 of `YYYY-MM-DD`, or of the UTC date of a longer datetime."""
    match = _DATE.match(text)
    if match and match.end() == len(text):
        return check_date(_days(text, match))
    return parse_datetime(text) // DAY_MS


def parse_datetime(text: str) -> int:
    """Return the milliseconds since the epoch of an ISO date or datetime; without a zone it is UTC, and digits beyond
    milliseconds are truncated.
    """
    match = _DATE.match(text)
    if match is None:
        raise ValueFormatError(
            f"'{short_text(text)}' is not a date",
            hint="write YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SS with an optional zone",
        )
    milliseconds = _days(text, match) * DAY_MS
    if match.end() == len(text):
        return check_datetime(milliseconds)
    time = _TIME.fullmatch(text, match.end())
    if time is None:
        raise ValueFormatError(
            f"'{short_text(text)}' is not a datetime",
            hint="write YYYY-MM-DDTHH:MM, then optionally :SS, .fraction and Z or +HH:MM",
        )
    hour, minute, second = int(time[1]), int(time[2]), int(time[3] or 0)
    zone = time[5]
    offset = 0
    if zone and zone != "Z":
        zone_hour, zone_minute = int(zone[1:3]), int(zone[4:6])
        if zone_hour > 23 or zone_minute > 59:
            raise ValueFormatError(f"'{short_text(text)}' has no such time zone")
        offset = (zone_hour * 60 + zone_minute) * (-1 if zone[0] == "-" else 1)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueFormatError(f"'{short_text(text)}' has no such time of day")
    fraction = int((time[4] or "").ljust(3, "0")[:3])
    return check_datetime(milliseconds + ((hour * 60 + minute - offset) * 60 + second) * 1000 + fraction)


def check_date(days: int) -> int:
    """Return the days if they are in the years 1 to 9999, otherwise raise `ValueFormatError`."""
    if not DATE_RANGE[0] <= days <= DATE_RANGE[1]:
        raise _outside(format_date(days))
    return days


def check_datetime(milliseconds: int) -> int:
    """Return the milliseconds if they are in the years 1 to 9999, otherwise raise `ValueFormatError`."""
    if not DATETIME_RANGE[0] <= milliseconds <= DATETIME_RANGE[1]:
        raise _outside(format_datetime(milliseconds))
    return milliseconds


def _outside(shown: str) -> ValueFormatError:
    return ValueFormatError(f"{shown} is outside the years 1 to 9999", hint="a Date is days, a DateTime milliseconds")


def format_date(days: int) -> str:
    """Return `YYYY-MM-DD`; a year outside 0 to 9999 has a sign and as many digits as it needs."""
    year, month, day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def format_datetime(milliseconds: int) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    days, rest = divmod(milliseconds, DAY_MS)
    seconds, ms = divmod(rest, 1000)
    return f"{format_date(days)}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}Z"


def python_date(days: int) -> date | str:
    """Return the Python date; text outside the years 1 to 9999."""
    inside = DATE_RANGE[0] <= days <= DATE_RANGE[1]
    return _EPOCH.date() + timedelta(days) if inside else format_date(days)


def python_datetime(milliseconds: int) -> datetime | str:
    """Return the Python datetime in UTC; text outside the years 1 to 9999."""
    inside = DATETIME_RANGE[0] <= milliseconds <= DATETIME_RANGE[1]
    return _EPOCH + timedelta(milliseconds=milliseconds) if inside else format_datetime(milliseconds)


def stored_days(value: date | str) -> int:
    """Return the days of a value of `python_date`."""
    return (value - _EPOCH.date()).days if isinstance(value, date) else stored_milliseconds(value) // DAY_MS


def stored_milliseconds(value: datetime | str) -> int:
    """Return the milliseconds of a value of `python_datetime`."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(milliseconds=1)
    match = _EXPANDED.fullmatch(value)
    assert match is not None
    # The calendar repeats every 400 years, so the year is mapped to one with four digits.
    cycles, year = divmod(int(match[1]), 400)
    return parse_datetime(f"{year + 2000:04}{match[2]}{match[3]}") + (cycles - 5) * 146_097 * DAY_MS


def days_of(value: date) -> int:
    """Return a Python date, or the UTC date of a datetime, as days; a datetime without a zone is UTC."""
    return milliseconds_of(value) // DAY_MS


def milliseconds_of(value: date) -> int:
    """Return a Python date or datetime as milliseconds; a datetime without a zone is UTC."""
    if not isinstance(value, datetime):
        return (value - _EPOCH.date()).days * DAY_MS
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def _days(text: str, match: re.Match[str]) -> int:
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS_IN_MONTH[month - 1] + (leap and month == 2):
        raise ValueFormatError(f"'{short_text(text)}' is not a date of the calendar")
    # Days of the proleptic Gregorian calendar, years starting in March so that leap days come last.
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    month = shifted_month + (3 if shifted_month < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted_month + 2) // 5 + 1
