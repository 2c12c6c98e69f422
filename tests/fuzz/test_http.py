"""No request may make the server fail, or get an answer that the OpenAPI document does not describe.

Schemathesis makes the requests: the examples of the document, values at the limits of every parameter, random values,
and sequences of requests. The short form sends 2,000 requests, the long form (`pytest --long tests/fuzz`) 100,000.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.server.route_table import ROUTES
from support.http_fuzz import PHASES, fuzz
from support.tenants import Tenants, tenants

SHORT, LONG = 2_000, 100_000
HEADER_ROUTES = ("query", "change", "getSchema")
"""The routes whose shared headers the short form varies."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.server.exchange.MIN_COMMIT_WAIT_S", 0.0)
        with tenants(tmp_path_factory.mktemp("fuzz"), log__level="error") as running:
            yield running


def test_requests_get_documented_answers(site: Tenants) -> None:
    """The short form: values at the limits, a few random values per route, and short sequences."""
    outcome = fuzz(site, phases=PHASES, examples=4, header_routes=HEADER_ROUTES)
    assert not outcome.failures, outcome.report()
    assert outcome.total >= SHORT
    assert len(outcome.routes) == len(ROUTES)


@pytest.mark.long
def test_many_requests_get_documented_answers(site: Tenants) -> None:
    """The long form: all headers on all routes, and new seeds until the number is reached."""
    outcome = fuzz(site, phases=("examples", "coverage"), examples=1)
    seed = 1
    while outcome.total < LONG and not outcome.failures:
        seed += 1
        outcome.add(fuzz(site, phases=("fuzzing", "stateful"), examples=100, seed=seed, deterministic=False))
    assert not outcome.failures, outcome.report()
