"""Aliases of nodes as a write sees and changes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import KeyConflict
from omnigraph.schema.catalog import NodeType
from omnigraph.versioning.model.aliases import AliasSet, chained

if TYPE_CHECKING:
    from omnigraph.versioning.model.snapshot import Snapshot


class NodeAliases:
    """The aliases of a snapshot, and the changes of one write to them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._changed: AliasSet | None = None

    @property
    def changed(self) -> AliasSet | None:
        """The aliases after the write; None if it does not change them."""
        return self._changed

    @property
    def _set(self) -> AliasSet | None:
        if self._changed is None and not self._snapshot.aliases_hash:
            return None
        return self._snapshot.aliases if self._changed is None else self._changed

    def find(self, node: NodeType, id_: str) -> str | None:
        """Return the id of the node that an alias denotes; None if the text is not an alias."""
        aliases = self._set
        return aliases.find(self._table_id(node), id_) if aliases else None

    def resolve(self, node: NodeType, id_: str) -> str:
        """Return the id of the node that an id or an alias denotes."""
        return self.find(node, id_) or id_

    def unified(self, node: NodeType, merged: Mapping[str, str]) -> None:
        """Make aliases of dropped nodes: dropped id → kept id."""
        known = self._set or AliasSet()
        table = self._table_id(node)
        self._changed = known.with_changes({table: chained(known, table, merged)})

    def deleted(self, node: NodeType, ids: pa.Array) -> None:
        """Remove the aliases of deleted nodes."""
        aliases = self._set
        if not aliases or not len(ids):
            return
        table = self._table_id(node)
        gone = aliases.of_nodes(table, ids.to_pylist())
        if gone:
            self._changed = aliases.with_changes({table: dict.fromkeys(gone)})

    def _table_id(self, node: NodeType) -> int:
        return self._snapshot.tables[node.table_key].pin.table_id


def alias_conflict(node: NodeType, id_: str, kept: str) -> KeyConflict:
    """Return the error for a new node with the id of an alias."""
    return KeyConflict(
        node.table_key,
        id_,
        f"'{id_}' is an alias of {node.name} '{kept}'; nothing was written",
        hint=f"write to '{kept}', or revert the commit that unified the two nodes",
    )


def removed_aliases(aliases: AliasSet, table_id: int, ids: Iterable[str]) -> dict[str, None]:
    """Return the changes that remove the aliases of nodes."""
    return dict.fromkeys(aliases.of_nodes(table_id, ids))
