"""Inserts and deletes: a stream of them drawn from an oracle, which applies them too, and their effect on a graph.

A delete of a person, a forum, a post or a comment also removes the threads below it. The oracle finds these rows with
SQL of its own; ours reads them and deletes them in one commit, if the branch has not moved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

import omnigraph as og
from bench.snb.oracle import TABLES
from bench.snb.workload import FOLDER, Params, sections, split_queries

INSERTS = ("iu1", "iu2", "iu3", "iu4", "iu5", "iu6", "iu7", "iu7c", "iu8")
"""The eight inserts; `iu7` adds a comment on a post and `iu7c` one on a comment."""
EDGE_DELETES = ("del2", "del3", "del5", "del8")
DELETES = ("del1", "del2", "del3", "del4", "del5", "del6", "del7", "del8")
THREADS = {"del1": "persons", "del4": "forums", "del6": "posts", "del7": "comments"}
"""Deletes that remove threads → the kind of their row."""
BELOW = {
    "forums": "forums",
    "posts_of": "posts",
    "posts_in": "posts",
    "comments_of": "comments",
    "comments_on": "comments",
    "replies": "comments",
}
"""The reads of a delete, in their order → the kind of the rows that they add.

A read starts at rows of one kind: `$p.number in $persons or $f.number in $forums` would read all posts.
"""
OURS = split_queries((FOLDER / "queries" / "updates.gq").read_text(encoding="utf-8"))
SQL = sections("updates", "sql")
SQL["iu7c"] = SQL["iu7"]
NUMBERS = {"person": 5_000_000, "forum": 100_000_000, "message": 1_000_000_000}
"""The first numbers of new rows, above those of every scale."""


@dataclass(frozen=True)
class Update:
    """One insert or delete with its parameters."""

    name: str
    params: Params


def apply(graph: og.Graph, update: Update, branch: str = "main") -> None:
    """Make an update on a branch of a graph, as one commit."""
    kind = THREADS.get(update.name)
    if kind is None:
        graph.mutate(OURS[update.name], update.params, branch=branch)
        return
    head = graph.head(branch).commit_id
    doomed: dict[str, list[int]] = {one: [] for one in THREADS.values()} | {kind: list(update.params.values())}
    for read, found in BELOW.items():
        doomed[found] = list(dict.fromkeys(doomed[found] + _numbers(graph, read, doomed, branch)))
    graph.mutate(OURS["del1"], doomed, branch=branch, if_commit=head)


def _numbers(graph: og.Graph, name: str, doomed: dict[str, list[int]], branch: str) -> list[int]:
    """The numbers that one of the reads of `updates.gq` finds."""
    given = {key: doomed[key] for key in re.findall(r"\$(\w+): \[I64\]", OURS[name])}
    return [row["number"] for row in graph.query(OURS[name], given, branch=branch).to_pylist()]


def apply_to_oracle(db: Any, update: Update) -> None:
    """Make an update in the tables of the oracle."""
    db.execute("CREATE TEMP TABLE IF NOT EXISTS gone (number BIGINT)")
    for statement in f"{SQL[update.name]};{SQL['sweep']}".split(";"):
        used = set(re.findall(r"\$(\w+)", statement))
        db.execute(statement, {key: value for key, value in update.params.items() if key in used})


def last_rows(db: Any) -> dict[str, int]:
    """The number of the last row of each table: rows that are inserted later have larger ones."""
    return {table: db.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] for table in TABLES}


class Stream:
    """Updates drawn from the rows of an oracle, to which each is applied at once.

    `first` distinguishes the numbers of two streams. With `rows`, new rows refer to these rows only, and only they are
    deleted.
    """

    def __init__(self, db: Any, seed: int, first: int = 0, rows: Mapping[str, int] | None = None) -> None:
        self._db, self._rows = db, rows
        self._rng = np.random.default_rng(seed)
        self._next = {table: number + first for table, number in NUMBERS.items()}

    def take(self, name: str) -> Update:
        """Draw an update and apply it to the oracle."""
        update = Update(name, self._draw(name))
        apply_to_oracle(self._db, update)
        return update

    def _draw(self, name: str) -> Params:
        match name:
            case "iu1":
                return self._new_person()
            case "iu2" | "iu3":
                message = self._row("message", "number, creationDate", "is_post" if name == "iu2" else "NOT is_post")
                others = f"number NOT IN (SELECT person FROM likes WHERE message = {message[0]})"
                person = self._row("person", "number, creationDate", others)
                key = "post" if name == "iu2" else "comment"
                return {"person": person[0], key: message[0], "creationDate": self._after(person[1], message[1])}
            case "iu4":
                person = self._row("person", "number, creationDate, firstName")
                number, tag = self._number("forum"), self._row("tag", "number")[0]
                given = {"number": number, "title": f"Wall {number} of {person[2]}", "moderator": person[0], "tag": tag}
                return given | {"creationDate": self._after(person[1])}
            case "iu5":
                forum = self._row("forum", "number, creationDate")
                others = f"number NOT IN (SELECT person FROM member WHERE forum = {forum[0]})"
                person = self._row("person", "number, creationDate", others)
                return {"forum": forum[0], "person": person[0], "joinDate": self._after(forum[1], person[1])}
            case "iu6":
                forum = self._row("forum", "number, creationDate")
                given = self._new_message(forum[0], forum[1])
                return given | {"tag2": self._row("tag", "number", f"number <> {given['tag1']}")[0]}
            case "iu7" | "iu7c":
                which = "is_post" if name == "iu7" else "NOT is_post"
                parent = self._row("message", "number, creationDate, forum, root, language", which)
                given = self._new_message(parent[2], parent[1]) | {"parent": parent[0], "root": parent[3]}
                return {"tag" if key == "tag1" else key: value for key, value in given.items()} | {
                    "language": parent[4]
                }
            case "iu8":
                a = self._row("person", "number, creationDate")
                others = f"number <> {a[0]} AND number NOT IN (SELECT b FROM knows WHERE a = {a[0]})"
                b = self._row("person", "number, creationDate", others)
                return {"a": a[0], "b": b[0], "creationDate": self._after(a[1], b[1])}
            case _:
                return self._doomed(name)

    def _doomed(self, name: str) -> Params:
        """The row that a delete removes."""
        source, columns, condition = {
            "del1": ("person", "person", "true"),
            "del2": ("likes", "person, post", "message IN (SELECT number FROM message WHERE is_post)"),
            "del3": ("likes", "person, comment", "message IN (SELECT number FROM message WHERE NOT is_post)"),
            "del4": ("forum", "forum", "true"),
            "del5": ("member", "forum, person", "true"),
            "del6": ("message", "post", "is_post"),
            "del7": ("message", "comment", "NOT is_post"),
            "del8": ("knows", "a, b", "true"),
        }[name]
        keys = columns.split(", ")
        stored = ["message" if key in ("post", "comment") and source == "likes" else key for key in keys]
        row = self._row(source, ", ".join(stored) if len(stored) > 1 else "number", condition)
        return dict(zip(keys, row, strict=True))

    def _new_person(self) -> Params:
        number, like = self._number("person"), self._row("person", "firstName, lastName, gender, birthday, city")
        names = ("firstName", "lastName", "gender", "birthday", "city")
        known = self._row("person", "creationDate, locationIP, browserUsed, speaks")
        tag = self._row("tag", "number")[0]
        return dict(zip(names, like, strict=True)) | {
            "number": number,
            "creationDate": self._after(known[0]),
            "locationIP": known[1],
            "browserUsed": known[2],
            "speaks": known[3],
            "email": [f"p{number}@mail.example"],
            "tag1": tag,
            "tag2": self._row("tag", "number", f"number <> {tag}")[0],
            "university": self._row("organisation", "number", "kind = 'university'")[0],
            "classYear": like[3].year + 20,
            "company": self._row("organisation", "number", "kind = 'company'")[0],
            "workFrom": like[3].year + 25,
        }

    def _new_message(self, forum: int, since: datetime) -> Params:
        person = self._row("person", "number, creationDate, locationIP, browserUsed, speaks")
        content = self._row("message", "content", "content IS NOT NULL")[0]
        return {
            "number": self._number("message"),
            "creationDate": self._after(since, person[1]),
            "locationIP": person[2],
            "browserUsed": person[3],
            "content": content,
            "language": person[4][-1],
            "length": len(content),
            "creator": person[0],
            "forum": forum,
            "country": self._row("place", "number", "kind = 'country'")[0],
            "tag1": self._row("tag", "number")[0],
        }

    def _row(self, table: str, columns: str, condition: str = "true") -> tuple[Any, ...]:
        """A random row. DuckDB keeps the order of insertion, so the draw is deterministic."""
        if self._rows is not None:
            condition = f"({condition}) AND rowid <= {self._rows[table]}"
        source = f"FROM {table} WHERE {condition}"
        at = int(self._rng.integers(0, self._db.execute(f"SELECT count(*) {source}").fetchone()[0]))
        row = self._db.execute(f"SELECT rowid {source} LIMIT 1 OFFSET {at}").fetchone()[0]
        return tuple(self._db.execute(f"SELECT {columns} FROM {table} WHERE rowid = {row}").fetchone())

    def _number(self, table: str) -> int:
        self._next[table] += 1
        return self._next[table]

    def _after(self, *dates: datetime) -> datetime:
        """A date after all of these."""
        return max(dates) + timedelta(milliseconds=int(self._rng.integers(1, 20 * 86_400_000)))
