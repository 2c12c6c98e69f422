"""Clusters: declarations, plans, apply, locks, approvals, damaged state, and servers that adopt a revision."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.cluster.cluster_store import KEPT_REVISIONS, ClusterStore
from omnigraph.cluster.converge import apply_cluster, approve_deletion, import_cluster, refresh_cluster
from omnigraph.cluster.declaration import read_declaration, storage_of
from omnigraph.cluster.plan import GRACE_S, plan_cluster
from omnigraph.errors import Conflict, Damaged, InputError, NotFound, OmniGraphError
from support.server import serving

SCHEMA = "node Person { name: String @key  age: I64? }\n"
QUERY = "query everyone() { match { $p: Person } return { $p.name as name } order { name } }\n"
POLICY = """version: 2
groups: { staff: [ana] }
rules:
  - id: staff
    allow: { actors: { group: staff }, role: owner }
"""
FILE = """version: 1
metadata: { name: demo }
graphs:
  lab: { schema: s.pg, queries: q }
  side: { schema: s.pg }
policies:
  staff: { file: staff.yaml, applies_to: [lab] }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q").mkdir()
    for name, text in {"s.pg": SCHEMA, "q/a.gq": QUERY, "staff.yaml": POLICY, "cluster.yaml": FILE}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def apply(folder: Path, actor: str | None = "ana", grace_s: float = GRACE_S, **options: bool):
    declared = read_declaration(folder)
    return apply_cluster(declared, ClusterStore(declared.storage, {}), {}, actor, grace_s, **options)


def steps(folder: Path) -> list[str]:
    declared = read_declaration(folder)
    store = ClusterStore(declared.storage, {})
    return [
        f"{step.operation} {step.resource} {step.disposition}"
        for step in plan_cluster(declared, store.find_newest(), store, {})
    ]


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text(encoding="utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("cluster.yaml", "version: 1", "version: 2", "2"),
        ("cluster.yaml", "queries: q", "querys: q", "querys"),
        ("cluster.yaml", "metadata: { name: demo }\n", "", "metadata"),
        ("cluster.yaml", "  side:", "  si/de:", "an id has"),
        ("cluster.yaml", "applies_to: [lab]", "applies_to: [lap]", "no graph 'lap'"),
        ("cluster.yaml", "applies_to: [lab]", "applies_to: []", "empty"),
        ("cluster.yaml", "applies_to: [lab]", "applies_to: [cluster, lab]", "stands alone"),
        (
            "cluster.yaml",
            "applies_to: [lab] }",
            "applies_to: [lab] }\n  b: { file: staff.yaml, applies_to: [lab] }",
            "two",
        ),
        ("cluster.yaml", "schema: s.pg, queries: q", "schema: t.pg", "t.pg"),
        ("cluster.yaml", "graphs:", "graphs: [", "cluster.yaml"),
        ("cluster.yaml", "queries: q", "queries: { other: { file: q/a.gq } }", "has no query 'other'"),
        ("cluster.yaml", "queries: q", "queries: { everyone: { path: q/a.gq } }", "path"),
        ("cluster.yaml", "graphs:", "state: { lock: false }\ngraphs:", "always holds the lock"),
        ("cluster.yaml", "graphs:", "state: { backend: etcd }\ngraphs:", "etcd"),
        ("cluster.yaml", "graphs:", "providers: { embedding: {} }\ngraphs:", "OMNIGRAPH_EMBED_PROVIDER"),
        ("cluster.yaml", "queries: q", "embedding_provider: x", "'graphs.lab.embedding_provider' is not a key"),
        ("cluster.yaml", "queries: q", "external_blobs: { allow: [] }", "blob_sources"),
        ("q/a.gq", "Person", "Persn", "Persn"),
        ("q/a.gq", QUERY, QUERY + QUERY, "everyone"),
        ("s.pg", "I64?", "Int?", "Int"),
        ("staff.yaml", "role: owner", "role: king", "king"),
    ],
)
def test_invalid_declaration(folder, name, old, new, message):
    edit(folder, name, old, new)
    with pytest.raises(OmniGraphError) as caught:
        read_declaration(folder)
    assert message in f"{caught.value} {caught.value.hint}"
    assert not (folder / "__cluster").exists()


def test_queries_by_name_and_state(folder):
    (folder / "q" / "b.gq").write_text(QUERY.replace("everyone", "other") + QUERY.replace("everyone", "all"))
    named = "queries: { everyone: { file: q/a.gq }, all: { file: q/b.gq } }"
    edit(folder, "cluster.yaml", "queries: q", named)
    edit(folder, "cluster.yaml", "graphs:", "state: { backend: cluster, lock: true }\ngraphs:")
    assert sorted(read_declaration(folder).graphs["lab"].queries) == ["all", "everyone"]


def test_apply_creates_and_is_idempotent(folder):
    first = apply(folder)
    assert first.converged
    assert first.revision.number == 1
    assert steps(folder) == []
    again = apply(folder)
    assert (again.revision.number, again.steps) == (1, [])
    graph = og.open(folder / "graphs" / "lab.omni")
    assert [query.name for query in graph.queries()] == ["everyone"]
    assert graph.commits()[0].actor == "ana"


def test_changes_of_files(folder):
    apply(folder)
    og.open(folder / "graphs" / "lab.omni").store_query("query mine() { match { $p: Person } return { $p } }")
    edit(folder, "s.pg", "age: I64?", "age: I64?  born: Date?")
    edit(folder, "q/a.gq", "query everyone", "query all")
    edit(folder, "staff.yaml", "[ana]", "[ana, bo]")
    assert steps(folder) == [
        "update schema.lab applied",
        "create query.lab.all applied",
        "delete query.lab.everyone applied",
        "update schema.side applied",
        "update policy.staff applied",
    ]
    assert apply(folder).converged
    graph = og.open(folder / "graphs" / "lab.omni")
    assert [query.name for query in graph.queries()] == ["all", "mine"]
    assert "born" in graph.schema
    assert steps(folder) == []


def test_drift_is_planned(folder):
    apply(folder)
    og.open(folder / "graphs" / "lab.omni").delete_query("everyone")
    assert steps(folder) == ["create query.lab.everyone applied"]


def test_an_unsupported_schema_blocks_its_graph_only(folder):
    apply(folder)
    edit(folder, "s.pg", "age: I64?", "age: String?")
    edit(folder, "cluster.yaml", "  side: { schema: s.pg }", "  side: { schema: s.pg }\n  third: { schema: s.pg }")
    result = apply(folder)
    assert not result.converged
    assert {"schema.lab", "schema.side"} <= set(result.problems)
    assert (folder / "graphs" / "third.omni").exists()
    assert ClusterStore(str(folder), {}).get_newest().problems == result.problems


def test_a_schema_that_drops_data_is_blocked_without_permission(folder):
    apply(folder)
    graph = og.open(folder / "graphs" / "lab.omni")
    graph.load([{"type": "Person", "data": {"name": "x", "age": 1}}], mode="append")
    edit(folder, "s.pg", "age: I64?", "")
    result = apply(folder)
    assert "dropping it removes 1 value; --allow-data-loss permits it" in result.problems["schema.lab"]
    assert "schema.side" not in result.problems, "it has no values"
    assert "age" in og.open(folder / "graphs" / "lab.omni").schema
    assert apply(folder, allow_data_loss=True).converged
    assert "age" not in og.open(folder / "graphs" / "lab.omni").schema


def test_a_deletion_needs_an_approval_of_the_present_head(folder):
    apply(folder)
    store = ClusterStore(str(folder), {})
    edit(folder, "cluster.yaml", "  side: { schema: s.pg }\n", "")
    assert "graph.side" in apply(folder).problems
    approve_deletion(store, "side", "ana", {})
    og.open(folder / "graphs" / "side.omni").load([{"type": "Person", "data": {"name": "x"}}], mode="append")
    result = apply(folder)
    assert "has changed since" in result.problems["graph.side"]
    assert (folder / "graphs" / "side.omni").exists()
    approve_deletion(store, "side", "ana", {})
    assert steps(folder) == ["delete graph.side deferred"]
    assert apply(folder, grace_s=0).converged
    assert list(store.get_newest().graphs) == ["lab"]
    assert (folder / "graphs" / "side.omni").exists(), "servers may still read it"
    number = store.newest_number()
    assert apply(folder).revision.number == number
    assert (folder / "graphs" / "side.omni").exists(), "the time has not passed"
    og.open(folder / "graphs" / "side.omni").load([{"type": "Person", "data": {"name": "y"}}], mode="append")
    assert "has changed since" in apply(folder, grace_s=0).problems["graph.side"]
    approve_deletion(store, "side", "ana", {})
    assert apply(folder, grace_s=0).converged
    assert not (folder / "graphs" / "side.omni").exists()
    assert (list(store.get_newest().graphs), store.get_newest().leaving) == (["lab"], {})
    with pytest.raises(NotFound, match="no graph 'side'"):
        approve_deletion(store, "side", "ana", {})


def test_a_graph_that_is_declared_again_keeps_its_data(folder):
    apply(folder)
    og.open(folder / "graphs" / "side.omni").load([{"type": "Person", "data": {"name": "x"}}], mode="append")
    edit(folder, "cluster.yaml", "  side: { schema: s.pg }\n", "")
    approve_deletion(ClusterStore(str(folder), {}), "side", "ana", {})
    assert list(apply(folder).revision.leaving) == ["side"]
    edit(folder, "cluster.yaml", "policies:", "  side: { schema: s.pg }\npolicies:")
    revision = apply(folder, grace_s=0).revision
    assert (sorted(revision.graphs), revision.leaving) == (["lab", "side"], {})
    assert og.open(folder / "graphs" / "side.omni").get("Person", "x") is not None


def test_the_lock_excludes_others_and_can_be_removed(folder, capsys):
    apply(folder)
    store = ClusterStore(str(folder), {})
    with store.locked("bo"):
        with pytest.raises(Conflict, match="locked by bo"):
            apply(folder)
        held = store.find_lock()
        assert held is not None
        capsys.readouterr()
        assert run(["cluster", "status", "--json", "--config", str(folder)]) == 0
        assert json.loads(capsys.readouterr().out)["lock"]["id"] == held.id
        assert run(["cluster", "force-unlock", "nothing", "--dir", str(folder)]) == 1
        capsys.readouterr()
        assert run(["cluster", "force-unlock", held.id, "--json", "--dir", str(folder)]) == 0
        assert json.loads(capsys.readouterr().out) == {"unlocked": held.id}
    assert apply(folder).converged
    assert store.find_lock() is None


def test_a_revision_is_written_once(folder):
    revision = apply(folder).revision
    store = ClusterStore(str(folder), {})
    with pytest.raises(Conflict, match="another process"):
        store.write(revision)


def test_old_revisions_are_removed(folder):
    apply(folder)
    for number in range(KEPT_REVISIONS + 3):
        (folder / "staff.yaml").write_text(f"{POLICY}# {number}\n", encoding="utf-8")
        apply(folder)
    kept = sorted(path.name for path in (folder / "__cluster" / "state").iterdir() if path.suffix == ".json")
    assert len(kept) <= KEPT_REVISIONS + 1
    assert ClusterStore(str(folder), {}).newest_number() == KEPT_REVISIONS + 4


def test_import_and_refresh(folder):
    declared, store = read_declaration(folder), ClusterStore(str(folder), {})
    with pytest.raises(NotFound, match="none of the declared graphs"):
        import_cluster(declared, store, {})
    graph = og.init(folder / "graphs" / "lab.omni", SCHEMA)
    revision = import_cluster(declared, store, {}, "ana")
    assert (list(revision.graphs), revision.graphs["lab"].queries) == (["lab"], {})
    with pytest.raises(InputError, match="already"):
        import_cluster(declared, store, {})
    apply(folder)
    before = store.newest_number()
    assert refresh_cluster(store, {}).number == before
    graph.delete_query("everyone")
    assert refresh_cluster(store, {}).graphs["lab"].queries == {}
    assert store.newest_number() == before + 1


def test_commands(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert run(["cluster", "status"]) == 1
    assert run(["cluster", "apply", "--json", "--as", "ana"]) == 0
    assert json.loads(capsys.readouterr().out)["revision"] == 1
    assert run(["cluster", "approve", "lab", "--as", "ana"]) == 2
    assert run(["cluster", "approve", "graph.lab"]) == 2
    assert run(["cluster", "status", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["converged"], status["lock"]) == (True, None)
    assert run(["cluster", "validate", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["name"], shown["graphs"]["lab"]) == ("demo", {"queries": ["everyone"]})
    assert shown["policies"] == {"staff": {"applies_to": ["lab"]}}
    assert run(["cluster", "approve", "graph.side", "--as", "ana", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["graph_id"] == "side"
    (folder / "home").mkdir()
    (folder / "home" / "config.yaml").write_text(f"clusters: {{ museum: {{ root: {folder} }} }}\n", encoding="utf-8")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(folder / "home"))
    monkeypatch.chdir(folder / "home")
    assert run(["cluster", "status", "--config", "museum"]) == 0
    assert capsys.readouterr().out.startswith("cluster demo, revision 1")
    assert run(["cluster", "status", "--config", "other"]) == 1
    empty = folder / "empty"
    (folder / "home" / "config.yaml").write_text(f"clusters: {{ museum: {{ root: {empty} }} }}\n", encoding="utf-8")
    capsys.readouterr()
    assert run(["serve", "--cluster", "museum"]) == 1
    assert f"'{empty}' has no applied cluster" in capsys.readouterr().err
    assert storage_of("s3://bucket/x") == "s3://bucket/x"


def test_altered_policies_are_refused(folder):
    apply(folder)
    store = ClusterStore(str(folder), {})
    policy = store.get_newest().policies["staff"]
    file = folder / "__cluster" / "policies" / "staff" / policy.digest / "policy.yaml"
    file.write_text(POLICY.replace("ana", "eve"), encoding="utf-8")
    with pytest.raises(Damaged, match="altered"):
        store.policy_folder("staff", policy, None)
    file.unlink()
    with pytest.raises(Damaged, match="missing"):
        store.policy_folder("staff", policy, None)


def test_a_damaged_revision_is_reported(folder):
    apply(folder)
    (folder / "__cluster" / "state" / "00000002.json").write_text("{", encoding="utf-8")
    with pytest.raises(Damaged, match="revision 2"):
        ClusterStore(str(folder), {}).get_newest()


def test_a_server_adopts_revisions(folder):
    with pytest.raises(NotFound, match="no applied cluster"), serving(flags={"cluster": str(folder)}):
        pass
    apply(folder)
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ana": "a-token-of-ana"}'}
    with serving(flags={"cluster": str(folder)}, environ=tokens, token="a-token-of-ana") as server:
        assert sorted(server.holder.current.graphs) == ["lab", "side"]
        assert server.post("/graphs/lab/queries/everyone", {}).status == 200
        refused = server.post("/graphs/lab/schema/apply", {"schema_source": SCHEMA})
        assert (refused.status, refused.json["reason"]) == (409, "schema_in_cluster")
        edit(folder, "cluster.yaml", "  side: { schema: s.pg }", "  third: { schema: s.pg }")
        edit(folder, "cluster.yaml", "graphs:", "schema: open\ngraphs:")
        approve_deletion(ClusterStore(str(folder), {}), "side", "ana", {})
        assert apply(folder).converged
        assert server.get("/graphs/side/branches").status == 200, "not adopted yet, and its files are there"
        assert server.holder.current.cluster is not None
        assert server.holder.current.cluster.has_changed()
        assert server.holder.reload("test").ok
        assert sorted(server.holder.current.graphs) == ["lab", "third"]
        assert server.post("/graphs/lab/schema/apply", {"schema_source": SCHEMA}).status == 200
        assert not server.holder.current.cluster.has_changed()


def test_graphs_of_a_cluster_are_created_and_migrated_by_apply_only(folder, capsys):
    before = og.init(folder / "graphs" / "lab.omni", SCHEMA)  # a cluster that is not applied yet can import it
    apply(folder)
    new, wider = str(folder / "graphs" / "new.omni"), folder / "wider.pg"
    wider.write_text(SCHEMA.replace("age: I64?", "age: I64?  born: Date?"), encoding="utf-8")
    with pytest.raises(Conflict, match="belong to the cluster 'demo'") as caught:
        og.init(new, SCHEMA)
    assert (caught.value.code, "graphs.new" in str(caught.value.hint)) == ("graph_in_cluster", True)
    with pytest.raises(Conflict, match="belongs to the cluster 'demo'") as caught:
        before.apply_schema(wider)
    assert caught.value.code == "schema_in_cluster"
    assert run(["init", "--schema", str(folder / "s.pg"), new]) == 1
    assert run(["schema", "apply", "--schema", str(wider), before.uri]) == 1
    assert capsys.readouterr().err.count("omnigraph cluster apply") == 2
    assert not Path(new).exists()
    assert before.plan_schema(wider).supported, "a plan changes nothing"
    beside = og.init(folder / "beside.omni", SCHEMA)
    beside.apply_schema(wider)
    edit(folder, "cluster.yaml", "graphs:", "schema: open\ngraphs:")
    apply(folder)
    assert before.apply_schema(wider).commit_id is not None
    with pytest.raises(Conflict, match="belong to the cluster"):
        og.init(new, SCHEMA)
    (folder / "__cluster" / "state" / "00000009.json").write_text("{", encoding="utf-8")
    with pytest.raises(Damaged, match="revision 9"):
        before.apply_schema(SCHEMA)


def test_a_cluster_excludes_graphs(folder):
    apply(folder)
    with (
        pytest.raises(InputError, match="exclude"),
        serving(folder / "graphs" / "lab.omni", flags={"cluster": str(folder)}),
    ):
        pass
