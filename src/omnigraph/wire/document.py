"""Base class of JSON documents, and their conversion from and to plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from omnigraph.decodable import decodable


class Document(msgspec.Struct):
    """A JSON object. The order of the fields is the order of the members; an unset field is absent.

    Fields of a `kw_only` class come after the fields of its subclasses.
    """

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Self:
        """Return the document with these members, named as in JSON; `msgspec.ValidationError` if they do not fit."""
        return msgspec.convert(plain(members), decodable(cls))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data: dict[str, Any] = plain(self)
        return data


def _base_value(value: Any) -> Any:
    """Convert an instance of a subclass of a scalar type, such as `TableKey`, to the scalar type."""
    for scalar in (str, int, float):
        if isinstance(value, scalar):
            return scalar(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


encoder = msgspec.json.Encoder(enc_hook=_base_value)
"""Encodes documents and plain values as JSON."""


def plain(value: Any) -> Any:
    """Convert documents, containers and values to dicts, lists and scalars."""
    return msgspec.to_builtins(value, enc_hook=_base_value)
