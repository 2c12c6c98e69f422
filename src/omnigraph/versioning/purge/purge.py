"""Purge: removes rows from every branch and all history.

    announce   a record with keyed digests of the ids; from now on, they cannot be written
    rewrite    for each pinned version of the searched tables, a counterpart without the rows (`row_removal`)
    switch     one publish: the pins of all commits, heads and tags refer to the counterparts
    erase      earlier checkpoints and log records, which contain the old rows of the manifest
    sweep      the files that the new pins do not use
    end        the record says that the purge is complete

The switch is a compare-and-swap on the whole manifest. If a writer publishes first, its new versions are rewritten too
and the switch is tried again. Every write that was prepared before the switch fails at its publish and starts over on
the new history, because the number of purges differs (`State.purge_epoch`).

A purge that dies before the switch has changed nothing that is visible; it starts over. After the switch, the steps are
repeated from the plan that was stored before it. Any process can continue: the record identifies ids by their digests.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.checkpoints import checkpoint
from omnigraph.errors import Conflict, Hint, InputError, KeyReused, NotFound
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files import layout
from omnigraph.storage.lance.row_removal import Removal
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.version import STORAGE_FORMAT_PURGED
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.manifest_objects import Kind, Pin
from omnigraph.versioning.model.purge_results import PurgePreview
from omnigraph.versioning.model.purges import (
    FREEZE_ID,
    IdCondition,
    PurgeRecord,
    PurgeTarget,
    TableId,
    digest_of,
    epoch_to_row,
    freeze_to_row,
    purge_to_row,
)
from omnigraph.versioning.model.state import State
from omnigraph.versioning.purge.history_rows import rewritten_history
from omnigraph.versioning.purge.plan import PurgePlan, write_plan
from omnigraph.versioning.write.repository import Repository

_SWITCH_TRIES = 100
_SALT_BYTES = 16


@dataclass(frozen=True)
class PurgeRequest:
    """The rows to remove, and the author of the request."""

    kind: Kind
    type_name: str
    ids: tuple[str, ...]
    edges: bool
    reason: str
    actor: str | None
    targets: tuple[PurgeTarget, ...]
    """The tables of the type, and the tables of edges that can end at its nodes."""
    key: str | None = None
    """The idempotency key."""


def preview(repository: Repository, request: PurgeRequest) -> PurgePreview:
    """Find the rows that a purge would remove; changes nothing."""
    record = _new_record(repository, request)
    search = PurgeSearch(repository, record, frozenset(request.ids))
    search.find(repository.state())
    return search.preview(request.ids)


def begin(repository: Repository, request: PurgeRequest) -> PurgeRecord:
    """Check a purge and announce it; an unfinished purge of the same ids is continued."""
    repository.check_writable()
    for record in unfinished(repository.state()):
        if record.type_name == request.type_name and record.digests == _digests(record.salt, request.ids):
            return record
    earlier = _repeated(repository.state(), request)
    if earlier is not None:
        return earlier
    record = _new_record(repository, request)
    search = PurgeSearch(repository, record, frozenset(request.ids))
    search.find(repository.state())
    _check(search.preview(request.ids), request, repository.state())

    def decide(state: State) -> Change | None:
        return None if any(known.id == record.id for known in state.purges) else Change(put=(purge_to_row(record),))

    repository.publish(decide, storage_format=STORAGE_FORMAT_PURGED)
    reach("purge.announced")
    return record


def _repeated(state: State, request: PurgeRequest) -> PurgeRecord | None:
    """Return the purge that an earlier request with the same idempotency key made; None if there is none."""
    found = [record for record in state.purges if request.key and record.request == _key_digest(record.salt, request)]
    for record in found:
        if record.type_name != request.type_name or not record.digests <= _digests(record.salt, request.ids):
            raise KeyReused(f"idempotency key '{request.key}' was used for another purge; nothing was removed")
    return found[0] if found else None


def _key_digest(salt: str, request: PurgeRequest) -> str | None:
    """Return the digest of an idempotency key. Keys of different actors are independent."""
    return None if request.key is None else digest_of(salt, f"{request.actor or ''}\0{request.key}")


def unfinished(state: State) -> list[PurgeRecord]:
    """Return the purges that are not complete, oldest first."""
    return [record for record in state.purges if record.state != "done"]


def _check(found: PurgePreview, request: PurgeRequest, state: State) -> None:
    """Refuse ids that never existed, and nodes with edges if edges are not removed."""
    known = [id_ for id_ in found.missing if not any(record.names(id_) for record in state.purges)]
    if known:
        shown = ", ".join(f"'{id_}'" for id_ in known[:5])
        raise NotFound(
            f"no version of '{request.type_name}' contains {shown}; nothing was removed",
            hint="check the ids; a purge takes the ids of rows, which are their keys",
        )
    edges = {key: count for key, count in found.rows.items() if key.startswith("edge:")}
    if edges and request.kind == "node" and not request.edges:
        listed = ", ".join(f"{key.partition(':')[2]} ({count})" for key, count in edges.items())
        raise InputError(
            f"the nodes have edges in the history: {listed}; nothing was removed",
            code="purge_has_edges",
            hint=Hint("remove the edges too: edges=True", cli="remove the edges too: --edges"),
        )


def _new_record(repository: Repository, request: PurgeRequest) -> PurgeRecord:
    now = repository.clock()
    # One key for all purges of a graph: a check computes the digest of an id once.
    salt = next((known.salt for known in repository.state().purges), None) or secrets.token_hex(_SALT_BYTES)
    return PurgeRecord(
        id=new_ulid(now),
        kind=request.kind,
        type_name=request.type_name,
        edges=request.edges,
        reason=request.reason,
        actor=request.actor,
        created_us=now,
        targets=request.targets,
        salt=salt,
        digests=_digests(salt, request.ids),
        request=_key_digest(salt, request),
    )


def _digests(salt: str, ids: Iterable[str]) -> frozenset[str]:
    return frozenset(digest_of(salt, id_) for id_ in ids)


class PurgeSearch:
    """The rows of a purge in the tables that it searches."""

    def __init__(self, repository: Repository, record: PurgeRecord, ids: frozenset[str] | None) -> None:
        self._repository = repository
        self.record = record
        tables = repository.state().tables
        self.removals: dict[TableId, Removal] = {
            target.table: Removal(
                repository.tables, tables[target.table].folder, IdCondition(target.columns, record, ids)
            )
            for target in record.targets
        }
        self.keys = {target.table: target.key for target in record.targets}

    def pinned(self, state: State) -> dict[TableId, set[int]]:
        """Return table → the versions that commits, heads and tags pin."""
        found: dict[TableId, set[int]] = {table: set() for table in self.removals}
        for pin in _all_pins(self._repository, state):
            if (pin.table_id, pin.incarnation) in found:
                found[pin.table_id, pin.incarnation].update(pin.versions)
        return found

    def find(self, state: State) -> None:
        """Examine every pinned version."""
        for table, versions in self.pinned(state).items():
            self.removals[table].find(versions)

    def rewrite(self, state: State) -> None:
        """Make the counterparts of pinned versions that have none yet, and check and flush them."""
        for table, versions in self.pinned(state).items():
            checkpoint()
            self.removals[table].rewrite(versions)

    @property
    def affected(self) -> list[str]:
        """The keys of the tables with such rows."""
        return sorted({self.keys[table] for table, removal in self.removals.items() if removal.is_affected})

    def preview(self, ids: Sequence[str]) -> PurgePreview:
        """Return the rows that were found."""
        rows: dict[str, int] = {}
        found: set[str] = set()
        files = 0
        for target in self.record.targets:
            removal = self.removals[target.table]
            files += len(removal.found)
            if removal.ids:
                rows[target.key] = rows.get(target.key, 0) + len(removal.ids)
            if "id" in target.columns:
                found.update(removal.ids)
        return PurgePreview(rows, tuple(id_ for id_ in ids if id_ not in found), files)


def _all_pins(repository: Repository, state: State) -> Iterable[Pin]:
    for pins in repository.all_pins(state).values():
        yield from pins
    yield from state.protected_pins()


def switch(repository: Repository, record: PurgeRecord, ids: Collection[str] | None = None) -> PurgeRecord:
    """Rewrite the history without the rows, and publish it; return the record after the switch."""
    search = PurgeSearch(repository, record, frozenset(ids) if ids is not None else None)
    for attempt in range(_SWITCH_TRIES):
        checkpoint()
        if attempt:
            _freeze(repository, record)
        state = repository.state()
        search.rewrite(state)
        # The records of the log before the switch are in the checkpoint then, and the entry of the switch has only one.
        planned = repository.checkpoint()
        if planned.version != state.version or planned.manifest.lines:
            continue
        switched = _publish(repository, search, planned)
        if switched is not None:
            reach("purge.switched")
            return switched
    raise Conflict(
        f"{_SWITCH_TRIES} attempts to replace the history lost races against other writers; nothing was removed",
        hint="try again when there are fewer writers; until then, the purge is unfinished",
    )


def _publish(repository: Repository, search: PurgeSearch, planned: State) -> PurgeRecord | None:
    """Publish the rewritten history if the manifest is still at a version; None if it is not."""
    rows, state_rows = rewritten_history(repository, planned, search.record, search.removals, search.affected)
    switched = search.record.moved("switched")
    write_plan(repository.objects, switched.id, _plan(repository, search, len(rows)))
    change = Change(
        put=(*state_rows, purge_to_row(switched), epoch_to_row(planned.purge_epoch + 1)),
        drop=(FREEZE_ID,) if planned.is_frozen else (),
        rewrite=tuple(rows),
    )
    reach("purge.before_switch")
    done = False

    def decide(state: State) -> Change | None:
        nonlocal done
        done = any(record.id == switched.id and record.state != "running" for record in state.purges)
        if done or state.version != planned.version or state.manifest.lines:
            return None
        return change

    state = repository.publish(decide, storage_format=STORAGE_FORMAT_PURGED, purging=True)
    published = any(record.id == switched.id and record.state == "switched" for record in state.purges)
    return switched if done or published else None


def _plan(repository: Repository, search: PurgeSearch, rewritten: int) -> PurgePlan:
    plan = PurgePlan(manifest_rows=rewritten)
    for table, removal in search.removals.items():
        key, folder = search.keys[table], removal.folder
        sizes = repository.objects.sizes(folder)
        plan.listed[folder] = {name.removeprefix(f"{folder}/"): size for name, size in sizes.items()}
        plan.replaced[folder] = dict(removal.replaced)
        if removal.ids:
            plan.rows[key] = plan.rows.get(key, 0) + len(removal.ids)
        if removal.new:
            plan.versions[key] = plan.versions.get(key, 0) + len(removal.new)
        if removal.drops_indexes and key not in plan.indexed:
            plan.indexed.append(key)
        plan.bytes_read += removal.bytes_read
        plan.bytes_written += removal.bytes_written
        plan.bytes_manifests += removal.bytes_manifests
    return plan


def _freeze(repository: Repository, record: PurgeRecord) -> None:
    """Ask other writers to wait, because one of them won the last race."""
    change = Change(put=(freeze_to_row(record.id),))
    repository.publish(lambda state: None if state.is_frozen else change, purging=True)


def end(repository: Repository, record: PurgeRecord, summary: Mapping[str, object]) -> PurgeRecord:
    """Record that a purge is complete, and remove its plan."""
    done = replace(record.moved("done"), finished_us=repository.clock(), summary=dict(summary))

    def decide(state: State) -> Change | None:
        known = [found for found in state.purges if found.id == done.id]
        return Change(put=(purge_to_row(done),)) if known and known[0].state != "done" else None

    reach("purge.before_end")
    repository.publish(decide, storage_format=STORAGE_FORMAT_PURGED)
    repository.objects.delete_folder(f"{layout.PURGES}/{record.id}")
    return done


def allow(repository: Repository, type_name: str, ids: Collection[str]) -> int:
    """Permit purged ids to be written again; return the number of ids that were not permitted before."""
    repository.check_writable()
    count = 0

    def decide(state: State) -> Change | None:
        nonlocal count
        changed: list[PurgeRecord] = []
        named: set[str] = set()
        for record in state.purges:
            gone = {id_ for id_ in ids if record.names(id_)}
            if record.state == "done" and record.type_name == type_name and gone:
                named |= gone
                digests = record.digests - _digests(record.salt, gone)
                changed.append(replace(record, digests=digests))
        count = len(named)
        return Change(put=tuple(map(purge_to_row, changed))) if changed else None

    repository.publish(decide, storage_format=STORAGE_FORMAT_PURGED)
    return count
