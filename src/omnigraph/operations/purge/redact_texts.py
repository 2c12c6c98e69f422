"""The use case redact: replaces texts in messages of the history and in the logs of proposals."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

from omnigraph.checkpoints import checked
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.proposals.event_log import ProposalLogs, stored_ids
from omnigraph.operations.proposals.proposal_events import ProposalEvent
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files.layout import PROPOSALS
from omnigraph.versioning.model.purge_results import Redaction
from omnigraph.versioning.purge.redact import Redactor, redact_history
from omnigraph.versioning.purge.sweep import flush_removals
from omnigraph.versioning.write.repository import Repository

_TEXTS = ("title", "body", "text", "labels", "details", "why")
"""Members of events that contain free text."""


def redact(context: GraphContext, texts: Collection[str], *, confirm: bool) -> Redaction:
    """Replace texts in messages, descriptions and proposals; without `confirm`, count the places."""
    repository = context.repository
    redactor = Redactor(texts)
    if confirm:
        repository.check_writable()
    # Before the history: its publish makes all processes read the logs again.
    events = _redact_proposals(repository, redactor, confirm=confirm)
    reach("redact.proposals")
    rows = redact_history(repository, redactor, confirm=confirm, always=events > 0)
    if confirm:
        flush_removals(repository)
    return Redaction(rows.commits, rows.refs, events, confirm)


def _redact_proposals(repository: Repository, redactor: Redactor, *, confirm: bool) -> int:
    """Replace texts in the events of proposals, and write their summaries again; return the number of events."""
    objects = repository.objects
    logs = ProposalLogs(objects, repository.clock, is_local=repository.location.is_local)
    count = 0
    for proposal_id in checked(stored_ids(objects)):
        for name in objects.list(f"{PROPOSALS}/{proposal_id}"):
            data = objects.read(name)
            if data is None:
                continue
            event = ProposalEvent.decode(data, name)
            shown = {**event.data, **{each: redactor.value(event.data[each]) for each in _TEXTS if each in event.data}}
            if shown == event.data:
                continue
            count += 1
            if confirm:
                stored = replace(event, data=shown).to_json()
                objects.write(name, json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode())
        if confirm and logs.record(proposal_id) is not None:
            # Also without an event: an earlier redaction may have died before it.
            logs.mark(proposal_id)
    return count
