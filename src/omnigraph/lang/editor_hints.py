"""What an editor shows at a position of a text: completions and descriptions. Positions are characters."""

from __future__ import annotations

from typing import Any, Literal

from omnigraph.fast_dataclass import dataclass

WordKind = Literal["keyword", "type", "edge", "property", "variable", "function", "scalar", "annotation"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word that can be written at a position."""

    text: str
    kind: WordKind
    type: str | None = None
    """The type of a property or variable, the ends of an edge, the usage of a function."""
    description: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"text": self.text, "kind": self.kind, "type": self.type, "description": self.description}


@dataclass(frozen=True, slots=True)
class Completion:
    """The range of the incomplete word before a position, and the words that can replace it, by name."""

    start: int
    end: int
    candidates: tuple[Candidate, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"start": self.start, "end": self.end, "candidates": [each.to_json() for each in self.candidates]}


@dataclass(frozen=True, slots=True)
class Hover:
    """The description of the word at a position."""

    start: int
    end: int
    kind: WordKind
    title: str
    """The word and its type, as it is declared: `Note.text: String?`."""
    description: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in ("start", "end", "kind", "title", "description")}


def completion_of(start: int, end: int, partial: str, proposals: dict[str, Candidate]) -> Completion:
    """Return the proposals that continue an incomplete word, regardless of case."""
    begun = partial.lower()
    found = (each for text, each in sorted(proposals.items()) if text.lower().startswith(begun) and text != partial)
    return Completion(start, end, tuple(found))
