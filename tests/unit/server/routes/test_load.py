"""Loads: envelopes, streams of JSON lines and Arrow streams."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import tempfile
import time
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.server.routes import load
from support.server import Reply, ServerUnderTest, serving

NDJSON = {"Content-Type": "application/x-ndjson"}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spool bodies into a folder of the test."""
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


def person(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **more}}


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def stream(type_name: str | None, codec: str | None = None, **columns: Any) -> bytes:
    sink = io.BytesIO()
    metadata = {"omnigraph.type": type_name} if type_name else None
    table = pa.table(columns).replace_schema_metadata(metadata)
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def count(graph: og.Graph, branch: str = "main") -> int:
    return graph.snapshot(branch).table("node:Person").row_count


def spooled() -> list[Path]:
    return [*Path(tempfile.gettempdir()).glob("omnigraph-body-*")]


def test_an_envelope_is_one_commit(server: ServerUnderTest, graph: og.Graph) -> None:
    body = {"data": lines(person("cy"), person("di", age=5)), "message": "two", "mode": "append"}
    reply = server.post("/load", body)
    assert reply.status == 200, reply.body
    answer = reply.json
    assert answer["tables"] == [{"table_key": "node:Person", "rows_loaded": 2}]
    assert (answer["branch"], answer["base_branch"], answer["branch_created"]) == ("main", None, False)
    assert (answer["mode"], answer["commit"]["message"]) == ("append", "two")
    assert (answer["rejected"], answer["repeated"]) == ([], False)
    assert reply.headers["omnigraph-commit"] == answer["commit"]["graph_commit_id"] == graph.commits(limit=1)[0].id
    assert count(graph) == 4
    assert server.post("/load", body).status == 409
    assert count(graph) == 4


def test_only_ingest_creates_a_branch_by_itself(server: ServerUnderTest, graph: og.Graph) -> None:
    data = lines(person("cy"))
    missing = server.post("/load", {"data": data, "branch": "draft"})
    assert (missing.status, missing.json["reason"]) == (404, "branch_not_found")
    made = server.post("/ingest", {"data": data, "branch": "draft"}).json
    assert (made["base_branch"], made["branch_created"]) == ("main", True)
    made = server.post("/load", {"data": data, "branch": "other", "from": "draft"}).json
    assert (made["base_branch"], made["branch_created"]) == ("draft", True)
    reply = server.post("/load/ndjson?branch=third&from=none", data.encode(), headers=NDJSON)
    assert reply.status == 404
    assert graph.branches() == ["main", "draft", "other"]
    assert count(graph, "other") == 3


def test_rejects_are_listed(server: ServerUnderTest, graph: og.Graph) -> None:
    data = lines(person("cy"), person("di", age="old"), {"type": "Nothing", "data": {}})
    refused = server.post("/load", {"data": data})
    assert refused.status == 400
    assert "line 3" in refused.json["error"]
    answer = server.post("/load", {"data": data, "rejects": True}).json
    assert [(reject["line"], reject["type"]) for reject in answer["rejected"]] == [(2, "Person"), (3, "Nothing")]
    assert answer["rejected"][0]["record"] == person("di", age="old")
    assert count(graph) == 3


def test_a_key_and_a_precondition(server: ServerUnderTest, graph: og.Graph) -> None:
    head = graph.commits(limit=1)[0].id
    send = {"data": lines({"edge": "Knows", "from": "ana", "to": "bo"})}
    first = server.post("/ingest", send, headers={"Idempotency-Key": "l-1", "If-Match": f'"{head}"'})
    assert first.status == 200, first.body
    again = server.post("/ingest", send, headers={"Idempotency-Key": "l-1"}).json
    assert again["repeated"]
    assert again["commit"] == first.json["commit"]
    assert server.post("/ingest", send, headers={"If-Match": f'"{head}"'}).status == 412
    assert graph.snapshot().table("edge:Knows").row_count == 2


def test_a_stream_of_lines(server: ServerUnderTest, graph: og.Graph) -> None:
    text = lines(*(person(f"p{number}", age=number) for number in range(2000)))
    reply = server.post("/load/ndjson?mode=append&message=many", text.encode(), headers=NDJSON)
    assert reply.status == 200, reply.body
    assert reply.json["tables"] == [{"table_key": "node:Person", "rows_loaded": 2000}]
    packed = gzip.compress(lines(person("zoe")).encode())
    assert server.post("/load/ndjson", packed, headers={**NDJSON, "Content-Encoding": "gzip"}).status == 200
    assert count(graph) == 2003
    assert spooled() == []


def test_each_line_is_exactly_one_record(server: ServerUnderTest, graph: og.Graph) -> None:
    good = lines(person("cy"))
    for wrong in (
        '{"type":"Person","type":"Person","data":{"name":"a"}}',
        '{"type":"Person","data":{"name":"a","name":"b"}}',
        '{"type":"Person","data":{"name":"a"},"extra":1}',
        '{"type":"Person","data":{"name":"a","_tombstone":true}}',
        '{"type":"Person","data":{"name":"a","src":"b"}}',
        '{"type":"Person"}{"type":"Person"}',
        "// a comment",
        "   ",
        "",
        "[]",
        "null",
        "{",
        "\x00",
        '{"type":"Person","data":{"name":"a","photo":"file:///etc/passwd"}}',
        '{"type":"Person","data":{"name":"a","photo":"/etc/passwd"}}',
        "/etc/passwd",
        "s3://bucket/people.jsonl",
    ):
        reply = server.post("/load/ndjson", f"{good}{wrong}\n{good}".encode(), headers=NDJSON)
        assert reply.status == 400, (wrong, reply.body)
        assert "line 2" in reply.json["error"], (wrong, reply.json)
        assert "omnigraph-body" not in reply.body.decode()
    assert count(graph) == 2
    assert spooled() == []


def test_the_members_of_a_request_are_checked(server: ServerUnderTest) -> None:
    for body in (
        {},
        {"data": 1},
        {"data": ["/etc/passwd"]},
        {"data": "/etc/passwd"},
        {"data": "x.jsonl"},
        {"data": lines(person("x")), "mode": "replace"},
        {"data": lines(person("x")), "branch": "a//b", "from": "main"},
        {"data": lines(person("x")), "branch": "__internal", "from": "main"},
    ):
        assert server.post("/load", body).status == 400, body
    for path in ("/load/ndjson?mode=x", "/load/ndjson?what=1", "/load/ndjson?type=Person", "/load/ndjson?branch="):
        assert server.post(path, lines(person("x")).encode(), headers=NDJSON).status == 400, path
    assert server.post("/load/ndjson", b"{}", headers={"Content-Type": "text/plain"}).status == 415
    assert server.post("/load/arrow", b"{}", headers=NDJSON).status == 415
    assert server.post("/load/ndjson", b"", headers=NDJSON).status == 200


def test_arrow_streams(server: ServerUnderTest, graph: og.Graph) -> None:
    people = stream("Person", name=["cy", "di"], age=[1, 2])
    edges = stream("Knows", **{"from": ["cy"], "to": ["di"], "since": [2021]})
    reply = server.post("/load/arrow?message=arrow", people + edges, headers=ARROW)
    assert reply.status == 200, reply.body
    assert {table["table_key"]: table["rows_loaded"] for table in reply.json["tables"]} == {
        "edge:Knows": 1,
        "node:Person": 2,
    }
    more = stream("Person", name=["ed"], age=[1]) + stream(None, "zstd", name=["fay"], age=[1])
    assert server.post("/load/arrow?type=Person", more, headers=ARROW).status == 200
    assert count(graph) == 6
    rejected = server.post(
        "/load/arrow?type=Person&rejects=true", stream(None, name=["gus", None], age=[1, 2]), headers=ARROW
    ).json["rejected"]
    assert [reject["line"] for reject in rejected] == [2]


def test_arrow_streams_of_date_times(tmp_path: Path) -> None:
    """A `DateTime` is read as a `date64` with a time of day, and a stream of it is loaded again."""
    graph = og.init(tmp_path / "g.omni", "node Event { name: String @key at: DateTime? days: [DateTime]? }", sync=False)
    at = datetime(2026, 1, 2, 3, 4, 5)
    graph.load([{"type": "Event", "data": {"name": "a", "at": at.isoformat(), "days": [at.isoformat()]}}], mode="merge")
    rows = graph.to_arrow("Event")
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    with serving(graph.uri) as running:
        reply = running.post("/load/arrow?type=Event&mode=overwrite", sink.getvalue(), headers=ARROW)
    assert reply.status == 200, reply.body
    assert graph.to_arrow("Event").equals(rows)


def test_wrong_arrow_streams_are_refused(server: ServerUnderTest, graph: og.Graph) -> None:
    good = stream("Person", name=["cy"], age=[1])
    broken = bytearray(good)
    broken[len(good) // 2] ^= 0xFF
    file = io.BytesIO()
    table = pa.table({"name": ["x"]})
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    refused = {
        "empty": b"",
        "no stream": b"hello",
        "file format": file.getvalue(),
        "cut": good[: len(good) // 2],
        "junk behind": good + b"junk",
        "no type": stream(None, name=["x"]),
        "unknown type": stream("Nothing", name=["x"]),
        "path as type": stream("../../etc/passwd", name=["x"]),
        "not text": stream("Person", name=["x"]).replace(b"Person", b"\xff\xfe\xff\xfe\xff\xff"),
        "two schemas": good + stream("Person", name=["x"]),
        "wrong column": stream("Person", nom=["x"]),
        "wrong values": stream("Person", name=["x"], age=["old"]),
    }
    for what, body in refused.items():
        reply = server.post("/load/arrow", body, headers=ARROW)
        assert reply.status in (400, 404), (what, reply.body)
        assert "omnigraph-body" not in reply.body.decode(), what
    assert server.post("/load/arrow", bytes(broken), headers=ARROW).status in (200, 400)
    assert count(graph) in (2, 3)
    assert spooled() == []


def test_malformed_arrays_do_not_reach_the_engine(server: ServerUnderTest) -> None:
    good = stream("Person", name=["cy", "di", "ed"], age=[1, 2, 3])
    for position in range(0, len(good), 7):
        broken = bytearray(good)
        broken[position] ^= 0xA5
        reply = server.post("/load/arrow", bytes(broken), headers=ARROW)
        assert reply.status in (200, 400, 404, 413), (position, reply.body)
    assert server.get("/healthz").status == 200


def test_archives_of_files(server: ServerUnderTest, graph: og.Graph) -> None:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as tar:
        for name, data in (("x/Person.csv", b"name\ncsv-1\n"), ("../more.jsonl", b"// comment\n")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    send = partial(server.post, "/load/files", headers={"Content-Type": "application/x-tar"})
    reply = send(body.getvalue(), params={"mode": "append", "delimiter": ","})
    assert (reply.status, reply.json["tables"]) == (200, [{"table_key": "node:Person", "rows_loaded": 1}])
    assert graph.get("Person", "csv-1") is not None
    wrong = send(b"no archive" * 100)
    assert (wrong.status, wrong.json["reason"]) == (400, "bad_archive")
    assert send(body.getvalue(), params={"type": "Person"}).status == 400


def test_the_limits_of_bodies(graph: og.Graph) -> None:
    with serving(graph.uri, flags={"limits.load_bytes": 4096, "limits.envelope_bytes": 2048}) as server:
        text = lines(*(person(f"p{number}") for number in range(200)))
        assert server.post("/load/ndjson", text.encode(), headers=NDJSON).status == 413
        assert server.post("/load", {"data": text}).status == 413
        bomb = stream("Person", "zstd", name=["x" * 100_000], age=[1])
        assert len(bomb) < 4096
        reply = server.post("/load/arrow", bomb, headers=ARROW)
        assert (reply.status, reply.json["resource_limit"]["resource"]) == (413, "bytes")
        assert reply.json["resource_limit"]["actual"] >= 100_000
        repeated = stream("Person", name=pa.array(["x" * 1000] * 100).dictionary_encode(), age=[1] * 100)
        assert len(repeated) < 4096
        assert server.post("/load/arrow", repeated, headers=ARROW).status == 413
    assert count(graph) == 2
    assert spooled() == []


def test_the_policy_judges_before_the_body_is_read(guarded: ServerUnderTest, graph: og.Graph) -> None:
    guest = {"token": "guest-token"}
    data = lines(person("cy"))

    def statuses(branch: str, source: str | None) -> set[int]:
        named = {"branch": branch, **({"from": source} if source else {})}
        query = "&".join(f"{name}={value}" for name, value in named.items())
        replies: list[Reply] = [
            guarded.post("/ingest", {"data": data, **named}, **guest),
            guarded.post("/load", {"data": data, **named}, **guest),
            guarded.post(f"/load/ndjson?{query}", data.encode(), headers=NDJSON, **guest),
            guarded.post(f"/load/arrow?{query}", stream("Person", name=["cy"]), headers=ARROW, **guest),
        ]
        return {reply.status for reply in replies}

    assert statuses("main", None) == {403}
    assert statuses("fresh", "main") == {403}
    graph.branch_create("draft")
    assert statuses("draft", None) == {200}
    assert guarded.post("/load/ndjson", b"\x00", headers=NDJSON, **guest).status == 403
    assert graph.branches() == ["main", "draft"]
    assert guarded.post("/ingest", {"data": data, "branch": "mine"}).json["branch_created"]


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="lists open files")  # noqa: PTH110
def test_no_file_stays_open(server: ServerUnderTest) -> None:
    def opened() -> list[str]:
        return [entry for entry in map(_target, os.listdir("/proc/self/fd")) if "omnigraph-body" in entry]  # noqa: PTH208

    server.post("/load/ndjson", lines(person("cy")).encode(), headers=NDJSON)
    server.post("/load/arrow", stream("Person", name=["di"]), headers=ARROW)
    server.post("/load/arrow", b"junk", headers=ARROW)
    assert opened() == []


def _target(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
    except OSError:
        return ""


def ended(server: ServerUnderTest, location: str) -> Any:
    """Return an operation after its end."""
    for _ in range(600):
        found = server.get(location).json
        if found["state"] not in ("queued", "running"):
            return found
        time.sleep(0.05)
    raise AssertionError("the operation did not end")


def test_a_large_load_continues_after_its_answer(
    server: ServerUnderTest, graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "ASYNC_BYTES", 64)
    prefer = {"Prefer": "respond-async"}
    text = lines(person("cy"), person("di")).encode()
    reply = server.post("/load/ndjson?mode=merge", text, headers={**NDJSON, **prefer})
    assert (reply.status, reply.headers["preference-applied"]) == (202, "respond-async")
    operation = ended(server, reply.headers["location"])
    assert (operation["state"], operation["kind"]) == ("done", "loadNdjson")
    assert operation["result"]["commit"]["graph_commit_id"] == graph.commits(limit=1)[0].id
    assert count(graph) == 4

    more = stream("Person", name=["ed", "flo"], age=[1, 2])
    arrow = server.post("/load/arrow", more, headers={**ARROW, **prefer})
    assert ended(server, arrow.headers["location"])["state"] == "done"
    wrong = server.post("/load/ndjson", b"\n".join([b"{}"] * 99), headers={**NDJSON, **prefer})
    failed = ended(server, wrong.headers["location"])
    assert (failed["state"], failed["error"]["code"]) == ("failed", "bad_request")
    assert count(graph) == 6
    assert server.becomes_idle()
    assert spooled() == []


def test_a_load_is_awaited_if_it_is_small_or_the_client_waits(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = lines(person("cy")).encode()
    small = server.post("/load/ndjson?mode=merge", text, headers={**NDJSON, "Prefer": "respond-async"})
    assert small.status == 200
    assert "preference-applied" not in small.headers
    monkeypatch.setattr(load, "ASYNC_BYTES", 1)
    for prefer in ("wait", "respond-async, wait=10", "handling=strict"):
        reply = server.post("/load/ndjson?mode=merge", text, headers={**NDJSON, "Prefer": prefer})
        assert reply.status == 200, prefer
