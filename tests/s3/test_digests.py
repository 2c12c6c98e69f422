"""Deep verification and liveness on an object store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import obstore
import pytest

import omnigraph as og
from omnigraph.pipeline.orphan_jobs import JobLease, sweep
from omnigraph.storage.files.location import locate
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.files.s3_objects import bucket_store
from omnigraph.versioning.upkeep import maintenance
from support.writes import SHELVES, beside, ids_of, shelf


def test_a_flipped_bit_in_a_bucket_is_found(s3, tmp_path, tune):
    tune(memory_load_bytes_max=0)
    uri = s3.new_place()
    graph = og.init(uri, SHELVES, environ=s3.environ)
    path = tmp_path / "in.jsonl"
    path.write_text('{"type": "Shelf", "data": {"code": "bulk"}}\n')
    graph.load(str(path), mode="append")
    graph.load([shelf("a"), shelf("b"), beside("a", "b")], mode="merge")
    graph.load([shelf("a", note="new")], mode="merge")
    assert graph.verify(deep=True) == []
    location = locate(uri, s3.environ)
    store = bucket_store(location)
    listed = [item["path"] for batch in obstore.list(store, f"{location.prefix}/nodes") for item in batch]
    live = {problem for problem in listed if problem.endswith(".lance")}
    found = 0
    for key in sorted(live):
        before = bytes(obstore.get(store, key).bytes())
        damaged = bytearray(before)
        damaged[len(damaged) // 2] ^= 4
        obstore.put(store, key, bytes(damaged))
        problems = og.open(uri, read_only=True, environ=s3.environ).verify(deep=True)
        found += any(key.rpartition("/")[2] in problem.what for problem in problems)
        obstore.put(store, key, before)
    assert found == len(live)
    assert og.open(uri, read_only=True, environ=s3.environ).verify(deep=True) == []


def test_liveness_of_jobs_uses_the_time_of_the_store(s3, monkeypatch):
    graph = og.init(s3.new_place(), SHELVES, environ=s3.environ)
    repository = graph._repository
    store = object_store(repository.location)
    assert abs(store.now() - datetime.now(UTC)) < timedelta(hours=1)
    with JobLease(repository, "01RUNNING"):
        repository.clock = lambda: int((datetime.now(UTC) + timedelta(days=1)).timestamp() * 1_000_000)
        assert sweep(repository).removed == []
    assert store.list("__staging/01RUNNING") == []


@pytest.mark.parametrize("days", [-1, 1])
def test_a_cleanup_in_a_bucket_ignores_the_clock_of_its_host(s3, days):
    graph = og.init(s3.new_place(), SHELVES, environ=s3.environ)
    for code in "abc":
        graph.load([shelf(code)], mode="append")
    repository = og.open(graph.uri, environ=s3.environ)._repository
    repository.clock = lambda: int((datetime.now(UTC) + timedelta(days=days)).timestamp() * 1_000_000)
    stats = maintenance.cleanup(repository, older_than=timedelta(hours=2), confirm=True)
    assert sum(one.old_versions_removed for one in stats) == 0
    stats = maintenance.cleanup(repository, keep=1, confirm=True, grace=timedelta(hours=-1))
    assert sum(one.old_versions_removed for one in stats) > 0
    assert ids_of(graph, "Shelf") == ["a", "b", "c"]
    assert graph.verify(deep=True) == []
