"""`GraphEntities`: the methods of `Graph` that find and unify nodes of one entity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.bulk_options import BulkOptions
from omnigraph.graph_exploration import GraphExploration
from omnigraph.operations.requests import MutationRequest
from omnigraph.operations.stoppable import stoppable

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.operations.resolution.resolve import Resolution
    from omnigraph.operations.resolution.unify_request import Pair, UnifyRule
    from omnigraph.pipeline.runner import Watch


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

    def resolve(
        self,
        type_name: str,
        by: Sequence[str],
        *,
        similar: float = 0.9,
        weights: Mapping[str, float] | None = None,
        block: int = 50,
        into: str | None = None,
        rules: Mapping[str, UnifyRule] | None = None,
        edges: Mapping[str, str] | None = None,
        branch: str | None = None,
        message: str | None = None,
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Resolution:
        """Find nodes of a type that may denote one entity; with `into`, unify them on a new branch of this name.

        Candidates share a value, a rare token or a neighbouring vector of a property in `by`; `block` is the most nodes
        that share one. The score of a pair is the mean of the scores of its properties, weighted by `weights`: the
        Jaccard similarity of tokens weighted by their inverse document frequency, or the cosine of vectors. Pairs with
        at least the score `similar` form clusters, of which the node with most values is kept. `rules`, `edges` and
        `message` are those of `unify`.
        `engine` and `spark` are as in `load`: pairs of large tables are found on Spark, with the same result.
        `Resolution.engine` tells where. The branch is written by this process.
        """
        from dataclasses import replace

        from omnigraph.engine_choice import check_engine, resolve_data
        from omnigraph.graph_tables import table_key_of
        from omnigraph.operations.resolution.resolve import ResolveRequest, find_duplicates

        request = ResolveRequest(type_name, tuple(dict.fromkeys(by)), similar, dict(weights or {}), block)
        bulk = BulkOptions(engine, spark, watch)
        with stoppable("resolve", cancel, timeout):
            snapshot = self._point("read", branch)
            key = table_key_of(snapshot, type_name, "node")
            node = self._context.catalog(snapshot).nodes[key.type_name]
            request.check(node)
            context, found = self._context, None
            if context.view(snapshot) is not None:
                check_engine(bulk, "a resolution")
            else:
                found = resolve_data(context.repository, snapshot, node, request, bulk, context.environ)
            if found is None:
                rows = self._tables.to_arrow(snapshot, type_name, ["id", *request.by], "node")
                found = find_duplicates(node, request, rows)
        if into is None:
            return found
        self.branch_create(into, at=snapshot.point)
        if not found.clusters:
            return replace(found, branch=into)
        given = message or f"resolve {type_name} by {', '.join(by)}"
        written = self.unify(
            type_name, pairs=found.unify_pairs, rules=rules, edges=edges, branch=into, message=given, cancel=cancel
        )
        return replace(found, branch=into, written=written)
