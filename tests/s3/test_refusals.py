"""Buckets that cannot hold a graph or cannot be reached: each error states the reason and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import omnigraph as og
from omnigraph.errors import Damaged, StorageError
from support.s3 import PlainStore, plain_store
from support.store import ITEM, SCHEMA, add_pair, check_sound, new_graph, repository_of, seeds


@pytest.fixture
def plain() -> Iterator[PlainStore]:
    with plain_store() as store:
        yield store


def test_the_store_of_this_process_can_hold_a_graph(plain):
    graph = new_graph(plain.new_place(), 2, environ=plain.environ)
    add_pair(repository_of(graph), "third")
    check_sound(graph, {*seeds(2), "third"})


def test_a_store_that_ignores_conditions_is_refused_for_a_new_graph(plain):
    plain.honours_conditions = False
    with pytest.raises(StorageError, match="ignores conditional writes") as refused:
        og.init(plain.new_place(), SCHEMA, environ=plain.environ)
    assert "use a store that honours them" in (refused.value.hint or "")
    assert plain.objects == {}, "nothing is left behind"


def test_a_store_that_ignores_conditions_is_read_only(plain):
    """A graph records the store that was tested. At another address, the store is tested again."""
    uri = plain.new_place()
    new_graph(uri, 2, environ=plain.environ)
    plain.honours_conditions = False
    before = dict(plain.objects)
    elsewhere = {**plain.environ, "AWS_ENDPOINT_URL_S3": plain.endpoint.replace("127.0.0.1", "localhost")}
    with pytest.raises(StorageError, match="ignores conditional writes"):
        og.open(uri, environ=elsewhere)
    assert plain.objects == before
    og.open(uri, environ=plain.environ)
    assert plain.objects == before, "the store was tested before"
    check_sound(og.open(uri, read_only=True, environ=plain.environ), seeds(2))


@pytest.fixture
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Remove all credentials from the environment and disable other credential providers."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


@pytest.mark.usefixtures("_no_credentials")
@pytest.mark.parametrize(
    ("which", "names"),
    [("none", ("AWS_ENDPOINT_URL_S3",)), ("wrong", ("AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID"))],
)
def test_missing_or_wrong_credentials_are_reported(s3, which, names):
    uri = s3.new_place()
    new_graph(uri, environ=s3.environ)
    environ = {name: s3.environ[name] for name in names}
    if which == "wrong":
        environ["AWS_SECRET_ACCESS_KEY"] = "not-it"
    for attempt in (
        lambda: og.open(uri, environ=environ),
        lambda: og.open(uri, read_only=True, environ=environ),
        lambda: og.init(s3.new_place(), SCHEMA, environ=environ),
    ):
        with pytest.raises(StorageError) as refused:
            attempt()
        assert refused.value.code == "no_access"
        assert "AWS_ACCESS_KEY_ID" in (refused.value.hint or "")
        assert "not-it" not in str(refused.value)


def test_an_unreachable_store_is_reported(s3):
    environ = {**s3.environ, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}
    with pytest.raises(StorageError) as refused:
        og.open("s3://graphs/nowhere", environ=environ)
    assert refused.value.code == "unreachable"
    assert "AWS_ENDPOINT_URL_S3" in (refused.value.hint or "")
    assert s3.environ["AWS_SECRET_ACCESS_KEY"] not in f"{refused.value!r} {refused.value.__cause__!r}"


def test_a_missing_data_file_is_damage_and_the_rest_stays_readable(s3):
    uri = s3.new_place()
    graph = new_graph(uri, 1, environ=s3.environ)
    files = repository_of(graph).objects
    folder = graph.snapshot().tables[ITEM].folder
    for name in files.list(f"{folder}/data"):
        files.delete(name)
    graph = og.open(uri, environ=s3.environ)
    with pytest.raises(Damaged, match="missing") as damage:
        graph.to_arrow("Item")
    assert damage.value.hint
    assert graph.to_arrow("Link")["id"].to_pylist() == ["seed-0"]
    assert next(problem.where for problem in graph.verify()) == f"{ITEM} at version 2"
