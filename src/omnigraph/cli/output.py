"""What goes to stdout."""

from __future__ import annotations

import json
from typing import Any


def print_json(document: Any) -> None:
    """One JSON document, indented by two, and a newline."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def plural(count: int, word: str, plural_form: str | None = None) -> str:
    """`1 query`, `2 queries`."""
    return f"{count} {word if count == 1 else plural_form or word + 's'}"
