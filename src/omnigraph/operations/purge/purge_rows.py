"""The use case purge: finds the tables of a type in all history, runs the purge, and makes its certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from omnigraph.errors import Conflict, InputError, TypeNotFound
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.purge.beside_tables import clean_proposals, remove_derived
from omnigraph.operations.purge.certificate import PurgeCertificate, certificate_of, recorded_certificate
from omnigraph.operations.purge.rebuild import rebuild_indexes
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.storage.files import layout
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.manifest_objects import Kind
from omnigraph.versioning.model.purge_results import PurgePreview
from omnigraph.versioning.model.purges import PurgeRecord, PurgeTarget, TableId
from omnigraph.versioning.purge.plan import read_plan
from omnigraph.versioning.purge.purge import PurgeRequest, allow, begin, end, preview, switch, unfinished
from omnigraph.versioning.purge.sweep import flush_removals, sweep_tables
from omnigraph.versioning.upkeep.claim import claimed
from omnigraph.versioning.write.recovery import recover
from omnigraph.versioning.write.repository import Repository

_REASON_MAX = 4_096
_KINDS: tuple[Kind, ...] = ("node", "edge")

EndJobs = Callable[[Repository], object]
"""Removes the files of bulk jobs whose drivers are dead."""


def purge_request(
    context: GraphContext,
    type_name: str,
    ids: Sequence[str],
    *,
    edges: bool,
    reason: str,
    actor: str | None,
    key: str | None = None,
) -> PurgeRequest:
    """Return a checked request to purge rows of a type."""
    if not ids:
        raise InputError("a purge needs at least one id", code="bad_purge")
    if not reason.strip() or len(reason) > _REASON_MAX or not is_unicode(reason):
        raise InputError(
            f"a purge needs a reason of 1 to {_REASON_MAX:,} characters",
            code="bad_purge",
            hint="give reason='…'; it is recorded, so it must not contain purged values",
        )
    kind, targets = _targets(context, type_name)
    return PurgeRequest(kind, type_name, tuple(dict.fromkeys(ids)), edges, reason, actor, targets, key)


def _targets(context: GraphContext, type_name: str) -> tuple[Kind, tuple[PurgeTarget, ...]]:
    """Return the kind of a type, and every table that ever had its name or contains edges of its nodes."""
    repository = context.repository
    state = repository.state()
    pins = repository.all_pins(state)
    keys = {pin.key for some in pins.values() for pin in some}
    kind = next((kind for kind in _KINDS if TableKey.of(kind, type_name) in keys), None)
    if kind is None:
        known = sorted(key.partition(":")[2] for key in keys)
        raise TypeNotFound(f"no commit has a type '{type_name}'", hint=did_you_mean(type_name, known))
    own = TableKey.of(kind, type_name)
    tables = {(pin.table_id, pin.incarnation) for some in pins.values() for pin in some if pin.key == own}
    columns: dict[TableId, set[str]] = {table: {"id"} for table in tables}
    names: dict[TableId, str] = {table: str(own) for table in tables}
    for commit_id in _commits_of_schemas(repository) if kind == "node" else ():
        snapshot = repository.snapshot(at=commit_id)
        by_key = {key: (table.pin.table_id, table.pin.incarnation) for key, table in snapshot.tables.items()}
        for edge in context.catalogs.of(snapshot).edges.values():
            ends = (("src", edge.from_type), ("dst", edge.to_type))
            found = {column for column, end_ in ends if by_key.get(TableKey.node(end_)) in tables}
            table = by_key.get(edge.table_key)
            if found and table is not None:
                columns.setdefault(table, set()).update(found)
                names[table] = edge.table_key
    targets = [PurgeTarget(table, names[table], tuple(sorted(found))) for table, found in sorted(columns.items())]
    return kind, tuple(targets)


def _commits_of_schemas(repository: Repository) -> Iterator[str]:
    """Yield one commit of every schema in the history."""
    found: dict[str, str] = {}
    for commit in repository.all_commits().values():
        found.setdefault(commit.schema_hash, commit.id)
    yield from found.values()


def preview_purge(context: GraphContext, request: PurgeRequest) -> PurgePreview:
    """Return the rows that a purge would remove; changes nothing."""
    return preview(context.repository, request)


def purge(context: GraphContext, request: PurgeRequest, end_jobs: EndJobs) -> PurgeCertificate:
    """Remove rows from every branch and all history; unfinished purges of other processes are finished first."""
    repository = context.repository
    with _claimed(repository):
        _end_dead_writers(repository, end_jobs)
        for record in unfinished(repository.state()):
            if not (record.type_name == request.type_name and all(map(record.names, request.ids))):
                _finish(context, record, ())
        return _finish(context, begin(repository, request), request.ids)


def resume(context: GraphContext, end_jobs: EndJobs) -> list[PurgeCertificate]:
    """Finish the purges that were interrupted."""
    repository = context.repository
    if not unfinished(repository.state()):
        return []
    with _claimed(repository):
        _end_dead_writers(repository, end_jobs)
        return [_finish(context, record, ()) for record in unfinished(repository.state())]


def allow_again(context: GraphContext, type_name: str, ids: Sequence[str]) -> int:
    """Permit purged ids to be written again; return how many of them were not permitted."""
    return allow(context.repository, type_name, ids)


@contextmanager
def _claimed(repository: Repository) -> Iterator[None]:
    """Hold the claim on purges; refuse if another process holds it."""
    repository.check_writable()
    with claimed(repository, layout.PURGE_CLAIM) as owned:
        if not owned:
            raise Conflict(
                "another process purges this graph", code="purge_running", hint="try again when it has ended"
            )
        yield


def _end_dead_writers(repository: Repository, end_jobs: EndJobs) -> None:
    """Remove what dead writers and jobs left; refuse while a bulk job runs, whose files may contain purged rows."""
    recover(repository)
    end_jobs(repository)
    running = sorted(repository.objects.folders(layout.STAGING))
    if running:
        raise Conflict(
            f"a bulk load is running ({running[0].rpartition('/')[2]}); nothing was removed",
            code="purge_blocked",
            hint="wait until the load has ended, or stop it and try again",
        )


def _finish(context: GraphContext, record: PurgeRecord, ids: Sequence[str]) -> PurgeCertificate:
    """Carry out the steps of a purge that are left."""
    repository = context.repository
    if record.state == "done":
        return recorded_certificate(record, ids, repository.genesis_id)
    if record.state == "running":
        record = switch(repository, record, ids or None)
    plan = read_plan(repository.objects, record.id)
    repository.manifest.erase_past()
    removed = sweep_tables(repository, record, plan)
    remove_derived(context, plan)
    clean_proposals(repository.objects, record)
    flush_removals(repository)
    certificate = certificate_of(record, plan, removed, ids, repository.genesis_id, repository.clock())
    end(repository, record, certificate.summary())
    return replace(certificate, unindexed=rebuild_indexes(context, plan))
