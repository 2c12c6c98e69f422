"""The shell: complete input, completion, commands, and sessions through a terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from omnigraph.cli.main import run
from omnigraph.cli.shell.completion import CompletionWords, complete
from omnigraph.cli.shell.session import COMMANDS, EndSession, Session, lines_of
from omnigraph.cli.shell.statements import inputs, is_complete
from omnigraph.cli.shell.terminal import SchemaCompleter, interact
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.schema.check import compile_schema

SCHEMA = """
node Person {
    name: String @key
    age: I32?
}

node Town {
    label: String @key
    people: I64?
}

edge LivesIn: Person -> Town {
    since: Date?
}

edge Knows: Person -> Person
"""
CATALOG = compile_schema(SCHEMA)
WORDS = CompletionWords(
    commands=tuple(COMMANDS),
    branches=lambda: ["main", "review/x"],
    formats=("table", "kv"),
    queries=lambda: ["adults"],
    points=frozenset({"branch", "diff"}),
)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", True),
        (":help", True),
        ("match {", False),
        ("match { $p: Person }", False),
        ("match { $p: Person }\n", True),
        ("match { $p: Person } return { $p.name }", True),
        ("match { $p: Person } return { $p.name", False),
        ("query q() { match { $p: Person } return { $p.name } }", True),
        ("query q() {", False),
        ('insert Person { name: "A', False),
        ('insert Person { name: "}" }', True),
        ("insert Person { name: $n } /* not", False),
        ("match { $p: Person } } return", True),
        ("match { $p: Person }\nreturn", False),
        ("match { $p: Person } retrun { $p.name }", True),
        ("match { $p: Person };", True),
        ("match {\n:quit", True),
        ("match { $p: Person } with { $p }", False),
        ("match { $p: Person } with { $p } match { $p: Person }", False),
        ("match { $p: Person } with { $p } return { $p.name }", True),
        ("match { $p: Person } with { $p }\n", True),
    ],
)
def test_enter_runs_complete_input(text, whole):
    assert is_complete(text) is whole


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("match { $p: P } retrun { $p.n }\ninsert P { n: 1 }\n", 2),
        ("match { $p: P\n:tables\n:quit\n", 3),
        ("insert P { n: 1\ninsert P { n: 2 }\nmatch { $p: P } return { $p.n }\n", 3),
        ("match { $p: P }\nreturn { $p.n }\nlimit 1\n", 1),
        ("match {\n\n  $p: P\n}\nreturn {\n  $p.n\n}\n", 1),
        ("query q() {\nmatch { $p: P }\nreturn { $p.n }\n}\n", 1),
        ("query q() {\nquery r() {\n", 2),
        ("atomic {\ninsert P { n: 1 }\ndelete P where n = 2\n}\n", 1),
        ("insert P {\nmatch: 1\n}\n", 1),
        ("match { $p: P }\n\n$q\n", 2),
        ("match { $p: P }\nwith { $p }\nlimit 1\nmatch { $p e $q }\nreturn { $q.n }\n", 1),
        ("match { $p: P }\nwith { $p }\nreturn { $p.n }\nmatch { $p: P } return { $p.n }\n", 2),
        ("exit\nhelp\n", 2),
    ],
)
def test_malformed_input_does_not_absorb_the_next(text, parts):
    assert len(list(inputs(text.splitlines(keepends=True)))) == parts


def test_bare_blocks_are_queries():
    statements = (
        'insert Person { name: "A" }',
        'upsert Person { name: "A" }',
        'atomic { insert Person { name: "A" } }',
    )
    for text in (*statements, "match { $p: Person } return { $p.name } limit 3"):
        assert len(parse_queries(text).queries) == 1


@pytest.mark.parametrize(
    ("text", "partial", "found"),
    [
        ("", "", {"match", "insert", "query"}),
        ("mat", "mat", {"match"}),
        ("match { $p: ", "", {"Person", "Town"}),
        ("match { $p: Per", "Per", {"Person"}),
        ("match { $p: Person { ", "", {"name", "age"}),
        ("match { $p: Person $p ", "", {"livesIn", "knows"}),
        ("match { $t: Town $t ", "", {"livesIn"}),
        ("match { $p: Person $p.", "", {"name", "age"}),
        ("match { $p livesIn $t $t.", "", {"label", "people"}),
        ("match { $p: Person no", "no", {"not", "now"}),
        ("match { $p: Person $", "$", {"$p"}),
        ("match { $p: Person optional { $p ", "", {"livesIn", "knows"}),
        ("match { $p: Person } return { $p.name } ha", "ha", {"having"}),
        ("match { $p: Person } return { $p.a", "a", {"age"}),
        ("match { $p: Person } return { co", "co", {"count"}),
        ("match { $p: Person } wi", "wi", {"with"}),
        ("match { $p: Person } with { co", "co", {"count"}),
        ("match { $p: Person } return { $p.name } or", "or", {"order"}),
        ("match { $p: Person } return { $p.name } order { $p.name d", "d", {"desc"}),
        ("insert ", "", {"Person", "Knows"}),
        ("update ", "", {"Person", "Town"}),
        ("insert Person { ", "", {"name", "age"}),
        ("insert LivesIn { ", "", {"from", "to", "since"}),
        ("update Town set { ", "", {"people"}),
        ("delete Town where ", "", {"label"}),
        ("query q($n: ", "", {"String", "I32"}),
        (":br", ":br", {":branch"}),
        (":branch re", "re", {"review/x"}),
        (":diff main r", "r", {"review/x"}),
        (":format k", "k", {"kv"}),
        (":run a", "a", {"adults"}),
        (":schema Liv", "Liv", {"LivesIn"}),
    ],
)
def test_completion(text, partial, found):
    got_partial, got = complete(text, CATALOG, WORDS)
    assert got_partial == partial
    assert found <= set(got), got
    assert all(word.lower().startswith(partial.lower()) for word in got)


def test_update_does_not_propose_edges():
    assert "Knows" not in complete("update ", CATALOG, WORDS)[1]


# -- sessions ----------------------------------------------------------------------------------------


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = init(tmp_path / "towns.omni", SCHEMA, actor="ana")
    people = [{"type": "Person", "data": {"name": name, "age": age}} for name, age in (("Ana", 41), ("Bo", 17))]
    graph.load([*people, {"edge": "Knows", "from": "Ana", "to": "Bo"}], mode="merge", message="first")
    return graph


def said(session: Session, *inputs: str) -> str:
    return "\n".join(lines_of(session, inputs))


@pytest.fixture
def session(graph: Graph) -> Session:
    return Session(graph, timing=False)


def test_query_and_change(session):
    assert session.prompt == "towns.omni:main> "
    assert said(session, "match { $p: Person } return { $p.name } order { $p.name }") == (
        "2 rows from branch main via inline\np.name\n------\nAna   \nBo    "
    )
    assert said(session, 'insert Town { label: "Aa" }').startswith("1 node, 0 edges affected on main\ncommit 0")
    text = 'upsert Town { label: "Aa" } existing { people: 7 } as $t return { $t.people }'
    rows = "1 row from branch main via inline\nt.people\n--------\n       7\n"
    assert said(session, text).startswith(f"{rows}1 node, 0 edges affected on main\ncommit 0")
    assert said(session, ":format csv", 'match { $t: Town { label: "Aa" } } return { $t.label }').endswith(
        "t.label\nAa"
    )
    assert said(session, ":timing on", "match { $t: Town } return { $t.label }").endswith(" ms)")


def test_error_ends_input_but_not_session(session):
    assert "did you mean 'Person'?" in said(session, "match { $p: Persn } return { $p.name }")
    assert "hint: did you mean ':branch'?" in said(session, ":brnch")
    assert said(session, ":branch nope") == (
        "error: there is no branch 'nope'\nhint: ':branch' lists the branches, ':branch create NAME' creates one"
    )
    for empty in (":diff", ":explain", ":open", ":run x", ":history Person", ":set x", ":format xml", ":commits x"):
        assert said(session, empty).startswith("error: "), empty
    assert said(session, "match { $p: Person } return { count($p) as n }").endswith("2")


def test_branch_diff_and_at(session):
    session.graph.branch_create("review/x")
    assert said(session, ":branch") == "* main\n  review/x"
    assert said(session, ":branch review/x") == "on branch review/x"
    assert session.prompt == "towns.omni:review/x> "
    said(session, 'update Person set { age: 18 } where name = "Bo"')
    assert said(session, ":diff main") == "update node Person Bo\n  age: 17 -> 18\n1 change"
    assert said(session, ":diff review/x main").splitlines()[1] == "  age: 18 -> 17"
    assert said(session, ":at 2").startswith("at commit 0")
    assert said(session, ":format csv", 'match { $p: Person { name: "Bo" } } return { $p.age }').endswith("\n17")
    assert "a past commit cannot be changed" in said(session, 'update Person set { age: 1 } where name = "Bo"')
    assert said(session, ":at now") == "at the head of review/x"
    assert said(session, ":history Person Bo").splitlines()[1] == "  age: 17 -> 18"
    assert said(session, ":blame Person Bo").splitlines()[0].startswith("age ")
    assert len(said(session, ":commits 1").splitlines()) == 1


def test_files_parameters_and_plans(session, tmp_path):
    path = tmp_path / "q.gq"
    path.write_text("query one($name: String) { match { $p: Person { name: $name } } return { $p.age } }")
    assert said(session, f":open {path}") == f"{path}: one"
    assert said(session, ":format csv", ":run one name=Bo").endswith("p.age\n17")
    assert said(session, ":set name=Ana") == "$name = Ana"
    assert said(session, ":run one").endswith("p.age\n41")
    assert said(session, ":run one nam=Ana").endswith("has no parameter 'nam'\nhint: did you mean 'name'?")
    assert said(session, ":set name=29", ":run one").endswith("p.age"), "a declared text stays one"
    bare = "match { $p: Person { name: $who } } return { $p.age }"
    assert said(session, bare).endswith("hint: set its value: ':set who=…'")
    assert said(session, ":set who=29 name=Ana", bare).endswith("p.age")
    assert said(session, "status").endswith("':help' lists the commands")
    assert "scan    $p: Person" in said(session, ":explain one")
    assert "total" in said(session, ":profile one")
    assert said(session, ":explain match { $p: Person } return { $p.name }").startswith("query inline()")
    assert said(session, ":schema Person").splitlines() == [
        "node Person", "  age: I32?", "  name: String", "  Knows: Person -> Person", "  LivesIn: Person -> Town",
    ]  # fmt: skip
    assert "edge LivesIn: Person -> Town {" in said(session, ":schema")
    assert "node:Person" in said(session, ":tables")


def test_every_command_is_in_the_help(session):
    text = said(session, ":help")
    assert all(f":{name}" in text for name in COMMANDS)


@pytest.mark.parametrize("word", [":quit", ":q", ":exit"])
def test_quit_ends_session(session, word):
    with pytest.raises(EndSession):
        list(session.run(word))


# -- the terminal ------------------------------------------------------------------------------------


def test_terminal_session(session, tmp_path, capsys):
    """Enter starts a new line until the braces are closed; Ctrl-C discards the input."""
    with create_pipe_input() as pipe:
        pipe.send_text("match {\r$p: Person\r}\rreturn { $p.name } order { $p.name }\r")
        pipe.send_text("match { $x\x03")
        pipe.send_text(":branch\r:quit\r")
        interact(session, history=tmp_path / "home" / "history", input=pipe, output=DummyOutput())
    printed = capsys.readouterr().out
    assert "Ana   \nBo    \n* main\n" in printed
    assert "order { $p.name }" in (tmp_path / "home" / "history").read_text()


def test_completions_replace_the_unfinished_word(session):
    completer = SchemaCompleter(session)
    found = list(completer.get_completions(Document("match { $p: Per"), CompleteEvent()))
    assert [(completion.text, completion.start_position) for completion in found] == [("Person", -3)]
    session.graph.branch_create("review/x")
    found = list(completer.get_completions(Document(":branch rev"), CompleteEvent()))
    assert [completion.text for completion in found] == ["review/x"]


def test_ctrl_d_ends_session(session):
    with create_pipe_input() as pipe:
        pipe.send_text("\x04")
        interact(session, input=pipe, output=DummyOutput())


def test_piped_input(graph, monkeypatch, capsys):
    text = "match { $p: Person }\nreturn { $p.name }\norder { $p.name desc }\nlimit 1\n:branch\n:quit\nnot reached\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(["shell", graph.uri]) == 0
    assert capsys.readouterr().out == "1 row from branch main via inline\np.name\n------\nBo    \n* main\n"


@pytest.mark.parametrize("word", ["help", "?", "HELP;"])
def test_help_words_of_other_shells(session, word):
    assert ":branch" in said(session, word)


@pytest.mark.parametrize("word", ["exit", "quit", "\\q", "exit;"])
def test_quit_words_of_other_shells(session, word):
    with pytest.raises(EndSession):
        list(session.run(word))


def test_load_merge_and_tag(session, tmp_path):
    file = tmp_path / "more.jsonl"
    file.write_text('{"type": "Town", "data": {"label": "Zz"}}\n')
    session.graph.branch_create("more")
    said(session, ":branch more")
    assert said(session, f":load {file}").startswith("node:Town 1 row\n")
    said(session, ":branch main")
    assert said(session, ":merge more") == "fast_forward: more into main"
    assert said(session, ":tag done").startswith("tag done at commit 0")
    assert said(session, ":tag").startswith("done  0")
    assert session.failures == 0
    assert "error" in said(session, ":merge nowhere")
    assert session.failures == 1


def test_piped_failure_sets_exit_code(graph, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"match { $p: Persn } return { $p.name }\nhelp\n")))
    assert run(["shell", graph.uri]) == 1
    out = capsys.readouterr().out
    assert "there is no node type 'Persn'" in out
    assert ":branch" in out


def test_lines_after_a_malformed_input_run(graph, monkeypatch, capsys):
    lines = [
        "match { $p: Person } retrun { $p.name }",
        'insert Town { label: "kept" }',
        "match { $t: Town",
        ":format csv",
        "match { $t: Town } return { count($t) as n };",
    ]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    assert run(["shell", graph.uri]) == 1
    out = capsys.readouterr().out
    assert out.count("error: parse error") == 2
    assert "1 node, 0 edges affected on main" in out
    assert out.endswith("n\n1\n")


def test_command_ends_incomplete_query(session, capsys):
    with create_pipe_input() as pipe:
        pipe.send_text("match { $p: Person\r:branch\r:quit\r")
        interact(session, input=pipe, output=DummyOutput())
    printed = capsys.readouterr().out
    assert "error: parse error" in printed
    assert "* main\n" in printed


def test_branch_and_tag_accept_cli_verbs(session):
    assert said(session, ":branch create exp") == "branch exp created at main\non branch exp"
    said(session, 'insert Town { label: "Aa" }')
    assert said(session, ":tag create v1").startswith("tag v1 at commit 0")
    assert said(session, ":tag create v0 2").startswith("tag v0 at commit 0")
    assert [line.split()[0] for line in said(session, ":tag list").splitlines()] == ["v0", "v1"]
    assert said(session, ":tag delete v0") == "tag v0 deleted"
    assert said(session, ":branch create old v1") == "branch old created at v1\non branch old"
    assert said(session, ":branch list").splitlines() == ["  main", "  exp", "* old"]
    assert said(session, ":branch main", ":branch delete old").endswith("branch old deleted")
    assert said(session, ":tag create").endswith("hint: write ':tag create NAME [POINT]'")
    assert "write ':branch delete NAME'" in said(session, ":branch delete")
