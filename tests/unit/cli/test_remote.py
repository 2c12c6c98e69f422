"""Commands on a server: tokens, time limits, the graph of a server, errors, `graphs list` and `alias`."""

from __future__ import annotations

import http.server
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from omnigraph.cli.addresses import Address, GivenAddress
from omnigraph.cli.invocation import Invocation
from omnigraph.cli.remote import find_token, timeout_s
from omnigraph.errors import InputError
from support.commands import Cli, document
from support.server import ServerUnderTest, serving

OPERATOR = """
servers: {{ s: {{ url: '{url}' }} }}
profiles: {{ p: {{ server: s, default_graph: g }} }}
aliases:
  adults: {{ server: s, graph: g, file: adults.gq, name: adults, args: [least], params: {{ least: 1 }}, format: csv }}
  stored: {{ server: s, graph: g, query: open_loans, args: [since], params: {{ limit: 20 }} }}
"""
ADULTS = "query adults($least: I32) {\n    match { $p: Person  $p.age >= $least }\n    return { $p.name }\n}\n"
NAMES = "match { $p: Person } return { $p.name } order { $p.name }"
POLICY = """version: 1
groups: { people: [ana] }
rules:
  - id: people
    allow: { actors: { group: people }, actions: [graph_list] }
"""
TOKENS = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ana": "og_secret"}'}


@pytest.fixture
def server(
    graph: Path, cli: Cli, clean_environment: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServerUnderTest]:
    """A server of two graphs, and the operator file that names it."""
    home = graph.parent / "home"
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    assert cli("init", "--no-scaffold", "s.pg", "h.omni")[0] == 0
    (graph.parent / "omnigraph.yaml").unlink()
    home.mkdir()
    (home / "adults.gq").write_text(ADULTS)
    (home / "server.yaml").write_text(POLICY)
    flags = {"policy.file": str(home / "server.yaml")}
    with serving(graph, graph.parent / "h.omni", environ=TOKENS, flags=flags) as running:
        (home / "config.yaml").write_text(OPERATOR.format(url=running.url))
        yield running


@pytest.fixture
def logged_in(server: ServerUnderTest, cli: Cli) -> ServerUnderTest:
    assert cli("login", "s", "--token", "og_secret")[0] == 0
    return server


def test_every_form_of_address(logged_in: ServerUnderTest, cli: Cli, monkeypatch: pytest.MonkeyPatch):
    url = logged_in.url
    forms = [
        ["--server", "s", "--graph", "g"],
        ["--server", f"{url}/", "--graph", "g"],
        ["--profile", "p"],
        ["--uri", f"{url}/graphs/g"],
        [f"{url}/graphs/g"],
    ]
    for form in forms:
        assert cli("read", "-e", NAMES, "-f", "csv", *form) == (0, "p.name\n29\nAna\nBo\n", ""), form
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "p")
    assert cli("read", "-e", NAMES, "-f", "csv")[1].startswith("p.name\n29\n")
    Path("omnigraph.yaml").write_text(f"graphs: {{ far: {{ uri: '{url}/graphs/g' }} }}\n")
    monkeypatch.delenv("OMNIGRAPH_PROFILE")
    assert cli("read", "-e", NAMES, "-f", "csv", "--target", "far")[0] == 0


def test_server_with_several_graphs_lists_them(logged_in: ServerUnderTest, cli: Cli):
    answer = cli("read", "-e", NAMES, "--json", "--server", "s")
    failure = document(answer, 1)
    assert failure["reason"] == "no_default_graph"
    assert failure["error"] == f"the server at {logged_in.url} has several graphs: 'g', 'h'"
    assert failure["hint"].startswith("name the graph: --graph ID")
    lines = [f"{name}\t{Path(f'{name}.omni').absolute()}\n" for name in ("g", "h")]
    assert cli("graphs", "list", "--server", "s")[1] == "".join(lines)
    listed = document(cli("graphs", "list", "--profile", "p", "--json"))
    assert [graph["graph_id"] for graph in listed["graphs"]] == ["g", "h"]
    assert cli("graphs", "list", "--server", "s", "--graph", "g")[0] == 2
    assert document(cli("graphs", "list", "g.omni", "--json"), 1)["reason"] == "needs_server"


def test_address_below_a_graph(logged_in: ServerUnderTest, cli: Cli):
    url = f"{logged_in.url}/graphs/g/more"
    failure = document(cli("read", "-e", NAMES, "--json", url), 1)
    assert (failure["reason"], failure["hint"]) == (
        "no_such_path",
        f"{url} is not the address of a server, or of a server and /graphs/ID",
    )


def test_refused_tokens_name_their_origin(server: ServerUnderTest, cli: Cli, monkeypatch: pytest.MonkeyPatch):
    words = ["read", "-e", NAMES, "--profile", "p", "--json"]
    failure = document(cli(*words), 1)
    assert (failure["reason"], failure["hint"].partition(";")[0]) == ("missing_token", "no token was sent")
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "og_wrong")
    failure = document(cli(*words), 1)
    assert failure["hint"].startswith("the token of OMNIGRAPH_BEARER_TOKEN was sent; 'omnigraph login s' stores one")
    monkeypatch.setenv("OMNIGRAPH_TOKEN_S", "og_secret")
    assert cli(*words)[0] == 0
    assert all("og_" not in text for text in cli(*words)[1:])


def test_actor_of_a_server_is_that_of_the_token(logged_in: ServerUnderTest, cli: Cli):
    for words in (["read", "-e", NAMES, "--profile", "p"], ["alias", "adults"], ["graphs", "list", "--server", "s"]):
        code, _, errors = cli(*words, "--as", "bo")
        assert code == 2
        assert "--as has no effect on a server" in errors


def test_operator_alias_of_a_file(logged_in: ServerUnderTest, cli: Cli):
    assert cli("alias", "adults") == (0, "p.name\nAna\nBo\n", "")
    assert cli("alias", "adults", "18") == (0, "p.name\nAna\n", "")
    assert cli("alias", "adults", "18", "--params", '{"least": 17}')[1].splitlines()[1:] == ["Ana", "Bo"]
    assert document(cli("alias", "adults", "18", "--json"))["row_count"] == 1
    assert document(cli("alias", "adults", "1", "2", "--json"), 1)["reason"] == "alias_arguments"
    assert document(cli("alias", "adlts", "--json"), 1)["reason"] == "unknown_alias"


def test_actor_that_may_call_no_stored_query(logged_in: ServerUnderTest, cli: Cli):
    assert document(cli("alias", "stored", "--json"), 1)["reason"] == "denied"


def test_stored_query_of_a_server(graph: Path, cli: Cli, clean_environment: None, monkeypatch: pytest.MonkeyPatch):
    home = graph.parent / "home"
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    home.mkdir()
    (graph.parent / "omnigraph.yaml").unlink()
    assert cli("init", "--no-scaffold", "s.pg", "h.omni")[0] == 0
    text = "query open_loans($since: Date, $limit: I64) { match { $p: Person } return { $since as name } limit 1 }"
    (graph.parent / "loans.gq").write_text(text)
    assert cli("queries", "push", "loans.gq", str(graph))[0] == 0
    with serving(graph, graph.parent / "h.omni") as running:
        (home / "config.yaml").write_text(OPERATOR.format(url=running.url))
        assert cli("alias", "stored", "2026-05-01", "-f", "csv") == (0, "name\n2026-05-01\n", "")
        assert cli("queries", "delete", "open_loans", str(graph))[0] == 0
        failure = document(cli("alias", "stored", "2026-05-01", "--json"), 1)
        assert failure["reason"] == "query_not_found"
        assert failure["error"] == f"the server at {running.url}/graphs/g has no stored query 'open_loans'"


def test_answers_of_other_programs(server: ServerUnderTest, cli: Cli):
    with answering(404, b"<html>" + b"x" * 1000, "text/html") as (url, _):
        failure = document(cli("read", "-e", NAMES, "--json", url), 1)
    assert "status 404" in failure["error"]
    assert "<html>" + "x" * 494 in failure["error"]
    assert "x" * 495 not in failure["error"]


def test_unreachable_server_is_named(folder: Path, cli: Cli):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    failure = document(cli("read", "-e", NAMES, "--json", url), 1)
    assert url in failure["error"]


def test_commands_that_need_storage(folder: Path, cli: Cli):
    failure = document(cli("init", "s.pg", "https://graph.example", "--json"), 1)
    assert failure["reason"] == "needs_storage"
    assert "https://graph.example" in failure["error"]


def test_lost_answer_of_a_write_is_explained(folder: Path, cli: Cli):
    with losing() as (url, received):
        code, out, err = cli("change", "-e", 'insert Person { name: "Di" }', "--json", url)
    assert (code, json.loads(out)["reason"]) == (1, "outcome_unknown")
    assert "hint: the write may have been made; 'omnigraph commit list' shows whether it was" in err
    assert len(received) == 5
    assert len(set(received)) == 1, "a repetition has the same key"


@contextmanager
def losing() -> Iterator[tuple[str, list[str]]]:
    """Answer `GET /me`, and close the connection of every other request; yields the address and the received keys."""
    keys: list[str] = []

    class Handler(MeHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            keys.append(self.headers["Idempotency-Key"])
            self.close_connection = True

    with running(Handler) as url:
        yield url, keys


def test_destructive_commands_ask_for_confirmation(folder: Path, cli: Cli):
    for words in (["branch", "delete", "x"], ["tag", "delete", "x"], ["cleanup", "--keep", "1", "--confirm"]):
        code, out, err = cli(*words, "--json", "https://graph.example")
        assert (code, json.loads(out)["reason"]) == (1, "not_confirmed"), words
        assert "'https://graph.example' was not confirmed; nothing was done" in err


def test_storage_is_not_imported(logged_in: ServerUnderTest):
    """A command on a server imports no storage engine, which takes longer to import than the command takes."""
    program = (
        "import sys; from omnigraph.cli.main import run; "
        f"code = run(['read', '-e', {NAMES!r}, '--profile', 'p']); "
        "sys.exit(code or any(name in sys.modules for name in ('lance', 'obstore', 'pandas', 'pyspark')))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_interrupt_tells_whether_a_write_was_sent(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The interrupt arrives while the write waits for its answer."""
    with holding() as (url, held):
        command = [sys.executable, "-m", "omnigraph", "change", "-e", 'insert Person { name: "Di" }', url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            assert held.wait(60)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            said = process.stderr.read().decode()
    assert "interrupted: a write was sent, and the server may have completed it; 'omnigraph commit list' shows" in said


class MeHandler(http.server.BaseHTTPRequestHandler):
    """Answers `GET /me`."""

    def do_GET(self) -> None:
        me = b'{"actor_id": null, "groups": [], "attributes": {}, "actions": [], "graphs": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(me)))
        self.end_headers()
        self.wfile.write(me)

    def log_message(self, *_: object) -> None:
        return None


@contextmanager
def holding() -> Iterator[tuple[str, threading.Event]]:
    """Answer `GET /me`, and hold every other request; yields the address and an event for the first held request."""
    held, release = threading.Event(), threading.Event()

    class Handler(MeHandler):
        def do_POST(self) -> None:
            held.set()
            release.wait(60)

    with running(Handler) as url:
        try:
            yield url, held
        finally:
            release.set()


@contextmanager
def running(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a loopback server; yields its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.server_address[1]}"
        finally:
            listener.shutdown()
            thread.join(30)


@contextmanager
def answering(status: int, body: bytes, media_type: str) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Answer every request with one answer; yields the address and the received paths and bodies."""
    received: list[tuple[str, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers.get("Content-Length", 0)))))
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer  # noqa: N815 (names of the base class)

        def log_message(self, *_: object) -> None:
            return None

    with running(Handler) as url:
        yield url, received


# -- tokens and time limits ----------------------------------------------------------------------------


def invocation(**given: str) -> Invocation:
    return Invocation("read", **given)  # type: ignore[arg-type]


def test_precedence_of_tokens(folder: Path, cli: Cli, clean_environment: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMNIGRAPH_HOME", str(folder / "home"))
    (folder / "home").mkdir()
    (folder / "home" / "config.yaml").write_text(OPERATOR.format(url="https://graph.example"))
    (folder / ".env").write_text("FAR_TOKEN=og_file\nOTHER=og_other\n")
    (folder / "omnigraph.yaml").write_text(
        "graphs: { far: { uri: 'https://graph.example/graphs/g', bearer_token_env: FAR_TOKEN },"
        " near: { uri: 'https://near.example', bearer_token_env: FAR_TOKEN } }\nauth: { env_file: .env }\n"
    )

    def origin(uri: str = "https://graph.example/graphs/g", name: str | None = "far") -> str | None:
        found = find_token(Address.of(uri, "", name), invocation())
        return found.origin if found is not None else None

    assert origin() == "FAR_TOKEN"
    assert origin(name=None) is None, "an address does not use the token of a named graph"
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "og_any")
    assert origin(name=None) == "OMNIGRAPH_BEARER_TOKEN"
    assert origin() == "FAR_TOKEN"
    assert cli("login", "s", "--token", "og_stored")[0] == 0
    assert origin() == str(folder / "home" / "credentials")
    monkeypatch.setenv("OMNIGRAPH_TOKEN_S", "og_variable")
    assert origin() == "OMNIGRAPH_TOKEN_S"
    assert origin("https://near.example", "near") == "FAR_TOKEN", "the token of a server goes to no other server"
    assert origin("https://elsewhere.example", None) == "OMNIGRAPH_BEARER_TOKEN"
    assert "og_" not in repr(find_token(Address.of("https://graph.example", ""), invocation()))


def test_time_limit_of_reads(folder: Path, monkeypatch: pytest.MonkeyPatch):
    assert timeout_s(invocation()) == 60
    monkeypatch.setenv("OMNIGRAPH_HTTP_TIMEOUT_MS", "1500")
    assert timeout_s(invocation()) == 1.5
    for wrong in ("0", "-1", "1.5", "soon", "٣"):
        monkeypatch.setenv("OMNIGRAPH_HTTP_TIMEOUT_MS", wrong)
        with pytest.raises(InputError, match=r"OMNIGRAPH_HTTP_TIMEOUT_MS must be a number of milliseconds"):
            timeout_s(invocation())


def test_given_addresses():
    assert invocation().given.is_empty
    assert invocation(server_name="s", graph_id="g").given == GivenAddress(server="s", graph_id="g")
