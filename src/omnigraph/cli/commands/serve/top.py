"""`omnigraph top`: the work of a server, refreshed, with a key to cancel an operation."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.invocation import Invocation, Json, takes_graph
from omnigraph.cli.io.output import print_json
from omnigraph.errors import OmniGraphError

if TYPE_CHECKING:
    from rich.live import Live

    from omnigraph.cli.io.keys import ReadKey
    from omnigraph.client.server_connection import ServerConnection
    from omnigraph.wire.server_state import ServerStatusDocument

KEYS = "up/down: select   c: cancel   r: refresh   q: quit"


@takes_graph
def top_command(
    run: Invocation,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="The time between two refreshes.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print the state once and exit.")] = False,
    as_json: Json = False,
) -> None:
    """Show the work of a server: queries, lanes, costly plans, caches and graphs.

    On a terminal the screen is refreshed until 'q' is pressed; 'c' cancels the selected operation. The token needs the
    action 'admin'. With several workers, each refresh shows the process that answers.

    omnigraph top --server https://graphs.example.com
    """
    with _connect(run) as server:
        if as_json:
            print_json(server.status())
        elif once or not _is_interactive():
            _print(server.status())
        else:
            _Screen(server, interval).show()


def _is_interactive() -> bool:
    """Return True if single keys can be read. On Windows the state is printed once."""
    return sys.platform != "win32" and sys.stdin.isatty() and sys.stdout.isatty()


def _connect(run: Invocation) -> ServerConnection:
    """Connect to the server that the options name."""
    address = run.server()
    from omnigraph.cli.remote import connection

    settings = connection(address, run)
    from omnigraph.client.server_connection import ServerConnection

    return ServerConnection(settings)


def _print(status: ServerStatusDocument) -> None:
    from rich.console import Console

    from omnigraph.cli.io.status_screen import status_screen
    from omnigraph.cli.io.terminal_text import drawing

    console = Console(file=sys.stdout, soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 240)
    with drawing():
        console.print(status_screen(status, width=console.width))


@dataclass
class _Screen:
    """The refreshed screen: the selected operation, and what the last key did."""

    server: ServerConnection
    interval: float
    status: ServerStatusDocument | None = None
    selected: str | None = None
    asked: str | None = None
    """The operation whose cancellation waits for a confirmation."""
    note: str = KEYS

    def show(self) -> None:
        """Refresh the screen until the user quits."""
        from rich.live import Live

        from omnigraph.cli.io.keys import terminal_keys
        from omnigraph.cli.io.terminal_text import drawing

        try:
            with drawing(), terminal_keys() as read_key, Live(screen=True, auto_refresh=False) as live:
                while True:
                    self._refresh()
                    self._draw(live)
                    if not self._wait(live, read_key):
                        return
        except KeyboardInterrupt:
            return

    def _refresh(self) -> None:
        """Read the status; a failure after the first one is shown, and the old status stays."""
        try:
            self.status = self.server.status()
        except OmniGraphError as error:
            if self.status is None:
                raise
            self.note = f"error: {error.message}"
        ids = self._ids
        if self.selected not in ids:
            self.selected = ids[0] if ids else None

    @property
    def _ids(self) -> list[str]:
        from omnigraph.cli.io.status_screen import shown_operations

        return [operation.id for operation in shown_operations(self.status)] if self.status is not None else []

    def _draw(self, live: Live) -> None:
        from omnigraph.cli.io.status_screen import status_screen

        assert self.status is not None
        live.update(status_screen(self.status, self.selected, self.note, width=live.console.width), refresh=True)

    def _wait(self, live: Live, read_key: ReadKey) -> bool:
        """Handle keys until the next refresh; return False if the user quits."""
        ends = time.monotonic() + self.interval
        while (left := ends - time.monotonic()) > 0:
            key = read_key(left)
            if key is None or key == "r":
                return True
            if key == "q":
                return False
            self._handle(key)
            self._draw(live)
        return True

    def _handle(self, key: str) -> None:
        if self.asked is not None:
            self._answer(key)
        elif key in ("up", "k", "down", "j"):
            self._move(-1 if key in ("up", "k") else 1)
        elif key == "c" and self.selected is not None:
            self.asked, self.note = self.selected, f"cancel {self.selected}? y/n"
        else:
            self.note = KEYS

    def _move(self, step: int) -> None:
        ids = self._ids
        if self.selected in ids:
            self.selected = ids[(ids.index(self.selected) + step) % len(ids)]
        self.note = KEYS

    def _answer(self, key: str) -> None:
        """Cancel the operation if the key confirms it."""
        operation, self.asked = self.asked, None
        assert operation is not None
        if key != "y":
            self.note = KEYS
            return
        try:
            self.server.cancel(operation)
        except OmniGraphError as error:
            self.note = f"error: {error.message}"
        else:
            self.note = f"cancelled {operation}"
