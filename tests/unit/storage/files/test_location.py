"""Parsing of URIs, and the object-store options taken from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import InputError
from omnigraph.storage.files.location import Location, locate

KEYS = {"AWS_ACCESS_KEY_ID": "key-1", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_SESSION_TOKEN": "token-1"}


def options(**environ):
    return dict(locate("s3://bucket/graph", environ).options)


# -- the local disk ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/data/graph", "/data/graph"),
        ("/data/graph/", "/data/graph"),
        ("/data/./a/../graph", "/data/graph"),
        ("  /data/graph\n", "/data/graph"),
        ("file:///data/graph", "/data/graph"),
        ("file://localhost/data/graph", "/data/graph"),
        ("FILE:///data/graph", "/data/graph"),
        ("file:///data/my%20graph", "/data/my graph"),
        ("/data/my%20graph", "/data/my%20graph"),
        ("/data/a:b", "/data/a:b"),
    ],
)
def test_local_locations(uri, path):
    location = locate(uri, {})
    assert location.is_local
    assert location.path == Path(path)
    assert location.uri == path
    assert location.options == {}


def test_a_relative_path_is_made_absolute_without_touching_the_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert locate("graphs/../mine", {}).path == tmp_path / "mine"
    assert locate(Path("mine"), {}).path == tmp_path / "mine"
    assert not (tmp_path / "mine").exists()


def test_a_link_is_not_resolved(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert locate(str(tmp_path / "link" / "graph"), {}).path == tmp_path / "link" / "graph"


def test_home_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert locate("~/graph", {}).path == Path("/home/ada/graph")


def test_children():
    assert locate("/data/graph", {}).child("__manifest") == "/data/graph/__manifest"
    assert locate("s3://bucket/a", {}).child("__manifest") == "s3://bucket/a/__manifest"


# -- object stores -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "bucket", "prefix", "canonical"),
    [
        ("s3://bucket/graph", "bucket", "graph", "s3://bucket/graph"),
        ("s3://bucket/a//b/./c/", "bucket", "a/b/c", "s3://bucket/a/b/c"),
        ("s3://bucket", "bucket", "", "s3://bucket"),
        ("s3://bucket/", "bucket", "", "s3://bucket"),
        ("S3://bucket/Graph", "bucket", "Graph", "s3://bucket/Graph"),
    ],
)
def test_s3_locations(uri, bucket, prefix, canonical):
    location = locate(uri, {})
    assert not location.is_local
    assert (location.bucket, location.prefix, location.uri) == (bucket, prefix, canonical)


def test_credentials_come_from_the_environment():
    assert options(**KEYS, AWS_REGION="eu-central-1") == {
        "aws_access_key_id": "key-1",
        "aws_secret_access_key": "hush",
        "aws_session_token": "token-1",
        "aws_region": "eu-central-1",
    }


def test_an_empty_variable_counts_as_unset():
    assert options(AWS_ACCESS_KEY_ID="", AWS_ENDPOINT_URL="") == {"aws_region": "us-east-1"}


def test_the_region_variable_overrides_the_default_region():
    assert options(AWS_DEFAULT_REGION="b")["aws_region"] == "b"
    assert options(AWS_REGION="a", AWS_DEFAULT_REGION="b")["aws_region"] == "a"


def test_the_s3_endpoint_overrides_the_general_one():
    both = options(AWS_ENDPOINT_URL_S3="https://s3.example", AWS_ENDPOINT_URL="https://all.example")
    assert both["aws_endpoint"] == "https://s3.example"
    assert options(AWS_ENDPOINT_URL="https://all.example")["aws_endpoint"] == "https://all.example"


@pytest.mark.parametrize(
    ("environ", "allowed"),
    [
        ({}, False),
        ({"AWS_ALLOW_HTTP": "true"}, True),
        ({"AWS_ALLOW_HTTP": "TRUE"}, True),
        ({"AWS_ALLOW_HTTP": "false"}, False),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:8333"}, True),
        ({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:8333"}, True),
        ({"AWS_ENDPOINT_URL_S3": "https://s3.example"}, False),
        ({"AWS_ENDPOINT_URL_S3": "https://s3.example", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, False),
    ],
)
def test_plain_http_is_allowed_by_setting_or_by_the_endpoint(environ, allowed):
    assert ("allow_http" in options(**environ)) is allowed


def test_path_style():
    assert options(AWS_S3_FORCE_PATH_STYLE="true")["aws_virtual_hosted_style_request"] == "false"
    assert "aws_virtual_hosted_style_request" not in options(AWS_S3_FORCE_PATH_STYLE="false")


def test_secrets_are_never_shown():
    shown = repr(locate("s3://bucket/graph", KEYS))
    assert "s3://bucket/graph" in shown
    assert not any(secret in shown for secret in KEYS.values())


def test_a_local_graph_ignores_the_environment():
    assert locate("/data/graph", KEYS).options == {}


# -- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "word"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("http://127.0.0.1:8080", "a server, not storage"),
        ("https://graphs.example/g", "a server, not storage"),
        ("HTTPS://graphs.example/g", "a server, not storage"),
        ("gs://bucket/graph", "'gs://' is not supported"),
        ("az://container/graph", "'az://' is not supported"),
        ("file://elsewhere/data", "another host"),
        ("s3://", "not a location in a bucket"),
        ("s3:///graph", "not a location in a bucket"),
        ("s3://bucket/../other", "not a location in a bucket"),
    ],
)
def test_refusals_contain_a_hint(uri, word):
    with pytest.raises(InputError) as caught:
        locate(uri, {})
    assert word in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("uri", ["https://ada:hush@graphs.example/g", "s3://ada:hush@bucket/graph"])
def test_a_password_in_a_uri_is_refused_and_not_shown(uri):
    with pytest.raises(InputError) as caught:
        locate(uri, {})
    assert "hush" not in caught.value.message
    assert "hush" not in (caught.value.hint or "")


@pytest.mark.parametrize("uri", ["s3://b/a?b", "s3://b/a#b", "s3://b?x", "s3://b/a%20b"])
def test_reserved_characters_are_refused_and_not_dropped(uri):
    with pytest.raises(InputError, match="cannot contain") as caught:
        locate(uri, {})
    assert caught.value.hint


def test_an_object_is_named_by_its_whole_key():
    found = Location("s3://bucket/in/a#1?.jsonl", None)
    assert (found.bucket, found.prefix) == ("bucket", "in/a#1?.jsonl")


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"])
@pytest.mark.parametrize("value", ["hush\n", "hu\r\nsh", "hush\x00", "hüsh"])
def test_a_setting_with_control_characters_is_refused(name, value):
    with pytest.raises(InputError, match=name) as caught:
        locate("s3://bucket/graph", {name: value})
    assert value not in caught.value.message


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
@pytest.mark.parametrize("endpoint", ["http://ada:hush@host:1", "https://host/?token=hush"])
def test_an_endpoint_with_credentials_is_refused_and_not_shown(name, endpoint):
    with pytest.raises(InputError, match=name) as caught:
        locate("s3://bucket/graph", {name: endpoint})
    assert "hush" not in f"{caught.value.message} {caught.value.hint}"


def test_paths_to_write_by_are_quoted():
    found = locate("/data/a b#1%20?.omni", {})
    assert found.child("nodes/x") == "/data/a b#1%20?.omni/nodes/x"
    assert found.writable_child("nodes/x") == "file-object-store:///data/a%20b%231%2520%3F.omni/nodes/x"
    assert Location("s3://bucket/in", None).writable_child("x") == "s3://bucket/in/x"
