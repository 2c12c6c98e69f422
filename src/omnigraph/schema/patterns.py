"""The regular expressions of `@check`.

They are RE2, the engine that later matches whole columns, so a pattern that compiles here is the
pattern that will run. Loading it costs tens of milliseconds; a schema without `@check` never pays.
"""

from __future__ import annotations


def why_bad_pattern(pattern: str) -> str | None:
    """Return why RE2 refuses `pattern`, or None when it takes it."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ").strip()
    return None
