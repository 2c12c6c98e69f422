"""`GraphIO`: the part of `Graph` that loads, embeds, exports, and writes diffs to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from omnigraph.bulk_options import BulkOptions
from omnigraph.cancellation import Limits
from omnigraph.engine.statistics.summaries import Samples
from omnigraph.engine_choice import Rejects, check_engine, diff_data, export_data, hold_records, keep_rejects, load_data
from omnigraph.errors import InputError
from omnigraph.models.objects import as_records
from omnigraph.operations.authorization.visible_changes import sight_of
from omnigraph.operations.derived import build_after_load
from omnigraph.operations.embed.embed_missing import FillResult, fill_missing
from omnigraph.operations.export import export_lines, export_records
from omnigraph.operations.formats.graph_writer import GraphFormat
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.operations.load.load_result import LoadResult, repeated_result
from omnigraph.operations.store_statistics import store_load_statistics
from omnigraph.pipeline.adjacency_task import build_adjacency
from omnigraph.pipeline.diff import DiffRequest, DiffResult, diff_visible_files
from omnigraph.pipeline.export import ExportRequest, export_visible
from omnigraph.pipeline.runner import Progress, Runner
from omnigraph.pipeline.segment_task import build_segments
from omnigraph.storage.files.input_files import writing
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.idempotency import once
from omnigraph.versioning.write.transaction import WriteOptions


class GraphIO:
    """Input and output of one opened graph."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def load(self, data: Any, request: LoadRequest, bulk: BulkOptions, rejects: Rejects) -> LoadResult:
        """Load records, files or DataFrames as one commit; rejected records go to `rejects`."""
        context, data = self._context, as_records(data)
        limits = Limits()
        budget = context.cache.memory
        request = replace(
            request,
            set_aside=rejects is not None,
            fetch=context.fetch,
            memory=None if budget is None else budget.build_bytes,
            guard_of=context.guard_of if context.has_row_rules else None,
            check_base=partial(context.check_new_branch, request.options.branch) if context.has_row_rules else None,
            environ=context.environ,
        )
        samples: Samples = {}

        def finish(runner: Runner, loaded: LoadResult) -> LoadResult:
            with limits.applied():
                return build_adjacency(context, runner, build_segments(context, runner, loaded))

        def load() -> LoadResult:
            with hold_records(data, request, context.cache.keep_in) as held:
                return load_data(
                    context.repository,
                    context.catalogs,
                    held,
                    request,
                    bulk,
                    context.embedder,
                    samples,
                    finish,
                )

        if request.dry_run:
            result = load()
            keep_rejects(result.rejected, rejects)
            return result
        result = once(
            context.repository,
            request.keyed_options.request_key,
            load,
            lambda earlier: repeated_result(earlier, request),
            lambda loaded: loaded.commit_id is not None,
        )
        if not result.repeated:
            keep_rejects(result.rejected, rejects)
            store_load_statistics(context.repository, result, samples, context.cache, context.catalogs)
            with limits.applied():
                result = build_after_load(context, result, _progress(bulk))
        return result

    def embed(self, options: WriteOptions, *, types: Sequence[str] | None, again: bool) -> FillResult:
        """Compute the missing vectors of texts as one commit; with `again`, compute all vectors."""
        context = self._context
        return fill_missing(
            context.repository,
            context.catalogs,
            options,
            context.embedder,
            types=types,
            again=again,
            guard_of=context.guard_of if context.has_row_rules else None,
        )

    def export(self, snapshot: Snapshot, request: ExportRequest, bulk: BulkOptions) -> int:
        """Write the records of a snapshot to a JSONL file, or to a folder in another format; return their number."""
        context = self._context
        catalog = context.catalog(snapshot)
        if request.format != "jsonl" or request.partitioned:
            view = context.view(snapshot)
            if view is not None:
                check_engine(bulk, "an export")
                return export_visible(snapshot, view, request, context.environ).rows
            return export_data(context.repository, snapshot, catalog, request, bulk, context.environ).rows
        lines = export_lines(snapshot, catalog, request.types, context.view(snapshot))
        count = 0
        with writing(Path(request.out)) as file:
            for line in lines:
                file.write(line)
                count += 1
        return count

    def export_database(self, snapshot: Snapshot, out: str, types: Sequence[str] | None, bulk: BulkOptions) -> int:
        """Write a snapshot to a new DuckDB file; return the number of rows."""
        from omnigraph.operations.sql.database_file import write_database

        if bulk.engine == "spark" or bulk.spark is not None:
            raise InputError("a DuckDB file is written in this process", hint="leave out 'engine' and 'spark'")
        return write_database(self._context, snapshot, out, types)

    def export_graph(
        self, snapshot: Snapshot, format: GraphFormat, out: str, types: Sequence[str] | None, bulk: BulkOptions
    ) -> int:
        """Write a snapshot in a format of other graph programs; return the number of rows."""
        from omnigraph.operations.formats.export_graph import export_graph

        if bulk.engine == "spark" or bulk.spark is not None:
            raise InputError(f"an export to {format} is written in this process", hint="leave out 'engine' and 'spark'")
        context = self._context
        catalog, view = context.catalog(snapshot), context.view(snapshot)
        return export_graph(snapshot, catalog, view, format, out, types, context.environ)

    def records(self, snapshot: Snapshot, types: Sequence[str] | None) -> Iterator[dict[str, Any]]:
        """Yield the records of a snapshot."""
        context = self._context
        return export_records(snapshot, context.catalog(snapshot), types, context.view(snapshot))

    def export_diff(self, request: DiffRequest, bulk: BulkOptions) -> DiffResult:
        """Write the changes between two snapshots to a folder of JSON lines."""
        context = self._context
        sight = sight_of(context)
        seen = None if sight is None else sight.compare(request.before, request.after)
        if seen is not None:
            check_engine(bulk, "a diff")
            return diff_visible_files(request, seen, context.environ)
        return diff_data(self._context.repository, request, bulk, self._context.environ)


def _progress(bulk: BulkOptions) -> Callable[[int, int], None] | None:
    """Return the function that reports the progress of building search structures."""
    watch = bulk.watch
    return None if watch is None else lambda done, total: watch(Progress("build search structures", done, total))
