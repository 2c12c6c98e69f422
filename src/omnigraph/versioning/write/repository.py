"""An open graph: its manifest, tables and small objects, and the only loop that publishes.

Invariants:
- Changes become visible only through `publish`, which changes the manifest in one commit or not at all.
- `publish` decides on the version that it replaces. After a lost race it decides again.
- The newest state is cached only to avoid reading it again. Every publish checks the manifest.
"""

from __future__ import annotations

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import cached_property, partial
from itertools import islice
from threading import RLock
from typing import Any

from omnigraph.cancellation import check_cancelled
from omnigraph.errors import (
    Conflict,
    Damaged,
    GraphNotFound,
    Hint,
    IncompatibleFormat,
    InputError,
    OmniGraphError,
    OutcomeUnknown,
    StorageError,
)
from omnigraph.storage.backoff import pause
from omnigraph.storage.failpoints import VARIABLE, arm_from_environment
from omnigraph.storage.files.layout import RECOVERY, SCHEMA_COPY
from omnigraph.storage.files.location import Location, locate
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.lance.table_store import TableStore
from omnigraph.storage.lance.tables import replaced
from omnigraph.storage.manifest.manifest_schema import HistoryFilter, Row
from omnigraph.storage.manifest.manifest_table import ManifestTable, PublishConflict
from omnigraph.storage.manifest.manifest_version import Change, ManifestVersion
from omnigraph.storage.parallel import request
from omnigraph.version import STORAGE_FORMAT, STORAGE_FORMAT_NEWEST, STORAGE_FORMAT_OLDEST
from omnigraph.versioning.model.aliases import AliasSet
from omnigraph.versioning.model.ancestry import newest_first
from omnigraph.versioning.model.as_of import commit_as_of
from omnigraph.versioning.model.ids import Clock, new_ulid, system_clock
from omnigraph.versioning.model.manifest_objects import (
    MAIN,
    Commit,
    Commits,
    GraphSpec,
    Pin,
    QueriesRecord,
    SchemaRecord,
)
from omnigraph.versioning.model.manifest_rows import (
    alias_object_id,
    commit_of_pins,
    head_to_row,
    queries_object_id,
    read_metadata,
    row_to_alias,
    row_to_commit,
    row_to_commit_and_pins,
    row_to_head,
    row_to_queries,
    row_to_schema,
    schema_object_id,
)
from omnigraph.versioning.model.points import commit_with_prefix, no_point
from omnigraph.versioning.model.purges import FREEZE_ID
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.snapshot_view import PinnedTable
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.initial_commit import write_initial_commit
from omnigraph.versioning.write.queue import WriteQueue
from omnigraph.versioning.write.ref_names import check_text

FORMAT = STORAGE_FORMAT

_log = logging.getLogger(__name__)

PUBLISH_TRIES = 200
_COMMIT_BYTES = 640
"""The estimated size of a commit in memory: 500 bytes, and more with a message, metadata or a second parent."""
_PINS_BYTES = 2 * 1024
"""The estimated size of the pins of a commit in memory."""
_COMMITS_AT_ONCE = 256
"""Manifest versions whose commits are read first when few commits are listed."""
_COMMIT_COLUMNS = ("object_id", "metadata", "table_version", "table_branch")
_PINS_MAX = 1_024
_QUERIES_MAX = 64
_ALIASES_MAX = 8
_PINS_AT_ONCE = 512
_FREEZE_S = 5.0
"""The time for which a publish waits for a purge."""
_FREEZE_LOOK_S = 0.01
_CONTENDED_US = 10_000_000
"""Time after a lost race during which a branch is considered contended."""

Point = str | int | datetime
At = Point | None
Decide = Callable[[State], Change | tuple[Change, ...] | None]
"""Returns the change for the newest state, or several that are published together; None if no change is required."""


class Repository:
    """An open graph."""

    def __init__(self, location: Location, *, sync: bool, read_only: bool, clock: Clock) -> None:
        self.location = location
        self.read_only = read_only
        self.clock = clock
        self.objects: ObjectStore = object_store(location, sync=sync)
        self.tables = TableStore(location, sync=sync, read_only=read_only)
        self.manifest = ManifestTable(location, sync=sync, stored_form=self._stored_form)
        self.queue: WriteQueue[Any] = WriteQueue()
        self._lock = RLock()
        self.on_replaced: list[Callable[[], None]] = []
        """Called when the history is found to be replaced: by a copy of the graph, or by a purge."""
        self._intents: Future[list[str]] | None = None
        self._state: State | None = None
        self.staleness_s = 0.0
        """The age up to which a read may use an earlier look at the heads. Writes of this process are always seen."""
        self._looked_at = float("-inf")
        self._schemas: dict[str, SchemaRecord] = {}
        self._queries: dict[str, QueriesRecord] = {}
        self._aliases: dict[str, AliasSet] = {}
        self._lost_races: dict[str, int] = {}
        self._commits = Commits(0, {}, [])
        self._pins: OrderedDict[tuple[int, str], tuple[Pin, ...]] = OrderedDict()
        """Epoch and commit → pins, of commits that were used lately. A purge changes the pins and the epoch; threads
        may still read the state before it.
        """
        self._snapshots_of: State | None = None
        self._snapshots: dict[str, Snapshot] = {}
        """The head snapshots of one state that were requested."""

    # -- opening and creating --------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        uri: str | os.PathLike[str],
        *,
        read_only: bool = False,
        sync: bool = True,
        clock: Clock = system_clock,
        environ: Mapping[str, str] | None = None,
    ) -> Repository:
        """Open an existing graph; its format is checked before anything else is read."""
        repository = cls(_locate_graph(uri, environ), sync=sync, read_only=read_only, clock=clock)
        if not read_only and not repository.location.is_local:
            repository._intents = request(partial(repository.objects.list, RECOVERY))
        version = repository.manifest.read_if_exists()
        if version is None:
            raise GraphNotFound(
                f"there is no graph at '{repository.location.uri}'",
                hint=Hint(
                    f"create one: omnigraph.init({repository.location.uri!r}, schema)",
                    cli=f"create one: omnigraph init --schema schema.pg {repository.location.uri}",
                ),
            )
        check_stamp(version, repository.location)
        repository._remember(version)
        if not read_only and version.store != repository.location.store_id:
            # The graph was not written through this store before, or was copied to it.
            repository.objects.prove_conditional_writes(new_ulid(clock()))
        return repository

    def intents(self) -> list[str]:
        """Return the names of the intents of all writers; the listing of the open is used once."""
        listing, self._intents = self._intents, None
        return listing.result() if listing is not None else self.objects.list(RECOVERY)

    @classmethod
    def create(
        cls,
        uri: str | os.PathLike[str],
        spec: GraphSpec,
        *,
        actor: str | None = None,
        sync: bool = True,
        clock: Clock = system_clock,
        environ: Mapping[str, str] | None = None,
    ) -> Repository:
        """Create a graph with empty tables."""
        repository = cls(_locate_graph(uri, environ), sync=sync, read_only=False, clock=clock)
        repository._state = State(write_initial_commit(repository, spec, actor), repository.pins_of)
        return repository

    # -- state -----------------------------------------------------------------------------------

    @property
    def format(self) -> int:
        """The storage format of the graph."""
        return int(self.state().manifest.stamp or 0)

    @property
    def known_epoch(self) -> int:
        """The number of times that this process found the graph replaced by another one."""
        known = self._state
        return known.epoch if known is not None else 0

    def state(self) -> State:
        """Return the newest state; it is read again only if the manifest changed."""
        with self._lock:
            known = self._state
        began = time.monotonic() if self.staleness_s else 0.0
        version = self.manifest.read() if known is None else self.manifest.refresh(known.manifest)
        state = known if known is not None and version is known.manifest else self._remember(version)
        if self.staleness_s:
            # Only now: until here, reads of other threads find the state of the look before.
            self._looked_at = began
        return state

    def read_state(self) -> State:
        """Return a state for a read: the look at the manifest may be `staleness_s` old."""
        if self.staleness_s and time.monotonic() - self._looked_at <= self.staleness_s:
            with self._lock:
                known = self._state
            if known is not None:
                return known
        return self.state()

    def _remember(self, version: ManifestVersion) -> State:
        state = State(version, self.pins_of)
        self._note_versions(state)
        with self._lock:
            known = self._state
            is_replaced = known is not None and known.epoch < state.epoch
            if is_replaced:
                self._forget_history()
            if known is None or (known.epoch, known.version) <= (state.epoch, state.version):
                self._state = state
        for forget in self.on_replaced if is_replaced else ():
            forget()
        return state

    def _note_versions(self, state: State) -> None:
        """Tell the table store which versions other writers made, so that it does not try to make the same."""
        version, known = state.manifest, self._state
        before = known.manifest.added if known is not None else {}
        for object_id in reversed(list(version.added)):
            if object_id in before:
                return
            row = version.added[object_id]
            if row["object_type"] == "table_version":
                table = state.tables.get((row["stable_table_id"], row["table_incarnation_id"]))
                if table is not None:
                    # The number of a part of a version is negative and counts for nothing.
                    self.tables.saw(table.folder, int(read_metadata(row)["lance_version"]))

    def _forget_history(self) -> None:
        """Drop everything that was derived from a replaced history."""
        self.tables.reset()
        self._commits = Commits(0, {}, [])
        self._schemas, self._queries, self._aliases = {}, {}, {}
        self._pins = OrderedDict()
        self._snapshots_of, self._snapshots = None, {}
        self.__dict__.pop("genesis_id", None)

    def checkpoint(self) -> State:
        """Fold the log into the checkpoint of the manifest; return the state."""
        return self._remember(self.manifest.checkpoint(self.state().manifest))

    def check_writable(self) -> None:
        """Refuse a write on a graph that was opened read-only, before anything is written."""
        if self.read_only:
            raise InputError(
                "the graph was opened read-only",
                hint=Hint("open it without read_only", cli="omit --read-only"),
            )

    def publish(
        self,
        decide: Decide,
        *,
        commit_id: str | None = None,
        known: State | None = None,
        storage_format: int = FORMAT,
        purging: bool = False,
    ) -> State:
        """Apply the change that `decide` returns for the newest version, or raise what `decide` raises.

        `commit_id` is the commit that the change makes. If a response is lost, looking it up determines the outcome.
        On an object store the first attempt assumes that `known` is still the newest state, which saves a request.
        A graph of an earlier format than `storage_format` is upgraded to it first. `purging` is set by a purge, which
        does not wait for itself.
        """
        self.check_writable()
        failure: OmniGraphError | None = None
        tried = False
        if not purging:
            self._wait_for_purge()
        for attempt in range(PUBLISH_TRIES):
            with self.manifest.locks.publish_lock() as waited:
                assumed = attempt == 0 and known is not None and not self.location.is_local and not waited
                state = known if assumed and known is not None else self.state()
                # The race may have been lost against this writer itself: the response was lost, and the repetition was
                # refused.
                if tried and commit_id is not None and self.find_commit(commit_id, state) is not None:
                    return state
                upgrades = False
                try:
                    # A later release may have upgraded the graph since it was opened.
                    upgrades = check_stamp(state.manifest, self.location) < storage_format
                    if upgrades:
                        state = self._remember(self.manifest.raise_stamp(state.manifest, str(storage_format)))
                        upgrades = False
                    publication = decide(state)
                    if publication is None:
                        return state
                    check_cancelled()
                    tried = True
                    changes = publication if isinstance(publication, tuple) else (publication,)
                    return self._remember(self.manifest.publish(state.manifest, *changes))
                except PublishConflict:
                    pass
                except OutcomeUnknown as error:
                    error.commit_id = commit_id
                    raise
                except StorageError as error:
                    if upgrades and self.location.is_local:
                        raise  # a repetition would find the stamp and not flush it
                    failure = self._resolve_failure(error, commit_id, failure)
                    if failure is None:
                        return self.state()
            pause(attempt)
        raise Conflict(
            f"{PUBLISH_TRIES} attempts to publish lost races against other writers; nothing was written",
            hint="try again",
        )

    def _wait_for_purge(self) -> None:
        """Wait while a purge replaces the history, so that it does not lose every race.

        It does not matter for correctness. If the purge takes too long or died, its request is dropped.
        """
        known = self._state
        if known is None or not known.is_frozen:
            return
        end = time.monotonic() + _FREEZE_S
        while self.state().is_frozen:
            check_cancelled()
            if time.monotonic() > end:
                self.publish(lambda state: Change(drop=(FREEZE_ID,)) if state.is_frozen else None, purging=True)
                return
            time.sleep(_FREEZE_LOOK_S)

    def _resolve_failure(
        self, error: StorageError, commit_id: str | None, before: OmniGraphError | None
    ) -> OmniGraphError | None:
        """Determine the outcome of a failed publish by reading the manifest.

        Return None if it landed, or the error if another attempt is worthwhile; otherwise raise the error.
        """
        try:
            state = self._remember(self.manifest.read())
            landed = commit_id is not None and self.find_commit(commit_id, state) is not None
        except OmniGraphError as unreadable:
            raise OutcomeUnknown(
                f"the response to a publish was lost and the manifest cannot be read: {error.message}",
                commit_id=commit_id,
                hint="read the branch before trying again: the commit may exist",
            ) from unreadable
        if landed:
            return None
        if before is not None or error.code in ("disk_full", "no_access", "credentials_expired", "clock_skew"):
            raise error
        return error

    def write_schema_copy(self, text: str) -> None:
        """Write the readable copy of main's schema. The commit is published: a failure is logged."""
        try:
            self.objects.write(SCHEMA_COPY, text.encode())
        except StorageError as error:
            _log.warning("the readable copy of the schema is not current: %s", error.message)

    def record_lost_race(self, branch: str) -> None:
        """Record that another writer of the branch won a race."""
        with self._lock:
            self._lost_races[branch] = self.clock()

    def is_contended(self, branch: str) -> bool:
        """Return True if a race was lost on the branch recently; a write then queues instead of staging in vain."""
        with self._lock:
            lost_at = self._lost_races.get(branch)
        return lost_at is not None and self.clock() - lost_at < _CONTENDED_US

    # -- history ---------------------------------------------------------------------------------

    def find_commit(self, commit_id: str, state: State | None = None) -> tuple[Commit, tuple[Pin, ...]] | None:
        """Return a commit and its pins; None if it does not exist."""
        state = state or self.state()
        rows = [row for row in self.manifest.find(state.manifest, commit_id) if row["object_type"] == "graph_commit"]
        return row_to_commit_and_pins(rows[0]) if rows else None

    def pins_of(self, version: ManifestVersion, commit_ids: Sequence[str]) -> dict[str, tuple[Pin, ...]]:
        """Return commit → pins, which never change within an epoch."""
        epoch = version.epoch
        with self._lock:
            kept = ((commit_id, self._pins.get((epoch, commit_id))) for commit_id in commit_ids)
            found = {commit_id: pins for commit_id, pins in kept if pins is not None}
        unknown = [commit_id for commit_id in commit_ids if commit_id not in found]
        for first in range(0, len(unknown), _PINS_AT_ONCE):
            for row in self.manifest.find(version, *unknown[first : first + _PINS_AT_ONCE]):
                if row["object_type"] == "graph_commit":
                    found[row["object_id"]] = row_to_commit_and_pins(row)[1]
        for commit_id in unknown:
            if commit_id not in found:
                raise Damaged(f"commit {commit_id} is missing from the history", code="damaged_manifest")
        with self._lock:
            for commit_id in commit_ids:
                self._pins[epoch, commit_id] = found[commit_id]
                self._pins.move_to_end((epoch, commit_id))
            while len(self._pins) > _PINS_MAX:
                self._pins.popitem(last=False)
        return found

    def _stored_form(self, version: ManifestVersion, rows: Sequence[Row]) -> list[Row]:
        """Return state rows for a checkpoint: heads with the pins that differ from those of their fork points."""
        heads = [row for row in rows if row["object_type"] == "graph_head"]
        needed = dict.fromkeys(commit for commit in map(commit_of_pins, heads) if commit is not None)
        pins = self.pins_of(version, list(needed))
        read = [row_to_head(row, pins.__getitem__) for row in heads]
        forks = self.pins_of(version, list(dict.fromkeys(head.fork_commit_id for head in read if head.fork_commit_id)))
        stored = [head_to_row(head, forks.get(head.fork_commit_id or "")) for head in read]
        return [row for row in rows if row["object_type"] != "graph_head"] + stored

    def get_commit(self, commit_id: str) -> Commit:
        """Return a commit by its id."""
        found = self.find_commit(commit_id)
        if found is None:
            raise no_point(commit_id, self.state())
        return found[0]

    def all_pins(self, state: State) -> dict[str, tuple[Pin, ...]]:
        """Return commit id → pins for every commit in the manifest."""
        rows = self.manifest.scan(state.manifest, HistoryFilter("graph_commit"), _COMMIT_COLUMNS)
        return {commit.id: pins for commit, pins in map(row_to_commit_and_pins, rows)}

    @property
    def history_bytes(self) -> int:
        """The estimated size of the commits and pins in memory."""
        return len(self._commits) * _COMMIT_BYTES + len(self._pins) * _PINS_BYTES

    def all_commits(self, state: State | None = None) -> Commits:
        """Return every commit in the manifest, including those of deleted branches and possibly newer ones.

        Commits never change and are never removed, so only those after the last call are read.
        """
        state = state or self.state()
        known = self._commits_known(state)
        if known.version < state.version:
            later = self.commits_between(state, known.version, state.version)
            with self._lock:
                known = self._commits_known(state)
                if known.version < state.version:
                    self._commits = known = known.extended(later.values(), state.version)
        return known

    def _commits_known(self, state: State) -> Commits:
        """Return the commits that were read so far; refuse a state of a history that was replaced since."""
        with self._lock:
            if self._state is not None and self._state.epoch != state.epoch:
                raise replaced("the history cannot be read")
            return self._commits

    @cached_property
    def genesis_id(self) -> str:
        """The first commit of the graph. It identifies the graph, wherever its folder is."""
        return next(commit.id for commit in self.all_commits().values() if commit.parent_id is None)

    def commits(self, branch: str = MAIN, limit: int | None = None) -> list[Commit]:
        """Return the commits reachable from a branch's head, newest first."""
        return list(islice(self.newest_commits(branch, few=limit is not None), limit))

    def newest_commits(self, *branches: str, few: bool = False) -> Iterator[Commit]:
        """Return an iterator of the commits reachable from the heads of branches, by default of main, newest first.

        With `few`, commits are read from the manifest in batches as they are needed, unless all are known already.
        """
        state = self.state()
        heads = [state.get_head(branch) for branch in branches or (MAIN,)]
        with self._lock:
            few = few and not self._commits
        get = _RecentCommits(self, state).get if few else self.all_commits(state).get

        def commit_of(commit_id: str) -> Commit:
            commit = get(commit_id)
            if commit is None:
                raise Damaged(f"commit {commit_id} is missing from the history of '{', '.join(branches)}'")
            return commit

        return newest_first([commit_of(head.commit_id) for head in heads], commit_of)

    def commits_between(self, state: State, low: int, high: int) -> dict[str, Commit]:
        """Return the commits whose manifest versions are above `low` and at most `high`, by id."""
        wanted = HistoryFilter("graph_commit", above=low, up_to=high)
        rows = self.manifest.scan(state.manifest, wanted, _COMMIT_COLUMNS)
        return {commit.id: commit for commit in map(row_to_commit, rows)}

    def schema(self, hash_: str) -> SchemaRecord:
        """Return the schema with this hash."""
        with self._lock:
            known = self._schemas.get(hash_)
        if known is not None:
            return known
        # A schema never changes, and a state that refers to it contains it.
        state = self._state or self.state()
        rows = self.manifest.find(state.manifest, schema_object_id(hash_))
        if not rows:
            raise Damaged(f"the manifest has no schema {hash_}", code="damaged_manifest")
        record = row_to_schema(rows[0])
        with self._lock:
            self._schemas[hash_] = record
        return record

    def queries(self, hash_: str) -> QueriesRecord:
        """Return the stored queries with this hash."""
        with self._lock:
            known = self._queries.get(hash_)
        if known is not None:
            return known
        state = self._state or self.state()
        rows = self.manifest.find(state.manifest, queries_object_id(hash_))
        if not rows:
            raise Damaged(f"the manifest has no stored queries {hash_}", code="damaged_manifest")
        record = row_to_queries(rows[0])
        with self._lock:
            while len(self._queries) >= _QUERIES_MAX:
                del self._queries[next(iter(self._queries))]
            self._queries[hash_] = record
        return record

    def aliases(self, hash_: str) -> AliasSet:
        """Return the aliases with this hash; those of a hash that was read last are kept."""
        with self._lock:
            known = self._aliases.get(hash_)
        if known is not None:
            return known
        found = AliasSet(hash_, self._alias_document)
        with self._lock:
            while len(self._aliases) >= _ALIASES_MAX:
                del self._aliases[next(iter(self._aliases))]
            self._aliases[hash_] = found
        return found

    def _alias_document(self, hash_: str) -> str:
        state = self._state or self.state()
        rows = self.manifest.find(state.manifest, alias_object_id(hash_))
        if not rows:
            raise Damaged(f"the manifest has no aliases {hash_}", code="damaged_manifest")
        return row_to_alias(rows[0]).document

    # -- snapshots -------------------------------------------------------------------------------

    def snapshot(self, branch: str = MAIN, at: At = None) -> Snapshot:
        """Return the graph at a branch's head or at a point of history.

        A point is a branch, a tag, a commit id or a unique prefix of one, a snapshot id, or a version or time of the
        branch.
        """
        state = self.state()
        if isinstance(at, str):
            if at.startswith("manifest:"):
                branch, at = read_snapshot_id(at)
            else:
                found = self.find_point(at, state)
                if found is None:
                    raise no_point(at, state)
                return found
        if at is None:
            return self.at_head(state, branch)
        commit = commit_as_of(self.manifest, state, branch, at)
        pinned = self.find_commit(commit.id, state)
        assert pinned is not None
        return self._snapshot_of(state, branch, *pinned)

    def read_snapshot(self, branch: str = MAIN, at: At = None) -> Snapshot:
        """Return the graph at a point, for a read: the look at a head may be `staleness_s` old."""
        if at is None and (state := self.read_state()).find_head(branch) is not None:
            return self.at_head(state, branch)
        return self.snapshot(branch, at)

    def find_point(
        self, name: str, state: State | None = None, permits: Callable[[str], bool] | None = None
    ) -> Snapshot | None:
        """Return the graph at the commit that a name denotes: a commit id, a tag, a branch or a unique id prefix.

        A prefix denotes no commit of a branch that `permits` refuses.
        """
        state = state or self.state()
        tag = state.find_tag(name)
        found = self.find_commit(tag.commit_id if tag is not None else name, state)
        if found is None:
            if state.find_head(name) is not None:
                return self.at_head(state, name)
            known = self.all_commits(state)
            commit_id = commit_with_prefix(name, known, lambda each: permits is None or permits(known[each].branch))
            found = self.find_commit(commit_id, state) if commit_id is not None else None
        return self._snapshot_of(state, found[0].branch, *found) if found is not None else None

    def at_head(self, state: State, branch: str) -> Snapshot:
        """Return the snapshot of a head.

        It is created once per state, because it never changes and most reads request it.
        """
        check_text(branch, "branch")
        with self._lock:
            if self._snapshots_of is not state:
                self._snapshots_of, self._snapshots = state, {}
            known = self._snapshots.get(branch)
        if known is not None:
            return known
        head = state.get_head(branch)
        tables = self._pinned(state, head.commit_id, head.pins)
        made = Snapshot(
            self,
            branch,
            head.commit_id,
            head.manifest_version,
            head.schema_hash,
            tables,
            head.queries_hash,
            head.aliases_hash,
            purge_epoch=state.purge_epoch,
        )
        if head.commit_id != head.fork_commit_id:
            made.made_on = branch
        with self._lock:
            if self._snapshots_of is state:
                self._snapshots[branch] = made
        return made

    def _snapshot_of(self, state: State, branch: str, commit: Commit, pins: Iterable[Pin]) -> Snapshot:
        tables = self._pinned(state, commit.id, pins)
        version, schema, sets = commit.manifest_version, commit.schema_hash, (commit.queries_hash, commit.aliases_hash)
        return Snapshot(self, branch, commit.id, version, schema, tables, *sets, purge_epoch=state.purge_epoch)

    def _pinned(self, state: State, commit_id: str, pins: Iterable[Pin]) -> dict[str, PinnedTable]:
        tables: dict[str, PinnedTable] = {}
        for pin in pins:
            row = state.tables.get((pin.table_id, pin.incarnation))
            if row is None:
                raise Damaged(f"commit {commit_id} pins '{pin.key}', which has no table", code="damaged_manifest")
            tables[pin.key] = PinnedTable(pin, row.folder)
        return tables

    # -- branches --------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """Return the names of all branches: main first, then by name. Internal heads are not listed."""
        return self.state().branches()

    def check_whole(self, snapshot: Snapshot, state: State) -> None:
        """Refuse to pin a commit whose versions a cleanup has removed or is removing."""
        for table in snapshot.tables.values():
            reclaimed = state.is_reclaimed(table.folder, table.pin.versions)
            if reclaimed or not self.tables.has_version(*table.open_args):
                raise Damaged(
                    f"'{table.pin.key}' at commit {snapshot.commit_id} was reclaimed or lost",
                    code="version_reclaimed",
                    hint="a cleanup removes old versions; start at a newer commit",
                )


class _RecentCommits:
    """Commits of the manifest, read from the newest version backwards in growing batches."""

    def __init__(self, repository: Repository, state: State) -> None:
        self._repository = repository
        self._state = state
        self._known: dict[str, Commit] = {}
        self._low = state.version
        self._batch = _COMMITS_AT_ONCE

    def get(self, commit_id: str) -> Commit | None:
        """Return a commit; None if the manifest does not have it."""
        while commit_id not in self._known and self._low > 0:
            low = max(0, self._low - self._batch)
            self._known |= self._repository.commits_between(self._state, low, self._low)
            self._low, self._batch = low, self._batch * 4
        return self._known.get(commit_id)


def _locate_graph(uri: str | os.PathLike[str], environ: Mapping[str, str] | None) -> Location:
    """Return the location of a graph. Failpoints that the environment names are armed before it is used."""
    environ = os.environ if environ is None else environ
    arm_from_environment(environ.get(VARIABLE, ""))
    return locate(uri, environ)


def check_stamp(version: ManifestVersion, location: Location) -> int:
    """Return the storage format of a graph; refuse one that this release does not read, with what to do."""
    stamp = version.stamp
    if stamp is None:
        raise IncompatibleFormat(f"'{location.uri}' has no format stamp; it was not opened, and nothing was written")
    if not stamp.isdecimal():
        raise IncompatibleFormat(f"'{location.uri}' has an unreadable format stamp: '{stamp[:40]}'")
    found = int(stamp)
    known = f"this release reads {STORAGE_FORMAT_OLDEST} to {STORAGE_FORMAT_NEWEST}"
    if found > STORAGE_FORMAT_NEWEST:
        raise IncompatibleFormat(
            f"'{location.uri}' has storage format {found}; {known}",
            hint="upgrade omnigraph before opening this graph",
        )
    if found < STORAGE_FORMAT_OLDEST:
        raise IncompatibleFormat(
            f"'{location.uri}' has storage format {found}; {known}",
            hint="with the release that wrote it: omnigraph export GRAPH > graph.jsonl; with this one: omnigraph init "
            "--schema schema.pg NEW, then omnigraph load --mode overwrite --data graph.jsonl NEW "
            "(data, vectors and blobs survive, history and branches do not)",
        )
    return found


def read_snapshot_id(text: str) -> tuple[str, int]:
    """Return the branch and version of a snapshot id, `manifest:<branch>:v<number>`."""
    branch, separator, version = text.removeprefix("manifest:").rpartition(":v")
    if not separator or not version.isdecimal():
        raise InputError(f"'{text}' is not a snapshot id", hint="write a commit id, or manifest:<branch>:v<number>")
    return branch, int(version)
