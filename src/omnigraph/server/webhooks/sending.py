"""Sending of one event: a signed POST, whose outcome is a status or the reason of a failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.server.outgoing_http import OutgoingFailed, request
from omnigraph.server.webhooks.events import Event
from omnigraph.server.webhooks.targets import Webhook
from omnigraph.version import __version__
from omnigraph.webhooks import HEADER, sign

TIMEOUT_S = 10.0
ANSWER_MAX = 64 * 1024


@dataclass(frozen=True)
class Outcome:
    """The end of one try: delivered, or the reason of its failure."""

    error: str | None = None
    refused: bool = False
    """True if the address is not permitted."""

    @property
    def is_delivered(self) -> bool:
        """True if the receiver has the event."""
        return self.error is None


def send(webhook: Webhook, event: Event, body: bytes, clock: Callable[[], float] = time.time) -> Outcome:
    """Send an event once. Every status but 2xx is a failure, also a redirect."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"omnigraph/{__version__}",
        "Omnigraph-Event": event.kind,
        "Omnigraph-Event-Id": event.id,
        HEADER: sign(body, webhook.secrets, int(clock())),
    }
    try:
        answer = request(
            "POST",
            webhook.url,
            headers=headers,
            body=body,
            timeout_s=TIMEOUT_S,
            answer_max=ANSWER_MAX,
            reach=webhook.reach,
        )
    except OutgoingFailed as error:
        return Outcome(str(error), refused=error.refused)
    if 200 <= answer.status < 300:
        return Outcome()
    redirect = ", a redirect, which is not followed" if 300 <= answer.status < 400 else ""
    return Outcome(f"the receiver answered with status {answer.status}{redirect}")
