"""Calls of reads: queries, pages, plans and lint reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from msgspec import UNSET

from omnigraph.client.call import Call, Calls
from omnigraph.client.calls.handle import at_text
from omnigraph.client.calls.schemas import SchemaCalls
from omnigraph.client.local_only import check_engine
from omnigraph.client.messages import ARROW, TYPED_JSON, Request, json_body
from omnigraph.client.query_texts import answered, sent_limits, sent_params
from omnigraph.client.rows import result_of
from omnigraph.engine.result.result import Result
from omnigraph.errors import ParameterError
from omnigraph.lang.editor_hints import Completion, Hover
from omnigraph.notebook.tables import PlanText
from omnigraph.operations.requests import PageRequest, Params, QueryText, limits_of
from omnigraph.query.editor import check_language, complete_text, hover_text, lint_text
from omnigraph.query.lint import LintReport
from omnigraph.query.params import bind_params
from omnigraph.wire.queries import ExplainDocument
from omnigraph.wire.requests.queries import ExplainRequest, ProfileRequest, ReadRequest

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.engine.exec.context import Limits
    from omnigraph.pipeline.runner import Watch
    from omnigraph.versioning.write.repository import At


Model = TypeVar("Model")


class QueryCalls(SchemaCalls):
    """Calls of reads."""

    @overload
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
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,
        page: int | None = None,
        after: str | None = None,
    ) -> Call[Result]: ...

    @overload
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
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,
        page: int | None = None,
        after: str | None = None,
        into: type[Model],
    ) -> Call[list[Model]]: ...

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
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,  # noqa: ARG002 (the progress of Spark)
        page: int | None = None,
        after: str | None = None,
        into: type[Any] | None = None,
    ) -> Call[Any]:
        """Run one read query, given as text or as the path of a `.gq` file, on one snapshot.

        Arguments are as in `Graph.query`. The rows of a large result are read while they arrive.
        """
        check_engine("query", engine, spark)
        query, bounds = QueryText.of(source, name, params), limits_of(limits, timeout, cancel)
        input = ReadRequest(**self._named(query, branch, at), limits=sent_limits(bounds), page=page, after=after)
        PageRequest.of(page, after)
        request = self._read("query", input, bounds, accept=ARROW, streamed=True)
        response = yield from answered(request, query)

        def again(commit_id: str) -> Request:
            input.branch, input.at, input.snapshot = None, None, commit_id
            return replace(request, body=json_body(input))

        result = result_of(response, again)
        return result if into is None else result.into(into)

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
    ) -> Calls[Result]:
        """Yield the pages of a query, all at the commit of the first; `timeout` applies to each page."""
        options: dict[str, Any] = {"timeout": timeout, "cancel": cancel, "limits": limits, "page": page}
        result = yield self.query(source, name, params, branch=branch, at=at, after=after, **options)
        while result.next is not None:
            # A cursor contains its commit, so later pages name no point in time.
            result = yield self.query(source, name, params, branch=branch, after=result.next, **options)

    def explain(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
    ) -> Call[PlanText]:
        """Return the plan of a query as text: operators, estimated rows, and the indexes and caches they use."""
        query = QueryText.of(source, name, params)
        input = ExplainRequest(**self._named(query, branch, at))
        answer = yield from answered(self._post("explain", input=input, media_type=TYPED_JSON), query)
        return _plan_text(answer.document(ExplainDocument))

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
        limits: Limits | None = None,
    ) -> Call[PlanText]:
        """Run a query and return its plan as text, with actual rows, milliseconds and methods of each operator."""
        query, bounds = QueryText.of(source, name, params), limits_of(limits, timeout, cancel)
        input = ProfileRequest(**self._named(query, branch, at), limits=sent_limits(bounds))
        answer = yield from answered(self._read("profile", input, bounds), query)
        return _plan_text(answer.document(ExplainDocument))

    def lint(self, source: str | Path, *, branch: str | None = None, language: str = "gq") -> Call[LintReport]:
        """Check every query of a text or file against the branch's schema; with `language="pg"`, check a schema."""
        query = QueryText.of(source, None, None)
        catalog = yield from self.catalog(branch)
        where = {"kind": "graph", "uri": self.url}
        chosen = check_language(language)
        return lint_text(query.text, chosen, catalog, query_path=query.source_name, schema_source=where)

    def complete(self, text: str, offset: int, *, language: str = "gq", branch: str | None = None) -> Call[Completion]:
        """Return the words that can stand at a position of a query text, or of a schema text with `language="pg"`.

        The schema is read from the server; the words are computed here.
        """
        catalog = yield from self.catalog(branch)
        return complete_text(text, offset, check_language(language), catalog)

    def hover(self, text: str, offset: int, *, language: str = "gq", branch: str | None = None) -> Call[Hover | None]:
        """Return the description of the word at a position of a text; arguments are as in `complete`."""
        catalog = yield from self.catalog(branch)
        return hover_text(text, offset, check_language(language), catalog)

    def _named(self, query: QueryText, branch: str | None, at: At) -> dict[str, Any]:
        """Return the members of a request that name a query and the point that it reads."""
        return {
            "query": query.text,
            "name": query.name,
            "params": checked_params(query),
            "branch": self._branch(branch),
            "at": at_text(at),
        }

    def _read(self, path: str, input: ExplainRequest, bounds: Limits, **options: Any) -> Request:
        return self._post(
            path,
            input=input,
            media_type=TYPED_JSON,
            timeout=bounds.timeout_s,
            cancel=bounds.cancellation,
            **options,
        )


def checked_params(query: QueryText) -> Any:
    """Return the parameters of a request; raise `ParameterError` unless they are names and values."""
    params: Any = query.params
    if params is not None and not isinstance(params, Mapping):
        bind_params((), params)
    for name in params or ():
        if not isinstance(name, str):
            raise ParameterError(f"the name of a parameter is a str, not {type(name).__name__}")
    return sent_params(params)


def _plan_text(document: ExplainDocument) -> PlanText:
    tree = {} if document.plan is UNSET else document.plan.to_json()
    return PlanText(document.text, document.plan_hash, tree)
