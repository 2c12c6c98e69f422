"""Loads are the same in every form of a graph: their inputs, results, rejected records and errors."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from support.graph_variants import Body, Variants, failure

NEW = [
    {"type": "Person", "data": {"name": "di", "age": 2**61, "born": "2000-01-01", "photo": "base64:aGk="}},
    {"type": "City", "data": {"name": "Bonn"}},
    {"edge": "LivesIn", "from": "di", "to": "Bonn", "data": {"id": "l2"}},
]
WRONG = [
    {"type": "Person", "data": {"name": "el", "age": "old"}},
    {"type": "Persn", "data": {"name": "el"}},
    {"type": "City", "data": {"name": "Kiel"}},
    {"edge": "Knows", "from": "ana", "to": "nobody"},
]


def records(graph: Any) -> Any:
    graph.branch_create("ld/1")
    one = graph.on("ld/1")
    loaded = one.load(NEW, mode="merge", message="new people", job_id="job-of-ld1")
    again = one.load(NEW, mode="merge", job_id="job-of-ld1")
    kept = one.load([{"type": "Person", "data": {"name": "di", "state": "on"}}], mode="merge")
    nulls = one.load([{"type": "Person", "data": {"name": "di", "state": "on"}}], mode="merge", missing="null")
    replaced = one.load([{"edge": "Knows", "from": "bo", "to": "di"}], mode="overwrite")
    rows = [one.get("Person", "di"), one.commits(limit=3)]
    return [loaded, again, kept, nulls, replaced, rows, failure(lambda: one.load(NEW, mode="append"))]


def created_branches(graph: Any) -> Any:
    made = graph.ingest(NEW, branch="ld/2", message="a new branch")
    more = graph.ingest([{"type": "City", "data": {"name": "Oslo"}}], branch="ld/2", from_branch="draft")
    named = failure(lambda: graph.ingest(NEW, branch=""))
    return [made, more, graph.head("ld/2").fork_branch, named, failure(lambda: graph.ingest(NEW, branch="secret"))]


def rejected(graph: Any) -> Any:
    graph.branch_create("ld/3")
    found: list[Any] = []
    loaded = graph.load(WRONG, mode="merge", branch="ld/3", rejects=found)
    return [loaded, found, graph.get("City", "Kiel", branch="ld/3")]


def rejects_of_files(graph: Any, folder: Any) -> Any:
    graph.branch_create("ld/4")
    path = folder / "wrong.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in WRONG), encoding="utf-8")
    loaded = graph.load(path, mode="merge", branch="ld/4", rejects=folder / "rejects.jsonl")
    lines = (folder / "rejects.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        loaded,
        [json.loads(line) for line in lines],
        failure(lambda: graph.load(path, mode="merge", branch="ld/4")),
    ]


def files(graph: Any, folder: Any) -> Any:
    graph.branch_create("ld/5")
    one = graph.on("ld/5")
    cities = folder / "City.csv"
    cities.write_text("name\nBern\nGraz\n", encoding="utf-8")
    people = folder / "people.jsonl"
    people.write_text("".join(json.dumps(record) + "\n" for record in NEW), encoding="utf-8")
    both = one.load([cities, people], mode="merge")
    missing = failure(lambda: one.load(folder / "missing.jsonl", mode="merge"))
    broken = folder / "broken.jsonl"
    broken.write_text('{"type": "City", "data": {"name": "a"}}\n{"type"\n', encoding="utf-8")
    return [both, missing, failure(lambda: one.load(broken, mode="merge")), one.to_arrow("City", columns=["name"])]


def arrow_tables(graph: Any) -> Any:
    graph.branch_create("ld/6")
    one = graph.on("ld/6")
    people = pa.table({"name": ["di", "el"], "age": [1, None], "tags": [["a"], []]})
    knows = pa.table({"src": ["di"], "dst": ["el"]})
    loaded = one.load({"Person": people, "Knows": knows}, mode="merge")
    wrong = failure(lambda: one.load({"Person": pa.table({"name": ["x"], "nothing": [1]})}, mode="merge"))
    return [loaded, one.get("Person", "di"), len(list(one.to_arrow("Knows").to_pylist())), wrong]


def errors(graph: Any) -> Any:
    return [
        failure(lambda: graph.load(NEW)),
        failure(lambda: graph.load(NEW, mode="replace")),
        failure(lambda: graph.load(NEW, mode="merge", missing="drop")),
        failure(lambda: graph.load(NEW, mode="merge", branch="nowhere")),
        failure(lambda: graph.load(NEW, mode="merge", branch="secret")),
        failure(lambda: graph.load(NEW, mode="merge", if_commit="other")),
        failure(lambda: graph.load(NEW, mode="merge", engine="fast")),
        failure(lambda: graph.load(7, mode="merge")),
        failure(lambda: graph.load([7], mode="merge")),
        failure(lambda: graph.load(WRONG, mode="merge")),
        failure(lambda: graph.load(WRONG[1:2], mode="merge")),
        failure(lambda: graph.load(WRONG[3:], mode="merge")),
        failure(lambda: graph.load([{"type": "Person", "data": {"name": "x", "color": 1}}], mode="merge")),
    ]


BODIES = [records, created_branches, rejected, rejects_of_files, files, arrow_tables, errors]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_does_the_same(written: Variants, body: Body) -> None:
    written.check(body)
