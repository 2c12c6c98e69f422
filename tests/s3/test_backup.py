"""A backup of a bucket during writes, in the order of docs/guides/operate.md."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import obstore
from obstore.store import S3Store

import omnigraph as og
from support.commands import SCHEMA
from support.s3 import S3
from support.serving import WAIT_S
from support.waiting import wait_for

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "operate.md"
NAMES = "query names() { match { $p: Person } return { $p.name } }"
LOG, VERSIONS, MANIFEST = "__log/", "__manifest/_versions/", "__manifest/"
STEPS: tuple[Callable[[str], bool], ...] = (
    lambda key: key.startswith(LOG),
    lambda key: key.startswith(VERSIONS),
    lambda key: key.startswith(MANIFEST) and not key.startswith(VERSIONS),
    lambda key: not key.startswith("__"),
)


def copy_objects(s3: S3, source: str, target: str, wanted: Callable[[str], bool]) -> None:
    """List a prefix, then copy the objects with a wanted key, as `aws s3 cp --recursive` does."""
    place, other = urlsplit(source), urlsplit(target)
    store = S3Store(
        place.netloc,
        aws_access_key_id=s3.environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=s3.environ["AWS_SECRET_ACCESS_KEY"],
        aws_region=s3.environ["AWS_REGION"],
        aws_endpoint=s3.environ["AWS_ENDPOINT_URL_S3"],
        client_options={"allow_http": True},
    )
    prefix = place.path.strip("/")
    keys = [item["path"].removeprefix(f"{prefix}/") for batch in obstore.list(store, prefix) for item in batch]
    for key in filter(wanted, keys):
        try:
            data = obstore.get(store, f"{prefix}/{key}").bytes()
        except FileNotFoundError:
            continue  # an old version of the manifest, or a file of a write in progress
        obstore.put(store, f"{other.path.strip('/')}/{key}", bytes(data))


def test_the_guide_has_the_order_of_this_test():
    commands = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("aws s3 cp")]
    marks = (LOG, VERSIONS, "--exclude '_versions/*'", "--exclude '__*'")
    assert [mark in command for mark, command in zip(marks, commands, strict=True)] == [True] * 4


def test_a_copy_of_a_bucket_during_writes_is_complete(s3: S3):
    source, target = s3.new_place(), s3.new_place()
    og.init(source, SCHEMA, environ=s3.environ)
    written: list[str] = []
    stopped = threading.Event()

    def write() -> None:
        graph = og.open(source, environ=s3.environ)
        while not stopped.is_set():
            graph.load([{"type": "Person", "data": {"name": f"person {len(written)}"}}], mode="append")
            written.append(f"person {len(written)}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for(lambda: len(written) > 3, "the first commits")
        before = {*written}
        for step, between in zip(STEPS, (70, 3, 3, 3), strict=True):
            reached = len(written) + between
            copy_objects(s3, source, target, step)
            wait_for(lambda reached=reached: len(written) >= reached, "commits during the copy")
    finally:
        stopped.set()
        writer.join(WAIT_S)
    copy = og.open(target, environ=s3.environ)
    assert copy.verify(deep=True) == []
    names = {row["p.name"] for row in copy.query(NAMES)}
    assert before <= names <= {*written}
    copy.load([{"type": "Person", "data": {"name": "last"}}], mode="append")
    assert copy.verify(deep=True) == []
