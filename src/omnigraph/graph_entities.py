"""`GraphEntities`: the methods of `Graph` that find and unify nodes of one entity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.graph_exploration import GraphExploration
from omnigraph.operations.requests import MutationRequest
from omnigraph.operations.stoppable import stoppable

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.operations.resolution.unify_request import Pair, UnifyRule


class GraphEntities(GraphExploration):
    """Entity resolution."""

    def unify(
        self,
        type_name: str,
        keep: str | int | None = None,
        drop: str | int | Sequence[str | int] | None = None,
        *,
        pairs: Iterable[Pair] | None = None,
        rules: Mapping[str, UnifyRule] | None = None,
        edges: Mapping[str, str] | None = None,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> MutationResult:
        """Unify nodes of one type as one commit: the nodes `drop` become aliases of the node `keep`.

        `pairs` unifies several pairs `(keep, drop)`. `rules` decides the properties of the kept node: "ours" (its own
        value, the default), "theirs", "newest" (of the row written last), "longest", "union" (of lists), or
        `{"value": …}`. A null loses against a value. Edges of dropped nodes are re-pointed. Edges that become equal are
        folded; `edges` maps an edge type to "ours", "theirs" or "newest", which fold all edges with equal ends, or to
        "keep". `unified` of the result counts them and names edges that became loops.
        A dropped id denotes the kept node in `get`, in conditions on the key or id, in loads and as the end of an edge.
        Other arguments are as in `mutate`.
        """
        from omnigraph.operations.mutate import mutate
        from omnigraph.operations.resolution.unify_request import unify_query

        query = unify_query(type_name, keep, drop, pairs, rules, edges)
        options = self._guarded_options(branch, actor, message, if_commit=if_commit, idempotency_key=idempotency_key)
        with stoppable("mutation", cancel, timeout, writes=True):
            return mutate(self._context, MutationRequest(query, options, dry_run))
