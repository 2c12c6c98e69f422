"""Entries of `server.webhooks`: values, secrets from variables, and filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.config import parse_config
from omnigraph.errors import InputError
from omnigraph.server.deployment.settings import read_settings
from omnigraph.server.webhooks.events import Event
from omnigraph.server.webhooks.targets import Webhook, read_webhooks

ENVIRON = {"HOOK": "0123456789abcdef", "OLD": "fedcba9876543210", "SHORT": "short"}
ENTRY = 'name: erp, url: "https://example.org/hook/T0KEN", secret: "${HOOK}"'


def read(entry: str, *, graphs: tuple[str, ...] = ("kb", "crm")) -> Webhook:
    config = parse_config(f"server: {{webhooks: [{{{entry}}}]}}", Path("omnigraph.yaml"))
    (webhook,) = read_webhooks(read_settings(config, {}).settings.webhooks, ENVIRON, graphs)
    return webhook


def test_a_webhook_with_defaults() -> None:
    webhook = read(ENTRY)
    assert (webhook.name, webhook.secrets, webhook.reach) == ("erp", ("0123456789abcdef",), "public")
    assert webhook.origin == "https://example.org"
    assert webhook.has_graph("kb")
    assert webhook.wants(event("tag.created"))


def test_neither_secrets_nor_the_path_are_shown() -> None:
    shown = repr(read(ENTRY))
    assert "0123456789abcdef" not in shown
    assert "T0KEN" not in shown


def test_two_secrets_sign_during_a_change() -> None:
    assert read(ENTRY + ', previous_secret: "${OLD}"').secrets == ("0123456789abcdef", "fedcba9876543210")


def event(kind: str, branch: str | None = None) -> Event:
    return Event("id", kind, None, 0, {}, {}, branch)


@pytest.mark.parametrize(
    ("filters", "kind", "branch", "wanted"),
    [
        ("events: [commit]", "commit", "main", True),
        ("events: [commit]", "tag.created", None, False),
        ("events: ['branch.*']", "branch.deleted", "a", True),
        ("events: ['branch.*']", "commit", "a", False),
        ("events: ['*']", "policy.reloaded", None, True),
        ("branches: [main, 'release/*']", "commit", "main", True),
        ("branches: [main, 'release/*']", "commit", "release/1", True),
        ("branches: [main, 'release/*']", "commit", "release/1/x", False),
        ("branches: [main]", "tag.created", None, True),
    ],
)
def test_filters(filters: str, kind: str, branch: str | None, wanted: bool) -> None:
    assert read(f"{ENTRY}, {filters}").wants(event(kind, branch)) is wanted


def test_a_list_of_graphs() -> None:
    webhook = read(f"{ENTRY}, graphs: [kb]")
    assert (webhook.has_graph("kb"), webhook.has_graph("crm")) == (True, False)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('name: erp, url: "https://example.org"', "entry 1, the key 'secret' is missing"),
        (ENTRY + ", evnts: [commit]", "the key 'evnts' is unknown .*events"),
        (ENTRY + ", events: commit", "'events' must be a list of strings"),
        (ENTRY + ", events: [comit]", "'comit', which is no event"),
        (ENTRY + ", graphs: [lost]", "'lost', which is not served"),
        (ENTRY + ", branches: ['***']", "invalid pattern"),
        (ENTRY + ", include: [rows]", "contains 'rows'"),
        (ENTRY.replace("erp", "ERP/../x"), "1 to 64 lower-case letters"),
        (ENTRY.replace("https", "http"), "must begin with https"),
        (ENTRY.replace("example.org", "user:pw@example.org"), "must not contain a user"),
        (ENTRY.replace("${HOOK}", "a literal secret of the file"), "must be a variable"),
        (ENTRY.replace("HOOK", "UNSET"), "UNSET, which is not set"),
        (ENTRY.replace("HOOK", "SHORT"), "SHORT, which is too short"),
    ],
)
def test_bad_entries_are_refused_without_their_values(entry: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        read(entry)
    assert "literal secret" not in str(caught.value)
    assert "pw" not in str(caught.value)


def test_names_are_unique() -> None:
    config = parse_config(f"server: {{webhooks: [{{{ENTRY}}}, {{{ENTRY}}}]}}", Path("omnigraph.yaml"))
    with pytest.raises(InputError, match="two webhooks have the name 'erp'"):
        read_webhooks(read_settings(config, {}).settings.webhooks, ENVIRON, ())


@pytest.mark.parametrize("value", ['[{"name": "erp"}]', "erp", "{}", '[["a literal secret"]]'])
def test_a_variable_holds_the_entries_as_json(value: Any) -> None:
    with pytest.raises(InputError, match="'OMNIGRAPH_SERVER_WEBHOOKS' must be a list of maps") as caught:
        read_settings(parse_config("", Path("omnigraph.yaml")), {"OMNIGRAPH_SERVER_WEBHOOKS": value})
    assert "literal" not in str(caught.value)
