"""Search functions over the rows of a match: masks, scores and rankings from text and vectors.

Results are computed over exactly the rows of the match, so a filter never reduces a result below its limit. They are
computed from the columns, so an index changes only the speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.binding_table import Binding
from omnigraph.engine.exec.cancellation import paced
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.expr.sort_keys import id_ranks, id_ranks_of
from omnigraph.errors import InputError
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog

if TYPE_CHECKING:
    from omnigraph.engine.search.analyzer import Scores
    from omnigraph.engine.search.inverted_index import TermScores
    from omnigraph.engine.search.vector_codes import VectorQuery
    from omnigraph.engine.search.vector_scan import VectorColumn

UNRANKED = np.iinfo(np.int64).max
"""The position of rows that are not in a ranking: after all others."""

_NONE = np.zeros(0, np.int64)
EmbedQuery = Callable[[str, int, str, str, str | None], "np.ndarray[Any, Any]"]
"""(text, dimensions, type, property, recorded model) → the query vector."""


class Searcher:
    """Evaluates the search functions of one execution."""

    def __init__(
        self, catalog: Catalog, params: Mapping[str, Any], embed: EmbedQuery | None, types: Mapping[str, str]
    ) -> None:
        self._catalog = catalog
        self._params = params
        self._embed = embed
        self._types = types
        self._queries: dict[tuple[ir.Prop, str | int], VectorQuery] = {}
        self._scored: tuple[tuple[Any, ...], TermScores] | None = None
        """The scores of the last text and column."""
        self._best: tuple[tuple[Any, ...], TermScores] | None = None
        """The scores of the best rows of the last text and column."""

    # -- text ------------------------------------------------------------------------------------

    def matches(self, match: ir.TextMatch, bound: Binding) -> Mask:
        """Return a mask of the rows whose text has the words of a query, or words within an edit distance (`fuzzy`)."""
        from omnigraph.engine.search.analyzer import analyse  # noqa: PLC0415 (only for searches)
        from omnigraph.engine.search.inverted_index import index_of  # noqa: PLC0415 (only for searches)

        index = index_of(bound.data, match.prop.name)
        text = self.constant(match.query)
        if text is None:
            return np.zeros(bound.count, bool)
        words = analyse(text)
        if match.function == "fuzzy":
            edits = self.constant(match.max_edits)
            if edits is None or edits < 0:
                raise InputError("max_edits of 'fuzzy' must be an integer of at least 0")
            mask = index.fuzzy(words, int(edits))
        else:
            mask = index.holding_all(words) if match.every else index.matching(words)
        return mask if bound.whole else mask[bound.numbers]

    def scores(self, rank: ir.Bm25, bound: Binding) -> Scores:
        """Return the BM25 score of each row."""
        if not bound.whole and self._best is not None and self._best[0] == self._text_key(rank, bound.data):
            # A query that ranks by a score often returns it as well.
            known = self._best[1].of(bound.numbers)
            if known.all():
                return known
        scored = self._scores(rank, bound.data)
        return scored.whole() if bound.whole else scored.of(bound.numbers)

    def relevant(self, rank: ir.Bm25, bound: Binding, limit: int | None) -> tuple[Numbers, Scores]:
        """Return the matching rows that can be among the first `limit`, with ties, and their scores."""
        from omnigraph.engine.search.inverted_index import TermScores, index_of  # noqa: PLC0415 (only for searches)

        if bound.whole and limit is not None:
            key = self._text_key(rank, bound.data)
            if self._scored is not None and self._scored[0] == key:
                return self._scored[1].best(limit)
            rows, scores = index_of(bound.data, rank.prop.name).best(self.terms(rank), limit)
            self._best = key, TermScores(bound.data.row_count, rows, scores)
            return rows, scores
        scored = self._scores(rank, bound.data)
        wanted = bound.count if limit is None else limit
        if bound.whole:
            return scored.best(wanted)
        if scored.dense is not None and len(scored.held) * 4 > bound.count:
            return scored.best_of(bound.numbers, wanted)
        positions, numbers = _holding(bound, scored.rows)
        found, scores = scored.best_of(numbers, wanted)
        return (found if positions is None else positions[found]), scores

    def terms(self, rank: ir.Bm25) -> list[str]:
        """Return the terms of a query text."""
        from omnigraph.engine.search.analyzer import analyse  # noqa: PLC0415 (only for searches)

        text = self.constant(rank.query)
        return [] if text is None else analyse(text)

    def _text_key(self, rank: ir.Bm25, data: ColumnSource) -> tuple[Any, ...]:
        return data.key, rank.prop.name, self.constant(rank.query)

    def _scores(self, rank: ir.Bm25, data: ColumnSource) -> TermScores:
        """Return the scores of the rows of a table."""
        from omnigraph.engine.search.inverted_index import index_of  # noqa: PLC0415 (only for searches)

        key = self._text_key(rank, data)
        if self._scored is None or self._scored[0] != key:
            self._scored = key, index_of(data, rank.prop.name).scored(self.terms(rank))
        return self._scored[1]

    # -- vectors ---------------------------------------------------------------------------------

    def distances(self, rank: ir.Nearest, bound: Binding) -> tuple[Scores, Mask]:
        """Return the cosine distance of each row, equal for equal vectors, and a mask of the rows with a vector."""
        return self._vectors(rank, bound.data).distances(self._query(rank), bound.numbers)

    def candidates(self, rank: ir.Nearest, bound: Binding, limit: int) -> Numbers:
        """Return the rows that can be among the `limit` nearest, with ties; an approximate ranking can miss some."""
        numbers = None if bound.whole else bound.numbers
        vectors, query = self._vectors(rank, bound.data), self._query(rank)
        if rank.approx:
            from omnigraph.engine.search.cluster_segments import index_of  # noqa: PLC0415 (only for searches)

            index = index_of(bound.data, rank.prop.name, rank.prop.type.dim or 0)
            found = None if index is None else index.candidates(vectors, query, numbers, limit)
            if found is not None:
                return found
        return vectors.candidates(query, numbers, limit)

    def query_vector(self, rank: ir.Nearest) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the vector of a query, which can be the embedding of a text."""
        return self._query(rank).vector

    def _vectors(self, rank: ir.Nearest, data: ColumnSource) -> VectorColumn:
        from omnigraph.engine.search.vector_scan import vectors_of  # noqa: PLC0415 (only for searches)

        return vectors_of(data, rank.prop.name, rank.prop.type.dim or 0)

    def _query(self, rank: ir.Nearest) -> VectorQuery:
        from omnigraph.engine.search.vector_codes import VectorQuery  # noqa: PLC0415 (only for searches)

        value = self.constant(rank.query)
        if value is None:
            raise InputError(f"'nearest' on '{rank.prop.name}' got null instead of a text or a vector")
        key = (rank.prop, value if isinstance(value, str) else id(value))
        found = self._queries.get(key)
        if found is None:
            vector = self._embed_text(rank, value) if isinstance(value, str) else value
            found = self._queries[key] = VectorQuery.of(np.asarray(vector, dtype=np.float64))
        return found

    def _embed_text(self, rank: ir.Nearest, value: str) -> np.ndarray[Any, Any]:
        if not value.strip():
            raise InputError(f"'nearest' on '{rank.prop.name}' got a blank text", code="blank_query")
        type_name = self._types[rank.prop.var]
        embed = self._catalog.node(type_name).embeds.get(rank.prop.name)
        if self._embed is None:
            raise InputError(
                f"'nearest' on '{type_name}.{rank.prop.name}' got a text, but no provider can embed it",
                code="embedding_unconfigured",
                hint="pass a vector, or configure a provider (OMNIGRAPH_EMBED_PROVIDER=local needs no key)",
            )
        dim = rank.prop.type.dim or 0
        call = partial(self._embed, value, dim, type_name, rank.prop.name, embed.model if embed else None)
        return interruptible(call)

    # -- fusion ----------------------------------------------------------------------------------

    def fuse(self, rank: ir.Rrf, bound: Binding, limit: int) -> tuple[Numbers, Scores, list[Numbers]]:
        """Return the rows that can be among the first `limit`, their fused scores, and their positions in each ranking.

        A vector ranking ends after `limit` entities. With a single text ranking, only its best `limit` entities can
        therefore come first; of other entities, only the positions of those in another ranking are needed.
        """
        k = self.constant(rank.k)
        if k is None or k < 1:
            raise InputError("k of 'rrf' must be an integer of at least 1")
        entities, rows_of = _distinct(bound)
        near = [arm for arm in rank.arms if isinstance(arm, ir.Nearest)]
        whole = len(rank.arms) - len(near) > 1 or not near
        orders = [self._arm(arm, entities, limit, whole=whole) for arm in rank.arms]
        chosen = np.unique(np.concatenate(orders))
        parts = np.zeros((len(rank.arms), len(chosen)))
        arms: list[Numbers] = []
        for arm, order, weight in zip(rank.arms, orders, self.weights(rank), strict=True):
            positions = np.full(len(chosen), UNRANKED)
            positions[np.searchsorted(chosen, order)] = np.arange(1, len(order) + 1)
            if isinstance(arm, ir.Bm25) and not whole:
                missing = np.flatnonzero(positions == UNRANKED)
                positions[missing] = self._positions(arm, entities, chosen[missing])
            held = positions != UNRANKED
            parts[len(arms)][held] = weight / (k + positions[held])
            arms.append(positions)
        # Summed in order of size, so that equal positions in different rankings give bitwise equal scores.
        score = np.sort(parts, axis=0).sum(axis=0)
        rows, at = rows_of(chosen)
        return rows, score[at], [positions[at] for positions in arms]

    def weights(self, rank: ir.Rrf) -> list[float]:
        """Return the weight of each ranking."""
        if not rank.weights:
            return [1.0] * len(rank.arms)
        weights = [1.0 if weight is None else self.constant(weight) for weight in rank.weights]
        if any(weight is None or not weight > 0 for weight in weights):
            raise InputError("a weight of 'rrf' must be greater than 0")
        return weights

    def _arm(self, arm: ir.Nearest | ir.Bm25, bound: Binding, limit: int, *, whole: bool) -> Numbers:
        """Return the entities of one ranking, best first; of a text ranking only the best `limit`, unless `whole`."""
        if isinstance(arm, ir.Nearest):
            rows = self.candidates(arm, bound, limit)
            keys, _ = self.distances(arm, bound.take(rows))
            cut: int | None = limit
        else:
            # Positions of other entities in this ranking are computed from the scores of all rows.
            self._scores(arm, bound.data)
            rows, scores = self.relevant(arm, bound, None if whole else limit)
            keys, cut = -scores, None if whole else limit
        return rows[np.lexsort((id_ranks_of(bound.take(rows)), keys))[:cut]]

    def _positions(self, arm: ir.Bm25, bound: Binding, wanted: Numbers) -> Numbers:
        """Return the positions of a few entities in a text ranking without sorting it."""
        from omnigraph.engine.search.inverted_index import rank_counts  # noqa: PLC0415 (only for searches)

        scored = self._scores(arm, bound.data)
        own = scored.of(bound.take(wanted).numbers)
        _, numbers = _holding(bound, scored.rows)
        scores = scored.of(numbers)
        above, equal = rank_counts(scores, None, own)
        positions = np.where(own > 0, above + 1, UNRANKED)
        for score in paced(np.unique(own[(own > 0) & (equal > 1)]).tolist()):
            # Ties are ordered by id.
            tied = np.flatnonzero(own == score)
            others = Binding(bound.data, numbers[scores == score])
            mine = bound.take(wanted[tied])
            if bound.data.union is not None:
                ranks = id_ranks(bound.data)
                positions[tied] += np.searchsorted(np.sort(ranks[others.numbers]), ranks[mine.numbers])
                continue
            ids = others.column("id")
            positions[tied] += [int(pc.sum(pc.less(ids, id_)).as_py()) for id_ in mine.column("id")]
        return positions

    def constant(self, expr: ir.Expr | None) -> Any:
        """Return the value of a constant or parameter."""
        if isinstance(expr, ir.ParamRef):
            return self._params[expr.name]
        assert isinstance(expr, ir.Const)
        return expr.value


def _holding(bound: Binding, held: Numbers) -> tuple[Numbers | None, Numbers]:
    """Return the rows of a variable that are in `held`, the rows with a term: (positions, row numbers).

    The positions are None, meaning all rows, if the variable is not sorted or too small for a lookup to pay.
    """
    if bound.whole:
        return held, held
    numbers = bound.numbers
    if len(held) * 4 > len(numbers) or not (numbers[1:] > numbers[:-1]).all():
        return None, numbers
    at = np.searchsorted(numbers, held)
    found = at < len(numbers)
    found[found] = numbers[at[found]] == held[found]
    return at[found], held[found]


def _distinct(bound: Binding) -> tuple[Binding, Callable[[Numbers], tuple[Numbers, Numbers]]]:
    """Return the distinct entities of a variable, and a function from chosen entities (ascending) to their rows.

    The function returns the rows, and for each the index of its entity among the chosen.
    """
    numbers = _NONE if bound.whole else bound.numbers
    if bool((numbers[1:] > numbers[:-1]).all()):
        return bound, lambda chosen: (chosen, np.arange(len(chosen)))
    entities, entity_of = np.unique(numbers, return_inverse=True)

    def rows_of(chosen: Numbers) -> tuple[Numbers, Numbers]:
        at = np.full(len(entities), -1)
        at[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(at[entity_of] >= 0)
        return rows, at[entity_of[rows]]

    return Binding(bound.data, entities), rows_of
