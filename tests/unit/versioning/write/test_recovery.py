"""Recovery resolves the intents of crashed writers once and does not disturb live writers.

A crash is simulated by a write that stops at a failpoint and whose intent is then restored with a dead writer.
"""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import OmniGraphError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.upkeep.verify import verify
from omnigraph.versioning.write import leases
from omnigraph.versioning.write.leases import LEASE_S, process_start, writer_identity
from omnigraph.versioning.write.recovery import pending, recover, recovery_log
from support.graphs import (
    KNOWS,
    PERSON,
    Ticks,
    add_people,
    change,
    files_below,
    ids_of,
    knows,
    new_repository,
    open_repository,
    people,
    write_elsewhere,
)

DEAD = {**writer_identity(), "id": "dead", "pid": 2**22 + 1, "started": "1"}
ELSEWHERE = {"id": "elsewhere", "boot_id": "another kernel", "pid_namespace": "pid:[1]", "pid": 1, "started": "1"}
CONTAINER = {**writer_identity(), "id": "container", "pid_namespace": "pid:[2]", "pid": 1, "started": "1"}
"""A process of another container on this machine."""
BOTH = {PERSON: TableWrite(append=people("lost")), KNOWS: TableWrite(append=knows(("lost", "lost")))}


@pytest.fixture
def root(tmp_path):
    return tmp_path / "g"


@pytest.fixture
def repository(root):
    repository = new_repository(root)
    add_people(repository, "a")
    return repository


def crash(repository, root, failpoint, writer=DEAD, passes=0, **options):
    """Stop a write at a failpoint and leave its intent as a process that died there would."""
    intents = {}
    left = [passes]
    if failpoint == "table.detached":
        write_elsewhere(repository)

    def stop():
        if left[0]:
            left[0] -= 1
            return
        intents.update((path, path.read_bytes()) for path in (root / "__recovery").glob("*.json"))
        raise OmniGraphError("dead")

    with pytest.raises(OmniGraphError, match="dead"), arm(failpoint, stop):
        change(repository, BOTH, **options)
    ((path, data),) = intents.items()
    intent = {**json.loads(data), "writer": writer}
    path.write_text(json.dumps(intent))
    return intent


def outcomes(repository):
    return [one.outcome for one in recover(repository)]


def intents(root):
    return sorted(path.name for path in (root / "__recovery").iterdir())


# -- roll forward and roll back ------------------------------------------------------------------------


def test_recovery_without_intents_does_nothing(repository, root):
    before = files_below(root)
    assert recover(repository) == []
    assert recovery_log(repository) == []
    assert files_below(root) == before, "there is no audit table before the first recovery"


def test_a_write_that_landed_is_rolled_forward(repository, root):
    intent = crash(repository, root, "publish.after_commit", actor="ada")
    (found,) = recover(repository)
    assert (found.outcome, found.commit_id, found.branch, found.actor) == (
        "rolled_forward",
        intent["graph_commit_id"],
        "main",
        "ada",
    )
    assert intents(root) == []
    assert ids_of(repository.snapshot()) == ["a", "lost"]
    (row,) = recovery_log(repository)
    assert row["recovery_kind"] == "RolledForward"
    assert row["graph_commit_id"] == intent["graph_commit_id"]
    assert row["operation_id"] == intent["operation_id"]
    assert (row["recovery_for_actor"], row["sidecar_writer_kind"]) == ("ada", "write")
    assert verify(repository) == []


@pytest.mark.parametrize(
    ("failpoint", "passes"),
    [
        ("intent.written", 0),
        ("table.numbered", 0),
        ("table.detached", 0),
        ("table.promoted", 0),
        ("table.detached", 1),
        ("table.promoted", 1),
        ("publish.before_commit", 0),
    ],
)
def test_a_write_that_did_not_land_is_rolled_back(repository, root, failpoint, passes):
    before = repository.commits()
    intent = crash(repository, root, failpoint, passes=passes)
    assert outcomes(repository) == ["rolled_back"]
    assert intents(root) == []
    assert repository.commits() == before
    assert ids_of(repository.snapshot()) == ["a"]
    assert repository.state().is_aborted(intent["graph_commit_id"])
    (row,) = recovery_log(repository)
    assert row["recovery_kind"] == "RolledBack"
    add_people(repository, "next")
    assert ids_of(open_repository(root).snapshot()) == ["a", "next"]
    assert verify(open_repository(root)) == []


def test_versions_of_a_write_that_did_not_land_are_removed(repository, root):
    intent = crash(repository, root, "publish.before_commit")
    add_people(repository, "b")  # so that the lost version is not the newest of the table
    table = repository.snapshot().tables[PERSON]
    (found,) = recover(repository)
    assert [one["table_key"] for one in found.tables] == [PERSON]
    (removed,) = found.tables
    assert removed["to_version"] == next(t["expected_version"] for t in intent["tables"] if t["table_key"] == PERSON)
    assert removed["from_version"] == table.pin.lance_version - 1
    (row,) = recovery_log(repository)
    assert json.loads(row["per_table_outcomes_json"]) == [dict(removed)]
    with pytest.raises(OmniGraphError, match="reclaimed"):
        repository.tables.open(table.folder, removed["from_version"])
    assert ids_of(repository.snapshot()) == ["a", "b"]
    assert verify(repository) == []


def test_several_intents_are_resolved_independently(repository, root):
    crash(repository, root, "publish.after_commit")
    held = intents(root)[0]
    moved = root / "held.json"
    (root / "__recovery" / held).rename(moved)
    change(repository, {PERSON: TableWrite(delete=["lost"]), KNOWS: TableWrite(delete=["lost-lost"])})
    crash(repository, root, "publish.before_commit")
    moved.rename(root / "__recovery" / held)
    assert sorted(outcomes(repository)) == ["rolled_back", "rolled_forward"]
    assert sorted(row["recovery_kind"] for row in recovery_log(repository)) == ["RolledBack", "RolledForward"]


def test_a_second_recovery_does_nothing(repository, root):
    crash(repository, root, "publish.before_commit")
    recover(repository)
    before = files_below(root)
    assert recover(repository) == []
    assert recover(open_repository(root)) == []
    assert files_below(root) == before
    assert len(recovery_log(repository)) == 1


@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("failpoint", ["recovery.listed", "recovery.fenced", "recovery.collected", "recovery.audited"])
def test_a_recovery_that_fails_anywhere_can_be_repeated(repository, root, failpoint, landed):
    crash(repository, root, "publish.after_commit" if landed else "publish.before_commit")
    try:
        with arm(failpoint):
            recover(repository)
    except OmniGraphError:
        assert len(intents(root)) == 1
        assert outcomes(open_repository(root)) == ["rolled_forward" if landed else "rolled_back"]
    assert intents(root) == []
    assert len(recovery_log(repository)) == 1, "exactly one audit row, however often it was tried"
    assert ids_of(repository.snapshot()) == (["a", "lost"] if landed else ["a"])
    assert verify(repository) == []


def test_the_table_of_a_dead_write_may_be_missing(repository, root):
    intent = crash(repository, root, "publish.before_commit")
    intent["tables"].append({"table_key": "node:Gone", "table_path": "nodes/gone", "expected_version": 1})
    (root / "__recovery" / intents(root)[0]).write_text(json.dumps(intent))
    assert outcomes(repository) == ["rolled_back"]
    assert intents(root) == []


# -- liveness ------------------------------------------------------------------------------------------


def test_the_intent_of_a_live_writer_is_kept(repository, root):
    crash(repository, root, "publish.before_commit", writer=writer_identity())
    before = files_below(root)
    assert outcomes(repository) == ["in_progress"]
    assert files_below(root) == before
    add_people(repository, "b")
    assert ids_of(repository.snapshot()) == ["a", "b"]


def test_a_reused_pid_is_not_the_writer(repository, root):
    crash(repository, root, "publish.before_commit", writer={**writer_identity(), "id": "gone", "started": "long ago"})
    assert outcomes(repository) == ["rolled_back"]


def age_intent(root, seconds):
    """Make every intent some seconds old by the store's clock."""
    for path in (root / "__recovery").glob("*.json"):
        then = time.time() - seconds
        os.utime(path, (then, then))


@pytest.mark.parametrize("writer", [ELSEWHERE, CONTAINER, {"host": "of an older release", "pid": 1}], ids=str)
def test_liveness_in_another_process_table_depends_on_the_lease(repository, root, writer):
    crash(repository, root, "publish.before_commit", writer=writer)
    assert outcomes(repository) == ["in_progress"]
    age_intent(root, LEASE_S - 20)
    assert outcomes(repository) == ["in_progress"]
    age_intent(root, LEASE_S + 1)
    assert outcomes(repository) == ["rolled_back"]


@pytest.mark.parametrize("hours", [-24 * 365, -1, 1, 24 * 365])
def test_the_host_clock_of_a_recovery_is_irrelevant(repository, root, hours):
    crash(repository, root, "publish.before_commit", writer=ELSEWHERE)
    shifted = Ticks()
    shifted.sleep(timedelta(hours=hours))
    assert outcomes(open_repository(root, clock=shifted)) == ["in_progress"]


def test_a_slow_writer_of_another_machine_keeps_its_lease(root, monkeypatch):
    """The writer takes longer than its lease between its intent and its publish, while a recovery runs continuously."""
    monkeypatch.setattr(leases, "RENEW_S", 0.002)
    other = open_repository(new_repository(root).location.uri)
    repository = open_repository(root)
    seen = []

    def be_slow():
        for _ in range(4):
            age_intent(root, 2 * LEASE_S)
            for _ in range(5_000):
                if time.time() - intent_time(root) < LEASE_S / 2:
                    break
                time.sleep(0.001)
            seen.extend(outcomes(other))

    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(leases, "_process_is_alive", lambda _: None)
        with arm("publish.before_commit", once_outside_recovery(be_slow)):
            commit = add_people(repository, "slow")
    assert seen == ["in_progress"] * 4
    assert repository.snapshot().commit_id == commit.id
    assert intents(root) == []
    assert recovery_log(repository) == []


def test_a_lease_that_cannot_be_renewed_does_not_fail_the_write(root, monkeypatch):
    monkeypatch.setattr(leases, "RENEW_S", 0.001)
    repository = new_repository(root)
    written, tried = [], threading.Event()
    objects = repository.tables.objects
    write = objects.write

    def fail_to_renew(name, data):
        if name in written:
            tried.set()
            raise OmniGraphError("the network is down")
        written.append(name)
        write(name, data)

    monkeypatch.setattr(objects, "write", fail_to_renew)
    with arm("publish.before_commit", lambda: tried.wait(10)):
        add_people(repository, "a")
    assert tried.is_set()
    assert intents(root) == []
    assert ids_of(repository.snapshot()) == ["a"]


def intent_time(root):
    (path,) = (root / "__recovery").glob("*.json")
    return path.stat().st_mtime


def test_a_fenced_writer_that_resumes_fails_and_starts_over(root):
    repository = new_repository(root)
    other = open_repository(root)
    settled = []

    def abort():
        if not settled:
            (name,) = intents(root)
            path = root / "__recovery" / name
            path.write_text(json.dumps({**json.loads(path.read_bytes()), "writer": DEAD}))
            settled.extend(recover(other))

    with arm("publish.before_commit", once_outside_recovery(abort)):
        commit = add_people(repository, "slow")
    assert [one.outcome for one in settled] == ["rolled_back"]
    assert commit.id != settled[0].commit_id
    assert ids_of(other.snapshot()) == ["slow"]
    assert verify(open_repository(root)) == []


def once_outside_recovery(action):
    """The recovery publishes too; it must not reach the same failpoint again."""
    busy = []

    def run():
        if not busy:
            busy.append(1)
            action()

    return run


def test_process_start():
    assert process_start(os.getpid()) == writer_identity()["started"]
    assert process_start(DEAD["pid"]) is None
    assert process_start(2**70) is None


# -- unreadable intents --------------------------------------------------------------------------------

WHOLE = {
    "schema_version": 1,
    "operation_id": "01J",
    "graph_commit_id": "01K",
    "branch": "main",
    "lease_s": 0,
    "tables": [],
    "writer": DEAD,
}


def put_intent(root, data, name="bad.json"):
    folder = root / "__recovery"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not an intent"),
        (json.dumps(WHOLE).encode()[:40], "not an intent"),
        (b"\xff\xfe\x00", "not an intent"),
        (b"[]", "not an intent"),
        (b"null", "not an intent"),
        ({**WHOLE, "schema_version": 3}, "newer release (generation 3)"),
        ({**WHOLE, "tables": 7}, "not an intent"),
        ({**WHOLE, "tables": [{}]}, "not an intent"),
        ({**WHOLE, "tables": [{"table_key": "k", "table_path": "p", "expected_version": "x"}]}, "not an intent"),
        ({**WHOLE, "graph_commit_id": "graph_head:main"}, "'graph_commit_id' is not an id"),
        ({**WHOLE, "operation_id": "../../x"}, "'operation_id' is not an id"),
        (b"[" * 100_000, "not an intent"),
        ({**WHOLE, "operation_id": None}, "not an intent"),
        ({**WHOLE, "writer": "me"}, "not an intent"),
        ({**WHOLE, "actor_id": "\ud800"}, "not an intent"),
        ({**WHOLE, "writer_kind": "\ud800"}, "not an intent"),
        ({key: value for key, value in WHOLE.items() if key != "branch"}, "not an intent"),
    ],
    ids=str,
)
def test_an_unreadable_intent_is_reported_and_blocks_nothing(repository, root, data, words):
    put_intent(root, data)
    before = (root / "__recovery" / "bad.json").read_bytes()
    for _ in range(2):
        (found,) = recover(repository)
        assert (found.outcome, found.intent) == ("unreadable", "__recovery/bad.json")
        assert words in found.detail
        assert [one.outcome for one in pending(repository)] == ["unreadable"]
    assert (root / "__recovery" / "bad.json").read_bytes() == before
    add_people(repository, "b")
    assert recovery_log(repository) == []
    assert verify(repository) == []


def test_an_unreadable_intent_does_not_block_the_others(repository, root):
    crash(repository, root, "publish.before_commit")
    put_intent(root, b"{", "00.json")
    put_intent(root, b"{", "zz.json")
    assert outcomes(repository) == ["unreadable", "rolled_back", "unreadable"]
    assert intents(root) == ["00.json", "zz.json"]


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(WHOLE)), anything)
def test_arbitrary_intents_do_not_crash_recovery(repository, root, field, value):
    put_intent(root, {**WHOLE, field: value})
    (found,) = recover(repository)
    assert found.outcome in ("unreadable", "rolled_back", "in_progress")
    (root / "__recovery" / "bad.json").unlink(missing_ok=True)


LEASES = {"huge": 10**400, "low": -(10**400), "float": 1e308, "negative": -1.0, "infinite": float("inf"), "text": "x"}


@pytest.mark.parametrize("lease_s", LEASES.values(), ids=LEASES.keys())
def test_a_lease_of_any_size_is_bounded(repository, root, lease_s):
    put_intent(root, {**WHOLE, "writer": {"pid": -1}, "lease_s": lease_s})
    assert outcomes(repository)[0] in ("rolled_back", "in_progress")
    add_people(repository, "b")


def test_special_files_among_the_intents_block_nothing(repository, root):
    folder = root / "__recovery"
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "pipe.json")
    (folder / "loop.json").symlink_to(folder / "loop.json")
    (folder / "folder.json").mkdir()
    assert recover(repository) == []
    add_people(repository, "b")
    assert verify(repository) == []


def test_an_intent_that_disappears_during_recovery_is_skipped(repository, root):
    put_intent(root, WHOLE)
    with arm("recovery.listed", lambda: (root / "__recovery" / "bad.json").unlink()):
        assert recover(repository) == []


# -- reports -------------------------------------------------------------------------------------------


def test_pending_changes_nothing(repository, root):
    intent = crash(repository, root, "publish.before_commit", actor="ada")
    before = files_below(root)
    (found,) = pending(repository)
    assert found.to_json() == {
        "intent": f"__recovery/{intent['operation_id']}.json",
        "outcome": "in_progress",
        "graph_commit_id": intent["graph_commit_id"],
        "branch": "main",
        "actor_id": "ada",
        "tables": intent["tables"],
        "detail": None,
    }
    assert files_below(root) == before


def test_old_abort_rows_are_dropped_by_a_later_recovery(repository, root, monkeypatch):
    first = crash(repository, root, "publish.before_commit")
    recover(repository)
    later = datetime.now(UTC) + timedelta(hours=25)
    monkeypatch.setattr(repository.objects, "now", lambda: later)
    second = crash(repository, root, "publish.before_commit")
    recover(repository)
    assert [row["object_id"] for row in repository.state().aborts()] == [second["graph_commit_id"]]
    assert not repository.state().is_aborted(first["graph_commit_id"])
    assert len(recovery_log(repository)) == 2


# -- foreign intents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../other/{folder}", "{other}/{folder}", "nodes/../../other/{folder}"])
def test_an_intent_cannot_name_tables_of_another_graph(repository, root, tmp_path, path):
    other = new_repository(tmp_path / "other")
    add_people(other, "mine")
    doomed = crash(repository, root, "publish.before_commit")
    folder = other.snapshot().tables[PERSON].folder
    # The other graph has a version of the commit that the intent aborts.
    crash(other, tmp_path / "other", "publish.before_commit", writer=writer_identity())
    (held,) = (tmp_path / "other" / "__recovery").glob("*.json")
    doomed["graph_commit_id"] = json.loads(held.read_bytes())["graph_commit_id"]
    held.unlink()
    add_people(other, "more")
    named = path.format(folder=folder, other=tmp_path / "other")
    doomed["tables"] = [{"table_key": PERSON, "table_path": named, "expected_version": 1}]
    (root / "__recovery" / intents(root)[0]).write_text(json.dumps(doomed))
    before = files_below(tmp_path / "other")
    (found,) = recover(repository)
    assert found.outcome == "rolled_back"
    assert "the manifest does not list" in found.detail
    assert files_below(tmp_path / "other") == before
