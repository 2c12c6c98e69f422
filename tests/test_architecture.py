"""ARCHITECTURE.md lists every module, and its flows name files and functions that exist.

To rewrite the listing, run the tests with `OMNIGRAPH_UPDATE_GOLDEN=1` and read the difference.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "omnigraph"
PAGE = ROOT / "ARCHITECTURE.md"
LISTING = re.compile(r"(?s)(## Layout\n.*?```\n)(.*?)(```)")
WIDTH = 150
LINES_MAX = 270
"""About four screens, without the generated listing."""
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def listing() -> str:
    """One paragraph per folder: its path and the names of its modules."""
    rows = []
    for folder in sorted({path.parent for path in SOURCE.rglob("*.py")}, key=lambda path: path.parts):
        names = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("__"))
        if names:
            head = str(folder.relative_to(SOURCE).as_posix()) + "/" if folder != SOURCE else "omnigraph/"
            rows += textwrap.wrap(
                " ".join(names), WIDTH, initial_indent=f"{head:<24}", subsequent_indent=" " * 24, break_on_hyphens=False
            )
    return "\n".join(rows) + "\n"


def test_listing_is_current():
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        PAGE.write_text(LISTING.sub(lambda match: match[1] + listing() + match[3], text), encoding="utf-8")
        return
    found = LISTING.search(text)
    assert found is not None
    assert found[2] == listing()


def test_page_is_short():
    text = LISTING.sub("", PAGE.read_text(encoding="utf-8"))
    assert len(text.splitlines()) <= LINES_MAX


def test_every_named_file_exists():
    for name in set(re.findall(r"`([\w/]+\.py)`", PAGE.read_text(encoding="utf-8"))):
        assert any(SOURCE.rglob(Path(name).name)) if "/" not in name else (SOURCE / name).exists(), name


def names_of(path: Path) -> set[str]:
    """The functions, classes and methods (`Class.method`) that a module defines."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, _FUNCTIONS | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, _FUNCTIONS)}
    return found


def test_every_named_function_exists():
    pairs = re.findall(r"`([\w/]+\.py)` `([\w.]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(pairs) > 25
    for file, name in pairs:
        assert name in names_of(SOURCE / file), f"{file} {name}"
