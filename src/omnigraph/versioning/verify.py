"""Re-reads a graph and proves its invariants. Reports; changes nothing.

What must hold: the stamp is ours; every head names a commit that exists, with the same pins; every
commit's parents exist; manifest versions only grow along parents; every pinned version opens, has the rows
its pin counts and the transaction its pin was made by; ids are unique; edges end at nodes that exist; no
manifest row is there twice; every table's columns are those of its schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmniGraphError
from omnigraph.versioning.records import Commit, Pin
from omnigraph.versioning.repository import Repository, check_stamp
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.state import State


@dataclass(frozen=True)
class Problem:
    """Something that should hold and does not."""

    where: str
    what: str


@dataclass(frozen=True)
class EdgeEnds:
    """Which tables an edge table's ends are in."""

    edge_key: str
    src_key: str
    dst_key: str


def verify(repository: Repository, edges: Mapping[str, Iterable[EdgeEnds]] | None = None) -> list[Problem]:
    """Check everything that can be reached from a head; `edges` says, per branch, where edges end."""
    problems: list[Problem] = []
    state = repository.state()
    check_stamp(state.ledger, repository.location)
    problems += _manifest_rows(repository, state)
    try:
        commits = repository.all_commits(state)
        heads = state.heads()
    except OmniGraphError as error:
        return [*problems, Problem("manifest", error.message)]
    problems += _lineage(commits)
    opened: dict[tuple[str, int], list[Problem]] = {}
    for head in heads:
        where = f"branch {head.branch}"
        found = repository.find_commit(head.commit_id, state)
        if found is None:
            problems.append(Problem(where, f"its head {head.commit_id} is not a commit"))
            continue
        if _versions(found[1]) != _versions(head.pins):
            problems.append(Problem(where, f"its pins differ from those of its head {head.commit_id}"))
        try:
            snapshot = repository.snapshot(head.branch)
        except OmniGraphError as error:
            problems.append(Problem(where, error.message))
            continue
        for key, table in snapshot.tables.items():
            spot = (table.folder, table.pin.lance_version)
            if spot not in opened:
                opened[spot] = _table(snapshot, key, table.pin)
            problems += opened[spot]
        for ends in (edges or {}).get(head.branch, ()):
            problems += _edge_ends(snapshot, ends)
    return problems


def _manifest_rows(repository: Repository, state: State) -> list[Problem]:
    ids = repository.ledger.history(state.ledger, "true", ["object_id"])["object_id"]
    counts = pc.value_counts(ids.combine_chunks())
    return [
        Problem("manifest", f"the row '{entry['values']}' is there {entry['counts']} times")
        for entry in counts.filter(pc.greater(counts.field("counts"), 1)).to_pylist()
    ]


def _lineage(commits: Mapping[str, Commit]) -> list[Problem]:
    problems: list[Problem] = []
    seen: dict[int, str] = {}
    for commit in commits.values():
        other = seen.setdefault(commit.manifest_version, commit.id)
        if other != commit.id:
            problems.append(
                Problem(f"commit {commit.id}", f"shares manifest version {commit.manifest_version} with {other}")
            )
        for parent_id in (commit.parent_id, commit.merged_parent_id):
            if parent_id is None:
                continue
            parent = commits.get(parent_id)
            if parent is None:
                problems.append(Problem(f"commit {commit.id}", f"its parent {parent_id} is missing"))
            elif parent.manifest_version >= commit.manifest_version:
                problems.append(Problem(f"commit {commit.id}", f"is not younger than its parent {parent_id}"))
    return problems


def _versions(pins: Iterable[Pin]) -> set[tuple[int, int, int, int]]:
    return {(pin.table_id, pin.incarnation, pin.lance_version, pin.row_count) for pin in pins}


def _table(snapshot: Snapshot, key: str, pin: Pin) -> list[Problem]:
    where = f"{key} at version {pin.lance_version}"
    try:
        table = snapshot.table(key)
        if table.row_count != pin.row_count:
            return [Problem(where, f"has {table.row_count} rows, its pin says {pin.row_count}")]
        ids = pa.chunked_array([batch.column("id") for batch in table.batches(["id"])], pa.utf8())
        if len(ids) != pin.row_count:
            return [Problem(where, f"{len(ids)} rows could be read, its pin says {pin.row_count}")]
        if pc.count_distinct(ids).as_py() != len(ids):
            return [Problem(where, "an id occurs twice")]
        for _ in table.batches():
            pass
    except OmniGraphError as error:
        return [Problem(where, error.message)]
    return []


def _edge_ends(snapshot: Snapshot, ends: EdgeEnds) -> list[Problem]:
    problems: list[Problem] = []
    for column, node_key in (("src", ends.src_key), ("dst", ends.dst_key)):
        try:
            used = snapshot.table(ends.edge_key).read([column])[column]
            known = snapshot.table(node_key).read(["id"])["id"]
        except OmniGraphError as error:
            problems.append(Problem(ends.edge_key, error.message))
            continue
        dangling = used.filter(pc.invert(pc.is_in(used, value_set=known.combine_chunks())))
        if len(dangling):
            problems.append(Problem(ends.edge_key, f"{len(dangling)} edges have a {column} that is not in {node_key}"))
    return problems
