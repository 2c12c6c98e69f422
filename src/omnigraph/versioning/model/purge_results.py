"""Results of purges: previews, searches and redactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PurgePreview:
    """The rows that a purge removes, over all history."""

    rows: Mapping[str, int]
    """Table key → number of rows, each counted once."""
    missing: tuple[str, ...]
    """Ids that no version contains."""
    files: int
    """Number of data files that contain such rows."""


@dataclass(frozen=True)
class PurgeFinding:
    """A place where a searched value, or a purged id, is stored."""

    object: str
    """The name of the object in the graph."""
    place: str
    """`bytes`, `name`, `text` of a log entry, or the name of a column."""
    value: str
    """The searched value; `purged id` if only its digest is known."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {"object": self.object, "place": self.place, "value": self.value}


@dataclass(frozen=True)
class PurgeScan:
    """The result of a search."""

    findings: tuple[PurgeFinding, ...]
    objects: int
    bytes: int
    undecodable: tuple[str, ...]
    """Lance files that could not be decoded: incomplete files of writes in progress or of dead writers."""

    @property
    def is_clean(self) -> bool:
        """True if nothing was found and every file was decoded."""
        return not self.findings and not self.undecodable


@dataclass(frozen=True)
class Redaction:
    """The places of the redacted texts, or of a preview those of the texts."""

    commits: int
    """Commits with a text in the message or metadata."""
    refs: int
    """Descriptions of branches, messages of tags, the log of their changes, and reasons of purges."""
    events: int
    """Events of proposals."""
    confirmed: bool

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {"confirmed": self.confirmed, "commits": self.commits, "refs": self.refs, "events": self.events}
