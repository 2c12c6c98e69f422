"""The property graph index of LlamaIndex over the store, from documents to answers, with a mock model."""

from __future__ import annotations

import hashlib

import pytest
from llama_index.core import Document, PropertyGraphIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.property_graph import (
    ImplicitPathExtractor,
    SimpleLLMPathExtractor,
    TextToCypherRetriever,
    VectorContextRetriever,
)
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.graph_stores.omnigraph import OmniGraphPropertyGraphStore

HARBOUR = "Ana works at ACME. ACME is based in Oslo."
FOREST = "Bo works at ACME. Bo lives in Bergen."
TRIPLES = {
    "Ana": [("Ana", "WORKS_AT", "ACME"), ("ACME", "BASED_IN", "Oslo")],
    "Bo": [("Bo", "WORKS_AT", "ACME"), ("Bo", "LIVES_IN", "Bergen")],
}


class HashEmbedding(BaseEmbedding):
    """Vectors of a hash of the text: equal texts have equal vectors."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [byte / 255 - 0.5 for byte in hashlib.sha256(text.encode()).digest()[:8]]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class QueryLLM(MockLLM):
    """A model that answers with a query."""

    def predict(self, prompt, **arguments):
        assert "node Entity" in prompt.format(**arguments)
        return "```gq\nmatch { $e: Entity $e worksAt $f } return { $f.name as firm, count($e) as people }\n```"


def extract(answer: str) -> list[tuple[str, str, str]]:
    """Parse the answer of the mock model, which repeats the prompt and so the text of the chunk."""
    text = answer.rsplit("Text:", 1)[-1]
    return [triple for name, triples in TRIPLES.items() if f"{name} works" in text for triple in triples]


OPTIONS = {
    "llm": MockLLM(),
    "embed_model": HashEmbedding(),
    "use_async": False,
    "kg_extractors": [SimpleLLMPathExtractor(llm=MockLLM(), parse_fn=extract), ImplicitPathExtractor()],
    "transformations": [SentenceSplitter(chunk_size=64, chunk_overlap=0)],
}


@pytest.fixture
def index(grown):
    documents = [
        Document(text=HARBOUR, id_="harbour", metadata={"file": "harbour.txt"}),
        Document(text=FOREST, id_="forest", metadata={"file": "forest.txt"}),
    ]
    return PropertyGraphIndex.from_documents(documents, property_graph_store=grown, **OPTIONS)


def facts(store):
    return sorted(
        (a.id, relation.label, b.id)
        for a, relation, b in store.get_triplets(relation_names=["WORKS_AT", "BASED_IN", "LIVES_IN"])
    )


ALL_FACTS = sorted({triple for triples in TRIPLES.values() for triple in triples})


def test_documents_become_a_typed_graph(index, empty_graph):
    store = index.property_graph_store
    assert facts(store) == ALL_FACTS
    catalog = empty_graph.catalog()
    assert sorted(catalog.nodes) == ["Chunk", "Entity"]
    chunk = catalog.nodes["Chunk"]
    assert (chunk.properties["embedding"].embed.source, chunk.properties["embedding"].type.dim) == ("text", 8)
    (ana,) = store.get(ids=["Ana"])
    assert ana.properties["file"] == "harbour.txt"
    (source,) = store.get_llama_nodes([ana.properties["triplet_source_id"]])
    assert (source.get_content(), source.ref_doc_id) == (HARBOUR, "harbour")
    upsert, _, plan = empty_graph.commits()[0].message.partition("; schema: ")
    assert upsert == "upsert 6 relations"  # four facts, and the document of each chunk
    assert plan == "add edge type BasedIn, add edge type LivesIn, add edge type Source, add edge type WorksAt"


def test_retrieval_with_source_texts(index):
    retriever = index.as_retriever(
        sub_retrievers=[
            VectorContextRetriever(
                index.property_graph_store, embed_model=HashEmbedding(), similarity_top_k=1, path_depth=1
            )
        ]
    )
    (ana,) = index.property_graph_store.get(ids=["Ana"])
    found = retriever.retrieve(str(ana))  # the embedded text of the entity
    assert "Ana -> WORKS_AT -> ACME" in found[0].get_content()
    assert HARBOUR in found[0].get_content()
    assert index.as_query_engine(llm=MockLLM()).query("Who works at ACME?").source_nodes


def test_a_model_writes_queries_in_our_language(index):
    retriever = TextToCypherRetriever(index.property_graph_store, llm=QueryLLM())
    (found,) = retriever.retrieve("How many people work at each firm?")
    assert "[{'firm': 'ACME', 'people': 2}]" in found.get_content()


def test_an_existing_graph(index, empty_graph):
    store = OmniGraphPropertyGraphStore(empty_graph, schema="grow")
    again = PropertyGraphIndex.from_existing(store, **OPTIONS)
    found = again.as_retriever(include_text=False).retrieve("ACME")
    assert found
    before = empty_graph.head().commit_id
    again.insert(Document(text=HARBOUR, id_="copy", metadata={"file": "copy.txt"}))
    assert facts(store) == ALL_FACTS
    assert empty_graph.head().commit_id != before


def test_a_deleted_document_takes_what_hung_on_it(index):
    store = index.property_graph_store
    store.delete_llama_nodes(ref_doc_ids=["harbour"])
    assert facts(store) == [("Bo", "LIVES_IN", "Bergen"), ("Bo", "WORKS_AT", "ACME")]
    remaining = {node.id for node in store.get() if node.label == "entity"}
    assert remaining == {"ACME", "Bo", "Bergen", "forest"}  # ACME is used by the other document
    assert [node.text for node in store.get() if node.label == "text_chunk"] == [FOREST]


async def test_asynchronous_reads(index):
    store = index.property_graph_store
    assert [node.id for node in await store.aget(ids=["Bo"])] == ["Bo"]
    assert await store.aget_rel_map(await store.aget(ids=["Bo"]), depth=1)
