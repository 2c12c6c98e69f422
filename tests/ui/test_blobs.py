"""Blobs on the page of a node in a real browser: raster images are shown, everything else is a download."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from support.explorer import Explorer, exploring

WIDTH, HEIGHT = 120, 80
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1</script></svg>'
HTML = b"<script>window.pwned=1</script>"


def png() -> bytes:
    """Return a PNG image of colours."""
    rows = b"".join(b"\0" + bytes(x for col in range(WIDTH) for x in (2 * col, 3 * row, 120)) for row in range(HEIGHT))
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


VALUES = {"png": png(), "svg": SVG, "html": HTML, "empty": b"", "broken": b"\x89PNG\r\n\x1a\n" + HTML}


@pytest.fixture(scope="module")
def album(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    path: Path = tmp_path_factory.mktemp("album") / "album.omni"
    graph = og.init(path, "node Bird { name: String @key photo: Blob? }", sync=False)
    graph.load(
        [
            {"type": "Bird", "data": {"name": name, "photo": "base64:" + base64.b64encode(data).decode()}}
            for name, data in VALUES.items()
        ],
        mode="append",
    )
    with exploring(path) as server:
        yield Explorer(browser, server)


def test_an_image_is_shown_and_saved(album: Explorer) -> None:
    with album.page("main/entity/Bird/png") as tab:
        image = tab.page.get_by_role("img", name="photo of png")
        assert image.evaluate("each => [each.naturalWidth, each.naturalHeight]") == [WIDTH, HEIGHT]
        assert image.get_attribute("src").startswith("blob:")
        assert f"{len(VALUES['png']):,} bytes" in tab.page.locator(".blob").inner_text()
        with tab.page.expect_download() as saved:
            tab.page.get_by_role("button", name="Download photo").click()
        assert saved.value.suggested_filename == "Bird-png-photo.png"
        assert Path(saved.value.path()).read_bytes() == VALUES["png"]


@pytest.mark.parametrize("name", ["svg", "html", "empty"])
def test_other_values_are_downloads_only(album: Explorer, name: str) -> None:
    with album.page(f"main/entity/Bird/{name}") as tab:
        assert tab.page.locator("main img").count() == 0
        assert f"{len(VALUES[name]):,} byte" in tab.page.locator(".blob").inner_text()
        with tab.page.expect_download() as saved:
            tab.page.get_by_role("button", name="Download photo").click()
        assert saved.value.suggested_filename == f"Bird-{name}-photo.bin"
        assert Path(saved.value.path()).read_bytes() == VALUES[name]


def test_an_image_that_is_none_runs_nothing(album: Explorer) -> None:
    with album.page("main/entity/Bird/broken", bypass_csp=True) as tab:
        assert tab.page.get_by_role("img", name="photo of broken").evaluate("each => each.naturalWidth") == 0
        assert tab.axe() == []
