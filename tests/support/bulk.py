"""Random inputs for bulk loads, loaded in memory and as a job."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.operations.load.load_result import LoadResult, Reject
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import InlineRunner, Runner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource

MODES = ("append", "merge", "overwrite")
SCHEMA = """
node Person {
    name: String @key
    nick: String? @unique
    age: I32?
    mood: enum(calm, busy)?
    @range(age, 0..150)
    @check(name, "^[a-z0-9-]+$")
}
node Thing {
    label: String?
    sku: I64?
    size: F64?
    photo: Blob?
    @unique(label, sku)
}
node Day { on: Date @key  note: String? }
node Item {
    code: String @key
    kind: String
    title: String? @unique
    rank: I32?
    tags: [String]?
    @range(rank, 0..9)
}
edge Knows: Person -> Person @card(0..2) { since: Date?  @unique(src, dst) }
edge Owns: Person -> Thing { share: F32? }
edge Saw: Thing -> Day @card(1..3)
edge Rated: Person -> Item { on: Date?  stars: I32?  because: String  @unique(src, dst, on) }
"""
PHOTOS = ("a.jpg", "an empty one", "deep/c.jpg")
_FIRST_DAY = 19723
"""The first of January 2024."""
_LEFT = re.compile(r"(src|dst) '.*' still points at it")
_ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")


@dataclass
class GraphPair:
    """Two graphs with the same loads, one in memory and one as a job."""

    memory: Graph
    bulk: Graph
    runner: Runner
    split_bytes: int = 256

    @classmethod
    def below(cls, root: Path, schema: str = SCHEMA, runner: Runner | None = None, **settings: Any) -> GraphPair:
        """A new pair."""
        photos = root / "photos"
        (photos / "deep").mkdir(parents=True)
        for number, name in enumerate(PHOTOS):
            (photos / name).write_bytes(bytes(range(number)) * 9)
        given = {"sync": False, "environ": {}, "blob_sources": [photos], **settings}
        memory, bulk = (og.init(root / name, schema, **given) for name in ("memory", "bulk"))
        return cls(memory, bulk, runner or InlineRunner())

    def load(self, files: Iterable[Path], mode: str, *, set_aside: bool = False, missing: str = "keep") -> None:
        """Load on both; results or errors must be equal."""
        paths = [str(file) for file in files]
        expected = outcome_of(lambda: _in_memory(self.memory, paths, mode, set_aside, missing))
        found = outcome_of(lambda: self.bulk_load(paths, mode, set_aside=set_aside, missing=missing))
        assert found == expected
        assert contents(self.bulk) == contents(self.memory)

    def bulk_load(self, paths: list[str], mode: str, *, set_aside: bool = False, missing: str = "keep") -> LoadResult:
        """Load as a job only."""
        source = FileSource(plan_input(paths, {}, self.runner.parallelism, split_bytes=self.split_bytes))
        request = LoadRequest(mode, missing=missing, set_aside=set_aside, fetch=self.bulk._context.fetch)
        return load_source(self.bulk._repository, self.runner, source, request)


def _in_memory(graph: Graph, paths: list[str], mode: str, set_aside: bool, missing: str) -> LoadResult:
    rejects: list[Reject] | None = [] if set_aside else None
    return graph.load(paths if len(paths) > 1 else paths[0], mode=mode, missing=missing, rejects=rejects)


def outcome_of(run: Any) -> Any:
    """The result of a load without generated ids."""
    try:
        result = run()
    except OmniGraphError as error:
        return type(error).__name__, _masked(error.message), error.code, error.hint
    rejected = [
        (r.source, r.line, r.type_name, r.property, r.rule, _masked(r.reason), r.record) for r in result.rejected
    ]
    counts = result.embedded_rows, result.pending_embeddings, result.rejected_count, result.commit_id is None
    return result.tables, rejected, result.mode, result.notes, counts


def _masked(text: str) -> str:
    """The message without generated ids. If several committed edges lose a node, the order on disk decides which one is
    named.
    """
    return _LEFT.sub("<one> still points at it", _ULID.sub("<made>", text))


def contents(graph: Graph) -> list[str]:
    """Every record, sorted, without generated ids."""
    records = []
    for record in graph.export():
        if _ULID.fullmatch(record["data"]["id"]):
            record["data"]["id"] = "<made>"
        records.append(json.dumps(record, sort_keys=True))
    return sorted(records)


class Inputs:
    """Random records of `SCHEMA`: most are valid, some have one of many errors.

    A tidy input gives no key twice and mostly ends edges where there are nodes. Blobs are given, or referred to below
    the folder of photos.
    """

    def __init__(self, seed: int, photos: Path) -> None:
        self.random = random.Random(seed)
        self._photos = photos
        self.wrong = 0.0
        self.tidy = True
        self._given: set[str] = set()
        self.repeats = False
        """True if ids may repeat, as in a merge."""
        self._known: dict[str, list[str]] = {"p": [], "t": [], "d": [], "i": []}

    def look_at(self, graph: Graph) -> None:
        """Edges may end at committed nodes."""
        self._known = {"p": [], "t": [], "d": [], "i": []}
        for record in graph.export(types=["Person", "Thing", "Day", "Item"]):
            id_ = record["data"]["id"]
            if record["type"] == "Day":
                self._known["d"].append(f"d{int(record['data']['on']) - _FIRST_DAY}")
            elif id_[0] in "pti":
                self._known[id_[0]].append(id_)

    def lines(self, count: int) -> list[str]:
        """Lines of one file."""
        return [self._line() for _ in range(count)]

    def files(self, folder: Path, name: str) -> list[Path]:
        """One to three files with varying line ends and file ends."""
        found = []
        self._given = set()
        for number in range(self.random.choice([1, 1, 2, 3])):
            end = self.random.choice(["\n", "\n", "\r\n"])
            text = end.join(self.lines(self.random.randint(0, 30))) + self.random.choice(["", end, end + end])
            path = folder / f"{name}-{number}.jsonl"
            path.write_bytes(text.encode())
            found.append(path)
        return found

    def _line(self) -> str:
        if self.random.random() < self.wrong:
            return self._wrong_line()
        if self.random.random() < 0.05:
            return self.random.choice(["", "  ", "// a remark"])
        return json.dumps(self._record(), ensure_ascii=False)

    def _new(self, kind: str, choices: int) -> str:
        """An id for a node, unique in a valid input unless ids may repeat."""
        if self.repeats and self._known[kind] and self.random.random() < 0.4:
            return self.random.choice(self._known[kind])
        for _ in range(50):
            id_ = f"{kind}{self.random.randint(0, choices)}"
            if not self.tidy or id_ not in self._given:
                break
        self._given.add(id_)
        self._known[kind].append(id_)
        return id_

    def _old(self, kind: str, choices: int) -> str:
        """An id of a node that an edge may end at."""
        if self.tidy and self._known[kind] and self.random.random() < 0.995:
            return self.random.choice(self._known[kind])
        return f"{kind}{self.random.randint(0, choices)}"

    def _day_id(self) -> str:
        """The id of a day: its number, or its date as in older graphs."""
        day = self._old("d", 27)
        return _as_day(day) if self.random.random() < 0.03 else str(int(day[1:]) + _FIRST_DAY)

    def _edge_id(self) -> str:
        return f"e{self.random.randint(0, 300 if self.tidy else 30)}"

    def _name(self) -> str:
        return self._new("p", 400 if self.tidy else 40)

    def _thing(self) -> str:
        return self._new("t", 25)

    def _day(self) -> str:
        return _as_day(self._new("d", 27))

    def _record(self) -> dict[str, Any]:
        pick = self.random.random
        kinds = ["Person"] * 3 + ["Thing"] * 2 + ["Item"] * 3 + ["Rated"] * 2 + ["Day", "Knows", "Owns", "Saw"]
        kind = self.random.choice(kinds)
        if self.tidy and not all(self._known.values()):
            names = ("Person", "Thing", "Day", "Item")
            kind = next(name for name, known in zip(names, self._known.values(), strict=True) if not known)
        if kind == "Item":
            return self._item()
        if kind == "Person":
            data: dict[str, Any] = {"name": self._name()}
            if pick() < 0.2:
                data["nick"] = f"n{self.random.randint(0, 2000 if self.tidy else 60)}"
            if pick() < 0.5:
                data["age"] = self.random.choice([None, self.random.randint(0, 150)])
            if pick() < 0.3:
                data["mood"] = self.random.choice(["calm", "busy", None])
            return {"type": kind, "data": data}
        if kind == "Thing":
            data = {"id": self._thing()} if pick() < 0.7 else {}
            if pick() < 0.5:
                data |= {"label": f"l{self.random.randint(0, 40)}", "sku": self.random.randint(0, 4)}
            if pick() < 0.4:
                data["photo"] = self.random.choice(["base64:AQID", *(self._reference(name) for name in PHOTOS)])
            return {"type": kind, "data": data}
        if kind == "Day":
            day = self._day()
            data = {"on": day, "note": "x" * self.random.randint(0, 20)}
            if pick() < 0.1:
                data["id"] = day  # an old spelling of the id
            return {"type": kind, "data": data}
        data = {"id": self._edge_id()} if pick() < 0.4 else {}
        if kind == "Rated":
            data = data if pick() < 0.5 else {}
            if pick() < 0.9:
                data["because"] = f"b{self.random.randint(0, 9)}"
            if pick() < 0.7:
                data["on"] = self.random.choice([None, _as_day(f"d{self.random.randint(0, 3)}")])
            if pick() < 0.5:
                data["stars"] = self.random.choice([None, *range(6)])
            return {"edge": kind, "from": self._old("p", 40), "to": self._old("i", 40), "data": data}
        if kind == "Knows":
            return {"edge": kind, "from": self._old("p", 40), "to": self._old("p", 40), "data": data}
        if kind == "Owns":
            word = "owns" if pick() < 0.1 else kind
            return {"edge": word, "from": self._old("p", 40), "to": self._old("t", 25), "data": data}
        return {"edge": kind, "from": self._old("t", 25), "to": self._day_id(), "data": data}

    def _item(self) -> dict[str, Any]:
        """A record that may omit properties or set them to null."""
        pick = self.random.random
        known = len(self._known["i"])
        data: dict[str, Any] = {"code": self._new("i", 400 if self.tidy else 40)}
        is_new = len(self._known["i"]) > known
        if pick() < (0.97 if is_new else 0.3):
            data["kind"] = self.random.choice(["round", "square"])
        if pick() < 0.3:
            data["title"] = self.random.choice([None, f"t{self.random.randint(0, 1000 if self.tidy else 30)}"])
        if pick() < 0.4:
            data["rank"] = self.random.choice([None, *range(10)])
        if pick() < 0.2:
            data["tags"] = self.random.choice([None, [], ["a", "b"]])
        return {"type": "Item", "data": data}

    def _reference(self, name: str) -> str:
        return f"file://{self._photos}/{name}"

    def _wrong_line(self) -> str:
        name = f"p{self.random.randint(0, 400)}"
        wrong: list[Any] = [
            {"type": "Person", "data": {"name": name, "age": 151}},
            {"type": "Person", "data": {"name": name, "age": "old"}},
            {"type": "Person", "data": {"name": name.upper()}},
            {"type": "Person", "data": {"name": name, "mood": "mad"}},
            {"type": "Person", "data": {"age": 3}},
            {"type": "Person", "data": {"name": name, "id": "other"}},
            {"type": "Person", "data": {"name": name, "shoe": 43}},
            {"type": "Nobody", "data": {}},
            {"type": "Item", "data": {"code": "i1", "kind": None}},
            {"type": "Item", "data": {"code": "i1", "rank": 10}},
            {"type": "Item", "data": {"code": "new", "rank": 1}},
            {"edge": "Rated", "from": name, "to": "i1"},
            {"edge": "Rated", "from": name, "to": "i1", "data": {"stars": "6", "because": "x"}},
            {"edge": "Knows", "from": name, "to": "nobody"},
            {"edge": "Knows", "from": name, "to": 7},
            {"edge": "Saw", "from": "t1", "to": "2030-01-01"},
            {"type": "Day", "data": {"on": "2024-13-01"}},
            {"type": "Thing", "data": {"size": "NaN"}},
            {"type": "Thing", "data": {"photo": self._reference("none.jpg")}},
            {"type": "Thing", "data": {"photo": self._reference("../memory/_schema.pg")}},
            {"type": "Thing", "data": {"photo": "a.jpg"}},
            {"type": "Thing", "data": {"photo": "base64:A"}},
            [1, 2],
        ]
        broken = ["{", '{"type": "Person", "data": {"name": "a", "name": "b"}}', "\x00", '{"type": "Person"} x']
        chosen = self.random.choice([*wrong, *broken])
        return chosen if isinstance(chosen, str) else json.dumps(chosen)


def _as_day(id_: str) -> str:
    return f"2024-01-{int(id_[1:]) + 1:02}"
