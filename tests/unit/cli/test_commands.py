"""The commands on real graphs: words in, text, JSON and exit codes out."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from omnigraph.cli.main import run

SCHEMA = """node Person {
    name: String @key
    age: I32?
}

edge Knows: Person -> Person
"""
QUERIES = """query adults($least: I32) {
    match {
        $p: Person
        $p.age >= $least
    }
    return { $p.name, $p.age }
    order { $p.name }
}

query one($name: String) {
    match { $p: Person { name: $name } }
    return { $p.age }
}

query birthday($name: String, $age: I32) {
    update Person set { age: $age } where name = $name
}
"""
RECORDS = [
    {"type": "Person", "data": {"name": "Ana", "age": 41}},
    {"type": "Person", "data": {"name": "Bo", "age": 17}},
    {"type": "Person", "data": {"name": "29", "age": None}},
    {"edge": "Knows", "from": "Ana", "to": "Bo"},
]


def jsonl(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "q.gq").write_text(QUERIES)
    (tmp_path / "people.jsonl").write_text(jsonl(*RECORDS))
    monkeypatch.chdir(tmp_path)
    for variable in ("OMNIGRAPH_CONFIG", "OMNIGRAPH_ACTOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    return tmp_path


Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Run a command line; exit code, stdout, stderr."""

    def say_(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(list(words))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return say_


@pytest.fixture
def graph(folder: Path, say: Say) -> Path:
    """A loaded graph, and an omnigraph.yaml that names it."""
    assert say("init", "--schema", "s.pg", "g.omni")[0] == 0
    assert say("load", "-d", "people.jsonl", "--mode", "merge")[0] == 0
    return folder / "g.omni"


def document(answer: tuple[int, str, str], code: int = 0) -> Any:
    assert answer[0] == code, answer[2]
    return json.loads(answer[1])


# -- creating and loading ----------------------------------------------------------------------------


def test_init_scaffolds_a_configuration_that_works(folder, say):
    assert say("init", "--schema", "s.pg", "./g.omni") == (0, "created graph ./g.omni\ncreated omnigraph.yaml\n", "")
    assert "uri: ./g.omni" in (folder / "omnigraph.yaml").read_text()
    assert say("branch", "list") == (0, "main\n", "")
    again = say("init", "--schema", "s.pg", "./g.omni")
    assert again[0] == 1
    assert again[2].startswith("error: a graph already exists at")


def test_init_elsewhere_names_the_graph_from_there(folder, say):
    (folder / "data").mkdir()
    answer = document(say("init", "--schema", "s.pg", "data/g.omni", "--json"))
    assert answer == {"uri": "data/g.omni", "config_path": "data/omnigraph.yaml", "config_created": True}
    assert say("branch", "list", "--config", "data/omnigraph.yaml") == (0, "main\n", "")
    (folder / "omnigraph.yaml").write_text("project: {name: mine}\n")
    assert document(say("init", "--schema", "s.pg", "h.omni", "--json"))["config_created"] is False
    assert (folder / "omnigraph.yaml").read_text() == "project: {name: mine}\n"
    assert document(say("init", "--schema", "s.pg", "i.omni", "--no-scaffold", "--json"))["config_path"] is None


def test_init_tells_a_wrong_schema_with_its_place(folder, say):
    (folder / "s.pg").write_text("node A { x: Strin }")
    code, out, err = say("init", "--schema", "s.pg", "g.omni")
    assert (code, out) == (1, "")
    assert "--> s.pg:1:13" in err
    assert not (folder / "g.omni").exists()


def test_load(graph, say):
    code, out, err = say("load", "-d", "people.jsonl", "--mode", "overwrite", "g.omni")
    assert (code, out) == (0, "load g.omni branch=main mode=overwrite: 3 nodes in 1 type, 1 edge in 1 type\n")
    assert err == ""
    answer = document(say("load", "-d", "people.jsonl", "--mode", "merge", "--json", "--quiet", "--as", "ana"))
    assert {key: answer[key] for key in ("uri", "branch", "mode", "nodes_loaded", "edges_loaded")} == {
        "uri": "g.omni", "branch": "main", "mode": "merge", "nodes_loaded": 3, "edges_loaded": 1,
    }  # fmt: skip
    assert answer["actor_id"] == answer["commit"]["actor_id"] == "ana"
    assert "embedded_rows" not in answer


def test_load_from_stdin(graph, say, monkeypatch):
    text = jsonl({"type": "Person", "data": {"name": "Cleo"}}, {"type": "Person", "data": {"nam": "Dov"}})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, err = say("load", "-d", "-", "--mode", "merge", "--rejects", "bad.jsonl")
    assert code == 0
    assert "1 node in 1 type" in out
    assert "warning: 1 invalid records were set aside in bad.jsonl" in err
    (reject,) = (json.loads(line) for line in Path("bad.jsonl").read_text().splitlines())
    assert (reject["line"], reject["type"]) == (2, "Person")


def test_a_wrong_record_is_told_with_its_line(graph, say):
    Path("bad.jsonl").write_text('{"type": "Person", "data": {"name": "X"}}\n{"type": "Persn", "data": {}}\n')
    code, _, err = say("load", "-d", "bad.jsonl", "--mode", "merge")
    assert code == 1
    assert "line 2" in err
    assert "hint: did you mean 'Person'?" in err


def test_ingest_creates_the_branch(graph, say):
    code, out, _ = say("ingest", "-d", "people.jsonl", "--branch", "intake/may", "--as", "bo")
    assert code == 0
    assert out == (
        "ingest g.omni branch=intake/may base=main mode=merge (new branch)\n"
        "  edge:Knows 1 row\n  node:Person 3 rows\nactor: bo\n"
    )
    answer = document(say("ingest", "-d", "people.jsonl", "--branch", "intake/may", "--json"))
    assert (answer["branch_created"], answer["base_branch"]) == (False, "main")
    assert answer["tables"] == [
        {"table_key": "edge:Knows", "rows_loaded": 1},
        {"table_key": "node:Person", "rows_loaded": 3},
    ]
    assert say("load", "-d", "people.jsonl", "--mode", "merge", "--branch", "new")[0] == 1
    assert say("load", "-d", "people.jsonl", "--mode", "merge", "--branch", "new", "--from", "main")[0] == 0


def test_export_loads_back(graph, say):
    code, out, _ = say("export")
    assert code == 0
    kinds = ["edge" if "edge" in json.loads(line) else "node" for line in out.splitlines()]
    assert kinds == ["edge", "node", "node", "node"]
    assert say("export", "--type", "Person")[1].count("\n") == 3
    assert say("export", "--table", "edge:Knows")[1].count("\n") == 1
    assert say("export", "--table", "edge:Knows", "--type", "Person")[1] == out
    assert say("export", "--type", "Nobody")[:2] == (1, "")
    assert say("export", "-o", "all.jsonl")[:2] == (0, "")
    assert Path("all.jsonl").read_text() == out
    assert say("init", "--schema", "s.pg", "h.omni")[0] == 0
    assert say("load", "-d", "all.jsonl", "--mode", "append", "h.omni")[0] == 0
    assert say("export", "h.omni")[1] == out


def test_export_as_files(graph, say):
    code, out, err = say("export", "--format", "parquet", "--out", "files")
    assert (code, out, err) == (0, "", "note: 4 rows written to files\n")
    assert say("init", "--schema", "s.pg", "h.omni")[0] == 0
    assert say("load", "-d", "files", "--mode", "append", "h.omni")[0] == 0
    assert say("export", "h.omni")[1] == say("export")[1]
    assert say("export", "--format", "csv", "--type", "Person", "--out", "csv", "--quiet")[0] == 0
    assert any(path.suffix == ".csv" for path in Path("csv").iterdir())
    assert say("export", "--format", "parquet")[0] == 2
    assert say("export", "--format", "xml", "--out", "x")[0] == 2


def test_where_a_load_runs(graph, say):
    answer = document(
        say("load", "-d", "people.jsonl", "--mode", "merge", "--engine", "memory", "--job-id", "j1", "--json")
    )
    again = document(
        say("load", "-d", "people.jsonl", "--mode", "merge", "--engine", "memory", "--job-id", "j1", "--json")
    )
    assert again["commit"]["graph_commit_id"] == answer["commit"]["graph_commit_id"]
    for words in (
        ["--engine", "abacus"],
        ["--engine", "memory", "--master", "local[2]"],
        ["--conf", "spark.ui.enabled"],
        ["--embed", "maybe"],
    ):
        assert say("load", "-d", "people.jsonl", "--mode", "merge", *words)[0] == 2, words


def test_snapshot(graph, say):
    say("branch", "create", "x")
    say("change", "-q", "q.gq", "-n", "birthday", "-p", "name=Bo", "-p", "age=18", "-b", "x")
    code, out, _ = say("snapshot", "-b", "x")
    assert code == 0
    assert out.splitlines()[0].startswith("branch x, manifest version ")
    assert "edge:Knows  version=2  branch=main  rows=1" in out
    assert "node:Person  version=3  branch=x  rows=3" in out
    answer = document(say("snapshot", "-b", "x", "--json"))
    assert [table["table_branch"] for table in answer["tables"]] == [None, "x"]
    assert answer["internal_schema_version"] >= 1001


# -- asking and changing -----------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["read", "query"])
def test_read(graph, say, word):
    expected = "1 row from branch main via adults\np.name | p.age\n-------+------\nAna    |    41\n"
    assert say(word, "-q", "q.gq", "-n", "adults", "-p", "least=18") == (0, expected, "")
    assert say(word, "-q", "q.gq", "--name", "adults", "--params", '{"least": 18}', "g.omni") == (0, expected, "")
    assert (
        say("--quiet", word, "-q", "q.gq", "-n", "adults", "-p", "least=18", "-f", "csv")[1] == "p.name,p.age\nAna,41\n"
    )


def test_a_text_parameter_stays_a_text(graph, say):
    assert say("read", "-q", "q.gq", "-n", "one", "-p", "name=29", "-f", "csv")[1] == "p.age\n\n"


def test_a_query_without_a_head_reads_values_by_the_property_they_meet(graph, say):
    text = "match { $p: Person { name: $n } } return { count($p) as n }"
    assert say("read", "-e", text, "-p", "n=29", "-f", "csv") == (0, "n\n1\n", "")
    code, _, told = say("read", "-e", text)
    assert code == 1
    assert told.endswith("hint: pass its value: -p n=…\n")


def test_query_text_from_the_line_and_from_stdin(graph, say, monkeypatch):
    text = "query n() { match { $p: Person } return { count($p) as n } }"
    assert say("read", "-e", text, "-f", "csv") == (0, "n\n3\n", "")
    bare = "match { $p: Person } return { count($p) as n }"
    assert say("read", "-e", bare)[1] == "1 row from branch main via inline\nn\n-\n3\n"
    assert say("change", "-e", 'insert Person { name: "Cleo" }')[1] == (
        "change inline branch=main: 1 node, 0 edges affected\n"
    )
    assert say("change", "-e", 'delete Person where name = "Cleo"')[0] == 0
    assert say("explain", "-e", bare, "g.omni")[1].startswith("query inline()")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert say("read", "-q", "-", "-f", "csv") == (0, "n\n3\n", "")


def test_read_into_files(graph, say):
    words = ("read", "-q", "q.gq", "-n", "adults", "-p", "least=1", "-f", "parquet")
    assert say(*words, "-o", "rows.parquet")[:2] == (0, "")
    assert pq.read_table("rows.parquet").to_pydict() == {"p.name": ["Ana", "Bo"], "p.age": [41, 17]}
    assert say(*words, "-o", "no/such/rows.parquet")[0] == 1


def test_change_and_time_travel(graph, say):
    words = ("change", "-q", "q.gq", "-n", "birthday", "-p", "name=Bo", "-p", "age=18")
    assert say(*words, "--as", "ana", "-m", "Bo is 18") == (
        0, "change birthday branch=main: 1 node, 0 edges affected\nactor: ana\n", "",
    )  # fmt: skip
    commits = document(say("commit", "list", "--json"))["commits"]
    assert [commit["message"] for commit in commits] == ["Bo is 18", None, None]
    before = commits[1]["graph_commit_id"]
    read = ("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv")
    assert say(*read)[1] == "p.age\n18\n"
    for point in (before, "2", f"manifest:main:v{commits[1]['manifest_version']}"):
        assert say(*read, "--snapshot", point)[1] == "p.age\n17\n", point
    assert say(*read, "--snapshot", "2999-01-01T00:00:00Z")[1] == "p.age\n18\n"
    answer = document(say(*read[:-2], "--json", "--at", before))
    assert (answer["target"], answer["graph_commit_id"]) == ({"branch": None, "snapshot": before}, before)
    nothing = document(say("mutate", "-q", "q.gq", "-n", "birthday", "-p", "name=X", "-p", "age=1", "--json"))
    assert nothing == {
        "branch": "main", "query_name": "birthday", "affected_nodes": 0, "affected_edges": 0,
        "actor_id": None, "commit": None,
    }  # fmt: skip


def test_a_lost_precondition_is_4(graph, say):
    words = ("change", "-q", "q.gq", "-n", "birthday", "-p", "name=Bo", "-p", "age=18")
    head = document(say("commit", "list", "--json", "--limit", "1"))["commits"][0]["graph_commit_id"]
    assert say(*words, "--if-commit", head)[0] == 0
    code, out, err = say(*words, "--if-commit", head, "--json")
    assert code == 4
    failure = json.loads(out)["precondition_failure"]
    assert failure["expected"] == head != failure["actual"]
    assert err.startswith("error: branch 'main' is at commit")


def test_the_wrong_command_for_a_query(graph, say):
    assert "omnigraph change" in say("read", "-q", "q.gq", "-n", "birthday")[2]
    assert "omnigraph read" in say("change", "-q", "q.gq", "-n", "adults")[2]
    code, _, err = say("read", "-q", "q.gq")
    assert code == 1
    assert err == "error: there are several queries: 'adults', 'birthday', 'one'\nhint: choose one with --name NAME\n"


def test_a_misspelt_parameter_is_remarked_on(graph, say):
    code, _, err = say("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-p", "nam=Ana")
    assert (code, err) == (0, "warning: query 'one' has no parameter 'nam'; did you mean 'name'?\n")


def test_aliases(graph, say):
    with Path("omnigraph.yaml").open("a") as file:
        file.write(
            "aliases:\n  adults: {command: read, query: q.gq, name: adults, args: [least], format: csv}\n"
            "  birthday: {command: change, query: q.gq, name: birthday, args: [name, age]}\n"
        )
    assert say("read", "--alias", "adults", "18") == (0, "p.name,p.age\nAna,41\n", "")
    assert say("read", "--alias", "adults", "18", "--params", '{"least": 1}')[1] == "p.name,p.age\nAna,41\nBo,17\n"
    assert say("change", "--alias", "birthday", "Bo", "18")[0] == 0
    assert "alias 'birthday' is for 'change', not for 'read'" in say("read", "--alias", "birthday", "Bo", "18")[2]
    assert "takes 1 arguments, not 2" in say("read", "--alias", "adults", "18", "19")[2]
    assert "did you mean 'adults'?" in say("read", "--alias", "adult")[2]
    Path("bare.yaml").write_text("aliases:\n  adults: {command: read, query: q.gq, name: adults, args: [least]}\n")
    code, out, _ = say("read", "--config", "bare.yaml", "--alias", "adults", "g.omni", "18", "-f", "csv")
    assert (code, out) == (0, "p.name,p.age\nAna,41\nBo,18\n")


# -- branches, commits, differences ------------------------------------------------------------------


def test_branches(graph, say):
    assert say("branch", "create", "review/x", "g.omni", "--quiet") == (0, "branch review/x created at main\n", "")
    assert document(say("branch", "list", "--json")) == {"branches": ["main", "review/x"]}
    answer = document(say("branch", "create", "a", "--from", "review/x", "--json", "--as", "bo"))
    assert {key: answer[key] for key in ("uri", "from", "name", "actor_id")} == {
        "uri": "g.omni", "from": "review/x", "name": "a", "actor_id": "bo",
    }  # fmt: skip
    assert say("branch", "list")[1] == "a\nmain\nreview/x\n"
    assert say("branch", "delete", "a", "--quiet") == (0, "branch a deleted\n", "")
    assert say("branch", "delete", "a")[0] == 1
    assert say("branch", "create", "main")[0] == 1
    assert say("branch", "create", "review/x")[0] == 1


def set_age(say: Say, name: str, age: int, branch: str) -> None:
    assert say("change", "-q", "q.gq", "-n", "birthday", "-p", f"name={name}", "-p", f"age={age}", "-b", branch)[0] == 0


def test_diff_and_merge(graph, say):
    say("branch", "create", "x")
    set_age(say, "Bo", 18, "x")
    assert say("diff", "main", "x") == (0, "update node Person Bo\n  age: 17 -> 18\n1 change\n", "")
    assert say("diff", "main", "x", "--stat")[1] == "node:Person  +0 ~1 -0\n1 change\n"
    code, _, refused = say("diff", "main", "x", "--stat", "--limit", "1")
    assert code == 2
    assert "--limit" in refused
    assert say("diff", "main", "x", "--op", "insert")[1] == "0 changes\n"
    (change,) = document(say("diff", "main", "x", "--json"))["changes"]
    assert (change["op"], change["before"]["age"], change["after"]["age"]) == ("update", 17, 18)
    assert say("diff", "main", "x", "--kind", "row")[0] == 2
    assert say("diff", "main")[0] == 2
    set_age(say, "Ana", 42, "main")
    assert say("diff", "main..x", "--stat")[1] == "node:Person  +0 ~2 -0\n2 changes\n"
    assert say("diff", "main...x", "g.omni") == (0, "update node Person Bo\n  age: 17 -> 18\n1 change\n", "")
    assert say("diff", "x...")[1] == "update node Person Ana\n  age: 41 -> 42\n1 change\n"
    answer = document(say("diff", "main...x", "--json"))
    assert (answer["from"], answer["to"], len(answer["changes"])) == ("main", "x", 1)
    assert say("diff", "main...x", "g.omni", "more")[0] == 2
    code, _, err = say("diff", "main", "99")
    assert code == 1
    assert "branch 'main' has no version 99; its versions are 1 to " in err
    assert say("branch", "merge", "x", "--into", "main", "--quiet", "--delete-branch") == (
        0, "merge x -> main: merged\n", "",
    )  # fmt: skip
    assert say("branch", "list")[1] == "main\n"


def test_a_branch_with_commits_of_its_own_is_deleted_by_force(graph, say):
    say("branch", "create", "x")
    set_age(say, "Bo", 18, "x")
    code, _, err = say("branch", "delete", "x", "--quiet")
    assert code == 1
    assert err.startswith(
        "error: branch 'x' has 1 commit that is on no other branch and under no tag; it was not deleted"
    )
    assert "--force" in err
    assert say("branch", "delete", "x", "--force", "--quiet") == (0, "branch x deleted\n", "")


def test_a_conflict_is_shown_and_settled(graph, say):
    say("branch", "create", "x")
    set_age(say, "Bo", 18, "x")
    set_age(say, "Bo", 19, "main")
    preview = say("branch", "merge", "x", "--preview")
    assert preview[0] == 0
    assert preview[1].startswith("merge preview x -> main: 1 conflict; would not merge\n")
    assert "conflict  node:Person:Bo (divergent_update)" in preview[1]
    assert preview[1].endswith("1 conflict; --resolve ours|theirs resolves it\n")
    code, out, err = say("branch", "merge", "x", "--json", "--quiet")
    assert code == 1
    (conflict,) = json.loads(out)["merge_conflicts"]
    assert (conflict["table_key"], conflict["row_id"], conflict["kind"]) == ("node:Person", "Bo", "divergent_update")
    assert "node:Person:Bo (divergent_update)" in err
    assert err.endswith("hint: --resolve ours|theirs resolves it\n")
    assert say("branch", "merge", "x", "--resolve", "mine")[0] == 2
    assert say("branch", "merge", "x", "--resolve", "ours", "--resolve", "theirs")[0] == 2
    assert say("branch", "merge", "x", "--resolve", "Person=1")[0] == 2
    assert "did you mean 'Person'?" in say("branch", "merge", "x", "--resolve", "Persn=ours")[2]
    unknown = say("branch", "merge", "x", "--resolve", "node:Person:Bo=ours", "--resolve", "node:Person:Zo=ours")[2]
    assert unknown.endswith("there is no conflict 'node:Person:Zo'\nhint: --preview lists the conflicts\n")
    chosen = say("branch", "merge", "x", "--preview", "--resolve", 'node:Person:Bo={"age": 20}')
    assert (chosen[0], "conflict" in chosen[1]) == (0, False)
    answer = document(say("branch", "merge", "x", "--resolve", "Person=theirs", "--json", "-m", "theirs"))
    assert (answer["outcome"], answer["source"], answer["target"], answer["actor_id"]) == ("merged", "x", "main", None)
    assert say("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv")[1] == "p.age\n18\n"
    commits = document(say("commit", "list", "--json"))["commits"]
    shown = say("commit", "show", commits[0]["graph_commit_id"])[1].splitlines()
    assert shown[0] == f"graph_commit_id: {commits[0]['graph_commit_id']}"
    assert f"merged_parent_commit_id: {commits[0]['merged_parent_commit_id']}" in shown
    line = say("commit", "list", "--limit", "1")[1]
    assert line.startswith(f"{commits[0]['graph_commit_id']}  20")
    assert line.endswith("  theirs\n")


def test_a_commit_is_taken_back(graph, say):
    set_age(say, "Bo", 18, "main")
    first = document(say("commit", "list", "--json", "--limit", "1"))["commits"][0]["graph_commit_id"]
    preview = say("revert", first, "--preview")
    assert preview[1].startswith(f"revert preview {first} on main: merged; nothing was written\n  node:Person: ")
    answer = document(say("revert", first, "--json", "--quiet", "--as", "ana"))
    assert (answer["reverted_commit_id"], answer["branch"], answer["actor_id"]) == (first, "main", "ana")
    assert say("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv")[1] == "p.age\n17\n"
    set_age(say, "Bo", 19, "main")
    code, _, err = say("revert", answer["commit_id"], "--quiet")
    assert code == 1
    assert "node:Person:Bo" in err
    assert "--resolve ours|theirs resolves it" in err
    preview = say("revert", answer["commit_id"], "--preview")[1]
    assert preview.startswith(f"revert preview {answer['commit_id']} on main: 1 conflict; would not revert\n")
    assert say("revert", answer["commit_id"], "--resolve", "theirs", "--quiet")[0] == 0
    assert say("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv")[1] == "p.age\n18\n"


def test_points_and_schema_changes_are_named(graph, say):
    assert say("tag", "create", "v1")[0] == 0
    assert say("branch", "create", "rev")[0] == 0
    for command in (["diff", "main", "rve"], ["export", "--at", "rve"], ["commit", "show", "rve"]):
        err = say(*command)[2]
        assert err.startswith("error: there is no branch, tag or commit 'rve'\nhint: did you mean 'rev'? a point is a ")
    commit_id = document(say("commit", "show", "v1", "--json"))["graph_commit_id"]
    assert document(say("revert", "v1", "--preview", "--json"))["reverted_commit_id"] == commit_id
    Path("more.pg").write_text(SCHEMA + "\nnode Place {\n    name: String @key\n}\n")
    assert say("schema", "apply", "--schema", "more.pg", "--branch", "rev")[0] == 0
    assert say("diff", "main", "rev")[1] == "schema: add node type Place\n0 changes\n"
    assert document(say("diff", "main", "rev", "--json"))["schema_steps"] == ["add node type Place"]
    assert say("branch", "merge", "rev")[1].splitlines()[1:] == ["  schema: add node type Place"]


def test_tags(graph, say):
    code, out, _ = say("tag", "create", "first", "--quiet", "-m", "as it began", "--as", "ana")
    head = document(say("commit", "list", "--json", "--limit", "1"))["commits"][0]["graph_commit_id"]
    assert (code, out) == (0, f"tag first names {head}\n")
    set_age(say, "Bo", 18, "main")
    assert say("diff", "first", "main")[1] == "update node Person Bo\n  age: 17 -> 18\n1 change\n"
    assert say("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv", "--at", "first")[1] == "p.age\n17\n"
    line = say("tag", "list")[1]
    assert line.startswith(f"first  {head}  20")
    assert line.endswith("  ana  as it began\n")
    assert [tag["name"] for tag in document(say("tag", "list", "--json"))["tags"]] == ["first"]
    assert say("tag", "create", "first")[0] == 1
    assert document(say("tag", "create", "zero", "--at", "1", "--json"))["name"] == "zero"
    assert say("branch", "create", "again", "--at", "first", "--quiet")[1] == "branch again created at first\n"
    assert say("tag", "delete", "first", "--quiet") == (0, "tag first deleted\n", "")
    assert say("tag", "delete", "first")[0] == 1


def test_history_and_blame(graph, say):
    set_age(say, "Bo", 18, "main")
    say("change", "-q", "q.gq", "-n", "birthday", "-p", "name=Bo", "-p", "age=19", "--as", "ana", "-m", "a year on")
    lines = say("history", "Person", "Bo")[1].splitlines()
    assert [line for line in lines if line.startswith("  ")] == [
        "  age: 18 -> 19",
        "  age: 17 -> 18",
        "  + age: 17",
        "  + name: Bo",
    ]
    assert lines[0].endswith("  update  ana  a year on")
    answer = document(say("history", "Person", "Bo", "g.omni", "--json"))
    assert [change["op"] for change in answer["changes"]] == ["update", "update", "insert"]
    blamed = {row["property"]: row for row in document(say("blame", "Person", "Bo", "--json"))["properties"]}
    assert (blamed["age"]["value"], blamed["age"]["actor_id"], blamed["name"]["actor_id"]) == (19, "ana", None)
    (line,) = [line for line in say("blame", "Person", "Bo")[1].splitlines() if line.startswith("age ")]
    assert line.endswith("  ana  a year on  19")
    first = answer["changes"][-1]["graph_commit_id"]
    then = {
        row["property"]: row["value"]
        for row in document(say("blame", "Person", "Bo", "--at", first, "--json"))["properties"]
    }
    assert then["age"] == 17
    code, _, err = say("history", "Person", "Nobody")
    assert code == 1
    assert "Person 'Nobody' does not exist" in err
    assert "did you mean 'Person'?" in say("blame", "Persn", "Bo")[2]


def test_a_change_shows_the_rows_it_returns(graph, say):
    text = "update Person set { age: 5 } where age < 40 as $p return { $p.name, $p.age }"
    words = ("change", "-e", text, "--as", "ana")
    counted = "change inline branch=main: 1 node, 0 edges affected\nactor: ana\n"
    assert say(*words) == (
        0,
        "1 row from branch main via inline\np.name | p.age\n-------+------\nBo     |     5\n",
        counted,
    )
    assert say(*words, "-f", "csv") == (0, "p.name,p.age\nBo,5\n", counted)
    assert say(*words, "-f", "jsonl")[1].splitlines()[1:] == ['{"p.name":"Bo","p.age":5}']
    assert say(*words, "-f", "parquet", "-o", "rows.parquet") == (0, "", counted)
    assert pq.read_table("rows.parquet").to_pylist() == [{"p.name": "Bo", "p.age": 5}]
    for how in (("--json",), ("-f", "json")):
        answer = document(say(*words, *how))
        assert (answer["columns"], answer["rows"]) == (["p.name", "p.age"], [{"p.name": "Bo", "p.age": 5}])
        assert (answer["affected_nodes"], answer["commit"]["actor_id"]) == (1, "ana")
    assert say(*words, "-f", "xml")[0] == 2
    assert say(*words, "-f", "csv", "--json")[0] == 2


def test_pages(graph, say):
    words = ("read", "-e", "match { $p: Person } return { $p.name } order { $p.name }", "--page", "2")
    code, out, told = say(*words, "-f", "csv")
    assert (code, out) == (0, "p.name\n29\nAna\n")
    assert told.startswith("next: ")
    cursor = told.removeprefix("next: ").strip()
    set_age(say, "Bo", 18, "main")
    assert say(*words, "-f", "csv", "--after", cursor) == (0, "p.name\nBo\n", "")
    first = document(say(*words, "--json"))
    assert [row["p.name"] for row in first["rows"]] == ["29", "Ana"]
    assert "next" not in document(say(*words, "--json", "--after", first["next"]))
    assert "next" in json.loads(say(*words, "-f", "jsonl")[1].splitlines()[0])
    assert say("read", "-e", words[2], "--after", cursor)[0] == 2
    code, _, told = say(*words[:-1], "2", "--after", "x")
    assert (code, "page cursor rejected" in told) == (1, True)


def test_what_a_commit_changed(graph, say):
    set_age(say, "Bo", 18, "main")
    first, second, _ = (c["graph_commit_id"] for c in document(say("commit", "list", "--json"))["commits"])
    out = say("commit", "changes", first)[1]
    assert out.startswith(f"commit: {first}\nbranch: main\nparent: {second}\nauthored_at: 20")
    assert out.endswith("update node Person Bo\n  age: 17 -> 18\n")
    answer = document(say("commit", "changes", second, "--json", "--limit", "1"))
    assert (len(answer["changes"]), answer["cause"]["graph_commit_id"]) == (1, second)
    rest = document(say("commit", "changes", second, "--json", "--limit", "10", "--page-token", answer["page"]))
    assert (len(rest["changes"]), rest["page"]) == (3, None)
    assert len(document(say("commit", "changes", second, "--kind", "edge", "--json"))["changes"]) == 1


def test_the_feed(graph, say):
    out = say("changes", "poll")[1].splitlines()
    assert out[0] == "(no new commits)"
    assert out[2] == "caught_up: true"
    cursor = out[1].removeprefix("cursor: ")
    set_age(say, "Bo", 18, "main")
    answer = document(say("changes", "poll", "--cursor", cursor, "--json"))
    assert [change["id"] for block in answer["blocks"] for change in block["changes"]] == ["Bo"]
    assert answer["caught_up"] is True
    answer = document(say("changes", "poll", "--start", "beginning", "--limit", "2", "--json"))
    seen = 0
    for _ in range(10):
        seen += sum(len(block["changes"]) for block in answer["blocks"])
        if answer["caught_up"]:
            break
        answer = document(say("changes", "poll", "--cursor", answer["cursor"], "--limit", "2", "--json"))
    assert (seen, answer["caught_up"]) == (5, True)
    code, _, err = say("changes", "poll", "--cursor", cursor[:-3] + "xyz")
    assert code == 1
    assert err.startswith("error: change cursor rejected: ")
    assert say("changes", "poll", "--cursor", cursor, "--start", "now")[0] == 2
    baseline = document(say("changes", "baseline", "--out", "b.jsonl", "--json"))
    assert baseline["rows"] == len(Path("b.jsonl").read_text().splitlines()) == 4
    assert document(say("changes", "poll", "--cursor", baseline["resume_cursor"], "--json"))["blocks"] == []
    assert say("changes", "baseline", "--out", "b.jsonl")[1].startswith("baseline b.jsonl: 4 rows of branch main at 0")


# -- schema ------------------------------------------------------------------------------------------


def test_schema_of_a_graph(graph, say):
    assert say("schema", "show") == (0, SCHEMA, "")
    assert document(say("schema", "get", "--json")) == {"schema_source": SCHEMA}
    Path("t.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n    town: String?"))
    assert say("schema", "plan", "--schema", "t.pg")[1] == (
        "schema plan g.omni\nsupported: yes\n- add property Person.town: String?\n"
    )
    code, out, _ = say("schema", "apply", "--schema", "t.pg", "--quiet")
    assert code == 0
    assert out.startswith("schema apply g.omni\nsupported: yes\napplied: yes\nmanifest version: ")
    again = document(say("schema", "apply", "--schema", "t.pg", "--json"))
    assert (again["applied"], again["step_count"], again["uri"]) == (False, 0, "g.omni")
    Path("u.pg").write_text(SCHEMA.replace("age: I32?", "age: I64?"))
    assert document(say("schema", "plan", "--schema", "u.pg", "--json"))["supported"] is False
    code, _, err = say("schema", "apply", "--schema", "u.pg")
    assert code == 1
    assert "nothing was changed" in err
    assert say("schema", "plan")[0] == 2


def test_lint_and_explain_against_a_graph(graph, say):
    assert document(say("lint", "-q", "q.gq", "--json"))["schema_source"] == {"kind": "graph", "uri": "g.omni"}
    assert "scan    $p: Person" in say("explain", "-q", "q.gq", "-n", "adults", "g.omni")[1]
    assert say("explain")[0] == 2
    assert say("explain", "T7")[1].startswith("T7\n\nTwo types that cannot be compared")
    assert say("explain", "branch_not_found")[1] == "branch_not_found (BranchNotFound)\n\nNo branch has this name.\n"
    code, _, err = say("explain", "T77")
    assert code == 1
    assert "there is no error code 'T77'" in err


# -- upkeep ------------------------------------------------------------------------------------------


def test_upkeep(graph, say):
    for age in range(18, 22):
        set_age(say, "Bo", age, "main")
    code, out, _ = say("optimize", "--quiet")
    assert code == 0
    assert out.splitlines()[0] == "optimize g.omni: 2 tables"
    assert document(say("optimize", "--json"))["tables"][0]["committed"] is False
    assert say("cleanup", "--quiet")[0] == 2
    code, out, err = say("cleanup", "--keep", "2", "--older-than", "0")
    assert (code, out) == (0, "")
    assert err.startswith("cleanup preview for g.omni: keep 2 commits of each branch, remove versions older than 0; ")
    assert err.endswith("run again with --confirm\n")
    preview = document(say("cleanup", "--keep", "2", "--json"))
    assert (preview["confirmed"], preview["tables"], preview["keep_versions"]) == (False, [], 2)
    done = document(say("cleanup", "--keep", "2", "--older-than", "2w", "--confirm", "--json"))
    assert (done["confirmed"], done["older_than_secs"], len(done["tables"])) == (True, 1_209_600, 2)
    assert say("recover") == (0, "recover g.omni: 0 unfinished writes\n", "")
    assert say("verify") == (0, "verify g.omni: sound\n", "")
    assert document(say("verify", "--json"))["sound"] is True


def test_verify_deep_names_a_damaged_file(graph, say):
    assert say("verify", "--deep") == (0, "verify g.omni: sound; every recorded digest matches\n", "")
    sound = document(say("verify", "--deep", "--json"))
    assert (sound["sound"], sound["problems"], sound["remarks"]) == (True, [], [])
    path = next(Path("g.omni").glob("nodes/*/data/*.lance"))
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    code, out, _ = say("verify", "--deep")
    assert code == 1
    assert path.name in out
    assert "1 problem" in out


@pytest.mark.parametrize("text", ["", "d", "1.5h", "-1d", "1h30m", "7 d", "7D", "9" * 19 + "w"])
def test_what_is_no_duration(graph, say, text):
    code, _, err = say("cleanup", "--older-than", text)
    assert code == 2
    assert "s, m, h, d, w" in err


def test_the_vectors_a_graph_lacks(folder, say, monkeypatch, clean_environment):
    Path("n.pg").write_text(
        'node Note {\n    slug: String @key\n    text: String\n    v: Vector(4)? @embed("text")\n}\n'
    )
    Path("n.jsonl").write_text(jsonl({"type": "Note", "data": {"slug": "a", "text": "words"}}))
    say("init", "--schema", "n.pg", "n.omni")
    assert "1 rows have no vector yet" in say("load", "-d", "n.jsonl", "--mode", "merge")[2]
    code, _, err = say("embed", "--in-graph", "--quiet")
    assert code == 1
    assert "no embedding provider is configured" in err
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")
    assert say("embed", "--in-graph", "--quiet") == (0, "embed n.omni branch=main: 1 Note\n", "")
    assert document(say("embed", "--in-graph", "--json"))["embedded_rows"] == 0
    assert say("embed", "--in-graph", "--clean")[0] == 2
    assert say("embed", "n.omni")[0] == 2


def test_analyze(graph, say):
    code, out, err = say("analyze", "degrees", "--edge", "Knows")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "Person: 3 nodes"
    answer = document(say("analyze", "pagerank", "--json", "--top", "1"))
    assert [row["id"] for row in answer["top"]["Person"]] == ["Bo"]
    Path("t.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n    rank: F64?"))
    say("schema", "apply", "--schema", "t.pg")
    code, out, _ = say("analyze", "pagerank", "--write", "rank", "--quiet")
    assert code == 0
    assert "3 nodes written, commit 0" in out
    assert say("analyze", "magic")[0] == 2
    assert say("analyze", "degrees", "--write", "a", "--write", "b")[0] == 2
    assert "did you mean 'Knows'?" in say("analyze", "pagerank", "--edge", "Know")[2]


def test_embed_a_file(folder, say, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    Path("spec.json").write_text('{"dimension": 4, "types": {"Person": {"target": "v", "fields": ["name"]}}}')
    words = ("embed", "--input", "people.jsonl", "--output", "out.jsonl", "--spec", "spec.json")
    assert say(*words) == (
        0, "embed fill_missing width=4: 3 embedded, 0 cleaned, 3 selected; people.jsonl -> out.jsonl\n", "",
    )  # fmt: skip
    assert document(say(*words, "--select", "name=Bo", "--json"))["mode"] == "reembed_selected"
    assert say("embed", "--input", "people.jsonl")[0] == 2
    assert say(*words, "--clean", "--reembed-all")[0] == 2
    assert say(*words, "--engine", "flink")[0] == 2
    assert say(*words, "--engine", "memory", "--master", "local[2]")[0] == 2
    assert say(*words, "--engine", "memory", "--quiet")[0] == 0
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")
    for variable in ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OMNIGRAPH_EMBED_PROVIDER"):
        monkeypatch.delenv(variable, raising=False)
    code, _, err = say(*words)
    assert code == 1
    assert "GEMINI_API_KEY" in err


# -- naming a graph ----------------------------------------------------------------------------------


def test_the_ways_to_name_a_graph(graph, say):
    config = Path("omnigraph.yaml").read_text()
    Path("omnigraph.yaml").write_text(config.replace("  local:\n    uri: g.omni", "  lab: {uri: g.omni}"))
    Path("omnigraph.yaml").write_text(Path("omnigraph.yaml").read_text().replace("graph: local", "graph: lab"))
    for words in (["g.omni"], ["--uri", "g.omni"], ["--target", "lab"], [], ["--uri", f"file://{graph}"]):
        assert say("branch", "list", *words) == (0, "main\n", ""), words
    for words in (["g.omni", "--uri", "g.omni"], ["g.omni", "--target", "lab"], ["--target", "s3://x/y"]):
        assert say("branch", "list", *words)[0] == 2, words
    code, _, err = say("branch", "list", "--target", "lap")
    assert code == 1
    assert "defined: 'lab'" in err
    assert "hint: did you mean 'lab'?" in err


def test_no_graph_at_all(folder, say):
    code, _, err = say("branch", "list")
    assert code == 1
    assert all(way in err for way in ("./my.omni", "--uri", "--target", "cli.graph")), err
    code, _, err = say("branch", "list", "nothing.omni")
    assert code == 1
    assert "there is no graph at" in err
    assert "omnigraph init" in err


def test_who_names_the_graph_first_is_told_that_it_comes_last(graph, say):
    code, _, err = say("branch", "create", "g.omni", "feature")
    assert code == 1
    assert "hint: the graph comes last: omnigraph branch create feature g.omni" in err
    assert say("branch", "create", "feature", "g.omni")[0] == 0
    assert "omnigraph init" in say("load", "-d", "people.jsonl", "--mode", "merge", "none.omni")[2]


def test_a_server_is_no_storage(folder, say):
    code, _, err = say("optimize", "https://user:secret@graph.example/x?token=1")
    assert code == 1
    assert err.startswith("error: 'omnigraph optimize' requires direct storage access; 'https://graph.example/x'")
    assert "secret" not in err
    assert "token" not in err


def test_the_actor(graph, say, monkeypatch):
    def actor(*words: str) -> Any:
        return document(say("branch", "create", f"b{time.monotonic_ns()}", "--json", "--quiet", *words))["actor_id"]

    assert actor() is None
    with Path("omnigraph.yaml").open("a") as file:
        file.write("auth: {env_file: .env.omni}\n")
    Path(".env.omni").write_text("OMNIGRAPH_ACTOR=from-file\n")
    assert actor() == "from-file"
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "from-environment")
    assert actor() == "from-environment"
    assert actor("--as", "from-option") == "from-option"


def test_destroying_something_far_away_needs_consent(folder, say, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"yes\n")))
    code, _, err = say("branch", "delete", "x", "s3://bucket/graph")
    assert code == 1
    assert err == (
        "error: 'omnigraph branch delete' on 's3://bucket/graph' was not confirmed; nothing was done\n"
        "hint: confirm with --yes\n"
    )


def test_config_shows_what_comes_from_where(graph, say, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "ana")
    found = {row["key"]: row for row in document(say("config", "--json"))["settings"]}
    assert found["graph"] == {"key": "graph", "value": "g.omni", "origin": "cli.graph"}
    assert found["actor"]["origin"] == "OMNIGRAPH_ACTOR"
    assert found["cli.branch"]["origin"] == "omnigraph.yaml"
    assert {row["key"]: row["origin"] for row in document(say("config", "--json", "x.omni"))["settings"]}[
        "graph"
    ] == "the URI"
    assert "cli.output_format" in say("config")[1]


def test_the_operators_own_file(graph, say):
    Path("home").mkdir()
    Path("home/config.yaml").write_text(
        f"operator: {{actor: maren}}\ndefaults: {{output: csv, store: {graph}}}\nservers: {{x: {{url: y}}}}\n"
    )
    Path("omnigraph.yaml").rename("other.yaml")
    code, out, err = say("read", "-q", "q.gq", "-n", "adults", "-p", "least=18")
    assert (code, out) == (0, "p.name,p.age\nAna,41\n")
    assert err == f"warning: unknown key 'servers' in {Path('home').absolute()}/config.yaml\n"
    settings = {row["key"]: row for row in document(say("config", "--json"))["settings"]}
    assert (settings["actor"]["value"], settings["cli.output_format"]["value"]) == ("maren", "csv")
    assert settings["graph"]["origin"].endswith("home/config.yaml")
    Path("other.yaml").rename("omnigraph.yaml")
    assert say("read", "-q", "q.gq", "-n", "adults", "-p", "least=18")[1].startswith("1 row from branch main")


def test_slips_in_the_configuration_are_told_once(graph, say):
    with Path("omnigraph.yaml").open("a") as file:
        file.write("colour: red\n")
    assert say("branch", "list") == (0, "main\n", "warning: unknown key 'colour' in omnigraph.yaml\n")


# -- failing well ------------------------------------------------------------------------------------


def test_usage_faults_say_how_it_is_meant(folder, say):
    code, out, err = say("load", "--data", "x.jsonl")
    assert (code, out) == (2, "")
    assert err == (
        "error: --mode is required: merge (add or update), append (add only) or overwrite\n"
        "usage: omnigraph load [OPTIONS] [FILE]... [URI]\nhint: run 'omnigraph load --help' for the options\n"
    )
    assert say("load", "--mode", "merge")[2].startswith("error: no file was given; write: omnigraph load FILE [URI]")
    assert "did you mean 'branch'?" in say("brnch", "list")[2]


def test_a_defect_is_no_traceback(graph, say, monkeypatch):
    monkeypatch.setattr("omnigraph.graph.Graph.branches", lambda _: 1 / 0)
    code, out, err = say("branch", "list", "--json")
    assert code == 1
    assert json.loads(out)["code"] == "internal"
    assert err.startswith("error: internal error: ZeroDivisionError: division by zero\nhint: ")
    monkeypatch.setenv("OMNIGRAPH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        say("branch", "list")


@pytest.mark.parametrize(
    "words",
    [["export"], ["read", "-e", "match { $p: Person } return { $p.name }", "-f", "csv"], ["diff", "1", "main"]],
    ids=lambda words: words[0],
)
def test_a_reader_that_goes_away_is_141(graph, say, words):
    Path("many.jsonl").write_text(jsonl(*({"type": "Person", "data": {"name": f"person {n}"}} for n in range(20_000))))
    assert say("load", "-d", "many.jsonl", "--mode", "merge")[0] == 0
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-m", "omnigraph", *words], stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


@pytest.mark.parametrize("wait_s", [0.0, 0.15, 0.3, 1.5], ids=str)
def test_an_interrupted_command_is_130_and_changes_nothing(graph, say, wait_s):
    """Interrupted while the engine is imported, or while it waits for its records."""
    command = [sys.executable, "-m", "omnigraph", "load", "-d", "-", "--mode", "merge"]
    with Path("omnigraph.yaml").open("a") as config:
        config.write("unknown: {}\n")  # its warning shows that the command has begun
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"warning: unknown key")
        time.sleep(wait_s)
        process.send_signal(signal.SIGINT)
        code, said = process.wait(timeout=60), process.stderr.read().decode()
        assert (code, said, process.stdout.read()) == (130, "interrupted: nothing was written\n", b"")
    assert len(document(say("commit", "list", "--json"))["commits"]) == 2


# -- what people type --------------------------------------------------------------------------------


def test_files_are_words(graph, say):
    for words in (
        ["load", "people.jsonl", "--mode", "merge"],
        ["load", "people.jsonl", "--mode", "merge", "g.omni"],
        ["ingest", "people.jsonl", "--branch", "intake", "g.omni"],
        ["lint", "q.gq"],
        ["lint", "q.gq", "g.omni"],
        ["lint", "-q", "q.gq", "g.omni"],
    ):
        code, _, err = say(*words)
        assert code == 0, err
    for words in (["load", "--mode", "merge"], ["load", "g.omni", "--mode", "merge"], ["lint"]):
        code, _, err = say(*words)
        assert (code, f"no file was given; write: omnigraph {words[0]} FILE" in err) == (2, True)
    assert say("load", "-d", "people.jsonl", "--mode", "merge", "people.jsonl", "g.omni")[0] == 2


def test_a_diff_takes_the_graph_first_or_last(graph, say):
    assert say("branch", "create", "fix")[0] == 0
    for words in (["main", "fix"], ["main", "fix", "g.omni"], ["g.omni", "main", "fix"]):
        code, out, err = say("diff", *words)
        assert (code, out) == (0, "0 changes\n"), err


def test_a_hint_repeats_every_word(graph, say):
    code, _, err = say("history", "./g.omni", "Person", "Ana")
    assert code == 1
    assert "omnigraph history Person Ana ./g.omni" in err


def test_hints_use_the_words_of_the_command_line(graph, say):
    both = say("read", "-e", "match { $p: Person } return { $p.name }", "-b", "main", "--at", "1")
    assert (both[0], "--branch and --at (--snapshot) exclude each other" in both[2]) == (2, True)
    assert "'omnigraph branch create' creates one" in say("log", "-b", "unknown")[2]
    missing = say("load", "people.jsonl", "--mode", "merge", "-b", "intake")[2]
    assert "hint: --from main creates it, as do 'omnigraph ingest' and 'omnigraph branch create intake'" in missing
    near = say("load", "people.jsonl", "--mode", "merge", "-b", "mian")[2]
    assert "hint: did you mean 'main'? --from main creates it" in near


def test_several_files_are_loaded_at_once(graph, say):
    Path("Person.csv").write_text("name,age\nCy,50\n")
    Path("Knows.csv").write_text("from,to\nCy,Ana\n")
    for words in (["Person.csv", "Knows.csv"], ["Person.csv", "Knows.csv", "g.omni"]):
        code, out, err = say("load", *words, "--mode", "merge", "--quiet")
        assert (code, out.endswith(": 1 node in 1 type, 1 edge in 1 type\n")) == (0, True), err
    assert "there is no graph at" in say("load", "Person.csv", "typo.omni", "--mode", "merge")[2]
    first = say("load", "g.omni", "Person.csv", "--mode", "merge")
    assert (first[0], "the graph comes last: omnigraph load Person.csv g.omni" in first[2]) == (2, True)


def test_a_word_that_is_not_a_graph_gets_the_option_that_takes_it(graph, say):
    say("branch", "create", "x")
    assert (
        "hint: the last argument is the graph; to name a branch, write --into main"
        in say("branch", "merge", "x", "main")[2]
    )
    code, _, err = say("read", "-q", "q.gq", "-n", "one", "name=Bo")
    assert (code, "'name=Bo' is not a graph; parameters are given as -p name=Bo" in err) == (2, True)


def test_a_schema_is_a_word(graph, say):
    Path("next.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n    town: String?"))
    assert say("init", "s.pg", "second.omni", "--quiet")[:2] == (0, "created graph second.omni\n")
    assert say("schema", "plan", "next.pg", "second.omni")[1].endswith("- add property Person.town: String?\n")
    assert "applied: yes" in say("schema", "apply", "next.pg")[1]
    assert "applied: yes" in say("schema", "apply", "--schema", "next.pg", "second.omni")[1]
    for words in (["init", "s.pg"], ["init", "third.omni", "s.pg"], ["schema", "apply", "second.omni"]):
        assert say(*words)[0] == 2, words
    assert say("schema", "apply", "--schema", "next.pg", "next.pg", "second.omni")[0] == 2
    assert not Path("third.omni").exists()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["checkout", "rev"], "every command takes the branch as --branch NAME"),
        (["merge", "rev"], "write 'omnigraph branch merge'"),
        (["branch", "rev"], "'omnigraph branch create rev' creates one"),
        (["tag", "v3"], "'omnigraph tag create v3' creates one"),
        (["brnach"], "did you mean 'branch'?"),
        (["load", "--type", "Film"], "the file name is the type (Film.csv)"),
        (["load", "--mod", "merge"], "did you mean '--mode'?"),
    ],
)
def test_an_unknown_command_or_option_gets_a_hint(folder, say, words, hint):
    code, out, err = say(*words)
    assert (code, out) == (2, "")
    assert f"\nhint: {hint}" in err


@pytest.mark.parametrize("words", [[], ["branch"]])
def test_a_group_without_a_command_prints_its_help_once(folder, say, words):
    code, _, err = say(*words)
    assert code == 2
    assert err.startswith("Usage: omnigraph ")
    assert (err.lower().count("usage:"), "error:" in err) == (1, False)


def test_usage_lines_have_no_braces(folder, say):
    assert say("diff", "--help")[1].startswith("Usage: omnigraph diff [OPTIONS] FROM [TO] [URI]\n")
    assert say("init", "--help")[1].startswith("Usage: omnigraph init [OPTIONS] [SCHEMA] URI\n")


def test_a_value_that_a_query_without_a_head_does_not_use(graph, say):
    code, _, err = say(
        "read", "-e", "match { $p: Person { name: $name } } return { $p.age }", "-p", "name=Bo", "-p", "nam=1"
    )
    assert (code, err) == (0, "warning: the query does not use '$nam'; did you mean 'name'?\n")


def test_times_counts_and_columns_of_lists(graph, say):
    commit = document(say("commit", "list", "--json"))["commits"][0]["graph_commit_id"]
    (created,) = [line for line in say("commit", "show", commit)[1].splitlines() if line.startswith("created_at: ")]
    assert created.startswith("created_at: 20")
    assert created.endswith("Z")
    for name in ("v1", "release-1"):
        say("tag", "create", name)
    assert len({line.index(f"  {commit}") for line in say("tag", "list")[1].splitlines()}) == 1
    profile = say("explain", "-q", "q.gq", "-n", "one", "--profile", "-p", "name=Bo")[1]
    assert "total   1 row in " in profile
    assert say("verify", "--deep", "--quiet")[1] == "verify g.omni: sound; every recorded digest matches\n"


def test_a_limited_diff_says_how_many_there_are(graph, say):
    init = document(say("commit", "list", "--json"))["commits"][-1]["graph_commit_id"]
    code, out, _ = say("diff", init, "main", "--limit", "1")
    assert (code, out.splitlines()[-1]) == (0, "1 of 4 changes")
    shown = document(say("diff", init, "main", "--limit", "1", "--json"))
    assert (len(shown["changes"]), shown["truncated"]) == (1, True)
    assert document(say("diff", init, "main", "--limit", "99", "--json"))["truncated"] is False


def test_a_second_graph_says_which_one_is_the_default(graph, say):
    code, out, err = say("init", "--schema", "s.pg", "second.omni")
    assert (code, out) == (0, "created graph second.omni\n")
    assert "commands without an address use g.omni, not second.omni" in err


# -- schema warnings ---------------------------------------------------------------------------------


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


def test_a_merge_of_nodes_without_key_and_id_notes_that_a_second_load_adds_them_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("f.pg").write_text("node Film {\n    title: String\n}\n")
    Path("Film.csv").write_text("title\nTides\n")
    assert run(["init", "--schema", "f.pg", "f.omni"]) == 0
    assert run(["load", "Film.csv", "--mode", "merge", "f.omni"]) == 0
    told = capsys.readouterr().err
    assert "note: node:Film: records without an id were added, and a second load adds them again" in told
    assert "declare a @key" in told


def test_a_drop_reports_the_values_it_removes_and_how_to_write_a_rename(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("old.pg").write_text("node Film {\n    title: String @key\n    runtime: I32?\n    poster: Blob?\n}\n")
    Path("new.pg").write_text("node Film {\n    title: String @key\n    length: I32?\n}\n")
    records = [{"type": "Film", "data": {"title": f"t{n}", "runtime": n or None}} for n in range(3)]
    records[0]["data"]["poster"] = "base64:AAAA"
    Path("films.jsonl").write_text(jsonl(*records))
    assert run(["init", "--schema", "old.pg", "f.omni"]) == 0
    assert run(["load", "films.jsonl", "--mode", "merge", "f.omni"]) == 0
    capsys.readouterr()
    for command in ("plan", "apply"):
        assert run(["schema", command, "--schema", "new.pg", "f.omni", "--quiet"]) == 0
        assert capsys.readouterr().err.splitlines() == [
            "warning: the change removes 1 value of Film.poster from the branch; older versions stay until they are "
            "cleaned up",
            "warning: the change removes 2 values of Film.runtime from the branch; older versions stay until they are "
            "cleaned up",
            'hint: if Film.length is runtime renamed, write: length: I32? @rename_from("runtime")',
        ]
    Path("none.pg").write_text("node Other {\n    number: I32 @key\n}\n")
    assert run(["schema", "plan", "--schema", "none.pg", "f.omni", "--allow-data-loss", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["losses"] == ["the change removes 3 rows of Film from all versions"]


def test_a_refused_change_that_may_be_a_rename_has_the_hint(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("old.pg").write_text("node Film {\n    title: String @key\n    runtime: I32\n}\n")
    Path("new.pg").write_text("node Film {\n    title: String @key\n    length: I32\n}\n")
    assert run(["init", "--schema", "old.pg", "f.omni"]) == 0
    assert run(["schema", "apply", "--schema", "new.pg", "f.omni"]) == 1
    assert 'write: length: I32 @rename_from("runtime")' in capsys.readouterr().err
