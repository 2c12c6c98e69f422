"""OWASP API 8: configuration. Headers, CORS, TLS, open mode, and errors that reveal nothing of the machine."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import InputError
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from support.raw_http import exchange
from support.route_requests import request_of, text_of
from support.server import WAIT_S, Reply, ServerUnderTest, serving
from support.tenants import Tenants

ORIGIN = "https://app.example"
MACHINE = re.compile(r"Traceback|File \"|site-packages|\.py\b|/home/|/usr/|/root/|0x[0-9a-f]{8,}")
"""What an error text must not contain."""


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def check_headers(reply: Reply, *, is_page: bool = False) -> None:
    """Check the headers of an answer; the page of the explorer has a nonce, which must not be kept."""
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"] == ("no-store" if is_page and reply.status < 400 else "private, no-cache")
    assert {"authorization", "accept"} <= {name.strip().lower() for name in reply.headers["vary"].split(",")}
    assert reply.headers["x-request-id"]
    assert not {"server", "x-powered-by", "set-cookie", "access-control-allow-origin"} & set(reply.headers)


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_every_answer_has_the_headers(site: Tenants, route: Route) -> None:
    request = request_of(route, site.mine)
    is_page = route.path in ("/ui", "/ui/")
    for actor in ("ana", "root"):
        check_headers(request.send(site.server, token=site.tokens[actor], headers={"Origin": ORIGIN}), is_page=is_page)
    check_headers(request.send(site.server, headers={"Authorization": "Bearer wrong"}), is_page=is_page)
    check_headers(request.send(site.server, token=site.tokens["ana"], headers={"Accept": "image/png"}), is_page=is_page)


def test_answers_without_a_route_have_the_headers(site: Tenants) -> None:
    for reply in (
        site.server.get("/none"),
        site.server.request("DELETE", "/healthz"),
        site.server.get("/" + "x" * 9000),
    ):
        assert reply.status in (404, 405, 414)
        check_headers(reply)


HOSTILE: tuple[dict[str, Any], ...] = (
    {"branch": "absent"},
    {"branch": "../../etc/passwd"},
    {"branch": "a" * 200},
    {"branch": 7},
    {"query": "query {"},
    {"query": "/etc/passwd"},
    {"query": "query q() { match { $x: Absent } return { $x } }"},
    {"schema_source": "node"},
    {"schema_source": "/etc/passwd"},
    {"data": "{"},
    {"data": '{"type":"Absent","data":{}}'},
    {"type": "Absent"},
    {"id": "absent"},
    {"commit_id": "absent"},
    {"at": "absent"},
    {"after": "AAAA"},
    {"cursor": "AAAA"},
    {"page_token": "AAAA"},
    {"operation_id": "absent"},
    {"limit": 10**30},
    {"property": "absent"},
)


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_errors_show_neither_paths_nor_traces(site: Tenants, route: Route) -> None:
    base = request_of(route, site.mine)
    known = {*base.path, *(base.members if route.input is None else route.input.__struct_encode_fields__), "data"}
    for values in HOSTILE:
        name, value = next(iter(values.items()))
        if name not in known:
            continue
        reply = base.with_value(name, value).send(site.server, token=site.tokens["root"])
        assert reply.status < 500, (values, reply.body)
        if reply.status >= 400:
            assert not MACHINE.search(text_of(reply)), reply.body
            assert str(site.folder) not in text_of(reply)


def test_an_unexpected_failure_shows_no_detail(site: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"broken in {site.folder}")

    monkeypatch.setattr("omnigraph.graph.Graph.query", fail)
    reply = site.server.post("/query", {"query": "query q() {"}, token=site.tokens["root"])
    assert (reply.status, reply.json["reason"]) == (500, "internal_error")
    assert not MACHINE.search(text_of(reply))
    assert str(site.folder) not in text_of(reply)


def test_a_damaged_graph_shows_no_path(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node P { name: String @key }", sync=False)
    graph.load([{"type": "P", "data": {"name": "a"}}], mode="append")
    with serving(graph.uri) as server:
        for file in (tmp_path / "g.omni").rglob("*.lance"):
            if file.is_file():
                file.unlink()
        reply = server.post("/query", {"query": "query q() { match { $p: P } return { $p.name } }"})
        assert reply.status >= 500
        assert str(tmp_path) not in text_of(reply)
        assert not MACHINE.search(text_of(reply))


# -- cross-origin requests ---------------------------------------------------------------------------


def preflight(server: ServerUnderTest, origin: str, method: str = "POST") -> Reply:
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    return server.request("OPTIONS", "/query", headers=headers)


def test_cors_is_closed(site: Tenants) -> None:
    reply = preflight(site.server, ORIGIN)
    assert reply.status == 405
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return og.init(tmp_path_factory.mktemp("open") / "g.omni", "node P { name: String @key }", sync=False)


@pytest.fixture(scope="module")
def open_server(graph: og.Graph) -> Iterator[ServerUnderTest]:
    """A server in open mode that permits one origin."""
    with serving(graph.uri, flags={"cors.origins": (ORIGIN,)}) as running:
        yield running


def test_cors_permits_the_listed_origin_only(open_server: ServerUnderTest) -> None:
    reply = preflight(open_server, ORIGIN)
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == ORIGIN
    assert "access-control-allow-credentials" not in reply.headers
    answer = open_server.get("/version", headers={"Origin": ORIGIN})
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "origin" in answer.headers["vary"].lower()
    for origin in (
        "https://app.example.evil",
        "http://app.example",
        "https://APP.example.",
        "null",
        "*",
        "https://other",
    ):
        for refused in (preflight(open_server, origin), open_server.get("/version", headers={"Origin": origin})):
            assert refused.headers.get("access-control-allow-origin") not in (origin, "*"), origin


def test_any_origin_cannot_be_configured(graph: og.Graph) -> None:
    with pytest.raises(InputError, match="must name origins"), serving(graph.uri, flags={"cors.origins": ("*",)}):
        pass


# -- open mode ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0"])
def test_open_mode_off_loopback_does_not_start(graph: og.Graph, bind: str) -> None:
    with pytest.raises(InputError), serving(graph.uri, flags={"bind": bind}):
        pass


FOREIGN_HOSTS = (
    *("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "user@evil.example"),
    *("127.0.0.1@evil.example", "0.0.0.0", "10.0.0.1", "[2001:db8::1]", "localhost,evil.example", "", "[", "a b"),
)


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_refused_in_open_mode(open_server: ServerUnderTest, host: str) -> None:
    answer = exchange(open_server.port, f"GET /version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert answer.split(b" ")[1] in (b"403", b"400"), answer[:200]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:99", "[::1]", "[::1]:80"])
def test_a_local_host_is_served_in_open_mode(open_server: ServerUnderTest, host: str) -> None:
    assert open_server.get("/version", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://", "x", ""]
)
def test_a_foreign_origin_is_refused_in_open_mode(open_server: ServerUnderTest, origin: str) -> None:
    for path in ("/version", "/none"):
        assert open_server.get(path, headers={"Origin": origin}).status == 403


def test_a_local_origin_is_served_in_open_mode(open_server: ServerUnderTest) -> None:
    assert open_server.get("/version", headers={"Origin": "http://localhost:3000"}).status == 200


# -- TLS ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls(graph: og.Graph, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(cert), "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    with serving(graph.uri, flags={"tls.cert": str(cert), "tls.key": str(key)}) as server:
        modern = ssl.create_default_context(cafile=str(cert))
        assert b"200 OK" in tls_exchange(server.port, modern)
        old = ssl.create_default_context(cafile=str(cert))
        old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, OSError)):
            tls_exchange(server.port, old)
        with pytest.raises(ssl.SSLCertVerificationError):
            tls_exchange(server.port, ssl.create_default_context())
        assert b"200 OK" not in exchange(server.port, b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")


def tls_exchange(port: int, context: ssl.SSLContext) -> bytes:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return connection.recv(65536)
