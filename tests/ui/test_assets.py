"""The built files of the explorer: they belong to the sources, keep their budgets and load nothing from elsewhere.

Pure Python: a tree without Node is checked completely. CI, which has Node, builds again and compares the bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from omnigraph.ui import STATIC

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
SKIPPED = {"node_modules", "dist", ".vitest"}
KB = 1000
FIRST_SCREEN_MAX = 45 * KB
TOTAL_MAX = 320 * KB
RAW_MAX = 1200 * KB
CHUNKS_MAX = {
    "arrow.js": 16 * KB,
    "editor.js": 125 * KB,
    "picture.js": 55 * KB,
    "widget.js": 90 * KB,
}
"""Entry → its largest size, compressed."""
WIDGET = "widget.js"
"""The module of notebooks and saved files, which no page loads: it has a budget of its own."""
CODE = sorted(path for path in STATIC.glob("*") if path.suffix in (".js", ".css"))
SOURCES = sorted(path for path in (WEB / "src").rglob("*") if path.suffix in (".ts", ".tsx"))
FORBIDDEN = {
    "innerHTML": r"\b(inner|outer)HTML\b",
    "insertAdjacentHTML": r"insertAdjacentHTML",
    "dangerouslySetInnerHTML": r"dangerouslySetInnerHTML",
    "document.write": r"document\s*\.\s*write",
    "eval": r"\beval\s*\(",
    "new Function": r"\bnew\s+Function\b",
    "a timer with a string": r"set(Timeout|Interval)\s*\(\s*[\"'`]",
    "cookies": r"document\s*\.\s*cookie",
}


def compressed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), mtime=0))


def record() -> dict[str, object]:
    data: dict[str, object] = json.loads((STATIC / "BUILD.json").read_text(encoding="utf-8"))
    return data


def source_digest() -> str:
    paths = [path for path in WEB.rglob("*") if path.is_file() and not SKIPPED & set(path.relative_to(WEB).parts)]
    lines = []
    for name, path in sorted((path.relative_to(WEB).as_posix(), path) for path in paths):
        text = path.read_bytes().replace(b"\r\n", b"\n")
        lines.append(f"{name} {hashlib.sha256(text).hexdigest()}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_the_built_files_belong_to_the_sources() -> None:
    assert record()["sources"] == source_digest(), "web/ changed: run 'make web' and commit src/omnigraph/ui/static"


def test_the_built_files_are_those_of_the_build() -> None:
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in STATIC.glob("*")
        if path.name != "BUILD.json"
    }
    assert found == record()["files"], "run 'make web'; conflicts in built files are settled by building again"


def test_sizes_keep_the_budgets() -> None:
    sizes = {path.name: compressed(path) for path in CODE}
    first = record()["first_screen"]
    assert isinstance(first, list)
    assert sum(sizes[name] for name in first) + sizes["app.css"] <= FIRST_SCREEN_MAX
    assert sum(size for name, size in sizes.items() if name != WIDGET) <= TOTAL_MAX
    assert sum(path.stat().st_size for path in STATIC.glob("*") if path.name != WIDGET) <= RAW_MAX
    for name, limit in CHUNKS_MAX.items():
        assert sizes[name] <= limit, name


@pytest.mark.parametrize("path", CODE, ids=lambda path: path.name)
def test_built_files_name_no_other_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[\w./-]+", text)) - {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1998/Math/MathML",
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/1999/xlink",
    }
    assert addresses == set()
    assert "@import" not in text
    assert re.search(r"\beval\s*\(|\bnew Function\b", text) is None


def test_only_preact_assigns_markup() -> None:
    uses = sum(len(re.findall(r"\binnerHTML\b", path.read_text("utf-8"))) for path in CODE if path.name != WIDGET)
    assert len(re.findall(r"\binnerHTML\b", (STATIC / WIDGET).read_text("utf-8"))) <= 2
    assert uses <= 2, "Preact's dangerouslySetInnerHTML, which no source may use, is the only way to markup"


@pytest.mark.parametrize("what", FORBIDDEN)
def test_sources_avoid(what: str) -> None:
    found = [str(path.relative_to(WEB)) for path in SOURCES if re.search(FORBIDDEN[what], path.read_text("utf-8"))]
    assert found == []


def test_every_bundled_package_has_its_licence() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    names = json.loads((WEB / "package.json").read_text(encoding="utf-8"))["dependencies"]
    text = (STATIC / "LICENSES.txt").read_text(encoding="utf-8")
    for line in re.findall(r"^(\S+) (\d\S*) \((.*)\)$", text, re.MULTILINE):
        package, version, licence = line
        assert lock["packages"][f"node_modules/{package}"]["version"] == version
        assert licence in ("MIT", "BSD-3-Clause")
    bundled = set(re.findall(r"^(\S+) \d\S* \(", text, re.MULTILINE))
    assert set(names) <= bundled, "a dependency that is not bundled does not belong to 'dependencies'"


def test_the_lock_file_names_no_registry() -> None:
    assert "://registry" not in (WEB / "package-lock.json").read_text(encoding="utf-8")
