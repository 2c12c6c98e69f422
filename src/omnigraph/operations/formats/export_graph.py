"""Export of a snapshot in a format of other graph programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.checkpoints import paced
from omnigraph.engine.exec.view import View
from omnigraph.operations.export import stream_rows
from omnigraph.operations.formats.graph_writer import GraphFormat, open_writer
from omnigraph.schema.catalog import Catalog
from omnigraph.versioning.model.snapshot import Snapshot


def export_graph(
    snapshot: Snapshot,
    catalog: Catalog,
    view: View | None,
    format: GraphFormat,
    out: str,
    types: Sequence[str] | None,
    environ: Mapping[str, str],
) -> int:
    """Write a snapshot, or what is visible of it, to a file or folder; return the number of rows."""
    with open_writer(format, out, catalog, types, environ) as writer:
        for type_ in writer.types:
            for record in paced(stream_rows(snapshot, type_, view)):
                writer.add(record)
    return writer.row_count
