"""Screenshots of every screen in two sizes and two themes, of a demo graph with a fixed clock.

`OMNIGRAPH_UPDATE_GOLDEN=1` writes them all to `docs/images/explorer`. A plain run takes eight of them and compares
the pixels, where the browser and the fonts are those of the stored files; elsewhere it is skipped with a message.
`test_picture.py` compares what a canvas draws as data.
"""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image, ImageChops

from omnigraph.demo.build import BRANCH, QUERIES, build_demo
from omnigraph.versioning.model import ids
from support.explorer import NARROW, WIDE, Explorer, ExplorerPage, exploring, require_browser

IMAGES = Path(__file__).parents[2] / "docs" / "images" / "explorer"
CHROMIUM = "156"
"""The version of the browser that made the stored files."""
UPDATE = os.environ.get("OMNIGRAPH_UPDATE_GOLDEN") == "1"
BUILT_AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
SHOWN_AT = BUILT_AT + timedelta(hours=2)
TEXT = """match {
    $author: Person
    $author wrote $note
    $note about $project
}
return { $note, $author, $project, $note.written, $note.meaning }
limit 60"""
SPRING = quote(BRANCH, safe="")
PLACES = {
    "home": "home",
    "search": "search?q=night%20herons&why=Note%2Fnote-0002",
    "query": f"query?run=1&q={quote(TEXT, safe='')}",
    "picture": f"query?view=picture&run=1&q={quote(TEXT, safe='')}",
    "plan": f"query?view=plan&run=1&q={quote(TEXT, safe='')}",
    "schema": "schema/Note",
    "entity": "entity/Project/harbour-watch",
    "history": "history",
    "diff": f"diff?from=main&to={SPRING}",
    "merge": f"merge?source={SPRING}",
    "changes": "changes",
    "proposals": "proposals",
    "proposal": "proposals/PROPOSAL",
    "map": "map",
    "admin": "admin?tab=tables",
}
LOOKS = {
    "wide-light": (WIDE, "light"),
    "wide-dark": (WIDE, "dark"),
    "narrow-light": (NARROW, "light"),
    "narrow-dark": (NARROW, "dark"),
}
COMPARED = [
    ("schema", "wide-light"),
    ("schema", "narrow-dark"),
    ("history", "wide-dark"),
    ("history", "narrow-light"),
    ("merge", "wide-light"),
    ("merge", "narrow-dark"),
    ("proposals", "wide-dark"),
    ("proposal", "narrow-light"),
]
SHARE_MAX = 0.002
"""The share of pixels that may differ."""
STEP_MAX = 32
"""The difference of a colour, of 255, that the palette of a stored file explains."""
COLOURS = 128


@pytest.fixture(scope="module")
def station(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """The demo graph, built at one moment and with the same ids each time."""
    require_browser()
    folder = tmp_path_factory.mktemp("screens")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: int(BUILT_AT.timestamp()) * 10**9))
        numbers = random.Random(1)
        patch.setattr(ids, "secrets", SimpleNamespace(randbits=numbers.getrandbits, token_bytes=numbers.randbytes))
        graph = build_demo(folder, notes=120).graph
        graph.store_query((folder / QUERIES).read_text(encoding="utf-8"), message="the queries of the station")
        graph.propose(
            BRANCH, title="Spring clean-up", body="The ferry gets its project. Yuna moved **away**.", actor="ana-abt"
        )
        with exploring(Path(str(graph.uri)), environ={"OMNIGRAPH_EMBED_PROVIDER": "local"}) as server:
            yield Explorer(browser, server)


def take(station: Explorer, name: str, look: str) -> bytes:
    """Return a screenshot of a screen as a PNG file."""
    size, theme = LOOKS[look]
    with station.page(None, size=size, theme=theme) as tab:
        tab.page.clock.set_fixed_time(SHOWN_AT)
        place = PLACES[name]
        if "PROPOSAL" in place:
            place = place.replace("PROPOSAL", station.server.get("/proposals").json["proposals"][0]["id"])
        tab.open(f"main/{place}")
        prepare(tab, name, size)
        assert tab.overflowing == []
        data: bytes = tab.page.screenshot(animations="disabled", caret="hide")
        return data


def prepare(tab: ExplorerPage, name: str, size: tuple[int, int]) -> None:
    """Bring a screen to the state that its picture shows."""
    if name in ("picture", "entity", "diff") and size == WIDE:
        tab.page.locator(".canvas[data-settled], .picture-list .item").first.wait_for()
        tab.page.wait_for_timeout(500)
    if name == "plan":
        tab.page.get_by_role("button", name="Profile").click()
        tab.page.locator(".plan").first.wait_for()
    if name == "changes":
        tab.page.get_by_role("button", name="Replay from …").click()
        tab.page.get_by_role("menuitem", name="The last ten commits").click()
        tab.page.locator(".feed-card").first.wait_for()
    if name in ("query", "picture", "plan") and size == NARROW:
        tab.page.locator(".result").evaluate("each => each.scrollIntoView()")
    tab.page.locator(".toast").first.wait_for(state="detached")


def same_browser(browser: Any) -> None:
    """Skip where the browser or the fonts are not those of the stored files."""
    version = browser.version.split(".")[0]
    if version != CHROMIUM:
        pytest.skip(f"the screenshots are of Chromium {CHROMIUM}, this is {version}: write them again")
    matcher = shutil.which("fc-match")
    font = subprocess.run([matcher, "sans-serif"], capture_output=True, text=True, check=True).stdout if matcher else ""
    if "DejaVu" not in font:
        pytest.skip("the screenshots need the font DejaVu: install the package 'fonts-dejavu-core'")


@pytest.mark.parametrize(("name", "look"), COMPARED)
def test_a_screen_looks_as_stored(station: Explorer, name: str, look: str) -> None:
    same_browser(station.browser)
    if UPDATE:
        pytest.skip("the screenshots are written")
    taken = Image.open(io.BytesIO(take(station, name, look))).convert("RGB")
    stored = Image.open(IMAGES / f"{name}-{look}.png").convert("RGB")
    assert taken.size == stored.size
    steps = ImageChops.difference(taken, stored).convert("L").histogram()
    share = sum(steps[STEP_MAX:]) / (taken.width * taken.height)
    if share > SHARE_MAX and (folder := os.environ.get("OMNIGRAPH_SCREENSHOTS")):
        taken.save(Path(folder) / f"{name}-{look}.png")
    assert share <= SHARE_MAX, "see docs/images/explorer; OMNIGRAPH_UPDATE_GOLDEN=1 writes it again"


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PLACES if UPDATE else [])
def test_write_a_screenshot(station: Explorer, name: str, look: str) -> None:
    same_browser(station.browser)
    IMAGES.mkdir(parents=True, exist_ok=True)
    taken = Image.open(io.BytesIO(take(station, name, look))).convert("RGB")
    reduced = taken.quantize(COLOURS, dither=Image.Dither.NONE)
    reduced.save(IMAGES / f"{name}-{look}.png", optimize=True)


def test_every_screen_is_stored_in_every_look() -> None:
    stored = {path.name for path in IMAGES.glob("*.png")}
    assert stored == {f"{name}-{look}.png" for name in PLACES for look in LOOKS}
    assert sum(path.stat().st_size for path in IMAGES.glob("*.png")) < 3_000_000
    registry = (Path(__file__).parents[2] / "web" / "src" / "screens" / "registry.ts").read_text(encoding="utf-8")
    screens = set(re.findall(r'name: "(\w+)"', registry))
    assert screens == {re.split(r"[/?]", place)[0] for place in PLACES.values()}
