"""Regular expressions of `@check`.

They are RE2, the engine that later matches whole columns, so a pattern that compiles here is the pattern that runs. RE2
is loaded on first use, because loading takes tens of milliseconds.
"""

from __future__ import annotations


def why_bad_pattern(pattern: str) -> str | None:
    """Return the reason why RE2 rejects `pattern`; None if it is valid."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ").strip()
    return None
