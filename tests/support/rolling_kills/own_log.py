"""What a client knows about its own writes: the entries of its log, and the states that they permit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Outcome = Literal["done", "refused", "unknown"]
Kind = Literal["insert", "load", "delete", "count", "shared", "branch", "work", "merge", "drop", "optimize"]
Fate = Literal["in", "out", "maybe in", "maybe out"]

ROW_KINDS = ("insert", "load", "merge")
"""The kinds that add rows to main."""


@dataclass(frozen=True)
class Entry:
    """One write of a client."""

    client: str
    kind: Kind
    key: str
    """The idempotency key, which is also the message of the commit."""
    outcome: Outcome
    branch: str = "main"
    names: Sequence[str] = ()
    """The rows that the write adds or removes."""
    value: int = 0
    """The new value of a counter."""
    commit: str | None = None
    code: str | None = None
    """The code of the error of a refusal."""
    tries: int = 1
    deletes: bool = False
    """True if a merge also deletes its branch."""


@dataclass(frozen=True)
class Read:
    """One read of a client on main."""

    client: str
    commit: str = ""
    """The commit that was read."""
    wrong: Sequence[str] = ()
    """What contradicts the log of the client."""
    code: str | None = None
    """The code of the error of a read that failed."""
    kind: str = "read"


def encode(entry: Entry | Read) -> str:
    """Return an entry as a line."""
    return json.dumps({name: value for name, value in asdict(entry).items() if value not in (None, (), [], False, "")})


def entries_of(path: Path) -> Iterator[Entry | Read]:
    """Yield the entries of a log."""
    for line in path.read_text(encoding="utf-8").splitlines():
        document: dict[str, Any] = json.loads(line)
        yield Read(**document) if document["kind"] == "read" else Entry(**document)


@dataclass
class OwnState:
    """What the graph must contain of one client, after the entries that were applied."""

    monotonic: bool = True
    """True if a read is never older than an earlier one; then what was seen stays."""
    items: dict[str, Fate] = field(default_factory=dict)
    events: dict[str, Fate] = field(default_factory=dict)
    branches: dict[str, Fate] = field(default_factory=dict)
    counts: set[int] = field(default_factory=lambda: {0})
    """The possible values of the counter of the client."""

    def apply(self, entry: Entry) -> None:
        """Add the effect of a write."""
        match entry.kind:
            case "insert" | "load" | "merge":
                fates: dict[Outcome, Fate] = {"done": "in", "refused": "out", "unknown": "maybe in"}
                for name in entry.names:
                    self.items[name] = self.events[name] = fates[entry.outcome]
                if entry.deletes:
                    self._delete(self.branches, entry.branch, entry.outcome)
            case "delete":
                for name in entry.names:
                    self._delete(self.events, name, entry.outcome)
            case "branch":
                fates = {"done": "in", "refused": "out", "unknown": "maybe in"}
                self.branches[entry.branch] = fates[entry.outcome]
            case "drop":
                self._delete(self.branches, entry.branch, entry.outcome)
            case "count":
                values: dict[Outcome, set[int]] = {
                    "done": {entry.value},
                    "refused": self.counts,
                    "unknown": {*self.counts, entry.value},
                }
                self.counts = values[entry.outcome]
            case "work" | "shared" | "optimize":
                pass

    @staticmethod
    def _delete(fates: dict[str, Fate], name: str, outcome: Outcome) -> None:
        if outcome == "done":
            fates[name] = "out"
        elif outcome == "unknown":
            fates[name] = "maybe out"

    def check_items(self, found: Iterable[str]) -> list[str]:
        """Compare the items of the client, and remember what was seen."""
        return self._compare("item", self.items, found)

    def check_events(self, found: Iterable[str]) -> list[str]:
        """Compare the events of the client, and remember what was seen."""
        return self._compare("event", self.events, found)

    def check_branches(self, found: Iterable[str]) -> list[str]:
        """Compare the branches of the client."""
        return self._compare("branch", self.branches, found)

    def check_count(self, found: int) -> list[str]:
        """Compare the counter of the client, and remember what was seen."""
        if found not in self.counts:
            return [f"the counter is {found}, expected {sorted(self.counts)}"]
        if self.monotonic:
            self.counts = {value for value in self.counts if value >= found}
        return []

    def _compare(self, what: str, fates: dict[str, Fate], found: Iterable[str]) -> list[str]:
        counted = Counter(found)
        wrong = [f"{what} {name} exists {number} times" for name, number in counted.items() if number > 1]
        wrong += [f"{what} {name} was not written" for name in counted if name not in fates]
        for name, fate in fates.items():
            if fate == "in" and name not in counted:
                wrong.append(f"{what} {name} is lost")
            elif fate == "out" and name in counted:
                wrong.append(f"{what} {name} was refused or deleted, but exists")
            elif fate == "maybe in" and name in counted and self.monotonic:
                fates[name] = "in"
            elif fate == "maybe out" and name not in counted and self.monotonic:
                fates[name] = "out"
        return wrong
