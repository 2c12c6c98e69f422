"""Plans under rules for rows: the order of operators, which every caller can see, tells nothing of hidden values."""

from __future__ import annotations

from random import Random

import pytest

import omnigraph as og
from omnigraph.engine.statistics.degree_statistics import DegreeStatistics
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.graph import Graph
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility

SCHEMA = """
node Note { name: String @key  tenant: String  pay: I64?  city: String? }
edge Cites: Note -> Note { weight: I64? }
"""
COUNT = 1_000
PAY = """query q($x: I64) {
    match { $a: Note { pay: $x } $a cites $b $b: Note { city: "c7" } }
    return { $a.name }
}"""
CLERK = Visibility({}, {("node:Note", "pay"): ir.Const(False, ir.BOOL)})
TENANT = Visibility({"node:Note": ir.Compare("=", ir.Prop(ROW, "tenant", ir.STRING), ir.Const("acme", ir.STRING))})
PRESENT, ABSENT = 4, 123_456
"""A hidden value of one row, and a value of none."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = og.init(tmp_path_factory.mktemp("plans") / "g", SCHEMA, sync=False)
    random = Random(1)
    nodes = [
        {"name": f"n{at}", "tenant": "acme" if at % 4 else "other", "pay": 777 if at % 4 else at, "city": f"c{at % 99}"}
        for at in range(COUNT)
    ]
    edges = [(f"n{random.randrange(COUNT)}", f"n{random.randrange(COUNT)}") for _ in range(3 * COUNT)]
    graph.load(
        [
            *({"type": "Note", "data": node} for node in nodes),
            *({"edge": "Cites", "from": a, "to": b, "data": {"weight": at}} for at, (a, b) in enumerate(edges)),
        ],
        mode="append",
    )
    assert isinstance(graph, Graph)
    return graph


def plans(graph: Graph, visibility: Visibility | None, text: str) -> list[str]:
    """Return the plan for a hidden value, and for a value that no row has."""
    handle = graph if visibility is None else Graph(graph._context.with_visibility(visibility))
    shown = [handle.explain(text, params={"x": value}) for value in (PRESENT, ABSENT)]
    return [str(plan) for plan in shown]


@pytest.mark.parametrize("visibility", [CLERK, TENANT], ids=["masked value", "hidden row"])
def test_plans_do_not_depend_on_hidden_values(graph: Graph, visibility: Visibility) -> None:
    present, absent = plans(graph, visibility, PAY)
    assert present == absent


def test_plans_of_an_unlimited_caller_depend_on_values(graph: Graph) -> None:
    present, absent = plans(graph, None, PAY)
    assert present.splitlines()[1] != absent.splitlines()[1]


@pytest.mark.parametrize("visibility", [CLERK, TENANT], ids=["masked value", "hidden row"])
def test_missing_guard_is_noticed(graph: Graph, monkeypatch: pytest.MonkeyPatch, visibility) -> None:
    monkeypatch.setattr(GraphStatistics, "_is_guarded", lambda *_: False)
    text = PAY.replace("query q", "query other")
    present, absent = plans(graph, visibility, text)
    assert present != absent


def test_statistics_of_guarded_tables(graph: Graph) -> None:
    context = graph._context
    snapshot = context.snapshot("main")
    catalog = context.catalog(snapshot)
    every = GraphStatistics(catalog, snapshot, context.cache)
    clerk, tenant = (GraphStatistics(catalog, snapshot, context.cache, one) for one in (CLERK, TENANT))
    assert (every.nodes("Note"), every.edges(("Cites",))) == (COUNT, 3 * COUNT)
    assert (tenant.nodes("Note"), tenant.edges(("Cites",))) == (1_000, 10_000)
    assert (clerk.nodes("Note"), clerk.edges(("Cites",))) == (COUNT, 3 * COUNT)
    assert every.node_column("Note", "pay") is not None
    assert clerk.node_column("Note", "pay") is None
    assert clerk.node_column("Note", "city") is not None
    assert tenant.node_column("Note", "city") is None
    assert tenant.edge_column("Cites", "weight") is None, "its ends are guarded"
    assert tenant.degrees("Cites", "source") == DegreeStatistics.assumed(10_000, 1_000)
