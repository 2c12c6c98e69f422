"""Rate limits of a provider: kept by one process, and by many that share them."""

from __future__ import annotations

import threading
from random import Random

import pytest

from omnigraph.embedding.config import get_config
from omnigraph.embedding.rate_limit import (
    AT_ONCE_VARIABLE,
    MINUTE_S,
    NO_LIMITS,
    REQUESTS_VARIABLE,
    TOKENS_VARIABLE,
    Pace,
    RateLimits,
    share_settings,
    tokens_of,
)
from omnigraph.errors import EmbeddingError


def take(pace, tokens, fake_time):
    """Wait for a turn; the seconds that took."""
    started = fake_time.now
    while not (turn := pace.take_turn(tokens)).may_go:
        fake_time.sleep(max(turn.held_s, turn.paced_s))
    return fake_time.now - started


@pytest.mark.parametrize("seed", range(30))
def test_no_minute_exceeds_the_limits(fake_time, seed):
    random = Random(seed)
    limits = RateLimits(random.choice([0, 1, 3, 10]), random.choice([0, 50, 200]))
    pace = Pace(limits, fake_time.clock)
    sent = []
    for _ in range(60):
        fake_time.now += random.choice([0, 0, 0, 0.5, 7, 70])
        tokens = random.randint(1, 50)
        before = fake_time.now
        waited = take(pace, tokens, fake_time)
        assert waited == pytest.approx(fake_time.now - before)
        sent.append((fake_time.now, tokens))
        minute = [count for at, count in sent if at > fake_time.now - MINUTE_S + 1e-6]
        assert not limits.requests_per_minute or len(minute) <= limits.requests_per_minute
        assert not limits.tokens_per_minute or sum(minute) <= limits.tokens_per_minute


def test_requests_within_the_limits_do_not_wait(fake_time):
    pace = Pace(RateLimits(3, 100), fake_time.clock)
    for tokens in (40, 40, 20):
        assert take(pace, tokens, fake_time) == 0
    fake_time.now += 10
    assert take(pace, 30, fake_time) == pytest.approx(MINUTE_S - 10)
    assert take(pace, 1_000, fake_time) == pytest.approx(MINUTE_S), "a text that is too long goes alone"


def test_a_pace_without_limits_only_observes_pauses(fake_time):
    pace = Pace(NO_LIMITS, fake_time.clock)
    pace.hold(5)
    pace.hold(2)
    assert [take(pace, 10**9, fake_time) for _ in range(100)] == [5, *[0] * 99]


@pytest.mark.parametrize("workers", [1, 2, 7, 64])
@pytest.mark.parametrize(
    "limits",
    [
        RateLimits(3),
        RateLimits(500),
        RateLimits(0, 100_000),
        RateLimits(0, 10),
        RateLimits(0, 0, 4),
        RateLimits(60, 1_000_000, 16),
    ],
)
def test_the_sum_of_shares_is_within_the_limits(limits, workers):
    settings, at_once = share_settings({**limits.to_variables(), "OPENAI_API_KEY": "k"}, workers)
    assert at_once is not None
    share = RateLimits.of(settings)
    assert 1 <= at_once <= workers
    for name in ("requests_per_minute", "tokens_per_minute", "requests_at_once"):
        assert getattr(share, name) * at_once <= getattr(limits, name)
        assert bool(getattr(share, name)) == bool(getattr(limits, name))
    assert settings["OPENAI_API_KEY"] == "k"


def test_without_limits_there_are_no_shares():
    assert share_settings({"OPENAI_API_KEY": "k", REQUESTS_VARIABLE: " "}, 8) == (
        {"OPENAI_API_KEY": "k", REQUESTS_VARIABLE: " "},
        None,
    )


@pytest.mark.parametrize("variable", [REQUESTS_VARIABLE, TOKENS_VARIABLE, AT_ONCE_VARIABLE])
@pytest.mark.parametrize("value", ["10k", "-3", "0", "1.5", "١", "9" * 20])
def test_an_invalid_limit_is_refused(variable, value):
    with pytest.raises(EmbeddingError, match=f"{variable} is '{value[:40]}', which is not a limit"):
        get_config({"OPENAI_API_KEY": "k", variable: value}, needed_by="x")


# -- with a provider ---------------------------------------------------------------------------------


def test_requests_have_at_most_the_tokens_of_a_minute(connect, provider):
    texts = ["a" * 30, "b" * 30, "c" * 900, "d", "e"]
    client = connect(limits=RateLimits(tokens_per_minute=25))
    assert len(client.embed(texts, 4)) == 5
    assert [seen.body["input"] for seen in provider.seen] == [texts[:2], [texts[2]], texts[3:]]
    assert all(sum(map(tokens_of, seen.body["input"])) <= 25 or len(seen.body["input"]) == 1 for seen in provider.seen)


@pytest.mark.parametrize(("name", "at_once"), [("openai", 3), ("gemini", 2), ("openai", 1)])
def test_concurrent_requests_are_counted_over_all_threads(connect, provider, name, at_once):
    provider.delay_s = 0.05
    client = connect(name, limits=RateLimits(requests_at_once=at_once))
    threads = [threading.Thread(target=client.embed, args=([f"{n}-{m}" for m in range(3)], 4)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert provider.peak == at_once


def test_a_refused_request_is_retried_after_the_requested_pause(connect, provider, fake_time):
    provider.allows(2, 30.0, fake_time.clock)
    client = connect(attempts=5, deadline_ms=0)
    assert len(client.embed([str(n) for n in range(64 * 5)], 4)) == 320
    assert provider.refused == 2
    assert fake_time.slept == [30.0, 30.0]
