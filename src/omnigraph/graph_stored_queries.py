"""`GraphStoredQueries`: the methods of `Graph` that store, list and call stored queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from omnigraph.errors import Denied, Hint, InputError, NotFound
from omnigraph.graph_branches import GraphBranches
from omnigraph.operations.commit_metadata import DEFINER
from omnigraph.operations.requests import MutationRequest, PageRequest, QueryText, ReadRequest, limits_of
from omnigraph.operations.stoppable import stoppable

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.engine.exec.context import Limits
    from omnigraph.engine.result.result import Result
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.operations.stored_queries import QueryChange, QueryValidation
    from omnigraph.query.stored_queries import StoredQuery
    from omnigraph.versioning.model.snapshot import Snapshot
    from omnigraph.versioning.write.repository import At


class GraphStoredQueries(GraphBranches):
    """The stored queries of a graph."""

    def queries(self, branch: str | None = None, at: At = None) -> list[StoredQuery]:
        """Return the stored queries of a branch, or of a point of its history, that the caller may call, by name."""
        from omnigraph.operations.stored_queries import is_visible, may_invoke, queries_of

        context = self._context
        snapshot = context.snapshot(branch or self.branch, at)
        found = [query for _, query in sorted(queries_of(snapshot).queries.items())]
        access = context.access
        if access is not None:
            found = [query for query in found if may_invoke(access, query)]
        return [query for query in found if is_visible(context, snapshot, query)]

    def validate_queries(
        self, schema: str | Path | None = None, *, branch: str | None = None, at: At = None
    ) -> QueryValidation:
        """Check the stored queries that the caller may call against the schema of their point, or against another one.

        `schema` is the text or the file of the other schema. Nothing is written.
        """
        from omnigraph.operations.migrate import read_schema
        from omnigraph.operations.stored_queries import validate_queries
        from omnigraph.schema.check import compile_schema

        found = self.queries(branch, at)
        desired = compile_schema(*read_schema(schema)) if schema is not None else None
        return validate_queries(self._context, self._context.snapshot(branch or self.branch, at), found, desired)

    def store_query(
        self,
        *sources: str | Path,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> QueryChange:
        """Store the queries of texts or `.gq` files on a branch, as one commit.

        Each query is checked against the schema of the branch. A stored query of the same name is replaced. `if_commit`
        and `idempotency_key` are as in `mutate`.
        """
        from omnigraph.operations.authorization.difference_rights import check_storing
        from omnigraph.operations.stored_queries import read_files, store_queries

        queries = read_files(sources, actor or self.actor)
        self._check_actor(actor)
        check_storing(self._context, queries, lambda: self._context.snapshot(branch or self.branch))
        options = self._guarded_options(branch, actor, message, if_commit=if_commit, idempotency_key=idempotency_key)
        return store_queries(self._context, queries, options)

    def delete_query(
        self,
        *names: str,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> QueryChange:
        """Delete stored queries of a branch, as one commit; older commits keep them."""
        from omnigraph.operations.stored_queries import delete_queries

        if not names:
            raise InputError("no stored query is named")
        for name in names:
            check_query_name(name)
        self._check_actor(actor)
        self._context.check("query_store")
        options = self._guarded_options(branch, actor, message, if_commit=if_commit, idempotency_key=idempotency_key)
        return delete_queries(self._context, names, options)

    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        expect_mutation: bool | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
        page: int | None = None,
        after: str | None = None,
    ) -> Result | MutationResult:
        """Call a stored query: a read returns its rows, a mutation makes one commit.

        The query is that of the branch, or of `at`. `expect_mutation` refuses a query of the other kind. Limits that
        the query declares apply as well; the smaller ones hold. The other arguments are as in `query` and `mutate`; a
        read has no effect that `idempotency_key` could protect.
        """
        found = find_stored(self, name, branch, at)
        bounds = _bounded(limits_of(limits, timeout, cancel), found)
        if expect_mutation is not None and found.is_mutation is not expect_mutation:
            raise _wrong_kind(found)
        handle = self._with_rights_of(found)
        text = QueryText.of(found.source, name, params)
        if not found.is_mutation:
            if if_commit is not None:
                raise InputError(f"the stored query '{name}' is a read: it takes no condition")
            request = ReadRequest(text, self._branch(branch), at, bounds, PageRequest.of(page, after), "auto")
            return handle._queries.read(request)
        if at is not None or page is not None or after is not None:
            raise InputError(f"the stored query '{name}' is a mutation: it has no point in time and no pages")
        from omnigraph.operations.mutate import mutate

        options = handle._guarded_options(
            branch or self.branch, None, message, if_commit=if_commit, idempotency_key=idempotency_key
        )
        if handle is not self:
            options = replace(options, actor=self.actor, metadata={**options.metadata, DEFINER: found.actor})
        with stoppable("mutation", bounds.cancellation, bounds.timeout_s, writes=True):
            return mutate(handle._context, MutationRequest(text, options))

    def _stored(self, name: str, branch: str | None, at: At) -> StoredQuery:
        """Return a stored query that the caller may call; a denied one does not differ from one that is unknown.

        A caller without the right to any stored query gets `Denied`, whether or not the name exists.
        """
        from omnigraph.operations.stored_queries import facts_of, is_visible, queries_of
        from omnigraph.query.stored_queries import unknown_query

        access, on = self._context.access, self._branch(branch)
        if access is None and not self._context.has_row_rules:
            return queries_of(self._repository.read_snapshot(on, at)).get(name)
        snapshot: Snapshot | None = None
        try:
            # The rights of the query decide on the branch, and these can be those of another actor.
            snapshot = self._repository.read_snapshot(on, at)
            found = queries_of(snapshot).queries.get(name)
        except (NotFound, InputError):
            found = None
        try:
            if access is not None:
                access.check("invoke_query", name=name, query=None if found is None else facts_of(found))
        except Denied:
            assert access is not None
            access.check_possible("invoke_query")
            raise unknown_query(name) from None
        if snapshot is None or found is None or not is_visible(self._context, snapshot, found):
            # A branch that the caller may not read does not differ from one that does not exist.
            self._context.snapshot(on, at)
            raise unknown_query(name)
        return found

    def _with_rights_of(self, query: StoredQuery) -> Self:
        """Return the handle that runs a query: this one, or one with the rights of the actor who stored the query."""
        access = self._context.access
        if access is None or not query.runs_as_definer:
            return self
        if query.actor is None:
            raise Denied(f"the stored query '{query.name}' runs as the actor who stored it, and none is recorded")
        return type(self)(self._context.with_access(access.as_definer(query.actor)), branch=self.branch)


def find_stored(graph: GraphStoredQueries, name: str, branch: str | None = None, at: At = None) -> StoredQuery:
    """Return a stored query that the caller may call; an unknown one and a denied one are the same error."""
    return graph._stored(check_query_name(name), branch, at)


def stored_commit(graph: GraphStoredQueries, query: StoredQuery, branch: str | None, at: At) -> str:
    """Return the commit that a call of a stored query reads, by the rights that the query runs with."""
    handle = graph._with_rights_of(query)
    return handle._context.snapshot(handle._branch(branch), at).commit_id


def check_query_name(name: str) -> str:
    """Return the name of a stored query; `InputError` if it is not a text."""
    if not isinstance(name, str):
        raise InputError(f"the name of a stored query is a str, not {type(name).__name__}")
    return name


def _wrong_kind(query: StoredQuery) -> InputError:
    kind, other, right = ("mutation", "read", "change") if query.is_mutation else ("read", "mutation", "read")
    return InputError(
        f"the stored query '{query.name}' is a {kind}, not a {other}",
        code="wrong_kind_of_query",
        hint=Hint(
            f"call it with expect_mutation={query.is_mutation}", cli=f"run it with 'omnigraph {right} {query.name}'"
        ),
    )


def _bounded(limits: Limits, query: StoredQuery) -> Limits:
    """Return the smaller of the limits of a call and those that a query declares."""
    timeout_ms, rows = query.timeout_ms, query.rows_max
    if timeout_ms is not None and (limits.timeout_s is None or timeout_ms / 1000 < limits.timeout_s):
        limits = replace(limits, timeout_s=timeout_ms / 1000)
    return limits if rows is None or rows >= limits.rows_max else replace(limits, rows_max=rows)
