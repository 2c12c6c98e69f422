"""Documents of webhooks."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from omnigraph.wire.document import Document

WebhookState = Literal["starting", "ready", "retrying", "failed"]


class WebhookFailureDocument(Document, kw_only=True):
    """The failure of the next event; times are in microseconds since 1970."""

    error: str
    tries: int
    since: int
    next_try_at: int


class WebhookDocument(Document, kw_only=True):
    """The progress of one webhook in one graph. `origin` leaves out the path of the address, which may be a secret."""

    name: str
    graph_id: str
    origin: str
    state: WebhookState
    delivered: int
    dropped: int
    last_event_id: str | UnsetType = UNSET
    last_delivered_at: int | UnsetType = UNSET
    failure: WebhookFailureDocument | UnsetType = UNSET


class WebhookListDocument(Document):
    """The webhooks of a server, by name and graph."""

    webhooks: list[WebhookDocument]


class WebhookVerifyDocument(Document, kw_only=True):
    """A verified event; the time of its signature is in seconds since 1970."""

    event_id: str | None
    kind: str | None
    graph_id: str | None
    signed_at: int
