"""Embedding of stored rows: fills vectors that are null although their text is not, as one commit.

A load without an embedding provider leaves vectors null; this operation fills them later. Texts are embedded before
anything is staged, so a failure of the provider changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.write.constraints import check_delta
from omnigraph.engine.write.fill_vectors import UNCONFIGURED, CachingEmbedder, Embedder, fill_vectors, has_text
from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.errors import InputError, TypeNotFound
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.embed.embedder import ColumnEmbedder
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.write.idempotency import hash_request
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write_once

if TYPE_CHECKING:
    from omnigraph.engine.write.row_guard import GuardedWrite
    from omnigraph.operations.load.load_request import GuardOf
    from omnigraph.versioning.model.snapshot import Snapshot


@dataclass(frozen=True)
class FillResult:
    """Number of new vectors by node type. `commit_id` is None if there was nothing to embed."""

    branch: str
    embedded: tuple[tuple[str, int], ...]
    commit_id: str | None

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "branch": self.branch,
            "embedded_rows": sum(count for _, count in self.embedded),
            "types": dict(self.embedded),
            "commit_id": self.commit_id,
        }


def fill_missing(
    repository: Repository,
    catalogs: CatalogCache,
    options: WriteOptions,
    embedder: Embedder,
    *,
    types: Sequence[str] | None = None,
    again: bool = False,
    guard_of: GuardOf | None = None,
) -> FillResult:
    """Embed texts without a vector or, with `again`, all texts. Under a guard, these are visible texts.

    A repetition with the same idempotency key returns the result of the first call. A call that embeds nothing is
    evaluated again.
    """
    options = replace(options, request_hash=hash_request("embed", options.branch, types, again))
    caching = CachingEmbedder(embedder)
    counts: dict[str, int] = {}

    def prepare(transaction: Transaction) -> None:
        catalog = catalogs.of(transaction.snapshot)
        overlay = WriteOverlay(transaction.snapshot)
        guard = _guarded(guard_of, transaction.snapshot, catalog, overlay)
        counts.clear()
        embedding = ColumnEmbedder(caching, transaction.snapshot.embedding, catalog, renew=again)
        for node in _chosen(_readable(catalog, guard), types):
            table = overlay.table(node.table_key)
            stored = table.committed.read(table.schema.names, filter=_candidates(node, again=again))
            if guard is not None:
                stored = _readable_rows(node, stored, guard)
            rows = _rows_to_embed(node, stored, again=again)
            if guard is not None:
                _assign(node, rows, guard)
            filled, made, waiting = fill_vectors(node, rows, embedding)
            if waiting:
                vectors = "1 vector" if waiting == 1 else f"{waiting} vectors"
                raise InputError(
                    f"{vectors} of '{node.name}' cannot be made: no embedding provider is configured",
                    code="embedding_unconfigured",
                    hint=UNCONFIGURED,
                )
            if made:
                table.put(filled)
                counts[node.name] = made
        check_delta(catalog, overlay.delta(guard=guard))
        for touched in overlay.changed_tables():
            transaction.change(touched.key, touched.change())
        embedding.record(transaction)
        transaction.options = replace(transaction.options, result={"embedded": dict(counts)})

    commit, earlier = write_once(repository, prepare, replace(options, kind="embed"))
    made = counts if earlier is None else earlier.result["embedded"]
    return FillResult(options.branch, tuple(sorted(made.items())), commit.id if commit else None)


def _guarded(
    guard_of: GuardOf | None, snapshot: Snapshot, catalog: Catalog, overlay: WriteOverlay
) -> GuardedWrite | None:
    rules = None if guard_of is None else guard_of(snapshot)
    if rules is None:
        return None
    from omnigraph.engine.write.row_guard import GuardedWrite  # noqa: PLC0415 (only for a guard)

    return GuardedWrite(rules, catalog, overlay)


def _readable(catalog: Catalog, guard: GuardedWrite | None) -> Catalog:
    """The catalog with those `@embed` properties that the caller can read, and whose texts it can read."""
    if guard is None:
        return catalog
    nodes = {
        name: replace(
            node,
            properties={
                key: replace(one, embed=None)
                if one.embed is not None and (guard.hides(node, key) or guard.hides(node, one.embed.source))
                else one
                for key, one in node.properties.items()
            },
        )
        for name, node in catalog.nodes.items()
        if guard.shows_type(node)
    }
    return replace(catalog, nodes=nodes)


def _readable_rows(node: NodeType, rows: pa.Table, guard: GuardedWrite) -> pa.Table:
    """The visible rows whose texts and vectors are all visible: hidden texts are not sent to a provider."""
    rows = rows.filter(pa.array(guard.sees(node, rows)))
    names = {name for target, embed in node.embeds.items() for name in (target, embed.source)}
    return rows.filter(pa.array([names.isdisjoint(one) for one in guard.withheld_values(node, rows)], pa.bool_()))


def _assign(node: NodeType, rows: pa.Table, guard: GuardedWrite) -> None:
    """Record the vectors that are computed."""
    for target, embed in node.embeds.items():
        guard.assigned(node, [target], rows.filter(pc.and_(pc.is_null(rows[target]), has_text(rows[embed.source]))))


def _chosen(catalog: Catalog, types: Sequence[str] | None) -> list[NodeType]:
    embedding = {node.name: node for node in catalog.nodes.values() if node.embeds}
    for name in types or ():
        if name not in embedding:
            raise TypeNotFound(
                f"there is no node type '{name}' with an @embed property", hint=did_you_mean(name, embedding)
            )
    return [node for name, node in embedding.items() if types is None or name in types]


def _candidates(node: NodeType, *, again: bool) -> str:
    """A filter for the scan: rows with a text and, unless all vectors are renewed, without a vector."""
    wanted = [
        f"(`{embed.source}` IS NOT NULL" + (")" if again else f" AND `{target}` IS NULL)")
        for target, embed in node.embeds.items()
    ]
    return " OR ".join(wanted)


def _rows_to_embed(node: NodeType, rows: pa.Table, *, again: bool) -> pa.Table:
    """The rows to embed, without their old vectors."""
    wanted: Any = None
    for target, embed in node.embeds.items():
        texts = has_text(rows[embed.source])
        here = texts if again else pc.and_(texts, pc.is_null(rows[target]))
        wanted = here if wanted is None else pc.or_(wanted, here)
    assert wanted is not None, "the type has an @embed property"
    chosen = rows.filter(wanted)
    for target, embed in node.embeds.items() if again else ():
        index = chosen.schema.get_field_index(target)
        field = chosen.schema.field(target).with_nullable(True)
        kept = pc.if_else(has_text(chosen[embed.source]), pa.scalar(None, field.type), chosen[target])
        chosen = chosen.set_column(index, field, kept)
    return chosen
