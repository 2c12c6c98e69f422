"""`GraphSql`: the methods of `Graph` that run SQL on a snapshot, by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from omnigraph.errors import InputError
from omnigraph.graph_stored_queries import GraphStoredQueries, find_stored
from omnigraph.operations.requests import QueryText, limits_of
from omnigraph.operations.stoppable import stoppable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.engine.exec.context import Limits
    from omnigraph.engine.result.result import Result
    from omnigraph.operations.sql.connection import QueryView, SqlViews
    from omnigraph.operations.sql.select import SqlParams
    from omnigraph.versioning.model.snapshot import Snapshot
    from omnigraph.versioning.write.repository import At

QueryCall = str | tuple[str, Mapping[str, Any]]
"""A stored query, or a stored query with its parameters."""


class GraphSql(GraphStoredQueries):
    """SQL that reads."""

    def sql(
        self,
        text: str,
        params: SqlParams | None = None,
        *,
        queries: Mapping[str, QueryCall] | None = None,
        blobs: Sequence[str] = (),
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
    ) -> Result:
        """Run one SELECT on a snapshot, by DuckDB; requires the extra `sql`.

        Each node and edge type is a view with the columns `id`, for edges `src` and `dst`, and the properties. Blobs
        are left out unless `blobs` names them, such as "Photo.image". `queries` maps a name to a stored query, or to a
        stored query and its parameters; it is a view of that name. `params` are the values of `?` or `$name`.
        The statement reads no files and changes nothing; `load` and `mutate` write. `timeout`, `cancel` and `limits`
        are as in `query`, and bound the result.
        """
        from omnigraph.operations.sql.select import select

        bounds = limits_of(limits, timeout, cancel)
        views = self._views(queries, blobs, branch, at)
        with stoppable("SQL statement", bounds.cancellation, bounds.timeout_s):
            return select(views, text, params, bounds)

    def duckdb(
        self,
        *,
        queries: Mapping[str, QueryCall] | None = None,
        blobs: Sequence[str] = (),
        branch: str | None = None,
        at: At = None,
    ) -> DuckDBPyConnection:
        """Return a DuckDB connection in memory with the views of `sql`, all at one commit.

        Later writes to the graph do not change the views. Tables that are created on the connection belong to it; rows
        go back into the graph with `load({"Person": con.sql("…")}, mode="merge")`.
        """
        from omnigraph.operations.sql.table_source import Failures

        return self._views(queries, blobs, branch, at).connect(sealed=False, failures=Failures())

    def _views(
        self, queries: Mapping[str, QueryCall] | None, blobs: Sequence[str], branch: str | None, at: At
    ) -> SqlViews:
        from omnigraph.operations.sql.connection import SqlViews, load_duckdb

        load_duckdb()
        snapshot = self._point("export", branch, at)
        views = {name: self._query_view(snapshot, branch, call) for name, call in (queries or {}).items()}
        return SqlViews(self._context, snapshot, blobs, views)

    def _query_view(self, snapshot: Snapshot, branch: str | None, call: QueryCall) -> QueryView:
        """Return a stored query as a view; it runs when the view is first read."""
        import pyarrow as pa

        from omnigraph.operations.sql.connection import QueryView
        from omnigraph.query.params import bind_params
        from omnigraph.schema.arrow import arrow_type

        name, params = (call, {}) if isinstance(call, str) else call
        found = find_stored(self, name, branch, snapshot.commit_id)
        if found.is_mutation:
            raise InputError(f"the stored query '{name}' is a mutation, not a read", code="wrong_kind_of_query")
        context = self._with_rights_of(found)._context
        text = QueryText.of(found.source, name, params)
        plan = context.plans.get_read(snapshot, text, context.visibility_of(snapshot)).plan
        bind_params(plan.params, text.params)
        names = [column.name for column in plan.columns]
        repeated = next((column for column in names if names.count(column) > 1), None)
        if repeated is not None:
            raise InputError(
                f"the stored query '{name}' returns two columns '{repeated}'", hint="rename one of them with 'as'"
            )
        schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in plan.columns])
        run = partial(self.invoke, name, params, branch=branch, at=snapshot.commit_id, expect_mutation=False)
        return QueryView(schema, cast("Any", run))
