"""The edges a step of a path may take, each by itself: parallel edges make different paths."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from omnigraph.engine.data import Numbers, TableData
from omnigraph.engine.neighbours import EdgeRows
from omnigraph.engine.path_data import Floats, Space
from omnigraph.engine.work import Work
from omnigraph.errors import InputError
from omnigraph.query import ir

_STEP, _SUM_MAX = 2.0**20, 2.0**33
"""Multiples of one part in a million add up exactly as long as their sum stays below; with more digits they do not."""

TURNED: dict[ir.Direction, ir.Direction] = {"out": "in", "in": "out", "both": "both"}


class Trails:
    """The edges of some types by the nodes at their near ends."""

    def __init__(self, work: Work, space: Space, edge_types: tuple[str, ...], direction: ir.Direction) -> None:
        self._parts: list[tuple[int, EdgeRows]] = [
            (space.start(name), work.adjacency(name).edge_rows(direction)) for name in edge_types
        ]

    def expand(self, nodes: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """For each node its edges: (position in `nodes`, edge, far end)."""
        found = [(start, *rows.expand(nodes)) for start, rows in self._parts]
        if len(found) == 1:
            start, positions, edges, far = found[0]
            return positions, edges + start, far
        positions = np.concatenate([part[1] for part in found])
        edges = np.concatenate([part[2] + part[0] for part in found])
        return positions, edges, np.concatenate([part[3] for part in found])

    def count(self, nodes: Numbers) -> int:
        """How many edges `expand` would find."""
        return sum(int(rows.degrees(nodes).sum()) for _, rows in self._parts)


def weights_of(work: Work, space: Space, by: str) -> Floats:
    """What every edge of a space has of a property; NaN where it has nothing, and is not followed."""
    return np.concatenate([_weights(work.table(type_.table_key), by, type_.name) for type_ in space.types])


def add_exactly(weights: Floats, edges: int) -> bool:
    """Whether so many weights make the same sum in whatever order they are added."""
    known = weights[~np.isnan(weights)]
    steps = known * _STEP
    return float(known.max(initial=0.0)) * edges <= _SUM_MAX and bool((steps == np.floor(steps)).all())


def _weights(edges: TableData, by: str, type_name: str) -> Floats:
    return edges.derived(f"weights:{edges.column_key(by)}", lambda: _read_weights(edges, by, type_name))


def _read_weights(edges: TableData, by: str, type_name: str) -> Floats:
    column = edges.column(by)
    known = column.is_valid().to_numpy(zero_copy_only=False)
    values: Floats = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    bad = np.flatnonzero(values < 0)
    if len(bad):
        id_ = min(edges.take("id", bad).to_pylist())
        raise InputError(
            f"paths are weighed by '{by}', and edge '{id_}' of {type_name} has a value below zero",
            code="negative_weight",
            hint="mend the edge, or weigh by another property",
        )
    values[~known] = np.nan
    return values
