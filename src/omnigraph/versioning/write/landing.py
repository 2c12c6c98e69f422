"""Trials and landings: publish a checked result as the head of another branch, with the same table versions.

A trial is the merge of a source into a target that is published on a hidden branch, `__proposal/<id>`, forked from the
head of the target by the same publish. It is checked there. `land` then gives the target the pins, the schema and the
stored queries of the trial in one publish, which also removes the hidden branch. What was checked is what lands.

The publish requires that the target, the source and the trial are as they were when the result was checked. The
incarnation of the trial is part of that: `fence_trial` changes it, so a landing that was decided before cannot be
published after. The landing adds the idempotency key `proposal:<id>`, which belongs to no actor. A proposal is
therefore landed at most once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.cancellation import ignore_cancellation
from omnigraph.errors import BranchNotFound, HeadMoved, KeyReused
from omnigraph.observer import current
from omnigraph.storage.failpoints import reach
from omnigraph.storage.manifest.manifest_schema import Row
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.manifest_objects import Commit, Head, Pin
from omnigraph.versioning.model.manifest_rows import (
    commit_to_row,
    head_object_id,
    head_to_log_row,
    idempotency_object_id,
    idempotency_to_row,
    read_metadata,
    tombstone_to_row,
    version_to_row,
)
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import WriteOptions, moved_head, new_commit

PROPOSAL = "proposal"
"""The entry of a landing commit's metadata that names its proposal."""
_TRIAL_PREFIX = "__proposal/"


@dataclass(frozen=True, slots=True)
class TrialPoint:
    """A trial, and the heads that it was made of."""

    proposal: str
    target: str
    base: str
    """The head of the target."""
    source: str
    merged_parent: str
    """The head of the source."""
    commit_id: str
    incarnation: str
    """The incarnation of the hidden branch; a fence changes it."""


def trial_branch(proposal_id: str) -> str:
    """Return the hidden branch of the trial of a proposal."""
    return f"{_TRIAL_PREFIX}{proposal_id}"


def proposal_of_trial(branch: str) -> str | None:
    """Return the proposal of a hidden branch; None if the branch is not that of a trial."""
    return branch.removeprefix(_TRIAL_PREFIX) if branch.startswith(_TRIAL_PREFIX) else None


def landing_key(proposal_id: str) -> str:
    """Return the idempotency key of the landing of a proposal."""
    return f"proposal:{proposal_id}"


def find_landings(repository: Repository, state: State, proposal_ids: Iterable[str]) -> dict[str, str]:
    """Return the landed proposals of some: proposal → commit."""
    rows = {idempotency_object_id(landing_key(found), None): found for found in proposal_ids}
    if not rows:
        return {}
    found = repository.manifest.find(state.manifest, *rows)
    return {rows[row["object_id"]]: str(read_metadata(row)["commit_id"]) for row in found}


def find_landing(repository: Repository, state: State, proposal_id: str) -> Commit | None:
    """Return the commit that landed a proposal; None if it is not landed."""
    commit_id = find_landings(repository, state, [proposal_id]).get(proposal_id)
    commit = repository.find_commit(commit_id, state) if commit_id is not None else None
    if commit is not None and commit[0].metadata.get(PROPOSAL) != proposal_id:
        raise KeyReused(f"the idempotency key '{landing_key(proposal_id)}' was used for another request")
    return commit[0] if commit is not None else None


def land(repository: Repository, trial: TrialPoint, options: WriteOptions) -> Commit:
    """Give the target the state of a trial as one commit, and remove the trial.

    `HeadMoved` is raised, and nothing is written, if the target, the source or the trial changed. A proposal that is
    landed already returns its commit.
    """
    now, started = repository.clock(), time.perf_counter()
    commit_id = new_ulid(now)
    made: Commit | None = None
    options = replace(
        options,
        branch=trial.target,
        kind="merge",
        merged_parent=trial.merged_parent,
        metadata={**options.metadata, PROPOSAL: trial.proposal},
    )

    def decide(state: State) -> Change | None:
        nonlocal made
        made = find_landing(repository, state, trial.proposal)
        if made is not None:
            return None
        head, tried = _check(state, trial)
        version = state.version + 1
        rows, changed = _pin_rows(head, tried, version)
        commit = new_commit(commit_id, now, options, head, version, changed)
        made = replace(commit, schema_hash=tried.schema_hash, queries_hash=tried.queries_hash)
        made = replace(made, aliases_hash=tried.aliases_hash)
        rows.append(commit_to_row(made, tried.pins))
        rows.append(idempotency_to_row(landing_key(trial.proposal), None, commit_id, None, {}))
        put = head_to_log_row(moved_head(head, made, tried.pins))
        return Change(put=(put,), drop=(head_object_id(tried.branch),), add=tuple(rows))

    reach("land.before_publish")
    repository.publish(decide, commit_id=commit_id)
    ignore_cancellation()
    reach("land.after_publish")
    assert made is not None
    observer = current()
    if observer is not None and made.id == commit_id:
        observer.committed(made.kind, time.perf_counter() - started)
    return made


def _check(state: State, trial: TrialPoint) -> tuple[Head, Head]:
    """Return the heads of the target and of the trial, if neither they nor the source changed."""
    tried = state.find_head(trial_branch(trial.proposal))
    if tried is None or (tried.commit_id, tried.incarnation) != (trial.commit_id, trial.incarnation):
        raise HeadMoved("the trial of the proposal was replaced; nothing was landed", hint="try again")
    for branch, commit_id in ((trial.source, trial.merged_parent), (trial.target, trial.base)):
        found = state.find_head(branch)
        if found is None:
            raise BranchNotFound(f"there is no branch '{branch}'; nothing was landed")
        if found.commit_id != commit_id:
            raise HeadMoved(
                f"branch '{branch}' moved to commit {found.commit_id}; nothing was landed", hint="try again"
            )
    return state.get_head(trial.target), tried


def _pin_rows(head: Head, tried: Head, version: int) -> tuple[list[Row], list[str]]:
    """Return the history rows of the tables that a landing changes, and their keys."""
    before = {(pin.table_id, pin.incarnation): pin for pin in head.pins}
    after: Mapping[tuple[int, int], Pin] = {(pin.table_id, pin.incarnation): pin for pin in tried.pins}
    moved = [pin for identity, pin in after.items() if before.get(identity) != pin]
    gone = [pin for identity, pin in before.items() if identity not in after]
    rows = [version_to_row(pin, head.branch, version, {}) for pin in moved]
    rows += [tombstone_to_row(pin, head.branch, version) for pin in gone]
    return rows, sorted(pin.key for pin in (*moved, *gone))


def fence_trial(repository: Repository, proposal_id: str) -> None:
    """Let every landing fail that was decided before this call; the trial itself stays as it is."""
    incarnation = new_ulid(repository.clock())

    def decide(state: State) -> Change | None:
        head = state.find_head(trial_branch(proposal_id))
        if head is None or head.incarnation == incarnation:
            return None
        return Change(put=(head_to_log_row(replace(head, incarnation=incarnation)),))

    repository.publish(decide)


def drop_trial(repository: Repository, proposal_id: str) -> None:
    """Remove the trial of a proposal, if there is one."""
    branch = trial_branch(proposal_id)

    def decide(state: State) -> Change | None:
        return Change(drop=(head_object_id(branch),)) if state.find_head(branch) is not None else None

    repository.publish(decide)


def trial_of(state: State, proposal_id: str, commit: Commit, target: str, source: str) -> TrialPoint | None:
    """Return the trial whose head is a commit; None if the hidden branch is elsewhere."""
    head = state.find_head(trial_branch(proposal_id))
    if head is None or head.commit_id != commit.id or commit.parent_id is None or commit.merged_parent_id is None:
        return None
    return TrialPoint(
        proposal_id, target, commit.parent_id, source, commit.merged_parent_id, commit.id, head.incarnation
    )


def with_approvals(options: WriteOptions, approvers: Iterable[str]) -> WriteOptions:
    """Return the options of a landing that records its approvers."""
    metadata: dict[str, Any] = {**options.metadata, "approvers": sorted(approvers)}
    return replace(options, metadata=metadata)
