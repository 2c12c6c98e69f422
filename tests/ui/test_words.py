"""The word lists of the editor are those of the languages."""

from __future__ import annotations

import json
import os
from pathlib import Path

from omnigraph.query.complete import CLAUSES, STATEMENTS
from omnigraph.query.functions import FUNCTIONS
from omnigraph.query.syntax.parse_cases import _WORDS as CASE_WORDS
from omnigraph.query.syntax.parse_paths import _WORDS as PATH_WORDS
from omnigraph.schema.parser import _KEYWORDS as SCHEMA_WORDS
from omnigraph.types import SCALARS

WORDS = Path(__file__).parents[2] / "web" / "src" / "editor" / "words.json"
OTHER = (
    *("not", "optional", "upsert", "set", "where", "case", "when", "then", "else", "end"),
    *("implements", "enum", "new", "existing", "at", "during"),
)
"""Words that the parsers compare one by one."""


def current() -> str:
    keywords = {*CLAUSES, *STATEMENTS, *CASE_WORDS, *PATH_WORDS, *SCHEMA_WORDS, *OTHER}
    words = {"keywords": sorted(keywords), "functions": sorted(FUNCTIONS), "scalars": sorted({*SCALARS, "Vector"})}
    return json.dumps(words, indent=2) + "\n"


def test_the_words_of_the_editor_are_current() -> None:
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        WORDS.write_text(current(), encoding="utf-8")
    assert WORDS.read_text(encoding="utf-8") == current(), "run with OMNIGRAPH_UPDATE_GOLDEN=1, then 'make web'"
