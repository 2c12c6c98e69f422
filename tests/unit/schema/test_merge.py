"""Three-way merge of schemas, and its conflicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.schema.check import compile_schema
from omnigraph.schema.identity import catalog_of, new_identity, resolve_identity, shape_hash
from omnigraph.schema.merge import MergedSchema, merge_schemas
from omnigraph.schema.unparse import unparse

CASES = Path(__file__).parents[2] / "cases/examples"
BASE = """
interface Named { label: String @index  nick: String? }
node Person implements Named {
    name: String @key
    age: I32?
    mood: enum(glad, sad)?
    @range(age, 0..150)
}
node Note { slug: String @key  text: String?  v: Vector(4)? @embed("text") }
edge Knows: Person -> Person @card(0..5) { since: Date? }
edge Wrote: Person -> Note
"""


def merged(ours, theirs, base=BASE):
    """The schemas of both sides, each drawn from the base with numbers of its own, put together."""
    first = new_identity(compile_schema(base), "0" * 26).ir
    mine = resolve_identity(first, compile_schema(ours)).ir
    # The counter of the graph assigns each number once, on any branch.
    counted = replace(first, next_id=mine.next_id)
    yours = resolve_identity(counted, compile_schema(theirs)).ir
    return merge_schemas(first, mine, yours)


def edit(*changes, text=BASE):
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


AGE = "    age: I32?\n"
NAMED = "interface Named { label: String @index  nick: String? }"
NOTE = 'node Note { slug: String @key  text: String?  v: Vector(4)? @embed("text") }\n'
GOOD = {
    "nothing": ([], [], []),
    "properties": (
        [(AGE, AGE + "    town: String?\n")],
        [(AGE, AGE + "    land: String?\n")],
        [(AGE, AGE + "    town: String?\n    land: String?\n")],
    ),
    "types": (
        [("node Note", "node City { n: String @key }\nnode Note")],
        [("node Note", "node Land { n: String @key }\nedge In: Note -> Land\nnode Note")],
        [("node Note", "node City { n: String @key }\nnode Land { n: String @key }\nedge In: Note -> Land\nnode Note")],
    ),
    "a rename and a new property": (
        [("node Note {", 'node Memo @rename_from("Note") {'), ("-> Note", "-> Memo")],
        [("text: String?", "text: String?  stars: I32?")],
        [("node Note {", "node Memo {"), ("-> Note", "-> Memo"), ("text: String?", "text: String?  stars: I32?")],
    ),
    "a renamed column under another's index": (
        [("since: Date?", 'from_day: Date? @rename_from("since")')],
        [("since: Date?", "since: Date? @index")],
        [("since: Date?", "from_day: Date? @index")],
    ),
    "a renamed text that is embedded": (
        [("text: String?", 'body: String? @rename_from("text")'), ('@embed("text")', '@embed("body")')],
        [("slug: String @key", 'slug: String @key @description("short")')],
        [
            ("text: String?", "body: String?"),
            ('@embed("text")', '@embed("body")'),
            ("slug: String @key", 'slug: String @key @description("short")'),
        ],
    ),
    "an enum both extended": (
        [("enum(glad, sad)", "enum(glad, sad, calm)")],
        [("enum(glad, sad)", "enum(glad, sad, wild)")],
        [("enum(glad, sad)", "enum(calm, glad, sad, wild)")],
    ),
    "drops": (
        [("edge Wrote: Person -> Note\n", "")],
        [("{ since: Date? }", "")],
        [("edge Wrote: Person -> Note\n", ""), ("{ since: Date? }", "")],
    ),
    "the same on both": (
        [("edge Wrote: Person -> Note\n", ""), (AGE, AGE)],
        [("edge Wrote: Person -> Note\n", "")],
        [("edge Wrote: Person -> Note\n", "")],
    ),
    "descriptions": (
        [("node Person implements", 'node Person @description("people") implements')],
        [("name: String @key", 'name: String @key @description("how they are called")')],
        [
            ("node Person implements", 'node Person @description("people") implements'),
            ("name: String @key", 'name: String @key @description("how they are called")'),
        ],
    ),
    "an interface": (
        [("nick: String? }", "nick: String?  motto: String? }")],
        [(AGE, AGE + "    town: String?\n")],
        [("nick: String? }", "nick: String?  motto: String? }"), (AGE, AGE + "    town: String?\n")],
    ),
}
BAD = {
    "one name for two properties": (
        [(AGE, AGE + "    town: String?\n")],
        [(AGE, AGE + "    town: I32?\n")],
        [("node:Person.town", "both sides have a property of this name")],
    ),
    "one name for two types": (
        [("node Note", "node City { n: String @key }\nnode Note")],
        [("node Note", "node City { m: String @key }\nnode Note")],
        [("node:City", "both sides have a type of this name")],
    ),
    "two names for one property": (
        [("    age: I32?", '    years: I32? @rename_from("age")'), ("@range(age", "@range(years")],
        [("    age: I32?", '    old: I32? @rename_from("age")'), ("@range(age", "@range(old")],
        [("node:Person.years", "the name changed differently: years here, old there")],
    ),
    "dropped and changed": (
        [("edge Wrote: Person -> Note\n", "")],
        [("edge Wrote: Person -> Note\n", "edge Wrote: Person -> Note { on: Date? }\n")],
        [("edge:Wrote", "the target dropped it, the source changed it")],
    ),
    "dropped and needed": (
        [
            ('node Note { slug: String @key  text: String?  v: Vector(4)? @embed("text") }\n', ""),
            ("edge Wrote: Person -> Note\n", ""),
        ],
        [("edge Wrote: Person -> Note\n", "edge Wrote: Person -> Note\nedge Likes: Person -> Note\n")],
        [("edge:Likes", "one side dropped a type it needs")],
    ),
    "two descriptions": (
        [("edge Wrote: Person -> Note\n", 'edge Wrote: Person -> Note @description("a")\n')],
        [("edge Wrote: Person -> Note\n", 'edge Wrote: Person -> Note @description("b")\n')],
        [("edge:Wrote", "annotations changed differently")],
    ),
    "a new property of an interface that a new node implements": (
        [(NAMED, f"{NAMED[:-1]} note: String? @index }}")],
        [("node Note", "node City implements Named { n: String @key }\nnode Note")],
        [("node:City.note", "one side added it to interface 'Named', which the node implements on the other")],
    ),
    "a new property of an interface that a new node declares": (
        [(NAMED, f"{NAMED[:-1]} note: String? }}")],
        [("node Note", "node City implements Named { n: String @key  note: String? }\nnode Note")],
        [("node:City.note", "it implemented no interface and now implements Named.note")],
    ),
    "a dropped property of an interface that a new node implements": (
        [(NAMED, "interface Named { label: String @index }")],
        [("node Note", "node City implements Named { n: String @key }\nnode Note")],
        [("node:City.nick", "one side dropped it from interface 'Named', which the node implements on the other")],
    ),
    "a dropped property of an interface that a new node declares": (
        [(NAMED, "interface Named { label: String @index }")],
        [("node Note", "node City implements Named { n: String @key  nick: String? }\nnode Note")],
        [("node:City.nick", "it implemented Named.nick and now implements no interface")],
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_changes_of_both_sides_are_merged(name):
    ours, theirs, expected = (edit(*changes) for changes in GOOD[name])
    result = merged(ours, theirs)
    assert isinstance(result, MergedSchema), result
    assert shape_hash(compile_schema(result.text)) == shape_hash(compile_schema(expected))
    assert shape_hash(catalog_of(result.ir)) == shape_hash(compile_schema(expected))
    other = merged(theirs, ours)
    assert isinstance(other, MergedSchema)
    assert other.text == result.text


def test_merged_declarations_keep_the_numbers_of_their_side():
    ours, theirs, _ = (edit(*changes) for changes in GOOD["properties"])
    result = merged(ours, theirs)
    first = new_identity(compile_schema(BASE), "0" * 26).ir
    person = next(node for node in result.ir.nodes if node.name == "Person")
    known = {p.name: p.id for node in first.nodes if node.name == "Person" for p in node.properties}
    numbers = {p.name: p.id for p in person.properties}
    assert {name: numbers[name] for name in known} == known
    assert numbers["town"] == first.next_id
    assert numbers["land"] == first.next_id + 1
    assert result.ir.next_id == first.next_id + 2


@pytest.mark.parametrize("name", BAD)
def test_conflicts_are_reported(name):
    ours, theirs, expected = BAD[name]
    result = merged(edit(*ours), edit(*theirs))
    assert isinstance(result, list)
    assert [clash.entity for clash in result] == [entity for entity, _ in expected]
    for clash, (_, message) in zip(result, expected, strict=True):
        assert message in clash.message


@pytest.mark.parametrize("name", ["", "deps", "library", "ward"])
def test_an_unparsed_catalog_compiles_to_itself(name):
    catalog = compile_schema((CASES / f"{name}.pg").read_text() if name else BASE)
    assert shape_hash(compile_schema(unparse(catalog))) == shape_hash(catalog)
    assert unparse(compile_schema(unparse(catalog))) == unparse(catalog)
