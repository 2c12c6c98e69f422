"""`Graph`, the embedded interface of an opened graph.

`Graph` bundles arguments into requests and passes them to its parts: `GraphQueries`, `GraphIO`, `GraphHistory`,
`GraphTables`, `GraphMaintenance`. A handle has a branch and an actor, is cheap, thread-safe, and holds no lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

import pyarrow as pa

from omnigraph.bulk_options import BulkOptions
from omnigraph.errors import InputError
from omnigraph.graph_purges import GraphPurges
from omnigraph.graph_queries import executor_of
from omnigraph.operations.requests import MutationRequest, PageRequest, Params, QueryText, ReadRequest, limits_of
from omnigraph.operations.stoppable import stoppable, stoppable_items
from omnigraph.versioning.model.manifest_objects import MAIN

if TYPE_CHECKING:
    from omnigraph.blob import Blob
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.engine.exec.context import Limits
    from omnigraph.engine.result.result import Result
    from omnigraph.engine_choice import Rejects
    from omnigraph.notebook.schema_view import SchemaText
    from omnigraph.notebook.tables import PlanText
    from omnigraph.operations.analysis.request import Analysis
    from omnigraph.operations.authorization.access import Access
    from omnigraph.operations.embed.embed_missing import FillResult
    from omnigraph.operations.load.load_result import LoadResult
    from omnigraph.operations.migrate import SchemaApplyResult
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.pipeline.export import ExportFormat
    from omnigraph.pipeline.runner import Watch
    from omnigraph.query.lint import LintReport
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.migrate import SchemaPlan
    from omnigraph.table_key import TypeKind
    from omnigraph.versioning.upkeep.maintenance import CleanupStats, TableStats
    from omnigraph.versioning.upkeep.verify import Problem
    from omnigraph.versioning.write.recovery import Recovered
    from omnigraph.versioning.write.repository import At


Model = TypeVar("Model")


class Graph(GraphPurges):
    """A graph in a folder or bucket, bound to one branch."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"Graph({self.uri!r}, branch={self.branch!r})"

    def _repr_html_(self) -> str:
        return self._tables.html(self._point("read", None), f"{self.uri} on branch {self.branch}")

    def on(self, branch: str) -> Graph:
        """Return a handle of the same graph bound to another branch, with the same access.

        An unknown branch raises `BranchNotFound`, unless the caller may not read a branch of that name.
        """
        name, access = self._name(branch), self._context.access
        if access is None or access.decide("read", name).allowed:
            self._repository.state().get_head(name)
        return Graph(self._context, branch=name, actor=self.actor)

    def with_access(self, access: Access) -> Graph:
        """Return a handle of the same graph that acts as the actor of an access and does only what it allows.

        The access of a handle cannot be replaced.
        """
        if self._context.access is not None:
            raise InputError("the handle has an access already", hint="call with_access on the graph without one")
        return Graph(self._context.with_access(access), branch=self.branch)

    def with_metadata(self, metadata: Mapping[str, Any]) -> Graph:
        """Return a handle of the same graph that adds entries to the metadata of every commit.

        The entries are also recorded when a branch or tag is created, changed or deleted. They are JSON values and
        replace entries of the same name of this handle.
        """
        from omnigraph.operations.commit_metadata import check_metadata

        merged = {**self._context.metadata, **check_metadata(metadata)}
        return Graph(self._context.with_metadata(merged), branch=self.branch, actor=self.actor)

    @property
    def schema(self) -> SchemaText:
        """The text of the schema, as it was applied."""
        from omnigraph.notebook.schema_view import SchemaText

        return SchemaText(self.snapshot().schema.source)

    def catalog(self, branch: str | None = None, at: At = None) -> Catalog:
        """Return the catalog (types and properties) of the schema at a point in time."""
        snapshot = self._context.snapshot(branch or self.branch, at)
        return self._context.catalog(snapshot)

    def plan_schema(self, text: str | Path, *, allow_data_loss: bool = False, branch: str | None = None) -> SchemaPlan:
        """Return the migration steps from the branch's schema to another; nothing is written.

        Drops of rows or values are refused in the plan, unless `allow_data_loss`, and `losses` lists them.
        `broken_rules` of the plan lists the rules for rows of the policy that would become invalid.
        """
        from omnigraph.operations.migrate import plan_change, read_schema

        snapshot = self._point("read", branch)
        self._context.check_whole("a schema plan", snapshot)
        source, name = read_schema(text)
        check = self._context.schema_check()
        return plan_change(snapshot, source, name=name, allow_data_loss=allow_data_loss, check=check)

    def apply_schema(
        self,
        text: str | Path,
        *,
        allow_data_loss: bool = False,
        allow_policy_breakage: bool = False,
        allow_query_breakage: bool = False,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> SchemaApplyResult:
        """Replace the branch's schema and migrate its tables as one commit.

        A schema that drops rows or values is refused, unless `allow_data_loss`; `revert` of the commit restores them.
        A schema that would make rules for rows of the policy invalid is refused, unless `allow_policy_breakage`, and
        one that would make stored queries invalid, unless `allow_query_breakage`.
        The schema of a graph of a cluster is changed by `cluster apply`, unless the cluster declares `schema: open`.
        `if_commit` and `idempotency_key` are as in `mutate`.
        """
        from omnigraph.operations.cluster_graph import check_schema_change
        from omnigraph.operations.migrate import apply_change, read_schema

        expected = {"if_commit": if_commit, "idempotency_key": idempotency_key}
        options = self._options(branch, actor, message, action="schema_apply", **expected)
        check_schema_change(self._repository.location)
        source, name = read_schema(text)
        check = self._context.schema_check(allowed=allow_policy_breakage)
        return apply_change(
            self._repository,
            source,
            options,
            name=name,
            allow_data_loss=allow_data_loss,
            check=check,
            allow_query_breakage=allow_query_breakage,
        )

    @overload
    def query(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,
        page: int | None = None,
        after: str | None = None,
    ) -> Result: ...

    @overload
    def query(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,
        page: int | None = None,
        after: str | None = None,
        into: type[Model],
    ) -> list[Model]: ...

    def query(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,
        page: int | None = None,
        after: str | None = None,
        into: type[Any] | None = None,
    ) -> Any:
        """Run one read query, given as text or as the path of a `.gq` file, on one snapshot.

        A text is a complete `.gq` source or a bare `match … return …`, whose parameters take their types from their
        values. A mapping in second position is `params`.
        `timeout` is in seconds; `cancel` lets another thread stop the query; `limits` bounds its rows and memory.
        With `engine="spark"` the query runs as joins on Spark, for graphs larger than this machine: on `spark`, a
        session or `omnigraph.spark.SessionOptions`, else on the active session, else on a new one. With `auto` it does
        so if its rows exceed the memory budget and Spark is configured; `memory` never uses Spark.
        With `page` the result holds at most that many rows, and `next` holds the cursor of the following page, if any.
        Passed as `after`, the cursor continues at the same commit, regardless of later writes.
        With `into`, the rows are returned as a list of objects of that class, as by `Result.into`.
        """
        query, bounds = QueryText.of(source, name, params), limits_of(limits, timeout, cancel)
        paged, executor = PageRequest.of(page, after), executor_of(engine, spark)
        request = ReadRequest(query, self._branch(branch), at, bounds, paged, executor, spark, watch)
        result = self._queries.read(request)
        return result if into is None else result.into(into)

    def pages(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        page: int = 100,
        after: str | None = None,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
    ) -> Iterator[Result]:
        """Yield the pages of a query, all at the commit of the first; `timeout` applies to each page."""
        query, bounds = QueryText.of(source, name, params), limits_of(limits, timeout, cancel)
        request = ReadRequest(query, self._branch(branch), at, bounds, PageRequest.of(page, after), "auto")
        yield from self._queries.pages(request)

    def explain(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
    ) -> PlanText:
        """Return the plan of a query as text: operators, estimated rows, and the indexes and caches they use."""
        snapshot = self._context.snapshot(branch or self.branch, at)
        return self._queries.explain(snapshot, QueryText.of(source, name, params))

    def profile(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
    ) -> PlanText:
        """Run a query and return its plan as text, with actual rows, milliseconds and methods of each operator."""
        query, bounds = QueryText.of(source, name, params), limits_of(limits, timeout, cancel)
        return self._queries.profile(ReadRequest(query, self._branch(branch), at, bounds, executor="pipeline"))

    def lint(self, source: str | Path, *, branch: str | None = None, language: str = "gq") -> LintReport:
        """Check every query of a text or file against the branch's schema; with `language="pg"`, check a schema."""
        return self._queries.lint(self._context.snapshot(branch or self.branch), source, language)

    def analyze(
        self,
        algorithm: str,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        weight: str | None = None,
        damping: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        write: str | Mapping[str, str] | None = None,
        branch: str | None = None,
        at: At = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        engine: str = "memory",
        spark: Any = None,
        watch: Watch | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Analysis:
        """Run a graph algorithm on node and edge types, by default on all.

        The algorithms are pagerank, betweenness, closeness, degrees, components, communities, label_propagation, cores,
        topological_order, spanning_tree, similarity and embeddings. `weight` names an edge property. `parameters` are
        those of the algorithm, such as `{"samples": 1000}`; `damping` is that of pagerank.
        With `write`, the values become properties of nodes, those of spanning_tree of edges, as one commit: the name of
        the property, or a mapping of column to property. Only changed values are written. `engine` and `spark` are as
        in `query`, `if_commit` and `idempotency_key` as in `mutate`, `cancel` and `timeout` as in `load`. A repetition
        computes the values again.
        """
        from omnigraph.operations.analysis.request import AnalysisRequest

        self._check_actor(actor)
        request = AnalysisRequest.of(algorithm, nodes, edges, weight, damping, parameters)
        bulk = BulkOptions(engine, spark, watch)
        if write is not None and at is not None:
            raise InputError("a past state cannot be written to", hint="omit 'at', or create a branch there")
        with stoppable("analysis", cancel, timeout, writes=write is not None):
            if write is None:
                return self._queries.analyze(request, self._point("read", branch, at), bulk)
            self._context.check_head(self._branch(branch))
            options = self._guarded_options(
                branch, actor, message, if_commit=if_commit, idempotency_key=idempotency_key
            )
            return self._queries.analyze_and_write(request, write, options, bulk)

    def mutate(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> MutationResult:
        """Run one mutation query, given as text or as the path of a `.gq` file, as one commit.

        Arguments are as in `query`. A text is a complete `.gq` source or bare statements.
        With `if_commit`, the change is published only if the head of the branch is that commit; otherwise
        `PreconditionFailed` is raised. A repeated call with the same `idempotency_key`, by the same actor, changes
        nothing and returns the result of the first; another request with the key raises `KeyReused`.
        With `dry_run`, the statements run and are checked, and nothing is written: `tables` of the result has the
        numbers of rows that would be inserted, updated and deleted, and `idempotency_key` is ignored.
        `cancel` and `timeout` stop the mutation until its publish begins, as in `load`.
        """
        from omnigraph.operations.mutate import mutate

        options = self._guarded_options(branch, actor, message, if_commit=if_commit, idempotency_key=idempotency_key)
        with stoppable("mutation", cancel, timeout, writes=True):
            return mutate(self._context, MutationRequest(QueryText.of(source, name, params), options, dry_run))

    def load(
        self,
        data: Any,
        *,
        mode: str | None = None,
        missing: str = "keep",
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        rejects: Rejects = None,
        embed: bool = True,
        engine: str = "auto",
        spark: Any = None,
        job_id: str | None = None,
        if_commit: str | None = None,
        watch: Watch | None = None,
        delimiter: str | None = None,
        null: str | Sequence[str] = (),
        date_format: str | None = None,
        columns: Mapping[str, str | None] | None = None,
        skip_null_ends: bool = False,
        format: Literal["neo4j", "graphml"] | None = None,
        array_delimiter: str = ";",
        dry_run: bool = False,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> LoadResult:
        """Load records as one commit: a list of records, paths or patterns of files, or DataFrames or paths by type.

        `mode` is required: `merge`, `append` or `overwrite`.
        In mode `merge` a property that is absent from a record keeps its value; `missing="null"` sets it to null.
        With a list in `rejects`, wrong records are appended to it and the others are loaded; a path writes them to a
        file, JSONL or Parquet by its extension. Without `embed`, vectors are not computed from their texts.
        `engine` is `auto`, `memory` or `spark`, with equal results; `spark` is as in `query`. A second load with the
        same `job_id` writes nothing, leaves `rejects` unchanged and returns the result of the first; it is the
        idempotency key of the load. `if_commit` is as in `mutate`. `watch` is called with the progress.
        `delimiter` separates the cells of CSV files; by default it is taken from the header. `null` has texts of cells
        without quotes that are null, besides the empty cell. `date_format` is the form of Date and DateTime cells, as
        in `datetime.strptime`; by default it is ISO 8601.
        `columns` maps columns of tables to properties, `from`, `to` or `id`, and to None to leave them out; a name such
        as `Person:zip` is limited to one type. With `skip_null_ends`, rows of edge types without an end are left out.
        `format` is that of files with nodes and edges of several types: `neo4j`, a folder or files of Neo4j admin CSV,
        or `graphml`, which the ending `.graphml` implies. `array_delimiter` separates the items of a list in a cell of
        Neo4j admin CSV.
        With `dry_run`, the records are read and validated, and nothing is written.
        `cancel` lets another thread stop the load, and `timeout` stops it after that many seconds: until its publish
        begins, with `Cancelled` or `QueryTimeout` and nothing written; a load that publishes runs to its end.
        """
        from omnigraph.operations.load.load_request import LoadRequest, check_missing, check_mode
        from omnigraph.table_format import TableFormat

        options = self._guarded_options(branch, actor, message, if_commit=if_commit, idempotency_key=job_id)
        table_format = TableFormat.of(
            delimiter,
            null,
            date_format,
            columns,
            skip_null_ends=skip_null_ends,
            graph_format=format,
            array_delimiter=array_delimiter,
        )
        request = LoadRequest(check_mode(mode), options, check_missing(missing), embed=embed, format=table_format)
        request = replace(request, dry_run=dry_run)
        with stoppable("load", cancel, timeout, writes=True):
            return self._io.load(data, request, BulkOptions(engine, spark, watch), rejects)

    def ingest(
        self,
        data: Any,
        *,
        branch: str,
        from_branch: str = MAIN,
        mode: str = "merge",
        missing: str = "keep",
        actor: str | None = None,
        message: str | None = None,
        rejects: Rejects = None,
        embed: bool = True,
        engine: str = "auto",
        spark: Any = None,
        job_id: str | None = None,
        if_commit: str | None = None,
        watch: Watch | None = None,
        delimiter: str | None = None,
        null: str | Sequence[str] = (),
        date_format: str | None = None,
        columns: Mapping[str, str | None] | None = None,
        skip_null_ends: bool = False,
        format: Literal["neo4j", "graphml"] | None = None,
        array_delimiter: str = ";",
        dry_run: bool = False,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> LoadResult:
        """Load records as `load` does, onto a branch that is created from `from_branch` if it does not exist.

        If the branch does not exist, `if_commit` is compared with the head of `from_branch`.
        """
        from omnigraph.operations.load.load_request import LoadRequest, check_missing, check_mode
        from omnigraph.table_format import TableFormat

        # An empty name is invalid here; it does not select the branch of the handle.
        options = self._guarded_options(branch, actor, message, if_commit=if_commit, idempotency_key=job_id)
        options = options if branch else replace(options, branch=branch)
        table_format = TableFormat.of(
            delimiter,
            null,
            date_format,
            columns,
            skip_null_ends=skip_null_ends,
            graph_format=format,
            array_delimiter=array_delimiter,
        )
        request = LoadRequest(check_mode(mode), options, check_missing(missing), embed=embed, format=table_format)
        request = replace(request, dry_run=dry_run)
        request = replace(request, from_branch=self._base(options.branch, from_branch))
        with stoppable("load", cancel, timeout, writes=True):
            result = self._io.load(data, request, BulkOptions(engine, spark, watch), rejects)
        return replace(result, base_branch=from_branch.strip()) if request.from_branch is None else result

    def embed(
        self,
        *,
        types: Sequence[str] | None = None,
        again: bool = False,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> FillResult:
        """Compute the missing vectors of texts as one commit; with `again`, compute all vectors.

        `if_commit` and `idempotency_key` are as in `mutate`.
        """
        expected = {"if_commit": if_commit, "idempotency_key": idempotency_key}
        options = self._guarded_options(branch, actor, message, action="maintain", **expected)
        return self._io.embed(options, types=types, again=again)

    def export(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: At = None,
        format: ExportFormat = "jsonl",
        partitioned: bool = False,
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Iterator[dict[str, Any]] | int:
        """Return an iterator of the records of a snapshot, or write them to a JSONL file and return their number.

        `types` names types, or tables such as `node:Person`.
        Other formats (`parquet`, `csv`, `arrow`) write a new folder with one file per type. With `partitioned`, there
        is one file per fragment. `duckdb` writes one new database file with a table per type. The job runs on the
        engine that a load of this size would use. `neo4j` writes a new folder of Neo4j admin CSV, `graphml` and `gexf`
        write one file, in this process and in constant memory. `cancel` and `timeout` stop the export, an iterator
        while it is read; files of a stopped export are removed.
        """
        from omnigraph.pipeline.export import ExportRequest

        snapshot = self._point("export", branch, at)
        if out is None:
            return stoppable_items("export", cancel, timeout, lambda: self._io.records(snapshot, types))
        with stoppable("export", cancel, timeout):
            bulk = BulkOptions(engine, spark, watch)
            match format:
                case "duckdb":
                    if partitioned:
                        raise InputError("a DuckDB file is not partitioned", hint="leave out 'partitioned'")
                    return self._io.export_database(snapshot, os.fspath(out), types, bulk)
                case "neo4j" | "graphml" | "gexf":
                    if partitioned:
                        raise InputError(f"an export to {format} is not partitioned", hint="leave out 'partitioned'")
                    return self._io.export_graph(snapshot, format, os.fspath(out), types, bulk)
                case _:
                    request = ExportRequest(os.fspath(out), format, types, partitioned)
                    return self._io.export(snapshot, request, bulk)

    def get(
        self,
        type_name: str,
        id: str | int,
        *,
        branch: str | None = None,
        at: At = None,
        kind: TypeKind | None = None,
    ) -> dict[str, Any] | None:
        """Return one node or edge by its id, None if it does not exist. The id of a keyed node is its key.

        `kind`, "node" or "edge", selects the type if a node and an edge type have the name; by default it is the node.
        """
        return self._tables.row(self._point("read", branch, at), type_name, id, kind)

    def entity_at(self, type_name: str, id: str | int, at: At) -> dict[str, Any] | None:
        """Return one node or edge at a point in time, None if it did not exist."""
        return self._tables.row(self._point("read", None, at), type_name, id)

    def blob(
        self,
        type_name: str,
        id: str | int,
        property: str,
        *,
        branch: str | None = None,
        at: At = None,
        kind: TypeKind | None = None,
    ) -> Blob:
        """Return a Blob value, which is read in ranges; `NotFound` if the row does not exist or the value is null.

        `kind` is as in `get`.
        """
        return self._tables.blob(self._point("read", branch, at), type_name, id, property, kind)

    def to_arrow(
        self,
        type_name: str,
        *,
        columns: Sequence[str] | None = None,
        branch: str | None = None,
        at: At = None,
        kind: TypeKind | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> pa.Table:
        """Return all rows of a type as an Arrow table; by default all columns, ids first, then properties by name.

        `kind` is as in `get`.
        """
        with stoppable("read", cancel, timeout):
            return self._tables.to_arrow(self._point("export", branch, at), type_name, columns, kind)

    def to_batches(
        self,
        type_name: str,
        *,
        columns: Sequence[str] | None = None,
        branch: str | None = None,
        at: At = None,
        kind: TypeKind | None = None,
        batch_rows: int = 65_536,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> pa.RecordBatchReader:
        """Return a reader of the rows of `to_arrow` in batches; a few batches are in memory at a time.

        A batch has at most `batch_rows` rows and about 8 MiB. `cancel` and `timeout` stop the reader while it is read.
        The metadata of the schema contain the commit as `graph_commit_id`.
        """
        snapshot = self._point("export", branch, at)
        schema, batches = self._tables.to_batches(snapshot, type_name, columns, batch_rows, kind)
        items = stoppable_items("read", cancel, timeout, lambda: batches)
        schema = schema.with_metadata({"graph_commit_id": snapshot.commit_id})
        return pa.RecordBatchReader.from_batches(schema, items)

    def to_spark(
        self,
        type_name: str,
        *,
        spark: Any = None,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        branch: str | None = None,
        at: At = None,
    ) -> Any:
        """Return rows of a type as a DataFrame on the given or active session; SQL `filter` applies before Spark."""
        return self._tables.to_spark(self._point("export", branch, at), type_name, columns, filter, spark)

    def to_networkx(self, types: Sequence[str] | None = None, *, branch: str | None = None, at: At = None) -> Any:
        """Return the graph as a `networkx.MultiDiGraph` of (type, id) nodes, with properties as attributes."""
        return self._tables.to_networkx(self._point("export", branch, at), types)

    def to_rustworkx(
        self, types: Sequence[str] | None = None, *, branch: str | None = None, at: At = None
    ) -> tuple[Any, dict[tuple[str, str], int]]:
        """Return the graph as a `rustworkx.PyDiGraph` with properties as payloads, and the index of each (type, id).

        `types` is as in `to_networkx`.
        """
        return self._tables.to_rustworkx(self._point("export", branch, at), types)

    def to_sparse(
        self, edge: str, *, weight: str | None = None, branch: str | None = None, at: At = None
    ) -> tuple[Any, pa.Array, pa.Array]:
        """Return the edges of a type as a `scipy.sparse.csr_array`, with the ids of its rows and columns.

        A value is the number of parallel edges, or the sum of the property `weight`, in which null counts as 0.
        """
        return self._tables.to_sparse(self._point("export", branch, at), edge, weight)

    def to_pyg(
        self,
        types: Sequence[str] | None = None,
        *,
        features: Mapping[str, Sequence[str]] | None = None,
        labels: Mapping[str, str] | None = None,
        branch: str | None = None,
        at: At = None,
    ) -> Any:
        """Return the graph as `HeteroData` of PyTorch Geometric.

        `types` is as in `to_networkx`. `features` names number, Bool and Vector properties by type, which become `x` of
        nodes and `edge_attr` of edges; null is 0. `labels` names one property by type, which becomes `y`: a class per
        text, with the names in `classes`; null is -1, or NaN if the property is a float. `ids` has the ids.
        """
        return self._tables.to_pyg(self._point("export", branch, at), types, features, labels)

    def ensure_indices(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> list[TableStats]:
        """Build the indexes and search structures that the tables lack; `idempotency_key` is as in `mutate`."""
        options = self._guarded_options(branch, actor, message, action="maintain", idempotency_key=idempotency_key)
        return self._maintenance.ensure_indices(options)

    def optimize(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> list[TableStats]:
        """Compact the tables of a branch, update its indexes and build its search structures.

        `idempotency_key` is as in `mutate`.
        """
        options = self._guarded_options(branch, actor, message, action="maintain", idempotency_key=idempotency_key)
        return self._maintenance.optimize(options)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        confirm: bool = False,
        actor: str | None = None,
        message: str | None = None,
    ) -> list[CleanupStats]:
        """Delete expired branches and remove table versions that only expired commits use.

        Without `confirm`, nothing is removed, and the versions that would be are reported. `actor` and `message` are
        recorded with the deletion of branches.
        """
        request = self._ref_request(actor, message, None)
        return self._maintenance.cleanup(request, keep=keep, older_than=older_than, confirm=confirm)

    def recover(self) -> list[Recovered]:
        """Finish or undo the writes of crashed writers, remove the files of dead bulk jobs, and list both."""
        return self._maintenance.recover()

    def verify(self, *, deep: bool = False) -> list[Problem]:
        """Return every violated invariant, none for a sound graph; with `deep`, verify the digest of every file too."""
        return self._maintenance.verify(deep=deep)
