"""Stored queries: the named queries that are kept with a graph.

A branch has one set of them. A set is immutable; it is stored as a JSON document whose hash identifies it. A query is
kept as text, with the comments above it. Its annotations are its options, so the text is all there is to it, apart from
the actor who stored it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, cast

from omnigraph.errors import InputError, OmniGraphError, QueryNotFound
from omnigraph.query.compile import compile_query
from omnigraph.query.plan.ir import AnyIR
from omnigraph.query.syntax.ast import Param, QueryCheck, QueryDefinition
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.scalar_types.registry import KINDS, ScalarName
from omnigraph.schema.catalog import Catalog
from omnigraph.suggestions import did_you_mean

QUERY_BYTES_MAX = 64 << 10
QUERIES_MAX = 10_000
_PARSED_MAX = 4_096


@dataclass(frozen=True)
class StoredQuery:
    """A query that is kept with a graph."""

    name: str
    source: str
    actor: str | None = None
    """The actor who stored it; None if it was stored without an actor."""

    @property
    def definition(self) -> QueryDefinition:
        """The syntax tree."""
        return _parsed(self.source)

    @property
    def is_mutation(self) -> bool:
        """True if the query changes the graph."""
        return self.definition.is_mutation

    @property
    def options(self) -> Mapping[str, str | int | bool | QueryCheck | None]:
        """The annotations, by name."""
        return {meta.name: meta.value for meta in self.definition.metas}

    @property
    def description(self) -> str | None:
        """What the query is for."""
        return self._text("description")

    @property
    def instruction(self) -> str | None:
        """When to use the query."""
        return self._text("instruction")

    @property
    def tool_name(self) -> str:
        """The name of the query as a tool."""
        return self._text("tool_name") or self.name

    @property
    def is_exposed(self) -> bool:
        """True if the query is listed as a tool."""
        return self.options.get("expose", True) is True

    @property
    def runs_as_definer(self) -> bool:
        """True if the query runs with the rights of the actor who stored it."""
        return "definer" in self.options

    @property
    def timeout_ms(self) -> int | None:
        """The longest duration of a call in milliseconds."""
        return self._number("timeout_ms")

    @property
    def rows_max(self) -> int | None:
        """The largest number of rows at any point of the match."""
        return self._number("rows_max")

    @property
    def check(self) -> QueryCheck | None:
        """What a proposal expects of the result; None if it does not run the query."""
        found = self.options.get("check")
        return found if isinstance(found, QueryCheck) else None

    @property
    def head(self) -> str:
        """The name and the parameters, as written."""
        params = ", ".join(f"${param.name.text}: {_written_type(param)}" for param in self.definition.params)
        return f"{self.name}({params})"

    def to_json(self, *, source: bool = True) -> dict[str, Any]:
        """Return the JSON form, with or without the text."""
        check = self.check
        optional = {
            "description": self.description,
            "instruction": self.instruction,
            "timeout_ms": self.timeout_ms,
            "rows_max": self.rows_max,
            "check": check and {"expect": check.expect, "count": check.count, "required": check.required},
            "source": self.source if source else None,
        }
        return {
            "name": self.name,
            "tool_name": self.tool_name,
            "mutation": self.is_mutation,
            "expose": self.is_exposed,
            "definer": self.runs_as_definer,
            "actor_id": self.actor,
            "params": [_parameter(param) for param in self.definition.params],
            **{name: value for name, value in optional.items() if value is not None},
        }

    def compile(self, catalog: Catalog) -> AnyIR:
        """Return the plan of the query, or raise its errors."""
        return compile_query(catalog, self.source, self.name, source_name=f"stored query {self.name}")

    def _text(self, name: str) -> str | None:
        found = self.options.get(name)
        return found if isinstance(found, str) else None

    def _number(self, name: str) -> int | None:
        found = self.options.get(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else None


@dataclass(frozen=True)
class BrokenQuery:
    """A stored query that a schema does not permit."""

    name: str
    message: str


@dataclass(frozen=True)
class QueryClash:
    """A stored query that both sides of a merge changed; None if a side deleted it."""

    name: str
    base: str | None
    ours: str | None
    theirs: str | None
    definers: tuple[str | None, str | None] = (None, None)
    """The actors of both sides if only these differ."""

    @property
    def message(self) -> str:
        """Both texts."""
        mine, other = self.definers
        sides = (_side("ours", self.ours, mine), _side("theirs", self.theirs, other))
        return "\n".join([f"stored query '{self.name}' was changed on both sides", *sides])


@dataclass(frozen=True)
class QuerySet:
    """The stored queries of a branch, by name."""

    queries: Mapping[str, StoredQuery] = field(default_factory=dict)

    @classmethod
    def read(cls, document: str, digest: str) -> QuerySet:
        """Return the set of a stored document, whose digest is `hash` of the set."""
        return _read(_StoredDocument(document, digest))

    @cached_property
    def document(self) -> str:
        """The stored form; empty for an empty set."""
        if not self.queries:
            return ""
        stored: dict[str, Any] = {
            name: {"source": one.source, **({} if one.actor is None else {"actor": one.actor})}
            for name, one in sorted(self.queries.items())
        }
        return json.dumps({"queries": stored}, ensure_ascii=False, separators=(",", ":"))

    @cached_property
    def hash(self) -> str:
        """Identifies the set; empty for an empty set."""
        return sha256(self.document.encode()).hexdigest()[:32] if self.queries else ""

    def get(self, name: str) -> StoredQuery:
        """Return a query, or raise `QueryNotFound`."""
        found = self.queries.get(name)
        if found is None:
            raise unknown_query(name, did_you_mean(name, self.queries))
        return found

    def with_queries(self, queries: Iterable[StoredQuery]) -> QuerySet:
        """Return the set with some queries added or replaced; a query with the same text stays as it is.

        A query that runs with the rights of its actor is replaced if another actor stores it.
        """
        found = dict(self.queries)
        for query in queries:
            known = found.get(query.name)
            if known is None or not (_is_same(known, query) or (query.actor is None and known.source == query.source)):
                found[query.name] = query
        if len(found) > QUERIES_MAX:
            raise InputError(f"a graph has at most {QUERIES_MAX:,} stored queries", code="too_many_queries")
        return QuerySet(found)

    def without(self, names: Iterable[str]) -> QuerySet:
        """Return the set without some queries, which must exist."""
        gone = {self.get(name).name for name in names}
        return QuerySet({name: query for name, query in self.queries.items() if name not in gone})

    def find_tool(self, query: StoredQuery) -> StoredQuery | None:
        """Return another exposed query with the tool name of an exposed query; None if there is none."""
        if not query.is_exposed:
            return None
        named = (
            one
            for name, one in self.queries.items()
            if name != query.name and (name == query.tool_name or "tool_name" in one.source)
        )
        return next((one for one in named if one.tool_name == query.tool_name and one.is_exposed), None)

    def broken(self, catalog: Catalog) -> list[BrokenQuery]:
        """Return the queries that a schema does not permit, with the first line of the error of each."""
        found: list[BrokenQuery] = []
        for name, query in sorted(self.queries.items()):
            try:
                query.compile(catalog)
            except OmniGraphError as error:
                found.append(BrokenQuery(name, error.message))
        return found


def read_stored(text: str, name: str = "<query>", *, actor: str | None = None) -> list[StoredQuery]:
    """Return the queries of a `.gq` text, each with the comments above it."""
    found: dict[str, StoredQuery] = {}
    end = 0
    for definition in parse_queries(text, name).queries:
        if definition.is_bare:
            raise InputError("a stored query has a name", hint="write: query name($parameter: Type) { … }")
        start, end = end, definition.span.end
        own = text[start:end].strip()
        if len(own.encode()) > QUERY_BYTES_MAX:
            size = f"{QUERY_BYTES_MAX >> 10} KiB"
            raise InputError(
                f"the text of query '{definition.name.text}' is larger than {size}", code="query_too_large"
            )
        if definition.name.text in found:
            raise InputError(f"'{name}' holds two queries '{definition.name.text}'", code="duplicate_query")
        found[definition.name.text] = StoredQuery(definition.name.text, own, actor)
    if not found:
        raise QueryNotFound(f"'{name}' holds no query")
    return list(found.values())


def merge_queries(base: QuerySet, ours: QuerySet, theirs: QuerySet) -> tuple[QuerySet, list[QueryClash]]:
    """Return the queries of a merge, and those that both sides changed in different ways, which stay as in `ours`."""
    merged = dict(ours.queries)
    clashes: list[QueryClash] = []
    for name in sorted({*base.queries, *ours.queries, *theirs.queries}):
        before, mine, other = (one.queries.get(name) for one in (base, ours, theirs))
        if _is_same(other, before) or _is_same(other, mine):
            continue
        if not _is_same(mine, before):
            clashes.append(_clash(name, before, mine, other))
        elif other is None:
            del merged[name]
        else:
            merged[name] = other
    return QuerySet(merged), clashes


def changed_queries(before: QuerySet, after: QuerySet) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield the name and both texts of each query that differs; None if there is none."""
    for name in sorted({*before.queries, *after.queries}):
        old, new = before.queries.get(name), after.queries.get(name)
        if not _is_same(old, new):
            yield name, _text_of(old), _text_of(new)


def unknown_query(name: str, hint: str | None = None) -> QueryNotFound:
    """Return the error of a call of a query that does not exist, or that the caller may not call."""
    return QueryNotFound(f"there is no stored query '{name}'", hint=hint)


def _written_type(param: Param) -> str:
    name = param.type_name.text if param.dim is None else f"{param.type_name.text}({param.dim})"
    return f"{f'[{name}]' if param.is_list else name}{'?' if param.nullable else ''}"


def _parameter(param: Param) -> dict[str, Any]:
    """Return the JSON form of a parameter."""
    found = KINDS.get(cast("ScalarName", param.type_name.text))
    kind = found.result_kind if found is not None else "string"
    return {
        "name": param.name.text,
        "type": _written_type(param),
        "kind": "list" if param.is_list else kind,
        **({"item_kind": kind} if param.is_list else {}),
        **({} if param.dim is None else {"vector_dim": param.dim}),
        "nullable": param.nullable,
    }


def _is_same(one: StoredQuery | None, other: StoredQuery | None) -> bool:
    """Return True if two queries have one text, and run with the rights of one actor if they run as their definer."""
    if one is None or other is None:
        return one is other
    return one.source == other.source and (one.actor == other.actor or not one.runs_as_definer)


def _clash(name: str, before: StoredQuery | None, mine: StoredQuery | None, other: StoredQuery | None) -> QueryClash:
    texts = (_text_of(before), _text_of(mine), _text_of(other))
    if mine is None or other is None or mine.source != other.source:
        return QueryClash(name, *texts)
    return QueryClash(name, *texts, definers=(mine.actor, other.actor))


def _text_of(query: StoredQuery | None) -> str | None:
    return None if query is None else query.source


def _side(side: str, source: str | None, definer: str | None) -> str:
    if source is None:
        return f"{side}: deleted"
    return f"{side}:\n{source}" if definer is None else f"{side}, stored by '{definer}':\n{source}"


@lru_cache(_PARSED_MAX)
def _parsed(source: str) -> QueryDefinition:
    return parse_queries(source).queries[0]


class _StoredDocument:
    """A document that is known by its digest: to compare long texts takes as long as a call."""

    __slots__ = ("digest", "text")

    def __init__(self, text: str, digest: str) -> None:
        self.text = text
        self.digest = digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _StoredDocument) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(64)
def _read(document: _StoredDocument) -> QuerySet:
    if not document.text:
        return QuerySet()
    stored: Mapping[str, Any] = json.loads(document.text)["queries"]
    return QuerySet({name: StoredQuery(name, one["source"], one.get("actor")) for name, one in stored.items()})
