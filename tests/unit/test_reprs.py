"""The `repr` of results is one short line."""

from __future__ import annotations

import omnigraph as og

SCHEMA = "node Film {\n    id_no: I64 @key\n    title: String?\n}\n"


def film(number, title):
    return {"type": "Film", "data": {"id_no": number, "title": title}}


def test_repr_of_results_is_one_short_line(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False)
    loaded = graph.load([film(1, "Alien")], mode="merge")
    assert repr(loaded) == (
        f"LoadResult(branch='main', mode='merge', commit_id='{loaded.commit_id}', tables=(('node:Film', 1),))"
    )
    head = graph.branch_create("rev")
    assert repr(head) == (
        f"Head(branch='rev', commit_id='{loaded.commit_id}', fork_commit_id='{loaded.commit_id}', fork_branch='main')"
    )
    assert repr(graph.tag_create("v1")) == f"Tag(name='v1', commit_id='{loaded.commit_id}')"
    snapshot = graph.snapshot()
    assert repr(snapshot) == f"Snapshot(branch='main', commit_id='{loaded.commit_id}', version={snapshot.version})"
    graph.on("rev").load([film(1, "Aliens"), film(2, "Brazil")], mode="merge")
    graph.load([film(1, "Alien 3")], mode="merge")
    assert repr(graph.merge_preview("rev")) == "<MergePreview merged: 1 inserted, 1 conflict>"
    merged = graph.merge("rev", resolve="theirs")
    assert repr(merged) == (
        f"MergeResult(source='rev', target='main', outcome='merged', commit_id='{merged.commit_id}')"
    )
