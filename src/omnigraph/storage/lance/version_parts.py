"""Parts of a table version: the states between the writes that made the version together.

Writes that are committed as a group make one version of each table. The states between them have no version of their
own; such a state is the *part* of the version that the first few writes made. It is determined by the version before
the group, the version after it, and the ids of the rows that each write changed, which the transaction of the version
lists. No row is changed by two writes of a group, so each row of a part is a row of one of the two versions.

Few parts are ever read: by time travel, or as the parent of a diff. A part that is read is written as a detached
version, which nothing refers to; a cleanup removes it, and the next read writes it again. If the store cannot be
written, the part is built in memory.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Damaged, StorageError
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files.new_files import finish_files
from omnigraph.storage.lance.lance_errors import lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import STORAGE_VERSION, lance
from omnigraph.storage.lance.version_files import new_files

if TYPE_CHECKING:
    from omnigraph.storage.lance.tables import Table

PARTS_PROPERTY = "omnigraph.parts"
"""Transaction property: the ids that each write of the group changed, as a JSON array of arrays, in order."""
PARTS_MAX = 1_024
"""Maximum number of parts of a version."""
_PREFIX = "part"


class VersionPart(NamedTuple):
    """The state after the first `writes` writes of the group that made `version` on `base`."""

    version: int
    transaction: str
    base: int
    base_transaction: str
    writes: int

    @property
    def number(self) -> int:
        """A number that no version and no other part of the table has. It is negative."""
        return -(self.version * PARTS_MAX + self.writes)

    def __str__(self) -> str:
        return ":".join((_PREFIX, *map(str, self)))

    @classmethod
    def of(cls, transaction: str) -> Self | None:
        """Return the part that the transaction id of a pin denotes; None if the pin is of a whole version."""
        if not transaction.startswith(f"{_PREFIX}:"):
            return None
        try:
            _, version, made_by, base, base_made_by, count = transaction.split(":")
            return cls(int(version), made_by, int(base), base_made_by, int(count))
        except ValueError as error:
            raise Damaged(f"a pin refers to '{transaction}', which is not a part of a version") from error


def parts_property(parts: Sequence[Sequence[str]]) -> str:
    """Return the value of `PARTS_PROPERTY` for the ids that each write changed."""
    return json.dumps([list(ids) for ids in parts], ensure_ascii=False, separators=(",", ":"))


def open_part(part: VersionPart, whole: Table, base: Table) -> Table:
    """Return the table at a part, given the versions after and before the group."""
    ids = changed_ids(part, whole)
    rows = whole.rows_of(ids)
    if whole.store.read_only:
        return _in_memory(part, base, ids, rows)
    try:
        return _detached(base, ids, rows)
    except StorageError as error:
        if error.code != "no_access":
            raise
        return _in_memory(part, base, ids, rows)


def changed_ids(part: VersionPart, whole: Table) -> list[str]:
    """Return the ids of the rows that the writes of a part changed; `whole` is the version after the group."""
    text = whole.property(PARTS_PROPERTY)
    try:
        return [str(id_) for ids in json.loads(text or "")[: part.writes] for id_ in ids]
    except (TypeError, ValueError) as error:
        raise Damaged(f"version {part.version} of table '{whole.folder}' does not list its parts") from error


def _detached(base: Table, ids: Sequence[str], rows: pa.Table) -> Table:
    """Write the part as a version without a number: `rows` are those with the given ids; the other ids are deleted."""
    from omnigraph.storage.lance.staging import TableWrite, stage  # noqa: PLC0415 (it imports the tables)

    present = set(rows["id"].to_pylist())
    staged = stage(base, TableWrite(upsert=rows, delete=[id_ for id_ in ids if id_ not in present]), {})
    if staged is None:
        return base
    try:
        dataset = lance.LanceDataset.commit(base.dataset, staged.transaction, detached=True)
    except lance_errors() as error:
        raise storage_failure(error, base.store.location, f"a part of '{base.folder}' cannot be written") from error
    reach("part.detached")
    made = base.at(dataset)
    made.part_of = base
    # A part is written again by the process that needs it, so it is checked, but not flushed.
    finish_files(new_files(base, made), sync=False)
    return made


def _in_memory(part: VersionPart, base: Table, ids: Sequence[str], rows: pa.Table) -> Table:
    """Build the part in memory: the rows of the base, with `rows` instead of those with the given ids."""
    changed = pa.array(ids, pa.utf8())
    schema = base.aligned(rows).schema

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in base.batches():
            kept = batch.filter(pc.invert(pc.is_in(batch.column("id"), value_set=changed)))
            yield from base.aligned(pa.Table.from_batches([kept])).to_batches()
        yield from base.aligned(rows).to_batches()

    try:
        dataset = lance.write_dataset(
            pa.RecordBatchReader.from_batches(schema, batches()),
            f"memory://{uuid.uuid4().hex}",
            schema=schema,
            enable_stable_row_ids=True,
            data_storage_version=STORAGE_VERSION,
        )
    except lance_errors() as error:
        raise storage_failure(error, base.store.location, f"a part of '{base.folder}' cannot be read") from error
    made = base.at(dataset)
    # Every table in memory has version 1, and tables of different versions are different.
    made.version = part.number
    return made
