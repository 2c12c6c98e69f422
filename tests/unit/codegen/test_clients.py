"""Generated clients: golden files, type checkers, and calls of an embedded and of a served graph.

`OMNIGRAPH_UPDATE_GOLDEN=1` rewrites the golden files, which `make lint` checks with mypy. basedpyright is pyright with
its files in the package. `tsc` is that of the explorer, or one on the PATH. Without it a test skips, or fails in CI.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.codegen import python_client, typescript_client
from omnigraph.codegen.client_model import build_model, pascal_case
from omnigraph.query.stored_queries import read_stored
from omnigraph.schema.check import compile_schema
from support.server import serving

GOLDEN = Path(__file__).parents[2] / "typing" / "generated"
SCHEMA = """
node Person @description("Says \\"hello\\" and */ nothing") {
    name: String @key
    born: Date?
    seen: DateTime?
    big: I64?
    size: F64?
    mood: enum(calm, wild)?
    tags: [String]?
    photo: Blob?
    token: Uuid?
    feel: Vector(2)?
}
node PeopleParams { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
QUERIES = """
query list($from: String?, $date: Date?) @description("Everyone's
  name; \\"quoted\\" */") {
    match { $p: Person }
    return { $p.name, $p.born as born, $p.seen as seen, $p.big as big, $p.mood as mood, $p.tags as tags }
    order { $p.name }
}
query people($graph: [String]) {
    match { $p: Person  $graph contains $p.name  optional { $p knows $q } }
    return {
        $p as person
        $q as other
        { name: $p.name, of: { size: $p.size } } as card
        collect({ n: $q.name }) as known
    }
}
query paths($name: String) {
    match { $a: Person { name: $name }  $w: shortest { $a knows{1,3} $b } }
    return { $w as walk, nodes($w, name) as names }
}
query born($name: String, $day: Date, $at: DateTime, $big: I64) {
    update Person set { born: $day, seen: $at, big: $big } where name = $name as $p
    return { $p.name as name, $p.born as day }
}
query forget($name: String) { delete Person where name = $name }
"""
PEOPLE = [
    {"type": "Person", "data": {"name": "ana", "born": "1990-02-03", "big": 2**60, "mood": "calm", "tags": ["a"]}},
    {"type": "Person", "data": {"name": "bo", "seen": "2026-01-31T12:30:00Z", "size": 1.5}},
    {"edge": "Knows", "from": "ana", "to": "bo"},
]
FORMS = {"client.py": "python", "client_async.py": "python --async", "client.ts": "typescript"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("codegen") / "g.omni", SCHEMA)
    made.load(PEOPLE, mode="append")
    made.store_query(QUERIES)
    return made


@pytest.mark.parametrize("name", FORMS)
def test_golden_file(graph, name, capsys):
    assert run(["codegen", *FORMS[name].split(), graph.uri]) == 0
    text = capsys.readouterr().out.replace(og.__version__, "VERSION")
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def test_file_is_written(graph, tmp_path, capsys):
    out = tmp_path / "client.py"
    assert run(["codegen", "python", graph.uri, "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}: 11 types, 5 queries\n"
    assert run(["codegen", "typescript", "--async", graph.uri]) == 2
    assert run(["codegen", "python", graph.uri, "-o", str(tmp_path / "no" / "client.py")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def checked(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_accepts_the_clients_models_and_their_uses(tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "generated", ignore=shutil.ignore_patterns("*.ts", "__pycache__"))
    assert len(list((tmp_path / "generated").glob("models_*.py"))) == 4
    shutil.copy(GOLDEN.parent / "use_generated_clients.py", tmp_path)
    source = Path(og.__file__).parents[1]
    config = {"typeCheckingMode": "strict", "extraPaths": [str(source)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    checked(sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, cwd=tmp_path)


@pytest.fixture
def tsc() -> str:
    """The compiler of TypeScript."""
    own = Path(__file__).parents[3] / "web" / "node_modules" / ".bin" / "tsc"
    found = str(own) if own.exists() else shutil.which("tsc")
    if found is None or shutil.which("node") is None:
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing("node or tsc is not installed (hint: make web/node_modules/.package-lock.json)")
    return found


def imported(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"generated_{name}", GOLDEN / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def use(client: ModuleType, graph: Any) -> None:
    ana, bo = client.list_(graph)
    assert (ana["p.name"], ana["born"], ana["big"], ana["mood"], ana["tags"]) == (
        *("ana", date(1990, 2, 3), 2**60, "calm"),
        ["a"],
    )
    assert isinstance(bo["seen"], datetime)
    (found,) = client.people(graph, graph_=["ana"])
    assert (found["other"]["id"], found["card"], found["known"]) == (
        *("bo", {"name": "ana", "of": {"size": None}}),
        [{"n": "bo"}],
    )
    assert client.paths(graph, name="ana")[0]["names"] == ["ana", "bo"]


def test_python_client_calls_graphs(graph, monkeypatch):
    client = imported("client", monkeypatch)
    use(client, graph)
    with serving(graph.uri, flags={"unauthenticated": True}) as server, og.connect(server.url) as remote:
        use(client, remote)
        remote.branch_create("draft")
        done = client.born(remote, name="bo", day=date(2000, 1, 2), at=datetime(2026, 1, 1), big=5, branch="draft")
        assert (done.nodes, done.rows) == (1, [{"name": "bo", "day": date(2000, 1, 2)}])
        assert client.forget(remote, name="nil", branch="draft").commit is None


def test_asynchronous_client_calls_graphs(graph, monkeypatch):
    client = imported("client_async", monkeypatch)

    async def call(address: str) -> list[str]:
        async with await og.aopen(address) as opened:
            return [row["p.name"] for row in await client.list_(opened)]

    async def change(address: str) -> list[Any]:
        async with await og.aconnect(address) as remote:
            await remote.branch_create("later")
            done = await client.born(
                remote, name="bo", day=date(2001, 2, 3), at=datetime(2026, 1, 1), big=6, branch="later"
            )
            return [done.nodes, done.rows, (await client.forget(remote, name="nil", branch="later")).commit]

    assert asyncio.run(call(graph.uri)) == ["ana", "bo"]
    with serving(graph.uri, flags={"unauthenticated": True}) as server:
        assert asyncio.run(call(server.url)) == ["ana", "bo"]
        assert asyncio.run(change(server.url)) == [1, [{"name": "bo", "day": date(2001, 2, 3)}], None]


def test_typescript_client_calls_a_server(graph, tmp_path, tsc):
    shutil.copy(GOLDEN / "client.ts", tmp_path / "client.mts")
    options = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022"]
    checked(tsc, *options, "--module", "nodenext", "--lib", "es2022,dom", "client.mts", cwd=tmp_path)
    with serving(graph.uri, flags={"unauthenticated": True}) as server:
        program = f"""
        import {{ Client, OmniGraphError }} from "./client.mjs";
        const client = new Client({{ url: "{server.url}" }});
        const people = await client.people({{ graph: ["ana"] }});
        const none = await client.forget({{ name: "nil" }});
        let code = "";
        try {{
            await client.paths({{ name: 1 }});
        }} catch (error) {{
            code = error instanceof OmniGraphError ? error.code : "?";
        }}
        console.log(JSON.stringify([people[0].person.big, people[0].other.id, none, code]));
        """
        (tmp_path / "main.mjs").write_text(program, encoding="utf-8")
        done = subprocess.run(["node", "main.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    none = {"nodes": 0, "edges": 0, "commit": None, "rows": []}
    assert json.loads(done.stdout) == [str(2**60), "bo", none, "bad_request"]


def test_names_are_free():
    catalog = compile_schema("node AbRow { name: String @key }")
    queries = read_stored(
        "query a_b() { match { $x: AbRow } return { $x } }\nquery aB() { match { $x: AbRow } return { $x } }"
    )
    model = build_model(catalog, queries)
    assert [record.name for record in model.records] == ["AbRow", "ABRow", "ABRow2"]
    assert python_client.python_client(model).count("TypedDict):") == 3
    assert "ABParams" not in typescript_client.typescript_client(model)


def test_a_broken_query_is_an_error():
    with pytest.raises(og.errors.CompileError):
        build_model(
            compile_schema("node A { k: String @key }"), read_stored("query q() { match { $x: B } return { $x } }")
        )


def test_pascal_case():
    assert [pascal_case(text) for text in ("services_of", "aB", "p.name", "x")] == ["ServicesOf", "AB", "PName", "X"]


def test_names_that_collide_or_that_the_language_reserves_are_distinct():
    catalog = compile_schema("node None { slug: String @key }\nnode RequestInit { slug: String @key }", "s.pg")
    body = "{ match { $p: None $p.slug = $graph $p.slug = $graph_ } return { $p.slug as __x } }"
    names = ("list", "list_", "rows", "rows_", "__debug__", "__all__")
    queries = [
        query for name in names for query in read_stored(f"query {name}($graph: String, $graph_: String) {body}", "q")
    ]
    text = python_client.python_client(build_model(catalog, queries, python_client.RESERVED))
    tree = ast.parse(text)
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    compile(text, "client", "exec")
    assert len({each.name for each in functions} - {"__all__", "__debug__"}) == len(names)
    assert [each.arg for each in functions[0].args.kwonlyargs][:2] == ["graph__", "graph_"]
    assert '"__x": "str"' in text, "a private name in a class would be changed"
    typescript = typescript_client.typescript_client(build_model(catalog, queries, typescript_client.RESERVED))
    assert "export interface RequestInit2 {" in typescript
    methods = re.findall(r"^  (\w+)\(params", typescript, re.MULTILINE)
    assert len(set(methods)) == len(names)
