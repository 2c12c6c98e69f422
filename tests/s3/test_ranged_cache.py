"""A machine that opens a graph on an object store reads the ranges of search structures that its queries touch."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bench.counting_proxy import Proxy, Recorded, proxy_to

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.engine.adjacency import adjacency
from omnigraph.engine.adjacency.csr_overlay import CsrOverlay
from omnigraph.engine.adjacency.ranged_csr import RangedCsr
from omnigraph.engine.cache import disk_cache, id_segments, remote_cache, user_folder
from omnigraph.engine.search import cluster_segments, inverted_index, vector_scan
from omnigraph.graph_handle import cache_of
from omnigraph.storage.files.location import locate
from omnigraph.storage.files.objects import object_store

SCHEMA = """
node Item { name: String @key  note: String @index }
edge Link: Item -> Item { weight: I32 }
"""
COUNT = 3_000
TUNED = {
    "adjacency_disk_edges_min": 20,
    "adjacency_changed_edges_min": 20,
    "segment_rows_min": 100,
    "postings_disk_rows_min": 10,
    "id_segments_rows_min": 10,
    "complete_column_rows": 1,
    "remote_cache_list_s": 0.0,
    "remote_block_bytes": 256,
    "remote_ranged_bytes_min": 1,
    "disk_cache_large_bytes": 1_024,
}
HOP = 'query q() { match { $a: Item { name: "i1500" }  $a link $b } return { $b.name as name } order { $b.name } }'
BACK = 'query q() { match { $a: Item { name: "i700" }  $b link $a } return { $b.name as name } order { $b.name } }'
FAR = 'query q() { match { $a: Item { name: "i2999" }  $a link{1,3} $b } return { $b.name as name } order { $b.name } }'
EDGE = (
    'query q() { match { $a: Item { name: "i9" }  $a $e:link $b } '
    "return { $e.weight as w  $b.name as name } order { $b.name } }"
)
RARE = 'query q() { match { $a: Item } return { $a.name as name } order { bm25($a.note, "word1500 word77") } limit 3 }'
COMMON = 'query q() { match { $a: Item } return { $a.name as name } order { bm25($a.note, "red word8") } limit 5 }'
HOLDS = 'query q() { match { $a: Item  search($a.note, "word42") } return { $a.name as name } }'
FUZZY = 'query q() { match { $a: Item  fuzzy($a.note, "wurd2222", 1) } return { $a.name as name } order { $a.name } }'
PAIRS = (
    'query q() { match { $a: Item { name: "i1500" }  $b: Item { name: "i750" }  $a link $b } '
    "return { count($b) as n } }"
)
EVERY = "query q() { match { $a: Item  $a link $b } return { count($b) as n } }"
QUERIES = (HOP, BACK, FAR, RARE, COMMON, HOLDS, FUZZY, PAIRS, EVERY)


def items(first: int, last: int) -> list[dict[str, Any]]:
    nodes = [{"type": "Item", "data": {"name": f"i{at}", "note": f"red word{at}"}} for at in range(first, last)]
    edges = [(at, at // part) for at in range(max(first, 1), last) for part in (2, 3)]
    return nodes + [{"edge": "Link", "from": f"i{a}", "to": f"i{b}", "data": {"weight": a % 7}} for a, b in edges]


def answers(graph: og.Graph, queries: tuple[str, ...] = QUERIES) -> list[list[Any]]:
    return [graph.query(query).to_pylist() for query in queries]


@pytest.fixture(scope="module")
def proxy(s3) -> Iterator[Proxy]:
    with proxy_to(s3) as found:
        yield found


class Machines:
    """A graph in a bucket that one machine loaded, and other machines with cache folders of their own."""

    numbers = count()

    def __init__(self, s3: Any, folder: Path) -> None:
        self.s3 = s3
        self.uri = f"s3://graphs/ranged-{next(self.numbers)}"
        self.objects = object_store(locate(self.uri, s3.environ))
        self._folder = folder

    def environ(self, name: str, way: Any = None) -> dict[str, str]:
        return {**(way or self.s3).environ, user_folder.VARIABLE: str(self._folder / name)}

    def open(self, name: str, way: Any = None, **given: Any) -> og.Graph:
        return og.open(self.uri, environ=self.environ(name, way), **given)

    def load(self, schema: str = SCHEMA, records: Any = None) -> og.Graph:
        graph = og.init(self.uri, schema, environ=self.environ("first"))
        graph.load(items(0, COUNT) if records is None else records, mode="append")
        graph.optimize()
        return graph

    def arrays(self, name: str) -> list[str]:
        """The objects of an array of the adjacency `out` in the bucket, or of another entry with such an array."""
        found = []
        for one in self.objects.list(remote_cache._folder()):
            entry = json.loads(self.objects.read(one) or b"")["entry"]
            if name in entry["arrays"] and (entry["what"][0] != "adjacency" or entry["what"][-1] == "out"):
                found.append(f"{remote_cache._folder()}/{one.rpartition('.json')[0].rpartition('.')[2]}/{name}")
        return found


@pytest.fixture(scope="module")
def shared(s3, tmp_path_factory) -> tuple[Machines, list[list[Any]]]:
    """A graph that tests only read, and its answers on the machine that computed all structures."""
    machines = Machines(s3, tmp_path_factory.mktemp("machines"))
    with tuning.replaced(**TUNED):
        return machines, answers(machines.load())


@pytest.fixture
def own(s3, tmp_path) -> tuple[Machines, list[list[Any]]]:
    """A graph that a test changes."""
    machines = Machines(s3, tmp_path)
    return machines, answers(machines.load())


@pytest.fixture(autouse=True)
def low_thresholds(tune) -> None:
    tune(**TUNED)


@pytest.fixture
def forbid_builds(monkeypatch) -> Callable[[], None]:
    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("built again")

    def forbid() -> None:
        monkeypatch.setattr(adjacency, "write_targets", refuse)
        monkeypatch.setattr(inverted_index, "write_index", refuse)
        monkeypatch.setattr(inverted_index, "build_inverted_index", refuse)
        monkeypatch.setattr(id_segments, "crc32_texts", refuse)
        monkeypatch.setattr(vector_scan, "_blocks", refuse)
        monkeypatch.setattr(cluster_segments, "cluster", refuse)

    return forbid


def run(graph: og.Graph, query: str, found: list[Any]) -> None:
    found.append(graph.query(query).to_pylist())


def read(recorded: Recorded, *names: str) -> int:
    """The bytes of arrays of search structures that were transferred."""
    paths = [one for one in recorded.before if "__cache/" in one.path and one.path.rpartition("/")[2] in names]
    return sum(one.size for one in paths if one.status == 206)


def test_the_first_queries_of_a_machine_transfer_what_they_touch(shared, proxy):
    machines, expected = shared
    sizes = {name: len(machines.objects.read(machines.arrays(name)[0]) or b"") for name in ("targets", "words", "ids")}
    for number, (query, arrays) in enumerate(
        ((HOP, ("targets", "offsets")), (RARE, ("words", "lengths")), (HOP, ("ids",)))
    ):
        transferred: list[int] = []
        for _ in range(2):
            graph = machines.open(f"new{number}", proxy)
            found: list[Any] = []
            recorded = proxy.record(partial(run, graph, query, found))
            assert found == [expected[QUERIES.index(query)]]
            transferred.append(read(recorded, *arrays))
        assert 0 < transferred[0] < 0.1 * sizes[arrays[0]], "\n".join(recorded.trace())
        assert transferred[1] == 0, "a later process uses the blocks that are there"


def test_a_machine_that_reads_ranges_gives_equal_answers(shared, forbid_builds):
    machines, expected = shared
    edges = machines.open("first").query(EDGE).to_pylist()
    forbid_builds()
    graph = machines.open("second", read_only=True)
    assert answers(graph) == expected
    assert answers(machines.open("second")) == expected
    assert machines.open("second").query(EDGE).to_pylist() == edges


def ranged_of(graph: og.Graph) -> list[str]:
    """The kinds of the incomplete entries of a machine."""
    found = []
    for path in cache_of(graph).folder.glob("*/about.json"):
        entry = json.loads(path.read_text())["entry"]
        if disk_cache.is_incomplete(entry):
            found.append(entry["what"][0])
    return sorted(set(found))


def test_structures_stay_incomplete_until_they_are_read(shared):
    machines, _ = shared
    graph = machines.open("partial")
    graph.query(HOP)
    graph.query(RARE)
    assert ranged_of(graph) == ["adjacency", "ids", "postings"]
    entries = cache_of(graph)._entries.items()
    walked = [value for key, (value, _) in entries if key[-1].startswith("neighbours:out")]
    assert walked
    assert all(isinstance(neighbours, RangedCsr) for neighbours, _ in walked)
    machines.open("partial").verify()


def test_commits_are_overlaid_on_ranges(own):
    machines, _ = own
    graph = machines.open("second")
    graph.query(HOP)
    graph.load(items(COUNT, COUNT + 5), mode="append")
    graph.mutate('query q() { delete Link where from = "i1500" and to = "i500" }')
    graph.mutate('query q() { delete Item where name = "i3" }')
    graph.mutate('query q() { update Item set { note: "blue word77" } where name = "i1500" }')
    found = answers(graph)
    overlays = [
        value[0] for key, (value, _) in cache_of(graph)._entries.items() if key[-1].startswith("neighbours:out")
    ]
    assert any(isinstance(one, CsrOverlay) and isinstance(one.base, RangedCsr) for one in overlays)
    assert found == answers(machines.open("first"))
    assert [row["name"] for row in graph.query(HOP)] == ["i750"]


@pytest.mark.parametrize("harm", ["remove", "damage", "read-only"])
def test_a_structure_that_is_lost_while_it_is_read_is_computed(own, caplog, harm):
    machines, expected = own
    graph = machines.open("second", read_only=harm == "read-only")
    assert graph.query(HOP).to_pylist() == expected[0]
    assert graph.query(RARE).to_pylist() == expected[3]
    assert ranged_of(graph) == ["adjacency", "ids", "postings"]
    for name in ("targets", "words", "ids"):
        for one in machines.arrays(name):
            if harm == "remove":
                machines.objects.delete(one)
            else:
                data = machines.objects.read(one) or b""
                machines.objects.write(one, bytes(byte ^ 255 for byte in data))
    with caplog.at_level(logging.WARNING, "omnigraph"):
        assert answers(graph) == expected
        assert answers(machines.open("second")) == expected
        assert answers(machines.open("third")) == expected
    assert ("is damaged and is built again" in caplog.text) == (harm != "remove")
    back = graph.neighbors("Item", "i700").neighbors if harm == "remove" else ()
    assert harm != "remove" or {one.id for one in back} >= {"i350", "i1400"}


def test_a_replaced_entry_is_read_by_no_one(own):
    """A machine uses blocks of an upload that another machine replaced, and what it lacks is computed."""
    machines, _ = own
    graph = machines.open("second")
    graph.query(HOP)
    other = machines.open("third")
    other.load(items(COUNT, 2 * COUNT), mode="append")
    other.optimize()
    assert answers(graph) == answers(other)


DIM = 32
PLACES = "node Place { name: String @key  n: I64  at: Vector(32) @index }"
GROUPS = 60
TUNED_VECTORS = {"vector_disk_bytes_min": 1, "vector_index_rows_min": 100, "vector_exact_rows_max": 8}
VECTOR_ARRAYS = ("codes", "scales", "errors", "norms", "matrix", "rows")


def vectors(count: int, seed: int) -> Any:
    """Vectors around a few directions."""
    random = np.random.default_rng(seed)
    groups = np.random.default_rng(5).standard_normal((GROUPS, DIM))
    return (groups[np.arange(count) % GROUPS] + 0.1 * random.standard_normal((count, DIM))).astype(np.float32)


def places(count: int, seed: int, first: int = 0) -> dict[str, Any]:
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors(count, seed).ravel()), DIM)
    numbers = list(range(first, first + count))
    return {"Place": pa.table({"name": [f"p{at}" for at in numbers], "n": numbers, "at": flat})}


def nearest(graph: og.Graph, vector: Any, way: str = ", approx", match: str = "$p: Place") -> list[Any]:
    text = (
        f"query q($v: Vector({DIM})) {{ match {{ {match} }} return {{ $p.name as name }} "
        f"order {{ nearest($p.at, $v{way}) }} limit 10 }}"
    )
    return graph.query(text, params={"v": vector.tolist()}).to_pylist()


@pytest.fixture(params=[1, 1 << 28], ids=["vectors in tables", "vectors copied"])
def map_of(request, s3, tmp_path, tune) -> tuple[Machines, og.Graph]:
    tune(**TUNED_VECTORS, vector_copy_bytes_max=request.param)
    machines = Machines(s3, tmp_path)
    graph = machines.load(PLACES, places(COUNT, 1))
    nearest(graph, vectors(1, 9)[0])
    graph.optimize()
    return machines, graph


def test_nearest_rows_are_found_by_the_ranges_of_their_clusters(map_of, proxy, forbid_builds):
    machines, writer = map_of
    wanted = vectors(4, 7)
    expected = [[nearest(writer, vector, way) for way in (", approx", "")] for vector in wanted]
    assert expected[0][0] == expected[0][1]
    few = [nearest(writer, wanted[0], way, "$p: Place  $p.n < 300") for way in (", approx", "")]
    size = sum(len(machines.objects.read(one) or b"") for name in VECTOR_ARRAYS for one in machines.arrays(name))
    forbid_builds()
    sizes = []
    for _ in range(2):
        graph = machines.open("second", proxy)
        found: list[Any] = []
        recorded = proxy.record(lambda graph=graph, found=found: found.append(nearest(graph, wanted[0])))
        assert found == [expected[0][0]]
        sizes.append(read(recorded, *VECTOR_ARRAYS))
    assert 0 < sizes[0] < 0.35 * size
    assert sizes[1] == 0, "a later process uses the blocks that are there"
    assert {"clusters", "vectors"} <= {*ranged_of(machines.open("second"))}
    graph = machines.open("third")
    assert [nearest(graph, wanted[0], way, "$p: Place  $p.n < 300") for way in (", approx", "")] == few
    assert [[nearest(graph, vector, way) for way in (", approx", "")] for vector in wanted] == expected


def test_commits_after_the_clusters_are_searched_beside_ranges(map_of):
    machines, _ = map_of
    graph = machines.open("second")
    wanted = vectors(4, 7)
    nearest(graph, wanted[0])
    gone = [row["name"] for row in nearest(graph, wanted[0])[:2]]
    graph.mutate("query q($names: [String]) { delete Place where name in $names }", params={"names": gone})
    graph.load(places(20, 3, first=COUNT), mode="append")
    for vector in wanted:
        found = nearest(graph, vector)
        assert found == nearest(machines.open("fresh"), vector)
        assert found == nearest(graph, vector, way="")
        assert not {row["name"] for row in found} & {*gone}


def test_clusters_that_are_lost_while_they_are_read_are_computed(map_of, caplog):
    machines, writer = map_of
    wanted = vectors(4, 7)
    expected = [nearest(writer, vector) for vector in wanted]
    graph = machines.open("second")
    assert nearest(graph, wanted[0]) == expected[0]
    for one in (one for name in ("codes", "rows") for one in machines.arrays(name)):
        machines.objects.write(one, bytes(byte ^ 255 for byte in machines.objects.read(one) or b""))
    with caplog.at_level(logging.WARNING, "omnigraph"):
        assert [nearest(graph, vector) for vector in wanted] == expected
    assert "is damaged and is built again" in caplog.text


PROCESS = """
import json, sys
import omnigraph as og
from omnigraph.engine import tuning

uri, environ, tuned, queries = json.loads(sys.argv[1])
with tuning.replaced(**tuned):
    graph = og.open(uri, environ=environ)
    print(json.dumps([graph.query(query).to_pylist() for query in queries]))
"""


def test_processes_share_the_blocks_of_a_machine(shared):
    machines, expected = shared
    given = (machines.uri, machines.environ("together"), TUNED)
    orders = (QUERIES, QUERIES[::-1])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, json.dumps([*given, order])], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for order in orders
    ]
    outputs = [process.communicate(timeout=120) for process in started]
    found = [json.loads(out) for out, _ in outputs]
    assert found == [expected, expected[::-1]], [error.decode() for _, error in outputs]
    assert disk_cache.find_damaged(cache_of(machines.open("together")).folder) == []
