"""Addresses of servers: normalization, refusals, the graph of an address."""

from __future__ import annotations

import pytest

from omnigraph.errors import InputError
from omnigraph.http_address import graph_of_url, graph_url, is_server_url, lies_under, normalized_url


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://Graph.Example.com/", "https://graph.example.com"),
        ("HTTP://h:80/a/b//", "http://h/a/b"),
        ("https://h:443", "https://h"),
        ("https://h:80", "https://h:80"),
        ("http://[::1]:8080/graphs/a", "http://[::1]:8080/graphs/a"),
        ("http://h/Path%20x", "http://h/Path%20x"),
    ],
)
def test_normal_form(url, normal):
    assert normalized_url(url) == normal
    assert normalized_url(normal) == normal


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://h", "is not an http or https address"),
        ("./graph.omni", "is not an http or https address"),
        ("https://", "has no host"),
        ("https://h:99999", "is not a valid address"),
        ("https://[::1", "is not a valid address"),
        ("https://ana:secret@h/x", "contains a user name or password"),
        ("https://h/x?token=secret", "has a query or a fragment"),
        ("https://h/x#secret", "has a query or a fragment"),
        ("https://h/a/../b", "contains a dot segment"),
        ("https://h/a/%2e%2E/b", "contains a dot segment"),
        ("https://h/a b", "is not an http or https address"),
        ("https://h/a\r\nX: y", "is not an http or https address"),
    ],
)
def test_refused_addresses(url, said):
    with pytest.raises(InputError, match=said) as caught:
        normalized_url(url)
    assert caught.value.code == "bad_server_address"
    assert "secret" not in str(caught.value)


def test_graph_of_an_address():
    url = graph_url("https://h/base", "loans/2026")
    assert url == "https://h/base/graphs/loans%2F2026"
    assert graph_of_url(url) == "loans/2026"
    assert graph_of_url("https://h/base") is None
    assert graph_of_url("https://h/graphs/") is None


def test_whole_path_segments():
    assert lies_under("https://h/a/b", "https://h/a")
    assert lies_under("https://h/a", "https://h/a")
    assert not lies_under("https://h/ab", "https://h/a")
    assert not lies_under("https://h.evil.example", "https://h")
    assert not lies_under("https://h:8443/a", "https://h")


def test_kind_of_address():
    assert is_server_url("HTTPS://h")
    assert not is_server_url("s3://bucket/prefix")
