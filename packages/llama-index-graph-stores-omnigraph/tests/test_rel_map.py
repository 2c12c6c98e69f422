"""`get_rel_map` beside a slow oracle: distances over all triplets of a random graph."""

from __future__ import annotations

import random

import pytest
from llama_index.core.graph_stores.types import EntityNode, Relation

LABELS = ["Ant", "Bee"]
RELATIONS = ["SEES", "EATS", "SOURCE"]


@pytest.fixture
def random_graph(grown):
    rng = random.Random(7)
    nodes = [EntityNode(name=f"n{n}", label=rng.choice(LABELS)) for n in range(14)]
    pairs = {(rng.choice(RELATIONS), rng.randrange(14), rng.randrange(14)) for _ in range(22)}
    relations = [Relation(label=label, source_id=f"n{a}", target_id=f"n{b}") for label, a, b in sorted(pairs)]
    with grown.transaction():
        grown.upsert_nodes(nodes)
        grown.upsert_relations(relations)
    return grown, relations


def oracle(relations, starts, depth, ignored):
    """(distance, label, source, target) of the edges within `depth` steps, by relaxation until nothing changes."""
    usable = [relation for relation in relations if relation.label not in ignored]
    distance = dict.fromkeys(starts, 0)
    for _ in usable:
        for relation in usable:
            for one, other in (
                (relation.source_id, relation.target_id),
                (relation.target_id, relation.source_id),
            ):
                if one in distance:
                    distance[other] = min(distance.get(other, 99), distance[one] + 1)
    found = []
    for relation in usable:
        near = min(distance.get(relation.source_id, 99), distance.get(relation.target_id, 99))
        if near < depth:
            found.append((near, relation.label, relation.source_id, relation.target_id))
    return sorted(found)


def test_depth_limit_and_ignored_relations(random_graph):
    store, relations = random_graph
    rng = random.Random(11)
    sizes = set()
    for _ in range(20):
        starts = rng.sample([f"n{n}" for n in range(14)], rng.randint(1, 3))
        depth, limit = rng.randint(0, 4), rng.choice([1, 5, 9, 100])
        ignored = rng.choice([[], ["SOURCE"], ["SEES", "EATS"]])
        expected = oracle(relations, starts, depth, ignored)[:limit]
        nodes = [EntityNode(name=name, label=rng.choice([*LABELS, "unknown"])) for name in starts]
        found = store.get_rel_map(nodes, depth=depth, limit=limit, ignore_rels=ignored)
        assert [(relation.label, a.id, b.id) for a, relation, b in found] == [each[1:] for each in expected]
        sizes.add(len(found))
    assert len(sizes) > 4


def test_unknown_nodes_and_no_depth(random_graph):
    store, _ = random_graph
    assert store.get_rel_map([EntityNode(name="nobody")]) == []
    assert store.get_rel_map([EntityNode(name="n1")], depth=0) == []
    assert store.get_rel_map([]) == []
