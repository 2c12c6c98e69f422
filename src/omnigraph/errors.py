"""Errors of OmniGraph.

    OmniGraphError          .message, .code for programs, .hint for users
    ├─ InputError           the request is wrong; repeating it unchanged fails again
    │  ├─ CompileError      schema or query text; has diagnostics with positions in the text
    │  │  ├─ ParseError     the text is not well formed                        "parse error: …"
    │  │  ├─ SchemaError    declarations contradict one another                "catalog error: …"
    │  │  └─ TypeCheckError a query does not match the schema                  "type error: …"
    │  ├─ SignatureInvalid  the signature of a webhook request is not valid
    │  ├─ ParameterError    a query parameter is missing or of the wrong type
    │  ├─ ValueFormatError  a value cannot be read as its type
    │  ├─ RecordError       a record of a load is wrong; names line, type, property and rule
    │  ├─ SchemaChangeError the planner does not support a schema change
    │  ├─ ModelMismatch     the schema names a model other than the configured one
    │  ├─ EmbeddingMismatch stored vectors were made by a provider or model other than the configured one
    │  ├─ ChangeCursorRejected a token of the change feed is not valid here
    │  ├─ PageCursorRejected a cursor of query pages is not valid here
    │  ├─ PolicyInvalid     a policy file is not valid; lists every problem
    │  ├─ RangeNotSatisfiable the range of a blob begins beyond its end
    │  ├─ LimitReached      a query exceeds its limit of rows or bytes; QueryTimeout: of time
    │  └─ ConstraintViolation
    ├─ NotFound             GraphNotFound, BranchNotFound, TagNotFound, CommitNotFound, TypeNotFound, QueryNotFound,
    │                       ProposalNotFound, ChangeFeedGap, PageGone
    ├─ Conflict             HeadMoved and ExpectedVersionMismatch (safe to retry), PreconditionFailed,
    │                       BranchExists, TagExists, GraphExists, GraphReplaced, KeyConflict, KeyReused,
    │                       ChangeDiffRefused, MergeConflict (lists every conflict), ProposalBlocked
    ├─ Unauthorized         the request has no valid token
    ├─ Denied               the policy denied the action, with its reasons
    ├─ Overloaded           a limit of the server is reached; nothing was executed, and a retry is safe
    ├─ StorageError         the disk or object store failed or lacks a required guarantee
    ├─ EmbeddingError       a text could not be embedded: configuration, provider, or its response
    ├─ SparkError           Spark or Java is missing or does not start, or a job failed
    ├─ Cancelled            the query was cancelled
    ├─ MissingPackage       the requested form of a result needs a package that is not installed
    ├─ OutcomeUnknown       the reply to a publish was lost, or it is not on disk; read the head before retrying
    ├─ RemoteError          a server cannot be reached, or its answer is not that of an OmniGraph server
    ├─ IncompatibleFormat   the graph was written by an incompatible release
    └─ Damaged              stored data violates an invariant; never retried

The module does not depend on HTTP or exit codes: each interface maps these classes to its own codes. A violated
invariant of the program itself is an `assert`, not an `InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any, ClassVar, Literal

_PACKAGE = str(Path(__file__).parent)

DiagnosticKind = Literal["parse", "catalog", "type"]


class Hint(str):
    """A hint for the Python library, with variants for the command line and the shell."""

    cli: str
    shell: str

    def __new__(cls, text: str, *, cli: str, in_shell: str | None = None) -> Hint:
        """Create a hint; the text for the shell is by default that for the command line."""
        hint = super().__new__(cls, printable(text))
        hint.cli = printable(cli)
        hint.shell = printable(in_shell or cli)
        return hint

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, str]]:
        """Return the arguments that recreate the hint in another process."""
        return (str(self),), {"cli": self.cli, "in_shell": self.shell}


def printable(text: str) -> str:
    """Return a text with unpaired surrogates escaped; a hostile name can contain them, and no stream can write them."""
    return text.encode(errors="backslashreplace").decode()


Surface = Literal["cli", "shell"]


def hint_for(hint: str | None, surface: Surface | None) -> str | None:
    """Return the variant of a hint for an interface; None means the Python library."""
    return getattr(hint, surface) if surface is not None and isinstance(hint, Hint) else hint


class OmniGraphError(Exception):
    """Base class of all errors: one sentence in `message`, a stable `code`, and advice in `hint`."""

    default_code: ClassVar[str] = "error"
    _text_has_hint: ClassVar[bool] = False
    """True if `str` includes the hint."""
    idempotency_key: str | None = None
    """The key of a failed write of `AsyncGraph`; a repeated write with this key is applied once."""

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        message = printable(message)
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self._hint: str | None = None
        self.hint = hint

    @property
    def hint(self) -> str | None:
        """Advice to the user. A traceback shows it as a note below the message."""
        return self._hint

    @hint.setter
    def hint(self, hint: str | None) -> None:
        notes = [note for note in getattr(self, "__notes__", ()) if note != f"hint: {self._hint}"]
        self._hint = hint if hint is None or isinstance(hint, Hint) else printable(hint)
        hint = self._hint
        self.__notes__ = [*notes, f"hint: {hint}"] if hint and not self._text_has_hint else notes

    def _render_traceback_(self) -> list[str]:
        """Return the traceback for IPython and Jupyter: the caller's line and the message, without internal frames."""
        callers = [frame for frame in extract_tb(self.__traceback__) if not frame.filename.startswith(_PACKAGE)]
        lines = [f"line {frame.lineno}: {frame.line}" for frame in callers[-1:] if frame.line]
        return [*lines, f"{type(self).__name__}: {self}", *getattr(self, "__notes__", ())]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all fields of an error, independent of its constructor."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[OmniGraphError], arguments: tuple[Any, ...], fields: dict[str, Any]) -> OmniGraphError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(fields)
    return error


class InputError(OmniGraphError):
    """The request is wrong; repeating it unchanged fails again."""

    default_code = "bad_input"


class SignatureInvalid(InputError):
    """The signature of a webhook is missing, malformed, too old, or not made with the secret."""

    default_code = "signature_invalid"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error in a source text, with its position.

    `start` and `end` are byte offsets into the UTF-8 text; `line` and `column` count from 1, the column in characters.
    `excerpt` is the source line with the position underlined.
    """

    kind: DiagnosticKind
    code: str
    message: str
    source_name: str
    line: int
    column: int
    start: int
    end: int
    excerpt: str
    hint: str | None = None
    subject: str | None = None

    @property
    def headline(self) -> str:
        """The stable prefix, the code if it is specific, and the message."""
        code = "" if self.code == f"{self.kind}_error" else f"{self.code}: "
        return f"{self.kind} error: {code}{self.message}"

    @property
    def place(self) -> str:
        """The position as `file:line:column`, and the declaration or query that contains it."""
        where = f"{self.source_name}:{self.line}:{self.column}"
        return f"{where}, in {self.subject}" if self.subject else where

    def render(self, surface: Surface | None = None) -> str:
        """Return headline, position, underlined source line, and the hint for an interface."""
        lines = [self.headline, f"  --> {self.place}", self.excerpt]
        hint = hint_for(self.hint, surface)
        if hint:
            lines.append(f"hint: {hint}")
        return "\n".join(lines)

    def to_dict(self, surface: Surface | None = None) -> dict[str, Any]:
        """Return the JSON form; an absent `hint` or `subject` is omitted."""
        fields: dict[str, Any] = {
            "kind": self.kind,
            "code": self.code,
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "span": {"start": self.start, "end": self.end},
        }
        if self.subject:
            fields["subject"] = self.subject
        if self.hint:
            fields["hint"] = hint_for(self.hint, surface)
        return fields


class CompileError(InputError):
    """Schema or query text that does not compile; `diagnostics` lists all errors in text order."""

    _text_has_hint = True
    default_code = "compile_error"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        assert diagnostics, "a compile error needs at least one diagnostic"
        first = diagnostics[0]
        super().__init__(first.headline, code=first.code, hint=first.hint)
        self.diagnostics = tuple(diagnostics)

    @property
    def span(self) -> tuple[int, int]:
        """Byte offsets of the first error."""
        return self.diagnostics[0].start, self.diagnostics[0].end

    def __str__(self) -> str:
        return self.render()

    def render(self, surface: Surface | None = None) -> str:
        """Return every diagnostic, with hints for an interface."""
        return "\n\n".join(diagnostic.render(surface) for diagnostic in self.diagnostics)


class ParseError(CompileError):
    """The text is not well formed."""

    default_code = "parse_error"


class SchemaError(CompileError):
    """Declarations of a schema contradict one another."""

    default_code = "catalog_error"


class TypeCheckError(CompileError):
    """A query does not match the schema."""

    default_code = "type_error"


class ParameterError(InputError):
    """A query parameter is missing, unknown, of the wrong type, or out of range."""

    default_code = "bad_parameter"


class ValueFormatError(InputError):
    """A value cannot be read as its type."""

    default_code = "bad_value"


class RecordError(InputError):
    """A record of a load is wrong."""

    default_code = "bad_record"

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
        type_name: str | None = None,
        property_name: str | None = None,
        rule: str = "record",
        hint: str | None = None,
    ) -> None:
        place = f"{source}, line {line}" if source and line else f"line {line}" if line else source
        super().__init__(f"{place}: {message}" if place else message, hint=hint)
        self.reason = message
        self.source = source
        self.line = line
        self.type_name = type_name
        self.property_name = property_name
        self.rule = rule
        self.record: Any = None
        """The input record, if it is known."""
        self.column: str | None = None
        """The column of a table file that contains the property, if it is known."""


class SchemaChangeError(InputError):
    """A schema change that the planner does not support, or a stored schema that is not valid."""

    default_code = "schema_change"


class ModelMismatch(InputError):
    """The schema names an embedding model other than the configured one."""

    default_code = "model_mismatch"

    def __init__(self, subject: str, *, recorded: str, resolved: str) -> None:
        super().__init__(
            f"{subject} records the embedding model '{recorded}', but the configured one is '{resolved}', and vectors "
            f"of two models cannot be compared: set OMNIGRAPH_EMBED_MODEL to '{recorded}' together with its provider, "
            "or re-embed the stored vectors with the configured model",
        )
        self.recorded = recorded
        self.resolved = resolved


class EmbeddingMismatch(InputError):
    """The configured provider or model differs from the one that made the vectors of a column."""

    default_code = "embedding_mismatch"

    def __init__(self, subject: str, *, recorded: str, resolved: str) -> None:
        super().__init__(
            f"the vectors of {subject} were made by {recorded}; the configured embedding is {resolved}, and vectors of "
            "two models cannot be compared",
            hint="configure the recorded one (OMNIGRAPH_EMBED_PROVIDER, OMNIGRAPH_EMBED_MODEL), re-embed all "
            "vectors ('omnigraph embed --in-graph --reembed-all'), or set OMNIGRAPH_EMBED_ALLOW_MIXED=1",
        )
        self.recorded = recorded
        self.resolved = resolved


class RangeNotSatisfiable(InputError):
    """The range of a blob begins beyond its `length`; `end` is the last byte, None if the range has no end."""

    default_code = "bad_range"

    def __init__(self, start: int, end: int | None, length: int, *, hint: str | None = None) -> None:
        super().__init__(f"the range begins at byte {start} of a value of {length} bytes", hint=hint)
        self.start = start
        self.end = end
        self.length = length


Resource = Literal["rows", "time", "bytes", "memory"]
"""What a limit bounds; time is in seconds, memory in bytes."""


class LimitReached(InputError):
    """An operation exceeds its limit of rows, bytes, memory or time."""

    default_code = "limit_reached"

    def __init__(
        self,
        message: str,
        *,
        resource: Resource,
        limit: float,
        actual: float | None = None,
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.resource: Resource = resource
        self.limit = limit
        self.actual = actual
        """What the operation needs or used; None if it is unknown."""


class ChangeCursorRejected(InputError):
    """A cursor or page token of the change feed is damaged, or belongs to another graph, branch or filter."""

    default_code = "change_cursor_rejected"

    def __init__(
        self, why: str, *, hint: str = "start the feed again at 'now' or 'beginning', or from a baseline"
    ) -> None:
        super().__init__(f"change cursor rejected: {why}", hint=hint)


class PageCursorRejected(InputError):
    """A cursor of query pages is damaged, or belongs to another graph, branch or query."""

    default_code = "page_cursor_rejected"

    def __init__(self, why: str) -> None:
        super().__init__(f"page cursor rejected: {why}", hint="start again with the first page")


class QueryTimeout(LimitReached):
    """An operation exceeded its timeout; `resource` is "time"."""

    default_code = "timeout"


class ConstraintViolation(InputError):
    """Data violates a declared constraint."""

    default_code = "constraint_violation"


class NotFound(OmniGraphError):
    """A named object does not exist."""

    default_code = "not_found"


class GraphNotFound(NotFound):
    """There is no graph at this location."""

    default_code = "graph_not_found"


class BranchNotFound(NotFound):
    """No branch has this name."""

    default_code = "branch_not_found"


class TagNotFound(NotFound):
    """No tag has this name."""

    default_code = "tag_not_found"


class CommitNotFound(NotFound):
    """No commit has this id."""

    default_code = "commit_not_found"


class TypeNotFound(NotFound):
    """The schema declares no type of this name."""

    default_code = "type_not_found"


class QueryNotFound(NotFound):
    """The source contains no query of this name."""

    default_code = "query_not_found"


class ProposalNotFound(NotFound):
    """No proposal has this id, or the caller may not read its target branch."""

    default_code = "proposal_not_found"


class ChangeFeedGap(NotFound):
    """A cleanup removed versions that the feed needs; `cursor` is the last cursor of the reader."""

    default_code = "change_feed_gap"

    def __init__(self, first_unreadable_commit_id: str, cursor: str | None) -> None:
        super().__init__(
            f"the changes of commit {first_unreadable_commit_id} cannot be read: old versions were cleaned up",
            hint="read a baseline: it returns the whole graph and the cursor that continues from it",
        )
        self.first_unreadable_commit_id = first_unreadable_commit_id
        self.cursor = cursor


class PageGone(NotFound):
    """A cleanup removed versions that the pages after a cursor need."""

    default_code = "page_gone"

    def __init__(self, commit_id: str) -> None:
        super().__init__(
            f"the pages are of commit {commit_id}, which a cleanup has removed", hint="start again with the first page"
        )
        self.commit_id = commit_id


class Conflict(OmniGraphError):
    """A valid request conflicts with a concurrent change or an existing object."""

    default_code = "conflict"


class HeadMoved(Conflict):
    """The branch moved after it was read; nothing was written, and a retry is safe."""

    default_code = "head_moved"


class ExpectedVersionMismatch(Conflict):
    """A table is not at the version that the writer read; nothing was written, and a retry is safe."""

    default_code = "version_mismatch"

    def __init__(self, table_key: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"stale view of '{table_key}': expected version {expected}, current is {actual}; nothing was written",
            hint="read again and retry",
        )
        self.table_key = table_key
        self.expected = expected
        self.actual = actual


class PreconditionFailed(Conflict):
    """The head of a conditional write is not the expected one; nothing was written."""

    default_code = "precondition_failed"

    def __init__(self, branch: str, *, expected: str, actual: str | None) -> None:
        super().__init__(
            f"branch '{branch}' is at commit {actual}, not at {expected}; nothing was written",
            hint="read the branch again before you repeat the write",
        )
        self.branch = branch
        self.expected = expected
        self.actual = actual


class BranchExists(Conflict):
    """A branch of this name already exists."""

    default_code = "branch_exists"


class TagExists(Conflict):
    """A tag of this name already exists."""

    default_code = "tag_exists"


class GraphExists(Conflict):
    """The location already contains a graph."""

    default_code = "graph_exists"


class KeyConflict(Conflict):
    """A strict insert found an existing id; nothing was written."""

    default_code = "key_conflict"

    def __init__(self, table_key: str, row_id: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.table_key = table_key
        self.row_id = row_id


class GraphReplaced(Conflict):
    """The folder of the graph was replaced while an operation used it; the next operation sees the new content."""

    default_code = "graph_replaced"


class KeyReused(Conflict):
    """An idempotency key was used again with a different request."""

    default_code = "idempotency_key_reused"


class MergeConflict(Conflict):
    """Two branches changed the same data; `conflicts` lists every conflict, and nothing was written."""

    default_code = "merge_conflict"

    def __init__(self, message: str, conflicts: Sequence[Any], *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.conflicts = tuple(conflicts)


class ProposalBlocked(Conflict):
    """A proposal cannot land; `reasons` lists everything that prevents it, and nothing was written."""

    default_code = "proposal_blocked"

    def __init__(self, message: str, reasons: Sequence[str] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reasons = tuple(reasons)


class PolicyInvalid(InputError):
    """A policy file or its tests file is not valid; `problems` lists every problem with its key and line."""

    default_code = "policy_invalid"

    def __init__(self, message: str, problems: Sequence[Any], *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class ChangeDiffRefused(Conflict):
    """The changes of a commit cannot be listed row by row; `reason` is also the code."""

    default_code = "change_diff_refused"

    def __init__(
        self,
        message: str,
        *,
        reason: Literal["parentless_commit", "schema_boundary"],
        graph_commit_id: str,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=reason, hint=hint)
        self.reason = reason
        self.graph_commit_id = graph_commit_id


class Unauthorized(OmniGraphError):
    """A request to a server has no token, or one that is not valid."""

    default_code = "unauthorized"


class Denied(OmniGraphError):
    """The policy denied the action for `reasons`. `rules` are the ids of the rules whose scope excludes the request."""

    default_code = "denied"

    def __init__(
        self, message: str, reasons: Sequence[str] = (), *, rules: Sequence[str] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.reasons = tuple(reasons)
        self.rules = tuple(rules)


class Overloaded(OmniGraphError):
    """The server is at a limit for one actor or in total; nothing was executed, and a retry is safe.

    `limit` is the name of the limit, `value` its value, and `actual` what was reached or requested.
    """

    default_code = "overloaded"

    def __init__(
        self,
        message: str,
        *,
        scope: Literal["actor", "server"],
        retry_after_s: int,
        limit: str | None = None,
        value: int | None = None,
        actual: int | None = None,
    ) -> None:
        super().__init__(message, hint=f"nothing was executed; retry after {retry_after_s} s")
        self.scope = scope
        self.retry_after_s = retry_after_s
        self.limit = limit
        self.value = value
        self.actual = actual


class StorageError(OmniGraphError):
    """The disk or object store failed, or lacks a guarantee that a graph requires."""

    default_code = "storage_error"


class EmbeddingError(OmniGraphError):
    """A text could not be embedded; `text_index` is the index of the first such text, if known."""

    default_code = "embedding_error"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, text_index: int | None = None
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.text_index = text_index


class SparkError(OmniGraphError):
    """Spark or Java is missing or does not start, or a job failed."""

    default_code = "spark_error"


class Cancelled(OmniGraphError):
    """The operation was cancelled; nothing was changed."""

    default_code = "cancelled"


class MissingPackage(OmniGraphError, ImportError):
    """A required package is not installed."""

    default_code = "missing_package"


class OutcomeUnknown(OmniGraphError):
    """The reply to a publish was lost, or the disk failed to flush it; read the head before retrying."""

    default_code = "outcome_unknown"

    def __init__(
        self, message: str, *, commit_id: str | None = None, code: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.commit_id = commit_id
        """The id of the commit that may exist; None if the change makes no commit."""


class RemoteError(OmniGraphError):
    """A server cannot be reached, or its answer is not that of an OmniGraph server.

    `status` is the HTTP status, `text` the beginning of the answer; both are None if there was no answer.
    """

    default_code = "remote_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        text: str | None = None,
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status
        self.text = text


class IncompatibleFormat(OmniGraphError):
    """The graph has a storage format that this release does not support."""

    default_code = "incompatible_format"


class Damaged(OmniGraphError):
    """Stored data violates an invariant; the operation is never retried, and the error never suppressed."""

    default_code = "damaged"
