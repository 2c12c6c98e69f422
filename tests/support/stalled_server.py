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


# A worker imports this module before it serves.
armed = ExitStack()
armed.enter_context(arm("optimize.before_publish", stall))

if __name__ == "__main__":
    main()
