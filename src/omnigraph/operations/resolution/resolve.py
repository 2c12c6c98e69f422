"""Candidates for `unify`: nodes of one type that denote the same entity, with scores and clusters.

The score of a pair is the weighted mean of the scores of its properties: the Jaccard similarity of tokens weighted by
their inverse document frequency, or the cosine of vectors. A property that one of the nodes lacks is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checkpoint
from omnigraph.errors import InputError
from omnigraph.operations.resolution.candidates import BLOCK_MAX, all_pairs, token_pairs, value_pairs, vector_pairs
from omnigraph.operations.resolution.tokens import Numbers, Scores, TokenRows, token_rows
from omnigraph.schema.catalog import NodeType
from omnigraph.suggestions import did_you_mean

if TYPE_CHECKING:
    from omnigraph.operations.mutate import MutationResult

_ROUND = 4


@dataclass(frozen=True)
class ResolveRequest:
    """What to compare, and the score from which two nodes are the same."""

    type_name: str
    by: tuple[str, ...]
    similar: float = 0.9
    weights: Mapping[str, float] = field(default_factory=dict)
    block: int = BLOCK_MAX

    def check(self, node: NodeType) -> None:
        """Raise `InputError` if a property does not exist or a number is out of range."""
        if not self.by:
            raise InputError("'by' names the properties to compare", hint='write by=["name", "email"]')
        for name in (*self.by, *self.weights):
            property_ = node.properties.get(name)
            if property_ is None:
                hint = did_you_mean(name, node.properties)
                raise InputError(f"'{node.name}' has no property '{name}'", hint=hint)
            if property_.type.scalar == "Blob":
                raise InputError(f"'{node.name}.{name}' is a Blob, which cannot be compared")
        for name, weight in self.weights.items():
            if name not in self.by or weight <= 0:
                raise InputError(f"the weight of '{name}' must be positive, and '{name}' one of the properties in 'by'")
        if not 0 < self.similar <= 1:
            raise InputError(f"'similar' must be above 0 and at most 1 (got {self.similar})")
        if self.block < 2:
            raise InputError(f"'block' must be at least 2 (got {self.block})")


@dataclass(frozen=True)
class ResolvedPair:
    """Two nodes that may be one: the node to keep, the node to drop, and the scores of their properties."""

    keep: str
    drop: str
    score: float
    scores: Mapping[str, float | None]
    """Property → score; None if one of the nodes lacks it."""
    values: Mapping[str, tuple[Any, Any]]
    """Property → the values of both nodes; vectors are left out."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        values = {name: list(both) for name, both in self.values.items()}
        return {
            "keep": self.keep, "drop": self.drop, "score": self.score, "scores": dict(self.scores), "values": values
        }  # fmt: skip


@dataclass(frozen=True)
class Resolution:
    """The pairs from the threshold on, best first, and the clusters that they form."""

    type_name: str
    compared: int
    """Candidate pairs that were scored."""
    pairs: tuple[ResolvedPair, ...]
    clusters: Mapping[str, tuple[str, ...]]
    """Node to keep → nodes to drop."""
    branch: str | None = None
    """The branch that was written; None if none was."""
    written: MutationResult | None = None

    @property
    def unify_pairs(self) -> list[tuple[str, str]]:
        """The pairs `(keep, drop)` of all clusters."""
        return [(keep, drop) for keep, drops in self.clusters.items() for drop in drops]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type_name,
            "compared": self.compared,
            "pairs": [pair.to_json() for pair in self.pairs],
            "clusters": {keep: list(drops) for keep, drops in self.clusters.items()},
            "branch": self.branch,
            "commit_id": self.written.commit_id if self.written is not None else None,
        }


class Comparison:
    """The columns of a comparison, prepared for blocking and scoring."""

    def __init__(self, node: NodeType, request: ResolveRequest, rows: pa.Table) -> None:
        self.request = request
        self._tokens: dict[str, TokenRows] = {}
        self._vectors: dict[str, tuple[np.ndarray[Any, np.dtype[np.float32]], Numbers]] = {}
        for name in request.by:
            checkpoint()
            column = one_array(rows[name])
            if node.properties[name].type.scalar == "Vector":
                self._vectors[name] = _unit_vectors(column)
            else:
                self._tokens[name] = token_rows(column)

    def blocks(self) -> list[Callable[[], Numbers]]:
        """Return the sources of candidate pairs, which can run in any order."""
        most = self.request.block
        found: list[Callable[[], Numbers]] = []
        for column in self._tokens.values():
            found += [partial(value_pairs, column, most), partial(token_pairs, column, most)]
        for vectors, rows in self._vectors.values():
            found.append(partial(vector_pairs, vectors[rows], rows, most))
        return found

    def scores(self, left: Numbers, right: Numbers) -> tuple[Scores, dict[str, Scores]]:
        """Return the scores of pairs, and those of each property; NaN if a node lacks it."""
        by_property: dict[str, Scores] = {}
        total, weight = np.zeros(len(left)), np.zeros(len(left))
        for name in self.request.by:
            checkpoint()
            one = self._score(name, left, right)
            by_property[name] = one
            known = ~np.isnan(one)
            share = self.request.weights.get(name, 1.0)
            total[known] += share * one[known]
            weight[known] += share
        return np.divide(total, weight, out=np.zeros(len(left)), where=weight > 0), by_property

    def _score(self, name: str, left: Numbers, right: Numbers) -> Scores:
        if name in self._tokens:
            column = self._tokens[name]
            known = (column.values[left] >= 0) & (column.values[right] >= 0)
            found = column.jaccard(left, right)
        else:
            vectors, rows = self._vectors[name]
            present = np.zeros(len(vectors), bool)
            present[rows] = True
            known = present[left] & present[right]
            found = np.einsum("ij,ij->i", vectors[left], vectors[right]).astype(np.float64)
        return np.where(known, found, np.nan)


def find_duplicates(node: NodeType, request: ResolveRequest, rows: pa.Table) -> Resolution:
    """Find the nodes of a table that may be one; `rows` has the ids and all properties that are compared."""
    comparison = Comparison(node, request, rows)
    left, right = all_pairs([block() for block in comparison.blocks()])
    scores, by_property = comparison.scores(left, right)
    chosen = np.flatnonzero(scores >= request.similar - 1e-9)
    chosen = chosen[np.lexsort((right[chosen], left[chosen], -scores[chosen]))]
    filled = sum((np.asarray(one_array(rows[name]).is_valid()).astype(np.int64) for name in request.by), np.int64(0))
    ids: list[str] = rows["id"].to_pylist()
    clusters = _clusters(left[chosen], right[chosen], np.asarray(filled), ids)
    kept = {drop: keep for keep, drops in clusters.items() for drop in drops}
    shown = [name for name in request.by if node.properties[name].type.scalar != "Vector"]
    images = {name: one_array(rows[name]) for name in shown}
    pairs: list[ResolvedPair] = []
    for place in chosen.tolist():
        a, b = int(left[place]), int(right[place])
        if ids[a] in kept and (ids[b] not in kept or ids[b] < ids[a]):
            a, b = b, a
        of_pair = {name: _rounded(by_property[name][place]) for name in request.by}
        values = {name: (column[a].as_py(), column[b].as_py()) for name, column in images.items()}
        pairs.append(ResolvedPair(ids[a], ids[b], round(float(scores[place]), _ROUND), of_pair, values))
    return Resolution(request.type_name, len(left), tuple(pairs), clusters)


def _rounded(score: float) -> float | None:
    return None if np.isnan(score) else round(float(score), _ROUND)


def _clusters(left: Numbers, right: Numbers, filled: Numbers, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the connected nodes: the one with most values is kept, of equals the one with the least id."""
    parent: dict[int, int] = {}

    def root(row: int) -> int:
        while parent.setdefault(row, row) != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        first, second = root(a), root(b)
        if first != second:
            parent[max(first, second)] = min(first, second)
    groups: dict[int, list[int]] = {}
    for row in parent:
        groups.setdefault(root(row), []).append(row)
    found: dict[str, tuple[str, ...]] = {}
    for rows in groups.values():
        keep, *drops = sorted(rows, key=lambda row: (-int(filled[row]), ids[row]))
        found[ids[keep]] = tuple(sorted(ids[row] for row in drops))
    return dict(sorted(found.items()))


def _unit_vectors(column: pa.Array) -> tuple[np.ndarray[Any, np.dtype[np.float32]], Numbers]:
    """Return vectors of length 1, and the rows that have one."""
    size = column.type.list_size
    vectors = np.zeros((len(column), size), np.float32)
    rows = np.flatnonzero(np.asarray(column.is_valid()))
    vectors[rows] = column.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors, rows[lengths[rows, 0] > 0]
