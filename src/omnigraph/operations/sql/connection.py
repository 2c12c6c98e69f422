"""DuckDB connections with one view per type of a snapshot.

The views belong to the connection, which is in memory: nothing that is written to it reaches the graph. All scans of a
connection read the same snapshot, and under rules for rows what the caller may see of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import InputError, MissingPackage
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.sql.table_source import Batches, Failures, TableSource, filtered, table_reader
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.versioning.model.snapshot import Snapshot

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from omnigraph.engine.result.result import Result

_SEALED = ("enable_external_access = false", "lock_configuration = true")
"""Settings of a connection that runs one statement: it reads no files, and loads no extension."""


@dataclass(frozen=True)
class QueryView:
    """A stored query with its parameters as a view: its columns, and the call that runs it."""

    schema: pa.Schema
    run: Callable[[], Result]


def load_duckdb() -> Any:
    """Return the package duckdb; raises `MissingPackage` if it is not installed."""
    try:
        import duckdb  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingPackage("'duckdb' is not installed", hint="install it: pip install 'omnigraph[sql]'") from error
    return duckdb


@dataclass(frozen=True)
class SqlViews:
    """The views of a snapshot: one per type, with the named Blobs, and one per query."""

    context: GraphContext
    snapshot: Snapshot
    blobs: Sequence[str]
    queries: Mapping[str, QueryView]

    def connect(self, *, sealed: bool, failures: Failures) -> DuckDBPyConnection:
        """Return a connection with the views.

        A sealed one reads no files, loads no extension and sees no variables of the Python program.
        """
        duckdb = load_duckdb()
        budget = self.context.cache.memory
        config: dict[str, Any] = {} if budget is None else {"memory_limit": f"{budget.total}B"}
        if sealed:
            config |= {"python_enable_replacements": False, "temp_directory": ""}
        connection: DuckDBPyConnection = duckdb.connect(":memory:", config=config)
        connection.execute("SET TimeZone = 'UTC'")
        for name, source in self.sources(failures):
            connection.register(name, source)
        for setting in _SEALED if sealed else ():
            connection.execute(f"SET {setting}")
        return connection

    def sources(
        self, failures: Failures, types: Sequence[NodeType | EdgeType] | None = None
    ) -> Iterator[tuple[str, TableSource]]:
        """Yield the name and the rows of each view; of some types only, if they are given."""
        types = list(self.context.catalog(self.snapshot).tables()) if types is None else types
        types = sorted(types, key=lambda type_: type_.kind, reverse=True)  # a name of both kinds is that of the nodes
        _check_blobs(self.blobs, types)
        view = self.context.view(self.snapshot)
        taken: set[str] = set()
        for type_ in types:
            stored = _columns(type_, self.blobs)
            read = table_reader(self.snapshot, view, type_.table_key, stored)
            yield _view_name(type_, taken), TableSource(stored, read, failures)
        for name, query in self.queries.items():
            if name.lower() in taken:
                raise InputError(f"'{name}' is the view of a type", hint="choose another name for the query")
            taken.add(name.lower())
            yield name, TableSource(query.schema, query_reader(query), failures)


def query_reader(query: QueryView) -> Any:
    """Return the function that reads the result of a query, which runs at the first read."""
    kept: list[Result] = []

    def read(columns: list[str], filter: Any) -> Batches:
        if not kept:
            kept.append(query.run())
        return filtered(kept[0].batches(), columns, filter)

    return read


def _view_name(type_: NodeType | EdgeType, taken: set[str]) -> str:
    """Return the name of the view of a type, which no other view has: SQL ignores the case of names."""
    name = type_.name
    while name.lower() in taken:
        name = f"{name}_{type_.kind}"
    taken.add(name.lower())
    return name


def _columns(type_: NodeType | EdgeType, blobs: Collection[str]) -> pa.Schema:
    hidden = [name for name in type_.blobs if f"{type_.name}.{name}" not in blobs]
    return pa.schema([field for field in table_schema(type_) if field.name not in hidden])


def _check_blobs(blobs: Sequence[str], types: Sequence[NodeType | EdgeType]) -> None:
    """Refuse the name of a Blob property that does not exist."""
    if isinstance(blobs, str):
        raise InputError("'blobs' is a list of names", hint=f"write blobs=['{blobs}']")
    known = [f"{type_.name}.{name}" for type_ in types for name in type_.blobs]
    for blob in blobs:
        if blob not in known:
            named = f"the Blob properties are {listing(known)}" if known else "the schema has no Blob property"
            raise InputError(
                f"there is no Blob property '{blob}'", code="not_a_blob", hint=did_you_mean(blob, known) or named
            )
