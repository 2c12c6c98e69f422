"""Budgets of answers: how many rows fit, and how long values are shortened.

A token is counted as 3.5 bytes of JSON. An answer contains each row twice, in its structured part and in its text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from omnigraph.wire.document import encoder

TOKEN_BYTES = 3.5
TOKENS_MIN = 1_000
"""The smallest budget of an answer."""
TEXT_MAX = 1_000
"""Characters of a text in a row before it is clipped."""
_TEXT_STEPS = (TEXT_MAX, 300, 100, 30)
_NUMBERS_MAX = 16
"""Items of a list of numbers before it is clipped; vectors have hundreds."""
_NUMBERS_SHOWN = 4
_HEAD_BYTES = 1_400
"""Room for the members of an answer beside its rows, in both parts: columns, commits, cursor and note."""
_TRIES = 6

Item = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Budget:
    """The largest size of an answer in bytes."""

    bytes: int

    @classmethod
    def of_tokens(cls, tokens: int) -> Budget:
        """Return the budget of a number of tokens."""
        return cls(int(tokens * TOKEN_BYTES))

    @property
    def for_items(self) -> int:
        """The bytes that rows may take."""
        return max(self.bytes - _HEAD_BYTES, self.bytes // 4)

    def clip(self, item: Item) -> Item:
        """Return an item with long values clipped so that it fits this budget alone."""
        for most in _TEXT_STEPS:
            clipped: Item = clip_value(item, most)
            if cost(clipped) <= self.for_items:
                return clipped
        shown: Item = {}
        left = self.for_items - 100
        for name, value in clipped.items():
            left -= cost({name: value})
            if left < 0:
                break
            shown[name] = value
        return {**shown, "…": f"{len(item) - len(shown)} more members of {len(item)}: select fewer"}

    def fits(self, items: list[Item]) -> int:
        """Return how many of the first items fit; at least one."""
        left, count = self.for_items, 0
        for item in items:
            left -= cost(item)
            if left < 0 and count:
                return count
            count += 1
        return count


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a longer list, the cursor that continues behind them, and what they were read with."""

    items: list[Item]
    next: str | None
    source: T
    cut: bool = False
    """True if the budget, not the list, ended the page."""


Fetch = Callable[[int], Page[T]]
"""Reads a page of at most this many items."""


def fit_page(budget: Budget, limit: int, fetch: Fetch[T]) -> Page[T]:
    """Return a page that fits a budget: one of `limit` items, or a shorter one that is read again.

    The cursor of a page continues behind its last item, so a page is shortened by reading a shorter one.
    """
    page, asked = fetch(limit), limit
    for _ in range(_TRIES):
        items = [budget.clip(item) for item in page.items]
        count = budget.fits(items)
        if count >= len(items):
            return Page(items, page.next, page.source, cut=asked < limit)
        asked = count
        page = fetch(asked)
    # The rows change faster than they are read: the first one fits in any case.
    page = fetch(1)
    return Page([budget.clip(item) for item in page.items[:1]], page.next, page.source, cut=True)


def cut_items(budget: Budget, items: list[Item]) -> tuple[list[Item], int]:
    """Return the clipped items that fit, and how many are left out."""
    clipped = [budget.clip(item) for item in items]
    count = budget.fits(clipped)
    return clipped[:count], len(items) - count


def cost(item: Item) -> int:
    """Return the bytes of an item in an answer: in the structured part and in the text."""
    return 2 * len(encoder.encode(item)) + 4


def clip_value(value: Any, most: int) -> Any:
    """Return a JSON value with long texts and long lists of numbers shortened; their length is stated."""
    if isinstance(value, str):
        return clip_text(value, most)
    if isinstance(value, dict):
        return {name: clip_value(each, most) for name, each in value.items()}
    if isinstance(value, list):
        if len(value) > _NUMBERS_MAX and all(isinstance(each, int | float) for each in value):
            return [*value[:_NUMBERS_SHOWN], f"… ({len(value):,} numbers)"]
        return [clip_value(each, most) for each in value]
    return value


def clip_bytes(text: str, most: int) -> str:
    """Return a text of at most `most` bytes of UTF-8; a longer one ends with its length."""
    data = text.encode()
    if len(data) <= most:
        return text
    note = f"… ({len(text):,} characters)"
    return data[: most - len(note.encode())].decode(errors="ignore") + note


def clip_text(text: str, most: int) -> str:
    """Return a text of at most about `most` characters; a longer one ends with its length."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
