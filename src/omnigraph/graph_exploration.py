"""`GraphExploration`: the methods of `Graph` that find nodes, show their surroundings, and serve editors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.display import show_graph
from omnigraph.graph_sql import GraphSql
from omnigraph.operations.requests import limits_of
from omnigraph.operations.stoppable import stoppable

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.engine.exec.context import Limits
    from omnigraph.lang.editor_hints import Completion, Hover
    from omnigraph.operations.exploration.neighbors import Degree, NeighborPage
    from omnigraph.operations.search.search_result import SearchResult
    from omnigraph.versioning.write.repository import At


class GraphExploration(GraphSql):
    """Search, neighbours and services of editors."""

    def search(
        self,
        text: str,
        types: Sequence[str] | None = None,
        *,
        by: str = "both",
        filters: Mapping[str, Any] | None = None,
        limit: int = 10,
        after: str | None = None,
        why: bool = True,
        rank_of: str | int | None = None,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
    ) -> SearchResult:
        """Search the nodes of some types, by default of all, by their texts and their vectors.

        `by` is "words" (BM25), "meaning" (the vectors of embedded texts) or "both", which fuses the two rankings.
        Without vectors or an embedding provider, "both" ranks by words and says so in `notes`.
        `filters` maps a property to a value, or to conditions: `{"year": {">=": 1900}, "kind": "print"}`.
        The result has at most `limit` hits, and the cursor of the following page as `next`; passed as `after`, it
        continues at the same commit. With `why`, each hit has its rank, score and share in each ranking, and the terms
        that it contains. `rank_of` is the id of a node whose rank is reported, or the reason why it is not found.
        """
        from omnigraph.operations.search.search import search
        from omnigraph.operations.search.search_request import search_request

        request = search_request(text, types, by, filters, limit, why=why, rank_of=rank_of)
        bounds = limits_of(limits, timeout, cancel)
        return search(self._context, request, bounds, branch=self._branch(branch), at=at, after=after)

    def show(
        self, what: Any, params: Mapping[str, Any] | None = None, *, branch: str | None = None, at: At = None
    ) -> Any:
        """Return a widget for a notebook: picture, list, properties and table (extra `notebook`).

        `what` is a query, the name of a node type, a list of nodes as pairs of type and id, or a result, a difference
        or a schema. The widget asks this graph for neighbours, further rows, other points of history and the last
        commit of each value; it changes nothing. `selected` of the widget has the selected nodes. Without `anywidget`,
        the static form is returned.
        """
        return show_graph(self, what, params, branch, at)

    def neighbors(
        self,
        type_name: str,
        id: str | int,
        edge: str | None = None,
        direction: str | None = None,
        *,
        limit: int = 100,
        after: str | None = None,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> NeighborPage:
        """Return the edges of a node and the nodes at their other ends, at most `limit`.

        `edge` is the name of an edge type, `direction` "out" or "in"; by default all edges are followed. `next` of the
        result, passed as `after`, continues at the same commit. An unknown node raises `NotFound`.
        """
        from omnigraph.graph_tables import row_id
        from omnigraph.operations.exploration.neighbors import NeighborRequest, neighbors_of

        request = NeighborRequest.of(type_name, row_id(id), edge, direction)
        with stoppable("read", cancel, timeout):
            return neighbors_of(self._context, request, limit, branch=self._branch(branch), at=at, after=after)

    def degrees(
        self,
        type_name: str,
        id: str | int,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> list[Degree]:
        """Return the numbers of edges of a node by edge type and direction, zeros included."""
        from omnigraph.graph_tables import row_id
        from omnigraph.operations.exploration.neighbors import NeighborRequest, degrees_of

        request = NeighborRequest.of(type_name, row_id(id))
        snapshot = self._point("read", branch, at)
        with stoppable("read", cancel, timeout):
            return degrees_of(self._context, snapshot, request)

    def projection(
        self,
        type_name: str,
        property: str,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> pa.Table:
        """Return the vectors of a property in two dimensions: an Arrow table of `id`, `x` and `y`.

        The axes are the two directions of largest variance, the same for the same vectors. Of more than 200,000 nodes,
        evenly spaced ones are returned.
        """
        from omnigraph.operations.exploration.projection import project

        snapshot = self._point("read", branch, at)
        with stoppable("read", cancel, timeout):
            return project(self._context, snapshot, type_name, property)

    def complete(self, text: str, offset: int, *, language: str = "gq", branch: str | None = None) -> Completion:
        """Return the words that can stand at a position of a query text, or of a schema text with `language="pg"`.

        `offset` counts characters.
        """
        from omnigraph.query.editor import check_language, complete_text

        catalog = self._context.catalog(self._point("read", branch))
        return complete_text(text, offset, check_language(language), catalog)

    def hover(self, text: str, offset: int, *, language: str = "gq", branch: str | None = None) -> Hover | None:
        """Return the description of the word at a position of a text; arguments are as in `complete`."""
        from omnigraph.query.editor import check_language, hover_text

        catalog = self._context.catalog(self._point("read", branch))
        return hover_text(text, offset, check_language(language), catalog)
