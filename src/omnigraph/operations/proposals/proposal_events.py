"""The events of a proposal. Its log is the sequence of them; its state is a fold over the log and the manifest.

Each event has a number (1, 2, …), a kind, an actor, a time in microseconds since 1970 and, from a server, the id of the
request. The other members are `data`, by kind:

| kind | data |
|---|---|
| `opened` | `source`, `target`, `title`, `body`, `labels`, `reviewers`, `draft` |
| `edited` | the changed ones of `title`, `body`, `labels`, `reviewers`, `draft` |
| `updated` | `source_head`: the source moved since the head that the log names last |
| `trial` | `base`, `source_head`, `outcome`, `commit` or `conflicts` (their number), `tables`, `schema_steps`, |
| | `changed`, `authors`, `checks` (name → required), `resolve` (a digest) |
| `check` | `name`, `commit` (the trial), `state` (`pass`, `fail`, `error`, `pending`), `details`, `ms` |
| `comment` | `id`, `text`, `on` (`table_key`, `row_id`, `property`) or null, `reply_to`; `replaces` edits a comment |
| `resolved` | `comment`, `resolved`: a thread is closed or open again |
| `resolution` | `resolve`: choices for conflicts, as in `merge` |
| `review` | `verdict` (`approve`, `request_changes`, `retract`), `commit` (the head of the source), `text`, `groups` |
| `queued` | `commit` (the trial): a landing began |
| `landed` | `commit`: a copy of the fact in the manifest, which decides |
| `closed` | `why` |
| `reopened` | none |

A consumer of events names a kind `proposal.<kind>`. Kinds and members are added in later releases, never changed; a
reader skips what it does not know. No event contains rows of the graph, but texts that people write can quote them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

from omnigraph.errors import Damaged, InputError
from omnigraph.versioning.model.manifest_objects import instant

EventKind = Literal[
    "opened", "edited", "updated", "trial", "check", "comment", "resolved", "resolution", "review", "queued", "landed",
    "closed", "reopened",
]  # fmt: skip
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
CheckState = Literal["pass", "fail", "error", "pending"]
CHECK_STATES: tuple[CheckState, ...] = get_args(CheckState)
Verdict = Literal["approve", "request_changes", "retract"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

EVENT_BYTES_MAX = 64 << 10
EVENTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ProposalEvent:
    """One entry of the log of a proposal."""

    number: int
    kind: str
    """One of `EVENT_KINDS`, or a kind of a later release."""
    actor: str | None
    at_us: int
    data: Mapping[str, Any] = field(default_factory=dict)
    request_id: str | None = None

    @property
    def created_at(self) -> datetime:
        """The time in UTC."""
        return instant(self.at_us)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which is also the stored one."""
        return {
            "number": self.number,
            "kind": self.kind,
            "actor_id": self.actor,
            "created_at": self.at_us,
            **({} if self.request_id is None else {"request_id": self.request_id}),
            "data": dict(self.data),
        }

    def encode(self) -> bytes:
        """Return the stored form; `InputError` if it is too large."""
        stored = json.dumps(self.to_json(), ensure_ascii=False, separators=(",", ":")).encode()
        if len(stored) > EVENT_BYTES_MAX:
            raise InputError(
                f"an event of a proposal has at most {EVENT_BYTES_MAX >> 10} KiB (got {len(stored):,} bytes)",
                code="proposal_event_too_large",
                hint="shorten the text",
            )
        return stored

    @classmethod
    def decode(cls, stored: bytes, name: str) -> ProposalEvent:
        """Return a stored event; `name` is its object, for the error of a damaged one."""
        try:
            found = json.loads(stored)
            return cls(
                int(found["number"]),
                str(found["kind"]),
                found["actor_id"],
                int(found["created_at"]),
                dict(found["data"]),
                found.get("request_id"),
            )
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise Damaged(
                f"'{name}' is not an event of a proposal: {error}",
                code="damaged_proposal",
                hint="restore the file from a backup of the graph",
            ) from error
