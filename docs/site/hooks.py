"""MkDocs hooks: add the root pages and the API reference, adapt Markdown to the site.

The documents are written for the repository. The site needs three changes: links to root pages, links to files that
are not pages, and fences whose info string carries options for the tests.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
ROOT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
}
API_PAGES = (
    "omnigraph.graph.Graph",
    "omnigraph.graph_open",
    "omnigraph.aio.AsyncGraph",
    "omnigraph.engine.result.result.Result",
    "omnigraph.versioning.model.snapshot.Snapshot",
    "omnigraph.engine.exec.cancellation.Cancellation",
    "omnigraph.engine.exec.context.Limits",
    "omnigraph.errors",
)
LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(?m)^```(\w+) .*$")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in `docs`."""
    for name, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    text = "# Python API\n\n" + "\n\n".join(f"::: {name}" for name in API_PAGES) + "\n"
    files.append(File.generated(config, "api.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Adapt the links and fences of one page."""
    source = page.file.src_uri
    if source == "api.md":
        return markdown
    origin = next((root for root, name in ROOT_PAGES.items() if name == source), f"docs/{source}")

    def link(match: re.Match[str]) -> str:
        text, target = match.groups()
        return match[0] if "://" in target or target.startswith("#") else _link(text, target, origin, source)

    return LINK.sub(link, FENCE.sub(r"```\1", markdown))


def _link(text: str, target: str, origin: str, source: str) -> str:
    """The link from the site page `source`; the text alone if the target is a repository file that is not a page."""
    path, mark, anchor = target.partition("#")
    file = (ROOT / origin).parent / path
    if not file.exists():
        return f"[{text}]({target})"  # the strict build reports it
    name = file.resolve().relative_to(ROOT).as_posix()
    if name in ROOT_PAGES:
        place = ROOT_PAGES[name]
    elif name.startswith("docs/") and name.endswith(".md"):
        place = name.removeprefix("docs/")
    else:
        return text
    up = len(PurePosixPath(source).parts) - 1
    return f"[{text}]({'../' * up}{place}{mark}{anchor})"
