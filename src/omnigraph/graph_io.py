"""Data in and data out, as methods of a graph: loads, ingests, exports, and diffs as files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnigraph.engine.write.fill_vectors import Embedder
from omnigraph.engine_choice import BulkOptions, Rejects, diff_data, export_data, keep_rejects, load_data
from omnigraph.graph_history import Review
from omnigraph.operations.export import export_lines, export_records
from omnigraph.operations.load_request import LoadRequest, check_missing, check_mode
from omnigraph.operations.load_result import LoadResult
from omnigraph.pipeline.diff import DiffRequest, DiffResult
from omnigraph.pipeline.export import ExportRequest, Format
from omnigraph.pipeline.runner import Watch
from omnigraph.storage.files.input_files import writing
from omnigraph.values import Fetch
from omnigraph.versioning.feed.commit_changes import ChangeFilter
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.write.repository import At
from omnigraph.versioning.write.transaction import WriteOptions


class Transfer(Review):
    """What moves data between a graph and files, records or frames, seen from one branch."""

    _embedder: Embedder
    _environ: Mapping[str, str]
    _fetch: Fetch | None

    def load(
        self,
        data: Any,
        *,
        mode: str | None = None,
        missing: str = "keep",
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        rejects: Rejects = None,
        embed: bool = True,
        engine: str = "auto",
        spark: Any = None,
        job_id: str | None = None,
        watch: Watch | None = None,
        delimiter: str | None = None,
    ) -> LoadResult:
        """Load records as one commit; see `operations.load` for what `data` and `mode` can be.

        A mode must be given: `merge`, `append` or `overwrite`.
        In mode `merge` a property that is absent from a record keeps its value; with `missing="null"` it is cleared, so
        that records replace whole rows. With a list in `rejects`, wrong records are put there and the rest is loaded; a
        path makes them a file, JSONL or Parquet by its name. Without `embed`, texts are left without their vectors.
        `engine` is `auto`, `memory` or `spark`, `spark` a session or `omnigraph.spark.SessionOptions`; results are
        equal. A second load with the same `job_id` does nothing, leaves `rejects` as it is and returns the result of
        the first. `watch` is called with the progress. `delimiter` separates the cells of CSV files; without it the
        header decides.
        """
        bulk = BulkOptions(engine, spark, watch)
        request = LoadRequest(
            check_mode(mode),
            self._options(branch or self.branch, actor, message, job_id),
            check_missing(missing),
            embed=embed,
            delimiter=delimiter,
        )
        return self._load(data, request, bulk, rejects)

    def ingest(
        self,
        data: Any,
        *,
        branch: str,
        from_branch: str = MAIN,
        mode: str = "merge",
        missing: str = "keep",
        actor: str | None = None,
        message: str | None = None,
        rejects: Rejects = None,
        embed: bool = True,
        engine: str = "auto",
        spark: Any = None,
        job_id: str | None = None,
        watch: Watch | None = None,
        delimiter: str | None = None,
    ) -> LoadResult:
        """Load onto a branch, which is created from `from_branch` if it is not there."""
        bulk = BulkOptions(engine, spark, watch)
        request = LoadRequest(
            check_mode(mode),
            self._options(branch, actor, message, job_id),
            check_missing(missing),
            from_branch=from_branch,
            embed=embed,
            delimiter=delimiter,
        )
        return self._load(data, request, bulk, rejects)

    def _options(self, branch: str, actor: str | None, message: str | None, job_id: str | None) -> WriteOptions:
        return WriteOptions(branch=branch, actor=actor or self.actor, message=message, idempotency_key=job_id)

    def _load(self, data: Any, request: LoadRequest, bulk: BulkOptions, rejects: Rejects) -> LoadResult:
        request = replace(request, set_aside=rejects is not None, fetch=self._fetch, environ=self._environ)
        result = load_data(self._repository, self._catalogs, data, request, bulk, self._embedder)
        if not result.repeated:
            keep_rejects(result.rejected, rejects)
        return result

    def export(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: At = None,
        format: Format = "jsonl",
        partitioned: bool = False,
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,
    ) -> Iterator[dict[str, Any]] | int:
        """Yield the records of a snapshot, or write them to a JSONL file and return how many there were.

        Other formats (`parquet`, `csv`, `arrow`) are a new folder with a file for each type; `partitioned`, a file for
        each piece of a table, written by a job that runs where a load would.
        """
        snapshot = self.snapshot(branch, at)
        catalog = self._catalogs.of(snapshot)
        if out is None:
            return export_records(snapshot, catalog, types)
        if format != "jsonl" or partitioned:
            bulk = BulkOptions(engine, spark, watch)
            request = ExportRequest(os.fspath(out), format, types, partitioned)
            return export_data(self._repository, snapshot, catalog, request, bulk, self._environ).rows
        lines = export_lines(snapshot, catalog, types)
        count = 0
        with writing(Path(out)) as file:
            for line in lines:
                file.write(line)
                count += 1
        return count

    def export_diff(
        self,
        from_: At,
        to: At,
        out: str | os.PathLike[str],
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,
    ) -> DiffResult:
        """Write what `diff` would yield to a new folder of JSON lines, by a job that runs where a load would."""
        wanted = ChangeFilter.of(kinds, types, None).has_table
        request = DiffRequest(*self._points(from_, to), os.fspath(out), wanted)
        return diff_data(self._repository, request, BulkOptions(engine, spark, watch), self._environ)
