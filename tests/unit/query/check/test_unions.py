"""Variables of several types and edges of any type: their plans and their errors."""

from __future__ import annotations

from textwrap import dedent

import pytest

from omnigraph.errors import TypeCheckError
from omnigraph.query.compile import compile_query
from omnigraph.query.lint import lint
from omnigraph.query.plan import ir
from omnigraph.query.plan.explain import explain
from omnigraph.schema.check import compile_schema
from omnigraph.types import PropertyType

CATALOG = compile_schema("""
interface Named { name: String }
interface Lost { note: String? }
interface Gone { note: String?  left: Date? }
node A implements Named {
    name: String @key  size: I32  kind: enum(x, y)  both: enum(p, q)  vec: Vector(2)?  a: Bool  type: String?
}
node B implements Named {
    name: String @key  size: I32?  kind: enum(x, z)  both: enum(q, p)  vec: Vector(3)?  type: String?
}
node C { name: I64  size: I32  photo: Blob? }
node Lonely { name: String }
node Same { name: String }
interface Same { name: String }
edge Ab: A -> B { weight: F64? }
edge Aa: A -> A
edge Bc: B -> C
edge Cb: C -> B
""")


def plan(match: str, shown: str = "1") -> ir.QueryIR:
    found = compile_query(CATALOG, f"query q() {{ match {{ {match} }} return {{ {shown} }} }}")
    assert isinstance(found, ir.QueryIR)
    return found


def mistake(match: str, shown: str = "1") -> tuple[str | None, str, str | None]:
    with pytest.raises(TypeCheckError) as caught:
        plan(match, shown)
    (found,) = caught.value.diagnostics
    return found.code, found.message, found.hint


def test_an_interface_denotes_its_types_in_any_order():
    assert plan("$x: Named").pipeline == plan("$x: B|A").pipeline == plan("$x: A|Named|B|A").pipeline
    assert plan("$x: A|A").pipeline == plan("$x: A").pipeline
    assert plan("$x: Same").pipeline == (ir.NodeScan("x", "Same"),)
    assert plan("$x: A|Lost").pipeline == plan("$x: A").pipeline


@pytest.mark.parametrize(
    ("prop", "type_"),
    {
        "name": PropertyType("String"),
        "size": PropertyType("I32", nullable=True),
        "kind": PropertyType("String"),
        "both": PropertyType("String", enum_values=("p", "q")),
    }.items(),
)
def test_shared_properties(prop, type_):
    (column,) = plan("$x: A|B", f"$x.{prop}").columns
    assert column.type == type_


@pytest.mark.parametrize(
    ("match", "shown", "fields"),
    [
        ("$x: A|B", "$x", ["id", "type", "both", "kind", "name", "size"]),
        ("$x: B|C", "$x", ["id", "type", "size"]),
        ("$x: Lost", "$x", ["id", "type", "note"]),
        ("$x: Lost|Gone", "$x", ["id", "type", "note"]),
    ],
)
def test_object_of_a_node_of_several_types(match, shown, fields):
    (column,) = plan(match, shown).columns
    assert [name for name, _ in column.expr.type.fields] == fields


@pytest.mark.parametrize(
    ("match", "shown", "message", "hint"),
    [
        ("$x: A|B", "$x.a", "node type 'B' has no property 'a'", "they share 'both', 'kind', 'name', 'size', 'type'"),
        ("$x: A|C", "$x.name", "'A.name' is String, but 'C.name' is I64", "they share 'size'"),
        ("$x: A|B", "$x.vec", "'A.vec' is Vector(2)?, but 'B.vec' is Vector(3)?", None),
        ("$x: A|B", "$x.nam", "node type 'A' has no property 'nam'", "did you mean 'name'?"),
        ("$x: Lost", "$x.name", "interface 'Lost' has no property 'name'", "they share 'note'"),
        ("$x: C|Lonely", "$x.size", "node type 'Lonely' has no property 'size'", "they share no property"),
        ("$x: A|B { a: true }", "1", "node type 'B' has no property 'a'", None),
    ],
)
def test_properties_that_are_not_shared(match, shown, message, hint):
    code, said, help_ = mistake(match, shown)
    assert (code, said) == ("T34", message)
    assert hint is None or help_ == hint


def test_vectors_of_different_models_are_not_shared():
    catalog = compile_schema("""
    node A { text: String?  vec: Vector(2)? @embed("text", model="one") }
    node B { text: String?  vec: Vector(2)? @embed("text", model="two") }
    node C { text: String?  vec: Vector(2)? @embed("text") }
    """)
    text = 'query q() { match { $x: %s } return { 1 } order { nearest($x.vec, "a") } limit 1 }'
    compile_query(catalog, text % "A|C")
    assert catalog.node("A|C").embeds["vec"].model == catalog.node("C|A").embeds["vec"].model == "one"
    with pytest.raises(TypeCheckError) as caught:
        compile_query(catalog, text % "A|B")
    assert caught.value.diagnostics[0].code == "T34"
    assert "different models" in caught.value.message


# -- hops --------------------------------------------------------------------------------------------


def hop(match: str) -> ir.Expand:
    (found,) = [op for op in plan(match).pipeline if isinstance(op, ir.Expand)]
    return found


@pytest.mark.parametrize(
    ("match", "edges", "near", "far"),
    [
        ("$x: A $x -> $y", ("Aa", "Ab"), "A", "A|B"),
        ("$x: B $x -> $y", ("Bc",), None, "C"),
        ("$x: C $x <-> $y", ("Bc", "Cb"), "C", "B"),
        ("$y: C $x ->{1,2} $y", ("Aa", "Ab", "Bc", "Cb"), "C", "A|B|C"),
        ("$x: A $x ->{2,2} $y", ("Aa", "Ab", "Bc", "Cb"), "A", "A|B|C"),
        ("$x: A $x ->{3,900000000000} $y", ("Aa", "Ab", "Bc", "Cb"), "A", "A|B|C"),
        ("$x: B $x ->{99999999999,99999999999} $y", ("Aa", "Ab", "Bc", "Cb"), "B", "C"),
        ("$x: B $x ->{99999999998,99999999998} $y", ("Aa", "Ab", "Bc", "Cb"), "B", "B"),
        ("$x -> $x", ("Aa",), None, "A"),
        ("$x: A|C $y: B $x -> $y", ("Ab", "Cb"), "A|C", "B"),
        ("$x: A $x aa $y", ("Aa",), None, "A"),
        ("$x: A|B $x aa $y", ("Aa",), "A|B", "A"),
        ("$x: A $x aa|ab $y", ("Aa", "Ab"), "A", "A|B"),
        ("$x: B $y ab|cb $x", ("Ab", "Cb"), "B", "A|C"),
    ],
)
def test_types_and_direction_of_a_hop(match, edges, near, far):
    found = hop(match)
    assert (found.edge_types, found.src_type, found.dst_type) == (edges, near, far)


@pytest.mark.parametrize(
    ("match", "code", "message"),
    [
        ("$x: Lonely $x -> $y", "T5", "no edge leads from '$x' (Lonely) to '$y'"),
        ("$x: Lonely $x <-> $_", "T5", "no edge leads between '$x' (Lonely) and '$_'"),
        ("$x: C $y: A $x ->{1,9} $y", "T5", "no edge leads from '$x' (C) to '$y' (A)"),
        ("$x: C $x -> $x", "T5", "no edge can lead from '$x' to itself"),
        ("$x: Lost $x -> $y", "T5", "no edge leads from '$x' (Lost) to '$y'"),
        ("$x: B|C $x aa $y", "T5", "'$x' is a B|C, which 'aa' does not touch"),
        ("$x $e:-> $y", "T35", "'$e' would be an edge of any type"),
        ("$x $e:aa|ab $y", "T33", "'$e' would be an edge of several types"),
        ("$x: B $x ab|bc $y", "T33", "'ab' leads from A to B, but 'bc' from B to C"),
        ("$x ->{1,} $y", "T15", "the hop has no maximum length"),
        ("$x $e:->{1,2} $y", "T23", "the edge variable '$e' needs a single hop, without '{1,2}'"),
    ],
)
def test_hops_without_a_fitting_edge(match, code, message):
    assert mistake(match)[:2] == (code, message)


def test_clause_order_does_not_matter():
    one = plan("$x -> $y $y bc $z", "$y.name").columns
    assert one == plan("$y bc $z $x -> $y", "$y.name").columns


def test_explain_shows_unions():
    found = plan('$x: Named { name: "a" } $x -> $y not { $y -> $x } type($x) != "A"', "id($x), type($y) as t, $y")
    assert explain(found) == dedent("""\
        query q()
          scan    $x: A|B where $x.name = "a" and type($x) != "A"
          expand  $x -Aa|Ab|Bc-> $y: A|B|C
          without any match, for each $y, $x:
            check   $y -Aa|Ab|Cb-> $x
          return  id($x) as id: String, type($y) as t: String, $y: A|B|C
        """)
    assert "type($x) as type: String" in explain(plan("$x: A", "type($x)"))


def test_lint_reports_the_types_read_and_patterns_without_matches():
    text = "query q() { match { $x: Named $x -> $y } return { 1 } } query r() { match { $x: Lost|Gone } return { 1 } }"
    several, nothing = lint(CATALOG, text, query_path="q.gq", schema_source={}).results
    assert several.operation is not None
    assert [kind["type_name"] for kind in several.operation["reads"]] == ["Aa", "Ab", "Bc", "A", "B", "C"]
    assert several.warnings == ()
    assert nothing.warnings == ("nothing matches: no node type implements 'Gone', 'Lost'",)
