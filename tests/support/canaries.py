"""Canary values of every property type, and a graph that stores them wherever it can keep a value."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.storage.failpoints import FailpointError, arm
from support.groups import grouped

SCHEMA = """\
node Person {
  name: String @key
  text: String? @index
  note: String? @index
  small: I32?
  large: I64? @index
  count: U64?
  ratio: F64?
  day: Date?
  at: DateTime?
  code: Uuid?
  tags: [String]?
  photo: Blob?
  vec: Vector(4)?
  mood: enum(good, bad)?
}

node City {
  name: String @key
}

edge Knows: Person -> Person {
  why: String? @index
}

edge Lives: Person -> City {
  since: Date?
}
"""
SUBJECT = "canary-subject-7f3a"
LARGE = 0x7AFE5EED7AFE5EED
COUNT = 0xFEEDC0DEFEEDC0DE
RATIO = 1.2345678901234567e300
UUID = "5eed7afe-c0de-4eed-9afe-5eedc0de7afe"
VECTOR = [0.123456789, 0.987654321, 0.192837465, 0.564738291]
PHOTO = b"canary-photo-" + bytes(range(64)) * 3_000
VALUES: list[str | bytes] = [
    SUBJECT,
    "canary-text",
    "canary-note",
    "canary-tag",
    "canary-why",
    "canary-later",
    "canary-returned",
    struct.pack("<q", LARGE),
    struct.pack("<Q", COUNT),
    struct.pack("<d", RATIO),
    UUID,
    struct.pack("<4f", *VECTOR),
    PHOTO[:200],
]


def person(name: str, **values: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **values}}


def canary(**values: Any) -> dict[str, Any]:
    return person(
        SUBJECT,
        text="a canary-text about someone",
        note="canary-note",
        small=123_454_321,
        large=LARGE,
        count=COUNT,
        ratio=RATIO,
        day=date(1987, 6, 5),
        at=datetime(1987, 6, 5, 4, 3, 2),
        code=UUID,
        tags=["canary-tag", "other"],
        photo="base64:" + base64.b64encode(PHOTO).decode(),
        vec=VECTOR,
        mood="good",
        **values,
    )


def knows(one: str, other: str, **values: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": one, "to": other, "data": values}


def others(count: int = 12) -> list[dict[str, Any]]:
    return [
        person(f"p{number}", text=f"text {number}", large=number, vec=[float(number), 1.0, 2.0, 3.0])
        for number in range(count)
    ]


def fill(uri: str | Path, environ: Mapping[str, str] | None = None) -> Graph:
    """Put the subject wherever a graph can keep a value."""
    graph = og.init(uri, SCHEMA, environ=environ, sync=False)
    graph.load([*others(), canary(), {"type": "City", "data": {"name": "Rome"}}], mode="append")
    graph.load(
        [knows(SUBJECT, "p1", why="canary-why"), knows("p2", "p3", why="plain"), knows("p3", SUBJECT)], mode="append"
    )
    graph.load([{"edge": "Lives", "from": SUBJECT, "to": "Rome", "data": {"since": "1987-06-05"}}], mode="append")
    graph.optimize()
    # Derived structures: text index, adjacency, statistics.
    graph.query('match { $p: Person search($p.text, "canary") } return { $p.name }')
    graph.query("match { $p: Person $p knows $q } return { $p.name, $q.note }")
    graph.tag_create("before")
    graph.branch_create("side")
    graph.mutate(
        f'query q() {{ update Person set {{ note: "canary-later" }} where name = "{SUBJECT}" }}', branch="side"
    )
    # The rows that a repeated request returns are kept with its commit.
    where = f'where name = "{SUBJECT}"'
    text = f"query q($n: String) {{ update Person set {{ note: $n }} {where} as $p return {{ $p.note, $p.name }} }}"
    graph.mutate(text, {"n": "canary-returned"}, idempotency_key="once")
    grouped(
        graph,
        [
            lambda name=name: graph.mutate(f'query q() {{ upsert Person {{ name: "{name}", small: 7 }} }}')
            for name in ("p1", SUBJECT, "p2")
        ],
    )
    proposal = graph.propose("side", title="a change")
    proposal.comment("canary-note is wrong", on={"table_key": "node:Person", "row_id": SUBJECT})
    # A write that fails after it was staged leaves files that no version refers to.
    for failpoint in ("table.staged", "publish.before_commit"):
        with arm(failpoint), pytest.raises(FailpointError):
            graph.load([canary()], mode="merge")
    graph.mutate(f'query q() {{ delete Person where name = "{SUBJECT}" }}')
    return graph
