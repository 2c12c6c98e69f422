"""The fault suite in short form, on a bucket: processes are killed, responses are lost, the graph stays consistent."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import GraphExists, GraphNotFound, StorageError
from omnigraph.storage.failpoints import NAMES
from support.landings import CHECK, kill_between
from support.s3 import S3, LossyWay, lossy_way
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
from support.storm import rage

SEEDED = 2
COMMIT_DIES_AT = [
    *(f"table.{step}=1:kill" for step in ("staged", "numbered", "detached", "promoted")),
    *(f"intent.{step}=kill" for step in ("write", "written", "delete")),
    *(f"publish.{step}=kill" for step in ("before_commit", "after_commit")),
]
GROUP_DIES_AT = [*(f"group.{step}=kill" for step in ("prepared", "written", "published")), "part.detached=kill"]
CHECKPOINT_DIES_AT = [f"checkpoint.{step}=kill" for step in ("before_commit", "after_commit")]
RECORDS = 64
"""Versions in the log before its publisher writes a checkpoint."""
INIT_DIES_AT = [f"init.{step}=kill" for step in ("claimed", "tables_created", "before_manifest", "after_manifest")]
RECOVERY_DIES_AT = [f"recovery.{step}=kill" for step in ("listed", "fenced", "collected", "audited")]
MAINTENANCE_DIES_AT = [
    ("optimize", "optimize.compacted=1:kill"),
    ("optimize", "optimize.before_publish=kill"),
    ("cleanup", "cleanup.planned=kill"),
    ("cleanup", "cleanup.fenced=kill"),
    ("cleanup", "cleanup.table=kill"),
]
LANDING_DIES_AT = [
    "proposal.event=0:kill",
    "proposal.trial=0:kill",
    "proposal.checked=0:kill",
    "proposal.queued=0:kill",
    "land.before_publish=0:kill",
    "land.after_publish=0:kill",
]
"""Failpoints of one proposal from its opening to its landing. Each process continues the work of the one before."""
PURGE_DIES_AT = [
    "purge.announced=kill",
    "purge.rewritten=1:kill",
    "purge.before_switch=kill",
    "purge.switched=kill",
    "purge.checkpoint=kill",
    "purge.swept=0:kill",
    "purge.before_end=kill",
]
"""Failpoints of one purge, in their order."""
REDACT_DIES_AT = ["redact.proposals=kill", "redact.published=kill"]
LANDED = ("publish.after_commit", "intent.delete")


def test_every_failpoint_has_a_case():
    cases = [
        *COMMIT_DIES_AT,
        *GROUP_DIES_AT,
        *CHECKPOINT_DIES_AT,
        *INIT_DIES_AT,
        *RECOVERY_DIES_AT,
        *(case for _, case in MAINTENANCE_DIES_AT),
        *LANDING_DIES_AT,
        *PURGE_DIES_AT,
        *REDACT_DIES_AT,
    ]
    assert {case.partition("=")[0] for case in cases} == set(NAMES)


@pytest.fixture
def uri(s3: S3) -> str:
    place = s3.new_place()
    new_graph(place, SEEDED, environ=s3.environ)
    return place


Die = Callable[..., Worker]


@pytest.fixture
def die(s3: S3, tmp_path: Path) -> Die:
    """Run a worker that must be killed by SIGKILL."""

    def run(uri: str, do: str, failpoints: str, **what: object) -> Worker:
        with Worker(tmp_path, uri, do, failpoints=failpoints, environ=s3.environ, **what) as worker:
            assert worker.end() == -signal.SIGKILL, worker.trouble()
        return worker

    return run


@pytest.mark.parametrize("case", COMMIT_DIES_AT)
def test_kill_during_commit(case, uri, die, s3):
    if case.startswith("table.detached"):
        write_elsewhere(uri, environ=s3.environ)
    worker = die(uri, "commits", case, count=1)
    assert worker.wrote() == [] or case.startswith("intent.delete"), "an intent is deleted after the response"
    settle(uri, environ=s3.environ)
    graph = og.open(uri, environ=s3.environ)
    commits = check_sound(graph, {*seeds(SEEDED), *worker.wrote()}, in_flight=1)
    assert len(commits) == 1 + SEEDED + case.startswith(LANDED)
    for branch in graph.branches()[1:]:
        graph.branch_delete(branch, force=True)
    collect(check_usable(uri, environ=s3.environ))


@pytest.mark.parametrize("case", GROUP_DIES_AT)
def test_kill_during_group_commit(case, uri, die, s3):
    worker = die(uri, "one_group", case, count=3)
    settle(uri, environ=s3.environ)
    graph = og.open(uri, environ=s3.environ)
    landed = 3 if case.startswith(("group.published", "part.")) else 0
    commits = check_sound(graph, {*seeds(SEEDED), *worker.wrote()}, in_flight=landed)
    assert len(commits) == 1 + SEEDED + landed
    assert [graph.to_arrow("Item", at=commit.id).num_rows for commit in commits] == list(reversed(range(len(commits))))
    collect(check_usable(uri, environ=s3.environ))


@pytest.mark.parametrize("case", CHECKPOINT_DIES_AT)
def test_kill_during_commit_that_writes_a_checkpoint(case, uri, die, s3):
    wrote = RECORDS - SEEDED - 1
    worker = die(uri, "commits", case, count=wrote + 1)
    assert len(worker.wrote()) == wrote
    settle(uri, environ=s3.environ)
    check_sound(og.open(uri, environ=s3.environ), {*seeds(SEEDED), *worker.wrote()}, in_flight=1)
    collect(check_usable(uri, environ=s3.environ))


@pytest.mark.parametrize("case", INIT_DIES_AT)
def test_kill_during_init(case, die, s3):
    uri = s3.new_place()
    die(uri, "init", case)
    if case.startswith("init.after_manifest"):
        with pytest.raises(GraphExists):
            new_graph(uri, environ=s3.environ)
    else:
        with pytest.raises(GraphNotFound):
            og.open(uri, environ=s3.environ)
        new_graph(uri, environ=s3.environ)
    check_sound(og.open(uri, environ=s3.environ), [])
    collect(check_usable(uri, environ=s3.environ))


@pytest.mark.parametrize("case", RECOVERY_DIES_AT)
def test_kill_during_recovery(case, uri, die, s3):
    die(uri, "commits", "table.promoted=1:kill", count=1)
    die(uri, "recover", case)
    assert len(settle(uri, environ=s3.environ).notes) == 1
    check_sound(og.open(uri, environ=s3.environ), seeds(SEEDED))
    collect(check_usable(uri, environ=s3.environ))


@pytest.mark.parametrize(("do", "case"), MAINTENANCE_DIES_AT)
def test_kill_during_maintenance(do, case, uri, die, s3):
    die(uri, do, case)
    settle(uri, environ=s3.environ)
    check_sound(og.open(uri, environ=s3.environ), seeds(SEEDED))
    collect(check_usable(uri, environ=s3.environ))


def test_kill_between_the_steps_of_a_landing(uri, s3, tmp_path):
    og.open(uri, environ=s3.environ).store_query(CHECK)
    assert kill_between(tmp_path, uri, ["branch"], LANDING_DIES_AT, s3.environ) == LANDING_DIES_AT
    og.open(uri, environ=s3.environ).branch_delete("branch")
    collect(check_usable(uri, environ=s3.environ))


def test_kill_between_the_steps_of_a_purge(uri, die, s3):
    """Each process continues the purge of the one before it, and dies at the next step."""
    gone, kept = sorted(seeds(SEEDED), reverse=True)
    for case in PURGE_DIES_AT:
        die(uri, "purge", case, id=gone)
    og.open(uri, environ=s3.environ).purge_resume()
    graph = og.open(uri, environ=s3.environ)
    assert [record.state for record in graph.purges()] == ["done"]
    for table in ("Item", "Link"):
        assert graph.to_arrow(table)["id"].to_pylist() == [kept]
    assert all(gone not in graph.to_arrow("Item", at=commit.id)["id"].to_pylist() for commit in graph.commits())
    assert graph.purge_verify().is_clean
    assert graph.verify(deep=True) == []
    add_pair(repository_of(graph), "after")
    assert og.open(uri, environ=s3.environ).verify() == []


def test_kill_at_each_step_of_a_redaction(uri, s3, die):
    """Commits keep their ids and parents, and a repeated redaction removes the text."""
    text = sorted(seeds(SEEDED))[1]
    before = [(commit.id, commit.parents) for commit in og.open(uri, environ=s3.environ).commits()]
    for case in REDACT_DIES_AT:
        die(uri, "redact", case, id=text)
        graph = og.open(uri, environ=s3.environ)
        assert [(commit.id, commit.parents) for commit in graph.commits()] == before
        assert graph.verify(deep=True) == []
    graph.purge_redact([text], confirm=True)
    found = og.open(uri, environ=s3.environ).purge_verify([text]).findings
    assert {finding.object.partition("/")[0] for finding in found} <= {"nodes", "edges"}


def test_kill_writers_at_random_times(uri, s3, tmp_path):
    known = sorted(seeds(SEEDED))
    done = rage(tmp_path, uri, kills=6, writers=2, seconds=30, known=known, environ=s3.environ)
    assert done.kills >= 4
    collect(check_usable(uri, environ=s3.environ))


# -- the request succeeds, the response is lost ------------------------------------------------------


@pytest.fixture
def way(s3: S3):
    with lossy_way(s3) as way:
        yield way


def lose_response(way: LossyWay, response: int | None, *parts: str) -> list[str]:
    """Lose the response to the first put of an object whose name contains these parts; return the lost requests."""
    lost: list[str] = []

    def loses(method: str, path: str) -> bool:
        if lost or method != "PUT" or not all(part in path for part in parts):
            return False
        lost.append(path)
        return True

    way.answer = response
    way.loses = loses
    return lost


@pytest.mark.parametrize("response", [None, 500], ids=["connection lost", "server error after the write"])
@pytest.mark.parametrize("parts", [("__log",), ("nodes", "_versions"), ("nodes", "data")])
def test_a_commit_whose_response_is_lost_exists_once(uri, way, response, parts):
    graph = og.open(uri, environ=way.environ)
    lost = lose_response(way, response, *parts)
    commit = add_pair(repository_of(graph), "once")
    assert lost
    assert graph.commits()[0].id == commit.id
    assert len(check_sound(graph, {*seeds(SEEDED), "once"})) == 2 + SEEDED


@pytest.mark.parametrize("response", [None, 500], ids=["connection lost", "server error after the write"])
def test_an_init_whose_response_is_lost_creates_one_graph(s3, way, response):
    uri = s3.new_place()
    lost = lose_response(way, response, "__manifest", "_versions")
    graph = new_graph(uri, 1, environ=way.environ)
    assert lost
    assert len(check_sound(graph, seeds(1))) == 2


@pytest.mark.parametrize("response", [None, 500], ids=["connection lost", "server error after the write"])
@pytest.mark.parametrize("number", [1, 2], ids=["first write", "second write"])
def test_a_lost_response_to_the_probe_does_not_refuse_the_store(uri, way, response, number):
    seen: list[str] = []

    def loses(method: str, path: str) -> bool:
        if method != "PUT" or "probe" not in path:
            return False
        seen.append(path)
        return len(seen) == number

    way.answer, way.loses = response, loses
    graph = og.open(uri, environ=way.environ)
    assert len(seen) > number
    way.loses = lambda _method, _path: False
    assert [repository_of(graph).objects.read(path.rpartition("/")[2].partition("?")[0]) for path in set(seen)] == [
        None
    ]
    add_pair(repository_of(graph), "more")


def test_a_probe_without_response_is_reported_as_unreachable(uri, way):
    way.answer, way.loses = 400, lambda method, path: method == "PUT" and "probe" in path
    with pytest.raises(StorageError) as refused:
        og.open(uri, environ=way.environ)
    assert refused.value.code == "unreachable"


REASONS = [
    (400, ("ExpiredToken", "The provided token has expired."), "credentials_expired", "new credentials"),
    (403, ("RequestTimeTooSkewed", "The difference is too large."), "clock_skew", "clock"),
    (400, ("InvalidToken", "The provided token is malformed."), "no_access", "AWS_ACCESS_KEY_ID"),
    (400, ("KMS.DisabledException", "The key is disabled."), "unreachable", "reason"),
]


def check_reason(attempt, reason, code, hint):
    with pytest.raises(StorageError) as refused:
        attempt()
    assert refused.value.code == code
    assert f"{reason[0]}: {reason[1]}" in refused.value.message
    assert "http" not in refused.value.message
    assert hint in (refused.value.hint or "")


def test_errors_contain_the_reason_of_the_store(uri, way):
    graph = og.open(uri, environ=way.environ)
    way.loses = lambda _method, _path: True
    for way.answer, way.reason, code, hint in REASONS:
        check_reason(lambda: repository_of(graph).objects.read("_schema.pg"), way.reason, code, hint)
    way.answer, way.reason, code, hint = REASONS[0]
    check_reason(lambda: og.open(uri, read_only=True, environ=way.environ), way.reason, code, hint)


@pytest.mark.long
@pytest.mark.parametrize(("status", "reason", "code", "hint"), REASONS)
def test_errors_of_every_operation_contain_the_reason_of_the_store(uri, way, status, reason, code, hint):
    graph = og.open(uri, environ=way.environ)
    way.answer, way.reason, way.loses = status, reason, lambda _method, _path: True
    for attempt in (
        lambda: og.open(uri, read_only=True, environ=way.environ),
        lambda: og.open(uri, environ=way.environ),
        lambda: add_pair(repository_of(graph), "more"),
    ):
        check_reason(attempt, reason, code, hint)
