"""Drafts of awkward CSV files, compared with recorded ones, and loaded.

To accept new drafts, run the tests with `OMNIGRAPH_UPDATE_GOLDEN=1` and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.graph_frames import load_draft

CASES = Path(__file__).parents[3] / "cases" / "inference"
FILES = sorted([*CASES.glob("*.csv"), *CASES.glob("*.tsv")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_draft_is_as_recorded(file):
    draft = og.infer_schema(file)
    golden = file.with_suffix(".pg")
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        golden.write_text(draft, encoding="utf-8")
    assert str(draft) == golden.read_text(encoding="utf-8")


def test_all_files_load_without_rejects(tmp_path):
    assert len(FILES) >= 20
    draft = og.infer_schema(*FILES)
    graph = og.init(tmp_path / "g", draft, sync=False, environ={})
    rejects: list[Any] = []
    load_draft(graph, draft, rejects=rejects)
    # These rows have too few and too many cells.
    assert [(Path(one.source).stem, one.line, one.rule) for one in rejects] == [
        ("ragged_rows", 3, "csv"),
        ("ragged_rows", 4, "csv"),
    ]
