"""Lists of rows by cluster (an inverted file) with the byte codes of the rows: the stored form of approximate search.

A search scans whole clusters, so the codes are stored in the order of the lists, in addition to those in row order that
the exact search scans. Reading codes at scattered rows takes more than ten times as long. On an object store, the
scanned clusters are read by range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.engine.adjacency.csr import ranges
from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.ranged_arrays import RangedArray, fetch
from omnigraph.engine.cache.table_cache import Numbers, unmapped_bytes
from omnigraph.engine.search.vector_codes import Matrix, VectorCodes
from omnigraph.fast_dataclass import dataclass

NEIGHBOURS = 10
"""The recall is measured for this many neighbours; a search for fewer scans as many clusters."""
RANGED = ("rows", "codes", "scales", "errors")
"""The arrays that are read by range from an object store."""
_FACTS = ("reach", "first", "recall", "probed", "scanned")


@dataclass(frozen=True)
class ClusterLists:
    """The rows of a segment by cluster, and how to search them. Without clusters, all rows are scanned."""

    row_count: int
    """The number of rows of the segment, with and without a vector."""
    centroids: Matrix
    cosines: Matrix
    """The mean similarity of the rows of a cluster to its centroid."""
    offsets: Numbers
    rows: np.ndarray[Any, np.dtype[np.int32]] | RangedArray
    """The rows of the segment, cluster by cluster; rows without a vector are in none."""
    codes: VectorCodes
    """The codes of these rows, in the same order."""
    reach: float = 1.0
    first: int = 1
    """Clusters that are always scanned."""
    recall: float = 1.0
    """Share of the nearest `NEIGHBOURS` rows of sample queries that the search found."""
    probed: float = 0.0
    """Mean number of clusters that these searches scanned."""
    scanned: float = 0.0
    """Mean share of the rows that they scanned."""

    @property
    def nbytes(self) -> int:
        """The size in memory; 0 for mapped arrays."""
        return self.codes.nbytes + unmapped_bytes(self.centroids, self.cosines, self.offsets, self.rows)

    @property
    def count(self) -> int:
        """The number of clusters."""
        return len(self.centroids)

    def places(self, clusters: Numbers) -> Numbers:
        """Return the places of some clusters in `rows` and `codes`, which are requested at the same time."""
        firsts, ends = self.offsets[clusters], self.offsets[clusters + 1]
        codes = self.codes
        fetch((self.rows, codes.codes, codes.scales, codes.errors), lambda array: array.blocks_of_ranges(firsts, ends))
        return ranges(firsts, ends - firsts)


def without_clusters(rows: int, dim: int) -> ClusterLists:
    """Return the lists of a segment that is scanned as a whole."""
    empty = np.zeros(0, np.float32)
    codes = VectorCodes(np.zeros((0, dim), np.int8), empty, empty)
    return ClusterLists(
        rows, np.zeros((0, dim), np.float32), empty, np.zeros(1, np.int64), np.zeros(0, np.int32), codes
    )


def write_lists(lists: ClusterLists, writer: EntryWriter) -> None:
    """Write all arrays of an entry of the disk cache except the codes, which were written when they were computed."""
    for label in ("centroids", "cosines", "offsets", "rows"):
        writer.put(label, getattr(lists, label))
    _, scales, errors = lists.codes.arrays(None)
    writer.put("scales", scales)
    writer.put("errors", errors)
    writer.put("facts", np.array([getattr(lists, fact) for fact in _FACTS], np.float64))


def read_lists(entry: disk_cache.CacheEntry, rows: int, *, dim: int) -> ClusterLists:
    """Read an entry of the disk cache; raise `entry_checks.BadEntry` if it is inconsistent."""
    arrays, check = entry.arrays, entry_checks.check
    listed, scales, errors = (entry.get(label) for label in ("rows", "scales", "errors"))
    centroids, facts = arrays["centroids"], arrays["facts"]
    check(centroids.dtype == np.float32 and centroids.shape[1:] == (dim,), "'centroids' has a wrong shape")
    count = len(centroids)
    check(count > 0, "'centroids' is empty")
    cosines = arrays["cosines"]
    check(cosines.dtype == np.float32 and cosines.shape == (count,), "'cosines' has a wrong shape")
    check(facts.dtype == np.float64 and facts.shape == (len(_FACTS),), "'facts' has a wrong shape")
    check(bool(np.isfinite(facts).all() and 1 <= facts[1] <= count), "'facts' has a value out of range")
    check(listed.dtype == np.int32 and listed.ndim == 1 and len(listed) <= rows, "'rows' has a wrong shape")
    entry_checks.check_offsets(arrays["offsets"], count, len(listed), "offsets")
    codes = VectorCodes(entry.get("codes"), scales, errors)
    check(codes.codes.dtype == np.int8 and codes.codes.shape == (len(listed), dim), "'codes' has a wrong shape")
    for label, values in (("scales", scales), ("errors", errors)):
        check(values.dtype == np.float32 and values.shape == listed.shape, f"'{label}' has a wrong shape")
    if not entry.trusted:
        entry_checks.check_within(listed, rows, "rows")
        ranged = isinstance(listed, RangedArray)  # its blocks have the checksums of the machine that wrote them
        check(ranged or len(np.unique(listed)) == len(listed), "'rows' contains a row twice")
    reach, first, recall, probed, scanned = facts.tolist()
    measured = (reach, int(first), recall, probed, scanned)
    return ClusterLists(rows, centroids, cosines, arrays["offsets"], listed, codes, *measured)
