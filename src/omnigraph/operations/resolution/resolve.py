"""Candidates for `unify`: nodes of one type that denote the same entity, with scores and clusters.

The score of a pair is the weighted mean of the scores of its properties: the Jaccard similarity of tokens weighted by
their inverse document frequency, or the cosine of vectors. A property that one of the nodes lacks is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checkpoint
from omnigraph.errors import InputError
from omnigraph.operations.resolution.candidates import BLOCK_MAX, all_pairs, token_pairs, value_pairs, vector_pairs
from omnigraph.operations.resolution.tokens import Numbers, Scores, distinct, token_rows
from omnigraph.schema.catalog import NodeType
from omnigraph.suggestions import did_you_mean

if TYPE_CHECKING:
    from omnigraph.operations.mutate import MutationResult

_ROUND = 4
_PAIRS_AT_ONCE = 1 << 20


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
    engine: Literal["memory", "spark"] = "memory"
    """Where the pairs were found."""

    @property
    def unify_pairs(self) -> list[tuple[str, str]]:
        """The pairs `(keep, drop)` of all clusters."""
        return [(keep, drop) for keep, drops in self.clusters.items() for drop in drops]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type_name,
            "engine": self.engine,
            "compared": self.compared,
            "pairs": [pair.to_json() for pair in self.pairs],
            "clusters": {keep: list(drops) for keep, drops in self.clusters.items()},
            "branch": self.branch,
            "commit_id": self.written.commit_id if self.written is not None else None,
        }


class PairScores(Protocol):
    """One property of all rows, prepared for scoring."""

    def scores(self, left: Numbers, right: Numbers) -> Scores:
        """Return the scores of pairs of rows; NaN if a node lacks the property."""


@dataclass(frozen=True)
class VectorScores:
    """Vectors of length 1, and the rows that have one."""

    vectors: np.ndarray[Any, np.dtype[np.float32]]
    known: np.ndarray[Any, np.dtype[np.bool_]]

    def scores(self, left: Numbers, right: Numbers) -> Scores:
        """Return the cosines of pairs of rows; NaN if one has no vector."""
        cosines = np.einsum("ij,ij->i", self.vectors[left], self.vectors[right]).astype(np.float64)
        return np.where(self.known[left] & self.known[right], cosines, np.nan)


@dataclass(frozen=True)
class Matches:
    """Pairs of rows from the threshold on, with their scores and those of each property."""

    left: Numbers
    right: Numbers
    scores: Scores
    by_property: Mapping[str, Scores]
    """Property → scores; NaN if a node lacks it."""


def find_matches(request: ResolveRequest, columns: Mapping[str, PairScores], left: Numbers, right: Numbers) -> Matches:
    """Score pairs of rows, and return those from the threshold on."""
    found: list[tuple[Numbers, Scores, list[Scores]]] = []
    for first in range(0, max(len(left), 1), _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        total, weight = np.zeros(len(left[part])), np.zeros(len(left[part]))
        by_property: list[Scores] = []
        for name in request.by:
            checkpoint()
            one = columns[name].scores(left[part], right[part])
            by_property.append(one)
            known = ~np.isnan(one)
            share = request.weights.get(name, 1.0)
            total[known] += share * one[known]
            weight[known] += share
        scores = np.divide(total, weight, out=np.zeros(len(total)), where=weight > 0)
        chosen = np.flatnonzero(scores >= request.similar - 1e-9)
        found.append((chosen + first, scores[chosen], [one[chosen] for one in by_property]))
    places, chosen_scores = (np.concatenate([one[at] for one in found]) for at in (0, 1))
    columns_of = {name: np.concatenate([one[2][at] for one in found]) for at, name in enumerate(request.by)}
    return Matches(left[places], right[places], chosen_scores, columns_of)


def find_duplicates(node: NodeType, request: ResolveRequest, rows: pa.Table) -> Resolution:
    """Find the nodes of a table that may be one; `rows` has the ids and all properties that are compared."""
    columns: dict[str, PairScores] = {}
    found: list[Numbers] = []
    for name in request.by:
        checkpoint()
        column = one_array(rows[name])
        if node.properties[name].type.scalar == "Vector":
            vectors = unit_vectors(column)
            columns[name] = vectors
            known = np.flatnonzero(vectors.known)
            found.append(vector_pairs(vectors.vectors[known], known, request.block))
        else:
            tokens = token_rows(column)
            columns[name] = tokens.scored
            found += [value_pairs(tokens, request.block), token_pairs(tokens, request.block)]
    left, right = all_pairs(found)
    del found
    matches = find_matches(request, columns, left, right)
    needed = distinct(np.concatenate([matches.left, matches.right]))
    return describe_matches(node, request, matches, needed, rows.take(pa.array(needed)), len(left))


def describe_matches(
    node: NodeType, request: ResolveRequest, matches: Matches, needed: Numbers, rows: pa.Table, compared: int
) -> Resolution:
    """Return pairs of rows as pairs of nodes and clusters; `rows` are those with the numbers `needed`, ascending."""
    left, right = np.searchsorted(needed, matches.left), np.searchsorted(needed, matches.right)
    order = np.lexsort((right, left, -matches.scores))
    filled = sum((np.asarray(one_array(rows[name]).is_valid()).astype(np.int64) for name in request.by), np.int64(0))
    ids: list[str] = rows["id"].to_pylist()
    clusters = _clusters(left[order], right[order], np.asarray(filled), ids)
    kept = {drop: keep for keep, drops in clusters.items() for drop in drops}
    shown = [name for name in request.by if node.properties[name].type.scalar != "Vector"]
    images = {name: rows[name].to_pylist() for name in shown}
    pairs: list[ResolvedPair] = []
    for place in order.tolist():
        a, b = int(left[place]), int(right[place])
        if ids[a] in kept and (ids[b] not in kept or ids[b] < ids[a]):
            a, b = b, a
        of_pair = {name: _rounded(matches.by_property[name][place]) for name in request.by}
        values = {name: (column[a], column[b]) for name, column in images.items()}
        pairs.append(ResolvedPair(ids[a], ids[b], round(float(matches.scores[place]), _ROUND), of_pair, values))
    return Resolution(request.type_name, compared, tuple(pairs), clusters)


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


def unit_vectors(column: pa.Array) -> VectorScores:
    """Return vectors of length 1. A vector of zeros is like none."""
    size = column.type.list_size
    vectors = np.zeros((len(column), size), np.float32)
    rows = np.flatnonzero(np.asarray(column.is_valid()))
    vectors[rows] = column.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return VectorScores(vectors, lengths[:, 0] > 0)
