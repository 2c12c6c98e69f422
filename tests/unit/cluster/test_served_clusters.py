"""Servers of a cluster: polled adoption of revisions, requests on a removed graph, a revision that cannot be served."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.cluster.cluster_store import ClusterStore
from omnigraph.cluster.converge import ApplyResult, apply_cluster, approve_deletion
from omnigraph.cluster.declaration import read_declaration
from omnigraph.server.deployment import reload, state
from support.server import ServerUnderTest, serving
from support.waiting import wait_for

FILE = """version: 1
metadata: { name: demo }
graphs:
  lab: { schema: s.pg }
  side: { schema: s.pg }
policies:
  all: { file: all.yaml, applies_to: [lab, side] }
"""
POLICY = "version: 2\nrules: [{ id: all, allow: { actors: { any: true }, role: owner } }]\n"
ROWS = 300_000
TOKENS = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ana": "a-token-of-ana"}'}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.pg").write_text("node Person { name: String @key }\n")
    (tmp_path / "all.yaml").write_text(POLICY)
    (tmp_path / "cluster.yaml").write_text(FILE)
    apply(tmp_path)
    return tmp_path


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerUnderTest]:
    """A server that looks for revisions all the time."""
    monkeypatch.setattr(reload, "WATCH_S", 0.02)
    monkeypatch.setattr(state, "POLL_S", 0.02)
    with serving(flags={"cluster": str(folder)}, environ=TOKENS, token="a-token-of-ana") as running:
        yield running


def apply(folder: Path, grace_s: float = 60) -> ApplyResult:
    declared = read_declaration(folder)
    return apply_cluster(declared, ClusterStore(declared.storage, {}), {}, "ana", grace_s)


def status(server: ServerUnderTest, graph_id: str) -> int:
    return server.get(f"/graphs/{graph_id}/branches").status


def remove_side(folder: Path) -> None:
    (folder / "cluster.yaml").write_text(FILE.replace("  side: { schema: s.pg }\n", "").replace(", side", ""))
    approve_deletion(ClusterStore(str(folder), {}), "side", "ana", {})
    assert apply(folder).converged


def test_an_applied_revision_is_adopted_by_polling(folder, server):
    assert (status(server, "lab"), status(server, "third")) == (200, 404)
    (folder / "cluster.yaml").write_text(FILE.replace("  side:", "  third: { schema: s.pg }\n  side:"))
    (folder / "all.yaml").write_text(
        POLICY.replace("any: true", "group: none").replace("rules", "groups: { none: [x] }\nrules")
    )
    assert apply(folder).converged
    wait_for(lambda: status(server, "third") == 200)
    assert status(server, "lab") == 403, "the policy is that of the same revision"
    assert "revision" in server.holder.last_reload.reason


def test_requests_on_a_removed_graph_complete(folder, server):
    names = pa.table({"name": [f"p{number:06}" for number in range(ROWS)]})
    og.open(folder / "graphs" / "side.omni").load({"Person": names}, mode="append")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": "Bearer a-token-of-ana", "Accept": "application/x-ndjson"}
    connection.request("GET", "/graphs/side/tables/Person", headers=headers)
    answer = connection.getresponse()
    first = answer.read(1_000)
    remove_side(folder)
    wait_for(lambda: status(server, "side") == 404)
    assert status(server, "lab") == 200
    lines = (first + answer.read()).splitlines()
    connection.close()
    assert sum(line.startswith(b'{"id":"p') for line in lines) == ROWS
    assert (folder / "graphs" / "side.omni").exists()
    assert apply(folder, grace_s=0).converged
    assert not (folder / "graphs" / "side.omni").exists()
    assert status(server, "lab") == 200


def test_an_unusable_revision_leaves_the_previous_one_in_force(folder, server, caplog):
    (folder / "cluster.yaml").write_text(FILE.replace("  side:", "  third: { schema: s.pg }\n  side:"))
    (folder / "all.yaml").write_text(POLICY + "# new\n")
    store = ClusterStore(str(folder), {})
    kept = ClusterStore.store_policy
    with pytest.MonkeyPatch.context() as patch:
        # The process that applies stores another text than it announces.
        patch.setattr(ClusterStore, "store_policy", lambda *given: kept(*given[:3], {"policy.yaml": "version: 2\n"}))
        assert apply(folder).revision.number == 2
    wait_for(lambda: server.holder.reloads["failed"] > 0)
    assert server.holder.last_reload.code == "cluster_damaged"
    assert (status(server, "lab"), status(server, "third")) == (200, 404)
    assert "the previous state stays in force" in caplog.text
    assert [step.resource for step in apply(folder).steps] == ["policy.all"]
    assert store.newest_number() == 2
    wait_for(lambda: status(server, "third") == 200)
