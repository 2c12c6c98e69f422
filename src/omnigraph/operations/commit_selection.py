"""`CommitSelection`: conditions that a listed commit meets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from omnigraph.fast_dataclass import dataclass
from omnigraph.versioning.model.manifest_objects import Commit, microseconds


@dataclass(frozen=True)
class CommitSelection:
    """Conditions on commits; a condition that is None always holds."""

    actor: str | None = None
    kind: str | None = None
    types: Sequence[str] | None = None
    """Node and edge types, of which the commit changed one."""
    text: str | None = None
    """A part of the message; capital and small letters are equal."""
    since: datetime | None = None
    until: datetime | None = None
    """The commit was made before this time."""

    def includes(self, commit: Commit) -> bool:
        """Return whether a commit, as the caller sees it, meets all conditions."""
        return self._by(commit) and self._changed(commit) and self._within(commit)

    def _by(self, commit: Commit) -> bool:
        return self.actor in (None, commit.actor) and self.kind in (None, commit.kind)

    def _changed(self, commit: Commit) -> bool:
        if self.text is not None and self.text.casefold() not in (commit.message or "").casefold():
            return False
        return self.types is None or any(key.partition(":")[2] in self.types for key in commit.changed)

    def _within(self, commit: Commit) -> bool:
        if self.since is not None and commit.created_us < microseconds(self.since):
            return False
        return self.until is None or commit.created_us < microseconds(self.until)
