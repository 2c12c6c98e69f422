"""Rate limits of a provider: requests and tokens per minute, and concurrent requests.

The limits apply to an account. Within a process a `Pace` enforces them. A job in several processes gives each worker a
share: the shares together stay within the limits without communication.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from omnigraph.errors import EmbeddingError

REQUESTS_VARIABLE = "OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE"
TOKENS_VARIABLE = "OMNIGRAPH_EMBED_TOKENS_PER_MINUTE"
AT_ONCE_VARIABLE = "OMNIGRAPH_EMBED_REQUESTS_AT_ONCE"

MINUTE_S = 61.0
"""One minute plus one second for network delay: the provider counts requests on arrival."""

_NUMBER = re.compile(r"0*[1-9][0-9]{0,14}")
_BYTES_PER_TOKEN = 3
_TOKENS_PER_TEXT_MAX = 8_192
"""Maximum input of the models; with a smaller share a long text could not be sent within its minute."""


@dataclass(frozen=True)
class RateLimits:
    """Limits of requests; 0 means no limit."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    requests_at_once: int = 0

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> RateLimits:
        """Return the limits in the variables; a value that is not a number is refused, because a limit was intended."""
        names = (REQUESTS_VARIABLE, TOKENS_VARIABLE, AT_ONCE_VARIABLE)
        return cls(*(_limit(name, variables.get(name, "").strip()) for name in names))

    def workers(self, wanted: int) -> int:
        """Return the number of workers that can run concurrently with a usable share each."""
        long_texts = max(1, self.tokens_per_minute // _TOKENS_PER_TEXT_MAX) if self.tokens_per_minute else 0
        return min([wanted, *filter(None, (self.requests_per_minute, self.requests_at_once, long_texts))])

    def shared_by(self, workers: int) -> RateLimits:
        """Return the share of one of `workers` workers."""
        given = (self.requests_per_minute, self.tokens_per_minute, self.requests_at_once)
        return RateLimits(*(max(1, limit // workers) if limit else 0 for limit in given))

    def to_variables(self) -> dict[str, str]:
        """Return the limits as variables, which `of` reads."""
        given = {
            REQUESTS_VARIABLE: self.requests_per_minute,
            TOKENS_VARIABLE: self.tokens_per_minute,
            AT_ONCE_VARIABLE: self.requests_at_once,
        }
        return {name: str(limit) for name, limit in given.items() if limit}


NO_LIMITS = RateLimits()


def share_settings(settings: Mapping[str, str], workers: int) -> tuple[dict[str, str], int | None]:
    """Return the settings of each worker of a job, and the number of concurrent workers; None means unlimited."""
    limits = RateLimits.of(settings)
    if limits == NO_LIMITS:
        return dict(settings), None
    workers = limits.workers(workers)
    return {**settings, **limits.shared_by(workers).to_variables()}, workers


def tokens_of(text: str) -> int:
    """Return an upper estimate of the number of tokens of a text; only the provider knows the exact number."""
    return len(text.encode()) // _BYTES_PER_TOKEN + 1


@dataclass(frozen=True)
class Turn:
    """Decision whether a request may be sent now, and the reasons to wait."""

    held_s: float
    """Remaining seconds of a pause that the provider requested. They count against the deadline of a call."""
    paced_s: float
    """Seconds until the configured limits allow the request. They do not count against the deadline, because the user
    chose the limits.
    """

    @property
    def may_go(self) -> bool:
        """True if the request was counted as sent."""
        return self.held_s <= 0 and self.paced_s <= 0


class Pace:
    """Decides when a request may be sent, so that no minute exceeds the limits. Thread-safe."""

    def __init__(self, limits: RateLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._sent: deque[tuple[float, int]] = deque()
        """Time and tokens of each request of the last minute."""
        self._not_before = float("-inf")

    def take_turn(self, tokens: int) -> Turn:
        """Count a request of so many tokens as sent if it may be sent now; otherwise return the wait."""
        with self._lock:
            now = self._clock()
            turn = Turn(max(self._not_before - now, 0.0), max(self._left_s(now, tokens), 0.0))
            if turn.may_go:
                self._sent.append((now, tokens))
            return turn

    def hold(self, seconds: float) -> None:
        """Send no request for a while, as the provider requested."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock() + seconds)

    def _left_s(self, now: float, tokens: int) -> float:
        while self._sent and self._sent[0][0] <= now - MINUTE_S:
            self._sent.popleft()
        requests, spent = len(self._sent), sum(count for _, count in self._sent)
        until = now
        for at, count in self._sent:
            if not self._is_too_much(requests + 1, spent + tokens):
                break
            until = max(until, at + MINUTE_S)
            requests, spent = requests - 1, spent - count
        return until - now

    def _is_too_much(self, requests: int, tokens: int) -> bool:
        limits = self._limits
        return 0 < limits.requests_per_minute < requests or 0 < limits.tokens_per_minute < tokens


def _limit(name: str, text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and int(text[:16]) > 0 and len(text) < 16):
        raise EmbeddingError(f"{name} is '{text[:40]}', which is not a limit", hint="give a positive integer")
    return int(text)
