"""Proxies that the environment names."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

import omnigraph as og
from omnigraph.client.transport.address import Address
from omnigraph.client.transport.proxy import proxy_options
from omnigraph.errors import InputError
from support.scripted_server import ME, answer, scripted


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("proxy", "auth"),
    [
        ("http://{}", None),
        ("{}", None),
        ("http://us%40er:p%C3%A4ss@{}/", "us@er:päss"),
        ("http://user@{}", "user:"),
    ],
)
def test_requests_through_a_proxy(monkeypatch: pytest.MonkeyPatch, proxy: str, auth: str | None) -> None:
    def script(request: Any) -> bytes:
        return ME if request.target.endswith("/me") else answer(200, {"text": "plan", "plan_hash": "x"})

    with scripted(script) as server:
        monkeypatch.setenv("http_proxy", proxy.format(f"127.0.0.1:{server.port}"))
        with og.connect("http://graph.example/graphs/a", retries=0) as graph:
            assert str(graph.explain("x")) == "plan"
        targets = [request.target for request in server.requests]
        assert targets == ["http://graph.example:80/me", "http://graph.example:80/graphs/a/explain"]
        sent = server.requests[-1].headers.get("proxy-authorization", "")
        assert b64decode(sent.removeprefix("Basic ")).decode() == (auth or "")


@pytest.mark.parametrize("proxy", ["socks5://h:1", "http://h:99999", "::::", "http://", "ftp://u:secret@h"])
def test_variables_that_name_no_http_proxy(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(InputError, match="HTTP_PROXY") as caught:
        og.connect("http://graph.example")
    assert caught.value.code == "bad_config"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("no_proxy", "url", "bypassed"),
    [
        ("graph.example", "http://graph.example:8080", True),
        ("graph.example:8080", "http://graph.example:8080", True),
        ("graph.example:8081", "http://graph.example:8080", False),
        (".example", "http://graph.example", True),
        ("*", "http://graph.example", True),
        ("other", "http://graph.example", False),
    ],
)
def test_servers_without_a_proxy(monkeypatch: pytest.MonkeyPatch, no_proxy: str, url: str, bypassed: bool) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert proxy_options(Address.of(url)) == ({} if bypassed else {"proxy_url": "http://proxy:3128"})
