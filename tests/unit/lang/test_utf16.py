"""Offsets in UTF-16 code units."""

from __future__ import annotations

import pytest

from omnigraph.lang.utf16 import from_utf16, utf16_length

TEXT = "a\U0001f426é\U0001f426b"


@pytest.mark.parametrize(("characters", "units"), [(0, 0), (1, 1), (2, 3), (3, 4), (4, 6), (5, 7)])
def test_offsets_convert_both_ways(characters, units):
    assert utf16_length(TEXT[:characters]) == units
    assert from_utf16(TEXT, units) == characters


def test_an_offset_inside_a_character_is_its_start():
    assert from_utf16(TEXT, 2) == 1
    assert from_utf16(TEXT, 99) == len(TEXT)
    assert from_utf16("abc", 99) == 3
