"""A call of a provider: attempts, waits between them, and the deadline over all.

A call is one request and its repetitions. The attempt itself is passed in; this module decides when to retry and raises
the final error. Log lines name provider, model, attempt and cause: a cause is a text of this package and contains
neither input text nor key, while the provider's message appears only in the error.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from omnigraph.embedding.config import BASE_URL_VARIABLE, DEADLINE_VARIABLE, MODEL_VARIABLE, EmbeddingConfig
from omnigraph.embedding.rate_limit import Pace
from omnigraph.errors import EmbeddingError

T = TypeVar("T")

WAIT_MAX_S = 86_400.0
"""Longer waits and timeouts are treated as unlimited; they would overflow the system's timers."""

_DOUBLINGS_MAX = 10

_log = logging.getLogger(__name__)


class TryFailed(Exception):
    """Failure of one attempt; `words` is the provider's message."""

    def __init__(
        self,
        cause: str,
        *,
        retryable: bool,
        words: str = "",
        status: int | None = None,
        timed_out: bool = False,
        retry_after_s: float = 0.0,
        text: int = 0,
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.retryable = retryable
        self.words = words
        self.status = status
        self.timed_out = timed_out
        self.retry_after_s = retry_after_s
        self.text = text
        """Index of the text that caused the failure, if known."""

    def __str__(self) -> str:
        return f"{self.cause}: {self.words}" if self.words else self.cause


class Abandoned(Exception):
    """The call was cancelled because another call of the batch failed."""


@dataclass(frozen=True)
class Caller:
    """Makes calls with the retries of a configuration.

    `sleep` is None outside tests: waiting then ends early when the call is cancelled.
    """

    config: EmbeddingConfig
    clock: Callable[[], float]
    sleep: Callable[[float], object] | None
    pace: Pace

    def call(self, attempt: Callable[[float], T], stop: threading.Event, tokens: int = 0) -> T:
        """Return the result of `attempt`, which receives the seconds it may take and raises `TryFailed`.

        Every attempt waits until the rate limits allow it; `tokens` is the estimated number that it sends. Raises
        `EmbeddingError` if no attempt succeeds, and `Abandoned` if `stop` is set in between.
        """
        started = self.clock()
        tries = max(1, self.config.attempts)
        number = 0
        failure: TryFailed | None = None
        while True:
            if stop.is_set():
                raise Abandoned
            started = self._wait_for_turn(tokens, started, number, failure, stop)
            number += 1
            timeout_s = self.config.timeout_ms / 1000
            left_s = self._left_s(started)
            if left_s <= 0:
                self._fail_deadline(number - 1, failure)
            try:
                return attempt(min(timeout_s, left_s, WAIT_MAX_S))
            except TryFailed as error:
                failure = error
            if failure.timed_out and left_s <= timeout_s:
                self._fail_deadline(number, failure)
            if not failure.retryable or number >= tries:
                self._fail(number, failure)
            self.pace.hold(failure.retry_after_s)
            wait_s = max(self._backoff_s(number), failure.retry_after_s)
            if wait_s >= self._left_s(started):
                self._fail_deadline(number, failure)
            _log.warning(
                "embedding with %s model '%s': try %d of %d failed (%s), next in %d ms",
                self.config.provider, self.config.model, number, tries, failure.cause, round(wait_s * 1000),
            )  # fmt: skip
            self._wait(min(wait_s, WAIT_MAX_S), stop)

    def _wait_for_turn(
        self, tokens: int, started: float, tries: int, failure: TryFailed | None, stop: threading.Event
    ) -> float:
        """Wait until the next attempt may be sent; return the start of the call without the waits for configured
        limits.

        A pause that the provider requested counts against the deadline. A call that would exceed its deadline by the
        pause fails immediately, whether the provider requested the pause in this call or in an earlier one.
        """
        while True:
            turn = self.pace.take_turn(tokens)
            if turn.may_go:
                return started
            if turn.held_s > 0:
                if turn.held_s >= self._left_s(started):
                    self._fail_deadline(tries, failure, held_s=turn.held_s)
                self._wait(min(turn.held_s, WAIT_MAX_S), stop)
            else:
                before = self.clock()
                self._wait(turn.paced_s, stop)
                started += self.clock() - before

    def _backoff_s(self, failed_tries: int) -> float:
        return float(self.config.backoff_ms * 2 ** min(failed_tries - 1, _DOUBLINGS_MAX)) / 1000

    def _left_s(self, started: float) -> float:
        if self.config.deadline_ms == 0:
            return float("inf")
        return self.config.deadline_ms / 1000 - (self.clock() - started)

    def _wait(self, seconds: float, stop: threading.Event) -> None:
        if self.sleep is not None:
            self.sleep(seconds)
        elif stop.wait(seconds):
            raise Abandoned

    def _fail(self, tries: int, failure: TryFailed) -> NoReturn:
        raise EmbeddingError(
            f"{self._subject()} failed after {_counted(tries)}: {failure}",
            hint=self._hint(failure.status),
            text_index=failure.text,
        ) from failure

    def _fail_deadline(self, tries: int, failure: TryFailed | None, *, held_s: float = 0.0) -> NoReturn:
        last = f"; last cause: {failure}" if failure else ""
        if held_s > 0 and failure is None:
            last = f"; the provider asked for a pause that ends in {math.ceil(held_s)} s"
        raise EmbeddingError(
            f"{self._subject()} was stopped by the deadline of {self.config.deadline_ms} ms "
            f"after {_counted(tries)}{last}",
            hint=f"{DEADLINE_VARIABLE} allows more time; 0 sets no deadline",
            text_index=failure.text if failure else 0,
        ) from failure

    def _subject(self) -> str:
        return f"embedding with {self.config.provider} model '{self.config.model}'"

    def _hint(self, status: int | None) -> str | None:
        match status:
            case 401 | 403:
                return f"check the key of provider '{self.config.provider}'"
            case 404:
                return f"check {MODEL_VARIABLE} and {BASE_URL_VARIABLE}"
            case 429:
                return "the provider limits how much it serves: embed less at once, or later"
            case _:
                return None


def _counted(tries: int) -> str:
    return "1 try" if tries == 1 else f"{tries} tries"
