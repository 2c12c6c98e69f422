"""Replacement of tuning constants."""

from __future__ import annotations

import pytest

from omnigraph.engine import tuning
from omnigraph.engine.tuning import Tuning


def test_replaced_constants_are_restored():
    before = tuning.current
    with tuning.replaced(batch_rows=4) as changed, tuning.replaced(poll_s=1.0):
        assert changed.batch_rows == tuning.current.batch_rows == 4
        assert tuning.current.poll_s == 1.0
    assert tuning.current is before
    assert tuning.current == Tuning()


def test_constants_are_restored_after_an_error():
    def fail() -> None:
        with tuning.replaced(batch_rows=4):
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert tuning.current == Tuning()


def test_unknown_constant_is_refused():
    with pytest.raises(TypeError), tuning.replaced(no_such_constant=1):
        pass
