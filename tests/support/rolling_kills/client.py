"""Clients of the servers, as a process: threads that read, change and merge, and log the outcome of every write.

`python -m support.rolling_kills.client REQUEST` runs until its input is closed.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import omnigraph as og
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.errors import OmniGraphError, OutcomeUnknown, PreconditionFailed
from support.rolling_kills.own_log import Entry, Kind, OwnState, Read, encode
from support.rolling_kills.servers import token_of

SCHEMA = """\
node Item {
  name: String @key
  owner: String @index
}

node Event {
  name: String
  owner: String
}

node Counter {
  name: String @key
  count: I64
}

edge Link: Item -> Item {}
"""
INSERT = """query q($name: String, $owner: String) {
  insert Item { name: $name, owner: $owner }
  insert Event { name: $name, owner: $owner }
  insert Link { from: $name, to: $owner }
}"""
DELETE = "query q($name: String) { delete Event where name = $name }"
COUNT = "query q($name: String, $count: I64) { update Counter set { count: $count } where name = $name }"
READ_ITEM = "query q($name: String) { match { $i: Item { name: $name } } return { $i.name as name } }"
READ_ITEMS = "query q($owner: String) { match { $o: Item { name: $owner }  $i link $o } return { $i.name as name } }"
READ_EVENTS = "query q($owner: String) { match { $e: Event { owner: $owner } } return { $e.name as name } }"
READ_COUNT = "query q($name: String) { match { $c: Counter { name: $name } } return { $c.count as count } }"
SETTLE_S = 150.0
"""The time in which an unknown outcome must be settled."""

Call = Callable[[RemoteGraph, str], Any]
"""A write: a graph and an idempotency key."""


@dataclass(frozen=True)
class Request:
    """The clients of one process."""

    urls: Sequence[str]
    """The balancer first, then the servers."""
    clients: Sequence[str]
    actors: Sequence[str]
    shared: Sequence[str]
    """The branches with a counter that all clients increment."""
    log: str
    monotonic: bool
    """True if a read is never older than an earlier one of the same client."""
    optimizes: bool = False


class Log:
    """The log file of a process."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def write(self, entry: Entry | Read) -> None:
        """Append an entry."""
        with self._lock:
            self._file.write(encode(entry) + "\n")
            self._file.flush()


class Client:
    """One client: it does one thing after the other, each through a server chosen at random."""

    def __init__(
        self, name: str, graphs: Sequence[RemoteGraph], request: Request, log: Log, ended: threading.Event
    ) -> None:
        self.name = name
        # A connection sees its own writes. Another one may be a little behind, unless reads are monotonic.
        self._graphs = graphs if request.monotonic else graphs[:1]
        self._shared = request.shared
        self._log = log
        self._ended = ended
        self._chance = random.Random(name)
        self._numbers = count(1)
        self._own = OwnState(request.monotonic)
        self._count = 0
        self._seen: dict[str, int] = {}

    def run(self) -> None:
        """Work until the end: 70 % reads, 25 % changes, 5 % merges."""
        while not self._ended.is_set():
            share = self._chance.random()
            if share < 0.7:
                self.read()
            elif share < 0.95:
                self.change()
            else:
                self.merge()

    def optimize_now_and_then(self) -> None:
        """Optimize the tables of main until the end."""
        while not self._ended.wait(10.0):
            self._write("optimize", lambda graph, key: graph.optimize(idempotency_key=key), settles=0.0)

    @property
    def _graph(self) -> RemoteGraph:
        balancer, *servers = self._graphs
        return balancer if not servers or self._chance.random() < 0.7 else self._chance.choice(servers)

    # -- reads -------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read own rows and compare them with the log."""
        own, owner = self._own, {"owner": self.name}
        certain = [name for name, fate in own.items.items() if fate == "in"]
        kind = self._chance.randrange(4)
        if kind == 0 and certain:
            name = certain[-1] if self._chance.random() < 0.5 else self._chance.choice(certain)
            self._compare(READ_ITEM, {"name": name}, lambda rows: [] if len(rows) == 1 else [f"item {name}: {rows}"])
        elif kind == 1:
            self._compare(READ_ITEMS, owner, lambda rows: own.check_items(row["name"] for row in rows))
        elif kind == 2:
            self._compare(READ_EVENTS, owner, lambda rows: own.check_events(row["name"] for row in rows))
        else:
            self._compare(READ_COUNT, {"name": self.name}, lambda rows: own.check_count(rows[0]["count"]))

    def _compare(self, query: str, params: dict[str, Any], check: Callable[[list[Any]], list[str]]) -> None:
        try:
            result = self._graph.query(query, params)
            rows = list(result)
        except OmniGraphError as error:
            self._log.write(Read(self.name, "", code=error.code))
            return
        self._log.write(Read(self.name, result.commit_id, check(rows)))

    # -- changes -----------------------------------------------------------------------------------

    def change(self) -> None:
        """Change something on main, or a shared counter."""
        share = self._chance.random()
        events = [name for name, fate in self._own.events.items() if fate == "in"]
        if share < 0.45:
            self._insert()
        elif share < 0.6:
            self._load()
        elif share < 0.7 and events:
            name = self._chance.choice(events)
            self._write("delete", lambda graph, key: graph.mutate(DELETE, {"name": name}, **keyed(key)), names=[name])
        elif share < 0.85:
            self._increment_own()
        else:
            self._increment_shared()

    def _insert(self, branch: str = "main", kind: Kind = "insert", settles: float = 0.5) -> Entry:
        name = self._new_name()
        params = {"name": name, "owner": self.name}
        return self._write(
            kind,
            lambda graph, key: graph.mutate(INSERT, params, branch=branch, **keyed(key)),
            names=[name],
            branch=branch,
            settles=settles,
        )

    def _load(self) -> None:
        name = self._new_name()
        data = {"name": name, "owner": self.name}
        records = [
            {"type": "Item", "data": data},
            {"type": "Event", "data": data},
            {"edge": "Link", "from": name, "to": self.name},
        ]
        self._write(
            "load", lambda graph, key: graph.load(records, mode="append", message=key, job_id=key), names=[name]
        )

    def _increment_own(self) -> None:
        value = self._count + 1
        params = {"name": self.name, "count": value}
        entry = self._write(
            "count", lambda graph, key: graph.mutate(COUNT, params, **keyed(key)), value=value, settles=1.0
        )
        if entry.outcome == "done":
            self._count = value

    def _increment_shared(self) -> None:
        """Increment a counter that others increment, bound to the commit that was read."""
        branch = self._chance.choice(self._shared)
        try:
            result = self._graph.query(READ_COUNT, {"name": branch}, branch=branch)
            value = next(iter(result))["count"]
        except OmniGraphError as error:
            self._log.write(Read(self.name, "", code=error.code))
            return
        if value < self._seen.get(branch, 0):
            self._log.write(Read(self.name, "", [f"counter {branch} went back to {value}"]))
        params = {"name": branch, "count": value + 1}
        entry = self._write(
            "shared",
            lambda graph, key: graph.mutate(COUNT, params, branch=branch, if_commit=result.commit_id, **keyed(key)),
            branch=branch,
            value=value + 1,
        )
        if entry.outcome == "done":
            self._seen[branch] = value + 1

    # -- merges ------------------------------------------------------------------------------------

    def merge(self) -> None:
        """Work on an own branch, merge it and delete it."""
        branch = f"work/{self.name}-{next(self._numbers)}"
        created = self._write(
            "branch",
            lambda graph, key: graph.branch_create(branch, idempotency_key=key),
            branch=branch,
            settles=1.0,
        )
        if created.outcome != "done":
            return
        worked = [self._insert(branch, "work", settles=1.0) for _ in range(2)]
        names = [name for entry in worked if entry.outcome == "done" for name in entry.names]
        if any(entry.outcome == "unknown" for entry in worked):
            return
        if not names:
            self._drop(branch)
            return
        deletes = self._chance.random() < 0.5
        merged = self._write(
            "merge",
            lambda graph, key: graph.merge(branch, delete_branch=deletes, message=key, idempotency_key=key),
            names=names,
            branch=branch,
            deletes=deletes,
        )
        if merged.outcome == "done" and not deletes:
            self._drop(branch)

    def _drop(self, branch: str) -> None:
        self._write("drop", lambda graph, key: graph.branch_delete(branch, idempotency_key=key), branch=branch)

    # -- one write ---------------------------------------------------------------------------------

    def _write(self, kind: Kind, call: Call, *, settles: float = 0.5, **facts: Any) -> Entry:
        """Write once. An unknown outcome is settled with this probability: by repetition under the same key."""
        key = f"{self.name}.{kind}.{next(self._numbers)}"
        entry = Entry(self.name, kind, key, "unknown", **facts)
        end = time.monotonic() + SETTLE_S
        was_lost = False
        for tries in count(1):
            entry = replace(self._try(call, entry), tries=tries)
            was_lost = was_lost or entry.outcome == "unknown"
            # The refusal of a repetition says nothing about the try that was lost, unless that cannot succeed any more.
            if was_lost and entry.outcome == "refused" and entry.code not in FINAL:
                entry = replace(entry, outcome="unknown")
            if entry.outcome != "unknown" or self._chance.random() >= settles or time.monotonic() > end:
                break
            time.sleep(self._chance.uniform(0.1, 0.5))
        self._own.apply(entry)
        self._log.write(entry)
        return entry

    def _try(self, call: Call, entry: Entry) -> Entry:
        try:
            result = call(self._graph, entry.key)
        except OutcomeUnknown as error:
            return replace(entry, outcome="unknown", code=error.code)
        except OmniGraphError as error:
            return replace(entry, outcome="refused", code=error.code)
        return replace(entry, outcome="done", code=None, commit=getattr(result, "commit_id", None))

    def _new_name(self) -> str:
        return f"{self.name}-{next(self._numbers)}"


FINAL = (PreconditionFailed.default_code,)
"""Refusals that also tell the outcome of an earlier try: the branch has moved past the expected commit."""


def keyed(key: str) -> dict[str, str]:
    """The arguments that identify a write."""
    return {"message": key, "idempotency_key": key}


def work(request: Request) -> None:
    """Run all clients until the input is closed."""
    ended = threading.Event()
    with ExitStack() as stack:
        log = Log(stack.enter_context(Path(request.log).open("a", encoding="utf-8")))

        def client(name: str, actor: str) -> Client:
            graphs = [stack.enter_context(og.connect(url, token_of(actor))) for url in request.urls]
            return Client(name, graphs, request, log, ended)

        jobs = [client(name, actor).run for name, actor in zip(request.clients, request.actors, strict=True)]
        if request.optimizes:
            jobs.append(client("upkeep", request.actors[0]).optimize_now_and_then)
        threads = [threading.Thread(target=job) for job in jobs]
        for thread in threads:
            thread.start()
        print("ready", flush=True)  # noqa: T201 (the test waits for this line)
        sys.stdin.read()
        ended.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    work(Request(**json.loads(sys.argv[1])))
