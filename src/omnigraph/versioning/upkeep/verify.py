"""Verification: re-reads a graph, checks its invariants and reports violations; changes nothing.

The invariants: The stamp is valid. Every manifest row is unique and readable. Every head and tag refers to an existing
commit with the same pins. All parents of commits exist, and manifest versions increase from parent to child. Every
pinned version opens, has the number of rows in its pin and was made by the commit that published it. Ids are unique. If
the caller supplies the meaning of the schema, the columns of every table match its type, and edges end at existing
nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checked
from omnigraph.errors import Damaged, GraphReplaced, OmniGraphError
from omnigraph.storage.manifest.manifest_schema import HistoryFilter
from omnigraph.versioning.model.manifest_objects import Commit, Head, Pin, Tag
from omnigraph.versioning.model.manifest_rows import read_metadata, row_to_commit
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.state import State
from omnigraph.versioning.upkeep.file_check import Digests
from omnigraph.versioning.write.repository import Repository, check_stamp
from omnigraph.versioning.write.transaction import COMMIT_PROPERTY


@dataclass(frozen=True)
class Problem:
    """A violated invariant."""

    where: str
    what: str
    damage: bool = True
    """False for a remark: something could not be checked."""


@dataclass(frozen=True)
class EdgeEnds:
    """The node tables that contain the endpoints of an edge table."""

    edge_key: str
    src_key: str
    dst_key: str
    src_column: str = "id"
    """The column of the node table that the source of an edge names."""
    dst_column: str = "id"


@dataclass(frozen=True)
class Expected:
    """Requirements of a schema: the columns of each table and the endpoints of edges."""

    columns: Mapping[str, pa.Schema]
    edges: Sequence[EdgeEnds]


_TRIES = 5
_PinnedVersion = tuple[int, int, int]
"""Table id, incarnation, Lance version."""


def verify(
    repository: Repository, expected: Callable[[Snapshot], Expected] | None = None, *, deep: bool = False
) -> list[Problem]:
    """Check everything reachable from a head or tag; `expected` returns what the schema of a snapshot requires.

    With `deep`, the bytes of every file are compared with the digest recorded when it was written. A table with a
    damaged file is not read further. Damage of a graph that has changed since counts only if it is found again, because
    purges and cleanups remove files that the new state does not use.
    """
    for _ in range(_TRIES - 1):
        state = repository.state()
        try:
            problems = _problems_of(repository, state, expected, deep=deep)
        except (Damaged, GraphReplaced):
            if repository.state() is state:
                raise
            continue
        newest = repository.state()
        if newest is state or (newest.epoch == state.epoch and not any(problem.damage for problem in problems)):
            return problems
    return _problems_of(repository, repository.state(), expected, deep=deep)


def _problems_of(
    repository: Repository, state: State, expected: Callable[[Snapshot], Expected] | None, *, deep: bool
) -> list[Problem]:
    check_stamp(state.manifest, repository.location)
    problems = _manifest_rows(repository, state)
    commits = _commits(repository, state, problems)
    version_commits = _version_commits(repository, state, commits, problems)
    problems += _lineage(commits)
    opened: dict[_PinnedVersion, list[Problem]] = {}
    digests = Digests.recorded(repository, state) if deep else None
    for head in _heads(state, problems):
        problems += _head_problems(repository, state, head)
        try:
            snapshot = repository.snapshot(head.branch)
            found = _tables_problems(snapshot, version_commits, opened, digests)
            problems += found
            if expected is not None and not any(problem.damage for problem in found):
                problems += _schema_problems(snapshot, expected(snapshot))
        except OmniGraphError as error:
            problems.append(Problem(f"branch {head.branch}", error.message))
    for tag in _tags(state, problems):
        problems += _tag_problems(repository, state, tag)
        try:
            problems += _tables_problems(repository.snapshot(at=tag.commit_id), version_commits, opened, digests)
        except OmniGraphError as error:
            problems.append(Problem(f"tag {tag.name}", error.message))
    return list(dict.fromkeys(problems))


def _tables_problems(
    snapshot: Snapshot,
    version_commits: Mapping[_PinnedVersion, str],
    opened: dict[_PinnedVersion, list[Problem]],
    digests: Digests | None,
) -> list[Problem]:
    """Return the problems of a snapshot's tables; a version that was already checked is not read again."""
    problems: list[Problem] = []
    for key, table in checked(snapshot.tables.items()):
        spot = (table.pin.table_id, table.pin.incarnation, table.pin.lance_version)
        if spot not in opened:
            found = _file_problems(snapshot, key, table.pin, digests) if digests is not None else []
            damaged = any(problem.damage for problem in found)
            opened[spot] = (
                found if damaged else found + _table_problems(snapshot, key, table.pin, version_commits.get(spot))
            )
        problems += opened[spot]
    return problems


def _file_problems(snapshot: Snapshot, key: str, pin: Pin, digests: Digests) -> list[Problem]:
    """Return the problems of the files of a version."""
    where = f"{key} at version {pin.lance_version}"
    try:
        checked = digests.check(snapshot, key)
    except OmniGraphError as error:
        return [Problem(where, error.message)]
    problems = [Problem(where, what) for what in checked.damaged]
    if checked.unrecorded and not problems:
        problems.append(Problem(where, f"no digest recorded for {checked.unrecorded} of its files", damage=False))
    return problems


def _tags(state: State, problems: list[Problem]) -> list[Tag]:
    """Return all tags; a failure to read them is added to `problems`."""
    try:
        return state.tags()
    except OmniGraphError as error:
        problems.append(Problem("tags", error.message))
        return []


def _tag_problems(repository: Repository, state: State, tag: Tag) -> list[Problem]:
    return _ref_problems(repository, state, f"tag {tag.name}", tag.commit_id, tag.pins)


def _commits(repository: Repository, state: State, problems: list[Problem]) -> dict[str, Commit]:
    """Return all readable commits; errors of the others are added to `problems`."""
    commits: dict[str, Commit] = {}
    for row in repository.manifest.scan(state.manifest, HistoryFilter("graph_commit")):
        try:
            commits[row["object_id"]] = row_to_commit(row)
        except OmniGraphError as error:
            problems.append(Problem("manifest", error.message))
    return commits


def _version_commits(
    repository: Repository, state: State, commits: Mapping[str, Commit], problems: list[Problem]
) -> dict[_PinnedVersion, str]:
    """Return table version → commit that wrote its rows, if recorded."""
    by_version = {commit.manifest_version: commit.id for commit in commits.values()}
    version_commits: dict[_PinnedVersion, str] = {}
    for row in repository.manifest.scan(state.manifest, HistoryFilter("table_version")):
        try:
            details = read_metadata(row)
            if "transaction_uuid" in details:
                commit_id = by_version.get(int(row["object_id"].rpartition(":")[2]), "")
                version_commits[row["stable_table_id"], row["table_incarnation_id"], details["lance_version"]] = (
                    commit_id
                )
        except OmniGraphError as error:
            problems.append(Problem("manifest", error.message))
    return version_commits


def _heads(state: State, problems: list[Problem]) -> list[Head]:
    """Return all readable heads; errors of the others are added to `problems`."""
    heads: list[Head] = []
    try:
        for branch in state.head_names():
            try:
                heads.append(state.get_head(branch))
            except OmniGraphError as error:
                problems.append(Problem(f"branch {branch}", error.message))
    except OmniGraphError as error:
        problems.append(Problem("manifest", error.message))
    return heads


def _head_problems(repository: Repository, state: State, head: Head) -> list[Problem]:
    return _ref_problems(repository, state, f"branch {head.branch}", head.commit_id, head.pins)


def _ref_problems(
    repository: Repository, state: State, where: str, commit_id: str, pins: Iterable[Pin]
) -> list[Problem]:
    """Return the problems of a head or tag: its commit must exist and have the same pins."""
    try:
        found = repository.find_commit(commit_id, state)
    except OmniGraphError as error:
        return [Problem(where, error.message)]
    if found is None:
        return [Problem(where, f"{commit_id} is not a commit")]
    if _versions(found[1]) != _versions(pins):
        return [Problem(where, f"its pins differ from those of commit {commit_id}")]
    return []


def _manifest_rows(repository: Repository, state: State) -> list[Problem]:
    problems: list[Problem] = []
    try:
        repository.manifest.check_entry(state.manifest)
    except OmniGraphError as error:
        problems.append(Problem("manifest", error.message))
    return problems + [
        Problem("manifest", f"the row '{object_id}' occurs {count} times")
        for object_id, count in repository.manifest.duplicates(state.manifest)
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
                problems.append(Problem(f"commit {commit.id}", f"is not newer than its parent {parent_id}"))
            elif parent_id == commit.parent_id and not _continues(commit, parent):
                problems.append(Problem(f"commit {commit.id}", f"is not on the line of its parent {parent_id}"))
    return problems


def _continues(commit: Commit, parent: Commit) -> bool:
    """Return True if a commit follows its parent on the same line, or is the first of a line forked at the parent."""
    same = (commit.branch, commit.since, commit.fork_commit_id) == (parent.branch, parent.since, parent.fork_commit_id)
    return same or (commit.fork_commit_id == parent.id and commit.since > parent.manifest_version)


def _versions(pins: Iterable[Pin]) -> set[tuple[int, int, int, int]]:
    return {(pin.table_id, pin.incarnation, pin.lance_version, pin.row_count) for pin in pins}


def _table_problems(snapshot: Snapshot, key: str, pin: Pin, commit_id: str | None) -> list[Problem]:
    where = f"{key} at version {pin.lance_version}"
    try:
        table = snapshot.table(key)
        if table.row_count != pin.row_count:
            return [Problem(where, f"has {table.row_count} rows, its pin counts {pin.row_count}")]
        ids = pa.chunked_array([batch.column("id") for batch in table.batches(["id"])], pa.utf8())
        if len(ids) != pin.row_count:
            return [Problem(where, f"{len(ids)} rows could be read, its pin counts {pin.row_count}")]
        if pc.count_distinct(ids).as_py() != len(ids):
            return [Problem(where, "an id occurs twice")]
        if commit_id is not None and (found := table.property(COMMIT_PROPERTY)) != commit_id:
            return [Problem(where, f"was made by commit {found} but published by commit {commit_id}")]
        for _ in table.batches():
            pass
    except OmniGraphError as error:
        return [Problem(where, error.message)]
    return []


def _schema_problems(snapshot: Snapshot, expected: Expected) -> list[Problem]:
    problems: list[Problem] = []
    for key in sorted(set(snapshot.tables) ^ set(expected.columns)):
        side = "no type in the schema" if key in snapshot.tables else "no table"
        problems.append(Problem(f"branch {snapshot.branch}", f"'{key}' has {side}"))
    for key in sorted(set(snapshot.tables) & set(expected.columns)):
        found, wanted = _columns(snapshot.table(key).schema), _columns(expected.columns[key])
        if found != wanted:
            names = ", ".join(sorted({name for name, _ in found ^ wanted}))
            problems.append(Problem(key, f"has other columns than its type: {names}"))
    for ends in expected.edges:
        problems += _dangling_edges(snapshot, ends)
    return problems


def _columns(schema: pa.Schema) -> set[tuple[str, pa.DataType]]:
    return {(field.name, field.type) for field in schema}


def _dangling_edges(snapshot: Snapshot, ends: EdgeEnds) -> list[Problem]:
    problems: list[Problem] = []
    for column, node_key, named in (("src", ends.src_key, ends.src_column), ("dst", ends.dst_key, ends.dst_column)):
        try:
            used = snapshot.table(ends.edge_key).read([column])[column]
            known = snapshot.table(node_key).read([named])[named]
        except OmniGraphError as error:
            problems.append(Problem(ends.edge_key, error.message))
            continue
        dangling = used.filter(pc.invert(pc.is_in(used, value_set=one_array(known))))
        if len(dangling):
            problems.append(Problem(ends.edge_key, f"{len(dangling)} edges have a {column} that is not in {node_key}"))
    return problems
