"""Mutated files end in records, rejects or a typed error, in memory and for an inferred schema."""

from __future__ import annotations

import re
from random import Random

import pytest

from omnigraph.engine.graph_files.graph_file import read_graph_file
from omnigraph.engine.ingest.records import Faults
from omnigraph.errors import OmniGraphError
from omnigraph.operations.inference.graph_files import infer_graph
from omnigraph.operations.load.record_sources import find_input_files
from omnigraph.schema.check import compile_schema
from omnigraph.table_format import TableFormat
from unit.engine.graph_files.test_neo4j import FILES, MOVIES
from unit.operations.formats.test_graph_export import GRAPHML, SMALL

WORD = re.compile(rb"[A-Za-z0-9]+")
BYTES = [
    b'"',
    b"<",
    b">",
    b"&",
    b";",
    b":",
    b",",
    b"\n",
    b"\r",
    b"\x00",
    b"\xff",
    b"[",
    b"]",
    b"<!ENTITY a 'b'>",
    b"()",
]


def mutated(data: bytes, random: Random) -> bytes:
    for _ in range(random.randint(1, 4)):
        start = random.randrange(len(data) + 1)
        match random.randrange(12):
            case 0:
                data = data[:start] + data[start + random.randint(1, 20) :]
            case 1:
                data = data[:start] + random.choice(BYTES) + data[start:]
            case 2:
                data = data[:start] + data[start : start + 40] + data[start:]
            case 3:
                data = data[:start]
            case _:
                words = WORD.findall(data) or [b""]
                data = data.replace(random.choice(words), random.choice([*words, b"", b"0", b"[", b";"]), 2)
    return data


@pytest.mark.parametrize("format", ["neo4j", "graphml"])
def test_mutated_files(tmp_path, format):
    random = Random(7)
    files = FILES if format == "neo4j" else {"x.graphml": GRAPHML}
    catalog = compile_schema(MOVIES if format == "neo4j" else SMALL)
    outcomes = {"records": 0, "refused": 0}
    for _ in range(60):
        changed = random.choice(list(files))
        for name, text in files.items():
            data = text.encode()
            (tmp_path / name).write_bytes(mutated(data, random) if name == changed else data)
        try:
            found = find_input_files([str(tmp_path)], {}, TableFormat(graph_format=format))
            for file in found:
                for _, part in read_graph_file(file, catalog, Faults(collect=True)):
                    assert len(part.lines) == len(part.data)
                    assert len(part.src) == len(part.dst) == (len(part.lines) if part.type.kind == "edge" else 0)
            infer_graph([str(tmp_path)], format, TableFormat(), {})
            outcomes["records"] += 1
        except OmniGraphError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 5
