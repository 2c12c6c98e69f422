"""`GraphContext`: the state that all handles of one opened graph share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.engine.cache.disk_cache import FOLDER as CACHE_FOLDER
from omnigraph.engine.cache.remote_cache import RemoteCache
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.cache.user_folder import forget_purged, graph_folder
from omnigraph.errors import Denied, InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.machine_memory import MemoryBudget
from omnigraph.operations.authorization.authorized_points import authorized_snapshot, judge_silently
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.embed.embedder import GraphEmbedder
from omnigraph.operations.plan_cache import PlanCache
from omnigraph.storage.files.blob_sources import BlobSources
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.upkeep.parallel import TABLES_AT_ONCE
from omnigraph.versioning.write.ref_names import check_text

if TYPE_CHECKING:
    from omnigraph.engine.exec.view import View
    from omnigraph.operations.authorization.access import Access
    from omnigraph.policy.breakage import SchemaCheck
    from omnigraph.policy.decide import Policy
    from omnigraph.query.visibility import Visibility
    from omnigraph.query.write_guard import WriteGuard
    from omnigraph.schema.catalog import Catalog
    from omnigraph.values import Fetch
    from omnigraph.versioning.model.manifest_objects import Commit, Head, Tag
    from omnigraph.versioning.model.snapshot import Snapshot
    from omnigraph.versioning.write.repository import At, Repository

Place = str | os.PathLike[str]
MAINTENANCE_CONCURRENCY = "OMNIGRAPH_MAINTENANCE_CONCURRENCY"
_CONCURRENCY_MAX = 1024
OPEN_METADATA = ("request_id", "reverts", "proposal", "approvers")
"""Metadata of commits that every reader of the branch may see."""


@dataclass(frozen=True)
class GraphContext:
    """Repository, caches and settings of one opened graph."""

    repository: Repository
    cache: DataCache
    catalogs: CatalogCache
    plans: PlanCache
    embedder: GraphEmbedder
    environ: Mapping[str, str] = field(repr=False)
    fetch: Fetch | None = None
    """Reads the bytes of a Blob that is given as a reference; None if no source is permitted."""
    access: Access | None = None
    """The rights of the caller; None does not limit them."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Entries of the metadata of every commit."""
    maintenance_concurrency: int = TABLES_AT_ONCE
    """Number of tables that maintenance treats at once."""
    approximate: bool = False
    """True if every vector ranking may be approximate."""
    visibility: Visibility | None = None
    """The rows and values that the caller may see, in place of those that its access allows."""
    guard: WriteGuard | None = None
    """The rows and properties that the caller may change, in place of those that its access allows."""
    schema_policy: Policy | None = None
    """Without an access: the policy whose rules a change of the schema must not break. It limits nothing else."""

    @property
    def bytes_by_owner(self) -> dict[str, int]:
        """The memory of the graph by what keeps it, as `/metrics` shows it."""
        repository = self.repository
        return {
            "tables": self.cache.bytes,
            "plans": self.plans.bytes,
            "versions": repository.tables.handle_bytes,
            "history": repository.history_bytes,
            "lance": repository.tables.cache_bytes + repository.manifest.cache_bytes,
        }

    @classmethod
    def of(
        cls,
        repository: Repository,
        environ: Mapping[str, str],
        blob_sources: Sequence[Place],
        memory: int | str | None = None,
        *,
        approximate: bool = False,
    ) -> GraphContext:
        """Return the context of a newly opened graph, with empty caches that keep a memory budget."""
        path = repository.location.path
        folder = path / CACHE_FOLDER if path is not None else graph_folder(environ, repository.location.uri)
        catalogs = CatalogCache()
        budget = MemoryBudget.of(memory, environ)
        remote = None
        if path is None and folder is not None:
            remote = RemoteCache(repository.objects, folder, read_only=repository.read_only)
        keep = path is None or not repository.read_only
        cache = DataCache(folder=folder, keep=keep, memory=budget, remote=remote)
        repository.on_replaced.append(cache.forget)
        if remote is not None and folder is not None:
            # Another machine may have purged rows that structures of this machine contain.
            forget_purged(folder, repository.state().purge_epoch)
        return cls(
            repository,
            cache,
            catalogs,
            PlanCache(catalogs, cache, approximate=approximate),
            GraphEmbedder(environ),
            environ,
            BlobSources(blob_sources, environ) if blob_sources else None,
            maintenance_concurrency=_maintenance_concurrency(environ),
            approximate=approximate,
        )

    def with_access(self, access: Access) -> GraphContext:
        """Return the context of a handle with an access."""
        return self._changed(access=access.for_graph(self._owner_of))

    def _owner_of(self, branch: str) -> str | None:
        head = self.repository.state().find_head(branch)
        return head.owner if head is not None else None

    def with_metadata(self, metadata: Mapping[str, Any]) -> GraphContext:
        """Return the context of a handle with other metadata."""
        return self._changed(metadata=metadata)

    def with_visibility(self, visibility: Visibility) -> GraphContext:
        """Return the context of a handle that sees a part of the graph."""
        return self._changed(visibility=visibility)

    def with_guard(self, guard: WriteGuard) -> GraphContext:
        """Return the context of a handle that sees and may change a part of the graph."""
        return self._changed(visibility=guard.visibility, guard=guard)

    def with_schema_policy(self, policy: Policy) -> GraphContext:
        """Return the context of a handle whose changes of the schema must not break the rules of a policy."""
        return self._changed(schema_policy=policy)

    def unrestricted(self) -> GraphContext:
        """Return the context of the engine itself, which sees and may change everything."""
        return self._changed(access=None, visibility=None, guard=None)

    @property
    def has_row_rules(self) -> bool:
        """True if rules limit the rows or properties that callers may see or change."""
        return self.visibility is not None or (self.access is not None and self.access.has_row_rules)

    def visibility_of(self, snapshot: Snapshot) -> Visibility | None:
        """Return what the caller may see of a snapshot; None if it sees everything.

        The rules of today are applied, for the branch of the snapshot and its schema.
        """
        if self.visibility is not None or self.access is None or not self.access.has_row_rules:
            return self.visibility
        return self.access.visibility(self.catalogs.of(snapshot), snapshot.branch)

    def guard_of(self, snapshot: Snapshot) -> WriteGuard | None:
        """Return what the caller may change of a snapshot; None if it may change everything."""
        return self.guard_on(self.catalogs.of(snapshot), snapshot.branch) if self.has_row_rules else None

    def guard_on(self, catalog: Catalog, branch: str) -> WriteGuard | None:
        """Return what the caller may change of a branch with a schema; None if it may change everything."""
        if self.visibility is not None:
            from omnigraph.query.write_guard import WriteGuard  # noqa: PLC0415 (only for a visibility)

            return self.guard if self.guard is not None else WriteGuard(self.visibility)
        if self.access is None or not self.access.has_row_rules:
            return None
        return self.access.write_guard(catalog, branch)

    def sees_alike(self, snapshot: Snapshot, branch: str) -> bool:
        """Return True if the caller sees everything of a snapshot, or would see the same of it on a branch."""
        access = self.access
        if self.visibility is not None or access is None or not access.has_row_rules:
            return True
        catalog = self.catalogs.of(snapshot)
        here, there = (access.visibility(catalog, name) for name in (snapshot.branch, branch))
        return here is None or (there is not None and there.digest == here.digest)

    def skips_row_check(self, source: str, target: str) -> bool:
        """Return True if a rule says that the rows of a merge by the caller are not checked."""
        return self.access is not None and self.access.decide("branch_merge", source, target).skips_row_check

    def check_new_branch(self, name: str, base: Snapshot) -> None:
        """Raise `Denied` if the caller would see other rows or values of a snapshot on a new branch."""
        if not self.sees_alike(base, name):
            reason = "the rules for rows of the new branch show other rows and values of its base"
            raise Denied(f"'branch_create' of '{name}' from '{base.branch}' is denied: {reason}", (reason,))

    def check_earlier_queries(self, start: Snapshot) -> None:
        """Raise `Denied` if the caller may not bring back the queries with rights of an earlier point of a branch."""
        from omnigraph.operations.authorization.difference_rights import check_storing  # noqa: PLC0415 (imports this)
        from omnigraph.operations.stored_queries import is_in_force, queries_of  # noqa: PLC0415 (imports this)

        definers = [query for query in queries_of(start).queries.values() if query.runs_as_definer]
        withdrawn = [query for query in definers if not is_in_force(self, start, query)]
        if withdrawn:
            check_storing(self, withdrawn, lambda: start)

    def catalog(self, snapshot: Snapshot) -> Catalog:
        """Return the catalog of a snapshot, or what the caller may see of it."""
        return self.catalogs.of(snapshot, self.visibility_of(snapshot))

    def view(self, snapshot: Snapshot) -> View | None:
        """Return the stored rows of a snapshot that the caller may see; None if these are all."""
        visibility = self.visibility_of(snapshot)
        if visibility is None:
            return None
        from omnigraph.engine.exec.view import View  # noqa: PLC0415 (only for a visibility)

        return View(self.catalogs.of(snapshot, visibility), snapshot, self.cache, visibility)

    def visible_snapshot(self, snapshot: Snapshot) -> Snapshot:
        """Return what the caller may see of a snapshot: its visible tables with the numbers of their visible rows."""
        view = self.view(snapshot) if self.has_row_rules else None
        if view is None:
            return snapshot
        from omnigraph.operations.authorization.visible_snapshot import VisibleSnapshot  # noqa: PLC0415 (only for a visibility)

        paths = self.access is not None and self.access.decide("admin").allowed
        return VisibleSnapshot(self, snapshot, view, paths=paths)

    def name_of(self, snapshot: Snapshot) -> str:
        """Return a text that names a snapshot, under rules for rows with the branch whose rules apply."""
        return snapshot.point if self.has_row_rules else snapshot.commit_id

    def visible_commit(self, commit: Commit) -> Commit:
        """Return what the caller may see of a commit.

        Under rules for rows, `changed` lists visible types, and of the metadata, which can contain rows and counts,
        the ids of requests and of reverted commits remain.
        """
        return next(self.visible_commits([commit]))

    def own_commit(self, commit: Commit) -> Commit:
        """Return what the caller may see of a commit that it made: no tables if it broke the rules for rows."""
        try:
            return self.visible_commit(commit)
        except Denied:
            return _limited_commit(commit, frozenset())

    def visible_commits(self, commits: Iterable[Commit]) -> Iterator[Commit]:
        """Yield what the caller may see of commits."""
        if not self.has_row_rules:
            yield from commits
            return
        known: dict[tuple[str, str], frozenset[str] | None] = {}
        for commit in commits:
            point = (commit.schema_hash, commit.branch)
            if point not in known:
                known[point] = self._limited_tables(commit)
            tables = known[point]
            yield commit if tables is None else _limited_commit(commit, tables)

    def _limited_tables(self, commit: Commit) -> frozenset[str] | None:
        """Return the visible tables of the schema and branch of a commit; None if everything is visible."""
        snapshot = self.repository.find_point(commit.id)
        if snapshot is None:
            return frozenset()
        if self.visibility_of(snapshot) is None:
            return None
        return frozenset(type_.table_key for type_ in self.catalog(snapshot).tables())

    def head(self, branch: str) -> Head:
        """Return the head of a branch."""
        self.check_head(branch)
        return self.visible_head(self.repository.state().get_head(branch))

    def visible_head(self, head: Head) -> Head:
        """Return what the caller may see of a head: under rules for rows, no pinned tables, which have counts."""
        return replace(head, pins=()) if self.has_row_rules else head

    def visible_tag(self, tag: Tag) -> Tag:
        """Return what the caller may see of a tag: under rules for rows, no pinned tables, which have counts."""
        return replace(tag, pins=()) if self.has_row_rules else tag

    def check_whole(self, what: str, *snapshots: Snapshot) -> None:
        """Raise `Denied` if rules limit the rows of callers and the named operation does not apply them.

        With snapshots, an operation is refused only if the caller may not see and change everything of each.
        """
        if not self.has_row_rules:
            return
        if not snapshots or any(self.guard_of(snapshot) is not None for snapshot in snapshots):
            raise Denied(f"{what} concerns all rows, and rules limit the rows that you may see or change")

    def schema_check(self, *, allowed: bool = False) -> SchemaCheck | None:
        """Return the check that a change of the schema breaks no rule of the policy; None if nothing is checked.

        With `allowed`, it reports broken rules and refuses nothing.
        """
        policy = self.access.policy if self.access is not None else self.schema_policy
        if policy is None or not policy.has_row_rules:
            return None
        from omnigraph.policy.breakage import SchemaCheck  # noqa: PLC0415 (only for rules for rows)

        return SchemaCheck(policy, allowed)

    def _changed(self, **fields: Any) -> GraphContext:
        # A server makes one per request; `dataclasses.replace` takes ten times as long.
        changed = object.__new__(GraphContext)
        changed.__dict__.update(self.__dict__, **fields)
        return changed

    def check(self, action: str, branch: str | None = None, target: str | None = None) -> None:
        """Raise `Denied` if the caller may not perform an action."""
        if self.access is not None:
            self.access.check(action, branch, target)

    def check_head(self, branch: str) -> None:
        """Raise `Denied` if the caller may not read the head of a branch."""
        if self.access is not None:
            self.snapshot(branch)

    def check_unnamed(self, branch: str, what: str) -> None:
        """Raise `Denied` if the caller may not read a branch that it did not name; `what` stands for it."""
        if self.access is not None:
            judge_silently(self.access, partial(self.access.check, "read"), branch, what)

    def check_tag(self, name: str) -> None:
        """Raise `Denied` if the caller may not delete a tag; the branch on which its commit was made is judged."""
        if self.access is None:
            return
        check_text(name, "tag")
        tag = self.repository.state().find_tag(name.strip())
        if tag is None:
            self.check("tag_delete")
        else:
            self.snapshot(MAIN, tag.commit_id, "tag_delete")

    def start_of_branch(self, name: str, base: str, at: At) -> Snapshot | At:
        """Return the point at which the caller may create a branch; None is the head of `base`."""
        access = self.access
        if access is None:
            return at
        if at is None:
            access.check("branch_create", base, name)
            if access.has_row_rules:
                self.check_new_branch(name, self.repository.snapshot(base))
            return None
        start = authorized_snapshot(self.repository, access, base, at, "branch_create", name)
        self.check_new_branch(name, start)
        self.check_earlier_queries(start)
        return start

    def snapshot(self, branch: str, at: At = None, action: str = "read") -> Snapshot:
        """Return the graph at a branch's head or at a point, or raise `Denied` if the caller may not use it so."""
        if self.access is None:
            return self.repository.read_snapshot(branch, at)
        return authorized_snapshot(self.repository, self.access, branch, at, action)


def _limited_commit(commit: Commit, tables: frozenset[str]) -> Commit:
    """Return a commit with its changes of some tables, and without metadata that can contain rows and counts."""
    changed = tuple(key for key in commit.changed if key in tables)
    metadata = {name: commit.metadata[name] for name in OPEN_METADATA if name in commit.metadata}
    return replace(commit, changed=changed, metadata=metadata)


def _maintenance_concurrency(environ: Mapping[str, str]) -> int:
    """Return the number of tables that maintenance treats at once."""
    text = environ.get(MAINTENANCE_CONCURRENCY, "").strip()
    if not text:
        return TABLES_AT_ONCE
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= _CONCURRENCY_MAX:
        raise InputError(
            f"{MAINTENANCE_CONCURRENCY} must be an integer from 1 to {_CONCURRENCY_MAX}, not '{text[:40]}'",
            code="bad_setting",
            hint=f"it is the number of tables that maintenance treats at once; unset, it is {TABLES_AT_ONCE}",
        )
    return int(text)
