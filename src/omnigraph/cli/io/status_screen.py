"""The status of a server as a screen of tables: work, lanes, costly plans and graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from omnigraph.wire.server_state import OperationDocument, ServerStatusDocument

PLANS_SHOWN = 10
WIDE = 140
"""The width from which the tables are shown whole; a narrower screen leaves out the less important columns."""
_OWN = frozenset({"getStatus"})
"""Operations of this program, which are not shown."""
_MIB = 1 << 20


def shown_operations(status: ServerStatusDocument) -> list[OperationDocument]:
    """Return the operations that the screen shows, oldest first."""
    return [operation for operation in status.operations if operation.kind not in _OWN]


def status_screen(
    status: ServerStatusDocument, selected: str | None = None, note: str = "", *, width: int = WIDE
) -> Group:
    """Return the screen for a number of columns.

    The row of the operation with the id `selected` is marked, and `note` is the last line.
    """
    from rich.console import Group

    narrow = width < WIDE
    parts: list[Any] = [
        _text(_headline(status)),
        _text(_lanes(status)),
        _operations(shown_operations(status), selected, narrow),
        _plans(status),
        _graphs(status, narrow),
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


def _operations(operations: Sequence[OperationDocument], selected: str | None, narrow: bool) -> Table:
    rows = [
        {
            "": ">" if operation.id == selected else "",
            "state": operation.state,
            "age": f"{operation.age_s:.1f} s" if operation.age_s is not UNSET else "",
            "lane": operation.lane,
            "kind": operation.kind,
            "graph": operation.graph_id,
            "branch": operation.branch,
            "actor": operation.actor_id,
            "query": operation.query,
            "plan": operation.plan_hash if operation.plan_hash is UNSET else operation.plan_hash[:8],
            "rows": f"{operation.rows:,}" if operation.rows is not UNSET else "",
            "operation": operation.id,
        }
        for operation in operations
    ]
    columns = ("", "state", "age", "lane", "kind", "graph", "branch", "actor", "query", "plan", "rows", "operation")
    return _table(columns, rows, {"lane", "graph", "actor", "plan", "operation"} if narrow else set())


def _plans(status: ServerStatusDocument) -> Table:
    rows = [
        {
            "plan": plan.plan_hash[:8],
            "graph": plan.graph_id,
            "query": plan.query,
            "runs": f"{plan.count:,}",
            "total ms": f"{plan.total_ms:,.1f}",
            "mean ms": f"{plan.total_ms / max(plan.count, 1):,.1f}",
            "max ms": f"{plan.max_ms:,.1f}",
            "rows": f"{plan.rows:,}",
        }
        for plan in status.plans[:PLANS_SHOWN]
    ]
    return _table(("plan", "graph", "query", "runs", "total ms", "mean ms", "max ms", "rows"), rows)


def _graphs(status: ServerStatusDocument, narrow: bool) -> Table:
    rows = []
    for graph in status.graphs:
        caches = graph.caches if graph.caches is not UNSET else []
        size = sum(cache.bytes for cache in caches if cache.bytes is not UNSET)
        rows.append(
            {
                "graph": graph.graph_id,
                "state": graph.state if graph.failure is UNSET else f"{graph.state}: {graph.failure}",
                "head": graph.graph_commit_id,
                "branches": graph.branches,
                "fragments": graph.fragments,
                "uncovered": graph.uncovered_rows,
                "cache MiB": f"{size / _MIB:,.1f}" if caches else "",
                "hits": f"{sum(cache.hits for cache in caches):,}" if caches else "",
                "misses": f"{sum(cache.misses for cache in caches):,}" if caches else "",
            }
        )
    columns = ("graph", "state", "head", "branches", "fragments", "uncovered", "cache MiB", "hits", "misses")
    return _table(columns, rows, {"cache MiB", "hits", "misses"} if narrow else set())


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, object]], left_out: Set[str] = frozenset()) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", title_justify="left")
    shown = [column for column in columns if column not in left_out]
    for column in shown:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*_cells(*(row[column] for column in shown)))
    return table


def _cells(*values: Any) -> list[Text]:
    return [_text("" if value is None or value is UNSET else str(value)) for value in values]


def _text(text: str) -> Text:
    """Return a text without markup; control characters, which a name may contain, become a sign."""
    from rich.text import Text

    return Text("".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text))
