"""Interrupts that arrive while modules are imported."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from omnigraph.large_modules import importing_large_modules


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Interrupts are raised, also where the tests run in the background, which ignores them."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


def test_interrupt_during_import_is_raised_afterwards():
    before = signal.getsignal(signal.SIGINT)
    finished = []

    def interrupted_import() -> None:
        with importing_large_modules():
            signal.raise_signal(signal.SIGINT)
            finished.append("import")

    with pytest.raises(KeyboardInterrupt):
        interrupted_import()
    assert finished == ["import"]
    assert signal.getsignal(signal.SIGINT) is before


def test_import_in_another_thread_keeps_the_handler():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work() -> None:
        with importing_large_modules():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_nested_block_hands_the_interrupt_to_the_outer_one():
    finished = []

    def interrupted_import() -> None:
        with importing_large_modules():
            with importing_large_modules():
                signal.raise_signal(signal.SIGINT)
                finished.append("inner")
            finished.append("outer")

    with pytest.raises(KeyboardInterrupt):
        interrupted_import()
    assert finished == ["inner", "outer"]
