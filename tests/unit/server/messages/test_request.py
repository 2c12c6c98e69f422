"""Request headers: each is validated, and a wrong one names the header."""

from __future__ import annotations

import pytest

from omnigraph.server.errors import RequestFault
from omnigraph.server.messages import request as read


def test_a_valid_request_id_is_kept_and_another_replaced() -> None:
    assert read.request_id_of({"x-request-id": "abc-1"}) == "abc-1"
    for bad in ("", "a b", "x" * 129, "é", "a\nb"):
        assert read.request_id_of({"x-request-id": bad}) != bad
    assert len(read.request_id_of({})) == 26


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "a\tb", "é"])
def test_a_bad_idempotency_key_is_refused(key: str) -> None:
    with pytest.raises(RequestFault, match="Idempotency-Key"):
        read.idempotency_key_of({"idempotency-key": key})


def test_if_match_names_one_commit_as_a_strong_tag() -> None:
    assert read.if_match_of({"if-match": '"01ABC"'}) == "01ABC"
    assert read.if_match_of({}) is None
    for bad in ("01ABC", "*", 'W/"01ABC"', '"a", "b"', '""'):
        with pytest.raises(RequestFault, match="If-Match"):
            read.if_match_of({"if-match": bad})


def test_the_conditional_header_belongs_to_conditional_routes() -> None:
    assert read.if_graph_commit_of({"omnigraph-if-graph-commit": "01A"}, required=True) == "01A"
    assert read.if_graph_commit_of({}, required=False) is None
    for headers, required in (
        ({"omnigraph-if-graph-commit": "01A"}, False),
        ({}, True),
        ({"omnigraph-if-graph-commit": '"01A"'}, True),
        ({"omnigraph-if-graph-commit": "01A, 01B"}, True),
    ):
        with pytest.raises(RequestFault, match="Omnigraph-If-Graph-Commit"):
            read.if_graph_commit_of(headers, required=required)


def test_a_timeout_is_at_most_the_ceiling() -> None:
    assert read.timeout_of({}, 30, 300) == 30
    assert read.timeout_of({"omnigraph-timeout-ms": "1500"}, 30, 300) == 1.5
    assert read.timeout_of({"omnigraph-timeout-ms": "999999999"}, 30, 300) == 300
    for bad in ("0", "-1", "1.5", "", "x", "9" * 30, "²"):
        with pytest.raises(RequestFault, match="Omnigraph-Timeout-Ms"):
            read.timeout_of({"omnigraph-timeout-ms": bad}, 30, 300)


def test_if_none_match_compares_weakly() -> None:
    for value in ('"a"', 'W/"a"', '"b", "a"', "*"):
        assert read.matches_none({"if-none-match": value}, '"a"')
    assert not read.matches_none({"if-none-match": '"b"'}, '"a"')
    assert not read.matches_none({}, '"a"')


def test_a_repeated_header_is_joined() -> None:
    scope = {"headers": [(b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")]}
    assert read.headers_of(scope) == {"authorization": "Bearer a, Bearer b"}


def test_the_query_string_is_bounded_and_utf8() -> None:
    assert read.query_of({"query_string": b"a=1&a=2&b="}) == {"a": ["1", "2"], "b": [""]}
    for bad in (b"a=%ff", b"&".join([b"a=1"] * 101)):
        with pytest.raises(RequestFault) as caught:
            read.query_of({"query_string": bad})
        assert caught.value.code == "bad_query_string"
