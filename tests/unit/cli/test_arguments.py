"""Arguments of commands: the graph, the actor, files and hints for mistakes."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from omnigraph.cli.program import build_program
from omnigraph.cli.reference import command_tree
from support.commands import SCHEMA, document


def test_ways_to_name_a_graph(graph, cli):
    config = Path("omnigraph.yaml").read_text()
    Path("omnigraph.yaml").write_text(config.replace("  local:\n    uri: g.omni", "  lab: {uri: g.omni}"))
    Path("omnigraph.yaml").write_text(Path("omnigraph.yaml").read_text().replace("graph: local", "graph: lab"))
    for words in (["g.omni"], ["--uri", "g.omni"], ["--target", "lab"], [], ["--uri", f"file://{graph}"]):
        assert cli("branch", "list", *words) == (0, "main\n", ""), words
    for words in (["g.omni", "--uri", "g.omni"], ["g.omni", "--target", "lab"], ["--target", "s3://x/y"]):
        assert cli("branch", "list", *words)[0] == 2, words
    code, _, err = cli("branch", "list", "--target", "lap")
    assert code == 1
    assert "defined: 'lab'" in err
    assert "hint: did you mean 'lab'?" in err


def test_missing_graph(folder, cli):
    code, _, err = cli("branch", "list")
    assert code == 1
    assert all(way in err for way in ("./my.omni", "--uri", "--target", "cli.graph")), err
    code, _, err = cli("branch", "list", "nothing.omni")
    assert code == 1
    assert "there is no graph at" in err
    assert "omnigraph init" in err


def test_graph_as_first_argument_has_a_hint(graph, cli):
    code, _, err = cli("branch", "create", "g.omni", "feature")
    assert code == 1
    assert "hint: the graph comes last: omnigraph branch create feature g.omni" in err
    assert cli("branch", "create", "feature", "g.omni")[0] == 0
    assert "omnigraph init" in cli("load", "-d", "people.jsonl", "--mode", "merge", "none.omni")[2]


def test_address_with_a_password_is_rejected(folder, cli):
    code, _, err = cli("optimize", "https://user:secret@graph.example/x?token=1")
    assert code == 1
    assert err.startswith("error: 'https://graph.example/x' contains a user name or password")
    assert "secret" not in err


def test_actor(graph, cli, monkeypatch):
    def actor(*words: str) -> Any:
        return document(cli("branch", "create", f"b{time.monotonic_ns()}", "--json", "--quiet", *words))["actor_id"]

    assert actor() is None
    with Path("omnigraph.yaml").open("a") as file:
        file.write("auth: {env_file: .env.omni}\n")
    Path(".env.omni").write_text("OMNIGRAPH_ACTOR=from-file\n")
    assert actor() == "from-file"
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "from-environment")
    assert actor() == "from-environment"
    assert actor("--as", "from-option") == "from-option"


def test_destructive_change_of_remote_graph_requires_confirmation(folder, cli, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"yes\n")))
    code, _, err = cli("branch", "delete", "x", "s3://bucket/graph")
    assert code == 1
    assert err == (
        "error: 'omnigraph branch delete' on 's3://bucket/graph' was not confirmed; nothing was done\n"
        "hint: confirm with --yes\n"
    )


def test_files_as_arguments(graph, cli):
    for words in (
        ["load", "people.jsonl", "--mode", "merge"],
        ["load", "people.jsonl", "--mode", "merge", "g.omni"],
        ["ingest", "people.jsonl", "--branch", "intake", "g.omni"],
        ["lint", "q.gq"],
        ["lint", "q.gq", "g.omni"],
        ["lint", "-q", "q.gq", "g.omni"],
    ):
        code, _, err = cli(*words)
        assert code == 0, err
    for words in (["load", "--mode", "merge"], ["load", "g.omni", "--mode", "merge"], ["lint"]):
        code, _, err = cli(*words)
        assert (code, f"no file was given; write: omnigraph {words[0]} FILE" in err) == (2, True)
    assert cli("load", "-d", "people.jsonl", "--mode", "merge", "people.jsonl", "g.omni")[0] == 2


def test_diff_accepts_graph_first_or_last(graph, cli):
    assert cli("branch", "create", "fix")[0] == 0
    for words in (["main", "fix"], ["main", "fix", "g.omni"], ["g.omni", "main", "fix"]):
        code, out, err = cli("diff", *words)
        assert (code, out) == (0, "0 changes\n"), err


def test_hint_repeats_all_arguments(graph, cli):
    code, _, err = cli("history", "./g.omni", "Person", "Ana")
    assert code == 1
    assert "omnigraph history Person Ana ./g.omni" in err


def test_hints_use_cli_syntax(graph, cli):
    both = cli("read", "-e", "match { $p: Person } return { $p.name }", "-b", "main", "--at", "1")
    assert (both[0], "--branch and --at (--snapshot) exclude each other" in both[2]) == (2, True)
    assert "'omnigraph branch create' creates one" in cli("log", "-b", "unknown")[2]
    missing = cli("load", "people.jsonl", "--mode", "merge", "-b", "intake")[2]
    assert "hint: --from main creates it, as do 'omnigraph ingest' and 'omnigraph branch create intake'" in missing
    near = cli("load", "people.jsonl", "--mode", "merge", "-b", "mian")[2]
    assert "hint: did you mean 'main'? --from main creates it" in near


def test_several_files_are_loaded_together(graph, cli):
    Path("Person.csv").write_text("name,age\nCy,50\n")
    Path("Knows.csv").write_text("from,to\nCy,Ana\n")
    for words in (["Person.csv", "Knows.csv"], ["Person.csv", "Knows.csv", "g.omni"]):
        code, out, err = cli("load", *words, "--mode", "merge", "--quiet")
        assert (code, out.endswith(": 1 node in 1 type, 1 edge in 1 type\n")) == (0, True), err
    assert "there is no graph at" in cli("load", "Person.csv", "typo.omni", "--mode", "merge")[2]
    first = cli("load", "g.omni", "Person.csv", "--mode", "merge")
    assert (first[0], "the graph comes last: omnigraph load Person.csv g.omni" in first[2]) == (2, True)


def test_argument_that_is_not_a_graph_has_an_option_hint(graph, cli):
    cli("branch", "create", "x")
    assert (
        "hint: the last argument is the graph; to name a branch, write --into main"
        in cli("branch", "merge", "x", "main")[2]
    )
    code, _, err = cli("read", "-q", "q.gq", "-n", "one", "name=Bo")
    assert (code, "'name=Bo' is not a graph; parameters are given as -p name=Bo" in err) == (2, True)


def test_a_file_of_queries_is_not_the_name_of_a_stored_query(graph, cli):
    for words in (("read", "q.gq"), ("read", "q.gq", "g.omni"), ("read", "g.omni", "q.gq")):
        code, _, err = cli(*words)
        assert code == 2
        assert err.startswith("error: 'q.gq' is a file of queries, not a stored query\n"), words
        assert "hint: write -q q.gq\n" in err
    assert "there is no stored query 'missing.gq'" in cli("read", "missing.gq")[2]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("profile", "-q", "q.gq"), "the profile of a query is that of 'omnigraph explain --profile -q FILE'"),
        (("serve", "--port", "80"), "write the address and the port as --bind 127.0.0.1:PORT"),
        (("embed",), "--in-graph computes the missing vectors of a graph; the other options are those of files"),
    ],
)
def test_hints_of_missing_options(graph, cli, words, hint):
    code, _, err = cli(*words)
    assert code == 2
    assert err.endswith(f"hint: {hint}\n")


def test_schema_as_argument(graph, cli):
    Path("next.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n    town: String?"))
    assert cli("init", "s.pg", "second.omni", "--quiet")[:2] == (0, "created graph second.omni\n")
    assert cli("schema", "plan", "next.pg", "second.omni")[1].endswith("- add property Person.town: String?\n")
    assert "applied: yes" in cli("schema", "apply", "next.pg")[1]
    assert "applied: yes" in cli("schema", "apply", "--schema", "next.pg", "second.omni")[1]
    for words in (["init", "s.pg"], ["init", "third.omni", "s.pg"], ["schema", "apply", "second.omni"]):
        assert cli(*words)[0] == 2, words
    assert cli("schema", "apply", "--schema", "next.pg", "next.pg", "second.omni")[0] == 2
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
def test_unknown_command_or_option_has_a_hint(folder, cli, words, hint):
    code, out, err = cli(*words)
    assert (code, out) == (2, "")
    assert f"\nhint: {hint}" in err


@pytest.mark.parametrize("words", [[], ["branch"]])
def test_group_without_command_prints_help_once(folder, cli, words):
    code, _, err = cli(*words)
    assert code == 2
    assert err.startswith("Usage: omnigraph ")
    assert (err.lower().count("usage:"), "error:" in err) == (1, False)


def test_help_shows_each_example_on_a_line(folder, cli):
    """A paragraph is filled, so each example is a paragraph."""
    commands = list(command_tree(get_command(build_program())))
    assert len(commands) > 100
    joined = {
        " ".join(path): paragraph
        for path, command in commands
        for paragraph in (command.help or "").split("\n\n")
        if "\n" in paragraph.strip() and paragraph.lstrip().startswith("omnigraph ")
    }
    assert joined == {}
    lines = [line.strip() for line in cli("explain", "--help")[1].splitlines()]
    assert "omnigraph explain T7" in lines


def test_usage_lines_have_no_braces(folder, cli):
    assert cli("diff", "--help")[1].startswith("Usage: omnigraph diff [OPTIONS] FROM [TO] [URI]\n")
    assert cli("init", "--help")[1].startswith("Usage: omnigraph init [OPTIONS] [SCHEMA] URI\n")


def test_unused_parameter_of_query_without_head(graph, cli):
    code, _, err = cli(
        "read", "-e", "match { $p: Person { name: $name } } return { $p.age }", "-p", "name=Bo", "-p", "nam=1"
    )
    assert (code, err) == (1, "error: the query has no parameter 'nam'\nhint: did you mean 'name'?\n")


def test_query_without_head_in_a_file_takes_parameters(folder, graph, cli):
    (folder / "bare.gq").write_text("match { $p: Person { name: $name } } return { $p.age }")
    code, out, err = cli("read", "-q", "bare.gq", "-p", "name=Bo", "--format", "csv")
    assert (code, err, len(out.splitlines())) == (0, "", 2)
    code, _, err = cli("read", "-q", "bare.gq", "-p", "name=Bo", "-p", "nam=1")
    assert (code, err) == (1, "error: the query has no parameter 'nam'\nhint: did you mean 'name'?\n")


@pytest.mark.parametrize("profile", [[], ["--profile"]])
def test_explain_takes_the_parameters_of_a_query_without_head(folder, graph, cli, profile):
    text = "match { $p: Person { name: $name } } return { $p.age }"
    (folder / "bare.gq").write_text(text)
    for source in (["-e", text], ["-q", "bare.gq"]):
        code, out, err = cli("explain", *source, *profile, "-p", "name=5")
        assert (code, err) == (0, "")
        assert "$name" in out
        code, _, err = cli("explain", *source, *profile, "-p", "name=Bo", "-p", "nam=1")
        assert (code, err) == (1, "error: the query has no parameter 'nam'\nhint: did you mean 'name'?\n")


def test_explain_with_a_schema_takes_the_parameters_of_a_query_without_head(folder, cli):
    (folder / "p.pg").write_text(SCHEMA)
    text = "match { $p: Person { name: $name } } return { $p.age }"
    code, out, err = cli("explain", "-e", text, "--schema", "p.pg", "-p", "name=5")
    assert (code, err, "$name" in out) == (0, "", True)
    for query in (text, f"query q($name: String) {{ {text} }}"):
        code, _, err = cli("explain", "-e", query, "--schema", "p.pg", "-p", "name=5", "-p", "nam=1")
        assert (code, err) == (1, "error: the query has no parameter 'nam'\nhint: did you mean 'name'?\n")


def test_explain_checks_the_given_parameters(graph, cli):
    assert cli("explain", "-q", "q.gq", "-n", "one")[0] == 0
    code, _, err = cli("explain", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-p", "nam=1")
    assert (code, err) == (1, "error: the query has no parameter 'nam'\nhint: did you mean 'name'?\n")


def test_times_counts_and_columns_of_lists(graph, cli):
    commit = document(cli("commit", "list", "--json"))["commits"][0]["graph_commit_id"]
    (created,) = [line for line in cli("commit", "show", commit)[1].splitlines() if line.startswith("created_at: ")]
    assert created.startswith("created_at: 20")
    assert created.endswith("Z")
    for name in ("v1", "release-1"):
        cli("tag", "create", name)
    assert len({line.index(f"  {commit}") for line in cli("tag", "list")[1].splitlines()}) == 1
    profile = cli("explain", "-q", "q.gq", "-n", "one", "--profile", "-p", "name=Bo")[1]
    assert "total   1 row in " in profile
    assert cli("verify", "--deep", "--quiet")[1] == "verify g.omni: sound; every recorded digest matches\n"


def test_second_graph_notes_the_default(graph, cli):
    code, out, err = cli("init", "--schema", "s.pg", "second.omni")
    assert (code, out) == (0, "created graph second.omni\n")
    assert "commands without an address use g.omni, not second.omni" in err


def test_a_graph_of_the_configuration_can_permit_approximate_search(folder, cli):
    (folder / "v.pg").write_text("node V { k: String @key  vec: Vector(2) }")
    text = "query near() { match { $x: V } return { $x.k } order { nearest($x.vec, [1, 0]) } limit 2 }"
    (folder / "v.gq").write_text(text)
    assert cli("init", "--schema", "v.pg", "v.omni")[0] == 0
    for setting, shown in {"false": "a vector of 2), best", "true": "a vector of 2, approx), best"}.items():
        named = f"graphs: {{ v: {{ uri: ./v.omni, search: {{ approximate: {setting} }} }} }}\ncli: {{ graph: v }}\n"
        (folder / "omnigraph.yaml").write_text(named)
        code, out, err = cli("explain", "-q", "v.gq")
        assert (code, err) == (0, "")
        assert shown in out
