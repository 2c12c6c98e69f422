"""Policy enforcement by `Graph`: every public method asks, and judges the branch of the resolved commit."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from omnigraph.errors import CommitNotFound, Denied, OmniGraphError, QueryNotFound
from omnigraph.graph import Graph
from omnigraph.operations.authorization.access import Access
from omnigraph.policy import Policy, parse_rules
from omnigraph.policy.load import parse_policy_text
from omnigraph.policy.rules import GRAPH_ACTIONS, STATEMENT_ACTIONS
from support.writes import SHELVES, beside, new_graph, shelf

ALL = "match { $s: Shelf } return { $s.code } order { $s.code }"
numbers = itertools.count()

Call = Callable[[Graph, Graph], Any]


def fresh(raw: Graph) -> str:
    """A new branch."""
    name = f"b{next(numbers)}"
    raw.branch_create(name, "draft")
    return name


def commit_of(raw: Graph) -> str:
    return raw.mutate(f'insert Shelf {{ code: "c{next(numbers)}" }}').commit_id


def new_shelf(raw: Graph) -> str:
    code = f"gone{next(numbers)}"
    raw.mutate(f'insert Shelf {{ code: "{code}" }}')
    return code


def tagged(raw: Graph) -> str:
    return raw.tag_create(f"t{next(numbers)}").name


def stored(raw: Graph) -> str:
    (name,) = raw.store_query(f"query q{next(numbers)}() {{ {ALL} }}").stored
    return name


def proposed(raw: Graph) -> str:
    return raw.propose(fresh(raw), into="draft", title="x", draft=True).id


CALLS: dict[str, tuple[set[str], Call]] = {
    "newest_version": ({"read"}, lambda g, _: g.newest_version),
    "schema": ({"read"}, lambda g, _: g.schema),
    "snapshot": ({"read"}, lambda g, _: g.snapshot()),
    "catalog": ({"read"}, lambda g, _: g.catalog()),
    "plan_schema": ({"read"}, lambda g, _: g.plan_schema(SHELVES)),
    "apply_schema": ({"schema_apply"}, lambda g, _: g.apply_schema(SHELVES)),
    "query": ({"read"}, lambda g, _: g.query(ALL)),
    "pages": ({"read"}, lambda g, _: g.pages(ALL, page=1)),
    "explain": ({"read"}, lambda g, _: g.explain(ALL)),
    "profile": ({"read"}, lambda g, _: g.profile(ALL)),
    "lint": ({"read"}, lambda g, _: g.lint(f"query q() {{ {ALL} }}")),
    "analyze": ({"read"}, lambda g, _: g.analyze("degrees")),
    "mutate": ({"change"}, lambda g, _: g.mutate('delete Shelf where code = "none"')),
    "resolve": ({"read"}, lambda g, _: g.resolve("Shelf", ["code"])),
    "unify": ({"change"}, lambda g, _: g.unify("Shelf", pairs=[])),
    "queries": ({"read"}, lambda g, _: g.queries()),
    "validate_queries": ({"read"}, lambda g, _: g.validate_queries()),
    "store_query": (
        {"query_store", "change"},
        lambda g, _: g.store_query(f"query s{next(numbers)}() {{ {ALL} }}"),
    ),
    "delete_query": ({"query_store", "change"}, lambda g, raw: g.delete_query(stored(raw))),
    "invoke": ({"invoke_query", "read"}, lambda g, raw: g.invoke(stored(raw))),
    "search": ({"read"}, lambda g, _: g.search("a")),
    "show": ({"read"}, lambda g, _: g.show("Shelf")),
    "neighbors": ({"read"}, lambda g, _: g.neighbors("Shelf", "a")),
    "diff_summary": ({"read"}, lambda g, _: g.diff_summary("main", "main")),
    "diff_graph": ({"read"}, lambda g, _: g.diff_graph("main", "main")),
    "branch_status": ({"read"}, lambda g, _: g.branch_status()),
    "projection": ({"read"}, lambda g, _: g.projection("Shelf", "note")),
    "complete": ({"read"}, lambda g, _: g.complete("ma", 2)),
    "hover": ({"read"}, lambda g, _: g.hover("match", 2)),
    "degrees": ({"read"}, lambda g, _: g.degrees("Shelf", "a")),
    "propose": (
        {"proposal_create", "read"},
        lambda g, raw: g.propose(fresh(raw), into="draft", title="x", draft=True),
    ),
    "proposals": ({"read"}, lambda g, _: g.proposals()),
    "proposal": ({"read"}, lambda g, raw: g.proposal(proposed(raw))),
    "proposal_events": ({"read"}, lambda g, raw: g.proposal_events(proposed(raw))),
    "load": ({"change"}, lambda g, _: g.load([shelf("l")], mode="merge")),
    "ingest": (
        {"branch_create", "change"},
        lambda g, _: g.ingest([shelf("l")], branch=f"i{next(numbers)}", from_branch="draft"),
    ),
    "embed": ({"maintain"}, lambda g, _: g.embed()),
    "export": ({"export"}, lambda g, _: g.export()),
    "get": ({"read"}, lambda g, _: g.get("Shelf", "a")),
    "entity_at": ({"read"}, lambda g, _: g.entity_at("Shelf", "a", "draft")),
    "blob": ({"read"}, lambda g, _: g.blob("Shelf", "a", "note")),
    "to_arrow": ({"export"}, lambda g, _: g.to_arrow("Shelf")),
    "to_batches": ({"export"}, lambda g, _: g.to_batches("Shelf").read_all()),
    "sql": ({"export"}, lambda g, _: g.sql("select id from Shelf")),
    "duckdb": ({"export"}, lambda g, _: g.duckdb().close()),
    "to_spark": ({"export"}, lambda g, _: g.to_spark("Missing")),
    "to_networkx": ({"export"}, lambda g, _: g.to_networkx()),
    "to_rustworkx": ({"export"}, lambda g, _: g.to_rustworkx()),
    "to_sparse": ({"export"}, lambda g, _: g.to_sparse("Beside")),
    "to_pyg": ({"export"}, lambda g, _: g.to_pyg(["Missing"])),
    "branches": ({"read"}, lambda g, _: g.branches()),
    "branch_create": ({"branch_create"}, lambda g, _: g.branch_create(f"n{next(numbers)}")),
    "head": ({"read"}, lambda g, _: g.head("draft")),
    "branch_update": ({"branch_create"}, lambda g, raw: g.branch_update(fresh(raw), description="x")),
    "branch_delete": ({"branch_delete"}, lambda g, raw: g.branch_delete(fresh(raw))),
    "merge": ({"branch_merge"}, lambda g, raw: g.merge("draft", fresh(raw))),
    "merge_preview": ({"read"}, lambda g, _: g.merge_preview("draft", "main")),
    "revert": ({"change", "read"}, lambda g, raw: g.revert(commit_of(raw))),
    "revert_preview": ({"read"}, lambda g, raw: g.revert_preview(commit_of(raw))),
    "tag_create": ({"tag_create"}, lambda g, _: g.tag_create(f"t{next(numbers)}")),
    "tags": ({"read"}, lambda g, _: g.tags()),
    "tag_delete": ({"tag_delete"}, lambda g, raw: g.tag_delete(tagged(raw))),
    "commits": ({"read"}, lambda g, _: g.commits()),
    "commit": ({"read"}, lambda g, raw: g.commit(raw.snapshot().commit_id)),
    "diff": ({"read"}, lambda g, _: g.diff("main", "draft")),
    "export_diff": ({"export"}, lambda g, raw: g.export_diff("main", "draft", f"{raw.uri}-{next(numbers)}")),
    "commit_changes": ({"read"}, lambda g, raw: g.commit_changes(raw.snapshot("draft").commit_id)),
    "changes": ({"read"}, lambda g, _: g.changes(start="beginning", branch="draft")),
    "changes_baseline": ({"export"}, lambda g, _: g.changes_baseline()),
    "history": ({"read"}, lambda g, _: g.history("Shelf", "a")),
    "blame": ({"read"}, lambda g, _: g.blame("Shelf", "a")),
    "ensure_indices": ({"maintain"}, lambda g, _: g.ensure_indices()),
    "optimize": ({"maintain"}, lambda g, _: g.optimize()),
    "cleanup": ({"maintain"}, lambda g, _: g.cleanup(keep=1000)),
    "recover": ({"maintain"}, lambda g, _: g.recover()),
    "verify": ({"maintain"}, lambda g, _: g.verify()),
    "purge": ({"purge"}, lambda g, raw: g.purge("Shelf", [new_shelf(raw)], reason="test")),
    "purge_allow": ({"purge"}, lambda g, _: g.purge_allow("Shelf", ["absent"])),
    "purge_preview": ({"purge"}, lambda g, _: g.purge_preview("Shelf", ["absent"])),
    "purge_redact": ({"purge"}, lambda g, _: g.purge_redact(["absent text"])),
    "purge_resume": ({"purge"}, lambda g, _: g.purge_resume()),
    "purge_verify": ({"purge"}, lambda g, _: g.purge_verify()),
    "purges": ({"purge"}, lambda g, _: g.purges()),
}
"""Public method or property of `Graph` → the actions it requires, and a call."""


def _parameters(name: str) -> Iterable[str]:
    member = getattr(Graph, name)
    return inspect.signature(member).parameters if callable(member) else ()


UNCHECKED = {
    "uri": "the caller knows it",
    "on": "returns a handle; what is done with it is checked",
    "with_access": "only on a handle without an access",
    "with_metadata": "returns a handle; what is done with it is checked",
}
VARIANTS: dict[str, tuple[set[str], Call]] = {
    "store_query with definer": (
        {"query_store", "query_define", "change"},
        lambda g, _: g.store_query(f"query s{next(numbers)}() @definer {{ {ALL} }}"),
    ),
    "analyze with write": (
        {"read", "change"},
        lambda g, _: g.analyze("degrees", write={"degree": "cap"}),
    ),
    "merge and delete": (
        {"branch_merge", "branch_delete"},
        lambda g, raw: g.merge(fresh(raw), "draft", delete_branch=True),
    ),
    "ingest into a branch that exists": (
        {"change"},
        lambda g, _: g.ingest([shelf("l")], branch="draft", from_branch="main"),
    ),
    "branch_create at a point": (
        {"branch_create"},
        lambda g, raw: g.branch_create(f"n{next(numbers)}", at=raw.snapshot().commit_id),
    ),
    "export to a file": ({"export"}, lambda g, raw: g.export(f"{raw.uri}-{next(numbers)}.jsonl")),
    "html": ({"read"}, lambda g, _: g._repr_html_()),
}


@pytest.fixture(scope="module")
def raw(tmp_path_factory) -> Graph:
    """A graph with commits on main and on draft, opened without a policy."""
    graph = new_graph(tmp_path_factory.mktemp("graph"), SHELVES, shelf("a"), shelf("b"), beside("a", "b", id_="e"))
    graph.branch_create("draft")
    graph.load([shelf("d")], mode="merge", branch="draft")
    return graph


def policy_of(*rules: tuple[Iterable[str], str | None]) -> Policy:
    """A policy of version 1; actions that only version 2 has make it one of version 2, without scopes."""
    if any(action not in GRAPH_ACTIONS for actions, _ in rules for action in actions):
        allowed = [
            f"{{id: r{index}, allow: {{actors: {{group: g}}, actions: [{', '.join(sorted(actions))}]}}}}"
            for index, (actions, _) in enumerate(rules)
        ]
        text = f"version: 2\ngroups: {{ g: [ana] }}\nrules: [{', '.join(allowed)}]\n"
        return Policy(parse_policy_text(text))
    lines = []
    for index, (actions, scope) in enumerate(rules):
        for key in ("branch_scope", "target_branch_scope", None):
            mine = [action for action in actions if GRAPH_ACTIONS[action] == key]
            limit = f", {key}: {scope}" if scope is not None and key is not None else ""
            if mine:
                allow = f"{{actors: {{group: g}}, actions: [{', '.join(mine)}]{limit}}}"
                lines.append(f"  - {{id: r{index}-{key}, allow: {allow}}}\n")
    text = f"version: 1\ngroups: {{ g: [ana] }}\nprotected_branches: [main]\nrules:\n{''.join(lines)}"
    return Policy(parse_rules(text))


def consume(value: Any) -> Any:
    return list(value) if isinstance(value, Iterator) else value


HIDDEN: dict[str, Any] = {"commit_changes": CommitNotFound, "invoke": (QueryNotFound, Denied)}
"""Calls whose denial is that of an object that does not exist."""
FAILS = {"blob", "projection", "to_pyg", "to_spark"}
"""Calls that fail after they were allowed, because of their arguments."""


def fails(call: Call, graph: Graph, raw: Graph) -> bool:
    """Run a call to its end. Return True if it is allowed and fails."""
    try:
        consume(call(graph, raw))
    except Denied:
        raise
    except OmniGraphError:
        return True
    return False


# -- every method --------------------------------------------------------------------------------------


def test_every_public_method_is_in_the_table():
    public = {name for name in dir(Graph) if not name.startswith("_")}
    assert public == CALLS.keys() | UNCHECKED.keys()


@pytest.mark.parametrize("name", [*CALLS, *VARIANTS])
def test_every_method_is_denied_without_a_rule(raw, name):
    _, call = (CALLS | VARIANTS)[name]
    denies_all = policy_of((GRAPH_ACTIONS, None))
    for access in (Access(denies_all, "guest"), Access(denies_all, None), Access(None, "ana")):
        with pytest.raises(HIDDEN.get(name, Denied)):
            consume(call(raw.with_access(access), raw))
        assert access.decisions
        assert not any(decision.allowed for decision in access.decisions)


@pytest.mark.parametrize("name", [*CALLS, *VARIANTS])
def test_every_method_requires_exactly_its_actions(raw, name):
    required, call = (CALLS | VARIANTS)[name]
    access = Access(policy_of((required, None)), "ana")
    assert fails(call, raw.with_access(access), raw) == (name in FAILS)
    assert {decision.action for decision in access.decisions} == required
    for missing in required:
        known = GRAPH_ACTIONS if required <= GRAPH_ACTIONS.keys() else STATEMENT_ACTIONS
        others = set(known) - {missing}
        with pytest.raises(HIDDEN.get(name, Denied)):
            consume(call(raw.with_access(Access(policy_of((others, None)), "ana")), raw))


# -- actors --------------------------------------------------------------------------------------------


class ActingAs:
    """A graph whose calls name an actor."""

    def __init__(self, graph: Graph, actor: str) -> None:
        self._graph = graph
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(self._graph, name), actor=self._actor)


TAKES_ACTOR = [name for name in CALLS if "actor" in _parameters(name) and name != "commits"]
"""Methods that act in the name of an actor; `commits` selects by it."""


@pytest.mark.parametrize("name", TAKES_ACTOR)
def test_no_method_acts_as_another_actor(raw, name):
    _, call = CALLS[name]
    access = Access(policy_of((GRAPH_ACTIONS, None)), "ana")
    with pytest.raises(Denied, match="a call cannot name another actor"):
        call(ActingAs(raw.with_access(access), "bo"), raw)
    own = Access(policy_of((STATEMENT_ACTIONS, None)), "ana")
    consume(call(ActingAs(raw.with_access(own), "ana"), raw))
    assert own.decisions
