"""The store over a graph on a server."""

from __future__ import annotations

from llama_index.core.graph_stores.types import ChunkNode, EntityNode, Relation
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index.graph_stores.omnigraph import OmniGraphPropertyGraphStore

from conftest import ENVIRON
from served_graph import served_graph


def test_the_store_over_http(empty_graph, tmp_path):
    with served_graph(tmp_path / "empty.omni", ENVIRON) as remote:
        store = OmniGraphPropertyGraphStore(remote, schema="grow")
        source = {"triplet_source_id": "c"}
        with store.transaction("one document"):
            store.upsert_nodes([ChunkNode(id_="c", text="Ana works.", properties={"ref_doc_id": "d"})])
            store.upsert_nodes(
                [
                    EntityNode(name="Ana", label="PERSON", properties=source, embedding=[1.0, 0.0]),
                    EntityNode(name="ACME", label="FIRM"),
                ]
            )
            store.upsert_relations([Relation(label="WORKS_AT", source_id="Ana", target_id="ACME", properties=source)])
        assert empty_graph.commits()[0].message == "one document"
        ((_, relation, firm),) = store.get_rel_map(store.get(ids=["Ana"]))
        assert (relation.label, firm.label) == ("WORKS_AT", "FIRM")
        assert [node.id for node in store.vector_query(VectorStoreQuery(query_embedding=[1.0, 0.0]))[0]] == ["Ana"]
        assert store.structured_query("match { $p: Person } return { count($p) as people }") == [{"people": 1}]
        store.delete_llama_nodes(ref_doc_ids=["d"])
        assert [node.id for node in store.get()] == ["ACME"]
        assert "node Person" in store.get_schema_str()
