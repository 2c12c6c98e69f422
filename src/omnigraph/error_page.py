"""The page of error codes, `docs/errors.md`, as data."""

from __future__ import annotations

import re
from pathlib import Path

from omnigraph.errors import NotFound

_PAGE = "docs/errors.md"


def error_pages() -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Return the sections of numbered codes, and the class and meaning of named codes."""
    text = _read_page()
    parts = re.split(r"(?m)^### (\S+).*$", text)
    pages = {code: re.split(r"(?m)^## ", body)[0].strip() for code, body in zip(parts[1::2], parts[2::2], strict=True)}
    words = {
        code: (class_, meaning)
        for code, class_, meaning in re.findall(r"(?m)^\| `([a-z_0-9]+)` \| (?:`(\w+)`|—) \| (.+) \|$", text)
    }
    return pages, words


def _read_page() -> str:
    """Read the page from the installation or from the repository."""
    package = Path(__file__).parent
    for path in (package / _PAGE, package.parents[1] / _PAGE):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise NotFound("the page of error codes is not installed", code="no_error_page")
