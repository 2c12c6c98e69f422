"""One attempt of a write: snapshot, stage, intent, promote, publish. Everything is written this way.

    snapshot  ─► stage each table on its pinned version   unreferenced files
              ─► write the intent                         lets a recovery clean up after a crash
              ─► promote each staged change               numbered versions that nothing pins
              ─► publish                                  one log entry makes everything visible
              ─► delete the intent

Tables are staged and promoted beside each other. On an object store, the intent is written during the staging and
deleted after the response. It is complete before the first version is made.

A crash before the publish leaves only unreferenced files and versions; a crash after it, an intent without effect.
The publish requires that the branch is still at the commit of the snapshot. If it moved, `HeadMoved` is raised, and
`write` starts over on a new snapshot, unless the caller bound the write to a commit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Protocol

from omnigraph.cancellation import ignore_cancellation
from omnigraph.checkpoints import checkpoint
from omnigraph.errors import (
    Damaged,
    ExpectedVersionMismatch,
    HeadMoved,
    InputError,
    OutcomeUnknown,
    PreconditionFailed,
    TypeNotFound,
)
from omnigraph.fast_dataclass import dataclass
from omnigraph.observer import Phase, current
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.storage.files import layout
from omnigraph.storage.lance.digests import record_digests
from omnigraph.storage.lance.staging import Promoted, StagedWrite, TableWrite, stage
from omnigraph.storage.lance.table_versions import compacted, numbered
from omnigraph.storage.lance.tables import Table
from omnigraph.storage.lance.version_files import finish_versions
from omnigraph.storage.manifest.manifest_schema import Row
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.storage.parallel import each_request, each_table
from omnigraph.version import STORAGE_FORMAT, STORAGE_FORMAT_ALIASES, STORAGE_FORMAT_QUERIES
from omnigraph.versioning.model.aliases import AliasSet
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.manifest_objects import (
    MAIN,
    Commit,
    EmbeddingSpace,
    Head,
    Pin,
    QueriesRecord,
    SchemaRecord,
    TableRow,
    TableSpec,
)
from omnigraph.versioning.model.manifest_rows import (
    alias_object_id,
    alias_to_row,
    commit_to_row,
    head_to_log_row,
    identity_to_row,
    queries_object_id,
    queries_to_row,
    schema_object_id,
    schema_to_row,
    table_to_row,
    tombstone_to_row,
    version_to_row,
)
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.check_purged import check_purged
from omnigraph.versioning.write.idempotency import Earlier, RequestKey, find_earlier
from omnigraph.versioning.write.intent import Intent
from omnigraph.versioning.write.repository import Repository

COMMIT_PROPERTY = "omnigraph.commit"


@dataclass(frozen=True)
class WriteOptions:
    """The author, the branch and the preconditions of a write."""

    branch: str = MAIN
    actor: str | None = None
    message: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "write"
    if_commit: str | None = None
    idempotency_key: str | None = None
    request_hash: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    """The part of the result that is recorded with the idempotency key, beside the commit."""
    expected_versions: Mapping[str, int] = field(default_factory=dict)
    merged_parent: str | None = None
    always_commit: bool = False
    """Publish a commit even if no table changes."""
    queued: bool = False
    """Wait for a turn among the small writes of this process to the branch."""

    def __post_init__(self) -> None:
        for what, text in (("actor", self.actor), ("message", self.message)):
            if isinstance(text, str) and not is_unicode(text):
                raise InputError(f"the {what} is not valid Unicode text")

    @property
    def is_bound(self) -> bool:
        """True if the write is refused, and not repeated, on another commit than the one it names."""
        return self.if_commit is not None or bool(self.expected_versions)

    @property
    def request_key(self) -> RequestKey | None:
        """The idempotency key of the write; None if it has none."""
        if self.idempotency_key is None:
            return None
        return RequestKey(self.idempotency_key, self.actor, self.request_hash, self.kind)


@dataclass
class WrittenTable:
    """A table that this transaction wrote: its old pin and its new version."""

    pin: Pin
    folder: str
    promoted: Promoted
    transaction: str
    """The id of the Lance transaction, which identifies the version."""
    built_on: tuple[int, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)

    def moved(self, pin: Pin) -> Pin:
        """Return a pin of the table, moved to the new version."""
        return replace(
            pin,
            table_version=pin.table_version + 1,
            lance_version=self.promoted.version,
            row_count=self.promoted.row_count,
            transaction=self.transaction,
        )

    @property
    def details(self) -> dict[str, Any]:
        """What the history records about the new version."""
        details: dict[str, Any] = {"digests": dict(self.digests)} if self.digests else {}
        if self.promoted.transaction_uuid:
            details["transaction_uuid"] = self.promoted.transaction_uuid
        return details


class PendingWrites(Protocol):
    """The changes of a write before they are staged, which can be combined with those of other writes."""

    def changes(self) -> Mapping[str, TableWrite]:
        """Return the changes of each table."""

    def absorb(self, other: Any) -> None:
        """Add the changes of a later write, which was prepared on this one."""

    def touched(self) -> Mapping[str, Sequence[str]]:
        """Return the ids of the changed rows of each table with an effective change."""

    def added_rows(self) -> Mapping[str, int]:
        """Return the number of rows that the write adds to each table."""

    def size_bytes(self) -> int:
        """Return the size of the written rows in memory."""


class Transaction:
    """One attempt of a write, on one snapshot.

    `pending` are the changes of writes before this one that are published together with it, and `based_on` is the last
    of their commits. The caller has prepared them on `state`. With `fork_of`, the commit is the first of a new branch,
    which is forked from the head of another one by the same publish and replaces an earlier branch of its name.
    """

    def __init__(
        self,
        repository: Repository,
        options: WriteOptions,
        *,
        state: State | None = None,
        pending: PendingWrites | None = None,
        based_on: str | None = None,
        fork_of: str | None = None,
    ) -> None:
        repository.check_writable()
        self.repository = repository
        self.options = options
        self.pending = pending
        self.recorded: PendingWrites | None = None
        """The changes, if they were recorded by `record`."""
        self.state = state if state is not None else repository.state()
        """The state of the manifest on which the write is prepared."""
        self._fork_of = fork_of
        base = fork_of or options.branch
        self.snapshot: Snapshot = repository.at_head(self.state, base)
        self.based_on = based_on or self.snapshot.commit_id
        """The commit that the write is prepared on."""
        head = self.state.find_head(base)
        if options.if_commit is not None and self.snapshot.commit_id != options.if_commit:
            raise PreconditionFailed(base, expected=options.if_commit, actual=self.snapshot.commit_id)
        self._incarnation = head.incarnation if head else ""
        self._changes: dict[str, TableWrite] = {}
        self._versions: dict[str, Table] = {}
        self._evolved: dict[str, Table] = {}
        self._created: list[TableSpec] = []
        self._adopted: list[Pin] = []
        self._dropped: list[str] = []
        self._renamed: dict[str, str] = {}
        self._embeddings: dict[str, dict[str, EmbeddingSpace]] = {}
        self._schema: SchemaRecord | None = None
        self._queries: QueriesRecord | None = None
        self._aliases: AliasSet | None = None
        self._identities: tuple[int, int] | None = None
        self._jobs: list[str] = []
        self.earlier: Earlier | None = None
        """What an earlier request with the same idempotency key did, if its commit is returned instead of a new one."""
        self._created_digests: dict[int, Mapping[str, str]] = {}

    # -- recording changes -----------------------------------------------------------------------

    def change(self, key: str, change: TableWrite, *, on: Table | None = None) -> None:
        """Change a table, at most once; `on` is its pinned version with other columns, made by `evolved`."""
        self._check_table(key)
        assert key not in self._changes, f"'{key}' is changed twice in one transaction"
        if self.state.purges:
            check_purged(self.state.purges, self.snapshot, key, change)
        self._changes[key] = change
        if on is not None:
            self._evolved[key] = on

    def record(self, writes: PendingWrites) -> None:
        """Change tables as a write prescribes that can be combined with others."""
        for key, change in writes.changes().items() if self.state.purges else ():
            check_purged(self.state.purges, self.snapshot, key, change)
        self.recorded = writes

    @property
    def is_simple(self) -> bool:
        """True if the transaction has no changes other than those of `record`."""
        others = (self._versions, self._created, self._adopted, self._dropped, self._renamed, self._embeddings)
        more = self._schema or self._queries or self._aliases is not None or self._jobs
        return self.recorded is not None and not (more or any(others))

    def set_version(self, key: str, table: Table) -> None:
        """Pin a table version that was made elsewhere: by compaction, by indexing or on another branch."""
        self._versions[key] = numbered(table)

    def adopt_table(self, pin: Pin) -> None:
        """Pin a table of another branch that this branch does not have."""
        self._adopted.append(pin)

    def record_embedding(self, key: str, column: str, space: EmbeddingSpace) -> None:
        """Record the embedding space of a column."""
        self._check_table(key)
        known = self._embeddings.setdefault(key, dict(self.snapshot.tables[key].pin.embeddings))
        known[column] = space

    def set_embeddings(self, key: str, spaces: Mapping[str, EmbeddingSpace]) -> None:
        """Replace the recorded embedding spaces of a table, column by column."""
        self._check_table(key)
        self._embeddings[key] = dict(spaces)

    def create_table(self, spec: TableSpec) -> None:
        """Add an empty table."""
        self._created.append(spec)

    def drop_table(self, key: str) -> None:
        """Remove a table from the branch; older commits keep it."""
        self._check_table(key)
        self._dropped.append(key)

    def rename_table(self, old: str, new: str) -> None:
        """Give a table another key; rows, versions and history are unchanged."""
        self._check_table(old)
        self._renamed[old] = new

    def set_schema(self, schema: SchemaRecord, *, first_identity: int, next_identity: int) -> None:
        """Set the schema of the branch; its new identity numbers are `first_identity` to `next_identity` (exclusive).

        If another branch drew numbers in the meantime, the write starts over and draws new ones.
        """
        self._schema = schema
        self._identities = (first_identity, next_identity)

    def bind_job(self, job_id: str) -> None:
        """Fail, and start over, if the bulk job with this id is fenced before the publish."""
        self._jobs.append(job_id)

    def _check_table(self, key: str) -> None:
        if key not in self.snapshot.tables:
            raise TypeNotFound(f"there is no table '{key}' on branch '{self.options.branch}'")

    def _check_keys(self) -> None:
        """Refuse two tables with the same key on one branch."""
        kept = [self._renamed.get(key, key) for key in self.snapshot.tables if key not in self._dropped]
        new = [*(spec.key for spec in self._created), *(pin.key for pin in self._adopted)]
        for key, count in Counter(kept + new).items():
            if count > 1:
                raise InputError(f"table '{key}' already exists on branch '{self.options.branch}'")

    def take_schema(self, schema: SchemaRecord) -> None:
        """Adopt the schema of another branch; its identity numbers were drawn there."""
        self._schema = schema

    def set_queries(self, queries: QueriesRecord) -> None:
        """Set the stored queries of the branch."""
        self._queries = queries

    def set_aliases(self, aliases: AliasSet) -> None:
        """Set the aliases of the branch, made from those of the snapshot."""
        self._aliases = aliases

    # -- commit ----------------------------------------------------------------------------------

    def commit(self) -> Commit | None:
        """Write and publish all changes and return the commit; None, with nothing left behind, if nothing changes."""
        for key, change in self.recorded.changes().items() if self.recorded is not None else ():
            self.change(key, change)
        self._check_keys()
        repository, options = self.repository, self.options
        now = repository.clock()
        commit_id = self._new_commit_id(now)
        intent = self._intent(commit_id, now, sorted(self._changes))
        outcome_known = True
        try:
            if self._changes:
                intent.begin()
            started = time.perf_counter()
            staged = self._staged(commit_id)
            _report_phase("stage", started)
            others = (self._adopted, self._created, self._dropped, self._renamed, self._versions)
            sets = self._schema, self._queries, self._aliases
            structural = any(others) or any(one is not None for one in sets)
            if not staged and not structural and not options.always_commit and options.merged_parent is None:
                return None
            started = time.perf_counter()
            if staged:
                intent.written()
            written = self._promoted(staged)
            for key, table in self._versions.items():
                promoted = Promoted(table.version, table.row_count, "")
                written[key] = self._written(key, table, promoted, indexes=True)
            created = [self._create(spec) for spec in self._created]
            self._check_files()
            return self._publish(commit_id, now, written, created)
        except OutcomeUnknown:
            outcome_known = False
            raise
        finally:
            _report_phase("publish", started)
            # If the outcome is known, the intent is deleted. It remains after a crash, or if the outcome is unknown.
            intent.end(outcome_known=outcome_known)

    def _new_commit_id(self, now: int) -> str:
        """Return the id of the commit that the publish makes, or of the last of several."""
        return new_ulid(now)

    def _properties(self, key: str, commit_id: str) -> dict[str, str]:  # noqa: ARG002 (a group uses it)
        """Return the transaction properties of the change of a table."""
        return {COMMIT_PROPERTY: commit_id}

    def _staged(self, commit_id: str) -> dict[str, StagedWrite]:
        """Write the files of all changes, each table beside the others; changes without effect are left out."""

        def staged(key: str) -> StagedWrite | None:
            checkpoint()
            return stage(self._base(key), self._changes[key], self._properties(key, commit_id))

        keys = list(self._changes)
        return {key: made for key, made in zip(keys, each_table(staged, keys), strict=True) if made is not None}

    def _promoted(self, staged: Mapping[str, StagedWrite]) -> dict[str, WrittenTable]:
        """Create the versions of all changes, each table beside the others, and finish their files together."""

        def promoted(key: str) -> tuple[Table, WrittenTable]:
            checkpoint()
            table, version = staged[key].promote(finish=False)
            return table, self._written(key, table, version, indexes=False)

        made = dict(zip(staged, each_table(promoted, staged), strict=True))
        finish_versions((staged[key].base, table) for key, (table, _) in made.items())
        for table, _ in made.values():
            self.repository.tables.remember(table)
        return {key: written for key, (_, written) in made.items()}

    def _written(self, key: str, table: Table, promoted: Promoted, *, indexes: bool) -> WrittenTable:
        pinned = self.snapshot.tables[key]
        prepared = self._changes[key].prepared if key in self._changes else None
        known = {file: digest for fragment in prepared.new for file, digest in fragment.digests} if prepared else {}
        digests: dict[str, str] = {}
        if table.is_new:
            indexes = indexes or bool(table.built_on)
            before = self.snapshot.table(key)
            # The files of a part of a version have no recorded digests.
            digests = self._digests(key, table, before.part_of or before, known, indexes=indexes)
            table.is_new = False
        return WrittenTable(pinned.pin, pinned.folder, promoted, table.transaction, table.built_on, digests)

    def _digests(
        self,
        key: str,
        table: Table,
        before: Table | None,
        known: Mapping[str, str] | None = None,
        *,
        indexes: bool = False,
    ) -> dict[str, str]:
        """Return the digests of the files of a new version; start over if a cleanup removed the files."""
        try:
            return record_digests(table, before, known, indexes=indexes)
        except Damaged as error:
            versions = (table.version, *table.built_on)
            # The state is read first: the fence of a version is lifted after its file is removed.
            fenced = self.repository.state().is_reclaimed(table.folder, versions)
            if fenced or not all(self.repository.tables.has_manifest(table.folder, version) for version in versions):
                raise _version_removed(key) from error
            raise

    def _base(self, key: str) -> Table:
        """Return the table at its pin, compacted first if it has too many fragments."""
        table = self._evolved.get(key) or self.snapshot.table(key)
        change = self._changes[key]
        return numbered(table) if change.overwrite is not None or change.prepared is not None else compacted(table)

    def _create(self, spec: TableSpec) -> tuple[TableRow, Pin]:
        suffix = int.from_bytes(new_ulid(self.repository.clock()).encode()[-8:], "big")
        folder = layout.table_folder(spec.kind, spec.name, suffix)
        table = self.repository.tables.create(folder, spec.schema)
        row = TableRow(spec.table_id, spec.incarnation, spec.key, folder)
        self._created_digests[spec.table_id] = self._digests(spec.key, table, None)
        return row, Pin(spec.table_id, spec.incarnation, spec.key, 1, table.version, 0, table.transaction)

    def _publish(
        self, commit_id: str, now: int, written: Mapping[str, WrittenTable], created: Sequence[tuple[TableRow, Pin]]
    ) -> Commit:
        options = self.options
        request = options.request_key
        made: Commit | None = None

        def decide(state: State) -> Change | None:
            nonlocal made
            self.earlier = find_earlier(self.repository, request, state)
            if self.earlier is not None:
                made = self.earlier.commit
                return None
            head = self._check(state, commit_id)
            self._check_versions(state, written, created)
            manifest_version = state.version + 1
            pins, rows = self._pins(head, written, created, manifest_version)
            changed = sorted([*written, *(row.key for row, _ in created), *self._dropped])
            commit = new_commit(commit_id, now, options, head, manifest_version, changed)
            if self._schema is not None:
                commit = replace(commit, schema_hash=self._schema.hash)
            if self._queries is not None:
                commit = replace(commit, queries_hash=self._queries.hash)
            if self._aliases is not None:
                commit = replace(commit, aliases_hash=self._aliases.hash)
            new_head = moved_head(head, commit, pins)
            rows.append(commit_to_row(commit, pins))
            if request is not None:
                rows.append(request.to_row(options.result, commit_id))
            tables = [table_to_row(row) for row, _ in created]
            if self._schema is not None and not self.repository.manifest.find(
                state.manifest, schema_object_id(self._schema.hash)
            ):
                tables.append(schema_to_row(self._schema))
            if self._identities is not None:
                tables.append(identity_to_row(self._identities[1]))
            if (
                self._queries is not None
                and self._queries.hash
                and not self.repository.manifest.find(state.manifest, queries_object_id(self._queries.hash))
            ):
                rows.append(queries_to_row(self._queries))
            rows += self._new_aliases(state)
            tables += [table_to_row(row) for row in self._renamed_rows(state)]
            made = commit
            return Change(put=(head_to_log_row(new_head), *tables), add=tuple(rows))

        storage_format = STORAGE_FORMAT if self._queries is None else STORAGE_FORMAT_QUERIES
        if self._aliases is not None:
            storage_format = STORAGE_FORMAT_ALIASES
        self.repository.publish(decide, commit_id=commit_id, known=self.state, storage_format=storage_format)
        ignore_cancellation()
        assert made is not None
        return made

    def _new_aliases(self, state: State) -> list[Row]:
        """Return the rows of the documents of the alias set that the manifest does not have."""
        records = {alias_object_id(record.hash): record for record in self._aliases.records} if self._aliases else {}
        if not records:
            return []
        known = {row["object_id"] for row in self.repository.manifest.find(state.manifest, *records)}
        return [alias_to_row(record) for object_id, record in records.items() if object_id not in known]

    def _check_files(self) -> None:
        """Check that the files of a bulk load still exist: Lance removes unreferenced files after a week."""
        for key, change in self._changes.items():
            files = [file for fragment in change.prepared.new for file in fragment.files] if change.prepared else []
            if not files:
                continue
            folder = self.snapshot.tables[key].folder
            present = set(self.repository.objects.list(f"{folder}/data"))
            if not all(f"{folder}/{file}" in present for file in files):
                raise Damaged(
                    f"files of '{key}' that this load wrote were removed; nothing was written",
                    code="version_reclaimed",
                    hint="load the data again",
                )

    def _check_versions(
        self, state: State, written: Mapping[str, WrittenTable], created: Sequence[tuple[TableRow, Pin]]
    ) -> None:
        """Check that every version to be pinned exists on the store and is not being removed by a cleanup.

        The fences of cleanups are checked first: if a version is removed after this check, the compare-and-swap fails.
        """
        new = [(key, one.folder, one.promoted.version, one.transaction) for key, one in written.items()]
        new += [(row.key, row.folder, pin.lance_version, pin.transaction) for row, pin in created]
        for pin in self._adopted:
            folder = state.tables[pin.table_id, pin.incarnation].folder
            new.append((pin.key, folder, pin.lance_version, pin.transaction))
            if state.is_reclaimed(folder, pin.versions):
                raise _version_removed(pin.key)
        # A cleanup that removed a version published its fence before and its end after that.
        unchanged = not self._adopted and not state.may_be_cleaned_since(self.state)
        for key, folder, version, _ in new:
            if state.is_reclaimed(folder, (version, *(written[key].built_on if key in written else ()))):
                raise _version_removed(key)
        if unchanged and not self._versions:
            return
        tables = self.repository.tables

        def exists(one: tuple[str, str, int, str]) -> bool:
            key, folder, version, transaction = one
            steps = written[key].built_on if key in written else ()
            return all(tables.has_manifest(folder, step) for step in steps) and tables.has_version(
                folder, version, transaction
            )

        for (key, *_), found in zip(new, each_request(exists, new), strict=True):
            if not found:
                raise _version_removed(key)

    def _check(self, state: State, commit_id: str) -> Head:
        """Check that the branch did not move since the snapshot and this commit was not fenced; return the head."""
        options = self.options
        branch = self._fork_of or options.branch
        head = state.get_head(branch)
        if any(state.is_aborted(fenced) for fenced in (commit_id, *self._jobs)):
            raise HeadMoved("this write was considered dead and was aborted; nothing was written", hint="try again")
        if options.if_commit is not None and head.commit_id != options.if_commit:
            raise PreconditionFailed(branch, expected=options.if_commit, actual=head.commit_id)
        if state.purge_epoch != self.state.purge_epoch:
            raise HeadMoved("a purge rewrote the history in the meantime; nothing was written", hint="try again")
        pins = {pin.key: pin for pin in head.pins}
        for key, expected in options.expected_versions.items():
            actual = pins[key].table_version if key in pins else 0
            if actual != expected:
                raise ExpectedVersionMismatch(key, expected=expected, actual=actual)
        if self._identities is not None and state.next_identity != self._identities[0]:
            raise HeadMoved("another branch changed its schema in the meantime; nothing was written", hint="try again")
        if head.commit_id != self.snapshot.commit_id or head.incarnation != self._incarnation:
            raise HeadMoved(
                f"branch '{branch}' moved to commit {head.commit_id}; nothing was written",
                hint="read again and retry",
            )
        return head if self._fork_of is None else self._forked(head, state)

    def _forked(self, head: Head, state: State) -> Head:
        """Return the head of a new branch at another head."""
        now = self.repository.clock()
        fork = replace(head, branch=self.options.branch, incarnation=new_ulid(now), created_us=now)
        fork = replace(fork, owner=self.options.actor, description=None, expires_us=None)
        return replace(fork, fork_commit_id=head.commit_id, fork_branch=head.branch, since=state.version + 1)

    def _pins(
        self,
        head: Head,
        written: Mapping[str, WrittenTable],
        created: Sequence[tuple[TableRow, Pin]],
        manifest_version: int,
    ) -> tuple[tuple[Pin, ...], list[Row]]:
        """Return the pins of the new head, and the history rows of the pins that are new or removed."""
        pins: list[Pin] = []
        rows: list[Row] = []
        branch = self.options.branch
        for pin in head.pins:
            if pin.key in self._dropped:
                rows.append(tombstone_to_row(pin, branch, manifest_version))
                continue
            new = written.get(pin.key)
            key = self._renamed.get(pin.key, pin.key)
            if new is None:
                pins.append(replace(pin, key=key, embeddings=self._embeddings_of(pin)))
                continue
            moved = replace(new.moved(pin), key=key, embeddings=self._embeddings_of(pin))
            pins.append(moved)
            rows.append(version_to_row(moved, branch, manifest_version, new.details))
        for pin in (*(pin for _, pin in created), *self._adopted):
            pins.append(pin)
            digests = self._created_digests.get(pin.table_id, {})
            rows.append(version_to_row(pin, branch, manifest_version, {"digests": digests} if digests else {}))
        return tuple(sorted(pins, key=lambda pin: pin.key)), rows

    def _embeddings_of(self, pin: Pin) -> tuple[tuple[str, EmbeddingSpace], ...]:
        changed = self._embeddings.get(pin.key)
        return pin.embeddings if changed is None else tuple(sorted(changed.items(), key=lambda item: item[0]))

    def _renamed_rows(self, state: State) -> list[TableRow]:
        rows: list[TableRow] = []
        for old, new in self._renamed.items():
            pin = self.snapshot.tables[old].pin
            row = state.tables[pin.table_id, pin.incarnation]
            rows.append(TableRow(row.table_id, row.incarnation, new, row.folder))
        return rows

    def _intent_of_table(self, key: str) -> dict[str, Any]:
        table = self.snapshot.tables[key]
        return {"table_key": key, "table_path": table.folder, "expected_version": max(table.pin.versions)}

    def _intent(self, commit_id: str, now: int, keys: Sequence[str]) -> Intent:
        facts = {
            "graph_commit_id": commit_id,
            "started_at": now,
            "branch": self.options.branch,
            "actor_id": self.options.actor,
            "writer_kind": self.options.kind,
            "tables": [self._intent_of_table(key) for key in keys],
        }
        # Not synced: see `fsync`.
        return Intent(self.repository.tables.objects, new_ulid(now), facts)


def new_commit(
    commit_id: str,
    now: int,
    options: WriteOptions,
    head: Head,
    manifest_version: int,
    changed: Sequence[str],
) -> Commit:
    """Return the commit that a write of rows makes on a head; it keeps the schema, stored queries and aliases."""
    return Commit(
        id=commit_id,
        branch=options.branch,
        manifest_version=manifest_version,
        parent_id=head.commit_id,
        merged_parent_id=options.merged_parent,
        actor=options.actor,
        created_us=now,
        message=options.message,
        metadata=options.metadata,
        kind=options.kind,
        changed=tuple(changed),
        schema_hash=head.schema_hash,
        since=head.since,
        fork_commit_id=head.fork_commit_id,
        queries_hash=head.queries_hash,
        aliases_hash=head.aliases_hash,
    )


def moved_head(head: Head, commit: Commit, pins: tuple[Pin, ...]) -> Head:
    """Return a head after a commit on it."""
    return replace(
        head,
        commit_id=commit.id,
        parent_commit_id=head.commit_id,
        manifest_version=commit.manifest_version,
        schema_hash=commit.schema_hash,
        queries_hash=commit.queries_hash,
        aliases_hash=commit.aliases_hash,
        pins=pins,
    )


def _version_removed(key: str) -> HeadMoved:
    return HeadMoved(
        f"a cleanup removed the version of '{key}' that this write made; nothing was written", hint="try again"
    )


def _report_phase(name: Phase, started: float) -> None:
    observer = current()
    if observer is not None:
        observer.phase(name, started, time.perf_counter())
