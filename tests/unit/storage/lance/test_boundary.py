"""Exceptions of native code at the storage boundary: interrupts stay interrupts, panics become storage errors."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.storage.files.location import locate
from omnigraph.storage.lance.lance_errors import is_interrupt, lance_errors, storage_failure, store_errors
from support.writes import new_graph, node

SCHEMA = "node P { name: String @key  text: String? @index }"


class PanicException(BaseException):
    """A panic as Rust bindings define it: not derived from `Exception`."""


def caught(errors: Callable[[], tuple[type[BaseException], ...]], call: Callable[[], object]) -> BaseException | None:
    """Return what is caught when a call raises."""
    try:
        call()
    except errors() as error:
        return error
    return None


def raising(error: BaseException) -> Callable[[], object]:
    def call() -> object:
        raise error

    return call


@pytest.mark.parametrize("errors", [lance_errors, store_errors])
@pytest.mark.parametrize("kind", [PanicException, OSError, RuntimeError, ValueError])
def test_errors_and_panics_are_caught(errors, kind):
    error = kind("gone wrong")
    assert caught(errors, raising(error)) is error


@pytest.mark.parametrize("errors", [lance_errors, store_errors])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_system_exit_and_interrupt_are_not_caught(errors, kind):
    with pytest.raises(kind):
        caught(errors, raising(kind()))


def test_a_panic_is_a_storage_error(tmp_path):
    failure = storage_failure(
        PanicException("index out of bounds"), locate(str(tmp_path), {}), "table 't' cannot be read"
    )
    assert isinstance(failure, StorageError)
    assert failure.code == "storage_panic"
    assert "index out of bounds" in failure.message
    full = storage_failure(PanicException("No space left on device (os error 28)"), locate(str(tmp_path), {}), "x")
    assert full.code == "disk_full"


def test_the_cause_of_a_failed_write_is_shown(tmp_path):
    name = "/".join(["folder"] * 40)
    text = (
        f"LanceError(IO): single PUT of {name} failed after 68.4µs (4481 bytes, LANCE_UPLOAD_CONCURRENCY=10): Generic "
        "LocalFileSystem error: Unable to copy data to file: {}, /home/lance-io/src/object_writer.rs:689:9"
    )
    full = storage_failure(
        OSError(text.format("No space left on device (os error 28)")), locate(str(tmp_path), {}), "x"
    )
    assert full.code == "disk_full"
    other = storage_failure(OSError(text.format("File too large")), locate(str(tmp_path), {}), "x")
    assert (other.code, "LANCE_" in other.message) == ("storage_error", False)


@pytest.mark.parametrize("errors", [lance_errors, store_errors])
@pytest.mark.parametrize(
    "error", [pa.ArrowInvalid("External error: KeyboardInterrupt: "), OSError("x KeyboardInterrupt: , file.rs:1")]
)
def test_a_converted_interrupt_is_raised_as_interrupt(errors, error):
    with pytest.raises(KeyboardInterrupt):
        caught(errors, raising(error))


def test_an_interrupt_is_recognised_by_its_cause():
    error = ValueError("stopped")
    error.__cause__ = KeyboardInterrupt()
    assert is_interrupt(error)
    error.__cause__ = error
    assert not is_interrupt(error)
    assert not is_interrupt(ValueError("a text about KeyboardInterrupt"))


def test_an_interrupt_inside_a_lance_call_is_raised_as_interrupt(tmp_path):
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"x": [1]})
        raise KeyboardInterrupt

    schema = pa.schema({"x": pa.int64()})
    with pytest.raises(KeyboardInterrupt):
        caught(lance_errors, lambda: lance.write_dataset(batches(), str(tmp_path / "t"), schema=schema))


def interrupt(tmp_path: Path, times: int) -> list[str]:
    """Return how interrupts of a process that works on a graph surfaced."""
    graph = new_graph(tmp_path, SCHEMA, *(node("P", name=f"p{at}", text="x y") for at in range(500)))
    script = Path(__file__).parents[3] / "support" / "interrupted.py"
    with subprocess.Popen(
        [sys.executable, str(script), graph.uri, str(times)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            random, found = Random(times), []
            for _ in range(times):
                try:
                    process.wait(random.random() * 0.1)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGINT)
                found.append(_next_line(process))
        finally:
            process.kill()
    assert graph.verify() == []
    return found


def _next_line(process: subprocess.Popen[str]) -> str:
    """Return the next line of a process; interrupt it again if there is none.

    Python ignores an exception in a destructor or a callback of the garbage collector, also an interrupt.
    """
    assert process.stdout is not None
    for _ in range(20):
        if select.select([process.stdout], [], [], 3)[0]:
            return process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
    return "no answer to an interrupt"


def test_interrupts_surface_as_interrupts(tmp_path):
    assert set(interrupt(tmp_path, 15)) == {"KeyboardInterrupt"}


@pytest.mark.long
def test_interrupts_surface_as_interrupts_long(tmp_path):
    assert set(interrupt(tmp_path, 400)) == {"KeyboardInterrupt"}


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of a few megabytes; requires root."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root mounts file systems")
def test_a_full_disk_during_optimize_is_a_storage_error(small_disk):
    graph = new_graph(small_disk, SCHEMA, *(node("P", name=f"p{at}", text=f"word {at}") for at in range(500)))
    for number in range(3):
        graph.load([node("P", name=f"q{number}-{at}", text="more") for at in range(200)], mode="append")
    filler, codes = small_disk / "filler", set()
    for left in (0, 4_096, 16_384, 65_536):
        disk = os.statvfs(small_disk)
        filler.write_bytes(b"x" * max(disk.f_bavail * disk.f_frsize - left, 0))
        try:
            graph.optimize()
        except OmniGraphError as error:
            codes.add(error.code)
        filler.unlink()
    assert codes == {"disk_full"}
    graph.optimize()
    assert graph.verify() == []
    assert graph.query("query q() { match { $p: P } return { count($p) as n } }").to_pylist() == [{"n": 1_100}]


def test_messages_contain_no_source_line_of_the_storage_library(tmp_path):
    graph = new_graph(tmp_path, "node P { name: String @key }", node("P", name="a"))
    shutil.rmtree(tmp_path / "g")
    with pytest.raises(OmniGraphError) as caught:
        graph.commits()
    assert caught.value.code == "missing_file"
    assert ".rs" not in caught.value.message
