"""Stored tables are opened by named modules only: all others read what is visible."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "omnigraph"
READS = {
    "engine/exec/context.py": "opens tables of a snapshot and applies the visibility",
    "engine/exec/row_audit.py": "reads rows that are visible, to judge them again",
    "engine/exec/view.py": "reads stored rows and applies the visibility",
    "graph_tables.py": "reads through View if there is a visibility",
    "operations/analysis/input_graph.py": "reads through View if there is a visibility",
    "operations/export.py": "reads through View if there is a visibility",
    "operations/exploration/projection.py": "reads through View if there is a visibility",
    "operations/sql/table_source.py": "reads through View if there is a visibility",
    "operations/exploration/rows_by_id.py": "reads through View if there is a visibility",
    "versioning/model/snapshot.py": "opens pinned tables",
}
"""Modules that reads go through."""
WRITES = {
    "engine/write/overlay.py",
    "operations/merge/merge_plan.py",
    "operations/migrate.py",
    "versioning/write/check_purged.py",
    "versioning/write/transaction.py",
}
"""Modules of writes, which check a guard or refuse a visibility."""
UPKEEP = {
    "operations/derived.py",
    "operations/store_statistics.py",
    "pipeline/adjacency_task.py",
    "pipeline/segment_task.py",
    "versioning/purge/sweep.py",
    "versioning/upkeep/coverage.py",
    "versioning/upkeep/file_check.py",
    "versioning/upkeep/maintenance.py",
    "versioning/upkeep/verify.py",
}
"""Modules of maintenance, which treats the whole graph."""
REFUSING = {
    "engine/plan/explain.py": "not called with a visibility, except for measured rows",
}
"""Modules of reads that refuse a visibility."""
ALLOWED = {*READS, *WRITES, *UPKEEP, *REFUSING}


def openings(tree: ast.AST) -> list[int]:
    """Return the lines that call `….snapshot.table(`, `snapshot.table(`, `….tables.open(` or `….cache.table(`."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        on = node.func.value
        name = on.attr if isinstance(on, ast.Attribute) else on.id if isinstance(on, ast.Name) else ""
        opens = (node.func.attr == "table" and name.lstrip("_") in ("snapshot", "cache")) or (
            node.func.attr == "open" and name.lstrip("_") == "tables"
        )
        if opens:
            found.append(node.lineno)
    return found


def users() -> dict[str, list[int]]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        lines = openings(ast.parse(path.read_text(encoding="utf-8")))
        if lines:
            found[path.relative_to(SOURCE).as_posix()] = lines
    return found


def test_only_named_modules_open_stored_tables():
    unknown = {name: lines for name, lines in users().items() if name not in ALLOWED}
    assert not unknown, "read through ExecutionContext, or name the module and refuse a visibility there"


def test_named_modules_exist_and_open_tables():
    assert users().keys() >= ALLOWED


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("snapshot.table(key)", 1),
        ("self._snapshot.table(key).read()", 1),
        ("context.cache.table(table)", 1),
        ("repository.tables.open(folder, 1)", 1),
        ("context.table(key)", 0),
        ("open(path)", 0),
    ],
)
def test_openings_are_found(text, count):
    assert len(openings(ast.parse(text))) == count
