"""Group commit: small writes of one branch that are published together, each as a commit of its own.

The writes are prepared in order, each on the changes of those before it, so every write sees what it would see if the
others had been committed before. The changes are combined: each table gets one new version, and one log entry publishes
all commits or none of them. The last commit that changes a table pins the new version; the commits before it pin parts
of that version (`version_parts`). That requires that no row is changed by two writes of a group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.cancellation import ignore_cancellation
from omnigraph.errors import HeadMoved
from omnigraph.storage.failpoints import reach
from omnigraph.storage.lance.version_parts import PARTS_MAX, PARTS_PROPERTY, VersionPart, parts_property
from omnigraph.storage.manifest.manifest_schema import Row
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.model.ids import later_ulid
from omnigraph.versioning.model.manifest_objects import Commit, Head, Pin, TableRow
from omnigraph.versioning.model.manifest_rows import commit_to_row, head_to_log_row, version_to_row
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.idempotency import find_earlier
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import (
    COMMIT_PROPERTY,
    Transaction,
    WriteOptions,
    WrittenTable,
    moved_head,
    new_commit,
)

WRITES_MAX = 64
"""Maximum number of writes of a group."""
IDS_MAX = 4_096
"""Maximum number of rows that the writes of a group change."""
BYTES_MAX = 16 * 1024 * 1024
"""Maximum size of the rows of a group of several writes."""
assert WRITES_MAX <= PARTS_MAX


class UnexpectedRows(Exception):
    """A table that a group wrote does not have the number of rows that its writes add up to."""


@dataclass
class GroupMember:
    """One write of a group, as it is published."""

    options: WriteOptions
    touched: Mapping[str, Sequence[str]]
    """The ids of the changed rows of each table; empty for a write without an effect, which makes no commit."""
    added_rows: Mapping[str, int]
    commit_id: str = ""
    commit: Commit | None = None
    """The commit, after the publish."""


class GroupTransaction(Transaction):
    """The common transaction of several writes. A write is prepared on `pending` and then admitted."""

    def __init__(self, repository: Repository, branch: str, state: State) -> None:
        super().__init__(repository, WriteOptions(branch=branch, kind="group"), state=state)
        self.members: list[GroupMember] = []
        self._ids: dict[str, set[str]] = {}
        self._keys: set[tuple[str, str | None]] = set()
        self._bytes = 0
        self._now = repository.clock()
        self.based_on = self.snapshot.commit_id
        """The last commit of the group so far; the head before the first one."""
        self._last_id = ""
        self.is_attempted = False
        """True if a publish was begun."""
        self.is_published = False

    @property
    def is_full(self) -> bool:
        """True if no further write can be admitted."""
        ids = sum(map(len, self._ids.values()))
        return len(self.members) >= WRITES_MAX or ids >= IDS_MAX or self._bytes >= BYTES_MAX

    def admit(self, attempt: Transaction) -> GroupMember | None:
        """Add a prepared write to the group; return None if it cannot be published together with those before it."""
        writes = attempt.recorded
        if writes is None or not attempt.is_simple:
            return None
        touched = {key: list(ids) for key, ids in writes.touched().items()}
        if sum(map(len, (*touched.values(), *self._ids.values()))) > IDS_MAX:
            return None
        size = writes.size_bytes()
        if self.members and self._bytes + size > BYTES_MAX:
            return None
        if any(self.snapshot.tables[key].pin.part is not None for key in touched):
            return None
        if any(not self._ids.get(key, set()).isdisjoint(ids) for key, ids in touched.items()):
            return None
        request = attempt.options.request_key
        if request is not None:
            if (request.key, request.actor) in self._keys:
                return None
            self._keys.add((request.key, request.actor))
        self._bytes += size
        member = GroupMember(attempt.options, touched, writes.added_rows())
        if touched:
            member.commit_id = self.based_on = later_ulid(self._last_id, self._now)
            self._last_id = member.commit_id
        for key, ids in touched.items():
            self._ids.setdefault(key, set()).update(ids)
        if self.pending is None:
            self.pending = writes
        else:
            self.pending.absorb(writes)
        self.members.append(member)
        return member

    @property
    def _effective(self) -> list[GroupMember]:
        return [member for member in self.members if member.touched]

    def commit(self) -> Commit | None:
        """Publish the commits of all members and return the last one; None if no member has an effect."""
        if self.pending is None or not self._effective:
            return None
        self.recorded = self.pending
        return super().commit()

    def _new_commit_id(self, now: int) -> str:  # noqa: ARG002 (the ids are known)
        return self._effective[-1].commit_id

    def _intent_of_table(self, key: str) -> dict[str, Any]:
        return {**super()._intent_of_table(key), "graph_commit_id": self._last_member(key).commit_id}

    def _properties(self, key: str, commit_id: str) -> dict[str, str]:
        parts = [member.touched[key] for member in self._effective if key in member.touched]
        properties = {COMMIT_PROPERTY: self._last_member(key).commit_id if parts else commit_id}
        return {**properties, PARTS_PROPERTY: parts_property(parts)} if len(parts) > 1 else properties

    def _last_member(self, key: str) -> GroupMember:
        return next((member for member in reversed(self._effective) if key in member.touched), self._effective[-1])

    def _publish(
        self, commit_id: str, now: int, written: Mapping[str, WrittenTable], created: Sequence[tuple[TableRow, Pin]]
    ) -> Commit:
        self._check_rows(written)
        made: list[Commit] = []
        reach("group.written")

        def decide(state: State) -> tuple[Change, ...]:
            made.clear()
            head = self._check(state, commit_id)
            self._check_versions(state, written, created)
            changes: list[Change] = []
            published: Counter[str] = Counter()
            in_all = Counter(key for member in self._effective for key in member.touched)
            for version, member in enumerate(self._effective, state.version + 1):
                options = member.options
                request = options.request_key
                if find_earlier(self.repository, request, state) is not None:
                    raise HeadMoved("a request of the group was already made", hint="try again")
                published.update(member.touched.keys())
                complete = {key for key in member.touched if published[key] == in_all[key]}
                pins, rows = self._pins_after(head, member, written, published, complete, version)
                changed = sorted(member.touched)
                commit = new_commit(member.commit_id, now, options, head, version, changed)
                head = moved_head(head, commit, pins)
                rows.append(commit_to_row(commit, pins))
                if request is not None:
                    rows.append(request.to_row(options.result, commit.id))
                made.append(commit)
                changes.append(Change(put=(head_to_log_row(head),), add=tuple(rows)))
            return tuple(changes)

        self.is_attempted = True
        self.repository.publish(decide, commit_id=commit_id, known=self.state)
        for member, commit in zip(self._effective, made, strict=True):
            member.commit = commit
        self.is_published = True
        reach("group.published")
        ignore_cancellation()
        return made[-1]

    def _check_rows(self, written: Mapping[str, WrittenTable]) -> None:
        """Check that the writes add up: the row counts of the parts are derived from them."""
        for key, table in written.items():
            added = sum(member.added_rows.get(key, 0) for member in self._effective)
            if table.promoted.row_count != table.pin.row_count + added:
                raise UnexpectedRows(f"{key}: {table.promoted.row_count}, not {table.pin.row_count} + {added}")

    def _pins_after(
        self,
        head: Head,
        member: GroupMember,
        written: Mapping[str, WrittenTable],
        published: Mapping[str, int],
        complete: Set[str],
        manifest_version: int,
    ) -> tuple[tuple[Pin, ...], list[Row]]:
        """Return the pins after the commit of a member, and the history rows of the pins that are new.

        `published` counts, for each table, the members up to this one that change it; after this member, no other one
        changes the tables in `complete`.
        """
        pins: list[Pin] = []
        rows: list[Row] = []
        for pin in head.pins:
            if pin.key not in member.touched:
                pins.append(pin)
                continue
            new = written[pin.key]
            details: dict[str, Any] = {}
            if pin.key in complete:
                moved, details = new.moved(pin), new.details
            else:
                base = new.pin
                part = VersionPart(
                    new.promoted.version,
                    new.transaction,
                    base.lance_version,
                    base.transaction,
                    published[pin.key],
                )
                moved = replace(
                    pin,
                    table_version=pin.table_version + 1,
                    lance_version=part.number,
                    row_count=pin.row_count + member.added_rows.get(pin.key, 0),
                    transaction=str(part),
                )
            pins.append(moved)
            rows.append(version_to_row(moved, head.branch, manifest_version, details))
        return tuple(pins), rows
