"""The systems under test: each returns the numbers of posts, best first."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import omnigraph as og
from bench.search.corpus import DAYS, LIMIT, Corpus, Question, questions
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.write.write import write

Answer = Callable[[Question], list[int]]
System = dict[str, Answer]
"""Workload → function."""

SCHEMA = """
node Person { key: String @key }
node Post { key: String @key  day: I32  text: String @index  vec: Vector({dim}) @index }
edge Wrote: Person -> Post
"""
_RANKS = {
    "kNN 10": "nearest($p.vec, $v)",
    "kNN 10, filtered": "nearest($p.vec, $v)",
    "BM25 top 10": "bm25($p.text, $t)",
    "hybrid RRF": "rrf(nearest($p.vec, $v), bm25($p.text, $t))",
    "hybrid RRF, one hop": "rrf(nearest($p.vec, $v), bm25($p.text, $t))",
}
_MATCHES = {"kNN 10, filtered": f"$p: Post $p.day < {DAYS}", "hybrid RRF, one hop": "$p: Post $a wrote $p"}
WORKLOADS = tuple(_RANKS)


def _number(key: str) -> int:
    return int(key[1:])


# -- ours --------------------------------------------------------------------------------------------


def build_graph(folder: Path, corpus: Corpus) -> og.Graph:
    """The corpus as a graph, loaded in one commit."""
    people = og_table("p", corpus.count // 2)
    wrote = og_table("w", corpus.count).select(["id"])
    wrote = wrote.append_column("src", [[f"p{author}" for author in corpus.authors]])
    wrote = wrote.append_column("dst", corpus.table["key"])
    graph = og.init(folder, SCHEMA.replace("{dim}", str(corpus.vectors.shape[1])), sync=False)

    def fill(transaction: Any) -> None:
        transaction.change("node:Person", TableWrite(append=people))
        transaction.change("node:Post", TableWrite(append=corpus.table))
        transaction.change("edge:Wrote", TableWrite(append=wrote))

    write(graph._repository, fill)
    return graph


def og_table(letter: str, count: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    keys = pa.array([f"{letter}{at}" for at in range(count)])
    return pa.table({"id": keys, "key": keys})


def query_text(workload: str, dim: int) -> str:
    """The query text in our language."""
    rank = _RANKS[workload]
    params = ", ".join(p for p in (f"$v: Vector({dim})", "$t: String") if p.partition(":")[0] in rank)
    match = _MATCHES.get(workload, "$p: Post")
    author = ", $a.key as author" if "$a" in match else ""
    give = f"return {{ $p.key as key{author} }} order {{ {rank} }} limit {LIMIT}"
    return f"query q({params}) {{ match {{ {match} }} {give} }}"


def ours(graph: og.Graph, corpus: Corpus) -> System:
    def asking(workload: str) -> Answer:
        text = query_text(workload, corpus.vectors.shape[1])

        def answer(question: Question) -> list[int]:
            params: dict[str, Any] = {}
            if "$v" in text:
                params["v"] = question.vector.tolist()
            if "$t" in text:
                params["t"] = corpus.text(question)
            return [_number(row["key"]) for row in graph.query(text, params=params)]

        return answer

    return {workload: asking(workload) for workload in WORKLOADS}


# -- peers -------------------------------------------------------------------------------------------


def sqlite(_: Path, corpus: Corpus) -> System:
    """Full text by FTS5; its BM25 has another idf, so only the matching posts are compared."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE post USING fts5(text, content='', tokenize='unicode61')")
    rows = enumerate(corpus.table["text"].to_pylist(), 1)
    db.executemany("INSERT INTO post(rowid, text) VALUES (?, ?)", rows)
    db.commit()
    sql = f"SELECT rowid FROM post WHERE post MATCH ? ORDER BY rank LIMIT {LIMIT}"

    def words(question: Question) -> list[int]:
        wanted = " OR ".join(corpus.text(question).split())
        return [rowid - 1 for (rowid,) in db.execute(sql, (wanted,))]

    return {"BM25 top 10": words}


def duckdb(_: Path, corpus: Corpus) -> System:
    """Exhaustive vector search; full text needs an extension outside the wheel."""
    import duckdb as module  # noqa: PLC0415

    db = module.connect()
    dim = corpus.vectors.shape[1]
    source = corpus.table
    db.register("source", source)
    db.execute(f"CREATE TABLE post AS SELECT key, day, vec::FLOAT[{dim}] AS vec FROM source")
    order = f"ORDER BY array_cosine_distance(vec, ?::FLOAT[{dim}]) LIMIT {LIMIT}"

    def asking(where: str) -> Answer:
        sql = f"SELECT key FROM post {where} {order}"
        return lambda question: [_number(key) for (key,) in db.execute(sql, [question.vector.tolist()]).fetchall()]

    return {"kNN 10": asking(""), "kNN 10, filtered": asking(f"WHERE day < {DAYS}")}


def lancedb(folder: Path, corpus: Corpus) -> System:
    """IVF_FLAT and its own full text index; the hop is a second look-up, as its users write it."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # its hybrid search emits a warning at every query
    import lancedb as module  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    from lancedb.rerankers import RRFReranker  # noqa: PLC0415

    db = module.connect(str(folder))
    post = db.create_table("post", corpus.table.drop_columns(["id"]))
    post.create_index(
        metric="cosine", vector_column_name="vec", index_type="IVF_FLAT", num_partitions=max(1, corpus.count // 4_000)
    )
    post.create_fts_index("text", use_tantivy=False, stem=True, remove_stop_words=True)
    post.create_scalar_index("day")
    authors = pa.table({"post": corpus.table["key"], "author": [f"p{author}" for author in corpus.authors]})
    wrote = db.create_table("wrote", authors)
    wrote.create_scalar_index("post")
    reranker = RRFReranker(K_RRF)
    probes = _probes(post, corpus)

    def keys(table: Any) -> list[int]:
        return [_number(row["key"]) for row in table.to_pylist()]

    def near(question: Question) -> list[int]:
        return keys(post.search(question.vector).nprobes(probes).limit(LIMIT).select(["key", "_distance"]).to_arrow())

    def filtered(question: Question) -> list[int]:
        found = post.search(question.vector).nprobes(probes).where(f"day < {DAYS}", prefilter=True)
        return keys(found.limit(LIMIT).select(["key", "_distance"]).to_arrow())

    def words(question: Question) -> list[int]:
        return keys(
            post.search(corpus.text(question), query_type="fts").limit(LIMIT).select(["key", "_score"]).to_arrow()
        )

    def both(question: Question) -> list[int]:
        found = post.search(query_type="hybrid", vector_column_name="vec")
        found = found.vector(question.vector).text(corpus.text(question)).nprobes(probes)
        return keys(found.rerank(reranker).limit(LIMIT).select(["key"]).to_arrow())

    def hop(question: Question) -> list[int]:
        found = both(question)
        wanted = ", ".join(f"'s{post}'" for post in found)
        assert wrote.search().where(f"post IN ({wanted})").limit(LIMIT * 2).to_arrow().num_rows == len(found)
        return found

    return dict(zip(WORKLOADS, (near, filtered, words, both, hop), strict=True))


def _probes(post: Any, corpus: Corpus) -> int:
    """The smallest number of probed partitions with 98 % recall."""
    asking = questions(corpus, 20, seed=11)
    exact = [corpus.nearest(question, LIMIT) for question in asking]

    def share(probes: int) -> float:
        found = (post.search(q.vector).nprobes(probes).limit(LIMIT).select(["key", "_distance"]) for q in asking)
        keys = [[_number(row["key"]) for row in one.to_arrow().to_pylist()] for one in found]
        return mean([recall(a, b) for a, b in zip(keys, exact, strict=True)])

    probes = 8
    while share(probes) < RECALL and probes < corpus.count // 4_000:
        probes += 4
    return probes


def cypher(module_name: str) -> Callable[[Path, Corpus], System]:
    """Kuzu or its successor Ladybug: HNSW and full text by extensions; the caller fuses ranks."""

    def build(folder: Path, corpus: Corpus) -> System:
        import importlib  # noqa: PLC0415

        module = importlib.import_module(module_name)
        db = module.Connection(module.Database(str(folder / module_name)))
        for extension in ("VECTOR", "FTS"):
            db.execute(f"LOAD EXTENSION {extension}")
        dim = corpus.vectors.shape[1]
        db.execute(f"CREATE NODE TABLE Post(key STRING PRIMARY KEY, day INT64, text STRING, vec FLOAT[{dim}])")
        db.execute("CREATE NODE TABLE Person(key STRING PRIMARY KEY)")
        db.execute("CREATE REL TABLE Wrote(FROM Person TO Post)")
        source = corpus.table.select(["key", "day", "text", "vec"])  # noqa: F841 (named in the statement)
        people = og_table("p", corpus.count // 2).select(["key"])  # noqa: F841
        db.execute("COPY Post FROM source")
        db.execute("COPY Person FROM people")
        import pyarrow as pa  # noqa: PLC0415

        wrote = pa.table({"a": [f"p{a}" for a in corpus.authors], "b": corpus.table["key"]})  # noqa: F841
        db.execute("COPY Wrote FROM wrote")
        db.execute("CALL CREATE_VECTOR_INDEX('Post', 'near', 'vec', metric := 'cosine')")
        db.execute("CALL CREATE_FTS_INDEX('Post', 'words', ['text'])")

        def rows(text: str, **params: Any) -> list[Any]:
            result = db.execute(text, params)
            found = []
            while result.has_next():
                found.append(result.get_next())
            return found

        def near(question: Question) -> list[int]:
            text = f"CALL QUERY_VECTOR_INDEX('Post', 'near', $v, {LIMIT}) RETURN node.key, distance ORDER BY distance"
            return [_number(row[0]) for row in rows(text, v=question.vector.tolist())]

        def words(question: Question, limit: int = LIMIT) -> list[int]:
            text = (
                f"CALL QUERY_FTS_INDEX('Post', 'words', $t, top := {limit}) RETURN node.key, score ORDER BY score DESC"
            )
            return [_number(row[0]) for row in rows(text, t=corpus.text(question))]

        def both(question: Question) -> list[int]:
            score: dict[int, float] = {}
            for ranking in (near(question), words(question)):
                for place, post in enumerate(ranking, 1):
                    score[post] = score.get(post, 0.0) + 1 / (K_RRF + place)
            return sorted(score, key=lambda post: -score[post])[:LIMIT]

        def hop(question: Question) -> list[int]:
            found = both(question)
            authors = rows(
                "MATCH (a:Person)-[:Wrote]->(p:Post) WHERE p.key IN $k RETURN p.key, a.key", k=[f"s{p}" for p in found]
            )
            assert len(authors) == len(found)
            return found

        return {"kNN 10": near, "BM25 top 10": words, "hybrid RRF": both, "hybrid RRF, one hop": hop}

    return build


K_RRF = 60
RECALL = 0.98
PEERS: dict[str, Callable[[Path, Corpus], System]] = {
    "lancedb": lancedb,
    "duckdb": duckdb,
    "sqlite": sqlite,
    "kuzu": cypher("kuzu"),
    "ladybug": cypher("ladybug"),
}


def recall(found: list[int], exact: list[int]) -> float:
    return len(set(found) & set(exact)) / max(len(exact), 1)


def mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
