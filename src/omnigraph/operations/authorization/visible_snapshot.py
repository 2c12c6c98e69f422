"""`VisibleSnapshot`: a snapshot as a caller sees it under rules for rows and properties.

It lists the visible tables with the numbers of their visible rows, and the schema of the visible types. Its tables
cannot be opened: the methods of the graph read them and apply the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from omnigraph.engine.exec.view import View
from omnigraph.errors import Damaged, Denied, TypeNotFound
from omnigraph.operations.create import schema_record
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.identity import new_identity
from omnigraph.schema.unparse import unparse
from omnigraph.storage.lance.tables import Table
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.model.manifest_objects import Commit, SchemaRecord
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.snapshot_view import PinnedTable

if TYPE_CHECKING:
    from omnigraph.operations.graph_context import GraphContext

TableType = TypeVar("TableType", NodeType, EdgeType)

_DOMAIN = "0" * 26
"""The identity domain of a visible schema. Its numbers belong to no stored schema."""


class VisibleSnapshot(Snapshot):
    """The visible part of a snapshot. With `paths`, the folders of tables are shown."""

    def __init__(self, context: GraphContext, whole: Snapshot, view: View, *, paths: bool) -> None:
        names, epoch = (whole.branch, whole.commit_id, whole.version, whole.schema_hash), whole.purge_epoch
        super().__init__(context.repository, *names, {}, purge_epoch=epoch)
        self._context = context
        self._whole = whole
        self._view = view
        self._paths = paths
        # The counts of visible rows take a pass over the tables. Most callers need the id of the commit alone.
        del self.__dict__["tables"]

    @cached_property
    def tables(self) -> dict[str, PinnedTable]:  # type: ignore[override]
        """The visible tables by key, with the numbers of visible rows."""
        return {key: self._pinned(key, type_) for key, type_ in sorted(self._types.items())}

    @cached_property
    def _types(self) -> Mapping[str, NodeType | EdgeType]:
        return {type_.table_key: type_ for type_ in self._view.catalog.tables()}

    def _pinned(self, key: str, type_: NodeType | EdgeType) -> PinnedTable:
        stored = self._whole.tables[key]
        embeddings = tuple(pair for pair in stored.pin.embeddings if pair[0] in type_.properties)
        pin = replace(stored.pin, row_count=self._view.count(key), embeddings=embeddings)
        return PinnedTable(pin, stored.folder if self._paths else "")

    @cached_property
    def commit(self) -> Commit:
        """The commit of the snapshot, as the caller may see it."""
        return self._context.visible_commit(self._whole.commit)

    @cached_property
    def schema(self) -> SchemaRecord:
        """The schema of the visible types and properties."""
        return visible_schema(self._view.catalog)

    def table(self, key: str) -> Table:
        """Raise `Denied`: the methods of the graph read tables and apply the rules."""
        self._refuse(key)

    def open(self, pinned: PinnedTable) -> Table:
        """Raise `Denied`, as `table` does."""
        self._refuse(pinned.pin.key)

    def _refuse(self, key: str) -> NoReturn:
        if key not in self._types:
            message = f"'{key}' does not exist at commit {self.commit_id}"
            raise TypeNotFound(message, hint=did_you_mean(key, self._types))
        raise Denied(
            f"the table '{key}' cannot be opened: rules limit what you may see of it",
            hint="read it with to_arrow, to_batches or a query",
        )

    def entity(self, key: str, id_: str) -> dict[str, Any] | None:
        """Return one visible row by id; None if it does not exist or is not visible."""
        if key not in self._types:
            self._refuse(key)
        found = self._view.row_of(key, id_, table_schema(self._types[key]).names)
        return None if found is None else to_dicts(found)[0]

    def find_removed(self) -> Damaged | None:
        """Return the error that names this version if one of its tables was removed; None otherwise."""
        return self._whole.find_removed()

    def table_branch(self, key: str) -> str | None:
        """Return the branch that published the version of a table; None for main."""
        return self._whole.table_branch(key)


def visible_schema(catalog: Catalog) -> SchemaRecord:
    """Return the schema of a catalog of visible types as text and document."""
    shown = Catalog(
        catalog.interfaces,
        {name: _without_hidden_sources(node) for name, node in catalog.nodes.items()},
        {name: _without_hidden_sources(edge) for name, edge in catalog.edges.items()},
        catalog.merge_properties,
    )
    return schema_record(unparse(shown), new_identity(shown, _DOMAIN).ir)


def _without_hidden_sources(type_: TableType) -> TableType:
    """Return a type whose vectors name no text that is hidden."""
    properties = {
        name: property_
        if property_.embed is None or property_.embed.source in type_.properties
        else replace(property_, embed=None)
        for name, property_ in type_.properties.items()
    }
    return replace(type_, properties=properties)
