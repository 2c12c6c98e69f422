"""Inputs: members with two names, members that exclude each other, and their JSON schemas."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import msgspec
import pytest

from omnigraph.errors import InputError, LimitReached
from omnigraph.wire import requests
from omnigraph.wire.requests.changes import ChangesQuery, ChangesStreamQuery
from omnigraph.wire.requests.commits import CommitChangesQuery, CommitListQuery
from omnigraph.wire.requests.queries import ReadRequest
from omnigraph.wire.requests.request import Request
from omnigraph.wire.requests.tables import BlobQuery


def test_query_has_two_names() -> None:
    assert ReadRequest(query="a").source == ReadRequest(query_source="a").source == "a"
    assert ReadRequest(query="a", query_source="a").source == "a"
    with pytest.raises(InputError, match="'query' and 'query_source' are two names of one member and have different"):
        _ = ReadRequest(query="a", query_source="b").source
    with pytest.raises(InputError, match="the member 'query' is missing"):
        _ = ReadRequest().source


def test_name_has_two_names() -> None:
    assert ReadRequest(name="a").selected == ReadRequest(query_name="a").selected == "a"
    assert ReadRequest().selected is None
    with pytest.raises(InputError, match="'name' and 'query_name'"):
        _ = ReadRequest(name="a", query_name="b").selected


def test_start_of_a_list_has_two_names() -> None:
    assert CommitListQuery(after="a").start == CommitListQuery(before="a").start == "a"
    with pytest.raises(InputError, match="'after' and 'before'"):
        _ = CommitListQuery(after="a", before="b").start


@pytest.mark.parametrize("other", [{"branch": "b"}, {"at": "b"}])
def test_snapshot_excludes_branch_and_point(other: dict[str, str]) -> None:
    blob = BlobQuery(type="T", id="1", property_="p", snapshot="a", **other)
    for request in (ReadRequest(snapshot="a", **other), blob):
        with pytest.raises(InputError, match="exclude each other"):
            _ = request.point


def test_point() -> None:
    assert ReadRequest(snapshot="a").point == ReadRequest(branch="b", at="a").point == "a"
    assert ReadRequest(branch="b").point is None


def test_starts_of_a_feed_exclude_each_other() -> None:
    ChangesQuery(cursor="a").check()
    ChangesStreamQuery(start="now").check()
    with pytest.raises(InputError, match="'cursor' and 'page_token' exclude each other"):
        ChangesQuery(cursor="a", page_token="b").check()
    with pytest.raises(InputError, match="'cursor' and 'start' exclude each other"):
        ChangesStreamQuery(cursor="a", start="now").check()


def test_number_of_changes_is_bounded() -> None:
    assert CommitChangesQuery().changes_max == 1000
    assert CommitChangesQuery(limit=8192).changes_max == 8192
    with pytest.raises(LimitReached, match="'limit' is 8193; it is at most 8192"):
        _ = CommitChangesQuery(limit=8193).changes_max


def test_every_input_has_a_json_schema() -> None:
    modules = [import_module(f"{requests.__name__}.{module.name}") for module in iter_modules(requests.__path__)]
    inputs = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Request)
    }
    _, components = msgspec.json.schema_components(inputs, ref_template="#/components/schemas/{name}")
    assert set(components) == {cls.__name__ for cls in inputs}
    for name, component in components.items():
        assert component["description"], name
