"""Search of bytes and decoded columns for many values at once.

A few values are searched one after the other. For more values, the windows of eight bytes (four for short values) at
all offsets are looked up in a table of the windows with which the values begin, so the cost depends on the number of
bytes and hardly on the number of values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InputError

VALUE_BYTES_MIN = 4
_ONE_BY_ONE = 16
"""The number of values up to which searching one after the other is faster."""
_WIDTHS = (8, 4)
"""Sizes of windows in bytes."""
_TABLE_BITS = 18
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_PART_BYTES = 1 << 20
"""Bytes whose windows are compared at once: their hashes stay in the cache of the processor."""

Words = npt.NDArray[np.uint64]


class ValueSearch:
    """The searched values and the bytes that represent them."""

    def __init__(self, values: Sequence[str | bytes]) -> None:
        self._shown: dict[bytes, str] = {}
        for value in values:
            shown = value if isinstance(value, str) else value.hex()
            forms = [value] if isinstance(value, bytes) else [value.encode(), json.dumps(value)[1:-1].encode()]
            for form in forms:
                if len(form) < VALUE_BYTES_MIN:
                    raise InputError(
                        f"the value '{shown}' is too short to be searched",
                        code="bad_purge_value",
                        hint=f"give values of at least {VALUE_BYTES_MIN} bytes; ids are compared by their digests",
                    )
                self._shown[form] = shown
        self.longest = max(map(len, self._shown), default=0)
        self._windows = _windows_of(self._shown) if len(self._shown) > _ONE_BY_ONE else ()

    def __bool__(self) -> bool:
        return bool(self._shown)

    def found_in(self, data: bytes | memoryview) -> set[str]:
        """Return the values that occur in some bytes."""
        return {self._shown[form] for form in self._forms_in(data)}

    def found_in_chunks(self, chunks: Iterator[bytes]) -> set[str]:
        """Return the values that occur in consecutive bytes."""
        found: set[str] = set()
        tail = b""
        for chunk in chunks:
            data = tail + chunk if tail else chunk
            found |= self.found_in(data)
            tail = data[len(data) - self.longest + 1 :] if len(data) >= self.longest else data
        return found

    def found_in_array(self, array: pa.Array) -> set[str]:
        """Return the values that occur in a value of a column."""
        found: set[str] = set()
        if not self._shown:
            return found
        for leaf in _leaves(array):
            data = _content(leaf)
            forms = self._forms_in(data) if len(data) else set()
            if _is_text(leaf.type) or _is_binary(leaf.type):
                # A match in the buffer may span two values.
                forms = {form for form in forms if _contains(leaf, form)}
            found |= {self._shown[form] for form in forms}
        return found

    def _forms_in(self, data: bytes | memoryview) -> set[bytes]:
        if not self._windows:
            held = data if isinstance(data, bytes) else bytes(data)
            return {form for form in self._shown if form in held}
        return {form for windows in self._windows for form in windows.found_in(data)}


class _Windows:
    """The values that begin with windows of one size."""

    def __init__(self, width: int, forms: Sequence[bytes]) -> None:
        self._width = width
        self._mask = np.uint64((1 << 8 * width) - 1)
        self._forms: dict[int, list[bytes]] = {}
        for form in forms:
            self._forms.setdefault(int.from_bytes(form[:width], "little"), []).append(form)
        self._known = np.array(sorted(self._forms), np.uint64)
        self._table = np.zeros(1 << _TABLE_BITS, bool)
        self._table[_hashed(self._known)] = True

    def found_in(self, data: bytes | memoryview) -> set[bytes]:
        """Return the values that occur in some bytes."""
        found: set[bytes] = set()
        size = len(data)
        for start in range(0, size - self._width + 1, _PART_BYTES):
            end = min(start + _PART_BYTES, size - self._width + 1)
            for at in self._places(data, start, end):
                found.update(form for form in self._forms_at(data, at) if data[at : at + len(form)] == form)
        return found

    def _forms_at(self, data: bytes | memoryview, at: int) -> list[bytes]:
        return self._forms[int.from_bytes(data[at : at + self._width], "little")]

    def _places(self, data: bytes | memoryview, start: int, end: int) -> Iterator[int]:
        """Yield the offsets from `start` to `end` whose window is one of a value."""
        part = bytes(data[start : end + self._width - 1]) + bytes(8)
        for shift in range(8):
            count = (end - start - shift + 7) // 8
            if count <= 0:
                return
            words = np.frombuffer(part, "<u8", count, shift) & self._mask
            places = np.flatnonzero(self._table[_hashed(words)])
            if len(places):
                known = places[np.isin(words[places], self._known)]
                yield from (start + shift + 8 * place for place in known.tolist())


def _hashed(words: Words) -> Words:
    return (words * _FACTOR) >> np.uint64(64 - _TABLE_BITS)


def _windows_of(forms: Mapping[bytes, str]) -> tuple[_Windows, ...]:
    by_width: dict[int, list[bytes]] = {}
    for form in forms:
        by_width.setdefault(next(width for width in _WIDTHS if len(form) >= width), []).append(form)
    return tuple(_Windows(width, some) for width, some in by_width.items())


def _contains(array: pa.Array, form: bytes) -> bool:
    if _is_text(array.type):
        try:
            form.decode()
        except UnicodeDecodeError:
            return False
    return bool(pc.any(pc.match_substring(array, form)).as_py())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _content(leaf: pa.Array) -> bytes | memoryview:
    """Return the bytes of the values of an array without members; the buffers of a slice contain more."""
    kind = leaf.type
    if pa.types.is_null(kind) or not len(leaf):
        return b""
    if _is_text(kind) or _is_binary(kind):
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        offsets = np.frombuffer(leaf.buffers()[1], np.int64 if wide else np.int32, len(leaf) + 1 + leaf.offset)
        data = leaf.buffers()[2]
        return b"" if data is None else memoryview(data).cast("B")[int(offsets[leaf.offset]) : int(offsets[-1])]
    try:
        bits = kind.bit_width
    except ValueError:
        return b"".join(bytes(buffer) for buffer in leaf.buffers() if buffer is not None)
    first, end = leaf.offset * bits // 8, -(-(leaf.offset + len(leaf)) * bits // 8)
    data = leaf.buffers()[1]
    return b"" if data is None else memoryview(data).cast("B")[first:end]


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays without members that an array consists of."""
    kind = array.type
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _leaves(array.field(number))
    elif pa.types.is_map(kind):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(array.flatten())
    elif pa.types.is_dictionary(kind):
        yield from _leaves(array.dictionary)
    elif isinstance(array, pa.ExtensionArray):
        yield from _leaves(array.storage)
    else:
        yield array
