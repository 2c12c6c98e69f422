"""Commits, loads and mutations as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.display import html_of
from omnigraph.notebook.tables import table
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.operations.mutate import MutationResult
from omnigraph.versioning.model.manifest_objects import Commit

_REJECTS_SHOWN = 20


@html_of.register
def commit_html(commit: Commit) -> str:
    """Return the fields of a commit that a reader uses."""
    parents = [each for each in (commit.parent_id, commit.merged_parent_id) if each is not None]
    return _fields(
        f"commit {commit.id}",
        {
            "branch": f"{commit.branch}@{commit.manifest_version}",
            "time": f"{commit.created_at:%Y-%m-%d %H:%M:%S} UTC",
            "actor": commit.actor,
            "message": commit.message,
            "kind": commit.kind,
            "changed": ", ".join(commit.changed),
            "parents": ", ".join(parents),
            **commit.metadata,
        },
    )


@html_of.register
def load_html(result: LoadResult) -> str:
    """Return the numbers of loaded records by table, and the first rejected records."""
    done = f"commit {result.commit_id}" if result.commit_id else "no commit"
    loaded = table(("table", "records"), result.tables, caption=f"{result.mode} into {result.branch}, {done}")
    if not result.rejected:
        return loaded
    shown = [(each.line, each.property, each.reason) for each in result.rejected[:_REJECTS_SHOWN]]
    return loaded + table(("line", "property", "reason"), shown, caption=f"{result.rejected_count} records rejected")


@html_of.register
def mutation_html(result: MutationResult) -> str:
    """Return the numbers of changed nodes and edges, and the returned rows."""
    counts = {"nodes": result.affected_nodes, "edges": result.affected_edges, "commit": result.commit_id}
    changed = table(list(counts), [list(counts.values())])
    return changed + (result.rows._repr_html_() if result.rows.columns else "")


def _fields(caption: str, fields: Mapping[str, Any]) -> str:
    rows = [(name, value) for name, value in fields.items() if value not in (None, "")]
    return table(("", ""), rows, caption=caption)
