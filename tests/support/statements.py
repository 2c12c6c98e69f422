"""An independent evaluation of policies of version 2 on branches."""

from __future__ import annotations

import re
from typing import Any

ROLE_ACTIONS = {
    "viewer": {"read": "any"},
    "editor": {
        **dict.fromkeys(("read", "export", "proposal_create", "proposal_comment", "proposal_close"), "any"),
        **dict.fromkeys(("proposal_check", "proposal_approve"), "any"),
        **dict.fromkeys(("change", "branch_create", "branch_delete"), "unprotected"),
    },
}
ROLE_ACTIONS["maintainer"] = {
    **ROLE_ACTIONS["editor"],
    **dict.fromkeys(("branch_merge", "tag_create", "tag_delete", "maintain", "proposal_land"), "any"),
}
TARGETED = ("schema_apply", "branch_create", "branch_delete", "branch_merge", "run_publish", "run_abort")


def matches(pattern: str, name: str) -> bool:
    """True if a pattern matches a name; by splitting, not by the expression of the product."""
    if not pattern:
        return not name
    if pattern.startswith("**"):
        return any(matches(pattern[2:], name[start:]) for start in range(len(name) + 1))
    if pattern.startswith("*"):
        end = name.find("/") if "/" in name else len(name)
        return any(matches(pattern[1:], name[start:]) for start in range(end + 1))
    return name[:1] == pattern[0] and matches(pattern[1:], name[1:])


def decide(
    document: dict[str, Any], actor: str, action: str, branch: str | None, target: str | None
) -> tuple[bool, set[str]]:
    """Return whether a request is allowed, and the rules that decided."""
    if action in ("run_publish", "run_abort"):
        return False, set()
    groups = {name for name, actors in document["groups"].items() if actor in actors}
    name = target if action in TARGETED or re.match("proposal_", action) else branch
    protected = name is not None and any(matches(p, name) for p in document.get("protected_branches", []))
    found: dict[str, set[str]] = {"allow": set(), "deny": set()}
    for rule in document["rules"]:
        effect = "allow" if "allow" in rule else "deny"
        if _applies(rule[effect], groups, action, name, protected=protected):
            found[effect].add(rule["id"])
    if found["deny"]:
        return False, found["deny"]
    return bool(found["allow"]), found["allow"]


def _applies(body: dict[str, Any], groups: set[str], action: str, name: str | None, *, protected: bool) -> bool:
    if "any" not in body["actors"] and body["actors"]["group"] not in groups:
        return False
    if "except" in body and body["except"]["group"] in groups:
        return False
    if body.get("role") == "owner":
        return True
    if "role" in body:
        scope = ROLE_ACTIONS[body["role"]].get(action)
        return scope == "any" or (scope == "unprotected" and name is not None and not protected)
    if action not in body["actions"]:
        return False
    selected = body.get("branches", body.get("target_branches", body.get("branch_scope", "any")))
    if isinstance(selected, list):
        return name is not None and any(matches(pattern, name) for pattern in selected)
    return selected == "any" or (name is not None and protected == (selected == "protected"))
