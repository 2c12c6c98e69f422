"""Search in the nodes of all types, by words, by meaning, or by both.

Each searched text property is ranked by BM25, each vector property by its distance to the embedded search text. The
words ranking of all types orders nodes by the best of their text properties, the meaning ranking by the nearest of
their vectors. Reciprocal rank fusion combines both: the score of a node is the sum of 1 / (60 + rank). Each ranking
ends after `DEPTH` nodes, so a page costs as much as the first one, and pages continue one list at one commit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from omnigraph.engine.exec.context import Limits
from omnigraph.engine.search.analyzer import analyse
from omnigraph.engine.search.text_places import find_places, surface_words
from omnigraph.errors import EmbeddingMismatch, InputError, PageCursorRejected
from omnigraph.operations.exploration.rows_by_id import rows_by_id
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.paging import snapshot_of_page
from omnigraph.operations.read import read
from omnigraph.operations.requests import QueryText, ReadRequest
from omnigraph.operations.search.search_request import DEPTH, Filter, SearchedType, SearchRequest, searched_types
from omnigraph.operations.search.search_result import By, RankerShare, RankOf, SearchHit, SearchResult, TermWeight
from omnigraph.schema.catalog import Catalog
from omnigraph.table_key import TableKey
from omnigraph.versioning.feed.cursors import read_token, short_id, write_token
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import At

_K = 60
_TERMS_MAX = 32
"""Largest number of terms whose weights are computed."""
_UNCONFIGURED = "embedding_unconfigured"
_ID, _BY_ID = ", $id: String", " id($x) = $id"

NodeName = tuple[str, str]
"""Type and id."""


class _Best(NamedTuple):
    """The best property of a node in one ranking; `key` sorts it, the best first."""

    key: float
    property: str
    rank: int = 0


Ranking = dict[NodeName, _Best]


def search(
    context: GraphContext, request: SearchRequest, limits: Limits, *, branch: str, at: At, after: str | None
) -> SearchResult:
    """Return one page of the hits of a search."""
    cursor = None if after is None else _read_cursor(after, branch)
    position = (cursor["commit"], cursor["epoch"]) if cursor is not None else None
    snapshot = snapshot_of_page(context, branch, at, position)
    digest = _digest(request, context.visibility_of(snapshot))
    if cursor is not None and cursor["digest"] != digest:
        raise PageCursorRejected("it belongs to another search")
    offset = 0 if cursor is None else cursor["offset"]
    return _Search(context, snapshot, request, limits).page(offset, _Page(branch, digest))


class _Page(NamedTuple):
    branch: str
    digest: str

    def cursor(self, snapshot: Snapshot, offset: int) -> str:
        """Return the cursor of the page that starts at an offset."""
        fields = {"commit": snapshot.commit_id, "offset": offset, "digest": self.digest}
        return write_token("search-page", snapshot.purge_epoch, {"branch": short_id(self.branch), **fields})


def _read_cursor(text: object, branch: str) -> dict[str, Any]:
    fields = read_token(
        text,
        "search-page",
        {"branch": short_id(branch)},
        {"commit": str, "offset": int, "digest": str},
        rejected=PageCursorRejected,
    )
    if fields["offset"] < 0:
        raise PageCursorRejected("it is not a valid token")
    return fields


def _digest(request: SearchRequest, visibility: Any) -> str:
    canonical = repr(request._replace(limit=0, rank_of=None, why=False))
    if visibility is not None:
        canonical += visibility.digest
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class _Search:
    """One search on one snapshot."""

    def __init__(self, context: GraphContext, snapshot: Snapshot, request: SearchRequest, limits: Limits) -> None:
        self._context = context
        self._snapshot = snapshot
        self._request = request
        self._limits = limits
        catalog = context.catalog(snapshot)
        self._types, self._notes = searched_types(catalog, request, _comparable(catalog, snapshot))
        self._words = surface_words(request.text)
        self._rankings: dict[By, Ranking] = {}
        if request.by != "meaning":
            self._rankings["words"] = self._rank("words")
        if request.by != "words":
            self._rank_by_meaning()

    # -- rankings --------------------------------------------------------------------------------

    def _rank_by_meaning(self) -> None:
        """Rank by vectors; without a provider, or without vectors, only words remain."""
        without = [type_.name for type_ in self._types if not type_.meaning]
        ranked = len(without) < len(self._types)
        try:
            found = self._rank("meaning") if ranked else {}
        except InputError as error:
            unusable = error.code == _UNCONFIGURED or isinstance(error, EmbeddingMismatch)
            if not unusable or self._request.by == "meaning":
                raise
            self._notes.append(f"only words are ranked: {error.message}")
            return
        if self._request.by == "meaning" and not ranked:
            raise InputError(
                "no searched type has vectors that a text can be compared with",
                code="no_vectors",
                hint="search by words, or declare a Vector property with @embed",
            )
        if without:
            listed = ", ".join(without)
            left = "not searched" if self._request.by == "meaning" else "ranked by words only"
            self._notes.append(f"without vectors, {left}: {listed}")
        if ranked:
            self._rankings["meaning"] = found

    def _rank(self, by: By) -> Ranking:
        """Return the nodes of all types by the best of their properties, at most `DEPTH`."""
        best: Ranking = {}
        for type_ in self._types:
            for name in type_.words if by == "words" else type_.meaning:
                for id_, key in self._ranked(type_, by, name):
                    known = best.get((type_.name, id_))
                    if known is None or key < known.key:
                        best[type_.name, id_] = _Best(key, name)
        ordered = sorted(best.items(), key=lambda entry: (entry[1].key, entry[0]))[:DEPTH]
        return {node: found._replace(rank=rank) for rank, (node, found) in enumerate(ordered, 1)}

    def _ranked(self, type_: SearchedType, by: By, name: str) -> Iterator[tuple[str, float]]:
        """Yield the ids of one property's ranking, each with its sort key."""
        ranker = _ranker(by, name)
        rows = self._read(type_, type_.query(f", {ranker} as score", f"order {{ {ranker} }} limit {DEPTH}"))
        for row in rows:
            yield row["id"], -row["score"] if by == "words" else row["score"]

    def _read(
        self,
        type_: SearchedType,
        text: str,
        more: Mapping[str, Any] | None = None,
        only: Sequence[Filter] | None = None,
    ) -> list[dict[str, Any]]:
        params = {"q": self._request.text, **type_.params(only), **(more or {})}
        query = QueryText(text, None, params, "<search>")
        request = ReadRequest(query, self._snapshot.branch, limits=self._limits)
        return read(self._context, self._snapshot, request).result.to_pylist()

    # -- hits ------------------------------------------------------------------------------------

    def page(self, offset: int, page: _Page) -> SearchResult:
        """Return the hits from an offset on."""
        fused = self._fused()
        limit = self._request.limit
        chosen = fused[offset : offset + limit]
        counts: dict[str, int] = {}
        for (type_name, _), _ in fused:
            counts[type_name] = counts.get(type_name, 0) + 1
        return SearchResult(
            tuple(self._hits(chosen, offset)),
            dict(sorted(counts.items())),
            tuple(self._notes),
            page.cursor(self._snapshot, offset + limit) if offset + limit < len(fused) else None,
            self._snapshot.commit_id,
            self._ranks_of([node for node, _ in fused]),
        )

    def _fused(self) -> list[tuple[NodeName, float]]:
        """Return all hits with their scores, best first; ties by the rank by words, then by type and id."""
        scores: dict[NodeName, float] = {}
        for ranking in self._rankings.values():
            for node, found in ranking.items():
                scores[node] = scores.get(node, 0.0) + _share(found)
        first = next(iter(self._rankings.values()), {})
        last = _Best(0.0, "", DEPTH + 1)
        return sorted(scores.items(), key=lambda entry: (-entry[1], first.get(entry[0], last).rank, entry[0]))

    def _hits(self, chosen: list[tuple[NodeName, float]], offset: int) -> Iterator[SearchHit]:
        nodes = [node for node, _ in chosen]
        rows = self._rows(nodes)
        why = self._explained(nodes, rows) if self._request.why else {}
        for at, (node, score) in enumerate(chosen):
            # A value that the audit of rules withholds leaves no row.
            if node in rows:
                yield SearchHit(*node, offset + at + 1, score, rows[node], why.get(node, ()))

    def _rows(self, nodes: Sequence[NodeName]) -> dict[NodeName, dict[str, Any]]:
        found: dict[NodeName, dict[str, Any]] = {}
        for name in dict.fromkeys(map(itemgetter(0), nodes)):
            ids = [id_ for type_name, id_ in nodes if type_name == name]
            rows = rows_by_id(self._context, self._snapshot, TableKey.node(name), ids)
            found.update({(name, row["id"]): row for row in rows})
        return found

    # -- explanations ----------------------------------------------------------------------------

    def _explained(
        self, nodes: Sequence[NodeName], rows: Mapping[NodeName, Mapping[str, Any]]
    ) -> dict[NodeName, tuple[RankerShare, ...]]:
        """Return the ranks of nodes, with the weights and places of the terms that they contain."""
        terms: dict[NodeName, tuple[TermWeight, ...]] = {}
        words = self._rankings.get("words", {})
        grouped: dict[tuple[str, str], list[str]] = {}
        for node in nodes:
            if node in words and node in rows:
                grouped.setdefault((node[0], words[node].property), []).append(node[1])
        for (name, property_), ids in grouped.items():
            for id_, weights in self._weights(name, property_, ids).items():
                places = find_places(rows[name, id_].get(property_) or "", weights)
                terms[name, id_] = tuple(
                    TermWeight(term, self._words[term], weight, tuple(places.get(term, ())))
                    for term, weight in sorted(weights.items(), key=lambda entry: (-entry[1], entry[0]))
                )
        return {
            node: tuple(
                self._share_of(by, ranking.get(node), terms.get(node, ())) for by, ranking in self._rankings.items()
            )
            for node in nodes
        }

    def _share_of(self, by: By, found: _Best | None, terms: tuple[TermWeight, ...]) -> RankerShare:
        if found is None:
            return RankerShare(by, None, None, None, 0.0)
        score = -found.key if by == "words" else found.key
        return RankerShare(by, found.property, found.rank, score, _share(found), terms if by == "words" else ())

    def _weights(self, name: str, property_: str, ids: list[str]) -> dict[str, dict[str, float]]:
        """Return the weights of the terms above 0 in a property of some nodes, by id."""
        terms = list(self._words)[:_TERMS_MAX]
        samples = [self._words[term] if analyse(self._words[term]) == [term] else term for term in terms]
        type_ = next(type_ for type_ in self._types if type_.name == name)
        columns = "".join(f", bm25($x.{property_}, $t{at}) as t{at}" for at in range(len(terms)))
        declared = ", $ids: [String]" + "".join(f", $t{at}: String" for at in range(len(terms)))
        text = type_.query(columns, declared=declared, where=" id($x) in $ids", only=())
        params = {"ids": ids, **{f"t{at}": sample for at, sample in enumerate(samples)}}
        return {
            row["id"]: {term: row[f"t{at}"] for at, term in enumerate(terms) if row[f"t{at}"] > 0}
            for row in self._read(type_, text, params, ())
        }

    # -- the rank of one node --------------------------------------------------------------------

    def _ranks_of(self, ordered: list[NodeName]) -> tuple[RankOf, ...]:
        id_ = self._request.rank_of
        if id_ is None:
            return ()
        found = [
            self._rank_of(type_, id_, ordered)
            for type_ in self._types
            if rows_by_id(self._context, self._snapshot, TableKey.node(type_.name), [id_])
        ]
        unknown = RankOf(None, id_, None, "not_found", f"no searched type has a node with the id '{id_}'")
        return tuple(found) or (unknown,)

    def _rank_of(self, type_: SearchedType, id_: str, ordered: list[NodeName]) -> RankOf:
        node = (type_.name, id_)
        if node in ordered:
            why = self._explained([node], self._rows([node]))[node]
            return RankOf(*node, ordered.index(node) + 1, None, "it is among the hits", why=why)
        failed = [each for each, _ in type_.filters if not self._satisfies(type_, id_, each)]
        if failed:
            listed = tuple(str(each) for each in failed)
            return RankOf(*node, None, "filtered", f"it does not satisfy {', '.join(listed)}", listed)
        why = tuple(self._share_beyond(type_, by, id_) for by in self._rankings)
        if all(each.score is None for each in why):
            missing = {"words": "it contains none of the words", "meaning": "it has no vector"}
            return RankOf(*node, None, "no_match", " and ".join(missing[by] for by in self._rankings), why=why)
        return RankOf(*node, None, "beyond", f"it ranks after the first {DEPTH:,} nodes", why=why)

    def _satisfies(self, type_: SearchedType, id_: str, filter_: Filter) -> bool:
        text = type_.query("", declared=_ID, where=_BY_ID, only=(filter_,))
        return bool(self._read(type_, text, {"id": id_}, (filter_,)))

    def _share_beyond(self, type_: SearchedType, by: By, id_: str) -> RankerShare:
        """Return the best score of a node that is not in a ranking; None if it has none."""
        names = type_.words if by == "words" else type_.meaning
        columns = "".join(f", {_ranker(by, name)} as s{at}" for at, name in enumerate(names))
        text = type_.query(columns, declared=_ID, where=_BY_ID, only=())
        (row,) = self._read(type_, text, {"id": id_}, ())
        known = [(row[f"s{at}"], name) for at, name in enumerate(names) if row[f"s{at}"] is not None]
        if by == "words":
            known = [entry for entry in known if entry[0] > 0]
        if not known:
            return RankerShare(by, None, None, None, 0.0)
        score, name = max(known) if by == "words" else min(known)
        return RankerShare(by, name, None, score, 0.0)


def _ranker(by: By, name: str) -> str:
    return f"bm25($x.{name}, $q)" if by == "words" else f"nearest($x.{name}, $q)"


def _share(found: _Best) -> float:
    return 1 / (_K + found.rank)


def _comparable(catalog: Catalog, snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the vector properties whose model is known, by type: the schema or their first vector names it."""
    return {
        node.name: [
            name
            for name, property_ in node.properties.items()
            if property_.type.scalar == "Vector"
            and not property_.type.is_list
            and (property_.embed is not None or snapshot.embedding(TableKey.node(node.name), name) is not None)
        ]
        for node in catalog.nodes.values()
    }
