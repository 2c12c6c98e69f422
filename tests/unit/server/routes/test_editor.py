"""Services of editors over HTTP: offsets in UTF-16, formats, trees of plans, shapes of Arrow answers."""

from __future__ import annotations

import json

import pyarrow as pa

from support.server import ServerUnderTest

BIRD = "\U0001f426"


def test_completion_and_hover_count_utf16(server: ServerUnderTest) -> None:
    text = f"// {BIRD}\nmatch {{ $p: Person $p.ag"
    units = len(text.encode("utf-16-le")) // 2
    found = server.post("/complete", {"text": text, "offset": units, "offsets": "utf16"}).json
    assert (found["start"], found["end"]) == (units - 2, units)
    assert found["candidates"] == [{"text": "age", "kind": "property", "type": "I64?", "description": None}]
    assert server.post("/complete", {"text": text, "offset": len(text)}).json["end"] == len(text)
    hover = server.post("/hover", {"text": text, "offset": units - 1, "offsets": "utf16"}).json["hover"]
    assert hover is None
    hover = server.post("/hover", {"text": text, "offset": text.index("Person") + 1, "offsets": "utf16"}).json["hover"]
    assert (hover["start"], hover["title"]) == (text.index("Person") + 1, "node Person")
    outside = server.post("/complete", {"text": text, "offset": units + 1, "offsets": "utf16"})
    assert (outside.status, outside.json["reason"]) == (400, "bad_offset")
    schema = server.post("/complete", {"text": "no", "offset": 2, "language": "pg"}).json
    assert [each["text"] for each in schema["candidates"]] == ["node"]


def test_lint_counts_utf16_if_requested(server: ServerUnderTest) -> None:
    text = f'query q() {{ match {{ $p: Person $p.name = "{BIRD}" $p.agee = 1 }} return {{ $p.name }} }}'
    spans = {}
    for offsets in (None, "utf16"):
        report = server.post("/lint", {"query": text, "offsets": offsets}).json
        spans[offsets] = report["results"][0]["diagnostics"][0]
    assert text.encode()[spans[None]["span"]["start"] :].startswith(b"agee")
    assert text.encode("utf-16-le")[2 * spans["utf16"]["span"]["start"] :].startswith("agee".encode("utf-16-le"))
    assert spans["utf16"]["column"] == spans[None]["column"] + 1
    assert server.post("/lint", {"query": "node A { }", "language": "pg"}).json["status"] == "ok"
    assert server.post("/lint", {"query": "node A {", "language": "pg"}).json["status"] == "error"


def test_texts_are_formatted(server: ServerUnderTest) -> None:
    formatted = server.post("/format", {"text": "match{$p:Person}return{$p.name}"}).json
    assert formatted == {"text": "match { $p: Person }\nreturn { $p.name }\n", "changed": True}
    assert server.post("/format", {"text": formatted["text"]}).json["changed"] is False
    assert server.post("/format", {"text": "node A{}", "language": "pg"}).json["text"] == "node A {}\n"
    broken = server.post("/format", {"text": "match {"})
    assert broken.status == 400
    assert broken.json["diagnostics"]


def test_plans_are_trees(server: ServerUnderTest) -> None:
    query = "match { $p: Person $p knows $q } return { $q.name }"
    plan = server.post("/explain", {"query": query}).json["plan"]
    assert [child["op"] for child in plan["children"]] == ["scan", "expand", "return"]
    assert plan["children"][0]["expected"] == 2.0
    ran = server.post("/profile", {"query": query}).json["plan"]
    assert (ran["rows"], ran["children"][1]["rows"]) == (1, 1)


def test_arrow_answers_describe_their_columns(server: ServerUnderTest) -> None:
    query = "match { $p: Person $p knows $q } return { $p, $q, $q.age as age }"
    reply = server.post("/query", {"query": query}, headers={"Accept": "application/vnd.apache.arrow.stream"})
    shape = json.loads(pa.ipc.open_stream(reply.body).schema.metadata[b"shape"])
    assert shape["columns"] == [
        {"kind": "node", "type": "Person"},
        {"kind": "node", "type": "Person"},
        {"kind": "value", "type": "I64?"},
    ]
    assert shape["hops"] == [{"source": 0, "target": 1, "label": "Knows", "directed": True, "several": False}]
