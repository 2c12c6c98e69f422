"""Points of history in text form, as command lines and URLs name them."""

from __future__ import annotations

from datetime import datetime


def parse_point(text: str) -> str | int | datetime:
    """Parse a point: a version number, a time, or else a commit id or name."""
    if text.isdecimal():
        return int(text)
    if len(text) >= 10 and text[4:5] == "-" and text[7:8] == "-":
        try:
            time = datetime.fromisoformat(text)
            return time if time.tzinfo else time.astimezone()
        except (ValueError, OverflowError):
            return text
    return text
