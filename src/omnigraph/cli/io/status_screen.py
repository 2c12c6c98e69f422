"""The status of a server as a screen of tables: work, lanes, costly plans and graphs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from omnigraph.wire.server_state import OperationDocument, ServerStatusDocument

PLANS_SHOWN = 10
_OWN = frozenset({"getStatus"})
"""Operations of this program, which are not shown."""
_MIB = 1 << 20


def shown_operations(status: ServerStatusDocument) -> list[OperationDocument]:
    """Return the operations that the screen shows, oldest first."""
    return [operation for operation in status.operations if operation.kind not in _OWN]


def status_screen(status: ServerStatusDocument, selected: str | None = None, note: str = "") -> Group:
    """Return the screen; the row of the operation with the id `selected` is marked, and `note` is the last line."""
    from rich.console import Group

    parts: list[Any] = [
        _text(_headline(status)),
        _text(_lanes(status)),
        _operations(shown_operations(status), selected),
        _plans(status),
        _graphs(status),
    ]
    return Group(*parts, *([_text(note)] if note else []))


def _headline(status: ServerStatusDocument) -> str:
    memory, uptime = status.memory, timedelta(seconds=int(status.uptime_s))
    limit = f"/{memory.limit_bytes // _MIB:,}" if memory.limit_bytes is not None else ""
    workers = f" of {status.workers} workers" if status.workers > 1 else ""
    draining = "  DRAINING" if status.draining else ""
    failed = status.last_reload is not UNSET and not status.last_reload.ok
    stale = f"  RELOAD FAILED: {status.last_reload.error}" if status.last_reload is not UNSET and failed else ""
    return (
        f"omnigraph {status.version}  {status.mode}  pid {status.pid}{workers}  up {uptime}  "
        f"{status.requests} requests  {status.connections} connections  "
        f"memory {memory.used_bytes // _MIB:,}{limit} MiB{draining}{stale}"
    )


def _lanes(status: ServerStatusDocument) -> str:
    lanes = [
        f"{lane.name} {lane.running}/{lane.limit}" + (f"+{lane.queued}" * bool(lane.queued)) for lane in status.lanes
    ]
    refused = sum(status.rejected.values())
    return "lanes: " + "  ".join(lanes) + (f"  refused: {refused:,}" if refused else "")


def _operations(operations: Sequence[OperationDocument], selected: str | None) -> Table:
    table = _table("", "state", "age", "lane", "kind", "graph", "branch", "actor", "query", "plan", "rows", "operation")
    for operation in operations:
        table.add_row(
            *_cells(
                ">" if operation.id == selected else "",
                operation.state,
                f"{operation.age_s:.1f} s" if operation.age_s is not UNSET else "",
                operation.lane,
                operation.kind,
                operation.graph_id,
                operation.branch,
                operation.actor_id,
                operation.query,
                operation.plan_hash if operation.plan_hash is UNSET else operation.plan_hash[:8],
                f"{operation.rows:,}" if operation.rows is not UNSET else "",
                operation.id,
            )
        )
    return table


def _plans(status: ServerStatusDocument) -> Table:
    table = _table("plan", "graph", "query", "runs", "total ms", "mean ms", "max ms", "rows")
    for plan in status.plans[:PLANS_SHOWN]:
        numbers = (plan.count, plan.total_ms, plan.total_ms / max(plan.count, 1), plan.max_ms, plan.rows)
        runs, total, mean, longest, rows = numbers
        table.add_row(
            *_cells(plan.plan_hash[:8], plan.graph_id, plan.query, f"{runs:,}", f"{total:,.1f}"),
            *_cells(f"{mean:,.1f}", f"{longest:,.1f}", f"{rows:,}"),
        )
    return table


def _graphs(status: ServerStatusDocument) -> Table:
    table = _table("graph", "state", "head", "branches", "fragments", "uncovered", "cache MiB", "hits", "misses")
    for graph in status.graphs:
        caches = graph.caches if graph.caches is not UNSET else []
        size = sum(cache.bytes for cache in caches if cache.bytes is not UNSET)
        numbers = (size / _MIB, sum(cache.hits for cache in caches), sum(cache.misses for cache in caches))
        state = graph.state if graph.failure is UNSET else f"{graph.state}: {graph.failure}"
        table.add_row(
            *_cells(
                graph.graph_id, state, graph.graph_commit_id, graph.branches, graph.fragments, graph.uncovered_rows
            ),
            *(_cells(f"{numbers[0]:,.1f}", f"{numbers[1]:,}", f"{numbers[2]:,}") if caches else ()),
        )
    return table


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", title_justify="left")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _cells(*values: Any) -> list[Text]:
    return [_text("" if value is None or value is UNSET else str(value)) for value in values]


def _text(text: str) -> Text:
    """Return a text without markup; control characters, which a name may contain, become a sign."""
    from rich.text import Text

    return Text("".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text))
