"""`ProposalRecord`: what the log of a proposal says. `fold_events` is a pure function of its events.

Whether a proposal is landed, and whether its trial is current, depends on the manifest as well; `proposal_status` adds
these facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.errors import Damaged
from omnigraph.operations.proposals.proposal_events import ProposalEvent


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial: the heads that were merged, and the result."""

    base: str
    source_head: str
    outcome: str
    commit: str | None = None
    """The commit on the hidden branch; None if there are conflicts or nothing to merge."""
    conflicts: int = 0
    problem: str | None = None
    """Why the merge was refused, other than by conflicts."""
    tables: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Table → numbers of inserted, updated and deleted rows."""
    schema_steps: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """The tables whose version changes."""
    authors: tuple[str, ...] = ()
    """The actors of the commits that the target does not have."""
    checks: Mapping[str, bool] = field(default_factory=dict)
    """The checks of this trial by name; True for a required one."""
    resolve: str = ""
    """Identifies the choices for conflicts."""

    @property
    def rows(self) -> int:
        """The number of changed rows."""
        return sum(sum(counts.values()) for counts in self.tables.values())

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which is the data of the event."""
        return {
            "base": self.base,
            "source_head": self.source_head,
            "outcome": self.outcome,
            "commit": self.commit,
            "conflicts": self.conflicts,
            "problem": self.problem,
            "tables": {key: dict(counts) for key, counts in self.tables.items()},
            "schema_steps": list(self.schema_steps),
            "changed": list(self.changed),
            "authors": list(self.authors),
            "checks": dict(self.checks),
            "resolve": self.resolve,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialRecord:
        """Return the trial of an event."""
        return cls(
            data["base"],
            data["source_head"],
            data["outcome"],
            data.get("commit"),
            data.get("conflicts", 0),
            data.get("problem"),
            data.get("tables", {}),
            tuple(data.get("schema_steps", ())),
            tuple(data.get("changed", ())),
            tuple(data.get("authors", ())),
            data.get("checks", {}),
            data.get("resolve", ""),
        )


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """The newest result of one check."""

    name: str
    state: str
    commit: str
    """The trial that was checked."""
    details: str | None = None
    ms: int | None = None
    actor: str | None = None
    at_us: int = 0


@dataclass(frozen=True, slots=True)
class ReviewRecord:
    """The newest verdict of one reviewer."""

    actor: str
    verdict: str
    commit: str
    """The head of the source that was reviewed."""
    text: str | None = None
    groups: tuple[str, ...] = ()
    """The groups that the reviewer's token brought."""
    at_us: int = 0


@dataclass(frozen=True, slots=True)
class CommentAnchor:
    """The row, and possibly the property, that a comment is about."""

    table_key: str
    row_id: str
    property: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        found = {"table_key": self.table_key, "row_id": self.row_id}
        return found if self.property is None else {**found, "property": self.property}


@dataclass(frozen=True, slots=True)
class CommentRecord:
    """A comment as it was edited last."""

    id: str
    actor: str | None
    at_us: int
    text: str
    on: CommentAnchor | None = None
    reply_to: str | None = None
    edited_us: int | None = None
    resolved: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "id": self.id,
            "actor_id": self.actor,
            "created_at": self.at_us,
            "edited_at": self.edited_us,
            "text": self.text,
            "on": None if self.on is None else self.on.to_json(),
            "reply_to": self.reply_to,
            "resolved": self.resolved,
        }


@dataclass(frozen=True)
class ProposalRecord:
    """A proposal by its log."""

    id: str
    source: str
    target: str
    title: str
    author: str | None
    opened_us: int
    updated_us: int
    events: int
    """The number of events."""
    body: str | None = None
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    draft: bool = False
    source_head: str | None = None
    """The head of the source that the log names last."""
    resolve: Any = None
    """The choices for conflicts."""
    trial: TrialRecord | None = None
    checks: Mapping[str, CheckRecord] = field(default_factory=dict)
    """The newest result of each check, by name."""
    reviews: Mapping[str, ReviewRecord] = field(default_factory=dict)
    """The newest verdict of each reviewer."""
    comments: tuple[CommentRecord, ...] = ()
    comment_count: int = 0
    queued_us: int | None = None
    """The time at which the last landing began."""
    landed: str | None = None
    """The landing commit, if its event is written."""
    closed_by: str | None = None
    closed_why: str | None = None
    closed: bool = False

    @property
    def is_ended(self) -> bool:
        """True if the log says that the proposal is closed or landed."""
        return self.closed or self.landed is not None

    def without_texts(self) -> ProposalRecord:
        """Return the record without its body and comments, as lists show it."""
        return replace(self, body=None, comments=())

    def to_summary(self) -> dict[str, Any]:
        """Return the JSON form without body and comments."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "labels": list(self.labels),
            "reviewers": list(self.reviewers),
            "trial": None if self.trial is None else self.trial.to_json(),
            "checks": [_slots(check) for check in self.checks.values()],
            "reviews": [_slots(review) for review in self.reviews.values()],
        }

    @classmethod
    def from_summary(cls, data: Mapping[str, Any]) -> ProposalRecord:
        """Return the record of a summary."""
        trial = data["trial"]
        return cls(
            **{name: data[name] for name in _PLAIN},
            labels=tuple(data["labels"]),
            reviewers=tuple(data["reviewers"]),
            trial=None if trial is None else TrialRecord.from_json(trial),
            checks={one["name"]: CheckRecord(**one) for one in data["checks"]},
            reviews={one["actor"]: ReviewRecord(**{**one, "groups": tuple(one["groups"])}) for one in data["reviews"]},
        )


_PLAIN = (
    "id", "source", "target", "title", "author", "opened_us", "updated_us", "events", "draft", "source_head", "resolve",
    "comment_count", "queued_us", "landed", "closed_by", "closed_why", "closed",
)  # fmt: skip


def _slots(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def fold_events(proposal_id: str, events: Sequence[ProposalEvent]) -> ProposalRecord | None:
    """Return what a log says; None for an empty log. An event without its members raises `Damaged`."""
    if not events:
        return None
    try:
        return _fold(proposal_id, events)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Damaged(
            f"the log of proposal {proposal_id} has an event without its members: {error!r}",
            code="damaged_proposal",
            hint="restore the log from a backup of the graph",
        ) from error


def _fold(proposal_id: str, events: Sequence[ProposalEvent]) -> ProposalRecord:
    first = events[0]
    if first.kind != "opened" or any(event.number != number for number, event in enumerate(events, 1)):
        raise Damaged(f"the log of proposal {proposal_id} does not begin with 'opened'", code="damaged_proposal")
    data = first.data
    record = ProposalRecord(
        proposal_id,
        data["source"],
        data["target"],
        data["title"],
        first.actor,
        first.at_us,
        first.at_us,
        1,
        body=data.get("body"),
        labels=tuple(data.get("labels", ())),
        reviewers=tuple(data.get("reviewers", ())),
        draft=bool(data.get("draft")),
        source_head=data.get("source_head"),
    )
    comments: dict[str, CommentRecord] = {}
    for event in events[1:]:
        record = _apply(record, event, comments)
    found = tuple(comments.values())
    return replace(record, comments=found, comment_count=len(found), events=len(events), updated_us=events[-1].at_us)


def _apply(record: ProposalRecord, event: ProposalEvent, comments: dict[str, CommentRecord]) -> ProposalRecord:
    """Return the record after an event; an unknown kind changes nothing."""
    data = event.data
    match event.kind:
        case "comment" | "resolved":
            _apply_comment(comments, event)
            return record
        case "edited":
            return _edited(record, data)
        case "updated":
            return replace(record, source_head=data["source_head"])
        case "trial":
            trial = TrialRecord.from_json(data)
            return replace(record, trial=trial, source_head=trial.source_head)
        case "check":
            check = CheckRecord(
                data["name"], data["state"], data["commit"], data.get("details"), data.get("ms"), event.actor,
                event.at_us,
            )  # fmt: skip
            return replace(record, checks={**record.checks, check.name: check})
        case "resolution":
            return replace(record, resolve=data["resolve"])
        case "review":
            return replace(record, reviews={**record.reviews, **_review(event)})
        case _:
            return _apply_end(record, event)


def _apply_end(record: ProposalRecord, event: ProposalEvent) -> ProposalRecord:
    data = event.data
    match event.kind:
        case "queued":
            return replace(record, queued_us=event.at_us)
        case "landed":
            return replace(record, landed=data["commit"])
        case "closed":
            return replace(record, closed=True, closed_by=event.actor, closed_why=data.get("why"))
        case "reopened":
            return replace(record, closed=False, closed_by=None, closed_why=None)
        case _:
            return record


def _edited(record: ProposalRecord, data: Mapping[str, Any]) -> ProposalRecord:
    plain: dict[str, Any] = {name: data[name] for name in ("title", "body", "draft") if name in data}
    plain |= {name: tuple(data[name]) for name in ("labels", "reviewers") if name in data}
    return replace(record, **plain)


def _review(event: ProposalEvent) -> dict[str, ReviewRecord]:
    data = event.data
    if event.actor is None:
        return {}
    groups = tuple(data.get("groups", ()))
    found = ReviewRecord(event.actor, data["verdict"], data["commit"], data.get("text"), groups, event.at_us)
    return {event.actor: found}


def _apply_comment(comments: dict[str, CommentRecord], event: ProposalEvent) -> None:
    data = event.data
    if event.kind == "resolved":
        known = comments.get(data["comment"])
        if known is not None:
            comments[known.id] = replace(known, resolved=bool(data["resolved"]))
        return
    known = comments.get(data.get("replaces", ""))
    if known is not None:
        comments[known.id] = replace(known, text=data["text"], edited_us=event.at_us)
        return
    on = data.get("on")
    anchor = None if on is None else CommentAnchor(on["table_key"], on["row_id"], on.get("property"))
    comments[data["id"]] = CommentRecord(
        data["id"], event.actor, event.at_us, data["text"], anchor, data.get("reply_to")
    )
