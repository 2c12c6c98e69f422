"""The OpenAPI document of a running server, encoded once per form.

Route functions cannot import `openapi`, which imports the route table; this module imports it when it is called.
"""

from __future__ import annotations

from functools import cache

from omnigraph.wire.document import encoder


@cache
def openapi_bytes(*, nested: bool, secured: bool) -> bytes:
    """Return the encoded document."""
    from omnigraph.server.api_description.openapi import openapi_document  # noqa: PLC0415 (the route table imports the routes)

    return encoder.encode(openapi_document(nested=nested, secured=secured))
