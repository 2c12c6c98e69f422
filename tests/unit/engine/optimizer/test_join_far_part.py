"""Parts of a pattern that can be found from their far end."""

from __future__ import annotations

from omnigraph.engine.optimizer.join_far_part import far_parts
from omnigraph.engine.optimizer.pattern import pattern_of
from omnigraph.query.plan import ir

NAME = ir.Compare("=", ir.Prop("f", "name", ir.STRING), ir.Const("f1", ir.STRING))


def hop(source: str, target: str, edge_type: str = "Knows", *filters: ir.Condition, bound: bool = False) -> ir.Expand:
    far = "Firm" if edge_type == "WorksAt" else "Person"
    return ir.Expand(source, target, edge_type, "out", far, dst_bound=bound, dst_filters=filters)


def parts(*ops: ir.Op, **outer: str):
    pattern = pattern_of(ops, outer)
    assert pattern is not None
    return [*far_parts(pattern)]


def test_part_behind_one_bound_variable():
    (part,) = parts(hop("p", "q"), hop("q", "f", "WorksAt", NAME), p="Person")
    assert part.outer_vars == ("p",)
    assert part.variables == {"q", "f"}
    assert [(vertex.var, vertex.outer, vertex.filters) for vertex in part.pattern.vertices] == [
        ("f", False, (NAME,)),
        ("p", False, ()),
        ("q", False, ()),
    ]
    assert len(part.pattern.hops) == 2
    assert [vertex.var for vertex in part.rest.vertices] == ["p"]
    assert not part.rest.hops


def test_bound_variables_divide_a_pattern():
    found = parts(hop("p", "q"), hop("r", "s"), hop("s", "p", bound=True), p="Person", r="Person")
    assert [(part.outer_vars, sorted(part.variables)) for part in found] == [(("p",), ["q"]), (("p", "r"), ["s"])]
    assert [hop.op.dst_var for hop in found[0].rest.hops] == ["s", "s"]


def test_condition_on_both_sides_stays_with_the_rest():
    age = ir.Prop("q", "age", ir.I64)
    own = ir.Filter(ir.Compare("<", age, ir.Const(3, ir.I64)))
    both = ir.Filter(ir.Compare("<", age, ir.Prop("p", "age", ir.I64)))
    (part,) = parts(hop("p", "q"), own, both, p="Person")
    assert part.pattern.filters == (own,)
    assert part.rest.filters == (both,)


def test_variables_without_a_hop_to_a_bound_one_are_no_part():
    assert parts(ir.NodeScan("a", "Person"), hop("a", "b"), p="Person") == []
