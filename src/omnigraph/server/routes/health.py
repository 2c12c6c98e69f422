"""Liveness, readiness and version. These routes need no token."""

from __future__ import annotations

from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Answer
from omnigraph.version import STORAGE_FORMAT, __version__
from omnigraph.wire.graph_state import VersionDocument
from omnigraph.wire.server_state import HealthDocument, ReadyDocument


def health(caller: Caller) -> HealthDocument:
    """Tell that the process serves, whatever the state of storage."""
    return HealthDocument(version=__version__, internal_schema_version=STORAGE_FORMAT)


def ready(caller: Caller) -> Answer:
    """Tell whether the process can do its work."""
    reasons = caller.server.not_ready_reasons()
    if reasons:
        return Answer(ReadyDocument(status="not_ready", reasons=reasons), status=503, headers={"Retry-After": "1"})
    return Answer(ReadyDocument(status="ready"))


def version(caller: Caller) -> VersionDocument:
    """Return the version of the program and of its storage format."""
    return VersionDocument(__version__, STORAGE_FORMAT)
