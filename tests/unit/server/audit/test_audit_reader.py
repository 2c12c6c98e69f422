"""Reading the audit log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from omnigraph.errors import InputError, NotFound
from omnigraph.server.audit import AuditFilter, AuditLog, read
from support.audit_entries import entry


def ids(folder, *filters, **options):
    return [record.request_id for record in read(folder, *filters, **options)]


@pytest.fixture
def log(tmp_path):
    log = AuditLog(tmp_path)
    yield log
    log.close()


def test_filters(log, tmp_path):
    log.record(entry(request_id="a", actor="ana"))
    log.record(entry(request_id="b", actor="bo", decision="deny", action="read"))
    log.record(entry(request_id="c", decision="deny"))
    assert ids(tmp_path) == ["a", "b", "c"]
    assert ids(tmp_path, AuditFilter(actor="ana")) == ["a"]
    assert ids(tmp_path, AuditFilter(action="change")) == ["a", "c"]
    assert ids(tmp_path, AuditFilter(decision="deny", action="read")) == ["b"]
    assert ids(tmp_path, AuditFilter(actor="")) == []
    assert [record.request_id for record in log.read(AuditFilter(decision="deny"), limit=1)] == ["b"]


def test_times(log, tmp_path):
    for name in "abc":
        log.record(entry(request_id=name))
    a, b, c = [datetime.fromisoformat(record.at) for record in read(tmp_path)]
    assert ids(tmp_path, AuditFilter(since=b)) == ["b", "c"]
    assert ids(tmp_path, AuditFilter(until=b)) == ["a"]
    assert ids(tmp_path, AuditFilter(since=a, until=c)) == ["a", "b"]
    assert ids(tmp_path, AuditFilter(since=datetime.now(UTC) + timedelta(days=2))) == []
    assert ids(tmp_path, AuditFilter(until=datetime.now(UTC) - timedelta(days=2))) == []


def test_pages_of_several_chains(tmp_path):
    logs = [AuditLog(tmp_path, bytes_max=1000) for _ in range(3)]
    for number in range(30):
        logs[number % 3].record(entry(request_id=f"r{number:02}"))
    expected = [f"r{number:02}" for number in range(30)]
    assert ids(tmp_path) == expected
    found, after = [], None
    while True:
        page = read(tmp_path, after=after, limit=7)
        records = [record.request_id for record in page]
        if not records:
            break
        found += records
        after = page.cursor
    assert found == expected
    logs[1].record(entry(request_id="new"))
    assert ids(tmp_path, after=after) == ["new"]
    for log in logs:
        log.close()


def test_a_cursor_passes_records_that_do_not_match(log, tmp_path):
    for number in range(4):
        log.record(entry(request_id=str(number), actor="ana" if number == 1 else "bo"))
    page = read(tmp_path, AuditFilter(actor="ana"))
    assert [record.request_id for record in page] == ["1"]
    assert ids(tmp_path, after=page.cursor) == []


@pytest.mark.parametrize(
    "cursor", ["x", "0" * 16, f"{'0' * 16}-1.", f"{'0' * 16}-{'9' * 19}", "../../etc/passwd", "\n"]
)
def test_a_wrong_cursor_is_refused(log, tmp_path, cursor):
    with pytest.raises(InputError) as caught:
        read(tmp_path, after=cursor)
    assert caught.value.code == "bad_audit_cursor"


def test_lines_that_are_no_records_are_counted(write, tmp_path):
    (path,) = write(3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\xff\xfe\n" + lines[2] + b'{"at":')
    page = read(tmp_path)
    assert [record.request_id for record in page] == ["r0000", "r0002"]
    assert page.unreadable == 2


def test_a_missing_folder(tmp_path):
    with pytest.raises(NotFound) as caught:
        read(tmp_path / "none")
    assert caught.value.code == "no_audit_log"
