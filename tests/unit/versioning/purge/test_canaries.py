"""Canary values of every property type, in every place where a value can be stored: after a purge, none is left."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.storage.failpoints import FailpointError, arm
from omnigraph.versioning.purge import purge as steps
from support.canaries import SCHEMA, SUBJECT, VALUES, fill, others, person
from support.store import repository_of


def stored_bytes(root: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def encoded(values: list[str | bytes]) -> list[bytes]:
    return [value.encode() if isinstance(value, str) else value for value in values]


@pytest.fixture
def small_structures(tune):
    """Derived structures are kept on disk, however small they are."""
    tune(statistics_stored_rows_min=1, segment_rows_min=1, adjacency_disk_edges_min=1, id_segments_rows_min=1)


@pytest.mark.usefixtures("small_structures")
def test_no_canary_is_left(tmp_path):
    root = tmp_path / "graph"
    graph = fill(root)
    before = graph.purge_verify(VALUES)
    found = {finding.value for finding in before.findings}
    assert found == {value if isinstance(value, str) else value.hex() for value in VALUES}, "every canary was stored"
    places = {finding.object.partition("/")[0] for finding in before.findings}
    assert {"nodes", "edges", "__proposals", "__cache"} <= places
    kept = [commit.metadata["returned"] for commit in graph.commits() if "returned" in commit.metadata]
    assert [rows is not None for _, rows in kept] == [True]
    assert graph.purge_preview("Person", [SUBJECT]).rows["node:Person"] == 1
    certificate = graph.purge("Person", [SUBJECT], edges=True, reason="erasure request")
    assert certificate.rows == {"node:Person": 1, "edge:Knows": 2, "edge:Lives": 1}
    after = graph.purge_verify(VALUES)
    assert after.findings == ()
    assert after.is_clean
    raw = stored_bytes(root)
    assert [value for value in encoded(VALUES) if value in raw] == []
    assert graph.verify(deep=True) == []
    assert graph.get("Person", "p1")["small"] == 7
    assert graph.get("Person", "p1", at="before")["small"] is None
    assert [
        event.data["text"] for event in graph.proposal(graph.proposals()[0].id).events() if event.kind == "comment"
    ] == ["(removed by a purge)"]
    kept = [commit.metadata["returned"] for commit in graph.commits() if "returned" in commit.metadata]
    assert kept == [["q", None]]
    with pytest.raises(og.errors.InputError, match="already applied"):
        graph.mutate("query q() { delete City }", idempotency_key="once")
    # The next structures are built without the subject.
    graph.optimize()
    assert graph.query('match { $p: Person search($p.text, "text") } return { $p.name }').to_rows()
    assert graph.purge_verify(VALUES).is_clean


def test_canary_of_an_unpublished_version_is_removed(tmp_path):
    """A version that a dead writer made is not pinned, and its data file is not shared."""
    graph = og.init(tmp_path / "graph", SCHEMA, sync=False)
    graph.load([*others(3), person(SUBJECT)], mode="append")
    with arm("publish.before_commit"), pytest.raises(FailpointError):
        graph.load([person(SUBJECT, text="canary-text")], mode="merge")
    assert {f.value for f in graph.purge_verify(["canary-text"]).findings} == {"canary-text"}
    graph.purge("Person", [SUBJECT], reason="test")
    assert graph.purge_verify(["canary-text", SUBJECT]).is_clean


def test_resume_without_ids_removes_everything(tmp_path):
    root = tmp_path / "graph"
    graph = fill(root)
    with arm("purge.before_switch"), pytest.raises(FailpointError):
        graph.purge("Person", [SUBJECT], edges=True, reason="test")
    assert [record.state for record in og.open(root).purges()] == ["running"]
    assert graph.get("Person", SUBJECT, at="before") is not None, "nothing is removed before the switch"
    [certificate] = og.open(root).purge_resume()
    assert certificate.ids == ()
    assert certificate.rows["node:Person"] == 1
    again = og.open(root)
    assert [record.state for record in again.purges()] == ["done"]
    assert again.purges()[0].summary["digest"] == certificate.digest
    assert again.purge_verify(VALUES).is_clean
    assert again.purge_resume() == []


def test_digest_condition_equals_ids():
    record = steps.PurgeRecord(
        "1", "node", "P", edges=False, reason="", actor=None, created_us=0, targets=(), salt="00" * 16,
        digests=frozenset({steps.digest_of("00" * 16, "a"), steps.digest_of("00" * 16, "ü")}),
    )  # fmt: skip
    values = pa.array(["a", "b", None, "ü", "a"])
    by_digest = steps.IdCondition(("id",), record).selects(values)
    by_id = steps.IdCondition(("id",), record, frozenset({"a", "ü"})).selects(values)
    assert by_digest.to_pylist() == by_id.to_pylist() == [True, False, False, True, True]
    assert steps.IdCondition(("id",), record).selects(pa.array([], pa.utf8())).to_pylist() == []


def test_manifest_of_a_purged_graph_is_upgraded(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA, sync=False)
    graph.load([person("a"), person("b")], mode="append")
    assert repository_of(graph).format == 1003
    graph.purge("Person", ["a"], reason="test")
    assert repository_of(graph).format == 1005


def test_aliases_of_a_purged_node_are_removed(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA, sync=False)
    graph.load([person("former-canary"), person(SUBJECT), person("old-name"), person("other")], mode="append")
    graph.unify("Person", keep=SUBJECT, drop="former-canary")
    graph.unify("Person", keep="other", drop="old-name")
    assert graph.purge_verify(["former-canary"]).findings
    graph.purge("Person", [SUBJECT, "former-canary"], reason="test")
    assert graph.purge_verify([SUBJECT, "former-canary"]).findings == ()
    again = og.open(tmp_path / "graph")
    assert again.get("Person", "old-name")["name"] == "other", "other aliases stay"
    assert again.get("Person", "former-canary") is None
    assert again.verify(deep=True) == []
