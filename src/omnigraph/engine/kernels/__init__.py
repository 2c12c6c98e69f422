"""Compiled kernels, loaded when loading pays.

Some loops cannot run at full speed in numpy. numba compiles them, one module per subject, into one object file of the
user's cache (`object_cache`); a process loads it without numba (`native_library`). Each loop has a numpy fallback with
bit-identical results; the tests compare the two. Floating-point sums have one implementation only
(`engine.exec.reducers`) and no compiled form.

The fallbacks run until their total time, with the estimate of the next call, exceeds the load time; then the kernels
are loaded. If there is no object file yet, another process of low priority compiles it (`build`), so that no query
waits for the compiler. Without a cache, a long-lived process compiles in the background. numba is optional (extra
`kernels`): without it the fallbacks always run.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from omnigraph.engine import tuning
from omnigraph.engine.cache.user_folder import make_folder
from omnigraph.engine.kernels import object_cache

NOT_INSTALLED = "numba is not installed; loops run in numpy (install it: pip install 'omnigraph[kernels]')"

_SUBJECTS = ("bfs_kernels", "bm25", "masked_sums", "postings", "vectors")

_log = logging.getLogger(__name__)


class KernelLoader:
    """The loaded kernels and the total run time of their fallbacks."""

    def __init__(self) -> None:
        self.modules: dict[str, Any] = {}
        self.spent_s = 0.0
        self.asked = False
        """True once the kernels are loaded or being compiled, or cannot be."""
        self.lock = Lock()

    def spend(self, seconds: float) -> None:
        """Add the run time of a fallback; let missing kernels be compiled once the total justifies it."""
        with self.lock:
            self.spent_s += seconds
        if not self.asked and self.spent_s > tuning.current.kernel_build_s:
            self._start(self._way_to_compile)

    def load_if_due(self, work_s: float) -> None:
        """Load the kernels if the fallbacks took, or will take, longer; missing ones are compiled for later."""
        if self.spent_s + work_s > tuning.current.kernel_load_s:
            self._start(self._way_to_load)

    def _start(self, choose: Callable[[], Callable[[], None] | None]) -> None:
        """Choose a way to get the kernels, and take it; the choice is final unless it is None."""
        with self.lock:
            way = None if self.asked else choose()
            self.asked = self.asked or way is not None
        if way is not None:
            way()

    def _way_to_load(self) -> Callable[[], None] | None:
        place = self._place
        if place is not None and object_cache.has_object(*place):
            return self._load_or_build
        return self._way_to_compile()

    def _way_to_compile(self) -> Callable[[], None] | None:
        place = self._place
        if place is not None and object_cache.has_object(*place):
            return None
        if place is not None and _can_start_python() and make_folder(place[0]):
            return self._build
        return self._compile if self.spent_s > tuning.current.kernel_compile_s else None

    def _load_or_build(self) -> None:
        if not self.load_cached() and _can_start_python():
            self._build()

    def _build(self) -> None:
        # A daemon: it waits for another process and does not compile.
        Thread(target=self._build_and_load, name="omnigraph-kernels", daemon=True).start()

    def _compile(self) -> None:
        # Not a daemon: a process that exits during compilation could crash.
        Thread(target=load_into, args=(self,), name="omnigraph-kernels").start()

    @cached_property
    def _place(self) -> tuple[Path, str] | None:
        """The folder and the name of the object file; None if none can be kept."""
        return _place()

    def load_cached(self) -> bool:
        """Load the kernels from the object file; return False if there is none that can be used."""
        place = self._place
        data = None if place is None else object_cache.read_object(*place)
        return data is not None and self.use(data)

    def use(self, data: bytes) -> bool:
        """Load the kernels from the content of an object file; return False if they cannot be loaded."""
        try:
            native = import_module(f"{__name__}.native_library")
            library = native.load_object(data)
            loaded = {name: import_module(f"{__name__}.{name}").Kernels(library) for name in _SUBJECTS}
        except Exception as error:
            # Whatever the linker of LLVM reports, the fallbacks give the same results.
            _log.warning("no compiled kernels: %s", error)
            return False
        self.modules.update(loaded)
        return True

    def _build_and_load(self) -> None:
        """Let another process compile the kernels, then load them."""
        command = [sys.executable, "-P", "-m", f"{__name__}.build"]
        package = str(Path(__file__).parents[3])
        paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
        try:
            subprocess.run(  # noqa: S603 (this interpreter)
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,
                check=False,
            )
        except OSError as error:
            _log.warning("no compiled kernels: %s", error)
            return
        self.load_cached()


def _place() -> tuple[Path, str] | None:
    """Return the folder and the name of the object file; None if none can be kept."""
    folder = object_cache.cache_folder(os.environ)
    name = None if folder is None else object_cache.object_name()
    return None if folder is None or name is None else (folder, name)


def _can_start_python() -> bool:
    """True if `sys.executable` is a Python interpreter; in an embedding program it is another program."""
    return "python" in Path(sys.executable or "").name.lower()


_loader = KernelLoader()


def find(subject: str, work_s: float = 0.0) -> Any | None:
    """Return the kernels of a subject; None if they are not loaded and the numpy fallback must run.

    `work_s` is the estimated run time of the fallback. If it justifies the load time, the kernels are loaded first.
    """
    found = _loader.modules.get(subject)
    if found is None and not _loader.asked:
        _loader.load_if_due(work_s)
        found = _loader.modules.get(subject)
    return found


def fallback_s() -> float:
    """Return the total run time of the numpy fallbacks of this process."""
    return _loader.spent_s


def can_compile() -> bool:
    """Return True if numba is installed."""
    return find_spec("numba") is not None


@contextmanager
def timed_fallback() -> Iterator[None]:
    """Measure a numpy fallback; its run time counts towards loading the kernels."""
    started = time.perf_counter()
    try:
        yield
    finally:
        _loader.spend(time.perf_counter() - started)


@contextmanager
def isolated() -> Iterator[KernelLoader]:
    """Use a new loader, without kernels, until the block ends."""
    global _loader
    before, _loader = _loader, KernelLoader()
    try:
        yield _loader
    finally:
        _loader = before


def load_if_cached() -> bool:
    """Load the kernels now if they are compiled; return True if they are available."""
    if not _loader.modules and _loader.load_cached():
        _loader.asked = True
    return bool(_loader.modules)


def load() -> bool:
    """Load the kernels now, as a server or a benchmark does; return True if they are available.

    Without an object file they are compiled, and kept if the cache is writable.
    """
    return load_into(_loader)


def load_into(loader: KernelLoader) -> bool:
    """Load the kernels of a loader now; return True if they are available."""
    loader.asked = True
    if loader.load_cached():
        return True
    if not can_compile():
        _log.info(NOT_INSTALLED)
        return False
    try:
        data = compiled()
    except Exception as error:
        # numba does not support the platform, or changed: the fallbacks continue to run.
        _log.warning("no compiled kernels: %s", error)
        return False
    return loader.use(data)


def compiled() -> bytes:
    """Compile the kernels and keep the object file if the cache is writable."""
    modules = [import_module(f"{__name__}.{name}") for name in _SUBJECTS]
    native = import_module(f"{__name__}.native_library")
    data: bytes = native.compile_object({name: loop for module in modules for name, loop in module.LOOPS.items()})
    place = _place()
    if place is not None and make_folder(place[0]):
        try:
            object_cache.write_object(*place, data)
        except OSError as error:
            _log.info("the compiled kernels are not kept: %s", error)
    return data
