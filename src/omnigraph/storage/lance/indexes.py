"""Indexes of a table: listing and building.

An index is derived state: it affects speed, never results. All missing indexes of a table are built on one version and
committed as one change, which is staged and promoted like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from omnigraph.storage.lance.lance_errors import lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.staging import StagedWrite
from omnigraph.storage.lance.tables import Table

IndexKind = Literal["btree", "text", "vector"]

VECTOR_ROWS_MIN = 5_000
"""Below this number of rows a vector index is not faster than a full scan."""

STOP_WORDS = tuple(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "  # noqa: SIM905
    "this to was will with".split()
)

_LANCE_TYPES: Mapping[IndexKind, str] = {"btree": "BTREE", "text": "INVERTED", "vector": "IVF_FLAT"}


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index that should exist."""

    column: str
    kind: IndexKind

    @property
    def name(self) -> str:
        """The name of the index in the table."""
        return f"{self.column}_{self.kind}"


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """An index that cannot be built yet, and the reason."""

    column: str
    reason: str


def index_names(table: Table) -> set[str]:
    """Return the names of the indexes of a version."""
    return {index.name for index in table.dataset.describe_indices()}


def uncovered_rows(table: Table) -> bool:
    """Return True if some index does not cover all rows."""
    fragments = {fragment.fragment_id for fragment in table.dataset.get_fragments()}
    return any(
        fragments.difference(*(segment.fragment_ids for segment in index.segments))
        for index in table.dataset.describe_indices()
    )


def count_uncovered(table: Table, wanted: Iterable[IndexSpec]) -> int:
    """Return the number of rows that the least complete of the wanted indexes does not cover.

    A vector index of a table that is too small for one is not wanted.
    """
    rows = {fragment.fragment_id: fragment.count_rows() for fragment in table.dataset.get_fragments()}
    total = sum(rows.values())
    have = {index.name: index for index in table.dataset.describe_indices()}
    most = 0
    for spec in wanted:
        if spec.kind == "vector" and total < VECTOR_ROWS_MIN:
            continue
        index = have.get(spec.name)
        covered = set().union(*(segment.fragment_ids for segment in index.segments)) if index is not None else set()
        most = max(most, sum(count for fragment, count in rows.items() if fragment not in covered))
    return most


def stage_indexes(
    table: Table, wanted: Iterable[IndexSpec], *, rebuild: bool = False
) -> tuple[StagedWrite | None, list[PendingIndex]]:
    """Build the missing indexes (with `rebuild`, all wanted indexes) on this version.

    A rebuild also drops text and vector indexes that cannot be built or are not wanted: they may contain deleted rows
    and then miss results. Returns the staged change, or None if there is nothing to do, and the indexes that cannot be
    built yet.
    """
    rows = table.row_count
    have = {index.name: index for index in table.dataset.describe_indices()}
    pending: list[PendingIndex] = []
    build: list[IndexSpec] = []
    for spec in wanted:
        if spec.name in have and not rebuild:
            continue
        if rows == 0:
            pending.append(PendingIndex(spec.column, "the table is empty"))
        elif spec.kind == "vector" and rows < VECTOR_ROWS_MIN:
            pending.append(PendingIndex(spec.column, f"fewer than {VECTOR_ROWS_MIN} rows: a full scan is used"))
        elif spec.kind == "vector" and not table.dataset.count_rows(filter=f"`{spec.column}` IS NOT NULL"):
            pending.append(PendingIndex(spec.column, "no row has a vector yet"))
        else:
            build.append(spec)
    built = {spec.name for spec in build}
    gone = [index for index in have.values() if index.name in built or (rebuild and index.index_type != "BTree")]
    if not build and not gone:
        return None, pending
    # Lance locks the handle that it builds an index with, and readers share the handle of the table.
    dataset = table.private()
    try:
        made = [_build(dataset, spec) for spec in build]
        operation = lance.LanceOperation.CreateIndex(made, [one for index in gone for one in _segments(index)])
    except lance_errors() as error:
        raise storage_failure(error, table.store.location, f"indexes of '{table.folder}' cannot be built") from error
    return StagedWrite(table, lance.Transaction(table.version, operation)), pending


def _build(dataset: lance.LanceDataset, spec: IndexSpec) -> lance.Index:
    index = dataset.create_index_uncommitted(
        spec.column,
        _LANCE_TYPES[spec.kind],
        name=spec.name,
        replace=True,
        fragment_ids=list(dataset.fragment_ids()),
        **_options(dataset, spec.kind),
    )
    # Without this step a text index can be committed, but every query then fails to find its tokens file.
    return dataset.merge_existing_index_segments([index]) if spec.kind == "text" else index


def _options(dataset: lance.LanceDataset, kind: IndexKind) -> dict[str, Any]:
    match kind:
        case "btree":
            return {}
        case "text":
            return {
                "base_tokenizer": "simple",
                "language": "English",
                "stem": True,
                "remove_stop_words": True,
                "custom_stop_words": list(STOP_WORDS),
                "lower_case": True,
                "ascii_folding": True,
                "max_token_length": 40,
                "with_position": False,
            }
        case "vector":
            return {"metric": "cosine", "num_partitions": max(1, min(1024, round(dataset.count_rows() ** 0.5)))}
        case _:
            assert_never(kind)


def _segments(index: Any) -> list[lance.Index]:
    """Return the descriptions of an index's segments that a removal requires."""
    return [
        lance.Index(
            uuid=segment.uuid,
            name=index.name,
            fields=index.fields,
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=set(segment.fragment_ids),  # type: ignore[arg-type]
            index_version=segment.index_version,
        )
        for segment in index.segments
    ]
