"""Metadata filters of LlamaIndex as conditions of the query language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.graph_stores.omnigraph.growth import packed
from llama_index.graph_stores.omnigraph.type_map import MappedNode

from omnigraph.errors import InputError

_COMPARISONS = {
    FilterOperator.EQ: "=",
    FilterOperator.NE: "!=",
    FilterOperator.GT: ">",
    FilterOperator.GTE: ">=",
    FilterOperator.LT: "<",
    FilterOperator.LTE: "<=",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "not in",
    FilterOperator.CONTAINS: "contains",
    FilterOperator.TEXT_MATCH: "contains",
    FilterOperator.TEXT_MATCH_INSENSITIVE: "icontains",
}

_PYTHON: Mapping[str, type | tuple[type, ...]] = {
    "Bool": bool,
    "Date": (date, str),
    "DateTime": (date, str),
    **dict.fromkeys(("I32", "I64", "U32", "U64", "F32", "F64"), (int, float)),
}
"""Property type → the Python types that it can be compared with; by default texts."""


class Conditions:
    """The conditions of filters on the nodes `$n` of one type, and their parameters."""

    def __init__(self, type_: MappedNode) -> None:
        self._type = type_
        self.params: dict[str, Any] = {}

    def of(self, filters: MetadataFilters | None) -> str | None:
        """Return the text of the conditions; None if no node of the type can satisfy them."""
        if filters is None or not filters.filters:
            return ""
        parts = [
            self.of(each) if isinstance(each, MetadataFilters) else self._condition(each) for each in filters.filters
        ]
        known = [part for part in parts if part is not None]
        condition = filters.condition or FilterCondition.AND
        if condition == FilterCondition.OR:
            return f"({' or '.join(known)})" if known else None
        if len(known) < len(parts):
            return None
        joined = f"({' and '.join(known)})"
        return f"not {joined}" if condition == FilterCondition.NOT else joined

    def equal(self, key: str, value: Any) -> str | None:
        """Return the condition that a property equals a value; None if no node of the type can satisfy it."""
        name = self._type.find(key)
        if name is None or value is None:
            return None
        if name in self._type.json:
            return f"$n.{name} = {self._param(packed(value))}"
        if name in self._type.lists:
            if not isinstance(value, (list, tuple)) or not all(self._is_comparable(name, item) for item in value):
                return None
            items = [f"$n.{name} contains {self._param(item)}" for item in value]
            return f"({' and '.join([f'length($n.{name}) = {len(value)}', *items])})"
        return f"$n.{name} = {self._param(value)}" if self._is_comparable(name, value) else None

    def among(self, key: str, values: Sequence[Any]) -> str | None:
        """Return the condition that a property is one of some values; None if the type does not have it."""
        name = self._type.find(key)
        return None if name is None else f"$n.{name} in {self._param(list(values))}"

    def _condition(self, filter_: MetadataFilter) -> str | None:
        """Return one condition; a property that the type does not have is null, so the condition is not true."""
        name, operator = self._type.find(filter_.key), filter_.operator
        if operator == FilterOperator.IS_EMPTY:
            if name is None:
                return "id($n) is not null"
            empty = f" or length($n.{name}) = 0" if name in self._type.lists else ""
            return f"($n.{name} is null{empty})"
        if name is None:
            return None
        values = filter_.value if isinstance(filter_.value, list) else [filter_.value]
        if not all(self._is_comparable(name, value) for value in values):
            return None
        if operator in (FilterOperator.ANY, FilterOperator.ALL):
            word = " or " if operator == FilterOperator.ANY else " and "
            return f"({word.join(f'$n.{name} contains {self._param(value)}' for value in values)})" if values else None
        sign = _COMPARISONS.get(operator)
        if sign is None:
            raise InputError(f"the filter operator '{operator.value}' is not supported", code="bad_filter")
        return f"$n.{name} {sign} {self._param(filter_.value)}"

    def _is_comparable(self, name: str, value: Any) -> bool:
        """Return True if a property can be compared with a value."""
        return isinstance(value, _PYTHON.get(self._type.scalars[name], str)) and (
            self._type.scalars[name] == "Bool" or not isinstance(value, bool)
        )

    def _param(self, value: Any) -> str:
        name = f"filter_{len(self.params)}"
        self.params[name] = value
        return f"${name}"
