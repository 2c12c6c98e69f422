"""Dictionary codes of text columns with few distinct values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.fast_dataclass import dataclass

_ENTRY_BYTES = 150
"""Approximate size of a value and its code in a dict."""


@dataclass(frozen=True)
class DictionaryCodes:
    """A dictionary-encoded text column: the code of each value and the code of each row; null is -1."""

    of: dict[str, int]
    rows: np.ndarray[Any, np.dtype[np.int32]]

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return int(self.rows.nbytes) + _ENTRY_BYTES * len(self.of)


@dataclass(frozen=True)
class EncodedColumn:
    """Dictionary codes of a text column, or None if it has too many distinct values."""

    codes: DictionaryCodes | None

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return self.codes.nbytes if self.codes is not None else 0


def encode(column: pa.Array) -> EncodedColumn:
    """Encode a text column if it has few distinct values."""
    sample = column.slice(0, tuning.current.codes_sample_rows)
    few = len(pc.unique(sample)) * 4 <= len(sample)
    if not few:
        return EncodedColumn(None)
    encoded = column.dictionary_encode()
    if len(encoded.dictionary) > tuning.current.codes_max:
        return EncodedColumn(None)
    rows = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    return EncodedColumn(
        DictionaryCodes({value: code for code, value in enumerate(encoded.dictionary.to_pylist())}, rows)
    )
