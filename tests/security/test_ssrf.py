"""OWASP API 7: server-side request forgery. No request makes the server connect or read where the caller says.

A listener on loopback counts connections. It stands for every address that a caller may name, and it is the endpoint
of the object store and the target of every redirect.
"""

from __future__ import annotations

import io
import json
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from support.provider import Reply as ProviderReply
from support.provider import running
from support.receiver import receiving
from support.server import Reply, ServerUnderTest, serving

SCHEMA = """node Page {
    url: String @key
    body: Blob?
}
"""
ADD = "query add($url: String, $body: Blob) { insert Page { url: $url, body: $body } }"
FORMS = ("http", "https", "s3", "file", "metadata", "mapped", "decimal", "user", "plain", "data", "gopher", "gs")
SENDERS = ("change", "ndjson", "arrow", "csv", "files")


class Listener:
    """A socket on loopback that counts the connections it receives."""

    def __init__(self) -> None:
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()
    try:
        yield listener
    finally:
        listener.close()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with listening() as served:
        yield served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, listener: Listener) -> Iterator[ServerUnderTest]:
    graph = og.init(tmp_path_factory.mktemp("ssrf") / "g.omni", SCHEMA, sync=False)
    environ = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{listener.port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    with serving(graph.uri, environ=environ) as served:
        yield served


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the machine of the server."""
    file = tmp_path / "secret.txt"
    file.write_text("secret of the machine")
    return file


def references(port: int, secret: Path) -> dict[str, str]:
    """One reference per form."""
    return {
        "http": f"http://127.0.0.1:{port}/x",
        "https": f"https://localhost:{port}/x",
        "s3": "s3://bucket/key",
        "file": secret.as_uri(),
        "metadata": "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
        "mapped": f"http://[::ffff:127.0.0.1]:{port}/x",
        "decimal": f"http://2130706433:{port}/x",
        "user": f"http://example.org@127.0.0.1:{port}/x",
        "plain": str(secret),
        "data": "data:text/plain;base64,eA==",
        "gopher": f"gopher://127.0.0.1:{port}/_x",
        "gs": "gs://bucket/key",
    }


def change(server: ServerUnderTest, reference: str) -> Reply:
    return server.post("/change", {"query": ADD, "params": {"url": "a", "body": reference}})


def ndjson(server: ServerUnderTest, reference: str) -> Reply:
    line = json.dumps({"type": "Page", "data": {"url": "a", "body": reference}}).encode()
    return server.post("/load/ndjson?mode=merge", line, headers={"Content-Type": "application/x-ndjson"})


def arrow(server: ServerUnderTest, reference: str) -> Reply:
    table = pa.table({"url": ["a"], "body": [reference]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
    return server.post("/load/arrow?mode=merge&type=Page", sink.getvalue(), headers=headers)


def archive(name: str, data: bytes) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return sink.getvalue()


def files(server: ServerUnderTest, reference: str) -> Reply:
    line = json.dumps({"type": "Page", "data": {"url": "a", "body": reference}}).encode()
    headers = {"Content-Type": "application/x-tar"}
    return server.post("/load/files?mode=merge", archive("pages.jsonl", line), headers=headers)


def csv(server: ServerUnderTest, reference: str) -> Reply:
    headers = {"Content-Type": "application/x-tar"}
    data = f"url,body\na,{reference}\n".encode()
    return server.post("/load/files?mode=merge", archive("Page.csv", data), headers=headers)


SEND: dict[str, Callable[[ServerUnderTest, str], Reply]] = {
    "change": change,
    "ndjson": ndjson,
    "arrow": arrow,
    "files": files,
    "csv": csv,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sender", SENDERS)
def test_a_blob_is_not_read_from_where_the_caller_says(
    server: ServerUnderTest, listener: Listener, secret: Path, form: str, sender: str
) -> None:
    reply = SEND[sender](server, references(listener.port, secret)[form])
    assert reply.status in (400, 422), reply.body
    assert b"secret of the machine" not in reply.body
    assert listener.connections == 0
    assert server.get("/nodes/Page/a").status == 404, "nothing was written"


def test_the_means_of_these_tests_work(server: ServerUnderTest) -> None:
    with listening() as listener, socket.create_connection(("127.0.0.1", listener.port)) as client:
        assert client.recv(1) == b""
        assert listener.connections == 1
    for send in SEND.values():
        assert send(server, "base64:eA==").status == 200
    assert server.post("/change", {"query": 'query d() { delete Page where url = "a" }'}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "169.254.169.254"},
        {"X-Forwarded-Host": "127.0.0.1"},
        {"Forwarded": "host=127.0.0.1"},
        {"Referer": "http://127.0.0.1/"},
        {"Origin": "http://127.0.0.1"},
        {"Authorization": "Bearer eyJhbGciOiJSUzI1NiIsImprdSI6Imh0dHA6Ly8xMjcuMC4wLjEvIn0.e30.x"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_no_header_makes_the_server_connect(
    server: ServerUnderTest, listener: Listener, headers: dict[str, str]
) -> None:
    named = {name: value.replace("127.0.0.1", f"127.0.0.1:{listener.port}") for name, value in headers.items()}
    assert server.get("/me", headers=named).status < 500
    assert listener.connections == 0


@pytest.mark.parametrize("path", ["/graphs/{}/version", "/graphs/{}/query", "/{}", "//{}/version"])
def test_a_graph_is_served_by_its_id_and_not_by_an_address(
    server: ServerUnderTest, listener: Listener, path: str
) -> None:
    for address in (f"http:%2F%2F127.0.0.1:{listener.port}", "s3:%2F%2Fbucket%2Fg.omni", "file:%2F%2F%2Ftmp"):
        assert server.get(path.format(address)).status in (400, 404, 405)
    assert listener.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_of_an_embedding_provider_are_not_followed(tmp_path: Path, status: int) -> None:
    schema = 'node Note {\n slug: String @key\n text: String\n meaning: Vector(4)? @embed("text", model="m")\n}\n'
    graph = og.init(tmp_path / "g.omni", schema, sync=False)
    record: dict[str, Any] = {"type": "Note", "data": {"slug": "a", "text": "hello"}}
    with running() as provider, listening() as listener:
        location = {"Location": f"http://127.0.0.1:{listener.port}/v1/embeddings"}
        provider.script = [ProviderReply(status, {"error": "moved"}, location)] * 20
        with serving(graph.uri, environ=provider.environ(MODEL="m")) as server:
            headers = {"Content-Type": "application/x-ndjson"}
            reply = server.post("/load/ndjson?mode=merge", json.dumps(record).encode(), headers=headers)
            assert reply.status >= 400, reply.body
            assert provider.seen, "the provider was asked"
            assert listener.connections == 0


HOOK_SECRET = "a-secret-of-the-webhook"
WEBHOOKS = ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0.0.0.0", "169.254.169.254")


def webhook_config(folder: Path, uri: str, entries: list[str]) -> Path:
    config = folder / "omnigraph.yaml"
    lines = "".join(f'    - {{{entry}, secret: "${{HOOK}}"}}\n' for entry in entries)
    config.write_text(f"graphs: {{g: {{uri: {uri}}}}}\nserver:\n  webhooks:\n{lines}", encoding="utf-8")
    return config


def wait_for_webhooks(server: ServerUnderTest, state: str) -> list[Any]:
    """Wait until every webhook has a state, and return them."""
    for _ in range(1500):
        found: list[Any] = server.get("/webhooks").json["webhooks"]
        if all(each["state"] == state for each in found):
            return found
        time.sleep(0.02)
    raise AssertionError(found)


def test_webhooks_refuse_private_loopback_and_metadata_addresses(tmp_path: Path, listener: Listener) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA, sync=False)
    entries = [f'name: h{position}, url: "https://{host}:{listener.port}/x"' for position, host in enumerate(WEBHOOKS)]
    before = listener.connections
    with serving(config=webhook_config(tmp_path, graph.uri, entries), environ={"HOOK": HOOK_SECRET}) as server:
        wait_for_webhooks(server, "ready")
        graph.load([{"type": "Page", "data": {"url": "a"}}], mode="append")
        for each in wait_for_webhooks(server, "retrying"):
            assert "not permitted" in each["failure"]["error"], each
    assert listener.connections == before


def test_a_permission_for_private_addresses_does_not_cover_metadata(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA, sync=False)
    entries = ['name: h, url: "http://169.254.169.254/latest/", allow_private: true']
    with serving(config=webhook_config(tmp_path, graph.uri, entries), environ={"HOOK": HOOK_SECRET}) as server:
        wait_for_webhooks(server, "ready")
        graph.load([{"type": "Page", "data": {"url": "a"}}], mode="append")
        (failed,) = wait_for_webhooks(server, "retrying")
        assert "not permitted" in failed["failure"]["error"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_of_a_receiver_are_not_followed(tmp_path: Path, status: int) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA, sync=False)
    with receiving() as receiver, listening() as listener:
        receiver.script = [(status, {"Location": f"http://127.0.0.1:{listener.port}/x"})] * 20
        entries = [f'name: h, url: "{receiver.url}", allow_private: true']
        with serving(config=webhook_config(tmp_path, graph.uri, entries), environ={"HOOK": HOOK_SECRET}) as server:
            wait_for_webhooks(server, "ready")
            graph.load([{"type": "Page", "data": {"url": "a"}}], mode="append")
            (failed,) = wait_for_webhooks(server, "retrying")
            assert f"status {status}, a redirect" in failed["failure"]["error"]
        assert listener.connections == 0
