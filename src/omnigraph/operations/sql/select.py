"""One SELECT on a sealed connection, as a `Result`.

The columns of a result have the types of the graph: HUGEINT becomes I64, or U64 if the values need it, DECIMAL becomes
F64, timestamps become DateTime with milliseconds, and types without a counterpart become text.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from omnigraph.engine.exec.context import Limits
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.result.result import Result
from omnigraph.errors import Hint, InputError, LimitReached
from omnigraph.operations.sql.connection import SqlViews, load_duckdb
from omnigraph.operations.sql.table_source import Failures

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SqlParams = Sequence[Any] | Mapping[str, Any]

_NARROW = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.uint32(),
    pa.uint16(): pa.uint32(),
    pa.float16(): pa.float32(),
    pa.large_utf8(): pa.utf8(),
    pa.binary(): pa.large_binary(),
}
_KEPT = frozenset(
    {pa.utf8(), pa.bool_(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64()}
    | {pa.date32(), pa.date64(), pa.large_binary()}
)
_AS_TEXT = frozenset({"interval", "time", "time with time zone", "time_ns", "map", "union", "bit", "bignum", "variant"})
"""Types of DuckDB that are returned as text."""
_HINTS = {"Catalog": "the views are the types of the graph; SHOW TABLES lists them"}
"""First word of a message of DuckDB → hint."""


def select(views: SqlViews, text: str, params: SqlParams | None, limits: Limits) -> Result:
    """Run one statement that only reads."""
    duckdb = load_duckdb()
    _check_statement(duckdb, text)
    started = time.perf_counter()
    failures = Failures()
    connection = views.connect(sealed=True, failures=failures)

    def run() -> pa.Table:
        try:
            return _rows(connection, text, params, limits)
        except duckdb.OutOfMemoryException as error:
            raise LimitReached(
                f"the statement needs more memory than the budget of the graph: {_first_line(error)}",
                resource="memory",
                limit=0 if views.context.cache.memory is None else views.context.cache.memory.total,
                hint="open the graph with more memory, or select fewer rows",
            ) from error
        except duckdb.Error as error:
            if failures:
                raise failures[0] from None
            raise _sql_error(error) from error
        finally:
            connection.close()

    try:
        table = interruptible(run)
    except BaseException:
        with suppress(duckdb.Error):
            connection.interrupt()  # a call that was abandoned still runs
        raise
    elapsed_ms = (time.perf_counter() - started) * 1000
    return Result(table, query_name="sql", commit_id=views.snapshot.commit_id, elapsed_ms=elapsed_ms)


def _check_statement(duckdb: Any, text: str) -> None:
    """Refuse everything but one statement that only reads."""
    if not isinstance(text, str):
        raise InputError(f"the statement is a str, not {type(text).__name__}")
    try:
        statements = duckdb.extract_statements(text)
    except duckdb.Error as error:
        raise _sql_error(error) from error
    if len(statements) != 1:
        found = "no statement is" if not statements else f"{len(statements)} statements are"
        raise InputError(f"{found} given; exactly one SELECT is accepted", code="sql_one_select")
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        kind = statements[0].type.name
        raise InputError(
            f"SQL reads the graph; {kind} is not accepted",
            code="sql_read_only",
            hint=Hint(
                "write SELECT; write rows with load or mutate, and use duckdb() for tables of your own",
                cli="write SELECT; write rows with 'omnigraph load' or 'omnigraph change'",
            ),
        )


def _rows(connection: DuckDBPyConnection, text: str, params: SqlParams | None, limits: Limits) -> pa.Table:
    relation = connection.sql(text, params=params)
    if any(type_.id in _AS_TEXT for type_ in relation.types):
        relation = relation.project(
            ", ".join(map(_shown, range(len(relation.types)), relation.columns, relation.types))
        )
    reader = relation.to_arrow_reader(65_536)
    batches, rows, size = [], 0, 0
    for batch in reader:
        batches.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        _check_size("rows", rows, limits.rows_max)
        _check_size("bytes", size, limits.bytes_max)
    return typed(pa.Table.from_batches(batches, reader.schema))


def _shown(index: int, name: str, type_: Any) -> str:
    """Return the expression of a column of a result; a type that the graph does not have becomes text."""
    quoted = '"' + name.replace('"', '""') + '"'
    return f"CAST(#{index + 1} AS VARCHAR) AS {quoted}" if type_.id in _AS_TEXT else f"#{index + 1} AS {quoted}"


def _check_size(what: Literal["rows", "bytes"], found: int, most: int) -> None:
    if found > most:
        raise LimitReached(
            f"the result has more than {most:,} {what}",
            resource=what,
            limit=most,
            actual=found,
            hint="select fewer rows or columns, or read the rows in batches from graph.duckdb()",
        )


def typed(table: pa.Table) -> pa.Table:
    """Return a table of DuckDB with the types of the graph."""
    columns = [_typed(column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        for integer in (pa.int64(), pa.uint64()):
            with suppress(pa.ArrowInvalid):
                return column.cast(integer)
        return column.cast(pa.utf8())
    wanted = _target(column.type, pa.date64())
    if wanted is None:  # a type without a counterpart inside a list or object
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.utf8())])
    if wanted == column.type:
        return column
    # Arrow casts a timestamp to a date without its time; the number of milliseconds keeps it.
    for step in [_target(column.type, instant) for instant in (pa.timestamp("ms"), pa.int64(), pa.date64())]:
        column = column.cast(step, safe=False)
    return column


def _target(type_: pa.DataType, instant: pa.DataType) -> pa.DataType | None:
    """Return the type of the graph for an Arrow type, with `instant` for timestamps; None if values become text."""
    if pa.types.is_timestamp(type_):
        return instant
    if pa.types.is_decimal(type_):
        return pa.float64()
    if pa.types.is_dictionary(type_):
        return _target(type_.value_type, instant)
    if pa.types.is_fixed_size_list(type_) and type_.value_type == pa.float32():
        return type_
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        item = _target(type_.value_type, instant)
        return None if item is None else pa.list_(pa.field("item", item))
    if pa.types.is_struct(type_):
        fields = {field.name: _target(field.type, instant) for field in type_}
        return None if None in fields.values() else pa.struct([pa.field(*field) for field in fields.items()])
    return _NARROW.get(type_, type_ if type_ in _KEPT else None)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _sql_error(error: Exception) -> InputError:
    """Return the error for a statement that DuckDB refuses."""
    message = str(error).strip()
    hint = _HINTS.get(message.partition(" ")[0])
    return InputError(message, code="sql_error", hint=hint)
