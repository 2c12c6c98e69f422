"""`omnigraph blob`: bytes, ranges, size and tag of Blob properties."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from support.commands import document
from support.writes import node

SCHEMA = "node Photo { name: String @key  stars: I32?  data: Blob? }"
DATA = bytes(range(256)) * 10


@pytest.fixture
def photos(folder):
    graph = og.init(folder / "p.omni", SCHEMA)
    graph.load([node("Photo", name="a", data=DATA), node("Photo", name="none")], mode="append")
    return graph


def get(capfdbinary, *words: str) -> bytes:
    capfdbinary.readouterr()
    assert run(["blob", "get", "Photo", "a", "data", *words, "p.omni"]) == 0
    return capfdbinary.readouterr().out


def test_get_writes_the_bytes(photos, folder, cli):
    assert cli("blob", "get", "Photo", "a", "data", "--out", "a.bin", "p.omni") == (0, "", "")
    assert (folder / "a.bin").read_bytes() == DATA


def test_get_writes_to_stdout(photos, folder, capfdbinary):
    assert get(capfdbinary) == DATA
    assert get(capfdbinary, "-o", "-") == DATA


@pytest.mark.parametrize(
    ("range_", "expected"),
    [
        ("0-0", DATA[:1]),
        ("10-19", DATA[10:20]),
        ("2550-", DATA[2550:]),
        ("2550-9999", DATA[2550:]),
        ("-5", DATA[-5:]),
        ("-9999", DATA),
    ],
)
def test_get_range(photos, capfdbinary, range_, expected):
    assert get(capfdbinary, "--range", range_) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--offset", "0"], DATA),
        (["--offset", "10"], DATA[10:]),
        (["--length", "3"], DATA[:3]),
        (["--offset", "10", "--length", "5"], DATA[10:15]),
        (["--offset", "2555", "--length", "99", "--kind", "node"], DATA[2555:]),
    ],
)
def test_get_offset_and_length(photos, capfdbinary, words, expected):
    assert get(capfdbinary, *words) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--offset", "1", "--range", "0-1"], "--range excludes --offset and --length"),
        (["--length", "0"], "length"),
        (["--kind", "table"], "--kind must be node or edge (got 'table')"),
    ],
)
def test_contradictory_options_are_usage_errors(photos, cli, words, message):
    code, out, err = cli("blob", "get", "Photo", "a", "data", *words, "p.omni")
    assert (code, out) == (2, "")
    assert message in err


def test_kind_selects_the_type(photos, cli):
    assert document(cli("blob", "stat", "Photo", "a", "data", "--kind", "node", "--json", "p.omni"))["size"] == 2560
    assert "edge type 'Photo'" in cli("blob", "stat", "Photo", "a", "data", "--kind", "edge", "p.omni")[2]


@pytest.mark.parametrize("range_", ["-", "5-4", "a-b", "1", "0-1,5-6", "bytes=0-1", "٣-٤"])
def test_malformed_range_is_a_usage_error(photos, cli, range_):
    code, out, err = cli("blob", "get", "Photo", "a", "data", "--range", range_, "p.omni")
    assert (code, out) == (2, "")
    assert "--range must be A-B" in err


@pytest.mark.parametrize("range_", ["2560-", "9999-10000", "-0"])
def test_range_beyond_the_end_is_refused(photos, folder, cli, range_):
    code, out, err = cli("blob", "get", "Photo", "a", "data", "--range", range_, "--out", "a.bin", "p.omni")
    assert (code, out) == (1, "")
    assert "of a value of 2560 bytes" in err
    assert "'omnigraph blob stat' shows the size" in err
    assert not (folder / "a.bin").exists()


def test_stat(photos, cli):
    blob = photos.blob("Photo", "a", "data")
    code, out, err = cli("blob", "stat", "Photo", "a", "data", "p.omni")
    assert (code, err) == (0, "")
    assert out == f"size    2560\netag    {blob.etag}\ncommit  {blob.commit_id}\n"
    assert document(cli("blob", "stat", "Photo", "a", "data", "p.omni", "--json")) == {
        "type_name": "Photo", "id": "a", "property": "data", "size": 2560, "etag": blob.etag,
        "commit_id": blob.commit_id,
    }  # fmt: skip


def test_branch_and_point(photos, folder, capfdbinary):
    first = photos.snapshot().commit_id
    photos.branch_create("side")
    photos.load([node("Photo", name="a", data=b"side")], mode="merge", branch="side")
    photos.load([node("Photo", name="a", data=b"main")], mode="merge")
    assert get(capfdbinary) == b"main"
    assert get(capfdbinary, "--branch", "side") == b"side"
    assert get(capfdbinary, "--at", first) == DATA


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("Photo", "gone", "data"), "entity_not_found"),
        (("Photo", "none", "data"), "null_blob"),
        (("Photo", "a", "stars"), "not_a_blob"),
        (("Film", "a", "data"), "type_not_found"),
    ],
)
def test_errors_have_codes(photos, cli, words, code):
    answer = cli("blob", "stat", *words, "p.omni", "--json")
    assert document(answer, 1)["reason"] == code
    failed = cli("blob", "get", *words, "--out", "x", "p.omni")
    assert failed[0] == 1
    assert failed[2].startswith("error: ")
