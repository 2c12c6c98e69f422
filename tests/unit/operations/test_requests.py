"""Requests: arguments are validated and bundled once."""

from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.engine.exec.context import NO_LIMITS, Limits
from omnigraph.errors import InputError
from omnigraph.operations.requests import PageRequest, QueryText, limits_of


@pytest.mark.parametrize("params", [{"n": 1}, OrderedDict(n=1), MappingProxyType({"n": 1})])
def test_parameters_are_copied_into_a_dict(params):
    for query in (QueryText.of("text", "name", params), QueryText.of("text", params, None)):
        assert type(query.params) is dict
        assert query.params == {"n": 1}
        assert query.params is not params


def test_mapping_in_place_of_the_name_is_the_parameters():
    assert QueryText.of("text", {"n": 1}, None) == QueryText("text", None, {"n": 1})
    assert QueryText.of("text", "name", None) == QueryText("text", "name")


def test_source_can_be_a_file(tmp_path):
    path = tmp_path / "a.gq"
    path.write_text("query q() {}")
    assert QueryText.of(path, None, None) == QueryText("query q() {}", source_name=str(path))


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [({"n": 1}, {"n": 1}, "parameters are given twice"), (5, None, "its parameters are a mapping, not int")],
)
def test_wrong_names_are_rejected(name: Any, params: Any, message: str):
    with pytest.raises(InputError, match=message):
        QueryText.of("text", name, params)


def test_page_request_is_none_without_page_and_cursor():
    assert PageRequest.of(None, None) is None
    assert PageRequest.of(5, "cursor") == PageRequest(5, "cursor")


@pytest.mark.parametrize("rows", [0, -1, True, 5.0, "5"])
def test_wrong_page_size_is_rejected(rows: Any):
    with pytest.raises(InputError, match="the page size must be at least 1"):
        PageRequest.of(rows, None)


def test_timeout_and_cancellation_are_added_to_the_limits():
    cancel = Cancellation()
    assert limits_of(None, None, None) is NO_LIMITS
    limits = limits_of(Limits(rows_max=5), 2, cancel)
    assert (limits.rows_max, limits.timeout_s, limits.cancellation) == (5, 2, cancel)
    with pytest.raises(InputError, match="a timeout is a number of seconds, not str"):
        limits_of(None, "2", None)  # type: ignore[arg-type]
    given = Limits(timeout_s=9, cancellation=cancel)
    other = Cancellation()
    assert (limits_of(given, 2, None).timeout_s, limits_of(given, 2, None).cancellation) == (2, cancel)
    assert (limits_of(given, None, other).timeout_s, limits_of(given, None, other).cancellation) == (9, other)
