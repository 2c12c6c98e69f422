"""Reading in blocks gives the same result as reading line by line."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from omnigraph.engine.ingest import jsonl_fast
from omnigraph.engine.ingest.jsonl_fast import BlockReader
from omnigraph.engine.ingest.record_reader import iterate_lines, read_jsonl, read_text
from omnigraph.engine.ingest.records import Faults, RecordSet
from omnigraph.engine.ingest.row_builder import build_rows
from omnigraph.errors import RecordError
from omnigraph.schema.check import compile_schema
from support.writes import called

CATALOG = compile_schema("""
node Person {
    name: String @key
    age: I32?
    born: Date?
    class: String?
    score: F64?
    src: String?
    tags: [String]?
}
node Note { text: String  blob: Blob? }
edge Knows: Person -> Person { since: Date? }
edge Wrote: Person -> Note
""")
ADA = '{"type":"Person","data":{"name":"ada","age":36}}'
BOB = '{"type": "Person", "data": {"name": "bob", "class": "x", "src": "y", "score": 1}}'
KNOWS = '{"edge":"Knows","from":"ada","to":"bob","data":{"since":"2024-02-29"}}'
SOUND = [
    ADA,
    BOB,
    KNOWS,
    '{"edge":"knows","to":"ada","from":"bob"}',
    '{"data":{"text":"a","id":"n1"},"type":"Note"}',
    '{"type":"Note","data":{"text":"a \\": b","blob":"base64:AA=="}}',
    '{"type":"Note","data":{"text":" spaced : \\"quoted\\" text"}}',
    '{"type":"Person","data":{"name":"c","age":null,"born":"2024-02-29T23:00-02:00","tags":["a",": b"]}}',
    '{"type":"Person","data":{"name":"d","born":3,"score":1e300}}',
    '{"edge":"Wrote","from":"ada","to":"n1","data":{}}',
    '{"type" : "Person", "data"\t: {"name" : "e"}}',
    '  {"type":"Person","data":{"name":"f"}}  ',
    '{"type":"Person","data":{"name":"\\u00e9\\ud83d\\ude00"}}',
]
ODD = ["", "   ", "// a remark", "\t// another"]
WRONG = [
    "nonsense",
    "{}",
    "[]",
    "null",
    '{"type":"Nobody"}',
    '{"type":"Person"}',
    '{"type":"Person","data":{"name":"a"}}{"type":"Person","data":{"name":"b"}}',
    '{"type":"Person","data":{"name":"a","name":"b"}}',
    '{"type":"Person","type":"Person","data":{"name":"a"}}',
    '{"type":"Person","data":{"name" :"a","name":"b"}}',
    '{"type":"Person","data":{"name":"a","nothing":1}}',
    '{"type":"Person","data":{"name":"a","age":3.0}}',
    '{"type":"Person","data":{"name":"a","age":"3"}}',
    '{"type":"Person","data":{"name":"a","born":"2024-02-30"}}',
    '{"type":"Person","data":{"name":"a","tags":{"a":1}}}',
    '{"type":"Person","data":{"name":"a","id":"b"}}',
    '{"type":"Person","data":{"name":"a","id":7}}',
    '{"type":"Person","data":[]}',
    '{"type":"Person","data":null}',
    '{"type":"Person","edge":"Knows","data":{"name":"a"}}',
    '{"type":"Person","from":"a","data":{"name":"a"}}',
    '{"type":7}',
    '{"edge":"Knows","from":"a"}',
    '{"edge":"Knows","from":"a","to":null}',
    '{"edge":"Knows","from":"a","to":"b","data":{"src":"c"}}',
    '{"type":"Person","data":{"name":"\\ud800"}}',
    '{"type":"Person","data":{"name":NaN}}',
    '{"type":"Person",',
    '"data":{"name":"a"}}',
]


def outcome(parts: dict[str, list[RecordSet]], faults: Faults) -> dict[str, Any]:
    """Return every row with its line, without generated ids."""
    found: dict[str, Any] = {}
    for key in sorted(parts):
        rows = build_rows(parts[key], faults, called("new"), keep=True)
        given = {name: mask.to_pylist() for name, mask in rows.given.items()}
        found[key] = list(zip(rows.lines.to_pylist(), rows.table.to_pylist(), strict=True)), given
    return found


def in_blocks(text: bytes, *, collect: bool) -> Any:
    faults = Faults(collect)
    try:
        found = outcome(read_text(text, CATALOG, faults), faults)
    except RecordError as error:
        return error.message, error.hint, error.rule, error.property_name
    return found, sorted((error.line, error.message) for error in faults.found)


def by_line(text: bytes, *, collect: bool) -> Any:
    faults = Faults(collect)
    try:
        read = read_jsonl(iterate_lines(text), CATALOG, faults)
        found = outcome({key: [part] for key, part in read.items()}, faults)
    except RecordError as error:
        return error.message, error.hint, error.rule, error.property_name
    return found, sorted((error.line, error.message) for error in faults.found)


@pytest.mark.parametrize("line", [*SOUND, *ODD, *WRONG])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_one_unusual_line_among_valid_lines(line, end):
    for lines in ([line], [ADA, line], [line, KNOWS], [ADA, line, KNOWS, ADA[:-3] + "7}}"]):
        text = "\n".join(lines) + end
        for collect in (False, True):
            assert in_blocks(text.encode(), collect=collect) == by_line(text.encode(), collect=collect), text


@pytest.mark.parametrize("seed", range(150))
def test_random_lines_in_small_blocks(seed, tune):
    random = Random(seed)
    tune(jsonl_block_bytes=random.choice((1, 100, 1000)))
    kinds = [*[random.choice(SOUND)] * 20, *SOUND, *random.sample(ODD, 1), *random.sample(WRONG, 2 if seed % 3 else 0)]
    end = random.choice(("\n", "\r\n"))
    text = end.join(random.choice(kinds) for _ in range(random.randrange(1, 60))).encode()
    for collect in (False, True):
        assert in_blocks(text, collect=collect) == by_line(text, collect=collect)


def test_valid_blocks_are_read_as_columns():
    lines = [json.dumps({"type": "Person", "data": {"name": f"p{n}", "age": n}}) for n in range(50)]
    lines += [json.dumps({"edge": "Knows", "from": f"p{n}", "to": "p0"}) for n in range(50)]
    people, knows = BlockReader(CATALOG, "f").read("\n".join(lines).encode(), 7)
    assert people.lines == list(range(7, 57))
    assert people.fields["age"].to_pylist() == list(range(50))
    assert (knows.type.name, knows.source, knows.fields["dst"].to_pylist()) == ("Knows", "f", ["p0"] * 50)


def test_text_with_quotes_and_colons_is_read_as_columns():
    text = 'she said "yes" and: no : "no"'
    line = json.dumps({"type": "Note", "data": {"text": text}})
    (notes,) = BlockReader(CATALOG, None).read(f"{line}\n{line}\n".encode(), 1)
    assert notes.lines == range(1, 3)
    assert notes.fields["text"].to_pylist() == [text] * 2


def test_a_long_line_is_read_line_by_line():
    line = json.dumps({"type": "Note", "data": {"text": "x" * jsonl_fast.STRUCTURE_MAX}})
    assert BlockReader(CATALOG, None).read(line.encode(), 1) is None


@pytest.mark.parametrize("read", [read_text, lambda *more: {k: [v] for k, v in read_jsonl(*more).items()}])
def test_an_absent_property_differs_from_null(read):
    lines = [
        '{"type":"Person","data":{"name":"a","age":null}}',
        '{"type":"Person","data":{"name":"b","class":"x"}}',
        '{"type":"Person","data":{"name":"c","age":3,"class":null}}',
    ]
    given = lines if read is not read_text else "\n".join(lines).encode()
    faults = Faults(collect=False)
    parts = read([line.encode() for line in given] if isinstance(given, list) else given, CATALOG, faults)
    rows = build_rows(parts["node:Person"], faults, called("new"), keep=True)
    masks = {name: mask.to_pylist() for name, mask in rows.given.items()}
    assert masks.pop("age") == [True, False, True]
    assert masks.pop("class") == [False, True, True]
    assert masks == dict.fromkeys(("born", "score", "src", "tags"), [False] * 3)
    assert rows.table["age"].to_pylist() == [None, None, 3]


def test_an_empty_text_has_no_records():
    assert read_text(b"", CATALOG, Faults()) == {}
