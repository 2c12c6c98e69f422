"""Removal of secrets from log lines: the last line of defence, since no caller logs a secret.

Masked are tokens of OmniGraph, JSON Web Tokens, the values of `Bearer` and `Authorization`, keys of AWS, values named
as a secret, and the user parts and queries of URLs.
"""

from __future__ import annotations

import re

from omnigraph.redaction import redact

_SUSPECT = (
    *("og_", "://", "bearer", "authorization", "akia", "asia", "secret", "passw", "_token", "-token", "sessiontoken"),
    *("accesstoken", "apikey", "api_key", "api-key", "credential", "signature", "eyj"),
)
"""Lower-case words, one of which is in every text that a mask changes; most lines contain none."""
_MASKS = (
    (re.compile(r"og_[0-9A-Za-z_\-]{32,}"), "og_***"),
    (re.compile(r"eyJ[0-9A-Za-z_\-.]{16,}"), "eyJ***"),
    (re.compile(r"(?i)(authorization\W{1,6}(?:basic|bearer|digest)\s{1,8})[^\s\"']+"), r"\1***"),
    (
        re.compile(r"(?i)(authorization[\"']?\s{0,4}[:=,]\s{0,4}b?[\"']?)(?!(?:basic|bearer|digest)\s)[^\s\"']+"),
        r"\1***",
    ),
    (re.compile(r"(?i)(bearer(?:\s|%20|\+){1,8})[^\s\"']+"), r"\1***"),
    (re.compile(r"(A[KS]IA)[0-9A-Z]{12,}"), r"\1***"),
    (
        re.compile(
            r"(?i)((?:secret|passw(?:or)?d|api[_\-]?key|session[_\-]?token|access[_\-]?token|credential|signature)"
            r"[\w.\-]{0,32}[\"']?\s{0,4}[:=]\s{0,4}b?[\"']?)[^\s\"',;&}]+"
        ),
        r"\1***",
    ),
)
"""Pattern → replacement. Every repetition before the secret is bounded, so the time is linear in the text."""


def is_suspect(text: str) -> bool:
    """Return False if a text certainly contains no secret of a known form; the test is cheap."""
    lower = text.lower()
    return any(word in lower for word in _SUSPECT)


def mask(text: str) -> str:
    """Return a text in which every secret of a known form is replaced by `***`."""
    if not is_suspect(text):
        return text
    text = redact(text)
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return text
