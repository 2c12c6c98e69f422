"""Repetition of requests: which failures are repeated, after which delay, and what the caller sees in the end.

A read is repeated until a part of its answer was handed out. A write has an idempotency key, so that a repetition never
writes twice. The delays have full jitter and are at least `Retry-After`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping

import httpcore2
import stamina

from omnigraph.client.failures import add_retry_after, failure_of
from omnigraph.client.messages import Request, Response
from omnigraph.client.transport.address import CONNECT_S, TIMEOUT_MAX_S, Settings
from omnigraph.client.transport.network import POLL_S, check
from omnigraph.errors import (
    Cancelled,
    Conflict,
    Hint,
    IncompatibleFormat,
    InputError,
    NotFound,
    OmniGraphError,
    OutcomeUnknown,
    QueryTimeout,
    RemoteError,
)

# Without a handler, Python would print the retries that stamina logs to stderr.
logging.getLogger("stamina").addHandler(logging.NullHandler())

FIRST_DELAY_S = 0.25
DELAY_MAX_S = 5.0
RETRY_AFTER_MAX_S = 60.0
_REPEATED = frozenset({429, 502, 503, 504})
_GATEWAY = frozenset({502, 504})
"""Statuses of a proxy that lost the answer of the server."""
_OUTCOMES = (InputError, NotFound, Conflict)
"""Errors of a server that are the outcome of a write; others, such as an expired token, tell nothing about it."""
_LOCAL_CODES = frozenset({"graph_closed", "unreadable_file"})
"""Codes of errors that occur before a request is sent."""
_UNSENT = (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.ProxyError)
NETWORK_ERRORS = (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, httpcore2.ProxyError)


class Retry(Exception):
    """A failure after which a request is repeated; `error` is what the caller sees if no repetition is left."""

    def __init__(self, error: OmniGraphError, *, lost: bool, after_s: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.lost = lost
        """True if the request may have been carried out."""
        self.after_s = after_s


class Attempts:
    """The attempts of one request."""

    def __init__(self, settings: Settings, request: Request) -> None:
        self._settings = settings
        self._request = request
        self._lost = False
        self._failed: Retry | None = None
        """The failure of the first attempt, which the loop counts as its own."""
        self._count = 0
        self._delay_s = 0.0
        """The delay before the next attempt."""
        self.stopped = False
        """True if no further attempt is made, because the call was cancelled."""

    @property
    def lost(self) -> bool:
        """True if an attempt without an answer may have been carried out."""
        return self._lost

    def run(self, attempt: Callable[[], Response]) -> Response:
        """Return the answer of the first attempt that succeeds.

        The first attempt runs outside of the loop, whose start takes as long as a short request.
        """
        try:
            return attempt()
        except Retry as failure:
            self._note(failure)
            self._failed = failure
        caller = stamina.RetryingCaller(attempts=self._settings.retries + 1, timeout=None)
        try:
            return caller(self._delay, self._repeat, attempt)
        except Retry as failure:
            raise self._error(failure) from failure.__cause__

    def _repeat(self, attempt: Callable[[], Response]) -> Response:
        self._raise_first()
        try:
            for pause in self._pauses():
                time.sleep(pause)
            return attempt()
        except (Retry, OmniGraphError) as failure:
            raise self._repeated(failure) from failure.__cause__

    async def run_async(self, attempt: Callable[[], Awaitable[Response]]) -> Response:
        """Return the answer of the first attempt that succeeds, as `run` does."""
        try:
            return await attempt()
        except Retry as failure:
            self._note(failure)
            self._failed = failure
        caller = stamina.AsyncRetryingCaller(attempts=self._settings.retries + 1, timeout=None)
        try:
            return await caller(self._delay, self._repeat_async, attempt)
        except Retry as failure:
            raise self._error(failure) from failure.__cause__

    async def _repeat_async(self, attempt: Callable[[], Awaitable[Response]]) -> Response:
        self._raise_first()
        try:
            for pause in self._pauses():
                await asyncio.sleep(pause)
            return await attempt()
        except (Retry, OmniGraphError) as failure:
            raise self._repeated(failure) from failure.__cause__

    def _repeated(self, failure: Retry | OmniGraphError) -> Exception:
        """Return the failure of a repetition; one that is not about the write leaves the outcome of a lost one open."""
        if isinstance(failure, Retry):
            self._note(failure)
            return failure
        if isinstance(failure, _OUTCOMES) and failure.code not in _LOCAL_CODES:
            return failure
        return self._error(Retry(failure, lost=False))

    def _pauses(self) -> Iterator[float]:
        """Yield the parts of the delay before an attempt; raise `Cancelled` if the call is cancelled meanwhile."""
        end = time.monotonic() + self._delay_s
        while True:
            if self.stopped:
                raise Cancelled("the call was cancelled before the request was repeated")
            check(self._request.cancel)
            left = end - time.monotonic()
            if left <= 0:
                return
            yield min(left, POLL_S)

    def _raise_first(self) -> None:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _note(self, failure: Retry) -> None:
        self._lost = self._lost or failure.lost
        self._count += 1

    def _delay(self, failure: Exception) -> float | bool:
        """Note the delay before the next attempt, which waits itself; return False if the failure is not repeated."""
        if not isinstance(failure, Retry) or (self._request.urgent and failure.after_s > 0):
            return False
        jitter = random.uniform(0, min(DELAY_MAX_S, FIRST_DELAY_S * 2 ** (self._count - 1)))  # noqa: S311
        self._delay_s = max(jitter, min(failure.after_s, RETRY_AFTER_MAX_S))
        return 0.0

    def _error(self, failure: Retry) -> OmniGraphError:
        """Return the error after the last attempt."""
        key = self._request.key
        if key is None or not self._lost:
            return failure.error
        return outcome_unknown(self._settings, key, f"{self._count} attempts failed: {failure.error.message}")


def outcome_unknown(settings: Settings, key: str, reason: str) -> OutcomeUnknown:
    """Return the error of a write without an answer that tells its outcome."""
    error = OutcomeUnknown(
        f"the answer of {settings.address.url} to a write was lost: {reason}",
        hint=f"repeat the call with the idempotency key '{key}'; it writes at most once",
    )
    error.idempotency_key = key
    return error


def network_failure(error: Exception, settings: Settings, request: Request) -> Retry | OmniGraphError:
    """Return the failure of a request without an answer."""
    url = settings.address.url
    if isinstance(error, httpcore2.LocalProtocolError):
        return InputError(f"the request is not valid: {error}", code="bad_http_request")
    if isinstance(error, _UNSENT):
        return _unreachable(error, url)
    if isinstance(error, httpcore2.ReadTimeout):
        return QueryTimeout(
            f"{url} did not answer within {read_timeout(settings, request)} s",
            resource="time",
            limit=read_timeout(settings, request) or 0,
            hint=Hint("raise timeout_s of connect, or give the call a timeout", cli="raise OMNIGRAPH_HTTP_TIMEOUT_MS"),
        )
    lost = RemoteError(
        f"the connection to {url} was lost before the answer arrived: {str(error) or type(error).__name__}",
        code="connection_lost",
        hint="repeat the call",
    )
    return Retry(lost, lost=True)


def no_free_connection(settings: Settings, held: int) -> RemoteError:
    """Return the error of a request that found every connection in use; it was not sent."""
    return RemoteError(
        f"no connection to {settings.address.url} became free within {settings.timeout_s} s: {held} answers are open",
        code="no_free_connection",
        hint="read results to their end, or drop them; use fewer threads or tasks",
    )


def _unreachable(error: Exception, url: str) -> Retry | OmniGraphError:
    if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return RemoteError(
            f"the certificate of {url} is not trusted: {error}",
            code="untrusted_certificate",
            hint=Hint(
                "give the file of the certificate authority as verify='ca.pem'",
                cli="name the file of the certificate authority in SSL_CERT_FILE",
            ),
        )
    reason = f"no connection within {CONNECT_S:.0f} s" if isinstance(error, httpcore2.ConnectTimeout) else f"{error}"
    unreachable = RemoteError(
        f"the server at {url} cannot be reached: {reason}",
        code="server_unreachable",
        hint="check the address, and that the server runs",
    )
    return Retry(unreachable, lost=False)


def answer_failure(status: int, headers: Mapping[str, str], body: bytes, url: str) -> Retry | OmniGraphError:
    """Return the failure of an answer that is not a success."""
    error = failure_of(status, headers, body, url)
    if status not in _REPEATED or isinstance(error, IncompatibleFormat):
        return error
    after = headers.get("retry-after", "")
    add_retry_after(error, after)
    lost = isinstance(error, RemoteError) and status in _GATEWAY
    return Retry(error, lost=lost, after_s=float(after) if after.isdecimal() else 0.0)


def read_timeout(settings: Settings, request: Request) -> float | None:
    """Return the seconds to wait for a part of the answer; None for writes and exports."""
    if request.key is not None or request.unlimited:
        return None
    if request.timeout is None:
        return settings.timeout_s
    return max(settings.timeout_s, min(request.timeout, TIMEOUT_MAX_S) + CONNECT_S)
