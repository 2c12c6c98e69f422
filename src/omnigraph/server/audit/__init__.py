"""The audit log: one JSON line per recorded request, in files of hash chains.

A directory holds one chain per process that writes at the same time. A chain is a sequence of files and one head:

    audit-20270131-4f0c9d2b7a61e385-000007.jsonl     day (UTC), chain, number of the file
    audit-4f0c9d2b7a61e385.head                      number and hash of the last durable record

A process locks the head of a chain and appends to that chain alone. A new process continues a chain that no process
holds, in a new file; if every chain is held, it starts another one. `seq` numbers the records of a chain from 1, and
`prev` is the SHA-256 of the line before, across files. Nothing secret is in a hash: a writer of the directory can
recompute a whole chain, so copies elsewhere are what proves its age.
"""

from omnigraph.server.audit.audit_log import AuditLog
from omnigraph.server.audit.audit_reader import AuditFilter, AuditReader, read, read_time
from omnigraph.server.audit.chain_check import AuditProblem, AuditReport, verify
from omnigraph.wire.audit import AuditRecord

__all__ = [
    "AuditFilter",
    "AuditLog",
    "AuditProblem",
    "AuditReader",
    "AuditRecord",
    "AuditReport",
    "read",
    "read_time",
    "verify",
]
