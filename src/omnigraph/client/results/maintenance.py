"""Results of maintenance from documents."""

from __future__ import annotations

from msgspec import UNSET, convert

from omnigraph.client.failures import reading
from omnigraph.decodable import decodable
from omnigraph.versioning.upkeep.maintenance import CleanupStats, TableStats
from omnigraph.versioning.upkeep.verify import Problem
from omnigraph.versioning.write.recovery import Recovered
from omnigraph.wire.maintenance import CleanupDocument, OptimizeDocument, RecoverDocument, VerifyDocument


@reading
def table_stats_of(document: OptimizeDocument) -> list[TableStats]:
    """Return the statistics of a compaction or of the building of indexes."""
    members = [
        {
            "table_key": table.table_key,
            "fragments_before": table.fragments_before,
            "fragments_after": table.fragments_after,
            "committed": table.committed,
            "pending": [{"column": each.property, "reason": each.reason} for each in table.pending_indexes],
        }
        for table in document.tables
    ]
    return convert(members, decodable(list[TableStats]))


def cleanup_stats_of(document: CleanupDocument) -> list[CleanupStats]:
    """Return the statistics of a cleanup or of its preview."""
    tables = document.tables if document.would_remove is UNSET else document.would_remove
    return [
        CleanupStats(
            table.table_key,
            "" if table.folder is UNSET else table.folder,
            table.old_versions_removed,
            table.bytes_removed,
            table.error,
        )
        for table in tables
    ]


@reading
def recovered_of(document: RecoverDocument) -> list[Recovered]:
    """Return the interrupted writes that were settled."""
    members = [
        {
            "intent": each.intent,
            "outcome": each.outcome,
            "commit_id": each.graph_commit_id,
            "branch": each.branch,
            "actor": each.actor_id,
            "tables": each.tables,
            "detail": each.detail,
        }
        for each in document.settled
    ]
    return convert(members, decodable(list[Recovered]))


def problems_of(document: VerifyDocument) -> list[Problem]:
    """Return the violated invariants, then the remarks."""
    remarks = [] if document.remarks is UNSET else document.remarks
    return [
        *(Problem(each.where, each.what) for each in document.problems),
        *(Problem(each.where, each.what, damage=False) for each in remarks),
    ]
