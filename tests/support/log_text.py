"""A stream for the log of the server."""

from __future__ import annotations

import io

from omnigraph.server.observability import log


class LogText(io.StringIO):
    """A stream whose text is complete: everything that was reported before is in it."""

    def getvalue(self) -> str:
        assert log.flush()
        return super().getvalue()
