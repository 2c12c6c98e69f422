"""Commands on schemas and query files."""

from __future__ import annotations

import json
from pathlib import Path

from omnigraph.cli.main import run
from support.commands import SCHEMA, document, jsonl


def test_schema_of_a_graph(graph, cli):
    assert cli("schema", "show") == (0, SCHEMA, "")
    assert document(cli("schema", "get", "--json")) == {"schema_source": SCHEMA}
    Path("t.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n    town: String?"))
    assert cli("schema", "plan", "--schema", "t.pg")[1] == (
        "schema plan g.omni\nsupported: yes\n- add property Person.town: String?\n"
    )
    code, out, _ = cli("schema", "apply", "--schema", "t.pg", "--quiet")
    assert code == 0
    assert out.startswith("schema apply g.omni\nsupported: yes\napplied: yes\nmanifest version: ")
    again = document(cli("schema", "apply", "--schema", "t.pg", "--json"))
    assert (again["applied"], again["step_count"], again["uri"]) == (False, 0, "g.omni")
    Path("u.pg").write_text(SCHEMA.replace("age: I32?", "age: I64?"))
    assert document(cli("schema", "plan", "--schema", "u.pg", "--json"))["supported"] is False
    code, _, err = cli("schema", "apply", "--schema", "u.pg")
    assert code == 1
    assert "nothing was changed" in err
    assert cli("schema", "plan")[0] == 2


def test_lint_and_explain_against_a_graph(graph, cli):
    assert document(cli("lint", "-q", "q.gq", "--json"))["schema_source"] == {"kind": "graph", "uri": "g.omni"}
    assert "scan    $p: Person" in cli("explain", "-q", "q.gq", "-n", "adults", "g.omni")[1]
    assert cli("explain")[0] == 2
    assert cli("explain", "T7")[1].startswith("T7\n\nTwo types that cannot be compared")
    assert cli("explain", "branch_not_found")[1] == "branch_not_found (BranchNotFound)\n\nNo branch has this name.\n"
    code, _, err = cli("explain", "T77")
    assert code == 1
    assert "there is no error code 'T77'" in err


def test_annotations_without_effect_are_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("f.pg").write_text("node Film {\n    number: I64 @pk\n    length: I32? @default(3)\n}\n")
    for words in (
        ["init", "--schema", "f.pg", "f.omni"],
        ["schema", "check", "f.pg"],
        ["schema", "plan", "--schema", "f.pg", "f.omni"],
        ["schema", "plan", "--from", "f.pg", "--to", "f.pg"],
        ["schema", "apply", "--schema", "f.pg", "f.omni"],
    ):
        assert run(words) == 0, words
        warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
        assert ["@pk" in line and "write '@key'" in line for line in warnings] == [False, True], words
        assert "no default values" in warnings[0]
    assert run(["schema", "check", "f.pg", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == 2


def test_drop_reports_removed_values_and_rename_hint(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("old.pg").write_text("node Film {\n    title: String @key\n    runtime: I32?\n    poster: Blob?\n}\n")
    Path("new.pg").write_text("node Film {\n    title: String @key\n    length: I32?\n}\n")
    records = [{"type": "Film", "data": {"title": f"t{n}", "runtime": n or None}} for n in range(3)]
    records[0]["data"]["poster"] = "base64:AAAA"
    Path("films.jsonl").write_text(jsonl(*records))
    assert run(["init", "--schema", "old.pg", "f.omni"]) == 0
    assert run(["load", "films.jsonl", "--mode", "merge", "f.omni"]) == 0
    capsys.readouterr()
    assert run(["schema", "apply", "--schema", "new.pg", "f.omni", "--quiet"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: the schema change is not supported: cannot change node:Film.poster: [OG-DS-104] dropping it removes 1 "
        "value; cannot change node:Film.runtime: [OG-DS-104] dropping it removes 2 values; nothing was changed",
        'hint: if Film.length is runtime renamed, write: length: I32? @rename_from("runtime"); --allow-data-loss '
        "permits the losses",
    ]
    for command in ("plan", "apply"):
        assert run(["schema", command, "--schema", "new.pg", "f.omni", "--quiet", "--allow-data-loss"]) == 0
        assert capsys.readouterr().err.splitlines() == [
            "warning: the change removes 1 value of Film.poster from the branch; older versions stay until they are "
            "cleaned up",
            "warning: the change removes 2 values of Film.runtime from the branch; older versions stay until they are "
            "cleaned up",
            'hint: if Film.length is runtime renamed, write: length: I32? @rename_from("runtime")',
        ]
    Path("none.pg").write_text("node Other {\n    number: I32 @key\n}\n")
    assert run(["schema", "plan", "--schema", "none.pg", "f.omni", "--allow-data-loss", "--json"]) == 0
    losses = ["the change removes 3 rows of Film from the branch; older versions stay until they are cleaned up"]
    assert json.loads(capsys.readouterr().out)["losses"] == losses


def test_an_empty_schema_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("old.pg").write_text("node Film {\n    title: String @key\n}\n")
    Path("none.pg").write_text("// nothing yet\ninterface Named {}\n")
    assert run(["init", "--schema", "old.pg", "f.omni"]) == 0
    for words in (
        ["schema", "check", "none.pg"],
        ["schema", "plan", "--from", "old.pg", "--to", "none.pg"],
        ["schema", "plan", "none.pg", "f.omni"],
        ["schema", "apply", "none.pg", "f.omni", "--allow-data-loss"],
    ):
        capsys.readouterr()
        assert run(words) == 1, words
        assert "declares no node type" in capsys.readouterr().err
    assert run(["schema", "show", "f.omni"]) == 0
    assert capsys.readouterr().out == Path("old.pg").read_text()
    # A new graph has no data to lose: types are added later.
    assert run(["init", "--schema", "none.pg", "g.omni"]) == 0
    Path("types.pg").write_text(Path("none.pg").read_text() + Path("old.pg").read_text())
    assert run(["schema", "apply", "types.pg", "g.omni"]) == 0


def test_a_schema_is_shown_at_a_point(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("old.pg").write_text("node Film {\n    title: String @key\n}\n")
    Path("new.pg").write_text("node Film {\n    title: String @key\n    length: I32?\n}\n")
    assert run(["init", "--schema", "old.pg", "f.omni"]) == 0
    assert run(["tag", "create", "before", "f.omni"]) == 0
    assert run(["schema", "apply", "new.pg", "f.omni"]) == 0
    for point, name in (([], "new.pg"), (["--at", "before"], "old.pg")):
        capsys.readouterr()
        assert run(["schema", "show", "f.omni", *point]) == 0
        assert capsys.readouterr().out == Path(name).read_text()


def test_rejected_change_has_rename_hint(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("old.pg").write_text("node Film {\n    title: String @key\n    runtime: I32\n}\n")
    Path("new.pg").write_text("node Film {\n    title: String @key\n    length: I32\n}\n")
    assert run(["init", "--schema", "old.pg", "f.omni"]) == 0
    assert run(["schema", "apply", "--schema", "new.pg", "f.omni"]) == 1
    assert 'write: length: I32 @rename_from("runtime")' in capsys.readouterr().err


def test_init_declares_how_properties_merge(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.pg").write_text("node Film {\n    title: String @key\n}\n")
    Path("films.csv").write_text("title\nAlien\n")
    declared = "merge {\n    properties: combine\n}\n\n"
    assert run(["init", "s.pg", "f.omni", "--merge-properties", "combine"]) == 0
    assert run(["init", "--from", "films.csv", "g.omni", "--merge-properties", "combine", "--yes"]) == 0
    assert Path("schema.pg").read_text().startswith(declared)
    for graph in ("f.omni", "g.omni"):
        capsys.readouterr()
        assert run(["schema", "show", graph]) == 0
        assert capsys.readouterr().out.startswith(declared)
        assert run(["status", graph]) == 0
        assert "merges combine edits of different properties" in capsys.readouterr().out
    Path("c.pg").write_text(declared + "node Film {}\n")
    assert run(["init", "c.pg", "h.omni", "--merge-properties", "conflict"]) == 1
    assert "has a declaration 'merge' already" in capsys.readouterr().err
