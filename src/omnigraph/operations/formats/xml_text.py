"""Text of XML files: escapes, and the attributes of elements."""

from __future__ import annotations

import re

_TEXT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_ATTRIBUTE = {**_TEXT, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"}
_IN_TEXT = re.compile("[&<>\r]")
_IN_ATTRIBUTE = re.compile('[&<>\r"\n\t]')

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def xml_text(text: str) -> str:
    """Escape the text of an element; line breaks are kept as they are written."""
    return _IN_TEXT.sub(lambda match: _TEXT[match[0]], text)


def xml_attribute(text: str) -> str:
    """Escape and quote the value of an attribute."""
    return '"' + _IN_ATTRIBUTE.sub(lambda match: _ATTRIBUTE[match[0]], text) + '"'
