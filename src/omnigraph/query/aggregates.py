"""The aggregate functions of the language: a registry with one entry for each.

An entry states how a call is written, which values the function accepts, and the type of its result. The parser, the
type checker, the formatter, `lint` and `explain` read the registry.

To add a function, write its name and entry here, its computation in `engine.exec.reducers`, its Spark expression in
`spark.aggregates`, its row in the reference, its test case, and its rule in the test oracle. The computations match on
`AggregateFunction` exhaustively, so mypy reports a missing one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from omnigraph.fast_dataclass import dataclass
from omnigraph.types import PropertyType

NumericAggregate = Literal["sum", "avg", "median"]
"""The aggregates that are computed from numbers."""
AggregateFunction = Literal["count", "min", "max", "collect"] | NumericAggregate

_I64 = PropertyType("I64")
_U64 = PropertyType("U64")
_F64 = PropertyType("F64")


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """An aggregate over the values of a group; nulls are ignored."""

    name: AggregateFunction
    usage: str
    """How a call is written; messages show it."""
    takes: str
    """The accepted values, in words for messages."""
    accepts: Callable[[PropertyType], bool]
    """Whether values of a type can be aggregated."""
    gives: Callable[[PropertyType], PropertyType]
    """The type of the result for values of a type."""
    accepts_rankings: bool = False
    accepts_null: bool = True
    """Whether the literal `null`, which has no type, can be the argument."""


def _is_ordered(type_: PropertyType) -> bool:
    return not type_.is_list and type_.scalar not in ("Vector", "Blob")


def _sum_type(type_: PropertyType) -> PropertyType:
    """Integers add up to an integer, other numbers to a float."""
    if not type_.is_integer:
        return _F64.with_nullable(True)
    return (_U64 if type_.scalar == "U64" else _I64).with_nullable(True)


def _is_number(type_: PropertyType) -> bool:
    return type_.is_numeric


def _nullable_float(_: PropertyType) -> PropertyType:
    return _F64.with_nullable(True)


def _same(type_: PropertyType) -> PropertyType:
    return type_.with_nullable(True)


AGGREGATES: dict[str, AggregateSpec] = {
    spec.name: spec
    for spec in (
        AggregateSpec("count", "count($x)", "values", lambda _: True, lambda _: _I64, accepts_rankings=True),
        AggregateSpec("sum", "sum($x.number)", "numbers", _is_number, _sum_type),
        AggregateSpec("avg", "avg($x.number)", "numbers", _is_number, _nullable_float),
        AggregateSpec("median", "median($x.number)", "numbers", _is_number, _nullable_float),
        AggregateSpec("min", "min($x.value)", "values with an order", _is_ordered, _same),
        AggregateSpec("max", "max($x.value)", "values with an order", _is_ordered, _same),
        AggregateSpec(
            "collect", "collect($x.value)", "plain values", _is_ordered,
            lambda type_: PropertyType(type_.scalar, is_list=True), accepts_null=False,
        ),
    )
}  # fmt: skip
