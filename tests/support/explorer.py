"""The web explorer in a real Chromium: a server on a graph, pages that count clicks, and what no page may do.

Every page fails its test, at its end, if a script ran that the data contains, a dialog opened, the content security
policy was violated, a request left for another host, or the page logged an error.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest

from support.browser import find_browser
from support.server import ServerUnderTest, serving

ROOT = Path(__file__).parents[2]
REQUIRED = os.environ.get("OMNIGRAPH_BROWSER_TESTS") == "required"
TOKEN = "og_token-of-the-tests"
WIDE, NARROW = (1280, 800), (390, 844)
WAIT_MS = 120_000
REACH_MAX = 120
"""The presses of a key after which an element is not in reach."""
_TURN_MS, _QUIET_TURNS = 50, 6
"""A page has its data after as many turns without a request."""
LOOKS = [
    pytest.param(WIDE, "light", id="wide-light"),
    pytest.param(NARROW, "dark", id="narrow-dark"),
    pytest.param(WIDE, "dark", id="wide-dark", marks=pytest.mark.long),
    pytest.param(NARROW, "light", id="narrow-light", marks=pytest.mark.long),
]
"""Sizes and themes in which every screen is checked."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage",
]
_OBSERVE = """
window.__clicks = 0;
window.__violations = [];
// Playwright stops a click on a moving element at the window and repeats it.
document.addEventListener("click", event => { if (event.isTrusted && event.detail > 0) window.__clicks += 1; }, true);
addEventListener("securitypolicyviolation", event => window.__violations.push(
  `${event.violatedDirective} ${event.blockedURI} ${event.sample} ${event.sourceFile}:${event.lineNumber}`));
"""
_OVERFLOWING = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter(each => {
    if (each.getBoundingClientRect().right <= innerWidth + 1) return false;
    for (let box = each.parentElement; box !== null; box = box.parentElement) {
      const right = box.getBoundingClientRect().right;
      if (getComputedStyle(box).overflowX !== "visible" && right <= innerWidth + 1) return false;
    }
    return true;
  }).map(each => each.outerHTML.slice(0, 160))"""
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def skip_or_fail(reason: str) -> None:
    """Skip a browser test visibly, or fail where browser tests are required."""
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


def axe_script() -> str:
    """Return the script of axe-core, which a Python package contains."""
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def require_browser() -> str:
    """Return the path of a Chromium; without one, the test is skipped or fails."""
    program = find_browser()
    if program is None:
        skip_or_fail("no Chromium: install the package 'chromium' (or set OMNIGRAPH_CHROMIUM), or run 'make test-web'")
    assert program is not None
    return program


@contextmanager
def open_browser() -> Iterator[Any]:
    """Start a Chromium."""
    program = require_browser()
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ImportError:
        skip_or_fail("no Playwright: pip install playwright, or run 'make test-web'")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def exploring(graph: Path, **options: Any) -> Iterator[ServerUnderTest]:
    """Serve a graph as `omnigraph ui` does."""
    with serving(graph, local_token=TOKEN, **options) as server:
        server.token = TOKEN
        yield server


@dataclass
class ExplorerPage:
    """A tab of the explorer."""

    page: Any
    server: ServerUnderTest
    token: str = TOKEN
    issuer: str = ""
    """The origin at which the page may sign in."""
    faults: list[str] = field(default_factory=list)
    running: set[Any] = field(default_factory=set)
    """Requests without an end; streams of events, which have none, are left out."""

    def __post_init__(self) -> None:
        self.page.set_default_timeout(WAIT_MS)
        self.page.add_init_script(_OBSERVE)
        self.page.on("request", self._check_request)
        for end in ("requestfinished", "requestfailed"):
            self.page.on(end, lambda request: self.running.discard(request))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("console", self._check_message)

    def _check_request(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if not parts.path.endswith("/stream"):
            self.running.add(request)
        if parts.scheme not in ("data", "blob") and f"{parts.scheme}://{parts.netloc}" not in (
            self.server.url,
            self.issuer,
        ):
            self.faults.append(f"request to {request.url}")
        if self.token in request.url:
            self.faults.append(f"the token is in the address {request.url}")

    def _check_message(self, message: Any) -> None:
        # A refused request is logged by the browser itself; tests of refusals look at the page.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(f"console: {message.text}")

    def open(self, place: str = "") -> None:
        """Open a screen as `omnigraph ui` does: `place` is `ref/screen?…`."""
        members = {"token": self.token, "to": place} if place else {"token": self.token}
        self.page.goto(f"{self.server.url}/ui/#{urlencode(members, quote_via=quote)}")
        self.settle()

    def settle(self) -> None:
        """Wait until the page has its data and no request runs."""
        self.page.wait_for_selector("main h1", state="attached")
        quiet = 0
        for _ in range(WAIT_MS // _TURN_MS):
            self.page.wait_for_timeout(_TURN_MS)
            quiet = 0 if self.running else quiet + 1
            if quiet == _QUIET_TURNS:
                break
        assert not self.running, f"requests without an end: {[each.url for each in self.running]}"
        self.page.wait_for_selector(".skeleton", state="detached")

    def reach(self, selector: str, key: str = "Tab", name: str = "") -> None:
        """Press a key until an element, whose text contains `name`, has the focus."""
        there = """([selector, name]) => document.activeElement.matches(selector)
            && document.activeElement.textContent.includes(name)"""
        for _ in range(REACH_MAX):
            if self.page.evaluate(there, [selector, name]):
                return
            self.page.keyboard.press(key)
        pytest.fail(f"{key} does not reach {selector} {name}")

    @property
    def clicks(self) -> int:
        """The clicks of the pointer since the page was loaded."""
        count: int = self.page.evaluate("window.__clicks")
        return count

    @property
    def fragment(self) -> str:
        """The fragment of the address."""
        return str(self.page.evaluate("location.hash"))

    @property
    def overflowing(self) -> list[str]:
        """The elements that make the page scroll sideways; empty if it does not."""
        found: list[str] = self.page.evaluate(_OVERFLOWING)
        return found

    def check(self) -> None:
        """Fail on everything that no page may do."""
        self.faults += self.page.evaluate("window.__violations")
        assert self.page.evaluate("window.pwned") is None, "a script in the data ran"
        assert not self.faults, "\n".join(self.faults)

    def screenshot(self) -> str:
        """Write a picture of the page below `build/failures` and return its path; a lost page has none."""
        name = re.sub(r"\W+", "-", os.environ.get("PYTEST_CURRENT_TEST", "page").rpartition("/")[2])
        path = ROOT / "build" / "failures" / f"{name}.png"
        try:
            self.page.screenshot(path=path)
        except Exception as error:
            return f"none ({error})"
        return str(path)

    def axe(self) -> list[str]:
        """Return the violations of WCAG A and AA rules that axe finds."""
        self.page.evaluate(axe_script())
        found = self.page.evaluate(
            "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}, resultTypes: ['violations']})", TAGS
        )
        return [
            f"{violation['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]


@dataclass
class Explorer:
    """Opens pages of one server in one browser."""

    browser: Any
    server: ServerUnderTest
    token: str = TOKEN
    issuer: str = ""

    @contextmanager
    def page(
        self, place: str | None = "", *, size: tuple[int, int] = WIDE, theme: str = "light", bypass_csp: bool = False
    ) -> Iterator[ExplorerPage]:
        """Open a page; axe needs one without the content security policy."""
        context = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=theme,
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
            bypass_csp=bypass_csp,
            permissions=["clipboard-read", "clipboard-write"],
        )
        try:
            page = ExplorerPage(context.new_page(), self.server, self.token, self.issuer)
            if place is not None:
                page.open(place)
            try:
                yield page
                page.check()
            except BaseException as error:
                error.add_note(f"screenshot: {page.screenshot()}")
                raise
        finally:
            context.close()


def text_of(page: ExplorerPage) -> str:
    """Return the text of the screen, with single spaces."""
    return re.sub(r"\s+", " ", page.page.inner_text("main"))


def in_script(value: object) -> str:
    """Return a value as it is written in a script."""
    return json.dumps(value)
