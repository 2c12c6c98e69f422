"""Real processes are killed with SIGKILL at every step of every operation; the graph stays consistent.

Each case copies a small graph, kills a process that works on it, and then checks everything: the old or the new commit
exists with both its tables; the intent of the dead process is resolved by the manifest, reported and logged once; the
next write works; the graph verifies; and every leftover file can be removed.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import GraphExists, GraphNotFound
from omnigraph.storage.failpoints import NAMES
from omnigraph.versioning.upkeep import maintenance
from omnigraph.versioning.write.repository import Repository
from races.test_landings import STEPS as LANDING_DIES_AT
from support.store import (
    Worker,
    add_pair,
    check_sound,
    check_usable,
    collect,
    new_graph,
    repository_of,
    seeds,
    settle,
    write_elsewhere,
)
from support.storm import count_parts, storm

SEEDED = 3

COMMIT_DIES_AT = [
    *(f"table.{step}={passes}:kill" for step in ("staged", "numbered", "detached", "promoted") for passes in (0, 1)),
    *(f"table.{step}=3:kill" for step in ("staged", "numbered", "promoted")),
    *(f"intent.{step}={passes}:kill" for step in ("write", "written", "delete") for passes in (0, 1)),
    *(f"publish.{step}={passes}:kill" for step in ("before_commit", "after_commit") for passes in (0, 1)),
]
"""Two commits of two tables each; the process dies in the first or in the second.

Changes are detached only if the tables have newer versions, of another branch.
"""

RECORDS = 64
MANIFEST_DIES_AT = [
    # Seeds and commits fill the log; the publisher of record 64 writes a checkpoint. The second one trims the log.
    *((f"publish.{step}={RECORDS - SEEDED}:kill", RECORDS - SEEDED) for step in ("before_commit", "after_commit")),
    *(
        (f"checkpoint.{step}={passes}:kill", (passes + 1) * RECORDS - SEEDED - 1)
        for step in ("before_commit", "after_commit")
        for passes in (0, 1)
    ),
]
"""Where the process dies, and the number of commits that it has acknowledged by then."""

INIT_DIES_AT = [f"init.{step}=kill" for step in ("claimed", "tables_created", "before_manifest", "after_manifest")]
RECOVERY_DIES_AT = [
    *(("table.promoted=1:kill", f"recovery.{step}=kill") for step in ("listed", "fenced", "collected", "audited")),
    *(("table.promoted=1:kill", f"publish.{step}=kill") for step in ("before_commit", "after_commit")),
    *(("publish.after_commit=kill", f"recovery.{step}=kill") for step in ("listed", "audited")),
]
"""Where the write died, and where the recovery died. A commit that landed is neither fenced nor removed."""

OPTIMIZE_DIES_AT = [
    "optimize.compacted=0:kill",
    "optimize.compacted=1:kill",
    "table.numbered=0:kill",
    "table.promoted=1:kill",
    "optimize.before_publish=kill",
    "publish.before_commit=kill",
    "publish.after_commit=kill",
]
CLEANUP_DIES_AT = ["cleanup.planned=kill", "cleanup.fenced=kill", "cleanup.table=0:kill", "cleanup.table=1:kill"]

PURGE_DIES_AT = [
    "purge.announced=kill",
    "purge.rewritten=1:kill",
    "purge.before_switch=kill",
    "purge.switched=kill",
    "purge.checkpoint=kill",
    "purge.swept=0:kill",
    "purge.before_end=kill",
]
REDACT_DIES_AT = ["redact.proposals=kill", "redact.published=kill"]

GROUP_DIES_AT = [
    *(f"group.{step}=0:kill" for step in ("prepared", "written", "published")),
    *(f"table.{step}={passes}:kill" for step in ("staged", "numbered", "promoted") for passes in (0, 1)),
    *(f"intent.{step}=0:kill" for step in ("write", "written", "delete")),
    *(f"publish.{step}=0:kill" for step in ("before_commit", "after_commit")),
    "part.detached=0:kill",
]

BUILDING = ("table.numbered", "table.detached", "table.promoted")
LANDED = ("publish.after_commit", "group.published", "intent.delete", "part.detached")
"""Failpoints at which the commit of a killed process has landed."""


def names(cases: list[str]) -> set[str]:
    return {case.partition("=")[0] for case in cases}


def test_every_failpoint_has_a_case():
    recoveries = [case for _, case in RECOVERY_DIES_AT]
    manifests = [case for case, _ in MANIFEST_DIES_AT]
    cases = [
        *COMMIT_DIES_AT,
        *manifests,
        *INIT_DIES_AT,
        *recoveries,
        *OPTIMIZE_DIES_AT,
        *CLEANUP_DIES_AT,
        *GROUP_DIES_AT,
        *LANDING_DIES_AT,
        *PURGE_DIES_AT,
        *REDACT_DIES_AT,
    ]
    assert names(cases) == set(NAMES)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("seeded") / "graph"
    new_graph(root, SEEDED)
    return root


@pytest.fixture
def root(seeded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(seeded, tmp_path / "graph"))


def die(tmp_path: Path, root: Path, do: str, failpoints: str = "", **what: object) -> Worker:
    """Run a worker that must be killed by SIGKILL."""
    with Worker(tmp_path, root, do, failpoints=failpoints, **what) as worker:
        assert worker.end() == -signal.SIGKILL, worker.trouble()
    return worker


@pytest.mark.parametrize("case", COMMIT_DIES_AT)
def test_kill_during_commit(case, root, tmp_path):
    if case.startswith("table.detached"):
        write_elsewhere(root)
    worker = die(tmp_path, root, "commits", case, count=2)
    settled = settle(root)
    graph = og.open(root)
    keys = {*seeds(SEEDED), *worker.wrote()}
    landed = case.startswith(LANDED)
    commits = check_sound(graph, keys, in_flight=int(landed))
    assert len(commits) == 1 + len(keys) + landed
    noted = case.startswith(("intent.written", "intent.delete", *BUILDING, "publish."))
    assert len(settled.notes) == noted
    for branch in graph.branches()[1:]:
        graph.branch_delete(branch, force=True)
    collect(check_usable(root))


@pytest.mark.parametrize("case", GROUP_DIES_AT)
def test_kill_during_group_commit(case, root, tmp_path):
    """All requests of the group are published or none."""
    worker = die(tmp_path, root, "one_group", case, count=5)
    settle(root)
    graph = og.open(root)
    landed = 5 if case.startswith(LANDED) else 0
    acknowledged = {*seeds(SEEDED), *worker.wrote()}
    commits = check_sound(graph, acknowledged, in_flight=landed)
    assert len(commits) == 1 + SEEDED + landed
    assert count_parts(graph) == max(landed - 1, 0)
    for number, commit in enumerate(reversed(commits)):
        assert graph.to_arrow("Item", at=commit.id).num_rows == number
    collect(check_usable(root))


@pytest.mark.parametrize(("case", "wrote"), MANIFEST_DIES_AT)
def test_kill_during_commit_that_writes_a_checkpoint(case, wrote, root, tmp_path):
    worker = die(tmp_path, root, "commits", case, count=wrote + 1)
    assert len(worker.wrote()) == wrote
    settle(root)
    check_sound(og.open(root), {*seeds(SEEDED), *worker.wrote()}, in_flight=1)
    collect(check_usable(root))


@pytest.mark.parametrize("case", INIT_DIES_AT)
def test_kill_during_init(case, tmp_path):
    root = tmp_path / "graph"
    die(tmp_path, root, "init", case)
    if case.startswith("init.after_manifest"):
        with pytest.raises(GraphExists):
            new_graph(root)
    else:
        with pytest.raises(GraphNotFound):
            og.open(root)
        new_graph(root)
    assert settle(root).notes == []
    check_sound(og.open(root), [])
    collect(check_usable(root))


@pytest.mark.parametrize(("write_dies_at", "case"), RECOVERY_DIES_AT)
def test_kill_during_recovery(write_dies_at, case, root, tmp_path):
    die(tmp_path, root, "commits", write_dies_at, count=1)
    die(tmp_path, root, "recover", case)
    assert len(settle(root).notes) == 1
    check_sound(og.open(root), seeds(SEEDED), in_flight=int(write_dies_at.startswith(LANDED)))
    collect(check_usable(root))


def test_recovery_after_compaction_that_rewrote_an_index(root, tmp_path):
    og.open(root).ensure_indices()
    die(tmp_path, root, "commits", "table.promoted=1:kill", count=1)
    repository = Repository.open(root)
    for number in range(3):
        add_pair(repository, f"later-{number}")
    maintenance.optimize(repository)
    assert [entry.outcome for entry in settle(root).report] == ["rolled_back"]
    check_sound(og.open(root), {*seeds(SEEDED), *(f"later-{number}" for number in range(3))})


@pytest.mark.parametrize("case", OPTIMIZE_DIES_AT)
def test_kill_during_optimize(case, root, tmp_path):
    before = og.open(root).commits()
    die(tmp_path, root, "optimize", case)
    settle(root)
    graph = og.open(root)
    commits = check_sound(graph, seeds(SEEDED))
    assert len(commits) - len(before) == case.startswith(LANDED)
    collect(check_usable(root))


@pytest.mark.parametrize("case", CLEANUP_DIES_AT)
def test_kill_during_cleanup(case, root, tmp_path):
    die(tmp_path, root, "cleanup", case)
    settle(root)
    check_sound(og.open(root), seeds(SEEDED))
    collect(check_usable(root))


def check_purged(root: Path, gone: str) -> None:
    """Finish a purge of one of the seeds; nothing else is lost, and every commit is readable."""
    again = og.open(root)
    again.purge_resume()
    if not again.purges():
        again.purge("Item", [gone], edges=True, reason="again")
    graph = og.open(root)
    assert [record.state for record in graph.purges()] == ["done"]
    left = seeds(SEEDED) - {gone}
    for table in ("Item", "Link"):
        assert set(graph.to_arrow(table)["id"].to_pylist()) == left
    for number, commit in enumerate(reversed(graph.commits())):
        names = set(graph.to_arrow("Item", at=commit.id)["id"].to_pylist())
        assert names == {name for name in names if name in left}
        assert len(names) in (number, number - 1)
    assert graph.purge_verify().is_clean
    # The metadata of the commits, which the writer chose, contain the id and are reported.
    found = graph.purge_verify([gone]).findings
    assert {finding.object.partition("/")[0] for finding in found} <= {"__manifest", "__log"}
    assert graph.verify(deep=True) == []
    add_pair(repository_of(graph), "after")
    assert og.open(root).verify() == []


def test_kill_during_purge_again_and_again(root, tmp_path):
    """Each process continues the purge of the one before it, and dies at the next step."""
    gone = sorted(seeds(SEEDED))[1]
    for case in PURGE_DIES_AT[::2]:
        die(tmp_path, root, "purge", case, id=gone)
    check_purged(root, gone)


@pytest.mark.long
@pytest.mark.parametrize("case", PURGE_DIES_AT)
def test_kill_during_purge(case, root, tmp_path):
    gone = sorted(seeds(SEEDED))[1]
    die(tmp_path, root, "purge", case, id=gone)
    check_purged(root, gone)


@pytest.mark.long
def test_kill_during_purge_at_store_calls(seeded, tmp_path):
    gone = sorted(seeds(SEEDED))[1]
    copy = Path(shutil.copytree(seeded, tmp_path / "counted"))
    with Worker(tmp_path, copy, "purge", name="counting", id=gone, die_at=-1) as worker:
        total = int(worker.finish().said()[-1]["calls"])
    step = max(1, total // 50)
    assert total // step >= 50
    for number in range(0, total, step):
        folder = tmp_path / f"purge-{number}"
        folder.mkdir()
        copy = Path(shutil.copytree(seeded, folder / "graph"))
        die(folder, copy, "purge", id=gone, die_at=number)
        check_purged(copy, gone)


@pytest.mark.parametrize("case", REDACT_DIES_AT)
def test_kill_during_redaction(case, root, tmp_path):
    text = sorted(seeds(SEEDED))[1]
    before = [(commit.id, commit.parents, commit.created_us) for commit in og.open(root).commits()]
    die(tmp_path, root, "redact", case, id=text)
    graph = og.open(root)
    assert [(commit.id, commit.parents, commit.created_us) for commit in graph.commits()] == before
    assert graph.verify(deep=True) == []
    graph.purge_redact([text], confirm=True)
    assert "[redacted]" in str([commit.metadata for commit in og.open(root).commits()])
    found = og.open(root).purge_verify([text]).findings
    assert {finding.object.partition("/")[0] for finding in found} <= {"nodes", "edges"}
    add_pair(repository_of(og.open(root)), "after")
    assert og.open(root).verify(deep=True) == []


# -- at every call that changes the store ------------------------------------------------------------


def calls_of_a_commit(root: Path, tmp_path: Path) -> int:
    copy = Path(shutil.copytree(root, tmp_path / "counted"))
    with Worker(tmp_path, copy, "one_call", name="counting", die_at=-1) as worker:
        return int(worker.finish().said()[-1]["calls"])


def die_at_calls(root: Path, tmp_path: Path, step: int) -> None:
    total = calls_of_a_commit(root, tmp_path)
    assert total > 12, "the counter sees the store"
    outcomes: list[bool] = []
    for number in range(0, total, step):
        folder = tmp_path / f"call-{number}"
        folder.mkdir()
        copy = Path(shutil.copytree(root, folder / "graph"))
        die(folder, copy, "one_call", die_at=number)
        settle(copy)
        commits = check_sound(og.open(copy), seeds(SEEDED), in_flight=1)
        outcomes.append(len(commits) > 1 + SEEDED)
        collect(check_usable(copy))
    assert outcomes == sorted(outcomes), "there is one point of no return"
    assert not outcomes[0]


def test_kill_during_commit_at_store_calls(seeded, tmp_path):
    die_at_calls(seeded, tmp_path, step=3)


@pytest.mark.long
def test_kill_during_commit_at_every_store_call(seeded, tmp_path):
    die_at_calls(seeded, tmp_path, step=1)


# -- a merge -----------------------------------------------------------------------------------------


def merge_dies_at_calls(tmp_path: Path, step: int) -> None:
    """Merge both tables row by row and kill the process at any call: the target is unchanged or merged."""
    root = tmp_path / "two-sides"
    graph = new_graph(root, SEEDED)
    repository = repository_of(graph)
    graph.branch_create("side")
    for key in ("one", "two"):
        add_pair(repository, key, branch="side")
    add_pair(repository, "mine")
    with Worker(
        tmp_path, Path(shutil.copytree(root, tmp_path / "counted")), "merge_call", branch="side", die_at=-1
    ) as worker:
        total = int(worker.finish().said()[-1]["calls"])
    assert total > 12, "the counter sees the store"
    outcomes: list[bool] = []
    for number in range(0, total, step):
        folder = tmp_path / f"merge-{number}"
        folder.mkdir()
        copy = Path(shutil.copytree(root, folder / "graph"))
        die(folder, copy, "merge_call", branch="side", die_at=number)
        settle(copy)
        again = og.open(copy)
        assert again.verify() == []
        items = set(again.to_arrow("Item")["id"].to_pylist()) - seeds(SEEDED)
        assert set(again.to_arrow("Link")["id"].to_pylist()) - seeds(SEEDED) == items, "both tables or none"
        assert items in ({"mine"}, {"mine", "one", "two"})
        outcomes.append(len(items) > 1)
        assert again.merge("side").outcome == ("already_up_to_date" if outcomes[-1] else "merged")
        assert again.verify() == []
    assert outcomes == sorted(outcomes), "there is one point of no return"
    assert not outcomes[0]


def test_kill_during_merge_at_store_calls(tmp_path):
    merge_dies_at_calls(tmp_path, step=7)


@pytest.mark.long
def test_kill_during_merge_at_every_store_call(tmp_path):
    merge_dies_at_calls(tmp_path, step=1)


# -- at any time -------------------------------------------------------------------------------------


def test_kill_writers_at_random_times(tmp_path):
    done = storm(tmp_path, kills=12, writers=2, seconds=40)
    assert done.kills >= 6


def test_kill_grouped_writers_at_random_times(tmp_path):
    done = storm(tmp_path, kills=8, writers=2, seconds=30, threads=8)
    assert done.kills >= 4
    assert done.in_groups


@pytest.mark.long
def test_kill_grouped_writers_at_random_times_long(tmp_path, record_property):
    done = storm(tmp_path, kills=500, writers=2, seconds=1800, threads=16)
    record_property("figures", str(done))
    print(done)  # noqa: T201 (the figures of the run; shown with -s)
    assert done.kills >= 500
    assert done.in_groups > done.kills


@pytest.mark.long
def test_kill_writers_at_random_times_long(tmp_path, record_property):
    done = storm(tmp_path, kills=520, writers=4, seconds=1800)
    record_property("figures", str(done))
    print(done)  # noqa: T201 (the figures of the run; shown with -s)
    assert done.kills >= 500
