"""Addresses of arrays, as parameters of compiled loops.

A loop reads memory without checks, so the type and the layout of an array are checked when its address is taken. The
owner of an array that is used by many calls keeps the address beside it: taking it takes as long as a short loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BOOL, INT32, INT64 = np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.int64)


def address_of(array: Any, dtype: Any, *, written: bool = False) -> int:
    """Return the address of the values of a contiguous array; it is valid as long as the array exists."""
    flags = array.flags
    if array.dtype != dtype or not flags.c_contiguous or (written and not flags.writeable):
        raise TypeError(f"a kernel expects a contiguous array of {dtype}, not {array.dtype}")
    address: int = array.__array_interface__["data"][0]
    return address
