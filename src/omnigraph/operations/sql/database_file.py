"""A snapshot as a DuckDB database file: one table per type, for tools that open DuckDB files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.errors import InputError
from omnigraph.operations.export import chosen_types
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.sql.connection import SqlViews, load_duckdb
from omnigraph.operations.sql.table_source import Failures, TableSource
from omnigraph.versioning.model.snapshot import Snapshot

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def write_database(context: GraphContext, snapshot: Snapshot, out: str, types: Sequence[str] | None) -> int:
    """Write what the caller may see of a snapshot to a new file; return the number of rows.

    The tables have the names and columns of the views of `sql`, and all Blobs.
    """
    path = Path(out)
    if path.exists():
        raise InputError(f"'{out}' exists", code="not_empty", hint="export to a new file")
    duckdb, failures = load_duckdb(), Failures()
    chosen = chosen_types(context.catalog(snapshot), types)
    blobs = [f"{type_.name}.{name}" for type_ in chosen for name in type_.blobs]
    sources = SqlViews(context, snapshot, blobs, {}).sources(failures, chosen)
    try:
        connection = duckdb.connect(out, config={"python_enable_replacements": False})
    except duckdb.Error as error:
        raise InputError(f"'{out}' cannot be written: {error}", code="unwritable_file") from None
    rows = 0
    try:
        for name, source in sources:
            checkpoint()
            rows += interruptible(partial(_copy, connection, name, source))
    except BaseException as error:
        connection.close()
        path.unlink(missing_ok=True)
        if failures and isinstance(error, duckdb.Error):
            raise failures[0] from None
        raise
    connection.close()
    return rows


def _copy(connection: DuckDBPyConnection, name: str, source: TableSource) -> int:
    """Create a table with the rows of a source; return their number."""
    quoted = '"' + name.replace('"', '""') + '"'
    connection.register("omnigraph_source", source)
    connection.execute(f"CREATE TABLE {quoted} AS SELECT * FROM omnigraph_source")  # noqa: S608 (quoted)
    connection.unregister("omnigraph_source")
    return int(connection.execute(f"SELECT count(*) FROM {quoted}").fetchall()[0][0])  # noqa: S608 (quoted)
