"""Schemathesis on a running server: requests made from the OpenAPI document, mixed with names that the graph has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from support.server import WAIT_S
from support.tenants import READ, SCHEMA, WRITE, Tenants

HEADERS = ("Omnigraph-Min-Commit", "Omnigraph-Timeout-Ms", "Idempotency-Key", "If-Match", "If-None-Match")
"""Headers that many routes share."""
REFUSALS = [
    "400",
    "401",
    "403",
    "404",
    "405",
    "406",
    "409",
    "410",
    "412",
    "413",
    "414",
    "415",
    "416",
    "429",
    "431",
    "503",
]
"""Statuses of requests that do not fit their schema."""
UNKNOWN_HEADER = "in header - object with unexpected properties"
"""A failure that is none: HTTP requires a server to ignore unknown headers."""
PHASES = ("examples", "coverage", "fuzzing", "stateful")
_ANY = "any"
_RATE = 0.7
_DICTIONARIES: Mapping[str, tuple[str, ...]] = {
    "branches": ("branch", "source", "target", "compare", "from", "body.name"),
    "points": ("at", "to"),
    "commits": ("commit_id", "snapshot", "before"),
    "tags": ("tag",),
    "types": ("type", "type_names", "nodes", "edges", "types"),
    "ids": ("id",),
    "cursors": ("after", "cursor", "page_token"),
    "starts": ("start",),
    "queries": ("query", "query_source"),
    "query_names": ("query_name",),
    "schemas": ("schema_source",),
    "records": ("data",),
    "properties": ("property", "columns", "weight", "write"),
    "tables": ("table_keys",),
    "actions": ("action",),
    "actors": ("actor",),
}
"""Dictionary → the parameters and members whose values it gives."""


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream", "application/x-tar")
def _body(_: Any, value: Any) -> Any:
    """Send the body of a load as it is generated."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@dataclass
class Outcome:
    """The requests of a run, and its failures."""

    cases: Counter[str] = field(default_factory=Counter)
    """Number of requests by phase."""
    statuses: Counter[int] = field(default_factory=Counter)
    routes: set[str] = field(default_factory=set)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    """One example by route and check."""

    @property
    def total(self) -> int:
        """The number of requests."""
        return self.cases.total()

    def add(self, other: Outcome) -> None:
        """Add the requests of another run."""
        self.cases += other.cases
        self.statuses += other.statuses
        self.routes |= other.routes
        self.failures |= other.failures

    def report(self) -> str:
        """Return the failures as text."""
        return "\n\n".join(f"{route}: {check}\n{text}" for (route, check), text in sorted(self.failures.items()))


def fuzz(
    site: Tenants,
    *,
    phases: Iterable[str],
    examples: int,
    seed: int = 1,
    deterministic: bool = True,
    header_routes: Iterable[str] | None = None,
    inspect: Callable[[str, Mapping[str, Any], bytes], None] | None = None,
) -> Outcome:
    """Run some phases with `examples` per route; only `header_routes` (None: all) get the shared headers.

    A deterministic run makes the same requests every time, apart from the ids that the graph has. `inspect` is called
    with the route, the headers and the body of every answer.
    """
    document = site.server.get("/openapi.json").json
    if header_routes is not None:
        _without_headers(document, set(header_routes))
    settings = {"seed": seed, "deterministic": deterministic, "max-examples": examples}
    schema = schemathesis.openapi.from_dict(document, config=_config(site, set(phases), settings))
    schema.config.update(base_url=site.server.url, headers={"Authorization": f"Bearer {site.tokens['root']}"})
    outcome = Outcome()
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            _record(outcome, event)
            if inspect is not None:
                _inspect(event, inspect)
        elif isinstance(event, events.NonFatalError):
            outcome.failures.setdefault((event.label, "error"), repr(event.value))
        elif isinstance(event, events.FatalError):
            raise event.exception
    return outcome


def _inspect(event: events.ScenarioFinished, inspect: Callable[[str, Mapping[str, Any], bytes], None]) -> None:
    recorder = event.recorder
    for case_id, interaction in recorder.interactions.items():
        if interaction.response is not None:
            label = recorder.cases[case_id].value.operation.label
            inspect(label, interaction.response.headers, interaction.response.content or b"")


def _record(outcome: Outcome, event: events.ScenarioFinished) -> None:
    recorder = event.recorder
    outcome.cases[event.phase.value] += len(recorder.interactions)
    for case_id, interaction in recorder.interactions.items():
        outcome.routes.add(recorder.cases[case_id].value.operation.label)
        if interaction.response is not None:
            outcome.statuses[interaction.response.status_code] += 1
    for case_id, checks in recorder.checks.items():
        for check in checks:
            if check.failure_info is None or UNKNOWN_HEADER in check.failure_info.failure.message:
                continue
            failure = check.failure_info.failure
            label = recorder.cases[case_id].value.operation.label if case_id in recorder.cases else recorder.label
            text = f"{failure.title}: {failure.message}\n{check.failure_info.code_sample}"
            response = recorder.interactions[case_id].response if case_id in recorder.interactions else None
            if response is not None and response.content is not None:
                text += f"\n{response.status_code} {response.content[:500]!r}"
            outcome.failures.setdefault((label, check.name), text)


def _config(site: Tenants, phases: set[str], settings: dict[str, Any]) -> SchemathesisConfig:
    names = _names(site)
    return SchemathesisConfig.from_dict(
        {
            "seed": settings.pop("seed"),
            "request-timeout": WAIT_S,
            "continue-on-failure": True,
            "warnings": False,
            "generation": {
                **settings,
                "database": "none",
                "no-shrink": True,
                "dictionaries": {"string": {"dictionary": _ANY, "probability": 0.1}},
            },
            "phases": {
                **{phase: {"enabled": phase in phases} for phase in PHASES},
                # tests/security tries every method on every path.
                "coverage": {"enabled": "coverage" in phases, "unexpected-methods": ["trace"]},
            },
            "checks": {
                # A request can fit its schema and still name what does not exist.
                "positive_data_acceptance": {"enabled": False},
                # tests/security tries every route without a token.
                "ignored_auth": {"enabled": False},
                "negative_data_rejection": {"expected-statuses": REFUSALS},
                "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", 503]},
            },
            "operations": [
                # A DELETE stops an operation; its outcome can be read afterwards.
                {"include-path": "/operations/{operation_id}", "checks": {"use_after_free": {"enabled": False}}},
                # The document describes the whole stream, a text; the check expects the schema of one event.
                {"include-path": "/changes/stream", "checks": {"response_schema_conformance": {"enabled": False}}},
            ],
            "dictionaries": {name: {"values": list(dict.fromkeys(values))} for name, values in names.items()},
            "parameters": {
                parameter: {"dictionary": name, "probability": _RATE}
                for name, members in _DICTIONARIES.items()
                for member in members
                for parameter in ([member] if "." in member else [member, f"body.{member}"])
            },
        }
    )


def _names(site: Tenants) -> dict[str, list[str]]:
    """Return values that the graph has, and some that it lacks."""
    foreign = site.foreign
    branches = ["main", "public", "hidden", "merge", "a/b", "absent", " main "]
    tags = ["shown", "release", "kept", "absent"]
    commits = [*foreign["commit_id"], site.mine["commit_id"], "01BX5ZZKBKACTAV9WEVGEMMVRZ"]
    names = {
        "branches": branches,
        "tags": tags,
        "commits": commits,
        "points": [*branches, *tags, *commits, "main~1", "2026-01-01T00:00:00Z", "1"],
        "types": ["Person", "Knows", "Named", "Absent"],
        "ids": ["pat", "pia", "hid-1", "absent", "1"],
        "cursors": [*foreign["after"], "AAAA"],
        "starts": ["now", "beginning", *foreign["start"]],
        "queries": [
            READ,
            WRITE,
            f"{READ} {WRITE}",
            "query q($n: I32) { match { $p: Person { age: $n } } return { $p } }",
        ],
        "query_names": ["people", "add", "q", "absent"],
        "schemas": [SCHEMA, SCHEMA.replace("age: I32?", "age: I32? years: I64?"), "node Person {"],
        "records": [site.mine["data"], '{"type":"Person"}', '{"edge":"Knows","from":"pat","to":"pia"}', "{"],
        "properties": ["photo", "name", "age", "since", "absent"],
        "tables": ["node:Person", "edge:Knows", "node:Absent"],
        "actions": ["read", "change", "admin", "absent"],
        "actors": ["ana", "root", "absent"],
    }
    return {**names, _ANY: [value for values in names.values() for value in values]}


def _without_headers(document: dict[str, Any], kept: set[str]) -> None:
    for operations in document["paths"].values():
        for operation in operations.values():
            if operation["operationId"] not in kept:
                parameters = operation.get("parameters", [])
                operation["parameters"] = [each for each in parameters if each["name"] not in HEADERS]
