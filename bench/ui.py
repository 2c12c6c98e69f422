"""The web explorer in a headless Chromium on a graph with a node of a million neighbours.

Times of the page are CPU times of its main thread per frame or repaint (`TaskDuration` of the browser), so that they do
not depend on a GPU; the drawing itself, in another process, is left out. Times of the server are those of a client on
the same machine. Needs Playwright and a Chromium: the one of `OMNIGRAPH_CHROMIUM`, or `chromium` on the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa

import omnigraph as og

NEIGHBOURS, CHANGED = 1_000_000, 10_000
NODES, EDGES = 10_000, 30_000
FRAMES, PAN_FRAMES, CALLS = 60, 10, 9
WAIT_MS = 120_000
SCHEMA = """node Item { slug: String @key  number: I64  half: F64  even: Bool  word: String }
edge Near: Item -> Item
"""
QUERY = "match { $a: Item } return { $a.slug, $a.number, $a.half, $a.even, $a.word }"
START = "import sys; from omnigraph.cli.entry import main; sys.exit(main())"
FLAGS = ["--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage", "--no-first-run"]
_EACH_FRAME = """async ([frames, body]) => {
  const step = new Function("frame", body);
  const next = () => new Promise(requestAnimationFrame);
  for (let frame = 0; frame < frames; frame += 1) {
    await next();
    step(frame);
  }
  await next();
  await next();
}"""
_SHOW = """([nodes, edges]) => {
  const scene = document.querySelector(".stage").scene;
  const places = new Float32Array(2 * nodes).map((_, at) => ((at * 7919) % 10007) / 10);
  scene.show({
    nodes: Array.from({length: nodes}, (_, at) => ({type: "Item", id: String(at), label: `Item ${at}`})),
    kinds: new Uint8Array(nodes).map((_, at) => at % 5), sizes: new Float32Array(nodes).fill(5),
    marks: new Uint8Array(nodes), edgeMarks: new Uint8Array(edges), edgeLabels: Array(edges).fill("Near"),
    src: new Uint32Array(edges).map((_, at) => at % nodes),
    dst: new Uint32Array(edges).map((_, at) => (at * 31 + 17) % nodes),
  }, places);
}"""


def build(folder: Path, neighbours: int, changed: int) -> Path:
    """Create the graph: a node with edges to all others, and a branch that changes some of them."""
    graph = og.init(folder / "wide.omni", SCHEMA, sync=False)
    numbers = pa.array(range(neighbours + 1), pa.int64())
    slugs = pa.array([f"item-{number}" for number in range(neighbours + 1)])
    words = pa.array([f"word {number % 1000}" for number in range(neighbours + 1)])
    items = {
        "slug": slugs,
        "number": numbers,
        "half": numbers.cast(pa.float64()),
        "even": pa.array([number % 2 == 0 for number in range(neighbours + 1)]),
        "word": words,
    }
    near = {"from": pa.array(["item-0"] * neighbours), "to": slugs.slice(1)}
    graph.load({"Item": pa.table(items), "Near": pa.table(near)}, mode="append")
    graph.optimize()
    graph.branch_create("work")
    graph.mutate(f"update Item set {{ half: 0.5 }} where number < {changed}", branch="work")
    return Path(str(graph.uri))


@contextmanager
def serve(path: Path) -> Iterator[tuple[str, str]]:
    """Serve a graph by `omnigraph ui`; yield its address and token."""
    command = [sys.executable, "-c", START, "ui", str(path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            lines = iter(server.stdout.readline, "")
            found = next(found for line in lines if (found := re.search(r"(http://[\d.:]+)/ui/#token=(\S+)", line)))
            yield found[1], found[2]
        finally:
            server.terminate()


def ask(address: str, token: str, path: str) -> float:
    """Return the seconds of a request."""
    started = perf_counter()
    with urlopen(Request(address + path, headers={"Authorization": f"Bearer {token}"}), timeout=60) as answer:
        answer.read()
    return perf_counter() - started


def main_thread_ms(page: Any, work: Callable[[], object], frames: int) -> float:
    """Return the milliseconds of the main thread per frame while `work` runs."""
    session = page.context.new_cdp_session(page)
    # CPU time of the thread: waiting for the process that draws is left out.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def total() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    before = total()
    work()
    return (total() - before) * 1000 / frames


def figures(
    *, neighbours: int = NEIGHBOURS, changed: int = CHANGED, nodes: int = NODES, edges: int = EDGES
) -> dict[str, float]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    program = os.environ.get("OMNIGRAPH_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, serve(build(Path(folder), neighbours, changed)) as (address, token):
        found = server_figures(address, token)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            try:
                found |= page_figures(browser, f"{address}/ui/#token={token}", neighbours, changed, nodes, edges)
            finally:
                browser.close()
    return found


def server_figures(address: str, token: str) -> dict[str, float]:
    path = "/entities/Item/item-0/neighbors?edge=Near&direction=out&limit=100"
    first = ask(address, token, path)
    again = median(ask(address, token, path) for _ in range(CALLS))
    degrees = median(ask(address, token, "/entities/Item/item-0?include=degrees") for _ in range(CALLS))
    return {
        "expand 10^6 neighbours, first request, ms": first * 1000,
        "expand 10^6 neighbours, ms": again * 1000,
        "exact degrees of the node, ms": degrees * 1000,
    }


def page_figures(browser: Any, address: str, neighbours: int, changed: int, nodes: int, edges: int) -> dict[str, float]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(address)
    page.wait_for_selector(".home")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    found = {"first contentful paint, ms": float(paint)}

    page.goto("about:blank")
    page.goto(f"{address}&to=main/query")
    page.wait_for_selector(".cm-content:focus")
    page.keyboard.insert_text(QUERY)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".data-table .window .cell")
    while int(page.get_attribute(".data-table", "aria-rowcount")) < neighbours + 2:
        page.evaluate("() => { const t = document.querySelector('.data-table'); t.scrollTop = t.scrollHeight; }")
        page.wait_for_timeout(50)
    scroll = "const t = document.querySelector('.data-table'); t.scrollTop = (frame * 7919 % 61) / 61 * t.scrollHeight;"
    found["repaint of a table of 10^6 rows, main ms"] = main_thread_ms(
        page, lambda: page.evaluate(_EACH_FRAME, [FRAMES, scroll]), FRAMES
    )

    page.goto("about:blank")
    started = perf_counter()
    page.goto(f"{address}&to=main/diff%3Ffrom%3Dmain%26to%3Dwork")
    page.wait_for_selector(".diff .row-title")
    found[f"diff of {changed} rows, first rows, ms"] = (perf_counter() - started) * 1000

    page.goto("about:blank")
    page.goto(f"{address}&to=main/entity/Item/item-1")
    page.wait_for_selector(".canvas[data-settled]")
    page.evaluate(_SHOW, [nodes, edges])
    page.wait_for_timeout(2000)
    camera = "document.querySelector('.stage').scene.sigma.getCamera()"
    pan = f"{camera}.setState({{x: 0.5 + Math.sin(frame / 9) / 20}});"
    found[f"pan {nodes} nodes and {edges} edges, main ms a frame"] = main_thread_ms(
        page, lambda: page.evaluate(_EACH_FRAME, [PAN_FRAMES, pan]), PAN_FRAMES
    )
    return found


if __name__ == "__main__":
    for name, value in figures().items():
        print(f"{name:<60} {value:10.2f}", flush=True)
