"""The branches that tools may change: by default those of the actor, `mcp/<actor>/*`.

A branch is created on first use and expires after 14 days. `main` is never changed by a tool; a proposal reaches it.
"""

from __future__ import annotations

import re
from datetime import timedelta
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING

from omnigraph.errors import BranchExists, BranchNotFound, Denied, InputError
from omnigraph.suggestions import listing
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.write.ref_names import check_branch_name

if TYPE_CHECKING:
    from omnigraph.mcp.session import Session

ACTOR = "<actor>"
"""Stands for the actor in a pattern of branches."""
OWN_BRANCHES = (f"mcp/{ACTOR}/*",)
EXPIRES = timedelta(days=14)
TOPIC = "draft"
_ACTOR_CHARS_MAX = 100
"""Longer names are shortened, so that the name of the branch has room for a topic."""
_ANONYMOUS = "anonymous"
_FOREIGN = re.compile(r"[^\w.-]|\.(?=\.)|^[.-]|(?<=\.)lock$")
_SPECIAL = re.compile(r"([*?[])")


def actor_segment(actor: str | None) -> str:
    """Return the actor as a part of a branch name; one that is changed for it gets a digest and stays unique."""
    if actor is None:
        return _ANONYMOUS
    plain = _FOREIGN.sub("-", actor)
    if plain == actor and actor != _ANONYMOUS and len(actor) <= _ACTOR_CHARS_MAX and not actor.startswith("-"):
        return actor
    return f"{plain.strip('-.')[:40] or 'actor'}-{sha256(actor.encode()).hexdigest()[:8]}"


def default_branch(actor: str | None) -> str:
    """Return the branch that tools change if none is named."""
    return topic_branch(actor, TOPIC)


def topic_branch(actor: str | None, topic: str) -> str:
    """Return the branch of an actor for a topic."""
    return check_branch_name(f"mcp/{actor_segment(actor)}/{topic}")


def writable_branch(session: Session, branch: str | None) -> str:
    """Return the branch that a tool changes, and create it if it does not exist.

    A branch that the settings do not permit is refused.
    """
    name = default_branch(session.graph.actor) if branch is None else branch.strip()
    check_writable(session, name)
    ensure_branch(session, name)
    return name


def check_writable(session: Session, name: str) -> None:
    """Refuse a branch that tools may not change."""
    actor = session.graph.actor
    segment = _SPECIAL.sub(r"[\1]", actor_segment(actor))
    patterns = [pattern.replace(ACTOR, segment) for pattern in session.settings.branches]
    if name == MAIN or not any(fnmatchcase(name, pattern) for pattern in patterns):
        reason = f"a tool changes only branches that match {listing(patterns)}, not '{name}'"
        raise Denied(
            reason,
            (reason,),
            hint=f"leave 'branch' out to use '{default_branch(actor)}'; a proposal brings its changes to 'main'",
        )
    check_branch_name(name)


def ensure_branch(session: Session, name: str, from_branch: str | None = None) -> bool:
    """Create a branch with an expiry if it does not exist; return True if it was created."""
    graph = session.graph
    try:
        graph.head(name)
    except BranchNotFound:
        pass
    else:
        if from_branch is not None:
            raise InputError(f"the branch '{name}' exists already", code="branch_exists", hint="choose another topic")
        return False
    try:
        graph.branch_create(
            name, from_branch, description=f"Changes by {graph.actor or _ANONYMOUS} over MCP", expires_in=EXPIRES
        )
    except BranchExists:
        return False
    return True
