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
    return _decide_tools(merged, here, there, rules, conflicts)


def _decide_tools(
    merged: QuerySet, ours: QuerySet, theirs: QuerySet, rules: ConflictRules, conflicts: list[ConflictDetail]
) -> tuple[QuerySet, list[ConflictDetail]]:
    """Find queries of both sides with one tool name: a list of tools could show one of them only."""
    for name in sorted(theirs.queries.keys() & merged.queries.keys()):
        query = merged.get(name)
        if query is ours.queries.get(name) or (other := merged.find_tool(query)) is None:
            continue
        side = rules.of_query(name)
        if side is None:
            message = (
                f"stored query '{name}' of theirs has the tool name '{query.tool_name}' of '{other.name}'\n"
                f"ours:\n{other.source}\ntheirs:\n{query.source}"
            )
            mine, added = _row(other.name, other.source), _row(name, query.source)
            conflicts.append(ConflictDetail(f"query:{name}", None, "query_conflict", message, None, mine, added))
        elif side == "theirs":
            merged = merged.without([other.name])
        else:
            kept = {key: one for key, one in merged.queries.items() if key != name}
            before = ours.queries.get(name)
            merged = QuerySet(kept if before is None else {**kept, name: before})
    return merged, conflicts


def _row(name: str, source: str | None) -> Row | None:
    return None if source is None else {"name": name, "source": source}
