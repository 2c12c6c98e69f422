"""The magics in a real IPython."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import omnigraph as og
from support.ipython_shell import ipython_shell

SCHEMA = "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person"


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with ipython_shell() as made:
        made.run_line_magic("load_ext", "omnigraph")
        yield made


@pytest.fixture
def graph(tmp_path: Path, shell: InteractiveShell) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA, sync=False, environ={})
    people = [{"type": "Person", "data": {"name": name, "age": age}} for name, age in (("ana", 41), ("bo", 17))]
    graph.load([*people, {"edge": "Knows", "from": "ana", "to": "bo"}], mode="append", message="first <people>")
    shell.reset(new_session=False)
    shell.user_ns["graph"] = graph
    shell.magics_manager.registry["GraphMagics"].graph = None
    return graph


def run(shell: InteractiveShell, source: str) -> Any:
    """Run a cell and return its value."""
    done = shell.run_cell(source)
    done.raise_error()
    return done.result


READ = "match { $p: Person  $p.age > $least } return { $p.name as name }"


def test_cells_run_queries(shell: InteractiveShell, graph: og.Graph) -> None:
    cell = f"%%gq\n{READ}\n"
    shell.user_ns["least"] = 18
    assert run(shell, cell).to_pylist() == [{"name": "ana"}]
    shell.user_ns["p"] = "no parameter: the match binds it"
    shell.user_ns["least"] = 10
    assert len(run(shell, cell)) == 2
    assert len(run(shell, f"%%gq -p least=40\n{READ}")) == 1
    assert len(run(shell, f"%gq {READ}")) == 2
    named = (
        f"%%gq -n one\nquery all() {{ match {{ $p: Person }} return {{ $p }} }}\nquery one($least: I32) {{ {READ} }}"
    )
    assert len(run(shell, named)) == 2
    assert run(shell, f"%%gq -o kept\n{READ}") is None
    assert len(shell.user_ns["kept"]) == 2
    assert "Person" in run(shell, f"%%gq --explain\n{READ}")
    assert "<td" in run(shell, cell)._repr_html_()


def test_cells_run_mutations(shell: InteractiveShell, graph: og.Graph) -> None:
    before = graph.head().commit_id
    shell.user_ns["who"] = "cy"
    done = run(shell, "%%gq -m 'add one'\nquery add($who: String) { insert Person { name: $who } }")
    assert done.affected_nodes == 1
    assert graph.commits()[0].message == "add one"
    assert len(run(shell, f"%%gq --at {before}\nmatch {{ $p: Person }} return {{ $p.name }}")) == 2
    assert "1" in done._repr_html_()
    assert str(done.commit_id) in done._repr_html_()


def test_a_graph_is_opened_by_name(shell: InteractiveShell, graph: og.Graph) -> None:
    graph.branch_create("draft")
    shell.user_ns.pop("graph")
    opened = run(shell, f"%omnigraph {graph.uri} --branch draft")
    assert (opened.uri, opened.branch) == (graph.uri, "draft")
    assert len(run(shell, "%gq match { $p: Person } return { $p.name }")) == 2
    shell.user_ns["other"] = graph
    assert len(run(shell, "%%gq -g other\nmatch { $p: Person } return { $p.name }")) == 2
    assert run(shell, "%omnigraph").branch == "draft"


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%gq\nmatch { $p: Persn } return { $p.name }", "did you mean 'Person'"),
        ("%%gq\nmatch { $p: Person ", "expected"),
        ("%%gq -p least\nmatch { $p: Person } return { $p }", "'least' is not NAME=VALUE"),
        ("%%gq --wrong\nmatch { $p: Person } return { $p }", "unrecognized arguments: --wrong"),
        ("%%gq -g missing\nmatch { $p: Person } return { $p }", "no graph in the variable 'missing'"),
        (f"%%gq\nquery one($least: I32) {{ {READ} }}", "least"),
        ("%omnigraph missing.omni", "missing.omni"),
    ],
)
def test_errors_have_no_traceback(
    shell: InteractiveShell, graph: og.Graph, cell: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = shell.run_cell(cell)
    assert type(done.error_in_exec).__name__ == "UsageError"
    printed = capsys.readouterr()
    assert message in printed.out + printed.err
    assert "Traceback" not in printed.out + printed.err


def test_commits_loads_and_paths_are_drawn(shell: InteractiveShell, graph: og.Graph) -> None:
    commit = graph.commits()[0]
    assert commit.id in commit._repr_html_()
    assert "first &lt;people&gt;" in commit._repr_html_()
    assert "first &lt;people&gt;" in graph.commits()._repr_html_()  # type: ignore[attr-defined]
    rejects: list[Any] = []
    result = graph.load([{"type": "Person", "data": {"age": 1}}], mode="merge", rejects=rejects)
    assert "1 records rejected" in result._repr_html_()
    loaded = graph.load([{"type": "Person", "data": {"name": "di"}}], mode="merge")
    assert "node:Person" in loaded._repr_html_()
    html = shell.display_formatter.format(
        run(shell, '%gq match { $a: Person { name: "ana" } $w: path { $a knows{1,2} $b } } return { $w }')
    )[0]["text/html"]
    assert "→" in html
    assert "<svg" in html
