"""Damaged, mixed and vanishing files of the disk cache cost time, but never cause a wrong result or a raw exception."""

from __future__ import annotations

import json
import logging
import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.search import cluster_segments, inverted_index
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph

SCHEMA = """\
node Item {
  name: String @key
  note: String
  place: Vector(4)
}

edge Link: Item -> Item {
  weight: I64
}
"""
ITEMS = 40
READS = (
    "query q() { match { $a: Item  $a link $b } return { $a.name as a, $b.name as b } order { $a.name, $b.name } }",
    'query q() { match { $a: Item { name: "i3" }  $a <link>{1,3} $b } return { $b.name as b } order { $b.name } }',
    'query q() { match { $i: Item  search($i.note, "red blue") } return { $i.name as name } order { $i.name } }',
    'query q() { match { $i: Item } return { $i.name as name } order { bm25($i.note, "green") } limit 9 }',
    "query q() { match { $i: Item } return { $i.name as name } order { nearest($i.place, [1, 2, 3, 4]) } limit 9 }",
    "query q() { match { $i: Item } return { $i.name } order { nearest($i.place, [1, 2, 3, 4], approx) } limit 3 }",
    'query q() { match { $a: Item { name: "i3" }  $a $e:link $b } return { $e.weight as w } order { $e.weight } }',
    "query q() { match { $a: Item  $a $e:link $b  $e.weight > 50 } return { count($a) as n, sum($e.weight) as w } }",
    "query q() { match { $a: Item  not { $a link $_ } } return { $a.name as a } order { $a.name } }",
    "query q() { match { $a: Item  $p: path { $a link{1,2} $b } } return { count($p) as n } }",
)
SHORT, LONG = 50, 5_000


@pytest.fixture(autouse=True, params=[1 << 20, 1], ids=["verified", "trusted"])
def keep_everything(tune, request):
    """Keep small structures on disk too; trust none or all files that did not change."""
    tune(
        adjacency_disk_edges_min=1,
        postings_disk_rows_min=1,
        vector_disk_bytes_min=1,
        vector_index_rows_min=1,
        vector_index_scan_share=1,
        disk_cache_large_bytes=request.param,
    )


def new_graph(path: Path, chance: random.Random) -> Graph:
    graph = og.init(path, SCHEMA)
    records: list[dict[str, object]] = []
    for at in range(ITEMS):
        note = " ".join(chance.choices(["red", "green", "blue", "white"], k=3))
        place = [chance.uniform(-1, 1) for _ in range(4)]
        records.append({"type": "Item", "data": {"name": f"i{at}", "note": note, "place": place}})
    ends = [chance.sample(range(ITEMS), 2) for _ in range(90)]
    records += [{"edge": "Link", "from": f"i{a}", "to": f"i{b}", "data": {"weight": a + b}} for a, b in ends]
    graph.load(records, mode="append")
    return graph


def answers(graph: Graph) -> list[list[dict[str, object]]]:
    return [list(graph.query(query)) for query in READS]


# -- one damaged file --------------------------------------------------------------------------------


def flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def overwrite(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    new = chance.randbytes(chance.randint(1, 64))
    return (data[:at] + new + data[at + len(new) :])[: len(data)]


def zero(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    length = min(chance.randint(1, 256), len(data) - at)
    return data[:at] + bytes(length) + data[at + length :]


def truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def extend(data: bytes, chance: random.Random) -> bytes:
    return data + chance.randbytes(chance.randint(1, 64))


def edit(data: bytes, chance: random.Random) -> bytes:
    """Change a digit of the description; for arrays, some byte."""
    digits = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not digits:
        return flip(data, chance)
    at = chance.choice(digits)
    return data[:at] + bytes([48 + (data[at] - 48 + chance.randint(1, 9)) % 10]) + data[at + 1 :]


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip, overwrite, zero, truncate, extend, edit)


def damage(folder: Path, chance: random.Random) -> bool:
    """Damage the cache in one way; return True if some entry now has other bytes than were written."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    file = chance.choice(files)
    if chance.random() < 0.3:
        file = chance.choice([one for one in files if one.name == "about.json"])
    kind = chance.randrange(10)
    if kind == 0:
        file.unlink()
        return True
    if kind == 1:
        shutil.rmtree(file.parent)
        return False
    if kind == 2:
        other = chance.choice(files)
        before = file.read_bytes()
        file.write_bytes(other.read_bytes())
        return file.read_bytes() != before
    before = file.read_bytes()
    file.write_bytes(chance.choice(DAMAGES)(before, chance))
    return file.read_bytes() != before


def damaged_files(path: Path, rounds: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(7)
    graph = new_graph(path, chance)
    expected = answers(graph)
    folder = path / disk_cache.FOLDER
    sound = path.parent / "sound"
    shutil.copytree(folder, sound)
    subjects = {
        about.parent.name: json.loads(about.read_text())["entry"]["what"] for about in folder.glob("*/about.json")
    }
    assert {subject[0] for subject in subjects.values()} == {
        *("adjacency", inverted_index.WORDS, "vectors", cluster_segments.CLUSTERS)
    }
    # The ends are read to build or update other structures only.
    ends = [name for name, subject in subjects.items() if subject[-1] == "ends"]
    for number in range(rounds):
        shutil.rmtree(folder)
        shutil.copytree(sound, folder)
        changed = damage(folder, chance)
        caplog.clear()
        fresh = og.open(path)
        damages = fresh.verify()
        assert bool(damages) == changed, number
        unread = changed and all(any(name in str(found) for name in ends) for found in damages)
        with caplog.at_level(logging.WARNING, "omnigraph.engine.cache.disk_cache"):
            assert answers(fresh) == expected, number
        assert ("damaged" in caplog.text) == (changed and not unread), number
        assert unread or not og.open(path).verify(), number


def test_damaged_cache_files_never_change_results(tmp_path, caplog):
    damaged_files(tmp_path / "graph", SHORT, caplog)


@pytest.mark.long
def test_damaged_cache_files_never_change_results_long(tmp_path, caplog):
    damaged_files(tmp_path / "graph", LONG, caplog)


def test_inconsistent_arrays_are_refused(tmp_path, tune):
    """Matching checksums do not make arrays consistent, and kernels use indexes without bounds checks."""
    tune(disk_cache_large_bytes=1 << 20)
    path = tmp_path / "graph"
    graph = new_graph(path, random.Random(3))
    expected = answers(graph)
    for name in ("targets", "offsets", "src", "rows", "ends", "codes", "loops", "edges"):
        for about in sorted((path / disk_cache.FOLDER).glob("*/about.json")):
            entry = json.loads(about.read_text())["entry"]
            if name not in entry["arrays"] or not entry["arrays"][name]["shape"][0]:
                continue
            what = tuple(entry.pop("what"))
            arrays = dict(disk_cache._open(about.parent).arrays)
            arrays[name] = arrays[name][:-1] if name == "codes" else arrays[name] + 1_000
            facts = {key: value for key, value in entry.items() if key not in ("arrays", "generation")}
            disk_cache.save(path / disk_cache.FOLDER, what, facts, arrays)
        assert answers(og.open(path)) == expected, name


# -- races -------------------------------------------------------------------------------------------


def swapped_folders(path: Path, seconds: float) -> int:
    """Open and read a graph while its folder is swapped with a similar one; return the number of reads."""
    places = [path.with_name("one"), path.with_name("two")]
    expected = []
    for number, place in enumerate(places):
        new = new_graph(place, random.Random(number))
        answers(new)
        expected.append(answers(og.open(place)))
    assert expected[0] != expected[1]
    shutil.copytree(places[0], path)
    stop = threading.Event()

    def swap() -> None:
        spare = [path.with_name(f"spare-{number}") for number in range(2)]
        at = 0
        while not stop.is_set():
            at = 1 - at
            if not spare[at].exists():
                shutil.copytree(places[at], spare[at])
            old = path.with_name("old")
            path.rename(old)
            spare[at].rename(path)
            shutil.rmtree(old)
            time.sleep(0.002)

    reads = 0
    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                graph = og.open(path)
                for query in range(len(READS)):
                    found = list(graph.query(READS[query]))
                    assert found in (expected[0][query], expected[1][query]), query
                    reads += 1
            except OmniGraphError:
                continue
    finally:
        stop.set()
        swapping.join()
    return reads


def test_reads_while_folder_is_swapped(tmp_path):
    assert swapped_folders(tmp_path / "graph", 2.0)


@pytest.mark.long
def test_reads_while_folder_is_swapped_long(tmp_path):
    assert swapped_folders(tmp_path / "graph", 300.0)
