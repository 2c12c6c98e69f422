"""`ProposalFields`: the attributes that every handle of a proposal has, embedded or remote."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.operations.proposals.proposal_info import ProposalInfo, ReviewInfo, TrialInfo
    from omnigraph.operations.proposals.proposal_status import Blocker


class ProposalFields:
    """The state of a proposal when it was read last, as `info`."""

    def __init__(self, info: ProposalInfo) -> None:
        self.info = info

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.state}: {self.source} → {self.target}, {self.title!r}>"

    @property
    def id(self) -> str:
        """The id."""
        return self.info.id

    @property
    def title(self) -> str:
        """The title."""
        return self.info.title

    @property
    def body(self) -> str | None:
        """The description."""
        return self.info.body

    @property
    def state(self) -> str:
        """The state: draft, checking, blocked, ready, landing, landed or closed."""
        return self.info.state

    @property
    def blocked_by(self) -> tuple[Blocker, ...]:
        """Everything that prevents the landing."""
        return self.info.blocked_by

    @property
    def source(self) -> str:
        """The branch that is proposed."""
        return self.info.source

    @property
    def target(self) -> str:
        """The branch that it is to be brought into."""
        return self.info.target

    @property
    def author(self) -> str | None:
        """The actor that opened the proposal."""
        return self.info.author

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels."""
        return self.info.labels

    @property
    def reviewers(self) -> tuple[str, ...]:
        """The actors that are asked for a review."""
        return self.info.reviewers

    @property
    def approvals(self) -> tuple[str, ...]:
        """The reviewers whose approvals count."""
        return self.info.approvals

    @property
    def reviews(self) -> tuple[ReviewInfo, ...]:
        """The newest verdict of each reviewer."""
        return self.info.reviews

    @property
    def trial(self) -> TrialInfo | None:
        """The newest trial of the merge."""
        return self.info.trial

    @property
    def landed(self) -> str | None:
        """The landing commit."""
        return self.info.landed

    @property
    def created_at(self) -> datetime:
        """The time at which it was opened, in UTC."""
        return self.info.created_at

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return self.info.to_json()
