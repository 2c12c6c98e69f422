"""Clients of a local provider with simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from omnigraph.embedding.client import EmbeddingClient
from support.provider import FakeProvider, FakeTime, running


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with running() as server:
        yield server


@pytest.fixture
def fake_time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def connect(provider: FakeProvider, fake_time: FakeTime) -> Iterator[Callable[..., EmbeddingClient]]:
    """Return a client of the fake provider with simulated time; keywords change its configuration."""
    clients: list[EmbeddingClient] = []

    def make(name: str = "openai", **changes: Any) -> EmbeddingClient:
        config = provider.config(name, **changes)
        clients.append(EmbeddingClient(config, clock=fake_time.clock, sleep=fake_time.sleep))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
