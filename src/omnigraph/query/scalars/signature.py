"""Entries of the registry of scalar functions: name, arguments, result, computation.

An entry defines a function completely. The parser reads the number of arguments, the type checker the types, the engine
the computation. By default a null argument makes the result null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from omnigraph.fast_dataclass import dataclass
from omnigraph.query.check.literals import compatible
from omnigraph.query.plan import ir
from omnigraph.types import PropertyType

REPEATS_MAX = 16
"""The maximum number of arguments of a variadic function."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The accepted types of an argument: words for messages, and a predicate."""

    words: str
    accepts: Callable[[PropertyType], bool]
    units: tuple[str, ...] = ()
    """The bare words that are accepted instead of a value."""


@dataclass(slots=True)
class Columns:
    """The arguments of a call for a batch of rows."""

    arrays: list[Any]
    call: ir.Function
    constants: list[Any] = field(default_factory=list)
    """The value of each argument that is equal in all rows, else `VARIES`."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.arrays[0])


VARIES = object()
"""Marks an argument that differs between rows."""

Compute = Callable[[Columns], Any]
Typing = Callable[[Sequence[ir.Value]], PropertyType | None]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar function."""

    name: str
    usage: str
    """How a call is written; messages show it."""
    takes: tuple[Kind, ...]
    gives: PropertyType | Typing
    """The type of the result, or a rule that returns None if the argument types do not fit together."""
    compute: Compute
    """Returns the results of a call as an Arrow array."""
    summary: str
    """The summary line of the reference."""
    least: int = -1
    """The number of required arguments; -1 if all are required."""
    repeats: bool = False
    """The last argument can be repeated."""
    no_result: str | None = None
    """When a call has no result: null in a read, an error in a stored value."""
    null_result: bool = True
    """A null argument makes the result null."""

    @property
    def fewest(self) -> int:
        """The minimum number of arguments."""
        return len(self.takes) if self.least < 0 else self.least

    @property
    def most(self) -> int:
        """The maximum number of arguments."""
        return REPEATS_MAX if self.repeats else len(self.takes)

    def kind(self, position: int) -> Kind:
        """Return the accepted types of the argument at a position."""
        return self.takes[min(position, len(self.takes) - 1)]

    def result(self, values: Sequence[ir.Value]) -> PropertyType | None:
        """Return the type of a call with these arguments; None if they do not fit together."""
        found = self.gives(values) if callable(self.gives) else self.gives
        if found is None or not self.null_result:
            return found
        return found.with_nullable(self.no_result is not None or any(value.type.nullable for value in values))


def _plain(*scalars: str) -> Callable[[PropertyType], bool]:
    return lambda type_: not type_.is_list and type_.scalar in scalars


TEXT = Kind("a String", lambda type_: type_.is_text)
INTEGER = Kind("an integer", lambda type_: type_.is_integer)
NUMBER = Kind("a number", lambda type_: type_.is_numeric)
LIST = Kind("a list", lambda type_: type_.is_list)
TEXT_OR_LIST = Kind("a String or a list", lambda type_: type_.is_text or type_.is_list)
DAY = Kind("a Date or a DateTime", _plain("Date", "DateTime"))
MOMENT = Kind("a DateTime", _plain("DateTime"))
ANY = Kind("a value", lambda type_: type_.scalar != "Blob")
PRINTABLE = Kind(
    "a String, a number, a Bool, a Date or a DateTime", lambda type_: not type_.is_list and type_.scalar != "Vector"
)


# -- types -------------------------------------------------------------------------------------------


def is_null(value: ir.Expr) -> bool:
    """True if an expression is the literal `null`."""
    return isinstance(value, ir.Const) and value.value is None


def is_empty(value: ir.Expr) -> bool:
    """True if an expression is the literal `[]`, whose items have no type."""
    return isinstance(value, ir.Const) and value.value == []


def is_unsigned(value: ir.Value) -> bool:
    """True if a number cannot be negative, by its type or as a constant."""
    if value.type.scalar in ("U32", "U64"):
        return True
    return isinstance(value, ir.Const) and value.type.is_numeric and value.value >= 0


def common_type(types: Sequence[PropertyType]) -> PropertyType:
    """Return the common type of mutually compatible types."""
    first = types[0]
    scalars = {type_.scalar for type_ in types}
    plain = PropertyType(first.scalar, is_list=first.is_list, dim=first.dim)
    if len(scalars) == 1:
        return plain
    if scalars & {"F32", "F64"}:
        return PropertyType("F64", is_list=first.is_list)
    return PropertyType("U64" if "U64" in scalars else "I64", is_list=first.is_list)


def type_of_all(values: Sequence[ir.Value]) -> PropertyType | None:
    """Return the common type of these values, ignoring nulls; None if there is none. `[]` fits every list type."""
    known = [value for value in values if not is_null(value)]
    typed = [value for value in known if not is_empty(value)] or known
    if len(typed) < len(known) and not typed[0].type.is_list:
        return None
    if not typed or any(not compatible(value.type, typed[0].type) or value.type.scalar == "Blob" for value in typed):
        return None
    floats = any(value.type.scalar in ("F32", "F64") for value in typed)
    wide = any(value.type.scalar == "U64" for value in typed)
    if wide and not floats and not all(is_unsigned(value) for value in typed):
        return None
    return common_type([value.type for value in typed])


def same_number(values: Sequence[ir.Value]) -> PropertyType:
    """Return F64 for a float, U64 for a U64, else I64."""
    type_ = values[0].type
    return ir.F64 if type_.is_float else PropertyType("U64") if type_.scalar == "U64" else ir.I64


def same_type(values: Sequence[ir.Value]) -> PropertyType:
    """Return the type of the first argument; an enum becomes a String."""
    type_ = values[0].type
    return PropertyType(type_.scalar, is_list=type_.is_list, dim=type_.dim)


def item_type(values: Sequence[ir.Value]) -> PropertyType:
    """Return the nullable type of the items of a list."""
    return values[0].type.item.with_nullable(True)
