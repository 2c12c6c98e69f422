"""Creation of a graph: empty tables and the first version of the manifest.

The manifest is written last and atomically, so a partial graph never exists. Exactly one of several creators succeeds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnigraph.errors import GraphExists
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files import layout
from omnigraph.storage.lance.digests import record_digests
from omnigraph.storage.manifest.manifest_schema import to_rows
from omnigraph.storage.manifest.manifest_table import PublishConflict
from omnigraph.storage.manifest.manifest_version import ManifestVersion
from omnigraph.version import STORAGE_FORMAT
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.manifest_objects import MAIN, Commit, GraphSpec, Head, Pin, TableRow
from omnigraph.versioning.model.manifest_rows import (
    commit_to_row,
    head_to_row,
    identity_to_row,
    schema_to_row,
    table_to_row,
    version_to_row,
)

if TYPE_CHECKING:
    from omnigraph.versioning.write.repository import Repository


def write_initial_commit(repository: Repository, graph: GraphSpec, actor: str | None) -> ManifestVersion:
    """Create the tables and the manifest of a graph with its first commit."""
    schema, objects, manifest = graph.schema, repository.objects, repository.manifest
    exists = GraphExists(
        f"a graph already exists at '{repository.location.uri}'", hint="open it, or choose another location"
    )
    if manifest.exists():
        raise exists
    token = new_ulid(repository.clock())
    objects.prove_conditional_writes(token)
    # The tables of a creator that died are in no manifest. Every attempt uses its own folders, unless it is the first
    # to claim the location.
    claimed = objects.write_if_absent(layout.INIT_CLAIM, token.encode())
    reach("init.claimed")
    suffix = None if claimed else int.from_bytes(os.urandom(8), "big")
    rows: list[TableRow] = []
    pins: list[Pin] = []
    digests: dict[int, Mapping[str, str]] = {}
    for spec in graph.tables:
        folder = layout.table_folder(spec.kind, spec.name, suffix)
        table = repository.tables.create(folder, spec.schema)
        rows.append(TableRow(spec.table_id, spec.incarnation, spec.key, folder))
        pins.append(Pin(spec.table_id, spec.incarnation, spec.key, 1, table.version, 0, table.transaction))
        digests[spec.table_id] = record_digests(table, None)
    reach("init.tables_created")
    now = repository.clock()
    commit = Commit(
        id=new_ulid(now),
        branch=MAIN,
        manifest_version=1,
        parent_id=None,
        merged_parent_id=None,
        actor=actor,
        created_us=now,
        kind="init",
        schema_hash=schema.hash,
    )
    head = Head(MAIN, new_ulid(now), commit.id, None, 1, schema.hash, now, pins=tuple(pins))
    initial = [
        *(table_to_row(row) for row in rows),
        *(version_to_row(pin, MAIN, 1, {"digests": digests[pin.table_id]}) for pin in pins),
        schema_to_row(schema),
        identity_to_row(graph.next_identity),
        commit_to_row(commit, pins),
        head_to_row(head),
    ]
    reach("init.before_manifest")
    try:
        version = manifest.create(to_rows(initial), str(STORAGE_FORMAT))
    except PublishConflict:
        # The response to our own create may have been lost, and its repetition refused.
        version = manifest.read()
        if not manifest.find(version, commit.id):
            raise exists from None
    reach("init.after_manifest")
    repository.write_schema_copy(schema.source)
    objects.delete(layout.INIT_CLAIM)
    return version
