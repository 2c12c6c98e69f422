"""Retries, waits and deadlines of calls, without network and with simulated time."""

from __future__ import annotations

import threading

import pytest

from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.rate_limit import Pace, RateLimits
from omnigraph.embedding.retry import Abandoned, Caller, TryFailed
from omnigraph.errors import EmbeddingError


class Attempts:
    """Fails a given number of times; each attempt may take time."""

    def __init__(self, fake_time, failures, takes_s=0.0):
        self.failures = list(failures)
        self.fake_time = fake_time
        self.takes_s = takes_s
        self.timeouts = []

    def __call__(self, timeout_s):
        self.timeouts.append(round(timeout_s, 6))
        if self.takes_s > timeout_s:
            self.fake_time.now += timeout_s
            raise TryFailed("timeout", retryable=True, timed_out=True)
        self.fake_time.now += self.takes_s
        if self.failures:
            raise self.failures.pop(0)
        return "done"


def busy(retry_after_s=0.0, status=503):
    return TryFailed(f"status {status}", retryable=True, status=status, words="busy", retry_after_s=retry_after_s)


def call(fake_time, attempt, stop=None, **changes):
    config = EmbeddingConfig("mock", "m-1", **changes)
    pace = Pace(config.limits, fake_time.clock)
    return Caller(config, fake_time.clock, fake_time.sleep, pace).call(attempt, stop or threading.Event())


def test_the_waits_double(fake_time):
    assert call(fake_time, Attempts(fake_time, [busy()] * 3)) == "done"
    assert fake_time.slept == [0.2, 0.4, 0.8]


def test_the_doubling_ends_after_ten_attempts(fake_time):
    assert call(fake_time, Attempts(fake_time, [busy()] * 13), attempts=14, backoff_ms=1, deadline_ms=0) == "done"
    assert fake_time.slept == [0.001 * 2**k for k in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10)]


def test_retry_after_can_only_lengthen_the_wait(fake_time):
    attempt = Attempts(fake_time, [busy(1.5), busy(0.1), busy(0.9)])
    assert call(fake_time, attempt) == "done"
    assert fake_time.slept == [1.5, 0.4, 0.9]


@pytest.mark.parametrize(("attempts", "tries"), [(4, 4), (1, 1), (0, 1), (-3, 1)])
def test_no_wait_after_the_last_attempt(fake_time, attempts, tries):
    attempt = Attempts(fake_time, [busy()] * 9)
    words = "1 try" if tries == 1 else f"{tries} tries"
    with pytest.raises(EmbeddingError, match=f"mock model 'm-1' failed after {words}: status 503: busy"):
        call(fake_time, attempt, attempts=attempts)
    assert len(attempt.timeouts) == tries
    assert len(fake_time.slept) == tries - 1


def test_permanent_failures_are_not_retried(fake_time):
    attempt = Attempts(fake_time, [TryFailed("status 400", retryable=False, status=400)])
    with pytest.raises(EmbeddingError, match=r"after 1 try: status 400$"):
        call(fake_time, attempt)
    assert fake_time.slept == []


def test_the_last_cause_is_reported(fake_time):
    failures = [busy(), TryFailed("timeout", retryable=True, timed_out=True), TryFailed("not JSON", retryable=False)]
    with pytest.raises(EmbeddingError, match="after 3 tries: not JSON") as caught:
        call(fake_time, Attempts(fake_time, failures))
    assert isinstance(caught.value.__cause__, TryFailed)


def test_a_wait_beyond_the_deadline_is_not_started(fake_time):
    attempt = Attempts(fake_time, [busy(), busy(61)])
    with pytest.raises(EmbeddingError) as caught:
        call(fake_time, attempt)
    for part in ("60000 ms", "mock", "'m-1'", "2 tries", "status 503: busy"):
        assert part in caught.value.message
    assert "OMNIGRAPH_EMBED_DEADLINE_MS" in caught.value.hint
    assert fake_time.slept == [0.2]


def test_the_timeout_is_bounded_by_the_deadline(fake_time):
    attempt = Attempts(fake_time, [busy()] * 3, takes_s=0.5)
    with pytest.raises(EmbeddingError, match="deadline of 1000 ms after 2 tries; last cause: timeout"):
        call(fake_time, attempt, deadline_ms=1_000, timeout_ms=600)
    assert attempt.timeouts == [0.6, 0.3]
    assert fake_time.now == 1_001.0


def test_an_ordinary_timeout_is_retried(fake_time):
    attempt = Attempts(fake_time, [], takes_s=50)
    with pytest.raises(EmbeddingError, match="failed after 3 tries: timeout"):
        call(fake_time, attempt, attempts=3, deadline_ms=200_000)
    assert attempt.timeouts == [30, 30, 30]


def test_no_deadline(fake_time):
    assert call(fake_time, Attempts(fake_time, [busy(3_600)]), deadline_ms=0) == "done"
    assert fake_time.slept == [3_600]


def test_a_last_attempt_that_fails_at_the_deadline_is_an_ordinary_failure(fake_time):
    with pytest.raises(EmbeddingError, match="failed after 1 try: status 503"):
        call(fake_time, Attempts(fake_time, [busy()], takes_s=0.9), attempts=1, deadline_ms=1_000)


def test_very_long_times_do_not_overflow(fake_time):
    attempt = Attempts(fake_time, [busy()])
    call(fake_time, attempt, timeout_ms=10**15, backoff_ms=10**15, deadline_ms=0)
    assert attempt.timeouts == [86_400, 86_400]
    assert fake_time.slept == [86_400]


def test_retries_are_logged_without_the_message_of_the_provider(fake_time, caplog):
    call(fake_time, Attempts(fake_time, [busy(), busy(status=429)]))
    first, second = (record.getMessage() for record in caplog.records)
    for part in ("mock", "'m-1'", "try 1 of 4", "status 503", "200 ms"):
        assert part in first
    assert "try 2 of 4" in second
    assert "429" in second
    assert "busy" not in caplog.text


def test_no_attempt_after_a_stop(fake_time):
    stop = threading.Event()
    stop.set()
    attempt = Attempts(fake_time, [])
    with pytest.raises(Abandoned):
        call(fake_time, attempt, stop)
    assert attempt.timeouts == []


def test_a_stop_ends_a_wait():
    config = EmbeddingConfig("mock", "m", backoff_ms=20_000)
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()

    def attempt(_):
        raise busy()

    with pytest.raises(Abandoned):
        Caller(config, lambda: 0.0, None, Pace(config.limits, lambda: 0.0)).call(attempt, stop)


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "key"), (403, "key"), (404, "OMNIGRAPH_EMBED_MODEL"), (429, "limits"), (400, None)]
)
def test_hints(fake_time, status, hint):
    failure = TryFailed(f"status {status}", retryable=False, status=status)
    with pytest.raises(EmbeddingError) as caught:
        call(fake_time, Attempts(fake_time, [failure]))
    assert hint in caught.value.hint if hint else caught.value.hint is None


def test_waiting_for_limits_does_not_count_against_the_deadline(fake_time):
    config = EmbeddingConfig("mock", "m-1", deadline_ms=1_000, limits=RateLimits(requests_per_minute=1))
    caller = Caller(config, fake_time.clock, fake_time.sleep, Pace(config.limits, fake_time.clock))
    for _ in range(3):
        assert caller.call(Attempts(fake_time, [busy()]), threading.Event()) == "done"
    assert fake_time.slept == [0.2, 60.8, 61.0, 0.2, 60.8, 61.0, 0.2, 60.8]


def caller_of(fake_time, **changes):
    config = EmbeddingConfig("mock", "m-1", **changes)
    return Caller(config, fake_time.clock, fake_time.sleep, Pace(config.limits, fake_time.clock))


def test_a_pause_beyond_the_deadline_fails_later_calls_immediately(fake_time):
    caller = caller_of(fake_time)
    with pytest.raises(EmbeddingError, match="deadline of 60000 ms after 1 try; last cause: status 429"):
        caller.call(Attempts(fake_time, [busy(90.0, status=429)]), threading.Event())
    for passed_s, left_s in ((0, 90), (10, 80), (19.5, 61)):
        fake_time.now += passed_s
        attempt = Attempts(fake_time, [])
        with pytest.raises(EmbeddingError) as caught:
            caller.call(attempt, threading.Event())
        assert "deadline of 60000 ms after 0 tries" in caught.value.message
        assert f"the provider asked for a pause that ends in {left_s} s" in caught.value.message
        assert "OMNIGRAPH_EMBED_DEADLINE_MS" in caught.value.hint
        assert attempt.timeouts == []
    assert fake_time.slept == []


def test_a_pause_within_the_deadline_counts(fake_time):
    caller = caller_of(fake_time, deadline_ms=10_000, attempts=1)
    with pytest.raises(EmbeddingError):
        caller.call(Attempts(fake_time, [busy()]), threading.Event())
    caller.pace.hold(8.0)
    attempt = Attempts(fake_time, [])
    assert caller.call(attempt, threading.Event()) == "done"
    assert fake_time.slept == [8.0]
    assert attempt.timeouts == [2.0], "the request gets what the pause left of the deadline"


def test_without_a_deadline_a_pause_is_waited_for(fake_time):
    caller = caller_of(fake_time, deadline_ms=0)
    caller.pace.hold(3_600)
    assert caller.call(Attempts(fake_time, []), threading.Event()) == "done"
    assert fake_time.slept == [3_600]
