"""Commands that create, load, query, embed and export graphs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.cli.main import run
from support.commands import SCHEMA, document, jsonl, set_age


def test_init_writes_a_working_configuration(folder, cli):
    assert cli("init", "--schema", "s.pg", "./g.omni") == (0, "created graph ./g.omni\ncreated omnigraph.yaml\n", "")
    assert "uri: ./g.omni" in (folder / "omnigraph.yaml").read_text()
    assert cli("branch", "list") == (0, "main\n", "")
    again = cli("init", "--schema", "s.pg", "./g.omni")
    assert again[0] == 1
    assert again[2].startswith("error: a graph already exists at")


def test_init_in_another_folder_writes_relative_address(folder, cli):
    (folder / "data").mkdir()
    answer = document(cli("init", "--schema", "s.pg", "data/g.omni", "--json"))
    assert answer == {"uri": "data/g.omni", "config_path": "data/omnigraph.yaml", "config_created": True}
    assert cli("branch", "list", "--config", "data/omnigraph.yaml") == (0, "main\n", "")
    (folder / "omnigraph.yaml").write_text("project: {name: mine}\n")
    assert document(cli("init", "--schema", "s.pg", "h.omni", "--json"))["config_created"] is False
    assert (folder / "omnigraph.yaml").read_text() == "project: {name: mine}\n"
    assert document(cli("init", "--schema", "s.pg", "i.omni", "--no-scaffold", "--json"))["config_path"] is None


def test_init_reports_schema_errors_with_position(folder, cli):
    (folder / "s.pg").write_text("node A { x: Strin }")
    code, out, err = cli("init", "--schema", "s.pg", "g.omni")
    assert (code, out) == (1, "")
    assert "--> s.pg:1:13" in err
    assert not (folder / "g.omni").exists()


def test_load(graph, cli):
    code, out, err = cli("load", "-d", "people.jsonl", "--mode", "overwrite", "g.omni")
    assert (code, out) == (0, "load g.omni branch=main mode=overwrite: 3 nodes in 1 type, 1 edge in 1 type\n")
    assert err == ""
    answer = document(cli("load", "-d", "people.jsonl", "--mode", "merge", "--json", "--quiet", "--as", "ana"))
    assert {key: answer[key] for key in ("uri", "branch", "mode", "nodes_loaded", "edges_loaded")} == {
        "uri": "g.omni", "branch": "main", "mode": "merge", "nodes_loaded": 3, "edges_loaded": 1,
    }  # fmt: skip
    assert answer["actor_id"] == answer["commit"]["actor_id"] == "ana"
    assert "embedded_rows" not in answer


def test_load_from_stdin(graph, cli, monkeypatch):
    text = jsonl({"type": "Person", "data": {"name": "Cleo"}}, {"type": "Person", "data": {"nam": "Dov"}})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, err = cli("load", "-d", "-", "--mode", "merge", "--rejects", "bad.jsonl")
    assert code == 0
    assert "1 node in 1 type" in out
    assert "warning: 1 invalid record was set aside in bad.jsonl" in err
    (reject,) = (json.loads(line) for line in Path("bad.jsonl").read_text().splitlines())
    assert (reject["line"], reject["type"]) == (2, "Person")


def test_invalid_record_is_reported_with_its_line(graph, cli):
    Path("bad.jsonl").write_text('{"type": "Person", "data": {"name": "X"}}\n{"type": "Persn", "data": {}}\n')
    code, _, err = cli("load", "-d", "bad.jsonl", "--mode", "merge")
    assert code == 1
    assert "line 2" in err
    assert "hint: did you mean 'Person'?" in err


def test_ingest_creates_the_branch(graph, cli):
    code, out, _ = cli("ingest", "-d", "people.jsonl", "--branch", "intake/may", "--as", "bo")
    assert code == 0
    assert out == (
        "ingest g.omni branch=intake/may base=main mode=merge (new branch)\n"
        "  edge:Knows 1 row\n  node:Person 3 rows\nactor: bo\n"
    )
    answer = document(cli("ingest", "-d", "people.jsonl", "--branch", "intake/may", "--json"))
    assert (answer["branch_created"], answer["base_branch"]) == (False, "main")
    assert answer["tables"] == [
        {"table_key": "edge:Knows", "rows_loaded": 1},
        {"table_key": "node:Person", "rows_loaded": 3},
    ]
    assert cli("load", "-d", "people.jsonl", "--mode", "merge", "--branch", "new")[0] == 1
    assert cli("load", "-d", "people.jsonl", "--mode", "merge", "--branch", "new", "--from", "main")[0] == 0


def test_export_loads_back(graph, cli):
    code, out, _ = cli("export")
    assert code == 0
    kinds = ["edge" if "edge" in json.loads(line) else "node" for line in out.splitlines()]
    assert kinds == ["edge", "node", "node", "node"]
    assert cli("export", "--type", "Person")[1].count("\n") == 3
    assert cli("export", "--table", "edge:Knows")[1].count("\n") == 1
    assert cli("export", "--table", "edge:Knows", "--type", "Person")[1] == out
    assert cli("export", "--type", "Nobody")[:2] == (1, "")
    assert cli("export", "-o", "all.jsonl")[:2] == (0, "")
    assert Path("all.jsonl").read_text() == out
    assert cli("init", "--schema", "s.pg", "h.omni")[0] == 0
    assert cli("load", "-d", "all.jsonl", "--mode", "append", "h.omni")[0] == 0
    assert cli("export", "h.omni")[1] == out


def test_export_as_files(graph, cli):
    code, out, err = cli("export", "--format", "parquet", "--out", "files")
    assert (code, out, err) == (0, "", "note: 4 rows written to files\n")
    assert cli("init", "--schema", "s.pg", "h.omni")[0] == 0
    assert cli("load", "-d", "files", "--mode", "append", "h.omni")[0] == 0
    assert cli("export", "h.omni")[1] == cli("export")[1]
    assert cli("export", "--format", "csv", "--type", "Person", "--out", "csv", "--quiet")[0] == 0
    assert any(path.suffix == ".csv" for path in Path("csv").iterdir())
    assert cli("export", "--format", "parquet")[0] == 2
    assert cli("export", "--format", "xml", "--out", "x")[0] == 2


def test_load_engine_options(graph, cli):
    answer = document(
        cli("load", "-d", "people.jsonl", "--mode", "merge", "--engine", "memory", "--job-id", "j1", "--json")
    )
    again = document(
        cli("load", "-d", "people.jsonl", "--mode", "merge", "--engine", "memory", "--job-id", "j1", "--json")
    )
    assert again["commit"]["graph_commit_id"] == answer["commit"]["graph_commit_id"]
    for words in (
        ["--engine", "abacus"],
        ["--engine", "memory", "--master", "local[2]"],
        ["--conf", "spark.ui.enabled"],
        ["--embed", "maybe"],
    ):
        assert cli("load", "-d", "people.jsonl", "--mode", "merge", *words)[0] == 2, words


@pytest.mark.parametrize("word", ["read", "query"])
def test_read(graph, cli, word):
    expected = "1 row from branch main via adults\np.name | p.age\n-------+------\nAna    |    41\n"
    assert cli(word, "-q", "q.gq", "-n", "adults", "-p", "least=18") == (0, expected, "")
    assert cli(word, "-q", "q.gq", "--name", "adults", "--params", '{"least": 18}', "g.omni") == (0, expected, "")
    assert (
        cli("--quiet", word, "-q", "q.gq", "-n", "adults", "-p", "least=18", "-f", "csv")[1] == "p.name,p.age\nAna,41\n"
    )


def test_string_parameter_stays_a_string(graph, cli):
    assert cli("read", "-q", "q.gq", "-n", "one", "-p", "name=29", "-f", "csv")[1] == "p.age\n\n"


def test_query_without_head_types_parameters_by_property(graph, cli):
    text = "match { $p: Person { name: $n } } return { count($p) as n }"
    assert cli("read", "-e", text, "-p", "n=29", "-f", "csv") == (0, "n\n1\n", "")
    code, _, told = cli("read", "-e", text)
    assert code == 1
    assert told.endswith("hint: pass its value: -p n=…\n")


def test_query_text_from_option_and_stdin(graph, cli, monkeypatch):
    text = "query n() { match { $p: Person } return { count($p) as n } }"
    assert cli("read", "-e", text, "-f", "csv") == (0, "n\n3\n", "")
    bare = "match { $p: Person } return { count($p) as n }"
    assert cli("read", "-e", bare)[1] == "1 row from branch main via inline\nn\n-\n3\n"
    assert cli("change", "-e", 'insert Person { name: "Cleo" }')[1] == (
        "change inline branch=main: 1 node, 0 edges affected\n"
    )
    assert cli("change", "-e", 'delete Person where name = "Cleo"')[0] == 0
    assert cli("explain", "-e", bare, "g.omni")[1].startswith("query inline()")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert cli("read", "-q", "-", "-f", "csv") == (0, "n\n3\n", "")


def test_read_into_files(graph, cli):
    words = ("read", "-q", "q.gq", "-n", "adults", "-p", "least=1", "-f", "parquet")
    assert cli(*words, "-o", "rows.parquet")[:2] == (0, "")
    assert pq.read_table("rows.parquet").to_pydict() == {"p.name": ["Ana", "Bo"], "p.age": [41, 17]}
    assert cli(*words, "-o", "no/such/rows.parquet")[0] == 1


def test_change_and_time_travel(graph, cli):
    words = ("change", "-q", "q.gq", "-n", "birthday", "-p", "name=Bo", "-p", "age=18")
    assert cli(*words, "--as", "ana", "-m", "Bo is 18") == (
        0, "change birthday branch=main: 1 node, 0 edges affected\nactor: ana\n", "",
    )  # fmt: skip
    commits = document(cli("commit", "list", "--json"))["commits"]
    assert [commit["message"] for commit in commits] == ["Bo is 18", None, None]
    before = commits[1]["graph_commit_id"]
    read = ("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv")
    assert cli(*read)[1] == "p.age\n18\n"
    for point in (before, "2", f"manifest:main:v{commits[1]['manifest_version']}"):
        assert cli(*read, "--snapshot", point)[1] == "p.age\n17\n", point
    assert cli(*read, "--snapshot", "2999-01-01T00:00:00Z")[1] == "p.age\n18\n"
    answer = document(cli(*read[:-2], "--json", "--at", before))
    assert (answer["target"], answer["graph_commit_id"]) == ({"branch": None, "snapshot": before}, before)
    nothing = document(cli("mutate", "-q", "q.gq", "-n", "birthday", "-p", "name=X", "-p", "age=1", "--json"))
    assert nothing == {
        "branch": "main", "query_name": "birthday", "affected_nodes": 0, "affected_edges": 0,
        "actor_id": None, "commit": None,
    }  # fmt: skip


def test_failed_precondition_exits_with_4(graph, cli):
    words = ("change", "-q", "q.gq", "-n", "birthday", "-p", "name=Bo", "-p", "age=18")
    head = document(cli("commit", "list", "--json", "--limit", "1"))["commits"][0]["graph_commit_id"]
    assert cli(*words, "--if-commit", head)[0] == 0
    code, out, err = cli(*words, "--if-commit", head, "--json")
    assert code == 4
    failure = json.loads(out)["precondition_failure"]
    assert failure["expected"] == head != failure["actual"]
    assert err.startswith("error: branch 'main' is at commit")


def test_wrong_command_for_a_query(graph, cli):
    assert "omnigraph change" in cli("read", "-q", "q.gq", "-n", "birthday")[2]
    assert "omnigraph read" in cli("change", "-q", "q.gq", "-n", "adults")[2]
    code, _, err = cli("read", "-q", "q.gq")
    assert code == 1
    assert err == "error: there are several queries: 'adults', 'birthday', 'one'\nhint: choose one with --name NAME\n"


def test_unknown_parameter_is_refused(graph, cli):
    code, _, err = cli("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-p", "nam=Ana")
    assert (code, err) == (1, "error: the query has no parameter 'nam'\nhint: did you mean 'name'?\n")


def test_aliases(graph, cli):
    with Path("omnigraph.yaml").open("a") as file:
        file.write(
            "aliases:\n  adults: {command: read, query: q.gq, name: adults, args: [least], format: csv}\n"
            "  birthday: {command: change, query: q.gq, name: birthday, args: [name, age]}\n"
        )
    assert cli("read", "--alias", "adults", "18") == (0, "p.name,p.age\nAna,41\n", "")
    assert cli("read", "--alias", "adults", "18", "--params", '{"least": 1}')[1] == "p.name,p.age\nAna,41\nBo,17\n"
    assert cli("change", "--alias", "birthday", "Bo", "18")[0] == 0
    assert "alias 'birthday' is for 'change', not for 'read'" in cli("read", "--alias", "birthday", "Bo", "18")[2]
    assert "takes 1 arguments, not 2" in cli("read", "--alias", "adults", "18", "19")[2]
    assert "did you mean 'adults'?" in cli("read", "--alias", "adult")[2]
    Path("bare.yaml").write_text("aliases:\n  adults: {command: read, query: q.gq, name: adults, args: [least]}\n")
    code, out, _ = cli("read", "--config", "bare.yaml", "--alias", "adults", "g.omni", "18", "-f", "csv")
    assert (code, out) == (0, "p.name,p.age\nAna,41\nBo,18\n")


def test_change_shows_returned_rows(graph, cli):
    text = "update Person set { age: 5 } where age < 40 as $p return { $p.name, $p.age }"
    words = ("change", "-e", text, "--as", "ana")
    counted = "change inline branch=main: 1 node, 0 edges affected\nactor: ana\n"
    assert cli(*words) == (
        0,
        "1 row from branch main via inline\np.name | p.age\n-------+------\nBo     |     5\n",
        counted,
    )
    assert cli(*words, "-f", "csv") == (0, "p.name,p.age\nBo,5\n", counted)
    assert cli(*words, "-f", "jsonl")[1].splitlines()[1:] == ['{"p.name":"Bo","p.age":5}']
    assert cli(*words, "-f", "parquet", "-o", "rows.parquet") == (0, "", counted)
    assert pq.read_table("rows.parquet").to_pylist() == [{"p.name": "Bo", "p.age": 5}]
    for how in (("--json",), ("-f", "json")):
        answer = document(cli(*words, *how))
        assert (answer["columns"], answer["rows"]) == (["p.name", "p.age"], [{"p.name": "Bo", "p.age": 5}])
        assert (answer["affected_nodes"], answer["commit"]["actor_id"]) == (1, "ana")
    assert cli(*words, "-f", "xml")[0] == 2
    assert cli(*words, "-f", "csv", "--json")[0] == 2


def test_pages(graph, cli):
    words = ("read", "-e", "match { $p: Person } return { $p.name } order { $p.name }", "--page", "2")
    code, out, told = cli(*words, "-f", "csv")
    assert (code, out) == (0, "p.name\n29\nAna\n")
    assert told.startswith("next: ")
    cursor = told.removeprefix("next: ").strip()
    set_age(cli, "Bo", 18, "main")
    assert cli(*words, "-f", "csv", "--after", cursor) == (0, "p.name\nBo\n", "")
    first = document(cli(*words, "--json"))
    assert [row["p.name"] for row in first["rows"]] == ["29", "Ana"]
    assert "next" not in document(cli(*words, "--json", "--after", first["next"]))
    assert "next" in json.loads(cli(*words, "-f", "jsonl")[1].splitlines()[0])
    assert cli("read", "-e", words[2], "--after", cursor)[0] == 2
    code, _, told = cli(*words[:-1], "2", "--after", "x")
    assert (code, "page cursor rejected" in told) == (1, True)


def test_embed_in_graph_fills_missing_vectors(folder, cli, monkeypatch, clean_environment):
    Path("n.pg").write_text(
        'node Note {\n    slug: String @key\n    text: String\n    v: Vector(4)? @embed("text")\n}\n'
    )
    Path("n.jsonl").write_text(jsonl({"type": "Note", "data": {"slug": "a", "text": "words"}}))
    cli("init", "--schema", "n.pg", "n.omni")
    assert "1 row has no vector yet" in cli("load", "-d", "n.jsonl", "--mode", "merge")[2]
    code, _, err = cli("embed", "--in-graph", "--quiet")
    assert code == 1
    assert "no embedding provider is configured" in err
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")
    assert cli("embed", "--in-graph", "--quiet") == (0, "embed n.omni branch=main: 1 Note\n", "")
    assert document(cli("embed", "--in-graph", "--json"))["embedded_rows"] == 0
    assert cli("embed", "--in-graph", "--clean")[0] == 2
    assert cli("embed", "n.omni")[0] == 2


def test_analyze(graph, cli):
    code, out, err = cli("analyze", "degrees", "--edge", "Knows")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "Person: 3 nodes"
    answer = document(cli("analyze", "pagerank", "--json", "--top", "1"))
    assert [row["id"] for row in answer["top"]["Person"]] == ["Bo"]
    Path("t.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n    rank: F64?"))
    cli("schema", "apply", "--schema", "t.pg")
    code, out, _ = cli("analyze", "pagerank", "--write", "rank", "--quiet")
    assert code == 0
    assert "3 nodes written, commit 0" in out
    assert cli("analyze", "magic")[0] == 2
    assert cli("analyze", "degrees", "--write", "a", "--write", "b")[0] == 2
    assert "did you mean 'Knows'?" in cli("analyze", "pagerank", "--edge", "Know")[2]


def test_analyze_takes_the_parameters_of_the_algorithm(graph, cli):
    def values(*words):
        top = document(cli("analyze", "closeness", "--json", *words))["top"]["Person"]
        return {row["id"]: row["closeness"] for row in top}

    opened = og.open(graph)
    expected = {
        directed: opened.analyze("closeness", parameters={"directed": directed}).tables["Person"].to_pylist()
        for directed in (True, False)
    }
    for directed, rows in expected.items():
        given = ("--set", f"directed={str(directed).lower()}", "--set", "samples=100")
        assert values(*given) == {row["id"]: row["closeness"] for row in rows}
    assert expected[True] != expected[False]
    assert cli("analyze", "similarity", "--set", "measure=cosine", "--quiet")[0] == 0  # a text that is not JSON
    code, _, err = cli("analyze", "closeness", "--set", "sampels=3")
    assert code == 1
    assert "samples" in err
    code, _, err = cli("analyze", "closeness", "--set", "samples")
    assert code == 2
    assert "'samples' is not of the form NAME=VALUE" in err


def test_embed_a_file(folder, cli, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    Path("spec.json").write_text('{"dimension": 4, "types": {"Person": {"target": "v", "fields": ["name"]}}}')
    words = ("embed", "--input", "people.jsonl", "--output", "out.jsonl", "--spec", "spec.json")
    assert cli(*words) == (
        0, "embed fill_missing width=4: 3 embedded, 0 cleaned, 3 selected; people.jsonl -> out.jsonl\n", "",
    )  # fmt: skip
    assert document(cli(*words, "--select", "name=Bo", "--json"))["mode"] == "reembed_selected"
    assert cli("embed", "--input", "people.jsonl")[0] == 2
    assert cli(*words, "--clean", "--reembed-all")[0] == 2
    assert cli(*words, "--engine", "flink")[0] == 2
    assert cli(*words, "--engine", "memory", "--master", "local[2]")[0] == 2
    assert cli(*words, "--engine", "memory", "--quiet")[0] == 0
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")
    for variable in ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OMNIGRAPH_EMBED_PROVIDER"):
        monkeypatch.delenv(variable, raising=False)
    code, _, err = cli(*words)
    assert code == 1
    assert "GEMINI_API_KEY" in err


def test_load_of_nodes_without_key_notes_duplicates(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("f.pg").write_text("node Film {\n    title: String\n}\n")
    Path("Film.csv").write_text("title\nTides\n")
    assert run(["init", "--schema", "f.pg", "f.omni"]) == 0
    assert run(["load", "Film.csv", "--mode", "merge", "f.omni"]) == 0
    told = capsys.readouterr().err
    assert "note: node:Film: records without an id were added, and a second load adds them again" in told
    assert "declare a @key" in told


def test_load_of_a_table_with_other_names(graph, cli, folder):
    (folder / "team.tsv").write_text("Who\tYears\tx\nCleo\t30\t1\nDan\t-\t2\n")
    options = ("--data", "Person=team.tsv", "--column", "Who=name", "--column", "Person:Years=age", "--null", "-")
    code, out, _ = cli("load", *options, "--column", "x=", "--mode", "append", "--dry-run")
    assert (code, out) == (0, "dry run g.omni branch=main mode=append: 2 nodes in 1 type, 0 edges in 0 types\n")
    assert "Cleo" not in cli("export", "g.omni")[1]
    code, out, _ = cli("load", *options, "--column", "x=", "--mode", "append")
    assert (code, out) == (0, "load g.omni branch=main mode=append: 2 nodes in 1 type, 0 edges in 0 types\n")
    assert '"name":"Dan"' in cli("export", "g.omni")[1].replace(" ", "")
    code, _, err = cli("load", *options, "--mode", "append")
    assert code == 1
    assert "has no property 'x'" in err
    code, _, err = cli("load", *options, "--column", "x", "--mode", "append")
    assert code == 1
    assert "'x' does not map a column" in err
    code, _, err = cli("load", "--data", "Person=-", "--mode", "append")
    assert code == 2
    assert "records name their types" in err
    code, out, _ = cli("ingest", *options, "--column", "x=", "--branch", "b", "--dry-run", "--json")
    assert code == 0
    assert json.loads(out)["tables"] == [{"table_key": "node:Person", "rows_loaded": 2}]
    assert "b" not in cli("branch", "list")[1].split()


PEOPLE_CSV = "email,age,boss\nana@x.org,31,\nbo@x.org,,ana@x.org\ncleo@x.org,40,bo@x.org\n"


def tables(folder: Path) -> tuple[str, ...]:
    (folder / "people.csv").write_text(PEOPLE_CSV)
    (folder / "knows.csv").write_text("a,b,since\nana@x.org,bo@x.org,2020-01-01\nbo@x.org,zoe@x.org,2021-01-01\n")
    return ("init", "--from", "people.csv", "--from", "knows.csv:a->b", "new.omni")


def test_init_from_tables_asks(folder, cli, monkeypatch):
    command = tables(folder)
    (folder / "knows.csv").write_text("a,b,since\nana@x.org,bo@x.org,2020-01-01\n")
    code, draft, _ = cli(*command, "--dry-run")
    assert code == 0
    assert "edge Knows: People -> People {  // a, b: 100% found in People.email" in draft
    assert not (folder / "schema.pg").exists()
    code, out, err = cli(*command)
    assert (code, out.strip()) == (1, draft.strip())
    assert "the schema was not confirmed; it is in 'schema.pg', and no graph was created" in err
    assert (folder / "schema.pg").read_text() == draft
    code, out, _ = cli(*command, "--yes")
    assert code == 0
    assert out.endswith(
        "created graph new.omni\ncreated schema.pg\ncreated omnigraph.yaml\n"
        "loaded 2 rows of edge:Boss\nloaded 1 row of edge:Knows\nloaded 3 rows of node:People\n"
    )
    asked = "match { $p: People  $p boss $b } return { $b.email, count($p) as n } order { $b.email }"
    assert json.loads(cli("read", "-e", asked, "--json", "new.omni")[1])["rows"] == [
        {"b.email": "ana@x.org", "n": 1},
        {"b.email": "bo@x.org", "n": 1},
    ]


def test_init_from_tables_with_an_edited_schema(folder, cli):
    command = tables(folder)
    (folder / "schema.pg").write_text("node People { email: String @key  age: I32? }\nedge Knows: People -> People\n")
    code, _, err = cli(*command, "--yes")
    assert code == 1
    assert "are not the keys of a table; 50.0% are found in People.email" in err
    code, draft, _ = cli("init", "--from", "people.csv", "--from", "knows.csv:a->people.b", "new.omni", "--dry-run")
    assert code == 0
    assert "a: 100% found in People.email, b: 50.0% found in People.email" in draft
    (folder / "knows.csv").write_text("a,b,since\n" + "ana@x.org,bo@x.org,x\n" * 199 + "ana@x.org,zoe@x.org,x\n")
    code, _, err = cli(*command, "--yes")
    assert code == 1
    assert "'schema.pg' exists and is another schema" in err
    code, out, err = cli("init", "schema.pg", *command[1:], "--json")
    assert code == 0
    assert "1 invalid record set aside in rejects.jsonl" in err
    assert [table["rows_loaded"] for table in json.loads(out)["load"]["tables"]] == [199, 3]
    (reject,) = (folder / "rejects.jsonl").read_text().splitlines()
    assert (json.loads(reject)["line"], json.loads(reject)["column"]) == (201, "b")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "people.csv", "--from", "people.csv", "x.omni"), "two tables are named 'people'"),
        (("--from", "*.csv:a->b", "x.omni"), "the ends of edges belong to one file, and 2 files match"),
        (("--from", "people.csv", "s.pg", "x.omni", "--dry-run"), "--dry-run prints an inferred schema"),
        (("s.pg", "x.omni", "--null", "NA"), "belong to --from FILE"),
        (("--from", "people.csv", "https://example.org"), "is a server"),
        (("--from", "none.csv", "x.omni"), "there is no file 'none.csv'"),
    ],
)
def test_init_from_tables_refuses(folder, cli, words, message):
    tables(folder)
    code, _, err = cli("init", *words)
    assert code in (1, 2)
    assert message in err


def test_init_from_named_tables_without_load(folder, cli):
    tables(folder)
    code, out, _ = cli("init", "--from", "Staff=people.csv", "n.omni", "--yes", "--no-load", "--no-scaffold")
    assert code == 0
    assert "node Staff {" in out
    assert "loaded" not in out
