"""The columns of a path variable: length, weight, and lists of its nodes and edges with their properties.

Properties are joined to the distinct paths: the nodes or edges of all paths are exploded, joined with their tables and
collected in the order of their positions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from omnigraph.query.plan import ir
from omnigraph.scalar_types.registry import ScalarName
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.spark.arrow_interop import spark_name
from omnigraph.spark.arrow_udfs import FrameColumn, path_part_column
from omnigraph.spark.bindings import ID, NODES, Bindings
from omnigraph.spark.lowering_context import LoweringContext
from omnigraph.spark.path_search import FoundPaths
from omnigraph.spark.scans import Scan
from omnigraph.types import ListType, ObjectType, PropertyType, ResultType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STORED = {"id": ID, "from": "src", "to": "dst"}
_LIST = pa.list_(pa.struct([pa.field("id", pa.utf8()), pa.field("type", pa.utf8())]))


def bind_paths(context: LoweringContext, op: ir.FindPaths, found: FoundPaths) -> Bindings:
    """Bind the path variable to the paths, with the columns that the query reads."""
    return _PathColumns(context, op, found).bindings()


class _PathColumns:
    """Builds the columns of one path variable."""

    def __init__(self, context: LoweringContext, op: ir.FindPaths, found: FoundPaths) -> None:
        self._context = context
        self._f = context.f
        self._op = op
        self._found = found
        self._frame = found.frame
        self._columns: dict[tuple[str, str], FrameColumn] = {
            (op.var, ID): FrameColumn(found.edges, _LIST),
            (op.var, NODES): FrameColumn(found.nodes, _LIST),
            (op.var, ir.LENGTH): FrameColumn(found.length, pa.int64()),
            (op.var, ir.WEIGHT): FrameColumn(found.weight, pa.float64()),
        }

    def bindings(self) -> Bindings:
        """Return the paths with all columns."""
        parts = self._context.path_parts(self._op.var)
        listed = [name for name in self._context.needed(self._op.var) if name.startswith(ir.PATH_PARTS)]
        objects: dict[str, ListType] = {}
        for part, type_ in parts.items():
            if isinstance(type_, ListType):
                objects[part] = type_
            else:
                objects.update({name: field for name, field in type_.fields if isinstance(field, ListType)})
        if listed or objects:
            self._frame = self._context.actions.checkpoint(self._frame)
        for part in ("nodes", "edges"):
            names = [name for name in listed if name.startswith(f"#{part}:")]
            if names or part in objects:
                self._list(part, names, objects.get(part))
        whole = parts.get("path")
        if whole is not None:
            assert isinstance(whole, ObjectType)
            self._whole(whole)
        return Bindings(self._frame, self._columns)

    def _list(self, part: str, names: list[str], objects: ListType | None) -> None:
        """Add the lists of the nodes or edges: of single properties, and of objects."""
        context, f = self._context, self._f
        fields: dict[str, ResultType] = {}
        properties: dict[str, tuple[str, PropertyType]] = {}
        for name in names:
            _, scalar, property_ = name.split(":", 2)
            properties[name] = property_, PropertyType(cast(ScalarName, scalar))
            fields[property_] = properties[name][1]
        if objects is not None:
            assert isinstance(objects.item, ObjectType)
            fields.update(dict(objects.item.fields))
        columns = {field: context.new_name() for field in fields}
        items = self._joined(part, fields, columns)
        for name, (property_, type_) in properties.items():
            self._add(name, items.getField(columns[property_]), replace(type_, is_list=True))
        if objects is not None:
            assert isinstance(objects.item, ObjectType)
            shown = [(columns[name], name) for name, _ in objects.item.fields]
            values = f.transform(items, lambda x: f.struct(*(x.getField(column).alias(name) for column, name in shown)))
            self._add(path_part_column(part), values, objects)

    def _add(self, prop: str, value: Any, type_: ResultType) -> None:
        name = self._context.new_name()
        self._frame = self._frame.withColumn(name, value)
        self._columns[self._op.var, prop] = FrameColumn(name, arrow_type(type_))

    def _whole(self, type_: ObjectType) -> None:
        """Add the whole path as an object."""
        sources = {"length": ir.LENGTH, "weight": ir.WEIGHT}
        parts = [
            self._f.col(self._columns[self._op.var, sources.get(name, path_part_column(name))].name).alias(name)
            for name, _ in type_.fields
        ]
        self._add(path_part_column("path"), self._f.struct(*parts), type_)

    def _joined(self, part: str, fields: dict[str, ResultType], columns: dict[str, str]) -> Any:
        """Join the paths with the properties of their nodes or edges; return the column of the collected items."""
        context, f = self._context, self._f
        number, place, item, key, items = (context.new_name() for _ in range(5))
        # The paths are checkpointed, so the numbers do not change.
        numbered = context.actions.checkpoint(self._frame.withColumn(number, f.monotonically_increasing_id()))
        listed = self._found.nodes if part == "nodes" else self._found.edges
        exploded = numbered.select(number, f.posexplode(listed).alias(place, item))
        joined = exploded.join(self._elements(part, fields, columns, key), f.col(item) == f.col(key))
        collected = joined.groupBy(number).agg(
            f.sort_array(f.collect_list(f.struct(place, *columns.values()))).alias(items)
        )
        self._frame = numbered.join(collected, number).drop(number)
        return f.col(items)

    def _elements(self, part: str, fields: dict[str, ResultType], columns: dict[str, str], key: str) -> DataFrame:
        """Return the nodes or edges that paths can contain, with some fields; null where a type lacks a field."""
        f = self._f
        frames = []
        for type_ in self._types(part):
            stored = {name: _STORED.get(name, name) for name in fields if name in _STORED or name in type_.properties}
            scanned = {prop: self._context.new_name() for prop in dict.fromkeys([ID, *stored.values()])}
            frame = Scan(self._context.job, type_.table_key, scanned).frame(self._context.spark)
            values = [f.struct(f.col(scanned[ID]).alias("id"), f.lit(type_.name).alias("type")).alias(key)]
            for name, wanted in fields.items():
                if name == "type":
                    value = f.lit(type_.name)
                else:
                    value = f.col(scanned[stored[name]]) if name in stored else f.lit(None)
                values.append(value.cast(spark_name(arrow_type(wanted))).alias(columns[name]))
            frames.append(frame.select(*values))
        return reduce(lambda one, other: one.unionAll(other), frames)

    def _types(self, part: str) -> list[NodeType] | list[EdgeType]:
        catalog = self._context.catalog
        edges = [catalog.edges[name] for name in self._op.edge_types]
        if part == "edges":
            return edges
        return [
            catalog.nodes[name] for name in dict.fromkeys(e for edge in edges for e in (edge.from_type, edge.to_type))
        ]
