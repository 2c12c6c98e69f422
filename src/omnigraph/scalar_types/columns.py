"""Arrow columns of scalar kinds: types, stored forms and comparable forms.

The registry names Arrow types; this module resolves the names. It imports pyarrow, so modules that only compile text
do not import it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.scalar_types.registry import KINDS, ScalarKind, ScalarName

ARROW_TYPES: dict[ScalarName, pa.DataType] = {name: pa.type_for_alias(kind.arrow) for name, kind in KINDS.items()}
"""Arrow type that stores a kind; of a vector, its elements."""

_BY_ARROW_TYPE = {ARROW_TYPES[name]: KINDS[name] for name in reversed(tuple(KINDS)) if name != "Vector"}
_NUMBERS = {ARROW_TYPES[kind.name]: pa.type_for_alias(kind.number) for kind in KINDS.values() if kind.number}
_COMPARED = {ARROW_TYPES[kind.name]: pa.type_for_alias(kind.compared_as) for kind in KINDS.values() if kind.compared_as}


def kind_of(type_: pa.DataType) -> ScalarKind | None:
    """Return the kind that an Arrow type stores, the first of the registry if several share it; None if none does."""
    return _BY_ARROW_TYPE.get(type_)


def number_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of a column's stored values: integers for dates, also inside a list; else the type itself."""
    if pa.types.is_list(type_) and type_.value_type in _NUMBERS:
        return pa.list_(type_.value_field.with_type(_NUMBERS[type_.value_type]))
    return _NUMBERS.get(type_, type_)


def as_numbers(column: Any) -> Any:
    """Return an array, chunked array or scalar with dates as days and datetimes as milliseconds."""
    wanted = number_type(column.type)
    return column if wanted == column.type else column.cast(wanted)


def stored_values(column: Any) -> list[Any]:
    """Return the values of a column in stored form."""
    return list(as_numbers(column).to_pylist())


def stored_array(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Return values in stored form as an array of an Arrow type."""
    number = number_type(type_)
    return pa.array(values, type_) if number == type_ else pa.array(values, number).cast(type_)


def comparable(column: Any) -> Any:
    """Return a column or scalar in a form that Arrow compares, orders and hashes."""
    wanted = _COMPARED.get(column.type)
    return column if wanted is None else column.cast(wanted)


def holds_values_of(kind: ScalarKind, column: pa.Array | pa.ChunkedArray) -> bool:
    """Return True if every value of a column in the Arrow type of a kind is a value of that kind.

    Dates and datetimes must be in the years 1 to 9999; texts must match the pattern of the kind.
    """
    if column.null_count == len(column):
        return True
    if kind.pattern is not None:
        return pc.all(pc.match_substring_regex(column, f"^(?:{kind.pattern})$")).as_py() is not False
    if kind.value_range is None:
        return True
    low, high = kind.value_range
    ends = pc.min_max(as_numbers(column))
    return bool(low <= ends["min"].as_py() and ends["max"].as_py() <= high)
