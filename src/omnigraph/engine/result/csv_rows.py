"""The rows of a result as CSV: a cell is the JSON form of the value, but a string is not quoted as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from omnigraph.engine.ingest.csv_text import csv_line
from omnigraph.engine.result.result import Result
from omnigraph.text_table import cell


def csv_rows(result: Result) -> Iterator[str]:
    """Yield a header and one record per row; null is an empty cell, the empty string is `""`."""
    return csv_lines(result.columns, result.json_columns())


def csv_lines(names: Sequence[str], batches: Iterable[Sequence[Sequence[Any]]]) -> Iterator[str]:
    """Yield a header and the rows of batches, whose JSON values are given column by column."""
    yield csv_line(names)
    for columns in batches:
        for row in zip(*columns, strict=True):
            yield csv_line([None if value is None else cell(value) for value in row])
