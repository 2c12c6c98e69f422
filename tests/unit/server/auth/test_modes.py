"""The mode in which a server starts."""

from __future__ import annotations

import itertools

import pytest

from omnigraph.errors import InputError
from omnigraph.server.auth.modes import Mode, start_mode, start_warning

LOOPBACK, PUBLIC = ("127.0.0.1:8080", True), ("0.0.0.0:8080", False)
Bind = tuple[str, bool]


def mode_of(tokens: bool, policy: bool, bind: Bind, unauthenticated: bool = False, local: bool = False) -> Mode:
    return start_mode(
        has_tokens=tokens,
        has_policy=policy,
        bind=bind[0],
        is_loopback=bind[1],
        unauthenticated=unauthenticated,
        local=local,
    )


@pytest.mark.parametrize(
    ("tokens", "policy", "bind", "unauthenticated", "mode"),
    [
        (False, False, LOOPBACK, False, "open"),
        (False, False, LOOPBACK, True, "open"),
        (False, False, PUBLIC, True, "open"),
        (True, False, LOOPBACK, False, "default_deny"),
        (True, False, PUBLIC, False, "default_deny"),
        (True, False, PUBLIC, True, "default_deny"),
        (True, True, LOOPBACK, False, "policy"),
        (True, True, PUBLIC, False, "policy"),
        (True, True, PUBLIC, True, "policy"),
    ],
)
def test_modes(tokens: bool, policy: bool, bind: Bind, unauthenticated: bool, mode: Mode) -> None:
    assert mode_of(tokens, policy, bind, unauthenticated) == mode


@pytest.mark.parametrize(
    ("tokens", "policy", "bind", "unauthenticated", "local", "message", "remedy"),
    [
        (False, False, PUBLIC, False, False, "0.0.0.0:8080", "--unauthenticated"),
        (False, False, PUBLIC, False, False, "0.0.0.0:8080", "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"),
        (False, True, LOOPBACK, False, False, "unauthorized", "OMNIGRAPH_SERVER_BEARER_TOKEN"),
        (False, True, PUBLIC, True, False, "unauthorized", "OMNIGRAPH_SERVER_BEARER_TOKEN"),
        (False, False, PUBLIC, False, True, "0.0.0.0:8080", "127.0.0.1"),
        (False, False, LOOPBACK, True, True, "--unauthenticated", "one of the two"),
    ],
)
def test_refused_starts_name_the_remedy(
    tokens: bool, policy: bool, bind: Bind, unauthenticated: bool, local: bool, message: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        mode_of(tokens, policy, bind, unauthenticated, local)
    assert caught.value.code == "unsafe_start"
    assert message in caught.value.message
    assert remedy in (caught.value.hint or "")


@pytest.mark.parametrize(("tokens", "policy"), list(itertools.product((False, True), repeat=2)))
def test_single_user_mode_needs_no_other_token_or_policy(tokens: bool, policy: bool) -> None:
    assert mode_of(tokens, policy, LOOPBACK, local=True) == "local"
    assert mode_of(tokens, policy, ("unix:/run/omnigraph.sock", True), local=True) == "local"


def test_warnings() -> None:
    assert "every process of this machine" in (start_warning("open", bind=LOOPBACK[0], is_loopback=True) or "")
    public = start_warning("open", bind=PUBLIC[0], is_loopback=False)
    assert public is not None
    assert public.isupper()
    denied = start_warning("default_deny", bind=PUBLIC[0], is_loopback=False)
    assert "'read'" in (denied or "")
    assert "policy.file" in (denied or "")
    assert start_warning("policy", bind=PUBLIC[0], is_loopback=False) is None
    assert start_warning("local", bind=LOOPBACK[0], is_loopback=True) is None


@pytest.mark.parametrize("running", ["default_deny", "policy", "local"])
def test_reload_does_not_open_a_server_that_has_tokens(running: Mode) -> None:
    with pytest.raises(InputError) as caught:
        start_mode(has_tokens=False, has_policy=False, bind=LOOPBACK[0], is_loopback=True, running=running)
    assert caught.value.code == "unsafe_start"


@pytest.mark.parametrize(("has_tokens", "mode"), [(False, "open"), (True, "default_deny")])
def test_reload_of_an_open_server(has_tokens: bool, mode: Mode) -> None:
    found = start_mode(has_tokens=has_tokens, has_policy=False, bind=LOOPBACK[0], is_loopback=True, running="open")
    assert found == mode
