"""The purge benchmark builds a history and purges a subject."""

from __future__ import annotations

from bench import purge


def test_written_bytes_are_those_of_the_files_with_the_subject(tmp_path):
    """Files without the subject are not written again, however many versions share them."""
    graph = purge.build(tmp_path / "graph", nodes=50, edges=100, commits=20)
    done = graph.purge("Person", [purge.SUBJECT], edges=True, reason="test")
    assert done.rows["node:Person"] == 1
    assert 0 < done.bytes_written <= done.bytes_read
    assert sum(done.versions.values()) > 20
    assert graph.purge_verify().is_clean
