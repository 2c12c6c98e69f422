"""A process that does one thing to a graph and says so; started by `support.store.Worker`.

It prints one JSON line per step, after the step is acknowledged and before the next begins. With
`wait` it says that it is ready and begins when it is told; with `die_at` it counts the calls that change
the store and dies, by SIGKILL, when it is about to make that one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import omnigraph as og
from omnigraph.errors import Conflict, OmniGraphError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.lance.garbage import remove_versions
from omnigraph.storage.lance.staging import TableWrite, stage
from omnigraph.versioning.upkeep import maintenance
from omnigraph.versioning.write.branches import create_branch
from omnigraph.versioning.write.recovery import recover
from omnigraph.versioning.write.repository import Repository
from support.groups import run_as_group
from support.keyed_writes import WRITES, open_graph, outcome
from support.landings import land_until, open_proposal
from support.proposal_log import operate
from support.store import ITEM, SCHEMA, add_pair, add_pair_in_group, increment, repository_of

if TYPE_CHECKING:
    from omnigraph.graph import Graph

_STORE_CALLS = {
    "_Dataset.commit_transaction",
    "_Dataset.commit",
    "_write_fragments",
    "_write_fragments_transaction",
    "_Dataset.cleanup_old_versions",
    "fsync",
    "link",
    "replace",
    "unlink",
    "mkdir",
}


def say(**line: Any) -> None:
    """One line, in one write, so that a kill leaves whole lines."""
    os.write(1, json.dumps(line).encode() + b"\n")


def rounds(request: dict[str, Any]) -> Iterator[int]:
    """Count up to `count` for at most `seconds`."""
    end = time.monotonic() + request.get("seconds", 300)
    for number in range(request.get("count", 1_000_000)):
        if time.monotonic() > end:
            return
        yield number


class _Calls:
    """Counts the calls that change the store, in this thread and in those that it starts."""

    def __init__(self, die_at: int) -> None:
        self.seen = 0
        self.die_at = die_at
        self._lock = threading.Lock()

    def __enter__(self) -> _Calls:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def __call__(self, _frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and called.__qualname__ in _STORE_CALLS:
            with self._lock:
                if self.seen == self.die_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                self.seen += 1


class Actions:
    """The actions of a worker; `do` of the request names the method."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.uri: str = request["uri"]
        self.name: str = request["name"]

    def open(self) -> Graph:
        """Open as a user does, with recovery."""
        graph = og.open(self.uri)
        if self.request.get("wait"):
            self.wait()
        return graph

    def repository(self) -> Repository:
        """Open to write, as `og.open` does, with recovery unless the request disables it."""
        repository = Repository.open(self.uri)
        if self.request.get("recover", True):
            recover(repository)
        if self.request.get("wait"):
            self.wait()
        return repository

    def wait(self) -> None:
        """Report readiness and wait for the start signal."""
        say(ready=True)
        sys.stdin.readline()

    def recover(self) -> None:
        """Open only."""
        self.repository()
        say(done="recover")

    def recover_now(self) -> None:
        """Recover after the start signal."""
        recover(self.repository())
        say(done="recover")

    def init(self) -> None:
        """Create the graph."""
        if self.request.get("wait"):
            self.wait()
        try:
            graph = og.init(self.uri, SCHEMA)
        except Conflict as error:
            say(error=error.code)
        else:
            say(done="init", commit=graph.snapshot().commit_id)

    def commits(self) -> None:
        """Write pairs."""
        repository = self.repository()
        say(opened=True)
        options = {"branch": self.request["branch"]} if "branch" in self.request else {}
        for number in rounds(self.request):
            key = f"{self.name}-{number}"
            try:
                commit = add_pair(repository, key, **options)
            except Conflict as error:
                say(error=error.code)
            else:
                say(key=key, commit=commit.id)

    def grouped(self) -> None:
        """Write pairs from several threads, which are published in groups."""
        repository = self.repository()
        say(opened=True)

        def add(thread: int) -> None:
            for number in rounds(self.request):
                key = f"{self.name}-{thread}-{number}"
                try:
                    commit = add_pair_in_group(repository, key)
                except Conflict as error:
                    say(error=error.code)
                else:
                    say(key=key, commit=commit.id)

        threads = [threading.Thread(target=add, args=(thread,)) for thread in range(self.request["threads"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def one_group(self) -> None:
        """Write pairs as one group, then read the table after its first commit."""
        repository = self.repository()
        keys = [f"{self.name}-{number}" for number in range(self.request["count"])]
        commits = run_as_group(repository, [partial(add_pair_in_group, repository, key) for key in keys])
        for key, commit in zip(keys, commits, strict=True):
            say(key=key, commit=commit.id)
        say(rows=repository.snapshot(at=commits[0].id).table(ITEM).row_count)

    def branch_commits(self) -> None:
        """Write pairs on a branch until it is deleted."""
        repository = self.repository()
        for number in rounds(self.request):
            key = f"{self.name}-{number}"
            try:
                commit = add_pair(repository, key, branch=self.request["branch"])
            except OmniGraphError as error:
                say(error=error.code)
                return
            say(key=key, commit=commit.id)

    def stall(self) -> None:
        """Write one pair and stop the process just before its publish, like a suspended machine."""
        repository = self.repository()
        with arm("publish.before_commit", self._stop_once):
            commit = add_pair(repository, self.name)
        say(key=self.name, commit=commit.id)

    def _stop_once(self) -> None:
        if not self.request.get("stopped"):
            self.request["stopped"] = True
            os.kill(os.getpid(), signal.SIGSTOP)

    def one_call(self) -> None:
        """Write one pair under the call counter."""
        repository = self.repository()
        with _Calls(self.request["die_at"]) as calls:
            commit = add_pair(repository, self.name)
        say(key=self.name, commit=commit.id, calls=calls.seen)

    def merge_call(self) -> None:
        """Merge a branch under the call counter."""
        graph = self.open()
        with _Calls(self.request["die_at"]) as calls:
            result = graph.merge(self.request["branch"])
        say(commit=result.commit_id, outcome=result.outcome, calls=calls.seen)

    def purge(self) -> None:
        """Purge a seeded item, under the call counter if the request has `die_at`."""
        graph = self.open()
        with _Calls(self.request.get("die_at", -1)) as calls:
            graph.purge("Item", [self.request["id"]], edges=True, reason="test")
        say(done="purge", calls=calls.seen)

    def redact(self) -> None:
        """Redact a text of the history."""
        self.open().purge_redact([self.request["id"]], confirm=True)
        say(done="redact")

    def increments(self) -> None:
        """Increment the counter."""
        repository = self.repository()
        for _ in rounds(self.request):
            say(commit=increment(repository).id)

    def idempotent(self) -> None:
        """One request with an idempotency key."""
        repository = self.repository()
        say(commit=add_pair(repository, "once", idempotency_key=self.request["key"]).id)

    def keyed(self) -> None:
        """Make writes of `support.keyed_writes`, each with its name as idempotency key."""
        self.open()
        graph = open_graph(self.request["uri"])
        for name in self.request["writes"]:
            say(write=name, outcome=repr(outcome(WRITES[name](graph, name))))

    def create_branch(self) -> None:
        """Create a branch."""
        repository = self.repository()
        try:
            create_branch(repository, self.request["branch"])
        except Conflict as error:
            say(error=error.code)
        else:
            say(done="create")

    def merges(self) -> None:
        """For each branch: create it, write pairs, change and unlink the branch's own seed, merge it into main."""
        graph = self.open()
        for branch, seed in self.request["branches"]:
            graph.branch_create(branch)
            for number in range(self.request["edits"] - 2):
                add_pair(repository_of(graph), f"{branch}-{number}", branch=branch)
            graph.mutate(f'query q() {{ update Item set {{ count: 1 }} where name = "{seed}" }}', branch=branch)
            graph.mutate(f'query q() {{ delete Link where from = "{seed}" }}', branch=branch)
            result = graph.merge(branch, delete_branch=True)
            say(key=branch, commit=result.commit_id, outcome=result.outcome, deleted=result.branch_deleted)

    def landings(self) -> None:
        """For each branch: create it, write a pair, propose it, approve it as another actor, and land it.

        Between these steps, main is moved. A proposal that exists is continued.
        """
        graph = self.open()
        for branch in self.request["branches"]:
            proposal = open_proposal(self.uri, branch)
            say(proposed=proposal.id)
            reviewer = og.open(self.uri, actor="rae").proposal(proposal.id)
            if proposal.state != "landed":
                reviewer.approve()
                say(approved=proposal.id)
            if self.request.get("moves"):
                add_pair(repository_of(graph), f"{branch}-move")
            commit = land_until(reviewer)
            say(landed=proposal.id, commit=commit)

    def log(self) -> None:
        """Make random changes of proposals; with `die_at`, die before that call of the store."""
        self.wait()
        what = (self.request["proposals"], self.request["seed"], self.request["count"])
        with _Calls(self.request.get("die_at", -1)):
            operate(self.uri, self.name, *what, say)

    def optimize(self) -> None:
        """Compact and index once."""
        self.open().optimize()
        say(done="optimize")

    def cleanup(self) -> None:
        """Clean up once, without concurrent writers."""
        repository = self.repository()
        maintenance.cleanup(repository, keep=1, confirm=True, grace=timedelta(0))
        say(done="cleanup")

    def litter(self) -> None:
        """Create unpinned versions and collect them at once, like a recovery for a dead writer."""
        repository = self.repository()
        for _ in rounds(self.request):
            table = repository.snapshot().table(ITEM)
            row = pa.table({"id": ["x"], "name": ["x"], "count": pa.array([0])})
            staged = [stage(table, TableWrite(append=row), {}) for _ in range(4)]
            versions = [stage.promote()[1].version for stage in staged if stage is not None]
            say(gone=len(remove_versions(repository.tables, table.folder, versions)))

    def maintain(self) -> None:
        """Optimize and clean up repeatedly beside writers."""
        graph = self.open()
        grace = timedelta(seconds=self.request["grace_s"])
        for _ in rounds(self.request):
            try:
                done = [entry.table_key for entry in graph.optimize() if entry.committed]
                say(optimized=done)
            except Conflict as error:
                say(error=error.code)
            stats = maintenance.cleanup(repository_of(graph), keep=2, confirm=True, grace=grace)
            assert [entry.error for entry in stats if entry.error] == []
            say(cleaned=sum(entry.old_versions_removed for entry in stats))
            time.sleep(0.05)


if __name__ == "__main__":
    actions = Actions(json.loads(sys.argv[1]))
    getattr(actions, actions.request["do"])()
