"""`Webhook`: an entry of `server.webhooks` with its secrets, which come from variables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from omnigraph.errors import InputError
from omnigraph.policy.branch_patterns import matches_branch, pattern_problem
from omnigraph.server.outgoing_http import Reach, url_problem
from omnigraph.server.webhooks.events import KINDS, Event
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.webhooks import SECRET_BYTES_MIN

DIFF_SUMMARY = "diff_summary"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,127})\}")


@dataclass(frozen=True)
class Webhook:
    """An address that receives events."""

    name: str
    url: str = field(repr=False)
    """The path can contain a secret of the receiver."""
    secrets: tuple[str, ...] = field(repr=False)
    """The secrets that sign: the current one, and during a change the previous one."""
    events: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    with_diff_summary: bool = False
    allow_private: bool = False

    @property
    def origin(self) -> str:
        """Scheme and host of the address."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def reach(self) -> Reach:
        """The addresses that may be reached."""
        return "private" if self.allow_private else "public"

    def has_graph(self, graph_id: str) -> bool:
        """Return True if events of a graph are sent."""
        return not self.graphs or graph_id in self.graphs

    def wants(self, event: Event) -> bool:
        """Return True if an event is sent."""
        if self.events and not any(_matches_kind(pattern, event.kind) for pattern in self.events):
            return False
        if event.branch is None or not self.branches:
            return True
        return any(matches_branch(pattern, event.branch) for pattern in self.branches)


def _matches_kind(pattern: str, kind: str) -> bool:
    return pattern in ("*", kind) or (pattern.endswith(".*") and kind.startswith(pattern[:-1]))


def read_webhooks(
    entries: Sequence[Mapping[str, Any]], environ: Mapping[str, str], graph_ids: Collection[str]
) -> tuple[Webhook, ...]:
    """Return the webhooks of the settings; raises `InputError` that names the webhook and the key."""
    webhooks = tuple(_read(entry, environ, graph_ids) for entry in entries)
    names = [webhook.name for webhook in webhooks]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two webhooks have the name '{name}'", code="bad_setting")
    return webhooks


def _read(entry: Mapping[str, Any], environ: Mapping[str, str], graph_ids: Collection[str]) -> Webhook:
    name = entry["name"]
    if not _NAME.fullmatch(name):
        raise _invalid(name, "name", "must have 1 to 64 lower-case letters, digits and hyphens")
    problem = url_problem(entry["url"], plain=entry["allow_private"])
    if problem is not None:
        raise _invalid(name, "url", problem)
    for kind in entry["events"]:
        if not any(_matches_kind(kind, known) for known in KINDS):
            note = did_you_mean(kind, KINDS)
            raise _invalid(name, "events", f"contains '{kind}', which is no event" + (f" ({note})" if note else ""))
    for graph_id in entry["graphs"]:
        if graph_id not in graph_ids:
            raise _invalid(name, "graphs", f"contains '{graph_id}', which is not served; served: {listing(graph_ids)}")
    for pattern in entry["branches"]:
        if problem := pattern_problem(pattern):
            raise _invalid(name, "branches", f"contains an invalid pattern: {problem}")
    unknown = [item for item in entry["include"] if item != DIFF_SUMMARY]
    if unknown:
        raise _invalid(name, "include", f"contains '{unknown[0]}'; known: {DIFF_SUMMARY}")
    keys = [key for key in ("secret", "previous_secret") if entry[key] is not None]
    return Webhook(
        name=name,
        url=entry["url"],
        secrets=tuple(_secret(name, key, entry[key], environ) for key in keys),
        events=tuple(entry["events"]),
        graphs=tuple(entry["graphs"]),
        branches=tuple(entry["branches"]),
        with_diff_summary=DIFF_SUMMARY in entry["include"],
        allow_private=entry["allow_private"],
    )


def _secret(name: str, key: str, text: str, environ: Mapping[str, str]) -> str:
    """Return the secret that a variable holds. A secret in the file itself is refused."""
    match = _VARIABLE.fullmatch(text.strip())
    if match is None:
        raise _invalid(name, key, "must be a variable, written ${NAME}; the file holds no secrets")
    value = environ.get(match[1], "")
    if len(value.encode()) < SECRET_BYTES_MIN:
        state = "is too short" if value else "is not set"
        raise _invalid(name, key, f"names the variable {match[1]}, which {state}; it needs {SECRET_BYTES_MIN} bytes")
    return value


def _invalid(name: str, key: str, problem: str) -> InputError:
    return InputError(f"webhook '{name}': '{key}' {problem}", code="bad_setting")
