"""How much a provider is asked: requests and tokens a minute, and requests at a time.

The limits are those of an account, whoever uses it. One process keeps them by a `Pace`. A job that runs in many gives
each worker a share: what each of them keeps, all of them keep together, without a word between them.
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
"""A minute, and a second for what is slow on its way: the provider counts when a request arrives."""

_NUMBER = re.compile(r"0*[1-9][0-9]{0,14}")
_BYTES_PER_TOKEN = 3
_TOKENS_PER_TEXT_MAX = 8_192
"""What the models take; a share below it could not send a long text within its minute."""


@dataclass(frozen=True)
class RateLimits:
    """What may be asked; 0 is no limit."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    requests_at_once: int = 0

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> RateLimits:
        """The limits the variables set; a value that is no number is refused, because it was meant to be a limit."""
        names = (REQUESTS_VARIABLE, TOKENS_VARIABLE, AT_ONCE_VARIABLE)
        return cls(*(_limit(name, variables.get(name, "").strip()) for name in names))

    def workers(self, wanted: int) -> int:
        """How many can work at a time, each with a share that is good for something."""
        long_texts = max(1, self.tokens_per_minute // _TOKENS_PER_TEXT_MAX) if self.tokens_per_minute else 0
        return min([wanted, *filter(None, (self.requests_per_minute, self.requests_at_once, long_texts))])

    def shared_by(self, workers: int) -> RateLimits:
        """What one of so many workers may ask."""
        given = (self.requests_per_minute, self.tokens_per_minute, self.requests_at_once)
        return RateLimits(*(max(1, limit // workers) if limit else 0 for limit in given))

    def to_variables(self) -> dict[str, str]:
        """The limits as `of` reads them."""
        given = {
            REQUESTS_VARIABLE: self.requests_per_minute,
            TOKENS_VARIABLE: self.tokens_per_minute,
            AT_ONCE_VARIABLE: self.requests_at_once,
        }
        return {name: str(limit) for name, limit in given.items() if limit}


NO_LIMITS = RateLimits()


def share_settings(settings: Mapping[str, str], workers: int) -> tuple[dict[str, str], int | None]:
    """The settings of each worker of a job, and how many may work at a time; None is as many as there are."""
    limits = RateLimits.of(settings)
    if limits == NO_LIMITS:
        return dict(settings), None
    workers = limits.workers(workers)
    return {**settings, **limits.shared_by(workers).to_variables()}, workers


def tokens_of(text: str) -> int:
    """About how many tokens a text has, rather too many: only the provider knows."""
    return len(text.encode()) // _BYTES_PER_TOKEN + 1


@dataclass(frozen=True)
class Turn:
    """Whether a request may go now, and the two reasons for which it may have to wait."""

    held_s: float
    """Seconds left of the pause for which the provider asked. They count against the deadline of a call."""
    paced_s: float
    """Seconds until the configured limits allow the request. They do not count: the user chose the limits."""

    @property
    def may_go(self) -> bool:
        """Whether the request was counted as sent."""
        return self.held_s <= 0 and self.paced_s <= 0


class Pace:
    """Decides when a request may go, so that no minute has more than its limits. Thread-safe."""

    def __init__(self, limits: RateLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._sent: deque[tuple[float, int]] = deque()
        """When, and how many tokens, of the last minute."""
        self._not_before = float("-inf")

    def take_turn(self, tokens: int) -> Turn:
        """Count a request of so many tokens as sent if it may go now; otherwise the reason it may not."""
        with self._lock:
            now = self._clock()
            turn = Turn(max(self._not_before - now, 0.0), max(self._left_s(now, tokens), 0.0))
            if turn.may_go:
                self._sent.append((now, tokens))
            return turn

    def hold(self, seconds: float) -> None:
        """Let no request go for a while: the provider asked for it."""
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
        raise EmbeddingError(f"{name} is '{text[:40]}', which is no limit", hint="give a whole number above zero")
    return int(text)
