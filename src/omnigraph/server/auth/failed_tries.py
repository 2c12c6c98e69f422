"""Failed authentications per peer address, and the delay of answers to a peer with too many."""

from __future__ import annotations

import ipaddress
import time

TRIES_PER_MINUTE = 20
DELAY_S = 1.0
PEERS_MAX = 10_000
_WINDOW_S = 60.0


class FailedTries:
    """Counts failed authentications. The count of a peer starts again every minute; the oldest of 10,000 is forgotten.

    An IPv6 peer is its network of 64 bits. All calls come from one thread.
    """

    def __init__(self) -> None:
        self._tries: dict[str, tuple[float, int]] = {}
        """Peer → begin of its minute, tries since; the oldest minute first."""

    def __len__(self) -> int:
        return len(self._tries)

    def record(self, peer: str) -> None:
        """Count one failed try of a peer address."""
        now, peer = time.monotonic(), _network(peer)
        begin, count = self._tries.get(peer, (now, 0))
        if now - begin >= _WINDOW_S:
            del self._tries[peer]
            begin, count = now, 0
        self._tries[peer] = (begin, count + 1)
        if len(self._tries) > PEERS_MAX:
            del self._tries[next(iter(self._tries))]

    def delay_for(self, peer: str) -> float:
        """Return the seconds by which the answer to a failed try of this peer is delayed."""
        begin, count = self._tries.get(_network(peer), (0.0, 0))
        return DELAY_S if count > TRIES_PER_MINUTE and time.monotonic() - begin < _WINDOW_S else 0.0


def _network(peer: str) -> str:
    if ":" not in peer:
        return peer
    try:
        address = ipaddress.IPv6Address(peer)
    except ValueError:
        return peer
    return str(address.ipv4_mapped or ipaddress.IPv6Network((address, 64), strict=False))
