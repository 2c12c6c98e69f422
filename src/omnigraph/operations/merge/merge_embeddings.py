"""Vector spaces of a merged table."""

from __future__ import annotations

from omnigraph.errors import InputError
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.transaction import Transaction


def merge_embeddings(transaction: Transaction, key: str, theirs: Snapshot, *, named: bool) -> None:
    """Record the vector spaces of a merged table. Raises `InputError` if the branches used different models."""
    pin = transaction.snapshot.tables[key].pin
    identity = pin.table_id, pin.incarnation
    same = (table.pin for table in theirs.tables.values() if (table.pin.table_id, table.pin.incarnation) == identity)
    ours, other = dict(pin.embeddings), next(same, None)
    for column, space in other.embeddings if other is not None else ():
        if ours.setdefault(column, space) != space:
            where = f" of '{TableKey.parse(key).type_name}.{column}': {ours[column]} and {space}" if named else ""
            raise InputError(
                f"the branches used different models for the vectors{where}; nothing was merged",
                code="embedding_mismatch",
                hint="embed the vectors of one branch again with the other's model: "
                f"omnigraph embed --in-graph --reembed-all --branch {theirs.branch}",
            )
    if ours != dict(pin.embeddings):
        transaction.set_embeddings(key, ours)
