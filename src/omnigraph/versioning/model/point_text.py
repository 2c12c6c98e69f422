"""Points of history in text form, as command lines and URLs name them."""

from __future__ import annotations

from datetime import UTC, datetime

from omnigraph.errors import InputError

_NAME, _VERSION = "name:", "version:"


def parse_point(text: str) -> str | int | datetime:
    """Parse a point: a version number, a time, or else a commit id or name.

    `name:` precedes a name that could be taken for a number or a time, and `version:` a number.
    """
    if text.isdecimal():
        return int(text)
    if text.startswith(_NAME):
        return text.removeprefix(_NAME)
    if text.startswith(_VERSION):
        return _version(text)
    if len(text) >= 10 and text[4:5] == "-" and text[7:8] == "-":
        try:
            time = datetime.fromisoformat(text)
            return time if time.tzinfo else time.astimezone()
        except (ValueError, OverflowError):
            return text
    return text


def point_text(point: str | int | datetime) -> str:
    """Return the text of a point; `parse_point` is the inverse. A time without a zone is in UTC."""
    if isinstance(point, str):
        return point if point and parse_point(point) == point else f"{_NAME}{point}"
    if isinstance(point, datetime):
        return (point if point.tzinfo is not None else point.replace(tzinfo=UTC)).isoformat()
    if isinstance(point, bool) or not isinstance(point, int):
        raise not_a_point(point)
    return f"{_VERSION}{point}" if point < 0 else str(point)


def not_a_point(point: object) -> InputError:
    """Return the error of a value that names no point of history."""
    return InputError(
        f"a point of history is a version, a commit id, a tag or a datetime, not a {type(point).__name__}",
        hint="give a time as a datetime",
    )


def _version(text: str) -> str | int:
    digits = text.removeprefix(_VERSION)
    return int(digits) if digits.removeprefix("-").isdecimal() else text
