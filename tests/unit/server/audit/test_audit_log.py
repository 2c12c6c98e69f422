"""Writing the audit log: the chain, files, processes, and failing disks."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from omnigraph.errors import StorageError
from omnigraph.server.audit import AuditLog, read, verify
from omnigraph.server.audit.chain_files import HeldChain, Mark
from support.audit_entries import entry, full_disk

HOSTILE = [
    'x\r\n{"at":"2027-01-01T00:00:00.000000Z"}',
    "\x1b[2J\x9b31m\x00\x7f",
    "\u2028\u2029\u202e",
    "\ud800 unpaired",
    "é" * 5000,
    '"\\',
]


def lines_of(folder: Path) -> list[bytes]:
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


def test_a_record_is_one_line_with_the_hash_of_the_line_before(tmp_path):
    log = AuditLog(tmp_path)
    for number in range(3):
        log.record(entry(request_id=f"r{number}", actor="ana", rules=["editors-change"], commit="c1"))
    log.close()
    lines = lines_of(tmp_path)
    found = [json.loads(line) for line in lines]
    assert [record["request_id"] for record in found] == ["r0", "r1", "r2"]
    assert [record["seq"] for record in found] == [1, 2, 3]
    assert found[0]["prev"] == "0" * 64
    assert [record["prev"] for record in found[1:]] == [hashlib.sha256(line).hexdigest() for line in lines[:-1]]
    assert list(found[0]) == [
        *("at", "seq", "request_id", "actor", "token_name", "remote", "route", "graph", "branch", "action"),
        *("decision", "rules", "commit", "rows", "query_hash", "definer", "status", "ms", "prev"),
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", found[0]["at"])


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_text_breaks_a_line(tmp_path, text):
    log = AuditLog(tmp_path)
    members = ("request_id", "actor", "token_name", "remote", "route", "graph", "branch", "action", "query_hash")
    log.record(entry(**dict.fromkeys(members, text), rules=[text]))
    log.record(entry())
    log.close()
    (content,) = [path.read_bytes() for path in tmp_path.glob("*.jsonl")]
    assert content.count(b"\n") == 2
    assert all(32 <= byte < 127 or byte == 10 for byte in content)
    assert verify(tmp_path).sound
    found = next(read(tmp_path))
    assert found.actor is not None
    assert found.actor[:1024] == text.encode(errors="backslashreplace").decode()[:1024]
    assert len(found.actor) <= 1025


def test_files_are_closed_at_their_size_and_the_chain_goes_on(write, tmp_path):
    files = write(20, per_file=4)
    assert len(files) > 3
    assert [int(path.stem.rsplit("-", 1)[1]) for path in files] == list(range(1, len(files) + 1))
    assert len({path.name.split("-")[2] for path in files}) == 1
    assert verify(tmp_path).records == 20
    assert verify(tmp_path).problems == []


def test_files_are_closed_at_the_end_of_the_day(tmp_path, monkeypatch):
    log = AuditLog(tmp_path)
    log.record(entry())
    file = log._file
    assert file is not None
    monkeypatch.setattr(file, "_day", "20200101")
    log.record(entry())
    log.close()
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    assert verify(tmp_path).sound


def test_a_new_process_continues_the_chain(write, tmp_path):
    write(3)
    write(2)
    report = verify(tmp_path)
    assert (report.chains, report.files, report.records, report.problems) == (1, 2, 5, [])


def test_nothing_is_created_before_the_first_record(tmp_path):
    AuditLog(tmp_path / "new" / "audit").close()
    AuditLog(tmp_path / "new" / "audit").close()
    (head,) = (tmp_path / "new" / "audit").iterdir()
    assert head.suffix == ".head"
    assert verify(head.parent).sound


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_files_are_private(write, tmp_path):
    write(1)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_torn_line_is_left_and_the_chain_goes_on(write, tmp_path):
    (path,) = write(2)
    with path.open("ab") as file:
        file.write(b'{"at":"2027-01-0')
    write(2)
    report = verify(tmp_path)
    assert report.sound
    assert [(problem.kind, problem.line) for problem in report.problems] == [("torn", 3)]
    assert report.records == 4


def test_an_empty_file_after_a_crash(write, tmp_path):
    (path,) = write(2)
    path.with_name(path.name.replace("000001", "000002")).write_bytes(b"")
    write(2)
    assert verify(tmp_path).problems == []
    assert verify(tmp_path).files == 3


def test_a_damaged_chain_is_not_continued(write, tmp_path):
    (path,) = write(2)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + b"not a record\n")
    write(1)
    assert verify(tmp_path).chains == 2
    assert not verify(tmp_path).sound


def test_a_gap_stays_visible_after_a_restart(write, tmp_path):
    (path,) = write(3)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    write(1)
    assert [problem.what for problem in verify(tmp_path).problems] == ["record 3 is missing here"]


def test_logs_at_the_same_time_have_a_chain_each(tmp_path):
    first, second = AuditLog(tmp_path), AuditLog(tmp_path)
    for log in (first, second, first):
        log.record(entry())
    first.close()
    second.close()
    report = verify(tmp_path)
    assert (report.chains, report.records, report.problems) == (2, 3, [])


def test_threads_share_a_log(tmp_path):
    log = AuditLog(tmp_path, bytes_max=3000)

    def work(name: str) -> None:
        for number in range(25):
            log.record(entry(request_id=f"{name}{number}"), durable=number % 3 == 0)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    log.close()
    report = verify(tmp_path)
    assert (report.chains, report.records, report.problems) == (1, 200, [])
    assert len({record.request_id for record in read(tmp_path)}) == 200


PROCESS = """
import sys
from pathlib import Path
from omnigraph.server.audit import AuditLog, AuditRecord
log = AuditLog(Path(sys.argv[1]))
for number in range(1_000_000):
    log.record(AuditRecord(request_id=str(number), route="x", action="read", decision="deny", status=403, ms=0.0))
    print(number, flush=True)
"""


def test_killed_processes_lose_no_answered_record(tmp_path):
    """Three processes write until they are killed; every record whose call returned is in a sound log."""
    running = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answered = 0
    for process in running:
        assert process.stdout is not None
        for _ in range(20):
            assert process.stdout.readline()
    for process in running:
        process.kill()
        printed, _ = process.communicate(timeout=60)
        answered += 20 + sum(line.endswith("\n") for line in printed.splitlines(keepends=True))
    report = verify(tmp_path)
    assert report.sound
    assert report.chains == 3
    assert report.records >= answered
    AuditLog(tmp_path).close()
    assert verify(tmp_path).chains == 3


def test_without_required_a_failure_is_logged_once(tmp_path, caplog):
    log = AuditLog(tmp_path)
    log.record(entry(request_id="a"))
    with full_disk(1000):
        for _ in range(5):
            log.record(entry(request_id="x"))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    log.record(entry(request_id="b"))
    log.close()
    found = [(record.request_id, record.action) for record in read(tmp_path)]
    assert found == [("a", "change"), ("x", "change"), ("b", "change"), ("", "audit_resume")]
    assert [record.rows for record in read(tmp_path)][-1] == 4
    assert verify(tmp_path).problems == []


def test_with_required_a_failure_fails_the_request(tmp_path):
    log = AuditLog(tmp_path, required=True)
    log.check()
    log.record(entry())
    with full_disk(500):
        with pytest.raises(StorageError) as caught:
            log.record(entry())
        with pytest.raises(StorageError):
            log.check()
    assert caught.value.code == "audit_unavailable"
    assert str(tmp_path) not in caught.value.message
    log.check()
    log.record(entry())
    log.close()
    assert [record.action for record in read(tmp_path)] == ["change", "audit_resume", "change"]
    assert verify(tmp_path).problems == []


def test_a_failed_flush_ends_the_file(tmp_path):
    log = AuditLog(tmp_path, required=True)
    log.record(entry(request_id="a"))
    assert log._file is not None
    log._file.failure = OSError(5, "Input/output error")
    log.record(entry(request_id="b"))
    log.close()
    assert [record.request_id for record in read(tmp_path)] == ["a", "b"]
    assert (verify(tmp_path).files, verify(tmp_path).problems) == (2, [])


def test_a_closed_log_takes_no_record(tmp_path, caplog):
    log = AuditLog(tmp_path)
    log.record(entry())
    log.close()
    log.close()
    log.record(entry())
    assert "it is closed" in caplog.text
    log.required = True
    with pytest.raises(StorageError):
        log.record(entry())
    assert (verify(tmp_path).records, verify(tmp_path).problems) == (1, [])


def test_threads_on_a_full_disk_count_every_lost_record(tmp_path, caplog):
    log = AuditLog(tmp_path)
    log.record(entry(request_id="r"))
    with full_disk(450):
        threads = [threading.Thread(target=lambda: [log.record(entry()) for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    log.record(entry())
    log.close()
    assert [record.rows for record in read(tmp_path) if record.action == "audit_resume"] == [80]
    assert verify(tmp_path).problems == []
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_a_folder_that_cannot_be_written_fails_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError) as caught:
        AuditLog(tmp_path / "file" / "audit")
    assert caught.value.code == "audit_unavailable"


def test_a_head_that_is_not_written_completely_is_an_error(tmp_path):
    held = next(HeldChain.take(tmp_path))
    with full_disk(40), pytest.raises(OSError, match="not written completely"):
        held.write(Mark(1))
    held.release()
