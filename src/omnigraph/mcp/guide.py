"""The guide: the query language in at most 150 lines, with examples for the schema of the graph.

An example is made from the types of the schema and compiled against it. One that a schema does not permit is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from omnigraph.errors import OmniGraphError
from omnigraph.mcp.corrections import compile_text
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.types import INTEGER_RANGES

LINES_MAX = 150
_NUMBERS = frozenset({*INTEGER_RANGES, "F32", "F64"})
_COMPARED = frozenset({*_NUMBERS, "Date", "DateTime", "String"})

_HEAD = """\
# The query language of this graph

A read is `match { clauses } return { items } having { … } order { keys } skip n limit n`. `match` and `return` are
required, the order is fixed, and clauses have no separators. It is not SQL and not Cypher.

- `$x: Type` binds nodes; `$x: Type { p: v }` compares properties; `$x.p` reads one; `id($x)`, `type($x)`.
- An edge type is written with a lower-case first letter between two variables: `$a edge $b`. Between different types
  the direction follows from the types; between equal types the left end is the source.
- Consecutive clauses are combined by *and*. `or`, `and`, `not`, parentheses, `in [..]`, `is null`, `contains`,
  `starts_with`, `matches "regex"`, and `= != < <= > >=` make conditions. A comparison with null is unknown.
- Parameters: `query name($p: String, $n: I64?) { … }`. A text without a head takes their types from the values.
- Dates are `date("2024-05-01")`, `datetime("2024-05-01T10:00:00Z")`, `now()`; texts are in double quotes.
- Use `limit`. An error names the place, and often the corrected name: run the corrected text."""

_WRITE_HEAD = """\
## Changes

Statements run as one commit. `insert` of an existing key is an error; `upsert` sets only the properties that it names.
A property without `?` in the schema is required. Deleting a node deletes its edges."""


@dataclass(frozen=True)
class Example:
    """A query for the schema of the graph, and what it shows."""

    title: str
    text: str


def guide_text(catalog: Catalog, *, write: bool = False) -> str:
    """Return the guide for a schema; with `write`, it includes changes."""
    parts = [_HEAD, *map(_shown, read_examples(catalog))]
    if write:
        parts += [_WRITE_HEAD, *map(_shown, write_examples(catalog))]
    return "\n\n".join(parts) + "\n"


def read_examples(catalog: Catalog) -> list[Example]:
    """Return the examples of reads that compile against a schema."""
    return _compiling(catalog, _reads(catalog))


def write_examples(catalog: Catalog) -> list[Example]:
    """Return the examples of changes that compile against a schema."""
    return _compiling(catalog, _writes(catalog))


def _shown(example: Example) -> str:
    return f"{example.title}\n```\n{example.text}\n```"


def _compiling(catalog: Catalog, examples: Iterable[Example]) -> list[Example]:
    found = []
    for example in examples:
        try:
            compile_text(catalog, example.text, {})
        except OmniGraphError:
            continue
        found.append(example)
    return found


def _reads(catalog: Catalog) -> Iterator[Example]:
    if not catalog.nodes:
        return
    node = _main_node(catalog)
    yield Example("Some nodes of a type:", f"match {{ $x: {node.name} }} return {{ $x }} limit 10")
    yield from _node_examples(node)
    edge = next((each for each in catalog.edges.values() if node.name in (each.from_type, each.to_type)), None)
    edge = edge or next(iter(catalog.edges.values()), None)
    if edge is not None:
        yield from _edge_examples(edge)
    loop = next((each for each in catalog.edges.values() if each.from_type == each.to_type), None)
    if loop is not None:
        yield from _loop_examples(loop)
    yield Example(
        "Neighbours over edges of any type, in either direction:",
        f"match {{ $a: {node.name} $a <-> $b }}\nreturn {{ id($a) as a, type($b) as type, id($b) as b }} limit 20",
    )
    yield from _search_examples(catalog)


def _node_examples(node: NodeType) -> Iterator[Example]:
    if len(node.key) == 1:
        key = node.properties[node.key[0]]
        yield Example(
            "One node by its key:",
            f"query one($key: {key.type.scalar}) {{ match {{ $x: {node.name} {{ {key.name}: $key }} }} "
            "return { $x } }",
        )
    value = _property(node, _COMPARED)
    if value is None:
        return
    yield Example(
        "Conditions and order:",
        f"match {{ $x: {node.name} $x.{value.name} is not null }}\n"
        f"return {{ id($x) as id, $x.{value.name} }} order {{ $x.{value.name} desc }} limit 20",
    )
    yield Example(
        "Counts by value. Other aggregates: sum, avg, median, min, max, collect:",
        f"match {{ $x: {node.name} }}\n"
        f"return {{ $x.{value.name}, count($x) as n }} having {{ n > 1 }} order {{ n desc }} limit 10",
    )


def _edge_examples(edge: EdgeType) -> Iterator[Example]:
    yield Example(
        "Follow an edge:",
        f"match {{ $a: {edge.from_type} $a {edge.word} $b }}\nreturn {{ id($a) as a, id($b) as b }} limit 20",
    )
    if edge.properties:
        value = next(iter(edge.properties))
        yield Example(
            "Bind the edge to read its properties:",
            f"match {{ $a: {edge.from_type} $a $e:{edge.word} $b }}\n"
            f"return {{ id($a) as a, $e.{value}, id($b) as b }} limit 20",
        )
    yield Example(
        "Nodes without an edge:",
        f"match {{ $a: {edge.from_type} not {{ $a {edge.word} $_ }} }} return {{ id($a) as a }} limit 20",
    )
    yield Example(
        "Keep nodes without a match, with nulls:",
        f"match {{ $a: {edge.from_type} optional {{ $a {edge.word} $b }} }}\n"
        "return { id($a) as a, count($b) as n } order { n desc } limit 10",
    )
    yield Example(
        "A stage: aggregate first, then match on its rows:",
        f"match {{ $a: {edge.from_type} $a {edge.word} $b }}\n"
        "with { $b, count($a) as $n } having { $n > 1 } order { $n desc } limit 10\n"
        "return { id($b) as b, $n as n }",
    )


def _loop_examples(edge: EdgeType) -> Iterator[Example]:
    yield Example(
        "Nodes within three edges:",
        f"match {{ $a: {edge.from_type} $a {edge.word}{{1,3}} $b }}\nreturn {{ id($a) as a, id($b) as b }} limit 20",
    )
    yield Example(
        "A shortest path between two nodes:",
        f"query path($from: String, $to: String) {{\n"
        f"    match {{\n        $a: {edge.from_type} $b: {edge.to_type} id($a) = $from id($b) = $to\n"
        f"        $p: shortest {{ $a <{edge.word}>{{1,6}} $b }}\n    }}\n"
        "    return { length($p) as steps, nodes($p) as nodes }\n}",
    )


def _search_examples(catalog: Catalog) -> Iterator[Example]:
    texts = [(node, each) for node in catalog.nodes.values() for each in _texts(node)]
    if texts:
        node, text = min(texts, key=lambda pair: _searched_last(*pair))
        yield Example(
            "Full text, best first; one word of the query suffices:",
            f"query find($words: String) {{\n    match {{ $x: {node.name} search($x.{text.name}, $words) }}\n"
            f"    return {{ id($x) as id, bm25($x.{text.name}, $words) as score }}\n    order {{ score }} limit 10\n}}",
        )
    for node in catalog.nodes.values():
        vector = next((each for each in node.properties.values() if each.type.scalar == "Vector"), None)
        if vector is not None:
            kind = "String" if vector.embed is not None else str(vector.type).rstrip("?")
            yield Example(
                "Nearest vectors, `limit` is required:" + (" the text is embedded" if vector.embed else ""),
                f"query alike($like: {kind}) {{\n    match {{ $x: {node.name} }}\n"
                f"    return {{ id($x) as id, nearest($x.{vector.name}, $like) as distance }}\n"
                f"    order {{ nearest($x.{vector.name}, $like) }} limit 10\n}}",
            )
            return


def _writes(catalog: Catalog) -> Iterator[Example]:
    if not catalog.nodes:
        return
    node = next((each for each in catalog.nodes.values() if len(each.key) == 1), _main_node(catalog))
    required = [each for each in node.properties.values() if not each.type.nullable and each.embed is None]
    params = ", ".join(f"${each.name}: {_parameter_type(each)}" for each in required)
    assigned = ", ".join(f"{each.name}: ${each.name}" for each in required)
    yield Example(
        "Insert a node with its required properties:", f"query add({params}) {{ insert {node.name} {{ {assigned} }} }}"
    )
    if len(node.key) == 1:
        yield from _keyed_writes(node, params, assigned)
    edge = next(iter(catalog.edges.values()), None)
    if edge is not None:
        needed = [each for each in edge.properties.values() if not each.type.nullable]
        head = "".join(f", ${each.name}: {_parameter_type(each)}" for each in needed)
        body = "".join(f", {each.name}: ${each.name}" for each in needed)
        yield Example(
            "Insert and delete edges by the ids of their ends:",
            f"query link($from: String, $to: String{head}) {{ insert {edge.name} {{ from: $from, to: $to{body} }} }}\n"
            f"query unlink($from: String, $to: String) {{ delete {edge.name} where from = $from and to = $to }}",
        )


def _keyed_writes(node: NodeType, params: str, assigned: str) -> Iterator[Example]:
    key = node.properties[node.key[0]]
    yield Example("Insert, or change by key:", f"query put({params}) {{ upsert {node.name} {{ {assigned} }} }}")
    value = next((each for each in node.properties.values() if each.name != key.name and each.embed is None), None)
    if value is not None:
        yield Example(
            "Update and delete by a condition:",
            _lines(
                f"query set($key: {key.type.scalar}, $value: {_parameter_type(value)}) {{",
                f"    update {node.name} set {{ {value.name}: $value }}",  # noqa: S608 (not SQL)
                f"    where {key.name} = $key",
                "}",
                f"query remove($key: {key.type.scalar}) {{ delete {node.name} where {key.name} = $key }}",
            ),
        )


def _lines(*lines: str) -> str:
    return "\n".join(lines)


def _parameter_type(property: Property) -> str:
    """Return the type of a parameter for a property; enums are passed as texts."""
    text = "String" if property.type.enum_values else str(property.type).rstrip("?")
    return f"{text}?" if property.type.nullable else text


def _main_node(catalog: Catalog) -> NodeType:
    """Return the node type with the most edges, the first by name."""
    return max(catalog.nodes.values(), key=lambda each: len(catalog.edges_touching[each.name]))


def _property(node: NodeType, kinds: frozenset[str]) -> Property | None:
    """Return a property of one of some scalar types, numbers and dates first."""
    found = [each for each in node.properties.values() if each.type.scalar in kinds and not each.type.is_list]
    return min(found, key=lambda each: (each.type.scalar == "String", each.name in node.key), default=None)


def _texts(node: NodeType) -> Iterator[Property]:
    for each in node.properties.values():
        if each.type.is_text and not each.type.enum_values:
            yield each


def _searched_last(node: NodeType, text: Property) -> tuple[bool, bool]:
    """Return the sort key of texts to search: indexed ones first, keys last."""
    return text.name in node.key, (text.name,) not in node.indices
