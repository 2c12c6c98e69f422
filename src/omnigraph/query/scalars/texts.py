"""Scalar functions of text. Positions and lengths count Unicode code points."""

from __future__ import annotations

from typing import Any

from omnigraph.query.plan import ir
from omnigraph.query.scalars.arrays import by_row, constant, pa, pc
from omnigraph.query.scalars.signature import INTEGER, TEXT, VARIES, Columns, Scalar
from omnigraph.types import PropertyType

WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""The characters with the Unicode property White_Space."""

TEXTS = PropertyType("String", is_list=True)


def cut(length: int, start: int, count: int | None) -> tuple[int, int] | None:
    """Return the range that a start and a count select from `length` positions; None for a negative count."""
    if count is not None and count < 0:
        return None
    first = max(start + length, 0) if start < 0 else min(start, length)
    return first, length if count is None else min(first + count, length)


def _trim(name: str) -> Any:
    return lambda columns: pc.call_function(name, [columns.arrays[0]], pc.TrimOptions(WHITE_SPACE))


def _substring(columns: Columns) -> Any:
    start = constant(columns, 1)
    count = constant(columns, 2) if len(columns.arrays) == 3 else None
    if start is not VARIES and count is not VARIES and 0 <= start < 2**31 and (count is None or 0 <= count < 2**31):
        return pc.utf8_slice_codeunits(columns.arrays[0], start=start, stop=None if count is None else start + count)
    return by_row(columns, _part)


def _part(text: str, start: int, count: int | None = None) -> str | None:
    bounds = cut(len(text), start, count)
    return None if bounds is None else text[bounds[0] : bounds[1]]


def _split(columns: Columns) -> Any:
    separator = constant(columns, 1)
    if separator is not VARIES and separator:
        return pc.split_pattern(columns.arrays[0], pattern=separator)
    return by_row(columns, lambda text, by: text.split(by) if by else list(text) or [""])


def _replace(columns: Columns) -> Any:
    old, new = constant(columns, 1), constant(columns, 2)
    if old is not VARIES and new is not VARIES:
        return pc.replace_substring(columns.arrays[0], pattern=old, replacement=new) if old else columns.arrays[0]
    return by_row(columns, lambda text, a, b: text.replace(a, b) if a else text)


def _reverse(columns: Columns) -> Any:
    return pc.utf8_reverse(columns.arrays[0])


def _case(name: str) -> Any:
    return lambda columns: pc.call_function(name, [columns.arrays[0]])


def join(columns: Columns) -> Any:
    """Concatenate texts."""
    return pc.binary_join_element_wise(*columns.arrays, pa.scalar(""))


TEXT_FUNCTIONS = (
    Scalar("lower", "lower($x.text)", (TEXT,), ir.STRING, _case("utf8_lower"), "the text in lower case"),
    Scalar("upper", "upper($x.text)", (TEXT,), ir.STRING, _case("utf8_upper"), "the text in upper case"),
    Scalar("trim", "trim($x.text)", (TEXT,), ir.STRING, _trim("utf8_trim"), "the text without white space at its ends"),
    Scalar("ltrim", "ltrim($x.text)", (TEXT,), ir.STRING, _trim("utf8_ltrim"), "without white space at its start"),
    Scalar("rtrim", "rtrim($x.text)", (TEXT,), ir.STRING, _trim("utf8_rtrim"), "without white space at its end"),
    Scalar(
        "substring", "substring($x.text, start) or substring($x.text, start, length)", (TEXT, INTEGER, INTEGER),
        ir.STRING, _substring, "the part from a position on", least=2, no_result="a length below 0",
    ),
    Scalar(
        "replace", "replace($x.text, old, new)", (TEXT, TEXT, TEXT), ir.STRING, _replace,
        "the text with every occurrence of a part replaced",
    ),
    Scalar("split", "split($x.text, separator)", (TEXT, TEXT), TEXTS, _split, "the parts between separators"),
    Scalar("reverse", "reverse($x.text)", (TEXT,), ir.STRING, _reverse, "the code points in reverse order"),
)  # fmt: skip
