"""Clusters with hostile and unlucky input: bombs, repeated keys, altered state, and policies that must not be lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.cluster.cluster_store import ClusterStore
from omnigraph.cluster.converge import ApplyResult, apply_cluster
from omnigraph.cluster.declaration import read_declaration
from omnigraph.errors import Damaged, InputError, StorageError

FILE = """version: 1
metadata: { name: demo }
graphs:
  lab: { schema: s.pg }
  side: { schema: s.pg }
policies:
  staff: { file: staff.yaml, applies_to: [lab, side] }
"""
POLICY = "version: 2\nrules: [{ id: all, allow: { actors: { any: true }, role: viewer } }]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.pg").write_text("node Person { name: String @key }\n")
    (tmp_path / "staff.yaml").write_text(POLICY)
    (tmp_path / "cluster.yaml").write_text(FILE)
    return tmp_path


def apply(folder: Path) -> ApplyResult:
    declared = read_declaration(folder)
    return apply_cluster(declared, ClusterStore(declared.storage, {}), {}, "ana")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "a0: &a0 { x: 1 }\n" + "".join(f"a{n}: &a{n} {{ p: *a{n - 1}, q: *a{n - 1} }}\n" for n in range(1, 40)),
            "anchor",
        ),
        ("graphs: &g { x: *g }", "anchor"),
        (FILE + "graphs: { other: { schema: s.pg } }\n", "graphs"),
        ("[" * 5_000, "nest"),
        ("", "object"),
        ("version: !!python/object/apply:os.system [true]", "tag"),
    ],
)
def test_declaration_is_read_as_strictly_as_a_policy(folder, text, reason):
    (folder / "cluster.yaml").write_text(text)
    with pytest.raises(InputError, match=reason):
        read_declaration(folder)


@pytest.mark.parametrize("member", ["graphs", "policies", "files"])
def test_names_in_an_altered_revision_stay_inside_the_cluster(folder, member):
    apply(folder)
    path = folder / "__cluster/state/00000001.json"
    state = json.loads(path.read_text())
    if member == "files":
        state["policies"]["staff"]["files"] = ["../../../x"]
    else:
        state[member]["../../x"] = state[member].popitem()[1]
    path.write_text(json.dumps(state))
    with pytest.raises(Damaged, match="contains the name"):
        apply(folder)


def test_other_files_beside_the_revisions_are_ignored(folder):
    apply(folder)
    for name in ("notes.json", "9.json", "00000002.json.tmp"):
        (folder / "__cluster/state" / name).write_text("x")
    assert ClusterStore(str(folder), {}).get_newest().number == 1


@pytest.mark.parametrize("damage", [b"rules: []", b"\xff", None])
def test_apply_repairs_the_files_of_a_policy(folder, damage):
    applied = apply(folder).revision
    store = ClusterStore(str(folder), {})
    stored = store.policy_folder("staff", applied.policies["staff"], None) / "policy.yaml"
    if damage is None:
        stored.unlink()
    else:
        stored.write_bytes(damage)
    with pytest.raises(Damaged):
        store.policy_folder("staff", applied.policies["staff"], None)
    assert [step.resource for step in apply(folder).steps] == ["policy.staff"]
    assert (store.policy_folder("staff", applied.policies["staff"], None) / "policy.yaml").read_text() == POLICY


@pytest.mark.parametrize("keeps_other", [True, False])
def test_graph_whose_deletion_is_blocked_keeps_its_policy(folder, keeps_other):
    apply(folder)
    policies = "policies: { staff: { file: staff.yaml, applies_to: [lab] } }\n" if keeps_other else ""
    head = FILE.partition("  side:")[0]
    (folder / "cluster.yaml").write_text(head + policies)
    result = apply(folder)
    assert not result.converged
    assert "side" in result.revision.graphs
    assert result.revision.policies["staff"].applies_to == (["lab", "side"] if keeps_other else ["side"])


def test_policy_that_cannot_be_stored_leaves_the_one_before(folder, monkeypatch):
    before = apply(folder).revision.policies["staff"]
    (folder / "staff.yaml").write_text(POLICY.replace("id: all", "id: other"))

    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(ClusterStore, "store_policy", fail)
    result = apply(folder)
    assert result.problems == {"policy.staff": "the disk is full"}
    assert result.revision.policies["staff"] == before


def test_a_new_graph_is_not_served_without_its_policy(folder, monkeypatch):
    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(ClusterStore, "store_policy", fail)
        result = apply(folder)
    assert (result.converged, dict(result.revision.graphs)) == (False, {})
    again = apply(folder)
    assert (again.converged, sorted(again.revision.graphs)) == (True, ["lab", "side"])
