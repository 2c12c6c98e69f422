"""Records and tables in memory are loaded in parts with the result of a load in one part."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.memory_source import MemorySource, SpilledRecords, divide, held_records, memory_bytes
from omnigraph.pipeline.runner import InlineRunner
from support.bulk import MODES, GraphPair, Inputs, contents, outcome_of


def load_both(pair: GraphPair, data: Any, mode: str, part_bytes: int, *, set_aside: bool) -> None:
    """Load in one part and in several; results or errors must be equal."""
    request = LoadRequest(mode, set_aside=set_aside, fetch=pair.bulk._context.fetch)
    rejects: list[Any] | None = [] if set_aside else None
    expected = outcome_of(lambda: pair.memory.load(data, mode=mode, rejects=rejects))
    found = outcome_of(lambda: load_source(pair.bulk._repository, InlineRunner(), divide(data, part_bytes), request))
    assert found == expected
    assert contents(pair.bulk) == contents(pair.memory)


def records_of(inputs: Inputs, count: int) -> list[dict[str, Any]]:
    found = []
    for line in inputs.lines(count):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_random_records(tmp_path, seed):
    pair = GraphPair.below(tmp_path)
    chooser = random.Random(seed)
    inputs = Inputs(seed, tmp_path / "photos")
    for _ in range(3):
        inputs.wrong, inputs.tidy = chooser.choice([0, 0, 0.05, 0.2]), chooser.random() < 0.8
        mode = chooser.choice(MODES)
        inputs.repeats = mode == "merge"
        inputs.look_at(pair.memory)
        records = records_of(inputs, 40)
        load_both(pair, records, mode, chooser.choice([60, 400, 10_000]), set_aside=chooser.random() < 0.4)


@pytest.mark.parametrize("part_bytes", [1, 100, 10_000])
@pytest.mark.parametrize("set_aside", [False, True])
@pytest.mark.parametrize("wrong", [False, True])
def test_tables(tmp_path, part_bytes, set_aside, wrong):
    pair = GraphPair.below(tmp_path)
    ages = pa.array([*range(19), 151 if wrong else 19], pa.int32())
    data = {
        "Person": pa.table({"name": [f"p{at}" for at in range(20)], "age": ages}),
        "Knows": pa.table({"from": [f"p{at}" for at in range(19)], "to": ["p0"] * 18 + ["p1"]}),
        "Item": pa.table({"code": pa.array([], pa.utf8()), "kind": pa.array([], pa.utf8())}),
    }
    load_both(pair, data, "append", part_bytes, set_aside=set_aside)
    load_both(
        pair, {"Knows": pa.table({"from": ["p3", "p4"], "to": ["p5", "nobody"]})}, "merge", 1, set_aside=set_aside
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(tmp_path, library):
    frames = pytest.importorskip(library)
    pair = GraphPair.below(tmp_path)
    data = {"Person": frames.DataFrame({"name": [f"p{at}" for at in range(9)], "age": [1.0 * at for at in range(9)]})}
    load_both(pair, data, "append", 50, set_aside=False)


def test_inputs_of_unknown_size():
    assert memory_bytes(iter([])) is None
    assert memory_bytes({"Person": [1]}) is None
    assert memory_bytes([]) is None
    assert memory_bytes({}) is None


def test_a_large_input_is_divided(tmp_path):
    graph = og.init(tmp_path / "graph", "node Doc { key: String @key  text: String }", memory="64MiB", sync=False)
    steps: list[Any] = []
    text = "x" * 1000
    table = pa.table({"key": [f"d{at}" for at in range(12_000)], "text": [text] * 12_000})
    graph.load({"Doc": table}, mode="append", watch=steps.append)
    read = [step for step in steps if step.step == "read"]
    assert len(read) == read[0].total == 3
    assert graph.query("query q() { match { $d: Doc } return { count($d) as c } }").to_pylist() == [{"c": 12_000}]
    before = len(steps)
    graph.load({"Doc": table.slice(0, 10)}, mode="merge", watch=steps.append)
    assert len(steps) == before
    records = [{"type": "Doc", "data": {"key": f"d{at}", "text": text}} for at in range(4_000)]
    graph.load(records, mode="merge", watch=steps.append)
    assert len(steps) > before


def test_large_json_lines_are_read_in_splits(tmp_path):
    graph = og.init(tmp_path / "graph", "node Doc { key: String @key  text: String }", memory="64MiB", sync=False)
    path = tmp_path / "docs.jsonl"
    line = '{"type": "Doc", "data": {"key": "d%d", "text": "' + "x" * 1000 + '"}}\n'
    path.write_text("".join(line % at for at in range(9_000)))
    steps: list[Any] = []
    graph.load(path, mode="append", engine="memory", watch=steps.append)
    assert max(step.total for step in steps if step.step == "read") == 3


@pytest.mark.parametrize("seed", range(4))
def test_records_of_an_iterator(tmp_path, seed):
    """An iterator that exceeds the memory is written to files, and removed afterwards."""
    pair = GraphPair.below(tmp_path, memory="64MiB")
    inputs = Inputs(seed, tmp_path / "photos")
    inputs.wrong = 0.1 if seed % 2 else 0.0
    records = records_of(inputs, 60)
    request = LoadRequest("append", set_aside=True, fetch=pair.bulk._context.fetch)
    expected = outcome_of(lambda: pair.memory.load(records, mode="append", rejects=[]))
    with held_records(iter(records), 10, 1_000, tmp_path / "spill") as held:
        assert isinstance(held, MemorySource)
        assert [record for part in held.parts for record in part.records] == records
        assert all(isinstance(part.rows, SpilledRecords) for part in held.parts)
        found = outcome_of(lambda: load_source(pair.bulk._repository, InlineRunner(), held, request))
    assert found == expected
    assert contents(pair.bulk) == contents(pair.memory)
    assert not list((tmp_path / "spill").iterdir())


def test_small_iterators_are_lists_and_other_inputs_unchanged(tmp_path):
    records = [{"type": "Doc", "data": {"key": str(at)}} for at in range(250)]
    with held_records(iter(records), 1 << 20, 1_000, None) as held:
        assert held == records
    for data in (records, "a path", {"Doc": pa.table({"key": ["a"]})}, pa.table({"key": ["a"]}).to_reader()):
        with held_records(data, 1, 1, tmp_path) as held:
            assert held is data


def test_a_large_iterator_is_loaded_in_parts(tmp_path):
    graph = og.init(tmp_path / "graph", "node Doc { key: String @key  text: String }", memory="64MiB", sync=False)
    steps: list[Any] = []
    records = ({"type": "Doc", "data": {"key": f"d{at}", "text": "x" * 1000}} for at in range(9_000))
    graph.load(records, mode="append", watch=steps.append)
    assert max(step.total for step in steps if step.step == "read") == 3
    assert graph.query("query q() { match { $d: Doc } return { count($d) as c } }").to_pylist() == [{"c": 9_000}]
    assert not list((tmp_path / "graph" / "__cache").glob(".making-*"))


def test_records_that_cannot_be_written_are_held(tmp_path):
    records = [{"type": "Doc", "data": {"key": lambda: 1}}] * 3
    with held_records(iter(records), 1, 1, tmp_path) as held:
        assert isinstance(held, MemorySource)
        assert held.parts[0].records == records


_SCRIPT = """
import resource, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
import omnigraph as og
folder = sys.argv[1]
graph = og.init(f"{folder}/graph", "node Doc { key: String @key  v: Vector(256) }", memory="128MiB", sync=False)
graph.load([{"type": "Doc", "data": {"key": "a", "v": [0.0] * 256}}], mode="append")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
random = np.random.default_rng(1)
schema = pa.schema([("key", pa.utf8()), ("v", pa.list_(pa.float32(), 256))])
with pq.ParquetWriter(f"{folder}/Doc.parquet", schema) as file:
    for start in range(0, 100_000, 10_000):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.random(2_560_000, np.float32)), 256)
        file.write_table(pa.table({"key": [f"d{start + at}" for at in range(10_000)], "v": vectors}, file.schema))
assert graph.load(f"{folder}/Doc.parquet", mode="append", engine="memory").tables[0][1] == 100_000
graph.optimize()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.long
def test_the_peak_of_a_load_does_not_depend_on_its_size(tmp_path):
    """100,000 vectors have 102 MB; as Python numbers they need 800 MB."""
    done = subprocess.run([sys.executable, "-c", _SCRIPT, str(tmp_path)], check=True, capture_output=True, text=True)
    assert int(done.stdout.split()[-1]) < 600_000
