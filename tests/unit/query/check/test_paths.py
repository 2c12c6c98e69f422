"""Paths: parsing, type checking, planning and lint."""

from __future__ import annotations

import pytest

from omnigraph.errors import CompileError
from omnigraph.query.compile import compile_query
from omnigraph.query.lint import lint
from omnigraph.query.plan import ir
from omnigraph.query.plan.explain import explain
from omnigraph.schema.check import compile_schema

CATALOG = compile_schema("""
node Town { name: String @key  people: I32? }
node Port { name: String @key }
edge Road: Town -> Town { km: F64?  note: String? }
edge Track: Town -> Town { km: I32 }
edge Ferry: Town -> Port
""")


def plan(match: str, result: str = "return { length($p) as n }") -> ir.QueryIR:
    made = compile_query(CATALOG, f"query q() {{ match {{ {match} }} {result} }}")
    assert isinstance(made, ir.QueryIR)
    return made


def found(query: ir.QueryIR) -> ir.FindPaths:
    (op,) = [op for op in query.pipeline if isinstance(op, ir.FindPaths)]
    return op


def mistake(match: str, result: str = "return { length($p) as n }") -> str:
    with pytest.raises(CompileError) as caught:
        plan(match, result)
    return str(caught.value)


@pytest.mark.parametrize(
    ("bound", "walk"),
    [
        ("$a: Town", "$p: $a -Road{1,2}-> $b: Town -Ferry-> $q: Port"),
        ("$q: Port", "$p: $q <-Ferry- $b: Town <-Road{1,2}- $a: Town"),
        ("$b: Town", "$p: $b -Ferry-> $q: Port, $b <-Road{1,2}- $a: Town"),
        ("", "$p: $a -Road{1,2}-> $b: Town -Ferry-> $q: Port"),
    ],
)
def test_a_path_is_searched_from_a_bound_variable(bound, walk):
    assert f"  path    {walk}\n" in explain(plan(f"{bound} $p: path {{ $a road{{1,2}} $b $b ferry $q }}"))


def test_bound_ends_are_not_bound_again():
    op = found(plan("$a: Town $a road $b $p: shortest { $a road|track{1,4} $b } by km"))
    assert (op.kind, op.by, op.bound_vars) == ("shortest", "km", ("a", "b"))
    assert op.edge_types == ("Road", "Track")


def test_conditions_are_pushed_into_the_step_of_their_variable():
    op = found(plan("$p: path { $a road{1,2} $b $b ferry $q } $b.people > 3 length($p) > 2 $q.name != $a.name"))
    assert [len(step.filters) for step in op.steps] == [1, 0]
    assert len(op.filters) == 1


@pytest.mark.parametrize(
    ("match", "result", "measured"),
    [
        ("$p: shortest { $a road{1,4} $b }", "return { length($p) as n, $b.name }", True),
        ("$p: shortest { $a road{1,4} $b } by km", "return { weight($p) as w } order { w, length($p) }", True),
        ("$p: shortest { $a road{1,4} $b }", "return { count($p) as n }", True),
        ("$p: shortest { $a road{1,4} $b }", "return { nodes($p) as n }", False),
        ("$p: shortest { $a road{1,4} $b }", "return { { way: $p } as n }", False),
        ("$p: shortest { $a road{1,4} $_ }", "return { length($p) as n } order { n }", False),
        ("$p: shortest { $a road{1,4} $_ }", "return { length($p) as n }", True),
        ("$p: all shortest { $a road{1,4} $b }", "return { length($p) as n }", False),
        ("$p: path { $a road{1,4} $b }", "return { length($p) as n }", False),
    ],
)
def test_paths_whose_contents_are_not_read_are_only_measured(match, result, measured):
    assert found(plan(match, result)).measured is measured


def test_types_of_nodes_and_edges_of_a_path():
    columns = plan("$p: path { $a road $b $b ferry $q }", "return { $p, nodes($p), edges($p) }").columns
    assert str(columns[1].type) == "[{ id: String, type: String, name: String, people: I32? }]"
    assert str(columns[2].type) == "[{ id: String, type: String, from: String, to: String, km: F64?, note: String? }]"
    both = plan("$p: path { $a road|track $b }", "return { edges($p) as e }").columns
    assert "km: F64?, note: String?" in str(both[0].type)


@pytest.mark.parametrize(
    ("match", "says"),
    [
        ("$p: shortes { $a road $b }", "did you mean 'shortest'?"),
        ("$p: town", "a node type begins with an upper-case letter: 'Town'"),
        ("$p: all { $a road $b }", "expected 'shortest'"),
        ("$p: path { $a road $b $a.people > 3 }", "conditions follow the path"),
        ("$p: path { $a road $b $c ferry $q }", "the next hop of the path begins at '$b'"),
        ("$p: path { $a road $_ $_ ferry $q }", "give the node between them a name"),
        ("$p: shortest { $a road{2,4} $b }", "length($p) >= 2"),
        ("$p: shortest { $a road|track{1,4} $b } by kn", "did you mean 'km'?"),
        ("$p: shortest { $a ferry $b } by km", "'Ferry' has no numbers"),
        ("$a: Town $p: path { $a road $p }", "'$p' is a path and cannot be an end of a hop"),
        ("$p: Town $p: path { $a road $b }", "'$p' is bound already and cannot be a path"),
        ("$p: path { $a road $b } $p: Town", "'$p' is bound already and cannot be a path"),
        ("$p: path { $a road $b } $p.km = 3", "use length($p), nodes($p) or edges($p)"),
        ("$a: Town weight($a) > 3", "'weight' needs a path, which $a is not"),
        ("$p: path { $a roads $b }", "did you mean 'road'?"),
    ],
)
def test_errors_have_hints(match, says):
    assert says in mistake(match, "return { 1 }")


def test_lint_reports_the_types_a_path_reads_and_paths_without_matches():
    text = "query q() { match { $p: path { $a ferry{2,3} $q } } return { length($p) as n } }"
    report = lint(CATALOG, text, query_path="q.gq", schema_source={"kind": "file"}).results[0]
    assert report.operation is not None
    assert {(read["kind"], read["type_name"]) for read in report.operation["reads"]} == {
        ("edge", "Ferry"),
        ("node", "Town"),
        ("node", "Port"),
    }
    assert "never matches" in report.warnings[0]
