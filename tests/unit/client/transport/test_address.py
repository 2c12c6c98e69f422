"""Addresses of servers and the settings of connections."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.client.transport.address import Address, Settings
from omnigraph.errors import InputError

ADDRESS = Address.of("https://graph.example.org")


@pytest.mark.parametrize(
    ("url", "authority", "graph_path", "server_path"),
    [
        ("https://Host.Example:443/", "host.example", "", ""),
        ("http://[::1]:8080/graphs/a", "[::1]:8080", "/graphs/a", ""),
        ("https://host/prefix//graphs/a///", "host", "/prefix//graphs/a", "/prefix/"),
        ("http://bücher.example/ä", "xn--bcher-kva.example", "/%C3%A4", "/%C3%A4"),
    ],
)
def test_addresses(url: str, authority: str, graph_path: str, server_path: str) -> None:
    found = Address.of(url)
    assert (found.authority, found.graph_path, found.server_path) == (authority, graph_path, server_path)


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "ä" * 64, "host:0"])
def test_hosts_without_an_address(host: str) -> None:
    with pytest.raises(InputError) as caught:
        og.connect(f"http://{host}", retries=0)
    assert caught.value.code == "bad_server_address"


def test_certificates_are_verified_unless_verify_is_false(tmp_path: Path) -> None:
    authorities = tmp_path / "ca.pem"
    authorities.write_text("")
    context = ssl.create_default_context()
    assert Settings(ADDRESS).ssl_context() is None
    assert Settings(ADDRESS, verify=context).ssl_context() is context
    unverified = Settings(ADDRESS, verify=False).ssl_context()
    assert unverified is not None
    assert unverified.verify_mode == ssl.CERT_NONE
    for value in (None, 0, 1, "", b"ca.pem", 0.0):
        given: Any = value
        with pytest.raises(InputError, match="verify"):
            Settings(ADDRESS, verify=given)


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_of_authorities_that_cannot_be_used(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    for given in (path, str(path)):
        with pytest.raises(InputError, match=r"ca\.pem") as caught:
            og.connect("https://127.0.0.1:1", verify=given, retries=0)
        assert caught.value.code == "unreadable_file"


@pytest.mark.parametrize("option", ["timeout_s", "retries"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "5", None, -1, True, 1e20])
def test_numbers(option: str, value: Any) -> None:
    with pytest.raises(InputError, match=option):
        Settings(ADDRESS, **{option: value})


def test_a_token_is_a_text() -> None:
    for value in (b"secret", 5, "sécret", "se\ncret", ""):
        token: Any = value
        with pytest.raises(InputError) as caught:
            Settings(ADDRESS, token)
        assert "cret" not in str(caught.value)
