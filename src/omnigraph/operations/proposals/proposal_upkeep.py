"""Maintenance of proposals: a cleanup finishes what dead processes began, and a verification reads the logs.

An open proposal keeps its trial, whose branch protects the table versions like every head. The trials of closed and
landed proposals are removed by the close and by the landing; a cleanup removes those that a crash left.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from omnigraph.operations.proposals.event_log import Decide, NewEvent, ProposalLogs
from omnigraph.operations.proposals.landing_queue import remove_dead_tickets
from omnigraph.operations.proposals.proposal_record import ProposalRecord
from omnigraph.versioning.upkeep.verify import Problem
from omnigraph.versioning.write.landing import drop_trial, find_landings, proposal_of_trial
from omnigraph.versioning.write.repository import Repository

_MARKER_AGE = timedelta(days=1)
"""Age after which a marker without a log is that of a process that died."""


def clean_proposals(repository: Repository, logs: ProposalLogs) -> None:
    """Note landings without an event, remove trials of ended proposals, and markers and tickets without an owner."""
    ids = logs.ids("open")
    for proposal_id, commit_id in find_landings(repository, repository.state(), ids).items():
        if logs.record(proposal_id) is not None:
            logs.append(proposal_id, _landed(commit_id), None)
    for branch in repository.state().head_names():
        known = proposal_of_trial(branch)
        record = logs.record(known) if known is not None else None
        if known is not None and (record is None or record.is_ended):
            drop_trial(repository, known)
    now = repository.objects.now() if ids else None
    if now is not None:
        logs.remove_empty_markers(lambda name: _is_old(repository.objects.written_at(name), now))
    remove_dead_tickets(repository.objects)


def verify_proposals(logs: ProposalLogs) -> list[Problem]:
    """Return the damaged logs."""
    return [Problem(f"proposal {proposal_id}", problem) for proposal_id, problem in logs.check()]


def _landed(commit_id: str) -> Decide:
    def decide(record: ProposalRecord) -> NewEvent | None:
        return None if record.landed is not None else NewEvent("landed", {"commit": commit_id})

    return decide


def _is_old(written: datetime | None, now: datetime) -> bool:
    return written is not None and now - written > _MARKER_AGE
