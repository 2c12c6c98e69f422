"""The registry of scalar kinds: everything that depends on which scalar a value is.

A new property type is an entry here, and its name in `ScalarName`. Other modules look entries up and do not compare
names. Arrow and Spark types are names, so that compiling a schema or a query loads neither library;
`scalar_types.columns` has the Arrow types.

A value is held in its stored form: Date as days and DateTime as milliseconds since 1970-01-01 UTC, F32 as the float
that it rounds to. Equality, order and hash of a kind are those of its stored form, or of `compared_as` where Arrow does
not order or hash the stored type itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from omnigraph.fast_dataclass import dataclass
from omnigraph.scalar_types.dates import (
    DATE_RANGE,
    DATETIME_RANGE,
    format_date,
    format_datetime,
    python_date,
    python_datetime,
)
from omnigraph.scalar_types.floats import spell_float
from omnigraph.scalar_types.readers import (
    UUID_EXAMPLE,
    UUID_PATTERN,
    IntegerRange,
    blob_from_python,
    bool_hint,
    bool_of_cell,
    date_from_python,
    datetime_from_python,
    float_from_python,
    float_hint,
    float_of_cell,
    float_of_id,
    integer_from_python,
    integer_hint,
    integer_of_cell,
    integer_of_id,
    integer_reader,
    read_blob,
    read_bool,
    read_date,
    read_datetime,
    read_f32,
    read_f64,
    read_string,
    read_uuid,
    text_from_python,
    text_hint,
    uuid_from_python,
)

ScalarName = Literal[
    "String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime", "Uuid", "Vector"
]

LiteralCall = Literal["date", "datetime", "uuid"]
"""Words of the query language that form a literal with a text: `date("2026-01-31")`."""

JS_SAFE_MAX = 2**53 - 1
"""Integers up to this size are exact as JavaScript numbers."""


def _unchanged(value: Any) -> Any:
    return value


def _no_hint(_: Any) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarKind:
    """One scalar kind."""

    name: ScalarName
    arrow: str
    """Alias of the Arrow type that stores values; of a vector, of its elements."""
    spark: str
    """Spark SQL name of the type that holds values exactly and in their order."""
    result_kind: str
    """Name in the description of a query's result columns (`lint --json`)."""
    foreign_names: tuple[str, ...] = ()
    """Names of this type in other languages, in lower case, for hints."""

    read: Callable[[Any], Any]
    """JSON value → stored form; raises `WrongJsonType` or `ValueFormatError`."""
    json_types: frozenset[type]
    """Types of JSON values of which a whole column can be converted at once."""
    from_python: Callable[[Any], Any] = _unchanged
    """Python object that JSON does not have → a value that `read` accepts, or the object itself."""
    hint: Callable[[Any], str | None] = _no_hint
    """Hint for a value of the wrong JSON type."""
    from_cell: Callable[[str], Any] = _unchanged
    """CSV cell → JSON value; a cell without one is returned unchanged and fails later."""
    from_id: Callable[[str], Any] | None = None
    """Any text that denotes a key value → stored form; None if only the canonical text denotes it."""

    write: Callable[[Any], Any] = _unchanged
    """Stored form → JSON value."""
    to_python: Callable[[Any], Any] = _unchanged
    """Stored form → Python object in rows."""
    text: Callable[[Any], str] = str
    """Stored form → text of the value."""
    spell: Callable[[Any], str] = str
    """Stored form → canonical text in an id: equal values, and only equal values, have the same text."""
    literal_call: LiteralCall | None = None
    """Word of the literal syntax in queries; None if numbers, texts or words are literals of this kind."""
    literal_example: str = ""
    sql: Callable[[Any], str] | None = None
    """Stored form → SQL literal of a Lance filter; None for a plain SQL string."""

    compared_as: str | None = None
    """Alias of the Arrow type that a column is cast to for order and hash; None if it is the stored type."""
    number: str | None = None
    """Alias of the integer Arrow type of the stored form, if Arrow's own Python value is a different one."""
    value_range: IntegerRange | None = None
    """Range of the stored form that is narrower than its Arrow type."""
    pattern: str | None = None
    """Regular expression (RE2) of the stored text, if not every text is a value."""
    integer_range: IntegerRange | None = None
    """Range of an integer kind."""
    is_float: bool = False
    is_json_text: bool = False
    """True if values are written as texts in JSON."""
    is_python_value: bool = False
    """True if the Python value that Arrow returns is the JSON value as well, except for wide integers."""


def _write_wide(value: int) -> int | str:
    return value if -JS_SAFE_MAX <= value <= JS_SAFE_MAX else str(value)


def _write_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _bool_text(value: Any) -> str:
    return "true" if value else "false"


def _integer(
    name: ScalarName, arrow: str, spark: str, bounds: IntegerRange, foreign_names: tuple[str, ...] = ()
) -> ScalarKind:
    wide = bounds[1] > JS_SAFE_MAX
    label = {"I": "Int", "U": "UInt"}[name[0]] + name[1:]
    return ScalarKind(
        name=name, arrow=arrow, spark=spark, result_kind="bigint" if wide else "int", foreign_names=foreign_names,
        read=integer_reader(label, bounds), json_types=frozenset({int}), from_python=integer_from_python,
        hint=integer_hint, from_cell=integer_of_cell, from_id=integer_of_id, write=_write_wide if wide else _unchanged,
        # The lowest I64 as a number would be the negation of an integer that is too large.
        sql=lambda value: f"arrow_cast('{value}', '{label}')" if value == -(2**63) else str(value),
        integer_range=bounds, is_python_value=True,
    )  # fmt: skip


def _float(
    name: ScalarName, arrow: str, spark: str, read: Callable[[Any], float], foreign_names: tuple[str, ...]
) -> ScalarKind:
    single = name == "F32"

    def spell(value: float) -> str:
        return spell_float(value, single=single)

    return ScalarKind(
        name=name, arrow=arrow, spark=spark, result_kind="float", foreign_names=foreign_names,
        read=read, json_types=frozenset({float, int}), from_python=float_from_python, hint=float_hint,
        from_cell=float_of_cell, from_id=float_of_id(read), write=_write_float, text=spell, spell=spell,
        sql=lambda value: f"arrow_cast({value!r}, 'Float{name[1:]}')", is_float=True, is_python_value=not single,
    )  # fmt: skip


def _date_sql(days: int) -> str:
    return f"date '{format_date(days)}'" if 0 <= days <= DATE_RANGE[1] else f"arrow_cast({days}, 'Date32')"


def _write_vector(value: list[float]) -> list[float | None]:
    return [element if math.isfinite(element) else None for element in value]


_KINDS = (
    ScalarKind(
        name="String", arrow="string", spark="string", result_kind="string",
        foreign_names=("str", "text", "varchar", "char"),
        read=read_string, json_types=frozenset({str}), from_python=text_from_python, hint=text_hint,
        is_json_text=True, is_python_value=True,
    ),
    ScalarKind(
        name="Blob", arrow="large_binary", spark="binary", result_kind="blob",
        foreign_names=("bytes", "binary", "bytea"),
        read=read_blob, json_types=frozenset(), from_python=blob_from_python, is_json_text=True,
    ),
    ScalarKind(
        name="Bool", arrow="bool", spark="boolean", result_kind="bool",
        read=read_bool, json_types=frozenset({bool}), hint=bool_hint, from_cell=bool_of_cell,
        text=_bool_text, spell=_bool_text, sql=_bool_text, compared_as="int8", is_python_value=True,
    ),
    _integer("I32", "int32", "int", (-(2**31), 2**31 - 1), ("int32", "smallint")),
    _integer(
        "I64", "int64", "bigint", (-(2**63), 2**63 - 1), ("int", "integer", "bigint", "long", "int64", "number")
    ),
    _integer("U32", "uint32", "bigint", (0, 2**32 - 1)),
    _integer("U64", "uint64", "decimal(20,0)", (0, 2**64 - 1)),
    _float("F32", "float", "float", read_f32, ("float32",)),
    _float("F64", "double", "double", read_f64, ("float", "double", "real", "decimal", "numeric", "float64")),
    ScalarKind(
        name="Date", arrow="date32", spark="date", result_kind="date",
        read=read_date, json_types=frozenset({str}), from_python=date_from_python, from_id=read_date,
        write=format_date, to_python=python_date, text=format_date, literal_call="date", literal_example="2026-01-31",
        sql=_date_sql, compared_as="int32", number="int32", value_range=DATE_RANGE, is_json_text=True,
    ),
    ScalarKind(
        name="DateTime", arrow="date64", spark="timestamp", result_kind="datetime",
        foreign_names=("timestamp", "time", "timestamptz"),
        read=read_datetime, json_types=frozenset({str}), from_python=datetime_from_python, from_id=read_datetime,
        write=format_datetime, to_python=python_datetime, text=format_datetime,
        literal_call="datetime", literal_example="2026-01-31T12:00:00Z",
        sql=lambda value: f"arrow_cast({value}, 'Date64')", compared_as="int64", number="int64",
        value_range=DATETIME_RANGE, is_json_text=True,
    ),
    ScalarKind(
        name="Uuid", arrow="string", spark="string", result_kind="uuid", foreign_names=("guid", "uniqueidentifier"),
        read=read_uuid, json_types=frozenset({str}), from_python=uuid_from_python, from_id=read_uuid,
        literal_call="uuid", literal_example=UUID_EXAMPLE, pattern=UUID_PATTERN,
        is_json_text=True, is_python_value=True,
    ),
    ScalarKind(
        # The reader of a vector needs its dimension: `values.read_vector`.
        name="Vector", arrow="float", spark="array<float>", result_kind="vector",
        read=_unchanged, json_types=frozenset(), write=_write_vector,
    ),
)  # fmt: skip

KINDS: Mapping[ScalarName, ScalarKind] = {kind.name: kind for kind in _KINDS}

LITERAL_CALLS: Mapping[str, ScalarKind] = {kind.literal_call: kind for kind in _KINDS if kind.literal_call}
"""Word of a literal → its kind."""
