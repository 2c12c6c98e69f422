"""The checks after a run: the graph against the logs of all clients."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.server.messages.bodies import remove_abandoned_bodies
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.upkeep import maintenance
from support.rolling_kills.client import INSERT
from support.rolling_kills.own_log import Entry, OwnState, Read
from support.rolling_kills.servers import Servers
from support.store import repository_of, settle, strays

EXPECTED = {"overloaded", "server_unreachable"}
"""Failures while servers restart; the request was not executed."""
EXPECTED_OF_READS = {*EXPECTED, "connection_lost"}
EXPECTED_OF_WRITES = {*EXPECTED, "precondition_failed", "head_moved"}
"""In addition a bound write that lost its race, and a write that lost every race."""


def check(
    uri: str,
    entries: Sequence[Entry | Read],
    servers: Servers,
    environ: Mapping[str, str] | None,
    *,
    monotonic: bool = True,
) -> int:
    """Check everything; returns the number of commits of main."""
    writes = [entry for entry in entries if isinstance(entry, Entry)]
    reads = [entry for entry in entries if isinstance(entry, Read)]
    settle(uri, environ=environ)
    graph = og.open(uri, environ=environ)
    wrong = [f"{entry.client}: read: {text}" for entry in reads for text in entry.wrong]
    wrong += [
        f"{entry.key}: unexpected refusal {entry.code}"
        for entry in writes
        if entry.outcome == "refused" and entry.code not in EXPECTED_OF_WRITES
    ]
    wrong += [f"{entry.client}: read: {entry.code}" for entry in reads if entry.code not in (None, *EXPECTED_OF_READS)]
    wrong += check_rows(graph, writes)
    wrong += check_counters(graph, writes)
    wrong += check_history(graph, writes)
    wrong += check_order(graph, entries, monotonic=monotonic)
    wrong += check_servers(servers)
    assert not wrong, f"{len(wrong)} faults:\n" + "\n".join(wrong[:40])
    assert graph.verify(deep=True) == []
    commits = len(graph.commits())
    check_cleanup(graph)
    return commits


def check_cleanup(graph: Graph) -> None:
    """Check that every file that is not part of main can be removed."""
    # Open branches keep the commits at which they began, and a table its newest version.
    for branch in graph.branches()[1:]:
        graph.branch_delete(branch, force=True)
    graph.mutate(INSERT, {"name": "last", "owner": "last"})
    graph.load([{"type": "Counter", "data": {"name": "last", "count": 0}}], mode="append")
    maintenance.cleanup(repository_of(graph), keep=1, confirm=True, grace=timedelta(0))
    assert strays(graph) == set()
    assert graph.verify(deep=True) == []


def check_rows(graph: Graph, writes: Iterable[Entry]) -> list[str]:
    """Compare the rows and branches of every client with its log."""
    states: dict[str, OwnState] = defaultdict(OwnState)
    for entry in writes:
        states[entry.client].apply(entry)
    items = graph.to_arrow("Item", columns=["name", "owner"]).to_pylist()
    events = graph.to_arrow("Event", columns=["name", "owner"]).to_pylist()
    links = graph.to_arrow("Link", columns=["src", "dst"]).to_pylist()
    counts = {row["name"]: row["count"] for row in graph.to_arrow("Counter").to_pylist()}
    branches = [branch for branch in graph.branches() if branch.startswith("work/")]
    found = []
    for client, state in states.items():
        own = [row["name"] for row in items if row["owner"] == client and row["name"] != client]
        found += state.check_items(own)
        found += state.check_items(row["src"] for row in links if row["dst"] == client)
        found += state.check_events(row["name"] for row in events if row["owner"] == client)
        found += state.check_branches(name for name in branches if name.startswith(f"work/{client}-"))
        if client in counts:
            found += [f"{client}: {text}" for text in state.check_count(counts[client])]
    return found


def check_counters(graph: Graph, writes: Iterable[Entry]) -> list[str]:
    """Check that every commit to a shared counter is one more than the one before."""
    found = []
    done: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for entry in writes:
        if entry.kind == "shared":
            done[entry.branch] += entry.outcome == "done"
            unknown[entry.branch] += entry.outcome == "unknown"
    for branch in (name for name in graph.branches() if name.startswith("shared-")):
        own = [commit for commit in graph.commits(branch) if ".shared." in (commit.message or "")]
        values = []
        for commit in reversed(own):
            row = graph.entity_at("Counter", branch, commit.id)
            values.append(row["count"] if row is not None else None)
        if values != list(range(1, len(own) + 1)):
            found.append(f"{branch}: the commits have the values {values}")
        if not done[branch] <= len(own) <= done[branch] + unknown[branch]:
            found.append(f"{branch}: {len(own)} increments, {done[branch]} acknowledged, {unknown[branch]} unknown")
    return found


def check_history(graph: Graph, writes: Iterable[Entry]) -> list[str]:
    """Check that histories are chains, that an acknowledged commit exists once, and a refused one not at all."""
    found = []
    made: Counter[str] = Counter()
    ids: dict[str, str] = {}
    shared = [name for name in graph.branches() if name.startswith("shared-")]
    for branch in ("main", *shared):
        for commit in chain_of(graph, branch):
            if commit.message and commit.branch == branch:
                made[commit.message] += 1
                ids[commit.message] = commit.id
    for entry in writes:
        if entry.kind not in ("insert", "load", "delete", "count", "shared", "merge"):
            continue
        number = made[entry.key]
        if entry.outcome == "done" and (number != 1 or ids[entry.key] != entry.commit):
            found.append(f"{entry.key}: acknowledged as {entry.commit}, {number} commits, {ids.get(entry.key)}")
        if (entry.outcome == "refused" and number) or number > 1:
            found.append(f"{entry.key}: {entry.outcome}, {number} commits")
    return found


def chain_of(graph: Graph, branch: str) -> list[Commit]:
    """Return the commits from the head of a branch to the first one, newest first, without those that were merged."""
    known = {commit.id: commit for commit in graph.commits(branch)}
    chain = [known[graph.head(branch).commit_id]]
    while (parent := chain[-1].parent_id) is not None:
        chain.append(known[parent])
        assert chain[-1].manifest_version < chain[-2].manifest_version
    return chain


def check_order(graph: Graph, entries: Iterable[Entry | Read], *, monotonic: bool) -> list[str]:
    """Check that no client sees main older than its own earlier writes, and if `monotonic` than its earlier reads."""
    found = []
    position = {commit.id: number for number, commit in enumerate(reversed(chain_of(graph, "main")))}
    newest: dict[str, int] = {}
    for entry in entries:
        on_main = isinstance(entry, Read) or entry.kind in ("insert", "load", "delete", "count", "merge")
        if not entry.commit or not on_main:
            continue
        at = position.get(entry.commit, -1)
        if isinstance(entry, Read) and at < newest.get(entry.client, 0):
            found.append(f"{entry.client}: read at {entry.commit}, which is {newest[entry.client] - at} commits old")
        if monotonic or isinstance(entry, Entry):
            newest[entry.client] = max(at, newest.get(entry.client, 0))
    return found


def check_servers(servers: Servers) -> list[str]:
    """Check the exit codes and the logs of the servers, and the files that they leave."""
    found = []
    for slot in servers.slots:
        log = slot.log.read_text(encoding="utf-8")
        # A stop leaves writes that take longer than the grace, says so, and ends with 1.
        left = log.count("writes did not finish in time")
        for name, number in slot.exits.items():
            if name not in ("SIGKILL -9", "SIGTERM 0") and (name != "SIGTERM 1" or number > left):
                found.append(f"{slot.log.name}: exit {name}: {log[-3000:]}")
        if "Traceback" in log or "failed:" in log:
            found.append(f"{slot.log.name}: {log[-3000:]}")
    # The next start removes what killed processes left.
    remove_abandoned_bodies(servers.temporary, age_s=0)
    # Lock files stay; there is a fixed number of them.
    left_files = [path for path in servers.temporary.rglob("*") if "omnigraph-locks" not in str(path)]
    return found + [f"temporary file {path.name}" for path in left_files]
