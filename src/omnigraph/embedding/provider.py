"""HTTP providers: texts → requests → calls → checked vectors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.rate_limit import Pace, tokens_of
from omnigraph.embedding.retry import Abandoned, Caller, TryFailed
from omnigraph.embedding.transport import Transport
from omnigraph.embedding.vectors import BadVector, Vectors, checked
from omnigraph.embedding.wire import GeminiWire, OpenAIWire, Role, Wire, WrongAnswer, error_text
from omnigraph.errors import EmbeddingError
from omnigraph.version import __version__

_WORDS_MAX = 500
_ANSWER_BYTES = 1 << 20
_TOO_MANY_TEXTS = (413, 422)
"""Statuses by which servers refuse a request with too many texts."""
_ANSWER_BYTES_PER_NUMBER = 64


class HttpProvider:
    """Embeds through one provider over shared connections. Thread-safe."""

    def __init__(
        self, config: EmbeddingConfig, *, clock: Callable[[], float], sleep: Callable[[float], object] | None
    ) -> None:
        self._config = config
        self._wire: Wire = (GeminiWire if config.provider == "gemini" else OpenAIWire)(config.model)
        self._caller = Caller(config, clock, sleep, Pace(config.limits, clock))
        self._transport = Transport(config.base_url)
        self._at_once = config.limits.requests_at_once or self._wire.requests_at_once
        self._texts_max = self._wire.texts_per_request
        self._slots: AbstractContextManager[object] = nullcontext()
        if self._at_once > 1 or config.limits.requests_at_once:
            # Counted over all threads of a handle, not per call of `embed`. A call keeps its slot while it waits to
            # retry: after a request to slow down, no other call takes its slot.
            self._slots = threading.BoundedSemaphore(self._at_once)

    def embed(self, texts: Sequence[str], dim: int, role: Role) -> Vectors:
        """Return one checked vector of length 1 per text; `EmbeddingError.text_index` is an index in `texts`."""
        vectors = np.empty((len(texts), dim), np.float32)
        batches = self._batches(texts)

        def embed_batch(number: int, stop: threading.Event) -> None:
            batch = batches[number]
            try:
                vectors[batch] = self._embed_batch(texts[batch], dim, role, stop)
            except EmbeddingError as error:
                error.text_index = batch.start + (error.text_index or 0)
                raise

        _run_lanes(len(batches), self._at_once, embed_batch)
        return vectors

    def _batches(self, texts: Sequence[str]) -> list[slice]:
        """Return the batches of texts: at most as many as a request accepts, and at most the tokens of a minute."""
        most = self._config.limits.tokens_per_minute
        found: list[slice] = []
        start = tokens = 0
        for place, text in enumerate(texts):
            more = tokens_of(text) if most else 0
            if place - start == self._wire.texts_per_request or (place > start and tokens + more > most):
                found.append(slice(start, place))
                start, tokens = place, 0
            tokens += more
        return [*found, slice(start, len(texts))] if texts else []

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def _embed_batch(self, texts: Sequence[str], dim: int, role: Role, stop: threading.Event) -> Vectors:
        """Embed texts by one request, or by smaller ones if the server refuses so many; later requests are smaller."""
        if len(texts) <= self._texts_max:
            try:
                return self._call(texts, dim, role, stop)
            except EmbeddingError as error:
                cause = error.__cause__
                if len(texts) == 1 or not isinstance(cause, TryFailed) or cause.status not in _TOO_MANY_TEXTS:
                    raise
            self._texts_max = min(self._texts_max, (len(texts) + 1) // 2)
        half = min(self._texts_max, (len(texts) + 1) // 2)
        first = self._embed_batch(texts[:half], dim, role, stop)
        try:
            return np.concatenate([first, self._embed_batch(texts[half:], dim, role, stop)])
        except EmbeddingError as error:
            error.text_index = half + (error.text_index or 0)
            raise

    def _call(self, texts: Sequence[str], dim: int, role: Role, stop: threading.Event) -> Vectors:
        body = json.dumps(self._wire.body(texts, dim, role)).encode()
        tokens = sum(map(tokens_of, texts))
        with self._slots:
            return self._caller.call(lambda timeout_s: self._try(body, len(texts), dim, timeout_s), stop, tokens)

    def _try(self, body: bytes, count: int, dim: int, timeout_s: float) -> Vectors:
        answer = self._transport.post(
            self._wire.path,
            {
                "Content-Type": "application/json",
                "Accept": "application/json",
                "User-Agent": f"omnigraph/{__version__}",
                **self._wire.headers(self._config.api_key),
            },
            body,
            timeout_s=timeout_s,
            answer_max=_ANSWER_BYTES + count * dim * _ANSWER_BYTES_PER_NUMBER,
        )
        if not 200 <= answer.status < 300:
            raise TryFailed(
                f"status {answer.status}",
                retryable=answer.status == 429 or answer.status >= 500,
                words=self._words(answer.body),
                status=answer.status,
                retry_after_s=answer.retry_after_s,
            )
        try:
            document = json.loads(answer.body)
        except (ValueError, RecursionError):
            raise TryFailed("the answer is not JSON", retryable=False, words=self._words(answer.body)) from None
        try:
            return checked(self._wire.vectors(document, count), dim)
        except WrongAnswer as error:
            raise TryFailed(error.message, retryable=False, text=error.text) from None
        except BadVector as error:
            raise TryFailed(error.message, retryable=False, text=error.row) from None

    def _words(self, body: bytes) -> str:
        text = body.decode("utf-8", "replace")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        # Some providers repeat the rejected key.
        words = " ".join(error_text(document, text).replace(self._config.api_key, "***").split())
        return words if len(words) <= _WORDS_MAX else f"{words[: _WORDS_MAX - 1]}…"


def _run_lanes(count: int, lanes: int, work: Callable[[int, threading.Event], None]) -> None:
    """Call `work` for 0 … count−1, at most `lanes` at a time; after a failure no new call starts.

    The failure with the lowest number among those that occurred is raised.
    """
    stop = threading.Event()
    if lanes == 1 or count <= 1:
        for number in range(count):
            work(number, stop)
        return
    numbers = iter(range(count))
    lock = threading.Lock()
    failures: dict[int, BaseException] = {}

    def lane() -> None:
        while not stop.is_set():
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                work(number, stop)
            except Abandoned:
                return
            except BaseException as error:
                failures[number] = error
                stop.set()

    with ThreadPoolExecutor(min(lanes, count), thread_name_prefix="omnigraph-embedding") as pool:
        try:
            wait([pool.submit(lane) for _ in range(min(lanes, count))])
        finally:
            stop.set()
    if failures:
        raise failures[min(failures)]
