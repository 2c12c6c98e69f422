"""The page of error codes, `docs/errors.md`, as data."""

from __future__ import annotations

import re
from pathlib import Path

from omnigraph.errors import NotFound
from omnigraph.suggestions import did_you_mean

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


def explain_code(code: str) -> str:
    """Return the explanation of an error code."""
    pages, words = error_pages()
    for known, text in pages.items():
        if known.lower() == code.lower():
            return f"{known}\n\n{_plain(text)}\n"
    for known, (class_, meaning) in words.items():
        if known.lower() == code.lower():
            return f"{known} ({class_})\n\n{meaning[0].upper()}{meaning[1:]}.\n"
    raise NotFound(
        f"there is no error code '{code}'",
        code="unknown_code",
        hint=(len(code) > 4 and did_you_mean(code, [*pages, *words]))
        or "codes look like S11, T7, OG-MF-103 or branch_not_found",
    )


def _plain(markdown: str) -> str:
    """Convert Markdown for a terminal: code is indented, links are reduced to their text."""
    lines: list[str] = []
    code = False
    for line in markdown.splitlines():
        if line.startswith("```"):
            code = not code
            continue
        lines.append(f"    {line}" if code else re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", line).replace("**", ""))
    return "\n".join(lines)


def _read_page() -> str:
    """Read the page from the installation or from the repository."""
    package = Path(__file__).parent
    for path in (package / _PAGE, package.parents[1] / _PAGE):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise NotFound("the page of error codes is not installed", code="no_error_page")
