"""The delay of answers after failed authentications."""

from __future__ import annotations

import pytest

from omnigraph.server.auth import failed_tries
from omnigraph.server.auth.failed_tries import DELAY_S, PEERS_MAX, TRIES_PER_MINUTE, FailedTries


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(failed_tries.time, "monotonic", lambda: now[0])
    return now


def fail(tries: FailedTries, peer: str, times: int) -> float:
    for _ in range(times):
        tries.record(peer)
    return tries.delay_for(peer)


def test_answers_slow_down_after_twenty_tries_a_minute(clock: list[float]) -> None:
    tries = FailedTries()
    assert tries.delay_for("10.0.0.1") == 0
    assert fail(tries, "10.0.0.1", TRIES_PER_MINUTE) == 0
    assert fail(tries, "10.0.0.1", 1) == DELAY_S
    assert tries.delay_for("10.0.0.2") == 0
    clock[0] += 59
    assert fail(tries, "10.0.0.1", 1) == DELAY_S
    clock[0] += 1
    assert tries.delay_for("10.0.0.1") == 0
    assert fail(tries, "10.0.0.1", 1) == 0


def test_ipv6_peers_are_counted_by_network(clock: list[float]) -> None:
    tries = FailedTries()
    for host in range(TRIES_PER_MINUTE + 1):
        tries.record(f"2001:db8:0:1::{host:x}")
    assert tries.delay_for("2001:db8:0:1:ffff::9") == DELAY_S
    assert tries.delay_for("2001:db8:0:2::1") == 0
    assert fail(tries, "::ffff:10.0.0.1", TRIES_PER_MINUTE + 1) == DELAY_S
    assert tries.delay_for("10.0.0.1") == DELAY_S
    assert tries.delay_for("10.0.0.2") == 0


@pytest.mark.parametrize("peer", ["", "unix:", "fe80::1%eth0", "not:an:address"])
def test_any_peer_name_is_counted(peer: str, clock: list[float]) -> None:
    assert fail(FailedTries(), peer, TRIES_PER_MINUTE + 1) == DELAY_S


def test_memory_is_bounded(clock: list[float]) -> None:
    tries = FailedTries()
    for number in range(PEERS_MAX + 500):
        tries.record(f"peer {number}")
    assert len(tries) == PEERS_MAX
    assert tries.delay_for("peer 0") == 0
