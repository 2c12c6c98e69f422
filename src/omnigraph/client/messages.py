"""Requests and answers, independent of the loop that sends and receives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from omnigraph.client.failures import reading
from omnigraph.decodable import decodable
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import InputError
from omnigraph.wire.document import Document, encoder, plain
from omnigraph.wire.requests.request import Request as Input

JSON = "application/json"
TYPED_JSON = "application/json; values=typed"
"""JSON whose values keep their types (`wire.typed_values`)."""
NDJSON = "application/x-ndjson"
TYPED_NDJSON = "application/x-ndjson; values=typed"
TAR = "application/x-tar"
ARROW = "application/vnd.apache.arrow.stream"
OCTETS = "application/octet-stream"

Chunks = Callable[[], Iterator[bytes]]
"""The body of a request in chunks; each call starts again, so that a request can be repeated."""

D = TypeVar("D", bound=Document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a server.

    The path is below the address of the graph, or with the scope `server` below that of the server. A request with a
    `key` is a write. `timeout` is the time limit that the caller sets, in seconds; the server applies it.
    """

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | Chunks | None = None
    media_type: str = JSON
    accept: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    timeout: float | None = None
    cancel: Cancellation | None = None
    scope: Literal["graph", "server"] = "graph"
    streamed: bool = False
    """True if a large answer is handed out while it arrives."""
    unlimited: bool = False
    """True if the answer may take longer than the time limit of reads, as an export does."""
    urgent: bool = False
    """True if the request is not repeated after the time that an overloaded server names."""

    @property
    def target(self) -> str:
        """The path and the query string."""
        given = [(name, value) for name, value in self.parameters.items() if value is not None]
        return f"{self.path}?{urlencode(given, doseq=True)}" if given else self.path


@dataclass(frozen=True, slots=True)
class Response:
    """A successful answer. The names of headers are in lower case.

    `rest` is the part of a streamed body that has not arrived yet; None if the body is complete. An iterator that is
    dropped closes the connection. `resend` sends another request and returns its body as it arrives.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    rest: Iterator[bytes] | None = None
    resend: Callable[[Request], Iterator[bytes]] | None = None

    @property
    def commit_id(self) -> str | None:
        """The commit that the answer shows or that the request made."""
        return self.headers.get("omnigraph-commit")

    def document(self, kind: type[D]) -> D:
        """Return the body as a document."""
        with reading:
            return msgspec.json.decode(self.body, type=decodable(kind))

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it arrives."""
        yield self.body
        if self.rest is not None:
            yield from self.rest


def path_of(*segments: str | int) -> str:
    """Return a path; a slash or another special character in a segment is escaped."""
    return "".join(f"/{quote(str(segment), safe='')}" for segment in segments)


def query_of(input: Input) -> dict[str, Any]:
    """Return the parameters of the query string of an input; booleans are `true` and `false`."""
    return {name: _parameter(value) for name, value in plain(input).items() if value is not None}


def _parameter(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def json_body(input: Input) -> bytes:
    """Return the JSON body of an input; raise `InputError` for a value that JSON cannot represent."""
    try:
        return encoder.encode(input)
    except (TypeError, NotImplementedError, OverflowError, ValueError) as error:
        raise InputError(
            f"a value cannot be sent to a server: {error}", hint="use numbers, texts, booleans, dates, lists and dicts"
        ) from error


def joined(chunks: Iterable[bytes] | Sequence[bytes]) -> bytes:
    """Return chunks as one value; a single chunk is not copied."""
    found = chunks if isinstance(chunks, list) else list(chunks)
    return found[0] if len(found) == 1 else b"".join(found)
