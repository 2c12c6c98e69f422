"""The shape of records, line by line."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.ingest.record_reader import iterate_lines, read_dicts, read_jsonl, read_text
from omnigraph.engine.ingest.records import Faults, RecordColumns
from omnigraph.engine.ingest.row_builder import build_rows
from omnigraph.errors import RecordError
from omnigraph.schema.check import compile_schema
from support.writes import called, everything, named, new_graph

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    big: U64?
    score: F32?
    born: Date?
    seen: DateTime?
    ok: Bool?
    mood: enum(sad, happy)?
    tags: [String]?
    nums: [I32]?
    vec: Vector(2)?
    blob: Blob?
}
node Note { text: String }
node Bed { ward: String  number: I32  @key(ward, number) }
edge Knows: Person -> Person { since: Date? }
edge WroteNote: Person -> Note
"""
CATALOG = compile_schema(SCHEMA)


def read(text: str | bytes) -> dict[str, Any]:
    """Return table key → (line, data, ends) of every record."""
    data = text if isinstance(text, bytes) else text.encode()
    found = read_jsonl(iterate_lines(data), CATALOG, Faults())
    return {
        key: [
            (line, data, *((one.src[i], one.dst[i]) if one.src else ()))
            for i, (line, data) in enumerate(zip(one.lines, one.data, strict=True))
        ]
        for key, one in found.items()
    }


ADA = '{"type":"Person","data":{"name":"ada"}}'


def test_a_byte_order_mark_is_accepted():
    text = b"\xef\xbb\xbf" + ADA.encode() + b"\n"
    (part,) = read_text(text, CATALOG, Faults())["node:Person"]
    assert part.fields["name"].to_pylist() == ["ada"]
    assert read(text)["node:Person"] == [(1, {"name": "ada"})]


def test_an_integer_end_refers_to_the_node_with_that_key():
    catalog = compile_schema("node R { card: I64 @key }\nedge B: R -> R\n")
    record: dict[str, Any] = {"edge": "B", "from": 7, "to": "8"}
    line = json.dumps(record).encode()
    for found in (read_dicts([record], catalog, Faults()), read_jsonl([line], catalog, Faults())):
        assert (found["edge:B"].src, found["edge:B"].dst) == (["7"], ["8"])
    (part,) = read_text(line + b"\n", catalog, Faults())["edge:B"]
    assert isinstance(part, RecordColumns)
    assert part.fields["src"].to_pylist() == ["7"]
    for wrong in (7.0, True, 2**63, None):
        with pytest.raises(RecordError, match="'from' must be the id of a node"):
            read_dicts([{**record, "from": wrong}], catalog, Faults())


# -- lines -------------------------------------------------------------------------------------------


def test_blank_lines_and_comments_are_skipped_but_numbered():
    text = f'\n  \t \n// a comment {{"type"\n   // another\n{ADA}\n\n{ADA}'
    assert read(text) == {"node:Person": [(5, {"name": "ada"}), (7, {"name": "ada"})]}


def test_line_ends_of_every_kind():
    assert [line for line, *_ in read(f"{ADA}\r\n{ADA}\r\n{ADA}")["node:Person"]] == [1, 2, 3]
    assert read("") == {}
    assert read("\n\n") == {}
    assert list(iterate_lines(b"a\n\nb\r\nc")) == [b"a", b"", b"b\r", b"c"]


def test_other_line_separators_belong_to_the_line():
    line = json.dumps({"type": "Person", "data": {"name": "a\u2028b\u0085c"}}, ensure_ascii=False)
    assert read(line) == {"node:Person": [(1, {"name": "a\u2028b\u0085c"})]}


def test_space_around_a_record():
    assert read(f"  \t{ADA} \r") == {"node:Person": [(1, {"name": "ada"})]}


def test_nodes_and_edges_in_any_order():
    text = (
        '{"edge":"Knows","from":"ada","to":"bob"}\n' + ADA + '\n{"data":{"since":3},"to":"x","from":"y","edge":"Knows"}'
    )
    assert read(text) == {
        "edge:Knows": [(1, {}, "ada", "bob"), (3, {"since": 3}, "y", "x")],
        "node:Person": [(2, {"name": "ada"})],
    }


def test_data_is_optional():
    assert read('{"type":"Person"}') == {"node:Person": [(1, {})]}
    assert read('{"edge":"Knows","from":"a","to":"b"}') == {"edge:Knows": [(1, {}, "a", "b")]}


@pytest.mark.parametrize("name", ["Knows", "knows", "KNOWS", "kNOWS"])
def test_edge_type_names_are_case_insensitive(name):
    assert list(read(f'{{"edge":"{name}","from":"a","to":"b"}}')) == ["edge:Knows"]


def test_escapes_and_non_ascii_text():
    line = r'{"type":"Person","data":{"name":"\u00e9\"\\\n\ud83d\ude00日本"}}'
    assert read(line)["node:Person"][0][1] == {"name": 'é"\\\n😀日本'}


def test_a_colon_in_a_text_is_not_a_member():
    line = '{"type":"Person","data":{"name":"a\\":\\":x","mood":"\\": "}}'
    assert read(line)["node:Person"][0][1] == {"name": 'a":":x', "mood": '": '}


def test_integers_keep_their_width():
    line = '{"type":"Person","data":{"name":"a","big":18446744073709551615}}'
    assert read(line)["node:Person"][0][1]["big"] == 2**64 - 1


def test_a_line_above_the_size_limit_is_refused(tune):
    tune(record_bytes_max=200)
    room = 200 - len('{"type":"Person","data":{"name":""}}')
    assert read(f'{{"type":"Person","data":{{"name":"{"x" * room}"}}}}')
    with pytest.raises(RecordError, match=r"^line 2: a line may have at most 200 bytes, this one has 201$"):
        read(f'\n{{"type":"Person","data":{{"name":"{"x" * (room + 1)}"}}}}')


@pytest.mark.parametrize(("extra", "fits"), [(0, True), (1, False)])
def test_a_line_may_have_131072_structural_characters(extra, fits):
    """Characters inside strings do not count."""
    names = 131_072 - len("{:,:{:,:[]}}") + 1 + extra
    tags = ",".join(['"a,:{}[]\\\\\\",:"'] * names)
    line = f'{{"type":"Person","data":{{"name":"x","tags":[{tags}]}}}}'
    if fits:
        assert len(read(line)["node:Person"][0][1]["tags"]) == names
    else:
        with pytest.raises(RecordError, match=r"^line 1: a line may have at most 131072 brackets, commas and colons$"):
            read(line)


def test_a_long_line_of_quotes_without_an_end_is_read_once():
    """Its time would grow with the square of its length if each quote began another search."""
    with pytest.raises(RecordError, match=r"^line 1: not valid JSON: Input data was truncated$"):
        read('{"type":"Person","data":{"name":"' + '\\"' * 500_000)


# -- wrong records -----------------------------------------------------------------------------------


def person(data: str) -> str:
    return f'{{"type":"Person","data":{{"name":"x",{data}}}}}'


def knows(members: str) -> str:
    return f'{{"edge":"Knows",{members}}}'


BAD_SHAPES = named(
    [
        # not JSON
        ("garbage", "garbage", "not valid JSON"),
        ("cut off", ADA[:-1], "not valid JSON"),
        ("cut in a string", '{"type":"Pers', "not valid JSON"),
        ("one brace too many", ADA + "}", "not valid JSON"),
        ("two records on a line", ADA + ADA, "not valid JSON"),
        ("two records and a comma", ADA + "," + ADA, "not valid JSON"),
        ("a comment behind", ADA + " // why", "not valid JSON"),
        ("single quotes", "{'type':'Person'}", "not valid JSON"),
        ("names without quotes", '{type:"Person"}', "not valid JSON"),
        ("a trailing comma", '{"type":"Person",}', "not valid JSON"),
        ("no colon", '{"type" "Person"}', "not valid JSON"),
        ("NaN", person('"score":NaN'), "not valid JSON"),
        ("Infinity", person('"score":Infinity'), "not valid JSON"),
        ("a plus sign", person('"age":+1'), "not valid JSON"),
        ("a leading zero", person('"age":01'), "not valid JSON"),
        ("hexadecimal", person('"age":0x10'), "not valid JSON"),
        ("half a number", person('"score":1.'), "not valid JSON"),
        ("a number beyond all floats", person('"score":1e999'), "not valid JSON"),
        ("a bad escape", person('"mood":"\\x"'), "not valid JSON"),
        ("half a surrogate", person('"mood":"\\ud800"'), "not valid JSON"),
        ("a surrogate alone", person('"mood":"\\udc00 x"'), "not valid JSON"),
        ("a control character", person('"mood":"a\x01b"'), "not valid JSON"),
        ("a byte order mark", "\ufeff" + ADA, "not valid JSON"),
        ("python's None", person('"age":None'), "not valid JSON"),
        ("nested too deep", person('"tags":' + "[" * 5000 + "]" * 5000), "not valid JSON"),
        # not a record
        ("an array", "[1]", "a record is an object, not an array"),
        ("a string", '"Person"', "a record is an object, not the string 'Person'"),
        ("a number", "42", "a record is an object, not the integer 42"),
        ("null", "null", "a record is an object, not null"),
        ("nothing in it", "{}", "neither a node nor an edge record"),
        ("no type", '{"data":{}}', "neither a node nor an edge record"),
        ("both kinds", '{"type":"Person","edge":"Knows","from":"a","to":"b"}', "neither a node nor an edge record"),
        ("a type that is no string", '{"type":5}', "neither a node nor an edge record"),
        ("a type that is null", '{"type":null}', "neither a node nor an edge record"),
        ("an edge that is no string", '{"edge":["Knows"],"from":"a","to":"b"}', "neither a node nor an edge record"),
        ("type in other letters", '{"Type":"Person"}', "neither a node nor an edge record"),
        # unknown names
        ("unknown node type", '{"type":"Persn","data":{}}', "there is no node type 'Persn'"),
        ("node type in other letters", '{"type":"person","data":{}}', "there is no node type 'person'"),
        ("an edge as a node", '{"type":"Knows","data":{}}', "there is no node type 'Knows'"),
        ("unknown edge type", '{"edge":"Hates","from":"a","to":"b"}', "there is no edge type 'Hates'"),
        ("a node as an edge", '{"edge":"Person","from":"a","to":"b"}', "there is no edge type 'Person'"),
        ("unknown property", person('"agee":1'), "node type 'Person' has no property 'agee'"),
        ("property in other letters", person('"Age":1'), "node type 'Person' has no property 'Age'"),
        (
            "unknown edge property",
            knows('"from":"a","to":"b","data":{"until":1}'),
            "edge type 'Knows' has no property 'until'",
        ),
        # members
        ("a member too many", '{"type":"Person","data":{"name":"x"},"id":"x"}', "'id' does not belong in a record"),
        ("a member instead of data", '{"type":"Note","text":"x"}', "'text' does not belong in a record"),
        ("ends on a node", '{"type":"Person","from":"a","to":"b","data":{}}', "'from' does not belong in a record"),
        ("ends by the wrong name", knows('"src":"a","dst":"b"'), "'src' does not belong in a record"),
        (
            "a member too many on an edge",
            knows('"from":"a","to":"b","weight":1'),
            "'weight' does not belong in a record",
        ),
        ("no from", knows('"to":"b"'), "edge Knows: 'from' must be the id of a node, a string; nothing was given"),
        ("no to", knows('"from":"a"'), "edge Knows: 'to' must be the id of a node, a string; nothing was given"),
        ("no ends", knows('"data":{}'), "edge Knows: 'from' must be the id of a node, a string; nothing was given"),
        (
            "from is a number",
            knows('"from":1,"to":"b"'),
            "'from' must be the id of a node, a string; the integer 1 was given",
        ),
        ("to is null", knows('"from":"a","to":null'), "'to' must be the id of a node, a string; null was given"),
        ("data is an array", '{"type":"Person","data":[]}', "'data' is an object, not an array"),
        ("data is a string", '{"type":"Person","data":"x"}', "'data' is an object, not the string 'x'"),
        ("data is null", '{"type":"Person","data":null}', "'data' is an object, not null"),
        ("edge data is a number", knows('"from":"a","to":"b","data":1'), "'data' is an object, not the integer 1"),
        # reserved column names
        ("src in edge data", knows('"from":"a","to":"b","data":{"src":"a"}'), "'src' cannot be given as edge data"),
        ("dst in edge data", knows('"from":"a","to":"b","data":{"dst":"a"}'), "'dst' cannot be given as edge data"),
        ("_tombstone", person('"_tombstone":true'), "'_tombstone' cannot be given as node data"),
        *(
            (name, person(f'"{name}":1'), f"'{name}' cannot be given as node data")
            for name in ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
        ),
        # repeated members
        ("a member twice", '{"type":"Person","type":"Person","data":{}}', "'type' is given twice"),
        ("a property twice", person('"age":1,"age":1'), "'age' is given twice"),
        ("an escaped name twice", person('"age":1,"\\u0061ge":1'), "'age' is given twice"),
        ("twice in a nested object", person('"tags":[{"a":1,"a":2}]'), "'a' is given twice"),
        ("twice with space before the colon", person('"age" :1,"age":2'), "'age' is given twice"),
        ("twice with a return before the colon", person('"age"\r:1,"age":2'), "'age' is given twice"),
        ("twice with a tab before the colon", person('"age"\t:1,"age":2'), "'age' is given twice"),
    ]
)

BAD_VALUES = named(
    [
        ("no key", '{"type":"Person","data":{"age":1}}', "Person.name is required (String)", "name"),
        ("the key is null", '{"type":"Person","data":{"name":null}}', "Person.name is required (String)", "name"),
        ("half a key", '{"type":"Bed","data":{"ward":"a"}}', "Bed.number is required (I32)", "number"),
        ("no required property", '{"type":"Note","data":{}}', "Note.text is required (String)", "text"),
        ("text for a number", person('"age":"7"'), "Person.age: expected I32?, found the string '7'", "age"),
        ("a decimal string for U64", person('"big":"7"'), "Person.big: expected U64?, found the string '7'", "big"),
        ("a fraction for an integer", person('"age":1.5'), "Person.age: expected I32?, found the number 1.5", "age"),
        ("3.0 for an integer", person('"age":3.0'), "Person.age: expected I32?, found the number 3.0", "age"),
        ("1e2 for an integer", person('"age":1e2'), "Person.age: expected I32?, found the number 100.0", "age"),
        ("too large for I32", person('"age":2147483648'), "Person.age: 2147483648 exceeds Int32 range", "age"),
        ("too small for I32", person('"age":-2147483649'), "Person.age: -2147483649 exceeds Int32 range", "age"),
        ("negative for U64", person('"big":-1'), "Person.big: -1 exceeds UInt64 range", "big"),
        (
            "too large for U64",
            person('"big":18446744073709551616'),
            "Person.big: 18446744073709551616 exceeds UInt64 range",
            "big",
        ),
        ("1 for a Bool", person('"ok":1'), "Person.ok: expected Bool?, found the integer 1", "ok"),
        ("text for a Bool", person('"ok":"true"'), "Person.ok: expected Bool?, found the string 'true'", "ok"),
        ("true for an integer", person('"age":true'), "Person.age: expected I32?, found true", "age"),
        ("too large for F32", person('"score":1e39'), "Person.score: 1e+39 exceeds Float32 range", "score"),
        ("text for F32", person('"score":"1"'), "Person.score: expected F32?, found the string '1'", "score"),
        (
            "no such day",
            person('"born":"2023-02-29"'),
            "Person.born: '2023-02-29' is not a date of the calendar",
            "born",
        ),
        ("a date by points", person('"born":"1.2.2024"'), "Person.born: '1.2.2024' is not a date", "born"),
        ("a fraction of a day", person('"born":1.5'), "Person.born: expected Date?, found the number 1.5", "born"),
        (
            "no such hour",
            person('"seen":"2024-01-01T24:00"'),
            "Person.seen: '2024-01-01T24:00' has no such time of day",
            "seen",
        ),
        (
            "no such zone",
            person('"seen":"2024-01-01T10:00+2"'),
            "Person.seen: '2024-01-01T10:00+2' is not a datetime",
            "seen",
        ),
        ("an object for text", person('"mood":{}'), "Person.mood: expected enum(happy, sad)?, found an object", "mood"),
        ("text for a list", person('"tags":"a"'), "Person.tags: expected [String]?, found the string 'a'", "tags"),
        (
            "a number in a list of text",
            person('"tags":["a",1]'),
            "Person.tags: expected String, found the integer 1",
            "tags",
        ),
        ("null in a list", person('"nums":[1,null]'), "Person.nums: a list may not hold null", "nums"),
        ("a list in a list", person('"nums":[[1]]'), "Person.nums: expected I32, found an array", "nums"),
        ("a vector too short", person('"vec":[1]'), "Person.vec: expected 2 dimensions, got 1", "vec"),
        ("a vector too long", person('"vec":[1,2,3]'), "Person.vec: expected 2 dimensions, got 3", "vec"),
        (
            "text in a vector",
            person('"vec":[1,"2"]'),
            "Person.vec: vector elements must be numeric, found the string '2'",
            "vec",
        ),
        (
            "null in a vector",
            person('"vec":[1,null]'),
            "Person.vec: vector elements must be numeric, found null",
            "vec",
        ),
        ("a number for a vector", person('"vec":1'), "Person.vec: expected Vector(2)?, found the integer 1", "vec"),
        ("bad base64", person('"blob":"base64:?"'), "Person.blob: invalid base64 data", "blob"),
        ("base64 without padding", person('"blob":"base64:AA"'), "Person.blob: invalid base64 data", "blob"),
        (
            "a reference",
            person('"blob":"s3://b/k"'),
            "Person.blob: 's3://b/k' is an external reference",
            "blob",
        ),
        (
            "an id that is a number",
            '{"type":"Note","data":{"text":"x","id":5}}',
            "Note.id: expected String?, found the integer 5",
            "id",
        ),
        (
            "an id that is an object",
            '{"type":"Note","data":{"text":"x","id":{}}}',
            "Note.id: expected String?, found an object",
            "id",
        ),
        (
            "an edge id that is a bool",
            knows('"from":"a","to":"b","data":{"id":true}'),
            "Knows.id: expected String?, found true",
            "id",
        ),
        ("another id than the key's", person('"id":"y"'), "the id 'y' of Person differs from its key 'x'", "id"),
        (
            "a bad edge date",
            knows('"from":"a","to":"b","data":{"since":"x"}'),
            "Knows.since: 'x' is not a date",
            "since",
        ),
    ]
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return new_graph(tmp_path_factory.mktemp("records"), SCHEMA, {"type": "Person", "data": {"name": "first"}})


_names = count()


def refused(graph: Any, folder: Path, line: str | bytes, mode: str) -> RecordError:
    """Load valid lines around a bad one on line 4, and check that nothing is written."""
    path = folder / f"{next(_names)}.jsonl"
    bad = line if isinstance(line, bytes) else line.encode()
    path.write_bytes(b"// a comment\n" + ADA.encode() + b"\n\n" + bad + b"\n" + ADA.replace("ada", "bob").encode())
    before = everything(graph)
    with pytest.raises(RecordError) as caught:
        graph.load(path, mode=mode)
    assert everything(graph) == before
    assert caught.value.line == 4
    assert caught.value.message.startswith(f"{path}, line 4: ")
    return caught.value


def test_there_are_more_than_100_wrong_records():
    assert len(BAD_SHAPES) + len(BAD_VALUES) > 100


@pytest.mark.parametrize(("line", "reason"), BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_a_wrong_shape_is_refused(graph, tmp_path, line, reason):
    error = refused(graph, tmp_path, line, "merge")
    assert reason in error.reason


@pytest.mark.parametrize(("line", "reason", "name"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_bad_value_is_refused(graph, tmp_path, line, reason, name):
    error = refused(graph, tmp_path, line, "append")
    assert error.reason.startswith(reason)
    assert error.property_name == name
    assert error.type_name == json.loads(line).get("type", "Knows")


@pytest.mark.parametrize(
    "data", [b"\xff", b'{"type":"Person","data":{"name":"\xff"}}', b'{"type":"Person","data":{"name":"\xed\xa0\x80"}}']
)
def test_invalid_utf8_is_refused(graph, tmp_path, data):
    assert refused(graph, tmp_path, data, "overwrite").reason.startswith("not valid JSON")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('{"type":"Persn"}', "did you mean 'Person'?"),
        ('{"edge":"Know","from":"a","to":"b"}', "did you mean 'Knows'?"),
        ('{"type":"Zzz"}', "the node types are 'Bed', 'Note', 'Person'"),
        (person('"agee":1'), "did you mean 'age'?"),
        ('{"type":"Note","text":"x"}', "properties go inside 'data'"),
        ("{}", 'write {"type": "Name", "data": {…}} or {"edge": "Name", "from": "id", "to": "id", "data": {…}}'),
    ],
)
def test_hints_of_errors(line, hint):
    with pytest.raises(RecordError) as caught:
        read(line)
    assert caught.value.hint == hint


def test_the_first_wrong_line_is_reported():
    """Columns are converted one after another, but the error is the one of the first line."""
    lines = [person('"score":"x"'), person('"age":"x"')]
    parts = list(read_jsonl(iterate_lines("\n".join(lines).encode()), CATALOG, Faults()).values())
    with pytest.raises(RecordError, match=r"^line 1: Person.score: "):
        build_rows(parts, Faults(), called("id"))


def test_wrong_records_can_be_collected():
    lines = [person('"score":"x"'), "nonsense", ADA, person('"age":"x","score":1e99'), '{"type":"Nobody"}']
    faults = Faults(collect=True)
    found = read_jsonl(iterate_lines("\n".join(lines).encode()), CATALOG, faults, "f.jsonl")
    rows = build_rows(list(found.values()), faults, called("id"))
    assert rows.table["id"].to_pylist() == ["ada"]
    assert rows.lines.to_pylist() == [3]
    assert rows.sources.to_pylist() == ["f.jsonl"]
    assert [(error.line, error.rule) for error in faults.found] == [
        (2, "record"),
        (5, "record"),
        (1, "value"),
        (4, "value"),
    ]
    assert faults.found[2].message == "f.jsonl, line 1: Person.score: expected F32?, found the string 'x'"


# -- dicts -------------------------------------------------------------------------------------------


def test_dicts_are_numbered_from_one():
    found = read_dicts([{"type": "Person"}, {"edge": "knows", "from": "a", "to": "b"}], CATALOG, Faults())
    assert {key: one.lines for key, one in found.items()} == {"node:Person": [1], "edge:Knows": [2]}
    with pytest.raises(RecordError, match=r"^line 2: a record is an object, not the string 'x'"):
        read_dicts([{"type": "Person"}, "x"], CATALOG, Faults())


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"type": "Person", "data": {"name": "\ud800"}}, "Person.name: text contains an unpaired surrogate"),
        ({"type": "Note", "data": {"text": "x", "id": "\ud800"}}, "Note.id: text contains an unpaired surrogate"),
        ({"edge": "Knows", "from": "\ud800", "to": "b"}, "Knows.from: text contains an unpaired surrogate"),
        ({"edge": "Knows", "from": "a", "to": "\udfff"}, "Knows.to: text contains an unpaired surrogate"),
    ],
)
def test_unpaired_surrogates_in_dicts_are_refused(record, reason):
    (part,) = read_dicts([record], CATALOG, Faults()).values()
    with pytest.raises(RecordError) as caught:
        build_rows([part], Faults(), called("id"))
    assert caught.value.reason.startswith(reason)
    assert caught.value.line == 1
