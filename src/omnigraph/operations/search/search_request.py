"""The validated arguments of a search, and its queries as text.

A search consists of read queries, one for each searched property: they apply rules for rows, limits, indexes and the
plan cache as any other query does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

from omnigraph.errors import InputError, ParameterError, TypeNotFound
from omnigraph.query.params import bind_params
from omnigraph.query.plan.ir import ParamDecl
from omnigraph.schema.catalog import Catalog, NodeType, Property
from omnigraph.suggestions import did_you_mean
from omnigraph.types import PropertyType

SearchBy = Literal["both", "words", "meaning"]
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "contains", "starts_with", "icontains")
"""The operators of filters."""
LIMIT_MAX = 1_000
DEPTH = 1_000
"""Length of each ranking. The nodes after it are not found."""
TEXT_MAX = 10_000
_ON_LISTS = ("contains",)


class Filter(NamedTuple):
    """A condition on one property."""

    property: str
    operator: str
    value: Any

    def __str__(self) -> str:
        return f"{self.property} {self.operator} {json.dumps(self.value, default=str, ensure_ascii=False)}"


class SearchRequest(NamedTuple):
    """One search."""

    text: str
    types: tuple[str, ...] | None
    by: SearchBy
    filters: tuple[Filter, ...]
    limit: int
    why: bool
    rank_of: str | None


def search_request(
    text: Any,
    types: Sequence[str] | None,
    by: str,
    filters: Any,
    limit: int,
    *,
    why: bool,
    rank_of: str | int | None,
) -> SearchRequest:
    """Return the search that the arguments of a call describe; `InputError` if one is invalid."""
    if not isinstance(text, str) or not text.strip():
        raise InputError("the search text is blank", code="blank_query", hint="give the words to search for")
    if len(text) > TEXT_MAX:
        raise InputError(f"the search text has {len(text):,} characters; the limit is {TEXT_MAX:,}", code="bad_search")
    if by not in get_args(SearchBy):
        raise InputError(
            f"'by' must be both, words or meaning, not '{str(by)[:40]}'",
            code="bad_search",
            hint=did_you_mean(str(by), get_args(SearchBy)),
        )
    if type(limit) is not int or not 1 <= limit <= LIMIT_MAX:
        raise InputError(f"the limit must be an integer from 1 to {LIMIT_MAX} (got {limit!r})", code="bad_search")
    if isinstance(types, str):
        types = (types,)
    named = None if types is None else tuple(dict.fromkeys(types))
    wanted = None if rank_of is None else str(rank_of)
    return SearchRequest(text, named, cast(SearchBy, by), tuple(_filters_of(filters)), limit, why, wanted)


def _filters_of(filters: Any) -> Iterator[Filter]:
    if filters is not None and not isinstance(filters, Mapping):
        raise InputError(
            f"filters are a mapping of properties to values or conditions, not {type(filters).__name__}",
            code="bad_filter",
            hint='write {"year": {">=": 1900}, "kind": "print"}',
        )
    for name, wanted in (filters or {}).items():
        for operator, value in (wanted if isinstance(wanted, Mapping) else {"=": wanted}).items():
            if operator not in OPERATORS:
                raise InputError(
                    f"the filter of '{name}' has an unknown operator '{str(operator)[:40]}'",
                    code="bad_filter",
                    hint=f"the operators are {' '.join(OPERATORS)}",
                )
            if value is None:
                raise InputError(f"the filter of '{name}' compares with null", code="bad_filter")
            yield Filter(str(name), operator, value)


class SearchedType(NamedTuple):
    """A node type that is searched."""

    name: str
    words: tuple[str, ...]
    """Its text properties."""
    meaning: tuple[str, ...]
    """Its vector properties that a text can be compared with."""
    filters: tuple[tuple[Filter, Property], ...]

    def query(
        self,
        returned: str,
        order: str = "",
        *,
        declared: str = "",
        where: str = "",
        only: Sequence[Filter] | None = None,
    ) -> str:
        """Return the text of a query on the type; `only` replaces its filters."""
        chosen = [(f"f{at}", each, of) for at, (each, of) in enumerate(self.filters) if only is None or each in only]
        head = "".join(f", ${name}: {_parameter_type(each, of)}" for name, each, of in chosen)
        conditions = "".join(f" $x.{each.property} {each.operator} ${name}" for name, each, _ in chosen)
        return (
            f"query search($q: String{declared}{head}) {{ match {{ $x: {self.name}{where}{conditions} }} "
            f"return {{ id($x) as id{returned} }} {order} }}"
        )

    def params(self, only: Sequence[Filter] | None = None) -> dict[str, Any]:
        """Return the parameters of the filters."""
        chosen = enumerate(self.filters)
        return {f"f{at}": each.value for at, (each, _) in chosen if only is None or each in only}


def _parameter_type(filter_: Filter, property_: Property) -> str:
    type_ = property_.type
    name = "String" if type_.enum_values is not None else type_.scalar
    return f"[{name}]" if filter_.operator == "in" else name


def searched_types(
    catalog: Catalog, request: SearchRequest, comparable: Mapping[str, Sequence[str]]
) -> tuple[list[SearchedType], list[str]]:
    """Return the types that a search concerns, and notes on those that the filters exclude.

    `comparable` maps each type to its vector properties that a text can be compared with.
    """
    nodes = [_node(catalog, name) for name in request.types] if request.types is not None else [*catalog.nodes.values()]
    known = {name for node in nodes for name in node.properties}
    for each in request.filters:
        if each.property not in known:
            raise InputError(
                f"no searched type has the property '{each.property[:80]}' of a filter",
                code="bad_filter",
                hint=did_you_mean(each.property, known),
            )
    found, notes = [], []
    for node in nodes:
        words = tuple(name for name, property_ in node.properties.items() if _is_text(property_))
        meaning = tuple(comparable.get(node.name, ()))
        if not words and not meaning:
            if request.types is not None:
                notes.append(f"{node.name} has no text and no vector to search")
            continue
        missing = [each.property for each in request.filters if each.property not in node.properties]
        if missing:
            notes.append(f"{node.name} is not searched: it has no property '{missing[0]}'")
            continue
        filters = tuple((each, _checked(node, each)) for each in request.filters)
        found.append(SearchedType(node.name, words, meaning, filters))
    return found, notes


def _node(catalog: Catalog, name: Any) -> NodeType:
    node = catalog.nodes.get(name) if isinstance(name, str) else None
    if node is None:
        raise TypeNotFound(f"there is no node type '{str(name)[:80]}'", hint=did_you_mean(str(name), catalog.nodes))
    return node


def _is_text(property_: Property) -> bool:
    type_ = property_.type
    return type_.scalar == "String" and not type_.is_list and type_.enum_values is None


def _checked(node: NodeType, filter_: Filter) -> Property:
    """Return the property of a filter; `InputError` if its values cannot be compared."""
    property_ = node.properties[filter_.property]
    type_ = property_.type
    fits = type_.scalar not in ("Vector", "Blob") and type_.is_list == (filter_.operator in _ON_LISTS)
    if type_.scalar == "String" and not type_.is_list and filter_.operator == "contains":
        fits = True
    if filter_.operator in ("starts_with", "icontains") and type_.scalar != "String":
        fits = False
    if not fits:
        raise InputError(
            f"'{filter_.operator}' does not apply to '{node.name}.{filter_.property}' of type {type_}",
            code="bad_filter",
        )
    name = _parameter_type(filter_, property_)
    declared = ParamDecl("value", PropertyType(type_.scalar, is_list=filter_.operator == "in"))
    try:
        bind_params((declared,), {"value": filter_.value})
    except ParameterError as error:
        problem = error.message.removeprefix(f"parameter 'value' ({name}): ")
        raise InputError(f"the filter of '{filter_.property}': {problem}", code="bad_filter", hint=error.hint) from None
    return property_
