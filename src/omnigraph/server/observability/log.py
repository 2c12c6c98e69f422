"""The log of the server: one line per event on stderr, as text or JSON.

    2027-01-31T09:26:53.589Z info request method=GET route=/branches status=200 ms=1.4 request_id=… actor=ana
    {"at":"2027-01-31T09:26:53.589Z","level":"info","event":"request","method":"GET","route":"/branches",…}

The event of a message of another library is `message`; such messages appear from `warn` on. A line is ASCII: control
characters, line ends and other characters of a name or a header are escaped, so no caller can forge a line. Every line
is masked (`masking`). A thread composes and writes the lines (`log_queue`).
"""

from __future__ import annotations

import json
import logging
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal, TextIO, get_args

from omnigraph.errors import InputError
from omnigraph.server.observability.log_queue import FLUSH_S, LogQueue, Work
from omnigraph.server.observability.masking import is_suspect, mask

if TYPE_CHECKING:
    from omnigraph.policy.decide import PolicyDecision

PROBES = ("/healthz", "/readyz")
"""Routes that load balancers and containers request every few seconds."""
LogLevel = Literal["error", "warn", "info", "debug"]
LogFormat = Literal["text", "json"]
CacheState = Literal["hit", "miss"]

_LEVELS: Mapping[str, int] = {
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
_NAMES = {number: name for name, number in _LEVELS.items()} | {logging.CRITICAL: "error"}
_OWN = "omnigraph"
_UVICORN_LOGGERS = ("uvicorn", "uvicorn.error", "uvicorn.asgi", "uvicorn.access")
_events = logging.getLogger("omnigraph.server")
_queue = LogQueue()

_PLAIN = re.compile(r"[!#-<>-\[\]-~]+")
"""ASCII without spaces, quotes, `=` and backslashes."""
_MESSAGE, _TRACEBACK = "message", "exception"
_encode = json.JSONEncoder(separators=(",", ":")).encode

Field = str | float | bool | None
Fields = dict[str, Field]


def configure(level: str = "info", format: str = "text", stream: TextIO | None = None) -> None:
    """Send the log to a stream, by default stderr. A second call replaces the level and the format.

    The values are those of OMNIGRAPH_LOG and OMNIGRAPH_LOG_FORMAT. Other libraries log from `warn`, whatever the level:
    at `debug`, some log requests with credentials. uvicorn starts with `log_config=None`; its access log is off.
    """
    _check("OMNIGRAPH_LOG", level, get_args(LogLevel))
    _check("OMNIGRAPH_LOG_FORMAT", format, get_args(LogFormat))
    root = logging.getLogger()
    _handler_of(root, stream or sys.stderr).setFormatter(_JsonFormatter() if format == "json" else _TextFormatter())
    root.setLevel(max(_LEVELS[level], logging.WARNING))
    logging.getLogger(_OWN).setLevel(_LEVELS[level])
    logging.captureWarnings(True)
    for name in _UVICORN_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)
    logging.getLogger("uvicorn.access").disabled = True


def _handler_of(root: logging.Logger, stream: TextIO) -> _LineHandler:
    """Return the handler of a stream: the present one, whose lines may be under way, or a new one."""
    for old in [handler for handler in root.handlers if isinstance(handler, _LineHandler)]:
        if old.stream is stream:
            return old
        old.flush()
        root.removeHandler(old)
    handler = _LineHandler(stream)
    root.addHandler(handler)
    _queue.on_batch, _queue.on_error = handler.write_lines, handler.report
    return handler


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLogEntry:
    """One executed query. Parameters are named; their values are never logged."""

    request_id: str
    actor: str | None
    graph: str
    branch: str | None
    commit: str | None
    query: str | None
    """The name of the query; None if it has none."""
    plan_hash: str | None
    """The hash of the plan without constants."""
    params: Iterable[str]
    """The names of the parameters; a mapping gives its keys."""
    rows: int | None
    bytes: int | None
    """The size of the answer."""
    plan_cache: CacheState
    table_cache: CacheState
    ms: Mapping[str, float]
    """Milliseconds by phase, such as `queue`, `compile`, `run` and `encode`."""


def is_logged() -> bool:
    """Return True if requests, decisions and queries are logged."""
    return _events.isEnabledFor(logging.INFO)


def defer(work: Work) -> bool:
    """Call a function in the thread of the log, in order; return False if the log cannot keep up and drops it."""
    return _queue.put(work)


def dropped() -> int:
    """Return the number of lines that were dropped since the start of the process."""
    return _queue.dropped


def flush(timeout_s: float = FLUSH_S) -> bool:
    """Wait until every reported event is written; return False if that takes too long."""
    return _queue.flush(timeout_s)


def log_request(
    method: str, route: str, status: int, ms: float, request_id: str, actor: str | None, at: float | None = None
) -> None:
    """Log one answered request at `info`, a successful probe at `debug`.

    `route` is the template of the path, not the path. `at` is the time of a line that is written later, in seconds
    since the epoch.
    """
    level = logging.DEBUG if route in PROBES and status == HTTPStatus.OK else logging.INFO
    if _events.isEnabledFor(level):
        fields: Fields = {"method": method, "route": route, "status": status, "ms": round(ms, 3)}
        _emit(level, "request", {**fields, "request_id": request_id, "actor": actor}, at)


def log_decision(decision: PolicyDecision, request_id: str, at: float | None = None) -> None:
    """Log one decision of the policy at `info`."""
    if _events.isEnabledFor(logging.INFO):
        fields: Fields = {
            "request_id": request_id,
            "actor": decision.actor,
            "action": decision.action,
            "branch": decision.branch,
            "target_branch": decision.target_branch,
            "allowed": decision.allowed,
            "rule": decision.matched_rule,
        }
        _emit(logging.INFO, "decision", fields, at)


def log_query(entry: QueryLogEntry, at: float | None = None, *, slow: bool = False) -> None:
    """Log one executed query at `info`, a slow one also at `warn`."""
    if not _events.isEnabledFor(logging.INFO) and not slow:
        return
    fields: Fields = {name: getattr(entry, name) for name in QueryLogEntry.__slots__}
    fields["params"] = ",".join(entry.params)
    del fields["ms"]
    fields.update((f"{phase}_ms", round(ms, 3)) for phase, ms in entry.ms.items())
    if _events.isEnabledFor(logging.INFO):
        _emit(logging.INFO, "query", fields, at)
    if slow and _events.isEnabledFor(logging.WARNING):
        _emit(logging.WARNING, "slow_query", fields, at)


def log_event(event: str, level: LogLevel = "info", **fields: str | float | bool | None) -> None:
    """Log another event of the server, such as its start: a word and fields in order."""
    if _events.isEnabledFor(_LEVELS[level]):
        _emit(_LEVELS[level], event, fields)


class _EventRecord(logging.LogRecord):
    """A record of an event; it is formatted from its fields."""

    def __init__(self, level: int, event: str, fields: Fields, at: float | None = None) -> None:
        super().__init__(_events.name, level, "", 0, event, None, None)
        self.fields = fields
        if at is not None:
            self.created = at


def _emit(level: int, event: str, fields: Fields, at: float | None = None) -> None:
    # `Logger.info` would search the stack for its caller, which costs more than the rest of the line.
    _events.handle(_EventRecord(level, event, fields, at))


class _LineHandler(logging.StreamHandler[TextIO]):
    """The handler of the log. A message that cannot be formatted is reported without its content."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._reported_drops = _queue.dropped

    def handle(self, record: logging.LogRecord) -> bool:
        """Pass a record to the thread of the log; that thread composes its line."""
        try:
            prepared = _prepare(record, self.formatter)
        except Exception:
            self.handleError(record)
            return False
        if _queue.is_own_thread:
            self._compose(prepared)
        else:
            _queue.put(partial(self._compose, prepared), required=record.levelno >= logging.WARNING)
        return True

    def flush(self) -> None:
        """Wait until every line is written."""
        _queue.flush()

    def _compose(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(self.format(record))
        except Exception:
            self.handleError(record)

    def write_lines(self) -> None:
        """Write the composed lines; called in the thread of the log."""
        count = _queue.dropped - self._reported_drops
        if count:
            self._reported_drops += count
            self._compose(_EventRecord(logging.WARNING, "log_dropped", {"lines": count}))
        lines, self._lines = self._lines, []
        if lines:
            self.stream.write("\n".join((*lines, "")))
            self.stream.flush()

    def report(self, error: Exception) -> None:
        """Report a failure in the thread of the log, without its text."""
        with suppress(OSError, ValueError):  # stderr is closed: there is no place left to report to
            self.stream.write(f"a line cannot be logged ({type(error).__name__})\n")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (a method of logging)
        """Report a failure; the standard report would print the unmasked message."""
        with suppress(OSError, ValueError):  # as above
            self.stream.write(f"a message of logger {_word(record.name)} cannot be logged\n")


def _prepare(record: logging.LogRecord, formatter: logging.Formatter | None) -> logging.LogRecord:
    """Return a record with the texts of a message, computed while its arguments are those of the moment."""
    if isinstance(record, _EventRecord):
        return record
    prepared = copy(record)
    prepared.msg, prepared.args = record.getMessage(), None
    if record.exc_info and formatter is not None:
        prepared.exc_text, prepared.exc_info = formatter.formatException(record.exc_info), None
    return prepared


class _LineFormatter(logging.Formatter, ABC):
    """Base of both formats: a line is composed of raw texts, and composed again with masked ones if it is suspect."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
        level = _NAMES.get(record.levelno) or ("warn" if record.levelno > logging.INFO else "debug")
        if isinstance(record, _EventRecord):
            event, fields = record.msg, record.fields
        else:
            event, fields = _MESSAGE, _message_fields(record)
        line = self.compose(at, level, event, fields)
        return self.compose(at, level, event, _masked(fields)) if is_suspect(line) else line

    @abstractmethod
    def compose(self, at: str, level: str, event: str, fields: Fields) -> str:
        """Return one line."""


class _JsonFormatter(_LineFormatter):
    """One JSON object per line."""

    def compose(self, at: str, level: str, event: str, fields: Fields) -> str:
        return _encode({"at": at, "level": level, "event": event, **fields})


class _TextFormatter(_LineFormatter):
    """Time, level and event, then the fields as `name=value`; absent values are left out.

    Further lines of a message and those of a traceback follow, each after a bar that no other line begins with.
    """

    def compose(self, at: str, level: str, event: str, fields: Fields) -> str:
        if event != _MESSAGE:
            return " ".join((at, level, event, *_words(fields)))
        first, _, more = str(fields["message"]).partition("\n")
        bars = f"{more}\n{fields.get(_TRACEBACK, '')}".split("\n")
        line = " ".join((at, level, event, *_words({"logger": fields["logger"], "message": first})))
        return "\n".join((line, *(f"  | {_encode(text)[1:-1]}" for text in bars if text)))


def _words(fields: Fields) -> list[str]:
    return [f"{name}={_word(value)}" for name, value in fields.items() if value is not None]


def _message_fields(record: logging.LogRecord) -> Fields:
    """Return the message of another logger, and its traceback, as fields."""
    fields: Fields = {"logger": record.name, "message": record.getMessage()}
    if record.exc_text:
        fields[_TRACEBACK] = record.exc_text
    return fields


def _masked(fields: Fields) -> Fields:
    return {name: mask(value) if isinstance(value, str) else value for name, value in fields.items()}


def _word(value: Field) -> str:
    """Return a value of a text line: a plain word as it is, other texts as JSON strings."""
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else _encode(value)
    return _encode(value) if isinstance(value, bool) else str(value)


def _check(variable: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{variable} is '{value}'; it must be one of {', '.join(allowed)}")
