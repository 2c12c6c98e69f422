"""Documents of the audit log: its records, and the result of its verification."""

from __future__ import annotations

from typing import Literal

import msgspec

from omnigraph.wire.document import Document

AuditDecision = Literal["allow", "deny"]


class AuditRecord(Document, kw_only=True):
    """One request of the audit log. The log sets `at`, `seq` and `prev`; an absent value is null."""

    at: str = ""
    """The time of the record: RFC 3339 in UTC with microseconds."""
    seq: int = 0
    """The position in its chain, from 1."""
    request_id: str
    actor: str | None = None
    token_name: str | None = None
    remote: str | None = None
    """The address of the peer."""
    route: str
    """The method and the template of the path, such as `POST /change`."""
    graph: str | None = None
    branch: str | None = None
    action: str
    """The action of the policy that was judged; `authenticate` if the token was refused."""
    decision: AuditDecision
    rules: list[str] = msgspec.field(default_factory=list)
    """The ids of the rules that allowed the request."""
    commit: str | None = None
    rows: int | None = None
    query_hash: str | None = None
    definer: str | None = None
    """The actor whose rights a stored query used."""
    status: int
    ms: float
    prev: str = ""
    """The SHA-256 of the line of the previous record."""


class AuditListDocument(Document):
    """Records of an audit log, oldest first; `next` continues after the last one."""

    records: list[AuditRecord]
    next: str


class AuditProblemDocument(Document):
    """A place where an audit log is not as it was written."""

    kind: str
    file: str
    line: int | None
    what: str


class AuditVerifyDocument(Document):
    """The result of the verification of an audit log."""

    dir: str
    sound: bool
    chains: int
    files: int
    records: int
    problems: list[AuditProblemDocument]
    notes: list[AuditProblemDocument]
