"""Static types of `AsyncGraph`; checked by mypy, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, assert_type

import omnigraph as og
from omnigraph.engine.result.result import Result
from omnigraph.notebook.schema_view import SchemaText
from omnigraph.operations.authorization.access import Access
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.operations.merge.merge import MergeResult
from omnigraph.operations.mutate import MutationResult
from omnigraph.versioning.compare.diff import RowChange
from omnigraph.versioning.feed.row_history import EntityChange
from omnigraph.versioning.model.manifest_objects import Commit, Head


async def check(graph: og.AsyncGraph) -> None:
    assert_type(await graph.query("q", {"n": 1}, timeout=1.5, page=10), Result)
    assert_type(graph.pages("q", page=10), AsyncIterator[Result])
    assert_type(await graph.mutate("m", if_commit="c"), MutationResult)
    assert_type(await graph.load([], mode="merge", if_commit="c"), LoadResult)
    assert_type(await graph.merge("side", if_commit="c", idempotency_key="k"), MergeResult)
    assert_type(await graph.branch_create("side", idempotency_key="k"), Head)
    assert_type(await graph.commits(limit=3), list[Commit])
    assert_type(await graph.get("T", "id", kind="edge"), dict[str, Any] | None)
    assert_type(graph.diff("a", "b"), AsyncIterator[RowChange])
    assert_type(await graph.history("T", "id"), AsyncIterator[EntityChange])
    assert_type(await graph.export("out"), AsyncIterator[dict[str, Any]] | int)
    assert_type(await graph.with_access(Access(None, "ana", default="read")), og.AsyncGraph)
    assert_type(await og.aopen("g", policy="policy.yaml", actor="ana"), og.AsyncGraph)
    assert_type(await graph.schema(), SchemaText)
    assert_type(await graph.on("side"), og.AsyncGraph)
    assert_type(await og.aopen("g", branch="side"), og.AsyncGraph)
    await graph.query("q", tiemout=1)  # type: ignore[call-overload]
    await graph.mutate(5)  # type: ignore[arg-type]
