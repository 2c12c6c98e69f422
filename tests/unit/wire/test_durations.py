"""Durations in text form."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InputError
from omnigraph.wire.durations import duration_text, parse_duration


@given(st.timedeltas(timedelta(0), timedelta(days=400_000)))
def test_a_duration_is_the_same_after_its_text(duration: timedelta) -> None:
    assert parse_duration(duration_text(duration)) == duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [("90s", timedelta(seconds=90)), ("1.5m", timedelta(seconds=90)), ("2w", timedelta(14))],
)
def test_units(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text", ["", "5", "1.5", "-1s", "1.s", ".5s", "1y", "٣d", "1d\n", "1.1234567s", "9" * 30, "9" * 19 + "w"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a duration"):
        parse_duration(text)
