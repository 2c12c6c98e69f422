"""The cache of compiled kernels: who may write to it, what it contains, and what happens without it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache import user_folder
from omnigraph.engine.kernels import bfs_kernels, bm25, masked_sums, native_library, object_cache, postings, vectors
from omnigraph.engine.kernels.addresses import address_of
from omnigraph.engine.kernels.native_library import Unusable, load_object
from omnigraph.engine.search.posting_lists import PADDING, encode_lists

LOOPS = {**bfs_kernels.LOOPS, **bm25.LOOPS, **masked_sums.LOOPS, **postings.LOOPS, **vectors.LOOPS}


@pytest.fixture(scope="module")
def compiled() -> bytes:
    """The object file of the shared cache of the tests, which the first test fills."""
    assert kernels.load()
    folder, name = object_cache.cache_folder(os.environ), object_cache.object_name()
    assert folder is not None
    assert name is not None
    data = object_cache.read_object(folder, name)
    assert data is not None
    return data


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv(user_folder.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


def fill(cache: Path, data: bytes) -> Path:
    name = object_cache.object_name()
    assert name is not None
    assert user_folder.make_folder(cache)
    object_cache.write_object(cache, name, data)
    return cache / name


def test_the_folder_is_that_of_the_user(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert object_cache.cache_folder({"OMNIGRAPH_CACHE_DIR": "/x", "HOME": home}) == Path("/x/kernels")
    assert object_cache.cache_folder({"OMNIGRAPH_CACHE_DIR": "off", "HOME": home}) is None
    assert object_cache.cache_folder({}) is None
    assert object_cache.cache_folder({"HOME": "/nowhere"}) is None


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_the_folder_of_linux(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert object_cache.cache_folder({"HOME": home}) == tmp_path / ".cache/omnigraph/kernels"
    assert object_cache.cache_folder({"HOME": home, "XDG_CACHE_HOME": "/c"}) == Path("/c/omnigraph/kernels")
    assert object_cache.cache_folder({"HOME": home, "XDG_CACHE_HOME": "c"}) == tmp_path / ".cache/omnigraph/kernels"


def test_the_name_depends_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    own = object_cache.object_name()
    assert own == object_cache.object_name()
    monkeypatch.setattr(object_cache, "_processor", lambda: "another")
    assert object_cache.object_name() != own


def test_kernels_load_without_numba(cache: Path, compiled: bytes) -> None:
    fill(cache, compiled)
    code = (
        "import sys; from omnigraph.engine import kernels\n"
        "assert kernels.load() and kernels.find('vectors') is not None\n"
        "assert 'llvmlite.binding' in sys.modules and 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_is_not_used(
    cache: Path, compiled: bytes, kernel_loader: kernels.KernelLoader, mode: int
) -> None:
    fill(cache, compiled)
    assert kernel_loader.load_cached()
    cache.chmod(mode)
    with kernels.isolated() as loader:
        assert not loader.load_cached()
        assert not user_folder.make_folder(cache)


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_a_file_that_others_can_write_is_not_used(
    cache: Path, compiled: bytes, kernel_loader: kernels.KernelLoader
) -> None:
    fill(cache, compiled).chmod(0o620)
    assert not kernel_loader.load_cached()


@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_not_used(cache: Path, compiled: bytes, kernel_loader: kernels.KernelLoader) -> None:
    path = fill(cache, compiled)
    os.chown(path, 65_534, 65_534)
    assert not kernel_loader.load_cached()
    os.chown(path, 0, 0)
    os.chown(cache, 65_534, 65_534)
    assert not kernel_loader.load_cached()


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_file_is_reported_and_not_used(
    cache: Path, compiled: bytes, kernel_loader: kernels.KernelLoader, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    changed = bytearray(compiled)
    changed[-100] ^= 1
    fill(cache, {"cut": compiled[:-1], "changed": bytes(changed), "empty": b""}[damage])
    assert not kernel_loader.load_cached()
    assert "no compiled kernels: the object file is damaged" in caplog.text
    assert kernels.find("bm25") is None


def test_code_for_another_processor_is_refused(compiled: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    load_object(compiled)
    monkeypatch.setattr(native_library, "_host", lambda _: ["another", "machine", ""])
    with pytest.raises(Unusable, match="another processor"):
        load_object(compiled)


def test_old_files_are_removed(cache: Path, compiled: bytes) -> None:
    assert user_folder.make_folder(cache)
    old, recent = cache / "a.object", cache / "b.object"
    for path, age in ((old, 61 * 86_400), (recent, 59 * 86_400)):
        path.write_bytes(b"")
        os.utime(path, (time.time() - age,) * 2)
    path = fill(cache, compiled)
    assert sorted(cache.iterdir()) == sorted([recent, path])


def test_use_is_recorded(cache: Path, compiled: bytes) -> None:
    path = fill(cache, compiled)
    before = time.time() - 30 * 86_400
    os.utime(path, (before, before))
    assert object_cache.read_object(cache, path.name) == compiled
    assert path.stat().st_mtime > before + 86_400


def test_without_a_writable_cache_kernels_are_compiled_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bytes, kernel_loader: kernels.KernelLoader
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(user_folder.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(native_library, "compile_object", lambda loops: compiled if set(loops) == set(LOOPS) else b"")
    assert kernels.load()
    assert kernels.find("bfs_kernels") is not None
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_long_lived_process_without_a_cache_compiles_in_the_background(
    monkeypatch: pytest.MonkeyPatch, compiled: bytes, kernel_loader: kernels.KernelLoader
) -> None:
    monkeypatch.setenv(user_folder.VARIABLE, "off")
    monkeypatch.setattr(native_library, "compile_object", lambda _: compiled)
    kernel_loader.spend(tuning.current.kernel_compile_s / 2)
    assert kernels.find("bm25", 1e9) is None
    assert not kernel_loader.asked
    before = set(threading.enumerate())
    kernel_loader.spend(tuning.current.kernel_compile_s)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    assert kernels.find("bm25") is not None


def test_missing_kernels_are_compiled_by_another_process(cache: Path, kernel_loader: kernels.KernelLoader) -> None:
    """The process that runs the query neither waits nor compiles; afterwards it loads the kernels."""
    kernel_loader.spend(tuning.current.kernel_build_s / 2)
    assert not cache.exists()
    before = set(threading.enumerate())
    kernel_loader.spend(tuning.current.kernel_build_s)
    assert kernel_loader.asked
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon
    thread.join(120)
    assert kernels.find("vectors") is not None
    assert [path.name for path in cache.glob("*.object")] == [object_cache.object_name()]
    assert not list(cache.glob(".new-*"))


def test_builders_wait_for_each_other(cache: Path, compiled: bytes) -> None:
    """A builder that waited finds the file of the other and does not compile."""
    name = object_cache.object_name()
    assert name is not None
    assert user_folder.make_folder(cache)
    with object_cache.building(cache, name):
        code = (
            "from omnigraph.engine.kernels import build, native_library\n"
            "def refuse(loops): raise AssertionError('compiled twice')\n"
            "native_library.compile_object = refuse\n"
            "build.main()\n"
        )
        other = subprocess.Popen([sys.executable, "-c", code])
        object_cache.write_object(cache, name, compiled)
    assert other.wait(60) == 0


def test_the_builder_does_nothing_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {**os.environ, user_folder.VARIABLE: "off"}
    subprocess.run([sys.executable, "-m", "omnigraph.engine.kernels.build"], check=True, env=env, timeout=60)


def test_arrays_are_checked() -> None:
    assert address_of(np.zeros(2), np.dtype(np.float64))
    read_only = np.zeros(2)
    read_only.flags.writeable = False
    assert address_of(read_only, np.dtype(np.float64))
    with pytest.raises(TypeError, match="contiguous array of float64, not int64"):
        address_of(np.zeros(2, np.int64), np.dtype(np.float64))
    with pytest.raises(TypeError):
        address_of(np.zeros(4)[::2], np.dtype(np.float64))
    with pytest.raises(TypeError):
        address_of(read_only, np.dtype(np.float64), written=True)


def test_code_that_refers_to_other_libraries_is_refused() -> None:
    """The linker of LLVM ends the process if a symbol is missing."""

    def allocates(n: int) -> int:
        return int(np.zeros(n)[0])

    with pytest.raises(Unusable, match="the code refers to"):
        native_library.compile_object({"allocates": native_library.Loop(allocates, ("int64",))})


def interpreted(name: str, *arguments: object) -> int:
    """Run a loop in the interpreter, on arrays."""
    return LOOPS[name].function(*arguments)


@pytest.mark.parametrize("seed", range(3))
def test_compiled_loops_give_the_bits_of_the_interpreter(compiled: bytes, seed: int) -> None:
    library, random = load_object(compiled), np.random.default_rng(seed)
    n, held = 300, 200
    rows = np.sort(random.choice(n, held, replace=False)).astype(np.uint32)
    counts = random.integers(1, 9, held).astype(np.uint32)
    words, offsets = encode_lists(rows, counts, np.array([0, held]))
    words = np.concatenate([words, np.zeros(PADDING, np.uint32)])
    norms, row_map = random.random(50), random.permutation(n).astype(np.int32)
    row_map[random.integers(0, n, 20)] = -1
    for name, kind in (("postings_score_16", np.uint16), ("postings_score_32", np.uint32)):
        lengths = random.integers(0, 50, n).astype(kind)
        outcomes = []
        for run in (library.function(name, LOOPS[name]), lambda *given, name=name: interpreted(name, *given)):
            scores, touched = np.zeros(n), np.full(n, -1)
            place = (words, 0, int(offsets[1]), n, lengths, norms, 1.7, row_map, 1, 0)
            outcomes.append((run(*place, scores, touched, 0), scores.tobytes(), touched.tobytes()))
        assert outcomes[0] == outcomes[1]
    scores = np.round(random.random(n), 1)
    outcomes = []
    for run in (library.function("bm25_best", LOOPS["bm25_best"]), lambda *given: interpreted("bm25_best", *given)):
        found, heap = np.full(n, -1), np.zeros(7)
        outcomes.append((run(scores, np.zeros(0, np.int64), 1, n, heap, 7, found), found.tobytes(), heap.tobytes()))
    assert outcomes[0] == outcomes[1]
