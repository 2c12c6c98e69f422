"""Ids of nodes and edges in the XML files of an export, and texts that XML cannot hold.

Ids are unique within a table, ids of an XML file within the file: an id of the file is `Type:id`. XML 1.0 has no
control characters; in an id they are written as `%7;`, with the number of the character in hexadecimal.
"""

from __future__ import annotations

import re

NAMESPACE = "urn:omnigraph:graphml:1"
"""The namespace of the attributes that mark a GraphML file of an export."""

NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML 1.0 does not have."""
_ESCAPED = re.compile("[%\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ESCAPE = re.compile("%([0-9A-F]{1,4});")


def typed_id(type_name: str, id_: str) -> str:
    """Return the id of a row in an XML file."""
    return f"{type_name}:{_ESCAPED.sub(_escape, id_)}"


def untyped_id(type_name: str, text: str) -> str | None:
    """Return the id of a row of a type from its id in an XML file; None if it is not the id of such a row."""
    prefix, _, id_ = text.partition(":")
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), id_) if prefix == type_name else None


def _escape(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):X};"
