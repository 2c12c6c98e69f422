"""Redaction: replaces texts in the messages and metadata of the whole history by a marker.

A purge removes rows. Messages, descriptions and metadata are texts that people and programs chose, and may quote values
of purged rows. A redaction replaces exact occurrences of given texts. Ids, parents, actors and times stay, and so do
the names of branches and tags, and idempotency keys: other objects refer to them.

The rows of the manifest are replaced by one publish, as by the switch of a purge. A redaction that dies before it has
changed nothing; one that dies after it leaves earlier stored forms. In both cases it is run again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.checkpoints import checked, checkpoint
from omnigraph.errors import Conflict, InputError
from omnigraph.storage.failpoints import reach
from omnigraph.storage.manifest.manifest_schema import HistoryFilter, Row
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.version import STORAGE_FORMAT_PURGED
from omnigraph.versioning.model.manifest_rows import head_to_log_row, read_metadata, tag_to_row
from omnigraph.versioning.model.purges import epoch_to_row, purge_to_row
from omnigraph.versioning.model.state import State
from omnigraph.versioning.purge.value_search import VALUE_BYTES_MIN
from omnigraph.versioning.write.repository import Repository

MARKER = "[redacted]"
_HISTORY = ("graph_commit", "ref_change")
_MEMBERS = ("message", "metadata")
"""Members of these rows that contain free text."""
_TRIES = 100


class Redactor:
    """Replaces texts by the marker; longer texts first, so that none is left as a part of another."""

    def __init__(self, texts: Collection[Any]) -> None:
        for text in texts:
            if not isinstance(text, str) or len(text.encode()) < VALUE_BYTES_MIN or text in MARKER:
                raise InputError(
                    f"a text to redact has at least {VALUE_BYTES_MIN} bytes and is not a part of '{MARKER}'",
                    code="bad_purge_value",
                )
        if not texts:
            raise InputError("a redaction needs at least one text", code="bad_purge_value")
        self._texts = sorted(set(texts), key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return a text without the texts to redact."""
        for wanted in self._texts:
            text = text.replace(wanted, MARKER)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value whose texts are redacted; the names of members stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.value(member) for name, member in value.items()}
        return [self.value(member) for member in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class RedactedRows:
    """The numbers of rows of the manifest with a text."""

    commits: int
    refs: int
    """Descriptions of branches, messages of tags, the log of their changes, and reasons of purges."""


def redact_history(repository: Repository, redactor: Redactor, *, confirm: bool, always: bool = False) -> RedactedRows:
    """Replace texts in the rows of the manifest; without `confirm`, count these rows.

    With `always`, other processes read everything again even if no row has a text.
    """
    for _ in range(_TRIES):
        checkpoint()
        if not confirm:
            return _counted(*_redacted(repository, repository.state(), redactor))
        planned = repository.checkpoint()
        if planned.manifest.lines:
            continue
        rows, state_rows = _redacted(repository, planned, redactor)
        if not (rows or state_rows or always) or _published(repository, planned, rows, state_rows):
            reach("redact.published")
            # Also if nothing was found: an earlier redaction may have died here.
            repository.manifest.erase_past()
            return _counted(rows, state_rows)
    raise Conflict(
        f"{_TRIES} attempts to replace the history lost races against other writers; nothing was redacted",
        hint="try again when there are fewer writers",
    )


def _published(repository: Repository, planned: State, rows: Sequence[Row], state_rows: Sequence[Row]) -> bool:
    """Publish the rows if the manifest is still at a version; return True if it was."""
    change = Change(put=(*state_rows, epoch_to_row(planned.purge_epoch + 1)), rewrite=tuple(rows))
    made = False

    def decide(state: State) -> Change | None:
        nonlocal made
        made = state.version == planned.version and not state.manifest.lines
        return change if made else None

    state = repository.publish(decide, storage_format=STORAGE_FORMAT_PURGED, purging=True)
    return made and state.purge_epoch == planned.purge_epoch + 1


def _redacted(repository: Repository, state: State, redactor: Redactor) -> tuple[list[Row], list[Row]]:
    """Return the rows of the history and of the state that contain a text, without it."""
    rows: list[Row] = []
    for kind in _HISTORY:
        for row in checked(repository.manifest.scan(state.manifest, HistoryFilter(kind))):
            data = read_metadata(row)
            new = {**data, **{name: redactor.value(data[name]) for name in _MEMBERS if name in data}}
            if new != data:
                rows.append({**row, "metadata": json.dumps(new, ensure_ascii=False, separators=(",", ":"))})
    heads = [
        head_to_log_row(replace(head, description=redactor.text(head.description)))
        for head in state.heads()
        if head.description and redactor.text(head.description) != head.description
    ]
    tags = [
        tag_to_row(replace(tag, message=redactor.text(tag.message)))
        for tag in state.tags()
        if tag.message and redactor.text(tag.message) != tag.message
    ]
    purges = [
        purge_to_row(replace(record, reason=redactor.text(record.reason)))
        for record in state.purges
        if redactor.text(record.reason) != record.reason
    ]
    return rows, [*heads, *tags, *purges]


def _counted(rows: Sequence[Row], state_rows: Sequence[Row]) -> RedactedRows:
    commits = sum(row["object_type"] == "graph_commit" for row in rows)
    return RedactedRows(commits, len(rows) - commits + len(state_rows))
