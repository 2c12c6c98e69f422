"""`OmniGraphVectorStore`: the nodes of one type as a LangChain vector store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from langchain_omnigraph.diversity import diverse
from langchain_omnigraph.document_rows import DocumentColumns
from langchain_omnigraph.filters import Filter, conditions_of
from langchain_omnigraph.handles import HIT, node_type, on_branch
from omnigraph.errors import InputError

if TYPE_CHECKING:
    from langchain_omnigraph.handles import AnyGraph


class OmniGraphVectorStore(VectorStore):
    """Documents as nodes of one type: a text, a vector, and a property for each metadata key.

    `embedding=None` lets the graph embed: the vector property must be declared with `@embed`. The id of a document is
    the key of its node. Every call that writes is one commit.
    """

    def __init__(
        self,
        graph: AnyGraph,
        *,
        type: str,
        text: str = "text",
        vector: str | None = None,
        embedding: Embeddings | None = None,
        json_metadata: str | None = None,
        hit_metadata: bool = False,
        branch: str | None = None,
    ) -> None:
        """Bind the store to the properties of a node type.

        `vector` is by default the only Vector property. `json_metadata` names a String property for metadata without a
        column; without it such documents are refused. With `hit_metadata`, documents that a search returns have the
        entry `omnigraph` in their metadata: id, type, commit and ranks.
        """
        self.graph = on_branch(graph, branch)
        self._columns = DocumentColumns.of(node_type(self.graph.catalog(), type), text, vector, json_metadata)
        self._embedding = embedding
        self._hit_metadata = hit_metadata
        if embedding is None and not self._columns.graph_embeds:
            raise InputError(
                f"'{type}.{self._columns.vector}' is not embedded from '{text}', and no embedding is given",
                hint=f'declare {self._columns.vector}: Vector(…)? @embed("{text}"), or pass embedding=…',
            )

    @property
    def embeddings(self) -> Embeddings | None:
        """The model that embeds texts and questions; None if the graph embeds them."""
        return self._embedding

    # -- writing ---------------------------------------------------------------------------------

    def add_documents(
        self,
        documents: list[Document],
        *,
        ids: Sequence[str | None] | None = None,
        message: str | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents as one commit and return their ids.

        An existing node with an id gets the text, the vector and the given metadata; its other properties stay.
        """
        _refuse(kwargs)
        if ids is not None and len(ids) != len(documents):
            raise InputError(f"{len(ids)} ids are given for {len(documents)} documents")
        given = list(ids) if ids is not None else [document.id for document in documents]
        named = [id_ or str(uuid4()) for id_ in given]
        vectors: Sequence[Sequence[float] | None] = [None] * len(documents)
        if self._embedding is not None and documents:
            vectors = self._embedding.embed_documents([document.page_content for document in documents])
        records = [
            self._columns.record(id_, document, vector)
            for id_, document, vector in zip(named, documents, vectors, strict=True)
        ]
        if records:
            note = message or f"add {len(records)} documents to {self._columns.type_name}"
            self.graph.load(records, mode="merge", message=note, embed=self._embedding is None)
        return named

    def delete(self, ids: list[str] | None = None, *, message: str | None = None, **kwargs: Any) -> bool:
        """Delete documents and the edges of their nodes as one commit; without ids, all nodes of the type."""
        _refuse(kwargs)
        columns = self._columns
        where = f"{columns.key} in $ids" if ids is not None else f"{columns.key} is not null"
        text = f"query remove($ids: [{columns.key_type}]?) {{ delete {columns.type_name} where {where} }}"
        if ids is None or ids:
            self.graph.mutate(text, {"ids": ids}, message=message or f"delete documents of {columns.type_name}")
        return True

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        graph: AnyGraph | None = None,
        **kwargs: Any,
    ) -> Self:
        """Return a store with these texts; `graph`, `type` and the other arguments are those of the constructor."""
        if graph is None:
            raise InputError("a vector store needs a graph", hint='pass graph=og.open("my.omni") and type="Note"')
        store = cls(graph, embedding=embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    # -- reading ---------------------------------------------------------------------------------

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids in their order; unknown ids are left out."""
        columns = self._columns
        text = f"match {{ $doc: {columns.type_name} id($doc) in $ids }} return {{ {columns.returned()} }}"
        rows = self.graph.query(text, {"ids": list(ids)}).to_pylist() if ids else []
        found = {row["id"]: columns.document(row) for row in rows}
        return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter | None = None,
        params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the `k` nearest documents to a text.

        `filter` is a mapping of properties to conditions, `{"year": {">=": 1900}}`, or a text with clauses of a match
        block on `$doc`, whose parameters are `params`.
        """
        _refuse(kwargs)
        return [document for document, _ in self._search(self._question(query), k, filter, params)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter | None = None,
        params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Return the `k` nearest documents with their cosine distances; smaller is nearer."""
        _refuse(kwargs)
        return self._search(self._question(query), k, filter, params)

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        *,
        filter: Filter | None = None,
        params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the `k` nearest documents to a vector."""
        _refuse(kwargs)
        return [document for document, _ in self._search(embedding, k, filter, params)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return `k` of the `fetch_k` nearest documents that differ from each other."""
        _refuse(kwargs)
        return self._diverse(self._question(query), k, fetch_k, lambda_mult, filter, params)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return `k` of the `fetch_k` nearest documents to a vector that differ from each other."""
        _refuse(kwargs)
        return self._diverse(embedding, k, fetch_k, lambda_mult, filter, params)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Return the function from a cosine distance, 0 to 2, to a relevance, 1 to 0."""
        return lambda distance: 1.0 - distance / 2.0

    def _question(self, text: str) -> str | list[float]:
        """Return what the vectors are compared with: a text that the graph embeds, or a vector."""
        return text if self._embedding is None else self._embedding.embed_query(text)

    def _search(
        self,
        question: str | Sequence[float],
        k: int,
        filter: Filter | None,
        params: Mapping[str, Any] | None,
    ) -> list[tuple[Document, float]]:
        return [(document, distance) for document, distance, _ in self._hits(question, k, filter, params)]

    def _diverse(
        self,
        question: str | Sequence[float],
        k: int,
        fetch_k: int,
        lambda_mult: float,
        filter: Filter | None,
        params: Mapping[str, Any] | None,
    ) -> list[Document]:
        hits = self._hits(question, max(k, fetch_k), filter, params, with_vectors=True)
        chosen = diverse([hit[1] for hit in hits], [hit[2] for hit in hits], k, lambda_mult)
        return [hits[at][0] for at in chosen]

    def _hits(
        self,
        question: str | Sequence[float],
        k: int,
        filter: Filter | None,
        params: Mapping[str, Any] | None,
        *,
        with_vectors: bool = False,
    ) -> list[tuple[Document, float, Sequence[float]]]:
        """Return documents with their distances, and with their vectors on request."""
        columns = self._columns
        clauses, values = conditions_of(filter, params)
        ranking = f"nearest($doc.{columns.vector}, $store_question)"
        more = f", $doc.{columns.vector} as vector" if with_vectors else ""
        text = (
            f"match {{ $doc: {columns.type_name} {clauses} }} "
            f"return {{ {columns.returned()}, {ranking} as distance, why() as ranks{more} }} "
            f"order {{ {ranking} }} limit $store_limit"
        )
        asked = question if isinstance(question, str) else [float(element) for element in question]
        result = self.graph.query(text, {**values, "store_question": asked, "store_limit": k})
        found = []
        for row in result:
            document = columns.document(row)
            if self._hit_metadata:
                document.metadata[HIT] = {
                    "id": row["id"],
                    "type": columns.type_name,
                    "commit": result.commit_id,
                    "ranks": row["ranks"],
                }
            found.append((document, float(row["distance"]), row["vector"] if with_vectors else ()))
        return found


def _refuse(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that have no effect."""
    for name in arguments:
        raise InputError(f"the vector store has no argument '{name}'", hint="the arguments are filter and params")
