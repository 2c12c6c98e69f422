"""References to bytes outside a graph are followed below the allowed locations and nowhere else."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import InputError, RecordError, ValueFormatError
from omnigraph.storage.files.blob_sources import BlobSources

SCHEMA = "node Photo { name: String @key  data: Blob? }"
INSERT = "query q($n: String, $d: Blob) { insert Photo { name: $n, data: $d } }"


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.bin").write_bytes(b"\x00a")
    (folder / "deep" / "an empty one").write_bytes(b"")
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "way out").symlink_to(tmp_path / "secret")
    (folder / "way in").symlink_to(folder / "a.bin")
    return folder


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.bin", b"\x00a"), ("deep/an%20empty%20one", b""), ("deep/../a.bin", b"\x00a"), ("way%20in", b"\x00a")],
)
def test_references_below_an_allowed_location_are_read(photos, name, data):
    assert BlobSources([photos], {})(f"file://{photos}/{name}") == data
    assert BlobSources(["/nowhere", f"file://{photos.parent}"], {})(f"file://{photos}/{name}") == data


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("file://{photos}/../secret", "outside the allowed blob sources"),
        ("file://{photos}/%2e%2e/secret", "outside the allowed blob sources"),
        ("file://{photos}/way%20out", "outside the allowed blob sources"),
        ("file://{photos}s/a.bin", "outside the allowed blob sources"),
        ("file://{photos}", "outside the allowed blob sources"),
        ("file:///etc/hostname", "outside the allowed blob sources"),
        ("file://elsewhere/a.bin", "names another host"),
        ("s3://bucket/a.bin", "outside the allowed blob sources"),
        ("http://localhost/a.bin", "is a server"),
        ("ftp://localhost/a.bin", "is not supported"),
        ("{photos}/a.bin", "it is not a URI"),
        ("", "it is not a URI"),
        ("file://{photos}/none", "does not exist"),
        ("file://{photos}/deep", "it is not a regular file"),
        ("file://{photos}/" + "x" * 70_000, "must not exceed 65,536 bytes"),
    ],
)
def test_other_references_are_refused(photos, reference, reason):
    with pytest.raises(ValueFormatError, match=reason):
        BlobSources([photos], {})(reference.format(photos=photos))


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("s3://bucket/pictures/a.bin", "a.bin"),
        ("s3://bucket/pictures/x/../a.bin", None),
        ("s3://bucket/pictures2/a.bin", None),
        ("s3://other/pictures/a.bin", None),
        ("file:///pictures/a.bin", None),
    ],
)
def test_allowed_locations_in_a_bucket(reference, found):
    sources = BlobSources(["s3://bucket/pictures/"], {})
    if found is None:
        with pytest.raises(InputError):
            sources._find(reference)
    else:
        place, name = sources._find(reference)
        assert (place.uri, name) == ("s3://bucket/pictures", found)


def test_a_single_location_must_be_a_list():
    with pytest.raises(InputError, match="must be a list"):
        BlobSources("/photos", {})


def test_writes_copy_the_referenced_bytes(photos, tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, blob_sources=[photos])
    reference = f"file://{photos}/a.bin"
    graph.mutate(INSERT, params={"n": "mutated", "d": reference})
    for mode in ("merge", "append"):
        graph.load([{"type": "Photo", "data": {"name": mode, "data": reference}}], mode=mode)
    (photos / "a.bin").unlink()
    expected = dict.fromkeys(("mutated", "merge", "append"), b"\x00a")
    rows = graph.to_arrow("Photo").to_pylist()
    assert {row["name"]: row["data"] for row in rows} == expected
    graph.load(
        [{"type": "Photo", "data": {"name": "only", "data": f"file://{photos}/deep/an empty one"}}], mode="overwrite"
    )
    assert [row["data"] for row in graph.to_arrow("Photo").to_pylist()] == [b""]


def test_an_unreadable_reference_is_an_error_of_its_record(photos, tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, blob_sources=[photos])
    records = [
        {"type": "Photo", "data": {"name": "good", "data": f"file://{photos}/a.bin"}},
        {"type": "Photo", "data": {"name": "bad", "data": "file:///etc/hostname"}},
    ]
    with pytest.raises(RecordError, match=r"line 2: Photo\.data: 'file:///etc/hostname' cannot be followed"):
        graph.load(records, mode="append")
    rejects: list[og.Reject] = []
    graph.load(records, mode="append", rejects=rejects)
    assert [(reject.line, reject.property) for reject in rejects] == [(2, "data")]
    with pytest.raises(InputError, match=r"'Photo\.data': 'file:///etc/hostname' cannot be followed"):
        graph.mutate(INSERT, params={"n": "x", "d": "file:///etc/hostname"})


def test_no_reference_is_followed_by_default(photos, tmp_path):
    og.init(tmp_path / "g", SCHEMA, sync=False)
    graph = og.open(tmp_path / "g", sync=False)
    with pytest.raises(InputError, match="is an external reference, which is not allowed here"):
        graph.mutate(INSERT, params={"n": "x", "d": f"file://{photos}/a.bin"})
    again = og.open(tmp_path / "g", sync=False, blob_sources=[photos])
    again.mutate(INSERT, params={"n": "x", "d": f"file://{photos}/a.bin"})
    assert again.to_arrow("Photo")["data"].to_pylist() == [b"\x00a"]
