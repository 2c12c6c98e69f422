"""Helpers for the computations of scalar functions.

Arrow and numpy are imported by the first computation; a process that only compiles queries imports neither.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from omnigraph.query.scalars.signature import VARIES, Columns
from omnigraph.types import PropertyType


class _Lazy:
    """A module that is imported on first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


pa: Any = _Lazy("pyarrow")
pc: Any = _Lazy("pyarrow.compute")
np: Any = _Lazy("numpy")
arrow_columns: Any = _Lazy("omnigraph.scalar_types.columns")


def stored_type(type_: PropertyType) -> Any:
    """Return the Arrow type of a column."""
    from omnigraph.schema.arrow import arrow_type  # noqa: PLC0415 (loads Arrow)

    return arrow_type(type_)


def by_row(columns: Columns, compute: Callable[..., Any], *, plain: bool = False) -> Any:
    """Call `compute` row by row; null if an argument is null. With `plain`, dates are days and datetimes are
    milliseconds.
    """
    arrays = [as_numbers(array) if plain else array for array in columns.arrays]
    rows = zip(*(array.to_pylist() for array in arrays), strict=True)
    found = [None if any(value is None for value in row) else compute(*row) for row in rows]
    wanted = stored_type(columns.call.type)
    return arrow_columns.stored_array(found, wanted) if plain else pa.array(found, wanted)


def as_numbers(array: Any) -> Any:
    """Return dates as days and datetimes as milliseconds; any other array unchanged."""
    return arrow_columns.as_numbers(array)


def valid(array: Any) -> Any:
    """Return a numpy mask of the values that are not null."""
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def filled(array: Any) -> Any:
    """Return numbers as a numpy array, with zero for null."""
    array = as_numbers(array)
    return pc.fill_null(array, pa.scalar(0, array.type)).to_numpy(zero_copy_only=False)


def constant(columns: Columns, position: int) -> Any:
    """Return the value of an argument that is equal in all rows, else `VARIES`; null is never constant."""
    value = columns.constants[position] if position < len(columns.constants) else VARIES
    return VARIES if value is None else value
