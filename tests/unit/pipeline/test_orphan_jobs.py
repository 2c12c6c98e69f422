"""Jobs without a live driver are removed. Live jobs, other files and other graphs are not, whatever the files of a job
contain.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.errors import Conflict, HeadMoved, OmniGraphError, StorageError
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.pipeline.load import begin_job, load_source
from omnigraph.pipeline.orphan_jobs import sweep
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.stage_task import stage_rows
from omnigraph.pipeline.staged_input import FileSource, RowSource
from omnigraph.storage.failpoints import arm
from omnigraph.storage.files.local_objects import LocalObjects
from omnigraph.storage.lance.garbage import remove
from omnigraph.versioning.model.ids import system_clock
from omnigraph.versioning.write import leases
from omnigraph.versioning.write.recovery import recover
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import WriteOptions
from support.writes import SHELVES, beside, ids_of, new_graph, reopened, shelf


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SHELVES, shelf("a", note="x", cap=3), shelf("b"), beside("a", "b", id_="e"))


class Interfering(InlineRunner):
    """Calls a function once, before a step of the job."""

    def __init__(self, step, act):
        super().__init__()
        self._step, self._act = step, act

    def run(self, step, task, job, work, **more):
        if step == self._step and self._act is not None:
            act, self._act = self._act, None
            act()
        return super().run(step, task, job, work, **more)


def bulk(graph, root, records, mode="merge", runner=None, **options):
    path = root / "bulk.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    source = FileSource(plan_input([str(path)], {}, 1, split_bytes=60))
    return load_source(graph._repository, runner or InlineRunner(), source, LoadRequest(mode, WriteOptions(**options)))


def root_of(graph):
    return Path(graph.uri)


def jobs(graph):
    return sorted(path.name for path in (root_of(graph) / "__staging").glob("*"))


def data_files(graph):
    return sorted(root_of(graph).glob("*/*/data/*.lance"))


def make_old(folder, seconds):
    then = time.time() - seconds
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (then, then), follow_symlinks=False)


def fence_live_job(graph, monkeypatch):
    """Sweep as another process that does not see the heartbeats of a live job."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(leases, "_process_is_alive", lambda _: None)
        make_old(root_of(graph) / "__staging", leases.LEASE_S + 1)
        return sweep(reopened(graph)._repository).removed


# -- live jobs -----------------------------------------------------------------------------------------


def _recover_elsewhere(uri, shift_us, answers):
    """A process in another container, with another clock."""
    leases._process_table = lambda _: ("the same boot", "pid:[another namespace]")
    repository = Repository.open(uri, clock=lambda: system_clock() + shift_us, sync=False, environ={})
    answers.put(([one.outcome for one in recover(repository)], sweep(repository).removed))


@pytest.mark.parametrize(
    "minutes", [2, pytest.param(-60, marks=pytest.mark.long), pytest.param(60 * 24 * 365, marks=pytest.mark.long)]
)
def test_live_load_survives_a_recovery_with_another_clock(graph, tmp_path, minutes):
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()

    def recover_elsewhere():
        process = context.Process(target=_recover_elsewhere, args=(graph.uri, minutes * 60_000_000, answers))
        process.start()
        process.join(60)
        assert process.exitcode == 0

    bulk(graph, tmp_path, [shelf("c"), shelf("d")], runner=Interfering("finalize", recover_elsewhere))
    assert answers.get(timeout=10) == ([], [])
    assert ids_of(graph, "Shelf") == ["a", "b", "c", "d"]
    assert graph.verify() == []


@pytest.mark.parametrize("step", ["read", "check", "finalize", "publish.before_commit"])
def test_fenced_live_load_starts_over(graph, tmp_path, monkeypatch, step):
    removed = []

    def sweep_once():
        if not removed:
            removed.append("")  # the sweep publishes too
            removed[:] = fence_live_job(graph, monkeypatch)

    records = [shelf("a", note="new"), shelf("c"), shelf("d"), beside("c", "d", id_="f")]
    if step == "publish.before_commit":
        with arm(step, sweep_once):
            result = bulk(graph, tmp_path, records)
    else:
        result = bulk(graph, tmp_path, records, runner=Interfering(step, sweep_once))
    assert len(removed) == 1
    assert removed[0] != ""
    assert result.commit_id == graph.snapshot().commit_id
    assert ids_of(graph, "Shelf") == ["a", "b", "c", "d"]
    assert ids_of(graph, "Beside") == ["e", "f"]
    assert reopened(graph).verify() == []
    assert jobs(graph) == []


def test_fenced_load_with_expected_commit_fails(graph, tmp_path, monkeypatch):
    runner = Interfering("merge", lambda: fence_live_job(graph, monkeypatch))
    before = graph.snapshot().commit_id
    with pytest.raises(HeadMoved, match="aborted"):
        bulk(graph, tmp_path, [shelf("c")], runner=runner, if_commit=before)
    assert graph.snapshot().commit_id == before
    assert jobs(graph) == []


def test_swept_rows_of_a_staged_job_are_refused(graph):
    """The publisher cannot stage the rows again: the tasks that read them have ended."""
    job = begin_job(graph._repository, "main", "append", {}, seconds_max=60)
    staged = [stage_rows(job, 0, "Shelf", pa.table({"code": ["late"]}).to_batches())]
    make_old(root_of(graph) / "__staging", 61)
    assert sweep(graph._repository).removed == [job.id]
    source = RowSource(0, lambda _: staged)
    before = graph.snapshot().commit_id
    with pytest.raises(Conflict, match="expired"):
        load_source(graph._repository, InlineRunner(), source, LoadRequest("append"), staged_job=job)
    assert graph.snapshot().commit_id == before
    assert jobs(graph) == []
    assert graph.verify() == []


# -- damaged files -------------------------------------------------------------------------------------

TORN = [b"", b"{", b"[]", b"7", b"null", b"\xff\xfe", b"[" * 100_000, b'{"table": 1}', b'{"table": "x", "files": {}}']


@pytest.mark.parametrize("name", ["job.json", "kept.json", "pieces-1"])
def test_damaged_file_does_not_block_a_sweep(graph, tmp_path, name):
    for number, data in enumerate(TORN):
        folder = root_of(graph) / "__staging" / f"01TORN{number}"
        folder.mkdir(parents=True)
        (folder / "job.json").write_text('{"lease_s": 60}')
        (folder / name).write_bytes(data)
        make_old(folder, 120)
    found = reopened(graph).recover()
    assert {one.outcome for one in found} == {"unreadable"}
    assert len(found) >= len(TORN) - 3, "a valid file with other content is accepted"
    bulk(graph, tmp_path, [shelf("c")])
    assert ids_of(graph, "Shelf") == ["a", "b", "c"]
    make_old(root_of(graph) / "__staging", 7200)
    reopened(graph).recover()
    assert jobs(graph) == []
    assert graph.verify() == []


@pytest.mark.parametrize("kind", ["pipe", "loop", "folder", "huge", "late", "early"])
def test_special_files_of_a_job_do_not_block_a_sweep(graph, tmp_path, kind):
    folder = root_of(graph) / "__staging" / "01SPEC"
    folder.mkdir(parents=True)
    lease = folder / "job.json"
    if kind == "pipe":
        os.mkfifo(lease)
    elif kind == "loop":
        lease.symlink_to(lease)
    elif kind == "folder":
        lease.mkdir()
    else:
        lease.write_text(json.dumps({"lease_s": 10**400 if kind == "huge" else 0}))
        if kind != "huge":
            seconds = 10**12 if kind == "late" else -(10**12)
            os.utime(lease, (seconds, seconds))
    reopened(graph).recover()
    bulk(graph, tmp_path, [shelf("c")])
    assert ids_of(graph, "Shelf") == ["a", "b", "c"]
    assert graph.verify() == []


def test_damaged_list_of_kept_files_removes_no_file(graph):
    folder = root_of(graph) / "__staging" / "01TORN"
    folder.mkdir(parents=True)
    stray = data_files(graph)[0].with_name("0123abc.lance")
    stray.write_bytes(b"maybe published")
    (folder / "job.json").write_text('{"lease_s": 60}')
    (folder / "kept.json").write_bytes(b"")
    (folder / "pieces-1").write_text(
        json.dumps({"table": str(stray.parent.parent.relative_to(root_of(graph))), "files": [f"data/{stray.name}"]})
    )
    make_old(folder, 120)
    assert sweep(graph._repository).removed == ["01TORN"]
    assert stray.exists()


# -- forged files --------------------------------------------------------------------------------------

HOSTILE = [
    "../../../victim.lance",
    "data/../../../../victim.lance",
    "{victim}",
    "data/{victim}",
    "..\\..\\victim.lance",
    "C:\\victim.lance",
    "data/a\0.lance",
    "data/sub/x.lance",
    "_versions/1.manifest",
    "data/..",
    "data/",
    "",
]


@pytest.mark.parametrize("table", ["own", "../other", "nodes", "", ".", "{victim_folder}"])
def test_forged_list_of_files_deletes_no_other_file(graph, tmp_path, table):
    victim = tmp_path / "victim.lance"
    victim.write_bytes(b"precious")
    (tmp_path / "other").mkdir()
    own = data_files(graph)[0].parent.parent.relative_to(root_of(graph))
    named = {"own": str(own)}.get(table, table).format(victim_folder=tmp_path)
    for number, file in enumerate(HOSTILE):
        folder = root_of(graph) / "__staging" / f"01HOSTILE{number}"
        folder.mkdir(parents=True)
        (folder / "job.json").write_text('{"lease_s": 60}')
        document = {"table": named, "files": [file.format(victim=victim)]}
        (folder / "pieces-1").write_text(json.dumps(document))
    make_old(root_of(graph) / "__staging", 120)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file() and "__" not in str(path))
    swept = sweep(graph._repository)
    assert len(swept.problems) == len(HOSTILE)
    assert all("names" in one.detail for one in swept.problems)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file() and "__" not in str(path)) == before
    assert jobs(graph) == []


def test_forged_list_of_files_deletes_no_data_in_use(graph):
    folder = root_of(graph) / "__staging" / "01HOSTILE"
    folder.mkdir(parents=True)
    before = data_files(graph)
    (folder / "job.json").write_text('{"lease_s": 60}')
    for number, path in enumerate(before):
        table = str(path.parent.parent.relative_to(root_of(graph)))
        document = {"table": table, "files": [f"data/{path.name}"]}
        (folder / f"pieces-{number}").write_text(json.dumps(document))
    make_old(folder, 120)
    assert sweep(graph._repository).removed == ["01HOSTILE"]
    assert data_files(graph) == before
    assert reopened(graph).verify() == []


def test_sweep_follows_no_links(graph, tmp_path):
    outside = tmp_path / "outside"
    (outside / "data").mkdir(parents=True)
    (outside / "data" / "x.lance").write_bytes(b"precious")
    (outside / "job.json").write_text('{"lease_s": 60}')
    (root_of(graph) / "__staging").mkdir(exist_ok=True)
    (root_of(graph) / "__staging" / "01LINK").symlink_to(outside)
    make_old(outside, 7200)
    sweep(graph._repository)
    assert (outside / "data" / "x.lance").exists()
    assert (outside / "job.json").exists()


@pytest.mark.parametrize("name", ["graph_head:main", "a b", "..."])
def test_folder_that_is_no_job_is_reported(graph, name):
    folder = root_of(graph) / "__staging" / name
    folder.mkdir(parents=True)
    make_old(folder, 7200)
    (found,) = sweep(graph._repository).problems
    assert "not the folder of a bulk job" in found.detail
    assert folder.exists()
    assert og.open(graph.uri, environ={}).branches() == ["main"]


def test_deletion_through_a_linked_table_is_refused(graph, tmp_path):
    table = data_files(graph)[0].parent
    outside = tmp_path / "outside"
    table.rename(outside)
    table.symlink_to(outside)
    victim = outside / "stray.lance"
    victim.write_bytes(b"precious")
    name = str((table / "stray.lance").relative_to(root_of(graph)))
    with pytest.raises(OmniGraphError, match="not inside the graph's folder"):
        graph._repository.objects.delete(name)
    folder = str(table.parent.relative_to(root_of(graph)))
    with pytest.raises(OmniGraphError, match="is outside the graph's folder"):
        remove(graph._repository.tables, folder, [1])
    assert victim.exists()


def test_a_load_that_is_published_does_not_fail_because_its_files_remain(tmp_path, monkeypatch, caplog):
    graph = og.init(tmp_path / "g", "node Person { name: String @key }", environ={})
    (tmp_path / "rows.jsonl").write_text(json.dumps({"type": "Person", "data": {"name": "a"}}) + "\n")

    def refuse(objects, folder):
        raise StorageError(f"'{folder}': Input/output error", code="io_error")

    with monkeypatch.context() as failing, tuning.replaced(memory_load_bytes_max=0):
        failing.setattr(LocalObjects, "delete_folder", refuse)
        graph.load(str(tmp_path / "rows.jsonl"), mode="append")
    assert len(graph.query("match { $p: Person } return { $p.name }")) == 1
    assert "cannot be removed" in caplog.text
    assert graph.verify(deep=True) == []
