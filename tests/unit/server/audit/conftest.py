"""Fixtures of the tests of the audit log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.server.audit import AuditLog
from support.audit_entries import entry

Write = Callable[..., list[Path]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write records of one chain and return its files; one file holds about `per_file` records."""

    def write_records(count: int, per_file: int = 1000, **members: object) -> list[Path]:
        log = AuditLog(tmp_path, bytes_max=per_file * 380)
        for number in range(count):
            log.record(entry(request_id=f"r{number:04}", **members))
        log.close()
        return sorted(tmp_path.glob("*.jsonl"), key=lambda path: path.stem.rsplit("-", 1)[1])

    return write_records
