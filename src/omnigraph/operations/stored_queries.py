"""Stored queries of a branch: store, delete, list and call them, and keep them valid when the schema changes.

The set of a branch is part of its commits, as the schema is. A query is checked against the schema of the branch when
it is stored. A schema change, or a merge, that would break one is refused unless the caller permits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BranchNotFound, CompileError, Denied, Hint, InputError, SchemaChangeError
from omnigraph.operations.requests import QueryText
from omnigraph.query.stored_queries import (
    BrokenQuery,
    QuerySet,
    StoredQuery,
    changed_queries,
    read_stored,
    unknown_query,
)
from omnigraph.storage.files.input_files import read_source
from omnigraph.suggestions import listing
from omnigraph.versioning.model.manifest_objects import QueriesRecord
from omnigraph.versioning.write.idempotency import hash_request
from omnigraph.versioning.write.write import write_once

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph.operations.authorization.access import Access
    from omnigraph.operations.graph_context import GraphContext
    from omnigraph.policy.statements import QueryFacts
    from omnigraph.schema.catalog import Catalog
    from omnigraph.versioning.model.snapshot import Snapshot
    from omnigraph.versioning.write.transaction import Transaction, WriteOptions


@dataclass(frozen=True)
class QueryChange:
    """The result of storing or deleting queries; without a change there is no commit."""

    commit_id: str | None
    stored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "commit_id": self.commit_id,
            "stored": list(self.stored),
            "deleted": list(self.deleted),
            "unchanged": list(self.unchanged),
        }


@dataclass(frozen=True)
class QueryValidation:
    """The result of checking stored queries against a schema."""

    queries: int
    """The number of queries that were checked."""
    broken: tuple[BrokenQuery, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the schema permits every query."""
        return not self.broken

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        breakages = [{"query": one.name, "message": one.message} for one in self.broken]
        return {"ok": self.ok, "queries": self.queries, "breakages": breakages, "warnings": list(self.warnings)}


def validate_queries(
    context: GraphContext, snapshot: Snapshot, queries: Sequence[StoredQuery], desired: Catalog | None
) -> QueryValidation:
    """Check queries that the caller may call against the schema of a snapshot, or against a desired one."""
    if desired is not None:
        broken = QuerySet({query.name: query for query in queries}).broken(desired)
        return QueryValidation(len(queries), tuple(broken), tuple(_vector_parameters(queries)))
    # A query that runs with other rights is checked against the whole schema, of which the caller learns no names.
    definer = {query.name: query for query in queries if query.runs_as_definer}
    own = QuerySet({query.name: query for query in queries if query.name not in definer})
    broken = own.broken(context.catalog(snapshot))
    hides = context.visibility_of(snapshot) is not None
    for one in QuerySet(definer).broken(context.catalogs.of(snapshot)):
        broken.append(BrokenQuery(one.name, "it does not fit the schema") if hides else one)
    broken.sort(key=lambda one: one.name)
    return QueryValidation(len(queries), tuple(broken), tuple(_vector_parameters(queries)))


def _vector_parameters(queries: Sequence[StoredQuery]) -> Iterator[str]:
    for query in queries:
        for param in query.definition.params if query.is_exposed else ():
            if param.dim is not None:
                yield f"'{query.name}' is exposed as a tool and takes a vector: '${param.name.text}'"


def queries_of(snapshot: Snapshot) -> QuerySet:
    """Return the stored queries of a snapshot."""
    record = snapshot.queries
    return QuerySet() if record is None else QuerySet.read(record.document, record.hash)


def is_visible(context: GraphContext, snapshot: Snapshot, query: StoredQuery) -> bool:
    """Return True if a stored query exists for the caller.

    A query that runs with the rights of another actor exists at a point of the past if the head of the branch still has
    it. Under rules for rows, another query that does not fit the visible types and properties does not exist.
    """
    if context.access is not None and query.runs_as_definer and not is_in_force(context, snapshot, query):
        return False
    visibility = context.visibility_of(snapshot)
    if visibility is None or query.runs_as_definer:
        return True
    try:
        context.plans.get(snapshot, QueryText.of(query.source, query.name, None), visibility)
    except CompileError:
        return False
    return True


def is_in_force(context: GraphContext, snapshot: Snapshot, query: StoredQuery) -> bool:
    """Return True if the head of the branch of a snapshot has a query of it, stored by the same actor."""
    state = context.repository.state()
    head = state.find_head(snapshot.branch)
    if head is None or head.queries_hash == snapshot.queries_hash:
        return head is not None
    return queries_of(context.repository.at_head(state, snapshot.branch)).queries.get(query.name) == query


def facts_of(query: StoredQuery) -> QueryFacts:
    """Return what a policy can read of a stored query."""
    from omnigraph.policy.statements import QueryFacts  # noqa: PLC0415 (only for a policy)

    return QueryFacts(changes=query.is_mutation, definer=query.runs_as_definer)


def query_facts(read: Callable[[str], Iterable[StoredQuery]], name: str, branch: str) -> QueryFacts | None:
    """Return what a policy can read of a query of a branch, by a function that lists its queries.

    A branch that does not exist, or that the caller may not read, has none.
    """
    try:
        found = next((query for query in read(branch) if query.name == name), None)
    except (BranchNotFound, Denied):
        return None
    return None if found is None else facts_of(found)


def may_invoke(access: Access, query: StoredQuery) -> bool:
    """Return True if a caller may call a stored query."""
    return access.decide("invoke_query", name=query.name, query=facts_of(query)).allowed


def read_files(sources: Sequence[str | Path], actor: str | None) -> list[StoredQuery]:
    """Return the queries of texts and files."""
    if not sources:
        raise InputError("no query is given", hint="give texts or .gq files")
    found: dict[str, StoredQuery] = {}
    for source in sources:
        text, name = read_source(source, "<query>")
        for query in read_stored(text, name, actor=actor):
            if query.name in found:
                raise InputError(f"two queries are named '{query.name}'", code="duplicate_query")
            found[query.name] = query
    return list(found.values())


def store_queries(context: GraphContext, queries: Sequence[StoredQuery], options: WriteOptions) -> QueryChange:
    """Store queries on a branch as one commit. A query of the same name is replaced."""
    names = [query.name for query in queries]
    request = hash_request("query_store", options.branch, *(part for one in queries for part in (one.name, one.source)))

    def change(known: QuerySet, catalog: Catalog) -> QuerySet:
        for query in queries:
            _check_annotations(query)
            query.compile(catalog)
        after = known.with_queries(queries)
        for query in queries:
            _check_tool_name(context, after, query)
        return after

    return _changed(context, change, replace(options, kind="query_store", request_hash=request), names)


RESERVED_NAMES = frozenset({"validate"})
"""Names that are paths of the HTTP interface."""


def _check_annotations(query: StoredQuery) -> None:
    """Refuse a name that HTTP could not call, and a check that a proposal could not run."""
    if query.name in RESERVED_NAMES:
        raise InputError(
            f"a stored query cannot be named '{query.name}'",
            code="reserved_query_name",
            hint=f"POST /queries/{query.name} has another meaning; choose another name",
        )
    if query.check is None:
        return
    if query.is_mutation:
        raise InputError(f"'{query.name}' changes the graph; a query with @check is a read", code="bad_check")
    if query.definition.params:
        raise InputError(f"'{query.name}' has parameters; a query with @check takes no parameters", code="bad_check")


def _check_tool_name(context: GraphContext, queries: QuerySet, query: StoredQuery) -> None:
    """Refuse two exposed queries with one tool name: a list of tools could show one of them only."""
    other = queries.find_tool(query)
    if other is None:
        return
    # A caller with a policy may not know the other query.
    used = "another stored query" if context.access is not None else f"the stored query '{other.name}'"
    raise InputError(
        f"'{query.name}' cannot be stored: {used} has the tool name '{query.tool_name}'; nothing was stored",
        code="duplicate_tool_name",
        hint='give it another name with @tool_name("…"), or hide it with @expose(false)',
    )


def delete_queries(context: GraphContext, names: Sequence[str], options: WriteOptions) -> QueryChange:
    """Delete stored queries of a branch as one commit."""
    request = hash_request("query_delete", options.branch, *names)

    def change(known: QuerySet, _: Catalog) -> QuerySet:
        if context.access is not None:
            # A hint would contain names of queries that the caller may not call.
            for name in names:
                if name not in known.queries:
                    raise unknown_query(name)
        return known.without(names)

    return _changed(context, change, replace(options, kind="query_delete", request_hash=request), names)


def _changed(
    context: GraphContext,
    change: Callable[[QuerySet, Catalog], QuerySet],
    options: WriteOptions,
    names: Sequence[str],
) -> QueryChange:
    changed: dict[str, str | None] = {}

    def prepare(transaction: Transaction) -> None:
        snapshot = transaction.snapshot
        known = queries_of(snapshot)
        after = change(known, context.catalog(snapshot))
        changed.clear()
        changed.update((name, new) for name, _, new in changed_queries(known, after))
        if changed:
            transaction.set_queries(record_of(after))
        transaction.options = replace(transaction.options, result={"queries": dict.fromkeys(changed)})

    written = write_once(context.repository, prepare, options)
    if written.earlier is not None:
        done = set(written.earlier.result.get("queries", ()))
        commit = written.earlier.commit
        deletes = options.kind == "query_delete"
        stored = () if deletes else tuple(name for name in names if name in done)
        return QueryChange(commit.id if commit else None, stored, tuple(names) if deletes else ())
    return QueryChange(
        written.commit.id if written.commit else None,
        tuple(sorted(name for name, new in changed.items() if new is not None)),
        tuple(sorted(name for name, new in changed.items() if new is None)),
        tuple(sorted({*names} - changed.keys())),
    )


def record_of(queries: QuerySet) -> QueriesRecord:
    """Return the stored form of a set."""
    return QueriesRecord(queries.hash, queries.document)


def check_queries(before: Snapshot, catalog: Catalog, queries: QuerySet, changed: Catalog, *, what: str) -> None:
    """Raise `SchemaChangeError` if a change breaks stored queries; those that were broken before are left out.

    `before` has the schema `catalog`; the change, which `what` names, sets the given queries and the schema `changed`.
    """
    broken = queries.broken(changed)
    if not broken:
        return
    known = queries_of(before)
    earlier = {one.name for one in known.broken(catalog) if known.queries[one.name] == queries.queries[one.name]}
    broken = [one for one in broken if one.name not in earlier]
    if broken:
        raise breaks_queries(broken, what)


def breaks_queries(broken: Sequence[BrokenQuery], what: str) -> SchemaChangeError:
    """Return the error of a change that would break stored queries."""
    first = broken[0]
    names = listing(one.name for one in broken)
    return SchemaChangeError(
        f"{what} would break the stored {'query' if len(broken) == 1 else 'queries'} {names}: "
        f"'{first.name}': {first.message}; nothing was changed",
        code="breaks_stored_queries",
        hint=Hint(
            "store queries that fit the new schema, delete these, or pass allow_query_breakage=True",
            cli="store queries that fit the new schema, delete these, or add --allow-query-breakage",
        ),
    )
