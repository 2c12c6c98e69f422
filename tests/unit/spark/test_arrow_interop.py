from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.schema.check import compile_schema
from omnigraph.spark.arrow_interop import (
    from_wire,
    quoted,
    restore_unsigned,
    spark_ddl,
    spark_name,
    to_wire,
    wire_schema,
)


def listed(type_: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("item", type_))


MOMENTS = pa.array([-1, None, 3 * 86_400_000 + 5], pa.int64()).cast(pa.date64())
COLUMNS: dict[str, tuple[pa.Array, str]] = {
    "String": (pa.array(["", None, "é"]), "string"),
    "Blob": (pa.array([b"x", None], pa.large_binary()), "binary"),
    "Bool": (pa.array([True, None]), "boolean"),
    "I32": (pa.array([-(2**31), None], pa.int32()), "int"),
    "I64": (pa.array([-(2**63), None, 2**63 - 1]), "bigint"),
    "U32": (pa.array([2**32 - 1, None], pa.uint32()), "bigint"),
    "U64": (pa.array([2**64 - 1, None, 0], pa.uint64()), "decimal(20,0)"),
    "F32": (pa.array([0.1, None, -0.0], pa.float32()), "float"),
    "F64": (pa.array([0.1, None, 1e300]), "double"),
    "Date": (pa.array([-1, None, 2_932_896], pa.int32()).cast(pa.date32()), "date"),
    "DateTime": (MOMENTS, "timestamp"),
    "[U64]": (pa.array([[2**64 - 1, 1], None, []], listed(pa.uint64())), "array<decimal(20,0)>"),
    "[DateTime]": (pa.array([[5, -7], None, []], pa.list_(pa.int64())).cast(listed(pa.date64())), "array<timestamp>"),
    "Vector": (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.field("item", pa.float32()), 2)), "array<float>"),
}  # fmt: skip


@pytest.mark.parametrize(("column", "name"), COLUMNS.values(), ids=COLUMNS)
def test_column_round_trips(column: pa.Array, name: str) -> None:
    wire = to_wire(column)
    assert spark_name(column.type) == name
    assert wire.type == wire_schema(pa.schema([("c", column.type)])).field("c").type
    assert from_wire(wire, column.type).equals(column)
    assert from_wire(to_wire(column.slice(1)), column.type).equals(column.slice(1))
    assert from_wire(to_wire(column[:0]), column.type).type == column.type
    # As Spark sends it: without unused buffers, also if all values are null.
    for rows in (column, pa.nulls(2, column.type), column[:0]):
        assert from_wire(sent(to_wire(rows)), column.type).combine_chunks().equals(rows)


def sent(column: pa.Array) -> pa.ChunkedArray:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([column], names=["c"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_all()["c"]


def test_wire_types_are_supported_by_spark() -> None:
    refused = (pa.types.is_uint32, pa.types.is_uint64, pa.types.is_fixed_size_list, pa.types.is_date64)
    for column, _ in COLUMNS.values():
        wire = to_wire(column).type
        item = wire.value_type if pa.types.is_list(wire) else wire
        assert not any(refuses(type_) for type_ in (wire, item) for refuses in refused)


def test_names_are_quoted() -> None:
    assert quoted("a`b c") == "`a``b c`"
    assert spark_ddl(pa.schema([("a b", pa.uint64()), ("c", pa.utf8())])) == "`a b` decimal(20,0), `c` string"


def test_decimals_of_u64_properties_become_unsigned() -> None:
    catalog = compile_schema("node A { name: String @key  wide: U64?  many: [U64]?  ratio: F64? }")
    decimals: Any = pa.decimal128(20, 0)
    batch = pa.record_batch(
        {
            "name": ["x"],
            "wide": pa.array([2**64 - 1], pa.uint64()).cast(decimals),
            "many": pa.array([[1]], pa.list_(pa.uint64())).cast(pa.list_(decimals)),
            "ratio": pa.array([1], pa.int64()).cast(decimals),
        }
    )
    (given,) = restore_unsigned([batch], "A", catalog)
    assert given.column("wide").to_pylist() == [2**64 - 1]
    assert given.column("many").to_pylist() == [[1]]
    assert given.schema.field("ratio").type == decimals
