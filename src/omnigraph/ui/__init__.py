"""The files of the web explorer, their headers and the content security policy.

The sources are in `web/`; `make web` builds them into `static/`, which is committed and part of every wheel. This
package knows no graph: the page gets everything from the routes of its server, and its state is in the fragment of the
address, which no server receives.
"""

from __future__ import annotations

import gzip
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

STATIC = Path(__file__).parent / "static"
PAGE = "index.html"
NONCE = "{nonce}"
"""The place of the nonce in the page."""
WORKER = "layout.worker.js"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
    "connect-src {connect}; worker-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types og"
)


@dataclass(frozen=True)
class StaticFile:
    """One built file."""

    body: bytes
    media_type: str

    @cached_property
    def etag(self) -> str:
        """The entity tag, made from the content."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    @cached_property
    def compressed(self) -> bytes:
        """The body, compressed with gzip."""
        return gzip.compress(self.body, mtime=0)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer. A changed file has another tag, so that caches ask before each use."""
        return {**_HEADERS, "ETag": self.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return the built files by name; empty if the explorer was not built."""
    paths = sorted(STATIC.glob("*")) if STATIC.is_dir() else []
    return {path.name: StaticFile(path.read_bytes(), _MEDIA_TYPES[path.suffix]) for path in paths if path.is_file()}


def find_file(name: str) -> StaticFile | None:
    """Return a built file; the page itself is not one of them, because each answer has its own nonce."""
    return static_files().get(name) if name != PAGE else None


def render_page(issuers: Sequence[str] = ()) -> tuple[bytes, Mapping[str, str]] | None:
    """Return the page with a new nonce, and its headers; None if the explorer was not built.

    `issuers` are the origins at which the page may sign in; it sends requests to no other host.
    """
    template = static_files().get(PAGE)
    if template is None:
        return None
    nonce = secrets.token_urlsafe(18)
    policy = _POLICY.format(nonce=nonce, connect=" ".join(("'self'", *dict.fromkeys(issuers))))
    headers = {**_HEADERS, "Cache-Control": "no-store", "Content-Security-Policy": policy}
    return template.body.replace(NONCE.encode(), nonce.encode()), headers
