"""A change of the schema that would break rules of the policy is refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import Denied, InputError
from support.guarded_server import TOKEN, guarded

SCHEMA = "node Customer { number: I64 @key  tenant: String? }\n"
RENAMED = 'node Customer { number: I64 @key  owner: String? @rename_from("tenant") }\n'
ADDED = "node Customer { number: I64 @key  tenant: String?  level: I64? }\n"
POLICY = """
version: 2
groups: { owners: [olga], staff: [ana] }
attributes: { declare: { tenant: String } }
rows: { default: allow }
rules:
  - id: owners
    allow: { actors: { group: owners }, role: owner }
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read], types: [Customer],
             when: 'resource.tenant == principal.tenant' }
"""
PROBLEMS = ("rule 'own-tenant': 'Customer' has no property 'tenant'",)
WANTED = f"the schema would break 1 rule of the policy: {PROBLEMS[0]}"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    graph.load([{"type": "Customer", "data": {"number": 1, "tenant": "acme"}}], mode="append")
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def opened(place: Path) -> og.Graph:
    return og.open(place / "g.omni", policy=place / "policy.yaml", actor="olga")


def test_apply_schema(place):
    graph = opened(place)
    before = graph.snapshot().commit_id
    with pytest.raises(InputError, match=WANTED) as raised:
        graph.apply_schema(RENAMED)
    assert raised.value.code == "policy_breakage"
    assert graph.snapshot().commit_id == before
    assert graph.apply_schema(ADDED).applied
    done = graph.apply_schema(RENAMED.replace("}", " level: I64? }"), allow_policy_breakage=True)
    assert done.applied
    assert done.broken_rules == PROBLEMS
    assert done.to_json()["broken_rules"] == [*PROBLEMS]
    with pytest.raises(Denied, match="do not fit the schema"):
        opened(place).get("Customer", 1)


def test_a_denial_names_no_broken_rule(place, caplog):
    """The log of the program has the problems; an actor learns neither rules nor properties."""
    reads = "  - { id: reads, allow: { actors: { any: true }, actions: [read, change] } }"
    (place / "policy.yaml").write_text(POLICY + reads)
    og.open(place / "g.omni").apply_schema(RENAMED)
    ana = og.open(place / "g.omni", policy=place / "policy.yaml", actor="ana")
    calls = (
        lambda: ana.get("Customer", 1),
        lambda: ana.query("match { $c: Customer } return { $c.number }"),
        lambda: ana.mutate("delete Customer where number = 1"),
        lambda: ana.schema,
    )
    for call in calls:
        caplog.clear()
        with pytest.raises(Denied) as caught:
            call()
        text = f"{caught.value} {caught.value.hint} {caught.value.reasons} {caught.value.rules}"
        assert "do not fit the schema" in text
        for name in ("tenant", "own-tenant", "Customer"):
            assert name not in text
        assert PROBLEMS[0] in caplog.text


def test_a_plan_reports_broken_rules(place):
    plan = opened(place).plan_schema(RENAMED)
    assert plan.broken_rules == PROBLEMS
    assert plan.to_json()["broken_rules"] == [*PROBLEMS]
    assert opened(place).plan_schema(ADDED).broken_rules == ()
    assert "broken_rules" not in opened(place).plan_schema(ADDED).to_json()
    assert og.open(place / "g.omni").plan_schema(RENAMED).broken_rules == (), "no policy, no rules"


def draft(place: Path, schema: str = RENAMED) -> og.Graph:
    graph = og.open(place / "g.omni")
    graph.branch_create("draft")
    graph.apply_schema(schema, branch="draft")
    return graph


def test_merge(place):
    graph = draft(place)
    before = graph.snapshot().commit_id
    preview = opened(place).merge_preview("draft")
    assert preview.broken_rules == PROBLEMS
    assert preview.schema_steps
    assert "1 broken rule" in repr(preview)
    with pytest.raises(InputError, match=WANTED) as raised:
        opened(place).merge("draft")
    assert raised.value.code == "policy_breakage"
    assert graph.snapshot().commit_id == before
    assert opened(place).merge("draft", allow_policy_breakage=True).commit_id is not None
    with pytest.raises(Denied, match="do not fit the schema"):
        opened(place).get("Customer", 1)
    (place / "policy.yaml").write_text(POLICY.replace("resource.tenant", "resource.owner"))
    assert opened(place).get("Customer", 1) is not None


@pytest.mark.parametrize("row_check", ["", ", row_check: skip"])
def test_the_permission_does_not_serve_a_caller_whom_rules_limit(place, row_check: str):
    more = f"""  - id: reads
    allow: {{ actors: {{ any: true }}, actions: [read] }}
  - id: merges
    allow: {{ actors: {{ group: staff }}, actions: [branch_merge]{row_check} }}
"""
    (place / "policy.yaml").write_text(POLICY + more)
    before = draft(place).snapshot().commit_id
    ana = og.open(place / "g.omni", policy=place / "policy.yaml", actor="ana")
    for call in (partial(ana.merge, allow_policy_breakage=True), ana.merge_preview):
        with pytest.raises(Denied):
            call("draft")
    assert og.open(place / "g.omni").snapshot().commit_id == before


def test_a_merge_of_a_harmless_schema(place):
    draft(place, ADDED)
    assert opened(place).merge_preview("draft").broken_rules == ()
    assert opened(place).merge("draft").schema_steps


def test_revert(place):
    whole = og.open(place / "g.omni", actor="x")
    applied = whole.apply_schema(RENAMED)
    whole.mutate('query a() { update Customer set { owner: "beta" } where number = 1 }')
    (place / "policy.yaml").write_text(POLICY.replace("resource.tenant", "resource.owner"))
    preview = opened(place).revert_preview(applied.commit_id)
    assert preview.broken_rules == ("rule 'own-tenant': 'Customer' has no property 'owner'",)
    with pytest.raises(InputError, match="has no property 'owner'") as raised:
        opened(place).revert(applied.commit_id)
    assert raised.value.code == "policy_breakage"
    assert opened(place).revert(applied.commit_id, allow_policy_breakage=True).commit_id is not None
    assert "tenant" in whole.schema


def test_over_http(place):
    """A server and its client report the same, and have the same permission."""
    graph = draft(place)
    with guarded(graph, POLICY.replace("olga", "ana")) as server, og.connect(server.url, token=TOKEN) as remote:
        assert remote.plan_schema(RENAMED).broken_rules == PROBLEMS
        assert server.post("/schema/plan", {"schema_source": RENAMED}).json["broken_rules"] == [*PROBLEMS]
        assert remote.merge_preview("draft").broken_rules == PROBLEMS
        with pytest.raises(InputError, match=WANTED):
            remote.merge("draft")
        merged = remote.merge("draft", allow_policy_breakage=True)
        assert merged.commit_id is not None
        reply = server.get("/entities/Customer/1")
        assert reply.status == 403, "the rules do not fit the schema"
        assert "tenant" not in str(reply.json)


def test_an_applied_schema_that_breaks_rules_is_answered(place):
    with guarded(og.open(place / "g.omni"), POLICY.replace("olga", "ana")) as server:
        body = {"schema_source": RENAMED}
        assert server.post("/schema/apply", body).json["reason"] == "policy_breakage"
        reply = server.post("/schema/apply", {**body, "allow_policy_breakage": True})
        assert (reply.status, reply.json["broken_rules"]) == (200, [*PROBLEMS])
        assert reply.json["commit"]["graph_commit_id"] == reply.json["commit_id"]
        assert reply.json["commit"]["changed"] == []
