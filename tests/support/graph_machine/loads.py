"""Steps that load and ingest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import note

from omnigraph.graph import Graph
from omnigraph.operations.load.load_result import Reject
from support.graph_machine.commits import Branch
from support.graph_machine.comparison import is_of_type, record_of
from support.graph_machine.mutations import Mutations
from support.graph_machine.schema import GHOST
from support.graph_machine.values import ARROW, INTEGERS, WRONG, sample_or_null, stored_value
from support.graph_model import (
    AnyType,
    EdgeType,
    Record,
    Refusal,
    Row,
    Schema,
    Write,
    apply_write,
    derived_id,
    load_records,
)


def _move(record: Record, line: int) -> None:
    """Move a record to another line."""

    def placed(refusal: Refusal) -> Refusal:
        return Refusal(refusal.code, (f"line {line}:", *refusal.words[1:]))

    record.line = line
    record.shape = placed(record.shape) if record.shape is not None else None
    record.faults = [placed(fault) for fault in record.faults]


def _as_arrow(schema: Schema, raw: Sequence[Any], named: Sequence[str]) -> dict[str, pa.Table]:
    """Well-formed records as one table per type with all columns."""
    types = {type_.table: type_ for type_ in schema.types()}
    tables = {}
    for key in named:
        type_ = types[key]
        rows = [
            r
            for r in raw
            if (r.get("type") or r.get("edge", "")).lower() == type_.name.lower() and is_of_type(r, type_)
        ]
        columns = {"id": pa.array([r.get("data", {}).get("id") for r in rows], pa.utf8())}
        if isinstance(type_, EdgeType):
            columns |= {end: pa.array([r[end] for r in rows], pa.utf8()) for end in ("from", "to")}
        for name, prop in type_.props.items():
            values = [stored_value(prop, r.get("data", {}).get(name)) for r in rows]
            columns[name] = pa.array(values, ARROW[prop.type])
        tables[type_.name] = pa.table(columns)
    return tables


class Loads(Mutations):
    """Valid and invalid loads."""

    def load(self, random: Random, graph: Graph, size: int) -> None:
        mode = random.choice(("merge", "merge", "append", "overwrite"))
        tables = random.random() < 0.15
        raw, records, named = self.some_records(random, mode, size, strict=tables)
        given: Any = raw
        if tables:
            given = _as_arrow(self.schema, raw, named)
        elif random.random() < 0.5:
            given = self.as_file(random, raw, records)
        if tables:
            records = [replace(record, given=None) for record in records]
        loaded = load_records(self.schema, self.tables, mode, records, named if tables else ())
        note(f"load {mode} {self.branch}: {raw}")
        if mode != "overwrite" and not tables and random.random() < 0.2:
            self.load_what_is_right(graph, given, mode, records, sound=not loaded.refusals)
            return
        result = self.attempt(loaded.refusals, lambda: graph.load(given, mode=mode, branch=self.branch))
        if result is not None:
            assert dict(result.tables) == loaded.counts
            assert list(result.tables) == sorted(result.tables)
            self.loaded(result.commit_id, loaded.write)

    def load_what_is_right(
        self, graph: Graph, given: Any, mode: str, records: Sequence[Record], *, sound: bool
    ) -> None:
        """Invalid records are set aside; the others load as if given alone."""
        rejects: list[Reject] = []
        result = graph.load(given, mode=mode, branch=self.branch, rejects=rejects)
        lines = {reject.line for reject in rejects}
        assert sound == (not rejects)
        kept = [replace(record) for record in records if record.line not in lines]
        assert len(kept) == len(records) - len(lines)
        loaded = load_records(self.schema, self.tables, mode, kept, ())
        assert loaded.refusals == []
        counts = Counter(record.type.table for record in kept if record.type is not None)
        assert {key: rows for key, rows in result.tables if rows} == counts
        self.tally.refused["set aside"] += len(rejects)
        self.loaded(result.commit_id, loaded.write)

    def loaded(self, commit_id: str | None, write: Write) -> None:
        after = apply_write(self.tables, write)
        touched = [key for key, change in write.items() if change.rows or (change.replaced and self.tables[key])]
        if commit_id is None:
            assert touched == [], "a load that changes a table is a commit"
            return
        self.landed("load", commit_id, after, touched)

    def ingest(self, random: Random, graph: Graph, size: int) -> None:
        branch, source = random.choice(("main", "b1", "b2")), random.choice([*self.branches, "missing"])
        if branch not in self.branches and source not in self.branches:
            self.attempt(
                [Refusal("branch_not_found", ("'missing'",))],
                lambda: graph.ingest([], branch=branch, from_branch=source),
            )
            return
        created = branch not in self.branches
        if created:
            self.branches[branch] = Branch(self.branches[source].head, self.branches[source].head)
        self.branch = branch
        mode = random.choice(("merge", "append"))
        raw, records, _ = self.some_records(random, mode, size, strict=False)
        loaded = load_records(self.schema, self.tables, mode, records, ())
        note(f"ingest {mode} {branch} from {source}: {raw}")
        result = self.attempt(loaded.refusals, lambda: graph.ingest(raw, branch=branch, from_branch=source, mode=mode))
        if result is not None:
            assert (result.branch, result.base_branch, result.branch_created) == (branch, source, created)
            assert dict(result.tables) == loaded.counts
            self.loaded(result.commit_id, loaded.write)

    def some_records(
        self, random: Random, mode: str, size: int, *, strict: bool
    ) -> tuple[list[Any], list[Record], list[str]]:
        """Records in input form and in model form; `strict` records are well-formed."""
        types = random.sample(self.schema.types(), min(len(self.schema.types()), random.choice((1, 2, 3))))
        raw: list[Any] = []
        records: list[Record] = []
        if mode == "overwrite" and random.random() < 0.6:
            for type_ in types:
                for id_, row in self.tables[type_.table].items():
                    raw.append(record_of(type_, id_, row))
                    records.append(Record(len(raw), type_, dict(row), id_))
        ends = {node: list(self.tables[f"node:{node}"]) for node in self.schema.nodes}
        for _ in range(size if random.random() < 0.95 else 0):
            type_ = random.choice(types)
            one, record = self.some_record(random, type_, len(raw) + 1, ends)
            raw.append(one)
            records.append(record)
        if not strict and raw and random.random() < 0.2:
            for _ in range(random.choice((1, 1, 2))):
                where = random.randrange(len(raw))
                if records[where].shape is None and not records[where].faults:
                    raw[where] = self.spoiled(random, raw[where], records[where])
        order = list(range(len(raw)))
        if not strict:
            random.shuffle(order)
        raw, records = [raw[i] for i in order], [records[i] for i in order]
        for line, record in enumerate(records, 1):
            _move(record, line)
        return raw, records, [type_.table for type_ in types]

    def some_record(
        self, random: Random, type_: AnyType, line: int, ends: dict[str, list[str]]
    ) -> tuple[dict[str, Any], Record]:
        data: dict[str, Any] = {}
        row: Row = {}
        for name, prop in type_.props.items():
            given, row[name] = sample_or_null(random, prop)
            if given is not None or random.random() < 0.3:
                data[name] = given
        id_: str | None = None
        if isinstance(type_, EdgeType):
            id_ = f"e{random.randrange(6)}" if random.random() < 0.5 else None
            for end, node in (("src", type_.source), ("dst", type_.target)):
                row[end] = random.choice(ends[node]) if ends[node] and random.random() < 0.93 else GHOST
            kind = type_.name.lower() if random.random() < 0.1 else type_.name
            record: dict[str, Any] = {"edge": kind, "from": row["src"], "to": row["dst"]}
        else:
            record = {"type": type_.name}
            if not type_.key:
                id_ = f"n{random.randrange(6)}" if random.random() < 0.6 else None
                ends[type_.name] += [id_] if id_ is not None else []
            else:
                derived = derived_id(type_, row)
                ends[type_.name].append(derived)
                if random.random() < 0.2:
                    id_ = derived
                whole = [row[name] for name in type_.key if type_.props[name].type in INTEGERS]
                if whole and random.random() < 0.1:
                    id_ = f"{'-' if whole[0] < 0 else ''}00{abs(whole[0])}"
                    ends[type_.name].append(id_)
        if id_ is not None:
            data["id"] = id_
        if data or random.random() < 0.5:
            record["data"] = data
        return record, Record(line, type_, row, id_, given=frozenset(data))

    def spoiled(self, random: Random, raw: dict[str, Any], record: Record) -> Any:
        """The record with one error, which is recorded in the model."""
        type_ = record.type
        assert type_ is not None
        data = raw.setdefault("data", {})

        def shape(*words: str) -> None:
            record.shape = Refusal("bad_record", ("line {line}:", *words))

        def fault(*words: str) -> None:
            record.faults.append(Refusal("bad_record", ("line {line}:", *words)))

        choice = random.random()
        props = list(type_.props.items())
        if choice < 0.6 and props:
            name, prop = random.choice(props)
            if not prop.nullable and random.random() < 0.4:
                data[name] = None
                fault(f"{type_.name}.{name}")
            else:
                data[name], words = random.choice(WRONG[prop.type])
                fault(f"{type_.name}.{name}", words)
            return raw
        wrong = random.choice(("member", "data", "property", "both", "unknown", "column", "end", "list"))
        if wrong == "member":
            raw["extra"] = 1
            shape("'extra'")
        elif wrong == "data":
            raw["data"] = [1]
            shape("'data'")
        elif wrong == "property":
            data["nothing"] = None
            shape("'nothing'")
        elif wrong == "both":
            raw |= {"type": "Person", "edge": "Knows"}
            shape()
        elif wrong == "column":
            column = random.choice(("src", "dst", "_tombstone", "_rowid"))
            data[column] = "a"
            shape(f"'{column}'")
        elif wrong == "end" and isinstance(type_, EdgeType):
            end = random.choice(("from", "to"))
            raw[end] = random.choice((7, None))
            shape(f"'{end}'")
        elif wrong == "list":
            shape()
            return [raw]
        else:
            shape("'Nobody'")
            return {"type": "Nobody"}
        return raw

    def as_file(self, random: Random, raw: Sequence[Any], records: Sequence[Record]) -> Path:
        lines: list[str] = []
        for one, record in zip(raw, records, strict=True):
            while random.random() < 0.2:
                lines.append(random.choice(("", "  ", "// a remark", "\t// another")))
            lines.append(json.dumps(one, ensure_ascii=random.random() < 0.5))
            _move(record, len(lines))
            if record.shape is None and random.random() < 0.01:
                lines[-1] = random.choice(('{"type": ', '{"type": "Person", "type": "Person"}', "null"))
                record.shape = Refusal("bad_record", (f"line {len(lines)}:",))
        path = self.folder / "load.jsonl"
        path.write_text("\r\n".join(lines) if random.random() < 0.2 else "\n".join(lines) + "\n", encoding="utf-8")
        return path
