"""Driver of a bulk load.

The input is staged once and validated on every snapshot that the load is tried on. If the branch moved, only the work
that depends on committed rows is repeated. The job's files are removed at the end. If the driver dies, the next `sweep`
finds the expired lease and removes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.embedding.rate_limit import share_settings
from omnigraph.engine import tuning
from omnigraph.errors import Conflict, Damaged, Denied, HeadMoved
from omnigraph.operations.embed.embedder import ColumnEmbedder, GraphEmbedder
from omnigraph.operations.load.load import ensure_branch, on_new_branch, tried
from omnigraph.operations.load.load_request import LoadRequest, check_missing, check_mode
from omnigraph.operations.load.load_result import (
    LoadResult,
    Reject,
    finished,
    load_notes,
    load_options,
    merge_notes,
    record_result,
)
from omnigraph.operations.load.load_rules import drop_aliases
from omnigraph.pipeline.finalize_task import ChangedFragments, DeleteWork, FinalizeWork, finalize
from omnigraph.pipeline.job import Job, embed_settings
from omnigraph.pipeline.orphan_jobs import JobLease, create_lease, sweep
from omnigraph.pipeline.runner import Runner, shares
from omnigraph.pipeline.shuffle import bucket_numbers
from omnigraph.pipeline.stage_task import write_node_aliases
from omnigraph.pipeline.staged_input import InputSource, StagedInput, stage_input
from omnigraph.pipeline.validation_driver import Outcome, Validation
from omnigraph.pipeline.violations import split_of
from omnigraph.storage.lance.fragments import NewFragment, PreparedFragments
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction
from omnigraph.versioning.write.write import write_once

UNGUARDED = "applies no rules for rows and properties, and rules limit what you may see or change"
_KEY_BYTES = 64
"""Approximate size of the key of a committed row."""
_BUCKETS_UNKNOWN = 64
"""Number of buckets for an input of unknown size."""


def load_source(
    repository: Repository, runner: Runner, source: InputSource, request: LoadRequest, *, staged_job: Job | None = None
) -> LoadResult:
    """Load an input onto a branch as one commit; results and errors equal those of `operations.load.load`.

    `staged_job` is the job of `begin_job` under which the input was already staged.
    """
    sweep(repository)
    if request.dry_run:
        request = replace(request, embed=False)
        trial = _BulkLoad(repository, runner, source, request, staged_job)
        with trial:
            return tried(repository, request, trial.prepare, lambda: trial.result)
    created = ensure_branch(repository, request)
    load = _BulkLoad(repository, runner, source, request, staged_job)
    with on_new_branch(request, created), load:
        written = write_once(repository, load.prepare, load_options(request, created=created))
    return finished(load.result, written, request, created=created)


def begin_job(
    repository: Repository,
    branch: str,
    mode: str,
    environ: Mapping[str, str],
    *,
    missing: str = "keep",
    seconds_max: float,
) -> Job:
    """Create a job whose input is staged by other processes and published by a later call of `load_source`.

    The lease is valid for `seconds_max`. After that, any process may remove the job's files.
    """
    snapshot = repository.snapshot(branch)
    job = Job(
        id=new_ulid(repository.clock()),
        location=repository.location,
        schema=snapshot.schema.ir,
        pins={key: table.open_args for key, table in snapshot.tables.items()},
        mode=check_mode(mode),
        keep=check_missing(missing) == "keep",
        buckets=_BUCKETS_UNKNOWN,
        environ=embed_settings(environ),
    )
    create_lease(repository, job.id, seconds_max)
    return write_node_aliases(job, snapshot)


class _BulkLoad:
    def __init__(
        self,
        repository: Repository,
        runner: Runner,
        source: InputSource,
        request: LoadRequest,
        staged_job: Job | None,
    ) -> None:
        self.repository = repository
        self.runner = runner
        self.source = source
        self.request = request
        self.environ = embed_settings(request.environ)
        self.staged_job = staged_job
        self.id = staged_job.id if staged_job is not None else new_ulid(repository.clock())
        self.lease = JobLease(repository, self.id)
        self.result: LoadResult | None = None
        self._staging: StagedInput | None = None
        self._staged_for = "", ""
        """The schema and the aliases that the input was staged with."""

    def __enter__(self) -> None:
        self.lease.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.lease.__exit__(*error)

    def prepare(self, transaction: Transaction) -> None:
        """Prepare the changes to publish on this snapshot."""
        if self._is_fenced():
            self._start_over()
        try:
            self._prepare(transaction)
        except Exception as error:
            # The files of a fenced job disappear while it runs, so the fence is the cause of any error.
            if self._is_fenced():
                raise HeadMoved("a recovery aborted this load; nothing was written", hint="try again") from error
            raise

    def _is_fenced(self) -> bool:
        return self.repository.state().is_aborted(self.id)

    def _start_over(self) -> None:
        """Continue as a new job: a recovery fenced this one and removed its files."""
        if self.staged_job is not None:
            raise Conflict(
                "the staged rows of this load expired and were removed; nothing was written",
                hint="write them again",
            )
        self.lease.__exit__(None, None, None)
        self.id = new_ulid(self.repository.clock())
        self.lease = JobLease(self.repository, self.id)
        self.lease.__enter__()
        self._staging = None

    def _prepare(self, transaction: Transaction) -> None:
        snapshot = transaction.snapshot
        if self.request.guard(snapshot) is not None:
            raise Denied(f"a load as a job {UNGUARDED}", hint="load with engine='memory'")
        transaction.bind_job(self.id)
        self.lease.keep(())
        made_for = snapshot.schema.ir, snapshot.aliases_hash
        if self._staging is None or self._staged_for != made_for:
            job = write_node_aliases(self._job(snapshot), snapshot)
            self._staging, self._staged_for = stage_input(self.runner, self.source, job), made_for
        try:
            self._validate(transaction, self._staging)
        except Damaged as error:
            # A cleanup removed the version. It does so only long after the branch moved.
            head = self.repository.state().get_head(self.request.options.branch)
            if error.code == "version_reclaimed" and head.commit_id != snapshot.commit_id:
                branch = self.request.options.branch
                message = f"branch '{branch}' moved and a cleanup removed its old version; nothing was written"
                raise HeadMoved(message, hint="try again") from error
            raise

    @property
    def _memory(self) -> int | None:
        """The memory of one task."""
        return None if self.request.memory is None else self.request.memory // self.runner.parallelism

    def _buckets(self, size: int) -> int:
        limits = tuning.current
        busy = min(self.runner.parallelism, -(-size // limits.bucket_bytes_min))
        most = limits.bucket_bytes
        if self._memory is not None:
            most = min(most, max(self._memory // 4, limits.bucket_bytes_min))
        return max(1, busy, min(limits.buckets_max, -(-size // most)))

    def _job(self, snapshot: Snapshot) -> Job:
        rows = sum(table.pin.row_count for table in snapshot.tables.values())
        size = self.source.bytes + rows * _KEY_BYTES
        job = Job(
            id=self.id,
            location=self.repository.location,
            schema=snapshot.schema.ir,
            pins={key: table.open_args for key, table in snapshot.tables.items()},
            mode=self.request.mode,
            keep=self.request.keeps,
            collect=self.request.set_aside,
            buckets=self.staged_job.buckets if self.staged_job is not None else self._buckets(size),
            environ=self.environ,
            embed=self.request.embed,
            spaces={
                (key, column): space
                for key, table in snapshot.tables.items()
                for column, space in (table.pin.embeddings if table.pin.row_count else ())
            },
            fetch=self.request.fetch,
            memory=self._memory,
        )
        if not (self.request.embed and any(node.embeds for node in job.catalog.nodes.values())):
            return job
        settings, at_once = share_settings(self.environ, self.runner.parallelism)
        return replace(job, environ=settings, at_once=at_once)

    def _validate(self, transaction: Transaction, before: StagedInput) -> None:
        """Validate the staged input on the snapshot of a transaction, and add the changes to it."""
        job = replace(self._job(transaction.snapshot), aliases=before.job.aliases, buckets=before.job.buckets)
        job = replace(job, node_aliases=before.job.node_aliases)
        staging = before.copy(job)
        outcome = Validation(staging, transaction.snapshot).run()
        failed = [done.unembedded for done in staging.splits.values()] + [done.unembedded for done in outcome.completed]
        for raised in failed:
            if raised is not None:
                raise raised.error()
        if self.request.dry_run:
            self._report(transaction, staging, outcome)
            return
        self._publish(transaction, staging, outcome)

    def _publish(self, transaction: Transaction, staging: StagedInput, outcome: Outcome) -> None:
        """Finalize the fragments and add them to the transaction."""
        job = staging.job
        final, work = self._finalize_work(staging, outcome)
        changed: dict[str, list[str]] = {}
        removed: dict[str, list[int]] = {}
        for one, done in zip(work, self.runner.run("finalize", finalize, job, work), strict=True):
            if isinstance(done, ChangedFragments):
                changed.setdefault(one.table_key, []).extend(done.changed)
                removed.setdefault(one.table_key, []).extend(done.removed)
            else:
                final[one.table_key] += done
        # From here on a version may refer to these files, published or not. Garbage collection removes unpinned
        # versions.
        self.lease.keep(file for fragments in final.values() for fragment in fragments for file in fragment.files)
        replaces = self.request.mode == "overwrite"
        for key, fragments in final.items():
            change = PreparedFragments(
                tuple(fragments), tuple(changed.get(key, ())), tuple(removed.get(key, ())), replaces
            )
            transaction.change(key, TableWrite(prepared=change))
        if replaces:
            drop_aliases(transaction, final)
        self._record_embeddings(transaction, staging, outcome)
        self._report(transaction, staging, outcome)

    def _finalize_work(
        self, staging: StagedInput, outcome: Outcome
    ) -> tuple[dict[str, list[NewFragment]], list[FinalizeWork | DeleteWork]]:
        """The fragments that are final as staged, by table, and the work of the finalize tasks."""
        final: dict[str, list[NewFragment]] = {}
        work: list[FinalizeWork | DeleteWork] = []
        for key, rows in staging.tables.items():
            excluded: dict[int, list[int]] = {}
            for position in rows.excluded:
                excluded.setdefault(split_of(position), []).append(position)
            staged = [
                FinalizeWork(key, fragments, excluded.get(split, []), rows.first_rows[split])
                for split, fragments in rows.fragments.items()
            ]
            every = sorted(rows.excluded)
            staged += [
                FinalizeWork(key, done.tables[key].fragments, every, origins=done.tables[key].origins)
                for done in outcome.completed
                if key in done.tables
            ]
            final[key] = [fragment for one in staged if not one.excluded for fragment in one.fragments]
            work += [one for one in staged if one.excluded and one.fragments]
        for key, names in outcome.replaced().items():
            every = sorted(staging.tables[key].excluded)
            numbers = sorted(bucket_numbers(staging.job, names))
            work += [DeleteWork(key, list(some), names, every) for some in shares(numbers, self.runner)]
        return final, work

    def _record_embeddings(self, transaction: Transaction, staging: StagedInput, outcome: Outcome) -> None:
        """Record the models of the embedded columns. Checks them again, because the head may have moved since the tasks
        ran.
        """
        catalog = staging.job.catalog
        renew = self.request.mode == "overwrite"
        embedding = ColumnEmbedder(GraphEmbedder(self.environ), transaction.snapshot.embedding, catalog, renew=renew)
        embedded = {key for key, rows in staging.tables.items() if rows.embedded}
        embedded |= {key for done in outcome.completed for key, table in done.tables.items() if table.embedded}
        for name in sorted(TableKey.parse(key).type_name for key in embedded):
            for target, embed in catalog.nodes[name].embeds.items():
                embedding.check_model(name, target, embed.model)
        embedding.record(transaction)

    def _report(self, transaction: Transaction, staging: StagedInput, outcome: Outcome) -> None:
        loaded = tuple(sorted((key, rows.rows - len(rows.excluded)) for key, rows in staging.tables.items()))
        rejects = sorted(staging.rejects, key=lambda error: (error.source or "", error.line or 0))
        if rejects:
            staging.source.originals(staging, rejects)
        again = [key for key, rows in staging.tables.items() if rows.adds_again and self.request.mode == "merge"]
        made = [table for done in outcome.completed for table in done.tables.values()]
        read = [note for staged in staging.splits.values() for note in staged.notes]
        self.result = LoadResult(
            self.request.options.branch,
            self.request.mode,
            None,
            loaded,
            tuple(map(Reject.of, rejects)),
            sum(table.embedded for table in staging.tables.values()) + sum(table.embedded for table in made),
            sum(table.waiting for table in staging.tables.values()) + sum(table.waiting for table in made),
            rejected_count=len(rejects),
            notes=(*dict.fromkeys(read), *load_notes(loaded, again), *self._merge_notes(outcome)),
        )
        record_result(transaction, self.result, job=self.id)

    def _merge_notes(self, outcome: Outcome) -> tuple[str, ...]:
        existing: dict[str, list[str]] = {}
        counts: Counter[str] = Counter()
        for done in outcome.completed if self.request.dry_run else ():
            for key, table in done.tables.items():
                if TableKey.parse(key).kind == "node":
                    existing.setdefault(key, []).extend(table.examples)
                    counts[key] += table.existing
        return merge_notes(existing, counts)
