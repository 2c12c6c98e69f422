"""Asking a graph, as methods: queries, pages of them, plans, profiles, lint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

from omnigraph.engine.cache.disk_cache import FOLDER as CACHE_FOLDER
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.engine.exec.context import Limits
from omnigraph.engine.exec.executor import Execution
from omnigraph.engine.plan.explain import Explained
from omnigraph.engine.plan.prepared_query import Prepared
from omnigraph.engine.result.result import Result
from omnigraph.engine_choice import BulkOptions
from omnigraph.errors import Hint, InputError
from omnigraph.graph_io import Transfer
from omnigraph.notebook.tables import Preformatted
from omnigraph.operations.catalog_cache import Catalogs
from omnigraph.operations.embedder import GraphEmbedder
from omnigraph.operations.paging import read_page
from omnigraph.operations.read import Plans, read
from omnigraph.pipeline.runner import Watch
from omnigraph.query.lint import LintReport, lint
from omnigraph.query.params import bind_params
from omnigraph.query.plan.explain import explain
from omnigraph.storage.files.blob_sources import BlobSources
from omnigraph.storage.files.input_files import read_source
from omnigraph.values import Fetch
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import At, Repository

Place = str | os.PathLike[str]
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Shared:
    """What all handles of one opened graph have in common."""

    repository: Repository
    embedder: GraphEmbedder
    cache: DataCache
    environ: Mapping[str, str] = field(repr=False)
    catalogs: Catalogs = field(default_factory=Catalogs)
    plans: Plans = field(default_factory=Plans)
    fetch: Fetch | None = None

    @classmethod
    def of(cls, repository: Repository, environ: Mapping[str, str], blob_sources: Sequence[Place]) -> Shared:
        """Everything a newly opened graph starts with."""
        path = repository.location.path
        kept = path / CACHE_FOLDER if path is not None else None
        fetch = BlobSources(blob_sources, environ) if blob_sources else None
        return cls(
            repository,
            GraphEmbedder(environ),
            DataCache(folder=kept, keep=not repository.read_only),
            environ,
            fetch=fetch,
        )


class Asking(Transfer):
    """What reads a graph by its queries, seen from one branch."""

    _shared: Shared
    _catalogs: Catalogs

    def query(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
        engine: str = "memory",
        spark: Any = None,
        watch: Watch | None = None,
        page: int | None = None,
        after: str | None = None,
    ) -> Result:
        """Run one read query, given as text or as the path of a `.gq` file, on one snapshot.

        A text is a whole `.gq` source or a bare `match … return …`, which takes the types of its parameters from their
        values. A mapping in second position is `params`.
        `timeout` is in seconds; `cancel` lets another thread stop the query; `limits` bounds what it may hold.
        With `engine="spark"` it runs as joins on Spark, for graphs larger than this machine: on `spark`, a session or
        `omnigraph.spark.SessionOptions`, else on the active session, else on one of its own.
        With `page` the result holds so many rows, and in `next` the cursor of the page behind it, if there is one:
        given back as `after`, it goes on at the same commit, whatever was written since.
        """
        name, params = name_and_params(name, params)
        check_timeout(timeout)
        if timeout is not None or cancel is not None:
            limits = replace(limits or Limits(), timeout_s=timeout, cancellation=cancel)
        if page is not None or after is not None:
            return self._page(source, name, params, branch, at, limits, page, after, engine)
        if BulkOptions(engine, spark).engine != "spark":
            return self._read(source, name, params, branch, at, limits)[0]
        from omnigraph.spark.reads import read_on_spark  # noqa: PLC0415 (who wants no Spark need not have it)

        text, source_name = read_source(source)
        return read_on_spark(
            self._repository,
            self.snapshot(branch, at),
            self._catalogs,
            self._shared.plans,
            text,
            name,
            params,
            spark=spark,
            environ=self._shared.environ,
            watch=watch,
            limits=limits,
            source_name=source_name,
        )

    def pages(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        page: int = 100,
        after: str | None = None,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
    ) -> Iterator[Result]:
        """The pages of a query one by one, all at the commit of the first; `timeout` is for each."""
        name, params = name_and_params(name, params)
        how: dict[str, Any] = {"page": page, "timeout": timeout, "cancel": cancel, "limits": limits}
        result = self.query(source, name, params, after=after, branch=branch, at=at, **how)
        yield result
        while result.next is not None:
            result = self.query(source, name, params, after=result.next, branch=branch, **how)
            yield result

    def _page(
        self,
        source: str | Path,
        name: str | None,
        params: dict[str, Any] | None,
        branch: str | None,
        at: At,
        limits: Limits | None,
        rows: int | None,
        after: str | None,
        engine: str,
    ) -> Result:
        if type(rows) is not int or rows < 1:
            said = "a cursor needs a page size" if rows is None else f"a page has at least one row, not {rows!r}"
            raise InputError(
                said,
                code="bad_page",
                hint=Hint("give the number of rows: page=100", cli="give the number of rows: --page 100"),
            )
        if engine == "spark":
            raise InputError(
                "pages are not read on Spark",
                code="not_on_spark",
                hint=Hint('leave engine="spark" out', cli="leave --engine spark out"),
            )
        text, source_name = read_source(source)
        return read_page(
            self._repository,
            self._catalogs,
            self._shared.plans,
            self._shared.cache,
            text,
            name,
            params,
            rows=rows,
            after=after,
            branch=branch or self.branch,
            start=lambda: self.snapshot(branch, at),
            fixed=at is not None,
            embed=self._shared.embedder.embed_query,
            limits=limits,
            source_name=source_name,
        )

    def explain(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
    ) -> Preformatted:
        """How a query will run, as text: its operations, the rows to expect, and what is used to find them."""
        name, params = name_and_params(name, params)
        text, source_name = read_source(source)
        snapshot = self.snapshot(branch, at)
        prepared = self._shared.plans.prepared(self._catalogs, snapshot, text, name, source_name, params)
        plan = prepared.plan if isinstance(prepared, Prepared) else prepared
        if params is not None:
            bind_params(plan.params, params)
        if not isinstance(prepared, Prepared):
            return Preformatted(explain(prepared))
        return Preformatted(Explained(prepared, snapshot, self._shared.cache).before())

    def profile(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Preformatted:
        """Run a query and say what each operation did: rows after it beside those expected, milliseconds, and how."""
        name, params = name_and_params(name, params)
        check_timeout(timeout)
        snapshot = self.snapshot(branch, at)
        limits = Limits(timeout_s=timeout, cancellation=cancel)
        result, execution = self._read(source, name, params, branch, at, limits, snapshot=snapshot, listening=True)
        assert execution is not None, "whoever listens has one"
        explained = Explained(execution.prepared, snapshot, self._shared.cache)
        return Preformatted(explained.after(execution.profile, rows=len(result), elapsed_ms=result.elapsed_ms))

    def lint(self, source: str | Path, *, branch: str | None = None) -> LintReport:
        """Check every query of a text or file against the branch's schema."""
        text, source_name = read_source(source)
        where = {"kind": "graph", "uri": self._repository.location.uri}
        return lint(self._catalogs.of(self.snapshot(branch)), text, query_path=source_name, schema_source=where)

    def _read(
        self,
        source: str | Path,
        name: str | None,
        params: dict[str, Any] | None,
        branch: str | None,
        at: At,
        limits: Limits | None,
        *,
        snapshot: Snapshot | None = None,
        listening: bool = False,
    ) -> tuple[Result, Execution | None]:
        text, source_name = read_source(source)
        return read(
            snapshot or self.snapshot(branch, at),
            self._catalogs,
            self._shared.plans,
            self._shared.cache,
            text,
            name,
            params,
            clock=self._repository.clock,
            embed=self._shared.embedder.embed_query,
            limits=limits,
            source_name=source_name,
            listening=listening,
        )


def check_timeout(timeout: Any) -> None:
    """Refuse a timeout that is not a number of seconds."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, Real)):
        raise InputError(
            f"a timeout is a number of seconds, not {type(timeout).__name__}", hint="write timeout=2.5, for example"
        )


def name_and_params(name: str | Params | None, params: Params | None) -> tuple[str | None, dict[str, Any] | None]:
    """The name of a query and its parameters; a mapping in the place of the name is the parameters."""
    if isinstance(name, Mapping):
        if params is not None:
            raise InputError(
                "parameters are given twice", hint="write query(source, name, params) or query(source, params)"
            )
        name, params = None, name
    if name is not None and not isinstance(name, str):
        raise InputError(
            f"the name of a query is a str and its parameters are a mapping, not {type(name).__name__}",
            hint="write query(source, name, params) or query(source, {'id': 1})",
        )
    # Anything but a mapping is refused when the parameters are bound.
    return name, dict(params) if isinstance(params, Mapping) else params
