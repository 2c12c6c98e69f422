"""The end of the process."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn


def end_process(code: int) -> NoReturn:
    """End the process with an exit code: wait for threads, run the exit handlers, flush the streams.

    The interpreter would also destroy every module, which takes longer than a point read and has no effect.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
