"""Types that msgspec decodes to, prepared by one thread at a time.

msgspec describes a class to itself when a value is first decoded to it. A thread that decodes to the class while
another one describes it reads an incomplete description, and the process ends with a segmentation fault.
"""

from __future__ import annotations

from threading import RLock
from typing import TypeVar

import msgspec

T = TypeVar("T")

_lock = RLock()
_described: set[object] = set()


def decodable(type_: T) -> T:
    """Return a type to which every thread can decode: it is described completely, with all types that it contains."""
    if type_ not in _described:
        with _lock:
            msgspec.json.Decoder(type_)
            _described.add(type_)
    return type_
