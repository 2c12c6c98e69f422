"""Copies closed files of the audit log to a bucket, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from omnigraph.errors import OmniGraphError
from omnigraph.operations.file_copies import FileCopies
from omnigraph.server.audit.chain_files import files_of

RETRY_S = 60.0
"""Interval at which files are looked for, also after a failure."""
STOP_S = 10.0
"""Time to copy the last files when the log is closed."""

_log = logging.getLogger(__name__)


class FileCopier:
    """Copies the closed files of one chain that are not in the bucket yet, also those of earlier processes."""

    def __init__(self, folder: Path, chain: str, copies: FileCopies, open_file: Callable[[], Path | None]) -> None:
        self._folder, self._chain, self._copies, self._open_file = folder, chain, copies, open_file
        self._wake = threading.Event()
        self._stopping = False
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="omnigraph-audit-copies", daemon=True)
        self._thread.start()

    def notify(self) -> None:
        """Look for closed files now."""
        self._wake.set()

    def stop(self) -> None:
        """Copy the files that remain and end the thread; a file that is not copied in time waits for the next start."""
        self._stopping = True
        self._wake.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        while True:
            last = self._stopping
            self._try_copy()
            if last:
                return
            self._wake.wait(RETRY_S)
            self._wake.clear()

    def _try_copy(self) -> None:
        try:
            self._copy_closed()
        except (OmniGraphError, OSError) as error:
            if not self._has_failed:
                _log.error("files of the audit log cannot be copied to '%s': %s", self._copies.uri, error)
            self._has_failed = True
        else:
            self._has_failed = False

    def _copy_closed(self) -> None:
        # The open file is asked for after the listing: a file created meanwhile is then either not listed or excluded.
        listed = [file.path for file in files_of(self._folder)[self._chain]]
        open_file = self._open_file()
        copied = self._copies.names(self._chain) if listed else set()
        for path in listed:
            if path != open_file and path.name not in copied:
                self._copies.add(self._chain, path)
