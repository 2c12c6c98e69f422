"""The story of a bulk load, told by the process that publishes it.

Staged once, judged on every snapshot the load is tried on: if the branch moved meanwhile, only what depends on the
committed rows is done again. Whatever happens, the job's files are gone afterwards; if this process dies, the
next one to look finds its note and cleans up (`sweep`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.embedding.rate_limit import share_settings
from omnigraph.engine.write.upsert import check_missing
from omnigraph.errors import Conflict, Damaged, HeadMoved
from omnigraph.operations.embedder import ColumnEmbedder, GraphEmbedder
from omnigraph.operations.load import ensure_branch, on_new_branch
from omnigraph.operations.load_result import LoadResult, Reject, check_mode, finished, load_notes, note_result
from omnigraph.pipeline.finalize_task import LoseWork, SettleWork, Thinned, finish
from omnigraph.pipeline.job import Job, Mode, embed_settings
from omnigraph.pipeline.orphan_jobs import Note, announce, sweep
from omnigraph.pipeline.runner import Runner, shares
from omnigraph.pipeline.shuffle import numbers_in
from omnigraph.pipeline.splits import SPLIT_BYTES
from omnigraph.pipeline.staged_input import Source, Staging, stage_input
from omnigraph.pipeline.validation_driver import Judging, Outcome
from omnigraph.pipeline.violations import split_of
from omnigraph.storage.lance.fragments import NewFragment, PreparedFragments
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.values import Fetch
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions, write

BUCKET_BYTES = 2 * SPLIT_BYTES
"""How much text the keys of one bucket stand for, about: a judge then needs no more memory than a reader."""

BUCKET_BYTES_MIN = 8 << 20
"""Nobody is given less to judge just to keep others busy: a second worker costs more to start."""

BUCKETS_MAX = 4096
_KEY_BYTES = 64
_BUCKETS_UNKNOWN = 64
"""For an input whose size nobody knows beforehand."""


def load_source(
    repository: Repository,
    runner: Runner,
    source: Source,
    mode: str,
    options: WriteOptions,
    *,
    missing: str = "keep",
    set_aside: bool = False,
    from_branch: str | None = None,
    environ: Mapping[str, str] | None = None,
    embed: bool = True,
    fetch: Fetch | None = None,
    begun: Job | None = None,
) -> LoadResult:
    """Load an input onto a branch as one commit; results and errors are those of `operations.load`.

    `begun` is the job under which the input was staged already, by `begin_job`.
    """
    checked, keep = check_mode(mode), check_missing(missing) == "keep"
    sweep(repository)
    created = ensure_branch(repository, options, from_branch)
    load = _BulkLoad(repository, runner, source, checked, options, keep, set_aside, environ or {}, embed, fetch, begun)
    with on_new_branch(options, from_branch, created), load:
        commit = write(repository, load.prepare, replace(options, kind="load"))
    made = load.result if load.attempt is not None and not load.attempt.is_repeated else None
    return finished(made, commit, checked, from_branch, created=created)


def begin_job(
    repository: Repository,
    branch: str,
    mode: str,
    environ: Mapping[str, str],
    *,
    missing: str = "keep",
    seconds_max: float,
) -> Job:
    """A job whose input others will stage before some process, not this one, publishes it.

    If that does not happen within `seconds_max`, its files are anybody's to remove.
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
    announce(repository, job.id, seconds_max)
    return job


class _BulkLoad:
    def __init__(
        self,
        repository: Repository,
        runner: Runner,
        source: Source,
        mode: Mode,
        options: WriteOptions,
        keep: bool,
        collect: bool,
        environ: Mapping[str, str],
        embed: bool,
        fetch: Fetch | None,
        begun: Job | None,
    ) -> None:
        self.repository = repository
        self.runner = runner
        self.source = source
        self.mode = mode
        self.options = options
        self.keep = keep
        self.collect = collect
        self.environ = embed_settings(environ)
        self.embed = embed
        self.fetch = fetch
        self.begun = begun
        self.id = begun.id if begun is not None else new_ulid(repository.clock())
        self.note = Note(repository, self.id)
        self.result: LoadResult | None = None
        self.attempt: Transaction | None = None
        self._staging: Staging | None = None

    def __enter__(self) -> None:
        self.note.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.note.__exit__(*error)

    def prepare(self, transaction: Transaction) -> None:
        """Say what to publish on this snapshot."""
        if self._is_fenced():
            self._start_over()
        try:
            self._prepare(transaction)
        except Exception as error:
            # Files of a fenced job disappear while it works: the cause is the fence, whatever failed first.
            if self._is_fenced():
                raise HeadMoved(
                    "this load was taken for dead and given up; nothing was written", hint="try again"
                ) from error
            raise

    def _is_fenced(self) -> bool:
        return self.repository.state().is_aborted(self.id)

    def _start_over(self) -> None:
        """Continue as a new job: a recovery took this one for dead and removed its files."""
        if self.begun is not None:
            raise Conflict(
                "the rows of this load were taken for abandoned and removed; nothing was written",
                hint="write them again",
            )
        self.note.__exit__(None, None, None)
        self.id = new_ulid(self.repository.clock())
        self.note = Note(self.repository, self.id)
        self.note.__enter__()
        self._staging = None

    def _prepare(self, transaction: Transaction) -> None:
        self.attempt = transaction
        snapshot = transaction.snapshot
        transaction.bind_job(self.id)
        self.note.keep(())
        if self._staging is None or self._staging.job.schema != snapshot.schema.ir:
            self._staging = stage_input(self.runner, self.source, self._job(snapshot))
        try:
            self._settle(transaction, self._staging)
        except Damaged as error:
            # A cleanup took the version away; it only does so when the branch has long moved on.
            head = self.repository.state().get_head(self.options.branch)
            if error.code == "version_reclaimed" and head.commit_id != snapshot.commit_id:
                raise HeadMoved(
                    f"branch '{self.options.branch}' moved on and was cleaned up; nothing was written", hint="try again"
                ) from error
            raise

    def _buckets(self, size: int) -> int:
        busy = min(self.runner.parallelism, -(-size // BUCKET_BYTES_MIN))
        return max(1, busy, min(BUCKETS_MAX, -(-size // BUCKET_BYTES)))

    def _job(self, snapshot: Snapshot) -> Job:
        rows = sum(table.pin.row_count for table in snapshot.tables.values())
        size = self.source.bytes + rows * _KEY_BYTES
        job = Job(
            id=self.id,
            location=self.repository.location,
            schema=snapshot.schema.ir,
            pins={key: table.open_args for key, table in snapshot.tables.items()},
            mode=self.mode,
            keep=self.keep,
            collect=self.collect,
            buckets=self.begun.buckets if self.begun is not None else self._buckets(size),
            environ=self.environ,
            embed=self.embed,
            spaces={
                (key, column): space
                for key, table in snapshot.tables.items()
                for column, space in (table.pin.embeddings if table.pin.row_count else ())
            },
            fetch=self.fetch,
        )
        if not (self.embed and any(node.embeds for node in job.catalog.nodes.values())):
            return job
        settings, at_once = share_settings(self.environ, self.runner.parallelism)
        return replace(job, environ=settings, at_once=at_once)

    def _settle(self, transaction: Transaction, before: Staging) -> None:
        job = replace(self._job(transaction.snapshot), aliases=before.job.aliases, buckets=before.job.buckets)
        staging = before.copy(job)
        outcome = Judging(staging, transaction.snapshot).run()
        failed = [done.unembedded for done in staging.splits.values()] + [done.unembedded for done in outcome.completed]
        for raised in failed:
            if raised is not None:
                raise raised.error()
        self._publish(transaction, staging, outcome)

    def _publish(self, transaction: Transaction, staging: Staging, outcome: Outcome) -> None:
        job = staging.job
        final: dict[str, list[NewFragment]] = {key: [] for key in staging.tables}
        work: list[SettleWork | LoseWork] = []
        for key, rows in staging.tables.items():
            excluded: dict[int, list[int]] = {}
            for position in rows.excluded:
                excluded.setdefault(split_of(position), []).append(position)
            made = [
                SettleWork(key, pieces, excluded.get(split, []), rows.firsts[split])
                for split, pieces in rows.pieces.items()
            ]
            every = sorted(rows.excluded)
            made += [
                SettleWork(key, done.tables[key].pieces, every, placed=done.tables[key].placed)
                for done in outcome.completed
                if key in done.tables
            ]
            for settling in made:
                if settling.excluded and settling.pieces:
                    work.append(settling)
                else:
                    final[key] += settling.pieces
        for key, names in outcome.lost().items():
            every = sorted(staging.tables[key].excluded)
            numbers = sorted(numbers_in(job, names))
            work += [LoseWork(key, list(some), names, every) for some in shares(numbers, self.runner)]
        changed: dict[str, list[str]] = {}
        removed: dict[str, list[int]] = {}
        for one, done in zip(work, self.runner.run("settle", finish, job, work), strict=True):
            if isinstance(done, Thinned):
                changed.setdefault(one.table_key, []).extend(done.changed)
                removed.setdefault(one.table_key, []).extend(done.removed)
            else:
                final[one.table_key] += done
        # From here on a version may refer to them, published or not; what no version pins goes as versions go.
        self.note.keep(file for pieces in final.values() for piece in pieces for file in piece.files)
        for key, pieces in final.items():
            change = PreparedFragments(
                tuple(pieces), tuple(changed.get(key, ())), tuple(removed.get(key, ())), self.mode == "overwrite"
            )
            transaction.change(key, TableWrite(prepared=change))
        self._record_embeddings(transaction, staging, outcome)
        self._report(transaction, staging, outcome)

    def _record_embeddings(self, transaction: Transaction, staging: Staging, outcome: Outcome) -> None:
        """Record what made the vectors of the load; the head may have moved since its tasks checked it."""
        catalog = staging.job.catalog
        renew = self.mode == "overwrite"
        embedding = ColumnEmbedder(GraphEmbedder(self.environ), transaction.snapshot.embedding, catalog, renew=renew)
        embedded = {key for key, rows in staging.tables.items() if rows.embedded}
        embedded |= {key for done in outcome.completed for key, table in done.tables.items() if table.embedded}
        for name in sorted(key.removeprefix("node:") for key in embedded):
            for target, embed in catalog.nodes[name].embeds.items():
                embedding.check_model(name, target, embed.model)
        embedding.record(transaction)

    def _report(self, transaction: Transaction, staging: Staging, outcome: Outcome) -> None:
        loaded = tuple(sorted((key, rows.rows - len(rows.excluded)) for key, rows in staging.tables.items()))
        rejects = sorted(staging.rejects, key=lambda error: (error.source or "", error.line or 0))
        if rejects:
            staging.source.originals(staging, rejects)
        again = [key for key, rows in staging.tables.items() if rows.adds_again and self.mode == "merge"]
        made = [table for done in outcome.completed for table in done.tables.values()]
        read = [note for staged in staging.splits.values() for note in staged.notes]
        self.result = LoadResult(
            self.options.branch,
            self.mode,
            None,
            loaded,
            tuple(map(Reject.of, rejects)),
            sum(table.embedded for table in staging.tables.values()) + sum(table.embedded for table in made),
            sum(table.waiting for table in staging.tables.values()) + sum(table.waiting for table in made),
            rejected_count=len(rejects),
            notes=(*dict.fromkeys(read), *load_notes(loaded, again)),
        )
        note_result(transaction, self.result, job=self.id)
