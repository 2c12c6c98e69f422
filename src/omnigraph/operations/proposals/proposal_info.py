"""`ProposalInfo`: a proposal as all interfaces show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from omnigraph.operations.proposals.proposal_record import CommentAnchor, CommentRecord, ReviewRecord
from omnigraph.operations.proposals.proposal_status import Blocker, ProposalState
from omnigraph.versioning.model.manifest_objects import instant

TRIAL_CHECK = "trial-merge"
"""The check that the branches can be merged; the trial itself decides it."""


@dataclass(frozen=True, slots=True)
class TrialInfo:
    """The newest trial of a proposal."""

    base: str
    """The head of the target that was merged."""
    source_head: str
    commit: str | None
    outcome: str
    conflicts: int
    """The number of conflicts; `Proposal.conflicts` returns them."""
    current: bool
    """True if the branches have not moved since."""
    tables: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Table → numbers of inserted, updated and deleted rows; empty for a reader with rules for rows."""
    schema_steps: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "base": self.base,
            "source_head": self.source_head,
            "commit": self.commit,
            "outcome": self.outcome,
            "conflicts": self.conflicts,
            "current": self.current,
            "tables": {key: dict(counts) for key, counts in self.tables.items()},
            "schema_steps": list(self.schema_steps),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialInfo:
        """Return the trial of a JSON form."""
        return cls(
            data["base"],
            data["source_head"],
            data["commit"],
            data["outcome"],
            data["conflicts"],
            data["current"],
            data["tables"],
            tuple(data["schema_steps"]),
        )


@dataclass(frozen=True, slots=True)
class CheckInfo:
    """A check of a proposal and its newest result on the current trial."""

    name: str
    state: str
    """`pass`, `fail`, `error` or `pending`."""
    required: bool
    details: str | None = None
    commit: str | None = None
    """The trial that was checked."""
    ms: int | None = None
    actor: str | None = None
    at_us: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "state": self.state,
            "required": self.required,
            "details": self.details,
            "commit": self.commit,
            "ms": self.ms,
            "actor_id": self.actor,
            "created_at": self.at_us,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CheckInfo:
        """Return the check of a JSON form."""
        return cls(
            data["name"], data["state"], data["required"], data["details"], data["commit"], data["ms"],
            data["actor_id"], data["created_at"],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckRows:
    """Rows of a check on the trial, at most a hundred, as the caller may see them."""

    name: str
    rows: tuple[dict[str, Any], ...]
    total: int
    """The number of visible rows."""
    node_types: Mapping[str, str] = field(default_factory=dict)
    """Column of nodes → their type; a column of several types is left out."""


@dataclass(frozen=True, slots=True)
class ReviewInfo:
    """The newest verdict of one reviewer."""

    actor: str
    verdict: str
    commit: str
    """The head of the source that was reviewed."""
    counts: bool
    """True for an approval that counts."""
    text: str | None = None
    at_us: int = 0

    @classmethod
    def of(cls, review: ReviewRecord, *, counts: bool) -> ReviewInfo:
        """Return the form of a recorded verdict."""
        return cls(review.actor, review.verdict, review.commit, counts, review.text, review.at_us)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "actor_id": self.actor,
            "verdict": self.verdict,
            "commit": self.commit,
            "counts": self.counts,
            "text": self.text,
            "created_at": self.at_us,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ReviewInfo:
        """Return the verdict of a JSON form."""
        return cls(data["actor_id"], data["verdict"], data["commit"], data["counts"], data["text"], data["created_at"])


@dataclass(frozen=True)
class ProposalInfo:
    """A proposal at one moment, as its reader may see it."""

    id: str
    title: str
    state: ProposalState
    source: str
    target: str
    author: str | None
    created_us: int
    updated_us: int
    events: int
    """The number of events of its log."""
    body: str | None = None
    """The description; lists leave it out."""
    draft: bool = False
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    source_head: str | None = None
    """The head of the source; None if the branch does not exist any more."""
    target_head: str | None = None
    blocked_by: tuple[Blocker, ...] = ()
    """Everything that prevents the landing."""
    approvals: tuple[str, ...] = ()
    """The reviewers whose approvals count."""
    reviews: tuple[ReviewInfo, ...] = ()
    checks: tuple[CheckInfo, ...] = ()
    trial: TrialInfo | None = None
    comments: int = 0
    """The number of comments."""
    landed: str | None = None
    """The landing commit."""
    closed_by: str | None = None
    closed_why: str | None = None

    @property
    def created_at(self) -> datetime:
        """The time at which it was opened, in UTC."""
        return instant(self.created_us)

    @property
    def updated_at(self) -> datetime:
        """The time of its last event, in UTC."""
        return instant(self.updated_us)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "actor_id": self.author,
            "created_at": self.created_us,
            "updated_at": self.updated_us,
            "labels": list(self.labels),
            "reviewers": list(self.reviewers),
            "blocked_by": [blocker.to_json() for blocker in self.blocked_by],
            "approvals": list(self.approvals),
            "reviews": [review.to_json() for review in self.reviews],
            "checks": [check.to_json() for check in self.checks],
            "trial": None if self.trial is None else self.trial.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ProposalInfo:
        """Return the proposal of a JSON form."""
        trial = data["trial"]
        return cls(
            **{name: data[name] for name in _PLAIN},
            author=data["actor_id"],
            created_us=data["created_at"],
            updated_us=data["updated_at"],
            labels=tuple(data["labels"]),
            reviewers=tuple(data["reviewers"]),
            blocked_by=tuple(Blocker(one["code"], one["message"]) for one in data["blocked_by"]),
            approvals=tuple(data["approvals"]),
            reviews=tuple(map(ReviewInfo.from_json, data["reviews"])),
            checks=tuple(map(CheckInfo.from_json, data["checks"])),
            trial=None if trial is None else TrialInfo.from_json(trial),
        )


_PLAIN = (
    "id", "title", "state", "source", "target", "events", "body", "draft", "source_head", "target_head", "comments",
    "landed", "closed_by", "closed_why",
)  # fmt: skip


@dataclass(frozen=True)
class CommentList:
    """The comments that a reader may see, and the number of the others."""

    comments: tuple[CommentRecord, ...]
    hidden: int = 0
    """Comments on rows or properties that the reader may not see."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"comments": [comment.to_json() for comment in self.comments], "hidden_comments": self.hidden}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CommentList:
        """Return the comments of a JSON form."""
        return cls(tuple(map(comment_from_json, data["comments"])), data["hidden_comments"])


def comment_from_json(data: Mapping[str, Any]) -> CommentRecord:
    """Return the comment of a JSON form."""
    on = cast("Mapping[str, Any] | None", data["on"])
    anchor = None if on is None else CommentAnchor(on["table_key"], on["row_id"], on.get("property"))
    return CommentRecord(
        data["id"], data["actor_id"], data["created_at"], data["text"], anchor, data["reply_to"], data["edited_at"],
        data["resolved"],
    )  # fmt: skip
