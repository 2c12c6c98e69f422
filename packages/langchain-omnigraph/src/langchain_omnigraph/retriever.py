"""`OmniGraphRetriever`: the rows of a stored query as documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from langchain_omnigraph.handles import listing, on_branch
from langchain_omnigraph.hits import HitReader
from omnigraph.errors import InputError

if TYPE_CHECKING:
    from langchain_omnigraph.handles import AnyGraph

QUESTION = "question"
LIMITS = ("k", "limit")
"""Names of an integer parameter that bounds the rows."""


class OmniGraphRetriever(BaseRetriever):
    """A stored query as a retriever: it can rank by words and meaning, follow edges and filter.

    `text` names the column of the document's text, such as `note.text`. The metadata have the other columns, and under
    `omnigraph` the query, the commit, the node (`id`, `type`), its ranks (`why()`) and the path that led to it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    graph: Any
    query: str
    """The name of a stored query that reads."""
    text: str
    """The column of the text, or a property of a returned node: `note.text` of `return { $note }`."""
    k: int = 5
    """The largest number of documents."""
    question: str | None = None
    """The parameter of the question; by default `$question`, else the first String parameter without a value."""
    params: Mapping[str, Any] = Field(default_factory=dict)
    """Values of other parameters."""
    branch: str | None = None
    at: Any = None
    """A point of history: a commit, a tag or a time."""

    def __init__(self, graph: AnyGraph, **fields: Any) -> None:
        super().__init__(**{"graph": graph, **fields})

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 (of the interface)
        k: int | None = None,
        **params: Any,
    ) -> list[Document]:
        """Return the documents of the best rows; keyword arguments are parameters of the query."""
        graph = on_branch(self.graph, self.branch)
        limit = self.k if k is None else k
        declared = self._parameters(graph)
        values = {**self.params, **params}
        _check_names(self.query, values, declared)
        values[self._question_name(declared, values)] = query
        for name in LIMITS:
            if name in declared and name not in values and declared[name]["kind"] in ("int", "bigint"):
                values[name] = limit
        result = graph.invoke(self.query, values, at=self.at, expect_mutation=False)
        reader = HitReader(result, self.text, self.query)
        return [reader.document(row) for row in reader.first(limit)]

    def _parameters(self, graph: AnyGraph) -> dict[str, Mapping[str, Any]]:
        """Return the parameters of the stored query, by name."""
        stored = graph.queries(at=self.at)
        found = next((each for each in stored if each.name == self.query), None)
        if found is None:
            raise InputError(
                f"there is no stored query '{self.query}' on '{graph.branch}'",
                hint=f"the stored queries are {listing(each.name for each in stored)}",
            )
        return {param["name"]: param for param in found.to_json(source=False)["params"]}

    def _question_name(self, declared: Mapping[str, Mapping[str, Any]], values: Mapping[str, Any]) -> str:
        if self.question is not None:
            _check_names(self.query, [self.question], declared)
            return self.question
        if QUESTION in declared and QUESTION not in values:
            return QUESTION
        for name, param in declared.items():
            if param["kind"] == "string" and name not in values:
                return name
        raise InputError(
            f"the stored query '{self.query}' has no String parameter for the question",
            hint="declare $question: String, or name the parameter: question=…",
        )


def _check_names(query: str, names: Iterable[str], declared: Mapping[str, Any]) -> None:
    for name in names:
        if name not in declared:
            raise InputError(
                f"the stored query '{query}' has no parameter '${name}'",
                hint=f"its parameters are {listing(declared)}",
            )
