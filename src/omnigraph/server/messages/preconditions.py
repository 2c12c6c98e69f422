"""`If-Match` on routes whose method of `Graph` takes no expected commit."""

from __future__ import annotations

from omnigraph.errors import PreconditionFailed
from omnigraph.server.caller import Caller
from omnigraph.server.errors import RequestFault
from omnigraph.versioning.write.repository import At


def expect_commit(caller: Caller, name: str, actual: str) -> None:
    """Raise `PreconditionFailed` if `If-Match` names another commit than that of a branch or tag."""
    if caller.if_commit is not None and caller.if_commit != actual:
        raise PreconditionFailed(name, expected=caller.if_commit, actual=actual)


def expect_head(caller: Caller, branch: str) -> None:
    """Raise an error if a branch does not exist, or if `If-Match` names another commit than its head."""
    assert caller.served is not None
    assert caller.served.graph is not None
    # The right to write a branch suffices to learn its head.
    expect_commit(caller, branch, caller.served.graph.snapshot(branch.strip()).commit_id)


def refuse_if_match(caller: Caller) -> None:
    """Refuse `If-Match` on a route that concerns no single branch."""
    if caller.if_commit is not None:
        raise RequestFault("this route does not take If-Match: it concerns no single branch", code="bad_precondition")


def expected_start(caller: Caller, branch: str, at: At, *, exists: bool) -> At:
    """Return the point at which a branch or tag is created: with `If-Match`, the commit that it names.

    A repetition finds the branch or tag and is left to its idempotency key.
    """
    if caller.if_commit is None:
        return at
    if not exists:
        expect_commit(caller, branch, caller.graph.snapshot(branch, at).commit_id)
    return caller.if_commit
