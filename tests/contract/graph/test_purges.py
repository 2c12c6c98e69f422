"""Purges do the same in every form of a graph."""

from __future__ import annotations

from typing import Any

import pytest

from support.graph_variants import Body, Variants, failure


def facts(certificate: Any) -> Any:
    """Return what certificates of equal graphs have in common: names of files and times differ."""
    counts = [certificate.rows, certificate.versions, len(certificate.rewritten), len(certificate.removed)]
    return [
        certificate.ids,
        certificate.id_count,
        certificate.type_name,
        certificate.reason,
        certificate.actor,
        *counts,
    ]


def purge(graph: Any) -> Any:
    graph.mutate('query q() { insert Person { name: "subject-1" } insert Person { name: "subject-2" } }')
    preview = graph.purge_preview("Person", ["subject-1", "nobody"])
    certificate = graph.purge("Person", ["subject-1", "subject-1"], reason="request 17", idempotency_key="of-purge")
    again = graph.purge("Person", ["subject-1"], reason="request 17", idempotency_key="of-purge")
    records = [[one.state, one.type_name, one.names("subject-1"), one.names("subject-2")] for one in graph.purges()]
    errors = [
        failure(lambda: graph.purge("Person", ["nobody"], reason="x")),
        failure(lambda: graph.purge("Person", "nobody", reason="x")),
        failure(lambda: graph.purge("Persn", ["nobody"], reason="x")),
        failure(lambda: graph.purge("Person", ["subject-2"], reason="x", idempotency_key="of-purge")),
        failure(lambda: graph.mutate('query q() { insert Person { name: "subject-1" } }')),
    ]
    same = [again.purge_id == certificate.purge_id, again.digest == certificate.digest, again.removed, again.rewritten]
    return [preview, facts(certificate), same, records, errors, graph.get("Person", "subject-1")]


def verify(graph: Any) -> Any:
    found = graph.purge_verify(["subject-2", b"subject-1"])
    values = sorted({finding.value for finding in found.findings})
    errors = [failure(lambda: graph.purge_verify(["abc"])), failure(lambda: graph.purge_allow("Person", "ana"))]
    allowed = [graph.purge_allow("Person", ["subject-1", "nobody"]), graph.purge_allow("Person", ["subject-1"])]
    return [values, found.is_clean, found.undecodable, errors, allowed, graph.purge_resume()]


def redact(graph: Any) -> Any:
    graph.mutate('query q() { insert Person { name: "cy-of-redact" } }', message="as ana@example.org asked")
    before = graph.purge_redact(["ana@example.org"])
    done = graph.purge_redact(["ana@example.org"], confirm=True)
    errors = [failure(lambda: graph.purge_redact([])), failure(lambda: graph.purge_redact(["abc"]))]
    return [before, done, graph.commits(limit=1)[0].message, errors]


BODIES = [purge, verify, redact]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_does_the_same(written: Variants, body: Body) -> None:
    written.check(body)
