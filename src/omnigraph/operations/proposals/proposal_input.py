"""Arguments of requests for proposals, validated once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import InputError, ProposalNotFound
from omnigraph.operations.proposals.proposal_events import CHECK_STATES, VERDICTS, CheckState, Verdict
from omnigraph.operations.proposals.proposal_record import CommentAnchor
from omnigraph.operations.proposals.proposal_status import OPEN_STATES, STATES
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.table_key import TableKey

TITLE_MAX = 300
TEXT_BYTES_MAX = 48 << 10
NAMES_MAX = 50
NAME_MAX = 100
_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_CHECK_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}")


def check_proposal_id(proposal_id: object) -> str:
    """Return the id of a proposal; what cannot be one is not found."""
    if not isinstance(proposal_id, str) or _ULID.fullmatch(proposal_id.strip().upper()) is None:
        raise unknown_proposal(str(proposal_id))
    return proposal_id.strip().upper()


def unknown_proposal(proposal_id: str) -> ProposalNotFound:
    """Return the error of an unknown proposal."""
    return ProposalNotFound(f"there is no proposal '{proposal_id[:40]}'")


def check_title(title: object) -> str:
    """Return a title: one line of text."""
    if not isinstance(title, str) or not title.strip() or not is_unicode(title):
        raise InputError("a proposal has a title", code="bad_proposal", hint="give a line of text")
    found = title.strip()
    if len(found) > TITLE_MAX or not found.isprintable():
        raise InputError(f"the title is one line of at most {TITLE_MAX} printable characters", code="bad_proposal")
    return found


def check_body(text: object, what: str = "the description") -> str:
    """Return a text of limited size."""
    if not isinstance(text, str) or not is_unicode(text):
        raise InputError(f"{what} is a str of valid Unicode text", code="bad_proposal")
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise InputError(f"{what} has at most {TEXT_BYTES_MAX >> 10} KiB", code="bad_proposal")
    return text


def check_names(names: object, what: str) -> list[str]:
    """Return a list of labels or actors without repetitions, in the given order."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"{what} are a list of str", code="bad_proposal")
    found = [name.strip() if isinstance(name, str) else "" for name in names]
    sound = all(name and len(name) <= NAME_MAX and name.isprintable() for name in found)
    if not sound or len(found) > NAMES_MAX:
        raise InputError(
            f"{what} are at most {NAMES_MAX} texts of 1 to {NAME_MAX} printable characters", code="bad_proposal"
        )
    return list(dict.fromkeys(found))


def check_comment(text: object) -> str:
    """Return the text of a comment."""
    found = check_body(text, "a comment")
    if not found.strip():
        raise InputError("a comment has a text", code="bad_comment")
    return found


def check_choices(choices: object) -> Any:
    """Return choices for conflicts as JSON; what JSON cannot represent is refused."""
    bad = InputError("the choices for conflicts are a str or a dict, as in merge", code="bad_resolution")
    if choices is not None and not isinstance(choices, str | dict):
        raise bad
    try:
        stored = json.dumps(choices, default=str)
        json.dumps(choices, default=str, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise bad from None
    return json.loads(stored)


def check_after(after: object) -> int:
    """Return the number of the event after which a list starts."""
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise InputError("'after' is the number of an event, 0 or more", code="bad_page")
    return after


def check_check_name(name: object) -> str:
    """Return the name of an external check."""
    if not isinstance(name, str) or _CHECK_NAME.fullmatch(name) is None:
        raise InputError(
            "the name of a check has 1 to 100 letters, digits, '_', '.', ':', '/' and '-'", code="bad_check"
        )
    return name


def check_check_state(state: object) -> CheckState:
    """Return the state of a check."""
    for known in CHECK_STATES:
        if state == known:
            return known
    raise InputError(f"there is no check state '{str(state)[:40]}'; the states are {listing(CHECK_STATES)}")


def check_verdict(verdict: object) -> Verdict:
    """Return a verdict."""
    for known in VERDICTS:
        if verdict == known:
            return known
    raise InputError(f"there is no verdict '{str(verdict)[:40]}'; the verdicts are {listing(VERDICTS)}")


def check_state_filter(state: object) -> tuple[str, ...]:
    """Return the states that a filter names: one state, `open` for all before the end, or `all`."""
    if state == "open":
        return OPEN_STATES
    if state == "all":
        return STATES
    if isinstance(state, str) and state in STATES:
        return (state,)
    known = ("open", "all", *STATES)
    raise InputError(
        f"there is no state '{str(state)[:40]}' of proposals; the states are {listing(known, most=20)}",
        code="bad_proposal_state",
        hint=did_you_mean(str(state), known),
    )


def anchor_of(on: object) -> CommentAnchor | None:
    """Return the place of a comment: `{"type": …, "id": …, "property": …}` or `{"table_key": …, "row_id": …}`."""
    if on is None:
        return None
    if isinstance(on, CommentAnchor):
        return on
    bad = InputError(
        "a comment is on a row: {'table_key': 'node:Type', 'row_id': 'id', 'property': 'name'}",
        code="bad_comment",
        hint="'property' can be left out",
    )
    if not isinstance(on, Mapping) or not {*on} <= {"table_key", "row_id", "property"}:
        raise bad
    key, row, name = on.get("table_key"), on.get("row_id"), on.get("property")
    if not isinstance(key, str) or not isinstance(row, str) or not isinstance(name, str | None):
        raise bad
    try:
        return CommentAnchor(str(TableKey.parse(key)), row, name)
    except ValueError:
        raise bad from None


@dataclass(frozen=True)
class NewProposal:
    """A proposal to open."""

    source: str
    target: str
    title: str
    body: str | None = None
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    draft: bool = False

    @classmethod
    def of(
        cls, source: str, target: str, title: object, body: object, labels: object, reviewers: object, *, draft: bool
    ) -> NewProposal:
        """Return validated arguments."""
        return cls(
            source,
            target,
            check_title(title),
            None if body is None else check_body(body),
            tuple(check_names(labels, "labels")),
            tuple(check_names(reviewers, "reviewers")),
            bool(draft),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the data of the event."""
        return {
            "source": self.source,
            "target": self.target,
            "title": self.title,
            "body": self.body,
            "labels": list(self.labels),
            "reviewers": list(self.reviewers),
            "draft": self.draft,
        }


@dataclass(frozen=True)
class ProposalFilter:
    """Which proposals a list contains, and where it starts."""

    states: tuple[str, ...] = OPEN_STATES
    target: str | None = None
    author: str | None = None
    reviewer: str | None = None
    label: str | None = None
    limit: int = 100
    after: str | None = None
    """The id of the last proposal of the page before."""

    @classmethod
    def of(
        cls,
        state: object,
        target: str | None,
        author: str | None,
        reviewer: str | None,
        label: str | None,
        limit: object,
        after: str | None,
    ) -> ProposalFilter:
        """Return validated arguments."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
            raise InputError(f"the limit of a list of proposals is 1 to 1,000 (got {limit!r})", code="bad_page")
        start = None if after is None else check_proposal_id(after)
        return cls(check_state_filter(state), target, author, reviewer, label, limit, start)


def edits_of(
    *, title: object = None, body: object = None, labels: object = None, reviewers: object = None, draft: object = None
) -> dict[str, Any]:
    """Return the data of an edit; an absent argument changes nothing."""
    found: dict[str, Any] = {}
    if title is not None:
        found["title"] = check_title(title)
    if body is not None:
        found["body"] = check_body(body) or None
    if labels is not None:
        found["labels"] = check_names(labels, "labels")
    if reviewers is not None:
        found["reviewers"] = check_names(reviewers, "reviewers")
    if draft is not None:
        if not isinstance(draft, bool):
            raise InputError("'draft' is True or False", code="bad_proposal")
        found["draft"] = draft
    if not found:
        raise InputError("nothing is changed", hint="give a title, body, labels, reviewers or draft")
    return found
