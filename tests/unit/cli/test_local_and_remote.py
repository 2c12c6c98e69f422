"""Every command that works on a graph prints the same for a graph in storage and for a graph on a server.

The session of `cli_session` runs on a server; its documents must be those of the golden file, which the local program
printed. A second session compares the text for people. Only transport facts differ: the address and the actor. A
command that is neither in a session nor listed as storage-only fails the first test.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from omnigraph.cli.program import build_program
from omnigraph.cli.reference import command_tree
from support.cli_session import FILES, SESSION, normalized
from support.commands import Cli
from support.server import ServerUnderTest, serving

GOLDEN = Path(__file__).parents[2] / "cases" / "documents" / "session.txt"
STORAGE_ONLY = {
    "resolve": "it compares the nodes of a whole table",
    "sql": "DuckDB reads the tables of the graph",
    "ui": "it serves the graph itself",
}
"""Command to the reason why it works only on storage."""
OTHERWISE = {"config", "graphs list", "mcp install", "mcp serve", "top", "webhook list"}
"""Commands that take an address and print nothing to compare. They are tested by `test_remote`, `test_top`,
`test_addresses`, the tests of `mcp`, and those of webhooks.
"""
TRANSPORT = (
    # A server records the id of the request, and the result that a repetition of the write returns.
    (re.compile(r'"request_id": ?"[^"]*",?\s*'), ""),
    (re.compile(r'"(?:affected|returned)": ?\[[^\]]*\],?\s*'), ""),
    (re.compile(r",(\s*\})"), r"\1"),
    (re.compile(r"\{\s*\}"), "{}"),
    (re.compile(r"metadata: \{\}\n"), ""),
    (re.compile(r'("(?:actor_id|owner)": )(?:null|"[^"]*")'), r"\1<actor>"),
    (re.compile(r'("uri": )"[^"]*"'), r"\1<uri>"),
    (re.compile(r'("storage": )"[^"]*"'), r"\1<storage>"),
    (re.compile(r"\b(?:g|notes|photos)\.omni\b|http://127\.0\.0\.1:\d+(?:/graphs/\w+)?"), "<uri>"),
)


def commands_of(lines: str) -> set[str]:
    """Return the commands of a session."""
    known = set(graph_commands())
    found = set()
    for line in lines.strip().splitlines():
        words = shlex.split(line)
        found |= {" ".join(words[:length]) for length in (1, 2)} & known
    return found


def graph_commands() -> Iterator[str]:
    """Yield every command that takes the address of a graph."""
    for path, command in command_tree(get_command(build_program())):
        if any(parameter.name == "server_name" for parameter in command.params):
            yield " ".join(path)


def test_every_graph_command_is_compared():
    compared = commands_of(SESSION) | commands_of(TEXTS)
    assert set(graph_commands()) - compared == {*STORAGE_ONLY, *OTHERWISE}


# -- documents -----------------------------------------------------------------------------------------

GRAPHS = {"g.omni": "s.pg", "notes.omni": "notes.pg", "photos.omni": "photos.pg"}
OFFLINE = ("init ", "version ", "token ", "schema check ", "schema plan --from ", "lint wrong.gq --schema ")
"""Lines of the session that use no graph."""


@pytest.fixture
def server(
    folder: Path, cli: Cli, clean_environment: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServerUnderTest]:
    """A server of the empty graphs of the session; commands without an address use its graph `g`."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(folder / "home"))
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    for graph, schema in GRAPHS.items():
        assert cli("init", "--no-scaffold", schema, graph)[0] == 0
    with serving(*GRAPHS, environ={"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}) as running:
        (folder / "home").mkdir()
        (folder / "home" / "config.yaml").write_text(
            f"servers: {{ s: {{ url: '{running.url}' }} }}\ndefaults: {{ server: s, default_graph: g }}\n"
        )
        yield running


def test_documents_of_a_server(server: ServerUnderTest, cli: Cli):
    different = []
    for line, expected in golden():
        if line.startswith(OFFLINE):
            continue
        words = shlex.split(without_actor(line))
        code, out, err = cli(*(address(server, word) if word in GRAPHS else word for word in words), "--yes")
        printed = compared(normalized(out) + (f"[{code}]\n" if code else ""))
        if printed != compared(expected):
            different.append(f"$ omnigraph {line}\n--- storage\n{compared(expected)}--- server\n{printed}{err}")
    assert not different, "\n".join(different)


def address(server: ServerUnderTest, graph: str) -> str:
    """Return the address of a graph of the server."""
    return f"{server.url}/graphs/{graph.removesuffix('.omni')}"


def golden() -> Iterator[tuple[str, str]]:
    """Yield the lines of the golden file with their output."""
    for block in GOLDEN.read_text(encoding="utf-8").split("$ omnigraph ")[1:]:
        line, _, output = block.partition("\n")
        yield line, output


def without_actor(line: str) -> str:
    """Return a line without `--as`, which a server refuses."""
    return re.sub(r" --as \w+", "", line)


def compared(text: str) -> str:
    """Return an output without transport facts."""
    for pattern, replacement in TRANSPORT:
        text = pattern.sub(replacement, text)
    return text


# -- text for people -----------------------------------------------------------------------------------

TEXTS = r"""
read -q q.gq -n adults -p least=1
read -q q.gq -n adults -p least=1 -f kv
read -q q.gq -n adults -p least=1 -f csv
read -q q.gq -n adults -p least=1 --page 1
read -e 'match { $p: Person  $p.age >= $least } return { $p.name }' -p least=18
read -e 'match { $p: Persn } return { $p.name }'
read -q q.gq -n adults -p least=x
read -q q.gq -n adults -p least=1 -b nowhere
explain -q q.gq -n adults
codegen python
codegen typescript
lint q.gq
change -q q.gq -n birthday -p name=Bo -p age=18 -b review -m 'a year more'
change -e 'update Person set { age: 42 } where name = "Ana" as $p return { $p.name, $p.age }'
change -q q.gq -n birthday -p name=Bo -p age=19 --if-commit 01ARZ3NDEKTSV4RRFFQ69G5FAV
load bad.jsonl --mode merge
load bad.jsonl --mode merge --rejects rejects.jsonl
load people.jsonl --mode append
load people.jsonl --mode merge --branch nowhere
ingest more.jsonl --branch intake
branch list
branch show review
branch update review --description 'for review'
branch create review
branch delete nowhere
diff main review
diff main review --stat
diff main...intake --limit 1
branch merge review --preview
branch merge review
branch create other
change -q q.gq -n birthday -p name=Ana -p age=50 -b other
change -q q.gq -n birthday -p name=Ana -p age=60
branch merge other --preview
branch merge other
branch merge other --resolve theirs --delete-branch
log --all --graph
log -n 2
status
snapshot
commit list
commit show main
commit show review
commit changes main
history Person Ana
history Person Nobody
blame Person Ana
search Ana
search Ana -t Person --by words --filter 'name!=Bo' --rank-of Bo
search Ana --filter 'none=1'
search Ana --by meaning
neighbors Person Ana
neighbors Person Ana --edge Knows --direction out -n 1
neighbors Person Ana --count
neighbors Person Nobody
branch list --compare main
branch list --compare main --json
change -e 'delete Person where name = "Bo"' --dry-run
change birthday --dry-run
tag create one -m 'first tag'
tag list
tag delete one
queries push q.gq
queries push q.gq
queries list
queries show adults
queries show adult
queries validate
queries validate --schema photos.pg
read adults -p least=1
query adults -p least=1 -f csv
read one -p name=29
read birthday
change birthday -p name=Bo -p age=20 -b review
mutate adults
queries delete adults one birthday
branch create proposed
change -e 'insert Person { name: "Uma", age: 8 }' -b proposed
propose proposed -m 'Add Uma' --label people --reviewer bo
propose nowhere -m 'Nothing'
proposal list
proposal show proposed
proposal diff proposed
proposal conflicts proposed
proposal comment proposed -m 'How old?' --on node:Person:Uma --property age
proposal comment proposed -m 'Who?' --on node:Person:Nobody
proposal edit-comment proposed none --resolved
proposal events proposed
proposal events proposed --after 2
proposal list --after 00000000000000000000000000
proposal rows proposed --check ci
proposal approve proposed
proposal request-changes proposed
proposal retract proposed
proposal resolve proposed --resolve theirs
proposal report proposed --check ci --state pass --commit none
proposal edit proposed --title 'Add Uma to people' --body 'She is new.'
proposal check proposed --again
proposal close proposed -m later
proposal list --state closed
proposal show none
propose proposed -m 'Add Uma again'
proposal reopen proposed
proposal land proposed -m 'Uma'
proposal list --state landed
revert main --preview
revert main
changes poll --start beginning
changes poll --cursor nonsense
changes baseline --out base.jsonl
export
export --type Person --out people.out
export --type Persn
export --format csv --out rows
schema show
schema plan new.pg
schema plan worse.pg
schema apply worse.pg
schema apply new.pg
analyze degrees
optimize
cleanup --keep 1
cleanup --keep 1 --confirm
recover
verify
branch delete intake --force
shell
purge run Person --id Ana --edges
purge run Person --id Nobody --edges
purge run Persn --id Ana
purge run Person --id Ana --edges --confirm
purge run Person --id Nobody --confirm --reason 'request 17'
purge run Person --id Ana --edges --confirm --reason 'request 17' --certificate ana.json
purge list
purge resume
purge verify --value 'nothing stored'
purge verify --value abc
purge redact --value 'a year more'
purge redact --value 'a year more' --confirm
purge allow Person --id Ana
embed --in-graph notes.omni
blob stat Photo a data photos.omni
blob get Photo a data --out a.bin photos.omni
blob get Photo b data --out b.bin photos.omni
"""
SHELL = """
match { $p: Person } return { $p.name } order { $p.name }
:branch create talk
insert Person { name: "Zoe", age: 7 }
:diff main talk
:commits 1
:tables
:schema Person
:blame Person Zoe
:at main
insert Person { name: "Yan" }
:nothing
"""
VARIABLE = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "<time>"),
    (re.compile(r"(cursor: |next: )\S+"), r"\1<cursor>"),
    (re.compile(r"\d+ bytes removed"), "<bytes> removed"),
    (re.compile(r"\d+ bytes freed"), "<bytes> freed"),
    (re.compile(r"\d+ objects?, \d+ bytes"), "<objects>"),
    (re.compile(r"digest [0-9a-f]{64}"), "<digest>"),
    (re.compile(r"note: [a-z -]+ writes to <uri> \(server\)\n"), ""),
    (re.compile(r"\((?:local storage|server)\)"), "(<storage>)"),
)


def test_texts_of_a_server(server: ServerUnderTest, folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch):
    for graph, data in (("g.omni", "people.jsonl"), ("notes.omni", "notes.jsonl"), ("photos.omni", "photos.jsonl")):
        assert cli("load", data, "--mode", "merge", address(server, graph))[0] == 0
    assert cli("branch", "create", "review")[0] == 0
    for graph in GRAPHS:
        shutil.copytree(graph, folder / "local" / graph)
    on_server = texts(cli, monkeypatch, folder, {graph: address(server, graph) for graph in GRAPHS})
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "local")
    with (folder / "home" / "config.yaml").open("a") as file:
        file.write(f"profiles: {{ local: {{ store: '{folder / 'local' / 'g.omni'}' }} }}\n")
    in_storage = texts(cli, monkeypatch, folder, {graph: str(folder / "local" / graph) for graph in GRAPHS})
    different = [
        f"$ omnigraph {line}\n--- storage\n{expected}--- server\n{printed}"
        for line, expected, printed in zip(TEXTS.split("\n")[1:], in_storage, on_server, strict=False)
        if printed != expected
    ]
    assert not different, "\n".join(different)


def texts(cli: Cli, monkeypatch: pytest.MonkeyPatch, folder: Path, places: dict[str, str]) -> list[str]:
    """Return the output of each line of the session: stdout, stderr and the exit code."""
    printed = []
    for line in TEXTS.strip().splitlines():
        monkeypatch.setattr("sys.stdin", io.StringIO(SHELL))
        code, out, err = cli(*(places.get(word, word) for word in shlex.split(line)), "--yes")
        text = f"{out}{err}[{code}]\n".replace(f"{folder}/local/", "")
        text = compared(normalized(text))
        for pattern, replacement in VARIABLE:
            text = pattern.sub(replacement, text)
        printed.append(text)
        for name in ("rows", "people.out"):
            left = folder / name
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    return printed
