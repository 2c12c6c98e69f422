"""Tasks that make staged fragments final.

A staged fragment is final unless some of its rows were set aside. In that case it is written again without them. Rows
that replace committed rows come first, because only the first rows of a fragment can take over row ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.pipeline.job import Job
from omnigraph.pipeline.stage_task import POSITION, list_files
from omnigraph.pipeline.upsert_task import read_origins
from omnigraph.pipeline.validate_task import ROW_ID, read_replaced
from omnigraph.pipeline.violations import row_of
from omnigraph.storage.lance.fragments import NewFragment, read_new_fragment, without_rows, write_new_fragments


@dataclass(frozen=True)
class FinalizeWork:
    """New fragments of one table, from one split or one bucket of a merge, and the positions that were set aside.

    `origins` names the file with the positions of a bucket's rows. `first_rows` has, for each fragment of a split, the
    number of its first row among the split's rows of the table.
    """

    table_key: str
    fragments: list[NewFragment]
    excluded: list[int]
    first_rows: list[int] = field(default_factory=list)
    origins: str | None = None


@dataclass(frozen=True)
class DeleteWork:
    """Stored fragments with replaced rows. `replaced` names the files that list these rows. A row whose replacement is
    in `excluded` stays.
    """

    table_key: str
    fragments: list[int]
    replaced: list[str]
    excluded: list[int]


@dataclass(frozen=True)
class ChangedFragments:
    """Result for stored fragments: those with rows left, and the ids of those without."""

    changed: list[str]
    removed: list[int]


def finalize(job: Job, work: FinalizeWork | DeleteWork) -> list[NewFragment] | ChangedFragments:
    """Finalize new fragments, or delete replaced rows from stored fragments."""
    return finalize_new(job, work) if isinstance(work, FinalizeWork) else delete_replaced(job, work)


def finalize_new(job: Job, work: FinalizeWork) -> list[NewFragment]:
    """Return the fragments to publish. Input fragments that are not returned are unused."""
    done: list[NewFragment] = []
    if work.origins is None:
        rows = np.array([row_of(position) for position in work.excluded], np.int64)
        for fragment, first in zip(work.fragments, work.first_rows, strict=True):
            dropped = np.isin(np.arange(first, first + fragment.rows), rows)
            done += _finalize_fragment(job, work.table_key, fragment, None, dropped)
        return done
    origins = read_origins(job, work.origins)
    row_ids = origins[ROW_ID].combine_chunks()
    excluded = np.isin(origins[POSITION].to_numpy(), np.array(work.excluded, np.int64))
    first = 0
    for fragment in work.fragments:
        here = row_ids.slice(first, fragment.rows)
        done += _finalize_fragment(job, work.table_key, fragment, here, excluded[first : first + fragment.rows])
        first += fragment.rows
    return done


def _finalize_fragment(
    job: Job,
    key: str,
    fragment: NewFragment,
    row_ids: pa.Array | None,
    dropped: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> Sequence[NewFragment]:
    if not dropped.any():
        return [fragment]
    table = job.table(key)
    kept = np.flatnonzero(~dropped)
    rows = read_new_fragment(table, fragment).take(pa.array(kept))
    replaced = None if row_ids is None else row_ids.take(pa.array(kept)).drop_null().to_numpy()
    made = write_new_fragments(table, rows, replaced)
    list_files(job, key, made)
    return made


def delete_replaced(job: Job, work: DeleteWork) -> ChangedFragments:
    """Delete the replaced rows from stored fragments."""
    done = ChangedFragments([], [])
    for fragment in work.fragments:
        offsets = read_replaced(job, work.replaced, fragment, work.excluded)
        if not len(offsets):
            continue
        left = without_rows(job.table(work.table_key), fragment, np.sort(offsets).tolist())
        if left is None:
            done.removed.append(fragment)
        else:
            done.changed.append(left)
    return done
