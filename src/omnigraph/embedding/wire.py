"""Request and response formats of the kinds of providers. Pure: no connection, no key, no retry."""

from __future__ import annotations

import base64
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal
from urllib.parse import quote

Role = Literal["document", "query"]


class WrongAnswer(Exception):
    """Response with an unexpected format; `text` is the index of the text of the request."""

    def __init__(self, message: str, text: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.text = text


class Wire(ABC):
    """Format of requests and responses of a kind of provider."""

    texts_per_request: ClassVar[int]
    requests_at_once: ClassVar[int]

    def __init__(self, model: str) -> None:
        self.model = model

    @property
    @abstractmethod
    def path(self) -> str:
        """Return the path behind the base URL."""

    @abstractmethod
    def headers(self, key: str) -> Mapping[str, str]:
        """Return the header with the key."""

    @abstractmethod
    def body(self, texts: Sequence[str], dim: int, role: Role) -> dict[str, Any]:
        """Return the JSON request for these texts."""

    @abstractmethod
    def vectors(self, answer: Any, count: int) -> list[list[float]]:
        """Return the unchecked vectors of a response in the order of the texts; `WrongAnswer` if they are absent."""


class OpenAIWire(Wire):
    """`POST {base}/embeddings`: many texts, one role."""

    texts_per_request = 64
    requests_at_once = 1

    @property
    def path(self) -> str:
        """Return the path `/embeddings`."""
        return "/embeddings"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the key as a bearer token."""
        return {"Authorization": f"Bearer {key}"}

    def body(self, texts: Sequence[str], dim: int, role: Role) -> dict[str, Any]:  # noqa: ARG002
        """Return the JSON request for these texts; the role has no effect."""
        return {"model": self.model, "input": list(texts), "dimensions": dim}

    def vectors(self, answer: Any, count: int) -> list[list[float]]:
        """Return the vectors of `data`, ordered by `index`."""
        items = _member(answer, "data")
        if not isinstance(items, list):
            raise WrongAnswer("the answer has no list 'data'")
        if len(items) != count:
            raise WrongAnswer(f"expected {count} vectors, received {len(items)}")
        ordered: dict[int, list[float]] = {}
        for item in items:
            index = _member(item, "index")
            if type(index) is not int or not 0 <= index < count or index in ordered:
                raise WrongAnswer(f"the indexes of the vectors are not exactly 0 to {count - 1}")
            given = _member(item, "embedding")
            ordered[index] = _encoded_numbers(given, index) if isinstance(given, str) else _numbers(given, index)
        return [ordered[index] for index in range(count)]


class GeminiWire(Wire):
    """`POST {base}/models/{model}:embedContent`: one text, two roles."""

    texts_per_request = 1
    requests_at_once = 4

    @property
    def path(self) -> str:
        """Return the path of the model."""
        return f"/models/{quote(self.model, safe='/:@')}:embedContent"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the header with the key."""
        return {"x-goog-api-key": key}

    def body(self, texts: Sequence[str], dim: int, role: Role) -> dict[str, Any]:
        """Return the JSON request for one text in its role."""
        (text,) = texts
        return {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": text}]},
            "taskType": "RETRIEVAL_QUERY" if role == "query" else "RETRIEVAL_DOCUMENT",
            "outputDimensionality": dim,
        }

    def vectors(self, answer: Any, count: int) -> list[list[float]]:
        """Return the only vector of the response."""
        assert count == 1, "a Gemini request holds one text"
        return [_numbers(_member(_member(answer, "embedding"), "values"), 0)]


def error_text(document: Any, body: str) -> str:
    """Return the provider's message: `error.message` if the body contains it, otherwise the body."""
    message = _member(_member(document, "error"), "message")
    return message if isinstance(message, str) and message.strip() else body


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _encoded_numbers(text: str, index: int) -> list[float]:
    """Return the 32-bit floats of a base64 text, the form that some servers prefer."""
    try:
        data = base64.b64decode(text, validate=True)
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    except (ValueError, struct.error):
        raise WrongAnswer("a vector of the answer is not base64 of 32-bit floats", index) from None


def _numbers(values: Any, text: int) -> list[float]:
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float}:
        raise WrongAnswer("a vector of the answer is not a list of numbers", text)
    try:
        return list(map(float, values))
    except OverflowError:
        raise WrongAnswer("a vector of the answer holds an integer too large for a float", text) from None
