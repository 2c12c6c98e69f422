"""`Graph`, the embedded face: composes, decides nothing.

A handle is bound to a branch and an actor; `on` gives the same graph bound to another branch. Handles are
cheap, may be shared between threads, and hold no lock.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from inspect import isfunction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from omnigraph.engine.cache import disk_cache
from omnigraph.engine_choice import BulkOptions, solving
from omnigraph.errors import InputError
from omnigraph.graph_history import row_id
from omnigraph.graph_queries import Asking
from omnigraph.notebook.tables import side_by_side
from omnigraph.notebook.tables import table as html_table
from omnigraph.operations.analytics import Analysis, AnalysisRequest, analyze, analyze_and_write
from omnigraph.operations.create import create_graph
from omnigraph.operations.embed_missing import FillResult, fill_missing
from omnigraph.operations.graph_context import GraphContext, Place
from omnigraph.operations.indexing import wanted_indexes
from omnigraph.operations.migrate import SchemaApplyResult, apply_change, plan_change
from omnigraph.operations.mutate import MutationResult, mutate
from omnigraph.operations.networkx_export import to_networkx
from omnigraph.operations.requests import MutationRequest, Params, QueryText
from omnigraph.pipeline.orphan_jobs import sweep
from omnigraph.pipeline.runner import Watch
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.migrate import SchemaPlan
from omnigraph.schema.notebook_view import SchemaText, picture_of
from omnigraph.storage.files.input_files import read_source
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.upkeep import maintenance, verify
from omnigraph.versioning.upkeep.verify import EdgeEnds, Expected
from omnigraph.versioning.write import recovery
from omnigraph.versioning.write.repository import At, Repository
from omnigraph.versioning.write.transaction import WriteOptions


class Graph(Asking):
    """A graph on a folder or in a bucket, seen from one branch."""

    def __init__(self, context: GraphContext, *, branch: str = MAIN, actor: str | None = None) -> None:
        self._context = context
        self._repository = context.repository
        self._catalogs = context.catalogs
        self._embedder = context.embedder
        self._environ = context.environ
        self._fetch = context.fetch
        self.branch = branch
        self.actor = actor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __repr__(self) -> str:
        return f"Graph({self.uri!r}, branch={self.branch!r})"

    def _repr_html_(self) -> str:
        snapshot = self.snapshot()
        rows = [(key, table.pin.row_count) for key, table in snapshot.tables.items()]
        caption = f"{self.uri} on branch {self.branch}, commit {snapshot.commit_id}"
        return side_by_side(html_table(("table", "rows"), rows, caption=caption), picture_of(self.catalog()))

    @property
    def uri(self) -> str:
        """Where the graph is."""
        return self._repository.location.uri

    @property
    def newest_version(self) -> int:
        """The newest version of the manifest: it grows with every write to any branch."""
        return self._repository.state().version

    def on(self, branch: str) -> Graph:
        """The same graph bound to another branch."""
        self._repository.state().get_head(branch)
        return Graph(self._context, branch=branch, actor=self.actor)

    # -- schema ----------------------------------------------------------------------------------

    @property
    def schema(self) -> SchemaText:
        """The schema's text, as it was accepted."""
        return SchemaText(self.snapshot().schema.source)

    def catalog(self, branch: str | None = None, at: At = None) -> Catalog:
        """What the schema meant at a point in time."""
        return self._catalogs.of(self.snapshot(branch, at))

    def plan_schema(self, text: str | Path, *, allow_data_loss: bool = False, branch: str | None = None) -> SchemaPlan:
        """The steps from the branch's schema to another; nothing is written."""
        source, name = read_source(text, "<schema>")
        return plan_change(self.snapshot(branch), source, name=name, allow_data_loss=allow_data_loss)

    def apply_schema(
        self,
        text: str | Path,
        *,
        allow_data_loss: bool = False,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> SchemaApplyResult:
        """Make this the branch's schema, tables and all, as one commit."""
        source, name = read_source(text, "<schema>")
        options = WriteOptions(branch=branch or self.branch, actor=actor or self.actor, message=message)
        return apply_change(self._repository, source, options, name=name, allow_data_loss=allow_data_loss)

    # -- computing --------------------------------------------------------------------------------

    def analyze(
        self,
        algorithm: str,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        weight: str | None = None,
        damping: float = 0.85,
        write: str | Mapping[str, str] | None = None,
        branch: str | None = None,
        at: At = None,
        actor: str | None = None,
        message: str | None = None,
        engine: str = "memory",
        spark: Any = None,
        watch: Watch | None = None,
    ) -> Analysis:
        """Run "pagerank", "components" or "degrees" over node and edge types, by default over all.

        With `write`, the values become properties of the nodes as one commit: the property's name, or for
        degrees column → property. Only nodes whose value changed are written. `engine` and `spark` are `query`'s.
        """
        if write is not None and at is not None:
            raise InputError("the past cannot be written to", hint="leave 'at' out, or make a branch there")
        request = AnalysisRequest(algorithm, nodes, edges, weight, damping)
        context = self._context
        with solving(context.repository, BulkOptions(engine, spark, watch), context.environ) as solve:
            if write is None:
                return analyze(context, self.snapshot(branch, at), request, solve)
            options = WriteOptions(branch=branch or self.branch, actor=actor or self.actor, message=message)
            return analyze_and_write(context, request, write, options, solve)

    # -- writing ---------------------------------------------------------------------------------

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
    ) -> MutationResult:
        """Run one mutation query, given as text or as the path of a `.gq` file, as one commit.

        A text is a whole `.gq` source or bare statements, which take the types of their parameters from their values. A
        mapping in second position is `params`.
        """
        options = WriteOptions(
            branch=branch or self.branch,
            actor=actor or self.actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
        )
        return mutate(self._context, MutationRequest(QueryText.of(source, name, params), options))

    def embed(
        self,
        *,
        types: Sequence[str] | None = None,
        again: bool = False,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> FillResult:
        """Make the vectors that are missing where there is a text, as one commit; with `again`, all of them anew."""
        options = WriteOptions(branch=branch or self.branch, actor=actor or self.actor, message=message)
        embedder = self._context.embedder
        return fill_missing(self._repository, self._catalogs, options, embedder, types=types, again=again)

    # -- tables and rows -------------------------------------------------------------------------

    def get(self, type_name: str, id: str | int, *, branch: str | None = None, at: At = None) -> dict[str, Any] | None:
        """One node or edge by its id; None when there is none. The id of a keyed node is its key."""
        return self._entity_of(self.snapshot(branch, at), type_name, id)

    def entity_at(self, type_name: str, id: str | int, at: At) -> dict[str, Any] | None:
        """One node or edge as it was; None when it was not there."""
        return self._entity_of(self.snapshot(at=at), type_name, id)

    def _entity_of(self, snapshot: Snapshot, type_name: str, id: Any) -> dict[str, Any] | None:
        id = row_id(id)
        key = self._table_key(snapshot, type_name)
        rows = snapshot.table(key).rows_of([id], self._columns(snapshot, key))
        found = to_dicts(rows)
        return found[0] if found else None

    def to_arrow(
        self, type_name: str, *, columns: Sequence[str] | None = None, branch: str | None = None, at: At = None
    ) -> pa.Table:
        """All rows of a type as an Arrow table, by default every column: ids first, then properties by name."""
        snapshot = self.snapshot(branch, at)
        key = self._table_key(snapshot, type_name)
        known = self._columns(snapshot, key)
        for name in columns or ():
            if name not in known:
                raise InputError(f"type '{type_name}' has no column '{name}'", hint=did_you_mean(name, known))
        return snapshot.table(key).read(known if columns is None else columns)

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
        """The rows of a type at one snapshot as a Spark DataFrame, on the session given or the active one.

        `filter` is SQL over the stored columns; rows that do not pass it are not sent to Spark.
        """
        from omnigraph.spark.reads import table_frame  # noqa: PLC0415 (who wants no Spark need not have it)

        snapshot = self.snapshot(branch, at)
        key = self._table_key(snapshot, type_name)
        known = self._columns(snapshot, key)
        return table_frame(
            self._repository, snapshot, key, known if columns is None else columns, known, filter=filter, spark=spark
        )

    def to_networkx(self, types: Sequence[str] | None = None, *, branch: str | None = None, at: At = None) -> Any:
        """The graph as a `networkx.MultiDiGraph`; see `operations.networkx_export` for its shape."""
        snapshot = self.snapshot(branch, at)
        return to_networkx(snapshot, self._catalogs.of(snapshot), types)

    def _columns(self, snapshot: Snapshot, table_key: str) -> list[str]:
        """The columns of a table in the order of its schema; the table itself keeps them in order of age."""
        type_ = next(type_ for type_ in self._catalogs.of(snapshot).tables() if type_.table_key == table_key)
        return list(table_schema(type_).names)

    # -- maintenance -----------------------------------------------------------------------------

    def ensure_indices(self, branch: str | None = None) -> list[maintenance.TableStats]:
        """Build the indexes the schema asks for and the tables do not have."""
        branch = branch or self.branch
        return maintenance.ensure_indices(self._repository, branch, wanted_indexes(self.catalog(branch)))

    def optimize(self, branch: str | None = None) -> list[maintenance.TableStats]:
        """Compact the tables of a branch and bring its indexes up to date."""
        branch = branch or self.branch
        return maintenance.optimize(self._repository, branch, wanted=wanted_indexes(self.catalog(branch)))

    def cleanup(
        self, *, keep: int | None = None, older_than: timedelta | None = None, confirm: bool = False
    ) -> list[maintenance.CleanupStats]:
        """Remove table versions that only forgotten commits need; without `confirm`, say what would go."""
        return maintenance.cleanup(self._repository, keep=keep, older_than=older_than, confirm=confirm)

    def recover(self) -> list[recovery.Recovered]:
        """Settle the writes of crashed writers, and remove the files of bulk jobs whose driver died.

        The result lists the notes of writes, and the notes of jobs that cannot be read.
        """
        return [*recovery.recover(self._repository), *sweep(self._repository).problems]

    def verify(self, *, deep: bool = False) -> list[verify.Problem]:
        """Re-read the graph and list every invariant that does not hold; an empty list is a sound graph.

        With `deep`, the bytes of every file are compared with the digest recorded when it was written.
        """
        cached = [
            verify.Problem(f"cache entry {name}", f"is damaged ({reason}); it is not used, and is built again")
            for name, reason in disk_cache.find_damaged(self._context.cache.folder)
        ]
        return verify.verify(self._repository, self._expected, deep=deep) + cached

    def _expected(self, snapshot: Snapshot) -> Expected:
        catalog = self._catalogs.of(snapshot)
        columns: dict[str, Any] = {type_.table_key: table_schema(type_) for type_ in catalog.tables()}
        edges = [
            EdgeEnds(edge.table_key, TableKey.node(edge.from_type), TableKey.node(edge.to_type))
            for edge in catalog.edges.values()
        ]
        return Expected(columns, edges)


def _name_methods() -> None:
    """Show every public method as one of `Graph`, whichever base class defines it."""
    for base in Graph.__mro__[1:-1]:
        for name, method in vars(base).items():
            if isfunction(method) and not name.startswith("_"):
                method.__qualname__ = f"{Graph.__name__}.{name}"


_name_methods()


def init(
    uri: str | os.PathLike[str],
    schema: str | Path,
    *,
    actor: str | None = None,
    sync: bool = True,
    blob_sources: Sequence[Place] = (),
    environ: Mapping[str, str] | None = None,
) -> Graph:
    """Create a graph from a schema (its text, or the path of a file) and open it; `GraphExists` if there is one."""
    environ = os.environ if environ is None else environ
    repository = create_graph(uri, schema, actor=actor, sync=sync, environ=environ)
    return Graph(GraphContext.of(repository, environ, blob_sources), actor=actor)


def open(
    uri: str | os.PathLike[str],
    *,
    branch: str = MAIN,
    actor: str | None = None,
    read_only: bool = False,
    sync: bool = True,
    blob_sources: Sequence[Place] = (),
    environ: Mapping[str, str] | None = None,
) -> Graph:
    """Open a graph; a writable one first settles what crashed writers left behind.

    `blob_sources` are folders and `s3://` prefixes from which a write may copy the bytes of a Blob that is given as a
    reference; by default there are none.
    """
    environ = os.environ if environ is None else environ
    repository = Repository.open(uri, read_only=read_only, sync=sync, environ=environ)
    if not read_only:
        recovery.recover(repository)
    graph = Graph(GraphContext.of(repository, environ, blob_sources), branch=branch, actor=actor)
    repository.state().get_head(branch)
    return graph
