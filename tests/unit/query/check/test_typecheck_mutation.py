"""Mutations: for each rule a statement that violates it and the most similar valid statement."""

from __future__ import annotations

import pytest

from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir
from omnigraph.schema.check import compile_schema
from omnigraph.types import PropertyType
from support.queries import NO_CODE, Mistake, diagnostics, mistakes, plan, write, write_plan

# id: (statement, its code, the underlined text, the same statement without the error)
CASES = {
    "T3-string-for-number": (
        'insert Person { name: "a", age: "4" }', "T3", '"4"', 'insert Person { name: "a", age: 4 }',
    ),
    "T3-number-for-string": ("insert Person { name: 4 }", "T3", "4", 'insert Person { name: "4" }'),
    "T3-decimal-for-integer": (
        'insert Person { name: "a", age: 4.0 }', "T3", "4.0", 'insert Person { name: "a", height: 4 }',
    ),
    "T3-out-of-range": (
        'insert Person { name: "a", age: 2147483648 }',
        "T3",
        "2147483648",
        'insert Person { name: "a", age: 2147483647 }',
    ),
    "T3-float-overflow": (
        f'insert Person {{ name: "a", height: {"9" * 40}.0 }}',
        "T3",
        f"{'9' * 40}.0",
        f'insert Person {{ name: "a", height: {"9" * 30}.0 }}',
    ),
    "T3-string-for-date": (
        'insert Person { name: "a", born: "2000-01-01" }',
        "T3",
        '"2000-01-01"',
        'insert Person { name: "a", born: date("2000-01-01") }',
    ),
    "T3-date-for-datetime": (
        'insert Person { name: "a", seen: date("2000-01-01") }',
        "T3",
        'date("2000-01-01")',
        'insert Person { name: "a", seen: datetime("2000-01-01") }',
    ),
    "T3-bool-for-string": (
        'insert Person { name: "a", bio: true }', "T3", "true", 'insert Person { name: "a", active: true }',
    ),
    "T3-enum": (
        'insert Person { name: "a", mood: "happy" }', "T3", '"happy"', 'insert Person { name: "a", mood: "calm" }',
    ),
    "T3-scalar-for-list": (
        'insert Person { name: "a", nicknames: "b" }', "T3", '"b"', 'insert Person { name: "a", nicknames: ["b"] }',
    ),
    "T3-list-for-scalar": ('insert Person { name: ["a"] }', "T3", '["a"]', 'insert Person { name: "a" }'),
    "T3-wrong-item": (
        'insert Person { name: "a", nicknames: [1] }', "T3", "1", 'insert Person { name: "a", nicknames: ["1"] }',
    ),
    "T3-item-out-of-range": (
        'insert Person { name: "a", marks: [2147483648] }', "T3", "2147483648",
        'insert Person { name: "a", marks: [1] }',
    ),
    "T3-vector-length": (
        'insert Person { name: "a", face: [1, 2] }', "T3", "[1, 2]", 'insert Person { name: "a", face: [1, 2, 3] }',
    ),
    "T3-vector-of-strings": (
        'insert Person { name: "a", face: ["1", "2", "3"] }',
        "T3",
        '["1", "2", "3"]',
        'insert Person { name: "a", face: [1, 2.5, 3] }',
    ),
    "T3-string-for-vector": (
        'insert Person { name: "a", face: "b" }', "T3", '"b"', 'insert Person { name: "a", face: [0, 0, 0] }',
    ),
    "T3-number-for-blob": (
        'insert Person { name: "a", photo: 1 }', "T3", "1", 'insert Person { name: "a", photo: "file:1" }',
    ),
    "T3-bad-base64": (
        'insert Person { name: "a", photo: "base64:!" }',
        "T3",
        '"base64:!"',
        'insert Person { name: "a", photo: "base64:aGk=" }',
    ),
    "T3-from-number": ('insert Knows { from: 1, to: "b" }', "T3", "1", 'insert Knows { from: "1", to: "b" }'),
    "T3-to-number": ('insert Knows { from: "a", to: 1 }', "T3", "1", 'insert Knows { from: "a", to: "1" }'),
    "T3-in-update": (
        'update Person set { age: "4" } where name = "a"', "T3", '"4"', 'update Person set { age: 4 } where name = "a"',
    ),
    "T7-param": (
        "insert Person { name: $count }", "T7", "$count", "insert Person { name: $text }",
    ),
    "T7-date-param": (
        'insert Person { name: "a", seen: $day }', "T7", "$day", 'insert Person { name: "a", seen: $moment }',
    ),
    "T7-list-param": (
        'insert Person { name: "a", nicknames: $text }', "T7", "$text",
        'insert Person { name: "a", nicknames: $texts }',
    ),
    "T7-wrong-list-param": (
        'insert Person { name: "a", nicknames: $counts }',
        "T7",
        "$counts",
        'insert Person { name: "a", marks: $counts }',
    ),
    "T7-vector-param": (
        'insert Person { name: "a", face: $short }', "T7", "$short", 'insert Person { name: "a", face: $vector }',
    ),
    "T7-blob-param": (
        'insert Person { name: "a", bio: $blob }', "T7", "$blob", 'insert Person { name: "a", photo: $blob }',
    ),
    "T7-now": ('insert Person { name: "a", born: now() }', "T7", "now()", 'insert Person { name: "a", seen: now() }'),
    "T7-from": ('insert Knows { from: $count, to: "b" }', "T7", "$count", 'insert Knows { from: $text, to: "b" }'),
    "T7-where": ("delete Person where name = 4", "T7", "name = 4", "delete Person where age = 4"),
    "T7-where-param": (
        "delete Person where born < $text", "T7", "born < $text", "delete Person where born < $day",
    ),
    "T7-where-now": ("delete Person where born < now()", "T7", "born < now()", "delete Person where seen < now()"),
    "T7-where-list": (
        'delete Person where nicknames = "a"', "T7", 'nicknames = "a"', 'delete Person where name = "a"',
    ),
    "T7-where-list-param": (
        "delete Person where nicknames = $texts", "T7", "nicknames = $texts", "delete Person where name = $text",
    ),
    "T7-where-vector": (
        "delete Person where face = $vector", "T7", "face = $vector", "delete Person where age = $count",
    ),
    "T7-where-from": ("delete Knows where from = 1", "T7", "from = 1", 'delete Knows where from = "1"'),
    "T7-where-to": ("delete Knows where to = $count", "T7", "to = $count", "delete Knows where to = $text"),
    "T7-in-update": (
        "update Person set { age: 4 } where name = 4", "T7", "name = 4",
        'update Person set { age: 4 } where name = "4"',
    ),
    "T10-insert": ('insert Persn { name: "a" }', "T10", "Persn", 'insert Person { name: "a" }'),
    "T10-update": (
        "update Persn set { age: 4 } where age = 3", "T10", "Persn", "update Person set { age: 4 } where age = 3",
    ),
    "T10-delete": ("delete Persn where age = 3", "T10", "Persn", "delete Person where age = 3"),
    "T10-case": (
        'insert Worksat { from: "a", to: "b", role: "c" }',
        "T10",
        "Worksat",
        'insert WorksAt { from: "a", to: "b", role: "c" }',
    ),
    "T10-interface": ('insert Named { name: "a" }', "T10", "Named", 'insert City { name: "a" }'),
    "T10-insert-nothing": ("insert City {}", "T10", "City", 'insert City { name: "a" }'),
    "T10-update-nothing": (
        'update Person set {} where name = "a"', "T10", "Person", 'update Person set { age: 1 } where name = "a"',
    ),
    "T11-insert": ('insert Person { name: "a", agee: 4 }', "T11", "agee", 'insert Person { name: "a", age: 4 }'),
    "T11-id": ('insert Person { name: "a", id: "b" }', "T11", "id", 'insert Person { name: "a", bio: "b" }'),
    "T11-from-on-a-node": ('insert Person { name: "a", from: "b" }', "T11", "from", 'insert Person { name: "a" }'),
    "T11-src-on-an-edge": (
        'insert Knows { from: "a", to: "b", src: "c" }', "T11", "src", 'insert Knows { from: "a", to: "b" }',
    ),
    "T11-update": (
        "update Person set { agee: 4 } where age = 3", "T11", "agee", "update Person set { age: 4 } where age = 3",
    ),
    "T11-where": ("delete Person where agee = 3", "T11", "agee", "delete Person where age = 3"),
    "T11-where-id": ('delete Person where id = "a"', "T11", "id", 'delete Person where name = "a"'),
    "T11-where-from-of-a-node": ('delete Person where from = "a"', "T11", "from", 'delete Knows where from = "a"'),
    "T11-where-src": ('delete Knows where src = "a"', "T11", "src", 'delete Knows where to = "a"'),
    "T11-where-edge-property": ('delete Knows where note = "a"', "T11", "note", 'delete Knows where remark = "a"'),
    "T11-blob": ('delete Person where photo = "a"', "T11", "photo", 'delete Person where bio = "a"'),
    "T11-blob-of-an-edge": ("delete Knows where scan = $blob", "T11", "scan", "delete Knows where since = $day"),
    "T12-node": ("insert Person { age: 4 }", "T12", "Person", 'insert Person { name: "a", age: 4 }'),
    "T12-from": ('insert Knows { to: "b" }', "T12", "Knows", 'insert Knows { from: "a", to: "b" }'),
    "T12-to": ('insert Knows { from: "a" }', "T12", "Knows", 'insert Knows { from: "a", to: "b" }'),
    "T12-edge-property": (
        'insert WorksAt { from: "a", to: "b" }',
        "T12",
        "WorksAt",
        'insert WorksAt { from: "a", to: "b", role: "c" }',
    ),
    "T12-embed-without-source": (
        'insert Note { title: "a" }', "T12", "Note", 'insert Note { title: "a", body: "b" }',
    ),
    "T12-vector-does-not-replace-its-source": (
        'insert Note { title: "a", vector: [1, 2, 3] }',
        "T12",
        "Note",
        'insert Note { title: "a", body: "b", vector: [1, 2, 3] }',
    ),
    "T13-insert": ('insert City { name: "a", name: "b" }', "T13", "name", 'insert City { name: "b" }'),
    "T13-update": (
        "update Person set { age: 1, age: 1 } where age = 0", "T13", "age",
        "update Person set { age: 1 } where age = 0",
    ),
    "T13-from": (
        'insert Knows { from: "a", to: "b", from: "c" }', "T13", "from", 'insert Knows { from: "a", to: "b" }',
    ),
    "T14-insert": ("insert City { name: $txt }", "T14", "$txt", "insert City { name: $text }"),
    "T14-from": ('insert Knows { from: $a, to: "b" }', "T14", "$a", 'insert Knows { from: $text, to: "b" }'),
    "T14-update": (
        "update Person set { age: $cnt } where age = 0",
        "T14",
        "$cnt",
        "update Person set { age: $count } where age = 0",
    ),
    "T14-where": ("delete Person where age = $cnt", "T14", "$cnt", "delete Person where age = $count"),
    "T14-anonymous": ("delete Person where age = $_", "T14", "$_", "delete Person where age = $count"),
    "T16": (
        'update Knows set { from: "a" } where from = "b"',
        "T16",
        "from",
        'update Knows set { remark: "a" } where from = "b"',
    ),
    "no-code-key": (
        'update Person set { name: "b" } where name = "a"',
        NO_CODE,
        "name",
        'update Person set { bio: "b" } where name = "a"',
    ),
    "no-code-mixed-list": (
        'insert Person { name: "a", nicknames: ["b", 1] }',
        NO_CODE,
        "1",
        'insert Person { name: "a", nicknames: ["b", "1"] }',
    ),
    "no-code-nested-list": (
        'insert Person { name: "a", marks: [[1]] }', NO_CODE, "[1]", 'insert Person { name: "a", marks: [1] }',
    ),
    "D2-insert-then-delete": (
        'insert City { name: "a" } delete City where name = "b"',
        "D2",
        'delete City where name = "b"',
        'delete City where name = "a" delete City where name = "b"',
    ),
    "D2-delete-then-insert": (
        'delete City where name = "b" insert City { name: "a" }',
        "D2",
        'insert City { name: "a" }',
        'insert City { name: "b" } insert City { name: "a" }',
    ),
    "D2-update-then-delete": (
        'update Person set { age: 1 } where age = 2 delete Knows where to = "a"',
        "D2",
        'delete Knows where to = "a"',
        'update Person set { age: 1 } where age = 2 insert Knows { from: "b", to: "a" }',
    ),
    "D2-delete-then-update": (
        "delete Person where age = 1 update Person set { age: 1 } where age = 2",
        "D2",
        "update Person set { age: 1 } where age = 2",
        "delete Person where age = 1 delete Person where age = 2",
    ),
    "D2-once-for-many": (
        'insert City { name: "a" } delete City where name = "b" delete City where name = "c"',
        "D2",
        'delete City where name = "b"',
        'insert City { name: "a" } insert City { name: "b" } insert City { name: "c" }',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("bad", "code", "at", "good"), CASES.values(), ids=CASES)
def test_rule_and_similar_valid_statement(bad, code, at, good):
    assert mistakes(write(bad)) == [(code, at)]
    plan(write(good))


def test_d2_names_the_query_and_suggests_atomic():
    (found,) = diagnostics('query tidy() { insert City { name: "a" } delete City where name = "b" }')
    assert "'tidy'" in found.message
    assert found.hint is not None
    assert "atomic { … }" in found.hint


def test_d2_is_checked_after_the_statements():
    assert mistakes(write('insert City { nme: "a" } delete City where name = "b"')) == [("T11", "nme")]


def test_no_column_of_a_composite_key_can_be_updated():
    catalog = compile_schema("node Bed { ward: String  number: I32  free: Bool? @key(ward, number) }")
    compile_query(catalog, "query q() { update Bed set { free: true } where number = 1 }")
    for column, value in (("ward", '"a"'), ("number", "1")):
        with pytest.raises(Exception, match="@key"):
            compile_query(catalog, f"query q() {{ update Bed set {{ {column}: {value} }} where free = true }}")


def test_a_name_of_a_node_and_an_edge_type_denotes_the_node_type():
    catalog = compile_schema("node Rank { name: String }  edge Rank: Rank -> Rank { weight: F64 }")
    compiled = compile_query(catalog, 'query q() { insert Rank { name: "a" } }')
    assert isinstance(compiled, ir.MutationIR)
    assert isinstance(compiled.ops[0], ir.InsertNode)


# -- several errors ----------------------------------------------------------------------------------


def test_independent_errors_of_one_statement_are_all_reported():
    assert mistakes(write('insert Person { nme: "a", age: "4", mood: "happy", bio: $txt, born: $text }')) == [
        Mistake("T11", "nme"),
        Mistake("T3", '"4"'),
        Mistake("T3", '"happy"'),
        Mistake("T14", "$txt"),
        Mistake("T7", "$text"),
    ]
    assert mistakes(write('update Person set { agee: 1, name: "b", age: 1, age: 2 } where born = "x"')) == [
        Mistake("T11", "agee"),
        Mistake(NO_CODE, "name"),
        Mistake("T13", "age"),
        Mistake("T7", 'born = "x"'),
    ]


def test_every_statement_is_checked():
    text = write('insert Persn { name: 1 } insert Person { age: 1 } update Knows set { to: 1 } where to = "a"')
    assert mistakes(text) == [Mistake("T10", "Persn"), Mistake("T12", "Person"), Mistake("T16", "to")]


@pytest.mark.parametrize(
    "text",
    [
        "query q($a: Text) { insert Person { name: $a, bio: $a } update Person set { bio: $a } where name = $a }",
        "query q($a: String) { insert Person { nme: $a } }",
        "query q($a: String) { insert Knows { form: $a, to: $a } }",
        'query q($a: String) { insert Persn { nme: 1, age: "x" } }',
    ],
    ids=["wrong-parameter", "misspelt-required-property", "misspelt-end", "unknown-type"],
)
def test_an_error_is_reported_once(text):
    assert len(mistakes(text)) == 1


# -- plans -------------------------------------------------------------------------------------------

STRING = PropertyType("String")


def test_insert_of_a_node_keeps_the_text_order():
    (op,) = write_plan("insert Person { age: 4, name: $text, seen: now() }").ops
    assert isinstance(op, ir.InsertNode)
    assert [name for name, _ in op.values] == ["age", "name", "seen"]
    assert op.values[0][1] == ir.Const(4, PropertyType("I32"))
    assert op.values[1][1] == ir.ParamRef("text", STRING)
    assert op.values[2][1] == ir.ParamRef(ir.NOW, PropertyType("DateTime"))


def test_insert_of_an_edge_separates_its_endpoints():
    (op,) = write_plan('insert WorksAt { role: "cook", to: $text, from: "a" }').ops
    assert op == ir.InsertEdge(
        "WorksAt", ir.Const("a", STRING), ir.ParamRef("text", STRING), (("role", ir.Const("cook", STRING)),)
    )


def test_delete_of_an_edge_by_endpoint_reads_its_column():
    ops = write_plan('delete Knows where from = "a" delete Knows where to = "b" delete Knows where since < $day').ops
    assert [op.where.left.name for op in ops] == ["src", "dst", "since"]
    assert all(isinstance(op, ir.DeleteEdges) for op in ops)


# id: (property, literal, its stored form)
STORED = {
    "integer": ("age", "4", 4),
    "wide-unsigned": ("wealth", "18446744073709551615", 18446744073709551615),
    "integer-for-float": ("height", "2", 2.0),
    "float-is-rounded-to-its-width": ("height", "0.1", 0.10000000149011612),
    "date": ("born", 'date("1970-01-02")', 1),
    "datetime": ("seen", 'datetime("1970-01-01T00:00:01Z")', 1000),
    "bool": ("active", "false", False),
    "enum": ("mood", '"cross"', "cross"),
    "list": ("nicknames", '["b", "a"]', ["b", "a"]),
    "empty-list": ("marks", "[]", []),
    "vector": ("face", "[1, 2.5, 3]", [1.0, 2.5, 3.0]),
    "blob": ("photo", '"base64:aGk="', b"hi"),
    "blob-elsewhere": ("photo", '"s3://b/k"', "s3://b/k"),
    "escapes": ("bio", r'"a\"b\\c\n\r\t"', 'a"b\\c\n\r\t'),
}


@pytest.mark.parametrize(("name", "literal", "stored"), STORED.values(), ids=STORED)
def test_a_literal_is_converted_to_stored_form(name, literal, stored):
    (op,) = write_plan(f"update Person set {{ {name}: {literal} }} where age = 1").ops
    assert isinstance(op, ir.UpdateNodes)
    ((_, value),) = op.values
    assert isinstance(value, ir.Const)
    assert value.value == stored
    assert type(value.value) is type(stored)


def test_a_number_can_be_assigned_to_any_numeric_property():
    for parameter in ("$count", "$ratio"):
        for column in ("age", "wealth", "height"):
            write_plan(f"update Person set {{ {column}: {parameter} }} where age = 1")


def test_a_text_can_be_assigned_to_a_blob_and_a_nullable_parameter_to_any_property():
    write_plan("update Person set { photo: $text, bio: $maybe } where name = $maybe")


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
def test_where_accepts_every_comparison(op):
    (deleted,) = write_plan(f"delete Person where age {op} 4").ops
    assert isinstance(deleted, ir.DeleteNodes)
    assert deleted.where.op == op


def test_where_does_not_check_enum_members():
    write_plan('delete Person where mood = "happy"')


# -- hints -------------------------------------------------------------------------------------------

# id: (statement with one error, its hint)
HINTS = {
    "misspelt-type": ('insert Persn { name: "a" }', "did you mean 'Person'?"),
    "interface": ('insert Named { name: "a" }', "'Named' is an interface: write to a node type that implements it"),
    "nothing": ("insert City {}", "write { property: value }"),
    "misspelt-property": ('insert City { nam: "a" }', "did you mean 'name'?"),
    "misspelt-end": ('insert Knows { form: "a", to: "b" }', "did you mean 'from'?"),
    "unknown-property": ('insert City { rhubarb: "a" }', "it has 'name'"),
    "missing-property": ("insert Person { age: 4 }", "add name: String"),
    "missing-properties": ('insert Note { body: "b", vector: [1, 2, 3] }', "add title: String"),
    "missing-ends": (
        "insert WorksAt { role: $text }", "add from: the id of a Person, to: the id of a Company",
    ),
    "undeclared-parameter": (
        'insert Person { name: "a", marks: $m }', "declare it in the query's parentheses: '$m: [I32]'",
    ),
    "undeclared-end": ('insert Knows { from: $who, to: "b" }', "declare it in the query's parentheses: '$who: String'"),
    "undeclared-in-where": (
        "delete Person where mood = $feeling", "declare it in the query's parentheses: '$feeling: String'",
    ),
    "misspelt-parameter": ("delete Person where name = $txet", "did you mean '$text'?"),
    "edge-end": (
        'update Knows set { to: "a" } where to = "b"', "delete the edge and insert it between the other nodes",
    ),
    "key": ('update Person set { name: "a" } where age = 1', "delete the node and insert it under its new key"),
    "number-as-end": ('insert Knows { from: 1, to: "b" }', 'write the text in quotes: "1"'),
    "list-in-where": ('delete Person where nicknames = "a"', None),
}  # fmt: skip


@pytest.mark.parametrize(("statement", "hint"), HINTS.values(), ids=HINTS)
def test_hint(statement, hint):
    (found,) = diagnostics(write(statement))
    assert found.hint == hint


# id: (statement with one error, its message)
MESSAGES = {
    "T3-scalar-for-list": (
        'insert Person { name: "a", nicknames: "b" }',
        "'Person.nicknames' is [String], but \"b\" (String) is not",
    ),
    "T3-scalar-for-vector": (
        'insert Person { name: "a", face: 1 }',
        "'Person.face' is Vector(3), but 1 (I64) is not",
    ),
    "T3-vector-length": (
        'insert Person { name: "a", face: [1, 2] }',
        "'Person.face': expected 3 dimensions, got 2",
    ),
    "T3-range": (
        'insert Person { name: "a", age: 2147483648 }',
        "'Person.age': 2147483648 exceeds Int32 range (-2147483648 to 2147483647)",
    ),
    "T3-item": (
        'insert Person { name: "a", nicknames: [1] }',
        "an item of 'Person.nicknames' is String, but 1 (I64) is not",
    ),
    "T7": ("insert City { name: $count }", "cannot assign $count (I64) to 'City.name' (String)"),
    "T7-where": ("delete City where name = 1", "cannot compare name (String) with 1 (I64)"),
    "T11-blob": ('delete Person where photo = "a"', "'Person.photo' is Blob and cannot be compared"),
    "T12": ('insert WorksAt { from: "a" }', "insert of 'WorksAt' misses 'role', 'to'"),
    "T16": (
        'update Knows set { to: "a" } where to = "b"',
        "'Knows.to' is an endpoint of the edge and cannot be updated",
    ),
    "key": (
        'update City set { name: "a" } where name = "b"',
        "'City.name' is part of the @key and cannot be updated",
    ),
}


@pytest.mark.parametrize(("statement", "message"), MESSAGES.values(), ids=MESSAGES)
def test_message(statement, message):
    (found,) = diagnostics(write(statement))
    assert found.message == message


def test_hint_for_a_missing_endpoint():
    (end, role) = diagnostics(write('insert WorksAt { from: "a", to: 1, role: 2 }'))
    assert end.message == "'WorksAt.to' (the id of a Company) is String, but 1 (I64) is not"
    assert role.message == "'WorksAt.role' is String, but 2 (I64) is not"


def test_a_node_can_have_a_property_called_from():
    catalog = compile_schema("node Mail { from: String  to: I64? }")
    text = 'query q() { insert Mail { from: "a", to: 1 } update Mail set { to: 2 } where to = 1 }'
    compiled = compile_query(catalog, text)
    assert isinstance(compiled, ir.MutationIR)
    assert [name for name, _ in compiled.ops[0].values] == ["from", "to"]
    assert compiled.ops[1].where.left.name == "to"
