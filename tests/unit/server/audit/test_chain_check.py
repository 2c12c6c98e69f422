"""Verification of the audit log: every removed, altered, moved or repeated line and file is found."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from omnigraph.errors import NotFound
from omnigraph.server.audit import AuditLog, read, verify
from support.audit_entries import entry


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def problems(folder: Path) -> list[tuple[str, str, int | None]]:
    return [(problem.kind, problem.file[-12:-6], problem.line) for problem in verify(folder).problems]


@pytest.fixture
def path(write):
    """One file with records 1 to 6."""
    (path,) = write(6)
    return path


@pytest.fixture
def files(write):
    """Several files of one chain."""
    files = write(20, per_file=4)
    assert len(files) >= 4
    return files


def test_a_sound_log(files, tmp_path):
    report = verify(tmp_path)
    assert report.sound
    assert (report.chains, report.files, report.records, report.problems) == (1, len(files), 20, [])


@pytest.mark.parametrize("number", range(6))
def test_a_removed_line(path, tmp_path, number):
    rest = lines(path)
    del rest[number]
    path.write_bytes(b"".join(rest))
    (problem,) = verify(tmp_path).problems
    assert (problem.kind, problem.line) == ("missing", min(number + 1, 5))
    assert problem.what == f"record {number + 1} is missing here"
    assert not verify(tmp_path).sound


def test_several_removed_lines(path, tmp_path):
    rest = lines(path)
    path.write_bytes(b"".join(rest[:1] + rest[4:]))
    assert [problem.what for problem in verify(tmp_path).problems] == ["records 2 to 4 are missing here"]


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize(
    ("old", "new"), [(b'"status":200', b'"status":403'), (b"POST /change", b"POST /chang3"), (b"}", b" }")]
)
def test_an_altered_line(path, tmp_path, number, old, new):
    changed = lines(path)
    assert old in changed[number]
    changed[number] = changed[number].replace(old, new, 1)
    path.write_bytes(b"".join(changed))
    assert problems(tmp_path) == [("altered", "000001", number + 1)]


def test_an_altered_number(path, tmp_path):
    changed = lines(path)
    changed[2] = changed[2].replace(b'"seq":3', b'"seq":30')
    path.write_bytes(b"".join(changed))
    assert problems(tmp_path) == [("altered", "000001", 3)]


@pytest.mark.parametrize("junk", [b"\n", b"junk\n", b"\xff\n", b"{}\n", b"[1]\n", b"[" * 5000 + b"\n"], ids=ascii)
@pytest.mark.parametrize("number", [0, 3, 5])
def test_a_replaced_line(path, tmp_path, number, junk):
    changed = lines(path)
    changed[number] = junk
    path.write_bytes(b"".join(changed))
    found = problems(tmp_path)
    assert found[0] == ("altered", "000001", number + 1)
    assert not verify(tmp_path).sound


def test_swapped_lines(path, tmp_path):
    changed = lines(path)
    changed[2], changed[3] = changed[3], changed[2]
    path.write_bytes(b"".join(changed))
    assert problems(tmp_path) == [("reordered", "000001", 4)]


def test_a_repeated_line(path, tmp_path):
    changed = lines(path)
    path.write_bytes(b"".join([*changed[:4], changed[1], *changed[4:]]))
    assert problems(tmp_path) == [("repeated", "000001", 5)]


def test_a_truncated_file(path, tmp_path):
    path.write_bytes(path.read_bytes()[:-10])
    assert problems(tmp_path) == [("torn", "000001", 6), ("missing", "000001", 5)]
    path.write_bytes(b"")
    assert [problem.what for problem in verify(tmp_path).problems] == ["records 1 to 6 are missing here"]


def test_a_truncated_file_in_the_middle(files, tmp_path):
    files[1].write_bytes(files[1].read_bytes()[:-10])
    assert [kind for kind, _, _ in problems(tmp_path)] == ["torn", "missing"]


def test_a_removed_file(files, tmp_path):
    files[1].unlink()
    first, second = verify(tmp_path).problems
    assert (first.kind, first.what) == ("missing_file", "file 2 is missing before this one")
    assert second.kind == "missing"


def test_the_first_and_the_last_file_removed(files, tmp_path):
    files[0].unlink()
    assert [kind for kind, _, _ in problems(tmp_path)] == ["missing_file", "missing"]
    for file in files[1:]:
        file.unlink()
    assert [problem.what for problem in verify(tmp_path).problems] == ["records 1 to 20 are missing here"]


def test_swapped_files(files, tmp_path):
    first, second = files[1].read_bytes(), files[2].read_bytes()
    files[1].write_bytes(second)
    files[2].write_bytes(first)
    assert {kind for kind, _, _ in problems(tmp_path)} == {"reordered"}


def test_a_renamed_file(files, tmp_path):
    files[-1].rename(files[-1].with_name(files[-1].name[:-8] + "99.jsonl"))
    assert [kind for kind, _, _ in problems(tmp_path)] == ["missing_file"]


@pytest.mark.parametrize("content", [None, b"x", b"\xff" * 86, b"0" * 86])
def test_a_removed_or_damaged_head(path, tmp_path, content):
    (head,) = tmp_path.glob("*.head")
    head.unlink() if content is None else head.write_bytes(content)
    assert [problem.kind for problem in verify(tmp_path).problems] == ["bad_head"]


def test_a_rewritten_end_does_not_match_the_head(path, tmp_path):
    """A consistent chain that ends otherwise: the last record was removed and written anew."""
    changed = lines(path)
    last = json.loads(changed[-1])
    changed[-1] = json.dumps({**last, "actor": "other"}, separators=(",", ":")).encode() + b"\n"
    path.write_bytes(b"".join(changed))
    assert problems(tmp_path) == [("altered", "000001", 6)]


def test_other_files_are_ignored(path, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "audit-x.jsonl").write_text("x")
    assert verify(tmp_path).problems == []


def test_files_removed_after_their_retention(files, tmp_path):
    for file in files[:2]:
        file.rename(file.with_name(file.name.replace(file.name[6:14], "20200101")))
    assert verify(tmp_path).problems == []
    for file in tmp_path.glob("audit-20200101-*"):
        file.unlink()
    assert not verify(tmp_path).sound
    # The rest is sound by itself; its first record has no predecessor to be compared with.
    rest = verify(tmp_path, since=datetime(2020, 1, 2, tzinfo=UTC))
    assert rest.problems == []
    assert rest.files == len(files) - 2


def test_a_log_that_is_being_written_is_sound(tmp_path):
    stop = threading.Event()

    def work() -> None:
        log = AuditLog(tmp_path, bytes_max=3000)
        while not stop.is_set():
            log.record(entry())
        log.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        reports = [verify(tmp_path) for _ in range(40)]
        cursor, read_so_far = None, 0
        for _ in range(10):
            page = read(tmp_path, after=cursor)
            read_so_far += sum(1 for _ in page)
            cursor = page.cursor
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert [report.problems for report in reports if not report.sound] == []
    assert read_so_far + sum(1 for _ in read(tmp_path, after=cursor)) == verify(tmp_path).records


def test_a_missing_folder(tmp_path):
    with pytest.raises(NotFound):
        verify(tmp_path / "none")
