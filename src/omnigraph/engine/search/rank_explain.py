"""Explanation of a rank: for each ranking, position, score and contribution to the fused score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.binding_table import Binding
from omnigraph.engine.expr.sort_keys import id_ranks_of
from omnigraph.engine.expr.structs import interleaved
from omnigraph.engine.search.searcher import UNRANKED, Searcher
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type

_FIELDS = arrow_type(ir.WHY.item)


def explain_ranks(
    rank: ir.Rank, bound: Binding, keys: Sequence[np.ndarray[Any, Any]], chosen: Numbers, searcher: Searcher
) -> pa.Array:
    """Return the explanations of the rows `chosen` of a ranked variable; `keys` are its sort keys."""
    shown = bound.take(chosen)
    if not isinstance(rank, ir.Rrf):
        positions = _positions(bound, keys[0])[chosen]
        score = keys[0][chosen] if isinstance(rank, ir.Nearest) else -keys[0][chosen]
        return interleaved([_explanation(rank, positions, score, None)])
    columns = []
    for arm, positions, weight in zip(rank.arms, keys[1:], searcher.weights(rank), strict=True):
        here = positions[chosen]
        score = searcher.distances(arm, shown)[0] if isinstance(arm, ir.Nearest) else searcher.scores(arm, shown)
        held = np.where(here == UNRANKED, 1, here)
        columns.append(_explanation(arm, here, score, weight / (searcher.constant(rank.k) + held)))
    return interleaved(columns)


def _positions(bound: Binding, key: np.ndarray[Any, Any]) -> Numbers:
    """Return the rank of each row's entity, from 1; ties are ordered by id."""
    entities, first, entity_of = np.unique(bound.numbers, return_index=True, return_inverse=True)
    order = np.lexsort((id_ranks_of(bound.take(first)), key[first]))
    positions = np.empty(len(entities), np.int64)
    positions[order] = np.arange(1, len(entities) + 1)
    return positions[entity_of]


def _explanation(
    arm: ir.Nearest | ir.Bm25, positions: Numbers, score: np.ndarray[Any, Any], share: np.ndarray[Any, Any] | None
) -> pa.Array:
    """Return one object per row; position, score and contribution are null for rows outside the ranking."""
    out = positions == UNRANKED
    name = "nearest" if isinstance(arm, ir.Nearest) else "bm25"
    by = pa.repeat(pa.scalar(f"{name}({arm.prop.name})"), len(positions))
    shares = pa.nulls(len(positions), pa.float64()) if share is None else pa.array(share, mask=out)
    parts = [by, pa.array(positions, mask=out), pa.array(np.asarray(score, np.float64), mask=out), shares]
    return pa.StructArray.from_arrays(parts, fields=[*_FIELDS])
