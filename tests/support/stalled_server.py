"""`omnigraph-server` whose optimizations wait at a failpoint for ever: `python -m support.stalled_server`."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

from omnigraph.cli.commands.serve.server_program import main
from omnigraph.storage.failpoints import arm

SIGN = "stalled"
"""The file in the folder of the process that says that an optimization waits."""


def stall() -> None:
    """Say so and wait."""
    Path(SIGN).touch()
    threading.Event().wait()


armed = ExitStack()

if __name__ in ("__main__", "__mp_main__"):
    # A worker imports the main module under the second name.
    armed.enter_context(arm("optimize.before_publish", stall))

if __name__ == "__main__":
    main()
