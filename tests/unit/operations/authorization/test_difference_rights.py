"""Merges, reverts and landings need the rights to everything that they change: kinds of changes × ways × rights."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import pytest

import omnigraph as og
from omnigraph.errors import Denied, QueryNotFound
from omnigraph.graph import Graph
from omnigraph.operations.authorization.access import Access
from omnigraph.policy import Policy
from omnigraph.policy.load import parse_policy_text

SCHEMA = "node Person { name: String @key }\n"
ANA = 'match { $p: Person { name: "ana" } } return { $p.name }'
EVERYBODY = "match { $p: Person } return { $p.name }"
QUERY, DEFINER = {"query_store"}, {"query_store", "query_define"}
SCHEMA_RIGHT = {"schema_apply"}
numbers = itertools.count()

Change = Callable[[Graph, str], object]


def store(head: str, body: str = ANA, actor: str = "olga") -> Change:
    """Store a query as an actor."""
    return lambda graph, branch: graph.store_query(f"query {head} {{ {body} }}", branch=branch, actor=actor)


def migrate(text: str) -> Change:
    return lambda graph, branch: graph.apply_schema(SCHEMA + text, branch=branch, allow_data_loss=True)


def with_city(graph: Graph, branch: str) -> object:
    migrate("node City { name: String @key  size: I64? }")(graph, branch)
    return graph.mutate('insert City { name: "Bonn", size: 3 }', branch=branch)


def delete(graph: Graph, branch: str) -> object:
    return graph.delete_query("q", branch=branch)


def insert(graph: Graph, branch: str) -> object:
    return graph.mutate('insert Person { name: "zoe" }', branch=branch)


def insert_with_query(graph: Graph, branch: str) -> object:
    insert(graph, branch)
    return store("q()")(graph, branch)


@dataclass(frozen=True)
class Kind:
    """A change of a branch, and what it needs beside the right to the call that makes or undoes it."""

    change: Change
    needs: Collection[str]
    undo_needs: Collection[str]
    first: Change | None = None
    """What the branch has before."""


KINDS = {
    "rows": Kind(insert, (), ()),
    "property added": Kind(migrate("node City { name: String @key  size: I64? }"), SCHEMA_RIGHT, SCHEMA_RIGHT,
                           migrate("node City { name: String @key }")),
    "type added": Kind(migrate("node City { name: String @key }"), SCHEMA_RIGHT, SCHEMA_RIGHT),
    "type dropped": Kind(migrate(""), SCHEMA_RIGHT, SCHEMA_RIGHT, with_city),
    "property dropped": Kind(migrate("node City { name: String @key }"), SCHEMA_RIGHT, SCHEMA_RIGHT, with_city),
    "schema annotated": Kind(migrate('node City @description("a") { name: String @key }'), SCHEMA_RIGHT, SCHEMA_RIGHT,
                             migrate("node City { name: String @key }")),
    "query stored": Kind(store("q()"), QUERY, QUERY),
    "query changed": Kind(store("q()", EVERYBODY), QUERY, QUERY, store("q()")),
    "query deleted": Kind(delete, QUERY, QUERY, store("q()")),
    "query exposed": Kind(store("q()"), QUERY, QUERY, store("q() @expose(false)")),
    "check stored": Kind(store("q() @check(some)"), QUERY, QUERY),
    "definer stored": Kind(store("q() @definer"), DEFINER, QUERY),
    "definer widened": Kind(store("q() @definer", EVERYBODY), DEFINER, DEFINER, store("q() @definer")),
    "definer withdrawn": Kind(delete, QUERY, DEFINER, store("q() @definer")),
    "definer made plain": Kind(store("q()"), QUERY, DEFINER, store("q() @definer")),
    "definer replaced": Kind(store("q() @definer", actor="bo"), DEFINER, DEFINER, store("q() @definer")),
}  # fmt: skip


def as_actor(graph: Graph, rights: Collection[str], actor: str = "mallory") -> Graph:
    """The graph for an actor with some rights on every branch."""
    rule = {"id": "r", "allow": {"actors": {"group": "g"}, "actions": sorted({"read", *rights})}}
    text = json.dumps({"version": 2, "groups": {"g": [actor]}, "rules": [rule]})
    return graph.with_access(Access(Policy(parse_policy_text(text)), actor))


def merged(graph: Graph, target: str, kind: Kind) -> Iterator[Callable[[Graph], object]]:
    graph.branch_create(f"{target}/source", target)
    kind.change(graph, f"{target}/source")
    yield lambda handle: handle.merge(f"{target}/source", into=target)


def merged_from_older(graph: Graph, target: str, kind: Kind) -> Iterator[Callable[[Graph], object]]:
    before = graph.head(target).commit_id
    graph.mutate('insert Person { name: "later" }', branch=target)
    graph.branch_create(f"{target}/source", at=before)
    kind.change(graph, f"{target}/source")
    yield lambda handle: handle.merge(f"{target}/source", into=target)


def landed(graph: Graph, target: str, kind: Kind) -> Iterator[Callable[[Graph], object]]:
    graph.branch_create(f"{target}/source", target)
    kind.change(graph, f"{target}/source")
    id_ = graph.propose(f"{target}/source", into=target, title="x").id
    yield lambda handle: handle.proposal(id_).land()


def reverted_revert(graph: Graph, target: str, kind: Kind) -> Iterator[Callable[[Graph], object]]:
    kind.change(graph, target)
    undone = graph.revert(graph.head(target).commit_id, branch=target).commit_id
    yield lambda handle: handle.revert(undone, branch=target)


def reverted(graph: Graph, target: str, kind: Kind) -> Iterator[Callable[[Graph], object]]:
    kind.change(graph, target)
    commit = graph.head(target).commit_id
    yield lambda handle: handle.revert(commit, branch=target)


def reverted_merge(graph: Graph, target: str, kind: Kind) -> Iterator[Callable[[Graph], object]]:
    for merge in merged(graph, target, kind):
        merge(graph)
    commit = graph.head(target).commit_id
    yield lambda handle: handle.revert(commit, branch=target)


Way = Callable[[Graph, str, Kind], Iterator[Callable[[Graph], object]]]
MAKING: dict[Way, set[str]] = {
    merged: {"branch_merge"},
    merged_from_older: {"branch_merge"},
    landed: {"proposal_land", "branch_merge"},
    reverted_revert: {"change"},
}
"""Ways to make a change, and the right to the call."""
UNDOING: dict[Way, set[str]] = {reverted: {"change"}, reverted_merge: {"change"}}
"""Ways to undo it."""


WAYS = [
    pytest.param(way, id=way.__name__, marks=[pytest.mark.long] if way in (merged_from_older, reverted_merge) else [])
    for way in (*MAKING, *UNDOING)
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = og.init(tmp_path_factory.mktemp("graph") / "g.omni", SCHEMA, sync=False)
    graph.load([{"type": "Person", "data": {"name": "ana"}}], mode="merge")
    return graph


def contents(graph: Graph, branch: str) -> tuple[str, str, str]:
    head = graph.snapshot(branch)
    return head.commit_id, head.schema_hash, head.queries_hash


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_call_needs_the_rights_to_its_difference(graph: Graph, way: Way, name: str) -> None:
    kind = KINDS[name]
    target = f"t{next(numbers)}"
    graph.branch_create(target)
    if kind.first is not None:
        kind.first(graph, target)
    call_needs = {**MAKING, **UNDOING}[way]
    required = {*call_needs, *(kind.needs if way in MAKING else kind.undo_needs)}
    for call in way(graph, target, kind):
        before = contents(graph, target)
        for missing in sorted(required):
            with pytest.raises(Denied, match=missing):
                call(as_actor(graph, required - {missing}))
            assert contents(graph, target) == before
        call(as_actor(graph, required))
        assert contents(graph, target) != before


def test_a_schema_that_was_changed_and_changed_back_is_no_difference(graph: Graph) -> None:
    target = f"t{next(numbers)}"
    graph.branch_create(target)
    graph.branch_create(f"{target}/source", target)
    for text in ("node City { name: String @key }", ""):
        migrate(text)(graph, f"{target}/source")
    insert(graph, f"{target}/source")
    assert as_actor(graph, {"branch_merge"}).merge(f"{target}/source", into=target).commit_id is not None


def test_a_type_that_was_dropped_and_added_again_is_a_difference(graph: Graph) -> None:
    target = f"t{next(numbers)}"
    graph.branch_create(target)
    with_city(graph, target)
    graph.branch_create(f"{target}/source", target)
    for text in ("", "node City { name: String @key  size: I64? }"):
        migrate(text)(graph, f"{target}/source")
    with pytest.raises(Denied, match="schema_apply"):
        as_actor(graph, {"branch_merge"}).merge(f"{target}/source", into=target)


def test_a_withdrawn_query_with_rights_exists_at_no_point_and_on_no_new_branch(graph: Graph) -> None:
    target = f"t{next(numbers)}"
    graph.branch_create(target)
    store("q() @definer", EVERYBODY)(graph, target)
    store("plain()")(graph, target)
    earlier = graph.head(target).commit_id
    callers = {"invoke_query", "branch_create"}
    text = json.dumps(
        {
            "version": 2,
            "groups": {"owners": ["olga"], "callers": ["mallory"]},
            "rules": [
                {"id": "own", "allow": {"actors": {"group": "owners"}, "role": "owner"}},
                {"id": "call", "allow": {"actors": {"group": "callers"}, "actions": ["read", *sorted(callers)]}},
            ],
        }
    )
    policy = Policy(parse_policy_text(text))
    mallory, olga = (graph.with_access(Access(policy, actor)) for actor in ("mallory", "olga"))
    assert len(mallory.invoke("q", at=earlier)) >= 1
    mallory.branch_create(f"{target}/before", at=earlier)
    graph.delete_query("q", branch=target)
    for name in ("q", "plain"):
        assert (name in [query.name for query in mallory.queries(at=earlier)]) == (name == "plain")
    with pytest.raises(QueryNotFound):
        mallory.invoke("q", at=earlier)
    assert len(mallory.invoke("plain", at=earlier)) == 1
    with pytest.raises(Denied, match="query_store"):
        mallory.branch_create(f"{target}/again", at=earlier)
    olga.branch_create(f"{target}/again", at=earlier)
    assert len(mallory.invoke("q", branch=f"{target}/again")) >= 1
    store("q() @definer", ANA)(graph, target)
    with pytest.raises(QueryNotFound):
        mallory.invoke("q", at=earlier)
