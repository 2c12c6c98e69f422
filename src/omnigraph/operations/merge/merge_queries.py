"""The stored queries of a merge: merged by name, and checked against the merged schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.operations.merge.conflict_rules import ConflictRules
from omnigraph.operations.stored_queries import queries_of
from omnigraph.query.stored_queries import QuerySet, merge_queries
from omnigraph.versioning.compare.three_way import ConflictDetail, Row

if TYPE_CHECKING:
    from omnigraph.versioning.model.snapshot import Snapshot


def decide_queries(
    bases: Sequence[Snapshot], ours: Snapshot, theirs: Snapshot, rules: ConflictRules
) -> tuple[QuerySet, list[ConflictDetail]]:
    """Return the stored queries of a merge, and the conflicts that no resolution decides."""
    known = {base.queries_hash for base in bases}
    here = queries_of(ours)
    if theirs.queries_hash in (ours.queries_hash, *known):
        return here, []
    there = queries_of(theirs)
    if ours.queries_hash in known:
        return there, []
    merged, clashes = merge_queries(queries_of(bases[0]), here, there)
    conflicts: list[ConflictDetail] = []
    for clash in clashes:
        side = rules.of_query(clash.name)
        if side is None:
            base, mine, other = (_row(clash.name, text) for text in (clash.base, clash.ours, clash.theirs))
            key = f"query:{clash.name}"
            conflicts.append(ConflictDetail(key, None, "query_conflict", clash.message, base, mine, other))
        elif side == "theirs" and clash.theirs is None:
            merged = merged.without([clash.name])
        elif side == "theirs":
            merged = QuerySet({**merged.queries, clash.name: there.get(clash.name)})
    return merged, conflicts


def _row(name: str, source: str | None) -> Row | None:
    return None if source is None else {"name": name, "source": source}
