"""A document as one HTML file: script, style and data inside, no request ever.

The content security policy names the hashes of the script and the style, so that nothing in the data can run. The file
`saved.html` of the explorer is the template; the page fills the same one for its export.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any

from omnigraph.errors import InputError, OmniGraphError
from omnigraph.file_replacement import replace_file
from omnigraph.notebook.document import BYTES_MAX, Document, document_of
from omnigraph.ui import STATIC

_STYLE = "html{color-scheme:light dark}body{margin:0;padding:16px;font-family:system-ui,sans-serif}"
_SUFFIXES = (".html", ".htm")


def page_of(shown: Document) -> str:
    """Return the file of a document."""
    script = _asset("widget.js")
    values = {
        "title": escape(str(shown["title"])),
        "script-hash": _hash(script),
        "style-hash": _hash(_STYLE),
        "style": _STYLE,
        "data": _data(shown),
        "script": script,
    }
    page = _asset("saved.html")
    head, _, rest = page.partition("{data}")
    middle, _, tail = rest.partition("{script}")
    for name in ("title", "script-hash", "style-hash", "style"):
        head = head.replace(f"{{{name}}}", values[name])
    return "".join((head, values["data"], middle, values["script"], tail))


def save(shown: Any, path: str | Path) -> Path:
    """Write a result, a difference or a schema as an HTML file, and return its path."""
    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        raise InputError(f"'{target.name}' is not an HTML file", hint="name a file with the ending .html")
    replace_file(target.resolve(), page_of(document_of(shown)).encode())
    return target


def _data(shown: Document) -> str:
    """Return the document as JSON that no parser of HTML can leave, within the limit of a file."""
    text = json.dumps(shown, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    if len(text.encode()) > BYTES_MAX and shown["table"] is not None:
        kept = {
            **shown,
            "table": None,
            "notice": f"{shown['notice'] or ''} The table is left out: it is too large.".strip(),
        }
        return _data(kept)
    return text


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    path = STATIC / name
    if not path.is_file():
        raise OmniGraphError(f"'{name}' of the explorer is missing", hint="run 'make web', or install a release")
    return path.read_text(encoding="utf-8")
