"""Metadata of commits that callers set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from omnigraph.errors import InputError
from omnigraph.scalar_types.readers import is_unicode

DEFINER = "definer"
"""The actor whose rights a stored query used."""
RESERVED = (
    "affected", "returned", "rows", "rejected", "embedded_rows", "pending_embeddings", "job", "reverts", DEFINER,
    "proposal", "approvers", "trial",
)  # fmt: skip
"""Entries that the engine itself writes."""


def check_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a caller, or raise `InputError` if it is not a JSON object or uses a reserved name."""
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
        if not is_unicode(text) or not all(isinstance(name, str) for name in metadata):
            raise ValueError("a name or a text is not valid")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the metadata of commits is a JSON object: {error}",
            code="bad_metadata",
            hint="give a dict with str names and JSON values, such as {'request_id': '01J…'}",
        ) from error
    for name in metadata:
        if name in RESERVED:
            raise InputError(
                f"the name '{name}' in the metadata of commits is reserved",
                code="bad_metadata",
                hint="choose another name",
            )
    copied: dict[str, Any] = json.loads(text)
    return copied
