"""Marks: what annotations of Python cannot say of a property or type.

A mark of a property is in `Annotated`, one of a type in the tuple `__omnigraph__` of its class. In a pydantic model,
marks refuse the values that the store refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from omnigraph.errors import ValueFormatError
from omnigraph.scalar_types.registry import ScalarName
from omnigraph.types import PropertyType
from omnigraph.values import read_json


class Mark:
    """A statement about a property or type."""


class _Checked(Mark):
    """A mark that refuses values."""

    def check(self, value: Any) -> None:
        """Raise `ValueError` for a value that the store refuses."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 (pydantic calls this)

        def checked(value: Any) -> Any:
            if value is not None:
                self.check(value)
            return value

        return core_schema.no_info_after_validator_function(checked, handler(source))


@dataclass(frozen=True)
class _Scalar(_Checked):
    scalar: ClassVar[ScalarName]

    def check(self, value: Any) -> None:
        """Refuse a number outside the range of the type."""
        _read(value, PropertyType(self.scalar, is_list=isinstance(value, list)))


class I32(_Scalar):
    """An integer of 32 bits."""

    scalar = "I32"


class I64(_Scalar):
    """An integer of 64 bits, the default of `int`."""

    scalar = "I64"


class U32(_Scalar):
    """An integer of 32 bits without sign."""

    scalar = "U32"


class U64(_Scalar):
    """An integer of 64 bits without sign."""

    scalar = "U64"


class F32(_Scalar):
    """A floating-point number of 32 bits."""

    scalar = "F32"


class F64(_Scalar):
    """A floating-point number of 64 bits, the default of `float`."""

    scalar = "F64"


@dataclass(frozen=True)
class Vector(_Checked):
    """`Vector(n)`; `embed` names the property whose text is embedded, `model` the model."""

    dim: int
    embed: str | None = None
    model: str | None = None

    def check(self, value: Any) -> None:
        """Refuse a vector of another length."""
        _read(value, PropertyType("Vector", dim=self.dim))


@dataclass(frozen=True)
class Range(_Checked):
    """`@range`: inclusive bounds; `of` names the property if the mark is one of a type."""

    low: float | None = None
    high: float | None = None
    of: str | None = field(default=None, kw_only=True)

    def check(self, value: Any) -> None:
        """Refuse a number outside the bounds."""
        above = self.low is None or value >= self.low
        below = self.high is None or value <= self.high
        if not (above and below):
            bounds = f"{'' if self.low is None else self.low}..{'' if self.high is None else self.high}"
            raise ValueError(f"{value} is not in the range {bounds}")


@dataclass(frozen=True)
class Check(_Checked):
    """`@check`: the text must contain a match of the pattern; `of` as in `Range`."""

    pattern: str
    of: str | None = field(default=None, kw_only=True)

    def check(self, value: Any) -> None:
        """Refuse a text without a match."""
        import pyarrow as pa  # noqa: PLC0415 (large)
        import pyarrow.compute as pc  # noqa: PLC0415

        if not pc.match_substring_regex(pa.array([str(value)]), pattern=self.pattern)[0].as_py():
            raise ValueError(f"'{str(value)[:80]}' does not match '{self.pattern}'")


class _Columns(Mark):
    """A mark of the property that it stands at, or of the named properties if it is a mark of a type."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.columns))})"


class Key(_Columns):
    """`@key`."""


class Unique(_Columns):
    """`@unique`."""


class Index(_Columns):
    """`@index`."""


@dataclass(frozen=True)
class Card(Mark):
    """`@card`: bounds of the number of edges at a source node."""

    least: int = 0
    most: int | None = None


@dataclass(frozen=True)
class Valid(Mark):
    """`@valid`: the properties that hold the period of a row."""

    start: str
    end: str


@dataclass(frozen=True)
class Renamed(Mark):
    """`@rename_from`: the former name of the type or property."""

    before: str


@dataclass(frozen=True)
class Named(Mark):
    """The name in the schema, if it is not that of the class or field."""

    name: str


@dataclass(frozen=True)
class Inherited(Mark):
    """The property is that of an interface, and the field repeats it."""


class Note(Mark):
    """An annotation that is kept as metadata: `@name("value", argument="…")`."""

    def __init__(self, name: str, value: str | None = None, **arguments: str) -> None:
        self.name = name
        self.value = value
        self.arguments = arguments


@dataclass(frozen=True)
class Mixin(Mark):
    """The class is an interface."""


class Implements(Mark):
    """The interfaces of a node type that its class does not inherit from."""

    def __init__(self, *interfaces: type) -> None:
        self.interfaces = interfaces


@dataclass(frozen=True)
class Ends(Mark):
    """The class is an edge type between two node types."""

    source: type
    target: type


def _read(value: Any, type_: PropertyType) -> None:
    try:
        read_json(value, type_)
    except ValueFormatError as error:
        raise ValueError(str(error)) from None
