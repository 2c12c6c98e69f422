"""The mode in which a server starts: who may do what when tokens or a policy are missing.

| Tokens | Policy | Address | Mode |
|---|---|---|---|
| none | none | loopback | `open`: everything is allowed |
| none | none | other | refused; with `--unauthenticated`: `open` |
| none | set | any | refused: no request could be authenticated |
| some | none | any | `default_deny`: `read` is allowed, nothing else |
| some | set | any | `policy`: the policy decides |
| `--local` | any | loopback | `local`: one generated token, whose actor may do everything that a given policy allows |
| `--local` | any | other | refused |
"""

from __future__ import annotations

from typing import Literal, assert_never

from omnigraph.errors import InputError
from omnigraph.server.auth.sources import FILE_VARIABLE, SINGLE_VARIABLE

Mode = Literal["open", "default_deny", "policy", "local"]
LOCAL_ACTOR = "local"
"""The actor of the generated token of single-user mode."""
_SET_TOKENS = f"set {FILE_VARIABLE}, {SINGLE_VARIABLE} or 'server.auth.oidc'"


def start_mode(
    *,
    has_tokens: bool,
    has_policy: bool,
    bind: str,
    is_loopback: bool,
    unauthenticated: bool = False,
    local: bool = False,
    running: Mode | None = None,
) -> Mode:
    """Return the mode of a server. A combination that must not serve is an `InputError` whose hint names the remedy.

    `is_loopback` says that only this machine can connect to `bind`: a loopback address or a Unix socket. `running` is
    the mode of the running server at a reload; a server that has tokens does not become open.
    """
    if local:
        return _local(bind, is_loopback=is_loopback, unauthenticated=unauthenticated)
    if has_tokens:
        return "policy" if has_policy else "default_deny"
    if has_policy:
        raise InputError(
            "a policy is set and no token: every request would be refused as unauthorized",
            code="unsafe_start",
            hint=f"{_SET_TOKENS}, or remove the policy",
        )
    if running not in (None, "open"):
        raise InputError(
            "no source of tokens is set any more: every request would be allowed",
            code="unsafe_start",
            hint=f"{_SET_TOKENS}, or restart the server without tokens",
        )
    if not is_loopback and not unauthenticated:
        raise InputError(
            f"no token is set, and '{bind}' can be reached from other machines",
            code="unsafe_start",
            hint=f"{_SET_TOKENS}, bind to 127.0.0.1, or give --unauthenticated (OMNIGRAPH_UNAUTHENTICATED=1)",
        )
    return "open"


def _local(bind: str, *, is_loopback: bool, unauthenticated: bool) -> Mode:
    if unauthenticated:
        raise InputError(
            "--local generates a token, and --unauthenticated accepts requests without one",
            code="unsafe_start",
            hint="give one of the two",
        )
    if not is_loopback:
        raise InputError(
            f"--local serves one user of this machine, and '{bind}' can be reached from other machines",
            code="unsafe_start",
            hint="bind to 127.0.0.1, ::1 or unix:PATH, or use tokens and a policy without --local",
        )
    return "local"


def start_warning(mode: Mode, *, bind: str, is_loopback: bool) -> str | None:
    """Return what an operator must know about a mode, for the log and `/readyz`."""
    match mode:
        case "open":
            if is_loopback:
                return "no token is set: every process of this machine may read and change all served graphs"
            return f"UNAUTHENTICATED: EVERYBODY WHO REACHES {bind.upper()} MAY READ AND CHANGE ALL SERVED GRAPHS"
        case "default_deny":
            return "tokens are set and no policy: only 'read' is allowed; set 'policy.file' to allow more"
        case "policy" | "local":
            return None
        case _:
            assert_never(mode)
