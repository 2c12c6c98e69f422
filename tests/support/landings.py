"""Proposals that processes open, review and land, and the invariants of what landed."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

import omnigraph as og
from omnigraph.errors import BranchExists, Conflict, ProposalBlocked
from omnigraph.graph import Graph
from omnigraph.graph_proposals import Proposal
from omnigraph.operations.proposals.proposals import logs_of
from support.store import Worker, add_pair, repository_of

CHECK = """query negative() @check(empty, required) {
    match { $i: Item $i.count < 0 } return { $i.name as name } }"""
_TRIES = 20


def open_proposal(uri: str, branch: str, environ: Mapping[str, str] | None = None) -> Proposal:
    """Return the proposal of a branch; the steps that a dead process did not make are made."""
    graph = og.open(uri, actor="ana", environ=environ)
    try:
        graph.branch_create(branch)
    except BranchExists:
        pass
    else:
        add_pair(repository_of(graph), f"{branch}-pair", branch=branch, actor="ana")
    if len(graph.commits(branch, actor="ana")) == 0:
        add_pair(repository_of(graph), f"{branch}-pair", branch=branch, actor="ana")
    return graph.propose(branch, title=branch, idempotency_key=f"open-{branch}")


def kill_between(
    folder: Path, uri: str, branches: list[str], steps: list[str], environ: Mapping[str, str] | None = None
) -> list[str]:
    """Kill the processes of proposals between two steps each, then land all of them; return the steps that killed."""
    killed = []
    for number, step in enumerate(steps):
        branch = branches[number % len(branches)]
        what = {"branches": [branch], "moves": False}
        with Worker(
            folder, uri, "landings", name=f"killed{number}", failpoints=step, environ=environ, **what
        ) as worker:
            code = worker.end()
            assert code in (-signal.SIGKILL, 0), worker.trouble()
        killed += [step] if code else []
        acknowledged = {line["landed"] for line in worker.said() if "landed" in line}
        assert acknowledged <= set(check_landings(og.open(uri, environ=environ)))
    for branch in branches:
        proposal = open_proposal(uri, branch, environ)
        reviewer = og.open(uri, actor="rae", environ=environ).proposal(proposal.id)
        if reviewer.state != "landed":
            reviewer.approve()
        assert land_until(reviewer) is not None
    graph = og.open(uri, environ=environ)
    assert len(check_landings(graph)) == len(branches)
    graph.cleanup(keep=1000, confirm=True)
    assert graph._repository.state().head_names() == ["main", *sorted(branches)]
    assert graph.verify() == []
    return killed


def land_until(proposal: Proposal) -> str | None:
    """Land a proposal against writers of its target; return its commit, None if it is blocked."""
    for _ in range(_TRIES):
        try:
            return proposal.land().id
        except ProposalBlocked:
            return None
        except Conflict as error:
            if error.code != "target_moves":
                raise
    raise AssertionError("the target moved too often")


def check_landings(graph: Graph) -> dict[str, str]:
    """Check all landed proposals of a graph; return proposal → commit."""
    repository, logs = graph._repository, logs_of(graph._repository)
    commits = [commit for commit in repository.all_commits().values() if "proposal" in commit.metadata]
    landed = {commit.metadata["proposal"]: commit for commit in commits}
    assert len(landed) == len(commits), "each proposal is landed at most once"
    assert {one.id: one.landed for one in graph.proposals("landed", limit=1000)} == {
        proposal: commit.id for proposal, commit in landed.items()
    }
    line = {commit.id for commit in graph.commits()}
    for proposal_id, commit in landed.items():
        assert commit.id in line, "the target has it"
        record = logs.record(proposal_id)
        assert record is not None
        tried = [event.data for event in logs.events(proposal_id) if event.kind == "trial"]
        trial = next(one for one in tried if one["base"] == commit.parent_id)
        assert trial["source_head"] == commit.merged_parent_id
        checked, pinned = repository.find_commit(trial["commit"]), repository.find_commit(commit.id)
        assert checked is not None
        assert pinned is not None
        assert pinned[1] == checked[1], "what was checked is what landed"
        results = [
            event.data["state"]
            for event in logs.events(proposal_id)
            if event.kind == "check" and event.data["commit"] == trial["commit"]
        ]
        assert results
        assert results[-1] == "pass"
        assert commit.metadata["approvers"] == ["rae"]
        assert record.reviews["rae"].commit == commit.merged_parent_id
    return {proposal: commit.id for proposal, commit in landed.items()}
