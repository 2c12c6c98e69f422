"""Keys of a terminal from the bytes that it sends."""

from __future__ import annotations

import pytest

from omnigraph.cli.io.keys import parse_keys


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"jC", ["j", "c"]),
        (b"\x1b[A\x1b[Bk", ["up", "down", "k"]),
        (b"\x1bOA", ["up"]),
        (b"\x1b[5~", ["\x1b[5~"]),
        (b"\x03", ["q"]),
        (b"", ["q"]),
        (b"\xff", ["\ufffd"]),
    ],
)
def test_keys(data: bytes, keys: list[str]) -> None:
    assert parse_keys(data) == keys
