"""The standard suites of LangChain, unmodified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_omnigraph import OmniGraphRetriever, OmniGraphVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

import omnigraph as og
from note_graphs import open_graph


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, empty: og.Graph) -> VectorStore:
        return OmniGraphVectorStore(
            empty, type="Note", vector="given", embedding=self.get_embeddings(), json_metadata="extra"
        )


class TestVectorStoreOfAnEmbeddingGraph(VectorStoreIntegrationTests):
    """The graph embeds the texts, on a branch of its own."""

    @pytest.fixture
    def vectorstore(self, empty: og.Graph) -> VectorStore:
        empty.branch_create("docs")
        return OmniGraphVectorStore(empty, type="Note", vector="meaning", json_metadata="extra", branch="docs")


class TestRetriever(RetrieversIntegrationTests):
    notes: Any

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def graph(cls, notes_template: Path) -> None:
        cls.notes = open_graph(notes_template)  # retrievers only read

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return OmniGraphRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"graph": self.notes, "query": "recall", "text": "note.text"}

    @property
    def retriever_query_example(self) -> str:
        return "what did the flooding damage"
