"""Request bodies: compressed ones in several members, bounds, and temporary files."""

from __future__ import annotations

import asyncio
import gzip
import tempfile
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from omnigraph.server.errors import RequestFault
from omnigraph.server.messages.bodies import new_body_file, read_body, remove_abandoned_bodies, spool_body

BODY = b'{"a": 1}\n' * 100


def receiving(*parts: bytes, complete: bool = True) -> Any:
    """Return the receive function of a request; an incomplete body ends in a disconnect."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append({"type": "http.request", "body": b""} if complete else {"type": "http.disconnect"})

    async def receive() -> Any:
        return messages.pop(0)

    return receive


@pytest.mark.parametrize("name", ["gzip", "GZIP", "x-gzip"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_all_members_of_a_gzip_body_are_read(name: str, size: int) -> None:
    data = gzip.compress(BODY) + gzip.compress(b"") + gzip.compress(b"end")
    parts = [data[start : start + size] for start in range(0, len(data), size)]
    assert asyncio.run(read_body(receiving(*parts), 10_000, name)) == BODY + b"end"


@pytest.mark.parametrize(
    "data",
    [gzip.compress(BODY) + b"junk", gzip.compress(BODY)[:-1], b"", b"junk"],
    ids=["junk after it", "cut", "empty", "not gzip"],
)
def test_a_damaged_gzip_body_is_refused(data: bytes) -> None:
    with pytest.raises(RequestFault) as caught:
        asyncio.run(read_body(receiving(data), 10_000, "gzip"))
    assert caught.value.code == "bad_encoding"


def test_the_limit_counts_the_bytes_of_all_members() -> None:
    data = gzip.compress(b"x" * 60) * 2
    with pytest.raises(RequestFault) as caught:
        asyncio.run(read_body(receiving(data), 100, "gzip"))
    assert caught.value.status == 413


def test_other_requests_run_while_a_body_expands() -> None:
    turns: list[bool] = []

    async def others() -> None:
        while True:
            turns.append(True)
            await asyncio.sleep(0)

    async def run() -> bytes:
        other = asyncio.ensure_future(others())
        try:
            return await read_body(receiving(gzip.compress(bytes(8 << 20))), 1 << 30, "gzip")
        finally:
            other.cancel()

    assert len(asyncio.run(run())) == 8 << 20
    assert len(turns) >= 8


@pytest.mark.parametrize(("complete", "limit", "expected"), [(True, 5, RequestFault), (False, 500, ClientDisconnect)])
def test_the_file_of_a_refused_body_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complete: bool, limit: int, expected: type[Exception]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(expected):
        asyncio.run(spool_body(receiving(b"123", b"456", complete=complete), limit, "text/plain", ".txt"))
    assert list(tmp_path.iterdir()) == []


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
