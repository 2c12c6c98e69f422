"""Creation of a graph from a schema."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.identity import SchemaIR, catalog_of, new_identity
from omnigraph.storage.files.input_files import read_source
from omnigraph.versioning.model.ids import Clock, new_ulid, system_clock
from omnigraph.versioning.model.manifest_objects import GraphSpec, SchemaRecord, TableSpec
from omnigraph.versioning.write.repository import Repository


def create_graph(
    uri: str | os.PathLike[str],
    schema: str | Path,
    *,
    actor: str | None = None,
    sync: bool = True,
    clock: Clock = system_clock,
    environ: Mapping[str, str] | None = None,
) -> Repository:
    """Create an empty graph. `schema` is the schema text or the path of a file with it."""
    from omnigraph.schema.check import compile_schema  # noqa: PLC0415 (opening a graph parses no schema)

    text, name = read_source(schema, "<schema>")
    catalog = compile_schema(text, name)
    ir = new_identity(catalog, new_ulid(clock())).ir
    record = schema_record(text, ir)
    specs = table_specs(catalog_of(ir), ir)
    spec = GraphSpec(record, tuple(specs), ir.next_id)
    return Repository.create(uri, spec, actor=actor, sync=sync, clock=clock, environ=environ)


def schema_record(text: str, ir: SchemaIR) -> SchemaRecord:
    """The manifest record of a schema."""
    return SchemaRecord(ir.hash, text, json.dumps(ir.to_json(), ensure_ascii=False, separators=(",", ":")))


def read_catalog(record: SchemaRecord) -> Catalog:
    """The catalog of a stored schema. The document is validated again."""
    return catalog_of(SchemaIR.from_json(json.loads(record.ir)))


def table_specs(catalog: Catalog, ir: SchemaIR) -> list[TableSpec]:
    """The tables of a schema, with the identities from its document."""
    nodes = [
        TableSpec("node", node.name, node.id, node.incarnation_id, table_schema(catalog.nodes[node.name]))
        for node in ir.nodes
    ]
    edges = [
        TableSpec("edge", edge.name, edge.id, edge.incarnation_id, table_schema(catalog.edges[edge.name]))
        for edge in ir.edges
    ]
    return nodes + edges
