"""Queries, mutations, tables, blobs and exports are the same in every form of a graph."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import pytest

from omnigraph.engine.exec.context import Limits
from support.graph_variants import Body, Variants, failure

PEOPLE = "query people() { match { $p: Person } return { $p.name, $p.age } order { $p.name asc } }"
EVERYTHING = """
query everything($name: String) {
    match { $p: Person { name: $name } }
    return { $p.age, $p.huge, $p.small, $p.ratio, $p.born, $p.seen, $p.active, $p.tags, $p.days, $p.vector }
}
"""
VALUES = """
query values($day: Date, $time: DateTime, $big: I64, $many: [String]) {
    match { $c: City }
    return { $day as day, $time as time, $big as big, $many as many, 1.0 / 0.0 as infinite, 0.0 / 0.0 as nan }
}
"""


def queries(graph: Any) -> Any:
    values = {"day": date(2026, 1, 31), "time": datetime(2026, 1, 31, 1, 2, 3, tzinfo=UTC), "big": 2**62, "many": ["a"]}
    return [
        graph.query(PEOPLE),
        graph.query(EVERYTHING, {"name": "ana"}),
        graph.query(EVERYTHING, "everything", {"name": "nobody"}),
        graph.query(VALUES, values),
        graph.query(PEOPLE, at="v1"),
        graph.query(PEOPLE, branch="draft", timeout=30),
        graph.on("draft").query(PEOPLE, at=2),
        graph.query("match { $p: Person } return { $p.name as x, $p.name as y }"),
        graph.query("match { $p: Person } return { count($p) as people }", limits=Limits(rows_max=1_000)),
        graph.query("query p() { match { $a: Person  $a knows $b } return { $a, $b } }"),
    ]


@dataclass
class PersonRow:
    name: str


def objects(graph: Any) -> Any:
    text = "match { $p: Person } return { $p.name } order { $p.name }"
    wrong = failure(lambda: graph.query("match { $p: Person } return { $p.name as other }", into=PersonRow))
    return [[each.name for each in graph.query(text, into=PersonRow)], wrong]


def duplicate_columns(graph: Any) -> Any:
    found = failure(lambda: graph.query("match { $p: Person } return { $p.name, $p.name } order { $p.name asc }"))
    return [found]


def query_files(graph: Any, folder: Any) -> Any:
    path = folder / "people.gq"
    path.write_text(PEOPLE, encoding="utf-8")
    wrong = folder / "wrong.gq"
    wrong.write_text("query q() { match { $p: Persn } return { $p.name } }", encoding="utf-8")
    return [graph.query(path), graph.query(str(path)), failure(lambda: graph.query(wrong)), graph.lint(wrong)]


def pages(graph: Any) -> Any:
    listed = list(graph.pages(PEOPLE, page=1))
    first = graph.query(PEOPLE, page=1)
    rest = graph.query(PEOPLE, page=5, after=first.next)
    past = list(graph.pages(PEOPLE, page=2, at="v1"))
    return [listed, first, rest, past, failure(lambda: graph.query(PEOPLE, page=1, after="x"))]


def plans(graph: Any) -> Any:
    explained = graph.explain(PEOPLE)
    profiled = graph.profile(PEOPLE)
    return [
        explained,
        explained.plan_hash,
        profiled.plan_hash,
        profiled.splitlines()[0].partition("(")[0],
        graph.explain(EVERYTHING, {"name": "ana"}, at="v1"),
        graph.lint(PEOPLE),
        graph.lint("query q() { match { $p: Persn } return { $p.name } }", branch="draft"),
    ]


def query_errors(graph: Any) -> Any:
    return [
        failure(lambda: graph.query("query {")),
        failure(lambda: graph.query("query q() { match { $p: Persn } return { $p.name } }")),
        failure(lambda: graph.query(EVERYTHING)),
        failure(lambda: graph.query(EVERYTHING, {"name": 7})),
        failure(lambda: graph.query(EVERYTHING, {"nam": "ana"})),
        failure(lambda: graph.query(PEOPLE, "other")),
        failure(lambda: graph.query(PEOPLE, at="nowhere")),
        failure(lambda: graph.query(PEOPLE, branch="nowhere")),
        failure(lambda: graph.query(PEOPLE, page=0)),
        failure(lambda: graph.query(PEOPLE, timeout="soon")),
        failure(lambda: graph.query(PEOPLE, limits=Limits(rows_max=1))),
        failure(lambda: graph.query(PEOPLE, engine="fast")),
        failure(lambda: graph.query(7)),
        failure(lambda: graph.query('query q() { insert City { name: "x" } }')),
        failure(lambda: graph.explain("query {")),
        failure(lambda: graph.profile(PEOPLE, at="nowhere")),
    ]


def unknown_parameters(graph: Any) -> Any:
    texts = ["match { $p: Person $p.age > $min } return { $p.name } order { $p.name }"]
    texts.append(f"query older($min: I64?) {{ {texts[0]} }}")
    change = "query late($min: I64?) { update Person set { age: $min } where name = 'bo' }".replace("'", '"')
    given = {"mim": 3}
    calls = [partial(graph.mutate, change, given)]
    for text in texts:
        calls += [partial(method, text, given) for method in (graph.query, graph.explain, graph.profile)]
        calls.append(partial(graph.query, text, given, page=1))
    errors = [failure(call) for call in calls]
    assert {(error.message, error.hint) for error in errors} == {
        ("the query has no parameter 'mim'", "did you mean 'min'?")
    }
    return errors


def mutations(graph: Any) -> Any:
    graph.branch_create("q/1")
    one = graph.on("q/1")
    text = "query add($n: String, $d: Date) { insert Person { name: $n, born: $d } }"
    added = one.mutate(text, {"n": "di", "d": date(1999, 9, 9)}, message="di", idempotency_key="key-of-di")
    again = one.mutate(text, {"n": "di", "d": date(1999, 9, 9)}, idempotency_key="key-of-di")
    gone = one.mutate('query q() { delete Person where name = "di" }', if_commit=added.commit_id)
    nothing = one.mutate('query q() { delete Person where name = "di" }')
    return [added, again, gone, nothing, one.commits(limit=2), list(one.history("Person", "di"))]


def mutation_errors(graph: Any) -> Any:
    add = 'query q() { insert City { name: "x" } }'
    return [
        failure(lambda: graph.mutate("query {")),
        failure(lambda: graph.mutate(PEOPLE)),
        failure(lambda: graph.mutate(add, branch="nowhere")),
        failure(lambda: graph.mutate(add, branch="secret")),
        failure(lambda: graph.mutate(add, if_commit="other")),
        failure(lambda: graph.mutate('query q() { insert Knows { from: "ana", to: "nobody" } }')),
        failure(lambda: graph.mutate('query q() { insert Person { name: "x", state: 7 } }')),
        failure(lambda: graph.mutate('query q() { insert City { name: "Rome" } }')),
    ]


def rows(graph: Any) -> Any:
    return [
        graph.get("Person", "ana"),
        graph.get("Person", "bo", branch="draft"),
        graph.get("Person", "cy/λ", at="v1"),
        graph.get("Person", "nobody"),
        graph.get("Knows", "k1", kind="edge"),
        graph.entity_at("Person", "bo", "v1"),
        failure(lambda: graph.get("Persn", "ana")),
        failure(lambda: graph.get("Person", 1.5)),
        failure(lambda: graph.get("Person", "ana", kind="edge")),
        failure(lambda: graph.get("Person", "ana", kind="table")),
        failure(lambda: graph.entity_at("Person", "bo", "nowhere")),
    ]


def tables(graph: Any) -> Any:
    return [
        graph.to_arrow("Person"),
        graph.to_arrow("Person", columns=["name", "born"], at="v1"),
        graph.to_arrow("Knows", kind="edge", branch="draft"),
        list(graph.to_batches("City", batch_rows=1)),
        failure(lambda: graph.to_arrow("Persn")),
        failure(lambda: graph.to_arrow("Person", columns=["nam"])),
        failure(lambda: list(graph.to_batches("City", batch_rows=0))),
        failure(lambda: graph.to_arrow("City", at="nowhere")),
    ]


def networks(graph: Any) -> Any:
    found = graph.to_networkx(["Person", "Knows"])
    whole = graph.to_networkx(at="v1")
    rust, index = graph.to_rustworkx(["Person", "Knows"])
    matrix, rows, columns = graph.to_sparse("Knows", branch="draft")
    return [
        sorted(found.nodes(data=True), key=str),
        sorted(found.edges(data=True), key=str),
        len(whole),
        [sorted(index.items()), list(rust.nodes()), list(rust.weighted_edge_list())],
        [matrix.toarray().tolist(), rows.to_pylist(), columns.to_pylist()],
        failure(lambda: graph.to_sparse("Know")),
        failure(lambda: tensors(graph.to_pyg(["Person", "Knows"], labels={"Person": "name"}, branch="draft"))),
        failure(lambda: graph.to_pyg(["Persn"])),
        failure(lambda: graph.to_pyg(features={"Knows": ["since"]})),
    ]


def tensors(data: Any) -> Any:
    """Return the stores of a `HeteroData` as lists."""
    return {
        str(store._key): {name: getattr(value, "tolist", lambda value=value: value)() for name, value in store.items()}
        for store in data.stores[1:]
    }


def blobs(graph: Any) -> Any:
    blob = graph.blob("Person", "ana", "photo")
    return [
        [blob.size, blob.etag, blob.commit_id],
        blob.read(),
        blob.read(6, 3),
        blob.read(100),
        b"".join(blob.stream(4, offset=2)),
        failure(lambda: graph.blob("Person", "bo", "photo")),
        failure(lambda: graph.blob("Person", "nobody", "photo")),
        failure(lambda: graph.blob("Person", "ana", "name")),
        failure(lambda: graph.blob("Person", "ana", "foto")),
        failure(lambda: graph.blob("City", "Rome", "photo", at="v1")),
        failure(lambda: blob.read(-1)),
    ]


def exports(graph: Any, folder: Any) -> Any:
    path = folder / "export.jsonl"
    count = graph.export(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        list(graph.export()),
        list(graph.export(types=["City"], branch="draft")),
        list(graph.export(types=["edge:Knows"], at="v1")),
        [count, [json.loads(line) for line in lines]],
        failure(lambda: list(graph.export(types=["Persn"]))),
        failure(lambda: list(graph.export(at="nowhere"))),
        failure(lambda: graph.export(path, types=["Persn"])),
        path.read_text(encoding="utf-8").splitlines() == lines,
        [file.name for file in folder.glob(".*")],
    ]


def analyses(graph: Any) -> Any:
    graph.branch_create("an/1")
    one = graph.on("an/1")
    one.apply_schema(str(one.schema).replace("age: I64?", "age: I64?\n    rank: F64?"))
    return [
        graph.analyze("degrees"),
        graph.analyze("components", nodes=["Person"], edges=["Knows"]),
        one.analyze("pagerank", nodes=["Person"], edges=["Knows"], write="rank", message="ranks"),
        failure(lambda: graph.analyze("nothing")),
        failure(lambda: graph.analyze("degrees", nodes=["Persn"])),
        failure(lambda: graph.analyze("pagerank", write="rank", at="v1")),
    ]


def embeddings(graph: Any) -> Any:
    return [failure(lambda: graph.embed(types=["Persn"])), failure(lambda: graph.embed(branch="nowhere"))]


BODIES = [
    queries,
    objects,
    duplicate_columns,
    query_files,
    pages,
    plans,
    query_errors,
    unknown_parameters,
    mutations,
    mutation_errors,
    rows,
    tables,
    networks,
    blobs,
    exports,
    analyses,
    embeddings,
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_gives_the_same(variants: Variants, body: Body) -> None:
    variants.check(body)
