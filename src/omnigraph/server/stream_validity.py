"""The conditions under which an event stream continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.errors import Unauthorized

if TYPE_CHECKING:
    from omnigraph.server.caller import Caller


def stream_is_valid(caller: Caller) -> bool:
    """Return False if the token of a stream expired, or a reload changed the configuration, tokens or policies.

    The client then connects again with the id of its last event and is authenticated again.
    """
    if caller.access is not None:
        # The decisions of the first poll are in the audit record; those of later polls are not kept.
        caller.access.decisions.clear()
    if caller.server.is_draining or caller.server.holder.current.digests != caller.state.digests:
        return False
    try:
        if caller.state.authenticator is not None:
            caller.state.authenticator.find_now(caller.headers.get("authorization"))
    except Unauthorized:
        return False
    return True
