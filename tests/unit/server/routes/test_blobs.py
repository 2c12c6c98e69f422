"""Blobs: ranges, conditional requests, HEAD."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from support.server import Reply, ServerUnderTest, serving

DATA = bytes(range(256)) * 16_384
PATH = "/blob?type=Person&id=ana&property=photo"


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A server of a graph with one large and one empty value."""
    folder: Path = tmp_path_factory.mktemp("album")
    graph = og.init(folder / "album.omni", "node Person {\n name: String @key\n age: I64?\n photo: Blob?\n}\n")
    records = [
        {"type": "Person", "data": {"name": "ana", "photo": "base64:" + base64.b64encode(DATA).decode()}},
        {"type": "Person", "data": {"name": "bo", "photo": "base64:"}},
        {"type": "Person", "data": {"name": "cy"}},
    ]
    graph.load(records, mode="merge")
    with serving(graph.uri) as running:
        yield running


def get(album: ServerUnderTest, **headers: str) -> Reply:
    return album.get(PATH, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_the_whole_value(album: ServerUnderTest) -> None:
    reply = album.get(f"{PATH}&entity=node")
    assert (reply.status, reply.body == DATA) == (200, True)
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-length"] == str(len(DATA))
    assert reply.headers["accept-ranges"] == "bytes"
    assert reply.headers["content-disposition"] == "attachment"
    assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert reply.headers["omnigraph-snapshot-id"] == reply.headers["omnigraph-commit"]
    assert reply.headers["etag"].startswith('"')
    head = album.request("HEAD", PATH, headers={"Range": "bytes=0-1"})
    assert (head.status, head.body) == (200, b"")
    for name in ("content-length", "etag", "accept-ranges", "omnigraph-snapshot-id"):
        assert head.headers[name] == reply.headers[name]
    assert album.get(PATH.replace("ana", "bo")).body == b""


@pytest.mark.parametrize(
    ("range_", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        ("bytes=4194300-", 4194300, len(DATA) - 1),
        ("bytes=-5", len(DATA) - 5, len(DATA) - 1),
        ("bytes=-99999999", 0, len(DATA) - 1),
        ("bytes=5-99999999", 5, len(DATA) - 1),
    ],
)
def test_one_range(album: ServerUnderTest, range_: str, first: int, last: int) -> None:
    reply = get(album, Range=range_)
    assert reply.status == 206
    assert reply.body == DATA[first : last + 1]
    assert reply.headers["content-range"] == f"bytes {first}-{last}/{len(DATA)}"
    assert reply.headers["content-length"] == str(last - first + 1)


def test_a_range_beyond_the_end(album: ServerUnderTest) -> None:
    for path, range_ in ((PATH, f"bytes={len(DATA)}-"), (PATH, "bytes=-0"), (PATH.replace("ana", "bo"), "bytes=0-")):
        reply = album.get(path, headers={"Range": range_})
        assert reply.status == 416, range_
        length = reply.json["blob_range"]["length"]
        assert reply.headers["content-range"] == f"bytes */{length}"


def test_other_ranges_give_the_whole_value(album: ServerUnderTest) -> None:
    for range_ in (
        "bytes=2-1",
        "bytes=-",
        "bytes=",
        "bytes=0-1,4-5",
        "rows=0-1",
        "bytes=a-b",
        "x",
        f"bytes={'9' * 50}-",
    ):
        reply = get(album, Range=range_)
        assert (reply.status, len(reply.body)) == (200, len(DATA)), range_


def test_conditional_requests(album: ServerUnderTest) -> None:
    tag = get(album).headers["etag"]
    for value in (tag, f"W/{tag}", "*", f'"other", {tag}'):
        reply = get(album, If_None_Match=value)
        assert (reply.status, reply.body, reply.headers["etag"]) == (304, b"", tag)
    assert get(album, If_None_Match='"other"').status == 200
    assert album.request("HEAD", PATH, headers={"If-None-Match": tag}).status == 304
    for value in (tag, "*", f'"other", {tag}'):
        assert get(album, If_Match=value, Range="bytes=0-1").status == 206
    for value in ('"other"', f"W/{tag}", "x"):
        failed = get(album, If_Match=value, If_None_Match=tag)
        assert (failed.status, failed.json["code"]) == (412, "conflict"), value
    assert get(album, If_Range=tag, Range="bytes=0-1").status == 206
    for value in ('"other"', f"W/{tag}", "Mon, 16 Nov 2026 00:00:00 GMT"):
        assert get(album, If_Range=value, Range="bytes=0-1").status == 200, value


def test_what_does_not_exist(album: ServerUnderTest) -> None:
    for path, status in (
        (PATH.replace("ana", "cy"), 404),
        (PATH.replace("ana", "none"), 404),
        (PATH.replace("Person", "Nothing"), 404),
        (PATH.replace("photo", "age"), 400),
        (PATH.replace("photo", "nothing"), 400),
        (f"{PATH}&entity=edge", 404),
        (f"{PATH}&entity=x", 400),
        (f"{PATH}&branch=none", 404),
        (f"{PATH}&branch=main&snapshot=01X", 400),
        (f"{PATH}&snapshot=01UNKNOWN", 404),
        (f"{PATH}&what=1", 400),
        (f"{PATH}&id=bo", 400),
        ("/blob?type=Person&id=ana", 400),
        ("/blob?type=..%2F..&id=%00&property=photo", 404),
        (PATH.replace("ana", "%ff"), 400),
    ):
        reply = album.get(path)
        assert reply.status == status, (path, reply.body)


def test_a_closed_connection_leaves_no_slot(album: ServerUnderTest) -> None:
    with socket.create_connection(("127.0.0.1", album.port), timeout=30) as connection:
        connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert b"200 OK" in connection.recv(4096)
    assert album.becomes_idle()


def test_the_policy_judges_the_branch(guarded: ServerUnderTest, graph: og.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": "ana", "photo": "base64:QUJD"}}], mode="merge")
    assert guarded.get(PATH, token="guest-token").status == 403
    assert guarded.get(PATH).body == b"ABC"
