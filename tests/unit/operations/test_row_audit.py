"""Audit mode: Cedar judges returned rows again, and a row that it denies ends the read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine.cache.visibility import VisibleTable
from omnigraph.errors import Denied, PolicyInvalid
from omnigraph.policy.load import parse_policy_text
from omnigraph.policy.rows import row_policies
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW

SCHEMA = """
interface Named { name: String }
node Customer implements Named {
    name: String @key
    tenant: String?
    since: Date?
    seen: DateTime?
    tags: [String]?
    pay: I64?
    size: U64?
    sizes: [U64]?
}
node Plain implements Named { name: String @key }
edge Knows: Customer -> Customer { tenant: String }
"""
POLICY = """
version: 2
groups: { hr: [bo] }
attributes: { declare: { tenant: String }, ana: { tenant: acme } }
rows: { default: allow, audit: 1000 }
rules:
  - id: work
    allow: { actors: { any: true }, role: editor }
  - id: own-tenant
    allow: { actors: { any: true }, actions: [row_read], types: [Customer, Knows],
             when: 'resource.tenant == principal.tenant' }
  - id: since
    deny: { actors: { any: true }, actions: [row_read], types: [Customer],
            when: 'resource has since && resource.since > datetime("2030-01-01")' }
  - id: pay
    allow: { actors: { any: true }, actions: [property_read], types: [Customer], properties: [pay],
             when: 'resource.tags.contains("open")', otherwise: mask }
"""
OPTIONAL = "$c: Customer optional { $c knows $d }"
ORDERED = "match { $c: Customer } return { $c.name } order { $c.name }"
READS: dict[str, Callable[[og.Graph], Any]] = {
    "scan": lambda graph: names(graph, "match { $c: Customer } return { $c.name as name }"),
    "key": lambda graph: names(graph, 'match { $c: Customer { name: "hidden" } } return { $c.name as name }'),
    "group": lambda graph: names(graph, "match { $c: Customer } return { $c.tenant as name, count($c) as n }"),
    "hop": lambda graph: names(graph, "match { $c: Customer $c knows $d } return { $d.name as name }"),
    "edge": lambda graph: names(graph, "match { $c: Customer $c $k:knows $d } return { $k.tenant as name }"),
    "optional": lambda graph: names(graph, f"match {{ {OPTIONAL} }} return {{ $d.name as name }}"),
    "union": lambda graph: names(graph, "match { $c: Named } return { $c.name as name }"),
    "page": lambda graph: graph.query(ORDERED, page=9).to_pylist(),
    "get": lambda graph: graph.get("Customer", "hidden"),
    "export": lambda graph: list(graph.export()),
    "diff": lambda graph: [change.to_json() for change in graph.diff(1, "main")],
    "changes": lambda graph: [change.to_json() for change in graph.commit_changes(graph.commits()[0].id)],
    "history of b": lambda graph: [change.to_json() for change in graph.history("Customer", "b")],
    "history": lambda graph: [change.to_json() for change in graph.history("Customer", "hidden")],
    "to_arrow": lambda graph: graph.to_arrow("Customer").to_pylist(),
    "to_batches": lambda graph: graph.to_batches("Customer").read_all().to_pylist(),
}


IMAGES = ("diff", "changes", "history of b")
"""Reads of images of rows."""
HR = "{ actors: { group: hr }, actions: [property_read]"


def names(graph: og.Graph, text: str) -> list[Any]:
    return sorted(graph.query(text).to_arrow()["name"].to_pylist(), key=str)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "g.omni", SCHEMA, sync=False)
    seen = {"tenant": "acme", "since": "2020-02-03", "seen": "2020-02-03T04:05:06Z", "tags": ["open"], "pay": 5}
    seen |= {"size": 2**64 - 1, "sizes": [2**63, 1]}
    customers = [
        {"name": "a", **seen},
        {"name": "b", "tenant": "acme", "pay": 7},
        {"name": "hidden", **seen, "tenant": "beta"},
        {"name": "late", **seen, "since": "2031-01-01"},
    ]
    records: list[dict[str, Any]] = [{"type": "Customer", "data": data} for data in customers]
    records.append({"type": "Plain", "data": {"name": "p"}})
    records += [
        {"edge": "Knows", "from": a, "to": b, "data": {"tenant": "acme"}} for a, b in (("a", "b"), ("a", "hidden"))
    ]
    graph.load(records, mode="append")
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "plain.yaml").write_text(POLICY.replace(", audit: 1000", ""))
    return tmp_path


def opened(place: Path, policy: str = "policy.yaml") -> og.Graph:
    return og.open(place / "g.omni", policy=place / policy, actor="ana")


@pytest.mark.parametrize("name", READS)
def test_an_audit_does_not_change_results(place, name):
    assert READS[name](opened(place)) == READS[name](opened(place, "plain.yaml"))


def always(property_: str) -> ir.Condition:
    """A condition that is true for every row: a translation that is wrong."""
    return ir.Not(ir.IsNull(ir.Prop(ROW, property_, ir.STRING)))


@pytest.mark.parametrize("name", [name for name in READS if name != "history of b"])
def test_a_row_that_the_policy_denies_ends_the_read(place, monkeypatch, caplog, name):
    right = row_policies.visible_rows

    def wrong(policies: Any, facts: Any) -> Any:
        found = right(policies, facts)
        return found if isinstance(found, bool) or facts.action != "row_read" else always("id")

    monkeypatch.setattr(row_policies, "visible_rows", wrong)
    READS[name](opened(place, "plain.yaml"))
    with caplog.at_level(logging.ERROR), pytest.raises(Denied, match="audit"):
        READS[name](opened(place))
    assert "actor 'ana'" in caplog.text
    assert "hidden" not in caplog.text


def test_a_value_that_the_policy_denies_ends_the_read(place, monkeypatch):
    right = row_policies.visible_rows

    def wrong(policies: Any, facts: Any) -> Any:
        found = right(policies, facts)
        return found if isinstance(found, bool) or facts.action != "property_read" else always("id")

    monkeypatch.setattr(row_policies, "visible_rows", wrong)
    text = "match { $c: Customer } return { $c.pay as name }"
    assert names(opened(place, "plain.yaml"), text) == [5, 7]
    for read in (lambda graph: names(graph, text), *(READS[name] for name in ("to_arrow", "export", *IMAGES))):
        with pytest.raises(Denied, match="audit"):
            read(opened(place))


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("otherwise", ["mask", "hide"])
def test_an_image_with_a_value_that_is_not_masked_ends_the_read(place, monkeypatch, name, otherwise):
    """The audit judges the values that are shown, not the condition that should mask them."""
    if otherwise == "hide":
        text = POLICY.replace("when: 'resource.tags.contains(\"open\")', otherwise: mask", "otherwise: hide")
        text = text.replace("{ actors: { any: true }, actions: [property_read]", HR)
        (place / "policy.yaml").write_text(text)
    READS[name](opened(place))
    monkeypatch.setattr(VisibleTable, "masked_in", lambda _, rows: rows)
    with pytest.raises(Denied, match="audit"):
        READS[name](opened(place))


@pytest.mark.parametrize("value", ["0", "1001", "true", '"5"', "-1", "[1]"])
def test_a_wrong_size_of_the_sample(value):
    with pytest.raises(PolicyInvalid, match=r"rows\.audit"):
        parse_policy_text(POLICY.replace("audit: 1000", f"audit: {value}"))
