"""Settings of the server: precedence, checks, reload, and agreement with the table of keys."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from omnigraph.config import Config, parse_config
from omnigraph.config_keys import SERVER_SETTINGS
from omnigraph.errors import InputError
from omnigraph.server.deployment.settings import ServerSettings, default_settings, keep_fixed, read_settings


def config(text: str) -> Config:
    return parse_config(text, Path("conf/omnigraph.yaml"))


def leaves(kind: Any, prefix: str = "") -> list[str]:
    """The keys of a settings class, in order."""
    hints = get_type_hints(kind)
    found = []
    for member in fields(kind):
        nested = hints[member.name]
        found += leaves(nested, f"{prefix}{member.name}.") if is_dataclass(nested) else [prefix + member.name]
    return found


def test_classes_hold_exactly_the_keys_of_the_table():
    assert sorted(leaves(ServerSettings)) == sorted(setting.key for setting in SERVER_SETTINGS)


def test_default_values_are_valid():
    for setting in SERVER_SETTINGS:
        if setting.default is not None:
            assert setting.check(setting.default) is None, setting.key


def test_option_wins_over_variable_over_file():
    file = config("server: {workers: 2, bind: '127.0.0.1:1', limits: {body_bytes: 2 MiB}}")
    environ = {"OMNIGRAPH_SERVER_WORKERS": "3", "OMNIGRAPH_SERVER_BIND": " "}
    settings = read_settings(file, environ, {"workers": 4, "bind": None, "cors.origins": ()}).settings
    assert (settings.workers, settings.bind, settings.limits.body_bytes) == (4, "127.0.0.1:1", 2 << 20)
    assert read_settings(file, environ).settings.workers == 3
    assert read_settings(file, {}).settings.workers == 2
    assert read_settings(Config(), {}).settings.workers == 1


def test_historical_variables():
    environ = {
        "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "3",
        "OMNIGRAPH_PER_ACTOR_BYTES_MAX": "1000",
        "OMNIGRAPH_SHUTDOWN_GRACE_SECS": "7",
        "OMNIGRAPH_UNAUTHENTICATED": "Yes",
        "OMNIGRAPH_SERVER_HIDE_URI": "1",
        "OMNIGRAPH_REQUIRE_ALL_GRAPHS": "on",
        "OMNIGRAPH_LOG": "debug",
    }
    found = read_settings(Config(), environ)
    settings = found.settings
    assert found.warnings == ()
    assert (settings.limits.writes_per_actor, settings.limits.bytes_per_actor) == (3, 1000)
    assert (settings.shutdown_grace_s, settings.log.level) == (7.0, "debug")
    assert settings.unauthenticated
    assert settings.hide_uri
    assert settings.require_all_graphs


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "9" * 40])
def test_invalid_admission_variable_is_a_warning_and_the_default_applies(text: str):
    found = read_settings(Config(), {"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": text})
    assert found.settings.limits.writes_per_actor == 16
    assert found.warnings == (
        f"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX must be an integer of at least 0, not '{text}'; the default applies",
    )


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("OMNIGRAPH_SERVER_WORKERS", "0", "'OMNIGRAPH_SERVER_WORKERS' must be an integer of at least 1, not 0"),
        ("OMNIGRAPH_SERVER_HIDE_URI", "maybe", "must be true or false, not 'maybe'"),
        ("OMNIGRAPH_SERVER_LIMITS_BODY_BYTES", "1 MB", "must be a number of bytes, such as 1048576 or 1 MiB"),
        ("OMNIGRAPH_SERVER_LIMITS_QUEUE_S", "-1", "must be a number of seconds of at least 0"),
        ("OMNIGRAPH_SERVER_AUDIT_READS", "some", "must be one of none, all, not 'some'"),
        ("OMNIGRAPH_SERVER_BIND", "localhost", "'server.bind' must be IP:PORT or unix:PATH, not 'localhost'"),
        ("OMNIGRAPH_SERVER_BIND", "127.0.0.1:70000", "must be IP:PORT"),
        ("OMNIGRAPH_SERVER_BIND", "example.org:80", "must be IP:PORT"),
        ("OMNIGRAPH_SERVER_TLS_CERT", "c.pem", "must be given together"),
        ("OMNIGRAPH_SERVER_TLS_CLIENT_CA", "c.pem", "requires 'server.tls.cert'"),
        ("OMNIGRAPH_SERVER_CORS_ORIGINS", "https://a.example, *", "must name origins"),
    ],
)
def test_invalid_variable_is_refused(variable: str, text: str, said: str):
    with pytest.raises(InputError) as caught:
        read_settings(Config(), {variable: text})
    assert said in caught.value.message
    assert caught.value.code == "bad_setting"


def test_invalid_value_of_the_file_is_refused():
    with pytest.raises(InputError, match=r"'server\.limits\.reads' must be an integer of at least 1, not 0"):
        config("server: {limits: {reads: 0}}")


def test_unknown_key_of_the_file_is_a_warning():
    assert "server.limits.raeds" in config("server: {limits: {raeds: 1}}").warnings[0]


def test_paths_are_relative_to_the_file_or_to_the_working_directory():
    file = config("server: {audit: {dir: audit}, policy: {file: /etc/server.yaml}}")
    settings = read_settings(file, {"OMNIGRAPH_SERVER_AUTH_TOKENS_FILE": "tokens.json"}).settings
    assert settings.audit.dir == Path("conf/audit")
    assert settings.policy.file == Path("/etc/server.yaml")
    assert settings.auth.tokens.file == Path("tokens.json")


@pytest.mark.parametrize(
    ("bind", "loopback"),
    [
        ("127.0.0.1:0", True),
        ("127.8.0.1:80", True),
        ("[::1]:80", True),
        ("localhost:80", True),
        ("unix:/run/og.sock", True),
        ("0.0.0.0:80", False),
        ("[::]:80", False),
        ("192.0.2.1:80", False),
    ],
)
def test_loopback_addresses(bind: str, loopback: bool):
    assert default_settings(bind=bind).is_loopback == loopback


def test_reload_keeps_values_that_need_a_restart():
    running = default_settings(workers=2)
    new = default_settings(workers=3, hide_uri=True, limits__body_bytes=5)
    kept = keep_fixed(new, running)
    assert (kept.settings.workers, kept.settings.hide_uri, kept.settings.limits.body_bytes) == (2, True, 5)
    assert kept.warnings == ("'server.workers' changed; the change takes effect at the next start",)
