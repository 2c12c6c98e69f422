"""Request bodies: compressed ones in several members, bounds, and temporary files."""

from __future__ import annotations

import asyncio
import gzip
import random
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.server.errors import RequestFault
from omnigraph.server.messages.bodies import (
    SMALL_BODY,
    new_body_file,
    read_body,
    remove_abandoned_bodies,
)

BODY = b'{"a": 1}\n' * 100


def receiving(*parts: bytes, complete: bool = True) -> Any:
    """Return the receive function of a request; an incomplete body ends in a disconnect."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append({"type": "http.request", "body": b""} if complete else {"type": "http.disconnect"})

    async def receive() -> Any:
        return messages.pop(0)

    return receive


async def in_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work)


def read(*parts: bytes, limit: int = 10_000, encoding: str | None = "gzip", sizes: list[int] | None = None) -> bytes:
    """Read a body; `sizes` gets the sizes that were counted."""

    async def hold(size: int) -> None:
        if sizes is not None:
            sizes.append(size)

    return asyncio.run(read_body(receiving(*parts), limit, hold, in_thread, encoding))


@pytest.mark.parametrize("name", ["gzip", "GZIP", "x-gzip"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_all_members_of_a_gzip_body_are_read(name: str, size: int) -> None:
    data = gzip.compress(BODY) + gzip.compress(b"") + gzip.compress(b"end")
    parts = [data[start : start + size] for start in range(0, len(data), size)]
    assert read(*parts, encoding=name) == BODY + b"end"


@pytest.mark.parametrize(
    "data",
    [gzip.compress(BODY) + b"junk", gzip.compress(BODY)[:-1], b"", b"junk"],
    ids=["junk after it", "cut", "empty", "not gzip"],
)
def test_a_damaged_gzip_body_is_refused(data: bytes) -> None:
    with pytest.raises(RequestFault) as caught:
        read(data)
    assert caught.value.code == "bad_encoding"


def test_the_limit_counts_the_bytes_of_all_members() -> None:
    data = gzip.compress(b"x" * 60) * 2
    with pytest.raises(RequestFault) as caught:
        read(data, limit=100)
    assert caught.value.status == 413


def test_members_without_content_are_limited() -> None:
    with pytest.raises(RequestFault) as caught:
        read(*[gzip.compress(b"") * 10] * 1000, limit=100_000)
    assert caught.value.status == 413


def test_a_body_expands_in_bounded_steps_outside_of_the_event_loop() -> None:
    threads: list[int] = []
    sizes: list[int] = []

    async def run(work: Callable[[], Any]) -> Any:
        def noted() -> Any:
            threads.append(threading.get_ident())
            return work()

        return await in_thread(noted)

    async def hold(size: int) -> None:
        sizes.append(size)

    data = receiving(gzip.compress(bytes(8 << 20)))
    assert asyncio.run(read_body(data, 1 << 30, hold, run, "gzip")) == bytes(8 << 20)
    assert threading.get_ident() not in threads
    steps = [after - before for before, after in zip([0, *sizes], sizes, strict=False)]
    assert sum(steps) == 8 << 20
    assert max(steps) <= (1 << 20) + SMALL_BODY


def test_a_bomb_is_refused_when_its_size_is_counted() -> None:
    sizes: list[int] = []

    async def hold(size: int) -> None:
        sizes.append(size)
        raise RequestFault("too much")

    bomb = receiving(gzip.compress(bytes(64 << 20)))
    with pytest.raises(RequestFault, match="too much"):
        asyncio.run(read_body(bomb, 1 << 30, hold, in_thread, "gzip"))
    assert sizes[0] <= (1 << 20) + SMALL_BODY


@pytest.mark.parametrize("encoding", [None, "identity", "gzip"])
def test_what_exceeds_a_small_body_is_counted_before_more_is_read(encoding: str | None) -> None:
    body = random.Random(7).randbytes(5 * SMALL_BODY)
    data = gzip.compress(body, 0) if encoding == "gzip" else body
    parts = [data[at : at + SMALL_BODY] for at in range(0, len(data), SMALL_BODY)]
    sizes: list[int] = []
    assert read(*parts, limit=1 << 20, encoding=encoding, sizes=sizes) == body
    assert SMALL_BODY < sizes[0] <= 2 * SMALL_BODY
    assert (sizes[-1], sizes) == (len(body), sorted(sizes))


def test_files_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = tmp_path / "other.jsonl"
    other.touch()
    left = Path(new_body_file(".jsonl").name)
    with new_body_file(".jsonl") as used:
        remove_abandoned_bodies()
        assert left.exists(), "a young file may not be locked yet"
        remove_abandoned_bodies(age_s=0)
        assert sorted(tmp_path.iterdir()) == sorted([Path(used.name), other])
    remove_abandoned_bodies(age_s=0)
    assert list(tmp_path.iterdir()) == [other]
