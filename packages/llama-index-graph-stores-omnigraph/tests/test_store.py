"""The store: reads, upserts, strict and growing schemas, transactions."""

from __future__ import annotations

from datetime import date

import pytest
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, PropertyGraphStore, Relation
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.graph_stores.omnigraph import OmniGraphPropertyGraphStore, chunk_declaration

import omnigraph as og
from omnigraph.errors import InputError, MergeConflict, RecordError

ANA = EntityNode(name="Ana", label="PERSON", properties={"born": 1980, "tags": ["a", "b"]}, embedding=[1, 0, 0, 0])
BO = EntityNode(name="Bo", label="person", properties={"born": 1990}, embedding=[0, 1, 0, 0])
ACME = EntityNode(name="ACME", label="Company", properties={"city": "Oslo"})
WORKS = Relation(label="WORKS_AT", source_id="Ana", target_id="ACME", properties={"since": 2001})
KNOWS = Relation(label="knows", source_id="Ana", target_id="Bo")


@pytest.fixture
def filled(strict):
    strict.upsert_nodes([ANA, BO, ACME])
    strict.upsert_relations([WORKS, KNOWS])
    return strict


def new_commits(store, before):
    """The messages of the commits of the branch itself: of a merge, not of the merged branch."""
    commits = {commit.id: commit for commit in store.client.commits()}
    messages, at = [], store.client.head().commit_id
    while at != before:
        messages.insert(0, commits[at].message)
        at = commits[at].parent_id
    return messages


def ids(nodes):
    return [node.id for node in nodes]


# -- reading ---------------------------------------------------------------------------------------


def test_it_is_a_property_graph_store(filled):
    assert isinstance(filled, PropertyGraphStore)
    assert filled.supports_structured_queries
    assert filled.supports_vector_queries
    assert "edge WorksAt: Person -> Company" in filled.get_schema_str(refresh=True)


def test_get_by_ids_and_properties(filled):
    assert sorted(ids(filled.get())) == ["ACME", "Ana", "Bo"]
    assert ids(filled.get(ids=["Bo", "Cleo"])) == ["Bo"]
    assert filled.get(ids=[]) == []
    assert ids(filled.get(properties={"born": 1980})) == ["Ana"]
    assert filled.get(properties={"born": 1980, "city": "Oslo"}) == []
    assert ids(filled.get(properties={"city": "Oslo"}, ids=["ACME", "Ana"])) == ["ACME"]
    (ana,) = filled.get(ids=["Ana"])
    assert ana == EntityNode(name="Ana", label="Person", properties=ANA.properties)


def test_triplets(filled):
    def found(**arguments):
        return [(a.id, relation.label, b.id) for a, relation, b in filled.get_triplets(**arguments)]

    works, knows = ("Ana", "WorksAt", "ACME"), ("Ana", "Knows", "Bo")
    assert found() == []
    assert found(entity_names=["Ana"]) == [knows, works]
    assert found(ids=["ACME"]) == [works]
    assert found(relation_names=["works at"]) == [works]
    assert found(entity_names=["Ana"], ids=["Bo"]) == [knows]
    assert found(properties={"since": 2001}) == [works]
    assert found(properties={"born": 1990}) == [knows]
    assert found(entity_names=["Bo"], relation_names=["WORKS_AT"]) == []
    assert filled.get_triplets(ids=["ACME"])[0][1].properties == {"since": 2001}


def test_structured_queries_read(filled):
    text = "match { $p: Person $p worksAt $c } return { $p.name as who, count($c) as firms }"
    assert filled.structured_query(text) == [{"who": "Ana", "firms": 1}]
    assert filled.structured_query(f"```gq\n{text}\n```") == [{"who": "Ana", "firms": 1}]
    assert filled.structured_query("match { $p: Person { name: $who } } return { $p.born as born }", {"who": "Bo"}) == [
        {"born": 1990}
    ]
    with pytest.raises(InputError):
        filled.structured_query('delete Person where name = "Ana"')


def test_the_example_of_the_prompt_is_a_query(tmp_path):
    text = OmniGraphPropertyGraphStore.text_to_cypher_template.format(schema="S", question="Q")
    (query,) = [line for line in text.splitlines() if line.startswith("match {")]
    (schema,) = [line for line in text.splitlines() if line.startswith("node Person {")]
    assert og.init(tmp_path / "example.omni", schema, sync=False).query(query).to_pylist() == []


# -- vectors ---------------------------------------------------------------------------------------


def search(store, filters=None, top=5, **options):
    question = VectorStoreQuery(query_embedding=[1, 0.1, 0, 0], similarity_top_k=top, filters=filters, **options)
    return store.vector_query(question)


def test_vector_queries(filled):
    nodes, scores = search(filled)
    assert ids(nodes) == ["Ana", "Bo"]
    assert scores == pytest.approx([0.995, 0.0995], abs=1e-3)
    assert ids(search(filled, top=1)[0]) == ["Ana"]
    assert ids(search(filled, node_ids=["Bo"])[0]) == ["Bo"]
    assert filled.vector_query(VectorStoreQuery(query_embedding=[1.0, 2.0])) == ([], [])  # no vector of this length
    assert search(filled, doc_ids=["d"]) == ([], [])
    with pytest.raises(InputError, match="embedding or a text"):
        filled.vector_query(VectorStoreQuery())
    with pytest.raises(InputError, match="mode 'hybrid'"):
        search(filled, mode=VectorStoreQueryMode.HYBRID)
    with pytest.raises(InputError, match="no node type 'Robot'"):
        filled.vector_query(VectorStoreQuery(query_embedding=[1.0]), types=["Robot"])


def flt(key, value, operator=FilterOperator.EQ):
    return MetadataFilter(key=key, value=value, operator=operator)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([flt("born", 1980)], ["Ana"]),
        ([flt("born", 1980, FilterOperator.NE)], ["Bo"]),
        ([flt("born", 1980, FilterOperator.GT)], ["Bo"]),
        ([flt("born", 1990, FilterOperator.LTE)], ["Ana", "Bo"]),
        ([flt("born", [1980, 2000], FilterOperator.IN)], ["Ana"]),
        ([flt("born", [1980], FilterOperator.NIN)], ["Bo"]),
        ([flt("tags", ["b", "c"], FilterOperator.ANY)], ["Ana"]),
        ([flt("tags", ["b", "c"], FilterOperator.ALL)], []),
        ([flt("tags", "a", FilterOperator.CONTAINS)], ["Ana"]),
        ([flt("tags", None, FilterOperator.IS_EMPTY)], ["Bo"]),
        ([flt("shoe", 43)], []),
        ([flt("shoe", None, FilterOperator.IS_EMPTY)], ["Ana", "Bo"]),
        (MetadataFilters(filters=[flt("born", 1980), flt("shoe", 43)], condition=FilterCondition.OR), ["Ana"]),
        (MetadataFilters(filters=[flt("born", 1980)], condition=FilterCondition.NOT), ["Bo"]),
        ([MetadataFilters(filters=[flt("born", 1980)]), flt("born", 2000, FilterOperator.LT)], ["Ana"]),
    ],
)
def test_filters(filled, filters, expected):
    given = filters if isinstance(filters, MetadataFilters) else MetadataFilters(filters=filters)
    assert ids(search(filled, given)[0]) == expected


# -- strict ----------------------------------------------------------------------------------------


def test_an_upsert_is_one_commit(strict):
    before = strict.client.head().commit_id
    strict.upsert_nodes([ANA, BO, ACME])
    strict.upsert_relations([WORKS, KNOWS])
    strict.upsert_nodes([])
    strict.upsert_relations([])
    assert new_commits(strict, before) == ["upsert 3 nodes", "upsert 2 relations"]
    strict.upsert_relations([WORKS])  # the same edge, not a second one
    assert len(strict.get_triplets(relation_names=["WORKS_AT"])) == 1


def test_an_upsert_keeps_other_properties(filled):
    filled.upsert_nodes([EntityNode(name="Ana", label="Person", properties={"born": 1981})])
    (ana,) = filled.get(ids=["Ana"])
    assert ana.properties == {"born": 1981, "tags": ["a", "b"]}


def test_strict_refuses_what_is_not_declared(strict):
    strict.upsert_nodes([ANA, ACME])
    before = strict.client.head().commit_id
    for write, message in [
        (lambda: strict.upsert_nodes([EntityNode(name="R2", label="Robot")]), "no node type 'Robot' .node 'R2'"),
        (lambda: strict.upsert_nodes([ChunkNode(text="x")]), "no node type 'text_chunk'"),
        (
            lambda: strict.upsert_nodes([EntityNode(name="Ana", label="Person", properties={"shoe": 43})]),
            "'Person' has no property 'shoe'",
        ),
        (
            lambda: strict.upsert_nodes([EntityNode(name="Ana", label="Person", embedding=[1.0])]),
            "no vector of 1 numbers",
        ),
        (
            lambda: strict.upsert_relations([Relation(label="OWNS", source_id="Ana", target_id="ACME")]),
            "no edge type 'OWNS' from 'Person' to 'Company'",
        ),
        (
            lambda: strict.upsert_relations([Relation(label="OWNS", source_id="Ana", target_id="Cat")]),
            "no edge type 'OWNS' for its ends",
        ),
        (
            lambda: strict.upsert_relations([WORKS.model_copy(update={"properties": {"pay": 1}})]),
            "'WorksAt' has no property 'pay'",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            write()
    with pytest.raises(RecordError, match="born"):
        strict.upsert_nodes([EntityNode(name="Ana", label="Person", properties={"born": "long ago"})])
    assert strict.client.head().commit_id == before


def test_a_declared_edge_type_decides_about_missing_ends(strict):
    strict.upsert_relations([WORKS])
    assert [(node.id, node.label) for node in strict.get()] == [("ACME", "Company"), ("Ana", "Person")]


def test_a_schema_by_hand_with_chunks(strict_graph):
    strict_graph.apply_schema(f"{strict_graph.schema}\n{chunk_declaration(dimension=4)}")
    store = OmniGraphPropertyGraphStore(strict_graph)
    store.upsert_nodes([ChunkNode(id_="c", text="Ana works.", properties={"ref_doc_id": "d"}, embedding=[1, 0, 0, 0])])
    (chunk,) = store.get(properties={"ref_doc_id": "d"})
    assert chunk == ChunkNode(id_="c", text="Ana works.", properties={"ref_doc_id": "d"})
    found, _ = store.vector_query(VectorStoreQuery(query_embedding=[1, 0, 0, 0]), types=["Chunk"])
    assert ids(found) == ["c"]


def test_wrong_mode_is_refused(strict_graph):
    with pytest.raises(InputError, match="strict or grow, not 'loose'"):
        OmniGraphPropertyGraphStore(strict_graph, schema="loose")


# -- grow ------------------------------------------------------------------------------------------


def test_grow_declares_what_is_missing_in_one_commit(grown, empty_graph):
    before = empty_graph.head().commit_id
    grown.upsert_nodes([ANA, ACME])
    assert new_commits(grown, before) == ["upsert 2 nodes; schema: add node type Company, add node type Person"]
    before = empty_graph.head().commit_id
    grown.upsert_relations([WORKS, KNOWS])
    (message,) = new_commits(grown, before)
    assert message == ("upsert 2 relations; schema: add node type Entity, add edge type Knows, add edge type WorksAt")
    assert empty_graph.branches() == ["main"]
    assert str(empty_graph.schema).startswith("// Grown by LlamaIndex.")
    (bo,) = grown.get(ids=["Bo"])
    assert bo == EntityNode(name="Bo", label="entity")
    before = empty_graph.head().commit_id
    grown.upsert_nodes([EntityNode(name="Cleo", label="PERSON", properties={"born": 1}), ANA])
    assert new_commits(grown, before) == ["upsert 2 nodes"]  # nothing was missing


def test_grow_adds_properties_to_declared_types(strict_graph):
    store = OmniGraphPropertyGraphStore(strict_graph, schema="grow")
    store.upsert_nodes([ANA.model_copy(update={"properties": {"shoe": 43}}), ACME])
    store.upsert_relations([WORKS.model_copy(update={"properties": {"pay": 1.5}})])
    assert "shoe: I64?" in str(strict_graph.schema)
    assert "pay: F64?" in str(strict_graph.schema)
    assert store.get(ids=["Ana"])[0].properties == {"shoe": 43}
    store.upsert_nodes([EntityNode(name="ACME", label="Company", embedding=[1, 2])])
    assert "embedding: Vector(2)?" in str(strict_graph.schema)


def test_labels_and_values_come_back_as_they_were(grown):
    properties = {
        "Birth Date": date(1980, 1, 2),
        "id": "x1",
        "name": "another name",
        "from": 2.5,
        "nested": {"a": [1, {"b": None}]},
        "flags": [True, False],
        "mixed": [1, "two"],
        "none": None,
        "größe": 3,
        "9 lives": "yes",
        "_rowid": 4,
    }
    node = EntityNode(name='The "Quote"', label="Größtes Ding (n)", properties=properties)
    grown.upsert_nodes([node])
    (found,) = grown.get(ids=[node.id])
    assert found.label == node.label
    assert found.properties == {key: value for key, value in properties.items() if value is not None}
    assert grown.get(properties={"Birth Date": date(1980, 1, 2)}) == [found]


def test_values_of_one_key_that_differ_are_kept_as_json(grown):
    grown.upsert_nodes([EntityNode(name=f"n{n}", properties={"v": v}) for n, v in enumerate([1, "one", 2.5])])
    assert [node.properties["v"] for node in grown.get(ids=["n0", "n1", "n2"])] == [1, "one", 2.5]


def test_a_label_between_different_types_is_several_edge_types(grown, empty_graph):
    grown.upsert_nodes([ANA, ACME, EntityNode(name="Rex", label="Dog")])
    for target in ("ACME", "Rex"):
        grown.upsert_relations([Relation(label="LIKES", source_id="Ana", target_id=target)])
    grown.upsert_relations([Relation(label="NOT", source_id="Ana", target_id="Rex")])
    assert sorted(empty_graph.catalog().edges) == ["Likes", "LikesPersonDog", "NotEdge"]
    assert [(r.label, b.id) for _, r, b in grown.get_triplets(entity_names=["Ana"])] == [
        ("LIKES", "ACME"),
        ("LIKES", "Rex"),
        ("NOT", "Rex"),
    ]


def test_relations_of_an_empty_graph(grown):
    grown.upsert_relations([Relation(label="is part of", source_id="leaf", target_id="tree")])
    ((leaf, relation, tree),) = grown.get_triplets(ids=["tree"])
    assert (leaf.label, relation.label, tree.id) == ("entity", "is part of", "tree")


def test_properties_are_compared_by_their_types(grown):
    grown.upsert_nodes(
        [
            EntityNode(name="a", label="Book", properties={"year": 1999, "tags": ["x", "y"], "more": {"k": 1}}),
            EntityNode(name="b", label="Film", properties={"year": "1999", "done": True}),
            EntityNode(name="a", label="Film"),
        ]
    )
    assert [node.label for node in grown.get({"year": 1999})] == ["Book"]
    assert [node.label for node in grown.get({"year": "1999"})] == ["Film"]
    assert ids(grown.get({"tags": ["x", "y"]})) == ["a"]
    assert grown.get({"tags": ["y", "x"]}) == grown.get({"tags": "x"}) == grown.get({"done": 1}) == []
    assert ids(grown.get({"more": {"k": 1}})) == ["a"]
    grown.delete(properties={"year": 1999})
    assert [(node.id, node.label) for node in grown.get()] == [("a", "Film"), ("b", "Film")]


def test_one_name_with_two_labels_is_two_nodes(grown):
    grown.upsert_nodes([EntityNode(name="Java", label="Island"), EntityNode(name="Java", label="Language")])
    grown.upsert_nodes([EntityNode(name="Bali", label="Island")])
    grown.upsert_relations([Relation(label="NEAR", source_id="Bali", target_id="Java")])
    ((_, _, java),) = grown.get_triplets(ids=["Bali"])
    assert java.label == "Island"  # the first label by name, unless a declared edge type decides
    grown.delete(ids=["Java"])
    assert ids(grown.get()) == ["Bali"]


# -- branches and transactions ---------------------------------------------------------------------


def test_a_branch(strict_graph):
    strict_graph.branch_create("draft")
    OmniGraphPropertyGraphStore(strict_graph, branch="draft").upsert_nodes([ANA])
    assert OmniGraphPropertyGraphStore(strict_graph).get() == []


def test_a_transaction_is_one_commit(grown, empty_graph):
    before = empty_graph.head().commit_id
    with grown.transaction("one document"):
        grown.upsert_nodes([ANA, ACME])
        grown.upsert_relations([WORKS])
        grown.delete(ids=["ACME"])
        assert ids(grown.get()) == ["Ana"]  # the store sees its own writes
        assert OmniGraphPropertyGraphStore(empty_graph).get() == []
        with pytest.raises(InputError, match="in a transaction already"), grown.transaction():
            pass
    assert new_commits(grown, before) == ["one document"]
    assert empty_graph.branches() == ["main"]
    assert ids(grown.get()) == ["Ana"]


def test_a_transaction_beside_other_writers(strict, strict_graph):
    with strict.transaction("two writers"):
        strict.upsert_nodes([ANA])
        strict_graph.load([{"type": "Person", "data": {"name": "Cleo"}}], mode="merge")
    assert sorted(ids(strict.get())) == ["Ana", "Cleo"]

    def both_change_ana():
        with strict.transaction():
            strict.upsert_nodes([EntityNode(name="Ana", label="Person", properties={"born": 1})])
            strict_graph.load([{"type": "Person", "data": {"name": "Ana", "born": 2}}], mode="merge")

    with pytest.raises(MergeConflict):
        both_change_ana()
    assert strict.get(ids=["Ana"])[0].properties["born"] == 2
    assert len(strict_graph.branches()) == 2  # the writes of the transaction are not lost


def test_a_failed_transaction_leaves_nothing(grown, empty_graph):
    before = empty_graph.head().commit_id

    def fail():
        with grown.transaction():
            grown.upsert_nodes([ANA])
            OmniGraphPropertyGraphStore(grown.client).upsert_relations([WORKS])  # a strict store refuses it

    with pytest.raises(InputError, match="no edge type"):
        fail()
    with grown.transaction():
        pass
    assert (empty_graph.head().commit_id, empty_graph.branches()) == (before, ["main"])


# -- deletion --------------------------------------------------------------------------------------


def test_delete_nodes_and_edges(filled):
    before = filled.client.head().commit_id
    filled.delete()
    assert filled.client.head().commit_id == before
    filled.delete(relation_names=["WORKS_AT"])
    assert [relation.label for _, relation, _ in filled.get_triplets(entity_names=["Ana"])] == ["Knows"]
    filled.delete(entity_names=["ACME"], properties={"born": 1990})
    assert ids(filled.get()) == ["Ana"]
    assert filled.get_triplets(entity_names=["Ana"]) == []
    assert len(new_commits(filled, before)) == 2


def test_keys_that_are_uuids(tmp_path):
    graph = og.init(
        tmp_path / "u.omni", "node Thing { key: Uuid @key size: I64? } edge Near: Thing -> Thing", sync=False
    )
    store = OmniGraphPropertyGraphStore(graph)
    one, other = (f"123e4567-e89b-12d3-a456-42661417400{n}" for n in range(2))
    store.upsert_nodes([EntityNode(name=name, label="thing", properties={"size": 1}) for name in (one, other)])
    for _ in range(2):  # edges without a constraint are found by their ends
        store.upsert_relations([Relation(label="near", source_id=one, target_id=other)] * 2)
    assert graph.to_arrow("Near").num_rows == 1
    assert [(a.id, b.id) for a, _, b in store.get_rel_map(store.get(ids=[other]))] == [(one, other)]
    store.delete(ids=[one])
    assert ids(store.get()) == [other]


def test_a_deleted_chunk_takes_what_was_extracted_from_it(grown):
    source = [{"triplet_source_id": f"c{n}"} for n in range(3)]
    grown.upsert_nodes([ChunkNode(id_=f"c{n}", text="…", properties={"ref_doc_id": f"d{n // 2}"}) for n in range(3)])
    grown.upsert_nodes(
        [
            EntityNode(name="only", properties=source[0]),
            EntityNode(name="shared", properties=source[0]),
            EntityNode(name="other", properties=source[2]),
        ]
    )
    grown.upsert_relations(
        [
            Relation(label="R", source_id="only", target_id="shared", properties=source[0]),
            Relation(label="R", source_id="other", target_id="shared", properties=source[2]),
        ]
    )
    before = grown.client.head().commit_id
    grown.delete_llama_nodes(ref_doc_ids=["d0"])
    assert sorted(ids(grown.get())) == ["c2", "other", "shared"]
    assert [(a.id, b.id) for a, _, b in grown.get_triplets(relation_names=["R"])] == [("other", "shared")]
    assert len(new_commits(grown, before)) == 1
    grown.delete_llama_nodes(node_ids=["c2"])
    assert sorted(ids(grown.get())) == ["shared"]
