"""Predicates and expressions on batches, without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.pipeline.job import Job
from omnigraph.query.plan import ir
from omnigraph.spark.arrow_interop import to_wire
from omnigraph.spark.arrow_udfs import BatchStep, FrameColumn, ScanPredicates, entities_as_ids, properties_in
from omnigraph.spark.scans import Scan, job_of
from omnigraph.storage.lance.fragments import stored_fragments
from omnigraph.types import ObjectType, PropertyType

SCHEMA = "node A { name: String @key  text: String?  wide: U64?  age: I32? }"
U64, I32, STRING = (PropertyType(name, nullable=True) for name in ("U64", "I32", "String"))


def prop(var: str, name: str, type_: PropertyType) -> ir.Prop:
    return ir.Prop(var, name, type_)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    graph = og.init(tmp_path_factory.mktemp("evaluation") / "graph.omni", SCHEMA, sync=False, environ={})
    rows = [("a", "running rivers", 2**64 - 1, 1), ("b", None, None, None), ("c", "a stone", 3, 3)]
    for row in rows:
        data = dict(zip(("name", "text", "wide", "age"), row, strict=True))
        graph.load([{"type": "A", "data": data}], mode="append")
    return job_of(graph._repository, graph.snapshot())


def scanned(job: Job, *conditions: Any, **options: Any) -> list[dict[str, Any]]:
    judged = ScanPredicates("x", conditions, {"words": "river"}) if conditions else None
    scan = Scan(job, "node:A", {"name": "c0"}, conditions=judged, **options)
    pieces = stored_fragments(job.table("node:A"))
    rows = [row for piece, _ in pieces for batch in scan.read(((piece, 7),)) for row in batch.to_pylist()]
    assert all(list(row) == scan.schema.names for row in rows)
    return rows


def test_scan_evaluates_predicates(job: Job) -> None:
    age = ir.Compare(">=", prop("x", "age", I32), ir.Const(2, I32))
    words = ir.TextMatch("search", prop("x", "text", STRING), ir.ParamRef("words", STRING))
    assert scanned(job) == [{"c0": "a"}, {"c0": "b"}, {"c0": "c"}]
    assert scanned(job, age) == [{"c0": "c"}]
    assert scanned(job, words) == [{"c0": "a"}]
    assert scanned(job, age, words) == []
    assert scanned(job, filter="age IS NULL") == [{"c0": "b"}]


def test_rows_are_numbered(job: Job) -> None:
    assert [row["n"] for row in scanned(job, numbers=("n", 0))] == [7, 7, 7]


def test_batch_step_filters_and_projects(job: Job) -> None:
    wide, age = prop("x", "wide", U64), prop("y", "age", I32)
    stored = {"c1": pa.array([2**64 - 1, None, 3], pa.uint64()), "c2": pa.array([1, 2, 3], pa.int32())}
    batch = pa.record_batch({name: to_wire(column) for name, column in stored.items()})
    columns = {("x", "wide"): FrameColumn("c1", pa.uint64()), ("y", "age"): FrameColumn("c2", pa.int32())}
    larger, equal = ir.Compare(">", wide, age), ir.Compare("=", wide, age)
    kept = BatchStep(job, {}, columns, conditions=(larger,)).apply(batch)
    assert kept.column("c2").to_pylist() == [1]
    both = BatchStep(job, {}, columns, values=(("c3", equal), ("c4", ir.Const(2**64 - 1, U64)))).apply(batch)
    assert both.column("c3").to_pylist() == [False, None, True]
    assert [int(value) for value in both.column("c4").to_pylist()] == [2**64 - 1] * 3
    assert both.schema.names == ["c1", "c2", "c3", "c4"]
    nothing = BatchStep(job, {}, columns, conditions=(larger,), values=(("c3", equal),)).apply(batch.slice(0, 0))
    assert nothing.num_rows == 0


def test_nested_properties_are_found() -> None:
    age, wide = prop("x", "age", I32), prop("y", "wide", U64)
    total = ir.Aggregate("sum", wide, U64)
    assert list(properties_in((ir.Compare("=", age, ir.Const([1], I32)), (total,)))) == [age, wide]


def test_entity_in_expression_becomes_its_id() -> None:
    test = ir.Not(ir.IsNull(ir.Entity("x", "A", ObjectType(()))))
    assert entities_as_ids((test, ir.Const([1], I32))) == (
        ir.Not(ir.IsNull(ir.Prop("x", "id", ir.NULL))),
        ir.Const([1], I32),
    )
