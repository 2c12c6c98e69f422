"""Records of the audit log, and a disk that is full."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.server.audit import AuditRecord


def entry(**members: object) -> AuditRecord:
    """Return the record of a change."""
    given = {"request_id": "r", "route": "POST /change", "action": "change", "decision": "allow", "status": 200}
    return AuditRecord(**{**given, "ms": 1.5, **members})  # type: ignore[arg-type]


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Refuse every byte after the first `size` bytes of a file, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
