"""docs/environment.md lists exactly the variables that the program reads."""

from __future__ import annotations

import re
from pathlib import Path

from omnigraph.config_keys import SERVER_SETTINGS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/environment.md").read_text(encoding="utf-8")
SERVER_PAGE = (ROOT / "docs/server-config.md").read_text(encoding="utf-8")
NAME = r"(?:OMNIGRAPH|NANOGRAPH)_[A-Z0-9_]*[A-Z0-9]\b"


def names_in_source() -> set[str]:
    """Return the variables that the source names in quotes, and those of the prefix of embeddings."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    found = {name for text in texts for name in re.findall(rf'["`_]({NAME})["`=]', text)}
    return found - {"OMNIGRAPH_EMBED", "OMNIGRAPH_GEMINI"}


def names_on(page: str) -> set[str]:
    return set(re.findall(NAME, page))


def test_every_variable_of_the_source_is_documented() -> None:
    of_settings = {name for setting in SERVER_SETTINGS for name in (setting.variable, *setting.older_variables)}
    assert of_settings <= names_on(SERVER_PAGE)
    assert sorted(names_in_source() - of_settings - names_on(PAGE)) == []


def test_every_documented_variable_is_read() -> None:
    read = {name for setting in SERVER_SETTINGS for name in (setting.variable, *setting.older_variables)}
    read |= names_in_source()
    # The names of embeddings are made of a prefix and the word of the setting.
    config = (ROOT / "src/omnigraph/embedding/config.py").read_text(encoding="utf-8")
    read |= {f"OMNIGRAPH_EMBED_{word}" for word in re.findall(r'"([A-Z_]+)"', config)}
    assert sorted(names_on(PAGE) - read) == []
