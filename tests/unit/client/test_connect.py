"""Connections: addresses, tokens, and the parameters of `open` that are not remote."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, Denied, InputError, MissingPackage, NotFound, RemoteError, Unauthorized
from support.guarded_server import READS_MAIN, TOKEN, guarded
from support.server import serving

COUNT = "match { $p: Person } return { count($p) as n }"


def test_open_connects_to_a_server(local, server):
    with og.open(server.url) as graph:
        assert isinstance(graph, og.RemoteGraph)
        assert graph.query(COUNT).to_pylist() == local.query(COUNT).to_pylist()
        assert (graph.uri, graph.branch, graph.actor) == (server.url, "main", None)
        assert repr(graph) == f"RemoteGraph('{server.url}', branch='main')"

    async def scenario():
        async with await og.aopen(server.url) as remote:
            assert isinstance(remote, og.AsyncRemoteGraph)
            assert (await remote.query(COUNT)).to_pylist() == local.query(COUNT).to_pylist()
            assert await remote.uri() == server.url

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("actor", "ana"), ("policy", "p.yaml"), ("read_only", True), ("blob_sources", ["/tmp"]), ("approximate", True)],
)
def test_parameters_of_an_embedded_graph_are_refused(server, parameter, value):
    with pytest.raises(InputError, match=f"'{parameter}' of 'open' is not available over HTTP") as caught:
        og.open(server.url, **{parameter: value})
    assert caught.value.code == "not_remote"
    with pytest.raises(InputError, match="of 'aopen'"):
        asyncio.run(og.aopen(server.url, **{parameter: value}))


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://host", "not an http or https address"),
        ("http://user:secret@host", "contains a user name or password"),
        ("http://host?x=1", "has a query"),
        ("http://", "has no host"),
    ],
)
def test_addresses(url, problem):
    with pytest.raises(InputError, match=problem) as caught:
        og.connect(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_does_not_run(unused_port):
    url = f"http://127.0.0.1:{unused_port}/graphs/kb"
    with pytest.raises(RemoteError, match=url) as caught:
        og.connect(url, retries=0)
    assert (caught.value.code, caught.value.status) == ("server_unreachable", None)
    with pytest.raises(RemoteError, match=url):
        asyncio.run(og.aconnect(url, retries=0))


@pytest.fixture
def unused_port():
    import socket  # noqa: PLC0415

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize(("option", "value"), [("timeout_s", 0), ("retries", -1), ("token", "two words")])
def test_options(server, option, value):
    with pytest.raises(InputError):
        og.connect(server.url, **{option: value})


def test_branches(local, server):
    local.branch_create("connected")
    with og.connect(server.url, branch="connected") as graph:
        assert graph.branch == "connected"
    with pytest.raises(BranchNotFound):
        og.connect(server.url, branch="absent")


def test_tokens_give_the_actor(tmp_path):
    graph = og.init(tmp_path / "g.omni", "node Person { name: String @key }")
    with guarded(graph, READS_MAIN) as running:
        with pytest.raises(Unauthorized):
            og.connect(running.url, environ={"HOME": str(tmp_path)})
        with og.connect(running.url, token=TOKEN) as remote:
            assert remote.actor == "ana"
            with pytest.raises(Denied):
                remote.mutate('insert Person { name: "x" }')
        with og.open(running.url, actor="ana", environ={"OMNIGRAPH_BEARER_TOKEN": TOKEN}) as remote:
            assert remote.actor == "ana"


def test_named_graphs(tmp_path, local):
    other = og.init(tmp_path / "other.omni", "node Thing { name: String @key }")
    config = tmp_path / "omnigraph.yaml"
    config.write_text(f"graphs:\n  people: {{uri: {local.uri}}}\n  things: {{uri: {other.uri}}}\n")
    with serving(config=config, flags={"unauthenticated": True}) as running:
        with og.connect(f"{running.url}/graphs/people") as graph:
            assert graph.query(COUNT).to_pylist() == local.query(COUNT).to_pylist()
        with og.connect(f"{running.url}/graphs/things/") as graph:
            assert graph.uri == f"{running.url}/graphs/things"
            assert len(graph.query("match { $t: Thing } return { $t.name }")) == 0
        with og.connect(f"{running.url}/graphs/absent") as graph, pytest.raises(NotFound):
            graph.query(COUNT)


def test_a_missing_package_is_named(monkeypatch):
    for module in [name for name in sys.modules if name.startswith("omnigraph.client")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "httpcore2", None)
    from omnigraph.client.connect import connect  # noqa: PLC0415

    with pytest.raises(MissingPackage, match="httpcore2"):
        connect("http://127.0.0.1:1")


def test_the_client_loads_no_lance():
    code = (
        "import sys, omnigraph as og; og.RemoteGraph; og.AsyncRemoteGraph; og.connect; print([name for name in "
        "('lance', 'pandas', 'pyarrow.dataset', 'omnigraph.server', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
