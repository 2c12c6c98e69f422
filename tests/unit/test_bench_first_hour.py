"""The commands of the first hour fit the limit, and the guide shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.first_hour import COMMANDS_MAX, SETS, DataSet

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "infer.md"


@pytest.mark.parametrize("data", SETS, ids=lambda data: data.package)
def test_commands_are_few_and_in_the_guide(data: DataSet) -> None:
    assert len(data.commands) + 1 <= COMMANDS_MAX
    assert not any("--schema" in command for command in data.commands)
    text = GUIDE.read_text(encoding="utf-8")
    for command in (f"pip install omnigraph {data.package}", *data.commands):
        assert command in text
