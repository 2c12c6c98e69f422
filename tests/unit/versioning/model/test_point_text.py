"""Points of history in text form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InputError
from omnigraph.versioning.model.point_text import parse_point, point_text

EAST = timezone(timedelta(hours=5, minutes=30))
NAMES = st.text(max_size=30) | st.sampled_from(["12", "2026-01-31", "name:x", "version:1", "version:-1", "a..b", "٣"])


@given(NAMES | st.integers(-(10**30), 10**30) | st.datetimes(timezones=st.sampled_from([UTC, EAST])))
def test_a_point_is_the_same_after_its_text(point: str | int | datetime) -> None:
    parsed = parse_point(point_text(point))
    assert (type(parsed), parsed) == (type(point), point)


def test_a_time_without_a_zone_is_in_utc() -> None:
    assert parse_point(point_text(datetime(2026, 1, 31))) == datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize("point", [1.5, True, b"main", ["main"]])
def test_other_values_name_no_point(point: object) -> None:
    with pytest.raises(InputError, match=f"not a {type(point).__name__}"):
        point_text(point)  # type: ignore[arg-type]


def test_ordinary_names_are_written_as_they_are() -> None:
    assert [point_text(point) for point in ("main", "q/2026", 7)] == ["main", "q/2026", "7"]
    assert point_text("2026-01-31") == "name:2026-01-31"
