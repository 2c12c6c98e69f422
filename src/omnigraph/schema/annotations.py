"""The annotations that the schema language defines, and detection of misspelled ones.

Any other annotation is metadata of the user. A name within two edits of a defined one is an error: `@kye` would
otherwise declare a table without a key.
"""

from __future__ import annotations

from functools import lru_cache

from omnigraph.suggestions import within_edits

TEXTS = frozenset({"description", "instruction"})
"""Descriptive annotations for readers and language models; the only metadata that the language defines."""
DEFINED = TEXTS | {"card", "check", "embed", "index", "key", "range", "rename_from", "unique", "valid"}
_EDITS = 2


@lru_cache(maxsize=1024)
def misspelled(name: str) -> str | None:
    """Return the defined annotation that `name` probably means; None for a defined name and for metadata."""
    return None if name in DEFINED else within_edits(name, sorted(DEFINED), _EDITS)
