"""The start of the program: in a warm server if there is one, else in this process."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the program and end the process with its exit code."""
    from omnigraph.cli.warm.client import try_run

    try:
        code = try_run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    if code is not None:
        sys.stderr.flush()
        # Nothing of this process is left to finish.
        os._exit(code)
    from omnigraph.cli.main import main as run_here

    run_here()
