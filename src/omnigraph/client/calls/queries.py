"""Calls of reads: queries, pages, plans and lint reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import CallHandle, at_text
from omnigraph.client.local_only import check_engine
from omnigraph.client.messages import ARROW, json_body
from omnigraph.client.query_texts import sent_limits, sent_params
from omnigraph.client.rows import result_of
from omnigraph.engine.result.result import Result
from omnigraph.operations.requests import PageRequest, Params, QueryText, limits_of
from omnigraph.wire.requests.queries import ReadRequest

if TYPE_CHECKING:
    from omnigraph.client.messages import Request
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.engine.exec.context import Limits
    from omnigraph.pipeline.runner import Watch
    from omnigraph.versioning.write.repository import At


class QueryCalls(CallHandle):
    """Calls of reads."""

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
        watch: Watch | None = None,  # noqa: ARG002 (the progress of Spark)
        page: int | None = None,
        after: str | None = None,
    ) -> Call[Result]:
        """Run one read query, given as text or as the path of a `.gq` file, on one snapshot.

        Arguments are as in `Graph.query`. The rows of a large result are read while they arrive.
        """
        check_engine("query", engine, spark)
        query, bounds = QueryText.of(source, name, params), limits_of(limits, timeout, cancel)
        paged = PageRequest.of(page, after)
        input = ReadRequest(
            query=query.text,
            name=query.name,
            params=sent_params(query.params),
            branch=self._branch(branch),
            at=at_text(at),
            limits=sent_limits(bounds),
            page=None if paged is None else paged.rows,
            after=after,
        )
        request = self._post(
            "query",
            input=input,
            accept=ARROW,
            timeout=bounds.timeout_s,
            cancel=bounds.cancellation,
            streamed=True,
        )

        def again(commit_id: str) -> Request:
            input.branch, input.at, input.snapshot = None, None, commit_id
            return replace(request, body=json_body(input))

        return result_of((yield request), again)
