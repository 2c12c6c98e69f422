"""Search: words and vectors, as masks, scores and rankings over the rows of a match.

Everything is computed over exactly the rows the whole match block left, so a filter never starves a
result; and from the columns themselves, so an index changes nothing but speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph.engine.data import Mask, Numbers, TableData
from omnigraph.engine.frames import Bound
from omnigraph.engine.text import Scores, TextIndex, analyse, build_index
from omnigraph.errors import InputError
from omnigraph.query import ir
from omnigraph.schema.catalog import Catalog

_ROWS_AT_ONCE = 8192
_LENGTHS = (1e-30, 1e30)
"""Vectors shorter or longer than this are not compared in 32 bits."""

EmbedQuery = Callable[[str, int, str, str, str | None], "np.ndarray[Any, Any]"]
"""(text, dimensions, type, property, recorded model) → the query's vector."""


@dataclass(frozen=True)
class Vectors:
    """A vector column as a matrix, and how long each vector is; a row without one has length NaN."""

    matrix: np.ndarray[Any, np.dtype[np.float32]]
    norms: Scores

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return int(self.matrix.nbytes + self.norms.nbytes)


class Searcher:
    """Answers the search functions of one execution."""

    def __init__(
        self, catalog: Catalog, params: Mapping[str, Any], embed: EmbedQuery | None, types: Mapping[str, str]
    ) -> None:
        self._catalog = catalog
        self._params = params
        self._embed = embed
        self._types = types
        self._embedded: dict[tuple[ir.Prop, str], np.ndarray[Any, Any]] = {}

    # -- words -----------------------------------------------------------------------------------

    def matches(self, match: ir.TextMatch, bound: Bound) -> Mask:
        """Which rows' texts match."""
        index = _text_index(bound.data, match.prop.name)
        text = self._constant(match.query)
        if text is None:
            return np.zeros(len(bound.numbers), bool)
        words = analyse(text)
        if match.function == "fuzzy":
            edits = self._constant(match.max_edits)
            if edits is None or edits < 0:
                raise InputError("max_edits of 'fuzzy' must be a whole number of at least 0")
            return index.fuzzy(words, int(edits))[bound.numbers]
        return index.matching(words)[bound.numbers]

    def scores(self, rank: ir.Bm25, bound: Bound) -> Scores:
        """The relevance of each row."""
        text = self._constant(rank.query)
        if text is None:
            return np.zeros(len(bound.numbers))
        return _text_index(bound.data, rank.prop.name).bm25(analyse(text))[bound.numbers]

    # -- vectors ---------------------------------------------------------------------------------

    def distances(self, rank: ir.Nearest, bound: Bound) -> tuple[Scores, Mask]:
        """The cosine distance of each row, equal for equal vectors; and which rows have a vector at all."""
        vectors, query = self._operands(rank, bound)
        norms = vectors.norms[bound.numbers]
        scale = norms * float(np.linalg.norm(query))
        dots = np.empty(len(norms))
        for start in range(0, len(dots), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            # Row by row, not as a product of matrices: that one rounds a row differently from place to place.
            dots[some] = (vectors.matrix[bound.numbers[some]].astype(np.float64) * query).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            distances = np.where(scale > 0, 1.0 - dots / scale, 1.0)
        return distances, ~np.isnan(norms)

    def promising(self, rank: ir.Nearest, bound: Bound, limit: int) -> Numbers:
        """The rows that can be among the `limit` nearest, ties included.

        It takes one look at all of them in 32 bits, which is fast, and allows for the error of that.
        """
        vectors, query = self._operands(rank, bound)
        norms, length = vectors.norms[bound.numbers], float(np.linalg.norm(query))
        known = ~np.isnan(norms)
        sure = (norms > _LENGTHS[0]) & (norms < _LENGTHS[1])
        if len(norms) <= _ROWS_AT_ONCE or not _LENGTHS[0] < length < _LENGTHS[1] or np.count_nonzero(sure) <= limit:
            return np.flatnonzero(known)
        unit = (query / length).astype(np.float32)
        if len(norms) * 2 < len(vectors.norms):
            dots = vectors.matrix[bound.numbers] @ unit
        else:
            dots = (vectors.matrix @ unit)[bound.numbers]
        with np.errstate(invalid="ignore", divide="ignore"):
            rough = np.where(sure, 1.0 - dots / norms, np.inf)
        last = np.partition(rough, limit - 1)[limit - 1] if limit else -np.inf
        error = (len(query) + 4) * float(np.finfo(np.float32).eps)
        return np.flatnonzero((rough <= last + 2 * error) | (known & ~sure))

    def _operands(self, rank: ir.Nearest, bound: Bound) -> tuple[Vectors, np.ndarray[Any, Any]]:
        return _vectors(bound.data, rank.prop.name, rank.prop.type.dim or 0), self._query(rank)

    def _query(self, rank: ir.Nearest) -> np.ndarray[Any, Any]:
        value = self._constant(rank.query)
        if value is None:
            raise InputError(f"'nearest' on '{rank.prop.name}' was given null to compare with")
        if not isinstance(value, str):
            return np.asarray(value, dtype=np.float64)
        found = self._embedded.get((rank.prop, value))
        if found is None:
            found = self._embedded[rank.prop, value] = np.asarray(self._embed_text(rank, value), dtype=np.float64)
        return found

    def _embed_text(self, rank: ir.Nearest, value: str) -> np.ndarray[Any, Any]:
        if not value.strip():
            raise InputError(f"'nearest' on '{rank.prop.name}' was given a blank text", code="blank_query")
        type_name = self._types[rank.prop.var]
        embed = self._catalog.nodes[type_name].embeds.get(rank.prop.name)
        if self._embed is None:
            raise InputError(
                f"'nearest' on '{type_name}.{rank.prop.name}' was given a text, and no provider can embed it",
                code="embedding_unconfigured",
                hint="pass a vector, or configure a provider (OMNIGRAPH_EMBED_PROVIDER=local needs no key)",
            )
        dim = rank.prop.type.dim or 0
        return self._embed(value, dim, type_name, rank.prop.name, embed.model if embed else None)

    # -- fusion ----------------------------------------------------------------------------------

    def fuse(self, rank: ir.Rrf, bound: Bound, id_ranks: Numbers, limit: int) -> tuple[Scores, Numbers, Numbers]:
        """Per row: the fused score (0 when in neither ranking), and the place in the first and second arm."""
        k = self._constant(rank.k)
        if k is None or k < 1:
            raise InputError("k of 'rrf' must be a whole number of at least 1")
        entities, places = np.unique(bound.numbers, return_inverse=True)
        some = Bound(bound.data, entities)
        total = np.zeros(len(entities))
        arms: list[Numbers] = []
        for arm in rank.arms:
            order = self._arm(arm, some, id_ranks, limit)
            position = np.full(len(entities), np.iinfo(np.int64).max)
            position[order] = np.arange(1, len(order) + 1)
            total[order] += 1.0 / (k + position[order])
            arms.append(position)
        return total[places], arms[0][places], arms[1][places]

    def _arm(self, arm: ir.Nearest | ir.Bm25, bound: Bound, id_ranks: Numbers, limit: int) -> Numbers:
        """The entities of one ranking, best first."""
        ties = id_ranks[bound.numbers]
        if isinstance(arm, ir.Nearest):
            rows = self.promising(arm, bound, limit)
            distances, _ = self.distances(arm, Bound(bound.data, bound.numbers[rows]))
            return rows[np.lexsort((ties[rows], distances))[:limit]]
        scores = self.scores(arm, bound)
        order = np.lexsort((ties, -scores))
        return order[scores[order] > 0]

    def _constant(self, expr: ir.Expr | None) -> Any:
        if isinstance(expr, ir.ParamRef):
            return self._params[expr.name]
        assert isinstance(expr, ir.Const)
        return expr.value


def _text_index(data: TableData, name: str) -> TextIndex:
    return data.derived(f"text:{name}", lambda: build_index(data.column(name)))


def _vectors(data: TableData, name: str, dim: int) -> Vectors:
    def build() -> Vectors:
        column = data.column(name)
        known = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
        flat = column.flatten().to_numpy(zero_copy_only=False)
        matrix = np.zeros((len(column), dim), np.float32)
        matrix[known] = flat.reshape(-1, dim)
        norms = np.linalg.norm(matrix.astype(np.float64), axis=1)
        norms[~known] = np.nan
        return Vectors(matrix, norms)

    return data.derived(f"vectors:{name}", build)
